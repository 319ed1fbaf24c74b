"""Figures 4 and 7–10 (advice 1): each returns the text to print and the numbers that expected.json knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import trueup as tu
from experiments.dolatshah2018.runs import METHODS, METRICS, Outcome, gaussian_runs, real_runs, restaurant_runs
from experiments.su2024.report import table

__all__ = ["FIGURES", "Answer", "equation_15", "figure4", "figure7", "figure8", "figure9", "figure10"]

Answer = tuple[str, dict[str, float]]
NAMES = {"accuracy": "Accuracy", "precision": "Precision", "recall": "Recall", "f1": "F-score"}
Z = 1.959963984540054


def equation_15(n: int, beta: float, accuracy: float) -> float:
    """Half the width of the 95% interval of the accuracy, labels being wrong at rate β."""
    ab = -beta * (1 - beta) / (1 - 2 * beta) ** 2
    return Z * math.sqrt((-ab + accuracy - accuracy**2) / n)


def figure4(out: Path | None, *, quick: bool = False) -> Answer:
    """Half-width against sample size and label noise for an accuracy of 0.8: eq. 15 and ours."""
    n_sets = 4 if quick else 40
    sizes, rates = (100, 300, 1000, 3000, 10_000), (0.0, 0.1, 0.2, 0.3, 0.4)
    ours = {(n, beta): _half_width(n, beta, n_sets) for n in sizes for beta in rates}
    rows = [[f"N = {n}", *(f"{equation_15(n, beta, 0.8):.4f} / {ours[n, beta]:.4f}" for beta in rates)] for n in sizes]
    text = table(["eq. 15 / ours", *(f"β = {beta:g}" for beta in rates)], rows)
    ratios = [ours[n, beta] / equation_15(n, beta, 0.8) for n in sizes for beta in rates]
    numbers = {
        "smallest ratio to eq. 15": min(ratios),
        "largest ratio to eq. 15": max(ratios),
        "N from 100 to 1000: times smaller": ours[100, 0.2] / ours[1000, 0.2],
        "β from 0.4 to 0.1: times smaller": ours[1000, 0.4] / ours[1000, 0.1],
    }
    if out is not None:
        lines = {f"β = {beta:g}": [ours[n, beta] for n in sizes] for beta in rates}
        _draw(out / "figure4.png", "sample size", sizes, {"Accuracy": lines}, logarithmic=True)
    return f"Half-width of the 95% interval of an accuracy of 0.8, {n_sets} sets each.\n{text}", numbers


def _half_width(n: int, beta: float, n_sets: int) -> float:
    """1.96 mean standard errors: what the interval is before it meets 0 or 1."""
    matrix = [[1 - beta, beta], [beta, 1 - beta]]
    found = []
    for seed in range(n_sets):
        sim = tu.simulate.dawid_skene(
            n_items=n, n_labelers=1, confusion=matrix, classifier_accuracy=0.8, random_state=seed
        )
        noise = tu.noise.Confusion(matrix)
        ev = tu.evaluate(sim.predictions, sim.labels, noise=noise, metrics=["accuracy"], method="unbiased")
        found.append(Z * ev["accuracy"].std)
    return float(np.mean(found))


def _sweep(
    name: str, label: str, values: Sequence[Any], runs: dict[Any, Outcome], out: Path | None, n_runs: int
) -> tuple[str, dict[str, float]]:
    """A table for each metric: what 95% of the errors stay below, by method."""
    text = [
        f"What 95% of the absolute errors stay below, over {n_runs} data sets and against the population's metric.",
        "For TARS also the mean half-width of its 95% interval (its error in the paper), and how often that holds.",
    ]
    panels: dict[str, dict[str, list[float]]] = {}
    numbers: dict[str, float] = {}
    for k, metric in enumerate(METRICS):
        rows: list[list[Any]] = []
        panels[NAMES[metric]] = {
            method: [float(runs[value].spread[m, k]) for value in values] for m, method in enumerate(METHODS)
        }
        for value in values:
            outcome = runs[value]
            own = (float(outcome.half_width[0, k]), float(outcome.held[0, k]))
            rows.append([f"{value}", *map(float, outcome.spread[:, k]), *own])
            for m, method in enumerate(METHODS):
                numbers[f"{method}, {metric}, {label} {value}"] = float(outcome.spread[m, k])
            numbers[f"TARS half-width, {metric}, {label} {value}"] = float(outcome.half_width[0, k])
        head = [f"{NAMES[metric]}, {label}", *METHODS, "TARS half-width", "holds"]
        text += ["", table(head, rows)]
    if out is not None:
        _draw(out / f"{name}.png", label, values, panels)
    return "\n".join(text), numbers


def figure7(out: Path | None, *, quick: bool = False) -> Answer:
    """The Gaussian set by sample size."""
    n_runs, sizes = (3, (100, 1000)) if quick else (60, (100, 250, 500, 1000))
    runs = {n: gaussian_runs(n_runs, n=n) for n in sizes}
    text, numbers = _sweep("figure7", "N =", sizes, runs, out, n_runs)
    first, last = runs[sizes[0]], runs[sizes[-1]]
    for k, metric in enumerate(METRICS):
        numbers[f"TARS half-width, {metric}: N × 10 shrinks it"] = float(first.half_width[0, k] / last.half_width[0, k])
    for m, method in enumerate(METHODS):
        numbers[f"{method}, accuracy: N × 10 shrinks the error"] = float(first.spread[m, 0] / last.spread[m, 0])
        if m:
            numbers[f"{method} over TARS, accuracy, N = 1000"] = float(last.spread[m, 0] / last.spread[0, 0])
    return text, numbers


def figure8(out: Path | None, *, quick: bool = False) -> Answer:
    """The Gaussian set by noise rate."""
    n_runs, rates = (3, (0.35, 0.1)) if quick else (60, (0.45, 0.4, 0.35, 0.3, 0.2, 0.1))
    runs = {rate: gaussian_runs(n_runs, rate=rate) for rate in rates}
    return _sweep("figure8", "noise rate", rates, runs, out, n_runs)


def figure9(out: Path | None, *, quick: bool = False) -> Answer:
    """The Gaussian set by the number of votes an item."""
    n_runs, votes = (3, (1, 15)) if quick else (60, (1, 3, 5, 9, 15))
    runs = {count: gaussian_runs(n_runs, votes=count) for count in votes}
    return _sweep("figure9", "votes", votes, runs, out, n_runs)


def figure10(out: Path | None, *, quick: bool = False) -> Answer:
    """The five sets: what each method says, and how far off it is."""
    n_runs = 3 if quick else 60
    settings: dict[str, tuple[str, Callable[[int], Outcome]]] = {
        "gaussian": ("accuracy", gaussian_runs),
        "heart": ("accuracy", lambda n: real_runs("heart", n)),
        "cancer": ("accuracy", lambda n: real_runs("cancer", n)),
        "diabetes": ("accuracy", lambda n: real_runs("diabetes", n)),
        "restaurant, one vote, rates counted": ("f1", lambda n: restaurant_runs(n, votes=1, rates="counted")),
        "restaurant, one vote, rates learned": ("f1", lambda n: restaurant_runs(n, votes=1)),
        "restaurant, three votes, rates learned": ("f1", lambda n: restaurant_runs(n, votes=3)),
    }
    rows: list[list[Any]] = []
    numbers: dict[str, float] = {}
    best = 0.0
    bars: dict[str, dict[str, float]] = {}
    for name, (metric, measured) in settings.items():
        outcome, k = measured(n_runs), METRICS.index(metric)
        mae = outcome.mae[:, k]
        bars[name] = {"truth": float(outcome.truth[:, k].mean())}
        bars[name] |= {method: float(outcome.said[:, m, k].mean()) for m, method in enumerate(METHODS)}
        times = (f"{mae[1] / mae[0]:.1f} ×", f"{mae[2] / mae[0]:.1f} ×")
        said = (*bars[name].values(), *map(float, mae), *times, float(outcome.held[0, k]))
        rows.append([f"{name}: {NAMES[metric]}", *said])
        best = max(best, float(mae[1:].max() / mae[0]))
        for m, method in enumerate(METHODS):
            numbers[f"{name}, {method}: mean error"] = float(outcome.errors[:, m, k].mean())
            numbers[f"{name}, {method}: mean absolute error"] = float(mae[m])
        numbers[f"{name}, DirtyEval over TARS"] = float(mae[1] / mae[0])
        numbers[f"{name}, NoiseRemove over TARS"] = float(mae[2] / mae[0])
    numbers["how many times smaller, at most"] = best
    head = ["mean over runs", "truth", *METHODS, "MAE: TARS", "Dirty", "Removal", "Dirty/TARS", "Removal/TARS", "holds"]
    if out is not None:
        _draw_bars(out / "figure10.png", bars)
    what = f"{n_runs} random splits (test sets); MAE is the mean absolute error; holds: TARS's 95% interval."
    return f"{what}\n{table(head, rows)}", numbers


def _draw(
    path: Path,
    label: str,
    x: Sequence[Any],
    panels: dict[str, dict[str, list[float]]],
    *,
    logarithmic: bool = False,
) -> None:
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, len(panels), figsize=(4 * len(panels), 3.2), layout="constrained", squeeze=False)
    for ax, (title, lines) in zip(axes[0], panels.items(), strict=True):
        for name, values in lines.items():
            ax.plot(x, values, marker="o", label=name)
        ax.set_title(title)
        ax.set_xlabel(label)
        ax.set_ylabel("estimation error")
        ax.grid(alpha=0.3)
        if logarithmic:
            ax.set_xscale("log")
            ax.set_yscale("log")
        ax.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_bars(path: Path, bars: dict[str, dict[str, float]]) -> None:
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, ax = plt.subplots(figsize=(11, 3.6), layout="constrained")
    names = list(next(iter(bars.values())))
    for k, name in enumerate(names):
        ax.bar(np.arange(len(bars)) + 0.2 * (k - 1.5), [values[name] for values in bars.values()], 0.18, label=name)
    ax.set_xticks(range(len(bars)), [name.replace(", ", "\n") for name in bars])
    ax.set_ylabel("accuracy or F-score, mean over splits")
    ax.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


FIGURES: dict[str, Callable[..., Answer]] = {
    "figure4": figure4,
    "figure7": figure7,
    "figure8": figure8,
    "figure9": figure9,
    "figure10": figure10,
}
