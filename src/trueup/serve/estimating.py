"""The process of the watcher, seen from the server: it is started, heard and ended here.

A watcher reads the log and asks for cards to be written; it writes nothing itself. It works in a process of its own,
so that no expert waits for it.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations, takewhile
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from trueup.active import ActiveTest
from trueup.active.estimators import TooFewAnswers, UndecidedEstimate
from trueup.cleaning import CleaningAdvisor
from trueup.decisions import Decision
from trueup.detection.tile_search import METRIC, TileSearch
from trueup.exceptions import TrueupError
from trueup.posteriors import DrawnEstimate, Estimate, PointEstimate
from trueup.sessions.log import Event
from trueup.sessions.progress import Rate, SessionStatus, status_of
from trueup.sessions.session import Session
from trueup.storage import Storage, open_storage

_MOST_COMPARED = 6  # systems whose pairs are compared
_MOST_ROWS = 60  # of the history: more cannot be distinguished in the chart


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
    met: float | None = None  # P(the conditions of a decision are met)


@dataclass(frozen=True)
class DecisionState:
    """Where a decision stands."""

    verdict: str
    conditions: tuple[str, ...]  # the verdict on each and what it rests on, in words
    met: float  # P(they are met), by votes and checks
    passed: float  # how probable each verdict is in the end
    failed: float
    checks: int | None  # further ones with which it is decided with probability 80%; None where no number is sure
    error: float  # the chance of a false verdict, over all looks


@dataclass(frozen=True)
class Snapshot:
    """What a session says after a part of its log."""

    kind: str = ""
    made: float = 0.0  # When the work on it began, in seconds since 1970: what came in later is not in it
    n_events: int = 0  # The length of the log that it rests on
    metric: str = ""
    bounds: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    level: float = 0.95
    n_items: int = 0
    n_answers: int = 0  # Answered items; answers that the estimate rests on
    finished: str | None = None
    warnings: tuple[str, ...] = ()
    ranges: Mapping[str, Range] = field(default_factory=dict)  # Empty while there are too few answers for the estimator
    draws: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    # Of system k minus system l, by their places, for k < l; empty where there are many systems
    differences: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    # The ends of the interval that holds at every look at once
    anytime_interval: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    anytime_differences: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    n_worlds: int = 1  # 2 where draws are undecided: half of the draws have these at worst, half at best
    n_counted: int = 0
    # Outcomes that wait to count; items of which nobody can tell the class; those of a class that is not listed; those
    # on which experts differ
    n_waiting: int = 0
    n_cannot_tell: int = 0
    n_outside: int = 0
    n_disputed: int = 0
    history: tuple[Row, ...] = ()
    # The first system with answers given with a prediction in sight and corrections by someone who saw the interval,
    # where there are any; ranges do without them
    with_all: Range | None = None
    shares: Mapping[str, float] = field(default_factory=dict)  # Of the answers
    expert_error: Range | None = None
    expert_errors: Mapping[str, Range | None] = field(default_factory=dict)
    n_paid: int | None = None  # The answers that a budget of answers counts
    budget: float | None = None
    half_width: float | None = None
    prob_better: float | None = None
    gain: Range | None = None  # For cleaning: what the next label is expected to bring
    decision: DecisionState | None = None

    @property
    def first(self) -> Range | None:
        """The estimate of the first system."""
        return next(iter(self.ranges.values()), None)

    @property
    def gives_no_cards(self) -> bool:
        """Whether it is decided, so that cards that still wait are not given to anybody."""
        return self.decision is not None and self.decision.verdict != "undecided"

    @property
    def left_of_budget(self) -> float:
        """Answers that the budget still pays for; nan without one."""
        spent = self.n_answers if self.n_paid is None else self.n_paid
        return math.nan if self.budget is None else max(self.budget - spent, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, with None where there is no number."""
        plain: dict[str, Any] = _without_nan(asdict(self))
        return plain


def take_snapshot(session: Session, history: tuple[Row, ...]) -> Snapshot:
    """What a session says now."""
    facts: dict[str, Any] = {"made": time.time(), "n_events": len(session.log), "level": session.level}
    facts |= {"n_items": session.labels.n_items, "history": history}
    if isinstance(session, CleaningAdvisor):
        facts |= {
            "kind": "cleaning",
            "metric": str(session.score_.name),
            "n_answers": session.n_cleaned,
            "finished": session.finished,
            "shares": _shares(session),
            "budget": session.budget,
            "gain": Range.of(session.value, session.level),
        }
        return Snapshot(**facts | _one_number("model", session, session.score_, history, session.n_cleaned))
    gold, n_classes = session.labels.gold_codes, session.labels.n_classes
    status = status_of(session.progress, gold, n_items=session.labels.n_items, n_classes=n_classes, level=session.level)
    facts |= {
        "n_answers": status.answered,
        "n_counted": status.counted,
        "n_waiting": status.ahead,
        "n_cannot_tell": status.cannot_tell,
        "n_outside": status.none_of_these,
        "n_disputed": status.disputed,
    }
    if isinstance(session, TileSearch):
        facts |= {
            "kind": "tile search",
            "metric": METRIC,
            "bounds": (0.0, math.inf),
            "higher_is_better": False,
            "finished": session.finished,
            "warnings": tuple(map(str, session.warnings)),
            "budget": session.labels.n_items,
        }
        if session.estimate is not None:
            facts |= _one_number("pool", session, session.estimate, history, session.n_searched)
        return Snapshot(**facts)
    assert isinstance(session, ActiveTest | Decision)
    facts |= {
        "shares": _shares(session),
        "expert_error": _range(status.errors),
        "expert_errors": {str(expert.who): _range(expert.errors) for expert in status.experts},
        "n_paid": session.n_paid,
        "budget": session.budget,
    }
    if isinstance(session, Decision):
        return Snapshot(**facts | _of_decision(session, history))
    metric = session.pool.metric
    facts |= {
        "kind": "active test",
        "metric": metric.name,
        "bounds": (float(metric.bounds[0]), float(metric.bounds[1])),
        "higher_is_better": metric.higher_is_better is not False,
        "half_width": session.half_width,
        "prob_better": session.prob_better,
    }
    try:
        return Snapshot(**facts | _of_test(session, history, status))
    except TooFewAnswers as error:
        return Snapshot(**facts, warnings=(str(error.sentence),))


def _of_test(test: ActiveTest, history: tuple[Row, ...], status: SessionStatus) -> dict[str, Any]:
    """What the answers say of the systems."""
    systems, is_swayed = test.pool.aligned.systems.tolist(), status.sighted or status.corrected
    n_compared = len(systems) if len(systems) <= _MOST_COMPARED else 0
    pairs = {f"{k} {m}": (systems[k], systems[m]) for k, m in combinations(range(n_compared), 2)}
    estimates = {str(name): test.estimate(name) for name in systems}
    ranges = {name: Range.of(estimate, test.level) for name, estimate in estimates.items()}
    return {
        "finished": test.finished,
        "warnings": tuple(map(str, test.warnings)),
        "ranges": ranges,
        "draws": {name: _draws(estimate) for name, estimate in estimates.items()},
        "n_worlds": 2 if any(isinstance(estimate, UndecidedEstimate) for estimate in estimates.values()) else 1,
        "differences": {key: _draws(test.difference(*pair)) for key, pair in pairs.items()},
        "anytime_interval": {str(name): test.anytime_interval(name) for name in systems},
        "anytime_differences": {key: test.anytime_interval(*pair) for key, pair in pairs.items()},
        "history": _extended(history, status.answered, next(iter(ranges.values()))),
        "with_all": Range.of(test.estimate(answers="all"), test.level) if is_swayed else None,
    }


def _of_decision(decision: Decision, history: tuple[Row, ...]) -> dict[str, Any]:
    gate, estimate, needed = decision.conditions[0].gate, decision.estimates[0], decision.needed
    verdict, sentences, met = decision.verdict, tuple(decision.sentences), decision.probability
    state = DecisionState(verdict, sentences, met, needed.passed, needed.failed, needed.checks, decision.error)
    return {
        "kind": "decision",
        "metric": gate.what,
        "bounds": decision.conditions[0].bounds,
        "higher_is_better": gate.side in ("at least", "above"),
        "finished": decision.finished,
        **_one_number(gate.what, decision, estimate, history, decision.n_vetted, met),
        "decision": state,
    }


def _one_number(
    name: str, session: Session, estimate: Estimate, history: tuple[Row, ...], n: int, met: float | None = None
) -> dict[str, Any]:
    """What is said of the only number of a session after n answers."""
    now = Range.of(estimate, session.level)
    return {"ranges": {name: now}, "draws": {name: _draws(estimate)}, "history": _extended(history, n, now, met)}


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


def _extended(history: tuple[Row, ...], n: int, now: Range, met: float | None = None) -> tuple[Row, ...]:
    """The history with the estimate of now, thinned where it grows long."""
    if n == 0 or math.isnan(now.mean):
        return history
    rows = [*(row for row in history if row.n < n), Row(n, now.mean, now.low, now.high, met)]
    if len(rows) > 2 * _MOST_ROWS:
        rows = [*rows[:-1:2], rows[-1]]
    return tuple(rows)


def first_history(session: Session) -> tuple[Row, ...]:
    """The estimates of a session that has answers already, at some points of its log."""
    n = session.progress.n_tells
    if n < 2 or not isinstance(session, ActiveTest | Decision):
        return ()
    try:
        rows = session.history(every=max(5, math.ceil(n / 15)))
    except TooFewAnswers:  # of the first rows: others were answered before the first draws were
        return ()
    return tuple(Row(int(row["n"]), row["mean"], row["low"], row["high"], row.get("met")) for row in rows)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


FEWEST_AHEAD = 12  # cards that wait for an expert


@dataclass(frozen=True)
class FollowedLog:
    """The log as a session in a watcher sees it: read from the storage, written by the server."""

    storage: Storage
    name: str
    write: Callable[[Sequence[Event], int], list[Event] | None]  # None where others drew cards since

    def read(self, since: int) -> list[Event]:
        """The events after the first `since`."""
        return self.storage.events(self.name, since=since)

    def append(self, events: Sequence[Event], after: int) -> list[Event] | None:
        """Have events written."""
        return self.write(events, after)


def append_cards(storage: Storage, name: str, events: Sequence[Event], after: int) -> list[Event] | None:
    """Add cards to a log to which answers may have come meanwhile; they do not change which cards are right."""
    tail: list[Event] = []
    while True:
        tail += storage.events(name, since=after + len(tail))
        if any(event.kind == "ask" for event in tail):
            return None
        kept = storage.append(name, events, after=after + len(tail))
        if kept is not None:
            return [*tail, *kept]


@dataclass
class Watcher:
    """Keeps enough cards ahead, and the estimate up to date."""

    session: Session
    storage: Storage
    name: str
    publish: Callable[[Snapshot], Any]
    _history: tuple[Row, ...] | None = None
    _n_seen: int = -1
    _n_drawn_for: int = -1
    _seconds: float = 0.0  # that the last estimate took

    def step(self) -> bool:
        """Do what is due; False if nothing was."""
        self.session.refresh()
        drew = self._draw_ahead()
        n_events = len(self.session.log)
        if n_events == self._n_seen:
            return drew
        new = self.session.log[max(self._n_seen, 0) :]
        if self._n_seen < 0 or any(event.kind != "ask" for event in new):
            if self._history is None:
                self._history = first_history(self.session)
            begin = time.monotonic()
            snapshot = take_snapshot(self.session, self._history)
            self._seconds = time.monotonic() - begin
            self._history = snapshot.history
            self.publish(snapshot)
        self._n_seen = n_events
        return True

    def _draw_ahead(self) -> bool:
        """Ask for cards where fewer wait than experts will want soon."""
        record = self.storage.open(self.name)
        if record.paused:
            return False
        n_events = len(self.session.log)
        if n_events == self._n_drawn_for:
            return False  # nothing came in since, and what could be drawn was
        since = time.time() - 60.0

        def is_recent(event: Event) -> bool:
            return event.at is None or event.at >= since

        # A few should wait, and more where many experts are at work or quick, or where estimates take long.
        recent = [event for event in takewhile(is_recent, reversed(self.session.log)) if event.kind != "ask"]
        cards = self.storage.cards(self.name)
        n_experts = max(sum(card.seconds_left > 0 for card in cards), len({event.who for event in recent}))
        by_pace = int(len(recent) / 60.0 * (4.0 + 2 * self._seconds))
        wanted = min(max(FEWEST_AHEAD, 5 * n_experts, by_pace), 1_000)
        # Cards with a purpose are not for everybody; they come on top.
        n = wanted - sum(card.seconds_left == 0 and card.purpose is None for card in cards)
        if n > 0:
            self.session.ask(n)
        else:
            self.session.follow_up()
        self._n_drawn_for = n_events  # Answers may have come in while cards were written: the next look is for them
        return len(self.session.log) > n_events


MakeSession = Callable[[], Session]
_PAUSE = 0.2  # seconds between two looks at the log


class LatestSnapshot:
    """The latest snapshot, None before the first, and why there will be no more, in one sentence."""

    def __init__(self) -> None:
        self._changed = threading.Lock()
        self.snapshot: Snapshot | None = None
        self.problem: str | None = None
        self.version = 0  # counts what was put up

    def put(self, snapshot: Snapshot | None = None, *, problem: str | None = None) -> None:
        """Put up a snapshot, or what went wrong."""
        with self._changed:
            self.snapshot = snapshot or self.snapshot
            self.problem = problem or self.problem
            self.version += 1


class InProcess:
    """A watcher in a process of its own."""

    def __init__(self, make: MakeSession, storage: Storage, url: str, name: str, latest: LatestSnapshot) -> None:
        self._storage, self._name, self._latest = storage, name, latest
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._there: Connection | None = there
        self._process = context.Process(
            target=_watch, args=(there, make, url, name), name="trueup-watcher", daemon=True
        )
        self._thread = threading.Thread(target=self._listen, name="trueup-listener", daemon=True)
        self._stopped = False
        self._is_ready = threading.Event()
        self._failure: TrueupError | None = None

    def start(self) -> None:
        """Begin to work; once is enough."""
        if self._process.pid is not None:
            return
        self._process.start()
        assert self._there is not None
        self._there.close()  # the process has its own
        self._there = None
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """Of the process; None before it was started."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Wait for the session to be there: until it is fitted. What is wrong with it is raised."""
        self._is_ready.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self._stopped = True
        if self._process.pid is not None:
            self._process.kill()  # it only reads, so that nothing can be left half done
            self._process.join(1.0)
        self._here.close()

    def _listen(self) -> None:
        try:
            while True:
                what, content = self._here.recv()
                if what == "cards":
                    self._here.send(append_cards(self._storage, self._name, *content))
                elif what == "snapshot":
                    self._latest.put(content)
                elif what == "ready":
                    self._is_ready.set()
                else:
                    self._fail(content)
        except (EOFError, OSError):
            self._fail(TrueupError("the process of the estimate has ended; start the server again"))
        except Exception as error:
            self._fail(TrueupError(in_a_sentence(error)))

    def _fail(self, failure: TrueupError) -> None:
        if self._stopped or self._failure is not None:
            return  # the first one says why
        self._failure = failure
        self._latest.put(problem=str(failure.sentence))
        self._is_ready.set()


def _watch(pipe: Connection, make: MakeSession, url: str, name: str) -> None:
    """The work of the process, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the server ends this one

    def write(events: Sequence[Event], after: int) -> list[Event] | None:
        pipe.send(("cards", (list(events), after)))
        kept: list[Event] | None = pipe.recv()
        return kept

    def publish(snapshot: Snapshot) -> Any:
        pipe.send(("snapshot", snapshot))

    try:
        storage = open_storage(url)
        session = make()
        session.follow(FollowedLog(storage, name, write))
        pipe.send(("ready", None))
        watcher = Watcher(session, storage, name, publish)
        while True:
            if not watcher.step() and pipe.poll(_PAUSE):
                pipe.recv()  # nothing is sent unasked: the server has ended, however that came
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except TrueupError as error:
        pipe.send(("failure", error))
    except Exception as error:
        pipe.send(("failure", TrueupError(in_a_sentence(error))))


def in_a_sentence(error: Exception) -> str:
    """What went wrong, for the page of the owner."""
    if isinstance(error, TrueupError):
        return str(error.sentence)
    return traceback.format_exception_only(error)[-1].strip()[:300]
