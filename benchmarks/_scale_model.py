"""A cluster on paper: what an iteration of EM costs by partitions, reduction trees, stragglers and the network.

An iteration is a sum of amounts (votes of the slowest worker, tasks, bytes of tables on their way, …), each times what
one of them costs. The amounts follow from how `trueup._base.clusters` deals out files and joins tables; the costs are
fitted to iterations that were measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import nnls

__all__ = ["COSTS", "Case", "Costs", "Plan", "amounts", "fitted_costs", "plan", "predicted_seconds"]

_BYTES_A_VOTE = 4.0
_BYTES_AN_ITEM = 8.0
_BRANCHES = 8  # as of `trueup._base.clusters`, and so is the next
_MOST_BESIDE = 4_000_000
_FIRST_CACHE = 64_000  # bytes: tables that fit in it cost nothing extra
_SIMULATIONS = 40

# What is paid for, and which part of an iteration it belongs to.
COSTS: dict[str, tuple[str, str]] = {
    "iteration": ("scheduler", "of an iteration, whatever it does"),
    "task": ("scheduler", "of a task"),
    "vote": ("workers", "of a vote with two classes"),
    "doubling": ("workers", "more of a vote for each doubling of tables beyond 64 kB (caches)"),
    "shared": ("workers", "more of a vote where two workers share a machine (memory, clock)"),
    "block": ("tables", "of a byte of the table of a block (cleared and added up by its worker)"),
    "sent": ("tables", "of a byte of a table on its way to another process"),
}
Costs = Mapping[str, float]  # seconds, by the names of `COSTS`


@dataclass(frozen=True)
class Case:
    """A fit: its votes, who gave them, and the cluster."""

    votes: float
    files: int
    labelers: float
    workers: int
    classes: int = 2

    @property
    def table(self) -> float:
        """Bytes of a table of counts: labelers × answers × classes."""
        return self.labelers * self.classes**2 * 8


@dataclass(frozen=True)
class Plan:
    """A cluster for so many votes: gigabytes of each worker, minutes of 20 iterations, and what takes the longest."""

    case: Case
    worker_gigabytes: float
    minutes: float
    limit: str


@cache
def amounts(case: Case, spread: float) -> dict[str, float]:
    """How much there is in an iteration of each thing that costs.

    Parameters
    ----------
    case : Case
    spread : float
        Standard deviation of the logarithm of the time of a block.
    """
    held = [len(part) for part in np.array_split(np.arange(case.files), case.workers) if len(part)]
    groups = sum(math.ceil(n / _BRANCHES) for n in held)
    joins, levels, left = 0, 0, groups
    while left > 1:
        left = math.ceil(left / _BRANCHES)
        joins, levels = joins + left, levels + 1
    goes_beside = case.table * groups <= _MOST_BESIDE
    # The scheduler hands tables out itself, or one worker has them and hands them on, whoever has them helping.
    down = groups if goes_beside else 2 + math.ceil(math.log2(len(held) + 1))
    up = 2 + levels * min(_BRANCHES - 1, groups - 1)
    votes = _slowest(tuple(held), spread) * case.votes / case.files * case.classes / 2
    return {
        "iteration": 1.0,
        "task": groups + joins + (not goes_beside),
        "vote": votes,
        "doubling": votes * max(math.log2(2 * case.table / _FIRST_CACHE), 0.0),
        "shared": votes * (len(held) > 1),
        "block": case.table * max(held),
        "sent": case.table * (down + up),
    }


@cache
def _slowest(held: tuple[int, ...], spread: float) -> float:
    """The blocks of the slowest worker, in blocks of average time; the mean of some simulated iterations."""
    rng = np.random.default_rng(0)
    edges = np.cumsum([0, *held[:-1]])
    times = rng.lognormal(-(spread**2) / 2, spread, (_SIMULATIONS, sum(held)))
    return float(np.add.reduceat(times, edges, axis=1).max(axis=1).mean())


def predicted_seconds(costs: Costs, case: Case, spread: float) -> float:
    """Seconds of an iteration."""
    return sum(costs[name] * amount for name, amount in amounts(case, spread).items())


def fitted_costs(cases: Sequence[Case], seconds: Sequence[float], spread: float) -> dict[str, float]:
    """The costs, none below zero, with the least squares of relative errors of what was measured."""
    rows = np.array([list(amounts(case, spread).values()) for case in cases]) / np.asarray(seconds)[:, None]
    scale = np.maximum(rows.max(axis=0), 1e-300)  # amounts differ by ten orders of magnitude
    return dict(zip(COSTS, (nnls(rows / scale, np.ones(len(rows)))[0] / scale).tolist(), strict=True))


def plan(costs: Costs, case: Case, spread: float) -> Plan:
    """The cost of 20 iterations, five votes an item."""
    parts = dict.fromkeys((part for part, _ in COSTS.values()), 0.0)
    for name, amount in amounts(case, spread).items():
        parts[COSTS[name][0]] += costs[name] * amount
    held = case.votes / case.workers * (_BYTES_A_VOTE + _BYTES_AN_ITEM / 5)
    gigabytes = (held + (3 + _BRANCHES) * case.table) / 1e9
    return Plan(case, gigabytes, 20 * sum(parts.values()) / 60, max(parts, key=parts.__getitem__))
