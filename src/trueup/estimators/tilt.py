"""Truths from probabilities that are all wrong in the same direction, by chance: what models do not know of themselves.

Given P(class) of each item, some functionals of the truth (the accuracy of a system, the share of a class) are to be
as uncertain as somebody says. Each draw moves all probabilities together, P_i(c) ∝ f_i(c) exp(α · φ(i, c)), just so
far that the functionals, the means of the features φ, have the values drawn for them, and then draws a truth. So any
metric of that truth moves along, and what two systems have in common cancels in their difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy
from scipy.special import expit, ndtri

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup.estimators.equal_classes import group_equal_classes

_NEWTON_STEPS = 15
_RIDGE = 1e-3  # keeps tilts finite where no probabilities have the values that were drawn
_YIELDING_RIDGE = 4e-3  # of features that are then the ones to be off
_LONGEST_STEP = 4.0
_HALVINGS = 5
_PRECISION = 5e-4  # of the means
_MOST_NUMBERS = 4_000_000  # held at once
_MOST_TILTS = 512  # different ones; more draws share them
_MOST_SOLVED = 250  # different items on which tilts are found; they then hold for all
_MOST_TOLD_APART = 20_000  # items of which the different ones are looked for
_TRIED = 100  # tilts that show how far one gets
_LEAST = 1e-6  # probability below which a class is taken for excluded only by what is known
_EDGE = 1e-6  # of the unit interval, that even points keep from its ends
_EXCLUDED = -1e4  # log probability of a class where another is certain
_FEW_CLASSES = 60  # above, classes that are moved alike are moved as one


@dataclass(frozen=True, eq=False)
class Directions:
    """What a tilt moves.

    Attributes
    ----------
    features : array of shape (n_directions, n_items, n_classes)
    scales : array of shape (n_directions,)
        Standard deviations of the means of the features, which are moved independently of each other.
    ridge : array of shape (n_directions, n_directions), optional
        How strongly tilts are held back; by default all alike.
    """

    features: Floats
    scales: Floats
    ridge: Floats | None = None

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.scales)

    def at_items(self, some: Positions) -> Directions:
        """The same directions on some of the items."""
        return replace(self, features=self.features[:, some])


def independent_directions(features: Floats, covariance: Floats, yields: Booleans | None = None) -> Directions:
    """Directions whose means move independently, so that those of `features` have the given covariance.

    Parameters
    ----------
    features : array of shape (n_features, n_items, n_classes)
    covariance : array of shape (n_features, n_features)
        Features that are the same have the same row; they then share a direction.
    yields : boolean array of shape (n_features,), optional
        Features that give way where no truth has all the values that were drawn: if a system is nearly always right,
        the classes are about as frequent as it says, and how frequent they are must not make it err.
    """
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-4 * max(float(values.max(initial=0.0)), 1e-12)
    onto = vectors[:, kept].T
    ridges = np.full(len(features), _RIDGE) if yields is None else np.where(yields, _YIELDING_RIDGE, _RIDGE)
    return Directions(np.tensordot(onto, features, axes=1), np.sqrt(values[kept]), (onto * ridges) @ onto.T)


def tilted_truths(
    posterior: Floats, directions: Directions, n_draws: int, rng: np.random.Generator, *, moves: Floats | None = None
) -> Codes:
    """Draws of the truth of all items, shape (n_draws, n_items).

    Parameters
    ----------
    posterior : array of shape (n_items, n_classes)
        f; where it is 0 or 1 the class is known.
    directions : Directions
    n_draws : int
    moves : array of shape (n_moves, n_directions), optional
        How far the means lie from those of `posterior`; draws take them in turn. By default normal, with the scales of
        the directions.
    """
    if posterior.shape[1] > _FEW_CLASSES:
        floored = np.exp(log_chances(posterior))
        groups = group_equal_classes(floored / floored.sum(axis=1, keepdims=True), directions.features, rng)
        if groups.posterior.shape[1] <= _FEW_CLASSES:
            together = replace(directions, features=groups.features)
            return groups.draw_classes(tilted_truths(groups.posterior, together, n_draws, rng, moves=moves), rng)
    tilts = draw_tilts(posterior, directions, n_draws, rng, moves=moves)
    return draw_tilted(posterior, directions.features, tilts, rng)


def draw_tilts(
    posterior: Floats,
    directions: Directions,
    n_draws: int,
    rng: np.random.Generator,
    *,
    moves: Floats | None = None,
    times: Floats | None = None,
) -> Floats:
    """A tilt for each draw, shape (n_draws, n_directions); where there are many draws, some share one."""
    moves = normal_moves(directions, n_draws, rng) if moves is None else moves[:n_draws]
    tilts = solve_tilts(posterior, directions, moves, rng, times)
    return tilts[np.arange(n_draws) % len(tilts)]


def draw_tilted(posterior: Floats, features: Floats, tilts: Floats, rng: np.random.Generator) -> Codes:
    """A truth of all items for each tilt."""
    n_items, n_classes = posterior.shape
    dtype = np.int8 if n_classes <= 127 else np.int16
    truths = np.zeros((len(tilts), n_items), dtype=dtype)
    logs = log_chances(posterior)
    rows = max(1, _MOST_NUMBERS // max(n_items * n_classes, 1))
    if n_classes == 2:  # half the work, and the usual case
        odds, along = (np.diff(table, axis=-1)[..., 0].astype(np.float32) for table in (logs, features))
    for first in range(0, len(tilts), rows):
        some, part = tilts[first : first + rows], truths[first : first + rows]
        uniform = rng.random(part.shape, dtype=np.float32)
        if n_classes == 2:
            np.less(uniform, expit(odds + some.astype(np.float32) @ along), out=part, casting="unsafe")
        else:
            upto = np.cumsum(tilted_chances(logs, features, some)[:, :, :-1], axis=2)
            part[:] = (uniform[:, :, None] >= upto).sum(axis=2)
    return truths


def solve_tilts(
    posterior: Floats, directions: Directions, moves: Floats, rng: np.random.Generator, times: Floats | None = None
) -> Floats:
    """The tilts under which the means of the features are moved as asked, or as near to that as they can be.

    Newton's method on the convex function whose gradient is the gap, for all draws at once. Found on some of the items
    where many differ. Each row stands for so many items as `times` says, by default for one.
    """
    features, n_directions = directions.features, directions.n
    if not n_directions:
        return np.zeros((len(moves), 0))
    weights = np.ones(len(posterior)) if times is None else times
    # An item on which no feature tells classes apart is not moved, and one that is known cannot be.
    reach = np.ptp(features, axis=2)
    movable = np.flatnonzero((reach.max(axis=0) > 0) & (posterior.max(axis=1) < 1.0))
    if not len(movable):
        return np.zeros((len(moves), n_directions))
    moves = moves * (weights.sum() / weights[movable].sum())
    if len(movable) > _MOST_TOLD_APART:
        movable = rng.permutation(movable)
        some, masses = representative_rows(reach[:, movable], weights[movable], _MOST_TOLD_APART)
        movable = movable[some]
    else:
        masses = weights[movable]
    posterior, features, weights = _different_items(posterior[movable], features[:, movable], masses)
    logs = log_chances(posterior)
    flat = _weighted(features, weights)
    targets = moves + flat @ posterior.ravel()
    # No probabilities have means beyond these; a value drawn outside is the nearest that can be.
    low, high = features.min(axis=2) @ weights, features.max(axis=2) @ weights
    targets = np.clip(targets, low, high)
    ridge = _RIDGE * np.eye(n_directions) if directions.ridge is None else directions.ridge
    rows = max(1, _MOST_NUMBERS // (features[0].size * n_directions))
    return np.concatenate(
        [_solve(logs, features, weights, targets[first : first + rows], ridge) for first in range(0, len(moves), rows)]
    )


def _different_items(posterior: Floats, features: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Items that differ in what is known of them, and what share of all items is like each: often a handful.

    Of very many some are taken.
    """
    n_classes = posterior.shape[1]
    table = np.concatenate([posterior, *features], axis=1)
    rows, first_like = np.unique(table, axis=0, return_inverse=True)
    masses = np.asarray(np.bincount(first_like.ravel(), weights=weights), dtype=float)
    parts = rows.reshape(len(rows), 1 + len(features), n_classes).swapaxes(0, 1)
    some, masses = representative_rows(np.ptp(parts[1:], axis=2), masses, _MOST_SOLVED)
    return parts[0, some], parts[1:, some], masses / masses.sum()


def representative_rows(reach: Floats, times: Floats, most: int) -> tuple[Positions, Floats]:
    """So many rows at most that stand for all, and for how many items each; evenly along the order of the rows.

    Rows that move a feature far are among them more often, and stand for fewer: of a system that said something of one
    item in a hundred there would otherwise be two or three items, and what moves these need not move the others.

    Parameters
    ----------
    reach : array of shape (n_features, n_rows)
        How far the feature of a row lies apart between classes.
    times : array of shape (n_rows,)
        How many items each row stands for.
    """
    if len(times) <= most:
        return np.arange(len(times)), times
    far = reach * times
    total = np.maximum(far.sum(axis=1, keepdims=True), 1e-300)
    # Half of them evenly, so that none stands for more than twice its share.
    size = times / times.sum() + np.sum(far / total, axis=0) / max(len(reach), 1)
    upto = np.cumsum(size) / size.sum()
    points = (np.arange(most) + 0.5) / most
    some, often = np.unique(np.searchsorted(upto, points).clip(max=len(size) - 1), return_counts=True)
    masses = often * times[some] / size[some]
    return some, np.asarray(masses * (times.sum() / masses.sum()))


def deviations_under_tilts(
    posterior: Floats, features: Floats, directions: Directions, times: Floats, rng: np.random.Generator
) -> Floats:
    """Standard deviations of the means of features under tilts along directions; shape (n_features,).

    Each row stands for so many items as `times` says.
    """
    moves = normal_moves(directions, _TRIED, rng)
    tilts = solve_tilts(posterior, directions, moves, rng, times)
    chances = tilted_chances(log_chances(posterior), directions.features, tilts)
    means = chances.reshape(len(tilts), -1) @ _weighted(features, times / times.sum()).T
    return np.asarray(means.std(axis=0))


def _weighted(features: Floats, weights: Floats) -> Floats:
    """Features with what each item counts for, flat: a product with chances is a mean."""
    return np.asarray((features * weights[:, None]).reshape(len(features), -1))


def normal_moves(directions: Directions, n_draws: int, rng: np.random.Generator) -> Floats:
    """Moves of the means along directions, normal with their scales; where there are many draws, some share one."""
    return standard_moves(min(n_draws, _MOST_TILTS), directions.n, rng) * directions.scales


def standard_moves(n: int, n_directions: int, rng: np.random.Generator) -> Floats:
    """Normal draws whose means are 0 and whose covariance is 1 exactly, where there are enough of them.

    They fill space evenly (scrambled Sobol points), so that the ends of an interval hang less on the seed.
    """
    if not n_directions or not n:
        return np.zeros((n, n_directions))
    points = scipy.stats.qmc.Sobol(n_directions, scramble=True, seed=rng).random_base2(max(n - 1, 1).bit_length())[:n]
    moves = np.asarray(ndtri(np.clip(points, _EDGE, 1 - _EDGE)))
    if n < 10 * n_directions:
        return moves
    moves -= moves.mean(axis=0)
    factor = np.linalg.cholesky(np.atleast_2d(np.cov(moves.T, bias=True)))
    return np.asarray(np.linalg.solve(factor, moves.T).T)


def _solve(logs: Floats, features: Floats, weights: Floats, targets: Floats, ridge: Floats) -> Floats:
    # Tilts do not notice what a feature adds to all classes of an item, so the first class need not be looked at.
    # Classes come first: sums over few of them are then sums of whole arrays.
    contrasts = np.ascontiguousarray((features[:, :, 1:] - features[:, :, :1]).transpose(2, 0, 1))
    odds = np.ascontiguousarray((logs[:, 1:] - logs[:, :1]).T)
    targets = targets - features[:, :, 0] @ weights
    weighted = contrasts * weights
    tilts = np.zeros_like(targets)
    value, chances = _value(odds, contrasts, weights, tilts, targets, ridge)
    for _ in range(_NEWTON_STEPS):
        gap = targets - sum(p @ rows.T for p, rows in zip(chances, weighted, strict=True)) - tilts @ ridge
        if np.abs(gap).max() < _PRECISION:
            break
        curvature = _curvature(contrasts, weights, chances) + ridge + 1e-9 * np.eye(len(features))
        step = np.linalg.solve(curvature, gap[:, :, None])[:, :, 0]
        size = np.abs(step).max(axis=1, keepdims=True)
        step *= np.minimum(1.0, _LONGEST_STEP / np.maximum(size, 1e-12))
        for _ in range(_HALVINGS):  # a step that is too long would leave some draws in a corner
            new, new_chances = _value(odds, contrasts, weights, tilts + step, targets, ridge)
            worse = new > value + 1e-12
            if not worse.any():
                break
            step[worse] /= 2
        else:
            new, new_chances = _value(odds, contrasts, weights, tilts + step, targets, ridge)
        tilts, value, chances = tilts + step, new, new_chances
    return tilts


def _curvature(contrasts: Floats, weights: Floats, chances: Floats) -> Floats:
    """Covariances of the features within items, summed over items, for each draw."""
    n_rest, n_directions, n_items = contrasts.shape
    shape = (chances.shape[1], n_directions, n_directions)
    if n_rest == 1:  # of two classes, so that the covariance is p (1 - p) times what does not depend on the draw
        products = (contrasts[0][:, None] * contrasts[0] * weights).reshape(-1, n_items)
        return np.asarray((chances[0] * (1 - chances[0]) @ products.T).reshape(shape))
    means, second = np.zeros((*shape[:2], n_items)), np.zeros(shape)
    for p, rows in zip(chances, contrasts, strict=True):
        means += p[:, None, :] * rows
        for k, row in enumerate(rows):
            second[:, k] += p @ (rows * row * weights).T
    return np.asarray(second - np.matmul(means * weights, means.transpose(0, 2, 1)))


def _value(
    odds: Floats, contrasts: Floats, weights: Floats, tilts: Floats, targets: Floats, ridge: Floats
) -> tuple[Floats, Floats]:
    """The convex function that the tilts minimise, and P(class) of each item there, for all classes but the first."""
    heights = np.stack([own + tilts @ rows for own, rows in zip(odds, contrasts, strict=True)])
    top = np.maximum(heights.max(axis=0), 0.0)
    heights -= top
    np.exp(heights, out=heights)
    total = heights.sum(axis=0) + np.exp(-top)
    heights /= total
    np.log(total, out=total)
    total += top
    value = total @ weights - (tilts * targets).sum(axis=1)
    return value + 0.5 * ((tilts @ ridge) * tilts).sum(axis=1), heights


def tilted_chances(logs: Floats, features: Floats, tilts: Floats) -> Floats:
    """P(class) of each item under each tilt, shape (n_tilts, n_items, n_classes)."""
    heights = logs + np.tensordot(tilts, features, axes=1)
    heights -= heights.max(axis=2, keepdims=True)
    np.exp(heights, out=heights)
    heights /= heights.sum(axis=2, keepdims=True)
    return np.asarray(heights)


def log_chances(posterior: Floats) -> Floats:
    """Log P(class): no class is out of the question but where another is certain."""
    logs = np.log(np.maximum(posterior, _LEAST))
    certain = posterior.max(axis=1) >= 1.0
    logs[certain] = np.where(posterior[certain] >= 1.0, 0.0, _EXCLUDED)
    return np.asarray(logs)
