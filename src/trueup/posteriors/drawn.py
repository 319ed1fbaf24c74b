"""An estimate known through draws, as a sampler or a bootstrap gives it."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trueup.posteriors._atoms import AtomicEstimate
from trueup.posteriors._kde import bounded_kde
from trueup.posteriors.estimate import Array

__all__ = ["DrawnEstimate"]


class DrawnEstimate(AtomicEstimate):
    """A distribution known through (weighted) draws.

    Draws that are nan, where the metric is undefined, are conditioned away and counted in `undefined`. Mean,
    interval and probabilities are those of the draws themselves; only `pdf` and `mode` smooth them, with a Gaussian
    kernel reflected at the bounds. The method `draws` draws anew from the stored draws, with replacement.

    Parameters
    ----------
    draws : array of shape (n_draws,)
        The draws, kept as `values` with the nan left out, in their order.
    weights : array of shape (n_draws,), optional
        Weights that are not negative; need not sum to 1.
    bounds, name, undefined
        As for `Estimate`; `undefined` is what was conditioned away before the draws were made.

    Examples
    --------
    >>> e = DrawnEstimate([0.8, 0.9, float("nan"), 0.9], name="recall")
    >>> round(e.mean, 4), e.undefined, e.prob_above(0.85).__round__(3)
    (0.8667, 0.25, 0.667)
    """

    values: Array
    weights: Array | None

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
    def _kde(self) -> tuple[Array, Array]:
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

    def _pdf(self, x: Array) -> Array:
        if not len(self._x):
            return np.full(np.shape(x), math.nan)
        if len(self._x) == 1:
            return np.where(x == self._x[0], math.inf, 0.0)
        grid, density = self._kde
        return np.interp(x, grid, density, left=0.0, right=0.0)
