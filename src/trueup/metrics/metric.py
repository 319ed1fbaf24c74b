"""What a metric is: a named function of confusion counts, of scores, of probabilities, or of true and said classes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_integer, numbers_of
from trueup.exceptions import InvalidParameter, TrueupError
from trueup.metrics.score_groups import check_codes, ratio

# ------------------ Metrics of classes that are numbers or in an order: how far off a prediction is, not only whether


def mean_absolute_error(counts: npt.ArrayLike, *, values: Sequence[float]) -> Floats:
    """The mean distance between the true and the predicted value.

    Parameters
    ----------
    counts : array of shape (..., C, C). Rows are the truth.
    values : sequence of C numbers. The value of each class.

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

    Parameters
    ----------
    counts : array of shape (..., C, C). Rows are the truth.
    values : sequence of C numbers. The value of each class.

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


@dataclass(frozen=True)
class RatingFamily:
    """A metric of the values of the classes: their numbers, or their places where they are no numbers."""

    needs: ClassVar[Needs] = "counts"

    name: str
    function: Callable[..., Floats]
    words: str
    higher_is_better: bool
    bounds: tuple[float, float] | None = None  # by default from 0 to the largest distance

    @property
    def names(self) -> list[str]:
        """The name that is listed."""
        return [self.name]

    def of(self, labels: Sequence[Any]) -> Metric:
        """The metric for some classes."""
        values = class_values(labels)
        bounds = self.bounds or (0.0, max(values) - min(values))
        return Metric(
            self.name,
            partial(self.function, values=values),
            bounds=bounds,
            higher_is_better=self.higher_is_better,
            description=self.words,
            order=order_of(values),
        )


def class_values(labels: Sequence[Any]) -> tuple[float, ...]:
    """The numbers that classes are, also where they are written as text; else their places."""
    values = numbers_of(labels)
    return tuple(map(float, range(len(labels)))) if values is None or len(set(values)) < len(values) else values


def order_of(values: Sequence[float]) -> tuple[int, ...]:
    """The positions of classes from the lowest value to the highest."""
    return tuple(np.argsort(values, kind="stable").tolist())


RATING_FAMILIES = (
    RatingFamily(
        "mae",
        mean_absolute_error,
        "mean distance between the true and the predicted class, in their numbers or in steps of their order",
        higher_is_better=False,
    ),
    RatingFamily(
        "quadratic_kappa",
        quadratic_kappa,
        "Cohen's kappa with squared distances between classes as weights",
        higher_is_better=True,
        bounds=(-1.0, 1.0),
    ),
)


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
            raise InvalidParameter(f"`name` of a metric must be a word, got {self.name!r}", parameter="name")
        if not callable(self.function):
            raise InvalidParameter(
                f"`function` of the metric {self.name!r} must be callable, got {self.function!r}", parameter="function"
            )
        check_choice(self.needs, NEEDS, name="needs")
        if not _are_bounds(self.bounds):
            raise InvalidParameter(
                f"`bounds` of the metric {self.name!r} must be a smaller and a larger number, got {self.bounds!r}; "
                "pass e.g. (0.0, 1.0)",
                parameter="bounds",
            )
        if self.higher_is_better not in (True, False, None):
            raise InvalidParameter(
                f"`higher_is_better` of the metric {self.name!r} must be True, False or None, got "
                f"{self.higher_is_better!r}",
                parameter="higher_is_better",
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
        rows, said = np.asarray(truths), np.asarray(predictions)
        names = None if classes is None else np.asarray(classes)
        said = said if names is None else names[said]
        values = np.empty(len(rows))
        others: dict[tuple[type[Warning], str], warnings.WarningMessage] = {}
        for k, truth in enumerate(rows):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                values[k] = self._run(truth if names is None else names[truth], said)
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


def _are_bounds(bounds: Any) -> bool:
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        return False
    return low < high
