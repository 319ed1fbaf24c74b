"""Flip models of the linear support vector machine with squared hinge loss."""

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

__all__ = ["squared_hinge_flips"]

SQUARED_HINGE = Loss(
    value=lambda s, t: np.maximum(1 - t * s, 0.0) ** 2,
    slope=lambda s, t: -2 * t * np.maximum(1 - t * s, 0.0),
    curve=lambda s, t: np.where(t * s < 1, 2.0, 0.0),
)


def squared_hinge_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``LinearSVC`` with the squared hinge loss and an l2 penalty; None for other options.

    Within a set of items inside the margin the loss is quadratic, so a Newton step is exact while no item crosses the
    margin.
    """
    options = model.get_params()
    if options["loss"] != "squared_hinge" or options["penalty"] != "l2" or options["multi_class"] != "ovr":
        return None
    intercept = float(options["intercept_scaling"]) if options["fit_intercept"] else None
    phi = with_intercept(X, intercept)
    n_classes, p = len(model.classes_), phi.shape[1]
    if p > MOST_PARAMETERS:
        return None
    slopes = np.asarray(model.coef_, dtype=float)
    if intercept is not None:
        slopes = np.column_stack([np.broadcast_to(model.intercept_, len(slopes)) / intercept, slopes])
    targets = column_targets(n_classes)

    def weigh(number: Array) -> Array:
        each = class_weights(options["class_weight"], model.classes_, number)
        # With more than two classes liblinear weighs the class of a column only, and the rest by 1.
        return each[:, None] if n_classes == 2 else np.where(targets > 0, each, 1.0)

    weights = weigh(np.bincount(y, minlength=n_classes).astype(float))
    # Liblinear penalises the intercept as it does the rest.
    penalty = np.full(p, 1.0 / options["C"])
    problem = ColumnProblem(phi, y, targets, weights, penalty, SQUARED_HINGE, slopes).solved()
    after = weigh if isinstance(options["class_weight"], str) else None
    return None if problem is None else ColumnFlips(problem, codes, intercept, after)
