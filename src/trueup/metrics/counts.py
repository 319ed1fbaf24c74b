"""Metrics as pure functions of confusion counts.

`counts` has shape (..., C, C): rows are the truth, columns the prediction, leading axes are draws or models, and each
function returns shape (...). Counts may be expected ones (floats). What is undefined (0/0) is nan, without a warning,
and an average leaves undefined classes out, as scikit-learn does with ``zero_division=np.nan``.

Metrics of one class take `of`: the index of the class, ``"each"`` for all classes (shape (..., C)), or an average:
``"macro"`` (all classes alike), ``"weighted"`` (by their true counts) or ``"micro"`` (of the pooled decisions).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_integer, check_number
from trueup.exceptions import InvalidParameter
from trueup.metrics.score_groups import ROUNDING, check_codes, ratio

Of = int | str
AVERAGES = ("each", "macro", "micro", "weighted")
_Parts = Callable[[Floats, Floats, Floats, Floats], tuple[Floats, Floats]]


def _checked(counts: npt.ArrayLike) -> Floats:
    array = np.asarray(counts, dtype=float)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] == 0:
        raise InvalidParameter(f"counts must have the shape (..., classes, classes), got {array.shape}")
    return array


def _class_position(of: int, counts: Floats) -> int:
    index = check_integer(of, name="of", low=0)
    if index >= counts.shape[-1]:
        raise InvalidParameter(f"of must be a class below {counts.shape[-1]}, got {index}")
    return index


def nan_average(values: Floats, weights: Floats) -> Floats:
    """Weighted mean over the last axis of what is defined; the plain mean if that has no weight."""
    defined = ~np.isnan(values)
    kept = np.where(defined, values, 0.0)
    share = np.where(defined, weights, 0.0)
    total = share.sum(axis=-1)
    plain = ratio(kept.sum(axis=-1), defined.sum(axis=-1))
    return np.where(total != 0, ratio((kept * share).sum(axis=-1), total), plain)


def _one_vs_rest(counts: npt.ArrayLike, of: Of, parts_of: _Parts) -> Floats:
    """A metric that is a quotient of each class's true and false positives and negatives (tp, fp, fn, tn)."""
    array = _checked(counts)
    tp = np.diagonal(array, axis1=-2, axis2=-1)
    true, predicted = array.sum(axis=-1), array.sum(axis=-2)
    n = array.sum(axis=(-2, -1))
    parts = tp, predicted - tp, true - tp, n[..., None] - true - predicted + tp
    if not isinstance(of, str):
        index = _class_position(of, array)
        return ratio(*parts_of(*(part[..., index] for part in parts)), n)
    how = check_choice(of, AVERAGES, name="of")
    if how == "micro":
        return ratio(*parts_of(*(part.sum(axis=-1) for part in parts)), n)
    each = ratio(*parts_of(*parts), n[..., None])
    if how == "each":
        return each
    return nan_average(each, true if how == "weighted" else np.ones_like(true))


def accuracy(counts: npt.ArrayLike) -> Floats:
    """The share of items predicted right."""
    array = _checked(counts)
    return ratio(np.trace(array, axis1=-2, axis2=-1), array.sum(axis=(-2, -1)))


def error_rate(counts: npt.ArrayLike) -> Floats:
    """The share of items predicted wrong."""
    return np.asarray(1 - accuracy(counts))


def precision(counts: npt.ArrayLike, *, of: Of) -> Floats:
    """Of the items predicted as the class, the share that are of it.

    Examples
    --------
    >>> float(precision([[40, 10], [5, 40]], of=1))
    0.8
    """
    return _one_vs_rest(counts, of, lambda tp, fp, fn, tn: (tp, tp + fp))


def recall(counts: npt.ArrayLike, *, of: Of) -> Floats:
    """Of the items of the class, the share predicted as it."""
    return _one_vs_rest(counts, of, lambda tp, fp, fn, tn: (tp, tp + fn))


def specificity(counts: npt.ArrayLike, *, of: Of) -> Floats:
    """Of the items that are not of the class, the share not predicted as it."""
    return _one_vs_rest(counts, of, lambda tp, fp, fn, tn: (tn, tn + fp))


def false_alarm_rate(counts: npt.ArrayLike, *, of: Of) -> Floats:
    """Of the items that are not of the class, the share predicted as it."""
    return _one_vs_rest(counts, of, lambda tp, fp, fn, tn: (fp, tn + fp))


def fbeta(counts: npt.ArrayLike, *, of: Of, beta: float = 1.0) -> Floats:
    """The weighted harmonic mean of precision and recall, in which recall counts β² times as much.

    Defined, and zero, when only one of the two is undefined, as in scikit-learn.

    Examples
    --------
    >>> float(fbeta([[40, 10], [10, 40]], of=1))
    0.8
    """
    b2 = check_number(beta, name="beta", low=0.0, strict=True) ** 2
    return _one_vs_rest(counts, of, lambda tp, fp, fn, tn: ((1 + b2) * tp, (1 + b2) * tp + fp + b2 * fn))


def prevalence(counts: npt.ArrayLike, *, of: int) -> Floats:
    """The share of items that are of the class."""
    array = _checked(counts)
    index = _class_position(of, array)
    return ratio(array[..., index, :].sum(axis=-1), array.sum(axis=(-2, -1)))


def balanced_accuracy(counts: npt.ArrayLike) -> Floats:
    """The mean recall of the classes that occur."""
    return recall(counts, of="macro")


def mcc(counts: npt.ArrayLike) -> Floats:
    """Matthews' correlation coefficient, for any number of classes (Gorodkin's R_K).

    nan where the truth or the prediction is constant; scikit-learn says 0 there.

    Examples
    --------
    >>> float(mcc([[50, 0], [0, 50]]))
    1.0
    """
    array = _checked(counts)
    true, predicted, n = array.sum(axis=-1), array.sum(axis=-2), array.sum(axis=(-2, -1))
    covariance = np.trace(array, axis1=-2, axis2=-1) * n - (true * predicted).sum(axis=-1)
    spreads = (n**2 - (margin**2).sum(axis=-1) for margin in (true, predicted))
    roots = [np.sqrt(np.where(spread > ROUNDING * n**2, spread, 0.0)) for spread in spreads]  # 0 for a single class
    return np.clip(ratio(covariance, roots[0] * roots[1]), -1.0, 1.0)


def kappa(counts: npt.ArrayLike) -> Floats:
    """Cohen's kappa: the agreement beyond chance. nan where truth and prediction are one and the same class.

    Examples
    --------
    >>> round(float(kappa([[20, 5], [10, 15]])), 6)
    0.4
    """
    array = _checked(counts)
    n = array.sum(axis=(-2, -1))
    chance = (array.sum(axis=-1) * array.sum(axis=-2)).sum(axis=-1)
    return ratio(np.trace(array, axis1=-2, axis2=-1) * n - chance, n**2 - chance, n**2)


_BLOCK = 1 << 21  # cells worked on at once: the temporary arrays stay within the processor's reach


def confusion_counts(
    truth_codes: npt.ArrayLike, pred_codes: npt.ArrayLike, n_classes: int, *, weights: npt.ArrayLike | None = None
) -> npt.NDArray[np.float64]:
    """Count how often each class was predicted as each; rows are the truth, columns the prediction.

    Returns an array of shape (n_classes, n_classes) or (n_draws, n_classes, n_classes).

    Parameters
    ----------
    truth_codes : integer array of shape (n_items,) or (n_draws, n_items). True classes, from 0 to n_classes − 1.
    pred_codes : integer array of shape (n_items,) or (n_draws, n_items). Predicted classes.
    n_classes : int. How many classes there are.
    weights : array of shape (n_items,) or (n_draws, n_items), optional. What each item counts for; 1 if not given.
    """
    n_classes = check_integer(n_classes, name="n_classes", low=1)
    truth = check_codes(truth_codes, n_classes, name="truth_codes")
    pred = check_codes(pred_codes, n_classes, name="pred_codes")
    if truth.shape[-1] != pred.shape[-1] or (truth.ndim == pred.ndim == 2 and len(truth) != len(pred)):
        raise InvalidParameter(
            f"truth_codes and pred_codes must have the same items, got the shapes {truth.shape} and {pred.shape}"
        )
    batched = truth.ndim == 2 or pred.ndim == 2
    truth, pred = np.broadcast_arrays(np.atleast_2d(truth), np.atleast_2d(pred))
    mass = None if weights is None else np.asarray(weights, dtype=float)
    if mass is not None and mass.shape not in (truth.shape, truth.shape[1:]):
        raise InvalidParameter(f"weights must be one for each of {truth.shape[1]} items, got shape {mass.shape}")
    mass = None if mass is None else np.broadcast_to(mass, truth.shape)
    rows = max(_BLOCK // max(truth.shape[1], n_classes**2, 1), 1)
    counts = np.zeros((len(truth), n_classes**2))
    for start in range(0, len(truth), rows):
        block, part = slice(start, start + rows), counts[start : start + rows]
        cell = truth[block].astype(np.intp) * n_classes + pred[block]
        cell = (cell + (np.arange(len(part)) * n_classes**2)[:, None]).ravel()
        of_items = None if mass is None else mass[block].ravel()
        if 20 * truth.shape[1] < n_classes**2:  # mostly empty: zeros are not written, nor copied
            np.add.at(part.reshape(-1), cell, 1.0 if of_items is None else of_items)
        else:
            part[:] = np.bincount(cell, weights=of_items, minlength=part.size).reshape(part.shape)
    tables = counts.reshape(len(truth), n_classes, n_classes)
    return tables if batched else tables[0]
