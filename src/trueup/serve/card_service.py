"""What an expert can do: get a card, answer it, put it off, correct what they said. Pages and programs share it."""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from trueup._base.validation import check_choice, did_you_mean, preview
from trueup.data.encoding import is_null
from trueup.data.labels import Labels
from trueup.exceptions import InvalidFile, InvalidParameter
from trueup.serve.guard import Person, digest_of
from trueup.sessions.log import Event, Kind, Names
from trueup.sessions.progress import MEASURING
from trueup.storage import Card, Storage, Waiting

CardKind = Literal["text", "conversation", "records", "image", "tile", "answers"]
KINDS: tuple[CardKind, ...] = get_args(CardKind)
LONGEST_SHOWN = 20_000  # characters of one text that are shown at once
_SPEAKERS = ("role", "speaker", "from", "author")
_WORDS = ("content", "text", "value", "message")
# Characters that cannot be seen are shown by the signs that Unicode has for them, but not line ends and tabs.
_SIGNS = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {127: 0x2421}
_SIGNS |= dict.fromkeys((*range(0x80, 0xA0), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)), 0xFFFD)


@dataclass(frozen=True)
class Layout:
    """Which columns of the items make the card."""

    # A tile is an image in which objects are counted: the classes are whole numbers, and their keys the digits
    kind: CardKind = "text"
    show: tuple[str, ...] = ()  # Columns shown as text, in this order; for "conversation" the first holds the messages
    left: tuple[str, ...] = ()  # Columns of the two records, row by row
    right: tuple[str, ...] = ()
    image: str | None = None  # Column with the path of the image below the image folder
    # Column with a box [x, y, width, height] or points [[x, y], …], in pixels, drawn over the image
    outline: str | None = None
    # For "answers": the column that holds what each class stands for. The order on the card is drawn for each item and
    # person, and logged
    answers: tuple[tuple[Hashable, str], ...] = ()


@dataclass(frozen=True)
class Passage:
    """A piece of text with a heading; `rest` is what is too long to be shown at once."""

    heading: str
    text: str
    rest: str = ""


@dataclass(frozen=True)
class Row:
    """A field of two records."""

    name: str
    left: str
    right: str


@dataclass(frozen=True)
class Choice:
    """A class to choose: its number among all classes, what the button says, and its key."""

    code: int
    name: str
    key: str


@dataclass(frozen=True)
class CardView:
    """All that is shown of an item."""

    item: str
    kind: CardKind
    passages: tuple[Passage, ...] = ()
    rows: tuple[Row, ...] = ()
    has_image: bool = False
    outline: str = ""  # Points of a polygon for SVG; empty without one
    choices: tuple[Choice, ...] = ()
    # For "answers": the codes of the classes from left to right, which is logged with the answer
    order: tuple[int, ...] = ()
    guidelines: tuple[Passage, ...] = ()  # For all classes, and for each under its name


class CardMaker:
    """Makes the face of any item."""

    def __init__(
        self,
        labels: Labels,
        layout: Layout | None = None,
        *,
        class_names: Mapping[Any, str] | None = None,
        guidelines: str = "",
        seed: int = 0,
    ) -> None:
        self.layout = check_layout(guess_layout(labels) if layout is None else layout, labels)
        self._labels = labels
        self._seed = seed
        named = {str(name): words for name, words in (class_names or {}).items()}
        unknown = [name for name in named if name not in set(map(str, labels.classes.tolist()))]
        if unknown:
            raise InvalidParameter(
                f"class_names must name classes of the votes, got {preview(unknown)}; the classes are "
                f"{preview(labels.classes.tolist(), most=10)}"
            )
        self._names = [plain(named.get(str(name), name)) for name in labels.classes.tolist()]
        called = dict(zip(map(str, labels.classes.tolist()), self._names, strict=True))
        self._guidelines = read_guidelines(guidelines, {**{name: name for name in self._names}, **called})

    def face(self, position: int, *, person: str) -> CardView:
        """What this person sees of the item at this position."""
        layout, order = self.layout, []
        show = layout.show[1:] if layout.kind == "conversation" else layout.show
        passages = [passage(name, self._value(name, position)) for name in show]
        if layout.kind == "conversation":
            passages += messages(self._value(layout.show[0], position))
        elif layout.kind == "answers":  # left to right by the coin of this item and person, the same each time
            classes = [str(name) for name in self._labels.classes.tolist()]
            columns = {classes.index(str(name)): column for name, column in layout.answers}
            text = json.dumps([self._seed, position, person])
            rng = np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))
            order = [list(columns)[k] for k in rng.permutation(len(columns))]
            passages += [passage(str(k), self._value(columns[code], position)) for k, code in enumerate(order, start=1)]
        rows = []
        for left, right in zip(layout.left, layout.right, strict=True):
            end, other = left.partition("_")[2], right.partition("_")[2]  # left_name and right_name are both the name
            name = end if end and end == other else f"{left} / {right}"
            rows.append(Row(name, *(plain(self._value(column, position)) for column in (left, right))))
        # The classes in their order, but those of answers as they stand on the card and called by their place
        codes = [*order, *(code for code in range(len(self._names)) if code not in order)]
        names = [str(k) if code in order else self._names[code] for k, code in enumerate(codes, start=1)]
        return CardView(
            item=plain(self._labels.items[position]),
            kind=layout.kind,
            passages=tuple(passages),
            rows=tuple(rows),
            has_image=self.image_path(position) is not None,
            outline=outline_points(self._value(layout.outline, position)) if layout.outline else "",
            choices=tuple(map(Choice, codes, names, digit_keys(names))),
            order=tuple(order),
            guidelines=self._guidelines,
        )

    def image_path(self, position: int) -> str | None:
        """The path of the image of an item, as the column has it."""
        value = self._value(self.layout.image, position) if self.layout.image else None
        return None if is_null(value) else str(value)

    def _value(self, column: str, position: int) -> Any:
        value = self._labels.item_column(column)[position]
        return value.item() if isinstance(value, np.generic) else value


_HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t]*$", re.MULTILINE)


def read_guidelines(text: str, classes: Mapping[str, str]) -> tuple[Passage, ...]:
    """Passages of a text in Markdown: what stands above all headings of classes, and what stands below each."""
    above, *rest = _HEADING.split(text)
    found = [["", above]]
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        name = heading.strip("#*`_ ")
        if name in classes:
            found.append([classes[name], body])
        else:
            found[-1][1] += f"{heading}\n{body}"
    if text and len(found) == 1:
        raise InvalidFile(
            f"the guidelines must have a heading such as '# {next(iter(classes))}' for each class, got the headings "
            f"{preview(rest[::2]) or 'none'}; name the classes {preview(list(dict.fromkeys(classes.values())))}"
        )
    return tuple(passage(name, body.strip()) for name, body in found if body.strip())


def digit_keys(names: Sequence[str]) -> list[str]:
    """A key for each name: a digit its own, others the digits that are left, from 1 on; empty where none is."""
    own = {name for name in names if len(name) == 1 and name.isascii() and name.isdecimal()}
    left = iter([digit for digit in "123456789" if digit not in own])
    return [name if name in own else "" if own and name.isdecimal() else next(left, "") for name in names]


def guess_layout(labels: Labels) -> Layout:
    """The card that the names of the columns suggest.

    "messages" or "conversation" is a conversation, "image" an image, "answer_a" with "answer_b" (or "response_…",
    "output_…") for the classes a and b two answers, "left_…" with "right_…" two records; else all columns are text.
    """
    names = list(labels.item_table.given)
    by_lower = {name.lower(): name for name in names}
    for word in ("messages", "conversation"):
        if word in by_lower:
            first = by_lower[word]
            return Layout("conversation", (first, *(name for name in names if name != first)))
    if "image" in by_lower:
        image, outline = by_lower["image"], by_lower.get("outline")
        rest = tuple(name for name in names if name not in (image, outline))
        return Layout("image", rest, image=image, outline=outline)
    for stem in ("answer", "response", "output"):
        sides = {str(one).lower(): one for one in labels.classes.tolist()}
        columns = {sides[side]: by_lower[f"{stem}_{side}"] for side in sides if f"{stem}_{side}" in by_lower}
        if len(columns) == 2:
            rest = tuple(name for name in names if name not in columns.values())
            return Layout("answers", rest, answers=tuple(columns.items()))
    pairs = [(f"left_{name[5:]}", f"right_{name[5:]}") for name in names if name.startswith("left_")]
    pairs = [pair for pair in pairs if pair[1] in names]
    if pairs:
        used = {name for pair in pairs for name in pair}
        left, right = zip(*pairs, strict=True)
        return Layout("records", tuple(name for name in names if name not in used), left, right)
    return Layout("text", tuple(names))


def check_layout(layout: Layout, labels: Labels) -> Layout:
    """A layout whose columns and classes are there."""
    check_choice(layout.kind, KINDS, name="kind")
    known = labels.item_columns
    columns = [*layout.show, *layout.left, *layout.right, *(column for _, column in layout.answers)]
    columns += [name for name in (layout.image, layout.outline) if name is not None]
    for name in columns:
        if name not in known:
            raise InvalidParameter(
                f"the card shows the column {name!r}, got items with {preview(list(known), most=10) or 'no columns'}"
                f"{did_you_mean(name, known)}"
            )
    classes = set(map(str, labels.classes.tolist()))
    strangers = [name for name, _ in layout.answers if str(name) not in classes]
    has_paths, are_numbers = layout.image is not None, all(name.isdecimal() for name in classes)
    has_pairs = bool(layout.left) and len(layout.left) == len(layout.right)
    needs = {
        "conversation": (bool(layout.show), "the column of its messages in show"),
        "records": (has_pairs, "as many columns in left as in right"),
        "image": (has_paths, "the column of the paths in image"),
        "tile": (has_paths and are_numbers, "the column of the paths in image, and classes that are whole numbers"),
        "answers": (len(layout.answers) == 2 and not strangers, "two classes with a column each in answers"),
        "text": (True, ""),
    }
    is_met, wish = needs[layout.kind]
    if not is_met:
        raise InvalidParameter(f"a card of kind {layout.kind!r} needs {wish}, got {layout}")
    return layout


def passage(heading: str, value: Any) -> Passage:
    """A value as text, cut where it is too long to be shown at once."""
    text = plain(value)
    return Passage(plain(heading), text[:LONGEST_SHOWN], text[LONGEST_SHOWN:])


def messages(value: Any) -> list[Passage]:
    """The turns of a conversation: a list of records, JSON of one, or text."""
    turns = value
    if isinstance(value, str):
        try:
            turns = json.loads(value)
        except (ValueError, RecursionError):
            turns = None
    if isinstance(turns, np.ndarray):
        turns = turns.tolist()
    if not isinstance(turns, list) or not all(isinstance(turn, dict | str) for turn in turns):
        return [passage("", value)]
    passages = []
    for turn in turns:
        record = {"content": turn} if isinstance(turn, str) else turn
        speaker = next((str(record[name]) for name in _SPEAKERS if name in record), "")
        words = next((record[name] for name in _WORDS if name in record), None)
        passages.append(passage(speaker, turn if words is None else words))
    return passages


def plain(value: Any) -> str:
    """A value as text in which every character can be seen."""
    if is_null(value):
        return "–"
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | dict | tuple):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return str(value).replace("\r\n", "\n").translate(_SIGNS)


def outline_points(value: Any) -> str:
    """A box or points as SVG has a polygon; empty where it is neither."""
    try:
        numbers = json.loads(value) if isinstance(value, str) else value
        if len(numbers) == 4 and all(isinstance(one, int | float) for one in numbers):
            x, y, width, height = numbers
            numbers = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
        points = [(float(x), float(y)) for x, y in numbers]
    except (ValueError, TypeError, OverflowError, RecursionError):
        return ""
    whole = len(points) >= 3 and all(math.isfinite(x) and math.isfinite(y) for x, y in points)
    return " ".join(f"{x:g},{y:g}" for x, y in points) if whole else ""


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
                    entry = Entry(len(self._entries) + 1, event)
                    self._entries.append(entry)
                    self._by_item[event.item].append(entry)
                    if event.who is not None and event.kind != "ask":
                        self._by_person[event.who].append(entry)
                if len(new) < _MOST_AT_ONCE:
                    return len(self._entries)

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


LEASE = 300.0  # seconds a card is held for, and again whenever the page says that it is looked at
LONGEST_COMMENT = 4_000
_LONGEST_KEY = 100
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


@dataclass
class CardService:
    """The cards of one session."""

    storage: Storage
    session: str
    labels: Labels
    maker: CardMaker
    journal: Journal
    suggestions: Sequence[str] | None = None  # What the system says of each item; without it experts are blind
    lease: float = LEASE
    is_over: Callable[[], bool] = lambda: False

    @cached_property
    def names(self) -> Names:
        """Items and classes by name and by place."""
        return Names(self.labels.items.tolist(), self.labels.classes.tolist())

    def current(self, person: Person) -> AssignedCard | None:
        """The card that a person is to answer now, the same until it is answered; none once it is decided."""
        if self.is_over():
            return None
        return self._leased(self.storage.claim(self.session, person.name, seconds=self.lease), person)

    def _leased(self, card: Card | None, person: Person) -> AssignedCard | None:
        return None if card is None else self._assigned(card.number, card, person, seconds_left=card.seconds_left)

    def waiting(self, person: Person) -> Waiting:
        """Why there is none."""
        return self.storage.waiting(self.session, person.name)

    def renew(self, person: Person, number: int) -> bool:
        """Hold a card for longer; False if it is gone."""
        return self.storage.renew(self.session, person.name, number, seconds=self.lease) is not None

    def previous(self, person: Person, before: int | None = None) -> AssignedCard | None:
        """The card that a person answered last, or the one before that card; None where there is none."""
        self.journal.refresh()
        answers = self.journal.last_answers(person.name)
        cards = [entry.event.card for entry in answers]
        start = cards.index(before) + 1 if before in cards else 0
        if start >= len(answers):
            return None
        event = answers[start].event
        assert event.card is not None
        return self._assigned(event.card, event, person, answered=self.words(event))

    def position_of(self, number: int) -> int:
        """Where the item of a card stands among the items."""
        return self.names.positions[self._item_of(number)]

    def _assigned(
        self, number: int, source: Card | Event, person: Person, *, answered: str = "", seconds_left: float = 0.0
    ) -> AssignedCard:
        at = self.names.positions[source.item]
        suggestion = "" if self.suggestions is None else plain(self.suggestions[at])
        face = self.maker.face(at, person=person.name)
        opinions = self._opinions(source.item, face) if source.purpose == "settle" else ()
        return AssignedCard(number, face, answered, suggestion, seconds_left, secrets.token_urlsafe(18), opinions)

    def _opinions(self, item: Hashable, face: CardView) -> tuple[GivenAnswer, ...]:
        """What each expert answered last, with their last comment, in the order of the classes: it tells nobody."""
        self.journal.refresh()
        answers: dict[str | None, Event] = {}
        for event in (entry.event for entry in self.journal.of_item(item)):
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
        entry = self.journal.entry(number)
        if entry is None or entry.event.kind != "ask":
            raise NoSuchCard(f"there is no card {number}, got that number; load the page again")
        return entry.event.item

    def answer(self, person: Person, number: int, reply: Reply, *, saw_estimate: bool) -> AssignedCard | None:
        """Keep an answer and lease the next card, which is returned, in one transaction."""
        item = self._item_of(number)
        face = self.maker.face(self.names.positions[item], person=person.name)
        event = self._event(item, reply, person, shown=face.order, saw_estimate=saw_estimate)
        kept = self.storage.answer(self.session, number, event, next_seconds=self.lease)
        return self._leased(kept.next_card, person)

    def _event(
        self, item: Hashable, reply: Reply, person: Person, *, shown: Sequence[int], saw_estimate: bool
    ) -> Event:
        kind: Kind = OUTSIDE.get(reply.choice, "tell")
        truth = self.names.classes[self._code(reply.choice)] if kind == "tell" else None
        seconds = reply.seconds  # as far as a page can be believed
        is_time = seconds is not None and math.isfinite(seconds) and seconds >= 0
        if len(reply.comment) > LONGEST_COMMENT:
            raise InvalidParameter(
                f"a comment must be at most {LONGEST_COMMENT:,} characters, got {len(reply.comment):,}; cut it"
            )
        comment = reply.comment.strip().replace("\x00", "\u2400").encode("utf-8", "replace").decode()
        return Event(
            kind,
            item,
            truth,
            who=person.name,
            seconds=round(min(seconds, 86_400.0), 2) if seconds is not None and is_time else None,
            blind=self.suggestions is None,
            key=request_key(person, reply.key),
            text=comment or None,
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

    def say(self, person: Person, item: Any, reply: Reply, *, saw_estimate: bool) -> None:
        """An answer for an item by its name; one that was never drawn is kept, too, and stands for itself only."""
        at = self.names.position(item)
        name = self.names.items[at]
        self.journal.refresh()
        asks = [entry.number for entry in self.journal.of_item(name) if entry.event.kind == "ask"]
        event = self._event(name, reply, person, shown=(), saw_estimate=saw_estimate)
        self._keep(asks[-1] if asks else None, event)

    def _keep(self, number: int | None, event: Event) -> None:
        if number is not None:
            self.storage.answer(self.session, number, event)
        else:
            self.storage.append(self.session, [event])

    def correct(self, person: Person, entry: Entry, reply: Reply, *, saw_estimate: bool) -> None:
        """A correction of what was said for an item."""
        if entry.event.kind not in OUTCOMES:
            raise InvalidParameter(f"only an answer can be corrected, got {entry.event.kind!r}; choose an answer")
        self._code(reply.choice)  # it must be a class
        event = self._event(entry.event.item, reply, person, shown=(), saw_estimate=saw_estimate)
        self._keep(entry.event.card, replace(event, kind="correct", seconds=None))


def request_key(person: Person, key: str) -> str:
    """The key of a request as it is logged: short, and of its person, since two may choose the same."""
    if not key or len(key) > _LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise InvalidParameter(f"a request needs a key of 1 to {_LONGEST_KEY} plain characters, got {key!r:.40}")
    return f"{digest_of(person.name)[:16]} {key}"
