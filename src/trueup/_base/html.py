"""A small table with bars, as notebooks show an answer; plain HTML, every name escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape

from trueup._base.wording import interval, number

_CELL = "text-align:left;padding:1px 10px"
_BOX = "position:relative;width:11em;height:.8em;background:#8883"
_BAR = "position:absolute;height:100%;background:#1f5a93"


def html_table(
    title: str,
    rows: Iterable[tuple[object, float, float, float]],
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    head: Sequence[str] = ("", "mean", "interval"),
    notes: Iterable[str] = (),
) -> str:
    """A row a number: its name, the value, and the ends of its interval, nan where there is none.

    Bars are on the scale of the bounds, or of the rows where these are infinite; without an interval a bar goes from
    the lower bound to the value.
    """
    rows = list(rows)
    shown = [value for row in rows for value in row[1:] if math.isfinite(value)]
    ends = (min(shown, default=0.0), max(shown, default=1.0))
    low_end, high_end = (own if math.isfinite(own) else end for own, end in zip(bounds, ends, strict=True))
    reach = (high_end - low_end) or 1.0
    has_intervals = any(math.isfinite(low) for _, _, low, _ in rows)
    header = [*map(escape, head if has_intervals else head[:2]), ""]
    lines = [_line("th", header)]
    for name, value, low, high in rows:
        first, last = (low, high) if math.isfinite(low) else (low_end, value)
        bar = ""
        if math.isfinite(last):
            left, wide = 100 * (first - low_end) / reach, max(100 * (last - first) / reach, 1.0)
            bar = f'<div style="{_BAR};left:{left:.1f}%;width:{wide:.1f}%"></div>'
        between = [interval(low, high)] if has_intervals else []
        lines.append(_line("td", [escape(str(name)), number(value), *between, f'<div style="{_BOX}">{bar}</div>']))
    coded = (re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(note)) for note in notes)
    paragraphs = "".join(f"<p>{note}</p>" for note in coded)
    return f"<div><p><b>{escape(title)}</b></p><table>{''.join(lines)}</table>{paragraphs}</div>"


def _line(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f'<{tag} style="{_CELL}">{cell}</{tag}>' for cell in cells) + "</tr>"
