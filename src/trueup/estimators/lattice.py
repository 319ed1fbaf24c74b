"""The exact joint distribution of the two counts that two classes leave unknown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from trueup._validation import RandomState, as_generator, check_integer
from trueup.estimators.posterior import JOINT_DRAWS, CountsPosterior, TruthSampler, frozen
from trueup.estimators.problem import Array, Codes
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.posteriors import DiscreteEstimate, Estimate, JointEstimate

__all__ = ["LatticeCounts"]


class LatticeCounts(CountsPosterior):
    """Exact probabilities of (U, V), the numbers of true positives and of misses (Su 2024, eqs. 8 and 9, times N).

    The predictions are known, so U and V determine all four counts, and every metric has an exact distribution.

    Parameters
    ----------
    u, v : arrays of shape (n,)
        Pairs of counts: items of class 1 among those predicted as 1, and among those predicted as 0.
    pmf : array of shape (n,)
        Their probabilities, summing to 1.
    n_positive, n_negative : int
        How many items are predicted as 1 and as 0.
    truths : callable, optional
        As for `DrawnCounts`.

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
        self.u, self.v, self.pmf = frozen(u), frozen(v), frozen(pmf)
        self.n_positive, self.n_negative = n_positive, n_negative
        if not self.u.shape == self.v.shape == self.pmf.shape or self.u.ndim != 1:
            raise InvalidParameter(
                f"u, v and pmf must have one shape (n,), got {self.u.shape}, {self.v.shape} and {self.pmf.shape}"
            )
        self._truths = truths

    @property
    def mean_counts(self) -> Array:
        """The expected counts, shape (2, 2), rows the truth."""
        return self._counts(self.pmf @ self.u, self.pmf @ self.v)

    def _counts(self, u: npt.ArrayLike, v: npt.ArrayLike) -> Array:
        return two_class_counts(u, v, self.n_positive, self.n_negative)

    def estimate(self, metric: Metric) -> Estimate:
        """The exact distribution of a metric."""
        values = metric(self._counts(self.u, self.v))
        return DiscreteEstimate(values, self.pmf, bounds=metric.bounds, name=metric.name)

    def joint(self, a: Metric, b: Metric) -> JointEstimate:
        """The joint distribution of two metrics, smoothed from draws: the lattice itself has no density."""
        counts = self.draw_counts(JOINT_DRAWS, 0)
        smooth = JointEstimate.from_draws(a(counts), b(counts), bounds=(a.bounds, b.bounds), names=(a.name, b.name))
        return replace(smooth, means=(self.estimate(a).mean, self.estimate(b).mean))  # these are known exactly

    def cell(self, truth: int, prediction: int) -> Estimate:
        """The exact distribution of one count."""
        y, yhat = self._check_cell(truth, prediction)
        most = max(self.n_positive + self.n_negative, 1)
        counts = self._counts(self.u, self.v)[:, y, yhat]
        return DiscreteEstimate(counts, self.pmf, bounds=(0.0, float(most)), name="count")

    def draw_pairs(self, n: int, random_state: RandomState = None) -> tuple[Array, Array]:
        """`n` independent draws of U and of V."""
        rng = as_generator(random_state)
        chosen = rng.choice(len(self.pmf), size=check_integer(n, name="n", low=0), p=self.pmf / self.pmf.sum())
        return self.u[chosen], self.v[chosen]

    def draw_counts(self, n: int, random_state: RandomState = None) -> Array:
        """`n` independent draws of the counts, shape (n, 2, 2)."""
        return self._counts(*self.draw_pairs(n, random_state))

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """`n` draws of the truth of all items, shape (n, n_items)."""
        if self._truths is None:
            raise InvalidParameter("this lattice was made from counts alone and has no truths to draw; pass truths=…")
        return self._truths(check_integer(n, name="n", low=0), as_generator(random_state))


def two_class_counts(u: npt.ArrayLike, v: npt.ArrayLike, n_positive: int, n_negative: int) -> Array:
    """Counts of shape (..., 2, 2) from true positives `u` and misses `v`."""
    u, v = np.broadcast_arrays(np.asarray(u, dtype=float), np.asarray(v, dtype=float))
    counts = np.empty((*u.shape, 2, 2))
    counts[..., 0, 0], counts[..., 0, 1] = n_negative - v, n_positive - u
    counts[..., 1, 0], counts[..., 1, 1] = v, u
    return counts
