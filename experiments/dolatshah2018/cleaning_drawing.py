"""Learning curves as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["draw_curves"]


def draw_curves(
    path: Path,
    panels: Mapping[str, Mapping[str, npt.NDArray[np.float64]]],
    points: Mapping[str, Mapping[str, float]] | None = None,
    *,
    step: int = 1,
) -> None:
    """A panel for each set, a line for each strategy; what needs no oracle is a dot at 0."""
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    columns = min(len(panels), 4)
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4 * columns, 3.2 * rows), layout="constrained", squeeze=False)
    for ax, (title, lines) in zip(axes.flat, panels.items(), strict=False):
        for name, values in lines.items():
            ax.plot(step * np.arange(len(values)), values, label=name)
        for name, value in (points or {}).get(title, {}).items():
            ax.plot([0], [value], "o", label=name)
        ax.set_title(title, fontsize="small")
        ax.set_xlabel("labels cleaned")
        ax.set_ylabel("accuracy")
        ax.grid(alpha=0.3)
    for ax in list(axes.flat)[len(panels) :]:
        ax.axis("off")
    axes.flat[0].legend(fontsize="x-small")
    figure.savefig(path, dpi=120)
    plt.close(figure)
