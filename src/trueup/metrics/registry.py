"""Metrics by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import did_you_mean, preview
from trueup.exceptions import InvalidParameter
from trueup.metrics import counts as confusion
from trueup.metrics.metric import FunctionMetric, Metric

__all__ = ["as_metric", "get_metric", "list_metrics", "register_metric"]


# name -> (function of the counts, bounds, higher is better, what it is)
_WHOLE: dict[str, tuple[Callable[[Floats], Floats], tuple[float, float], bool | None, str]] = {
    "accuracy": (confusion.accuracy, (0.0, 1.0), True, "share of items predicted right"),
    "error_rate": (confusion.error_rate, (0.0, 1.0), False, "share of items predicted wrong"),
    "balanced_accuracy": (confusion.balanced_accuracy, (0.0, 1.0), True, "mean recall of the classes that occur"),
    "mcc": (confusion.mcc, (-1.0, 1.0), True, "Matthews' correlation of truth and prediction"),
    "kappa": (confusion.kappa, (-1.0, 1.0), True, "Cohen's kappa, agreement beyond chance"),
}
# name -> (function of the counts and a class, higher is better, what it is)
_OF_CLASS: dict[str, tuple[Callable[..., Floats], bool | None, str]] = {
    "precision": (confusion.precision, True, "share of the items predicted as the class that are of it"),
    "recall": (confusion.recall, True, "share of the items of the class that are predicted as it"),
    "specificity": (confusion.specificity, True, "share of the other items that are not predicted as the class"),
    "false_alarm_rate": (confusion.false_alarm_rate, False, "share of the other items predicted as the class"),
    "prevalence": (confusion.prevalence, None, "share of items that are of the class"),
}
_ALIASES = {
    "acc": "accuracy",
    "error": "error_rate",
    "cohen_kappa": "kappa",
    "cohens_kappa": "kappa",
    "matthews_corrcoef": "mcc",
    "bacc": "balanced_accuracy",
    "ppv": "precision",
    "positive_predictive_value": "precision",
    "tpr": "recall",
    "true_positive_rate": "recall",
    "sensitivity": "recall",
    "detection_rate": "recall",
    "tnr": "specificity",
    "true_negative_rate": "specificity",
    "fpr": "false_alarm_rate",
    "false_positive_rate": "false_alarm_rate",
    "fall_out": "false_alarm_rate",
    "base_rate": "prevalence",
    "f_score": "f1",
    "f": "f1",
}
_AVERAGES = ("macro", "micro", "weighted")
_FBETA = re.compile(r"f_?(\d+(?:\.\d+)?|\.\d+)")
_registered: dict[str, Metric] = {}


def list_metrics() -> list[str]:
    """The names `get_metric` knows; any ``f<beta>`` and ``name:class`` are understood too.

    Examples
    --------
    >>> "macro_f1" in list_metrics()
    True
    """
    averaged = [f"{how}_{name}" for how in _AVERAGES for name in (*_OF_CLASS, "f1") if name != "prevalence"]
    return [*_WHOLE, *_OF_CLASS, "f1", "f0.5", "f2", *averaged, *_registered]


def register_metric(
    name: str,
    function: Callable[[Floats], Floats],
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    higher_is_better: bool | None = True,
    description: str = "",
) -> Metric:
    """Make a function of the confusion counts known by a name.

    Parameters
    ----------
    name : str
        A name that is not taken by a metric of trueup; registering the same name again replaces the function.
    function : callable
        From counts of shape (..., C, C), rows the truth, to values of shape (...).
    bounds, higher_is_better, description
        As for `Metric`.
    """
    key = _normal(name)
    if not key or ":" in key:
        raise InvalidParameter(f"name must be a word without a colon, got {name!r}")
    if not callable(function):
        raise InvalidParameter(f"function must be callable on confusion counts, got {function!r}")
    if key in _ALIASES or (key in list_metrics() and key not in _registered) or _FBETA.fullmatch(key):
        raise InvalidParameter(f"name must not be that of a metric of trueup, got {name!r}; choose another")
    _registered[key] = Metric(key, function, bounds, higher_is_better, description)
    return _registered[key]


def as_metric(
    metric: str | Metric | FunctionMetric | Callable[[Any, Any], float],
    classes: Sequence[Any] | npt.NDArray[Any],
    positive: Any = None,
) -> Metric | FunctionMetric:
    """A metric from its name, from a metric, or from a function ``metric(y_true, y_pred) -> float``."""
    if isinstance(metric, Metric | FunctionMetric):
        return metric
    if isinstance(metric, str):
        return get_metric(metric, classes, positive)
    if callable(metric):
        return FunctionMetric(metric)
    raise InvalidParameter(f"metric must be a name or a function metric(y_true, y_pred), got {metric!r}")


def get_metric(name: str, classes: Sequence[Any] | npt.NDArray[Any], positive: Any = None) -> Metric:
    """The metric of this name for these classes.

    Hyphens and underscores are the same. ``"recall:cat"`` is the recall of the class whose str is ``cat``. Without a
    class, precision, recall, specificity, false-alarm rate and F-scores mean those of the positive class if there are
    two classes, and the macro average if there are more; ``"macro_"``, ``"micro_"`` and ``"weighted_"`` before the
    name ask for an average.

    Parameters
    ----------
    name : str
        See `list_metrics`.
    classes : sequence
        The classes, in the order of the rows and columns of the counts.
    positive : optional
        Which of two classes is the positive one; by default the second of the sorted classes.

    Examples
    --------
    >>> get_metric("recall", ["no", "yes"])([[3, 1], [1, 3]]).item()
    0.75
    >>> get_metric("f-2:cat", ["cat", "cow", "dog"]).name
    'f2:cat'
    """
    labels = list(classes)
    if not isinstance(name, str):
        raise InvalidParameter(f"metric must be a name, got {name!r}")
    if len({str(c) for c in labels}) < len(labels) or len(labels) < 2:
        raise InvalidParameter(f"classes must be at least two different ones, got {preview(labels)}")
    base, colon, wanted = name.partition(":")
    key, average = _split(_normal(base))
    if key in _registered or key in _WHOLE:
        if average or colon:
            raise InvalidParameter(f"metric {key!r} is one number for all classes, got {name!r}; ask for {key!r}")
        return _registered[key] if key in _registered else Metric(key, *_WHOLE[key])
    function, better, description = _of_class(key, name)
    if average and (colon or key == "prevalence"):
        raise InvalidParameter(f"metric {name!r} asks for an average of what is one class's; leave out {average!r}")
    if colon:
        index = _class_index(wanted, labels, name)
        return _bound(f"{key}:{labels[index]}", function, index, better, f"{description} {labels[index]}")
    if average:
        return _bound(f"{average}_{key}", function, average, better, f"{description}, {average} average")
    if len(labels) == 2:
        index = _positive_index(labels, positive)
        return _bound(key, function, index, better, f"{description} {labels[index]}")
    if key == "prevalence":
        raise InvalidParameter(
            f"metric 'prevalence' needs a class when there are {len(labels)}; ask for e.g. 'prevalence:{labels[0]}'"
        )
    return _bound(key, function, "macro", better, f"{description}, macro average")


def _bound(name: str, function: Callable[..., Floats], of: int | str, better: bool | None, description: str) -> Metric:
    return Metric(name, partial(function, of=of), (0.0, 1.0), better, description)


def _normal(name: str) -> str:
    return re.sub(r"[\s\-]+", "_", str(name).strip().lower())


def _split(key: str) -> tuple[str, str | None]:
    """The plain name and the average asked for, also in scikit-learn's spelling ``f1_macro``."""
    if key in _registered:
        return key, None
    average = None
    for how in _AVERAGES:
        plain = key.removeprefix(f"{how}_").removesuffix(f"_{how}")
        if plain != key:
            key, average = plain, how
            break
    key = _ALIASES.get(key, key)
    key = _ALIASES.get(key.removesuffix("_score"), key.removesuffix("_score"))
    match = _FBETA.fullmatch(key)
    return (f"f{float(match[1]):g}" if match else key), average


def _of_class(key: str, name: str) -> tuple[Callable[..., Floats], bool | None, str]:
    if key in _OF_CLASS:
        return _OF_CLASS[key]
    match = _FBETA.fullmatch(key)
    if not match:
        hint = did_you_mean(_normal(name.partition(":")[0]), [*list_metrics(), *_ALIASES])
        raise InvalidParameter(f"metric must be one that list_metrics() names, got {name!r}{hint}")
    beta = float(match[1])
    if not beta > 0:
        raise InvalidParameter(f"metric 'f<beta>' needs a beta above 0, got {name!r}; that would be the precision")
    return partial(confusion.fbeta, beta=beta), True, "weighted harmonic mean of precision and recall of the class"


def _class_index(wanted: str, labels: list[Any], name: str) -> int:
    texts = [str(c) for c in labels]
    for text in (wanted, wanted.strip()):
        if text in texts:
            return texts.index(text)
    raise InvalidParameter(
        f"metric {name!r} must name one of the classes {preview(texts, most=10)}{did_you_mean(wanted, texts)}"
    )


def _positive_index(labels: list[Any], positive: Any) -> int:
    texts = [str(c) for c in labels]
    if positive is None:
        try:
            return labels.index(sorted(labels)[1])
        except TypeError:  # classes of different types have no order of their own
            return texts.index(sorted(texts)[1])
    if str(positive) not in texts:
        raise InvalidParameter(f"positive must be one of the classes {preview(texts)}, got {positive!r}")
    return texts.index(str(positive))
