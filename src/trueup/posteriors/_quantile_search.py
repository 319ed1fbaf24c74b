"""The shortest interval of a continuous distribution that is known through its quantiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from trueup.posteriors.estimate import Array

__all__ = ["shortest_quantile_interval"]


def shortest_quantile_interval(ppf: Callable[[Array], Array], level: float) -> tuple[float, float]:
    """Minimise ``ppf(q + level) - ppf(q)`` over the lower tail q.

    For a density with one peak this is the highest-density interval. A scan finds the valley, so that a second,
    shallower one does no harm, and Brent's method its bottom.
    """
    tails = np.linspace(0.0, 1.0 - level, 201)

    def width(q: Array | float) -> Array:
        low = np.asarray(q, dtype=float)
        return ppf(np.minimum(low + level, 1.0)) - ppf(low)

    widths = width(tails)
    best = int(np.argmin(widths))
    around = (tails[max(best - 1, 0)], tails[min(best + 1, len(tails) - 1)])
    found = minimize_scalar(lambda q: float(width(q)), bounds=around, method="bounded", options={"xatol": 1e-10})
    tail = float(found.x) if float(found.fun) < widths[best] else float(tails[best])
    low, high = ppf(np.array([tail, min(tail + level, 1.0)]))
    return float(low), float(high)
