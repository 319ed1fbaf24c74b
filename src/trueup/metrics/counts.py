"""Confusion counts from integer codes, for one truth or for many drawn ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._validation import check_integer, preview
from trueup.exceptions import InvalidParameter

__all__ = ["confusion_counts"]

_BLOCK = 1 << 21  # cells worked on at once: the temporary arrays stay within the processor's reach


def confusion_counts(
    truth_codes: npt.ArrayLike,
    pred_codes: npt.ArrayLike,
    n_classes: int,
    *,
    weights: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float64]:
    """Count how often each class was predicted as each.

    Parameters
    ----------
    truth_codes : integer array of shape (n_items,) or (n_draws, n_items)
        True classes from 0 to n_classes − 1; many draws of them at once.
    pred_codes : integer array of shape (n_items,) or (n_draws, n_items)
        Predicted classes.
    n_classes : int
        How many classes there are.
    weights : array of shape (n_items,), optional
        What each item counts for; 1 if not given.

    Returns
    -------
    array of shape (n_classes, n_classes) or (n_draws, n_classes, n_classes)
        Rows are the truth, columns the prediction.

    Examples
    --------
    >>> confusion_counts([0, 0, 1], [0, 1, 1], 2).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    n_classes = check_integer(n_classes, name="n_classes", low=1)
    truth = _codes(truth_codes, n_classes, "truth_codes")
    pred = _codes(pred_codes, n_classes, "pred_codes")
    if truth.shape[-1] != pred.shape[-1] or (truth.ndim == pred.ndim == 2 and len(truth) != len(pred)):
        raise InvalidParameter(
            f"truth_codes and pred_codes must have the same items, got the shapes {truth.shape} and {pred.shape}"
        )
    mass = None if weights is None else np.asarray(weights, dtype=float)
    if mass is not None and mass.shape != truth.shape[-1:]:
        raise InvalidParameter(f"weights must be one for each of {truth.shape[-1]} items, got shape {mass.shape}")
    batched = truth.ndim == 2 or pred.ndim == 2
    truth, pred = np.atleast_2d(truth), np.atleast_2d(pred)
    n_draws = max(len(truth), len(pred)) if batched else 1
    if 0 in (len(truth), len(pred)):
        n_draws = 0
    rows = max(_BLOCK // max(truth.shape[1], n_classes**2, 1), 1)
    counts = np.empty((n_draws, n_classes, n_classes))
    for start in range(0, n_draws, rows):
        block = slice(start, min(start + rows, n_draws))
        counts[block] = _count_block(
            truth[block] if len(truth) > 1 else truth, pred[block] if len(pred) > 1 else pred, n_classes, mass
        )
    return counts if batched else counts[0]


def _count_block(
    truth: npt.NDArray[Any], pred: npt.NDArray[Any], n_classes: int, mass: npt.NDArray[np.float64] | None
) -> npt.NDArray[np.float64]:
    n_draws, cells = max(len(truth), len(pred)), n_classes**2
    cell = truth.astype(np.intp) * n_classes + pred
    cell = cell + (np.arange(n_draws) * cells)[:, None]
    weights = None if mass is None else np.broadcast_to(mass, cell.shape).ravel()
    counted = np.bincount(cell.ravel(), weights=weights, minlength=n_draws * cells)
    return np.asarray(counted, dtype=float).reshape(n_draws, n_classes, n_classes)


def _codes(values: npt.ArrayLike, n_classes: int, name: str) -> npt.NDArray[Any]:
    codes = np.asarray(values)
    if codes.dtype == bool:
        codes = codes.astype(np.int8)
    if codes.ndim not in (1, 2) or (codes.size and not np.issubdtype(codes.dtype, np.integer)):
        raise InvalidParameter(
            f"{name} must be integers of shape (items,) or (draws, items), got {codes.dtype} of shape {codes.shape}"
        )
    if codes.size and (int(codes.min()) < 0 or int(codes.max()) >= n_classes):
        bad = codes[(codes < 0) | (codes >= n_classes)]
        raise InvalidParameter(f"{name} must lie between 0 and {n_classes - 1}, got {preview(bad)}")
    return codes.astype(np.intp) if not codes.size else codes
