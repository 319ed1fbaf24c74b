"""The owner's page: figures that move by themselves, recent answers to correct, pause, and who may come in."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, HTTPException
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from trueup.exceptions import TrueupError
from trueup.serve.card_pages import MOST_CARDS
from trueup.serve.card_service import Reply
from trueup.serve.guard import LIFETIMES, Person
from trueup.serve.rendering import Owner, Viewer, pages_of, services_of, who_asks
from trueup.serve.services import Services
from trueup.serve.standing import chart, figures, recent_answers

router = APIRouter(include_in_schema=False)

_LOOKS = 0.5  # seconds between two looks at whether anything is new
_SIGN_OF_LIFE = 15.0  # seconds after which a proxy would take a silent stream for a dead one
_MOST_PEOPLE = 200


# What is shown ------------------------------------------------------------------------------------------------------


@router.get("/owner")
def overview(request: Request, person: Viewer) -> Response:
    """The whole page."""
    return _overview(request, person)


def _overview(request: Request, person: Person, *, message: str = "", secret: str = "") -> Response:
    services = services_of(request)
    context = page_context(services, person)
    people = _people(services) if person.role == "owner" else []
    return pages_of(request).page(
        "owner.html", person, page="owner", message=message, secret=secret, people=people, **context
    )


@router.get("/owner-state")
def state(request: Request, person: Viewer) -> JSONResponse:
    """The parts that move, for pages that ask."""
    return JSONResponse(_parts(request, person), headers={"cache-control": "no-store, private"})


@router.get("/owner-events")
async def stream(request: Request, person: Viewer) -> StreamingResponse:
    """The parts that move, whenever they do."""
    services = services_of(request)

    async def events() -> AsyncIterator[str]:
        seen: Any = None
        sent = time.monotonic()
        yield "retry: 3000\n\n"
        while not services.stopping.is_set() and not await request.is_disconnected():
            if await run_in_threadpool(who_asks, request) != person:
                return  # signed out or revoked meanwhile
            now = services.latest.version, await run_in_threadpool(services.journal.refresh)
            silence = time.monotonic() - sent
            if now != seen or silence > _SIGN_OF_LIFE:
                seen, sent = now, time.monotonic()
                parts = await run_in_threadpool(_parts, request, person)
                yield f"event: state\ndata: {json.dumps(parts)}\n\n"
            await asyncio.sleep(_LOOKS)

    return StreamingResponse(
        events(),
        media_type="text/event-stream",
        headers={"cache-control": "no-store, private", "x-accel-buffering": "no"},
    )


def _parts(request: Request, person: Person) -> dict[str, str]:
    pages, context = pages_of(request), page_context(services_of(request), person)
    parts = {"live": pages.render("_live.html", person, **context)}
    if person.role == "owner":
        parts["recent"] = pages.render("_recent.html", person, **context)
    return parts


def page_context(services: Services, person: Person) -> dict[str, Any]:
    """What the parts of the page need."""
    services.journal.refresh()
    snapshot = services.latest.snapshot
    told = figures(
        snapshot,
        services.journal,
        services.storage.cards(services.session),
        texts=services.texts,
        n_items=services.labels.n_items,
        paused=services.storage.open(services.session).paused,
        problem=services.latest.problem,
    )
    is_owner = person.role == "owner"
    return {
        "standing": told,
        "chart": None if snapshot is None else chart(snapshot.history, snapshot.bounds),
        "recent": recent_answers(services.journal, services.cards.words, time.time()) if is_owner else [],
        "choices": services.cards.choices() if is_owner else [],
    }


def _people(services: Services) -> list[dict[str, Any]]:
    """Who has a way in, and which."""
    words = services.texts["links"]
    now = services.storage.now()
    people: dict[str, dict[str, Any]] = {}
    for grant in services.access.grants():
        is_open = grant.revoked is None and now < grant.expires and not (grant.use == "link" and grant.used is not None)
        one = people.setdefault(
            grant.who, {"name": grant.who, "role": grant.role, "is_open": False, "state": words["ended"]}
        )
        if is_open:
            known = one["state"].split(", ") if one["is_open"] else []
            one["is_open"] = True
            one["state"] = ", ".join(dict.fromkeys([*known, *words[grant.use].split(", ")]))
    return list(people.values())[:_MOST_PEOPLE]


# What the owner does ------------------------------------------------------------------------------------------------


@router.post("/pause")
def pause(request: Request, _: Owner, paused: Annotated[Literal["0", "1"], Form()]) -> Response:
    """Give out no new cards, or do so again."""
    services = services_of(request)
    services.storage.pause(services.session, paused=paused == "1")
    return RedirectResponse("owner", 303)


@router.post("/correct")
def correct(
    request: Request,
    person: Owner,
    event: Annotated[int, Form(ge=1, le=MOST_CARDS)],
    choice: Annotated[str, Form(max_length=20)],
    key: Annotated[str, Form(max_length=100)],
) -> Response:
    """Correct an answer; it is marked, since the owner has seen the interval."""
    services = services_of(request)
    services.journal.refresh()
    entry = services.journal.entry(event)
    if entry is None:
        raise HTTPException(404)
    services.cards.correct(person, entry, Reply(choice, key), saw_estimate=True)
    services.estimating.nudge()
    return RedirectResponse("owner", 303)


@router.post("/link")
def make_link(
    request: Request,
    person: Owner,
    name: Annotated[str, Form(max_length=200)],
    role: Annotated[Literal["owner", "expert"], Form()] = "expert",
    use: Annotated[Literal["link", "token"], Form()] = "link",
) -> Response:
    """A new link or token, shown once."""
    services = services_of(request)
    words = services.texts["owner"]
    try:
        secret = services.access.give(use, name, role)
    except TrueupError as error:
        return _overview(request, person, message=str(error.sentence))
    until = datetime.fromtimestamp(time.time() + LIFETIMES[use], tz=UTC).strftime("%Y-%m-%d")
    if use == "token":
        return _overview(request, person, message=words["new_token_text"].format(name=name), secret=secret)
    message = words["new_link_text"].format(name=name, until=until)
    return _overview(request, person, message=message, secret=f"{_base_of(request)}enter?key={secret}")


def _base_of(request: Request) -> str:
    """The address of the folder of this page, as the person who reads it has it: a link must be whole to be sent.

    Only the origin that the browser names and the path of the public address are used; other pages need neither.
    """
    address = services_of(request).address
    origin = request.headers.get("origin") or f"{request.url.scheme}://{request.headers.get('host', '')}"
    return f"{origin}{address.prefix}/"


@router.post("/revoke")
def revoke(request: Request, _: Owner, name: Annotated[str, Form(max_length=200)]) -> Response:
    """End all ways in of a person."""
    services_of(request).access.revoke(name)
    return RedirectResponse("owner", 303)
