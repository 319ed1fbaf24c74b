"""Distributions that put their mass on finitely many points: exact discrete ones and draws alike."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from trueup._validation import preview
from trueup.exceptions import InvalidParameter
from trueup.posteriors.estimate import Array, Estimate

__all__ = ["AtomicEstimate", "merge_atoms", "shortest_window"]

_SLACK = 1e-12  # sums of probabilities are right to about this much
_OUTSIDE = 1e-9  # rounding may carry a value this far over a bound


def merge_atoms(values: Array, mass: Array, slack: float) -> tuple[Array, Array]:
    """Sorted distinct values with their summed mass; neighbours that differ by no more than `slack` are one."""
    order = np.argsort(values, kind="stable")
    x, p = values[order], mass[order]
    if not len(x):
        return x, p
    new = np.diff(x) > slack * np.maximum(1.0, np.abs(x[1:]))
    starts = np.concatenate([[0], np.flatnonzero(new) + 1])
    return x[starts], np.add.reduceat(p, starts)


def shortest_window(x: Array, p: Array, level: float) -> tuple[float, float]:
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

    _x: Array
    _p: Array

    def _set_atoms(self, values: npt.ArrayLike, mass: npt.ArrayLike, *, what: str, slack: float) -> None:
        x = np.asarray(values, dtype=float).ravel()
        p = np.asarray(mass, dtype=float).ravel()
        if x.shape != p.shape:
            raise InvalidParameter(f"{what} must have one weight for each value, got {len(x)} values, {len(p)} weights")
        if not np.isfinite(p).all() or (p < 0).any():
            raise InvalidParameter(f"{what} must have weights that are finite and not negative, got {preview(p)}")
        total = float(p.sum())
        if not total > 0:
            raise InvalidParameter(
                f"{what} must have some positive weight, got {len(p)} values of total weight {total:g}"
            )
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
        x, p = merge_atoms(np.clip(x, low, high), p, slack)
        self._set(_x=x, _p=p / p.sum() if len(p) else p)
        self._set(undefined=self.undefined + (1 - self.undefined) * lost)

    @property
    def mean(self) -> float:
        if not len(self._x):
            return math.nan
        return float(np.clip(self._x @ self._p, self._x[0], self._x[-1]))

    @property
    def std(self) -> float:
        return math.sqrt(float(self._p @ (self._x - self.mean) ** 2)) if len(self._x) else math.nan

    def _cdf_at(self, x: Array, side: str) -> Array:
        if not len(self._x):
            return np.full(np.shape(x), math.nan)
        upto = np.concatenate([[0.0], np.cumsum(self._p)])
        upto[-1] = 1.0
        # 3 · 0.1 is not 0.3: a value asked for is an atom if it is one up to rounding.
        slack = _SLACK * np.maximum(1.0, np.abs(x))
        found = np.searchsorted(self._x, x + slack if side == "right" else x - slack)
        return np.where(np.isnan(x), math.nan, np.minimum(upto[found], 1.0))

    def _cdf(self, x: Array) -> Array:
        return self._cdf_at(x, "right")

    def _cdf_left(self, x: Array) -> Array:
        return self._cdf_at(x, "left")

    def _ppf(self, q: Array) -> Array:
        if not len(self._x):
            return np.full(np.shape(q), math.nan)
        found = np.searchsorted(np.cumsum(self._p), q - _SLACK, side="left")
        return self._x[np.minimum(found, len(self._x) - 1)]

    def _hdi(self, level: float) -> tuple[float, float]:
        return shortest_window(self._x, self._p, level) if len(self._x) else (math.nan, math.nan)
