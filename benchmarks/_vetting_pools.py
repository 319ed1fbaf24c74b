"""Pools of items to vet: real labelers graded as classifiers from the votes of the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks import _runs as runs
from benchmarks._data import CROWD_SETS, graded_labelers, load_crowd, one_against_others

__all__ = [
    "QUICK_SETS",
    "REPETITIONS_A_CASE",
    "Pool",
    "kept_rows",
    "load_pool",
    "pool_names",
    "set_of",
    "vet",
    "with_peer",
]

QUICK_SETS = ("crowd-bluebird", "crowd-snow-temp")
REPETITIONS_A_CASE = 5  # for which a pool is read once
_LEAST_ITEMS = 100
_SEPARATOR = " / "


@dataclass(frozen=True, eq=False)
class Pool:
    """One system, noisy votes, and the truth that only an expert gets to see.

    Attributes
    ----------
    predictions, truth : mappings from item to class
    """

    name: str
    labels: tu.Labels
    predictions: Mapping[Any, Any]
    truth: Mapping[Any, Any]

    @cached_property
    def hits(self) -> npt.NDArray[np.float64]:
        """Whether the system is right on each item, in the order of ``labels.items``."""
        return np.array([self.predictions[i] == self.truth[i] for i in self.labels.items.tolist()], dtype=float)

    @property
    def accuracy(self) -> float:
        """The true accuracy on the pool."""
        return float(self.hits.mean())

    def session(self, **settings: Any) -> tu.ActiveTest:
        """A session on this pool."""
        return tu.ActiveTest(self.predictions, self.labels, **settings)

    def believed(self, test: tu.ActiveTest) -> npt.NDArray[np.float64]:
        """P(the system is right) of each item by the votes alone."""
        codes = test.pool.aligned.codes
        assert codes is not None
        return np.asarray(test.pool.prior[np.arange(test.pool.n_items), codes[0]])


@lru_cache(maxsize=2)
def _pools_of(name: str) -> tuple[Pool, ...]:
    """Of the labelers with most votes of a crowd set, each on the items he voted on and whose truth is known."""
    labels, truth = load_crowd(name)
    classes = labels.classes.tolist()
    known = {item: classes[c] for item, c in zip(labels.items.tolist(), truth.tolist(), strict=True) if c >= 0}
    pools = []
    for t in graded_labelers(name, labels).tolist():
        others, votes = one_against_others(labels, t)
        mine = {item: vote for item, vote in votes.items() if item in known}
        if len(mine) >= _LEAST_ITEMS:
            pools.append(Pool(name, others.select(items=list(mine)), mine, {item: known[item] for item in mine}))
    return tuple(pools)


def pool_names(quick: bool, *, most: int = 8) -> list[str]:
    """Of so many labelers of each crowd set at most."""
    sets = QUICK_SETS if quick else CROWD_SETS
    return [f"{name}{_SEPARATOR}{k}" for name in sets for k in range(len(_pools_of(name)[:most]))]


def load_pool(name: str) -> Pool:
    """The pool of that name."""
    return _pools_of(set_of(name))[int(name.split(_SEPARATOR)[1])]


def set_of(name: str) -> str:
    """The crowd set that a pool is of."""
    return name.split(_SEPARATOR)[0]


def with_peer(name: str) -> str:
    """The name of a case that a peer is asked about too, where there is one: without it less is kept."""
    return f"{name}{_SEPARATOR}peer" if os.environ.get("TRUEUP_PEERS") else name


def kept_rows(
    section: str, run: Callable[[runs.Case], list[runs.Row]], cases: Sequence[runs.Case], *, quick: bool
) -> list[runs.Row]:
    """The rows of all cases; but for a quick run they are kept, so that an interrupted measurement goes on."""
    processes = 1 if quick else runs.MOST_PROCESSES
    return runs.run_cases(f"vetting-{section}", run, cases, processes=processes, folder=None if quick else runs.RUNS)


def vet(test: tu.ActiveTest, truth: Mapping[Any, Any], n: int, *, batch: int) -> tu.ActiveTest:
    """The session after n answers, asked for in batches."""
    while test.n_vetted < n:
        asked = test.ask(min(batch, n - test.n_vetted))
        if not len(asked):
            break
        test.tell({item: truth[item] for item in asked})
    return test
