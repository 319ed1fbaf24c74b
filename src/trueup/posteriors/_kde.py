"""Gaussian kernel density of weighted draws between bounds, binned: a million draws cost no more than a sort."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import trapezoid

from trueup.posteriors.estimate import Array

__all__ = ["bounded_kde", "fold", "linear_bins", "silverman"]

_REACH = 4.0  # a Gaussian kernel is cut off here, in bandwidths
_MOST_BINS = 1 << 16


def silverman(x: Array, p: Array, n_draws: float) -> float:
    """Silverman's bandwidth for sorted distinct values `x` with weights `p`."""
    std = float(np.sqrt(p @ (x - p @ x) ** 2))
    quartiles = x[np.minimum(np.searchsorted(np.cumsum(p), [0.25, 0.75]), len(x) - 1)]
    # On a coarse lattice the quartiles may coincide; then only the standard deviation tells the spread.
    spread = min(std, float(quartiles[1] - quartiles[0]) / 1.34) or std
    return 0.9 * spread / math.pow(n_draws, 0.2)


def linear_bins(x: Array, p: Array, grid: Array) -> Array:
    """Share the weight of each value between its two neighbours on an even grid."""
    position = (x - grid[0]) / (grid[1] - grid[0])
    left = np.clip(np.floor(position).astype(np.intp), 0, len(grid) - 2)
    right_share = np.clip(position - left, 0.0, 1.0)
    mass = np.bincount(left, weights=p * (1 - right_share), minlength=len(grid))
    return np.asarray(mass + np.bincount(left + 1, weights=p * right_share, minlength=len(grid)), dtype=float)


def fold(full: Array, margin: int) -> Array:
    """Reflect what lies in the margins on both sides of the first axis back into the middle."""
    inside = full[margin : len(full) - margin].copy()
    reach = min(margin + 1, len(inside))
    inside[:reach] += full[margin::-1][:reach]
    inside[len(inside) - reach :] += full[len(full) - margin - 1 :][:reach][::-1]
    return inside


def bounded_kde(x: Array, p: Array, n_draws: float, bounds: tuple[float, float]) -> tuple[Array, Array]:
    """Density on a grid, with the mass that leaks over a bound reflected back.

    Parameters
    ----------
    x, p : arrays of shape (n,)
        Sorted distinct values, at least two, and their weights, summing to 1.
    n_draws : float
        The (effective) number of draws behind them; it sets the bandwidth.
    bounds : (float, float)
        Where the density ends.

    Returns
    -------
    grid, density : arrays of shape (n_grid,)
    """
    width = max(silverman(x, p, n_draws), 1e-9 * float(x[-1] - x[0]))
    low = max(bounds[0], float(x[0]) - _REACH * width)
    high = min(bounds[1], float(x[-1]) + _REACH * width)
    n_grid = int(np.clip(np.ceil((high - low) / (width / 4)), 256, _MOST_BINS))
    grid = np.linspace(low, high, n_grid)
    step = grid[1] - grid[0]
    width = max(width, float(step))
    margin = int(np.ceil(_REACH * width / step))
    kernel = np.exp(-0.5 * (np.arange(-margin, margin + 1) * step / width) ** 2)
    density = fold(np.convolve(linear_bins(x, p, grid), kernel), margin)
    return grid, density / trapezoid(density, grid)
