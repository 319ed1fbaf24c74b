"""Intervals held against the truth: sets weigh alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Grade", "Overall", "SetSummary", "by_set", "numbers_of", "over_sets", "ratio_of_widths"]

_SLACK = 1e-9  # a true metric is a quotient of whole numbers and may be an end of the interval itself


@dataclass(frozen=True)
class Grade:
    """One estimate of one metric of one system, beside the truth.

    Attributes
    ----------
    crowd, family : str
        The set and its family.
    system : str
        The labeler who is graded, or two for a difference.
    metric : str
        "accuracy", "recall", "prevalence", "precision", "f1" or "difference".
    condition : str
        Which votes or vetted items it rests on: "all votes", "5 votes", "3 votes", "20 vetted", …
    answer : str
        Who says so: "real", "shared", "independent", or a rival.
    true, mean, sd, low, high : float
        The interval is that of level 95%.
    repetition : int
        Which draw of the vetted items.
    """

    crowd: str
    family: str
    system: str
    metric: str
    condition: str
    answer: str
    true: float
    mean: float
    sd: float
    low: float
    high: float
    repetition: int = 0

    @property
    def holds(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low - _SLACK <= self.true <= self.high + _SLACK

    @property
    def width(self) -> float:
        """Of the interval."""
        return self.high - self.low


@dataclass(frozen=True)
class SetSummary:
    """The grades of one set."""

    n: int
    coverage: float
    width: float
    mean_error: float
    mean_absolute_error: float


@dataclass(frozen=True)
class Overall:
    """Means over sets, each with weight one, and the standard errors of the first two over sets."""

    n_sets: int
    coverage: float
    coverage_error: float
    width: float
    width_error: float
    mean_error: float
    mean_absolute_error: float
    least_coverage: float


def by_set(grades: Iterable[Grade]) -> dict[str, SetSummary]:
    """What the grades of each set say."""
    groups: dict[str, list[Grade]] = {}
    for grade in grades:
        groups.setdefault(grade.crowd, []).append(grade)
    return {crowd: _summary(of_set) for crowd, of_set in sorted(groups.items())}


def over_sets(grades: Iterable[Grade]) -> Overall:
    """Means over sets; labelers of one set share its votes, so only sets are independent cases."""
    sets = list(by_set(grades).values())
    coverage, width = np.array([s.coverage for s in sets]), np.array([s.width for s in sets])
    return Overall(
        len(sets),
        float(coverage.mean()),
        _standard_error(coverage),
        float(width.mean()),
        _standard_error(width),
        float(np.mean([s.mean_error for s in sets])),
        float(np.mean([s.mean_absolute_error for s in sets])),
        float(coverage.min()),
    )


def ratio_of_widths(grades: Sequence[Grade], rivals: Sequence[Grade]) -> float:
    """Mean width over sets relative to that of a rival on the same cases; cases that only one has are left out."""
    mine, theirs = ({_case_of(g): g for g in some} for some in (grades, rivals))
    common = mine.keys() & theirs.keys()
    if not common:
        return math.nan
    of_rival = over_sets(theirs[case] for case in common)
    return over_sets(mine[case] for case in common).width / of_rival.width


def _summary(grades: Sequence[Grade]) -> SetSummary:
    errors = np.array([grade.mean - grade.true for grade in grades])
    return SetSummary(
        len(grades),
        float(np.mean([grade.holds for grade in grades])),
        float(np.mean([grade.width for grade in grades])),
        float(errors.mean()),
        float(np.abs(errors).mean()),
    )


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _case_of(grade: Grade) -> tuple[str, str, str, str, int]:
    return grade.crowd, grade.system, grade.metric, grade.condition, grade.repetition


def numbers_of(overall: Overall, name: str) -> Mapping[str, float]:
    """For a comparison with what is asked."""
    return {
        f"{name}: holds, %": 100 * overall.coverage,
        f"{name}: width": overall.width,
        f"{name}: mean absolute error": overall.mean_absolute_error,
    }
