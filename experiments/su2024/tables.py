"""Tables 10–15: each returns the text to print and the numbers that expected.json has the paper's values of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from experiments.su2024.report import expected, table
from experiments.su2024.runs import (
    MAIN_METHODS,
    PAIRS,
    MulticlassRun,
    Run,
    column,
    errors,
    grid_runs,
    holds,
    main_runs,
    multiclass_runs,
    start_runs,
)

__all__ = [
    "TABLES",
    "Answer",
    "fresh_errors",
    "grid_coverage",
    "table10",
    "table11",
    "table12",
    "table13",
    "table14",
    "table15",
]

Array = npt.NDArray[np.float64]
Answer = tuple[str, dict[str, float]]
ITERATIVE = ("ratios", "sampling", "estimated-labels")
SHORT = ("ACC", "PREC", "REC", "FA", "F1")


def table10(*, quick: bool = False) -> Answer:
    """The main example: every method's metrics, for one seed and over many."""
    n = 6 if quick else 50
    runs = main_runs(n)
    paper = expected()["table10"]["rows"]
    rows: list[list[object]] = []
    for name in ("ideal", *MAIN_METHODS):
        said = runs[0].said[name]
        if name in paper:
            rows.append([f"{name}, paper", *map(float, paper[name])])
        rows.append([f"{name}, ours (one seed)", *map(float, said.mean)])
        if np.isfinite(said.low).any():
            if f"{name} region" in paper:
                rows.append([f"{name} region, paper", *(f"{a:.3f}–{b:.3f}" for a, b in paper[f"{name} region"])])
            rows.append(
                [f"{name} region, ours", *(f"{a:.3f}–{b:.3f}" for a, b in zip(said.low, said.high, strict=True))]
            )
    text = [table(["estimate", *SHORT], rows), "", f"Over {n} seeds: mean error (ideal − estimate) ± its deviation"]
    spread = [[name, *(_plus(e) for e in errors(runs, name).T)] for name in MAIN_METHODS]
    text += [table(["method", *SHORT], spread), "", f"Over {n} seeds: mean absolute error"]
    text += [table(["method", *SHORT], [[m, *map(float, np.abs(errors(runs, m)).mean(axis=0))] for m in MAIN_METHODS])]
    text += ["", f"Over {n} seeds: share in which the 95% region holds the ideal value"]
    covered = []
    for name in ("ratios", "sampling", "prior-average", "no-predictions", "bayes"):
        pairs = [run.inside[name] for run in runs] if name in runs[0].inside else [(np.nan,) * len(PAIRS)]
        covered.append([name, *map(float, np.mean(holds(runs, name), axis=0)), *map(float, np.mean(pairs, axis=0))])
    text.append(table(["method", *SHORT, "(PREC, REC)", "(FA, REC)"], covered))
    return "\n".join(text), _table10_numbers(runs)


def _plus(values: Array) -> str:
    return f"{np.mean(values):+.3f} ± {np.std(values):.3f}"


def _table10_numbers(runs: Sequence[Run]) -> dict[str, float]:
    ours = {}
    for k, short in enumerate(SHORT):
        ours[f"ideal {short}"] = float(column(runs, "ideal")[:, k].mean())
        for name in MAIN_METHODS:
            ours[f"{name}: error of {short}"] = float(errors(runs, name)[:, k].mean())
            ours[f"{name}: mean absolute error of {short}"] = float(np.abs(errors(runs, name)[:, k]).mean())
        for name in ("ratios", "sampling"):
            width = column(runs, name, "high")[:, k] - column(runs, name, "low")[:, k]
            ours[f"{name}: width of the region of {short}"] = float(width.mean())
    for name in ITERATIVE:
        ours[f"{name}: iterations"] = float(column(runs, name, "n_iter").mean())
    return ours


def table11(*, quick: bool = False) -> Answer:
    """Where the iterations end when they start elsewhere: the main example from a grid of initial points."""
    runs = start_runs(4 if quick else 10)
    text, ours = _iteration_table("table11", [runs])
    head = f"One data set (our seed), {len(runs)} initial operating points; errors are ideal − estimate."
    return f"{head}\n{text}", ours


def table12(*, quick: bool = False) -> Answer:
    """Where the iterations end when the classifier is elsewhere: a grid of desired operating points."""
    n, step = (2, 3) if quick else (10, 1)
    same, fresh = grid_runs("same", n, step), grid_runs("fresh", n, step)
    text, ours = _iteration_table("table12", same)
    for name in ITERATIVE:
        ours[f"{name}: share converged"] = float(np.mean([column(runs, name, "converged").mean() for runs in same]))
    each = tuple(run for runs in fresh for run in runs)
    fresh_table, numbers = fresh_errors(each)
    ours |= numbers
    covered, coverage = grid_coverage(each)
    ours |= coverage
    lines = [
        f"{n} times {len(same[0])} operating points, all of a grid with the same truths, votes and random numbers;",
        "ours is the mean over the grids of each grid's statistic, and ± its deviation between grids.",
        text,
        "",
        f"{len(each)} operating points with all drawn anew at each",
        fresh_table,
        "",
        f"Share of the same {len(each)} data sets in which the 95% region holds the ideal value",
        covered,
    ]
    return "\n".join(lines), ours


def fresh_errors(runs: Sequence[Run]) -> Answer:
    """Errors of the operating point over runs that share nothing."""
    rows, ours = [], {}
    for name in ITERATIVE:
        off = errors(runs, name, "operating_point")
        settled = float(column(runs, name, "converged").mean())
        ours[f"{name}: share converged, fresh draws"] = settled
        for k, what in enumerate(("p_D", "p_FA")):
            size = np.abs(off[:, k])
            ours[f"{name}: mean absolute error of {what}, fresh draws"] = float(size.mean())
            numbers = (size.mean(), off[:, k].mean(), off[:, k].std(), size.max(), settled)
            rows.append([f"{name}, {what}", *map(float, numbers)])
    return table(["method", "mean abs. error", "mean", "std", "max abs.", "converged"], rows), ours


def grid_coverage(runs: Sequence[Run]) -> Answer:
    """How often the 95% regions hold the ideal values, and how wide they are."""
    rows, ours = [], {}
    for name in ("ratios", "bayes"):
        share = np.nanmean(holds(runs, name), axis=0)
        width = np.nanmean(column(runs, name, "high") - column(runs, name, "low"), axis=0)
        off = np.nanmean(np.abs(errors(runs, name)), axis=0)
        label = "mmse (ratios)" if name == "ratios" else name
        rows += [
            [f"{label}: coverage", *map(float, share)],
            [f"{label}: mean width", *map(float, width)],
            [f"{label}: mean absolute error", *map(float, off)],
        ]
        for k, short in enumerate(SHORT):
            ours[f"{name}: coverage of {short}"] = float(share[k])
    return table(["method", *SHORT], rows), ours


def _iteration_table(name: str, grids: Sequence[Sequence[Run]]) -> Answer:
    """Rows of Tables 11 and 12: statistics within a grid of runs, averaged over the grids."""
    values = expected()[name]["values"]
    rows, ours = [], {}
    statistics: list[tuple[str, Callable[[Sequence[Run], str], float]]] = []
    for k, point in enumerate(("p_D", "p_FA")):
        for what, function in (("mean", np.mean), ("std", np.std), ("max abs.", lambda v: np.abs(v).max())):

            def of_error(runs: Sequence[Run], method: str, k: int = k, function: Callable = function) -> float:
                return float(function(errors(runs, method, "operating_point")[:, k]))

            statistics.append((f"error of {point}, {what}", of_error))
    for what, function in (("mean", np.mean), ("std", np.std), ("max", np.max)):

        def of_iterations(runs: Sequence[Run], method: str, function: Callable = function) -> float:
            return float(function(column(runs, method, "n_iter")))

        statistics.append((f"iterations, {what}", of_iterations))
    for label, statistic in statistics:
        row: list[object] = [label]
        for method in ITERATIVE:
            each = [statistic(runs, method) for runs in grids]
            key = f"{method}: {label}"
            ours[key] = float(np.mean(each))
            spread = f" ± {np.std(each):.4f}" if len(each) > 1 else ""
            row += [float(values[key]["paper"]), f"{ours[key]:.4f}{spread}"]
        rows.append(row)
    head = [column for method in ITERATIVE for column in (f"{method}, paper", "ours")]
    return table(["", *head], rows), ours


# ---------------------------------------------------------------------- four classes


def _multiclass(quick: bool) -> tuple[MulticlassRun, tuple[MulticlassRun, ...]]:
    shown = multiclass_runs(1, n_draws=2500 if quick else 10_000)[0]
    return shown, multiclass_runs(4 if quick else 100)


def table13(*, quick: bool = False) -> Answer:
    """Accuracy of the four-class example."""
    shown, runs = _multiclass(quick)
    paper = expected()["table13"]["rows"]
    rows: list[list[object]] = []
    for name in paper:
        if name.endswith("region"):
            low, high = shown.region["sampling"]
            rows.append([name, "{:.4f}–{:.4f}".format(*paper[name]), f"{low:.4f}–{high:.4f}"])
        else:
            rows.append([name, float(paper[name]), shown.accuracy[name]])
    low, high = shown.region["bayes"]
    rows += [["bayes", "–", shown.accuracy["bayes"]], ["bayes region", "–", f"{low:.4f}–{high:.4f}"]]
    ours = {"ideal": float(np.mean([r.accuracy["ideal"] for r in runs]))}
    spread = []
    for name in ("sampling", "estimated-labels", "labeler-mean", "labeler-median", "bayes"):
        off = np.array([r.accuracy["ideal"] - r.accuracy[name] for r in runs])
        ours[f"{name}: error"] = float(off.mean())
        ours[f"{name}: mean absolute error"] = float(np.abs(off).mean())
        inside: float | str = np.nan
        if name in ("sampling", "bayes"):
            inside = float(np.mean([_within(r.accuracy["ideal"], r.region[name]) for r in runs]))
            ours[f"{name}: coverage"] = inside
            ours[f"{name}: width of the region"] = float(np.mean([np.ptp(r.region[name]) for r in runs]))
        spread.append([name, _plus(off), float(np.abs(off).mean()), inside])
    ours["sampling: iterations"] = float(np.mean([r.n_iter["sampling"] for r in runs]))
    ours["estimated-labels: iterations"] = float(np.mean([r.n_iter["estimated-labels"] for r in runs]))
    text = [table(["accuracy", "paper", "ours (one seed)"], rows), "", f"Over {len(runs)} seeds"]
    text.append(table(["method", "error", "mean abs. error", "95% region holds"], spread))
    return "\n".join(text), ours


def _within(value: float, region: tuple[float, float]) -> bool:
    return region[0] - 1e-9 <= value <= region[1] + 1e-9


def table14(*, quick: bool = False) -> Answer:
    """Confusion matrices of the four-class example."""
    shown, runs = _multiclass(quick)
    paper = {name: np.array(matrix) for name, matrix in expected()["table14"]["matrices"].items()}
    text = []
    for name in (*paper, "bayes"):
        rows = []
        for y in range(4):
            theirs = [f"{v:.1f}" for v in paper[name][y]] if name in paper else ["–"] * 4
            rows.append([f"truth {y}", *theirs, "|", *(f"{v:.1f}" for v in shown.counts[name][y])])
        text += [table([name, *(f"paper ŷ={k}" for k in range(4)), "|", *(f"ours ŷ={k}" for k in range(4))], rows), ""]
    ours = {}
    for name in (*(m for m in paper if m != "ideal"), "bayes"):
        off = [np.sqrt(np.mean((r.counts[name] - r.counts["ideal"]) ** 2)) for r in runs]
        ours[f"{name}: root mean square error of a cell"] = float(np.mean(off))
    published = ("sampling", "estimated-labels", "labeler-mean", "labeler-median")
    closest = np.array([_closest({m: r.counts[m] for m in published}, r.counts["ideal"]) for r in runs])
    for k, name in enumerate(published):
        ours[f"{name}: cells it is closest in"] = float(closest[:, k].mean())
    rows = [[key, value] for key, value in ours.items()]
    text += [f"Over {len(runs)} seeds", table(["", "mean"], rows)]
    return "\n".join(text), ours


def _closest(said: dict[str, Array], ideal: Array) -> list[int]:
    """In how many cells each method is as close as any, to the tenth that the paper prints."""
    off = np.array([np.abs(counts.round(1) - ideal).round(1) for counts in said.values()])
    return [int(n) for n in (off == off.min(axis=0)).sum(axis=(1, 2))]


def table15(*, quick: bool = False) -> Answer:
    """Regions of the cells of the four-class example."""
    shown, runs = _multiclass(quick)
    paper = np.array(expected()["table15"]["regions"])
    rows = []
    for y in range(4):
        for k in range(4):
            ideal, region = shown.counts["ideal"][y, k], shown.cells["sampling"][y, k]
            bayes = shown.cells["bayes"][y, k]
            cell = [f"truth {y}, predicted {k}", "{:.1f}–{:.1f}".format(*paper[y, k]), f"{ideal:.0f}"]
            rows.append(
                [*cell, *("{:.0f}–{:.0f}{}".format(*r, "" if _within(ideal, r) else " *") for r in (region, bayes))]
            )
    ours, spread = {}, []
    for name in ("sampling", "bayes"):
        inside = np.array([_inside_cells(r, name) for r in runs])
        width = float(np.mean([np.ptp(r.cells[name], axis=2).mean() for r in runs]))
        ours[f"{name}: cells inside"] = float(inside.sum(axis=(1, 2)).mean())
        ours[f"{name}: mean width"] = width
        ours[f"{name}: coverage of a cell"] = float(inside.mean())
        ours[f"{name}: share of data sets with all cells inside"] = float(inside.all(axis=(1, 2)).mean())
        spread.append([name, *(ours[f"{name}: {k}"] for k in ("coverage of a cell", "cells inside", "mean width"))])
        spread[-1].append(ours[f"{name}: share of data sets with all cells inside"])
    head = ["cell", "paper's region", "our ideal", "mmse", "bayes"]
    text = [table(head, rows), "* the ideal count lies outside", "", f"Over {len(runs)} seeds"]
    text.append(table(["method", "coverage", "cells inside of 16", "mean width", "all 16 inside"], spread))
    return "\n".join(text), ours


def _inside_cells(run: MulticlassRun, name: str) -> npt.NDArray[np.bool_]:
    low, high = run.cells[name][..., 0], run.cells[name][..., 1]
    ideal = run.counts["ideal"]
    return np.asarray((low - 1e-9 <= ideal) & (ideal <= high + 1e-9))


TABLES: dict[str, Callable[..., Answer]] = {
    "table10": table10,
    "table11": table11,
    "table12": table12,
    "table13": table13,
    "table14": table14,
    "table15": table15,
}
