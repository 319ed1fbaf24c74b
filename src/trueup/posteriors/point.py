"""A value that comes without uncertainty."""

from __future__ import annotations

import math

import numpy as np

from trueup._base.types import Floats
from trueup._base.validation import RandomState, check_integer
from trueup.posteriors.estimate import Estimate


class PointEstimate(Estimate):
    """A bare number from a method that cannot say how sure it is.

    Not a distribution with all mass on one value: the spread is unknown, so the standard deviation, the interval,
    all probabilities and all draws are nan.

    Parameters
    ----------
    value : float
        The number; nan if there is none.
    bounds, name, undefined
        As for `Estimate`. The value may lie outside the bounds: such methods do that.

    Examples
    --------
    >>> PointEstimate(0.871, name="accuracy")
    Estimate(accuracy: 0.871, no interval)
    """

    value: float

    def __init__(
        self,
        value: float,
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        name: str | None = None,
        undefined: float = 0.0,
    ) -> None:
        super().__init__(bounds=bounds, name=name, undefined=undefined)
        self._set(value=float(value))

    @property
    def mean(self) -> float:
        """The value itself."""
        return self.value

    @property
    def median(self) -> float:
        """The value itself."""
        return self.value

    @property
    def mode(self) -> float:
        """The value itself."""
        return self.value

    @property
    def std(self) -> float:
        """Unknown: nan."""
        return math.nan

    def _pdf(self, x: Floats) -> Floats:
        return np.full(np.shape(x), math.nan)

    def _cdf(self, x: Floats) -> Floats:
        return np.full(np.shape(x), math.nan)

    def _ppf(self, q: Floats) -> Floats:
        return np.full(np.shape(q), math.nan)

    def _hdi(self, level: float) -> tuple[float, float]:
        return math.nan, math.nan

    def draws(self, n: int, random_state: RandomState = None) -> Floats:
        """All nan: the spread is unknown."""
        return np.full(check_integer(n, name="n", low=0), math.nan)

    def __repr__(self) -> str:
        label = f"{self.name}: " if self.name else ""
        value = "undefined" if math.isnan(self.value) else f"{self.value:.4g}"
        return f"Estimate({label}{value}, no interval)"
