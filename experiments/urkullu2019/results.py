"""Means of swap errors over runs, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from experiments.urkullu2019.settings import VIEWS, Array, Design
from experiments.urkullu2019.store import Stored

__all__ = ["Results", "gaps", "standard_errors"]


@dataclass(frozen=True)
class Results:
    """Complete runs.

    Attributes
    ----------
    design : Design
    swap_errors : array of shape (n_runs, cases, labels per item, labels per labeler, views)
    supervised : array of shape (n_runs,)
        The reference on the same truths and classifiers.
    reference : array of shape (n_reference,)
        The reference on more of them.
    """

    design: Design
    swap_errors: Array
    supervised: Array
    reference: Array

    @classmethod
    def of(cls, stored: Stored, reference: Stored) -> Results:
        """From what is on disk."""
        return cls(stored.design, stored.swap_errors, stored.supervised, reference.supervised)

    @property
    def n_runs(self) -> int:
        """How often each configuration was run."""
        return len(self.supervised)

    def with_ties_solved_once(self) -> Results:
        """The same with "DGT once" in the place of DGT."""
        errors = self.swap_errors.copy()
        errors[..., VIEWS.index("DGT")] = errors[..., VIEWS.index("DGT once")]
        return replace(self, swap_errors=errors)

    def of_view(self, view: str, case: str | None = None, per_item: Callable[[int], bool] | None = None) -> Array:
        """Swap errors of a view in some configurations, shape (n_runs, n_configurations), row by row of the grids."""
        errors = self.swap_errors[..., VIEWS.index(view)]
        if case is not None:
            errors = errors[:, [self.design.cases.index(case)]]
        if per_item is not None:
            errors = errors[:, :, [k for k, level in enumerate(self.design.levels) if per_item(level)]]
        return errors.reshape(self.n_runs, -1)

    def grid(self, view: str, case: str) -> Array:
        """Mean swap error, shape (labels per item, labels per labeler)."""
        n = len(self.design.levels)
        return np.asarray(self.of_view(view, case).mean(axis=0).reshape(n, n))


def standard_errors(values: Array) -> Array:
    """Of the mean over the runs, the first axis; never zero, so that one can divide by it."""
    spread = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.maximum(spread, 1e-12)


def gaps(values: Array, limit: npt.ArrayLike = 0.0) -> Array:
    """How far means lie above a limit, in standard errors of the difference of two such means.

    The paper's means are of as many runs as ours, so where both are of one truth they differ by √2 standard errors.
    """
    return np.asarray((values.mean(axis=0) - limit) / (np.sqrt(2) * standard_errors(values)))
