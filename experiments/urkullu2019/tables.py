"""The tables of swap errors, and the figures that are asked of the views."""

from __future__ import annotations

import numpy as np

from experiments.urkullu2019.report import Answer, table
from experiments.urkullu2019.results import Results, standard_errors
from experiments.urkullu2019.settings import VIEWS, Array

__all__ = ["averages", "case_table", "reference", "views"]

PAPERS = ("DGT", "SGT", "PGT")
JUDGED = ("bad", "average", "good")


def case_table(results: Results, case: str) -> str:
    """Mean swap errors of a case, rows for views and labels per item, columns for labels per labeler."""
    levels = results.design.levels
    rows: list[list[object]] = []
    for view in VIEWS:
        grid = results.grid(view, case)
        error = standard_errors(results.of_view(view, case)).reshape(grid.shape)
        for level, means, errors in zip(levels, grid, error, strict=True):
            rows.append([f"{view}, {level} per item", *map(float, means), float(means.mean()), float(errors.mean())])
    head = [case, *(f"{level} per labeler" for level in levels), "mean", "std. error"]
    return table(head, rows)


def averages(results: Results) -> str:
    """Mean swap error and its deviation between runs, averaged over the configurations of each case."""
    rows: list[list[object]] = []
    for case in (*results.design.cases, None):
        each = [results.of_view(view, case) for view in VIEWS]
        spread = (f"{values.std(axis=0, ddof=1).mean():.4f}" for values in each)
        rows.append([case or "all", *(float(values.mean()) for values in each), *spread])
    rows.append(["supervised", *[""] * len(VIEWS), *[""] * len(VIEWS)])
    rows[-1][1] = float(results.supervised.mean())
    return table(["mean over configurations", *VIEWS, *(f"sd {view}" for view in VIEWS)], rows)


def reference(results: Results) -> Answer:
    """Quartiles of the supervised reference."""
    ours, rows = {}, []
    for name, values in (("", results.supervised), (", more runs", results.reference)):
        quartiles = np.quantile(values, [0.25, 0.5, 0.75])
        ours |= {f"Q{k + 1}{name}": float(q) for k, q in enumerate(quartiles)}
        rows.append([f"{len(values)} runs", *map(float, quartiles), float(values.mean())])
    return table(["supervised reference", "Q1", "Q2", "Q3", "mean"], rows), ours


def views(results: Results) -> Answer:
    """Which view is best, on average and in each configuration."""
    mean = {view: float(results.of_view(view).mean()) for view in VIEWS}
    best = min((mean[view], view) for view in ("DGT", "SGT", "DGT once"))
    ours = {"PGT less the best other view, mean over all configurations": mean["PGT"] - best[0]}
    rows: list[list[object]] = []
    for other in ("DGT", "DGT once", "SGT"):
        difference = results.of_view("PGT") - results.of_view(other)
        rows.append(_count_row(f"PGT less {other}", difference))
        if other != "SGT":
            ours[f"PGT less {other}, worst configuration, in standard errors"] = _worst(difference)
    for case in (*results.design.cases, JUDGED):
        names = JUDGED if case == JUDGED else (case,)
        difference = np.hstack([results.of_view("bayes", name) - results.of_view("PGT", name) for name in names])
        label = f"bayes less PGT, {', '.join(names)}"
        rows.append(_count_row(label, difference))
        ours[label] = float(difference.mean())
    head = ["difference of swap errors", "mean", "std. error", "lower in", "surely higher in", "worst, std. errors"]
    return table(head, rows), ours


def _worst(difference: Array) -> float:
    return float((difference.mean(axis=0) / standard_errors(difference)).max())


def _count_row(label: str, difference: Array) -> list[object]:
    """Mean over configurations with its error between runs, and in how many the first is lower, or surely higher."""
    means = difference.mean(axis=0)
    higher = int((means / standard_errors(difference) > 3).sum())
    error = float(standard_errors(difference.mean(axis=1)))
    count = f"{int((means < 0).sum())} of {len(means)}"
    return [label, f"{means.mean():+.4f}", f"{error:.4f}", count, higher, f"{_worst(difference):+.1f}"]
