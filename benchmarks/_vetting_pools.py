"""Pools of items to vet: real labelers graded as classifiers from the votes of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._data import CROWD_SETS, graded_labelers, load_crowd, one_against_others

__all__ = ["QUICK_SETS", "Case", "crowd_cases", "vet"]

QUICK_SETS = ("crowd-bluebird", "crowd-snow-temp")
_LEAST_ITEMS = 100


@dataclass(frozen=True, eq=False)
class Case:
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


def crowd_cases(quick: bool, *, most: int = 8) -> Iterator[Case]:
    """The labelers with most votes of each crowd set, each on the items he voted on and whose truth is known."""
    for name in QUICK_SETS if quick else CROWD_SETS:
        labels, truth = load_crowd(name)
        classes = labels.classes.tolist()
        known = {item: classes[c] for item, c in zip(labels.items.tolist(), truth.tolist(), strict=True) if c >= 0}
        for t in graded_labelers(name, labels)[:most].tolist():
            others, votes = one_against_others(labels, t)
            mine = {item: vote for item, vote in votes.items() if item in known}
            if len(mine) < _LEAST_ITEMS:
                continue
            yield Case(name, others.select(items=list(mine)), mine, {item: known[item] for item in mine})


def vet(test: tu.ActiveTest, truth: Mapping[Any, Any], n: int, *, batch: int) -> tu.ActiveTest:
    """The session after n answers, asked for in batches."""
    while test.n_vetted < n:
        asked = test.ask(min(batch, n - test.n_vetted))
        if not len(asked):
            break
        test.tell({item: truth[item] for item in asked})
    return test
