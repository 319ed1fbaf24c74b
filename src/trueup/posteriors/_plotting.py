"""How an estimate is drawn; matplotlib is imported only here and only when something is drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._optional import require

if TYPE_CHECKING:
    from trueup.posteriors.estimate import Estimate

_COLOR = "#1f5a93"
_MOST_BARS = 200  # more atoms than this are better shown as a line


def new_axes(ax: Any, *, purpose: str) -> Any:
    """The given axes, or those of a new figure."""
    pyplot = require("matplotlib.pyplot", purpose=purpose)
    return pyplot.subplots()[1] if ax is None else ax


def draw_estimate(estimate: Estimate, *, ax: Any, level: float) -> Any:
    """Draw the density (or the probabilities), the mean and the interval of an estimate."""
    ax = new_axes(ax, purpose="Estimate.plot()")
    ax.set_xlabel(estimate.name or "value")
    ax.set_yticks([])
    if not math.isnan(estimate.std):
        _draw_distribution(estimate, ax, level)
    if not math.isnan(estimate.mean):
        ax.axvline(estimate.mean, color=_COLOR, linestyle="--", linewidth=1, label=f"mean {estimate.mean:.3g}")
        ax.legend(frameon=False, loc="upper left")
    return ax


def _draw_distribution(estimate: Estimate, ax: Any, level: float) -> None:
    low, high = estimate.interval(level)
    label = f"{level:.0%} interval {low:.3g} to {high:.3g}"
    atoms = getattr(estimate, "support", None)
    if estimate.std == 0 or (atoms is not None and len(atoms) <= _MOST_BARS):
        x = np.array([estimate.mean]) if atoms is None else atoms
        height = np.ones(1) if atoms is None else estimate.pdf(x)
        inside = (x >= low) & (x <= high)
        ax.vlines(x[~inside], 0, height[~inside], color=_COLOR, alpha=0.35, linewidth=2)
        ax.vlines(x[inside], 0, height[inside], color=_COLOR, linewidth=2, label=label)
        return
    ends = estimate.ppf([0.0005, 0.9995])
    x = np.unique(np.concatenate([np.linspace(ends[0], ends[1], 400), [low, high]]))
    smoothed = getattr(estimate, "smoothed", None)  # many atoms are shown as the density that they come near to
    height = estimate.pdf(x) if smoothed is None else np.interp(x, *smoothed())
    ax.plot(x, height, color=_COLOR, linewidth=1.5)
    inside = (x >= low) & (x <= high)
    ax.fill_between(x[inside], height[inside], color=_COLOR, alpha=0.25, linewidth=0, label=label)
    ax.set_ylim(bottom=0)
