"""Estimates with a confidence distribution: the mean is unbiased, and intervals come from inverting a test."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from trueup._base.types import Floats
from trueup.posteriors import DrawnEstimate, Estimate

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
    value : float
        The unbiased estimate, kept as `mean` even outside of the bounds; nan if there is none, and then no value
        within the bounds can be rejected.
    deviation : callable
        From values x of shape (n,) within the bounds to σ(x), the standard deviation of the estimate if x is true.
    bounds, name, undefined
        As for `Estimate`.

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
    """The percentile bootstrap: a value, and the same statistic of resampled items.

    Parameters
    ----------
    value : float. The estimate on the items themselves, kept as `mean` even outside of the bounds.
    draws : array of shape (n_draws,). The statistic of each resample; cut to the bounds.
    bounds, name
        As for `Estimate`.
    """

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
