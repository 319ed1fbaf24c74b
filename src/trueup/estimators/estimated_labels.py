"""Estimate the labels first, then treat them as true (Su 2024, Algorithm 3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trueup._validation import RandomState
from trueup.estimators.mmse import iterate
from trueup.estimators.posterior import PointCounts
from trueup.estimators.problem import Array, Problem, Solution, class_posterior
from trueup.metrics import confusion_counts

__all__ = ["estimated_labels", "likeliest_labels"]


def estimated_labels(
    problem: Problem,
    *,
    start: npt.ArrayLike | None = None,
    tol: float = 1e-3,
    max_iter: int = 30,
    clip: float = 1e-3,
    random_state: RandomState = None,
) -> Solution:
    """The most probable label of each item, given an operating point that is counted from such labels (Algorithm 3).

    It has no uncertainty, and often ends in a local optimum (Su 2024, Table 12). For any number of classes.

    Parameters
    ----------
    problem : Problem
    start, tol, max_iter, clip
        As for `mmse`.
    random_state
        Not used.

    Returns
    -------
    Solution
        With `PointCounts`.
    """

    def step(confusion: Array) -> Array:
        counts = likeliest_labels(problem, confusion).counts
        total = counts.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0))

    trace, converged = iterate(step, problem.n_classes, start=start, tol=tol, max_iter=max_iter, clip=clip)
    notes = () if converged else (f"the estimated labels did not settle in {max_iter} iterations",)
    counts = likeliest_labels(problem, trace[-1])
    return Solution(counts, trace[-1], trace, len(trace) - 1, converged, notes=notes)


def likeliest_labels(problem: Problem, confusion: npt.ArrayLike | None = None) -> PointCounts:
    """Counts with each item's most probable class (eq. 22) as its truth; the first of equally probable ones."""
    truths = np.argmax(class_posterior(problem, confusion), axis=1)
    counted = problem.predictions >= 0
    counts = confusion_counts(truths[counted], problem.predictions[counted], problem.n_classes)
    return PointCounts(counts, truths)
