"""The cluster on paper: costs fitted to iterations on this machine, cells left out of the fit, and larger clusters."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import Section, as_text
from benchmarks._scale_cluster import local_cluster, measure_iteration
from benchmarks._scale_model import COSTS, Case, fitted_costs, plan, predicted_seconds
from benchmarks._scale_votes import write_votes

__all__ = ["paper"]

_TEN_GIGABITS = 8 / 10e9  # seconds a byte, at best
_FITTED = tuple(Case(*sizes) for sizes in product((2e5, 5e6), (4, 24), (1e3, 1e5), (1, 2)))
_LEFT_OUT = tuple(Case(*sizes, workers) for sizes in ((1e6, 10, 1e4), (2e7, 20, 1e4)) for workers in (1, 2))
_LARGER = (
    Case(1e8, 40, 1e4, 1),
    Case(1e8, 40, 1e4, 8),
    Case(1e9, 400, 1e5, 16),
    Case(1e9, 400, 1e5, 16, classes=10),
    Case(1e11, 8000, 1e6, 256),
    Case(1e11, 8000, 1e6, 256, classes=10),
    Case(1e11, 8000, 1e6, 1024),
)


def paper(quick: bool) -> Section:
    """Measure, fit, and say what the fit makes of cells that it has not seen and of clusters that are not here."""
    cases = [*_FITTED, *_LEFT_OUT]
    if quick:
        cases = [replace(case, votes=case.votes / 100, labelers=case.labelers / 100) for case in cases]
    fitted, left_out = cases[: len(_FITTED)], cases[len(_FITTED) :]
    seconds, spread = _measured(cases, turns=1 if quick else 3)
    costs = fitted_costs(fitted, [seconds[case] for case in fitted], spread)
    errors = {case: predicted_seconds(costs, case, spread) / seconds[case] - 1 for case in cases}
    means = [float(np.mean(np.abs([errors[case] for case in part]))) for part in (fitted, left_out)]
    names = ["votes", "files", "labelers", "workers"]
    rows = [
        [*_sizes(case), f"{1e3 * seconds[case]:.1f}", f"{1e3 * (1 + error) * seconds[case]:.1f}", f"{error:+.0%}"]
        for case, error in errors.items()
    ]
    head = [*names, "measured ms", "predicted ms", "error"]
    slower = {**costs, "sent": max(costs["sent"], _TEN_GIGABITS)}
    plans = [plan(slower, case, spread) for case in _LARGER]
    table = [
        [
            *_sizes(made.case),
            str(made.case.classes),
            f"{made.case.table / 1e6:.1f}",
            f"{made.worker_gigabytes:.2f}",
            f"{made.minutes:.1f}",
            made.limit,
        ]
        for made in plans
    ]
    text = [
        "seconds (least squares of relative errors, none below zero):",
        *(f"  {costs[name]:.2e} {words}" for name, (_, words) in COSTS.items()),
        f"  spread of the times of blocks (logarithm) {spread:.2f}",
        "",
        f"an iteration, cells of the fit: mean relative error {means[0]:.1%}",
        as_text(head, rows[: len(fitted)]),
        "",
        f"cells left out of the fit: mean relative error {means[1]:.1%}",
        as_text(head, rows[len(fitted) :]),
        "",
        "20 iterations of larger fits; workers share machines in pairs, ten gigabits a second between them",
        as_text([*names, "classes", "table MB", "GB a worker", "minutes", "slowest part"], table),
    ]
    numbers = {
        "costs": costs,
        "spread": spread,
        "error": means[0],
        "error left out": means[1],
        "cells": [[*_sizes(case), seconds[case], errors[case]] for case in cases],
        "minutes": [made.minutes for made in plans],
    }
    return Section("\n".join(text), numbers)


def _sizes(case: Case) -> list[str]:
    return [f"{case.votes:.0e}", str(case.files), f"{case.labelers:.0e}", str(case.workers)]


def _measured(cases: Iterable[Case], turns: int) -> tuple[dict[Case, float], float]:
    """Seconds of an iteration of each, and the spread of the times of blocks: the mean over all files that serve."""

    def votes_of(case: Case) -> tuple[float, int, float]:
        return case.votes, case.files, case.labelers

    seconds: dict[Case, float] = {}
    spreads = []
    for (n_votes, n_files, n_labelers), several in groupby(sorted(cases, key=_in_order), key=votes_of):
        with tempfile.TemporaryDirectory() as folder:
            write_votes(Path(folder), int(n_votes), n_files, n_labelers=int(n_labelers))
            for case in several:
                with local_cluster(case.workers) as (_, client):
                    scan = tu.Labels.scan(f"{folder}/*.parquet")
                    seconds[case], model = measure_iteration(scan, turns)
                    spreads += [_spread(client, scan, model)] if case.workers == 1 else []
    return seconds, float(np.mean(spreads))


def _in_order(case: Case) -> tuple[float, int, float, int]:
    return case.votes, case.files, case.labelers, case.workers


def _spread(client: Any, scan: Any, model: Any) -> float:
    """Standard deviation of the logarithm of the times of blocks on one worker."""
    from trueup.noise.base import as_table, class_states

    told = client.submit(tuple, (as_table(model.confusion_), model.prior_, class_states(2)), pure=False)
    blocks = list(scan.encoded.blocks)
    times = client.gather(client.map(_timed, blocks, [told] * len(blocks), pure=False))
    return float(np.log(times).std())


def _timed(block: Any, told: Any) -> float:
    from trueup.noise.passes import expectation_of

    best = np.inf
    for _ in range(3):
        started = time.perf_counter()
        expectation_of(block, *told, "numba", 1)
        best = min(best, time.perf_counter() - started)
    return float(best)
