"""The picture of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueup._optional import require

__all__ = ["plot_history"]


def plot_history(rows: Sequence[dict[str, float]], ax: Any = None, *, metric: str, level: float) -> Any:
    """Mean and interval against the number of vetted items; returns the Axes."""
    if ax is None:
        _, ax = require("matplotlib.pyplot", purpose="ActiveTest.plot()").subplots(layout="constrained")
    n = [row["n"] for row in rows]
    ax.fill_between(n, [row["low"] for row in rows], [row["high"] for row in rows], alpha=0.25)
    ax.plot(n, [row["mean"] for row in rows])
    ax.set_xlabel("vetted items")
    ax.set_ylabel(f"{metric}, mean and {level:.0%} interval")
    return ax
