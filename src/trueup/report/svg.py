"""A small pen for inline SVG: shapes, text and axes, with colours left to the style sheet of the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

from trueup.report.words import text

__all__ = ["Drawing", "Scale", "ticks"]


def _f(value: float) -> str:
    """A coordinate, to a tenth of a pixel."""
    shown = f"{value:.1f}"
    return shown.removesuffix(".0") if shown != "-0.0" else "0"


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, not more than `most` of them where that can be.

    Examples
    --------
    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low] if math.isfinite(low) else []
    rough = span / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 2.5, 5) if m * power >= rough * 0.999), 10 * power)
    if span / step > most + 1.5:
        step *= 2
    first = math.ceil(low / step - 1e-9)
    found: list[float] = []
    while (first + len(found)) * step <= high + 1e-9 * step:
        found.append(round((first + len(found)) * step, 12))
    return found


class Scale:
    """From numbers to pixels.

    Parameters
    ----------
    low, high : float
        The numbers at the two ends.
    start, end : float
        Their pixels; `end` may lie before `start`.
    """

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value: float) -> float:
        """The pixel of a number, kept within the ends."""
        share = 0.5 if self.high == self.low else (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Pixels and words of round numbers."""
        values = ticks(self.low, self.high, most)
        steps = [b - a for a, b in pairwise(values)]
        places = max(0, 0 if not steps else math.ceil(-math.log10(min(steps)) - 1e-9))
        if steps and abs(round(min(steps), places) - min(steps)) > 1e-9 * min(steps):
            places += 1
        return [(self(value), f"{value:,.{places}f}".replace("-", "−")) for value in values]


class Drawing:
    """An SVG picture that grows shape by shape.

    Parameters
    ----------
    width, height : float
        In pixels at natural size.
    title : str
        What the picture shows, for those who cannot see it.
    """

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height, self.title = width, height, text(title)
        self._parts: list[str] = []

    def _add(self, tag: str, kind: str, inside: str | None = None, **attributes: float | str) -> None:
        shown = "".join(
            f' {name.rstrip("_").replace("_", "-")}="{escape(value) if isinstance(value, str) else _f(value)}"'
            for name, value in attributes.items()
        )
        end = "/>" if inside is None else f">{inside}</{tag}>"
        self._parts.append(f'<{tag} class="{escape(kind)}"{shown}{end}')

    def line(self, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
        """A straight line."""
        self._add("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)

    def rect(
        self, kind: str, x: float, y: float, width: float, height: float, *, rx: float = 0, style: str = ""
    ) -> None:
        """A rectangle."""
        more = {"style": style} if style else {}
        self._add("rect", kind, x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), rx=rx, **more)

    def circle(self, kind: str, x: float, y: float, r: float, *, label: str = "") -> None:
        """A dot, with a word on it for those who point at it."""
        self._add("circle", kind, f"<title>{escape(text(label))}</title>" if label else None, cx=x, cy=y, r=r)

    def diamond(self, kind: str, x: float, y: float, r: float) -> None:
        """A mark that is told from a dot without colour."""
        self.path(kind, [(x, y - r), (x + r, y), (x, y + r), (x - r, y)], closed=True)

    def path(self, kind: str, points: Iterable[Sequence[float]], *, closed: bool = False) -> None:
        """Straight lines through points."""
        d = " ".join(f"{'L' if k else 'M'}{_f(p[0])} {_f(p[1])}" for k, p in enumerate(points))
        self._add("path", kind, d=d + (" Z" if closed else ""))

    def text(self, kind: str, x: float, y: float, words: str, *, anchor: str = "start", turn: float = 0) -> None:
        """Words; `anchor` is start, middle or end."""
        more = {"transform": f"rotate({_f(turn)} {_f(x)} {_f(y)})"} if turn else {}
        self._add("text", kind, escape(text(words)), x=x, y=y, text_anchor=anchor, **more)

    def axis_below(self, scale: Scale, y: float, *, top: float | None = None, most: int = 5) -> None:
        """Ticks and numbers at the bottom, with lines up to `top`."""
        for x, words in scale.ticks(most):
            if top is not None:
                self.line("grid", x, top, x, y)
            half = 3.1 * len(words)
            self.text("tick", min(max(x, half), self.width - half), y + 15, words, anchor="middle")

    def axis_left(self, scale: Scale, x: float, *, right: float, most: int = 5) -> None:
        """Ticks and numbers at the left, with lines to `right`."""
        for y, words in scale.ticks(most):
            self.line("grid", x, y, right, y)
            self.text("tick", x - 6, y + 4, words, anchor="end")

    def render(self) -> str:
        """The picture as one element; it has its title inside and needs no id."""
        size = f'viewBox="0 0 {_f(self.width)} {_f(self.height)}" width="{_f(self.width)}" height="{_f(self.height)}"'
        title = escape(self.title)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}" {size}>'
            f"<title>{title}</title>{''.join(self._parts)}</svg>"
        )
