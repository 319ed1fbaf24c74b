"""What the paper says, what we measured, and whether the two agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["Check", "checks", "comparison", "expected", "table"]

FOLDER = Path(__file__).parent


@cache
def expected(folder: Path = FOLDER) -> dict[str, Any]:
    """The paper's values with their tolerances, by table and figure: expected.json of the paper's folder."""
    return dict(json.loads((folder / "expected.json").read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Check:
    """One number beside the paper's, or beside a limit."""

    label: str
    ours: float
    paper: float | None = None
    tolerance: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    differs: str | None = None  # why it may disagree

    @property
    def ok(self) -> bool:
        """Whether ours agrees; a nan never does."""
        if self.paper is not None and self.tolerance is not None:
            return abs(self.ours - self.paper) <= self.tolerance
        above = self.at_least is None or self.ours >= self.at_least
        return above and (self.at_most is None or self.ours <= self.at_most)

    @property
    def rule(self) -> str:
        """What is asked, in words."""
        if self.tolerance is not None:
            return f"± {self.tolerance:g}"
        limits = [f"≥ {self.at_least:g}"] if self.at_least is not None else []
        return " ".join(limits + ([f"≤ {self.at_most:g}"] if self.at_most is not None else []))


def checks(name: str, ours: dict[str, float], folder: Path = FOLDER) -> list[Check]:
    """Our numbers beside the entries of expected.json; an entry that was not measured is left out."""
    entry = expected(folder)[name]
    found = [Check(k, ours[k], **v) for k, v in entry["values"].items() if k in ours]
    return found + [Check(k, ours[k], **v) for k, v in entry.get("limits", {}).items() if k in ours]


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns of text, the first to the left and the others to the right."""
    cells = [list(head)] + [[_shown(cell) for cell in row] for row in rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    lines = [
        "  ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    ]
    return "\n".join([lines[0], "─" * len(lines[0]), *lines[1:]])


def _shown(cell: Any) -> str:
    if isinstance(cell, float):
        return "–" if cell != cell else f"{cell:.4f}"
    return str(cell)


def comparison(name: str, ours: dict[str, float], folder: Path = FOLDER) -> str:
    """The paper's value, ours, and whether they agree."""
    found = checks(name, ours, folder)
    rows = [[c.label, "–" if c.paper is None else f"{c.paper:.4f}", c.ours, c.rule, _verdict(c)] for c in found]
    entry = expected(folder)[name]
    agree = f"{sum(c.ok for c in found)} of {len(found)} agree."
    notes = sorted({f"* {c.differs}" for c in found if c.differs and not c.ok})
    head = f"{entry['where']}\nTolerance: {entry['tolerance_is']}"
    return "\n".join([head, table(["", "paper", "ours", "asked", "agrees"], rows), agree, *notes])


def _verdict(check: Check) -> str:
    if check.ok:
        return "yes"
    return "no *" if check.differs else "NO"
