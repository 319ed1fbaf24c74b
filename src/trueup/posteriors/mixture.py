"""Mixtures: the same metric under several explanations, each weighted by its probability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import RandomState, as_generator, check_integer, preview
from trueup.exceptions import InvalidParameter
from trueup.posteriors.atoms import DiscreteEstimate
from trueup.posteriors.estimate import Estimate, shortest_tail
from trueup.posteriors.point import PointEstimate

__all__ = ["MixtureEstimate", "mixture_estimate"]


def _checked(
    components: Sequence[Estimate], weights: npt.ArrayLike | None
) -> tuple[list[Estimate], Floats, float, tuple[float, float]]:
    """The components that say something, their weights given that the metric is defined, what is undefined, bounds."""
    n = len(components)
    share = np.full(n, 1.0) if weights is None else np.array(weights, dtype=float).ravel()
    if n == 0 or len(share) != n:
        raise InvalidParameter(f"weights must be one for each of at least one component, got {len(share)} for {n}")
    if not np.isfinite(share).all() or (share < 0).any() or not (share > 0).any():
        raise InvalidParameter(f"weights must be finite, not negative and somewhere positive, got {preview(share)}")
    share = share / share.sum()
    if any(isinstance(c, PointEstimate) for c in components):
        raise InvalidParameter("components must be distributions, got a PointEstimate, which has no spread to mix")
    bounds = (min(c.bounds[0] for c in components), max(c.bounds[1] for c in components))
    # Each component is conditioned on the metric being defined under it, so its weight shrinks by that chance.
    share = share * np.array([1 - c.undefined for c in components])
    defined = float(share.sum())
    kept = [c for c, s in zip(components, share, strict=True) if s > 0]
    return kept, share[share > 0] / defined if kept else share[:0], 1 - defined, bounds


def mixture_estimate(
    components: Sequence[Estimate], weights: npt.ArrayLike | None = None, *, name: str | None = None
) -> Estimate:
    """Mix distributions; exact discrete ones collapse to one exact `DiscreteEstimate`.

    Parameters
    ----------
    components : sequence of Estimate
        E.g. the distribution of the accuracy given each of several operating points.
    weights : array of shape (n_components,), optional
        Their probabilities; need not sum to 1; equal if not given.
    name : str, optional
        The name of the result.

    Examples
    --------
    >>> low, high = DiscreteEstimate([0.4, 0.5], [0.5, 0.5]), DiscreteEstimate([0.5, 0.6], [0.5, 0.5])
    >>> mixture_estimate([low, high], [1, 1]).pdf(0.5)
    0.5
    """
    kept, share, undefined, bounds = _checked(components, weights)
    discrete = [c for c in kept if isinstance(c, DiscreteEstimate)]
    if len(discrete) < len(kept):
        return MixtureEstimate(components, weights, name=name)
    if not kept:
        return DiscreteEstimate([math.nan], [1.0], bounds=bounds, name=name)
    support = np.concatenate([c.support for c in discrete])
    pmf = np.concatenate([s * c.pmf for s, c in zip(share, discrete, strict=True)])
    return DiscreteEstimate(support, pmf, bounds=bounds, name=name, undefined=undefined)


class MixtureEstimate(Estimate):
    """A weighted mixture of distributions of the same kind.

    Quantiles are found by bisection. Use `mixture_estimate`, which knows the simpler exact answer where there is
    one; `pdf` means a density only if no component has mass on single values.

    Parameters
    ----------
    components : sequence of Estimate
        Distributions of one metric; their bounds are joined.
    weights : array of shape (n_components,), optional
        Not negative; need not sum to 1; equal if not given.
    name : str, optional
        As for `Estimate`.
    """

    components: tuple[Estimate, ...]
    weights: Floats

    def __init__(
        self, components: Sequence[Estimate], weights: npt.ArrayLike | None = None, *, name: str | None = None
    ) -> None:
        kept, share, undefined, bounds = _checked(components, weights)
        super().__init__(bounds=bounds, name=name, undefined=undefined)
        self._set(components=tuple(kept), weights=share)

    def _mix(self, values: Sequence[float] | Sequence[Floats]) -> Floats:
        if not self.components:
            return np.array(math.nan)
        return np.tensordot(self.weights, np.asarray(values), axes=1)

    @property
    def mean(self) -> float:
        """The posterior mean."""
        return float(self._mix([c.mean for c in self.components]))

    @property
    def std(self) -> float:
        """The posterior standard deviation."""
        mean = self.mean
        return math.sqrt(float(self._mix([c.std**2 + (c.mean - mean) ** 2 for c in self.components])))

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Quantiles of all components, sorted, and the cdf of the mixture there."""
        q = np.linspace(0.0, 1.0, max(4096 // len(self.components), 64))
        x = np.unique(np.concatenate([c._ppf(q) for c in self.components]))
        x = x[np.isfinite(x)]
        return x, self._cdf(x)

    @property
    def mode(self) -> float:
        """The best of the quantiles and the components' own modes: a peak of a mixture may lie at neither."""
        if not self.components:
            return math.nan
        x = np.concatenate([self._table[0], [c.mode for c in self.components]])
        return float(x[np.argmax(self._pdf(x))])

    def _pdf(self, x: Floats) -> Floats:
        return np.broadcast_to(self._mix([c._pdf(x) for c in self.components]), np.shape(x))

    def _cdf(self, x: Floats) -> Floats:
        return np.broadcast_to(self._mix([c._cdf(x) for c in self.components]), np.shape(x))

    def _cdf_left(self, x: Floats) -> Floats:
        return np.broadcast_to(self._mix([c._cdf_left(x) for c in self.components]), np.shape(x))

    def _ppf(self, q: Floats) -> Floats:
        if not self.components:
            return np.full(np.shape(q), math.nan)
        # The quantile of a mixture lies between the smallest and the largest quantile of its components.
        ends = np.array([c._ppf(q) for c in self.components])
        low, high = ends.min(axis=0), ends.max(axis=0)
        finite = np.isfinite(low) & np.isfinite(high)
        edge = np.where(q <= 0, low, high)  # the answer where an end is infinite, which happens at q = 0 or 1 only
        low, high = np.where(finite, low, 0.0), np.where(finite, high, 0.0)
        for _ in range(54):
            middle = (low + high) / 2
            enough = self._cdf(middle) >= q - 1e-14
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(finite, high, edge)

    def _hdi(self, level: float) -> tuple[float, float]:
        if not self.components:
            return math.nan, math.nan
        # Bisection is too slow for a search; a table finds where the interval lies, bisection then its two ends.
        x, upto = self._table
        tail = shortest_tail(lambda q: np.interp(q, upto, x), level)
        low, high = self._ppf(np.array([tail, min(tail + level, 1.0)]))
        return float(low), float(high)

    def draws(self, n: int, random_state: RandomState = None) -> Floats:
        """`n` independent draws: a component by its weight, then a value from it."""
        rng = as_generator(random_state)
        values = np.full(check_integer(n, name="n", low=0), math.nan)
        if not self.components:
            return values
        chosen = rng.choice(len(self.components), size=n, p=self.weights)
        for k, component in enumerate(self.components):
            mine = chosen == k
            values[mine] = component.draws(int(mine.sum()), rng)
        return values
