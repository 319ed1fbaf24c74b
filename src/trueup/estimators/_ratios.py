"""Metrics that are a quotient of two linear forms of the confusion counts."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from trueup.metrics import Metric, confusion

__all__ = ["linear_ratio"]

Array = npt.NDArray[np.float64]


def linear_ratio(metric: Metric, n_classes: int) -> tuple[Array, Array] | None:
    """Weights (A, B) on the counts with metric = ⟨A, counts⟩ / ⟨B, counts⟩, or None if it is no such quotient.

    Accuracy, precision, recall, false-alarm rate and F-score are (Su 2024, Table 8); a macro average, Matthews'
    correlation and kappa are not.

    Returns
    -------
    two arrays of shape (n_classes, n_classes), or None
    """
    function = metric.function
    options = dict(function.keywords) if isinstance(function, partial) else {}
    function = function.func if isinstance(function, partial) else function
    everything, right = np.ones((n_classes, n_classes)), np.eye(n_classes)
    if function is confusion.accuracy:
        return right, everything
    if function is confusion.error_rate:
        return everything - right, everything
    of = options.get("of")
    if not isinstance(of, int | np.integer):
        return None
    if function is confusion.prevalence:
        return _parts(int(of), n_classes)[0] + _parts(int(of), n_classes)[2], everything
    tp, fp, fn, tn = _parts(int(of), n_classes)
    if function is confusion.precision:
        return tp, tp + fp
    if function is confusion.recall:
        return tp, tp + fn
    if function is confusion.specificity:
        return tn, tn + fp
    if function is confusion.false_alarm_rate:
        return fp, tn + fp
    if function is confusion.fbeta:
        b2 = float(options.get("beta", 1.0)) ** 2
        return (1 + b2) * tp, (1 + b2) * tp + fp + b2 * fn
    return None


def _parts(of: int, n_classes: int) -> tuple[Array, Array, Array, Array]:
    """Which cells are true and false positives, false and true negatives of a class."""
    true, predicted = np.zeros((2, n_classes, n_classes))
    true[of] = 1.0
    predicted[:, of] = 1.0
    return true * predicted, (1 - true) * predicted, true * (1 - predicted), (1 - true) * (1 - predicted)
