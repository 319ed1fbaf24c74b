"""A cluster on paper: what an iteration of EM costs by partitions, reduction trees, stragglers and the network.

A worker takes the blocks of its files one after another; the scheduler hands out tasks one at a time; tables of counts,
labelers × answers × classes, go up a tree and the new parameters come down. The costs of a vote, of a task, of a byte
and the spread of block times are those that were measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Costs", "Plan", "iteration_seconds", "plan"]

_BYTES_A_VOTE = 4.0
_BYTES_AN_ITEM = 8.0
_BRANCHES = 8  # as of `trueup.noise.passes`


@dataclass(frozen=True)
class Costs:
    """What was measured.

    Attributes
    ----------
    vote : float
        Seconds of a core for a vote in an iteration.
    task : float
        Seconds of the scheduler for a task.
    byte : float
        Seconds for a byte of a table to another worker.
    spread : float
        Standard deviation of the logarithm of the time of a block.
    """

    vote: float
    task: float
    byte: float
    spread: float


@dataclass(frozen=True)
class Plan:
    """A cluster for so many votes: workers, gigabytes of each, files, and minutes of 20 iterations."""

    n_votes: float
    n_workers: int
    n_files: int
    table_bytes: float
    worker_gigabytes: float
    minutes: float
    limit: str


def iteration_seconds(
    costs: Costs, n_votes: float, n_workers: int, n_files: int, table_bytes: float, rng: np.random.Generator
) -> tuple[float, dict[str, float]]:
    """Seconds of one iteration, and of its parts: the scheduler, the slowest worker, the tree."""
    blocks = n_votes / n_files * costs.vote * rng.lognormal(-(costs.spread**2) / 2, costs.spread, n_files)
    busy = np.zeros(n_workers)
    for seconds in np.sort(blocks)[::-1]:  # who is free first takes the next
        busy[busy.argmin()] += seconds
    levels = max(1, math.ceil(math.log(max(n_files, 2), _BRANCHES)))
    n_tasks = n_files + sum(math.ceil(n_files / _BRANCHES ** (k + 1)) for k in range(levels)) + 1
    parts = {
        "scheduler": n_tasks * costs.task,
        "workers": float(busy.max()),
        # Down to every worker in a tree of two, and up with as many tables as there are branches.
        "tables": table_bytes * costs.byte * (math.ceil(math.log2(n_workers + 1)) + _BRANCHES * levels),
    }
    return max(parts["scheduler"], parts["workers"]) + parts["tables"], parts


def plan(costs: Costs, n_votes: float, n_labelers: float, n_classes: int, n_workers: int, n_files: int) -> Plan:
    """The cost of 20 iterations, five votes an item; the mean over 20 simulated ones."""
    table = n_labelers * n_classes**2 * 8
    rng = np.random.default_rng(0)
    runs = [iteration_seconds(costs, n_votes, n_workers, n_files, table, rng) for _ in range(20)]
    parts = {name: float(np.mean([run[1][name] for run in runs])) for name in runs[0][1]}
    held = n_votes / n_workers * (_BYTES_A_VOTE + _BYTES_AN_ITEM / 5)
    gigabytes = (held + (2 + _BRANCHES) * table) / 1e9
    minutes = 20 * float(np.mean([run[0] for run in runs])) / 60
    return Plan(n_votes, n_workers, n_files, table, gigabytes, minutes, max(parts, key=parts.__getitem__))
