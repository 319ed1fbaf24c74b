"""Figures 11–13 (advice 2) and two real crowds: each returns the text to print and the numbers expected.json knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.dolatshah2018.cleaning_drawing import draw_curves
from experiments.dolatshah2018.cleaning_runs import (
    BASELINES,
    CEILING,
    EMI,
    ORACLE_FREE,
    START,
    Array,
    Curve,
    Task,
    completed,
    kept_file,
    means,
)
from experiments.dolatshah2018.cleaning_sets import CROWDS, FIVE, SETS
from experiments.su2024.report import table

__all__ = ["CLEANING_FIGURES", "crowds", "figure11", "figure12", "figure13", "paired"]

Answer = tuple[str, dict[str, float]]
SINGLE = (START, *ORACLE_FREE, CEILING)
VARIANTS = ("TARS, both off", "TARS, op2 off", "TARS as published", EMI)
NO_FIRST_ORDER = {("labelme", "ExpectError")}  # minutes for a decision: its 8 classes have no first-order option there


def paired(curves: dict[Task, Curve], data: str, one: str, other: str) -> tuple[float, float]:
    """How far `one` is ahead of `other` on average over the learning curve, and the standard error of that."""
    lead = means(curves, data, one) - means(curves, data, other)
    error = float(lead.std(ddof=1) / np.sqrt(len(lead))) if len(lead) > 1 else float("nan")
    return float(lead.mean()), error


def _file(out: Path | None, *, quick: bool) -> Path | None:
    if out is not None:
        return out / "curves.jsonl"
    return None if quick else kept_file()


def _curve(curves: dict[Task, Curve], data: str, strategy: str, what: str = "accuracy") -> Array:
    """The mean curve over repetitions."""
    mine = [getattr(c, what) for t, c in curves.items() if (t.data, t.strategy) == (data, strategy)]
    return np.asarray(np.mean(mine, axis=0))


def figure11(out: Path | None, *, quick: bool = False, repetitions: int = 30) -> Answer:
    """The Gaussian set in four noise settings: EMI, with op1, with both, and this package's."""
    cleanings = 5 if quick else 100
    names = [name for name in SETS if name.startswith("gaussian") and "(" in name]
    names = names[:1] if quick else names
    tasks = [
        Task(name, s, r, cleanings) for r in range(repetitions) for name in names for s in (START, CEILING, *VARIANTS)
    ]
    curves = completed(tasks, _file(out, quick=quick))
    rows: list[list[Any]] = []
    numbers: dict[str, float] = {}
    for name in names:
        shown = [_curve(curves, name, s) for s in VARIANTS]
        cells = [f"{c.mean():.4f} → {c[-1]:.4f}" for c in shown]
        rows.append([name, float(shown[0][0]), *cells, float(_curve(curves, name, CEILING)[0])])
        for s, curve in zip(VARIANTS, shown, strict=True):
            numbers[f"{name}, {s}: after all"] = float(curve[-1])
            numbers[f"{name}, {s}: deepest fall"] = float(
                np.mean([(c.accuracy[0] - c.accuracy).max() for t, c in curves.items() if _is(t, name, s)])
            )
        numbers[f"{name}: before"] = float(shown[0][0])
        for s in VARIANTS[:2]:
            numbers[f"{name}: published minus {s}"] = paired(curves, name, "TARS as published", s)[0]
            numbers[f"{name}: EMI minus {s}"] = paired(curves, name, EMI, s)[0]
    falls = [[name, *(numbers[f"{name}, {s}: deepest fall"] for s in VARIANTS)] for name in names]
    head = ["accuracy: mean of the curve → its end", "noisy", *VARIANTS, "truth"]
    text = f"{repetitions} repetitions, {cleanings} labels cleaned.\n{table(head, rows)}\n\n"
    text += table(["deepest fall below the start", *VARIANTS], falls)
    if out is not None:
        draw_curves(out / "figure11.png", {n: {s: _curve(curves, n, s) for s in VARIANTS} for n in names})
    return text, numbers


def _is(task: Task, data: str, strategy: str) -> bool:
    return (task.data, task.strategy) == (data, strategy)


def figure12(out: Path | None, *, quick: bool = False, repetitions: int = 30) -> Answer:
    """Pruning on a big Gaussian set: the time for a decision, and what it costs in accuracy."""
    cleanings, sizes = (5, (300,)) if quick else (100, (2000, 4000, 6000, 8000, 10_000))
    shares, runs = (0.0, 0.5, 0.8, 1.0), max(1, repetitions // 10)
    tasks = {
        (n, p): [Task("gaussian, big", EMI, r, cleanings, prune=p, n_items=n) for r in range(runs)]
        for n in sizes
        for p in shares
    }
    curves = completed([task for some in tasks.values() for task in some], _file(out, quick=quick))
    seconds, ends, numbers = {}, {}, {}
    for (n, p), some in tasks.items():
        seconds[n, p] = float(np.mean([curves[task].seconds for task in some]))
        ends[n, p] = float(np.mean([curves[task].accuracy.mean() for task in some]))
    head = ["", *(f"TARS({p:.0%})" for p in shares)]
    times = [[f"N = {n:,}", *(seconds[n, p] for p in shares)] for n in sizes]
    accuracies = [[f"N = {n:,}", *(ends[n, p] for p in shares)] for n in sizes]
    last = sizes[-1]
    numbers[f"N = {last}: seconds without pruning"] = seconds[last, 0.0]
    numbers[f"N = {last}: 80% pruning, times faster"] = seconds[last, 0.0] / seconds[last, 0.8]
    numbers[f"N = {last}: accuracy lost by 80% pruning"] = ends[last, 0.0] - ends[last, 0.8]
    text = f"{runs} repetitions, {cleanings} labels cleaned. Seconds for a decision:\n{table(head, times)}"
    return f"{text}\n\nMean accuracy over the learning curve:\n{table(head, accuracies)}", numbers


def _compared(
    data: Sequence[str],
    strategies: Sequence[str],
    out: Path | None,
    *,
    repetitions: int,
    cleanings: int,
    batch: int,
    picture: str,
    quick: bool,
) -> Answer:
    """All strategies on some sets: mean accuracy over the curve, its end, and EMI's lead."""
    tasks = [
        Task(name, s, r, cleanings, batch=batch)
        for r in range(repetitions)
        for name in data
        for s in (*SINGLE, *strategies)
        if (name, s) not in NO_FIRST_ORDER
    ]
    curves = completed(tasks, _file(out, quick=quick))
    text = [f"{repetitions} repetitions, {cleanings} labels cleaned; lead: EMI minus this, ± its standard error."]
    numbers: dict[str, float] = {}
    for name in data:
        rows: list[list[Any]] = []
        there = [s for s in strategies if (name, s) not in NO_FIRST_ORDER]
        for s in there:
            curve, (lead, error) = _curve(curves, name, s), paired(curves, name, EMI, s)
            score = float(_curve(curves, name, s, "f1").mean())
            rows.append(
                [s, float(curve.mean()), float(curve[-1]), score, "" if s == EMI else f"{lead:+.4f} ± {error:.4f}"]
            )
            numbers[f"{name}, {s}: mean accuracy"] = float(curve.mean())
            if s != EMI:
                numbers[f"{name}: EMI minus {s}"] = lead
        for s in SINGLE:
            point = float(_curve(curves, name, s)[0])
            rows.append([f"{s} (no oracle)", point, point, float(_curve(curves, name, s, "f1")[0]), ""])
            numbers[f"{name}, {s}"] = point
        numbers[f"{name}: gap to the truth, before minus after"] = float(
            np.abs(numbers[f"{name}, {CEILING}"] - _curve(curves, name, EMI)[[0, -1]]) @ [1, -1]
        )
        text += ["", table([name, "accuracy, mean", "at the end", "F-score, mean", "lead of EMI"], rows)]
    if out is not None:
        lines = {
            name: {s: _curve(curves, name, s) for s in strategies if (name, s) not in NO_FIRST_ORDER} for name in data
        }
        points = {name: {s: numbers[f"{name}, {s}"] for s in SINGLE} for name in data}
        draw_curves(out / picture, lines, points, step=batch)
    return "\n".join(text), numbers


def figure13(out: Path | None, *, quick: bool = False, repetitions: int = 30) -> Answer:
    """All strategies on the five sets, and what needs no oracle."""
    data, strategies = (FIVE[:1], (EMI, "USample")) if quick else (FIVE, (EMI, "TARS as published", *BASELINES))
    cleanings = 5 if quick else 100
    how = {"repetitions": repetitions, "cleanings": cleanings, "batch": 1, "quick": quick}
    return _compared(data, strategies, out, picture="figure13.png", **how)


def crowds(out: Path | None, *, quick: bool = False, repetitions: int = 30) -> Answer:
    """The same with labels of real crowds, in batches of five."""
    data, strategies = (CROWDS[:1], (EMI, "USample")) if quick else (CROWDS, (EMI, "TARS as published", *BASELINES))
    cleanings = 5 if quick else 100
    how = {"repetitions": repetitions, "cleanings": cleanings, "batch": 5, "quick": quick}
    return _compared(data, strategies, out, picture="crowds.png", **how)


CLEANING_FIGURES: dict[str, Callable[..., Answer]] = {
    "figure11": figure11,
    "figure12": figure12,
    "figure13": figure13,
    "crowds": crowds,
}
