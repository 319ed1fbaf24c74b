"""The shortest interval of a continuous distribution that is known through its quantiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueup.posteriors.estimate import Array

__all__ = ["shortest_quantile_interval", "shortest_tail"]


def shortest_tail(ppf: Callable[[Array], Array], level: float) -> float:
    """The mass q left below the shortest interval: the one that minimises ``ppf(q + level) - ppf(q)``.

    A scan finds the valley, so that a second, shallower one does no harm; finer scans around it find its bottom.
    Each is one call of `ppf`.
    """
    tails = np.linspace(0.0, 1.0 - level, 201)
    tail = 0.0
    for _ in range(4):
        low, high = np.split(ppf(np.concatenate([tails, np.minimum(tails + level, 1.0)])), 2)
        best = int(np.argmin(high - low))
        tail = float(tails[best])
        tails = np.linspace(tails[max(best - 1, 0)], tails[min(best + 1, len(tails) - 1)], 41)
    return tail


def shortest_quantile_interval(ppf: Callable[[Array], Array], level: float) -> tuple[float, float]:
    """The shortest interval of this level; for a density with one peak that is the highest-density interval."""
    tail = shortest_tail(ppf, level)
    low, high = ppf(np.array([tail, min(tail + level, 1.0)]))
    return float(low), float(high)
