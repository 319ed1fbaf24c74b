"""Figures 9–18: each saves a PNG and returns the text to print and the numbers that can be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.su2024.drawing import COLOURS, NAMES, draw_ellipses, draw_joint, draw_scalar
from experiments.su2024.report import table
from experiments.su2024.runs import (
    MAIN_SEED,
    PAIRS,
    PLAIN_SEED,
    Run,
    column,
    errors,
    grid_runs,
    holds,
    main_runs,
    plain_runs,
)
from experiments.su2024.settings import METRICS, asked, main_example, single_labeler, small_sample
from experiments.su2024.tables import SHORT, Answer

__all__ = ["FIGURES"]

Array = npt.NDArray[np.float64]
SHOWN = ("ratios", "estimated-labels", "labeler-mean", "labeler-median", "bayes")
GRID_ROWS = (
    ("ratios", "mean"),
    ("ratios", "mode"),
    ("sampling", "mean"),
    ("sampling", "mode"),
    ("estimated-labels", "mean"),
    ("labeler-mean", "mean"),
    ("labeler-median", "mean"),
    ("prior-average", "mean"),
)
JOINT_ROWS = ("ratios", "sampling", "estimated-labels", "prior-average", "labeler-mean", "labeler-median")
# The numbers beside the axes of the paper's ellipses are not the roots of the eigenvalues, as its captions say, but the
# half-axes of the inner ellipse: their squares sum to 2.296 times the sum of the variances printed in Figure 14.
INNER = float(np.sqrt(-2 * np.log(1 - 0.6827)))


def _new(n_rows: int, n_columns: int, *, width: float, height: float) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(n_rows, n_columns, figsize=(width, height), layout="constrained", squeeze=False)


def _save(figure: Any, out: Path, name: str) -> str:
    import matplotlib.pyplot as plt

    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return f"saved {path}"


def figure9(out: Path, *, quick: bool = False) -> Answer:
    """The operating point, iteration by iteration."""
    sim = main_example(MAIN_SEED)
    ideal = asked(sim, "ideal")
    figure, axes = _new(1, 1, width=7, height=4.5)
    rows = []
    for name in ("ratios", "sampling", "estimated-labels"):
        trace = asked(sim, name).solution.operating_points
        axes[0, 0].plot(trace[:, 0], "o-", color=COLOURS[name], label=f"{name}: p_D", markersize=3)
        axes[0, 0].plot(trace[:, 1], "s--", color=COLOURS[name], label=f"{name}: p_FA", markersize=3)
        rows.append([name, len(trace) - 1, *map(float, trace[-1])])
    for metric, style in (("recall", ":"), ("false_alarm_rate", "-.")):
        axes[0, 0].axhline(ideal[metric].mean, color="black", linestyle=style, label=f"ideal {NAMES[metric].lower()}")
    axes[0, 0].set(xlabel="iteration", ylabel="estimated value", ylim=(0, 1))
    axes[0, 0].legend(fontsize=7, ncols=2)
    rows.append(["ideal", "–", ideal["recall"].mean, ideal["false_alarm_rate"].mean])
    runs = main_runs(6 if quick else 50)
    ours = {f"{m}: iterations": float(column(runs, m, "n_iter").mean()) for m in ("ratios", "sampling")}
    ours["estimated-labels: iterations"] = float(column(runs, "estimated-labels", "n_iter").mean())
    return f"{table(['method', 'iterations', 'p_D', 'p_FA'], rows)}\n{_save(figure, out, 'figure9')}", ours


def figure10(out: Path, *, quick: bool = False) -> Answer:
    """Accuracy of the main example by all methods."""
    sim = main_example(MAIN_SEED)
    truths = asked(sim, "sampling").solution.counts.draw_truths(5000, 0)
    figure, axes = _new(1, 1, width=8, height=5)
    methods = ("ratios", "sampling", *SHOWN[1:4], "prior-average", "bayes")
    draw_scalar(axes[0, 0], sim, "accuracy", methods, drawn=(truths == sim.predictions).mean(axis=1))
    axes[0, 0].legend(fontsize=7)
    return _save(figure, out, "figure10"), _coverage(main_runs(6 if quick else 50), ("ratios", "bayes"), ("accuracy",))


def figure11(out: Path, *, quick: bool = False) -> Answer:
    """The other scalar metrics of the main example."""
    sim = main_example(MAIN_SEED)
    figure, axes = _new(2, 2, width=11, height=8)
    for ax, metric in zip(axes.flat, METRICS[1:], strict=True):
        draw_scalar(ax, sim, metric, SHOWN)
    axes[0, 0].legend(fontsize=7)
    return _save(figure, out, "figure11"), _coverage(main_runs(6 if quick else 50), ("ratios", "bayes"), METRICS[1:])


def figure12(out: Path, *, quick: bool = False) -> Answer:
    """ROC and precision–recall of the main example."""
    sim = main_example(MAIN_SEED)
    figure, axes = _new(1, 2, width=11, height=5)
    draw_joint(axes[0, 0], sim, ("false_alarm_rate", "recall"), SHOWN)
    draw_joint(axes[0, 1], sim, ("recall", "precision"), SHOWN)
    axes[0, 1].legend(fontsize=7)
    runs = main_runs(6 if quick else 50)
    ours = {
        f"{name}: coverage of ({a}, {b})": float(np.mean([run.inside[name][k] for run in runs]))
        for name in ("ratios", "bayes")
        for k, (a, b) in enumerate(PAIRS)
    }
    return _save(figure, out, "figure12"), ours


def figure13(out: Path, *, quick: bool = False) -> Answer:
    """What happens when the predictions are not used to infer the truth."""
    sim = main_example(MAIN_SEED)
    figure, axes = _new(1, 2, width=11, height=5)
    methods = ("no-predictions", "no-predictions, labels")
    draw_scalar(axes[0, 0], sim, "accuracy", methods)
    axes[0, 0].legend(fontsize=7)
    draw_joint(axes[0, 1], sim, ("recall", "precision"), methods, regions=("no-predictions",), labelers=False)
    axes[0, 1].legend(fontsize=7)
    runs = main_runs(6 if quick else 50)
    ours = _coverage(runs, ("no-predictions",), METRICS)
    for k, short in enumerate(SHORT):
        ours[f"no-predictions: mean error of {short}"] = float(errors(runs, "no-predictions")[:, k].mean())
    return _save(figure, out, "figure13"), ours


def _coverage(runs: Sequence[Run], methods: Sequence[str], metrics: Sequence[str]) -> dict[str, float]:
    shares = {name: np.nanmean(holds(runs, name), axis=0) for name in methods}
    return {
        f"{m}: coverage of {SHORT[METRICS.index(k)]}": float(shares[m][METRICS.index(k)])
        for m in methods
        for k in metrics
    }


def _grids(quick: bool) -> tuple[tuple[Run, ...], ...]:
    return grid_runs("same", 2, 3) if quick else grid_runs("same", 10, 1)


def figure14(out: Path, *, quick: bool = False) -> Answer:
    """Errors of the five metrics over the grid of operating points, by method."""
    grids = _grids(quick)
    figure, axes = _new(len(GRID_ROWS), 5, width=12, height=10)
    ours: dict[str, float] = {}
    rows: list[list[object]] = []
    for row, (name, field) in enumerate(GRID_ROWS):
        label = name if field == "mean" else f"{name}, MAP"
        each = np.array([errors(runs, name, field) for runs in grids])  # grids × points × metrics
        limit = 0.08 if name in ("ratios", "sampling") else 0.6
        for k, short in enumerate(SHORT):
            mean, std = np.nanmean(each[..., k], axis=1).mean(), np.nanstd(each[..., k], axis=1).mean()
            ours[f"{label}: error of {short}, mean"], ours[f"{label}: error of {short}, std"] = float(mean), float(std)
            ax = axes[row, k]
            ax.plot(each[0, :, k], np.zeros(each.shape[1]), ".", color="0.7", markersize=3)
            first, spread = np.nanmean(each[0, :, k]), np.nanstd(each[0, :, k])
            ax.plot(first + spread * np.array([-2, -1, 1, 2]), np.zeros(4), "x", color="tab:blue", markersize=5)
            ax.plot(first, 0, "o", color="tab:red", markersize=4)
            ax.set(xlim=(-limit, limit), yticks=[], title=f"{first:+.3f} ± {spread:.3f}")
            ax.title.set_fontsize(7)
            ax.tick_params(labelsize=6)
            if k == 0:
                ax.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
            if row == len(GRID_ROWS) - 1:
                ax.set_xlabel(f"error of {short}", fontsize=8)
        rows.append(
            [
                label,
                *(
                    f"{ours[f'{label}: error of {s}, mean']:+.3f} ± {ours[f'{label}: error of {s}, std']:.3f}"
                    for s in SHORT
                ),
            ]
        )
    return f"{table(['method', *SHORT], rows)}\n{_save(figure, out, 'figure14')}", ours


def _joint_errors(name: str, out: Path, quick: bool, which: int) -> Answer:
    grids = _grids(quick)
    columns = [METRICS.index(metric) for metric in PAIRS[which]]
    figure, axes = _new(3, 2, width=8, height=11)
    ours: dict[str, float] = {}
    rows = []
    for ax, method in zip(axes.flat, JOINT_ROWS, strict=True):
        label = "sampling, MAP" if method == "sampling" else method
        each = np.array([[r.said["ideal"].mean[columns] - r.joint[method][which] for r in runs] for runs in grids])
        values = np.array([_axes_of(points) for points in each]).mean(axis=0)
        keys = (
            f"mean error of {PAIRS[which][0]}",
            f"mean error of {PAIRS[which][1]}",
            "longer half-axis",
            "shorter half-axis",
        )
        ours |= {f"{label}: {key}": float(v) for key, v in zip(keys, values, strict=True)}
        rows.append([label, *map(float, values)])
        points = each[0]
        draw_ellipses(ax, points[~np.isnan(points).any(axis=1)], 0.08 if method in ("ratios", "sampling") else 0.6)
        ax.set(title=label, xlabel=f"error of {PAIRS[which][0]}", ylabel=f"error of {PAIRS[which][1]}")
    head = ["method", *PAIRS[which], "longer half-axis", "shorter half-axis"]
    return f"{table(head, rows)}\n{_save(figure, out, name)}", ours


def _axes_of(points: Array) -> Array:
    """Mean of both errors, and the half-axes of the ellipse that holds 68.27% of a fitted normal law."""
    points = points[~np.isnan(points).any(axis=1)]
    small, large = np.sqrt(np.linalg.eigvalsh(np.cov(points.T)))
    return np.array([*points.mean(axis=0), INNER * large, INNER * small])


def figure15(out: Path, *, quick: bool = False) -> Answer:
    """Joint errors of precision and recall."""
    return _joint_errors("figure15", out, quick, 0)


def figure16(out: Path, *, quick: bool = False) -> Answer:
    """Joint errors of the false-alarm rate and the probability of detection."""
    return _joint_errors("figure16", out, quick, 1)


def figure17(out: Path, *, quick: bool = False) -> Answer:
    """One labeler with a known rate of errors."""
    sim = single_labeler(PLAIN_SEED)
    figure, axes = _new(1, 2, width=11, height=5)
    methods = ("ratios", "estimated-labels", "labeler-mean", "bayes")
    draw_scalar(axes[0, 0], sim, "accuracy", methods)
    axes[0, 0].legend(fontsize=7)
    draw_joint(axes[0, 1], sim, ("recall", "precision"), methods, labelers=False)
    axes[0, 1].legend(fontsize=7)
    text, ours = _plain("single", 20 if quick else 200)
    return f"{text}\n{_save(figure, out, 'figure17')}", ours


def figure18(out: Path, *, quick: bool = False) -> Answer:
    """Seventy items."""
    seed = next(s for s in range(PLAIN_SEED, PLAIN_SEED + 1000) if small_sample(s).predictions.sum() == 37)
    sim = small_sample(seed)
    figure, axes = _new(1, 2, width=11, height=5)
    draw_scalar(axes[0, 0], sim, "false_alarm_rate", SHOWN)
    axes[0, 0].legend(fontsize=7)
    draw_joint(axes[0, 1], sim, ("false_alarm_rate", "recall"), SHOWN)
    axes[0, 1].legend(fontsize=7)
    text, ours = _plain("small", 20 if quick else 200)
    return f"Shown: seed {seed}, with 37 of 70 predicted as 1.\n{text}\n{_save(figure, out, 'figure18')}", ours


def _plain(which: Any, n: int) -> Answer:
    runs = plain_runs(which, n)
    ours: dict[str, float] = {}
    rows = []
    for name in ("ratios", "estimated-labels", "labeler-mean", "bayes"):
        off = np.nanmean(np.abs(errors(runs, name)), axis=0)
        ours |= {f"{name}: mean absolute error of {short}": float(v) for short, v in zip(SHORT, off, strict=True)}
        rows.append([f"{name}: mean abs. error", *map(float, off)])
    for name in ("ratios", "bayes"):
        share = np.nanmean(holds(runs, name), axis=0)
        ours |= {f"{name}: coverage of {short}": float(v) for short, v in zip(SHORT, share, strict=True)}
        rows.append([f"{name}: 95% region holds", *map(float, share)])
    return f"Over {n} seeds\n{table(['', *SHORT], rows)}", ours


FIGURES: dict[str, Callable[..., Answer]] = {f"figure{k}": globals()[f"figure{k}"] for k in range(9, 19)}
