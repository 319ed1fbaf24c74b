"""Small pictures as SVG: lines, bands and marks over two axes, with words for those who cannot see them.

A picture has its own ground and follows the colour scheme of the reader's system, so it can be read on any page. Lines
differ by dashes as well as by colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT = 640, 64, 24

STYLE = """
  .ground { fill: #ffffff; stroke: #d0d7de; }
  text { fill: #1f2328; font: 15px system-ui, sans-serif; }
  .small { font-size: 13px; }
  .grid { stroke: #d8dee4; }
  .line { fill: none; stroke-width: 2.5; }
  .blue { stroke: #0969da; }
  .orange { stroke: #b35900; stroke-dasharray: 7 4; }
  .green { stroke: #1a7f37; stroke-dasharray: 2 3; }
  .true { stroke: #1f2328; stroke-width: 1.5; }
  .box { fill: none; stroke: #57606a; }
  .blue-band { fill: #0969da; fill-opacity: 0.22; }
  .orange-band { fill: #b35900; fill-opacity: 0.18; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #1b1f24; stroke: #444c56; }
    text { fill: #e6edf3; }
    .grid { stroke: #30363d; }
    .blue { stroke: #6cb6ff; }
    .orange { stroke: #f0a04b; }
    .green { stroke: #57ab5a; }
    .true { stroke: #e6edf3; }
    .box { stroke: #adbac7; }
    .blue-band { fill: #6cb6ff; }
    .orange-band { fill: #f0a04b; }
  }
"""


@dataclass(frozen=True)
class Line:
    """Values joined by a line; ``low`` and ``high`` make a band of it."""

    colour: str
    name: str
    x: Sequence[float]
    y: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Chart:
    """Lines over two axes."""

    words: str
    x_name: str
    y_name: str
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    lines: Sequence[Line]
    marks: Sequence[tuple[str, float]] = ()  # vertical, with a name
    height: int = 250

    def draw(self) -> str:
        """The picture."""
        top = 30 + 22 * len(self.lines)
        bottom = top + self.height
        parts = [*_opening(self.words, bottom + 52), *self._legend()]
        for tick in self.x_ticks:
            x = self._x(tick)
            parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
            parts.append(_words(x, bottom + 17, f"{tick:g}", "middle"))
        for tick in self.y_ticks:
            y = self._y(tick, top, bottom)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(_words(LEFT - 8, y + 4, f"{tick:g}", "end"))
        parts.append(_words((LEFT + WIDTH - RIGHT) / 2, bottom + 38, self.x_name, "middle"))
        parts.append(
            f'<text class="small" text-anchor="middle" transform="translate(18 {(top + bottom) / 2:.1f}) rotate(-90)">'
            f"{escape(self.y_name)}</text>"
        )
        for k, (name, value) in enumerate(self.marks):
            x, side = self._x(value), -4 if k == 0 else 4
            parts.append(f'<line class="true" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
            parts.append(_words(x + side, bottom - 8, name, "end" if k == 0 else "start"))
        for line in self.lines:
            parts += self._line(line, top, bottom)
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _x(self, value: float) -> float:
        low, high = self.x_ticks[0], self.x_ticks[-1]
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / (high - low)

    def _y(self, value: float, top: float, bottom: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return bottom - (bottom - top) * (value - low) / (high - low)

    def _legend(self) -> list[str]:
        parts = []
        for k, line in enumerate(self.lines):
            y = 24 + 22 * k
            parts.append(f'<line class="line {line.colour}" x1="{LEFT}" x2="{LEFT + 28}" y1="{y - 5}" y2="{y - 5}"/>')
            parts.append(f'<text x="{LEFT + 38}" y="{y}">{escape(line.name)}</text>')
        return parts

    def _line(self, line: Line, top: float, bottom: float) -> list[str]:
        def points(values: Sequence[float]) -> str:
            return " ".join(
                f"{self._x(x):.1f},{self._y(y, top, bottom):.1f}" for x, y in zip(line.x, values, strict=True)
            )

        told = f"<title>{escape(line.name)}</title>"
        if not len(line.low):
            return [f'<polyline class="line {line.colour}" points="{points(line.y)}">{told}</polyline>']
        back = " ".join(reversed(points(line.low).split()))
        edges = [f'<polyline class="line {line.colour}" points="{points(v)}"/>' for v in (line.low, line.high)]
        area = f'<polygon class="{line.colour}-band" points="{points(line.high)} {back}">{told}</polygon>'
        return [area, *edges]


@dataclass(frozen=True)
class Interval:
    """A row of a picture of intervals: an interval, what is true, and what a majority says."""

    name: str
    low: float
    high: float
    true: float
    majority: float | None = None
    colour: str = "blue"

    @property
    def words(self) -> str:
        """The same in words."""
        return f"{self.name} {self.low:.2f} to {self.high:.2f}, true {self.true:.2f}"


def rows(words: str, x_name: str, intervals: Sequence[Interval], ticks: Sequence[float]) -> str:
    """Intervals one below the other, each with the true value and, as a ring, what the majority says."""
    top, step, left = 20, 44, 250

    def place(value: float) -> float:
        return left + (WIDTH - left - RIGHT) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    bottom = top + step * len(intervals)
    parts = _opening(words, bottom + 52)
    for tick in ticks:
        x = place(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
        parts.append(_words(x, bottom + 17, f"{tick:g}", "middle"))
    parts.append(_words(WIDTH / 2, bottom + 40, x_name, "middle"))
    for k, row in enumerate(intervals):
        y, x = top + step * (k + 0.5), place(row.true)
        parts.append(f'<text x="{left - 16}" y="{y + 5}" text-anchor="end">{escape(row.name)}</text>')
        parts.append(
            f'<line class="{row.colour}" stroke-width="7" x1="{place(row.low):.1f}" x2="{place(row.high):.1f}" '
            f'y1="{y}" y2="{y}"><title>{escape(row.words)}</title></line>'
        )
        parts.append(f'<line class="true" x1="{x:.1f}" x2="{x:.1f}" y1="{y - step / 2:g}" y2="{y + step / 2:g}"/>')
        if row.majority is not None:
            parts.append(f'<circle class="line orange" cx="{place(row.majority):.1f}" cy="{y}" r="7"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def flow(words: str, boxes: Sequence[tuple[int, int, int, str]], arrows: Sequence[tuple[int, int, int, int]]) -> str:
    """Boxes (x, y, width, words) and arrows (from x, y to x, y)."""
    parts = _opening(words, max(y for _, y, _, _ in boxes) + 60)
    parts.append(
        '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path class="box" d="M0,0 L8,4 L0,8"/></marker></defs>'
    )
    for x, y, width, name in boxes:
        parts.append(f'<rect class="box" x="{x}" y="{y}" width="{width}" height="36" rx="6"/>')
        parts.append(f'<text class="small" x="{x + width / 2}" y="{y + 23}" text-anchor="middle">{escape(name)}</text>')
    for x1, y1, x2, y2 in arrows:
        parts.append(f'<line class="box" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" marker-end="url(#head)"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _opening(words: str, height: float) -> list[str]:
    told = escape(words)
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{told}">',
        f"<title>{told}</title><style>{STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:g}" rx="8"/>',
    ]


def _words(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text class="small" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
