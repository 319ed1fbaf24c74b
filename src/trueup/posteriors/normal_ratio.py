"""The ratio of two correlated normal variables, for recall, false-alarm rate and F-score of many items.

Su (2024, Appendix B) writes each as Z/W with Z and W jointly normal. With ρ their correlation, Z/W has the law of
T/r + s, where T = (a + X)/(b + Y) with X and Y independent standard normal.

References
----------
Marsaglia (1965), Ratios of normal variables and ratios of sums of uniform variables. JASA 60.
Marsaglia (2006), Ratios of normal variables. Journal of Statistical Software 16(4).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import dawsn, erf

from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_number
from trueup.exceptions import InvalidParameter
from trueup.posteriors.atoms import DiscreteEstimate
from trueup.posteriors.continuous import GridEstimate
from trueup.posteriors.estimate import Estimate

MeanMethod = Literal["principal", "marsaglia"]
_MEAN_METHODS: tuple[MeanMethod, ...] = ("principal", "marsaglia")
_SMALLEST_B = 4.0  # the condition of Appendix B: the denominator is more than 4 standard deviations from zero
_SAME = 1e-10  # 1 - ρ² below this is a perfect correlation


def _checked(
    mean_z: float, sd_z: float, mean_w: float, sd_w: float, rho: float
) -> tuple[float, float, float, float, float]:
    mean_z = check_number(mean_z, name="mean_z")
    sd_z = check_number(sd_z, name="sd_z", low=0.0)
    mean_w = check_number(mean_w, name="mean_w")
    sd_w = check_number(sd_w, name="sd_w", low=0.0)
    if abs(rho) <= 1 + 1e-9:  # a correlation computed from sums may be over by a rounding
        rho = min(max(float(rho), -1.0), 1.0)
    rho = check_number(rho, name="rho", low=-1.0, high=1.0)
    if mean_w == 0 and sd_w == 0:
        raise InvalidParameter("mean_w and sd_w must not both be 0: the denominator would always be zero")
    return mean_z, sd_z, mean_w, sd_w, rho


def _standard_form(
    mean_z: float, sd_z: float, mean_w: float, sd_w: float, rho: float
) -> tuple[float, float, float, float]:
    """(a, b, r, s) of Appendix B."""
    rest = math.sqrt(1 - rho**2)
    a = (mean_z / sd_z - rho * mean_w / sd_w) / rest
    return a, mean_w / sd_w, sd_w / (sd_z * rest), rho * sd_z / sd_w


def _is_degenerate(sd_z: float, sd_w: float, rho: float) -> bool:
    """Whether one standard normal variable drives both parts, or only one part varies."""
    return sd_z == 0 or sd_w == 0 or 1 - rho**2 < _SAME


def normal_ratio_density(
    x: npt.ArrayLike, mean_z: float, sd_z: float, mean_w: float, sd_w: float, rho: float = 0.0
) -> Floats:
    """The exact density of Z/W at `x`.

    Parameters
    ----------
    x : array
        Where.
    mean_z, sd_z, mean_w, sd_w : float
        Means and standard deviations of numerator and denominator; one of the deviations may be 0.
    rho : float
        Their correlation, from −1 to 1.

    Examples
    --------
    Two centred normals have a Cauchy ratio:

    >>> float(normal_ratio_density(0.0, 0, 1, 0, 1).round(6)), round(1 / np.pi, 6)
    (0.31831, 0.31831)
    """
    x = np.asarray(x, dtype=float)
    mean_z, sd_z, mean_w, sd_w, rho = _checked(mean_z, sd_z, mean_w, sd_w, rho)
    if _is_degenerate(sd_z, sd_w, rho):
        return _degenerate_density(x, mean_z, sd_z, mean_w, math.copysign(sd_w, rho))
    a, b, r, s = _standard_form(mean_z, sd_z, mean_w, sd_w, rho)
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

    Parameters
    ----------
    mean_z, sd_z, mean_w, sd_w, rho
        As for `normal_ratio_density`.
    bounds : (float, float)
        Finite bounds of the ratio; what the normal approximation puts outside is cut off.
    name : str, optional
        The name of the metric.
    n_grid : int
        Points of the grid over the bulk of the density.

    Returns
    -------
    Estimate
        A `GridEstimate`; all mass on one value where the ratio does not vary.

    Examples
    --------
    >>> normal_ratio(0.4, 0.02, 0.5, 0.022, 0.9, name="recall")
    Estimate(recall: 0.800, 95% interval 0.766 to 0.834)
    """
    mean_z, sd_z, mean_w, sd_w, rho = _checked(mean_z, sd_z, mean_w, sd_w, rho)
    if not (math.isfinite(bounds[0]) and math.isfinite(bounds[1])):
        raise InvalidParameter(f"bounds must be finite for a ratio of normals, got {bounds!r}")
    center = mean_z / mean_w if mean_w != 0 else math.copysign(math.inf, mean_z)
    x = _grid(center, mean_z, sd_z, mean_w, sd_w, rho, bounds, n_grid)
    density = normal_ratio_density(x, mean_z, sd_z, mean_w, sd_w, rho)
    if not density.max() > 0:  # the ratio is constant, or so far outside the bounds that only a bound is left
        value = float(np.clip(center, *bounds))
        return DiscreteEstimate([value], [1.0], bounds=bounds, name=name)
    return GridEstimate(x, density, bounds=bounds, name=name)


def _grid(
    center: float,
    mean_z: float,
    sd_z: float,
    mean_w: float,
    sd_w: float,
    rho: float,
    bounds: tuple[float, float],
    n_grid: int,
) -> Floats:
    """Points that are dense where the ratio mostly lies (by the delta method) and reach to the bounds."""
    coarse = np.linspace(*bounds, 513)
    if not math.isfinite(center):
        return np.linspace(*bounds, n_grid)
    spread = math.sqrt(max(sd_z**2 - 2 * center * rho * sd_z * sd_w + (center * sd_w) ** 2, 0.0)) / abs(mean_w)
    fine = center + spread * np.linspace(-10, 10, n_grid)
    return np.unique(np.concatenate([coarse, np.clip(fine, *bounds)]))


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
    bounds : (float, float)
        Finite bounds of the ratio; the result is clipped to them.
    method : {"principal", "marsaglia"}
        The closed form.
    """
    mean_z, sd_z, mean_w, sd_w, rho = _checked(mean_z, sd_z, mean_w, sd_w, rho)
    method = check_choice(method, _MEAN_METHODS, name="method")
    if sd_w == 0:
        return float(np.clip(mean_z / mean_w, *bounds))
    if mean_w / sd_w <= _SMALLEST_B:
        return normal_ratio(mean_z, sd_z, mean_w, sd_w, rho, bounds=bounds).mean
    # mean(T)/r + s without dividing by √(1 − ρ²) or sd_z, so that perfect correlation needs no case of its own.
    b = mean_w / sd_w
    inverse = math.sqrt(2) * float(dawsn(b / math.sqrt(2))) if method == "principal" else 1 / (1.01 * b - 0.2713)
    value = (mean_z / sd_w - rho * sd_z / sd_w * b) * inverse + rho * sd_z / sd_w
    return float(np.clip(value, *bounds))
