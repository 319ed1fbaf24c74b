"""Cells of csv files: what a spreadsheet would run is made inert, and made whole again when it comes back."""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

# Signs that begin a formula, also in their wide forms, which some programs take for them.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_text(header: Sequence[str] | None, rows: Iterable[Sequence[Any]]) -> str:
    """A table as csv; without a header, more rows of one."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    quoting = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in [*([] if header is None else [header]), *rows]:
        # Before 3.13 the module leaves a lone carriage return bare, at which spreadsheets begin a new row.
        has_return = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (quoting if has_return else writer).writerow(row)
    return stream.getvalue()


def safe_cell(value: Any) -> Any:
    """A value that a spreadsheet shows and never runs: text that starts like a formula gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def plain_cell(value: Any, names: Mapping[str, Hashable]) -> Any:
    """What `safe_cell` made safe, as it was; an apostrophe that belongs to a name stays."""
    if isinstance(value, str) and value not in names and value[:1] == "'" and value[1:].startswith(_FORMULA):
        return names.get(value[1:], value)
    return value
