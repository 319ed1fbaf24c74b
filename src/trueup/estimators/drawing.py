"""Draws of classes and counts that several methods share."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup.estimators.counts import TruthSampler
from trueup.estimators.problem import Problem, class_posterior
from trueup.metrics import confusion_counts
from trueup.posteriors import poisson_binomial_pmf

_HELD = 1 << 22  # numbers held at once
_MOST_TRUTHS = 1 << 28  # items × draws × classes from which counts are drawn from their normal limit
_MOST_TRIALS = 1 << 16  # trials whose exact law is worth computing


def draw_categories(chances: Floats, n: int, rng: np.random.Generator) -> Codes:
    """`n` draws of a class for each row of `chances` (n_items, n_classes); shape (n, n_items)."""
    n_items, n_classes = chances.shape
    upto = np.cumsum(chances, axis=1)
    upto /= upto[:, -1:]  # so that rounding leaves no remainder
    kind = np.int8 if n_classes < 128 else np.int32
    codes = np.zeros((n, n_items), dtype=kind)
    rows = max(_HELD // max(n_items, 1), 1)
    for start in range(0, n, rows):
        block = codes[start : start + rows]
        u = rng.random(block.shape)
        for c in range(n_classes - 1):
            block += u >= upto[:, c]
    return codes


def draw_confusion(chances: Floats, predictions: Codes, n: int, rng: np.random.Generator) -> Floats:
    """`n` draws of the confusion counts; items without a prediction (-1) are left out."""
    n_classes = chances.shape[1]
    counted = predictions >= 0
    chances, predictions = chances[counted], predictions[counted]
    if n * chances.size > _MOST_TRUTHS:
        return _normal_confusion(chances, predictions, n, rng)
    counts = np.empty((n, n_classes, n_classes))
    rows = max(_HELD // max(len(predictions), 1), 1)
    for start in range(0, n, rows):
        some = min(rows, n - start)
        counts[start : start + some] = confusion_counts(draw_categories(chances, some, rng), predictions, n_classes)
    return counts


def _normal_confusion(chances: Floats, predictions: Codes, n: int, rng: np.random.Generator) -> Floats:
    n_classes = chances.shape[1]
    counts = np.zeros((n, n_classes, n_classes))
    for predicted in range(n_classes):
        mine = chances[predictions == predicted]
        mean = mine.sum(axis=0)
        draws = mean + rng.standard_normal((n, n_classes)) @ covariance_root(np.diag(mean) - mine.T @ mine)
        counts[:, :, predicted] = _to_total(draws, float(len(mine)))
    return counts


def covariance_root(covariance: Floats) -> Floats:
    """A matrix R with RᵀR = covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)


def _to_total(counts: Floats, total: float) -> Floats:
    """Counts of shape (n, k) made not negative and to sum to `total`."""
    kept = np.maximum(counts, 0.0)
    sums = kept.sum(axis=1, keepdims=True)
    return np.asarray(kept * np.divide(total, sums, out=np.zeros_like(sums), where=sums > 0))


def draw_successes(chances: Floats, n: int, rng: np.random.Generator) -> Floats:
    """`n` draws of the number of successes in independent trials: exact, or normal for more than 65536 trials."""
    if len(chances) <= _MOST_TRIALS:
        upto = np.cumsum(poisson_binomial_pmf(chances))
        return np.minimum(np.searchsorted(upto, rng.random(n), side="right"), len(chances)).astype(float)
    mean, sd = chances.sum(), np.sqrt((chances * (1 - chances)).sum())
    return np.clip(np.rint(rng.normal(mean, sd, n)), 0, len(chances))


def truth_sampler(problem: Problem, confusions: npt.ArrayLike) -> TruthSampler:
    """A function that draws the truth of all items: first the operating point, then each item's class."""
    points = np.asarray(confusions, dtype=float).reshape(-1, problem.n_classes, problem.n_classes)
    return partial(_draw_truths_at, problem, points)


def _draw_truths_at(problem: Problem, points: Floats, n: int, rng: np.random.Generator) -> Codes:
    """Choose among operating points, then draw each item's class; a partial of this can be pickled."""
    chosen = rng.choice(len(points), size=n)
    codes = np.empty((n, problem.n_items), dtype=np.int8 if problem.n_classes < 128 else np.int32)
    for point in np.unique(chosen):
        rows = np.flatnonzero(chosen == point)
        codes[rows] = draw_categories(class_posterior(problem, points[point]), len(rows), rng)
    return codes
