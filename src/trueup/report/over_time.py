"""A page about a monitor: the alarms, and the course of the system and of each judge, as data and as pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from trueup._base.wording import level_words
from trueup.report.figures import Drawing, Scale
from trueup.report.sentences import plain, shorten
from trueup.sessions.log import plain_name

Row = Mapping[str, Any]
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 700, 230, 44, 190
_SMALL_WIDTH = 340
_FIRST_WITH_PICTURES = 12  # judges


def course_report(
    *,
    rows: Sequence[Row],
    judges: Sequence[Row],
    alarms: Sequence[Row],
    status: Sequence[str],
    notes: Sequence[str],
    settings: Mapping[str, Any],
    metric: str,
    began: str | None,
) -> dict[str, Any]:
    """All that the page says, as a dict that JSON can hold."""
    by_judge: dict[Any, list[dict[str, Any]]] = {}
    for row in judges:
        by_judge.setdefault(row["judge"], []).append(_plain(row))
    return {
        "format": 1,
        "page": "over_time",
        "title": f"{plain(metric[:1].upper() + metric[1:])} over time",
        "metric": plain(metric),
        "level": settings["level"],
        "false_alarms": settings["false_alarms"],
        "baseline": settings["baseline"],
        "began": began,
        "verdict": list(status),
        "alarms": [_plain(alarm) for alarm in alarms],
        "notes": list(notes),
        "course": [_plain(row) for row in rows],
        "judges": [{"judge": plain_name(name), "rows": own} for name, own in by_judge.items()],
        "with_pictures": _FIRST_WITH_PICTURES,
    }


def _plain(row: Row) -> dict[str, Any]:
    """A row as JSON takes it, what is no number as None."""
    values = {name: plain_name(value) for name, value in row.items()}
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in values.items()}


def course_figure(report: Row) -> str:
    """The metric of every batch with its band, the agreement with most judges, and where alarms say it changed."""
    rows = report["course"]
    words = f"{report['metric']} of {len(rows)} batches with its {level_words(report['level'])} band"
    marks = [(alarm["since"], alarm["kind"]) for alarm in report["alarms"]]
    return _figure(rows, words, marks, ("mean", "low", "high"), dashed="agreement", width=_WIDTH)


def judge_figure(judge: Row, level: float) -> str:
    """A judge's errors on vetted items with their band, and how often they differ from most."""
    words = f"Errors of {shorten(judge['judge'], 40)} with their {level_words(level)} band"
    return _figure(judge["rows"], words, [], ("error", "low", "high"), dashed="disagreement", width=_SMALL_WIDTH)


def _figure(
    rows: Sequence[Row],
    words: str,
    marks: Sequence[tuple[str, str]],
    names: tuple[str, str, str],
    *,
    dashed: str,
    width: int,
) -> str:
    d = Drawing(width, _HEIGHT, words)
    shown = [row[name] for row in rows for name in (*names, dashed) if row[name] is not None]
    low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
    air = max(0.1 * (high - low), 0.01)
    up = Scale(max(low - air, 0.0), min(high + air, 1.0), _BOTTOM, 10)
    across = Scale(0.0, max(len(rows) - 1, 1), _LEFT + 6, width - 12)
    d.axis_left(up, _LEFT, right=width - 6)
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
            d.line("zero", x, 10, x, _BOTTOM)
            d.text("tick", min(x + 4, width - 80), 20 + 14 * (k % 4), kind)
    for k in sorted({0, len(rows) // 2, len(rows) - 1}) if rows else ():
        x = across(k)
        d.text("tick", min(max(x, 34), width - 36), _BOTTOM + 18, str(times[k])[:10], anchor="middle")
    return d.render()


def _runs_with(rows: Sequence[Row], names: Sequence[str]) -> list[list[int]]:
    """The places of rows that have all these values, in runs without a gap."""

    def has_all(k: int) -> bool:
        return all(rows[k][name] is not None for name in names)

    return [list(run) for is_there, run in groupby(range(len(rows)), key=has_all) if is_there]
