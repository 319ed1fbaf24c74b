"""Su's normal counts: U and V as independent normal variables, metrics as ratios of normals."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from trueup._validation import RandomState, as_generator, check_integer
from trueup.estimators._ratios import linear_ratio
from trueup.estimators.lattice import two_class_counts
from trueup.estimators.posterior import JOINT_DRAWS, CountsPosterior, TruthSampler
from trueup.estimators.problem import Array, Codes
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.posteriors import DiscreteEstimate, DrawnEstimate, Estimate, JointEstimate, normal_estimate, normal_ratio

__all__ = ["NormalCounts", "normal_counts"]

_QUANTILES = 128  # of each count, for metrics that are no ratio: 16384 pairs


class NormalCounts(CountsPosterior):
    """U and V, the numbers of true positives and of misses, as independent normals (Su 2024, eqs. 11–16, times N).

    Accuracy and precision are then normal; recall, false-alarm rate and F-score are ratios of correlated normals
    (Appendix B, Table 16), with the density exact and cut to [0, 1]. What is no such ratio (Matthews' correlation,
    averages over classes) is computed on a grid of quantiles of U and V. About 30 items of each predicted class are
    needed for the approximation to be good.

    Parameters
    ----------
    mean_u, sd_u, mean_v, sd_v : float
        Moments of the two counts.
    n_positive, n_negative : int
        How many items are predicted as 1 and as 0.
    truths : callable, optional
        As for `DrawnCounts`.
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
        self.mean_u, self.sd_u = float(mean_u), float(sd_u)
        self.mean_v, self.sd_v = float(mean_v), float(sd_v)
        self.n_positive, self.n_negative = n_positive, n_negative
        self._truths = truths

    @property
    def mean_counts(self) -> Array:
        """The expected counts, shape (2, 2), rows the truth."""
        return two_class_counts(self.mean_u, self.mean_v, self.n_positive, self.n_negative)

    def _affine(self, weights: Array) -> tuple[float, float, float]:
        """⟨weights, counts⟩ as mean and coefficients of U and V."""
        # Each column of the counts has a known sum, so one more true positive is one less false one.
        mean = float((weights * self.mean_counts).sum())
        return mean, float(weights[1, 1] - weights[0, 1]), float(weights[1, 0] - weights[0, 0])

    def ratio_moments(self, numerator: Array, denominator: Array) -> tuple[float, float, float, float, float]:
        """Mean and deviation of ⟨numerator, counts⟩, the same of ⟨denominator, counts⟩, and their correlation."""
        mean_z, zu, zv = self._affine(numerator)
        mean_w, wu, wv = self._affine(denominator)
        sd_z = math.hypot(zu * self.sd_u, zv * self.sd_v)
        sd_w = math.hypot(wu * self.sd_u, wv * self.sd_v)
        covariance = zu * wu * self.sd_u**2 + zv * wv * self.sd_v**2
        rho = covariance / (sd_z * sd_w) if sd_z > 0 and sd_w > 0 else 0.0
        return mean_z, sd_z, mean_w, sd_w, rho

    def estimate(self, metric: Metric) -> Estimate:
        """The distribution of a metric."""
        ratio = linear_ratio(metric, 2)
        if ratio is None:
            return DrawnEstimate(metric(self._quantile_counts()), bounds=metric.bounds, name=metric.name)
        mean_z, sd_z, mean_w, sd_w, rho = self.ratio_moments(*ratio)
        if mean_w == 0 and sd_w == 0:
            return DiscreteEstimate([math.nan], [1.0], bounds=metric.bounds, name=metric.name)
        if sd_w == 0:
            return normal_estimate(mean_z / mean_w, sd_z / abs(mean_w), bounds=metric.bounds, name=metric.name)
        return normal_ratio(mean_z, sd_z, mean_w, sd_w, rho, bounds=metric.bounds, name=metric.name)

    def joint(self, a: Metric, b: Metric) -> JointEstimate:
        """The joint distribution of two metrics, smoothed from draws of the counts."""
        counts = self.draw_counts(JOINT_DRAWS, 0)
        return JointEstimate.from_draws(a(counts), b(counts), bounds=(a.bounds, b.bounds), names=(a.name, b.name))

    def cell(self, truth: int, prediction: int) -> Estimate:
        """The distribution of one count."""
        y, yhat = self._check_cell(truth, prediction)
        most = max(self.n_positive + self.n_negative, 1)
        mean, sd = float(self.mean_counts[y, yhat]), self.sd_u if yhat else self.sd_v
        return normal_estimate(mean, sd, bounds=(0.0, float(most)), name="count")

    def _quantile_counts(self) -> Array:
        z = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
        return self._counts_at(*(g.ravel() for g in np.meshgrid(z, z, indexing="ij")))

    def _counts_at(self, z_u: Array, z_v: Array) -> Array:
        u = np.clip(self.mean_u + self.sd_u * z_u, 0, self.n_positive)
        v = np.clip(self.mean_v + self.sd_v * z_v, 0, self.n_negative)
        return two_class_counts(u, v, self.n_positive, self.n_negative)

    def draw_counts(self, n: int, random_state: RandomState = None) -> Array:
        """`n` draws of the counts, shape (n, 2, 2); not rounded."""
        rng = as_generator(random_state)
        return self._counts_at(rng.standard_normal(check_integer(n, name="n", low=0)), rng.standard_normal(n))

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """`n` draws of the truth of all items, shape (n, n_items)."""
        if self._truths is None:
            raise InvalidParameter("these counts were made from moments alone and have no truths; pass truths=…")
        return self._truths(check_integer(n, name="n", low=0), as_generator(random_state))


def normal_counts(chances: Array, predictions: Codes, truths: TruthSampler | None = None) -> NormalCounts:
    """Normal counts from the chance of class 1 of each item (Su 2024, eqs. 11–16)."""
    moments: list[float] = []
    totals = []
    for predicted in (1, 0):
        p = chances[predictions == predicted]
        moments += [float(p.sum()), math.sqrt(float((p * (1 - p)).sum()))]
        totals.append(len(p))
    mean_u, sd_u, mean_v, sd_v = moments
    return NormalCounts(mean_u, sd_u, mean_v, sd_v, n_positive=totals[0], n_negative=totals[1], truths=truths)
