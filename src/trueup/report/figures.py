"""The pictures of a report, from its data: each is one inline SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby, pairwise
from typing import Any

from trueup._base.wording import decimals, interval, level_words, number
from trueup.report.sentences import plain, shorten, text

_WIDTH = 340
Row = Mapping[str, Any]


def _domain(rows: Sequence[Row], bounds: Sequence[float | None] = (None, None)) -> tuple[float, float] | None:
    """Ends that hold every number shown, with some air, within the bounds of the metric."""
    keys = ("mean", "low", "high", "dirty")
    values = [row[key] for row in rows for key in keys if row.get(key) is not None]
    if not values:
        return None
    low, high = min(values), max(values)
    air = max((high - low) * 0.08, 0.004 * max(abs(low), abs(high), 0.25))
    low = max(low - air, -math.inf if bounds[0] is None else bounds[0])
    high = min(high + air, math.inf if bounds[1] is None else bounds[1])
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _interval(d: Drawing, scale: Scale, y: float, row: Row) -> None:
    """A bar from low to high, a dot at the mean, a diamond where the majority vote would be."""
    if row.get("low") is not None and row.get("high") is not None:
        left, right = scale(row["low"]), scale(row["high"])
        d.rect("bar", left, y - 5, max(right - left, 0.6), 10, rx=3)
    if row.get("dirty") is not None:
        d.diamond("dirty", scale(row["dirty"]), y, 5.5)
    if row.get("mean") is not None:
        d.circle("dot", scale(row["mean"]), y, 4)


def answer_strip(metric: Row) -> str | None:
    """The interval of the leading metric on the whole scale of it, and where the majority vote would be."""
    low, high = metric["bounds"]
    domain: tuple[float, float] | None = (low, high) if None not in (low, high) else _domain([metric])
    if domain is None or metric["mean"] is None:
        return None
    d = Drawing(100, 58, _spoken(metric), is_fluid=True)
    scale = Scale(*domain, 1, 99)
    d.line("axis", 1, 22, 99, 22)
    _interval(d, scale, 22, metric)
    for x, words in scale.ticks(5):
        d.line("axis", x, 19, x, 25)
        d.tick(x, 46, words)
    return d.render()


def _spoken(row: Row) -> str:
    """One interval as a sentence, the alternative to the picture."""
    places = decimals(row["low"], row["high"], least=2)
    words = f"{shorten(row.get('label') or row.get('system') or '')}: mean {number(row['mean'], places)}"
    if row["low"] is not None:
        words += f", interval {interval(row['low'], row['high'], least=2)}"
    return words + (f", majority vote {number(row['dirty'], places)}" if row.get("dirty") is not None else "")


def metric_groups(metrics: Sequence[Row]) -> list[list[Row]]:
    """Metrics that can share an axis: those with the same bounds, and each without bounds on its own."""
    groups: dict[Any, list[Row]] = {}
    for k, metric in enumerate(metrics):
        if metric["mean"] is None:
            continue
        bounds = tuple(metric["bounds"])
        groups.setdefault(bounds if None not in bounds else k, []).append(metric)
    return list(groups.values())


def same_metrics(systems: Sequence[Row], group: Sequence[Row]) -> list[Row]:
    """The metrics of this group in all systems, which share an axis."""
    names = {metric["name"] for metric in group}
    return [metric for system in systems for metric in system["metrics"] if metric["name"] in names]


def interval_figure(
    rows: Sequence[Row],
    *,
    title: str,
    bounds: Sequence[float | None] = (None, None),
    zero: bool = False,
    among: Sequence[Row] = (),
) -> str:
    """One line a row: its name, its interval in words, and the bar; `zero` adds a line at no difference."""
    shown = [row for row in rows if row["mean"] is not None]
    domain = _domain([*shown, *among, *([{"mean": 0.0}] if zero else [])], bounds) if shown else None
    if domain is None:
        return Drawing(100, 10, title, is_fluid=True).render()
    step, bottom = 42, 42 * len(shown) + 6
    d = Drawing(100, bottom + 24, f"{title}. {'; '.join(_spoken(row) for row in shown[:12])}.", is_fluid=True)
    scale = Scale(*domain, 1, 99)
    d.axis_below(scale, bottom, top=4)
    if zero:
        d.line("zero", scale(0.0), 4, scale(0.0), bottom)
    for k, row in enumerate(shown):
        y = 14 + k * step
        words = interval(row["low"], row["high"], least=2) if row["low"] is not None else number(row["mean"])
        d.text("name", 1, y, shorten(row.get("label") or row.get("system"), 26))
        d.text("value", 99, y, words, anchor="end")
        d.line("axis", 1, y + 15, 99, y + 15)
        _interval(d, scale, y + 15, row)
    return d.render()


def density_figure(metric: Row) -> str | None:
    """How probable each value is; the interval is filled."""
    density = metric.get("density")
    if not density:
        return None
    pairs = [(x, y) for x, y in zip(density["x"], density["y"], strict=True) if x is not None and y is not None]
    if not pairs:
        return None
    base = 112
    words = f"Posterior density of {plain(metric['label'])}. {_spoken(metric)}."
    d = Drawing(100, base + 24, words, is_fluid=True)
    ends = _domain([{"mean": pairs[0][0], "low": pairs[-1][0], "dirty": metric["dirty"]}])
    assert ends is not None
    scale = Scale(*ends, 2, 98)
    top = max(y for _, y in pairs) or 1.0
    height = Scale(0.0, top, base, 10)
    d.axis_below(scale, base, most=4)
    is_whole = metric["low"] is not None and metric["high"] is not None
    low, high = (metric["low"] - 1e-12, metric["high"] + 1e-12) if is_whole else (math.inf, -math.inf)
    if density["kind"] == "bars":
        room = (scale(pairs[-1][0]) - scale(pairs[0][0])) / max(len(pairs), 1)
        for x, y in pairs:
            wide = min(max(room * 0.7, 0.3), 2.0)
            d.rect("in" if low <= x <= high else "out", scale(x) - wide / 2, height(y), wide, base - height(y))
    else:
        if filled := [(x, y) for x, y in pairs if low <= x <= high]:
            edge = [(filled[0][0], 0.0), *filled, (filled[-1][0], 0.0)]
            d.path("fill", [(scale(x), height(y)) for x, y in edge], closed=True)
        d.path("curve", [(scale(x), height(y)) for x, y in pairs])
    d.line("axis", 2, base, 98, base)
    if metric["dirty"] is not None:
        d.line("dirty-line", scale(metric["dirty"]), 10, scale(metric["dirty"]), base)
        d.diamond("dirty", scale(metric["dirty"]), base, 5)
    d.circle("dot", scale(metric["mean"]), base, 4)
    return d.render()


def confusion_map(confusion: Row) -> str | None:
    """A square a cell, darker with its share of the true class."""
    mean, names = confusion["mean"], confusion["classes"]
    if mean is None or len(names) > 40:
        return None
    n = len(names)
    left, top = 74, 8
    cell = (_WIDTH - left - 8) / n
    room = 22 + 5 * max(len(shorten(name, 8)) for name in names)  # for names that are turned
    words = f"Confusion matrix of {n} classes; rows are the truth, columns the prediction"
    d = Drawing(_WIDTH, top + cell * n + room + 8, words)
    for y in range(n):
        total = sum(v or 0.0 for v in mean[y]) or 1.0
        for p in range(n):
            share = (mean[y][p] or 0.0) / total
            kind = "right" if y == p else "wrong"
            d.rect(kind, left + p * cell, top + y * cell, cell - 1, cell - 1, style=f"fill-opacity:{share**0.5:.3f}")
    size = max(1, math.ceil(11 / cell))
    for k in range(0, n, size):
        middle = top + (k + 0.5) * cell
        d.text("tick", left - 6, middle + 4, shorten(names[k], 10), anchor="end")
        x = left + (k + 0.5) * cell
        d.text("tick", x + 4, top + n * cell + 8, shorten(names[k], 8), anchor="end", turn=-60)
    d.text("tick", left + n * cell / 2, top + n * cell + room, "prediction", anchor="middle")
    d.text("tick", 12, top + n * cell / 2, "truth", anchor="middle", turn=-90)
    return d.render()


_AXES = {"roc": ("false-alarm rate", "recall"), "pr": ("recall", "precision")}


def curve_figure(curve: Row) -> str:
    """The mean curve and its band."""
    x_name, y_name = _AXES[curve["kind"]]
    kind = "ROC curve" if curve["kind"] == "roc" else "Precision–recall curve"
    d = Drawing(_WIDTH, 310, f"{kind} with its {level_words(curve['level'])} band")
    across, up = Scale(0.0, 1.0, 44, _WIDTH - 10), Scale(0.0, 1.0, 264, 10)
    d.axis_below(across, 264, top=10)
    d.axis_left(up, 44, right=_WIDTH - 10)
    points = [
        point for point in zip(curve["x"], curve["y"], curve["low"], curve["high"], strict=True) if None not in point
    ]
    if curve["kind"] == "roc":
        d.line("zero", across(0), up(0), across(1), up(1))
        points = [(0.0, 0.0, 0.0, 0.0), *points, (1.0, 1.0, 1.0, 1.0)]
    band = [(across(x), up(high)) for x, _, _, high in points]
    band += [(across(x), up(low)) for x, _, low, _ in reversed(points)]
    if band:
        d.path("fill", band, closed=True)
        d.path("curve", [(across(x), up(y)) for x, y, _, _ in points])
    d.text("tick", (44 + _WIDTH - 10) / 2, 302, x_name, anchor="middle")
    d.text("tick", 12, 137, y_name, anchor="middle", turn=-90)
    return d.render()


def labeler_scatter(rows: Sequence[Row]) -> str | None:
    """Skill against volume, a dot a labeler; probable spammers are diamonds. None where volumes are equal."""
    shown = [row for row in rows if row["accuracy"]["mean"] is not None and row["votes"] > 0]
    if len({row["votes"] for row in shown}) < 2:  # equal volumes make no picture
        return None
    most, least = max(row["votes"] for row in shown), min(row["votes"] for row in shown)
    d = Drawing(_WIDTH, 290, f"Accuracy and number of votes of {len(shown)} labelers")
    lowest = min(row["accuracy"]["mean"] for row in shown)
    up = Scale(math.floor(lowest * 10) / 10 if lowest < 1 else 0.9, 1.0, 244, 10)
    d.axis_left(up, 44, right=_WIDTH - 10)
    wide = most > 5 * least  # volumes of different size need a logarithmic axis
    first, last = (math.log10(least) - 0.05, math.log10(most) + 0.05) if wide else (least - 1, most + 1)
    across = Scale(first, last, 50, _WIDTH - 16)
    for x, words in _powers(least, most) if wide else [(v, f"{v:,.0f}") for v in ticks(first, last, 4) if v == int(v)]:
        d.line("grid", across(x), 10, across(x), 244)
        d.text("tick", across(x), 259, words, anchor="middle")
    d.line("axis", 44, 244, _WIDTH - 10, 244)
    for row in shown:
        x, y = across(math.log10(row["votes"]) if wide else row["votes"]), up(row["accuracy"]["mean"])
        if row["spam_probability"] > 0.5:
            d.diamond("dirty", x, y, 4.5)
        else:
            d.circle("soft-dot", x, y, 3.5, label=shorten(row["labeler"], 40))
    d.text("tick", (44 + _WIDTH - 10) / 2, 282, "votes", anchor="middle")
    d.text("tick", 12, 127, "accuracy", anchor="middle", turn=-90)
    return d.render()


def _powers(least: float, most: float) -> list[tuple[float, str]]:
    """Round numbers of a logarithmic axis, far enough from each other to be read."""
    wide = math.log10(most / least)
    steps = (1, 2, 5) if wide < 2.5 else (1,)
    found = [m * 10**k for k in range(9) for m in steps if least * 0.95 <= m * 10**k <= most * 1.05]
    kept: list[int] = []
    for value in found:
        if not kept or math.log10(value / kept[-1]) > max(wide, 0.1) / 8:
            kept.append(value)
    return [(math.log10(v), f"{v:,}") for v in kept]


def _f(value: float, is_percent: bool = False) -> str:
    """A coordinate, to a tenth of a pixel or a hundredth of a percent."""
    shown = f"{value:.2f}".rstrip("0").rstrip(".") if is_percent else f"{value:.1f}".removesuffix(".0")
    return ("0" if shown == "-0" or shown == "-0.0" else shown) + "%" * is_percent


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, not more than `most` of them where that can be."""
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
    """From numbers to pixels."""

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
    """An SVG picture that grows shape by shape."""

    def __init__(self, width: float, height: float, title: str, *, is_fluid: bool = False) -> None:
        self.width, self.height, self.title, self.is_fluid = width, height, text(title), is_fluid
        self._parts: list[str] = []

    def _add(self, tag: str, kind: str, inside: str | None = None, **attributes: float | str) -> None:
        end = "/>" if inside is None else f">{inside}</{tag}>"
        self._parts.append(f'<{tag} class="{escape(kind)}"{self._written(attributes)}{end}')

    def _written(self, attributes: Mapping[str, float | str]) -> str:
        across = ("x", "x1", "x2", "cx") if self.is_fluid else ()
        return "".join(
            f' {name.replace("_", "-")}="{escape(value) if isinstance(value, str) else _f(value, name in across)}"'
            for name, value in attributes.items()
        )

    def line(self, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
        """A straight line."""
        self._add("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)

    def rect(
        self, kind: str, x: float, y: float, width: float, height: float, *, rx: float = 0, style: str = ""
    ) -> None:
        """A rectangle."""
        more = {"style": style} if style else {}
        wide = _f(max(width, 0.0), is_percent=self.is_fluid)
        self._add("rect", kind, x=x, y=y, width=wide, height=max(height, 0.0), rx=rx, **more)

    def circle(self, kind: str, x: float, y: float, r: float, *, label: str = "") -> None:
        """A dot, with a word on it for those who point at it."""
        self._add("circle", kind, f"<title>{escape(text(label))}</title>" if label else None, cx=x, cy=y, r=r)

    def diamond(self, kind: str, x: float, y: float, r: float) -> None:
        """A mark that differs from a dot without colour; in a fluid picture the style turns a square."""
        if self.is_fluid:
            self._add("rect", kind, x=x, y=y, width="8", height="8")
        else:
            self.path(kind, [(x, y - r), (x + r, y), (x, y + r), (x - r, y)], closed=True)

    def path(self, kind: str, points: Iterable[Sequence[float]], *, closed: bool = False) -> None:
        """Straight lines through points."""
        d = " ".join(f"{'L' if k else 'M'}{_f(p[0])} {_f(p[1])}" for k, p in enumerate(points)) + " Z" * closed
        if not self.is_fluid:
            self._add("path", kind, d=d)
            return
        box = f'viewBox="0 0 100 {_f(self.height)}" width="100%" height="{_f(self.height)}" preserveAspectRatio="none"'
        path = f'<path class="{escape(kind)}" vector-effect="non-scaling-stroke" d="{d}"/>'
        self._parts.append(f"<svg {box}>{path}</svg>")

    def text(self, kind: str, x: float, y: float, words: str, *, anchor: str = "start", turn: float = 0) -> None:
        """Words; `anchor` is start, middle or end."""
        more = {"transform": f"rotate({_f(turn)} {_f(x)} {_f(y)})"} if turn else {}
        self._add("text", kind, escape(text(words)), x=x, y=y, text_anchor=anchor, **more)

    def tick(self, x: float, y: float, words: str) -> None:
        """A number at an axis, kept within the picture."""
        if not self.is_fluid:
            half = 3.1 * len(words)
            x = min(max(x, half), self.width - half)
        anchor = "start" if self.is_fluid and x < 8 else "end" if self.is_fluid and x > 92 else "middle"
        self.text("tick", x, y, words, anchor=anchor)

    def axis_below(self, scale: Scale, y: float, *, top: float | None = None, most: int = 5) -> None:
        """Ticks and numbers at the bottom, with lines up to `top`."""
        for x, words in scale.ticks(most):
            if top is not None:
                self.line("grid", x, top, x, y)
            self.tick(x, y + 15, words)

    def axis_left(self, scale: Scale, x: float, *, right: float, most: int = 5) -> None:
        """Ticks and numbers at the left, with lines to `right`."""
        for y, words in scale.ticks(most):
            self.line("grid", x, y, right, y)
            self.text("tick", x - (1 if self.is_fluid else 6), y + 4, words, anchor="end")

    def render(self) -> str:
        """The picture as one element; it has its title inside and needs no id."""
        size = f'viewBox="0 0 {_f(self.width)} {_f(self.height)}" width="{_f(self.width)}" height="{_f(self.height)}"'
        if self.is_fluid:
            size = f'class="fluid" width="100%" height="{_f(self.height)}"'
        title = escape(self.title)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}" {size}>'
            f"<title>{title}</title>{''.join(self._parts)}</svg>"
        )


# ------------------ Batches over time.

_COURSE_HEIGHT, _COURSE_BOTTOM = 230, 190


def course_figure(report: Row) -> str:
    """The metric of every batch with its band, the agreement with most judges, and where alarms say it changed."""
    rows = report["course"]
    words = f"{report['metric']} of {len(rows)} batches with its {level_words(report['level'])} band"
    marks = [(alarm["since"], alarm["kind"]) for alarm in report["alarms"]]
    return _course(rows, words, marks, ("mean", "low", "high"), dashed="agreement")


def chance_figure(report: Row) -> str:
    """How probable it is that the conditions of a decision are met, after each number of checks."""
    return _course(report["course"], report["metric"], [], ("met", "met", "met"), dashed="met")


def judge_figure(judge: Row, level: float) -> str:
    """A judge's errors on vetted items with their band, and how often they differ from most."""
    words = f"Errors of {shorten(judge['judge'], 40)} with their {level_words(level)} band"
    return _course(judge["rows"], words, [], ("error", "low", "high"), dashed="disagreement")


def _course(
    rows: Sequence[Row], words: str, marks: Sequence[tuple[str, str]], names: tuple[str, str, str], *, dashed: str
) -> str:
    d = Drawing(100, _COURSE_HEIGHT, words, is_fluid=True)
    shown = [row[name] for row in rows for name in (*names, dashed) if row[name] is not None]
    low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
    air = max(0.1 * (high - low), 0.01)
    up = Scale(max(low - air, 0.0), min(high + air, 1.0), _COURSE_BOTTOM, 10)
    across = Scale(0.0, max(len(rows) - 1, 1), 12, 98)
    d.axis_left(up, 10, right=99)
    for run in _runs_with(rows, names):
        lefts = [across(k) for k in run]
        mean, least, most = ([up(rows[k][name]) for k in run] for name in names)
        if len(run) > 1:
            d.path("fill", [*zip(lefts, most, strict=True), *reversed([*zip(lefts, least, strict=True)])], closed=True)
            d.path("curve", zip(lefts, mean, strict=True))
        for k, left, height in zip(run, lefts, mean, strict=True):
            d.circle("dot", left, height, 3 if len(rows) > 40 else 4, label=str(rows[k]["when"]))
    for run in _runs_with(rows, [dashed]):
        d.path("dirty-line", [(across(k), up(rows[k][dashed])) for k in run])
    times = [row["when"] for row in rows]
    for k, (since, kind) in enumerate(dict.fromkeys(marks)):
        if since in times:
            x = across(times.index(since))
            d.line("zero", x, 10, x, _COURSE_BOTTOM)
            shift, anchor = (-0.5, "end") if x > 60 else (0.5, "start")
            d.text("tick", x + shift, 20 + 14 * (k % 4), f"{kind} changed", anchor=anchor)
    labels, last = _short_times(times), len(rows) - 1
    anchors = {last // 2: "middle", last: "end", 0: "start"} if last > 1 else {last: "end", 0: "start"}
    for k, anchor in anchors.items() if rows else ():
        d.line("axis", across(k), _COURSE_BOTTOM, across(k), _COURSE_BOTTOM + 5)
        d.text("tick", across(k), _COURSE_BOTTOM + 20, labels[k], anchor=anchor)
    return d.render()


def _short_times(times: Sequence[Any]) -> list[str]:
    """Labels of batches so short that three fit a phone: of instants the day, or the hour too where days repeat."""
    names = [str(time) for time in times]
    if not all("T" in name for name in names):
        return [shorten(name, 11) for name in names]
    days = [name[:10] for name in names]
    return days if len(set(days)) == len(days) else [name[5:16].replace("T", " ") for name in names]


def _runs_with(rows: Sequence[Row], names: Sequence[str]) -> list[list[int]]:
    """The places of rows that have all these values, in runs without a gap."""
    has_all = [all(row[name] is not None for name in names) for row in rows]
    return [list(run) for is_there, run in groupby(range(len(rows)), key=has_all.__getitem__) if is_there]


# ------------------ Crops of images

# By what a shape is: colour of the line, its width in pixels of the screen, and its dashes.
_LINES = {
    "candidate": ("#d1495b", 2.5, ""),
    "system": ("#00798c", 2.0, "5 3"),
    "other": ("#8d99ae", 1.2, ""),
    "tile": ("#edae49", 2.5, ""),
}
_PHOTO = re.compile(r"^(?:#[\w-]+|data:image/[a-z+.]+;base64,[A-Za-z0-9+/=]+)$")


def crop_figure(crop: Mapping[str, Any], *, width: int = 260, label: str = "") -> str:
    """A part of an image as SVG: the photograph, or paper where there is none, and shapes on it."""
    x, y, w, h = (float(value) for value in crop["view"])
    whole = 'width="{:g}" height="{:g}"'.format(*(float(value) for value in crop["size"]))
    photo = crop.get("photo")
    image = ""
    if isinstance(photo, str) and _PHOTO.match(photo):
        at_once = f'<image href="{photo}" {whole} preserveAspectRatio="none"/>'
        image = f'<use href="{photo}"/>' if photo.startswith("#") else at_once
    return (
        f'<svg class="crop" viewBox="{x:g} {y:g} {w:g} {h:g}" width="{width}" '
        f'height="{max(round(width * h / max(w, 1e-9)), 1)}" role="img" '
        f'aria-label="{escape(label)}" preserveAspectRatio="xMidYMid meet">'
        f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" fill="#e9ecef"/>'
        f'<rect {whole} fill="#f8f9fa"/>{image}{"".join(map(_outline, crop["shapes"]))}</svg>'
    )


def _outline(shape: Mapping[str, Any]) -> str:
    colour, thickness, dashes = _LINES.get(str(shape["role"]), _LINES["other"])
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    if "edges" in shape:
        edges: Sequence[Sequence[float]] = shape["edges"]
        path = "".join(f"M{float(a):g} {float(b):g}L{float(c):g} {float(d):g}" for a, b, c, d in edges)
    else:
        x, y, w, h = (float(value) for value in shape["box"])
        path = f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z"
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{thickness}"{dashed} '
        'vector-effect="non-scaling-stroke"/>'
    )
