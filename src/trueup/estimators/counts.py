"""The posterior of the confusion counts: what every evaluation method ends in, and metrics start from.

The predictions are known, so U and V, the numbers of true positives and of misses, determine all four counts (Su 2024,
eqs. 8 and 9, times N).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer, preview
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.metrics import counts as confusion
from trueup.posteriors import (
    DiscreteEstimate,
    DrawnEstimate,
    Estimate,
    JointEstimate,
    PointEstimate,
    normal_estimate,
    normal_ratio,
)

JOINT_DRAWS = 40_000  # draws that a joint density is smoothed from
TruthSampler = Callable[[int, np.random.Generator], Codes]


@dataclass(frozen=True)
class JointPoint:
    """The values of two metrics from a method that cannot say how sure it is: a point and no region."""

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

    _truths: TruthSampler | None = None

    @property
    @abstractmethod
    def mean_counts(self) -> Floats:
        """The expected counts, shape (n_classes, n_classes), rows the truth."""

    @abstractmethod
    def estimate(self, metric: Metric) -> Estimate:
        """The distribution of a metric."""

    @abstractmethod
    def joint(self, a: Metric, b: Metric) -> JointEstimate | JointPoint:
        """The joint distribution of two metrics, smoothed from draws."""

    @abstractmethod
    def cell(self, truth: int, prediction: int) -> Estimate:
        """The distribution of one count: items of class `truth` predicted as class `prediction`."""

    @abstractmethod
    def draw_counts(self, n: int, random_state: RandomState = None) -> Floats:
        """`n` draws of the counts, shape (n, n_classes, n_classes)."""

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """`n` draws of the truth of all items, shape (n, n_items), for metrics that need more than counts."""
        if self._truths is None:
            raise InvalidParameter(
                "these confusion counts have no truths to draw, so they cannot serve a metric(y_true, y_pred); use a "
                "metric of the confusion counts, or `method='bayes'`"
            )
        return self._truths(check_integer(n, name="n", low=0), as_generator(random_state))

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
    draws : array of shape (n_draws, n_classes, n_classes). Rows are the truth.
    weights : array of shape (n_draws,), optional. Not negative; need not sum to 1.
    truths : callable, optional. ``truths(n, rng)`` draws the truth of all items, shape (n, n_items).
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
        return np.asarray(np.average(self.draws, axis=0, weights=self.weights))

    def _values(self, metric: Metric) -> Floats:
        return metric(self.draws)

    def estimate(self, metric: Metric) -> Estimate:
        return DrawnEstimate(self._values(metric), self.weights, bounds=metric.bounds, name=metric.name)

    def joint(self, a: Metric, b: Metric) -> JointEstimate:
        x, y = self._values(a), self._values(b)
        return JointEstimate.from_draws(x, y, self.weights, bounds=(a.bounds, b.bounds), names=(a.name, b.name))

    def cell(self, truth: int, prediction: int) -> Estimate:
        y, yhat = self._check_cell(truth, prediction)
        return DrawnEstimate(self.draws[:, y, yhat], self.weights, bounds=(0.0, self._largest_total), name="count")

    @cached_property
    def _largest_total(self) -> float:
        """The most that a cell can be; one pass over all draws, which with hundreds of classes takes a second."""
        return max(float(self.draws.sum(axis=(1, 2)).max()), 1.0)

    def draw_counts(self, n: int, random_state: RandomState = None) -> Floats:
        p = None if self.weights is None else self.weights / self.weights.sum()
        return self.draws[as_generator(random_state).choice(len(self.draws), size=n, p=p)]


class DrawnRates(DrawnCounts):
    """Draws of the rates π(y) K[y, ŷ] of the population the items came from, in place of counts.

    Metrics do not change when all counts are scaled; `mean_counts`, `cell` and `draw_counts` give rates that sum to 1.
    """

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """Not there: a population is no list of items."""
        raise InvalidParameter(
            "`target='population'` is about rates and has no items to draw the truth of; use `target='sample'` for a "
            "metric(y_true, y_pred)"
        )


class PointCounts(CountsPosterior):
    """Counts from a method that cannot say how sure it is: every estimate is a `PointEstimate`.

    Parameters
    ----------
    counts : array of shape (n_classes, n_classes). Rows are the truth.
    truths : integer array of shape (n_items,), optional. The truth the method settled on.
    """

    def __init__(self, counts: npt.ArrayLike, truths: Codes | None = None) -> None:
        self.counts = frozen(counts)
        self.truths = truths

    @property
    def mean_counts(self) -> Floats:
        return self.counts

    def estimate(self, metric: Metric) -> Estimate:
        return point_estimate(metric, float(metric(self.counts)))

    def joint(self, a: Metric, b: Metric) -> JointPoint:
        return JointPoint((float(a(self.counts)), float(b(self.counts))), (a.name, b.name))

    def cell(self, truth: int, prediction: int) -> Estimate:
        y, yhat = self._check_cell(truth, prediction)
        mean = self.mean_counts
        return PointEstimate(mean[y, yhat], bounds=(0.0, max(float(mean.sum()), 1.0)), name="count")

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
    return InvalidParameter(f"this method gives numbers without uncertainty and has no {what}; use `method='bayes'`")


# ------------------ The joint distribution of the two counts that two classes leave unknown: exact, or normal.

_QUANTILES = 128  # of each count, for metrics that are no ratio: 16384 pairs


class TwoClassCounts(CountsPosterior):
    """What the two laws of U and V share: four counts from two, joint draws, and the truths behind them."""

    def __init__(self, n_positive: int, n_negative: int, truths: TruthSampler | None) -> None:
        self.n_positive, self.n_negative = n_positive, n_negative
        self._truths = truths

    def _counts(self, u: npt.ArrayLike, v: npt.ArrayLike) -> Floats:
        return two_class_counts(u, v, self.n_positive, self.n_negative)

    @property
    def _most(self) -> float:
        return float(max(self.n_positive + self.n_negative, 1))

    def joint(self, a: Metric, b: Metric) -> JointEstimate:
        counts = self.draw_counts(JOINT_DRAWS, 0)
        return JointEstimate.from_draws(a(counts), b(counts), bounds=(a.bounds, b.bounds), names=(a.name, b.name))


class LatticeCounts(TwoClassCounts):
    """Exact probabilities of (U, V), the numbers of true positives and of misses (Su 2024, eqs. 8 and 9, times N).

    Parameters
    ----------
    u, v : arrays of shape (n,). Pairs of counts: items of class 1 among those predicted as 1, and as 0.
    pmf : array of shape (n,). Their probabilities, summing to 1.
    n_positive, n_negative : int. How many items are predicted as 1 and as 0.
    truths : callable, optional. As for `DrawnCounts`.

    Examples
    --------
    >>> from trueup.metrics import get_metric
    >>> lattice = LatticeCounts([1, 2], [0, 0], [0.25, 0.75], n_positive=2, n_negative=3)
    >>> lattice.estimate(get_metric("precision", [0, 1])).pdf([0.5, 1.0]).tolist()
    [0.25, 0.75]
    """

    def __init__(
        self,
        u: npt.ArrayLike,
        v: npt.ArrayLike,
        pmf: npt.ArrayLike,
        *,
        n_positive: int,
        n_negative: int,
        truths: TruthSampler | None = None,
    ) -> None:
        super().__init__(n_positive, n_negative, truths)
        self.u, self.v, self.pmf = frozen(u), frozen(v), frozen(pmf)
        if not self.u.shape == self.v.shape == self.pmf.shape or self.u.ndim != 1:
            raise InvalidParameter(
                f"u, v and pmf must have one shape (n,), got {self.u.shape}, {self.v.shape} and {self.pmf.shape}"
            )

    @property
    def mean_counts(self) -> Floats:
        return self._counts(self.pmf @ self.u, self.pmf @ self.v)

    def estimate(self, metric: Metric) -> Estimate:
        values = metric(self._counts(self.u, self.v))
        return DiscreteEstimate(values, self.pmf, bounds=metric.bounds, name=metric.name)

    def joint(self, a: Metric, b: Metric) -> JointEstimate:
        means = (self.estimate(a).mean, self.estimate(b).mean)  # these are known exactly
        return replace(super().joint(a, b), means=means)

    def cell(self, truth: int, prediction: int) -> Estimate:
        y, yhat = self._check_cell(truth, prediction)
        counts = self._counts(self.u, self.v)[:, y, yhat]
        return DiscreteEstimate(counts, self.pmf, bounds=(0.0, self._most), name="count")

    def draw_pairs(self, n: int, random_state: RandomState = None) -> tuple[Floats, Floats]:
        """`n` independent draws of U and of V."""
        rng = as_generator(random_state)
        chosen = rng.choice(len(self.pmf), size=check_integer(n, name="n", low=0), p=self.pmf / self.pmf.sum())
        return self.u[chosen], self.v[chosen]

    def draw_counts(self, n: int, random_state: RandomState = None) -> Floats:
        return self._counts(*self.draw_pairs(n, random_state))


def two_class_counts(u: npt.ArrayLike, v: npt.ArrayLike, n_positive: int, n_negative: int) -> Floats:
    """Counts of shape (..., 2, 2) from true positives `u` and misses `v`."""
    u, v = np.broadcast_arrays(np.asarray(u, dtype=float), np.asarray(v, dtype=float))
    counts = np.empty((*u.shape, 2, 2))
    counts[..., 0, 0], counts[..., 0, 1] = n_negative - v, n_positive - u
    counts[..., 1, 0], counts[..., 1, 1] = v, u
    return counts


def linear_ratio(metric: Metric, n_classes: int) -> tuple[Floats, Floats] | None:
    """Weights (A, B) on the counts with metric = `A, counts` / `B, counts`, or None if it is no such quotient.

    Accuracy, precision, recall, false-alarm rate and F-score are (Su 2024, Table 8); a macro average, Matthews'
    correlation and kappa are not.
    """
    function = metric.function
    options = dict(function.keywords) if isinstance(function, partial) else {}
    function = function.func if isinstance(function, partial) else function
    everything, right = np.ones((n_classes, n_classes)), np.eye(n_classes)
    ratios: list[tuple[Any, Floats, Floats]] = [
        (confusion.accuracy, right, everything),
        (confusion.error_rate, everything - right, everything),
    ]
    of = options.get("of")
    if isinstance(of, int | np.integer):
        true, predicted = np.zeros((2, n_classes, n_classes))
        true[of], predicted[:, of] = 1.0, 1.0
        tp, fp, fn, tn = true * predicted, (1 - true) * predicted, true * (1 - predicted), (1 - true) * (1 - predicted)
        b2 = float(options.get("beta", 1.0)) ** 2
        ratios += [
            (confusion.prevalence, true, everything),
            (confusion.precision, tp, predicted),
            (confusion.recall, tp, true),
            (confusion.specificity, tn, 1 - true),
            (confusion.false_alarm_rate, fp, 1 - true),
            (confusion.fbeta, (1 + b2) * tp, (1 + b2) * tp + fp + b2 * fn),
        ]
    return next(((above, below) for known, above, below in ratios if known is function), None)


class NormalCounts(TwoClassCounts):
    """U and V, the numbers of true positives and of misses, as independent normals (Su 2024, eqs. 11–16, times N).

    Accuracy and precision are then normal; recall, false-alarm rate and F-score are ratios of correlated normals
    (Appendix B, Table 16), with the density exact and cut to [0, 1]. What is no such ratio (Matthews' correlation,
    averages over classes) is computed on a grid of quantiles of U and V. About 30 items of each predicted class are
    needed for the approximation to be good. `n_positive` and `n_negative` items are predicted as 1 and as 0.
    """

    def __init__(
        self,
        mean_u: float,
        sd_u: float,
        mean_v: float,
        sd_v: float,
        *,
        n_positive: int,
        n_negative: int,
        truths: TruthSampler | None = None,
    ) -> None:
        super().__init__(n_positive, n_negative, truths)
        self.mean_u, self.sd_u = float(mean_u), float(sd_u)
        self.mean_v, self.sd_v = float(mean_v), float(sd_v)

    @property
    def mean_counts(self) -> Floats:
        return self._counts(self.mean_u, self.mean_v)

    def _affine(self, weights: Floats) -> tuple[float, float, float]:
        """`weights, counts` as mean and coefficients of U and V."""
        # Each column of the counts has a known sum, so one more true positive is one less false one.
        mean = float((weights * self.mean_counts).sum())
        return mean, float(weights[1, 1] - weights[0, 1]), float(weights[1, 0] - weights[0, 0])

    def ratio_moments(self, numerator: Floats, denominator: Floats) -> tuple[float, float, float, float, float]:
        """Mean and deviation of `numerator, counts`, the same of `denominator, counts`, and their correlation."""
        mean_z, zu, zv = self._affine(numerator)
        mean_w, wu, wv = self._affine(denominator)
        sd_z = math.hypot(zu * self.sd_u, zv * self.sd_v)
        sd_w = math.hypot(wu * self.sd_u, wv * self.sd_v)
        covariance = zu * wu * self.sd_u**2 + zv * wv * self.sd_v**2
        rho = covariance / (sd_z * sd_w) if sd_z > 0 and sd_w > 0 else 0.0
        return mean_z, sd_z, mean_w, sd_w, rho

    def estimate(self, metric: Metric) -> Estimate:
        ratio = linear_ratio(metric, 2)
        if ratio is None:
            z = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
            counts = self._counts_at(*(grid.ravel() for grid in np.meshgrid(z, z, indexing="ij")))
            return DrawnEstimate(metric(counts), bounds=metric.bounds, name=metric.name)
        mean_z, sd_z, mean_w, sd_w, rho = self.ratio_moments(*ratio)
        if mean_w == 0 and sd_w == 0:
            return DiscreteEstimate([math.nan], [1.0], bounds=metric.bounds, name=metric.name)
        if sd_w == 0:
            return normal_estimate(mean_z / mean_w, sd_z / abs(mean_w), bounds=metric.bounds, name=metric.name)
        return normal_ratio(mean_z, sd_z, mean_w, sd_w, rho, bounds=metric.bounds, name=metric.name)

    def cell(self, truth: int, prediction: int) -> Estimate:
        y, yhat = self._check_cell(truth, prediction)
        mean, sd = float(self.mean_counts[y, yhat]), self.sd_u if yhat else self.sd_v
        return normal_estimate(mean, sd, bounds=(0.0, self._most), name="count")

    def _counts_at(self, z_u: Floats, z_v: Floats) -> Floats:
        u = np.clip(self.mean_u + self.sd_u * z_u, 0, self.n_positive)
        v = np.clip(self.mean_v + self.sd_v * z_v, 0, self.n_negative)
        return self._counts(u, v)

    def draw_counts(self, n: int, random_state: RandomState = None) -> Floats:
        rng = as_generator(random_state)
        return self._counts_at(rng.standard_normal(check_integer(n, name="n", low=0)), rng.standard_normal(n))


def normal_counts(chances: Floats, predictions: Codes, truths: TruthSampler | None = None) -> NormalCounts:
    """Normal counts from the chance of class 1 of each item (Su 2024, eqs. 11–16)."""
    p, q = chances[predictions == 1], chances[predictions == 0]
    moments = [float(moment) for x in (p, q) for moment in (x.sum(), math.sqrt(float((x * (1 - x)).sum())))]
    return NormalCounts(*moments, n_positive=len(p), n_negative=len(q), truths=truths)


_FAR = 37.0  # standard errors from which the normal tail has no digits left
_REACH = np.linspace(-9.0, 9.0, 1153)  # standard errors around the value, closely spaced
_CLOSER = np.outer([-1.0, 1.0], np.geomspace(1e-9, 1.0, 257)).ravel()  # shares of the bounds' distance around the value


class ScoreEstimate(Estimate):
    r"""A value and a test of every other value: P(M ≤ x) = Φ((x − value) / σ(x)).

    An interval holds the values that the test does not reject. Far from the bounds a value x is rejected if the
    estimate lies more than 1.96 σ(x) away. An unbiased estimate may lie outside of the bounds, and cutting the
    interval would then leave it empty. So the test orders estimates by how much better x explains them than the best
    value within the bounds does, as Feldman and Cousins do [1]_: it rejects where

    .. math:: \frac{(\hat\theta - x)^2 - d(\hat\theta)^2}{\sigma(x)^2} > c(x),

    with d the distance to the bounds and c(x) such that a true x is rejected as often as it should be. The interval is
    never empty, and covers as often as it says at the bounds too.

    .. [1] G. J. Feldman, R. D. Cousins, "Unified approach to the classical statistical analysis of small signals",
       Physical Review D 57 (1998).

    Parameters
    ----------
    value : float. The unbiased estimate; nan if there is none, and then no value within the bounds can be rejected.
    deviation : callable. From values x, shape (n,), to σ(x), the standard deviation of the estimate if x is true.
    bounds, name, undefined : as for `Estimate`

    Examples
    --------
    >>> e = ScoreEstimate(0.8, lambda x: np.full_like(x, 0.02), name="accuracy")
    >>> e
    Estimate(accuracy: 0.800, 95% interval 0.761 to 0.839)
    >>> above = ScoreEstimate(1.03, lambda x: np.full_like(x, 0.02))
    >>> round(above.mean, 3), [round(end, 3) for end in above.interval(0.95)]
    (1.03, [0.984, 1.0])
    """

    value: float
    _x: Floats
    _sd: Floats

    def __init__(
        self,
        value: float,
        deviation: Callable[[Floats], Floats],
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        name: str | None = None,
        undefined: float = 0.0,
    ) -> None:
        super().__init__(bounds=bounds, name=name, undefined=undefined)
        low, high = self.bounds
        near = np.array([float(np.clip(0.0 if math.isnan(value) else value, low, high))])
        sd = float(deviation(near)[0])
        # Finely around the value and coarsely elsewhere; bounds may be infinite, and nothing far away matters.
        reach = near + (sd if math.isfinite(sd) else 1.0) * _REACH
        points = [np.clip(reach, low, high), near]
        if math.isfinite(low) and math.isfinite(high):
            # Where σ vanishes at the value itself (all successes of many), only ever closer points tell the interval.
            points += [np.linspace(low, high, 513), np.clip(near + (high - low) * _CLOSER, low, high)]
        x = np.unique(np.concatenate(points))
        self._set(value=float(value), _x=x, _sd=np.maximum(np.asarray(deviation(x), dtype=float), 0.0), _se=sd)

    _se: float

    @property
    def mean(self) -> float:
        """The unbiased estimate, which may lie outside of the bounds."""
        return self.value

    @property
    def std(self) -> float:
        """The standard error, at the estimate."""
        return math.nan if math.isnan(self.value) else self._se

    @property
    def mode(self) -> float:
        """The estimate, cut to the bounds."""
        return float(np.clip(self.value, *self.bounds))

    @property
    def _z(self) -> Floats:
        """(x − value) / σ(x), increasing; 0 for all x if there is no value."""
        if math.isnan(self.value):
            return np.zeros_like(self._x)
        gap = self._x - self.value
        far = np.where(gap == 0, 0.0, np.copysign(_FAR, gap))
        z = np.divide(gap, self._sd, out=far, where=self._sd > 0)
        return np.maximum.accumulate(np.clip(z, -_FAR, _FAR))

    def _cdf(self, x: Floats) -> Floats:
        inside = ndtr(np.interp(np.clip(x, *self.bounds), self._x, self._z))
        below, beyond = x < self.bounds[0], x >= self.bounds[1]
        return np.where(np.isnan(x), math.nan, np.where(below, 0.0, np.where(beyond, 1.0, inside)))

    def _cdf_left(self, x: Floats) -> Floats:
        return np.where(x <= self.bounds[0], 0.0, self._cdf(np.nextafter(x, -math.inf)))

    def _ppf(self, q: Floats) -> Floats:
        wanted, z = np.clip(ndtri(q), -_FAR, _FAR), self._z
        x = np.interp(wanted, z, self._x)
        # What the test cannot reject within the bounds has its mass on them.
        return np.asarray(np.where(wanted < z[0], self.bounds[0], np.where(wanted > z[-1], self.bounds[1], x)))

    def _pdf(self, x: Floats) -> Floats:
        return np.interp(x, self._x, np.gradient(ndtr(self._z), self._x), left=0.0, right=0.0)

    def _hdi(self, level: float) -> tuple[float, float]:
        """The values that the test does not reject."""
        low, high = self.bounds
        if math.isnan(self.value):
            return low, high
        with np.errstate(divide="ignore", invalid="ignore"):  # σ may be 0 at a bound, and bounds infinite
            above, below = (high - self._x) / self._sd, (self._x - low) / self._sd
            outside = self.value - np.clip(self.value, low, high)
            excess = ((self.value - self._x) ** 2 - outside**2) / self._sd**2
        allowed = _critical(np.nan_to_num(above, nan=0.0), np.nan_to_num(below, nan=0.0), level)
        over = np.nan_to_num(excess, nan=0.0, posinf=_FAR**2) - allowed
        kept = np.flatnonzero(over <= 0)
        first, last = int(kept[0]), int(kept[-1])
        return self._crossing(over, first, -1), self._crossing(over, last, 1)

    def _crossing(self, over: Floats, inner: int, step: int) -> float:
        """Where the test begins to reject, between two points of the grid."""
        outer = inner + step
        if not 0 <= outer < len(over):
            return float(self._x[inner])
        share = -over[inner] / (over[outer] - over[inner])
        return float(self._x[inner] + share * (self._x[outer] - self._x[inner]))


def _critical(above: Floats, below: Floats, level: float) -> Floats:
    """The c of which a normal variable's ordering statistic stays below with probability `level`.

    `above` and `below` are the distances of the mean to the bounds in standard deviations, both arrays of shape (n,).
    Within the bounds the statistic is t² for a deviation t, and beyond a bound u away it is u (2t − u).
    """
    z = float(ndtri((1 + level) / 2))
    critical = np.full(above.shape, z**2)
    near = np.minimum(above, below) < z  # elsewhere the bounds are out of reach
    above, below = above[near], below[near]
    least, most = np.zeros_like(above), critical[near]
    for _ in range(40):
        middle = (least + most) / 2
        mass = ndtr(_reach(middle, above)) + ndtr(_reach(middle, below)) - 1
        least, most = np.where(mass < level, middle, least), np.where(mass < level, most, middle)
    critical[near] = most
    return critical


def _reach(c: Floats, to_bound: Floats) -> Floats:
    root = np.sqrt(c)
    far = np.divide(c, to_bound, out=np.full_like(c, np.inf), where=to_bound > 0)
    return np.where(root <= to_bound, root, (far + to_bound) / 2)


class BootstrapEstimate(DrawnEstimate):
    """The percentile bootstrap: a value, and the same statistic of resampled items, cut to the bounds."""

    value: float

    def __init__(
        self, value: float, draws: npt.ArrayLike, *, bounds: tuple[float, float] = (0.0, 1.0), name: str | None = None
    ) -> None:
        super().__init__(np.clip(np.asarray(draws, dtype=float), *bounds), bounds=bounds, name=name)
        self._set(value=float(value))

    @property
    def mean(self) -> float:
        """The estimate on the items themselves, which may lie outside of the bounds."""
        return self.value

    def _hdi(self, level: float) -> tuple[float, float]:
        """The percentiles, as in the literature."""
        low, high = self._ppf(np.array([(1 - level) / 2, (1 + level) / 2]))
        return float(low), float(high)
