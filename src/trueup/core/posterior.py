"""The coefficients given checked items: the mode, draws around it, and weights that make them right.

A *point* is a vector of independent standard normal numbers: the first belongs to the slope β, the others to levels and
effects, and the last is the scale that these have in common, which makes their distribution a multivariate Student t.
`Recalibration` turns points into coefficients: levels are solved for, so that whatever else moves, the level of a
system deviates as those of real sets do.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, ndtr, ndtri

from trueup._base.types import Codes, Floats
from trueup.core.features import Features, effect_scales
from trueup.core.prior import CrowdPrior, angle_slope, from_angle, to_angle
from trueup.core.rows import Rows

N_POINTS = 512  # of θ, spread evenly; each gives several truths
SOLVED_ON = 128  # rows that levels are solved on where there are more: they differ from all in the level alone
_ROWS_A_LEVEL = 32  # where that is more
_CELLS_AT_ONCE = 1 << 16  # probabilities in a step of the solver: what the processor's cache holds
_MOST_JACOBIANS = 50_000  # entries of all together; where levels are many, there are fewer points
_FEWEST_POINTS = 128
_LONGEST_SCALE = 4.0  # standard deviations of the scale in common
_SLOPES = np.array([-0.4, 0.0, 0.4, 0.8, 1.2, 1.6, 2.0])  # where the centre is solved, and interpolated between
_LARGEST_COEFFICIENT = 3.0  # before levels are solved for
_LONGEST_STEP = 1.5  # of a coefficient
_MOST_STEPS = 8
_CLOSE = 1e-5  # of a coefficient; the step that reaches it leaves much less
_DAMPING = 1e-3  # in units of the variance of a feature, where hardly any item could be of another class
_CORNER = 0.005  # radians: levels keep away from 0 and 1 by the square of it
_MODE_STEPS = 25
_ENOUGH = 1e-3  # of the logarithm of the posterior
_STEP_LENGTHS = np.array([1.0, 0.5, 0.25, 0.1, 0.03])
_PROPOSAL_DEGREES = 6.0  # of the Student t that points are drawn from around the mode, and one more a dimension
_MOST_ROUNDS = 6
_LEAST_EFFECTIVE = 0.2  # of the points: weights are flattened until they are worth so many
_N_KEPT = 8  # times N_POINTS: points of the prior that are solved once, and weighted by what is checked
_MOST_KEPT_DIMENSIONS = 5  # with more, such weights are worth too few points
_ENOUGH_KEPT = 200  # points that the weights must be worth, else points are drawn around the mode


class Recalibration:
    """From points to coefficients; rows have weights that sum to 1, `centres` are the levels that votes expect."""

    def __init__(
        self, rows: Rows, features: Features, prior: CrowdPrior, *, centres: Floats | None = None, seed: int = 0
    ) -> None:
        self.prior, self.n_levels, self.seed = prior, features.n_levels, seed
        levels = slice(0, self.n_levels)
        self.scales = effect_scales(rows, features, prior)
        chance = np.exp(rows.log_base)[:, :, None]
        asked = rows.of_features(levels)
        named = asked.named(chance)
        self.centres = asked.levels(named)[0] if centres is None else centres
        covariance = asked.covariances(chance, named)[0]
        deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        correlations = covariance / np.outer(deviations, deviations) + 1e-6 * np.eye(self.n_levels)
        self._root = np.linalg.cholesky(correlations)
        ridge = _DAMPING * np.maximum(np.diag(covariance), 1e-12)
        to_levels = angle_slope(self.centres) * asked.masses
        self._first_guess = np.linalg.solve(covariance + np.diag(ridge), np.diag(to_levels))
        self._rows = _representative(rows, features)
        self._asked = self._rows.of_features(levels)
        self._damping = ridge * (self._asked.weights.sum() / asked.weights.sum())
        self._own_centres = to_angle(self._asked.levels(self._asked.named(np.exp(self._rows.log_base)[:, :, None]))[0])
        self._centre_table = self._solve_centres(np.flatnonzero(np.isin(features.kinds, ["system", "class"])))

    def with_seed(self, seed: int) -> Recalibration:
        """The same with other draws."""
        if seed == self.seed:
            return self
        other = copy(self)
        other.seed = seed
        for name in ("prior_draws", "kept_draws"):
            other.__dict__.pop(name, None)
        return other

    @property
    def n_dimensions(self) -> int:
        """Numbers of a point."""
        return 2 + len(self.scales)

    def coefficients(self, points: Floats) -> tuple[Floats, Floats]:
        """β, shape (n_points,), and γ, shape (n_points, n_features)."""
        prior, n = self.prior, self.n_levels
        beta = np.clip(prior.slope + prior.slope_scale * points[:, 0], _SLOPES[0], _SLOPES[-1])
        below = ndtr(np.clip(points[:, -1], -_LONGEST_SCALE, _LONGEST_SCALE))
        standard = points[:, 1:-1] / np.sqrt(2 * gammaincinv(prior.degrees / 2, below) / prior.degrees)[:, None]
        angles = prior.level_scale * standard[:, :n] @ self._root.T
        moves = standard * self.scales
        moves[:, :n] = angles @ self._first_guess.T
        gamma = self._centre(beta) + _LARGEST_COEFFICIENT * np.tanh(moves / _LARGEST_COEFFICIENT)
        if n:
            wanted = from_angle(np.clip(self._own_centres + angles, _CORNER, np.pi / 2 - _CORNER))
            size = max(16, _CELLS_AT_ONCE // self._rows.log_base.size)
            for block in (slice(first, first + size) for first in range(0, len(beta), size)):
                self._solve_levels(beta[block], gamma[block], wanted[block])
        return beta, gamma

    @cached_property
    def prior_draws(self) -> ThetaDraws:
        """θ without any checked item."""
        return draw_theta(self, None, rng=np.random.default_rng([self.seed, 2]))

    @cached_property
    def kept_draws(self) -> ThetaDraws:
        """More of them, the same whatever is checked: another look solves for no coefficients."""
        rng = np.random.default_rng([self.seed, 4])
        more = [self.prior_draws, *(draw_theta(self, None, rng=rng) for _ in range(1, _N_KEPT))]
        beta, gamma = (np.concatenate(parts) for parts in zip(*((one.beta, one.gamma) for one in more), strict=True))
        return ThetaDraws(beta, gamma, float(len(beta)))

    def _centre(self, beta: Floats) -> Floats:
        """γ where levels and shares of classes are as votes expect, for each slope."""
        place = np.clip(np.searchsorted(_SLOPES, beta, side="right") - 1, 0, len(_SLOPES) - 2)
        share = ((beta - _SLOPES[place]) / (_SLOPES[place + 1] - _SLOPES[place]))[:, None]
        return np.asarray(self._centre_table[place] * (1 - share) + self._centre_table[place + 1] * share)

    def _solve_centres(self, chosen: Codes) -> Floats:
        """The same for the slopes of the table."""
        rows = self._rows.of_features(chosen)
        table = np.zeros((len(_SLOPES), self._rows.n_features))
        if not len(chosen):
            return table
        base = np.exp(self._rows.log_base)[:, :, None]
        named = rows.named(base)
        wanted = np.repeat(rows.levels(named), len(_SLOPES), axis=0)
        ridge = _DAMPING * np.maximum(np.diagonal(rows.covariances(base, named)[0]), 1e-12)
        gamma = np.zeros((len(_SLOPES), len(chosen)))
        for _ in range(3 * _MOST_STEPS):
            step = _newton_step(rows, rows.probabilities(_SLOPES, gamma), wanted, ridge, gamma)
            gamma += step
            if np.abs(step).max() < _CLOSE:
                break
        table[:, chosen] = gamma
        return table

    def _solve_levels(self, beta: Floats, gamma: Floats, wanted: Floats) -> None:
        """Change the first coefficients until levels are as wanted."""
        n = self.n_levels
        left = np.arange(len(beta))
        for _ in range(_MOST_STEPS):
            chances = self._rows.probabilities(beta[left], gamma[left])
            step = _newton_step(self._asked, chances, wanted[left], self._damping)
            gamma[left, :n] += step
            left = left[np.abs(step).max(axis=1) > _CLOSE]
            if not len(left):
                break


def _newton_step(rows: Rows, chances: Floats, wanted: Floats, damping: Floats, gamma: Floats | None = None) -> Floats:
    """A step of coefficients towards wanted levels, shape (n_points, n_features); with γ, a ridge pulls it to 0."""
    named = rows.named(chances)
    missing = (wanted - rows.levels(named)) * rows.masses
    if gamma is not None:
        missing = missing - damping * gamma
    jacobian = rows.covariances(chances, named)
    jacobian[:, np.arange(rows.n_features), np.arange(rows.n_features)] += damping
    step = np.linalg.solve(jacobian, missing[..., None])[..., 0]
    longest = np.abs(step).max(axis=1, keepdims=True)
    return np.asarray(step * np.minimum(1.0, _LONGEST_STEP / np.maximum(longest, 1e-300)))


def _representative(rows: Rows, features: Features) -> Rows:
    """Rows that stand for all: every so many-th in the order of how sure the base is of what systems say."""
    n_kept = max(SOLVED_ON, _ROWS_A_LEVEL * features.n_levels)
    if rows.n_rows <= n_kept:
        return rows
    chance = np.exp(rows.log_base)
    systems = [k for k, kind in enumerate(features.kinds) if kind == "system"]
    named = np.take_along_axis(chance, rows.targets[systems].T, axis=1).sum(axis=1)
    order = np.lexsort((chance.max(axis=1), named))
    upto = np.cumsum(rows.weights[order])
    chosen = np.unique(np.searchsorted(upto, (np.arange(n_kept) + 0.5) / n_kept * upto[-1]))
    part = rows.at(order[np.minimum(chosen, rows.n_rows - 1)])
    even = np.full(part.n_rows, rows.weights.sum() / part.n_rows)
    return replace(part, weights=even)


@dataclass(frozen=True, eq=False)
class Checks:
    """Checked items that were drawn at random."""

    rows: Rows = field(repr=False)
    truth: Codes = field(repr=False)  # (n_checks,)
    weights: Floats = field(repr=False)  # (n_checks,): how many evenly drawn items each is worth

    def log_likelihood(self, beta: Floats, gamma: Floats) -> Floats:
        """Of each θ, shape (n_points,)."""
        chances = self.rows.probabilities(beta, gamma)[np.arange(len(self.truth)), self.truth]
        return np.asarray(self.weights @ np.log(np.maximum(chances, 1e-300)))

    def score_and_information(self, beta: Floats, gamma: Floats, slopes: Floats) -> tuple[Floats, Floats]:
        """Gradient and expected information at one θ; slopes d (β, γ) / d point are (1 + n_features, n_dimensions)."""
        rows, n = self.rows, len(self.truth)
        chances = rows.probabilities(beta, gamma)[:, :, 0]
        heights = rows.design @ slopes[1:] + np.outer(rows.log_base.ravel(), slopes[0])
        by_class = heights.reshape(n, rows.n_classes, -1)
        mean = np.einsum("nc,ncd->nd", chances, by_class)
        score = self.weights @ (by_class[np.arange(n), self.truth] - mean)
        heavy = (chances * self.weights[:, None]).reshape(-1, 1)
        return score, heights.T @ (heights * heavy) - mean.T @ (mean * self.weights[:, None])


@dataclass(frozen=True, eq=False)
class ThetaDraws:
    """Draws of θ, equally likely."""

    beta: Floats = field(repr=False)  # (n_points,)
    gamma: Floats = field(repr=False)  # (n_points, n_features)
    effective: float  # how many independent draws they are worth

    def weighted(self, weights: Floats, n_points: int, rng: np.random.Generator) -> ThetaDraws:
        """As many draws of these as are wanted, in proportion to weights that sum to 1."""
        upto = np.cumsum(weights)
        chosen = np.searchsorted(upto, (np.arange(n_points) + rng.random()) / n_points * upto[-1])
        chosen = np.minimum(chosen, len(weights) - 1)
        effective = min(float(1 / (weights**2).sum()), float(n_points))
        return ThetaDraws(self.beta[chosen], self.gamma[chosen], effective)


def draw_theta(
    recalibration: Recalibration, checks: Checks | None, *, n_points: int = N_POINTS, rng: np.random.Generator
) -> ThetaDraws:
    """Draws of θ given checked items, or from the prior where there are none."""
    n_dimensions = recalibration.n_dimensions
    if checks is not None and not len(checks.truth):
        checks = None
    if checks is not None and n_dimensions <= _MOST_KEPT_DIMENSIONS:
        kept = recalibration.prior_draws
        weights, power = flatten(checks.log_likelihood(kept.beta, kept.gamma), _ENOUGH_KEPT / _N_KEPT)
        if power == 1.0:  # then more of them may do
            kept = recalibration.kept_draws
            weights, power = flatten(checks.log_likelihood(kept.beta, kept.gamma), _ENOUGH_KEPT)
        if power == 1.0:
            return kept.weighted(weights, n_points, rng)
    most = _MOST_JACOBIANS // max(recalibration.n_levels, 1) ** 2
    n_points = max(min(n_points, most), min(n_points, _FEWEST_POINTS))  # fewer where levels are very many
    uniform = latin_hypercube(n_points, n_dimensions + 1, rng)
    normal = ndtri(uniform[:, :-1])
    if checks is None:
        return ThetaDraws(*recalibration.coefficients(normal), float(n_points))
    middle, information = find_mode(recalibration, checks)
    degrees = _PROPOSAL_DEGREES + n_dimensions
    standard = normal / np.sqrt(2 * gammaincinv(degrees / 2, uniform[:, -1:]) / degrees)
    tail = np.log1p((standard**2).sum(axis=1) / degrees)
    covariance = np.linalg.inv(information)
    for _ in range(_MOST_ROUNDS):
        points = middle + standard @ np.linalg.cholesky(covariance).T
        beta, gamma = recalibration.coefficients(points)
        log_weights = checks.log_likelihood(beta, gamma) + log_prior(points)
        weights, power = flatten(log_weights + 0.5 * (degrees + n_dimensions) * tail, _LEAST_EFFECTIVE * n_points)
        if power == 1.0:
            break
        middle = weights @ points  # where the posterior is not normal, draw again around what the weights say
        apart, effective = (points - middle) * np.sqrt(weights)[:, None], 1 / (weights**2).sum()
        covariance = (effective * (apart.T @ apart) + n_dimensions * covariance) / (effective + n_dimensions)
    return ThetaDraws(beta, gamma, float(n_points)).weighted(weights, n_points, rng)


def find_mode(recalibration: Recalibration, checks: Checks) -> tuple[Floats, Floats]:
    """The likeliest point given checked items, and the information there."""
    n = recalibration.n_dimensions
    point, nudge = np.zeros(n), 1e-3

    def heights(points: Floats) -> Floats:
        return checks.log_likelihood(*recalibration.coefficients(points)) + log_prior(points)

    height = heights(point[None])[0]
    information = np.eye(n)
    for _ in range(_MODE_STEPS):
        beta, gamma = recalibration.coefficients(np.vstack([point, point + nudge * np.eye(n)]))
        theta = np.column_stack([beta, gamma])
        score, own = checks.score_and_information(beta[:1], gamma[:1], ((theta[1:] - theta[0]) / nudge).T)
        information = own + np.eye(n)
        step = np.linalg.solve(information, score - point)
        trials = point + _STEP_LENGTHS[:, None] * step
        reached = heights(trials)
        best = int(reached.argmax())
        gain = reached[best] - height
        if gain <= 0:
            break
        point, height = trials[best], reached[best]
        if gain < _ENOUGH:
            break
    return point, information


def log_prior(points: Floats) -> Floats:
    """The logarithm of the prior density of points, but for a constant."""
    return np.asarray(-0.5 * (points**2).sum(axis=1))


def flatten(log_weights: Floats, enough: float) -> tuple[Floats, float]:
    """Weights that sum to 1, to a power of 1 or less at which they are worth enough points, and that power."""
    centred = log_weights - log_weights.max()
    low, power, high = 0.0, 1.0, 1.0
    for _ in range(20):
        weights = np.exp(power * centred)
        weights /= weights.sum()
        is_enough = 1 / (weights**2).sum() >= enough
        if is_enough and power == 1.0:
            break
        low, high = (power, high) if is_enough else (low, power)
        power = (low + high) / 2
    return np.asarray(weights), power


def latin_hypercube(n_points: int, n_dimensions: int, rng: np.random.Generator) -> Floats:
    """Uniform numbers, one of each dimension in each of n_points even parts; shape (n_points, n_dimensions)."""
    parts = rng.permuted(np.tile(np.arange(n_points), (n_dimensions, 1)), axis=1).T
    return np.asarray((parts + rng.uniform(0.01, 0.99, parts.shape)) / n_points)


_BLOCK = 200_000  # probabilities held at once: what the cache of the processor holds
_GOLDEN = 0.6180339887498949  # multiples of it are spread evenly between 0 and 1
_UNITS = 1 << 32  # of a probability in a draw of the truth: of millions of items one in a million matters
_LAST_UNIT = np.float32(_UNITS - 256)  # the largest number of single precision below it


def draw_truths(
    rows: Rows, theta: ThetaDraws, known: Codes, *, each: int, rng: np.random.Generator, times: Floats | None = None
) -> tuple[Codes, Floats]:
    """Truths of all rows, some for each θ, and P(class) of each row.

    Parameters
    ----------
    known : integer array of shape (n_rows,). The class of checked items, -1 for all others.
    each : int. Truths for each θ.
    times : array of shape (n_rows,), optional. How many items each row stands for.

    Returns
    -------
    truths : integer array of shape (n_points · each, n_rows)
    posterior : array of shape (n_rows, n_classes)
    """
    n_points, n_rows, n_classes = len(theta.beta), rows.n_rows, rows.n_classes
    truths = np.empty((n_points, each, n_rows), dtype=np.int8 if n_classes <= 127 else np.int16)
    posterior = np.zeros((n_rows, n_classes))
    size = max(1, _BLOCK // max(n_rows * n_classes, 1))
    places = None if times is None else _even_places(rows)
    steps = (np.arange(each) * _UNITS // each).astype(np.uint32)  # truths of one θ are spread evenly
    rows = rows.in_single_precision
    for first in range(0, n_points, size):
        block = slice(first, first + size)
        chances = rows.probabilities(theta.beta[block], theta.gamma[block])
        posterior += chances.sum(axis=2, dtype=float)
        first_at = rng.integers(_UNITS, size=(chances.shape[2], 1, n_rows), dtype=np.uint32)
        drawn_at = first_at + steps[:, None]  # beyond the last it begins anew
        if times is not None and places is not None:
            drawn_at = _as_many_items(drawn_at, times, places, rng)
        drawn, upto = truths[block], np.zeros((n_rows, chances.shape[2]), dtype=np.float32)
        drawn[:] = 0
        for code in range(n_classes - 1):
            upto += chances[:, code]
            level = np.minimum(upto.T * np.float32(_UNITS), _LAST_UNIT).astype(np.uint32, order="C")
            drawn += drawn_at >= level[:, None]
    is_known = np.flatnonzero(known >= 0)
    truths[:, :, is_known] = known[is_known]
    posterior /= n_points
    posterior[is_known] = np.eye(n_classes)[known[is_known]]
    return truths.reshape(n_points * each, n_rows), posterior


def _even_places(rows: Rows) -> Floats:
    """Numbers between 0 and 1 that are spread evenly among rows that are alike, shape (n_rows,)."""
    named = np.take_along_axis(np.exp(rows.log_base), rows.targets.T, axis=1).T
    order = np.lexsort([*named[:3], *rows.targets[:3]])
    places = np.empty(rows.n_rows)
    places[order] = (np.arange(rows.n_rows) * _GOLDEN) % 1
    return places


def _as_many_items(
    drawn_at: npt.NDArray[np.uint32], times: Floats, places: Floats, rng: np.random.Generator
) -> npt.NDArray[np.uint32]:
    """Even numbers of rows in place of random ones, so that sums vary as those of the items do that rows stand for."""
    limit = (_UNITS / np.maximum(times, 1.0)).astype(np.float32)
    starts = rng.random((*drawn_at.shape[:2], 1), dtype=np.float32)
    even = (places.astype(np.float32) + starts) % np.float32(1) * np.float32(_UNITS)
    single = drawn_at.astype(np.float32)
    own = np.minimum(single / limit * np.float32(_UNITS), _LAST_UNIT)
    return np.where(single < limit, own, even).astype(np.uint32)
