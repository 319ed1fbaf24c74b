"""The default: the truth and the operating point inferred together, when the noise of the labelers is known.

The paper's posteriors take the estimated operating point as if it were known, and are too narrow; here it has a
uniform prior and is integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import expit, gammaln, ndtri

from trueup._base.types import Codes, Floats, Target
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer
from trueup.estimators.counts import DrawnCounts, DrawnRates, LatticeCounts, two_class_counts
from trueup.estimators.exact_multiclass import bayes_multiclass, stratified, truth_sampler
from trueup.estimators.problem import Problem, Solution
from trueup.posteriors import poisson_binomial_pmf
from trueup.posteriors.estimate import linear_bins

_TARGETS: tuple[Target, ...] = ("sample", "population")
_MOST_CELLS = 1 << 18  # of an exact lattice: some tens of milliseconds a metric
_SLACK = 4.0  # standard deviations, and counts, by which a lattice goes beyond its likeliest part at extreme tilts
_NEGLIGIBLE = 1e-17  # probability of a pair of counts that is left out
_DIGITS = 1e-10  # a pmf above this is right to six digits at least
_APART = 3.0  # standard deviations between the means of two laws that share out the counts between them
_BINS = 1 << 12  # of the log-odds of very many items
_WORK = 1 << 17  # items × tilts evaluated for one table
_COARSE = 48  # points along each axis while the region is looked for
_FINE = 192  # points along each axis of the grid that operating points are drawn from
_SHARE = 0.1  # of the points that a region of the right size holds
_DROP = 25.0  # what is this far below the top in the log-posterior has no mass (e⁻²⁵)
_CORRELATED = 0.9  # from which on a region is turned to lie along its ridge


def bayes(
    problem: Problem, *, target: Target = "sample", n_draws: int = 16384, random_state: RandomState = None
) -> Solution:
    """The posterior of the counts with the operating point integrated over its posterior.

    The model is Su's (2024, eqs. 7, 10 and 25) with a uniform prior on the operating point of two classes (for more,
    Jeffreys' prior on each row of the classifier's confusion matrix); the paper's 2.6.2 averages over the prior
    instead of the posterior.

    Two classes, up to some ten thousand items: exact. Given the truths, the operating point integrates out in closed
    form, so with u true positives of n₁ alarms, v misses of n₀ silences and PB the Poisson-binomial law of the votes
    alone, P(U=u, V=v) ∝ PB₁(u) PB₀(v) B(u+1, v+1) B(n₁−u+1, n₀−v+1). No grid, no draws, no normal approximation.
    More items (where the lattice would have more than 2¹⁸ cells): operating points are drawn from a grid over their
    log-concave posterior, and the counts given each from their normal law with a skewness correction. More than two
    classes: see `bayes_multiclass`.

    Parameters
    ----------
    problem : Problem
    target : {"sample", "population"}
        Metrics of these items, or of the population they came from (whose class shares are the prior).
    n_draws : int
        Draws, where draws are needed.
    random_state : int, Generator or None
        Used where draws are needed.

    Returns
    -------
    Solution
        With `LatticeCounts`, `DrawnCounts`, or `DrawnRates` for a population.
    """
    check_choice(target, _TARGETS, name="target")
    check_integer(n_draws, name="n_draws", low=1)
    rng = as_generator(random_state)
    if problem.n_classes > 2:
        return bayes_multiclass(problem, target=target, n_draws=n_draws, random_state=rng)
    both = columns(problem)
    bulk = find_region(both)
    ranges = _count_ranges(both, bulk)
    cells = (ranges[0][1] - ranges[0][0] + 1) * (ranges[1][1] - ranges[1][0] + 1)
    if cells <= _MOST_CELLS and not (both[0].is_binned or both[1].is_binned):
        return _exact_solution(problem, both, ranges, target, n_draws, rng)
    return _drawn_solution(problem, both, bulk.region, target, n_draws, rng)


# ---------------------------------------------------------------------- exact


def exact_counts(problem: Problem) -> LatticeCounts:
    """The exact posterior of the counts of two classes, whatever it costs."""
    both = columns(problem, binned=False)
    return _lattice(both, _count_ranges(both, find_region(both)))


Ranges = tuple[tuple[int, int], tuple[int, int]]


def _count_ranges(both: tuple[Column, Column], bulk: Bulk) -> Ranges:
    """The least and the largest number of positives among the items predicted as 0 and as 1."""
    corners = [bulk.points + a * bulk.half[:, 0] + b * bulk.half[:, 1] for a in (-2, 2) for b in (-2, 2)]
    counts = []
    for column, tilt in zip(both, tilts(np.clip(np.concatenate(corners), 0.0, 1.0)), strict=True):
        some = np.clip(tilt[~np.isnan(tilt)], -700.0, 700.0)
        mean, variance, _ = column.moments(np.array([some.min(), some.max()]))
        slack = _SLACK * np.sqrt(variance) + _SLACK
        first = max(column.sure[1], int(np.floor(mean[0] - slack[0])))
        last = min(column.n - column.sure[0], int(np.ceil(mean[1] + slack[1])))
        counts.append((first, last))
    return counts[0], counts[1]


def _exact_solution(
    problem: Problem,
    both: tuple[Column, Column],
    ranges: Ranges,
    target: Target,
    n_draws: int,
    rng: np.random.Generator,
) -> Solution:
    lattice = _lattice(both, ranges)
    n0, n1 = both[0].n, both[1].n
    u, v = lattice.u, lattice.v
    d_mean = float(lattice.pmf @ ((u + 1) / (u + v + 2)))
    f_mean = float(lattice.pmf @ ((n1 - u + 1) / (n1 + n0 - u - v + 2)))
    diagnostics = {"exact": 1.0, "n_cells": float(len(lattice.pmf))}
    confusion = as_confusion(d_mean, f_mean)
    if target == "population":
        rates = problem.prior[:, None] * _operating_points(lattice, n1, n0, n_draws, rng)
        return Solution(DrawnRates(rates), confusion, diagnostics=diagnostics)
    truths = partial(_lattice_truths, problem, lattice, n1, n0)
    counts = LatticeCounts(u, v, lattice.pmf, n_positive=n1, n_negative=n0, truths=truths)
    return Solution(counts, confusion, diagnostics=diagnostics)


def _operating_points(lattice: LatticeCounts, n1: int, n0: int, n: int, rng: np.random.Generator) -> Floats:
    """Given the counts, p_D and p_FA are independent Beta variables."""
    us, vs = lattice.draw_pairs(n, rng)
    return as_confusion(rng.beta(us + 1, vs + 1), rng.beta(n1 - us + 1, n0 - vs + 1))


def _lattice_truths(
    problem: Problem, lattice: LatticeCounts, n1: int, n0: int, n: int, rng: np.random.Generator
) -> Codes:
    return truth_sampler(problem, _operating_points(lattice, n1, n0, n, rng))(n, rng)


def _lattice(both: tuple[Column, Column], ranges: Ranges) -> LatticeCounts:
    silent, alarmed = both
    log_v, log_u = _log_pmf(silent, ranges[0]), _log_pmf(alarmed, ranges[1])
    v, u = np.arange(ranges[0][0], ranges[0][1] + 1), np.arange(ranges[1][0], ranges[1][1] + 1)
    n0, n1 = silent.n, alarmed.n
    # log B(u+1, v+1) + log B(n₁−u+1, n₀−v+1), where only the last two terms need both u and v.
    log_u = log_u + gammaln(u + 1) + gammaln(n1 - u + 1)
    log_v = log_v + gammaln(v + 1) + gammaln(n0 - v + 1)
    positives = np.arange(u[0] + v[0], u[-1] + v[-1] + 1)
    of_sum = gammaln(positives + 2.0) + gammaln(n0 + n1 - positives + 2.0)
    together = np.add.outer(u, v)
    log_mass = log_u[:, None] + log_v - of_sum[together - together[0, 0]]
    mass = np.exp(log_mass - log_mass.max())
    mass /= mass.sum()
    at_u, at_v = np.nonzero(mass > _NEGLIGIBLE)
    kept = mass[at_u, at_v]
    return LatticeCounts(u[at_u], v[at_v], kept / kept.sum(), n_positive=n1, n_negative=n0)


def _log_pmf(column: Column, counts: tuple[int, int]) -> Floats:
    """Log-probabilities of the numbers of positives in a range, from the votes alone, up to a constant.

    The range may lie far in the tail of that law, where the pmf has no digits left. But tilting all log-odds by λ
    tilts the pmf by e^{λu}, so it is computed around several tilts, and each count is taken from where it is likely.
    """
    first, last = counts
    if not len(column.logits):
        return np.zeros(last - first + 1)
    u = np.arange(first, last + 1) - column.sure[1]
    best, log_pmf = np.full(len(u), _DIGITS), np.full(len(u), -np.inf)
    for tilt in _spaced_tilts(column, float(u[0]), float(u[-1])):
        pmf = poisson_binomial_pmf(expit(column.logits + tilt))[u]
        likelier = pmf > best
        best[likelier] = pmf[likelier]
        evidence = float(column.log_evidence(np.array([tilt]))[0][0])
        log_pmf[likelier] = np.log(pmf[likelier]) - tilt * u[likelier] + evidence
    return log_pmf


def _spaced_tilts(column: Column, first: float, last: float) -> Floats:
    """Tilts whose laws have means from `first` to `last` unsure positives, some three standard deviations apart."""
    # With hardly any item positive, or nearly every one, all further tilts give the same conditional law.
    low, high = max(first, 0.05), min(last, column.n_unsure - 0.05)
    every = np.linspace(-column.logits[-1] - 40.0, 40.0 - column.logits[0], 65)
    for _ in range(8):  # zooms in on the tilts that are needed
        _, mean = column.log_evidence(every)
        inside = np.flatnonzero((mean > low) & (mean < high))
        at = int(np.searchsorted(mean, (low + high) / 2))
        ends = (inside[0] - 1, inside[-1] + 1) if len(inside) else (at - 1, at)
        ends = (max(ends[0], 0), min(ends[1], len(every) - 1))
        if len(inside) >= 32:
            break
        every = np.linspace(every[ends[0]], every[ends[1]], 65)
    every = every[ends[0] : ends[1] + 1]
    sd = np.sqrt(np.maximum(column.moments(every)[1], 1.0))
    distance = np.concatenate([[0.0], np.cumsum((sd[1:] + sd[:-1]) / 2 * np.diff(every))])
    n_tilts = int(np.ceil(distance[-1] / _APART)) + 1
    return np.asarray(np.interp(np.linspace(0.0, distance[-1], n_tilts), distance, every))


# ---------------------------------------------------------------------- many items


def _drawn_solution(
    problem: Problem,
    both: tuple[Column, Column],
    region: Region,
    target: Target,
    n_draws: int,
    rng: np.random.Generator,
) -> Solution:
    points = _draw_operating_points(both, region, n_draws, rng)
    confusions = as_confusion(points[:, 0], points[:, 1])
    confusion = confusions.mean(axis=0)
    diagnostics = {"exact": 0.0, "n_draws": float(n_draws)}
    if target == "population":
        return Solution(DrawnRates(problem.prior[:, None] * confusions), confusion, diagnostics=diagnostics)
    v, u = (draw_positives(column, tilt, rng) for column, tilt in zip(both, tilts(points), strict=True))
    counts = two_class_counts(u, v, both[1].n, both[0].n)
    return Solution(DrawnCounts(counts, truths=truth_sampler(problem, confusions)), confusion, diagnostics=diagnostics)


def _draw_operating_points(both: tuple[Column, Column], region: Region, n: int, rng: np.random.Generator) -> Floats:
    """Draws from the posterior: cells of a fine grid by stratified sampling, and a point within each cell."""
    points, half = region.grid(_FINE)
    value = log_likelihood(both, points)
    upto = np.cumsum(np.exp(value - value.max()))
    chosen = np.searchsorted(upto, stratified(n, rng) * upto[-1])
    within = 2 * rng.random((n, 2)) - 1
    return np.asarray(np.clip(points[np.minimum(chosen, len(points) - 1)] + within @ half.T, 1e-12, 1 - 1e-12))


def draw_positives(column: Column, tilt: Floats, rng: np.random.Generator) -> Floats:
    """Numbers of positives given the tilts: normal, with the skewness of the Poisson-binomial law (Cornish–Fisher)."""
    mean, variance, third = _interpolated_moments(column, tilt)
    z = ndtri(stratified(len(tilt), rng))
    skew = np.divide(third, variance, out=np.zeros_like(third), where=variance > 0)  # skewness × deviation
    counts = mean + np.sqrt(variance) * z + skew * (z**2 - 1) / 6
    return np.clip(np.rint(counts), column.sure[1], column.n - column.sure[0])


# ---------------------------------------------------------------------- items of one prediction


@dataclass(frozen=True, eq=False)
class Column:
    """The items predicted as one class, by what their votes say."""

    logits: Floats  # (m,): log-odds of class 1 given the votes alone, finite; distinct bins of them for very many items
    weights: Floats  # (m,): how many items each stands for
    sure: tuple[int, int]  # how many other items are surely of class 0 and of class 1
    n: int

    @property
    def is_binned(self) -> bool:
        """Whether the log-odds are bins and not the items' own."""
        return len(self.logits) < self.n_unsure

    @property
    def n_unsure(self) -> int:
        """Number of items whose class is not known."""
        return self.n - sum(self.sure)

    def log_evidence(self, tilt: Floats) -> tuple[Floats, Floats]:
        """Σ log(1 − s + s·e^λ) over the unsure items, and its derivative: the expected number of positives."""
        z = self.logits[:, None] + tilt
        base = self.weights @ np.logaddexp(0.0, self.logits)
        return self.weights @ np.logaddexp(0.0, z) - base, self.weights @ expit(z)

    def moments(self, tilt: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean, variance and third central moment of the number of positives among all items of the column."""
        p = expit(self.logits[:, None] + tilt)
        variance = p * (1 - p)
        third = self.weights @ (variance * (1 - 2 * p))
        return np.asarray(self.sure[1] + self.weights @ p), self.weights @ variance, third


def columns(problem: Problem, *, binned: bool = True) -> tuple[Column, Column]:
    """The items predicted as 0 and those predicted as 1; log-odds of more than 4096 items in bins, if allowed."""
    with np.errstate(divide="ignore"):  # a class may have no prior weight
        prior_odds = np.log(problem.prior[1]) - np.log(problem.prior[0])
    with np.errstate(invalid="ignore"):
        logits = problem.log_likelihood[:, 1] - problem.log_likelihood[:, 0] + prior_odds
    known = problem.gold >= 0
    if known.any():
        logits[known] = np.where(problem.gold[known] == 1, np.inf, -np.inf)
    predicted = problem.predictions
    return _column(logits[predicted == 0], binned), _column(logits[predicted == 1], binned)


def _column(logits: Floats, binned: bool) -> Column:
    sure = (int((logits == -np.inf).sum()), int((logits == np.inf).sum()))
    unsure = logits[np.isfinite(logits)] if sum(sure) else logits
    if binned and len(unsure) > _BINS:
        return Column(*_binned(unsure), sure, len(logits))
    return Column(np.sort(unsure), np.ones(len(unsure)), sure, len(logits))


def _binned(values: Floats) -> tuple[Floats, Floats]:
    """Values shared out linearly between the two nearest points of a fine grid.

    The functions of the log-odds that are summed have second derivatives below 1/4, so an item is off by less than
    step²/32: some 1e-6, against a noise of the sums that falls only as 1/√n of an item.
    """
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-12:
        return np.array([low]), np.array([float(len(values))])
    grid = np.linspace(low, high, _BINS)
    weights = linear_bins(values, np.ones(len(values)), grid)
    return grid[weights > 0], weights[weights > 0]


def tilts(points: Floats) -> tuple[Floats, Floats]:
    """The tilts of the items predicted as 0 and as 1, at operating points (..., 2) = (d, f)."""
    d, f = points[..., 0], points[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log1p(-d) - np.log1p(-f), np.log(d) - np.log(f)


def log_likelihood(both: tuple[Column, Column], points: Floats) -> Floats:
    """The log-likelihood of operating points (n, 2) strictly within the unit square, up to a constant.

    The sums over items are computed at some tilts and interpolated between, by cubics that match values and slopes.
    """
    d, f = points.T
    total = np.zeros(len(points))
    for column, tilt, one, zero in zip(both, tilts(points), (1 - d, d), (1 - f, f), strict=True):
        total += column.sure[1] * np.log(one) + (column.sure[0] + column.n_unsure) * np.log(zero)
        if len(column.logits):
            nodes = _tilt_nodes(column, float(tilt.min()), float(tilt.max()))
            total += scipy.interpolate.CubicHermiteSpline(nodes, *column.log_evidence(nodes))(tilt)
    return total


def _tilt_nodes(column: Column, low: float, high: float) -> Floats:
    """Tilts at which to compute sums over the items."""
    n_nodes = int(np.clip(_WORK // len(column.logits), 17, 129))
    return np.linspace(low - 1e-9, high + 1e-9, n_nodes)


def _interpolated_moments(column: Column, tilt: Floats) -> tuple[Floats, Floats, Floats]:
    """`Column.moments` at many tilts, interpolated."""
    if not len(column.logits):
        nothing = np.zeros(len(tilt))
        return nothing + column.sure[1], nothing, nothing
    nodes = _tilt_nodes(column, float(tilt.min()), float(tilt.max()))
    mean, variance, third = (scipy.interpolate.CubicSpline(nodes, values)(tilt) for values in column.moments(nodes))
    return mean, np.maximum(variance, 0.0), third


# ---------------------------------------------------------------------- where operating points have mass


@dataclass(frozen=True, eq=False)
class Region:
    """A parallelogram of operating points that holds all of the posterior's mass: centre + axes·[−1, 1]²."""

    center: Floats
    axes: Floats

    def grid(self, size: int) -> tuple[Floats, Floats]:
        """Midpoints of size × size cells, those within the unit square, and the half-axes of a cell."""
        steps = (np.arange(size) + 0.5) * 2 / size - 1
        local = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
        points = self.center + local @ self.axes.T
        return points[((points > 0) & (points < 1)).all(axis=1)], self.axes / size


@dataclass(frozen=True, eq=False)
class Bulk:
    """Where operating points have mass: a region, and cells that cover it by their midpoints and half-axes."""

    region: Region
    points: Floats
    half: Floats


def find_region(both: tuple[Column, Column]) -> Bulk:
    """Where the operating points' posterior under a uniform prior has its mass.

    Starting from the unit square, the best tenth of a grid is boxed in and gridded again until more than that tenth
    has mass. The posterior is log-concave, so the best points of each grid surround those of the next; a box is
    turned where they lie along a ridge, as they do when votes say little.
    """
    region = Region(np.array([0.5, 0.5]), np.eye(2) / 2)
    while True:
        points, half = region.grid(_COARSE)
        value = log_likelihood(both, points)
        order = np.argsort(value, kind="stable")[::-1]
        with_mass = int((value > value[order[0]] - _DROP).sum())
        enough = int(_SHARE * len(points)) + 8
        best = points[order[: max(with_mass, enough)]]
        smaller = _box(best, half)
        if with_mass >= enough or abs(np.linalg.det(smaller.axes)) > 0.8 * abs(np.linalg.det(region.axes)):
            return Bulk(smaller, best, half)
        region = smaller


def _box(points: Floats, half: Floats) -> Region:
    """The smallest box around the cells of the points, turned if they are correlated."""
    centered = points - points.mean(axis=0)
    covariance = centered.T @ centered
    correlation = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    turned = abs(correlation) > _CORRELATED
    directions = np.linalg.eigh(covariance)[1] if turned else np.eye(2)
    margin = 2 * np.abs(directions.T @ half).sum(axis=1)
    along = points @ directions
    low, high = along.min(axis=0) - margin, along.max(axis=0) + margin
    if not turned:
        low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    return Region(directions @ (low + high) / 2, directions * (high - low) / 2)


def as_confusion(d: npt.ArrayLike, f: npt.ArrayLike) -> Floats:
    """Confusion matrices (..., 2, 2) of operating points."""
    d, f = np.broadcast_arrays(np.asarray(d, dtype=float), np.asarray(f, dtype=float))
    return np.stack([np.stack([1 - f, f], axis=-1), np.stack([1 - d, d], axis=-1)], axis=-2)
