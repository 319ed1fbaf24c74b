"""Metrics of classes that are numbers or in an order: how far off a prediction is, not only whether."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import numbers_of
from trueup.metrics.metric import Metric, Needs
from trueup.metrics.score_groups import ratio


def mean_absolute_error(counts: npt.ArrayLike, *, values: Sequence[float]) -> Floats:
    """The mean distance between the true and the predicted value.

    Parameters
    ----------
    counts : array of shape (..., C, C)
        Rows are the truth.
    values : sequence of C numbers
        The value of each class.

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
    counts : array of shape (..., C, C)
        Rows are the truth.
    values : sequence of C numbers
        The value of each class.

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
    """A metric of the values of the classes: their numbers, or their places where they are no numbers.

    The function takes counts and the keyword `values`.
    """

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
