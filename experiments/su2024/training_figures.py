"""Figures 19–23 of Section 5.4: training on noisy votes, and testing without truth (Ionosphere).

The figures show one split. The numbers are means over many splits, with fresh votes in each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import precision_recall_curve, roc_curve

import trueup as tu
from experiments.su2024.drawing import NAMES
from experiments.su2024.figures import _new as new_figure
from experiments.su2024.figures import _save as save_figure
from experiments.su2024.report import table
from experiments.su2024.settings import METHODS
from experiments.su2024.tables import Answer
from experiments.su2024.training import (
    CLASSIFIERS,
    PAIR,
    PANELS,
    Judge,
    PanelRun,
    Split,
    at_half,
    ionosphere,
    ionosphere_runs,
    shown_split,
)

__all__ = ["TRAINING_FIGURES"]

Array = npt.NDArray[np.float64]
NOISY = CLASSIFIERS[1:]
LOOKS = {
    "ideal": "black",
    "ml": "tab:blue",
    "mmse": "tab:orange",
    "label-estimation": "tab:green",
    "voting": "tab:purple",
}
SHOWN = 1  # the split that the figures show
ALL_PANELS, LARGEST = 10, 20  # splits of every panel, and of the largest


def runs_of(quick: bool) -> dict[int, tuple[PanelRun, ...]]:
    """The runs by number of labelers; the same splits for all."""
    if quick:
        return {t: ionosphere_runs(2, t) for t in (1, 13)}
    return {t: ionosphere_runs(LARGEST if t == PANELS[-1] else ALL_PANELS, t)[:ALL_PANELS] for t in PANELS}


def largest_runs(quick: bool) -> tuple[PanelRun, ...]:
    """All runs of the largest panel."""
    return ionosphere_runs(2 if quick else LARGEST, PANELS[-1])


def _panels(quick: bool, n_rows: int, **size: float) -> tuple[Any, Any, tuple[int, ...]]:
    shown = tuple(runs_of(quick))
    figure, axes = new_figure(n_rows, len(shown), **{"width": 4.2 * len(shown), "height": 4.0 * n_rows, **size})
    return figure, axes, shown


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _shrunk(ours: dict[str, float], what: str) -> dict[str, float]:
    """How much of a number of one labeler is left with thirteen."""
    return {f"{what}, T = 13 over T = 1": ours[f"T = 13, {what}"] / ours[f"T = 1, {what}"]}


# ------------------------------------------------------------------ Figure 19: one threshold


def _draw_regions(ax: Any, split: Split, run: PanelRun, method: str) -> None:
    """95% regions of recall and precision, their means and the actual points."""
    for name in NOISY:
        joint = at_half(split, run.chosen[name].scores, method).joint(*PAIR)
        for line in joint.region(0.95).polygons():
            ax.plot(line[:, 0], line[:, 1], color=LOOKS[name], linewidth=1)
        ax.plot(*joint.means, "o", color=LOOKS[name], markersize=5, label=f"{name}: mean, 95% region")
        ax.plot(*run.point[name], "v", color=LOOKS[name], markersize=7, markeredgecolor="white")
    ax.plot(*run.point["ideal"], "^", color="black", markersize=8, label="ideal classifier")
    ax.plot([], [], "v", color="0.5", label="actual (truth known)")
    ax.set(xlabel=NAMES[PAIR[0]].split(" or ")[0], ylabel=NAMES[PAIR[1]])
    ax.grid(alpha=0.3)


def figure19(out: Path, *, quick: bool = False) -> Answer:
    """Precision and recall at the threshold 1/2, as estimated without truth."""
    every = runs_of(quick)
    figure, axes, shown = _panels(quick, 2)
    for column, t in enumerate(shown):
        split = shown_split(SHOWN).panel(t)
        for row, (method, title) in enumerate((("ratios", "Algorithm 1"), ("bayes", "bayes"))):
            _draw_regions(axes[row, column], split, every[t][SHOWN], method)
            axes[row, column].set(title=f"T = {t}, {title}", xlim=(0.45, 0.95), ylim=(0.65, 1.01))
    axes[0, 0].legend(fontsize=7, loc="lower left")
    rows, ours = [], {}
    for t, runs in every.items():
        for method in ("ratios", "bayes"):
            found = [run.region[name, method] for run in runs for name in NOISY]
            points = np.array([run.point[name] for run in runs for name in NOISY])
            held, size = _mean([f[3] for f in found]), _mean([f[2] for f in found])
            off = _mean(np.linalg.norm(np.array([f[:2] for f in found]) - points, axis=1).tolist())
            rows.append([f"T = {t}, {method}", off, size, held])
            ours[f"T = {t}, {method}: distance of the mean to the actual point"] = off
            ours[f"T = {t}, {method}: area of the region"] = size
            ours[f"T = {t}, {method}: the region holds the actual point"] = held
    for what in ("distance of the mean to the actual point", "area of the region"):
        ours |= _shrunk(ours, f"ratios: {what}")
    ours["share of class 1"] = float(ionosphere()[1].mean())
    largest = largest_runs(quick)
    rows_of = []
    for name in CLASSIFIERS:
        points = np.array([run.point[name] for run in largest])
        rows_of.append([name, *map(float, points.mean(axis=0))])
        if name != "ideal":
            gap = points.mean(axis=0) - np.array([run.point["ideal"] for run in largest]).mean(axis=0)
            ours |= {
                f"{name}, T = 13: {m} against the ideal classifier's": float(g) for m, g in zip(PAIR, gap, strict=True)
            }
    n = len(next(iter(every.values())))
    text = [
        f"Over {n} splits and the four classifiers trained on votes",
        table(["", "mean to actual point", "area of the 95% region", "holds the actual point"], rows),
        "",
        f"Actual values at the threshold 1/2, T = 13, over {len(largest)} splits",
        table(["classifier", *PAIR], rows_of),
        save_figure(figure, out, "figure19"),
    ]
    return "\n".join(text), ours


# ------------------------------------------------------------------ Figures 20 and 21: ROC curves


def _draw_rocs(quick: bool, curve: Callable[[Split, Array], Array], title: str) -> Any:
    every = runs_of(quick)
    figure, axes, shown = _panels(quick, 1)
    for ax, t in zip(axes.flat, shown, strict=True):
        split, run = shown_split(SHOWN).panel(t), every[t][SHOWN]
        for name in NOISY:
            ax.plot(*curve(split, run.chosen[name].scores).T, color=LOOKS[name], label=name, linewidth=1.3)
        ax.plot(
            *actual_roc(split, run.chosen["ideal"].scores).T, color="black", linestyle=":", label="ideal classifier"
        )
        ax.set(title=f"T = {t}, {title}", xlabel=NAMES["false_alarm_rate"], ylabel="Probability of detection")
        ax.set(xlim=(-0.01, 1), ylim=(0, 1.01))
        ax.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=7, loc="lower right")
    return figure


def actual_roc(split: Split, scores: Array) -> Array:
    """P_FA and P_D with the truth known, shape (n, 2)."""
    false_alarms, detections, _ = roc_curve(split.truth[split.test], scores)
    return np.column_stack([false_alarms, detections])


def estimated_roc(split: Split, scores: Array) -> Array:
    """The same from votes, by Algorithm 1; in the order of thresholds, so that it may turn back."""
    return Judge(split.test_labels, split.noise).roc(scores)


def figure20(out: Path, *, quick: bool = False) -> Answer:
    """Estimated ROC curves, and how far the areas under them are from the actual ones."""
    figure = _draw_rocs(quick, estimated_roc, "estimated")
    rows, ours = [], {}
    for t, runs in {**runs_of(quick), PANELS[-1]: largest_runs(quick)}.items():
        for name in NOISY:
            actual = np.array([run.chosen[name].actual for run in runs])
            estimated = np.array([run.chosen[name].estimated for run in runs])
            drawn = np.array([run.auc[name] for run in runs])
            off = {"Algorithm 1": estimated - actual, "bayes": drawn[:, 0] - actual}
            means = (actual.mean(), estimated.mean(), drawn[:, 0].mean(), *(np.abs(e).mean() for e in off.values()))
            rows.append([f"T = {t}, {name}", *map(float, means)])
            for how, errors in off.items():
                ours[f"T = {t}, {name}: |estimated − actual| AUC, {how}"] = float(np.abs(errors).mean())
                ours[f"T = {t}, {name}: estimated − actual AUC, {how}"] = float(errors.mean())
    head = ["", "actual AUC", "Algorithm 1", "bayes", "|error|, Algorithm 1", "|error|, bayes"]
    return f"Means over splits\n{table(head, rows)}\n{save_figure(figure, out, 'figure20')}", ours


def figure21(out: Path, *, quick: bool = False) -> Answer:
    """Actual ROC curves: what training without truth costs."""
    figure = _draw_rocs(quick, actual_roc, "actual")
    rows, ours = [], {}
    for t, runs in {**runs_of(quick), PANELS[-1]: largest_runs(quick)}.items():
        ideal = np.array([run.chosen["ideal"].actual for run in runs])
        rows.append([f"T = {t}, ideal", float(ideal.mean()), "", "", 0.0])
        means = []
        for name in NOISY:
            actual = np.array([run.chosen[name].actual for run in runs])
            gap = actual - ideal
            error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
            regret = _mean([run.chosen[name].regret for run in runs])
            rows.append([f"T = {t}, {name}", float(actual.mean()), f"{gap.mean():+.4f}", f"± {error:.4f}", regret])
            means.append(actual.mean())
            ours[f"T = {t}, {name}: actual AUC against the ideal classifier's"] = float(gap.mean())
            ours[f"T = {t}, {name}: regret of the λ chosen without truth"] = regret
        ours[f"T = {t}: largest difference between training methods"] = float(np.ptp(means))
    head = ["", "actual AUC", "against ideal", "standard error", "regret of λ"]
    return f"Means over splits\n{table(head, rows)}\n{save_figure(figure, out, 'figure21')}", ours


# ------------------------------------------------------------------ Figures 22 and 23: posteriors of curves


def mmse_curve(split: Split, scores: Array, kind: str) -> tu.estimators.Curve:
    """Algorithm 1 at every threshold, with draws from the posteriors that it claims."""
    evaluation = at_half(split, scores, "ratios")
    names = ("false_alarm_rate", "recall") if kind == "roc" else PAIR
    metrics = [tu.metrics.get_metric(name, [0, 1], 1) for name in names]
    rng = np.random.default_rng(0)
    levels = np.unique(scores)
    means, ends, draws = [], [], []
    for level in levels:
        codes = (scores >= level).astype(np.int64)
        given = evaluation.problem
        problem = tu.estimators.Problem(codes, given.log_likelihood, given.prior, given.gold)
        counts = tu.estimators.mmse(problem, **METHODS["ratios"][1]).counts
        found = [counts.estimate(metric) for metric in metrics]
        means.append([e.mean for e in found])
        ends.append(
            [e.interval(0.95) for e in found]
        )  # the shortest, which reaches 1 where the density is highest there
        drawn = counts.draw_counts(2000, rng)
        draws.append(np.clip(np.column_stack([metric(drawn) for metric in metrics]), 0.0, 1.0))
    x, y = np.array(means).T
    return tu.estimators.Curve(kind, levels, x, y, *np.array(ends).swapaxes(0, 1), np.array(draws), 0.95)


def _posteriors(kind: str, classifier: str, name: str, out: Path, quick: bool) -> Answer:
    every = runs_of(quick)
    figure, axes, shown = _panels(quick, 2)
    rows, ours = [], {}
    for column, t in enumerate(shown):
        widths: dict[str, list[float]] = {"Algorithm 1": [], "bayes": []}
        inside: dict[str, list[float]] = {"Algorithm 1": [], "bayes": []}
        for number, run in list(enumerate(every[t]))[: 2 if quick else 5]:
            split, scores = shown_split(number).panel(t), run.chosen[classifier].scores
            curves = {
                "Algorithm 1": mmse_curve(split, scores, kind),
                "bayes": at_half(split, scores, "bayes").curve(kind, n_thresholds=45),
            }
            for how, curve in curves.items():
                actual = _actual_at(split, scores, curve)
                low, high = curve.y_interval.T
                widths[how].append(float(np.nanmean(high - low)))
                inside[how].append(float(np.mean((low - 1e-9 <= actual) & (actual <= high + 1e-9))))
            if number == SHOWN:
                for row, (how, curve) in enumerate(curves.items()):
                    mesh = _draw_heat(axes[row, column], split, scores, curve, f"T = {t}, {how}")
        for how in widths:
            rows.append([f"T = {t}, {how}", _mean(widths[how]), _mean(inside[how])])
            ours[f"T = {t}, {how}: width of the 95% interval along the curve"] = _mean(widths[how])
            ours[f"T = {t}, {how}: share of the actual curve inside"] = _mean(inside[how])
    figure.colorbar(mesh, ax=axes, label="density, averaged over thresholds", shrink=0.6)
    for how in ("Algorithm 1", "bayes"):
        ours |= _shrunk(ours, f"{how}: width of the 95% interval along the curve")
    axes[0, 0].legend(fontsize=7, loc="lower right" if kind == "roc" else "lower left")
    upright = "P_D" if kind == "roc" else "precision"
    head = ["", f"width of the 95% interval of {upright}", "thresholds whose interval holds the actual value"]
    note = f"{classifier} training; means over {min(5, len(next(iter(every.values()))))} splits and all thresholds"
    return f"{note}\n{table(head, rows)}\n{save_figure(figure, out, name)}", ours


def _actual_at(split: Split, scores: Array, curve: tu.estimators.Curve) -> Array:
    """What the curve's upright metric truly is at its thresholds."""
    metric = tu.metrics.get_metric("recall" if curve.kind == "roc" else "precision", [0, 1], 1)
    truth = split.truth[split.test]
    counts = [tu.metrics.confusion_counts(truth, (scores >= level).astype(np.int64), 2) for level in curve.thresholds]
    return np.asarray(metric(np.array(counts, dtype=float)))


def _draw_heat(ax: Any, split: Split, scores: Array, curve: tu.estimators.Curve, title: str) -> Any:
    """The density averaged over thresholds, on a scale of powers of ten, under the mean and the actual curve."""
    from matplotlib.colors import LogNorm

    edges, heat = curve.heat_map(50)
    density = heat / len(curve.thresholds) * (len(edges) - 1) ** 2
    drawn = np.ma.masked_less_equal(density, 0.0)
    mesh = ax.pcolormesh(edges, edges, drawn, norm=LogNorm(1e-2, 1e3), cmap="viridis", rasterized=True)
    ax.plot(curve.x, curve.y, color="tab:red", linewidth=1.2, label="estimated curve")
    if curve.kind == "roc":
        actual = actual_roc(split, scores)
        ax.set(xlabel=NAMES["false_alarm_rate"], ylabel="Probability of detection")
    else:
        precision, recall, _ = precision_recall_curve(split.truth[split.test], scores)
        actual = np.column_stack([recall, precision])[recall > 0]  # precision is not defined where nothing is found
        ax.set(xlabel="Recall", ylabel="Precision")
    ax.plot(*actual.T, color="black", linestyle="--", linewidth=1.2, label="actual curve")
    ax.set(title=title, xlim=(0, 1), ylim=(0, 1.01))
    return mesh


def figure22(out: Path, *, quick: bool = False) -> Answer:
    """The posterior of the ROC curve, ML training."""
    return _posteriors("roc", "ml", "figure22", out, quick)


def figure23(out: Path, *, quick: bool = False) -> Answer:
    """The posterior of the precision–recall curve, MMSE training."""
    return _posteriors("pr", "mmse", "figure23", out, quick)


TRAINING_FIGURES: dict[str, Callable[..., Answer]] = {f"figure{k}": globals()[f"figure{k}"] for k in range(19, 24)}
