"""Panels side by side, one for each set of data, as PNG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["draw_panels"]


def draw_panels(
    out: Path | None,
    name: str,
    draw: Callable[[Any, str], None],
    panels: Sequence[str],
    *,
    along: str,
    label: str,
) -> str:
    """Draw a figure into a folder and say where; nothing without a folder.

    Parameters
    ----------
    draw : callable
        Takes the axes and the name of a panel.
    along, label : str
        What the horizontal and the vertical axis are.
    """
    if out is None:
        return ""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(panels), figsize=(5.5 * len(panels), 4.5), layout="constrained")
    for ax, which in zip(axes, panels, strict=True):
        draw(ax, which)
        ax.set(title=which, xlabel=along, ylabel=label)
        ax.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return f"\nsaved {path}"
