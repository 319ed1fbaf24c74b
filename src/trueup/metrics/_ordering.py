"""The order of many rows of scores, faster than `numpy.argsort`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ascending_order"]

Array = npt.NDArray[np.float64]
_ALL_BUT_SIGN = np.int64(np.iinfo(np.int64).max)


def ascending_order(scores: Array) -> tuple[npt.NDArray[np.int64], Array]:
    """The stable ascending order of each row of finite scores, shape (n_rows, n_items), and the scores in this order.

    numpy sorts whole numbers several times as fast as it sorts indirectly. So the bits of a score and the position of
    its item are packed in one number, which costs the last bits of the score. Where the scores are then out of order,
    which is rare, the neighbours that were packed alike are put right.
    """
    values = np.ascontiguousarray(scores, dtype=np.float64) + 0.0  # a copy, in which -0.0 became 0.0
    n_rows, n = values.shape
    low = np.int64((1 << int(max(n - 1, 0)).bit_length()) - 1)
    keys = values.view(np.int64)
    keys ^= (keys >> 63) & _ALL_BUT_SIGN  # negative numbers sort the other way round
    keys &= ~low
    keys |= np.arange(n)
    keys.sort(axis=1)
    order = keys & low
    moved = np.take(scores, order + (np.arange(n_rows) * n)[:, None])
    for row in np.flatnonzero((moved[:, 1:] < moved[:, :-1]).any(axis=1)):
        _repair(order[row], keys[row] & ~low, scores[row])
        moved[row] = scores[row][order[row]]
    return order, moved


def _repair(order: npt.NDArray[np.int64], packed: npt.NDArray[np.int64], scores: Array) -> None:
    """Put neighbours that were packed to the same number in the order of their scores, in place."""
    alike = packed[1:] == packed[:-1]
    if 4 * np.count_nonzero(alike) > len(order):
        order[:] = np.argsort(scores, kind="stable")
        return
    doubtful = np.flatnonzero(np.concatenate([alike, [False]]) | np.concatenate([[False], alike]))
    run = np.cumsum(~np.concatenate([[False], alike]))[doubtful]
    items = order[doubtful]
    order[doubtful] = items[np.lexsort((scores[items], run))]
