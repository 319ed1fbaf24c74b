"""Unbiased shares of the confusion cells, and what they say of every metric."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from trueup._validation import RandomState, as_generator, check_integer
from trueup.estimators._ratios import linear_ratio
from trueup.estimators.confidence import BootstrapEstimate, ScoreEstimate
from trueup.estimators.posterior import JOINT_DRAWS, CountsPosterior, frozen, point_estimate
from trueup.estimators.problem import Array, Codes
from trueup.estimators.sampling import covariance_root
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.posteriors import DiscreteEstimate, Estimate, JointEstimate

__all__ = ["UnbiasedCounts"]

_STEP = 1e-6  # of the numerical derivative, in shares
_FLAT_DRAWS = 4000
_BLOCK = 1 << 22  # numbers held at once


class UnbiasedCounts(CountsPosterior):
    r"""Unbiased shares of the cells (truth × prediction) in the population, with their covariance.

    Item i adds :math:`X_i = w_i e_{\hat y_i}^\top` with :math:`w_i = R_i^{-\top} e_{y'_i}`, and the share of a cell is
    the mean of :math:`X_i`. A metric that is a quotient of two linear forms, :math:`\theta = \langle A, \mu\rangle /
    \langle B, \mu\rangle`, is tested at each value: the mean of :math:`\langle A - \theta B, X_i\rangle` has
    expectation 0 and the variance

    .. math::

        V(\theta)/n, \qquad V(\theta) = V_\text{labels}(\theta) + D\,\theta(1-\theta)\,(c(1-\theta) + \kappa\theta)

    with :math:`D = \langle B, \mu\rangle`. The first term is what wrong labels add; the second is what drawing the
    items adds, for a share :math:`D\theta(1-\theta)`. Inverting the test gives Wilson's interval where labels are
    perfect, and for the accuracy with labels that are wrong at one rate β the interval of Dolatshah et al. (eq. 15)
    with the variance at the tested value. Other metrics are linearised (delta method). Near the ends of a metric's
    range `ScoreEstimate` keeps intervals inside, and as sure as they say.

    Parameters
    ----------
    shares : array of shape (n_classes, n_classes)
        The mean of X_i, rows the truth; sums to 1, and may have negative entries.
    moments : array of shape (n_classes, n_classes, n_classes)
        For each prediction the mean over all items of w_i w_iᵀ, 0 for items of other predictions.
    n_items : int
        The number of items.
    draws : array of shape (n_draws, n_classes, n_classes), optional
        Shares of resampled items; if given, intervals are those of the bootstrap.
    """

    def __init__(
        self, shares: npt.ArrayLike, moments: npt.ArrayLike, *, n_items: int, draws: npt.ArrayLike | None = None
    ) -> None:
        self.shares = frozen(shares)
        self.moments = frozen(moments)
        self.n_items = check_integer(n_items, name="n_items", low=1)
        self.draws = None if draws is None else frozen(draws)

    @property
    def counts(self) -> Array:
        """The unbiased counts: shares times the number of items."""
        return np.asarray(self.shares * self.n_items)

    @property
    def mean_counts(self) -> Array:
        """The shares themselves: the target is the population."""
        return self.shares

    def covariance(self, a: Array, b: Array) -> float:
        """The covariance of the means of ⟨a, X⟩ and ⟨b, X⟩, for weights of shape (n_classes, n_classes)."""
        mixed = self._moment(a, b) - float((a * self.shares).sum() * (b * self.shares).sum())
        return mixed / max(self.n_items - 1, 1)

    def _moment(self, a: Array, b: Array) -> float:
        """The mean of ⟨a, X⟩⟨b, X⟩; X has one column that is not 0, so blocks by prediction suffice."""
        return float(np.einsum("yt,tyv,vt->", a, self.moments, b))

    def estimate(self, metric: Metric) -> Estimate:
        """The unbiased (for quotients: consistent) value of a metric, with its interval."""
        value = float(metric(self.shares))
        ratio = linear_ratio(metric, self.n_classes)
        if self.draws is not None and not math.isnan(value):
            return self._spread(metric, value, metric(self.draws))
        if ratio is not None:
            return self._tested(*ratio, metric)
        if math.isnan(value):
            return DiscreteEstimate([math.nan], [1.0], bounds=metric.bounds, name=metric.name)
        return self._linearised(metric, value)

    def _tested(self, a: Array, b: Array, metric: Metric) -> Estimate:
        total = float((b * self.shares).sum())
        right = float((a * self.shares).sum())
        bounds = metric.bounds
        if not (b * np.abs(self.shares)).any():
            return DiscreteEstimate([math.nan], [1.0], bounds=bounds, name=metric.name)
        weight, other = float(a.max()), self._other_weight(a, b)
        noise = [self._label_noise(a, a), self._label_noise(a, b), self._label_noise(b, b)]

        def deviation(x: Array) -> Array:
            labels = np.maximum(noise[0] - 2 * x * noise[1] + x**2 * noise[2], 0.0)
            items = total * x * (1 - x) * (weight * (1 - x) + other * x)
            return np.asarray(np.sqrt((labels + items) / self.n_items) / total)

        if total <= 0:  # a denominator that chance made negative: no value can be rejected
            return ScoreEstimate(math.nan, lambda x: np.full(np.shape(x), np.inf), bounds=bounds, name=metric.name)
        return ScoreEstimate(right / total, deviation, bounds=bounds, name=metric.name)

    def _other_weight(self, a: Array, b: Array) -> float:
        """The mean weight in the denominator of an item that is no success (1, but for F-scores with β ≠ 1)."""
        rest = np.where(a > 0, 0.0, b)
        inside = rest[rest > 0]
        mass = np.maximum(self.shares, 0.0)
        if not inside.size:
            return 1.0
        held = float((rest * mass).sum())
        return float((rest**2 * mass).sum()) / held if held > 0 else float(inside.mean())

    def _label_noise(self, a: Array, b: Array) -> float:
        """The mean covariance of ⟨a, X⟩ and ⟨b, X⟩ that wrong labels add: 0 where all labels are perfect."""
        return self._moment(a, b) - float((a * b * self.shares).sum())

    def _linearised(self, metric: Metric, value: float) -> Estimate:
        slope = self.gradient(metric)
        variance = self.covariance(slope, slope) if np.isfinite(slope).all() else math.nan
        if not variance > 0:  # at an end of its range, where a metric may be flat: see how far its values reach
            return self._spread(metric, value, metric(self.draw_counts(_FLAT_DRAWS, 0)))
        se = math.sqrt(variance)
        return ScoreEstimate(value, lambda x: np.full(np.shape(x), se), bounds=metric.bounds, name=metric.name)

    def _spread(self, metric: Metric, value: float, values: Array) -> Estimate:
        if np.ptp(np.nan_to_num(values)) <= 1e-12:  # draws that are all alike say nothing of the spread
            return point_estimate(metric, value)
        return BootstrapEstimate(value, values, bounds=metric.bounds, name=metric.name)

    def gradient(self, metric: Metric) -> Array:
        """The derivative of a metric by each share, numerically; shape (n_classes, n_classes)."""
        c = self.n_classes
        slope = np.empty(c * c)
        rows = max(_BLOCK // (c * c), 1)
        for start in range(0, c * c, rows):
            cells = np.arange(start, min(start + rows, c * c))
            flat = np.zeros((len(cells), c * c))
            flat[np.arange(len(cells)), cells] = _STEP
            steps = flat.reshape(-1, c, c)
            slope[cells] = (metric(self.shares + steps) - metric(self.shares - steps)) / (2 * _STEP)
        return slope.reshape(c, c)

    def joint(self, a: Metric, b: Metric) -> JointEstimate:
        """The joint distribution of two metrics, smoothed from draws of the shares and cut to the bounds."""
        shares = self.draw_counts(JOINT_DRAWS, 0) if self.draws is None else self.draws
        x, y = (np.clip(metric(shares), *metric.bounds) for metric in (a, b))
        return JointEstimate.from_draws(x, y, bounds=(a.bounds, b.bounds), names=(a.name, b.name))

    def cell(self, truth: int, prediction: int) -> Estimate:
        """The share of one cell."""
        y, yhat = self._check_cell(truth, prediction)
        only = np.zeros((self.n_classes, self.n_classes))
        only[y, yhat] = 1.0
        return self._tested(only, np.ones_like(only), Metric("share", lambda counts: counts[..., y, yhat]))

    def draw_counts(self, n: int, random_state: RandomState = None) -> Array:
        """`n` draws of the shares: of the resamples, or from the normal law of the mean; may be negative."""
        rng = as_generator(random_state)
        if self.draws is not None:
            return np.asarray(self.draws[rng.integers(len(self.draws), size=check_integer(n, name="n", low=0))])
        c = self.n_classes
        noise = np.empty((check_integer(n, name="n", low=0), c, c))
        for prediction in range(c):
            noise[:, :, prediction] = rng.standard_normal((n, c)) @ covariance_root(self.moments[prediction])
        # Each X sums to 1, so taking μ times the sum away turns second moments into the covariance.
        noise -= self.shares * noise.sum(axis=(1, 2), keepdims=True)
        return np.asarray(self.shares + noise / math.sqrt(self.n_items))

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """Not there: a population is no list of items."""
        raise InvalidParameter(
            "the unbiased estimate is about rates of the population and has no items to draw the truth of; use "
            "method='bayes' for a metric(y_true, y_pred)"
        )
