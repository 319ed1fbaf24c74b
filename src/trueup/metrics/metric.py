"""What a metric is: a named function of confusion counts, or of a drawn truth and the predictions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup.exceptions import InvalidParameter

__all__ = ["FunctionMetric", "Metric"]


@dataclass(frozen=True)
class Metric:
    """A metric that is a function of the confusion counts.

    Parameters
    ----------
    name : str
        E.g. ``"macro_f1"``.
    function : callable
        From counts of shape (..., C, C), rows the truth, to values of shape (...); nan where undefined.
    bounds : (float, float)
        The smallest and the largest value.
    higher_is_better : bool or None
        None if neither is (the prevalence).
    description : str
        One sentence for reports.
    """

    name: str
    function: Callable[[Floats], Floats]
    bounds: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool | None = True
    description: str = ""

    def __call__(self, counts: npt.ArrayLike) -> Floats:
        """The metric of counts of shape (..., C, C)."""
        return np.asarray(self.function(np.asarray(counts, dtype=float)), dtype=float)


@dataclass(frozen=True)
class FunctionMetric:
    """Any function ``metric(y_true, y_pred) -> float``, evaluated on drawn truths.

    A ValueError, a division by zero or scikit-learn's UndefinedMetricWarning means that the metric is undefined for
    that truth: the value is nan. Other warnings are passed on once.

    Parameters
    ----------
    function : callable
        Takes true and predicted classes, both of shape (n_items,).
    name : str, optional
        By default the function's own name.
    bounds : (float, float)
        The smallest and the largest value, if there are such.
    higher_is_better : bool or None
        Which way is good.
    description : str
        One sentence for reports.

    Examples
    --------
    >>> hits = FunctionMetric(lambda y, p: float((y == p).mean()), name="hits", bounds=(0.0, 1.0))
    >>> hits.evaluate_draws([[0, 1], [1, 1]], [1, 1]).tolist()
    [0.5, 1.0]
    """

    function: Callable[[Any, Any], float]
    name: str = ""
    bounds: tuple[float, float] = (-math.inf, math.inf)
    higher_is_better: bool | None = True
    description: str = ""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidParameter(f"function must be callable as metric(y_true, y_pred), got {self.function!r}")
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> float:
        """The metric for one truth; nan if it is undefined."""
        return float(self.evaluate_draws(np.asarray(y_true)[None], y_pred)[0])

    def evaluate_draws(
        self, truth_draws: npt.ArrayLike, y_pred: npt.ArrayLike, *, classes: npt.ArrayLike | None = None
    ) -> Floats:
        """The metric for each of many truths; the share of nan is the share on which it is undefined.

        Parameters
        ----------
        truth_draws : array of shape (n_draws, n_items)
            One drawn truth in each row.
        y_pred : array of shape (n_items,)
            The predictions.
        classes : array of shape (n_classes,), optional
            If given, both arrays hold codes, and the function sees ``classes[code]``.

        Returns
        -------
        array of shape (n_draws,)
        """
        truths, pred = np.asarray(truth_draws), np.asarray(y_pred)
        names = None if classes is None else np.asarray(classes)
        if names is not None:
            pred = names[pred]
        values = np.empty(len(truths))
        others: dict[tuple[type[Warning], str], warnings.WarningMessage] = {}
        for row, truth in enumerate(truths):
            values[row], caught = _quietly(self.function, truth if names is None else names[truth], pred)
            others.update({(w.category, str(w.message)): w for w in caught})
        for warning in others.values():
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return values


def _quietly(
    function: Callable[[Any, Any], float], y_true: npt.NDArray[Any], y_pred: npt.NDArray[Any]
) -> tuple[float, list[warnings.WarningMessage]]:
    """The value, nan if undefined, and the warnings that do not say so."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = float(function(y_true, y_pred))
        except (ValueError, ZeroDivisionError):
            value = math.nan
    # By name, since scikit-learn need not be imported to be recognised.
    undefined = [w for w in caught if w.category.__name__ == "UndefinedMetricWarning"]
    return (math.nan if undefined else value), [w for w in caught if w not in undefined]
