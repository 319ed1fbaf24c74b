"""Items to check as a table that people fill in, and the answers in such tables as the log of a decision."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trueup._base.cells import csv_text, safe_cell
from trueup._base.validation import preview
from trueup.data.files import Source, open_table
from trueup.data.frames import Cells
from trueup.data.pairs import VERDICTS
from trueup.decisions.decision import Decision
from trueup.exceptions import InvalidLabels
from trueup.sessions.log import Event

DRAW, AFTER, CHANCE = "draw", "after", "draw_chance"  # which draw it is, after how many answers, and with what chance
UNSURE = "cannot tell"  # in the place of a class


class Row(NamedTuple):
    """One row of a table: an item that was drawn, and its class where somebody filled it in."""

    draw: int
    item: tuple[str, ...]
    label: str
    after: int
    chance: float


def sheet_of(decision: Decision, items: Iterable[Hashable], *, item: Sequence[str], label: str) -> str:
    """Items that were drawn as csv, with an empty column for their classes; a tuple has several columns in `item`."""
    rows = []
    for drawn in sorted(items, key=decision.draw_of):
        name = drawn if len(item) > 1 and isinstance(drawn, tuple) else (drawn,)
        place, after, chance = decision.draw_of(drawn)
        rows.append([*map(safe_cell, name), "", place, after, repr(chance)])
    return csv_text([*item, label, DRAW, AFTER, CHANCE], rows)


def is_sheet(source: Source) -> bool:
    """Whether a table has the columns of one that `sheet_of` wrote."""
    with open_table(source) as table:
        return {DRAW, AFTER, CHANCE} <= set(table.columns)


def read_sheet(source: Source, *, item: Sequence[str], label: str) -> list[Row]:
    """The rows of a table."""
    with open_table(source) as table:
        names = [*item, label, DRAW, AFTER, CHANCE]
        lacking = [name for name in names if name not in table.columns]
        if lacking:
            raise InvalidLabels(
                f"a table of items to check needs the columns {preview(names)}, got none named {preview(lacking)}; "
                "leave the columns as --ask wrote them"
            )
        cells = {name: Cells() for name in names}
        table.read(list(cells.items()))
    columns = [[_text(value) for value in cells[name].values] for name in names]
    rows = []
    for k, row in enumerate(zip(*columns, strict=True)):
        *name, truth, draw, after, chance = row
        try:
            rows.append(Row(int(float(draw)), tuple(name), truth, int(float(after)), float(chance)))
        except ValueError:
            raise InvalidLabels(
                f"draw, after and draw_chance must be numbers, got {draw!r}, {after!r} and {chance!r} (`row {k}`); "
                "leave them as --ask wrote them"
            ) from None
    return rows


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def events_of(rows: Iterable[Row], items: Sequence[Hashable], classes: Sequence[Hashable]) -> list[Event]:
    """The log of a decision from all of its tables, in any order; the class of a contest may be who won."""
    by_draw: dict[int, Row] = {}
    for row in rows:
        before = by_draw.get(row.draw)
        if before is not None and before.item != row.item:
            raise InvalidLabels(
                f"draw {row.draw} must be of one item, got {'/'.join(before.item)!r} and {'/'.join(row.item)!r}; give "
                "the tables of one decision"
            )
        if before is not None and before.label and row.label not in ("", before.label):
            raise InvalidLabels(
                f"an item has one class, got {before.label!r} and {row.label!r} for {'/'.join(row.item)!r}; keep one"
            )
        if before is None or not before.label:
            by_draw[row.draw] = row
    missing = sorted(set(range(1, max(by_draw, default=0) + 1)) - set(by_draw))
    if missing:
        raise InvalidLabels(
            f"the tables must have all draws from the first on, got none for {preview(missing)}; give the earlier "
            "files of this decision too"
        )
    item_named = {_name_of(item): item for item in items}
    class_named: dict[str, Hashable] = {str(name): name for name in classes}
    class_named |= {str(name).casefold(): name for name in classes if str(name).casefold() not in class_named}
    return [_event(by_draw[draw], item_named, class_named) for draw in sorted(by_draw)]


def _name_of(item: Hashable) -> tuple[str, ...]:
    return tuple(str(safe_cell(part)) for part in (item if isinstance(item, tuple) else (item,)))


def _event(row: Row, items: Mapping[tuple[str, ...], Any], classes: Mapping[str, Any]) -> Event:
    if row.item not in items:
        raise InvalidLabels(
            f"a table names the item {'/'.join(row.item)!r}, which the votes do not have; give the votes that it was "
            "drawn of"
        )
    drawn: dict[str, Any] = {"propensity": row.chance, "draw": row.draw, "text": str(row.after)}
    item = items[row.item]
    if not row.label or row.label.casefold() == UNSURE:
        return Event("cannot tell" if row.label else "ask", item, **drawn)
    code = classes.get(row.label, classes.get(row.label.casefold()))
    if code is None and isinstance(item, tuple) and set(map(str, classes.values())) <= set(VERDICTS):
        code = dict(zip(row.item[1:], VERDICTS, strict=False)).get(row.label)
    if code is None:
        raise InvalidLabels(
            f"the class of {'/'.join(row.item)!r} must be one of {preview(list(classes.values()), most=10)}, got "
            f"{row.label!r}; use one of them, or {UNSURE!r}"
        )
    return Event("tell", item, code, **drawn)
