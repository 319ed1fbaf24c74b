"""Flip models of logistic regression; with more than two classes those of `_fast_softmax`."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.cleaning._fast_base import FlipModels, with_intercept
from trueup.cleaning._fast_columns import (
    MOST_PARAMETERS,
    ColumnFlips,
    ColumnProblem,
    Loss,
    class_weights,
    column_targets,
)
from trueup.cleaning._fast_softmax import SoftmaxFlips, SoftmaxProblem
from trueup.cleaning.flips import Array, Codes

__all__ = ["logistic_flips"]


def _chance(score: Array) -> Array:
    """The logistic function; numpy's tanh works on several numbers at once, scipy's expit does not."""
    found = np.tanh(0.5 * score)
    found += 1
    found *= 0.5
    return np.asarray(found)


def _slope(score: Array, target: Array) -> Array:
    found = _chance(score)
    found -= target > 0
    return found


def _curve(score: Array, target: Array) -> Array:
    chance = _chance(score)
    return np.asarray(chance * (1 - chance))


def _third(score: Array) -> Array:
    chance = _chance(score)
    return np.asarray(chance * (1 - chance) * (1 - 2 * chance))


LOGISTIC = Loss(lambda s, t: np.logaddexp(0.0, -t * s), _slope, _curve, _third)


def logistic_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``LogisticRegression`` with an l2 penalty; None for other options.

    Parameters
    ----------
    model : LogisticRegression
    X : array or sparse matrix of shape (n, n_features)
    y : integer array of shape (n,)
        Positions in ``model.classes_``.
    codes : integer array
        The code of each class of the model.
    """
    options = model.get_params()
    penalty = options.get("penalty")
    if penalty not in ("deprecated", "l2", None) or options.get("l1_ratio") not in (None, 0, 0.0):
        return None
    if np.ndim(options["C"]) or getattr(model, "multi_class", "auto") == "ovr":
        return None
    ridge = 0.0 if penalty is None or np.isinf(options["C"]) else 1.0 / options["C"]
    liblinear = options["solver"] == "liblinear"
    intercept = (float(options["intercept_scaling"]) if liblinear else 1.0) if options["fit_intercept"] else None
    phi = with_intercept(X, intercept)
    n_classes, p = len(model.classes_), phi.shape[1]
    if p * (1 if n_classes == 2 else n_classes) > MOST_PARAMETERS:
        return None
    diagonal = np.full(p, ridge)
    if intercept is not None and not liblinear:  # liblinear penalises the intercept too
        diagonal[0] = 0.0
    start = _parameters(model, intercept)

    def weigh(number: Array) -> Array:
        return class_weights(options["class_weight"], model.classes_, number)

    weights = weigh(np.bincount(y, minlength=n_classes).astype(float))
    balanced = isinstance(options["class_weight"], str)
    if n_classes == 2:
        targets = column_targets(2)
        problem = ColumnProblem(phi, y, targets, weights[:, None], diagonal, LOGISTIC, start).solved()
        after = (lambda number: weigh(number)[:, None]) if balanced else None
        return None if problem is None else ColumnFlips(problem, codes, intercept, after)
    softmax = SoftmaxProblem(phi, y, weights, diagonal, start).solved()
    return None if softmax is None else SoftmaxFlips(softmax, codes, intercept, weigh if balanced else None)


def _parameters(model: Any, intercept: float | None) -> Array:
    """Coefficients with the intercept's in front, for the constant feature as it is scaled."""
    slopes = np.asarray(model.coef_, dtype=float)
    slopes = slopes.toarray() if hasattr(slopes, "toarray") else slopes
    if intercept is None:
        return slopes
    return np.column_stack([np.broadcast_to(model.intercept_, len(slopes)) / intercept, slopes])
