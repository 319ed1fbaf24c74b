"""Newton's method with halved steps, for problems that know their objective, gradient and Hessian."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from scipy import linalg

from trueup.cleaning.flips import Array

__all__ = ["solved_by_newton"]

P = TypeVar("P", bound=Any)

_MAX_ITER = 50
_SETTLED = 1e-9  # of the decrease that Newton's step promises: a sum of squared changes of scores
_ENOUGH = 1e-4  # of the promised decrease
_LEAST_STEP = 1e-6


def solved_by_newton(problem: P, step: Callable[[P, Array], Array], *, keep: str) -> P | None:
    """The same problem at its solution; None if it finds none.

    Parameters
    ----------
    problem : dataclass
        With ``theta``, ``objective()`` and ``gradient()``.
    step : callable
        From a problem and its gradient to −H⁻¹ times the gradient.
    keep : str
        The cached factorisation that the solution takes over: the last step hardly changes the Hessian.
    """
    now = problem
    for _ in range(_MAX_ITER):
        value, gradient = now.objective(), now.gradient()
        try:
            move = step(now, gradient)
        except linalg.LinAlgError:
            return None
        decrease = -float((move * gradient).sum())
        if not math.isfinite(decrease):
            return None
        if decrease <= _SETTLED:  # a full step squares what is left
            last = replace(now, theta=now.theta + move)
            last.__dict__[keep] = getattr(now, keep)
            return last
        size = 1.0
        while (trial := replace(now, theta=now.theta + size * move)).objective() > value - _ENOUGH * size * decrease:
            size /= 2
            if size < _LEAST_STEP:  # nothing helps
                return None
        now = trial
    return None
