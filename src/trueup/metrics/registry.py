"""What a metric is, and metrics by name: one registry for those of counts, of scores and of probabilities."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from trueup._base.registry import Registry
from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_integer, did_you_mean, numbers_of, preview
from trueup.exceptions import InvalidParameter, TrueupError
from trueup.metrics import counts as confusion
from trueup.metrics import probabilistic, ranking
from trueup.metrics.score_groups import check_codes, ratio


def mean_absolute_error(counts: npt.ArrayLike, *, values: Sequence[float]) -> Floats:
    """The mean distance between the true and the predicted value, where `values` are those of the classes.

    Examples
    --------
    >>> float(mean_absolute_error([[2, 1, 0], [0, 2, 0], [1, 0, 2]], values=[1, 2, 3]))
    0.375
    """
    table, distance = np.asarray(counts, dtype=float), np.abs(np.subtract.outer(values, values))
    total = table.sum(axis=(-2, -1))
    return ratio((table * distance).sum(axis=(-2, -1)), total, total)


def quadratic_kappa(counts: npt.ArrayLike, *, values: Sequence[float]) -> Floats:
    """Cohen's kappa with squared distances as weights; nan where truth and prediction are one and the same value.

    As for `mean_absolute_error`, `values` are the numbers of the classes.

    Examples
    --------
    >>> round(float(quadratic_kappa([[2, 1, 0], [0, 2, 0], [1, 0, 2]], values=[1, 2, 3])), 4)
    0.5455
    """
    table, distance = np.asarray(counts, dtype=float), np.subtract.outer(values, values) ** 2
    total = table.sum(axis=(-2, -1))
    observed = (table * distance).sum(axis=(-2, -1)) * total
    chance = np.einsum("...i,ij,...j->...", table.sum(axis=-1), distance, table.sum(axis=-2))
    return ratio(chance - observed, chance, total**2)


def class_values(labels: Sequence[Any]) -> tuple[float, ...]:
    """The numbers that classes are, also where they are written as text; else their places."""
    values = numbers_of(labels)
    return tuple(map(float, range(len(labels)))) if values is None or len(set(values)) < len(values) else values


def order_of(values: Sequence[float]) -> tuple[int, ...]:
    """The positions of classes from the lowest value to the highest."""
    return tuple(np.argsort(values, kind="stable").tolist())


Needs = Literal["counts", "scores", "probabilities", "labels"]
NEEDS: tuple[Needs, ...] = get_args(Needs)
_EVALUATED_BY = {"counts": "of_counts", "scores": "of_outputs", "probabilities": "of_outputs", "labels": "of_labels"}


@dataclass(frozen=True)
class Metric:
    """A named function that says how good predictions are for a truth.

    Parameters
    ----------
    name : str. E.g. ``"macro_f1"``.
    function : callable
        What it takes depends on `needs`. It returns nan where the metric is undefined.

        - "counts": ``function(counts)`` from confusion counts of shape (..., C, C), rows the truth, to shape (...).
        - "scores": ``function(truths, scores, weights)`` to shape (n_draws,). The truths, of shape (n_draws, n_items),
          are True where an item is positive; the scores have the shape (n_items,); the weights, None or of the shape
          of the truths, are what each item counts for in each draw.
        - "probabilities": the same with class codes for the truths and probabilities of shape (n_items, n_classes).
        - "labels": ``function(y_true, y_pred) -> float`` for one truth, both of shape (n_items,). Where scikit-learn
          warns that a metric is undefined, the value is nan; other warnings are passed on once.
    needs : {"counts", "scores", "probabilities", "labels"}. What the function takes.
    bounds : (float, float). The smallest and the largest value, infinite where there is none.
    higher_is_better : bool or None. None if neither is (the prevalence).
    description : str. What it is, for reports.
    order : tuple of int, optional. For a metric of classes in an order: their positions from the lowest to the highest.
    of_system : callable, optional
        ``of_system(name)`` is this metric for one system, where it has to know whose outputs it sees (detections that
        lie beside the items); `function` is then not called.

    Examples
    --------
    >>> hits = Metric("hits", lambda y, p: float((y == p).mean()), needs="labels", bounds=(0.0, 1.0))
    >>> hits.of_labels([[0, 1], [1, 1]], [1, 1]).tolist()
    [0.5, 1.0]
    """

    name: str
    function: Callable[..., Any]
    _: KW_ONLY
    needs: Needs = "counts"
    bounds: tuple[float, float] = (-math.inf, math.inf)
    higher_is_better: bool | None = True
    description: str = ""
    order: tuple[int, ...] | None = None
    of_system: Callable[[Hashable], Metric] | None = None

    def for_system(self, name: Hashable) -> Metric:
        """The same metric, of the outputs of one system."""
        return self if self.of_system is None else self.of_system(name)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidParameter(f"`name` of a metric must be a word, got {self.name!r}")
        if not callable(self.function):
            raise InvalidParameter(f"`function` of the metric {self.name!r} must be callable, got {self.function!r}")
        check_choice(self.needs, NEEDS, name="needs")
        try:
            low, high = (float(bound) for bound in self.bounds)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not low < high:
            raise InvalidParameter(
                f"`bounds` of the metric {self.name!r} must be a smaller and a larger number, got {self.bounds!r}; "
                "pass e.g. (0.0, 1.0)",
            )
        if self.higher_is_better not in (True, False, None):
            raise InvalidParameter(
                f"`higher_is_better` of the metric {self.name!r} must be True, False or None, got "
                f"{self.higher_is_better!r}",
            )

    @property
    def looks_at(self) -> Literal["classes", "scores", "probabilities"]:
        """Which of the outputs of a system it measures."""
        return self.needs if self.needs == "scores" or self.needs == "probabilities" else "classes"

    def __call__(self, counts: npt.ArrayLike) -> Floats:
        """The same as `of_counts`."""
        return self.of_counts(counts)

    def of_counts(self, counts: npt.ArrayLike) -> Floats:
        """The metric of confusion counts of shape (..., C, C), rows the truth; shape (...)."""
        self._check_kind("counts")
        table = np.asarray(counts, dtype=float)
        return self._checked(self._run(table), table.shape[:-2])

    def of_outputs(
        self,
        truths: npt.ArrayLike,
        outputs: npt.ArrayLike,
        *,
        positive: int | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> Floats:
        """The metric of scores or class probabilities, for each of many truths.

        Returns an array of shape (n_draws,).

        Parameters
        ----------
        truths : integer array of shape (n_draws, n_items). The class code of each item in each draw.
        outputs : array of shape (n_items,) or (n_items, n_classes)
            Scores for the positive class, or class probabilities, as `needs` says.
        positive : int. The code of the positive class; metrics of probabilities treat all classes alike and take none.
        weights : array of shape (n_draws, n_items), optional
            What each item counts for in each draw, e.g. from a Bayesian bootstrap.
        """
        self._check_kind("scores", "probabilities")
        truth = np.atleast_2d(check_codes(truths, np.shape(outputs)[1] if np.ndim(outputs) == 2 else None))
        if self.needs == "scores":
            if positive is None:
                raise InvalidParameter(f"metric {self.name!r} needs `positive`, the code of a class, got None")
            truth = truth == check_integer(positive, name="positive", low=0)
        return self._checked(self._run(truth, outputs, weights), truth.shape[:1])

    def of_labels(
        self, truths: npt.ArrayLike, predictions: npt.ArrayLike, *, classes: npt.ArrayLike | None = None
    ) -> Floats:
        """The metric of predicted classes, for each of many truths.

        Returns an array of shape (n_draws,).

        Parameters
        ----------
        truths : array of shape (n_draws, n_items)
        predictions : array of shape (n_items,)
        classes : array of shape (n_classes,), optional
            If given, both arrays hold codes, and the function sees ``classes[code]``.
        """
        self._check_kind("labels")
        rows, predicted = np.asarray(truths), np.asarray(predictions)
        names = None if classes is None else np.asarray(classes)
        predicted = predicted if names is None else names[predicted]
        values = np.empty(len(rows))
        others: dict[tuple[type[Warning], str], warnings.WarningMessage] = {}
        for k, truth in enumerate(rows):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                values[k] = self._run(truth if names is None else names[truth], predicted)
            for warning in caught:
                # By name, since scikit-learn need not be imported to be recognised.
                if warning.category.__name__ == "UndefinedMetricWarning":
                    values[k] = math.nan
                else:
                    others[warning.category, str(warning.message)] = warning
        for warning in others.values():
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return values

    def _check_kind(self, *kinds: Needs) -> None:
        if self.needs not in kinds:
            raise InvalidParameter(
                f"metric {self.name!r} needs {self.needs}, got {' or '.join(kinds)}; call "
                f"{_EVALUATED_BY[self.needs]}() or choose another metric",
                parameter="metric",
            )

    def _run(self, *arguments: Any) -> Any:
        """What the function returns, a float for functions of labels; an error that names it where it raises."""
        try:
            result = self.function(*arguments)
            return float(result) if self.needs == "labels" else np.asarray(result, dtype=float)
        except TrueupError:
            raise
        except Exception as error:
            raise InvalidParameter(
                f"the metric {self.name!r} failed on a drawn truth, got {type(error).__name__}: {error}; mend the "
                "function, or let it return nan where it is undefined",
                parameter="metric",
            ) from error

    def _checked(self, values: Floats, shape: tuple[int, ...]) -> Floats:
        if values.shape != shape:
            raise InvalidParameter(
                f"the metric {self.name!r} must return an array of shape {shape}, one value a truth, got "
                f"{values.shape}; mend the function",
                parameter="metric",
            )
        return values


_Function = Callable[[Any, Any], float]
MetricLike = str | Metric | _Function | tuple[str, _Function] | Mapping[str, _Function]
_UNIT = (0.0, 1.0)
_AVERAGES = {
    "macro": "mean over the classes, which count alike",
    "micro": "decisions on all classes pooled",
    "weighted": "mean over the classes, weighted by their numbers of items",
}
_FBETA = re.compile(r"f_?(\d+(?:\.\d+)?|\.\d+)")
_PARTS = re.compile(r"([^@:]*)(?:@([^:]*))?(?::(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Family:
    """Metrics of one function that differ in one keyword of it, the `option`.

    "of" is a class (the positive one, or one by name) or an average over all; "k", a number of places, and "max_fpr", a
    false positive rate, stand after an @ in the name; "values" are the numbers of the classes, or their places where
    they are no numbers. The words speak of a class as ``{one}`` and ``{same}``, of a number as ``{n:g}``.
    """

    name: str
    function: Callable[..., Floats]
    words: str
    higher_is_better: bool | None = True
    option: Literal["of", "k", "max_fpr", "values"] = "of"
    bounds: tuple[float, float] | None = _UNIT  # None is from 0 to the largest distance of values

    @property
    def has_number(self) -> bool:
        """Whether a number stands in the name."""
        return self.option in ("k", "max_fpr")

    @property
    def needs(self) -> Needs:
        """What the function takes."""
        return "scores" if self.has_number else "counts"

    @property
    def names(self) -> list[str]:
        """The names that are listed, one with a number as an example."""
        if self.has_number:
            return [f"{self.name}@{10 if self.option == 'k' else 0.1}"]
        return [self.name, *(f"{average}_{self.name}" for average in self.averages)]

    @property
    def averages(self) -> tuple[str, ...]:
        """The averages that make sense; the mean of all classes' shares of the items tells nothing."""
        return tuple(_AVERAGES) if self.option == "of" and self.name != "prevalence" else ()

    def metric(self, name: str, value: Any, words: str, **rest: Any) -> Metric:
        """The metric for one value of the option."""
        about: dict[str, Any] = {"needs": self.needs, "bounds": self.bounds, "higher_is_better": self.higher_is_better}
        return Metric(name, partial(self.function, **{self.option: value}), description=words, **{**about, **rest})

    def at(self, text: str, asked: str) -> Metric:
        """The metric for a number that is still text; `asked` is the whole name, for the error."""
        number = float(text) if re.fullmatch(r"\d+(\.\d*)?|\.\d+", text) else math.nan
        places = self.option == "k"
        if not (number >= 1 and text.isdecimal() if places else 0 < number <= 1):
            takes = "k needs a whole number k of at least 1" if places else "f needs a false positive rate f in (0, 1]"
            raise _refusal(f"metric {self.name}@{takes}, got {asked!r}; write e.g. {self.names[0]!r}")
        name = f"{self.name}@{number:.15g}"
        return self.metric(name, int(number) if places else number, self.words.format(n=number))

    def of_values(self, labels: Sequence[Any]) -> Metric:
        """The metric for classes with these names."""
        values = class_values(labels)
        bounds = self.bounds or (0.0, max(values) - min(values))
        return self.metric(self.name, values, self.words, bounds=bounds, order=order_of(values))


def _fbeta_family(beta: float) -> Family:
    how = "" if beta == 1 else f", with recall counting {beta**2:g} times as much as precision"
    words = f"harmonic mean of the precision and the recall of {{one}}{how}"
    return Family(f"f{beta:g}", partial(confusion.fbeta, beta=beta), words)


_OUTSIDE = "share of the items outside {one} that are"
_TOP = "the {n:g} items with the highest scores"
_ROC_PART = "area under the ROC curve up to a false positive rate of {n:g}, scaled so that chance is ½"
_DISTANCE = "mean distance between the true and the predicted class, in their numbers or in steps of their order"
_SQUARES = "Cohen's kappa with squared distances between classes as weights"
_FAMILIES = (
    Family("precision", confusion.precision, "share of the items predicted as {one} that are of {same}"),
    Family("recall", confusion.recall, "share of the items of {one} that are predicted as {same}"),
    Family("specificity", confusion.specificity, f"{_OUTSIDE} not predicted as {{same}}"),
    Family("false_alarm_rate", confusion.false_alarm_rate, f"{_OUTSIDE} predicted as {{same}}", False),
    Family("prevalence", confusion.prevalence, "share of the items that are of {one}", None),
    *map(_fbeta_family, (0.5, 1.0, 2.0)),
    Family("precision", ranking.precision_at_k, f"share of positives among {_TOP}", option="k"),
    Family("recall", ranking.recall_at_k, f"share of the positives that are among {_TOP}", option="k"),
    Family("ndcg", ranking.ndcg, "discounted gain of the first {n:g} places over the best possible", option="k"),
    Family("partial_auc", ranking.partial_auc, _ROC_PART, option="max_fpr"),
    Family("mae", mean_absolute_error, _DISTANCE, False, "values", None),
    Family("quadratic_kappa", quadratic_kappa, _SQUARES, True, "values", (-1.0, 1.0)),
)
_CALIBRATION = "mean gap between confidence and accuracy in 15 bins; biased upwards on short lists"
_LOG_LOSS = "mean of −log p(true class), in nats"
_COUNTS: dict[str, Any] = {"bounds": _UNIT}
_SCORES: dict[str, Any] = {"needs": "scores", "bounds": _UNIT}
_PROBABILITIES: dict[str, Any] = {"needs": "probabilities", "bounds": _UNIT}
_LESS: dict[str, Any] = {"higher_is_better": False}
# name, function, what it is, and the rest of a Metric
_WHOLE: tuple[tuple[str, Callable[..., Floats], str, dict[str, Any]], ...] = (
    ("accuracy", confusion.accuracy, "share of the items predicted right", _COUNTS),
    ("error_rate", confusion.error_rate, "share of the items predicted wrong", _COUNTS | _LESS),
    ("balanced_accuracy", confusion.balanced_accuracy, "mean recall of the classes that occur", _COUNTS),
    ("mcc", confusion.mcc, "Matthews' correlation of truth and prediction", {"bounds": (-1.0, 1.0)}),
    ("kappa", confusion.kappa, "Cohen's kappa: agreement beyond chance", {"bounds": (-1.0, 1.0)}),
    ("auc", ranking.auc, "share of the pairs of a positive and a negative item in the right order", _SCORES),
    ("average_precision", ranking.average_precision, "precision at each positive item, averaged", _SCORES),
    ("ndcg", ranking.ndcg, "discounted gain of the ranking over the best possible", _SCORES),
    ("auc_ovr", probabilistic.auc_ovr, "AUC of each class against all others, averaged", _PROBABILITIES),
    ("auc_ovo", probabilistic.auc_ovo, "Hand and Till's mean AUC over pairs of classes", _PROBABILITIES),
    ("brier", probabilistic.brier, "mean squared error of the probabilities", _PROBABILITIES | _LESS),
    ("calibration_error", probabilistic.calibration_error, _CALIBRATION, _PROBABILITIES | _LESS),
    ("log_loss", probabilistic.log_loss, _LOG_LOSS, {**_PROBABILITIES, **_LESS, "bounds": (0.0, math.inf)}),
)
_ALIASES_OF = {
    "accuracy": ("acc",),
    "error_rate": ("error",),
    "kappa": ("cohen_kappa", "cohens_kappa"),
    "mcc": ("matthews_corrcoef",),
    "balanced_accuracy": ("bacc",),
    "precision": ("ppv", "positive_predictive_value"),
    "recall": ("tpr", "true_positive_rate", "sensitivity", "detection_rate"),
    "specificity": ("tnr", "true_negative_rate"),
    "false_alarm_rate": ("fpr", "false_positive_rate", "fall_out"),
    "prevalence": ("base_rate",),
    "f1": ("f", "f_score"),
    "mae": ("mean_absolute_error",),
    "quadratic_kappa": ("quadratic_weighted_kappa", "qwk"),
    "auc": ("roc_auc",),
    "auc_ovr": ("roc_auc_ovr",),
    "auc_ovo": ("roc_auc_ovo", "hand_till"),
    "average_precision": ("ap",),
    "log_loss": ("logloss", "cross_entropy"),
    "calibration_error": ("ece", "expected_calibration_error"),
}
_ALIASES = {alias: name for name, aliases in _ALIASES_OF.items() for alias in aliases}


def _refusal(sentence: str) -> InvalidParameter:
    return InvalidParameter(sentence, parameter="metric")


def _check_part(name: str, part: Any) -> None:
    """That what is to be registered is a metric of that name, which none of trueup's has."""
    key = _plain(name)
    if not key or not key.replace("_", "").isalnum():
        raise InvalidParameter(f"`name` must be a word of letters, digits and underscores, got {name!r}")
    if not isinstance(part, Metric) or _plain(part.name) != key:
        raise InvalidParameter(f"what is registered as {name!r} must be a Metric of that name, got {part!r:.80}")
    plain, average = _without_average(key)
    if key in _OWN_NAMES or _FBETA.fullmatch(plain) or (average and plain in _OWN_NAMES):
        raise InvalidParameter(f"`name` must not be that of a metric of trueup, got {name!r}; choose another")


METRICS: Registry[Metric | Family] = Registry(
    "metric",
    {
        **{f"{family.name}@" if family.has_number else family.name: family for family in _FAMILIES},
        **{name: Metric(name, function, description=words, **rest) for name, function, words, rest in _WHOLE},
    },
    aliases=_ALIASES,
    group="trueup.metrics",
    check=_check_part,
)
_OWN_NAMES = {*(family.name for family in _FAMILIES), *(row[0] for row in _WHOLE), *_ALIASES}


def list_metrics(needs: Needs | None = None) -> list[str]:
    """The names `get_metric` knows; any ``f<beta>``, ``name:class`` and other numbers after an @ are understood too.

    Parameters
    ----------
    needs : {"counts", "scores", "probabilities", "labels"}, optional. Only metrics that need this.

    Examples
    --------
    >>> "macro_f1" in list_metrics(), list_metrics("probabilities")
    (True, ['auc_ovo', 'auc_ovr', 'brier', 'calibration_error', 'log_loss'])
    """
    if needs is not None:
        check_choice(needs, NEEDS, name="needs")
    parts = [part for part in map(METRICS.__getitem__, METRICS) if needs in (None, part.needs)]
    return sorted(name for part in parts for name in ([part.name] if isinstance(part, Metric) else part.names))


def list_score_metrics() -> list[str]:
    """The names of metrics of scores and of probabilities; the same as `list_metrics` of these two."""
    return sorted([*list_metrics("scores"), *list_metrics("probabilities")])


def register_metric(
    name: str,
    function: Callable[..., Any],
    *,
    needs: Needs = "counts",
    bounds: tuple[float, float] = (-math.inf, math.inf),
    higher_is_better: bool | None = True,
    description: str = "",
) -> Metric:
    """Make a function known by a name. Packages may also list a `Metric` among their entry points "trueup.metrics".

    Parameters
    ----------
    name : str. A name that is not taken by a metric of trueup; registering the same name again replaces the function.
    function, needs, bounds, higher_is_better, description
        As for `Metric`.
    """
    about: dict[str, Any] = {"needs": needs, "bounds": bounds, "higher_is_better": higher_is_better}
    metric = Metric(_plain(name), function, description=description or f"the function {_plain(name)}", **about)
    METRICS.register(metric.name, metric)
    return metric


def as_metrics(
    metrics: MetricLike | Mapping[str, MetricLike] | Sequence[MetricLike],
    classes: Sequence[Any] | npt.NDArray[Any],
    positive: Any = None,
) -> dict[str, Metric]:
    """Metrics under the names that a caller will ask for them by.

    Parameters
    ----------
    metrics : str, Metric, callable, mapping or sequence
        One of what `as_metric` takes, several of them, or a mapping from names to them, as in
        ``{"cost": cost, "f1": "f1"}``. Names are kept as they were written.
    classes, positive
        As for `get_metric`.

    Examples
    --------
    >>> list(as_metrics(["F1", ("hits", lambda y, p: (y == p).sum())], ["no", "yes"]))
    ['F1', 'hits']
    """
    if not isinstance(metrics, str | Iterable) and not callable(metrics):
        raise InvalidParameter(
            f'`metrics` must be a metric, or a list or mapping of some, got {metrics!r}; pass e.g. ["accuracy"]',
        )
    if isinstance(metrics, Mapping):
        entries: list[Any] = list(metrics.items())
    else:
        entries = [metrics] if isinstance(metrics, str) or callable(metrics) else list(metrics)
    if not entries:
        raise InvalidParameter("`metrics` must name at least one metric, got none")
    named: dict[str, Metric] = {}
    for entry in entries:
        name, metric = _named(entry, classes, positive)
        if name in named:
            raise InvalidParameter(
                f"`metrics` must have different names, got {name!r} twice; name functions by a mapping, as in "
                '{"cost": cost}',
            )
        named[name] = metric
    return named


def as_metric(metric: MetricLike, classes: Sequence[Any] | npt.NDArray[Any], positive: Any = None) -> Metric:
    """A metric from its name, from a metric, from a function ``metric(y_true, y_pred) -> float``, or a named one.

    A function is named by a pair ``("cost", cost)`` or a mapping ``{"cost": cost}``; else it has the name it was
    defined by, and "function" where that is none.
    """
    return _named(metric, classes, positive)[1]


def _named(entry: Any, classes: Sequence[Any] | npt.NDArray[Any], positive: Any) -> tuple[str, Metric]:
    """A metric and the name it was asked for by."""
    if isinstance(entry, Mapping) and len(entry) == 1:
        entry = next(iter(entry.items()))
    if isinstance(entry, Metric):
        return entry.name, entry
    if isinstance(entry, str):
        return entry, get_metric(entry, classes, positive)
    if callable(entry):
        return _named((_name_of(entry), entry), classes, positive)
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
        name, metric = entry
        if isinstance(metric, str | Metric):
            return name, as_metric(metric, classes, positive)
        if callable(metric):
            words = f"the function {name} of the true and predicted classes"
            return name, Metric(name, metric, needs="labels", description=words)
    raise _refusal(
        "`metric` must be a name, a Metric, a function metric(y_true, y_pred), or a function with its name as in "
        f'{{"cost": cost}}, got {entry!r}'
    )


def _name_of(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return "function" if name == "<lambda>" else str(name)


def get_metric(name: str, classes: Sequence[Any] | npt.NDArray[Any], positive: Any = None) -> Metric:
    """The metric of this name for these classes.

    Hyphens and underscores are the same. ``"recall:cat"`` is the recall of the class whose str is ``cat``. Without a
    class, precision, recall, specificity, false-alarm rate and F-scores mean those of the positive class if there are
    two classes, and the macro average if there are more; ``"macro_"``, ``"micro_"`` and ``"weighted_"`` before the
    name ask for an average.

    Metrics of scores take all classes but the positive one as negative. A number stands after an @, as in
    ``"precision@10"``. ``"auc"`` needs scores where there are two classes; where there are more it is ``"auc_ovr"``,
    which needs probabilities.

    Parameters
    ----------
    name : str. See `list_metrics`.
    classes : sequence. The classes, in the order of the rows and columns of the counts.
    positive : optional. Which of two classes is the positive one; by default the second of `classes`.
    """
    labels = list(classes)
    if not isinstance(name, str):
        raise _refusal(f"`metric` must be a name, got {name!r}")
    if len({str(c) for c in labels}) < len(labels) or len(labels) < 2:
        raise InvalidParameter(f"classes must be at least two different ones, got {preview(labels)}")
    parts = _PARTS.fullmatch(name)
    assert parts is not None  # every text has a start
    base, number, class_text = parts.groups()
    key, average = _split(_plain(base))
    found = _look_up(key, number, name)
    if isinstance(found, Family) and found.option == "of":
        return _of_family(found, labels, average, class_text, positive, name)
    if average or class_text is not None:
        raise _refusal(f"metric {key!r} is one number for all classes, got {name!r}; ask for {key!r}")
    if isinstance(found, Family):
        return found.at((number or "").strip(), name) if found.has_number else found.of_values(labels)
    if len(labels) > 2 and key == "auc":
        return get_metric("auc_ovr", labels)
    if len(labels) > 2 and key == "brier":
        return replace(found, bounds=(0.0, 2.0))  # the sum over classes, see `brier`
    return found


def _look_up(key: str, number: str | None, name: str) -> Metric | Family:
    """What is registered by a plain name, with or without a number after it."""
    if f"{key}@" in METRICS and (number is not None or key not in METRICS):
        return METRICS[f"{key}@"]
    if key in METRICS:
        if number is not None:
            raise _refusal(f"metric {key} takes no number, got {name!r}; write {key!r}")
        return METRICS[key]
    match = _FBETA.fullmatch(key)
    if match is None:
        hint = did_you_mean(_plain(name.partition(":")[0]), [*list_metrics(), *_ALIASES])
        raise _refusal(f"`metric` must be one that `list_metrics()` lists, got {name!r}{hint}")
    if not float(match[1]) > 0:
        raise _refusal(f"metric 'f<beta>' needs a beta above 0, got {name!r}; that would be the precision")
    return _fbeta_family(float(match[1]))


def _of_family(
    family: Family, labels: list[Any], average: str | None, class_text: str | None, positive: Any, name: str
) -> Metric:
    """The metric of the class, the average or the positive class that a name asks for."""
    key, texts = family.name, [str(c) for c in labels]
    if average and (class_text is not None or average not in family.averages):
        raise _refusal(f"metric {name!r} asks for an average of what is one class's; leave out {average!r}")
    if average or (class_text is None and len(labels) > 2):
        if not family.averages:
            raise _refusal(
                f"metric {key!r} needs a class when there are {len(labels)}; ask for e.g. '{key}:{labels[0]}'"
            )
        words = family.words.format(one="a class", same="that class")
        how = average or "macro"
        return family.metric(f"{average}_{key}" if average else key, how, f"{words} ({_AVERAGES[how]})")
    if class_text is None:
        if positive is not None and str(positive) not in texts:
            raise InvalidParameter(f"`positive` must be one of {preview(texts)}, got {positive!r}")
        index, shown = 1 if positive is None else texts.index(str(positive)), key
    else:
        found = next((text for text in (class_text, class_text.strip()) if text in texts), None)
        if found is None:
            hint = did_you_mean(class_text, texts)
            raise _refusal(f"metric {name!r} must name one of the classes {preview(texts, most=10)}{hint}")
        index, shown = texts.index(found), f"{key}:{found}"
    one = f"class '{labels[index]}'" if isinstance(labels[index], str) else f"class {labels[index]}"
    return family.metric(shown, index, family.words.format(one=one, same=one))


def _plain(name: object) -> str:
    return re.sub(r"[\s\-]+", "_", str(name).strip().lower())


def _split(key: str) -> tuple[str, str | None]:
    """The registered name and the average asked for, also in scikit-learn's spelling ``f1_macro``."""
    if key in METRICS and key not in _ALIASES:
        return key, None
    key, average = _without_average(key)
    for plain in (key, key.removesuffix("_score")):
        if plain in _ALIASES:
            return _ALIASES[plain], average
    key = key.removesuffix("_score")
    match = _FBETA.fullmatch(key)
    return (f"f{float(match[1]):g}" if match else key), average


def _without_average(key: str) -> tuple[str, str | None]:
    for average in _AVERAGES:
        plain = key.removeprefix(f"{average}_").removesuffix(f"_{average}")
        if plain != key:
            return plain, average
    return key, None
