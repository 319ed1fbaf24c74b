"""What an expert sees of an item: text, a conversation, two records side by side, an image, a tile or two answers.

A card is plain data, made from the columns of the items; the page and the JSON of programs are made from it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from trueup._base.validation import check_choice, did_you_mean, preview
from trueup.data.encoding import is_null
from trueup.data.labels import Labels
from trueup.exceptions import InvalidFile, InvalidParameter

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

    @property
    def differs(self) -> bool:
        """Whether the records say something else."""
        return self.left != self.right


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
        layout = self.layout
        order = self._order(position, person) if layout.kind == "answers" else ()
        maker = {"conversation": self._conversation, "answers": self._answers}.get(layout.kind, self._plain_passages)
        outline = outline_points(self._value(layout.outline, position)) if layout.outline else ""
        return CardView(
            item=plain(self._labels.items[position]),
            kind=layout.kind,
            passages=tuple(maker(position, order)),
            rows=tuple(self._rows(position)),
            has_image=layout.image is not None and not is_null(self._value(layout.image, position)),
            outline=outline,
            choices=tuple(self._choices(order)),
            order=tuple(order),
            guidelines=self._guidelines,
        )

    def image_path(self, position: int) -> str | None:
        """The path of the image of an item, as the column has it."""
        value = self._value(self.layout.image, position) if self.layout.image else None
        return None if is_null(value) else str(value)

    def _value(self, column: str | None, position: int) -> Any:
        assert column is not None
        value = self._labels.item_column(column)[position]
        return value.item() if isinstance(value, np.generic) else value

    def _plain_passages(self, position: int, _: Sequence[int]) -> Iterable[Passage]:
        return [passage(name, self._value(name, position)) for name in self.layout.show]

    def _conversation(self, position: int, _: Sequence[int]) -> Iterable[Passage]:
        first, *others = self.layout.show
        yield from (passage(name, self._value(name, position)) for name in others)
        yield from messages(self._value(first, position))

    def _answers(self, position: int, order: Sequence[int]) -> Iterable[Passage]:
        yield from self._plain_passages(position, order)
        columns = {self._code(name): column for name, column in self.layout.answers}
        for place, code in enumerate(order):
            yield passage(str(place + 1), self._value(columns[code], position))

    def _rows(self, position: int) -> Iterable[Row]:
        for left, right in zip(self.layout.left, self.layout.right, strict=True):
            yield Row(_shared_name(left, right), *(plain(self._value(name, position)) for name in (left, right)))

    def _code(self, name: Hashable) -> int:
        return [str(one) for one in self._labels.classes.tolist()].index(str(name))

    def _order(self, position: int, person: str) -> list[int]:
        """Left to right by the coin of this item and person: the same whenever they see the card again."""
        codes = [self._code(name) for name, _ in self.layout.answers]
        text = json.dumps([self._seed, position, person])
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))
        return [codes[k] for k in rng.permutation(len(codes))]

    def _choices(self, order: Sequence[int]) -> Iterable[Choice]:
        """The classes in their order, but those of answers as they stand on the card and called by their place."""
        codes = [*order, *(code for code in range(len(self._names)) if code not in order)]
        names = [str(place + 1) if code in order else self._names[code] for place, code in enumerate(codes)]
        yield from map(Choice, codes, names, digit_keys(names))


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
    return [passage("", turn) if isinstance(turn, str) else passage(*_turn(turn)) for turn in turns]


def _turn(turn: Mapping[str, Any]) -> tuple[str, Any]:
    speaker = next((str(turn[name]) for name in _SPEAKERS if name in turn), "")
    words = next((turn[name] for name in _WORDS if name in turn), None)
    return speaker, turn if words is None else words


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


def _shared_name(left: str, right: str) -> str:
    """What two columns are both called: left_name and right_name are name."""
    ends = left.partition("_")[2], right.partition("_")[2]
    return ends[0] if ends[0] and ends[0] == ends[1] else f"{left} / {right}"
