"""The shape every answer comes in: a distribution of a metric, with a mean, an interval, a density and draws.

Exact discrete distributions and draws put their mass on finitely many points; `continuous` has the others.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NoReturn, Self, overload

import numpy as np
import numpy.typing as npt
import scipy
from scipy import fft

from trueup._base.html import html_table
from trueup._base.optional import require
from trueup._base.types import Floats
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_integer,
    check_level,
    check_number,
    preview,
)
from trueup.exceptions import InvalidParameter

Many = Sequence[float] | npt.NDArray[Any]
IntervalKind = Literal["hdi", "equal"]
_KINDS: tuple[IntervalKind, ...] = ("hdi", "equal")


class Estimate(ABC):
    """The distribution of a metric, given everything that was observed.

    An estimate is a value: it never changes, and its arrays are read-only. Where the metric has no value for some
    of the possible truths (a recall without positives), the distribution is conditioned on the metric being
    defined, and `undefined` says how much was conditioned away. If nothing is left, the mean, the interval and all
    probabilities are nan.

    Parameters
    ----------
    bounds : (float, float). The smallest and the largest value the metric can take; infinite where there is no limit.
    name : str, optional. What was measured, e.g. ``"accuracy"``.
    undefined : float. The share of the posterior mass on which the metric is undefined.
    """

    bounds: tuple[float, float]
    name: str | None
    undefined: float

    def __init__(
        self, *, bounds: tuple[float, float] = (0.0, 1.0), name: str | None = None, undefined: float = 0.0
    ) -> None:
        try:
            low, high = (float(b) for b in bounds)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not low < high:
            raise InvalidParameter(f"bounds must be a pair (low, high) with low < high, got {bounds!r}")
        if not -1e-9 <= undefined <= 1 + 1e-9:
            raise InvalidParameter(f"undefined must be a share in [0, 1], got {undefined!r}")
        self._set(bounds=(low, high), name=name, undefined=min(max(float(undefined), 0.0), 1.0))

    def _set(self, **fields: Any) -> None:
        """Set fields of a frozen object while it is being built; arrays become read-only."""
        for field, value in fields.items():
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            object.__setattr__(self, field, value)

    def __setattr__(self, field: str, value: object) -> NoReturn:
        raise AttributeError(f"an estimate does not change: cannot set {field!r}")

    def __delattr__(self, field: str) -> NoReturn:
        raise AttributeError(f"an estimate does not change: cannot delete {field!r}")

    # What a kind of distribution must bring.

    _moments: tuple[float, float]  # mean and standard deviation

    @property
    @abstractmethod
    def mode(self) -> float:
        """The most probable value."""

    @abstractmethod
    def _pdf(self, x: Floats) -> Floats: ...

    @abstractmethod
    def _cdf(self, x: Floats) -> Floats: ...

    @abstractmethod
    def _ppf(self, q: Floats) -> Floats: ...

    def _hdi(self, level: float) -> tuple[float, float]:
        """The shortest interval of this level; for a density with one peak that is the highest-density interval."""
        tails = np.linspace(0.0, 1.0 - level, 201)  # the mass left below the interval
        tail = 0.0
        for _ in range(4):
            low, high = np.split(self._ppf(np.concatenate([tails, np.minimum(tails + level, 1.0)])), 2)
            best = int(np.argmin(high - low))
            tail = float(tails[best])
            tails = np.linspace(tails[max(best - 1, 0)], tails[min(best + 1, len(tails) - 1)], 41)
        low, high = self._ppf(np.array([tail, min(tail + level, 1.0)]))
        return float(low), float(high)

    def _cdf_left(self, x: Floats) -> Floats:
        """P(M < x); differs from the cdf only where single values have mass."""
        return self._cdf(x)

    # What every distribution can then do.

    @property
    def mean(self) -> float:
        """The posterior mean: the estimate with the smallest expected squared error."""
        return self._moments[0]

    @property
    def std(self) -> float:
        """The posterior standard deviation."""
        return self._moments[1]

    @property
    def median(self) -> float:
        """The value below and above which half of the mass lies."""
        return float(self._ppf(np.array(0.5)))

    def interval(self, level: float = 0.95, kind: IntervalKind = "hdi") -> tuple[float, float]:
        """A credible interval that holds (at least) `level` of the mass.

        Parameters
        ----------
        level : float. The mass inside, e.g. 0.95.
        kind : {"hdi", "equal"}. The shortest such interval, or the one with equal mass on both sides.
        """
        level = check_level(level)
        if check_choice(kind, _KINDS, name="kind") == "hdi":
            return self._hdi(level)
        tail = (1 - level) / 2
        low, high = self._ppf(np.array([tail, 1 - tail]))
        return float(low), float(high)

    @overload
    def pdf(self, x: float) -> float: ...
    @overload
    def pdf(self, x: Many) -> Floats: ...
    def pdf(self, x: float | Many) -> float | Floats:
        """The density at `x`; for an exact discrete distribution the probability of `x` itself."""
        return plain(self._pdf(np.asarray(x, dtype=float)))

    @overload
    def cdf(self, x: float) -> float: ...
    @overload
    def cdf(self, x: Many) -> Floats: ...
    def cdf(self, x: float | Many) -> float | Floats:
        """P(M ≤ x)."""
        return plain(self._cdf(np.asarray(x, dtype=float)))

    @overload
    def ppf(self, q: float) -> float: ...
    @overload
    def ppf(self, q: Many) -> Floats: ...
    def ppf(self, q: float | Many) -> float | Floats:
        """The quantile: the smallest x with P(M ≤ x) ≥ q."""
        shares = np.asarray(q, dtype=float)
        if not ((shares >= 0) & (shares <= 1)).all():
            raise InvalidParameter(f"q must lie in [0, 1], got {q!r}")
        return plain(self._ppf(shares))

    def prob_above(self, x: float) -> float:
        """P(M > x)."""
        return float(1 - self._cdf(np.array(float(x))))

    def prob_below(self, x: float) -> float:
        """P(M < x)."""
        return float(self._cdf_left(np.array(float(x))))

    def draws(self, n: int, random_state: RandomState = None) -> Floats:
        """`n` independent draws from the distribution."""
        rng = as_generator(random_state)
        return self._ppf(rng.random(check_integer(n, name="n", low=0)))

    def named(self, name: str | None) -> Self:
        """The same distribution under another name."""
        other = copy.copy(self)
        other._set(name=name)
        return other

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """A summary that can be written as JSON; what has no value is ``None``."""
        low, high = self.interval(level)
        numbers = {
            "mean": self.mean,
            "median": self.median,
            "mode": self.mode,
            "std": self.std,
            "level": level,
            "low": low,
            "high": high,
            "undefined": self.undefined,
        }
        written = {key: float(value) if math.isfinite(value) else None for key, value in numbers.items()}
        return {"name": self.name, **written}

    def plot(self, ax: Any = None, level: float = 0.95) -> Any:
        """Draw the distribution, its mean and its interval; return the matplotlib axes."""
        level = check_level(level)
        ax = new_axes(ax, purpose="Estimate.plot()")
        ax.set_xlabel(self.name or "value")
        ax.set_yticks([])
        if not math.isnan(self.std):
            _draw_distribution(self, ax, level)
        if not math.isnan(self.mean):
            ax.axvline(self.mean, color=_COLOR, linestyle="--", linewidth=1, label=f"mean {self.mean:.3g}")
            ax.legend(frameon=False, loc="upper left")
        return ax

    def _repr_html_(self) -> str:
        """A small table with a bar, for notebooks."""
        return html_table("Estimate", [(self.name or "value", self.mean, *self.interval())], bounds=self.bounds)

    def __repr__(self) -> str:
        label = f"{self.name}: " if self.name else ""
        if math.isnan(self.mean):
            return f"Estimate({label}undefined)"
        # Decimals that show two significant digits of the standard deviation, and no more.
        varies = math.isfinite(self.std) and self.std > 0
        digits = min(max(1 - math.floor(math.log10(self.std)), 0), 12) if varies else 3
        low, high = self.interval(0.95)
        note = f", undefined for {self.undefined:.2g} of the posterior" if self.undefined > 0 else ""
        return f"Estimate({label}{self.mean:.{digits}f}, 95% interval {low:.{digits}f} to {high:.{digits}f}{note})"


def plain(values: npt.NDArray[Any]) -> float | Floats:
    """A number for a number, an array for an array."""
    return values.item() if np.ndim(values) == 0 else np.asarray(values)


_COLOR = "#1f5a93"


def new_axes(ax: Any, *, purpose: str, **figure: Any) -> Any:
    """These axes, or those of a new figure with such options."""
    pyplot = require("matplotlib.pyplot", purpose=purpose)
    return pyplot.subplots(layout="constrained", **figure)[1] if ax is None else ax


def _draw_distribution(estimate: Estimate, ax: Any, level: float) -> None:
    low, high = estimate.interval(level)
    label = f"{level:.0%} interval {low:.3g} to {high:.3g}"
    atoms = getattr(estimate, "support", None)
    if estimate.std == 0 or (atoms is not None and len(atoms) <= 200):  # more are better shown as a line
        x = np.array([estimate.mean]) if atoms is None else atoms
        height = np.ones(1) if atoms is None else estimate.pdf(x)
        inside = (x >= low) & (x <= high)
        ax.vlines(x[~inside], 0, height[~inside], color=_COLOR, alpha=0.35, linewidth=2)
        ax.vlines(x[inside], 0, height[inside], color=_COLOR, linewidth=2, label=label)
        return
    ends = estimate.ppf([0.0005, 0.9995])
    x = np.unique(np.concatenate([np.linspace(ends[0], ends[1], 400), [low, high]]))
    smoothed = getattr(estimate, "smoothed", None)  # many atoms are shown as the density that they come near to
    height = estimate.pdf(x) if smoothed is None else np.interp(x, *smoothed())
    ax.plot(x, height, color=_COLOR, linewidth=1.5)
    inside = (x >= low) & (x <= high)
    ax.fill_between(x[inside], height[inside], color=_COLOR, alpha=0.25, linewidth=0, label=label)
    ax.set_ylim(bottom=0)


_REACH = 4.0  # a Gaussian kernel is cut off here, in bandwidths
_MOST_BINS = 1 << 16


def silverman(x: Floats, p: Floats, n_draws: float) -> float:
    """Silverman's bandwidth for sorted distinct values `x` with weights `p`."""
    std = float(np.sqrt(p @ (x - p @ x) ** 2))
    quartiles = x[np.minimum(np.searchsorted(np.cumsum(p), [0.25, 0.75]), len(x) - 1)]
    # On a coarse lattice the quartiles may coincide; then only the standard deviation tells the spread.
    spread = min(std, float(quartiles[1] - quartiles[0]) / 1.34) or std
    return 0.9 * spread / math.pow(n_draws, 0.2)


def fold(full: Floats, margin: int) -> Floats:
    """Reflect what lies in the margins on both sides of the first axis back into the middle."""
    inside = full[margin : len(full) - margin].copy()
    reach = min(margin + 1, len(inside))
    inside[:reach] += full[margin::-1][:reach]
    inside[len(inside) - reach :] += full[len(full) - margin - 1 :][:reach][::-1]
    return inside


def bounded_kde(x: Floats, p: Floats, n_draws: float, bounds: tuple[float, float]) -> tuple[Floats, Floats]:
    """Density on a grid, with the mass that leaks over a bound reflected back."""
    width = max(silverman(x, p, n_draws), 1e-9 * float(x[-1] - x[0]))
    low = max(bounds[0], float(x[0]) - _REACH * width)
    high = min(bounds[1], float(x[-1]) + _REACH * width)
    n_grid = int(np.clip(np.ceil((high - low) / (width / 4)), 256, _MOST_BINS))
    grid = np.linspace(low, high, n_grid)
    step = grid[1] - grid[0]
    width = max(width, float(step))
    margin = int(np.ceil(_REACH * width / step))
    kernel = np.exp(-0.5 * (np.arange(-margin, margin + 1) * step / width) ** 2)
    # The weight of each value is shared between its two neighbours on the grid.
    position = (x - grid[0]) / step
    left = np.clip(np.floor(position).astype(np.intp), 0, n_grid - 2)
    right_share = np.clip(position - left, 0.0, 1.0)
    mass = np.bincount(left, weights=p * (1 - right_share), minlength=n_grid)
    mass = mass + np.bincount(left + 1, weights=p * right_share, minlength=n_grid)
    density = fold(np.convolve(mass, kernel), margin)
    return grid, density / scipy.integrate.trapezoid(density, grid)


class PointEstimate(Estimate):
    """A bare number from a method that cannot say how sure it is.

    Not a distribution with all mass on one value: the spread is unknown, so the standard deviation, the interval,
    all probabilities and all draws are nan.

    Parameters
    ----------
    value : float. The number; nan if there is none.
    bounds, name, undefined
        As for `Estimate`. The value may lie outside the bounds: such methods do that.

    Examples
    --------
    >>> PointEstimate(0.871, name="accuracy")
    Estimate(accuracy: 0.871, no interval)
    """

    value: float

    def __init__(
        self, value: float, *, bounds: tuple[float, float] = (0.0, 1.0), name: str | None = None, undefined: float = 0.0
    ) -> None:
        super().__init__(bounds=bounds, name=name, undefined=undefined)
        self._set(value=float(value), _moments=(float(value), math.nan))

    @property
    def median(self) -> float:
        """The value itself."""
        return self.value

    @property
    def mode(self) -> float:
        """The value itself."""
        return self.value

    def _pdf(self, x: Floats) -> Floats:
        return np.full(np.shape(x), math.nan)

    def _ppf(self, q: Floats) -> Floats:
        return np.full(np.shape(q), math.nan)

    _cdf = _pdf

    def draws(self, n: int, random_state: RandomState = None) -> Floats:
        """All nan: the spread is unknown."""
        return np.full(check_integer(n, name="n", low=0), math.nan)

    def __repr__(self) -> str:
        label = f"{self.name}: " if self.name else ""
        value = "undefined" if math.isnan(self.value) else f"{self.value:.4g}"
        return f"Estimate({label}{value}, no interval)"


_SLACK = 1e-12  # sums of probabilities are right to about this much
_ALMOST_ALL = 0.9  # of the mass, that one value has
_OUTSIDE = 1e-9  # rounding may carry a value this far over a bound


def shortest_window(x: Floats, p: Floats, level: float) -> tuple[float, float]:
    """The shortest interval [x_i, x_j] with mass of at least `level`; of equally short ones the heaviest."""
    upto = np.concatenate([[0.0], np.cumsum(p)])
    target = level * upto[-1] - _SLACK
    last = np.searchsorted(upto, upto[:-1] + target, side="left")
    starts = np.flatnonzero(last <= len(x))
    ends = np.maximum(last[starts] - 1, starts)
    width = x[ends] - x[starts]
    shortest = np.flatnonzero(width <= width.min() + 1e-12 * max(x[-1] - x[0], 1e-300))
    heaviest = shortest[np.argmax(upto[ends[shortest] + 1] - upto[starts[shortest]])]
    return float(x[starts[heaviest]]), float(x[ends[heaviest]])


class AtomicEstimate(Estimate):
    """Mass `_p` (summing to 1) on the sorted distinct points `_x`; both empty if the metric is never defined."""

    _x: Floats
    _p: Floats

    def _set_atoms(self, values: npt.ArrayLike, mass: npt.ArrayLike, *, what: str, slack: float) -> None:
        x = np.asarray(values, dtype=float).ravel()
        p = np.asarray(mass, dtype=float).ravel()
        if x.shape != p.shape:
            raise InvalidParameter(f"{what} must have one weight for each value, got {len(x)} values, {len(p)} weights")
        if not np.isfinite(p).all() or (p < 0).any():
            raise InvalidParameter(f"{what} must have weights that are finite and not negative, got {preview(p)}")
        total = float(p.sum())
        if not total > 0:
            raise InvalidParameter(f"{what} must have some positive weight, got {len(p)} values of weight {total:g}")
        defined = ~np.isnan(x)
        lost = float(p[~defined].sum()) / total
        x, p = x[defined], p[defined]
        if len(x) == 0 or not p.sum() > 0:
            x, p, lost = x[:0], p[:0], 1.0
        if not np.isfinite(x).all():
            raise InvalidParameter(f"{what} must be finite, or nan where the metric is undefined, got an infinity")
        low, high = self.bounds
        outside = (x < low - _OUTSIDE) | (x > high + _OUTSIDE)
        if outside.any():
            raise InvalidParameter(
                f"{what} must lie within the bounds ({low:g}, {high:g}), got {preview(x[outside])}; "
                "pass bounds=(low, high)"
            )
        order = np.argsort(np.clip(x, low, high), kind="stable")
        x, p = np.clip(x, low, high)[order], p[order]
        if len(x):  # neighbours that differ by no more than the slack are one
            new = np.diff(x) > slack * np.maximum(1.0, np.abs(x[1:]))
            starts = np.concatenate([[0], np.flatnonzero(new) + 1])
            x, p = x[starts], np.add.reduceat(p, starts)
            p = p / p.sum()
        self._set(_x=x, _p=p)
        self._set(undefined=self.undefined + (1 - self.undefined) * lost)

    @property
    def mean(self) -> float:
        return float(np.clip(self._x @ self._p, self._x[0], self._x[-1])) if len(self._x) else math.nan

    @property
    def std(self) -> float:
        return math.sqrt(float(self._p @ (self._x - self.mean) ** 2)) if len(self._x) else math.nan

    def _mass_up_to(self, x: Floats, side: float) -> Floats:
        if not len(self._x):
            return np.full(np.shape(x), math.nan)
        upto = np.concatenate([[0.0], np.cumsum(self._p)])
        upto[-1] = 1.0
        # 3 · 0.1 is not 0.3: a value asked for is an atom if it is one up to rounding.
        found = np.searchsorted(self._x, x + side * _SLACK * np.maximum(1.0, np.abs(x)))
        return np.where(np.isnan(x), math.nan, np.minimum(upto[found], 1.0))

    def _cdf(self, x: Floats) -> Floats:
        return self._mass_up_to(x, 1.0)

    def _cdf_left(self, x: Floats) -> Floats:
        return self._mass_up_to(x, -1.0)

    def _ppf(self, q: Floats) -> Floats:
        if not len(self._x):
            return np.full(np.shape(q), math.nan)
        found = np.searchsorted(np.cumsum(self._p), q - _SLACK, side="left")
        return self._x[np.minimum(found, len(self._x) - 1)]

    def _hdi(self, level: float) -> tuple[float, float]:
        if not len(self._x):
            return math.nan, math.nan
        low, high = shortest_window(self._x, self._p, level)
        is_mean = abs(self.mean - low) <= _SLACK * max(1.0, abs(low))
        if low < high or is_mean or self._p.max() <= _ALMOST_ALL or level <= 1 - _ALMOST_ALL:
            return low, high
        # One value has almost all of the mass. It alone would be an interval that leaves out the mean, and says that
        # nothing else is possible: it goes on to the value beyond the mean.
        index = int(np.searchsorted(self._x, self.mean))
        return min(low, float(self._x[max(index - 1, 0)])), max(high, float(self._x[min(index, len(self._x) - 1)]))


class DiscreteEstimate(AtomicEstimate):
    """An exact distribution on finitely many values.

    Both kinds of interval hold *at least* the level asked for. `pdf` gives the probability of the value itself: it
    is zero between the points of the support.

    Parameters
    ----------
    support : array of shape (n,)
        The values; nan marks where the metric is undefined. Need not be sorted; equal values are merged.
    pmf : array of shape (n,). Their probabilities, summing to 1.
    bounds, name, undefined
        As for `Estimate`.

    Examples
    --------
    >>> e = DiscreteEstimate([0.0, 0.5, 1.0], [0.25, 0.5, 0.25], name="accuracy")
    >>> e.mean, e.prob_above(0.5), e.interval(0.6)
    (0.5, 0.25, (0.0, 0.5))
    """

    support: Floats
    pmf: Floats

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

    def smoothed(self) -> tuple[Floats, Floats]:
        """A grid and a density on it: the distribution with its atoms smeared out a little, for plots and the mode."""
        return bounded_kde(self._x, self._p, 1e4, self.bounds)  # as of 10,000 draws: smoothed a little

    def _pdf(self, x: Floats) -> Floats:
        if not len(self._x):
            return np.full(np.shape(x), math.nan)
        # Support points are sums and ratios; a caller's k / n may differ from them in the last bit.
        right = np.minimum(np.searchsorted(self._x, x), len(self._x) - 1)
        left = np.maximum(right - 1, 0)
        nearest = np.where(np.abs(self._x[left] - x) < np.abs(self._x[right] - x), left, right)
        hit = np.abs(self._x[nearest] - x) <= 1e-12 * np.maximum(1.0, np.abs(x))
        return np.where(hit, self._p[nearest], 0.0)


class DrawnEstimate(AtomicEstimate):
    """A distribution known through (weighted) draws.

    Draws that are nan, where the metric is undefined, are conditioned away and counted in `undefined`. Mean,
    interval and probabilities are those of the draws themselves; only `pdf` and `mode` smooth them, with a Gaussian
    kernel reflected at the bounds. The method `draws` draws anew from the stored draws, with replacement.

    Parameters
    ----------
    draws : array of shape (n_draws,). The draws, kept as `values` with the nan left out, in their order.
    weights : array of shape (n_draws,), optional. Weights that are not negative; need not sum to 1.
    bounds, name, undefined
        As for `Estimate`; `undefined` is what was conditioned away before the draws were made.
    """

    values: Floats
    weights: Floats | None

    def __init__(
        self,
        draws: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        name: str | None = None,
        undefined: float = 0.0,
    ) -> None:
        super().__init__(bounds=bounds, name=name, undefined=undefined)
        values = np.array(draws, dtype=float).ravel()
        mass = np.ones(len(values)) if weights is None else np.array(weights, dtype=float).ravel()
        self._set_atoms(values, mass, what="draws", slack=0.0)
        defined = ~np.isnan(values)
        self._set(values=values[defined], weights=None if weights is None else mass[defined])

    @property
    def n_effective(self) -> float:
        """The number of equally weighted draws that would be worth as much (Kish)."""
        if self.weights is None:
            return float(len(self.values))
        return float(self.weights.sum() ** 2 / (self.weights**2).sum()) if len(self.weights) else 0.0

    @cached_property
    def _kde(self) -> tuple[Floats, Floats]:
        return bounded_kde(self._x, self._p, max(self.n_effective, 1.0), self.bounds)

    @property
    def mode(self) -> float:
        """The value where the smoothed density is highest."""
        if len(self._x) <= 1:
            return self.mean
        grid, density = self._kde
        peak = float(grid[np.argmax(density)])
        # The grid of the density need not hold the values; on a lattice the mode should be one of them.
        nearest = float(self._x[np.argmin(np.abs(self._x - peak))])
        return nearest if abs(nearest - peak) <= grid[1] - grid[0] else peak

    def _pdf(self, x: Floats) -> Floats:
        if not len(self._x):
            return np.full(np.shape(x), math.nan)
        if len(self._x) == 1:
            return np.where(x == self._x[0], math.inf, 0.0)
        grid, density = self._kde
        return np.interp(x, grid, density, left=0.0, right=0.0)


def poisson_binomial_pmf(p: npt.ArrayLike) -> Floats:
    """Probabilities of 0, 1, …, n successes in n independent trials.

    U and V, the counts of true positives and of misses under unknown truth, are of this kind (Su 2024, eqs. 8 and 9,
    where they are taken as normal).
    The generating polynomials ∏(1 − pᵢ + pᵢ z) are multiplied two by two, all pairs of one length at once, by FFT
    where they are long: O(n log² n). Exact to about 1e-15 absolute; never negative; sums to 1.

    Returns an array of shape (n + 1,).

    Parameters
    ----------
    p : array of shape (n,). The chance of success of each trial.

    Examples
    --------
    >>> poisson_binomial_pmf([0.5, 0.5]).tolist()
    [0.25, 0.5, 0.25]
    """
    chances = np.asarray(p, dtype=float).ravel()
    bad = chances[~((chances >= 0) & (chances <= 1))]
    if len(bad):
        raise InvalidParameter(f"p must hold probabilities in [0, 1], got {preview(bad)}")
    uncertain = chances[(chances > 0) & (chances < 1)]
    sure = int((chances == 1).sum())
    pmf = np.zeros(len(chances) + 1)
    pmf[sure : sure + len(uncertain) + 1] = _multiply_out(uncertain)
    return pmf


def _multiply_out(p: Floats) -> Floats:
    if not len(p):
        return np.ones(1)
    # Trials that cannot succeed fill up to a power of two; they add only zeros, which are cut off at the end.
    padded = np.zeros(1 << (len(p) - 1).bit_length())
    padded[: len(p)] = p
    rows = np.stack([1 - padded, padded], axis=1)
    while len(rows) > 1:
        one, other, size = rows[0::2], rows[1::2], rows.shape[1]
        if size > 32:  # shorter ones multiply five times as fast, and more exactly, term by term
            length = fft.next_fast_len(2 * size - 1, real=True)
            rows = fft.irfft(fft.rfft(one, length) * fft.rfft(other, length), length)[:, : 2 * size - 1]
            continue
        rows = np.zeros((len(one), 2 * size - 1))
        for j in range(size):
            rows[:, j : j + size] += one[:, j, None] * other
    pmf = np.maximum(rows[0, : len(p) + 1], 0.0)
    return np.asarray(pmf / pmf.sum())


def poisson_binomial_estimate(
    p: npt.ArrayLike,
    scale: float = 1.0,
    offset: float = 0.0,
    *,
    bounds: tuple[float, float] | None = None,
    name: str | None = None,
) -> DiscreteEstimate:
    """The distribution of ``offset + scale · K`` for the number K of successes.

    Parameters
    ----------
    p : array of shape (n,). The chance of success of each trial.
    scale, offset : float. E.g. ``scale=1/n`` for a share.
    bounds : (float, float), optional
        The bounds of the metric; by default the smallest and largest possible value (and at least 0 to 1).
    name : str, optional. The name of the metric.

    Examples
    --------
    >>> poisson_binomial_estimate([0.9] * 200, scale=1 / 200, name="accuracy")
    Estimate(accuracy: 0.900, 95% interval 0.860 to 0.940)
    """
    pmf = poisson_binomial_pmf(p)
    scale, offset = check_number(scale, name="scale"), check_number(offset, name="offset")
    values = offset + scale * np.arange(len(pmf))
    if bounds is None:
        bounds = (min(float(values.min()), 0.0), max(float(values.max()), 1.0))
    return DiscreteEstimate(values, pmf, bounds=bounds, name=name)
