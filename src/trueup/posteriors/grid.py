"""An estimate whose density was computed on a grid, for posteriors without a closed form."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trueup._validation import preview
from trueup.exceptions import InvalidParameter
from trueup.posteriors._quantile_search import shortest_quantile_interval
from trueup.posteriors.estimate import Array, Estimate

__all__ = ["GridEstimate"]


class GridEstimate(Estimate):
    """A density known at the points of a grid and taken as linear between them.

    Mean, standard deviation, cdf and quantiles are exact for that broken line, so they agree with each other.

    Parameters
    ----------
    x : array of shape (n,)
        Increasing, within the bounds; need not be even.
    density : array of shape (n,)
        Need not be normalised.
    bounds, name, undefined
        As for `Estimate`.

    Examples
    --------
    >>> e = GridEstimate([0.0, 1.0], [0.0, 1.0])
    >>> round(e.mean, 4), round(e.median, 4), e.mode
    (0.6667, 0.7071, 1.0)
    """

    x: Array
    density: Array
    _upto: Array

    def __init__(
        self,
        x: npt.ArrayLike,
        density: npt.ArrayLike,
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        name: str | None = None,
        undefined: float = 0.0,
    ) -> None:
        super().__init__(bounds=bounds, name=name, undefined=undefined)
        grid = np.array(x, dtype=float).ravel()
        height = np.array(density, dtype=float).ravel()
        if grid.shape != height.shape or len(grid) < 2:
            raise InvalidParameter(
                f"x and density must have the same length of at least 2, got {len(grid)} and {len(height)}"
            )
        if not (np.diff(grid) > 0).all() or grid[0] < self.bounds[0] or grid[-1] > self.bounds[1]:
            low, high = self.bounds
            raise InvalidParameter(f"x must increase within the bounds ({low:g}, {high:g}), got {preview(grid)}")
        if not np.isfinite(height).all() or (height < 0).any() or not (height > 0).any():
            raise InvalidParameter(
                f"density must be finite, not negative and somewhere positive, got {preview(height)}"
            )
        height = height / height.max()  # a density may be so high or low that the sum over- or underflows
        mass = np.diff(grid) * (height[1:] + height[:-1]) / 2
        total = mass.sum()
        upto = np.concatenate([[0.0], np.cumsum(mass / total)])
        self._set(x=grid, density=height / total, _upto=upto / upto[-1])

    @cached_property
    def _moments(self) -> tuple[float, float]:
        # Centred at the peak, so that a narrow density far from zero keeps its digits.
        center = float(self.x[np.argmax(self.density)])
        a, b = self.x[:-1] - center, self.x[1:] - center
        da, db = self.density[:-1], self.density[1:]
        first = float(((b - a) * (a * (2 * da + db) + b * (da + 2 * db))).sum() / 6)
        second = float(((b - a) * (da * (3 * a**2 + 2 * a * b + b**2) + db * (a**2 + 2 * a * b + 3 * b**2))).sum() / 12)
        return center + first, math.sqrt(max(second - first**2, 0.0))

    @property
    def mean(self) -> float:
        """The posterior mean."""
        return self._moments[0]

    @property
    def std(self) -> float:
        """The posterior standard deviation."""
        return self._moments[1]

    @property
    def mode(self) -> float:
        """The most probable value."""
        return float(self.x[np.argmax(self.density)])

    def _pdf(self, x: Array) -> Array:
        return np.interp(x, self.x, self.density, left=0.0, right=0.0)

    def _cdf(self, x: Array) -> Array:
        inside = np.clip(x, self.x[0], self.x[-1])
        cell = np.clip(np.searchsorted(self.x, inside, side="right") - 1, 0, len(self.x) - 2)
        step = inside - self.x[cell]
        return np.clip(self._upto[cell] + step * (self.density[cell] + self._pdf(inside)) / 2, 0.0, 1.0)

    def _ppf(self, q: Array) -> Array:
        cell = np.clip(np.searchsorted(self._upto, q, side="left") - 1, 0, len(self.x) - 2)
        rest = np.maximum(q - self._upto[cell], 0.0)
        width = self.x[cell + 1] - self.x[cell]
        start = self.density[cell]
        slope = (self.density[cell + 1] - start) / width
        # Root of slope/2 t² + start t = rest, in the form that does not cancel.
        root = start + np.sqrt(np.maximum(start**2 + 2 * slope * rest, 0.0))
        step = np.divide(2 * rest, root, out=np.zeros(np.shape(q)), where=root > 0)
        return np.asarray(self.x[cell] + np.minimum(step, width))

    def _hdi(self, level: float) -> tuple[float, float]:
        return shortest_quantile_interval(self._ppf, level)
