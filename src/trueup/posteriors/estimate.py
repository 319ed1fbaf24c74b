"""The shape every answer comes in: a distribution of a metric, with a mean, an interval, a density and draws."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, NoReturn, Self, overload

import numpy as np
import numpy.typing as npt

from trueup._validation import RandomState, as_generator, check_choice, check_integer, check_level
from trueup.exceptions import InvalidParameter
from trueup.posteriors._plotting import draw_estimate

__all__ = ["Estimate", "IntervalKind"]

Array = npt.NDArray[np.float64]
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
    bounds : (float, float)
        The smallest and the largest value the metric can take; infinite where there is no limit.
    name : str, optional
        What was measured, e.g. ``"accuracy"``.
    undefined : float
        The share of the posterior mass on which the metric is undefined.
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

    @property
    @abstractmethod
    def mean(self) -> float:
        """The posterior mean: the estimate with the smallest expected squared error."""

    @property
    @abstractmethod
    def mode(self) -> float:
        """The most probable value."""

    @property
    @abstractmethod
    def std(self) -> float:
        """The posterior standard deviation."""

    @abstractmethod
    def _pdf(self, x: Array) -> Array: ...

    @abstractmethod
    def _cdf(self, x: Array) -> Array: ...

    @abstractmethod
    def _ppf(self, q: Array) -> Array: ...

    @abstractmethod
    def _hdi(self, level: float) -> tuple[float, float]: ...

    def _cdf_left(self, x: Array) -> Array:
        """P(M < x); differs from the cdf only where single values have mass."""
        return self._cdf(x)

    # What every distribution can then do.

    @property
    def median(self) -> float:
        """The value below and above which half of the mass lies."""
        return float(self._ppf(np.array(0.5)))

    def interval(self, level: float = 0.95, kind: IntervalKind = "hdi") -> tuple[float, float]:
        """A credible interval that holds (at least) `level` of the mass.

        Parameters
        ----------
        level : float
            The mass inside, e.g. 0.95.
        kind : {"hdi", "equal"}
            The shortest such interval, or the one with equal mass on both sides.
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
    def pdf(self, x: Many) -> Array: ...
    def pdf(self, x: float | Many) -> float | Array:
        """The density at `x`; for an exact discrete distribution the probability of `x` itself."""
        return _plain(self._pdf(np.asarray(x, dtype=float)))

    @overload
    def cdf(self, x: float) -> float: ...
    @overload
    def cdf(self, x: Many) -> Array: ...
    def cdf(self, x: float | Many) -> float | Array:
        """P(M ≤ x)."""
        return _plain(self._cdf(np.asarray(x, dtype=float)))

    @overload
    def ppf(self, q: float) -> float: ...
    @overload
    def ppf(self, q: Many) -> Array: ...
    def ppf(self, q: float | Many) -> float | Array:
        """The quantile: the smallest x with P(M ≤ x) ≥ q."""
        shares = np.asarray(q, dtype=float)
        if not ((shares >= 0) & (shares <= 1)).all():
            raise InvalidParameter(f"q must lie in [0, 1], got {q!r}")
        return _plain(self._ppf(shares))

    def prob_above(self, x: float) -> float:
        """P(M > x)."""
        return float(1 - self._cdf(np.array(float(x))))

    def prob_below(self, x: float) -> float:
        """P(M < x)."""
        return float(self._cdf_left(np.array(float(x))))

    def draws(self, n: int, random_state: RandomState = None) -> Array:
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
        return {"name": self.name, **{key: _json_number(value) for key, value in numbers.items()}}

    def plot(self, ax: Any = None, level: float = 0.95) -> Any:
        """Draw the distribution, its mean and its interval; return the matplotlib axes."""
        return draw_estimate(self, ax=ax, level=check_level(level))

    def __repr__(self) -> str:
        label = f"{self.name}: " if self.name else ""
        if math.isnan(self.mean):
            return f"Estimate({label}undefined)"
        digits = _digits(self.std)
        low, high = self.interval(0.95)
        note = f", undefined for {self.undefined:.2g} of the posterior" if self.undefined > 0 else ""
        return f"Estimate({label}{self.mean:.{digits}f}, 95% interval {low:.{digits}f} to {high:.{digits}f}{note})"


def _digits(std: float) -> int:
    """Decimals that show two significant digits of the standard deviation, and no more."""
    if not math.isfinite(std) or std <= 0:
        return 3
    return min(max(1 - math.floor(math.log10(std)), 0), 12)


def _json_number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _plain(values: Array) -> float | Array:
    """A number for a number, an array for an array."""
    return float(values) if np.ndim(values) == 0 else values
