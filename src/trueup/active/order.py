"""Which system is better, from draws of the metric of every system."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

__all__ = ["misranking", "prob_order"]

Floats = npt.NDArray[np.float64]


def prob_order(a: Floats, b: Floats, *, higher_is_better: bool = True) -> float:
    """P(a is better than b) from draws of both, ties counted half.

    Examples
    --------
    >>> prob_order(np.array([0.9, 0.8, 0.7, 0.6]), np.array([0.5, 0.8, 0.9, 0.5]))
    0.625
    """
    apart = a - b
    apart = apart[~np.isnan(apart)]  # draws on which the metric has no value for both say nothing
    if not len(apart):
        return 0.5
    return float(0.5 + (0.5 if higher_is_better else -0.5) * np.sign(apart).mean())


def misranking(draws: Floats, order: list[int], *, higher_is_better: bool = True) -> float:
    """The expected share of pairs that an order of the systems, best first, has the wrong way round.

    Parameters
    ----------
    draws : array of shape (n_draws, n_systems)
    order : list of int
    """
    wrong = [
        1 - prob_order(draws[:, a], draws[:, b], higher_is_better=higher_is_better) for a, b in combinations(order, 2)
    ]
    return float(np.mean(wrong)) if wrong else 0.0
