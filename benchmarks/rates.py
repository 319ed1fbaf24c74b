"""How often intervals of the true error hold it when the mislabeling rate is itself estimated.

``python -m benchmarks.rates`` prints two tables: Rogan–Gladen intervals of `trueup.rates.true_error` over a grid of
true errors, mislabeling rates and sizes, and intervals of `trueup.rates.recover_confusion` for three classes. Beside
them is the common plug-in interval, which takes the estimated rate for the true one. ``--quick`` runs a part.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._coverage_tally import LEVEL, as_text, say
from trueup import rates

Array = npt.NDArray[np.float64]
Ends = tuple[Any, Any]

CHECKED = (50, 200)
ERRORS = (0.01, 0.03, 0.1, 0.2, 0.3)
MISLABELINGS = (0.02, 0.05, 0.1, 0.2, 0.3)
SIZES = (200, 1000, 5000)
METHODS = ("score", "bootstrap", "fieller", "delta")
_SLACK = 1e-9  # the root finder's tolerance

PRIOR = np.array([0.5, 0.3, 0.2])
LABELER = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]])
CLASSIFIER = np.array([[0.92, 0.05, 0.03], [0.06, 0.88, 0.06], [0.1, 0.05, 0.85]])


@dataclass(frozen=True)
class Cell:
    """One point of the grid: the true rates, and the sizes of both samples."""

    error: float
    mislabeling: float
    n: int
    n_checked: int
    n_classes: int = 2


def coverage(cell: Cell, *, runs: int, seed: int, methods: Sequence[str] = METHODS) -> dict[str, tuple[float, float]]:
    """The share of runs whose interval held the true error, and its mean width, by method.

    Draws of ε̂ that are no better than guessing are refused by trueup; they are drawn again.
    """
    rng = np.random.default_rng([seed, cell.n, cell.n_checked, round(1e4 * cell.error), round(1e4 * cell.mislabeling)])
    apparent = rates.apparent_error(error=cell.error, mislabeling=cell.mislabeling, n_classes=cell.n_classes)
    disagreeing = rng.binomial(cell.n, float(apparent), runs)
    wrong = rng.binomial(cell.n_checked, cell.mislabeling, 2 * runs)
    wrong = wrong[wrong / cell.n_checked < 1 - 1 / cell.n_classes][:runs]
    # The same counts give the same interval, so each pair is asked for once.
    pairs, back = np.unique(np.stack([disagreeing, wrong], axis=1), axis=0, return_inverse=True)
    given = {
        "apparent": pairs[:, 0] / cell.n,
        "mislabeling": pairs[:, 1] / cell.n_checked,
        "n": cell.n,
        "n_classes": cell.n_classes,
    }
    ends: dict[str, Ends] = {"plug-in": rates.true_error(**given).interval(LEVEL, method="delta")}
    estimate = rates.true_error(**given, n_checked=cell.n_checked)
    ends |= {method: estimate.interval(LEVEL, method=method) for method in methods}  # type: ignore[arg-type]
    return {name: _held(cell.error, *(np.asarray(end)[back.ravel()] for end in pair)) for name, pair in ends.items()}


def _held(true: float, low: Array, high: Array) -> tuple[float, float]:
    inside = (low - _SLACK <= true) & (true <= high + _SLACK)
    return float(inside.mean()), float((high - low).mean())


def matrix_coverage(n: int, n_checked: int, *, runs: int, seed: int) -> dict[str, tuple[float, float]]:
    """The same for the error rate from three-class matrices, with `n_checked` checked labels of each class."""
    rng = np.random.default_rng([seed, n, n_checked])
    shares = rates.joint_distribution(confusion=CLASSIFIER, labeler=LABELER, prior=PRIOR)
    true = float(1 - PRIOR @ np.diag(CLASSIFIER))
    joint = rng.multinomial(n, shares.ravel(), runs).reshape(runs, 3, 3)
    checked = np.stack([rng.multinomial(n_checked, row, runs) for row in LABELER], axis=1)
    ends: dict[str, list[Ends]] = {"plug-in": [], "bootstrap": [], "delta": []}
    for rows in np.array_split(np.arange(runs), max(runs // 50, 1)):
        known = rates.recover_confusion(joint=joint[rows], labeler=checked[rows] / n_checked)
        ends["plug-in"].append(known.error_interval(LEVEL, "delta"))
        found = rates.recover_confusion(joint=joint[rows], labeler=checked[rows])
        ends["delta"].append(found.error_interval(LEVEL, "delta"))
        ends["bootstrap"].append(found.error_interval(LEVEL, "bootstrap", n_draws=2000, random_state=rng))
    return {
        name: _held(true, *(np.concatenate(side) for side in zip(*pairs, strict=True))) for name, pairs in ends.items()
    }


def _table(found: dict[Any, dict[str, tuple[float, float]]], show: Callable[[Any], str]) -> str:
    rows = []
    for name in next(iter(found.values())):
        held = {cell: values[name][0] for cell, values in found.items()}
        least, most = min(held, key=held.__getitem__), max(held, key=held.__getitem__)
        near = np.mean([0.93 <= share <= 0.97 for share in held.values()])
        rows.append(
            [
                name,
                f"{100 * np.mean(list(held.values())):.1f}",
                f"{100 * held[least]:.1f} ({show(least)})",
                f"{100 * held[most]:.1f} ({show(most)})",
                f"{100 * near:.0f}%",
                f"{np.mean([values[name][1] for values in found.values()]):.4f}",
            ]
        )
    return as_text(["interval", "holds %, mean", "least (where)", "most (where)", "cells in 93–97", "mean width"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rates", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer cells and runs")
    parser.add_argument("--runs", type=int, default=2000, help="runs of each cell")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args(arguments)
    runs = min(options.runs, 400) if options.quick else options.runs
    sizes = SIZES[:2] if options.quick else SIZES
    numbers: dict[str, Any] = {"runs": runs}
    for n_checked in CHECKED:
        cells = [Cell(e, eps, n, n_checked) for e, eps, n in itertools.product(ERRORS, MISLABELINGS, sizes)]
        found = {cell: coverage(cell, runs=runs, seed=0) for cell in cells}
        say(f"  {len(cells)} cells with {n_checked} checked labels are done")
        print(f"\nTrue error from n items and n₀ = {n_checked} checked labels, nominal 95%, {runs} runs of each of")
        print(f"{len(cells)} cells (e in {ERRORS}, ε in {MISLABELINGS}, n in {sizes}):")
        print(_table(found, lambda c: f"e={c.error}, ε={c.mislabeling}, n={c.n}"), flush=True)
        numbers[f"n_checked={n_checked}"] = {str(cell): values for cell, values in found.items()}
    few = min(runs, 1000)
    for n_checked in CHECKED:
        matrices = {n: matrix_coverage(n, n_checked, runs=few, seed=1) for n in sizes[:2]}
        print(f"\nError from three-class matrices, {n_checked} checked labels a class, {few} runs, n in {sizes[:2]}:")
        print(_table(matrices, lambda n: f"n={n}"), flush=True)
        numbers[f"matrices, n_checked={n_checked}"] = {str(n): values for n, values in matrices.items()}
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
