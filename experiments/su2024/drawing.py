"""How the paper's figures are drawn: densities with marks below them, and regions of pairs of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from experiments.su2024.settings import asked

__all__ = ["COLOURS", "NAMES", "draw_ellipses", "draw_joint", "draw_scalar", "labeler_points"]

Array = npt.NDArray[np.float64]

NAMES = {
    "accuracy": "Accuracy",
    "precision": "Precision",
    "recall": "Recall or probability of detection",
    "false_alarm_rate": "Probability of false alarm",
    "f1": "F-score",
}
COLOURS = {
    "ideal": "black",
    "ratios": "tab:blue",
    "sampling": "tab:cyan",
    "estimated-labels": "tab:red",
    "labeler-mean": "tab:green",
    "labeler-median": "tab:olive",
    "prior-average": "tab:purple",
    "no-predictions": "tab:blue",
    "no-predictions, labels": "tab:red",
    "bayes": "tab:orange",
}
MARKS = {"estimated-labels": "s", "no-predictions, labels": "s", "labeler-mean": "^", "labeler-median": "v"}


def labeler_points(sim: tu.simulate.Simulation, pair: tuple[str, str]) -> Array:
    """Two metrics with each labeler's votes as the truth, shape (n_labelers, 2)."""
    points = []
    for labeler in sim.labels.labelers:
        votes = sim.labels.select(labelers=[labeler])
        by_item = dict(zip(sim.labels.items.tolist(), sim.predictions, strict=True))
        predictions = np.array([by_item[item] for item in votes.items.tolist()])
        ev = tu.evaluate(
            predictions, votes, metrics=pair, method="labeler-mean", missing="ignore", check_dependence=False
        )
        points.append([ev[name].mean for name in pair])
    return np.array(points)


def _smooth_density(estimate: tu.posteriors.Estimate, grid: Array) -> Array:
    """The density, smoothed by a fifth of its spread: an exact law of counts has steps and no density."""
    step = grid[1] - grid[0]
    sd = max(estimate.std / 5, step)
    reach = int(np.ceil(4 * sd / step))
    around = (np.arange(-reach, reach + 1)) * step
    kernel = np.exp(-0.5 * (around / sd) ** 2)
    wide = grid[0] + step * (np.arange(-reach, len(grid) + reach + 1) - 0.5)
    mass = np.diff(np.asarray(estimate.cdf(wide)))
    return np.convolve(mass, kernel / kernel.sum(), mode="valid") / step


def draw_scalar(
    ax: Any, sim: tu.simulate.Simulation, metric: str, methods: Sequence[str], *, drawn: Array | None = None
) -> None:
    """Densities and 95% regions of the methods that have them, and marks below for all point estimates."""
    ideal = asked(sim, "ideal")[metric].mean
    evs = {name: asked(sim, name) for name in methods}
    regions = {name: ev[metric].interval(0.95) for name, ev in evs.items()}
    ends = [ideal, *(ev[metric].mean for ev in evs.values())]
    ends += [end for name, region in regions.items() if name != "prior-average" for end in region if np.isfinite(end)]
    margin = 0.15 * (max(ends) - min(ends)) + 0.01
    grid = np.linspace(max(min(ends) - margin, 0.0), min(max(ends) + margin, 1.0), 600)
    if drawn is not None:
        step = 2 / sim.labels.n_items  # bins of two items each, so that none is empty by accident
        bins = np.arange(drawn.min() - step / 4, drawn.max() + step, step)
        ax.hist(drawn, bins=bins, density=True, color="0.85", label="5000 draws (sampling)")
    peak = 0.0
    for name, ev in evs.items():
        colour, estimate = COLOURS[name], ev[metric]
        if not np.isfinite(regions[name][0]):
            continue
        density = _smooth_density(estimate, grid)
        peak = max(peak, float(density.max()))
        ax.plot(grid, density, color=colour, label=f"{name}: density")
    for row, (name, ev) in enumerate(evs.items()):
        height = -peak * 0.06 * (row + 1)
        colour = COLOURS[name]
        if np.isfinite(regions[name][0]):
            ax.plot(np.clip(regions[name], grid[0], grid[-1]), [height] * 2, color=colour, linewidth=3, alpha=0.5)
            if name != "bayes":  # the likeliest single quotient of whole numbers says little
                ax.plot(ev[metric].mode, height, "+", color=colour, markersize=9)
        ax.plot(ev[metric].mean, height, MARKS.get(name, "o"), color=colour, label=name, markersize=5)
    ax.axvline(ideal, color="black", linestyle=":", label="ideal (truth known)")
    ax.axhline(0, color="0.5", linewidth=0.5)
    ax.set_xlim(grid[0], grid[-1])
    ax.set_xlabel(NAMES[metric])
    ax.set_ylabel("probability density")


def draw_joint(
    ax: Any,
    sim: tu.simulate.Simulation,
    pair: tuple[str, str],
    methods: Sequence[str],
    *,
    regions: Sequence[str] = ("ratios", "bayes"),
    labelers: bool = True,
) -> None:
    """Point estimates and 95% regions of two metrics."""
    a, b = pair
    ideal = asked(sim, "ideal")
    for name in methods:
        ev = asked(sim, name)
        joint = ev.joint(a, b)
        if name in regions:
            for line in joint.region(0.95).polygons():
                ax.plot(line[:, 0], line[:, 1], color=COLOURS[name], label=f"{name}: 95% region")
            ax.plot(*joint.mode, "+", color=COLOURS[name], markersize=9)
        ax.plot(*joint.means, MARKS.get(name, "o"), color=COLOURS[name], label=name, markersize=5)
    if labelers:
        ax.plot(*labeler_points(sim, pair).T, "x", color="0.6", label="labelers", markersize=5)
    ax.plot(ideal[a].mean, ideal[b].mean, "k*", markersize=11, label="ideal (truth known)")
    ax.set_xlabel(NAMES[a])
    ax.set_ylabel(NAMES[b])
    ax.grid(alpha=0.3)


def draw_ellipses(ax: Any, points: Array, limit: float) -> None:
    """Errors as dots, their mean, and the ellipses of 68.27% and 95.45% of a fitted normal law."""
    center, covariance = points.mean(axis=0), np.cov(points.T)
    values, vectors = np.linalg.eigh(covariance)
    turn = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    ax.plot(*points.T, ".", color="0.75", markersize=3)
    for share in (0.6827, 0.9545):
        radius = np.sqrt(-2 * np.log(1 - share))
        ax.plot(*(center[:, None] + vectors @ (radius * np.sqrt(values)[:, None] * circle)), color="tab:blue")
    ax.plot(*center, "o", color="tab:red", markersize=5)
    ax.set_xlim(-limit, limit)
    ax.set_ylim(-limit, limit)
    ax.grid(alpha=0.3)
