"""The point with the smallest total distance to others: a centre that outliers do not move."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trueup._validation import check_integer, check_number, preview
from trueup.exceptions import InvalidParameter

__all__ = ["geometric_median"]


def geometric_median(
    points: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> npt.NDArray[np.float64]:
    """Geometric (spatial) median by the Vardi–Zhang iteration.

    Weiszfeld's iteration stops dead when it lands on one of the points; the Vardi–Zhang step moves on from there
    unless that point is the median.

    Parameters
    ----------
    points : array of shape (n, d)
        At least one point, all finite.
    weights : array of shape (n,), optional
        Positive weights.
    tol : float
        Stop when a step is shorter than this share of the spread of the points.
    max_iter : int
        The most steps.

    Returns
    -------
    array of shape (d,)

    References
    ----------
    Vardi and Zhang (2000), The multivariate L1-median and associated data depth. PNAS 97.

    Examples
    --------
    >>> geometric_median([[0, 0], [0, 1], [1, 0], [1, 1]]).round(6)
    array([0.5, 0.5])
    """
    data = np.asarray(points, dtype=float)
    if data.ndim != 2 or 0 in data.shape or not np.isfinite(data).all():
        raise InvalidParameter(f"points must be finite numbers of shape (n, d), got shape {data.shape}")
    mass = np.ones(len(data)) if weights is None else np.asarray(weights, dtype=float)
    if mass.shape != (len(data),) or not np.isfinite(mass).all() or not (mass > 0).all():
        raise InvalidParameter(f"weights must be {len(data)} positive numbers, got {preview(mass.ravel())}")
    tol = check_number(tol, name="tol", low=0.0)
    if data.shape[1] == 1:
        return _weighted_median(data[:, 0], mass)
    center = np.average(data, axis=0, weights=mass)
    scale = float(np.abs(data - center).max())
    for _ in range(check_integer(max_iter, name="max_iter", low=1)):
        new = _vardi_zhang_step(data, mass, center, 1e-14 * scale)
        moved = float(np.linalg.norm(new - center))
        center = new
        if moved <= tol * scale:
            break
    # Towards a median that is itself one of the points the iteration only creeps; a step from that point tells.
    nearest = data[np.argmin(np.linalg.norm(data - center, axis=1))]
    stays = np.array_equal(_vardi_zhang_step(data, mass, nearest, 1e-14 * scale), nearest)
    return nearest.copy() if stays else center


def _weighted_median(values: npt.NDArray[np.float64], mass: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """On a line the median is known exactly: the middle of the two middle values."""
    order = np.argsort(values)
    upto = np.cumsum(mass[order])
    half = upto[-1] / 2
    low = values[order[np.searchsorted(upto, half * (1 - 1e-12))]]
    high = values[order[min(np.searchsorted(upto, half * (1 + 1e-12), side="right"), len(values) - 1)]]
    return np.array([(low + high) / 2])


def _vardi_zhang_step(
    data: npt.NDArray[np.float64],
    mass: npt.NDArray[np.float64],
    center: npt.NDArray[np.float64],
    same: float,
) -> npt.NDArray[np.float64]:
    difference = data - center
    distance = np.linalg.norm(difference, axis=1)
    away = distance > same
    if not away.any():
        return center
    pull = mass[away] / distance[away]
    weiszfeld = pull @ data[away] / pull.sum()
    here = float(mass[~away].sum())
    if here == 0:
        return np.asarray(weiszfeld)
    # The points under the centre hold it back with their weight against the pull of the others.
    strength = float(np.linalg.norm(pull @ difference[away]))
    if here >= strength:
        return center
    return np.asarray(weiszfeld + here / strength * (center - weiszfeld))
