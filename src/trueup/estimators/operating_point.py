"""The likelihood of a binary classifier's operating point, and where its mass lies.

With s_i = P(y_i = 1 | votes), the likelihood of the operating point (d, f) = (p_D, p_FA) is, up to a constant,
∏_{ŷ=1} (s_i d + (1 − s_i) f) · ∏_{ŷ=0} (s_i (1 − d) + (1 − s_i)(1 − f)). Its logarithm is concave in (d, f), and each
product is a power of f (or of 1 − f) times a function of one number, the tilt λ = log(d/f) (or log((1 − d)/(1 − f))):
given the operating point, item i is positive with log-odds logit s_i + λ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicHermiteSpline, CubicSpline
from scipy.special import expit

from trueup.estimators.problem import Array, Problem

__all__ = ["Column", "Found", "Region", "as_confusion", "columns", "find_region", "log_likelihood", "tilts"]

_BINS = 1 << 12  # of the log-odds of very many items
_WORK = 1 << 17  # items × tilts evaluated for one table
_COARSE = 48  # points along each axis while the region is looked for
_SHARE = 0.1  # of the points that a region of the right size holds
_DROP = 25.0  # what is this far below the top in the log-posterior has no mass (e⁻²⁵)
_CORRELATED = 0.9  # from which on a region is turned to lie along its ridge


@dataclass(frozen=True, eq=False)
class Column:
    """The items predicted as one class, by what their votes say.

    Attributes
    ----------
    logits : array of shape (m,)
        Log-odds of class 1 given the votes alone, finite; distinct bins of them for very many items.
    weights : array of shape (m,)
        How many items each stands for.
    sure : (int, int)
        How many other items are surely of class 0 and of class 1.
    """

    logits: Array
    weights: Array
    sure: tuple[int, int]
    n: int

    @property
    def is_binned(self) -> bool:
        """Whether the log-odds are bins and not the items' own."""
        return len(self.logits) < self.n_unsure

    @property
    def n_unsure(self) -> int:
        """Number of items whose class is not known."""
        return self.n - sum(self.sure)

    def log_evidence(self, tilt: Array) -> tuple[Array, Array]:
        """Σ log(1 − s + s·e^λ) over the unsure items, and its derivative: the expected number of positives."""
        z = self.logits[:, None] + tilt
        base = self.weights @ np.logaddexp(0.0, self.logits)
        return self.weights @ np.logaddexp(0.0, z) - base, self.weights @ expit(z)

    def moments(self, tilt: Array) -> tuple[Array, Array, Array]:
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


def _column(logits: Array, binned: bool) -> Column:
    sure = (int((logits == -np.inf).sum()), int((logits == np.inf).sum()))
    unsure = logits[np.isfinite(logits)] if sum(sure) else logits
    if binned and len(unsure) > _BINS:
        return Column(*_binned(unsure), sure, len(logits))
    return Column(np.sort(unsure), np.ones(len(unsure)), sure, len(logits))


def _binned(values: Array) -> tuple[Array, Array]:
    """Values shared out linearly between the two nearest points of a fine grid.

    The functions of the log-odds that are summed have second derivatives below 1/4, so an item is off by less than
    step²/32: some 1e-6, against a noise of the sums that falls only as 1/√n of an item.
    """
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-12:
        return np.array([low]), np.array([float(len(values))])
    step = (high - low) / (_BINS - 1)
    position = (values - low) / step
    cell = np.minimum(position.astype(np.int64), _BINS - 2)
    share = position - cell
    right = np.bincount(cell, weights=share, minlength=_BINS)
    weights = np.asarray(np.bincount(cell, minlength=_BINS) - right, dtype=float)
    weights[1:] += right[:-1]
    kept = np.flatnonzero(weights > 0)
    return np.asarray(low + step * kept, dtype=float), weights[kept]


def tilts(points: Array) -> tuple[Array, Array]:
    """The tilts of the items predicted as 0 and as 1, at operating points (..., 2) = (d, f)."""
    d, f = points[..., 0], points[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log1p(-d) - np.log1p(-f), np.log(d) - np.log(f)


def log_likelihood(both: tuple[Column, Column], points: Array) -> Array:
    """The log-likelihood of operating points (n, 2) strictly within the unit square, up to a constant.

    The sums over items are computed at some tilts and interpolated between, by cubics that match values and slopes.
    """
    d, f = points.T
    total = np.zeros(len(points))
    for column, tilt, one, zero in zip(both, tilts(points), (1 - d, d), (1 - f, f), strict=True):
        total += column.sure[1] * np.log(one) + (column.sure[0] + column.n_unsure) * np.log(zero)
        if len(column.logits):
            nodes = tilt_nodes(column, float(tilt.min()), float(tilt.max()))
            total += CubicHermiteSpline(nodes, *column.log_evidence(nodes))(tilt)
    return total


def tilt_nodes(column: Column, low: float, high: float) -> Array:
    """Tilts at which to compute sums over the items."""
    n_nodes = int(np.clip(_WORK // len(column.logits), 17, 129))
    return np.linspace(low - 1e-9, high + 1e-9, n_nodes)


def interpolated_moments(column: Column, tilt: Array) -> tuple[Array, Array, Array]:
    """`Column.moments` at many tilts, interpolated."""
    if not len(column.logits):
        nothing = np.zeros(len(tilt))
        return nothing + column.sure[1], nothing, nothing
    nodes = tilt_nodes(column, float(tilt.min()), float(tilt.max()))
    mean, variance, third = (CubicSpline(nodes, values)(tilt) for values in column.moments(nodes))
    return mean, np.maximum(variance, 0.0), third


@dataclass(frozen=True, eq=False)
class Region:
    """A parallelogram of operating points that holds all of the posterior's mass: centre + axes·[−1, 1]²."""

    center: Array
    axes: Array

    def grid(self, size: int) -> tuple[Array, Array]:
        """Midpoints of size × size cells, those within the unit square, and the half-axes of a cell."""
        steps = (np.arange(size) + 0.5) * 2 / size - 1
        local = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
        points = self.center + local @ self.axes.T
        return points[((points > 0) & (points < 1)).all(axis=1)], self.axes / size


@dataclass(frozen=True, eq=False)
class Found:
    """Where operating points have mass: a region, and cells that cover it by their midpoints and half-axes."""

    region: Region
    points: Array
    half: Array


def find_region(both: tuple[Column, Column]) -> Found:
    """Where the operating points' posterior under a uniform prior has its mass.

    Starting from the unit square, the best tenth of a grid is boxed in and gridded again until more than that tenth
    has mass. The posterior is log-concave, so the best points of each grid surround those of the next; a box is
    turned where they lie along a ridge, as they do when votes say little.
    """
    region = Region(np.array([0.5, 0.5]), np.eye(2) / 2)
    while True:
        points, half = region.grid(_COARSE)
        value = log_likelihood(both, points)
        order = np.argsort(value)[::-1]
        with_mass = int((value > value[order[0]] - _DROP).sum())
        enough = int(_SHARE * len(points)) + 8
        best = points[order[: max(with_mass, enough)]]
        smaller = _box(best, half)
        if with_mass >= enough or abs(np.linalg.det(smaller.axes)) > 0.8 * abs(np.linalg.det(region.axes)):
            return Found(smaller, best, half)
        region = smaller


def _box(points: Array, half: Array) -> Region:
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


def as_confusion(d: npt.ArrayLike, f: npt.ArrayLike) -> Array:
    """Confusion matrices (..., 2, 2) of operating points."""
    d, f = np.broadcast_arrays(np.asarray(d, dtype=float), np.asarray(f, dtype=float))
    return np.stack([np.stack([1 - f, f], axis=-1), np.stack([1 - d, d], axis=-1)], axis=-2)
