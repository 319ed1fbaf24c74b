"""Two metrics at once: their joint distribution and its regions of highest density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy
from scipy import fft

from trueup._base.optional import require
from trueup._base.types import Floats
from trueup._base.validation import check_integer, check_level, preview
from trueup.exceptions import InvalidParameter
from trueup.posteriors.continuous import GridEstimate
from trueup.posteriors.estimate import fold, new_axes

Bounds2 = tuple[tuple[float, float], tuple[float, float]]
_UNIT: Bounds2 = ((0.0, 1.0), (0.0, 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class JointEstimate:
    """The joint distribution of two metrics, as a density on a grid.

    Make one with `from_draws` or `from_density`.

    Parameters
    ----------
    x, y : arrays of shape (n_x,) and (n_y,). The grid of the first and of the second metric, increasing.
    density : array of shape (n_x, n_y). Normalised.
    means : (float, float). The means of both metrics.
    cov : array of shape (2, 2). Their covariance.
    bounds : pair of (float, float). The bounds of both metrics.
    names : (str, str). What they are.
    undefined : float. The share of the posterior mass on which one of the two is undefined, conditioned away.
    """

    x: Floats
    y: Floats
    density: Floats
    means: tuple[float, float]
    cov: Floats
    bounds: Bounds2 = _UNIT
    names: tuple[str, str] = ("x", "y")
    undefined: float = 0.0

    def __post_init__(self) -> None:
        for array in (self.x, self.y, self.density, self.cov):
            array.flags.writeable = False

    @classmethod
    def from_density(
        cls,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        density: npt.ArrayLike,
        *,
        bounds: Bounds2 = _UNIT,
        names: tuple[str, str] = ("x", "y"),
    ) -> Self:
        """From a density, not necessarily normalised, of shape (n_x, n_y) on a grid."""
        x, y = _axis(x, "x", bounds[0]), _axis(y, "y", bounds[1])
        height = np.array(density, dtype=float)
        if height.shape != (len(x), len(y)):
            raise InvalidParameter(f"density must have the shape {(len(x), len(y))} of the grid, got {height.shape}")
        if not np.isfinite(height).all() or (height < 0).any() or not (height > 0).any():
            raise InvalidParameter("density must be finite, not negative and somewhere positive")
        height /= height.max()
        height /= (height * _areas(x, y)).sum()
        mass = height * _areas(x, y)
        means = (float(mass.sum(axis=1) @ x), float(mass.sum(axis=0) @ y))
        dx, dy = x - means[0], y - means[1]
        cross = float(dx @ mass @ dy)
        cov = np.array([[mass.sum(axis=1) @ dx**2, cross], [cross, mass.sum(axis=0) @ dy**2]])
        return cls(x, y, height, means, cov, bounds, names)

    @classmethod
    def from_draws(
        cls,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        *,
        bounds: Bounds2 = _UNIT,
        names: tuple[str, str] = ("x", "y"),
        n_grid: int = 256,
    ) -> Self:
        """From draws of both metrics, smoothed by a Gaussian kernel that is reflected at the bounds.

        The kernel has the shape of the draws' covariance, so that correlated metrics are not blurred across their
        common direction. A draw with a nan in either metric is left out and counted in `undefined`.

        Parameters
        ----------
        x, y : arrays of shape (n_draws,). Draws made together.
        weights : array of shape (n_draws,), optional. Not negative; need not sum to 1.
        bounds, names
            As for `JointEstimate`.
        n_grid : int. Points of the grid along each axis.
        """
        n_grid = check_integer(n_grid, name="n_grid", low=8)
        points = np.array([np.ravel(x), np.ravel(y)], dtype=float).T
        mass = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=float).ravel()
        if mass.shape != (len(points),) or not np.isfinite(mass).all() or (mass < 0).any():
            raise InvalidParameter(f"weights must be {len(points)} numbers not below 0, got {preview(mass)}")
        defined = ~np.isnan(points).any(axis=1)
        if not mass[defined].sum() > 0:
            raise InvalidParameter("x and y must both be defined for some draws, got none of positive weight")
        undefined = float(mass[~defined].sum() / mass.sum())
        points, mass = points[defined], mass[defined] / mass[defined].sum()
        means = mass @ points
        cov = (points - means).T @ ((points - means) * mass[:, None])
        grids, kernel_cov = _draw_grids(points, mass, cov, bounds, n_grid)
        density = _kde2(points, mass, grids, kernel_cov)
        smooth = cls.from_density(*grids, density, bounds=bounds, names=names)
        return cls(*grids, smooth.density, (float(means[0]), float(means[1])), cov, bounds, names, undefined)

    @property
    def mode(self) -> tuple[float, float]:
        """The point of the grid where the density is highest."""
        i, j = np.unravel_index(np.argmax(self.density), self.density.shape)
        return float(self.x[i]), float(self.y[j])

    def marginal(self, axis: int) -> GridEstimate:
        """The distribution of the first (0) or the second (1) metric alone."""
        if axis not in (0, 1):
            raise InvalidParameter(f"axis must be 0 or 1, got {axis!r}")
        grid, other = (self.x, self.y) if axis == 0 else (self.y, self.x)
        density = scipy.integrate.trapezoid(self.density if axis == 0 else self.density.T, other, axis=1)
        return GridEstimate(grid, density, bounds=self.bounds[axis], name=self.names[axis], undefined=self.undefined)

    def region(self, level: float = 0.95) -> HighestDensityRegion:
        """The smallest region that holds `level` of the mass."""
        level = check_level(level)
        heights = np.sort(self.density, axis=None)[::-1]
        order = np.argsort(self.density, axis=None, kind="stable")[::-1]
        mass = np.cumsum((self.density * _areas(self.x, self.y)).ravel()[order])
        enough = min(int(np.searchsorted(mass, level)), len(heights) - 1)
        return HighestDensityRegion(joint=self, level=level, threshold=float(heights[enough]))

    def plot(self, ax: Any = None, level: float = 0.95) -> Any:
        """Draw the region of the given level, the one of 50% and the means; return the matplotlib axes."""
        ax = self.region(level).plot(ax)
        if level > 0.5:
            self.region(0.5).plot(ax)
        ax.plot(*self.means, "o", color="black", markersize=4)
        return ax

    def __repr__(self) -> str:
        (a, b), (mean_a, mean_b) = self.names, self.means
        return f"JointEstimate({a}: {mean_a:.3g}, {b}: {mean_b:.3g})"


@dataclass(frozen=True, eq=False, repr=False)
class HighestDensityRegion:
    """Where a joint density is at least `threshold`; it holds `level` of the mass."""

    joint: JointEstimate
    level: float
    threshold: float

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Which points of the joint estimate's grid are inside; array of shape (n_x, n_y)."""
        return np.asarray(self.joint.density >= self.threshold)

    @property
    def area(self) -> float:
        """The area of the region."""
        return float(_areas(self.joint.x, self.joint.y)[self.mask].sum())

    def contains(self, x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether the points (x, y) lie inside; arrays broadcast."""
        grid = (self.joint.x, self.joint.y)
        height_at = scipy.interpolate.RegularGridInterpolator(
            grid, self.joint.density, bounds_error=False, fill_value=0.0
        )
        points = np.stack(np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float)), axis=-1)
        return np.asarray(height_at(points) >= self.threshold * (1 - 1e-12))

    def polygons(self) -> list[Floats]:
        """The outlines of the region, each a closed polygon of shape (n, 2); needs matplotlib (see also `mask`)."""
        require("matplotlib", purpose="HighestDensityRegion.polygons() (its mask does not need it)")
        contourpy = require("contourpy", purpose="HighestDensityRegion.polygons()")
        # A rim of zeros closes outlines that run into the edge of the grid.
        x, y = (np.concatenate([[g[0]], g, [g[-1]]]) for g in (self.joint.x, self.joint.y))
        generator = contourpy.contour_generator(x, y, np.pad(self.joint.density, 1).T)
        return [np.asarray(line) for line in generator.lines(self.threshold * (1 - 1e-12))]

    def plot(self, ax: Any = None) -> Any:
        """Draw the region; return the matplotlib axes."""
        ax = new_axes(ax, purpose="HighestDensityRegion.plot()")
        for number, line in enumerate(self.polygons()):
            label = f"{self.level:.0%} region" if number == 0 else None
            ax.fill(line[:, 0], line[:, 1], alpha=0.25, color="#1f5a93", label=label)
        ax.set_xlabel(self.joint.names[0])
        ax.set_ylabel(self.joint.names[1])
        return ax

    def __repr__(self) -> str:
        return f"HighestDensityRegion(level={self.level:g}, area={self.area:.3g})"


def _axis(values: npt.ArrayLike, name: str, bounds: tuple[float, float]) -> Floats:
    axis = np.array(values, dtype=float).ravel()
    low, high = bounds
    if len(axis) < 2 or not (np.diff(axis) > 0).all() or axis[0] < low or axis[-1] > high:
        raise InvalidParameter(
            f"{name} must be at least 2 increasing numbers within the bounds ({low:g}, {high:g}), got {preview(axis)}"
        )
    return axis


def _areas(x: Floats, y: Floats) -> Floats:
    """The area that each point of the grid stands for (trapezoid rule)."""

    def widths(g: Floats) -> Floats:
        half = np.diff(g) / 2
        return np.asarray(np.concatenate([[0.0], half]) + np.concatenate([half, [0.0]]))

    return np.outer(widths(x), widths(y))


def _draw_grids(
    points: Floats, mass: Floats, cov: Floats, bounds: Bounds2, n_grid: int
) -> tuple[tuple[Floats, Floats], Floats]:
    """Even grids that hold all draws and their kernels, and the covariance of the kernel (Scott's rule)."""
    n_effective = 1 / float((mass**2).sum())
    kernel_cov = cov * n_effective ** (-1 / 3)
    grids = []
    for axis, (low, high) in enumerate(bounds):
        values = points[:, axis]
        if values.min() < low - 1e-9 or values.max() > high + 1e-9:
            raise InvalidParameter(
                f"draws must lie within the bounds ({low:g}, {high:g}), got {values.min():g} to "
                f"{values.max():g}; pass bounds=((low, high), (low, high))"
            )
        # Metrics that do not vary still need a grid of some width.
        reach = max(4 * float(np.sqrt(kernel_cov[axis, axis])), 1e-3 * max(abs(float(values[0])), 1e-3))
        grids.append(np.linspace(max(low, values.min() - reach), min(high, values.max() + reach), n_grid))
    # A kernel narrower than the grid's own step would show the grid, not the draws.
    steps = np.array([grid[1] - grid[0] for grid in grids])
    return (grids[0], grids[1]), kernel_cov + np.diag((steps / 2) ** 2)


def _kde2(points: Floats, mass: Floats, grids: tuple[Floats, Floats], kernel_cov: Floats) -> Floats:
    steps = [grid[1] - grid[0] for grid in grids]
    n = len(grids[0])
    position = np.clip([(points[:, k] - grids[k][0]) / steps[k] for k in (0, 1)], 0, n - 1)
    cell = np.minimum(position.astype(np.intp), n - 2)
    share = position - cell
    binned = np.zeros(n * n)
    for i in (0, 1):
        for j in (0, 1):
            part = mass * np.abs(1 - i - share[0]) * np.abs(1 - j - share[1])
            binned += np.bincount((cell[0] + i) * n + cell[1] + j, weights=part, minlength=n * n)
    margins = [min(int(np.ceil(4 * np.sqrt(kernel_cov[k, k]) / steps[k])), n - 1) for k in (0, 1)]
    offsets = np.meshgrid(*(np.arange(-m, m + 1) * s for m, s in zip(margins, steps, strict=True)), indexing="ij")
    delta = np.stack(offsets, axis=-1)
    kernel = np.exp(-0.5 * np.einsum("...i,ij,...j", delta, np.linalg.inv(kernel_cov), delta))
    size = [n + 2 * m for m in margins]
    full = fft.irfft2(fft.rfft2(binned.reshape(n, n), size) * fft.rfft2(kernel, size), size)
    return np.maximum(fold(fold(full, margins[0]).T, margins[1]).T, 0.0)
