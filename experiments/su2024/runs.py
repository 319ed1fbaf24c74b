"""The repeated simulations behind the tables; each is run once in a process and kept."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from experiments.su2024.settings import (
    AXIS,
    METRICS,
    Measured,
    asked,
    at_point,
    main_example,
    measure,
    multiclass_example,
    single_labeler,
    small_sample,
)

__all__ = [
    "GRID_METHODS",
    "MAIN_METHODS",
    "PAIRS",
    "Run",
    "column",
    "errors",
    "grid_runs",
    "holds",
    "main_runs",
    "multiclass_runs",
    "plain_runs",
    "start_runs",
    "tracked",
]

Array = npt.NDArray[np.float64]
Item = TypeVar("Item")
Design = Literal["same", "fresh"]

MAIN_SEED, GRID_SEED, MULTICLASS_SEED, PLAIN_SEED = 5210, 52300, 530, 5250
MAIN_METHODS = (
    "ratios",
    "sampling",
    "estimated-labels",
    "labeler-mean",
    "labeler-median",
    "prior-average",
    "no-predictions",
    "bayes",
)
GRID_METHODS = ("ratios", "sampling", "estimated-labels", "labeler-mean", "labeler-median", "prior-average", "bayes")
WITH_REGIONS = ("ratios", "sampling", "prior-average", "no-predictions", "bayes")
PAIRS = (("precision", "recall"), ("false_alarm_rate", "recall"))  # x and y, as in Figures 15 and 16


@dataclass(frozen=True)
class Run:
    """One simulated data set: what each method says, "ideal" among them, and what was asked of pairs of metrics.

    `joint[name]` has the point estimates of `PAIRS`, shape (2, 2); `inside[name]` says of each pair whether its 95%
    region holds the ideal point.
    """

    said: dict[str, Measured]
    joint: dict[str, Array]
    inside: dict[str, tuple[bool, ...]]


def tracked(items: Sequence[Item], what: str) -> Iterator[Item]:
    """The items, with the share of work done on the error stream every few seconds."""
    started = last = time.monotonic()
    for number, item in enumerate(items):
        yield item
        now = time.monotonic()
        if now - last > 10 or (number + 1 == len(items) and now - started > 10):
            last = now
            print(
                f"  {what}: {(number + 1) / len(items):4.0%} after {now - started:.0f} s", file=sys.stderr, flush=True
            )


def column(runs: Iterable[Run], method: str, field: str = "mean") -> Array:
    """One field of `Measured` over the runs, shape (n_runs, …)."""
    return np.array([getattr(run.said[method], field) for run in runs], dtype=float)


def errors(runs: Sequence[Run], method: str, field: str = "mean") -> Array:
    """Ideal − estimate, as the paper counts errors; shape (n_runs, 5), or (n_runs, 2) for operating points."""
    if field == "operating_point":
        ideal = column(runs, "ideal")[:, [METRICS.index("recall"), METRICS.index("false_alarm_rate")]]
    else:
        ideal = column(runs, "ideal")
    return np.asarray(ideal - column(runs, method, field))


def holds(runs: Sequence[Run], method: str) -> Array:
    """Whether each metric's 95% region holds the ideal value, shape (n_runs, 5); undefined ideals are nan."""
    ideal, low, high = column(runs, "ideal"), column(runs, method, "low"), column(runs, method, "high")
    slack = 1e-9  # an ideal metric is a quotient of whole numbers and may be an end itself
    inside = (low - slack <= ideal) & (ideal <= high + slack)
    return np.where(np.isnan(ideal) | np.isnan(low), np.nan, inside)


@cache
def main_runs(n: int) -> tuple[Run, ...]:
    """The main example, `n` times (Table 10)."""
    runs = []
    for seed in tracked(range(MAIN_SEED, MAIN_SEED + n), "main example"):
        sim = main_example(seed)
        ideal = measure(asked(sim, "ideal"))
        said, joint, inside = {"ideal": ideal}, {}, {}
        for name in MAIN_METHODS:
            ev = asked(sim, name, seed=seed)
            said[name] = measure(ev, mode=True, interval=name in WITH_REGIONS)
            if name in ("ratios", "bayes"):
                true = dict(zip(METRICS, ideal.mean, strict=True))
                inside[name] = tuple(bool(ev.joint(a, b).region(0.95).contains(true[a], true[b])) for a, b in PAIRS)
        runs.append(Run(said, joint, inside))
    return tuple(runs)


@cache
def start_runs(n_axis: int) -> tuple[Run, ...]:
    """The main example from `n_axis`² initial operating points (Table 11)."""
    sim = main_example(MAIN_SEED)
    ideal = measure(asked(sim, "ideal"))
    axis = (np.arange(n_axis) + 0.5) / n_axis
    runs = []
    for number, (d, f) in enumerate(tracked([(d, f) for d in axis for f in axis], "initial operating points")):
        start = [[1 - f, f], [1 - d, d]]
        said = {
            name: measure(asked(sim, name, seed=number, start=start))
            for name in ("ratios", "sampling", "estimated-labels")
        }
        runs.append(Run({"ideal": ideal, **said}, {}, {}))
    return tuple(runs)


@cache
def grid_runs(design: Design, n: int, step: int = 1) -> tuple[tuple[Run, ...], ...]:
    """`n` times the grid of desired operating points (Table 12, Figures 14–16), every `step`-th along each axis.

    "same" draws truths, labelers, votes and random numbers once for a whole grid, which is what the paper's numbers
    look like; "fresh" draws all anew at each point, which is what coverage needs.
    """
    points = [(d, f) for d in AXIS[::step] for f in AXIS[::step]]
    work = [(number, k) for number in range(n) for k in range(len(points))]
    runs: list[list[Run]] = [[] for _ in range(n)]
    for number, k in tracked(work, f"operating points, {design} draws"):
        seed = GRID_SEED + (number if design == "same" else 1000 + number * 100 + k)
        runs[number].append(_grid_run(points[k], seed, design))
    return tuple(map(tuple, runs))


def _grid_run(point: tuple[float, float], seed: int, design: Design) -> Run:
    sim = at_point(point, seed)
    said, joint = {"ideal": measure(asked(sim, "ideal"))}, {}
    of_pairs = [[METRICS.index(a), METRICS.index(b)] for a, b in PAIRS]
    for name in GRID_METHODS:
        if name == "bayes" and design == "same":
            continue
        if design == "fresh" and name not in ("ratios", "sampling", "estimated-labels", "bayes"):
            continue
        ev = asked(sim, name, seed=seed)
        mmse = name in ("ratios", "sampling")
        said[name] = measure(
            ev, mode=mmse and design == "same", interval=design == "fresh" and name in ("ratios", "bayes")
        )
        if design == "same":
            if name == "sampling":  # the paper shows the joint MAP estimate of Algorithm 2
                joint[name] = np.array([ev.joint(a, b).mode for a, b in PAIRS])
            elif name == "labeler-median":  # the geometric median is not that of the coordinates
                joint[name] = np.array([ev.joint(a, b).means for a, b in PAIRS])
            else:
                joint[name] = said[name].mean[of_pairs]
    return Run(said, joint, {})


@cache
def plain_runs(which: Literal["single", "small"], n: int) -> tuple[Run, ...]:
    """The single labeler (Figure 17) or the small sample (Figure 18), `n` times."""
    simulate = single_labeler if which == "single" else small_sample
    runs = []
    for seed in tracked(range(PLAIN_SEED, PLAIN_SEED + n), f"{which} example"):
        sim = simulate(seed)
        said = {"ideal": measure(asked(sim, "ideal"))}
        for name in ("ratios", "estimated-labels", "labeler-mean", "bayes"):
            said[name] = measure(asked(sim, name, seed=seed), interval=name in WITH_REGIONS)
        runs.append(Run(said, {}, {}))
    return tuple(runs)


@dataclass(frozen=True)
class MulticlassRun:
    """One data set of Section 5.3, by method: accuracy, its region, the matrix of counts, the cells' regions."""

    accuracy: dict[str, float]
    region: dict[str, tuple[float, float]]
    counts: dict[str, Array]
    cells: dict[str, Array]
    n_iter: dict[str, int]


MULTICLASS_METHODS = ("ideal", "sampling", "estimated-labels", "labeler-mean", "labeler-median", "bayes")


@cache
def multiclass_runs(n: int, *, n_draws: int = 2500, first: int = MULTICLASS_SEED) -> tuple[MulticlassRun, ...]:
    """Section 5.3, `n` times.

    The paper has M = 10⁴ draws; the repetitions have fewer, which changes digits and not coverage.
    """
    runs = []
    for seed in tracked(range(first, first + n), "four classes"):
        sim = multiclass_example(seed)
        run = MulticlassRun({}, {}, {}, {}, {})
        for name in MULTICLASS_METHODS:
            ev = asked(sim, name, seed=seed, **({"n_draws": n_draws} if name == "sampling" else {}))
            run.accuracy[name] = ev["accuracy"].mean
            run.counts[name] = ev.confusion.mean
            run.n_iter[name] = ev.solution.n_iter
            if name in ("sampling", "bayes"):
                run.region[name] = ev["accuracy"].interval(0.95)
                run.cells[name] = ev.confusion.intervals(0.95)
        runs.append(run)
    return tuple(runs)
