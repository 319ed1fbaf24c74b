"""Exact discrete distributions: the metric of finitely many items takes finitely many values."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from trueup.exceptions import InvalidParameter
from trueup.posteriors._atoms import AtomicEstimate
from trueup.posteriors._kde import bounded_kde
from trueup.posteriors.estimate import Array

__all__ = ["DiscreteEstimate"]

_SMOOTHING_DRAWS = 1e4  # sets how little the mode of unevenly spaced values is smoothed


class DiscreteEstimate(AtomicEstimate):
    """An exact distribution on finitely many values.

    Both kinds of interval hold *at least* the level asked for. `pdf` gives the probability of the value itself: it
    is zero between the points of the support.

    Parameters
    ----------
    support : array of shape (n,)
        The values; nan marks where the metric is undefined. Need not be sorted; equal values are merged.
    pmf : array of shape (n,)
        Their probabilities, summing to 1.
    bounds, name, undefined
        As for `Estimate`.

    Examples
    --------
    >>> e = DiscreteEstimate([0.0, 0.5, 1.0], [0.25, 0.5, 0.25], name="accuracy")
    >>> e.mean, e.prob_above(0.5), e.interval(0.6)
    (0.5, 0.25, (0.0, 0.5))
    """

    support: Array
    pmf: Array

    def __init__(
        self,
        support: npt.ArrayLike,
        pmf: npt.ArrayLike,
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        name: str | None = None,
        undefined: float = 0.0,
    ) -> None:
        super().__init__(bounds=bounds, name=name, undefined=undefined)
        total = float(np.sum(np.asarray(pmf, dtype=float)))
        if not abs(total - 1) < 1e-6:
            raise InvalidParameter(f"pmf must sum to 1, got a sum of {total:.6g}; divide by the sum if that is meant")
        self._set_atoms(support, pmf, what="support", slack=1e-13)
        self._set(support=self._x, pmf=self._p)

    @property
    def mode(self) -> float:
        """The most probable value.

        Where values are unevenly spaced, as fractions are, probability clumps on those with small denominators; then
        the mode is that of the smoothed distribution, unless one value has most of the probability.
        """
        if not len(self._x):
            return math.nan
        heaviest = int(np.argmax(self._p))
        gaps = np.diff(self._x)
        if len(gaps) < 2 or self._p[heaviest] > 0.5 or gaps.max() <= 1.01 * gaps.min():
            return float(self._x[heaviest])
        grid, density = self.smoothed()
        return float(grid[np.argmax(density)])

    def smoothed(self) -> tuple[Array, Array]:
        """A grid and a density on it: the distribution with its atoms smeared out a little, for plots and the mode."""
        return bounded_kde(self._x, self._p, _SMOOTHING_DRAWS, self.bounds)

    def _pdf(self, x: Array) -> Array:
        if not len(self._x):
            return np.full(np.shape(x), math.nan)
        # Support points are sums and ratios; a caller's k / n may differ from them in the last bit.
        right = np.minimum(np.searchsorted(self._x, x), len(self._x) - 1)
        left = np.maximum(right - 1, 0)
        nearest = np.where(np.abs(self._x[left] - x) < np.abs(self._x[right] - x), left, right)
        hit = np.abs(self._x[nearest] - x) <= 1e-12 * np.maximum(1.0, np.abs(x))
        return np.where(hit, self._p[nearest], 0.0)
