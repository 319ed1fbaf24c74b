"""What every session of questions and answers shares: a log, what follows from it, and its JSON."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import compress
from typing import Any, Self, TypeVar

import numpy as np

from trueup._base.types import Booleans, Floats, Positions
from trueup._base.validation import check_integer, check_number
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.noise import NoiseModel
from trueup.noise.registry import MODELS, get_model
from trueup.posteriors import Estimate
from trueup.sessions.log import (
    Event,
    EventLog,
    Kind,
    Names,
    events_from_json,
    plot_history,
    session_from_json,
    session_to_json,
)
from trueup.sessions.progress import (
    UNKNOWN,
    Answers,
    Card,
    Counted,
    Progress,
    SessionStatus,
    Shares,
    count_answers,
    delayed_cards,
    fold,
    has_answered,
    new_cards,
    open_cards,
    overlap_of_draws,
    purpose_of_card,
    status_of,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """One item to vet: its name, how much the strategy wants it, why, and the probability it was drawn with.

    A `purpose` says that it is no new draw: "overlap" (a second opinion), "settle", "repeat" or "check". Experts should
    not see it.
    """

    item: Any
    score: float
    why: str
    propensity: float | None
    purpose: str | None = None


class Batch(Sequence[Any]):
    """The items to vet, by name; `details` says why each."""

    def __init__(self, details: Iterable[Asked]) -> None:
        self.details = tuple(details)
        self._items = [one.item for one in self.details]

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __repr__(self) -> str:
        return f"Batch({self._items!r})"


def draw_in_turn(chances: Floats, n: int, rng: np.random.Generator) -> tuple[list[int], list[float | None]]:
    """Items drawn one after the other without replacement, with the probability each had in its turn."""
    left = np.array(chances, dtype=float)
    chosen: list[int] = []
    propensities: list[float | None] = []
    for _ in range(min(n, int(np.count_nonzero(left > 0)))):
        upto = np.cumsum(left)
        k = int(np.searchsorted(upto, rng.random() * upto[-1], side="right"))
        if k >= len(left):  # rounding at the very end
            k = int(np.flatnonzero(left > 0)[-1])
        chosen.append(k)
        propensities.append(min(float(left[k] / upto[-1]), 1.0))
        left[k] = 0.0
    return chosen, propensities


class Session(ABC):
    """Questions about the items of some labels, their answers, and where that leads. Pure: no files, no clock."""

    level: float
    strategy: str
    options: dict[str, Any]
    _blind: bool | None = None  # whether experts answer without a prediction in sight, if the session says so

    def _begin(self, labels: Labels, strategy: str, options: Mapping[str, Any]) -> None:
        """Start with an empty log."""
        self._labels = labels
        self._names = Names(labels.items.tolist(), labels.classes.tolist())
        self._events: list[Event] = []
        self._log: EventLog | None = None
        self._folded = 0, fold([], self._names)
        self._memo: dict[Any, Any] = {}
        self.strategy, self.options = strategy, dict(options)

    def _once(self, key: Hashable, work: Callable[[], T]) -> T:
        """What follows from the log, worked out once until it grows."""
        if key not in self._memo:
            self._memo[key] = work()
        found: T = self._memo[key]
        return found

    def follow(self, log: EventLog) -> None:
        """Go on with a log that others write to as well, from its beginning; what was in memory is left behind."""
        self._log, self._events, self._memo = log, [], {}
        self._folded = 0, fold([], self._names)
        self.refresh()

    def refresh(self) -> None:
        """Read what other processes wrote since; a session that is not stored has none.

        Asking, telling and skipping begin with it. Between two calls of it nothing moves.
        """
        new = [] if self._log is None else self._log.read(len(self._events))
        if new:
            self._events += new
            self._memo = {}

    def _write(self, make_events: Callable[[], Sequence[Event]]) -> None:
        """Add what follows from the log as it is; it is worked out again where others were quicker."""
        while True:
            self.refresh()
            events = list(make_events())
            kept = events if self._log is None or not events else self._log.append(events, len(self._events))
            if kept is not None:
                self._events += kept
                self._memo = {}
                return

    def ask(self, n: int = 1, *, who: str | None = None) -> Batch:
        """The next items. They wait for an answer, and are not asked again before it."""
        check_integer(n, name="n", low=1)
        batch = Batch([])

        def events() -> list[Event]:
            nonlocal batch
            # A storage leases the cards that are in the log already; only without one they are handed out here.
            cards = [] if self._log is not None else self._cards_for(who)[:n]
            room = self._room(cards)
            n_new = int(min(n - len(cards), room))
            drawn = self._choose(n_new).details if n_new > 0 else ()
            if self._log is None:
                left = [card for card in delayed_cards(self.progress, who, at_last=True) if card not in cards]
                cards += left[: n - len(cards) - len(drawn)]
            # The sentence is the same for all, since it must not say what was said.
            why = "It was asked for before and is to be looked at afresh."
            handed = [Asked(self._names.items[at], 0.0, why, None, purpose) for at, purpose, _ in cards]
            batch = Batch([*handed, *drawn])
            asks = []
            for card in batch.details:
                expert = None if card.purpose is None else who
                asks.append(Event("ask", card.item, None, expert, card.propensity, purpose=card.purpose, why=card.why))
            return [*asks, *self._follow_ups([card.item for card in drawn], who, room - len(drawn))]

        self._write(events)
        return batch

    def follow_up(self) -> None:
        """Write the cards that have become due, such as those that settle what experts differ on; nothing is drawn."""
        self._write(lambda: self._follow_ups([], None, self._room()))

    def _cards_for(self, who: str | None) -> list[Card]:
        """What an expert gets before anything new is chosen."""
        return delayed_cards(self.progress, who)

    def _room(self, cards: Sequence[Card] = ()) -> float:
        """How many more cards can be paid for, beside those that are out and these."""
        return math.inf

    def _follow_ups(self, items: Sequence[Any], who: str | None, room: float) -> list[Event]:
        """Cards that are to go into the log with the items that were just drawn, at most `room`."""
        return []

    @abstractmethod
    def _choose(self, n: int) -> Batch:
        """At most n items to ask for now."""

    def _batch(
        self,
        positions: Sequence[int],
        scores: Floats,
        reasons: Sequence[str],
        chances: Sequence[float | None] | None = None,
    ) -> Batch:
        """These items, with a score, a reason and, where they were drawn, a chance each."""
        columns = zip(positions, scores, reasons, chances or [None] * len(positions), strict=True)
        return Batch(Asked(self._names.items[at], float(score), why, chance) for at, score, why, chance in columns)

    def tell(
        self,
        truths: Mapping[Any, Any],
        *,
        who: str | None = None,
        correct: bool = False,
        second: bool = False,
        blind: bool | None = None,
        saw_estimate: bool | None = None,
        seconds: float | None = None,
    ) -> None:
        """What the expert says: a mapping from item to its true class.

        An item that was never asked is accepted; its chance to be asked is unknown, so it stands for itself only, and
        beside draws that come after it: those before it stand for it already.
        """
        if not isinstance(truths, Mapping):
            raise InvalidParameter(
                f"truths must map items to classes, got {type(truths).__name__}; pass {{item: class}}"
            )
        if seconds is not None:
            check_number(seconds, name="seconds", low=0.0)
        blind = self._blind if blind is None else blind

        def events() -> list[Event]:  # all answers are checked before any counts
            new, known, names = [], self._known_codes, self._names
            for item, truth in truths.items():
                at, code = names.position(item), names.code(truth, item)
                before, purpose = int(known[at]), purpose_of_card(self.progress, at, who)
                differs = before not in (UNKNOWN, code) and purpose is None
                if differs and second and not correct:
                    purpose, differs = "overlap", False
                if differs and not correct:
                    was = "none of the classes" if before == names.outside else repr(names.classes[before])
                    raise InvalidParameter(
                        f"item {item!r} is known to be {was}, got {truth!r}; pass `correct=True` to change it"
                    )
                is_repeated = any(
                    (given.who, given.code) == (who, code) for given in self.progress.opinions.get(at, ())
                )
                if before == code and purpose is None and (who is None or is_repeated):
                    continue  # nothing is new, and nobody new says it
                class_name = None if code == names.outside else names.classes[code]
                kind: Kind = "correct" if differs else "tell" if class_name is not None else "none of these"
                event = self._outcome(kind, at, class_name, who, purpose)
                new.append(replace(event, blind=blind, saw_estimate=saw_estimate, seconds=seconds))
            return new

        self._write(events)

    def skip(
        self, items: Iterable[Any], *, who: str | None = None, later: bool = False, seconds: float | None = None
    ) -> None:
        """The expert names no class for these items. What is known of an item stays known."""
        if isinstance(items, str) or not isinstance(items, Iterable):
            raise InvalidParameter(f"items must be a list of items, got {items!r}; pass [item]")
        if seconds is not None:
            check_number(seconds, name="seconds", low=0.0)
        positions = [self._names.position(item) for item in items]

        def events() -> list[Event]:
            new, known = [], self._known_codes
            for at in positions:
                purpose = purpose_of_card(self.progress, at, who)
                if known[at] >= 0 and purpose is None:
                    continue
                if later and purpose is None and not self.progress.waiting[at]:
                    item = self._names.items[at]
                    raise InvalidParameter(f"only an item that waits can be put off, got {item!r}; leave it out")
                event = self._outcome("later" if later else "cannot tell", at, None, who, purpose)
                new.append(replace(event, blind=self._blind, seconds=seconds))
            return new

        self._write(events)

    def _outcome(self, kind: Kind, at: int, truth: Any, who: str | None, purpose: str | None) -> Event:
        """An outcome with the chance and the place of its draw."""
        chance, draw = float(self.progress.propensity[at]), int(self.progress.draw[at])
        drawn: dict[str, Any] = {"propensity": None if np.isnan(chance) else chance, "draw": draw or None}
        return Event(kind, self._names.items[at], truth, who, purpose=purpose, **drawn)

    @property
    def labels(self) -> Labels:
        """The votes that the session is about."""
        return self._labels

    @property
    def log(self) -> tuple[Event, ...]:
        """All questions, answers, postponements and corrections."""
        return tuple(self._events)

    @property
    def progress(self) -> Progress:
        """The answers so far."""
        n_folded, so_far = self._folded
        if n_folded < len(self._events):  # only what is new: a long session stays quick
            so_far = fold(self._events[n_folded:], self._names, since=so_far)
            self._folded = len(self._events), so_far
        return so_far

    @property
    def waiting(self) -> list[Any]:
        """Items asked and not yet answered."""
        return list(self._labels.items[self.progress.waiting].tolist())

    @property
    @abstractmethod
    def finished(self) -> str | None:
        """Why the session can stop, in one sentence; None while it should go on."""

    @property
    def _known(self) -> Booleans:
        """Items whose class is known, from an answer or from the start."""
        return np.asarray(self._known_codes >= 0)

    @property
    def _known_codes(self) -> Positions:
        """The class of each item, by an answer or from the start, -1 where unknown."""
        progress = self.progress
        return np.where(progress.vetted, progress.truth, self._labels.gold_codes).astype(np.int64)

    @property
    def _available(self) -> Booleans:
        """Items that may be asked: not known, not waiting for an answer, and not such that nobody can tell."""
        return np.asarray(~(self._known | self.progress.waiting | self.progress.cannot_tell))

    def _ends_of_answers(self) -> list[int]:
        """Where in the log the first 0, 1, 2, … answers are complete."""
        ends, with_answer = [0], set()
        for k, event in enumerate(self._events):
            if event.kind == "tell" and event.item not in with_answer:
                with_answer.add(event.item)
                ends.append(k + 1)
        return ends

    def _after_answers(self, every: int, *, first: int) -> list[Self]:
        """The session as it was after `first` answers and after each `every` more."""
        check_integer(every, name="every", low=1)
        return [self._copy(self._events[:end]) for end in self._ends_of_answers()[first::every]]

    def _row(self, estimate: Estimate) -> dict[str, float]:
        """One row of a history: n, mean, low and high."""
        low, high = estimate.interval(self.level)
        return {"n": float(self.progress.n_tells), "mean": estimate.mean, "low": low, "high": high}

    @abstractmethod
    def _history(self, every: int) -> tuple[list[dict[str, float]], str]:
        """The rows to plot, and the name of the metric."""

    def plot(self, ax: Any = None, *, every: int = 10) -> Any:
        """The metric and its interval as answers came in; returns the Axes."""
        rows, metric = self._history(every)
        return plot_history(rows, ax, metric=metric, level=self.level)

    def _copy(self, events: Sequence[Event]) -> Self:
        """The same session after other events; nothing is fitted again."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._events, other._memo, other._log = list(events), {}, None  # nothing else writes to a copy
        other._folded = len(other._events), fold(other._events, other._names)  # what cannot be replayed is refused
        return other

    def replay(self, log: Iterable[Event] | str) -> Self:
        """The session as it would be after a log: of events, or of JSON as `to_json` gives it."""
        if not isinstance(log, str):
            return self._copy(list(log))
        is_session = not log.lstrip().startswith("[")
        return self._copy(session_from_json(log)[2] if is_session else events_from_json(log))

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """What the session was made with, beside its data and the options of its strategy."""

    def to_json(self) -> str:
        """Settings and log as JSON text. What no text can hold, such as a function, is to be passed to `from_json`."""
        return session_to_json({"strategy": self.strategy, **self._settings()}, self.options, self._events)

    def settings_as_json(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the session was made with, and the options of its strategy, as they come back from JSON."""
        settings, options, _ = session_from_json(self._copy([]).to_json())
        return settings, options

    @classmethod
    def from_json(cls, text: str, *data: Any, **changed: Any) -> Self:
        """The session of `to_json`."""
        settings, options, events = session_from_json(text)
        session = cls.from_settings(settings, options, *data, **changed)
        if session._log is None:
            return session.replay(events)
        if events and session._events:
            raise InvalidParameter(
                f"a log is read into a stored session without one, got {len(session._events)} events in it; pass "
                "another `name`",
                parameter="name",
            )
        session._write(lambda: events)
        return session

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], options: Mapping[str, Any], *data: Any, **changed: Any) -> Self:
        """A session as it was made at first; see `from_json`."""
        if changed.get("strategy", settings.get("strategy")) != settings.get("strategy"):
            options = {}  # those of another strategy
        read = {name: read_setting(name, value) for name, value in settings.items() if name not in changed}
        return cls(*data, **{**read, **options, **changed})


def options_of(strategy: object, chosen: object, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a strategy that was made from what was `chosen`, a name or itself, and options."""
    own = fields(strategy) if is_dataclass(strategy) and strategy is chosen else ()
    return dict(options) | {option.name: getattr(strategy, option.name) for option in own}


def write_setting(value: object, *, name: str | None = None) -> object:
    """A setting as JSON has it.

    A name is written as it is, and a noise model that its parameters tell in full by its alias and these. Anything else
    is only described, by its `name` or as it prints, so that it is asked for when the session is read: its name may be
    that of something else.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, NoiseModel) and not value.is_fitted:
        parameters = value.parameters()
        with suppress(TypeError, ValueError):
            is_named = value.alias in MODELS and MODELS[value.alias] is type(value)
            if is_named and json.loads(json.dumps(parameters)) == parameters:
                return {"alias": value.alias, "parameters": parameters}
    return {"described": name or repr(value)}


def read_setting(name: str, value: Any) -> Any:
    """The setting that `write_setting` wrote."""
    if isinstance(value, dict) and set(value) == {"alias", "parameters"}:
        return get_model(value["alias"], **value["parameters"])
    if isinstance(value, dict) and set(value) == {"described"}:
        raise InvalidParameter(
            f"the session was made with a {name} that text cannot hold, got {value['described']}; pass `{name}=…` to "
            "from_json again",
            parameter=name,
        )
    return value


class DrawnSession(Session):
    """A session in which items are drawn, experts see some of them twice, and answers count in the order of the draws.

    A subclass sets `budget`, `seed` and `shares` before it begins.
    """

    budget: int | None
    seed: int
    shares: Shares

    def _cards_for(self, who: str | None) -> list[Card]:
        """What an expert gets before anything new is drawn."""
        cards = super()._cards_for(who)
        if who is None:
            return cards  # nobody can be identified
        due = [
            card
            for card in new_cards(self.progress, self.shares, self._labels.gold_codes, self.seed)
            if card.reserved_for == who
            or (card.reserved_for is None and not has_answered(self.progress, card.position, who))
        ]
        return [*cards, *_first(due, self._room()), *open_cards(self.progress, who)]

    def _room(self, cards: Sequence[Card] = ()) -> float:
        """What the budget leaves when all that is out, also second opinions that wait for somebody, was paid for."""
        if self.budget is None:
            return math.inf
        progress = self.progress
        n_new = sum(card.purpose is not None and card[:2] not in progress.cards for card in cards)
        return max(self.budget - self.n_paid - int(progress.waiting.sum()) - len(progress.cards) - n_new, 0)

    def _follow_ups(self, items: Sequence[Any], who: str | None, room: float) -> list[Event]:
        """Where a storage hands them out, cards that have become due, and the second cards of new draws."""
        due: list[Card] = []
        if self._log is not None:
            due = _first(new_cards(self.progress, self.shares, self._labels.gold_codes, self.seed), room)
        twice = overlap_of_draws(self.progress, who, len(items), self.shares, self.seed, self.budget)
        again = _first(list(compress(items, twice)), room - len(due))
        return [
            *(Event("ask", item, purpose="overlap") for item in again),
            *(Event("ask", self._names.items[at], who=name, purpose=purpose) for at, purpose, name in due),
        ]

    @property
    def n_vetted(self) -> int:
        """Number of items with an answer, whether it counts yet or not."""
        return self.progress.n_tells

    @property
    def n_counted(self) -> int:
        """Number of answers that the estimate rests on: those of the completed prefix of the draws."""
        return int(self._counted().progress.vetted.sum())

    @property
    def n_paid(self) -> int:
        """What the budget counts: answers to draws, second opinions, repeats and known items that were asked."""
        extra = sum(one.purpose is not None for each in self.progress.opinions.values() for one in each)
        return self.progress.n_tells + extra

    def status(self) -> SessionStatus:
        """What came in, what counts and what waits, and how well the experts agree."""
        return status_of(
            self.progress,
            self._labels.gold_codes,
            n_items=self._labels.n_items,
            n_classes=self._labels.n_classes,
            level=self.level,
        )

    def _counted(self, answers: Answers = "valid") -> Counted:
        return self._once(("counted", answers), lambda: count_answers(self.progress, answers))


def _first(cards: Sequence[T], n: float) -> list[T]:
    """As many as can be paid for."""
    return [card for k, card in enumerate(cards) if k < n]
