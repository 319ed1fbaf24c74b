"""How often intervals of the true error hold it when the mislabeling rate is itself estimated.

Run ``python -m benchmarks.rates [section ...] [--quick] [--json out.json]``. Sections: errors (Rogan–Gladen intervals
of `trueup.rates.true_error` over a grid of true errors, mislabeling rates and sizes) and matrices (intervals of
`trueup.rates.recover_confusion` for three classes). Beside them is the common plug-in interval, which takes the
estimated rate for the true one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks._coverage_tally import LEVEL, as_text, say
from benchmarks._sections import run_sections
from trueup import rates
from trueup._base.types import Floats

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


def _held(true: float, low: Floats, high: Floats) -> tuple[float, float]:
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
        ends = [f"{100 * held[cell]:.1f} ({show(cell)})" for cell in (least, most)]
        width = np.mean([values[name][1] for values in found.values()])
        mean = f"{100 * np.mean(list(held.values())):.1f}"
        rows.append([name, mean, *ends, f"{100 * near:.0f}%", f"{width:.4f}"])
    return as_text(["interval", "holds %, mean", "least (where)", "most (where)", "cells in 93–97", "mean width"], rows)


def true_errors(quick: bool) -> str:
    """Intervals of the true error over the grid."""
    runs, sizes, parts = (400, SIZES[:2], []) if quick else (2000, SIZES, [])
    for n_checked in CHECKED:
        cells = [Cell(e, eps, n, n_checked) for e, eps, n in itertools.product(ERRORS, MISLABELINGS, sizes)]
        found = {cell: coverage(cell, runs=runs, seed=0) for cell in cells}
        say(f"  {len(cells)} cells with {n_checked} checked labels are done")
        parts.append(
            f"True error from n items and n₀ = {n_checked} checked labels, nominal 95%, {runs} runs of each of\n"
            f"{len(cells)} cells (e in {ERRORS}, ε in {MISLABELINGS}, n in {sizes}):\n"
            + _table(found, lambda c: f"e={c.error}, ε={c.mislabeling}, n={c.n}")
        )
    return "\n\n".join(parts)


def matrices(quick: bool) -> str:
    """Intervals of the error from three-class matrices."""
    runs, parts = (400 if quick else 1000), []
    for n_checked in CHECKED:
        found = {n: matrix_coverage(n, n_checked, runs=runs, seed=1) for n in SIZES[:2]}
        title = f"Error from three-class matrices, {n_checked} checked labels a class, {runs} runs, n in {SIZES[:2]}:"
        parts.append(f"{title}\n{_table(found, lambda n: f'n={n}')}")
    return "\n\n".join(parts)


main = partial(run_sections, "rates", __doc__, {"errors": true_errors, "matrices": matrices})


if __name__ == "__main__":
    main()
