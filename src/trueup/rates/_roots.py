"""Where decreasing functions cross zero, for many functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueup.rates._checks import Array

__all__ = ["crossing"]

_STEPS = 80  # bisection alone would need 40; the method below needs about 10


def crossing(function: Callable[[Array], Array], low: Array, high: Array, *, tolerance: float = 1e-10) -> Array:
    """The x in [low, high] where a function falls through zero; an end where it does not.

    `function` takes and gives arrays of one shape, element by element. Where it is not positive at `low` the answer is
    `low`, where it is not negative at `high` it is `high`.

    References
    ----------
    Chandrupatla (1997), A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
    without using derivatives. Advances in Engineering Software 28.
    """
    new, other = np.array(low, dtype=float), np.array(high, dtype=float)
    f_new, f_other = function(new), function(other)
    at_low = f_new <= 0
    at_high = ~at_low & (f_other >= 0)
    share = np.full(new.shape, 0.5)
    for _ in range(_STEPS):
        x = new + share * (other - new)
        fx = function(x)
        same = np.sign(fx) == np.sign(f_new)
        old, f_old = np.where(same, new, other), np.where(same, f_new, f_other)
        other, f_other = np.where(same, other, new), np.where(same, f_other, f_new)
        new, f_new = x, fx
        width = np.abs(new - other)
        if ((width < tolerance) | (f_new == 0) | at_low | at_high).all():
            break
        least = 0.5 * tolerance / np.maximum(width, tolerance)
        share = np.clip(_next_share(new, other, old, f_new, f_other, f_old), least, 1 - least)
    inside = np.where(np.abs(f_new) <= np.abs(f_other), new, other)
    return np.where(at_low, low, np.where(at_high, high, inside))


def _next_share(x1: Array, x2: Array, x3: Array, f1: Array, f2: Array, f3: Array) -> Array:
    """How far from x1 to x2 to go next: inverse quadratic interpolation where it can be trusted, else one half."""
    with np.errstate(all="ignore"):
        xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
        trusted = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        step = f1 / (f1 - f2) * f3 / (f3 - f2) - (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f2 - f3)
    return np.where(trusted & np.isfinite(step), step, 0.5)
