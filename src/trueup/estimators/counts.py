"""The posterior of the confusion counts: what every evaluation method ends in, and metrics start from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer, preview
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.posteriors import DrawnEstimate, Estimate, JointEstimate, PointEstimate

JOINT_DRAWS = 40_000  # draws that a joint density is smoothed from
TruthSampler = Callable[[int, np.random.Generator], Codes]


@dataclass(frozen=True)
class JointPoint:
    """Two metrics from a method that cannot say how sure it is: a point and no region.

    Parameters
    ----------
    means : (float, float)
        The values of the two metrics.
    names : (str, str)
        What they are.
    """

    means: tuple[float, float]
    names: tuple[str, str] = ("x", "y")

    @property
    def mode(self) -> tuple[float, float]:
        """The point itself."""
        return self.means


class CountsPosterior(ABC):
    """The distribution of the confusion counts (truth × prediction) of the predicted items.

    Where a metric is undefined for some counts, its estimate is conditioned on the metric being defined, and
    `Estimate.undefined` says how much was conditioned away.
    """

    @property
    @abstractmethod
    def mean_counts(self) -> Floats:
        """The expected counts, shape (n_classes, n_classes), rows the truth."""

    @abstractmethod
    def estimate(self, metric: Metric) -> Estimate:
        """The distribution of a metric."""

    @abstractmethod
    def joint(self, a: Metric, b: Metric) -> JointEstimate | JointPoint:
        """The joint distribution of two metrics."""

    @abstractmethod
    def cell(self, truth: int, prediction: int) -> Estimate:
        """The distribution of one count: items of class `truth` predicted as class `prediction`."""

    @abstractmethod
    def draw_counts(self, n: int, random_state: RandomState = None) -> Floats:
        """`n` draws of the counts, shape (n, n_classes, n_classes)."""

    @abstractmethod
    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """`n` draws of the truth of all items, shape (n, n_items), for metrics that need more than counts."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.mean_counts)

    def _check_cell(self, truth: int, prediction: int) -> tuple[int, int]:
        for name, code in (("truth", truth), ("prediction", prediction)):
            if check_integer(code, name=name, low=0) >= self.n_classes:
                raise InvalidParameter(f"{name} must be a class code below {self.n_classes}, got {code}")
        return int(truth), int(prediction)


def frozen(values: npt.ArrayLike) -> Floats:
    """A read-only view as floats."""
    array = np.asarray(values, dtype=float).view()
    array.flags.writeable = False
    return array


class DrawnCounts(CountsPosterior):
    """Confusion counts known through (weighted) draws.

    Parameters
    ----------
    draws : array of shape (n_draws, n_classes, n_classes)
        Rows are the truth.
    weights : array of shape (n_draws,), optional
        Not negative; need not sum to 1.
    truths : callable, optional
        ``truths(n, rng)`` draws the truth of all items, shape (n, n_items).
    """

    draws: Floats
    weights: Floats | None

    def __init__(
        self, draws: npt.ArrayLike, weights: npt.ArrayLike | None = None, truths: TruthSampler | None = None
    ) -> None:
        self.draws = frozen(draws)
        if self.draws.ndim != 3 or self.draws.shape[1] != self.draws.shape[2] or not len(self.draws):
            raise InvalidParameter(f"draws must have the shape (draws, classes, classes), got {self.draws.shape}")
        self.weights = None if weights is None else frozen(weights)
        if self.weights is not None:
            usable = self.weights.shape == (len(self.draws),) and np.isfinite(self.weights).all()
            if not (usable and (self.weights >= 0).all() and self.weights.sum() > 0):
                raise InvalidParameter(f"weights must be one for each draw, not negative, got {preview(self.weights)}")
        self._truths = truths

    @property
    def mean_counts(self) -> Floats:
        """The expected counts, shape (n_classes, n_classes), rows the truth."""
        return np.asarray(np.average(self.draws, axis=0, weights=self.weights))

    def estimate(self, metric: Metric) -> Estimate:
        """The distribution of a metric, as draws."""
        return DrawnEstimate(metric(self.draws), self.weights, bounds=metric.bounds, name=metric.name)

    def joint(self, a: Metric, b: Metric) -> JointEstimate:
        """The joint distribution of two metrics, smoothed from the draws."""
        return JointEstimate.from_draws(
            a(self.draws), b(self.draws), self.weights, bounds=(a.bounds, b.bounds), names=(a.name, b.name)
        )

    def cell(self, truth: int, prediction: int) -> Estimate:
        """The distribution of one count, as draws."""
        y, yhat = self._check_cell(truth, prediction)
        return DrawnEstimate(self.draws[:, y, yhat], self.weights, bounds=(0.0, self._largest_total), name="count")

    @cached_property
    def _largest_total(self) -> float:
        """The most that a cell can be; one pass over all draws, which with hundreds of classes takes a second."""
        return max(float(self.draws.sum(axis=(1, 2)).max()), 1.0)

    def draw_counts(self, n: int, random_state: RandomState = None) -> Floats:
        """`n` of the draws, with replacement."""
        p = None if self.weights is None else self.weights / self.weights.sum()
        return self.draws[as_generator(random_state).choice(len(self.draws), size=n, p=p)]

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """`n` draws of the truth of all items, shape (n, n_items)."""
        if self._truths is None:
            raise InvalidParameter(
                "this method draws confusion counts but no truths, so it cannot serve a metric(y_true, y_pred); "
                "use a metric of the confusion counts, or ⟨method='bayes'⟩"
            )
        return self._truths(check_integer(n, name="n", low=0), as_generator(random_state))


class DrawnRates(DrawnCounts):
    """Draws of the rates π(y) K[y, ŷ] of the population the items came from, in place of counts.

    Metrics do not change when all counts are scaled, so the same functions apply; `mean_counts`, `cell` and
    `draw_counts` give rates that sum to 1.
    """

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """Not there: a population is no list of items."""
        raise InvalidParameter(
            "⟨target='population'⟩ is about rates and has no items to draw the truth of; use ⟨target='sample'⟩ for a "
            "metric(y_true, y_pred)"
        )


class PointCounts(CountsPosterior):
    """Counts from a method that cannot say how sure it is: every estimate is a `PointEstimate`.

    Parameters
    ----------
    counts : array of shape (n_classes, n_classes)
        Rows are the truth.
    truths : integer array of shape (n_items,), optional
        The truth the method settled on.
    """

    def __init__(self, counts: npt.ArrayLike, truths: Codes | None = None) -> None:
        self.counts = frozen(counts)
        self.truths = truths

    @property
    def mean_counts(self) -> Floats:
        """The counts themselves."""
        return self.counts

    def estimate(self, metric: Metric) -> Estimate:
        """The metric of the counts, without an interval."""
        return point_estimate(metric, float(metric(self.counts)))

    def joint(self, a: Metric, b: Metric) -> JointPoint:
        """Both metrics of the counts."""
        return JointPoint((float(a(self.counts)), float(b(self.counts))), (a.name, b.name))

    def cell(self, truth: int, prediction: int) -> Estimate:
        """The count, without an interval."""
        y, yhat = self._check_cell(truth, prediction)
        return PointEstimate(self.counts[y, yhat], bounds=(0.0, max(float(self.counts.sum()), 1.0)), name="count")

    def draw_counts(self, n: int, random_state: RandomState = None) -> Floats:
        """Not there: the spread is unknown."""
        raise no_spread("draws of the counts")

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """The truth the method settled on, `n` times: not draws, since the spread is unknown."""
        if self.truths is None:
            raise no_spread("a truth of each item")
        return np.broadcast_to(self.truths, (check_integer(n, name="n", low=0), len(self.truths)))


def point_estimate(metric: Metric, value: float) -> PointEstimate:
    """A value without an interval."""
    undefined = 1.0 if math.isnan(value) else 0.0
    return PointEstimate(value, bounds=metric.bounds, name=metric.name, undefined=undefined)


def no_spread(what: str) -> InvalidParameter:
    """The error of methods that give a number only."""
    return InvalidParameter(f"this method gives numbers without uncertainty and has no {what}; use ⟨method='bayes'⟩")
