"""Columns of items besides their votes, such as system, topic, text, time or weight."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Positions
from trueup._base.validation import did_you_mean, preview
from trueup.data.encoding import Distinct, Vocabulary, is_null, is_plain_integer
from trueup.data.frames import Cells, Table, check_column, column_of, key_columns, read_names
from trueup.exceptions import InvalidLabels

_VOTE_COLUMNS = ("item", "labeler", "label")
_TEXT_NAMES = {"text", "prompt", "output", "response", "completion", "document", "question", "content", "message"}
_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)  # never 007, which is a name
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_KINDS = {
    "bool": (bool, np.bool_),
    "integer": (int, np.integer),
    "number": (float, np.floating),
    "time": (date, np.datetime64),  # a datetime is a date
}
_LONG_TEXT = 40  # mean characters from which a column is text to read and not a name to group by


@dataclass(frozen=True, eq=False)
class ItemTable:
    """Columns by name, each with a value for every item; None, NaN or NaT where an item has none."""

    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)  # (n_items,)
    inferred: frozenset[str] = frozenset()

    def column(self, name: str, *, of: str = "item") -> npt.NDArray[Any]:
        """The values of a column of items, or of what the table is about; an unknown one is an error."""
        if name not in self.columns:
            listed = f"the {of}s have the columns {preview(list(self.columns), most=10)}"
            known = listed if self.columns else f"the {of}s have no columns: add them with `labels.with_{of}s`"
            raise InvalidLabels(f"there is no {of} column {name!r}; {known}{did_you_mean(name, self.columns)}")
        return self.columns[name]

    @property
    def given(self) -> tuple[str, ...]:
        """The columns that were named as those of the items."""
        return tuple(name for name in self.columns if name not in self.inferred)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns of text to read, which reports and exports leave out unless asked: by name, or as long."""
        lengths = {
            name: [len(value) for value in values if isinstance(value, str)]
            for name, values in self.columns.items()
            if values.dtype == object
        }
        return tuple(
            name
            for name, of_text in lengths.items()
            if of_text and (name.lower() in _TEXT_NAMES or float(np.mean(of_text)) > _LONG_TEXT)
        )

    @property
    def n_items_without_values(self) -> int:
        """Items that have no value in any column."""
        empty = [
            np.fromiter(map(is_null, values), dtype=bool, count=len(values))
            if values.dtype == object
            else values != values  # NaN and NaT alone differ from themselves
            for values in self.columns.values()
        ]
        return int(np.all(empty, axis=0).sum()) if empty else 0

    def take(self, items: Positions) -> ItemTable:
        """The rows of some items, in this order."""
        return ItemTable({name: values[items] for name, values in self.columns.items()}, self.inferred)


def inferred_table(
    facts: Mapping[str, Distinct], key: Sequence[str], item: Codes, items: Vocabulary, *, from_text: bool
) -> ItemTable:
    """What a table of votes says of the items: columns with one value an item, and those that name it together."""
    found = {name: fact.by_item(item, len(items)) for name, fact in facts.items()}
    values = {name: text_as_values(cells) if from_text else cells for name, cells in found.items() if cells is not None}
    if len(key) > 1:
        values |= {name: [item[k] for item in items.tolist()] for k, name in enumerate(key)}
    named = {name: _as_column(v) for name, v in values.items() if isinstance(name, str) and name not in _VOTE_COLUMNS}
    return ItemTable(named, frozenset(named))


def joined_tables(parts: Sequence[tuple[ItemTable, Codes]], items: Sequence[Hashable]) -> ItemTable:
    """The columns of several tables, each with the positions its rows have in `items`."""
    columns, inferred = {}, set()
    for name in dict.fromkeys(name for table, _ in parts for name in table.columns):
        holding = [(table, places) for table, places in parts if name in table.given]
        if not holding:
            inferred.add(name)
            holding = [(table, places) for table, places in parts if name in table.columns]
        places = [place for _, some in holding for place in some.tolist()]
        values = [value for table, _ in holding for value in table.columns[name].tolist()]
        try:
            columns[name] = _spread(places, values, items, name)
        except InvalidLabels:
            if name not in inferred:
                raise  # what was inferred of one table alone is no column of the items
    return ItemTable(columns, frozenset(inferred & columns.keys()))


def read_rows(
    table: Table,
    key: str | Sequence[str],
    *,
    role: str = "item",
    columns: str | Iterable[str] | None = None,
    known: Mapping[str, Vocabulary] | None = None,
) -> tuple[list[Any], dict[str, list[Any]]]:
    """The names in the columns of a key, None for a null, and the values of other columns, by default of all."""
    key = column_of("item", key, table.columns)
    names = key_columns(key, table.columns, role=role)
    chosen = [columns] if isinstance(columns, str) else list(columns or ())
    if columns is None:
        chosen = [name for name in table.columns if name not in names]
    for name in chosen:
        check_column(name, table.columns, role="columns")
    cells = {name: Cells() for name in chosen}
    codes, vocabulary = read_names(table, {role: key}, known=known, sinks=[*cells.items()])[role]
    values = {name: text_as_values(cell.values) if table.from_text else cell.values for name, cell in cells.items()}
    with_null = [*vocabulary.tolist(), None]  # the last serves the code of a null
    return [with_null[code] for code in codes.tolist()], values


def with_columns(
    known: ItemTable,
    columns: Mapping[str, list[Any]],
    where: Positions,
    items: Sequence[Hashable],
    *,
    item: str | Sequence[str],
) -> ItemTable:
    """A table with columns added, whose rows are at the positions `where`, -1 for those to leave out."""
    if not columns:
        raise InvalidLabels(f"an item table needs a column besides {item!r}, got none; add columns about the items")
    rows = np.flatnonzero(where >= 0).tolist()
    table = {}
    for name, values in columns.items():
        if not isinstance(name, str):
            raise InvalidLabels(
                f"columns of items must have text names, got {name!r}; choose others with `columns=[…]`"
            )
        if name in _VOTE_COLUMNS:
            raise InvalidLabels(f"{name!r} is a column of votes, got it of items; choose others with `columns=[…]`")
        if len(values) != len(where):
            raise InvalidLabels(
                f"columns of items must be of one length, got {len(values)} of {name!r}, not {len(where)}"
            )
        before = known.columns[name].tolist() if name in known.given else []
        places = [*range(len(before)), *where[rows].tolist()]
        table[name] = _spread(places, [*before, *(values[row] for row in rows)], items, name)
    return ItemTable({**known.columns, **table}, known.inferred - table.keys())


def _spread(places: list[int], values: list[Any], items: Sequence[Hashable], name: str) -> npt.NDArray[Any]:
    """One value for each item from rows that may repeat an item; a null is no value, two that differ are an error."""
    column: list[Any] = [None] * len(items)
    for place, value in zip(places, values, strict=True):
        before = column[place]
        if is_null(value):
            continue
        if before is not None and before is not value and before != value:
            raise InvalidLabels(
                f"an item has one value in each column, got {before!r:.40} and {value!r:.40} of {name!r} for item "
                f"{items[place]!r}; correct the rows, or leave the column out"
            )
        column[place] = value if before is None else before
    return _as_column(column)


def _as_column(values: list[Any]) -> npt.NDArray[Any]:
    """An array of the kind the values have if it holds them exactly; None becomes NaN or NaT where the kind has it."""
    present = [value for value in values if value is not None]
    whole = len(present) == len(values)
    kinds = {
        next((k for k, types in _KINDS.items() if issubclass(kind, types)), "other") for kind in set(map(type, present))
    }
    if kinds == {"bool"} and whole:
        column: npt.NDArray[Any] = np.array(values, dtype=bool)
    elif kinds == {"integer"} and whole and min(present) >= -(2**63) and max(present) < 2**63:
        column = np.array(values, dtype=np.int64)
    elif "number" in kinds and kinds <= {"integer", "number"} and all(map(_is_exact_float, present)):
        column = np.array([np.nan if value is None else float(value) for value in values])
    elif kinds == {"time"}:
        is_aware = [isinstance(value, datetime) and value.tzinfo is not None for value in values]
        in_utc = [
            v.astimezone(UTC).replace(tzinfo=None) if aware else v for v, aware in zip(values, is_aware, strict=True)
        ]
        column = np.array(in_utc, dtype="datetime64[us]")
    else:
        column = np.fromiter(values, dtype=object, count=len(values))
    column.flags.writeable = False
    return column


def text_as_values(cells: list[Any]) -> list[Any]:
    """The cells of a text file as what they are if all are: whole numbers, numbers, dates or times; blanks are None."""
    present = [cell for cell in cells if cell]
    convert: Callable[[str], Any] = str
    if present and all(map(is_plain_integer, present)):
        convert = _whole_number
    elif present and all(_NUMBER.fullmatch(cell) for cell in present):
        convert = float
    elif present and all(_DATE.match(cell) for cell in present):
        convert = datetime.fromisoformat
    try:
        return [convert(cell) if cell else None for cell in cells]
    except ValueError:  # written like dates, but not dates
        return [cell or None for cell in cells]


def _whole_number(text: str) -> int:
    return int(text.partition(".")[0])


def _is_exact_float(value: Any) -> bool:
    try:
        return bool(float(value) == value)
    except OverflowError:
        return False
