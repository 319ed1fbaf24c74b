"""Distributions with a density: those that scipy knows, cut to the bounds of the metric; grids; two metrics at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, Self, get_args

import numpy as np
import numpy.typing as npt
import scipy
from scipy import fft
from scipy.special import dawsn, erf

from trueup._base.optional import require
from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_integer, check_level, check_number, preview
from trueup.exceptions import InvalidParameter
from trueup.posteriors.estimate import DiscreteEstimate, Estimate, fold, new_axes

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
    distribution : frozen scipy.stats distribution. E.g. ``scipy.stats.beta(8, 3)``.
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
    _below: float  # the mass below the bounds, and above them
    _above: float
    _upper: bool  # whether most of the mass lies below the bounds
    _inside: float

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

    def _pdf(self, x: Floats) -> Floats:
        within = (x >= self.bounds[0]) & (x <= self.bounds[1])
        return np.where(within, np.asarray(self.distribution.pdf(x)) / self._inside, 0.0)

    def _cdf(self, x: Floats) -> Floats:
        x = np.clip(x, *self.bounds)
        if self._upper:
            share = 1 - (np.asarray(self.distribution.sf(x)) - self._above) / self._inside
        else:
            share = (np.asarray(self.distribution.cdf(x)) - self._below) / self._inside
        return np.clip(share, 0.0, 1.0)

    def _ppf(self, q: Floats) -> Floats:
        if self._upper:
            x = self.distribution.isf(self._above + (1 - q) * self._inside)
        else:
            x = self.distribution.ppf(self._below + q * self._inside)
        return np.asarray(np.clip(x, *self.bounds), dtype=float)

    @cached_property
    def _moments(self) -> tuple[float, float]:  # type: ignore[override]
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

    @cached_property
    def mode(self) -> float:
        finite = [b for b in self.bounds if math.isfinite(b)]
        x = np.unique(np.concatenate([self._ppf(np.linspace(1e-6, 1 - 1e-6, 513)), finite]))
        density = self._pdf(x)
        best = int(np.nanargmax(density))
        if not math.isfinite(density[best]):
            return float(x[best])
        around = (x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)])
        found = scipy.optimize.minimize_scalar(
            lambda v: -float(self._pdf(np.array(v))), bounds=around, method="bounded"
        )
        return float(found.x) if -float(found.fun) > density[best] else float(x[best])


def normal_estimate(
    mean: float, sd: float, *, bounds: tuple[float, float] = (0.0, 1.0), name: str | None = None, undefined: float = 0.0
) -> Estimate:
    """A normal distribution cut to the bounds; with ``sd=0`` all mass on the (clipped) mean."""
    mean = check_number(mean, name="mean")
    sd = check_number(sd, name="sd", low=0.0)
    if sd == 0:
        return DiscreteEstimate([float(np.clip(mean, *bounds))], [1.0], bounds=bounds, name=name, undefined=undefined)
    low, high = ((b - mean) / sd for b in bounds)
    cut: Any = scipy.stats.norm(mean, sd) if low < -9 and high > 9 else scipy.stats.truncnorm(low, high, mean, sd)
    return ContinuousEstimate(cut, bounds=bounds, name=name, undefined=undefined)


def beta_estimate(a: float, b: float, *, name: str | None = None) -> ContinuousEstimate:
    """A Beta(a, b) posterior of a share."""
    a = check_number(a, name="a", low=0.0, strict=True)
    b = check_number(b, name="b", low=0.0, strict=True)
    return ContinuousEstimate(scipy.stats.beta(a, b), name=name)


class GridEstimate(Estimate):
    """A density known at the points of a grid and taken as linear between them.

    Mean, standard deviation, cdf and quantiles are exact for that broken line, so they agree with each other.

    Parameters
    ----------
    x : array of shape (n,). Increasing, within the bounds; need not be even.
    density : array of shape (n,). Need not be normalised.
    bounds, name, undefined
        As for `Estimate`.

    Examples
    --------
    >>> e = GridEstimate([0.0, 1.0], [0.0, 1.0])
    >>> round(e.mean, 4), round(e.median, 4), e.mode
    (0.6667, 0.7071, 1.0)
    """

    x: Floats
    density: Floats
    _upto: Floats

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
                f"x and density must have the same length, 2 or more, got {len(grid)} and {len(height)}"
            )
        if not (np.diff(grid) > 0).all() or grid[0] < self.bounds[0] or grid[-1] > self.bounds[1]:
            low, high = self.bounds
            raise InvalidParameter(f"x must increase within the bounds ({low:g}, {high:g}), got {preview(grid)}")
        if not np.isfinite(height).all() or (height < 0).any() or not (height > 0).any():
            raise InvalidParameter(f"density must be finite, not negative, somewhere positive, got {preview(height)}")
        height = height / height.max()  # a density may be so high or low that the sum over- or underflows
        mass = np.diff(grid) * (height[1:] + height[:-1]) / 2
        total = mass.sum()
        upto = np.concatenate([[0.0], np.cumsum(mass / total)])
        self._set(x=grid, density=height / total, _upto=upto / upto[-1])

    @cached_property
    def _moments(self) -> tuple[float, float]:  # type: ignore[override]
        # Centred at the peak, so that a narrow density far from zero keeps its digits.
        center = float(self.x[np.argmax(self.density)])
        a, b = self.x[:-1] - center, self.x[1:] - center
        da, db = self.density[:-1], self.density[1:]
        first = float(((b - a) * (a * (2 * da + db) + b * (da + 2 * db))).sum() / 6)
        second = float(((b - a) * (da * (3 * a**2 + 2 * a * b + b**2) + db * (a**2 + 2 * a * b + 3 * b**2))).sum() / 12)
        return center + first, math.sqrt(max(second - first**2, 0.0))

    @property
    def mode(self) -> float:
        return float(self.x[np.argmax(self.density)])

    def _pdf(self, x: Floats) -> Floats:
        return np.interp(x, self.x, self.density, left=0.0, right=0.0)

    def _cdf(self, x: Floats) -> Floats:
        inside = np.clip(x, self.x[0], self.x[-1])
        cell = np.clip(np.searchsorted(self.x, inside, side="right") - 1, 0, len(self.x) - 2)
        step = inside - self.x[cell]
        return np.clip(self._upto[cell] + step * (self.density[cell] + self._pdf(inside)) / 2, 0.0, 1.0)

    def _ppf(self, q: Floats) -> Floats:
        cell = np.clip(np.searchsorted(self._upto, q, side="left") - 1, 0, len(self.x) - 2)
        rest = np.maximum(q - self._upto[cell], 0.0)
        width = self.x[cell + 1] - self.x[cell]
        start = self.density[cell]
        slope = (self.density[cell + 1] - start) / width
        # Root of slope/2 t² + start t = rest, in the form that does not cancel.
        root = start + np.sqrt(np.maximum(start**2 + 2 * slope * rest, 0.0))
        step = np.divide(2 * rest, root, out=np.zeros(np.shape(q)), where=root > 0)
        return np.asarray(self.x[cell] + np.minimum(step, width))


def _check_counts(successes: float, n: float) -> tuple[float, float]:
    n = check_number(n, name="n", low=0.0)
    successes = check_number(successes, name="successes", low=0.0)
    if successes > n:
        raise InvalidParameter(f"successes must not exceed n, got {successes:g} of {n:g}")
    return successes, n


def wald(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """The interval p̂ ± z√(p̂(1−p̂)/n), clipped to [0, 1]; too narrow for small n and for p̂ near 0 or 1.

    Examples
    --------
    >>> tuple(round(end, 4) for end in wald(8, 10))
    (0.5521, 1.0)
    """
    successes, n = _check_counts(successes, n)
    z = float(scipy.stats.norm.isf((1 - check_level(level)) / 2))
    if n == 0:
        return math.nan, math.nan
    share = successes / n
    half = z * math.sqrt(share * (1 - share) / n)
    return max(share - half, 0.0), min(share + half, 1.0)


def wilson(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval; (0, 1) when nothing was counted.

    Examples
    --------
    >>> tuple(round(end, 4) for end in wilson(8, 10))
    (0.4902, 0.9433)
    """
    successes, n = _check_counts(successes, n)
    z2 = float(scipy.stats.norm.isf((1 - check_level(level)) / 2)) ** 2
    if n == 0:
        return 0.0, 1.0
    center = (successes + z2 / 2) / (n + z2)
    half = math.sqrt(z2) / (n + z2) * math.sqrt(successes * (n - successes) / n + z2 / 4)
    low = 0.0 if successes == 0 else max(center - half, 0.0)
    high = 1.0 if successes == n else min(center + half, 1.0)
    return low, high


MeanMethod = Literal["principal", "marsaglia"]


def _checked(
    mean_z: float, sd_z: float, mean_w: float, sd_w: float, rho: float
) -> tuple[float, float, float, float, float]:
    mean_z, mean_w = check_number(mean_z, name="mean_z"), check_number(mean_w, name="mean_w")
    sd_z, sd_w = check_number(sd_z, name="sd_z", low=0.0), check_number(sd_w, name="sd_w", low=0.0)
    if abs(rho) <= 1 + 1e-9:  # a correlation computed from sums may be over by a rounding
        rho = min(max(float(rho), -1.0), 1.0)
    rho = check_number(rho, name="rho", low=-1.0, high=1.0)
    if mean_w == 0 and sd_w == 0:
        raise InvalidParameter("mean_w and sd_w must not both be 0: the denominator would always be zero")
    return mean_z, sd_z, mean_w, sd_w, rho


def normal_ratio_density(
    x: npt.ArrayLike, mean_z: float, sd_z: float, mean_w: float, sd_w: float, rho: float = 0.0
) -> Floats:
    """The exact density of Z/W at `x`.

    Parameters
    ----------
    x : array. Where.
    mean_z, sd_z, mean_w, sd_w : float
        Means and standard deviations of numerator and denominator; one of the deviations may be 0.
    rho : float. Their correlation, from −1 to 1.

    Examples
    --------
    Two centred normals have a Cauchy ratio:

    >>> float(normal_ratio_density(0.0, 0, 1, 0, 1).round(6)), round(1 / np.pi, 6)
    (0.31831, 0.31831)
    """
    x = np.asarray(x, dtype=float)
    mean_z, sd_z, mean_w, sd_w, rho = _checked(mean_z, sd_z, mean_w, sd_w, rho)
    if sd_z == 0 or sd_w == 0 or 1 - rho**2 < 1e-10:  # one normal variable drives both, or only one part varies
        return _degenerate_density(x, mean_z, sd_z, mean_w, math.copysign(sd_w, rho))
    rest = math.sqrt(1 - rho**2)
    a, b = (mean_z / sd_z - rho * mean_w / sd_w) / rest, mean_w / sd_w
    r, s = sd_w / (sd_z * rest), rho * sd_z / sd_w
    t = r * (x - s)
    q = (b + a * t) / np.sqrt(1 + t**2)
    # Marsaglia's exp(-(a² + b²)/2)·exp(q²/2) overflows; its exponent is -(a - bt)²/(2(1 + t²)).
    bulk = math.sqrt(math.pi / 2) * q * erf(q / math.sqrt(2)) * np.exp(-((a - b * t) ** 2) / (2 * (1 + t**2)))
    return np.asarray(abs(r) * (math.exp(-(a**2 + b**2) / 2) + bulk) / (math.pi * (1 + t**2)))


def _degenerate_density(x: Floats, mean_z: float, sd_z: float, mean_w: float, sd_w: float) -> Floats:
    """Density of (mean_z + sd_z E)/(mean_w + sd_w E), a monotone function of one standard normal E; sd_w is signed."""
    slope = sd_z - sd_w * x
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        e = (x * mean_w - mean_z) / slope
        density = np.exp(-0.5 * e**2) / math.sqrt(2 * math.pi) * abs(mean_w * sd_z - sd_w * mean_z) / slope**2
    return np.where(np.isfinite(density), density, 0.0)


def normal_ratio(
    mean_z: float,
    sd_z: float,
    mean_w: float,
    sd_w: float,
    rho: float = 0.0,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    name: str | None = None,
    n_grid: int = 2048,
) -> Estimate:
    """The distribution of Z/W, given that it lies within finite bounds.

    Returns a `GridEstimate`; all mass on one value where the ratio does not vary.

    Parameters
    ----------
    mean_z, sd_z, mean_w, sd_w, rho
        As for `normal_ratio_density`.
    bounds : (float, float). Finite bounds of the ratio; what the normal approximation puts outside is cut off.
    name : str, optional. The name of the metric.
    n_grid : int. Points of the grid over the bulk of the density.

    Examples
    --------
    >>> normal_ratio(0.4, 0.02, 0.5, 0.022, 0.9, name="recall")
    Estimate(recall: 0.800, 95% interval 0.766 to 0.834)
    """
    mean_z, sd_z, mean_w, sd_w, rho = _checked(mean_z, sd_z, mean_w, sd_w, rho)
    if not (math.isfinite(bounds[0]) and math.isfinite(bounds[1])):
        raise InvalidParameter(f"bounds must be finite for a ratio of normals, got {bounds!r}")
    center, x = math.copysign(math.inf, mean_z), np.linspace(*bounds, n_grid)
    if mean_w != 0:  # points that are dense where the ratio mostly lies (by the delta method) and reach to the bounds
        center = mean_z / mean_w
        spread = math.sqrt(max(sd_z**2 - 2 * center * rho * sd_z * sd_w + (center * sd_w) ** 2, 0.0)) / abs(mean_w)
        fine = center + spread * np.linspace(-10, 10, n_grid)
        x = np.unique(np.concatenate([np.linspace(*bounds, 513), np.clip(fine, *bounds)]))
    density = normal_ratio_density(x, mean_z, sd_z, mean_w, sd_w, rho)
    if not density.max() > 0:  # the ratio is constant, or so far outside the bounds that only a bound is left
        value = float(np.clip(center, *bounds))
        return DiscreteEstimate([value], [1.0], bounds=bounds, name=name)
    return GridEstimate(x, density, bounds=bounds, name=name)


def normal_ratio_mean(
    mean_z: float,
    sd_z: float,
    mean_w: float,
    sd_w: float,
    rho: float = 0.0,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    method: MeanMethod = "principal",
) -> float:
    """The mean of Z/W: in closed form where the denominator stays away from zero, else by integration.

    Where b = mean_w/sd_w > 4, the mean of T is taken as

    - ``"principal"``: a·√2·D(b/√2), with D Dawson's function; the principal value of the integral, within
      0.04% of the mean given that the denominator stays off zero (Y > −4), for b from 4.5 on;
    - ``"marsaglia"``: a/(1.01 b − 0.2713), as in Su's Algorithm 1; a fit that is off by up to 2% near b = 4 and
      tends to 1% too little for large b.

    Elsewhere the density within the bounds is integrated.

    Parameters
    ----------
    mean_z, sd_z, mean_w, sd_w, rho
        As for `normal_ratio_density`.
    bounds : (float, float). Finite bounds of the ratio; the result is clipped to them.
    method : {"principal", "marsaglia"}. The closed form.
    """
    mean_z, sd_z, mean_w, sd_w, rho = _checked(mean_z, sd_z, mean_w, sd_w, rho)
    method = check_choice(method, get_args(MeanMethod), name="method")
    if sd_w == 0:
        return float(np.clip(mean_z / mean_w, *bounds))
    if mean_w / sd_w <= 4.0:  # the condition of Appendix B
        return normal_ratio(mean_z, sd_z, mean_w, sd_w, rho, bounds=bounds).mean
    # mean(T)/r + s without dividing by √(1 − ρ²) or sd_z, so that perfect correlation needs no case of its own.
    b = mean_w / sd_w
    inverse = math.sqrt(2) * float(dawsn(b / math.sqrt(2))) if method == "principal" else 1 / (1.01 * b - 0.2713)
    value = (mean_z / sd_w - rho * sd_z / sd_w * b) * inverse + rho * sd_z / sd_w
    return float(np.clip(value, *bounds))


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
        points = np.stack(np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float)), axis=-1)
        grid, density = (self.joint.x, self.joint.y), self.joint.density
        height = scipy.interpolate.interpn(grid, density, points, bounds_error=False, fill_value=0.0)
        return np.asarray(height >= self.threshold * (1 - 1e-12))

    def polygons(self) -> list[Floats]:
        """The outlines of the region, each a closed polygon of shape (n, 2); needs matplotlib (see also `mask`)."""
        require("matplotlib", purpose="HighestDensityRegion.polygons() (its mask does not need it)")
        contourpy = require("contourpy", purpose="HighestDensityRegion.polygons()")
        # A rim of zeros closes outlines that run into the edge of the grid.
        x, y = (np.pad(grid, 1, mode="edge") for grid in (self.joint.x, self.joint.y))
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
    halves = (np.pad(np.diff(grid) / 2, 1) for grid in (x, y))
    return np.outer(*(half[1:] + half[:-1] for half in halves))


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
    for i, j in np.ndindex(2, 2):
        part = mass * np.abs(1 - i - share[0]) * np.abs(1 - j - share[1])
        binned += np.bincount((cell[0] + i) * n + cell[1] + j, weights=part, minlength=n * n)
    margins = [min(int(np.ceil(4 * np.sqrt(kernel_cov[k, k]) / steps[k])), n - 1) for k in (0, 1)]
    offsets = np.meshgrid(*(np.arange(-m, m + 1) * s for m, s in zip(margins, steps, strict=True)), indexing="ij")
    delta = np.stack(offsets, axis=-1)
    kernel = np.exp(-0.5 * np.einsum("...i,ij,...j", delta, np.linalg.inv(kernel_cov), delta))
    size = [n + 2 * m for m in margins]
    full = fft.irfft2(fft.rfft2(binned.reshape(n, n), size) * fft.rfft2(kernel, size), size)
    return np.maximum(fold(fold(full, margins[0]).T, margins[1]).T, 0.0)
