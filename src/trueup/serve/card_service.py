"""What an expert can do: get a card, answer it, put it off, correct what they said. Pages and programs share it."""

from __future__ import annotations

import math
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.serve.cards import CardMaker, CardView, Choice, plain
from trueup.serve.guard import Person, digest_of
from trueup.sessions.log import Event, Kind, Names
from trueup.sessions.progress import MEASURING
from trueup.storage import Card, Storage, Waiting

OUTCOMES = ("tell", "correct", "cannot tell", "none of these", "pass")  # what can be undone is one of these, or later
_MOST_AT_ONCE = 5_000


@dataclass(frozen=True)
class Entry:
    """An event and its number in the log, from 1 on."""

    number: int
    event: Event


class Journal:
    """What was logged, by person and by item. Threads may use it at once."""

    def __init__(self, storage: Storage, session: str) -> None:
        self._storage = storage
        self._session = session
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._by_person: dict[str, list[Entry]] = defaultdict(list)
        self._by_item: dict[Hashable, list[Entry]] = defaultdict(list)

    def refresh(self) -> int:
        """Read what is new; returns how long the log is."""
        with self._lock:
            while True:
                new = self._storage.events(self._session, since=len(self._entries), most=_MOST_AT_ONCE)
                for event in new:
                    self._add(event)
                if len(new) < _MOST_AT_ONCE:
                    return len(self._entries)

    def _add(self, event: Event) -> None:
        entry = Entry(len(self._entries) + 1, event)
        self._entries.append(entry)
        self._by_item[event.item].append(entry)
        if event.who is not None and event.kind != "ask":
            self._by_person[event.who].append(entry)

    def entries(self, since: int = 0) -> list[Entry]:
        """All events after the first `since`, with what is new."""
        self.refresh()
        with self._lock:
            return self._entries[since:]

    def entry(self, number: int) -> Entry | None:
        """The event with this number."""
        if number > len(self._entries):
            self.refresh()
        with self._lock:
            return self._entries[number - 1] if 0 < number <= len(self._entries) else None

    def of_item(self, item: Hashable) -> list[Entry]:
        """All that was logged of an item."""
        with self._lock:
            return list(self._by_item.get(item, ()))

    def people(self) -> list[str]:
        """Who said anything, in the order they came."""
        with self._lock:
            return list(self._by_person)

    def of_person(self, who: str) -> list[Entry]:
        """All that a person said."""
        with self._lock:
            return list(self._by_person.get(who, ()))

    def n_answered(self, who: str) -> int:
        """How many cards a person settled."""
        with self._lock:
            return sum(entry.event.kind in OUTCOMES[:1] + OUTCOMES[2:] for entry in self._by_person.get(who, ()))

    def last_answers(self, who: str) -> list[Entry]:
        """The last word of a person on each card, the newest card first. A correction stands where the answer stood."""
        latest: dict[int, Entry] = {}
        for entry in self.of_person(who):
            card = entry.event.card
            if card is not None and entry.event.kind in (*OUTCOMES, "later"):
                latest[card] = entry if card not in latest else Entry(latest[card].number, entry.event)
        return sorted(latest.values(), key=lambda entry: entry.number, reverse=True)

    def recent(self, n: int, kinds: Sequence[str] = (*OUTCOMES, "later")) -> list[Entry]:
        """The last events of some kinds, the newest first."""
        with self._lock:
            chosen: list[Entry] = []
            for entry in reversed(self._entries):
                if entry.event.kind in kinds:
                    chosen.append(entry)
                    if len(chosen) == n:
                        break
            return chosen


LEASE = 300.0  # seconds a card is held for, and again whenever the page says that it is looked at
LONGEST_COMMENT = 4_000
_LONGEST_KEY = 100
_LONGEST_LOOK = 86_400.0
# The choices that are no class, by what a page or a program calls them.
OUTSIDE: dict[str, Kind] = {"later": "later", "cannot-tell": "cannot tell", "none-of-these": "none of these"}


@dataclass(frozen=True)
class Reply:
    """What came in for a card."""

    choice: str  # The code of a class, or one of OUTSIDE
    key: str  # Of the request: the same again is the same answer
    seconds: float | None = None  # How long the card was seen
    comment: str = ""


@dataclass(frozen=True)
class GivenAnswer:
    """An answer that another one differs from, with its comment; not whose it is."""

    code: int
    answer: str
    comment: str


@dataclass(frozen=True)
class AssignedCard:
    """A card with its face."""

    number: int  # Of the card
    face: CardView
    answered: str  # What the person said before, in words, where they see the card again; else empty
    suggestion: str  # What the system says, where the session is not blind; else empty
    seconds_left: float  # For which the card is held
    key: str  # For a form that is sent without a script
    opinions: tuple[GivenAnswer, ...] = ()  # The answers that differ, on a card that is to settle them


class NoSuchCard(InvalidParameter):
    """A card that is not there, or not for this person."""


class CardService:
    """The cards of one session."""

    def __init__(
        self,
        storage: Storage,
        session: str,
        labels: Labels,
        maker: CardMaker,
        journal: Journal,
        *,
        suggestions: Sequence[str] | None = None,
        lease: float = LEASE,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._storage = storage
        self._session = session
        self._maker = maker
        self._journal = journal
        self._suggestions = suggestions
        self.names = Names(labels.items.tolist(), labels.classes.tolist())
        self.lease = lease
        self._is_over = is_over

    @property
    def is_blind(self) -> bool:
        """Whether experts see no prediction."""
        return self._suggestions is None

    def current(self, person: Person) -> AssignedCard | None:
        """The card that a person is to answer now, the same until it is answered; none once it is decided."""
        if self._is_over():
            return None
        card = self._storage.claim(self._session, person.name, seconds=self.lease)
        return self._leased(card, person)

    def _leased(self, card: Card | None, person: Person) -> AssignedCard | None:
        if card is None:
            return None
        return self._deal(card.number, card.item, person, purpose=card.purpose, seconds_left=card.seconds_left)

    def waiting(self, person: Person) -> Waiting:
        """Why there is none."""
        return self._storage.waiting(self._session, person.name)

    def renew(self, person: Person, number: int) -> bool:
        """Hold a card for longer; False if it is gone."""
        return self._storage.renew(self._session, person.name, number, seconds=self.lease) is not None

    def previous(self, person: Person, before: int | None = None) -> AssignedCard | None:
        """The card that a person answered last, or the one before that card; None where there is none."""
        self._journal.refresh()
        answers = self._journal.last_answers(person.name)
        cards = [entry.event.card for entry in answers]
        start = cards.index(before) + 1 if before in cards else 0
        if start >= len(answers):
            return None
        event = answers[start].event
        assert event.card is not None
        return self._deal(event.card, event.item, person, purpose=event.purpose, answered=self.words(event))

    def position_of(self, number: int) -> int:
        """Where the item of a card stands among the items."""
        return self.names.positions[self._item_of(number)]

    def _deal(
        self,
        number: int,
        item: Hashable,
        person: Person,
        *,
        purpose: str | None,
        answered: str = "",
        seconds_left: float = 0.0,
    ) -> AssignedCard:
        at = self.names.positions[item]
        suggestion = "" if self._suggestions is None else plain(self._suggestions[at])
        face = self._maker.face(at, person=person.name)
        opinions = self._opinions(item, face) if purpose == "settle" else ()
        return AssignedCard(number, face, answered, suggestion, seconds_left, secrets.token_urlsafe(18), opinions)

    def _opinions(self, item: Hashable, face: CardView) -> tuple[GivenAnswer, ...]:
        """What each expert answered last, with their last comment, in the order of the classes: it tells nobody."""
        self._journal.refresh()
        answers: dict[str | None, Event] = {}
        for event in (entry.event for entry in self._journal.of_item(item)):
            if event.kind in ("tell", "correct", "none of these") and event.purpose not in (*MEASURING, "settle"):
                before = answers.get(event.who)
                answers[event.who] = event if event.text or before is None else replace(event, text=before.text)
        names = {choice.code: choice.name for choice in face.choices} | {self.names.outside: "none of these"}
        given = [
            (self.names.outside if event.truth is None else self.names.codes[event.truth], event.text or "")
            for event in answers.values()
        ]
        return tuple(
            GivenAnswer(code, names[code], plain(comment) if comment else "") for code, comment in sorted(given)
        )

    def _item_of(self, number: int) -> Hashable:
        entry = self._journal.entry(number)
        if entry is None or entry.event.kind != "ask":
            raise NoSuchCard(f"there is no card {number}, got that number; load the page again")
        return entry.event.item

    def answer(self, person: Person, number: int, reply: Reply, *, saw_estimate: bool) -> AssignedCard | None:
        """Keep an answer and lease the next card, which is returned, in one transaction."""
        item = self._item_of(number)
        face = self._maker.face(self.names.positions[item], person=person.name)
        event = self._event(item, reply, person, shown=face.order, saw_estimate=saw_estimate)
        kept = self._storage.answer(self._session, number, event, next_seconds=self.lease)
        return self._leased(kept.next_card, person)

    def _event(
        self, item: Hashable, reply: Reply, person: Person, *, shown: Sequence[int], saw_estimate: bool
    ) -> Event:
        kind: Kind = OUTSIDE.get(reply.choice, "tell")
        truth = self.names.classes[self._code(reply.choice)] if kind == "tell" else None
        return Event(
            kind,
            item,
            truth,
            who=person.name,
            seconds=_seconds(reply.seconds),
            blind=self.is_blind,
            key=request_key(person, reply.key),
            text=check_comment(reply.comment) or None,
            shown=tuple(self.names.classes[code] for code in shown) or None,
            saw_estimate=saw_estimate,
        )

    def _code(self, choice: str) -> int:
        if not (choice.isascii() and choice.isdigit() and len(choice) < 6 and int(choice) < len(self.names.classes)):
            raise InvalidParameter(
                f"the answer must be one of the classes of this session, got {choice!r:.60}; choose one on the card"
            )
        return int(choice)

    def choices(self) -> list[Choice]:
        """All classes by their code, for corrections on the page of the owner."""
        return [Choice(code, plain(name), "") for code, name in enumerate(self.names.classes)]

    def words(self, event: Event) -> str:
        """An outcome in words."""
        return plain(event.truth) if event.truth is not None else event.kind

    def open_card(self, item: Hashable) -> int | None:
        """The last card of an item."""
        self._journal.refresh()
        asks = [entry.number for entry in self._journal.of_item(item) if entry.event.kind == "ask"]
        return asks[-1] if asks else None

    def say(self, person: Person, item: Any, reply: Reply, *, saw_estimate: bool) -> None:
        """An answer for an item by its name; one that was never drawn is kept, too, and stands for itself only."""
        at = self.names.position(item)
        name = self.names.items[at]
        number = self.open_card(name)
        event = self._event(name, reply, person, shown=(), saw_estimate=saw_estimate)
        if number is not None:
            self._storage.answer(self._session, number, event)
        else:
            self._storage.append(self._session, [event])

    def correct(self, person: Person, entry: Entry, reply: Reply, *, saw_estimate: bool) -> None:
        """A correction of what was said for an item."""
        if entry.event.kind not in OUTCOMES:
            raise InvalidParameter(f"only an answer can be corrected, got {entry.event.kind!r}; choose an answer")
        code = self._code(reply.choice)
        event = Event(
            "correct",
            entry.event.item,
            self.names.classes[code],
            who=person.name,
            blind=self.is_blind,
            key=request_key(person, reply.key),
            text=check_comment(reply.comment) or None,
            saw_estimate=saw_estimate,
        )
        if entry.event.card is not None:
            self._storage.answer(self._session, entry.event.card, event)
        else:
            self._storage.append(self._session, [event])


def request_key(person: Person, key: str) -> str:
    """The key of a request as it is logged: short, and of its person, since two may choose the same."""
    if not key or len(key) > _LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise InvalidParameter(f"a request needs a key of 1 to {_LONGEST_KEY} plain characters, got {key!r:.40}")
    return f"{digest_of(person.name)[:16]} {key}"


def check_comment(comment: str) -> str:
    """A comment without blanks around it; one that is too long is refused."""
    if len(comment) > LONGEST_COMMENT:
        raise InvalidParameter(
            f"a comment must be at most {LONGEST_COMMENT:,} characters, got {len(comment):,}; cut it"
        )
    return comment.strip().replace("\x00", "\u2400").encode("utf-8", "replace").decode()


def _seconds(seconds: float | None) -> float | None:
    """How long a card was seen, as far as a page can be believed."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return None
    return round(min(seconds, _LONGEST_LOOK), 2)
