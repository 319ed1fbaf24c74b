"""Where a session stands, as plain data: what the page of the owner and programs are told of the estimate."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from trueup.active import ActiveTest
from trueup.active.estimators import TooFewAnswers
from trueup.active.undecided import UndecidedEstimate
from trueup.cleaning import CleaningAdvisor
from trueup.detection.tile_search import METRIC, TileSearch
from trueup.posteriors import DrawnEstimate, Estimate, PointEstimate
from trueup.sessions.session import Session
from trueup.sessions.standing import Rate, Standing, standing_of

_MOST_COMPARED = 6  # systems whose pairs are told apart
_MOST_ROWS = 60  # of the history: more cannot be told apart in the chart


@dataclass(frozen=True)
class Range:
    """A number with its interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, estimate: Estimate, level: float) -> Range:
        """Of an estimate."""
        low, high = estimate.interval(level)
        return cls(float(estimate.mean), float(low), float(high))

    @property
    def half(self) -> float:
        """Half of the width."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Row:
    """The estimate after some answers."""

    n: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Snapshot:
    """What a session says after a part of its log.

    Attributes
    ----------
    made : float
        When the work on it began, in seconds since 1970: what came in later is not in it.
    n_events : int
        The length of the log that it rests on.
    ranges, draws : dict from system to Range, and to its draws
        Empty while there are too few answers for the estimator.
    differences : dict from "k l" to draws
        Of system k minus system l, by their places, for k < l; empty where there are many systems.
    lasting, lasting_differences : dict from system, and from "k l", to two numbers
        The ends of the interval that holds at every look at once.
    n_worlds : int
        2 where draws are undecided: half of the draws have these at worst, half at best.
    n_answers, n_counted : int
        Answered items; answers that the estimate rests on.
    n_waiting, n_cannot_tell, n_outside, n_disputed : int
        Outcomes that wait to count; items of which nobody can tell the class; those of a class that is not listed;
        those on which experts differ.
    with_all : Range, optional
        The first system with answers given with a prediction in sight and corrections by someone who saw the interval,
        where there are any; `ranges` do without them.
    shares : dict from class to float
        Of the answers.
    n_paid : int, optional
        The answers that a budget of answers counts.
    gain : Range, optional
        For cleaning: what the next label is expected to bring.
    """

    kind: str
    made: float
    n_events: int
    metric: str
    bounds: tuple[float, float]
    higher_is_better: bool
    level: float
    n_items: int
    n_answers: int
    finished: str | None = None
    warnings: tuple[str, ...] = ()
    ranges: Mapping[str, Range] = field(default_factory=dict)
    draws: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    differences: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    lasting: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    lasting_differences: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    n_worlds: int = 1
    n_counted: int = 0
    n_waiting: int = 0
    n_cannot_tell: int = 0
    n_outside: int = 0
    n_disputed: int = 0
    history: tuple[Row, ...] = ()
    with_all: Range | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    expert_error: Range | None = None
    expert_errors: Mapping[str, Range | None] = field(default_factory=dict)
    n_paid: int | None = None
    budget: float | None = None
    half_width: float | None = None
    prob_better: float | None = None
    gain: Range | None = None

    @property
    def first(self) -> Range | None:
        """The estimate of the first system."""
        return next(iter(self.ranges.values()), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, with None where there is no number."""
        plain: dict[str, Any] = _without_nan(asdict(self))
        return plain


def take_snapshot(session: Session, history: tuple[Row, ...]) -> Snapshot:
    """What a session says now.

    Parameters
    ----------
    session : ActiveTest, CleaningAdvisor or TileSearch
    history : tuple of Row
        What was said before; the estimate of now is added to it.
    """
    made = time.time()
    if isinstance(session, ActiveTest):
        return _of_test(session, history, made)
    if isinstance(session, TileSearch):
        return _of_search(session, history, made)
    assert isinstance(session, CleaningAdvisor)
    return _of_advisor(session, history, made)


def _of_test(test: ActiveTest, history: tuple[Row, ...], made: float) -> Snapshot:
    standing, metric = test.standing(), test.pool.metric
    snapshot = Snapshot(
        kind="active test",
        made=made,
        n_events=len(test.log),
        metric=metric.name,
        bounds=(float(metric.bounds[0]), float(metric.bounds[1])),
        higher_is_better=metric.higher_is_better is not False,
        level=test.level,
        n_items=test.pool.n_items,
        n_counted=test.n_counted,
        **_outcomes(standing),
        history=history,
        shares=_shares(test),
        expert_error=_range(standing.errors),
        expert_errors={str(one.who): _range(one.errors) for one in standing.experts},
        n_paid=test.n_paid,
        budget=test.budget,
        half_width=test.half_width,
        prob_better=test.prob_better,
    )
    try:
        return replace(snapshot, **_estimated(test, history, standing))
    except TooFewAnswers as error:
        return replace(snapshot, warnings=(str(error.sentence),))


def _estimated(test: ActiveTest, history: tuple[Row, ...], standing: Standing) -> dict[str, Any]:
    """What the answers say of the systems."""
    systems = test.pool.aligned.systems.tolist()
    n_compared = len(systems) if len(systems) <= _MOST_COMPARED else 0
    pairs = {f"{k} {m}": (systems[k], systems[m]) for k, m in combinations(range(n_compared), 2)}
    estimates = {str(name): test.estimate(name) for name in systems}
    ranges = {name: Range.of(estimate, test.level) for name, estimate in estimates.items()}
    return {
        "finished": test.finished,
        "warnings": tuple(map(str, test.warnings)),
        "ranges": ranges,
        "draws": {name: _draws(estimate) for name, estimate in estimates.items()},
        "n_worlds": 2 if any(isinstance(one, UndecidedEstimate) for one in estimates.values()) else 1,
        "differences": {key: _draws(test.difference(*pair)) for key, pair in pairs.items()},
        "lasting": {str(name): test.anytime_interval(name) for name in systems},
        "lasting_differences": {key: test.anytime_interval(*pair) for key, pair in pairs.items()},
        "history": _extended(history, standing.answered, next(iter(ranges.values()))),
        "with_all": _with_all(test) if standing.sighted or standing.corrected else None,
    }


def _of_advisor(advisor: CleaningAdvisor, history: tuple[Row, ...], made: float) -> Snapshot:
    score = Range.of(advisor.score_, advisor.level)
    return Snapshot(
        kind="cleaning",
        made=made,
        n_events=len(advisor.log),
        metric=str(advisor.score_.name),
        bounds=(0.0, 1.0),
        higher_is_better=True,
        level=advisor.level,
        n_items=advisor.labels.n_items,
        n_answers=advisor.n_cleaned,
        finished=advisor.finished,
        ranges={"model": score},
        draws={"model": _draws(advisor.score_)},
        history=_extended(history, advisor.n_cleaned, score),
        shares=_shares(advisor),
        budget=advisor.budget,
        gain=Range.of(advisor.value, advisor.level),
    )


def _of_search(search: TileSearch, history: tuple[Row, ...], made: float) -> Snapshot:
    standing = standing_of(
        search.progress,
        search.labels.gold_codes,
        n_items=search.labels.n_items,
        n_classes=search.labels.n_classes,
        level=search.level,
    )
    snapshot = Snapshot(
        kind="tile search",
        made=made,
        n_events=len(search.log),
        metric=METRIC,
        bounds=(0.0, math.inf),
        higher_is_better=False,
        level=search.level,
        n_items=search.labels.n_items,
        n_counted=standing.counted,
        **_outcomes(standing),
        finished=search.finished,
        warnings=tuple(map(str, search.warnings)),
        history=history,
        budget=search.labels.n_items,
    )
    estimate = search.estimate
    if estimate is None:
        return snapshot
    now = Range.of(estimate, search.level)
    return replace(
        snapshot,
        ranges={"pool": now},
        draws={"pool": _draws(estimate)},
        history=_extended(history, standing.answered, now),
    )


def _outcomes(standing: Standing) -> dict[str, Any]:
    return {
        "n_answers": standing.answered,
        "n_waiting": standing.ahead,
        "n_cannot_tell": standing.cannot_tell,
        "n_outside": standing.none_of_these,
        "n_disputed": standing.disputed,
    }


def _with_all(test: ActiveTest) -> Range:
    return Range.of(test.estimate(answers="all"), test.level)


def _range(rate: Rate) -> Range | None:
    return Range(rate.share, rate.low, rate.high) if rate.n else None


def _draws(estimate: Estimate, n: int = 1000) -> tuple[float, ...]:
    if isinstance(estimate, PointEstimate):
        return (float(estimate.value),)
    if isinstance(estimate, DrawnEstimate) and estimate.weights is None:
        return tuple(estimate.values.tolist())
    return tuple(estimate.draws(n, random_state=0).tolist())


def _shares(session: Session) -> dict[str, float]:
    """How much of the answers each class has."""
    truth = session.progress.truth[session.progress.vetted]
    classes = session.labels.classes.tolist()
    counts = np.bincount(truth[truth < len(classes)], minlength=len(classes))
    total = max(int(counts.sum()), 1)
    return {str(name): float(count / total) for name, count in zip(classes, counts.tolist(), strict=True)}


def _extended(history: tuple[Row, ...], n: int, now: Range) -> tuple[Row, ...]:
    """The history with the estimate of now, thinned where it grows long."""
    if n == 0 or math.isnan(now.mean):
        return history
    rows = [*(row for row in history if row.n < n), Row(n, now.mean, now.low, now.high)]
    if len(rows) > 2 * _MOST_ROWS:
        rows = [*rows[:-1:2], rows[-1]]
    return tuple(rows)


def first_history(session: Session) -> tuple[Row, ...]:
    """The estimates of a session that has answers already, at some points of its log."""
    n = session.progress.n_tells
    if n < 2 or not isinstance(session, ActiveTest):
        return ()
    try:
        rows = session.history(every=max(5, math.ceil(n / 15)))
    except TooFewAnswers:  # of the first rows: others were answered before the first draws were
        return ()
    return tuple(Row(int(row["n"]), row["mean"], row["low"], row["high"]) for row in rows)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
