"""The fit of the shipped map: how far the kinds of models are off on each set, and the widening that this asks for.

The models of a set are drawn once, on all votes, and every graded labeler is looked at in that one run. The other parts
grade through the door, where the labeler is a system and their votes are taken out; that takes eight runs a set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from experiments.real_crowds.judging import Grade
from experiments.real_crowds.sets import NO_TRUTH, CrowdSet, load_set
from trueup.answers.calibrate import weighted_quantile
from trueup.estimators.readings import Readings, read_truth
from trueup.estimators.real_map import RealMap, shipped_map
from trueup.exceptions import silenced_warnings

__all__ = ["MAX_ITEMS", "Reading", "fit_widening", "grades_of", "read_set", "widenings_left_out"]

MAX_ITEMS = 600  # of a set, so that all sets take minutes
COVERAGE = 0.93  # of scaled errors; 95% intervals of draws, which are skewed at the bounds, then hold more


@dataclass(frozen=True, eq=False)
class Reading:
    """What the kinds of models say of the graded labelers of a set, and the truth.

    Attributes
    ----------
    crowd : CrowdSet
    readings : Readings
    codes : integer array of shape (n_graded, n_items)
        Their votes where the truth is known, -1 elsewhere.
    true, expected, spread : arrays of shape (n_graded,)
        Accuracies, what all kinds expect of them on average, and the standard deviation within and between kinds.
    """

    crowd: CrowdSet
    readings: Readings
    codes: npt.NDArray[np.int64]
    true: npt.NDArray[np.float64]
    expected: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]

    @property
    def rhat(self) -> float:
        """The worst of the kinds: how well their chains agree."""
        return max(one.rhat for one in self.readings.kinds.draws.values())


@cache
def read_set(name: str) -> Reading:
    """Draw the models of a set."""
    crowd = load_set(name, MAX_ITEMS)
    systems = crowd.labels.as_systems().align(crowd.labels, missing="ignore")
    places = [systems.systems.tolist().index(labeler) for labeler in crowd.graded]
    outputs = systems.of_systems(np.array(places)).on_items(crowd.truth != NO_TRUTH)
    with silenced_warnings():
        readings = read_truth(
            crowd.labels.without_gold(),
            outputs,
            used="classes",
            real_map=shipped_map(),
            in_votes=np.ones(len(places), dtype=bool),
            n_truths=1000,
            seed=1,
        )
    codes = np.asarray(outputs.outputs("classes"))
    seen = [np.flatnonzero(row >= 0) for row in codes]
    return Reading(
        crowd,
        readings,
        codes,
        np.array([(row[at] == crowd.truth[at]).mean() for row, at in zip(codes, seen, strict=True)]),
        np.array([readings.centre[at, row[at]].mean() for row, at in zip(codes, seen, strict=True)]),
        readings.kinds.spread(readings.part)[: len(places)],
    )


def fit_widening(sets: Sequence[Reading], *, floor: float) -> float:
    """The least widening with which that share of the graded labelers is held, sets weighing alike."""
    needed = np.concatenate([np.abs(s.expected - s.true) / np.sqrt(s.spread**2 + floor**2) for s in sets])
    weights = np.concatenate([np.full(len(s.true), 1 / len(s.true)) for s in sets])
    return weighted_quantile(needed, weights, COVERAGE)


def widenings_left_out(sets: Sequence[Reading], *, floor: float) -> Mapping[str, float]:
    """For each family, the widening fitted without it."""
    families = sorted({s.crowd.family for s in sets})
    return {family: fit_widening([s for s in sets if s.crowd.family != family], floor=floor) for family in families}


def grades_of(reading: Reading, real_map: RealMap) -> list[Grade]:
    """The accuracies of a set's labelers by the real answer under a map; all on the same draws."""
    truths = replace(reading.readings, real_map=real_map).assuming("real").truths
    grades = []
    for labeler, row, true in zip(reading.crowd.graded, reading.codes, reading.true, strict=True):
        at = np.flatnonzero(row >= 0)
        values = (truths[:, at] == row[at]).mean(axis=1)
        low, high = np.quantile(values, [0.025, 0.975])
        name, family = reading.crowd.name, reading.crowd.family
        numbers = (float(true), float(values.mean()), float(values.std()), float(low), float(high))
        grades.append(Grade(name, family, str(labeler), "accuracy", "all votes", "real", *numbers))
    return grades
