"""What the owner takes away: answers for `evaluate`, a sheet, the whole log and a report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from trueup._base.cells import csv_text, safe_cell
from trueup.serve.owner_pages import page_context
from trueup.serve.rendering import Owner, pages_of, services_of
from trueup.serve.services import Services
from trueup.sessions.log import events_to_json
from trueup.sessions.progress import fold

router = APIRouter(include_in_schema=False)

_ROWS_AT_ONCE = 1_000
_SHEET = ("number", "time", "kind", "item", "answer", "expert", "seconds", "blind", "purpose", "draw", "propensity")


@router.get("/export-answers.csv")
def answers(request: Request, _: Owner) -> Response:
    """The truth that stands for each answered item, exactly as named: what ``evaluate --gold`` reads.

    The items were chosen by a strategy, and the file says so.
    """
    services = services_of(request)
    return _streamed(_csv(("item", "label", "drawn"), answer_rows(services)), "answers.csv", "text/csv")


def answer_rows(services: Services) -> Iterator[Sequence[Any]]:
    """Item and class, in the order of the items."""
    services.journal.refresh()
    names = services.cards.names
    progress = fold([entry.event for entry in services.journal.entries()], names)
    for at in np.flatnonzero((progress.truth >= 0) & (progress.truth < len(names.classes))).tolist():
        yield names.items[at], names.classes[progress.truth[at]], "chosen"


@router.get("/export-sheet.csv")
def sheet(request: Request, _: Owner) -> Response:
    """All that was said, for a spreadsheet: nothing in it is run as a formula."""
    services = services_of(request)
    rows = ([safe_cell(cell) for cell in row] for row in sheet_rows(services))
    return _streamed(_csv((*_SHEET, "comment"), rows), "answers-sheet.csv", "text/csv")


def sheet_rows(services: Services) -> Iterator[Sequence[Any]]:
    """One row for each line of the log but the questions."""
    services.journal.refresh()
    for entry in services.journal.entries():
        event = entry.event
        if event.kind == "ask":
            continue
        when = "" if event.at is None else datetime.fromtimestamp(event.at, tz=UTC).isoformat(timespec="seconds")
        told = (event.truth, event.who, event.seconds, event.blind, event.purpose, event.draw, event.propensity)
        yield (
            entry.number,
            when,
            event.kind,
            event.item,
            *("" if one is None else one for one in told),
            event.text or "",
        )


@router.get("/export-log.json")
def log(request: Request, _: Owner) -> Response:
    """The whole log, which `ActiveTest.replay` reads."""
    services = services_of(request)
    services.journal.refresh()
    return _streamed(_json_list([entry.event for entry in services.journal.entries()]), "log.json", "application/json")


def _json_list(events: Sequence[Any]) -> Iterator[str]:
    yield "["
    for start in range(0, len(events), _ROWS_AT_ONCE):
        records = events_to_json(events[start : start + _ROWS_AT_ONCE])
        yield (",\n" if start else "\n") + ",\n".join(json.dumps(record) for record in records)
    yield "\n]\n"


@router.get("/export-report.html")
def report(request: Request, person: Owner) -> Response:
    """The figures of the moment as one file with nothing outside of it."""
    services = services_of(request)
    style = files("trueup.serve").joinpath("static/vetting.css").read_text(encoding="utf-8")
    when = datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    record = services.storage.open(services.session)
    settings = {**record.settings, **record.options}
    shown = {name: value for name, value in settings.items() if isinstance(value, str | int | float | bool)}
    html = pages_of(request).render(
        "report.html", person, style=style, when=when, settings=shown, **page_context(services, person)
    )
    return Response(html, media_type="text/html", headers=_attachment("report.html"))


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield csv_text(header, [])
    block: list[Sequence[Any]] = []
    for row in rows:
        block.append(row)
        if len(block) == _ROWS_AT_ONCE:
            yield csv_text(None, block)
            block = []
    if block:
        yield csv_text(None, block)


def _streamed(parts: Iterator[str], name: str, media_type: str) -> StreamingResponse:
    encoded = (part.encode("utf-8", "replace") for part in parts)
    return StreamingResponse(encoded, media_type=f"{media_type}; charset=utf-8", headers=_attachment(name))


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store, private"}
