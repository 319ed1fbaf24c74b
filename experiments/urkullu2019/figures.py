"""Box plots of swap errors as in Figures 11–15: one figure a case, rows labels per item, columns per labeler."""

from __future__ import annotations

from pathlib import Path

from experiments.urkullu2019.results import Results
from experiments.urkullu2019.settings import CASES, SHOWN

__all__ = ["FIGURES", "box_plots"]

FIGURES = {case: f"figure{11 + k}" for k, case in enumerate(CASES)}
VIEWS = ("DGT", "SGT", "PGT", "bayes")
COLOURS = ("tab:red", "tab:green", "tab:blue", "tab:orange")


def box_plots(results: Results, case: str, out: Path) -> Path:
    """Save the figure of one case."""
    import matplotlib.pyplot as plt

    levels = [level for level in results.design.levels if level in SHOWN]
    n = len(results.design.levels)
    figure, axes = plt.subplots(
        len(levels), len(levels), figsize=(9, 8), sharey=True, squeeze=False, layout="constrained"
    )
    grids = {view: results.of_view(view, case).reshape(-1, n, n) for view in VIEWS}
    for row, per_item in enumerate(levels):
        for column, per_labeler in enumerate(levels):
            ax = axes[row, column]
            where = results.design.levels.index(per_item), results.design.levels.index(per_labeler)
            boxes = ax.boxplot([grids[view][:, *where] for view in VIEWS], tick_labels=VIEWS, patch_artist=True)
            for box, colour in zip(boxes["boxes"], COLOURS, strict=True):
                box.set(facecolor=colour, alpha=0.4)
            ax.axhline(results.supervised.mean(), color="black", linestyle="--", linewidth=0.8, label="supervised")
            ax.set_title(f"{per_item} labels per item, {per_labeler} per labeler", fontsize=8)
            ax.tick_params(labelsize=8)
        axes[row, 0].set_ylabel("swap error")
    axes[0, -1].legend(fontsize=8)
    figure.suptitle(f"“{case}” labelers, {results.n_runs} runs")
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{FIGURES[case]}.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
