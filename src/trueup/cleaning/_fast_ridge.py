"""Flip models of the ridge classifier, exactly."""

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
from trueup.cleaning.flips import Array, Codes

__all__ = ["ridge_flips"]

SQUARED = Loss(
    value=lambda s, t: 0.5 * (s - t) ** 2,
    slope=lambda s, t: s - t,
    curve=lambda s, t: np.ones_like(s),
    quadratic=True,
)


def ridge_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``RidgeClassifier``; None for positive coefficients.

    The objective is quadratic and a change of a label changes one target and, with class weights, one weight: a step
    with a Hessian that is updated by rank one is the solution.
    """
    options = model.get_params()
    if options["positive"] or np.ndim(options["alpha"]):
        return None
    intercept = 1.0 if options["fit_intercept"] else None
    phi = with_intercept(X, intercept)
    n_classes, p = len(model.classes_), phi.shape[1]
    if p > MOST_PARAMETERS:
        return None
    penalty = np.full(p, float(options["alpha"]))
    if intercept is not None:
        penalty[0] = 0.0
    targets = column_targets(n_classes)

    def weigh(number: Array) -> Array:
        each = class_weights(options["class_weight"], model.classes_, number)
        return np.repeat(each[:, None], targets.shape[1], axis=1)

    weights = weigh(np.bincount(y, minlength=n_classes).astype(float))
    start = np.zeros((targets.shape[1], p))
    problem = ColumnProblem(phi, y, targets, weights, penalty, SQUARED, start).solved()
    after = weigh if isinstance(options["class_weight"], str) else None
    return None if problem is None else ColumnFlips(problem, codes, intercept, after)
