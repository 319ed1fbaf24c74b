"""What each vetted item counts for, given the probability with which it was drawn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["effective_number", "lure_weights"]

Floats = npt.NDArray[np.float64]


def lure_weights(propensity: npt.ArrayLike, draw: npt.ArrayLike, n_pool: int) -> Floats:
    r"""Weights that make the mean over items drawn without replacement unbiased for the pool (LURE).

    .. math:: v_m = 1 + \frac{N - M}{N - m}\Bigl(\frac{1}{(N - m + 1)\, q_m} - 1\Bigr)

    With even probabilities every weight is one.

    Parameters
    ----------
    propensity : array of shape (n,)
        :math:`q_m`, the probability of the item among those that were left when it was drawn.
    draw : integer array of shape (n,)
        m, its place among the draws, from 1 on.
    n_pool : int
        N, the items that could be drawn at first.

    References
    ----------
    Farquhar, Gal and Rainforth (2021), "On statistical bias in active learning: how and when to fix it", ICLR.

    Examples
    --------
    >>> lure_weights([1 / 10, 1 / 9, 1 / 8], [1, 2, 3], 10).round(6).tolist()
    [1.0, 1.0, 1.0]
    """
    q, m = np.asarray(propensity, dtype=float), np.asarray(draw, dtype=float)
    if not len(q):
        return q
    last = float(m.max())
    left = np.maximum(n_pool - m, 1.0)
    return np.asarray(1.0 + (n_pool - last) / left * (1.0 / ((n_pool - m + 1.0) * q) - 1.0))


def effective_number(weights: npt.ArrayLike) -> float:
    """How many evenly drawn items weighted ones are worth: (Σw)² / Σw²."""
    w = np.asarray(weights, dtype=float)
    total = float((w**2).sum())
    return float(w.sum() ** 2 / total) if total > 0 else 0.0
