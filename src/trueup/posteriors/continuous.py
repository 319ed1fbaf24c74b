"""An estimate with a distribution that scipy knows, cut to the bounds of the metric."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import stats
from scipy.optimize import minimize_scalar

from trueup._validation import check_number
from trueup.exceptions import InvalidParameter
from trueup.posteriors._quantile_search import shortest_quantile_interval
from trueup.posteriors.discrete import DiscreteEstimate
from trueup.posteriors.estimate import Array, Estimate

__all__ = ["ContinuousEstimate", "beta_estimate", "normal_estimate"]

_NEGLIGIBLE = 1e-14  # mass outside the bounds that changes no moment


class _Distribution(Protocol):
    """What is used of a frozen scipy distribution."""

    def pdf(self, x: Any, /) -> Any: ...
    def cdf(self, x: Any, /) -> Any: ...
    def sf(self, x: Any, /) -> Any: ...
    def ppf(self, q: Any, /) -> Any: ...
    def isf(self, q: Any, /) -> Any: ...
    def mean(self) -> Any: ...
    def std(self) -> Any: ...


class ContinuousEstimate(Estimate):
    """A frozen scipy distribution, conditioned on lying within the bounds.

    Parameters
    ----------
    distribution : frozen scipy.stats distribution
        E.g. ``scipy.stats.beta(8, 3)``.
    bounds, name, undefined
        As for `Estimate`. Mass outside the bounds is cut off, and the rest scaled up.

    Examples
    --------
    >>> from scipy import stats
    >>> e = ContinuousEstimate(stats.beta(81, 21), name="accuracy")
    >>> e
    Estimate(accuracy: 0.794, 95% interval 0.715 to 0.870)
    """

    distribution: _Distribution

    def __init__(
        self,
        distribution: _Distribution,
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        name: str | None = None,
        undefined: float = 0.0,
    ) -> None:
        super().__init__(bounds=bounds, name=name, undefined=undefined)
        low, high = self.bounds
        below, above = float(distribution.cdf(low)), float(distribution.sf(high))
        # Far in the upper tail 1 - cdf has no digits left; there the survival function is the one to use.
        upper = below > 0.5
        inside = float(distribution.sf(low)) - above if upper else float(distribution.cdf(high)) - below
        if not inside > 0:
            raise InvalidParameter(
                f"distribution must have some mass within the bounds ({low:g}, {high:g}), got none; "
                "pass bounds=(low, high)"
            )
        self._set(distribution=distribution, _below=below, _above=above, _upper=upper, _inside=inside)

    _below: float
    _above: float
    _upper: bool
    _inside: float

    def _pdf(self, x: Array) -> Array:
        within = (x >= self.bounds[0]) & (x <= self.bounds[1])
        return np.where(within, np.asarray(self.distribution.pdf(x)) / self._inside, 0.0)

    def _cdf(self, x: Array) -> Array:
        x = np.clip(x, *self.bounds)
        if self._upper:
            share = 1 - (np.asarray(self.distribution.sf(x)) - self._above) / self._inside
        else:
            share = (np.asarray(self.distribution.cdf(x)) - self._below) / self._inside
        return np.clip(share, 0.0, 1.0)

    def _ppf(self, q: Array) -> Array:
        if self._upper:
            x = self.distribution.isf(self._above + (1 - q) * self._inside)
        else:
            x = self.distribution.ppf(self._below + q * self._inside)
        return np.asarray(np.clip(x, *self.bounds), dtype=float)

    def _hdi(self, level: float) -> tuple[float, float]:
        return shortest_quantile_interval(self._ppf, level)

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """Mean and standard deviation; E[g(M)] = g(low) + ∫ g'(x) P(M > x) dx needs only the bounded cdf."""
        if self._below <= _NEGLIGIBLE and self._above <= _NEGLIGIBLE:
            return float(self.distribution.mean()), float(self.distribution.std())
        low, center, high = self._ppf(np.array([1e-13, 0.5, 1 - 1e-13]))
        edges = np.unique(np.concatenate([np.linspace(low, high, 129), self._ppf(np.linspace(0.001, 0.999, 65))]))
        nodes, node_weights = np.polynomial.legendre.leggauss(8)
        half = np.diff(edges) / 2
        x = (edges[:-1] + half)[:, None] + half[:, None] * nodes
        weights = half[:, None] * node_weights * (1 - self._cdf(x))
        first = float(low - center + weights.sum())
        second = float((low - center) ** 2 + 2 * (weights * (x - center)).sum())
        return float(center) + first, math.sqrt(max(second - first**2, 0.0))

    @property
    def mean(self) -> float:
        """The posterior mean."""
        return self._moments[0]

    @property
    def std(self) -> float:
        """The posterior standard deviation."""
        return self._moments[1]

    @cached_property
    def mode(self) -> float:
        """The most probable value."""
        finite = [b for b in self.bounds if math.isfinite(b)]
        x = np.unique(np.concatenate([self._ppf(np.linspace(1e-6, 1 - 1e-6, 513)), finite]))
        density = self._pdf(x)
        best = int(np.nanargmax(density))
        if not math.isfinite(density[best]):
            return float(x[best])
        around = (x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)])
        found = minimize_scalar(lambda v: -float(self._pdf(np.array(v))), bounds=around, method="bounded")
        return float(found.x) if -float(found.fun) > density[best] else float(x[best])


def normal_estimate(
    mean: float,
    sd: float,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    name: str | None = None,
    undefined: float = 0.0,
) -> Estimate:
    """A normal distribution cut to the bounds; with ``sd=0`` all mass on the (clipped) mean."""
    mean = check_number(mean, name="mean")
    sd = check_number(sd, name="sd", low=0.0)
    if sd == 0:
        return DiscreteEstimate([float(np.clip(mean, *bounds))], [1.0], bounds=bounds, name=name, undefined=undefined)
    low, high = ((b - mean) / sd for b in bounds)
    cut: Any = stats.norm(mean, sd) if low < -9 and high > 9 else stats.truncnorm(low, high, mean, sd)
    return ContinuousEstimate(cut, bounds=bounds, name=name, undefined=undefined)


def beta_estimate(a: float, b: float, *, name: str | None = None) -> ContinuousEstimate:
    """A Beta(a, b) posterior of a share."""
    a = check_number(a, name="a", low=0.0, strict=True)
    b = check_number(b, name="b", low=0.0, strict=True)
    return ContinuousEstimate(stats.beta(a, b), name=name)
