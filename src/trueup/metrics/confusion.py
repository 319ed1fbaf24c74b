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

from trueup._validation import check_choice, check_integer, check_number
from trueup.exceptions import InvalidParameter

__all__ = [
    "accuracy",
    "balanced_accuracy",
    "error_rate",
    "false_alarm_rate",
    "fbeta",
    "kappa",
    "mcc",
    "precision",
    "prevalence",
    "recall",
    "specificity",
]

Array = npt.NDArray[np.float64]
Of = int | str
AVERAGES = ("each", "macro", "micro", "weighted")
_ROUNDING = 1e-12  # differences of expected counts are zero up to this share of the total
_Ratio = Callable[[Array, Array, Array, Array], tuple[Array, Array]]


def _checked(counts: npt.ArrayLike) -> Array:
    array = np.asarray(counts, dtype=float)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] == 0:
        raise InvalidParameter(f"counts must have the shape (..., classes, classes), got {array.shape}")
    return array


def _divide(numerator: npt.ArrayLike, denominator: npt.ArrayLike, scale: npt.ArrayLike = 0.0) -> Array:
    """The quotient; nan where the denominator is zero, or only a rounding away from it for numbers of this scale."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float))
    usable = np.abs(bottom) > _ROUNDING * np.asarray(scale)
    return np.asarray(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=usable))


def _nan_average(values: Array, weights: Array) -> Array:
    """Weighted mean over the last axis of what is defined; the plain mean if that has no weight."""
    defined = ~np.isnan(values)
    kept = np.where(defined, values, 0.0)
    share = np.where(defined, weights, 0.0)
    total = share.sum(axis=-1)
    plain = _divide(kept.sum(axis=-1), defined.sum(axis=-1))
    return np.where(total != 0, _divide((kept * share).sum(axis=-1), total), plain)


def _one_vs_rest(counts: npt.ArrayLike, of: Of, ratio: _Ratio) -> Array:
    """A metric that is a quotient of each class's true and false positives and negatives (tp, fp, fn, tn)."""
    array = _checked(counts)
    tp = np.diagonal(array, axis1=-2, axis2=-1)
    true, predicted = array.sum(axis=-1), array.sum(axis=-2)
    n = array.sum(axis=(-2, -1))
    parts = tp, predicted - tp, true - tp, n[..., None] - true - predicted + tp
    if not isinstance(of, str):
        index = check_integer(of, name="of", low=0)
        if index >= array.shape[-1]:
            raise InvalidParameter(f"of must be a class below {array.shape[-1]}, got {index}")
        return _divide(*ratio(*(part[..., index] for part in parts)), n)
    how = check_choice(of, AVERAGES, name="of")
    if how == "micro":
        return _divide(*ratio(*(part.sum(axis=-1) for part in parts)), n)
    each = _divide(*ratio(*parts), n[..., None])
    if how == "each":
        return each
    return _nan_average(each, true if how == "weighted" else np.ones_like(true))


def accuracy(counts: npt.ArrayLike) -> Array:
    """The share of items predicted right.

    Examples
    --------
    >>> float(accuracy([[40, 10], [5, 45]]))
    0.85
    """
    array = _checked(counts)
    return _divide(np.trace(array, axis1=-2, axis2=-1), array.sum(axis=(-2, -1)))


def error_rate(counts: npt.ArrayLike) -> Array:
    """The share of items predicted wrong."""
    return np.asarray(1 - accuracy(counts))


def precision(counts: npt.ArrayLike, *, of: Of) -> Array:
    """Of the items predicted as the class, the share that are of it.

    Examples
    --------
    >>> float(precision([[40, 10], [5, 40]], of=1))
    0.8
    """
    return _one_vs_rest(counts, of, lambda tp, fp, fn, tn: (tp, tp + fp))


def recall(counts: npt.ArrayLike, *, of: Of) -> Array:
    """Of the items of the class, the share predicted as it."""
    return _one_vs_rest(counts, of, lambda tp, fp, fn, tn: (tp, tp + fn))


def specificity(counts: npt.ArrayLike, *, of: Of) -> Array:
    """Of the items that are not of the class, the share not predicted as it."""
    return _one_vs_rest(counts, of, lambda tp, fp, fn, tn: (tn, tn + fp))


def false_alarm_rate(counts: npt.ArrayLike, *, of: Of) -> Array:
    """Of the items that are not of the class, the share predicted as it."""
    return _one_vs_rest(counts, of, lambda tp, fp, fn, tn: (fp, tn + fp))


def fbeta(counts: npt.ArrayLike, *, of: Of, beta: float = 1.0) -> Array:
    """The weighted harmonic mean of precision and recall, in which recall counts β² times as much.

    Defined, and zero, when only one of the two is undefined, as in scikit-learn.

    Examples
    --------
    >>> float(fbeta([[40, 10], [10, 40]], of=1))
    0.8
    """
    b2 = check_number(beta, name="beta", low=0.0, strict=True) ** 2
    return _one_vs_rest(counts, of, lambda tp, fp, fn, tn: ((1 + b2) * tp, (1 + b2) * tp + fp + b2 * fn))


def prevalence(counts: npt.ArrayLike, *, of: int) -> Array:
    """The share of items that are of the class."""
    array = _checked(counts)
    index = check_integer(of, name="of", low=0)
    if index >= array.shape[-1]:
        raise InvalidParameter(f"of must be a class below {array.shape[-1]}, got {index}")
    return _divide(array[..., index, :].sum(axis=-1), array.sum(axis=(-2, -1)))


def balanced_accuracy(counts: npt.ArrayLike) -> Array:
    """The mean recall of the classes that occur."""
    return recall(counts, of="macro")


def mcc(counts: npt.ArrayLike) -> Array:
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
    spread_true = _spread(true, n)
    spread_predicted = _spread(predicted, n)
    return np.clip(_divide(covariance, np.sqrt(spread_true) * np.sqrt(spread_predicted)), -1.0, 1.0)


def _spread(margin: Array, n: Array) -> Array:
    """n² − Σ margin², and exactly zero if there is but one class."""
    spread = n**2 - (margin**2).sum(axis=-1)
    return np.where(spread > _ROUNDING * n**2, spread, 0.0)


def kappa(counts: npt.ArrayLike) -> Array:
    """Cohen's kappa: the agreement beyond chance. nan where truth and prediction are one and the same class.

    Examples
    --------
    >>> round(float(kappa([[20, 5], [10, 15]])), 6)
    0.4
    """
    array = _checked(counts)
    n = array.sum(axis=(-2, -1))
    chance = (array.sum(axis=-1) * array.sum(axis=-2)).sum(axis=-1)
    return _divide(np.trace(array, axis1=-2, axis2=-1) * n - chance, n**2 - chance, n**2)
