"""The pages: the way in, the card and what its script sends, and the owner's page with what the owner takes away."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from itertools import islice
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, Form, HTTPException, Query
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse

from trueup._base.cells import csv_text, safe_cell
from trueup.exceptions import TrueupError
from trueup.serve.card_service import LONGEST_COMMENT, AssignedCard, NoSuchCard, Reply
from trueup.serve.estimating import Row
from trueup.serve.guard import LIFETIMES, Person, is_open
from trueup.serve.services import Services
from trueup.serve.status_words import (
    agreement_of_experts,
    chart,
    duration,
    figures,
    goal,
    isolated,
    recent_answers,
)
from trueup.sessions.log import events_to_json
from trueup.sessions.progress import fold
from trueup.storage import Waiting

_BEARER = "bearer "
_LOOK_AGAIN = 10.0  # seconds; sooner where a card comes back sooner
_SCRIPTS = ("/api/", "/reply", "/renew", "/next", "/previous", "/owner-state", "/owner-events")  # speak JSON


def services_of(request: Request) -> Services:
    """The services of the server that a request came to."""
    services: Services = request.app.state.services
    return services


def pages_of(request: Request) -> Pages:
    """The pages of the server that a request came to."""
    pages: Pages = request.app.state.pages
    return pages


def wants_json(request: Request) -> bool:
    """Whether a script or a program asks, which reads JSON."""
    return request.url.path.startswith(_SCRIPTS)


def caller_of(request: Request) -> str:
    """The address of the other end."""
    return request.client.host if request.client else "?"


def who_asks(request: Request) -> Person | None:
    """Who asks, by cookie or by token; None if nobody has that, or no longer."""
    access = services_of(request).access
    authorization = request.headers.get("authorization", "")
    if authorization:
        is_bearer = authorization[: len(_BEARER)].lower() == _BEARER
        return access.person_of(authorization[len(_BEARER) :].strip() if is_bearer else None, "token")
    return access.person_of(request.cookies.get(access.cookie_name), "cookie")


def signed_in(request: Request) -> Person:
    """Who asks; nobody is let through, nor is who asks too often."""
    services = services_of(request)
    words = services.texts["errors"]
    person = who_asks(request)
    if person is None:
        if not services.entries.takes(caller_of(request), 0.1):
            raise HTTPException(429, words["too_often"], headers={"retry-after": "10"})
        raise HTTPException(401, words["not_signed_in"], headers={"www-authenticate": "Bearer"})
    if not services.requests.takes(f"{person.role} {person.name}"):
        raise HTTPException(429, words["too_often"], headers={"retry-after": "1"})
    return person


def owner_only(request: Request, person: Annotated[Person, Depends(signed_in)]) -> Person:
    """Who asks, if they are the owner."""
    if person.role != "owner":
        raise HTTPException(403, services_of(request).texts["errors"]["wrong_role"])
    return person


def may_see_estimate(request: Request, person: Annotated[Person, Depends(signed_in)]) -> Person:
    """Who asks, if they are the owner or experts are allowed to see the estimate."""
    return person if sees_estimate(services_of(request), person) else owner_only(request, person)


def sees_estimate(services: Services, person: Person) -> bool:
    """Whether a person may see the estimate."""
    return person.role == "owner" or services.look.experts_see_estimate


async def served(request: Request) -> Services:
    """The services, for a page that needs nothing else of the request."""
    return services_of(request)


Served = Annotated[Services, Depends(served)]
SignedIn = Annotated[Person, Depends(signed_in)]
Owner = Annotated[Person, Depends(owner_only)]
Viewer = Annotated[Person, Depends(may_see_estimate)]


class Pages:
    """The templates with what all of them need."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._environment = Environment(
            loader=PackageLoader("trueup.serve"),
            autoescape=select_autoescape(default=True),
            undefined=StrictUndefined,
            auto_reload=False,  # a server goes on with what it began with
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters["fill"] = _fill

    def render(self, template: str, person: Person | None = None, **context: Any) -> str:
        """A template as text."""
        shared = {
            "t": self._services.texts,
            "person": person,
            "session_name": self._services.session,
            "sees_estimate": person is not None and sees_estimate(self._services, person),
            "is_owner": person is not None and person.role == "owner",
            "page": "",
            "up": "",
            "longest_comment": LONGEST_COMMENT,
        }
        return self._environment.get_template(template).render({**shared, **context})

    def page(self, template: str, person: Person | None = None, *, status: int = 200, **context: Any) -> HTMLResponse:
        """A template as an answer, which is kept nowhere: going back must ask again."""
        return HTMLResponse(
            self.render(template, person, **context), status, headers={"cache-control": "no-store, private"}
        )

    def error(self, request: Request, status: int, sentence: str, headers: Mapping[str, str]) -> Response:
        """One sentence on a page."""
        depth = max(request.url.path.count("/") - 1, 0)
        response = self.page("error.html", status=status, code=status, sentence=sentence, up="../" * depth)
        response.headers.update(headers)
        return response

    def place_context(self, person: Person, deal: AssignedCard | None) -> dict[str, Any]:
        """What the card needs."""
        services = self._services
        services.journal.refresh()  # what was saved just now counts, and so does what an earlier server saved
        empty = None if deal is not None else self._empty(person, services.cards.waiting(person))
        return {
            "deal": deal,
            "empty": empty,
            "n_answered": services.journal.n_answered(person.name),
            "goal": goal(services.latest.snapshot, services.texts["goal"], services.labels.n_items),
        }

    def _empty(self, person: Person, waiting: Waiting) -> dict[str, Any]:
        """Why there is no card, truly; the rule that ended the session tells of the estimate, so not to everybody."""
        services = self._services
        words = services.texts["empty"]
        snapshot = services.latest.snapshot
        look_again = _LOOK_AGAIN
        if services.storage.open(services.session).paused:
            sentence = words["paused"]
        elif services.latest.problem is not None:
            sentence = words["broken"]
        elif waiting.n_out and not (snapshot is not None and snapshot.gives_no_cards):
            out = words["out_one"] if waiting.n_out == 1 else words["out"].format(n=waiting.n_out)
            back = waiting.next_back or 0.0
            sentence = f"{out}, {words['next_back'].format(time=duration(back))}."
            look_again = min(_LOOK_AGAIN, back + 0.5)
        elif snapshot is None:
            sentence, look_again = words["drawing"], 1.0
        elif snapshot.finished is not None:
            is_told = sees_estimate(services, person)
            sentence = words["finished"].format(reason=snapshot.finished) if is_told else words["done"]
        else:
            sentence, look_again = words["nothing"], 2.0
        return {"sentence": sentence, "look_again": look_again}


def _fill(text: str, **values: Any) -> str:
    """A text with its marks filled in; names are set apart, so that their direction does not spread."""
    return text.format(**{name: isolated(one) if isinstance(one, str) else one for name, one in values.items()})


router = APIRouter(include_in_schema=False)

# ------------------ What the owner takes away: answers for `evaluate`, a sheet, the whole log and a report.

_NO_STORE = {"cache-control": "no-store, private"}
_ROWS_AT_ONCE = 1_000
_SHEET = (
    *("number", "time", "kind", "item", "answer", "expert"),
    *("seconds", "blind", "purpose", "draw", "propensity", "comment"),
)


@router.get("/export-answers.csv")
def answers(services: Served, _: Owner) -> Response:
    """The truth that stands for each answered item, exactly as named: what ``evaluate --gold`` reads.

    The items were chosen by a strategy, and the file says so.
    """
    names = services.cards.names
    truth = fold([entry.event for entry in services.journal.entries()], names).truth
    answered = np.flatnonzero((truth >= 0) & (truth < len(names.classes))).tolist()
    rows = ((names.items[at], names.classes[truth[at]], "chosen") for at in answered)
    return _streamed(_csv(("item", "label", "drawn"), rows), "answers.csv", "text/csv")


@router.get("/export-sheet.csv")
def sheet(services: Served, _: Owner) -> Response:
    """All that was said, for a spreadsheet: nothing in it is run as a formula."""

    def rows() -> Iterator[Sequence[Any]]:
        for entry in services.journal.entries():
            event = entry.event
            if event.kind == "ask":
                continue
            when = None if event.at is None else datetime.fromtimestamp(event.at, tz=UTC).isoformat(timespec="seconds")
            cells = [entry.number, when, event.kind, event.item, event.truth, event.who, event.seconds, event.blind]
            cells += [event.purpose, event.draw, event.propensity, event.text]
            yield ["" if cell is None else safe_cell(cell) for cell in cells]

    return _streamed(_csv(_SHEET, rows()), "answers-sheet.csv", "text/csv")


@router.get("/export-log.json")
def log(services: Served, _: Owner) -> Response:
    """The whole log, which `ActiveTest.replay` reads."""
    events = [entry.event for entry in services.journal.entries()]

    def parts() -> Iterator[str]:
        yield "["
        for start in range(0, len(events), _ROWS_AT_ONCE):
            records = events_to_json(events[start : start + _ROWS_AT_ONCE])
            yield (",\n" if start else "\n") + ",\n".join(json.dumps(record) for record in records)
        yield "\n]\n"

    return _streamed(parts(), "log.json", "application/json")


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
    left = iter(rows)
    while block := list(islice(left, _ROWS_AT_ONCE)):
        yield csv_text(None, block)


def _streamed(parts: Iterator[str], name: str, media_type: str) -> StreamingResponse:
    encoded = (part.encode("utf-8", "replace") for part in parts)
    return StreamingResponse(encoded, media_type=f"{media_type}; charset=utf-8", headers=_attachment(name))


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"', **_NO_STORE}


# ------------------ The owner's page: figures that move by themselves, recent answers to correct, and who may come in.


@router.get("/owner")
def overview(request: Request, person: Viewer) -> Response:
    """The whole page."""
    return _overview(request, person)


def _overview(request: Request, person: Person, *, message: str = "", secret: str = "") -> Response:
    services = services_of(request)
    context = page_context(services, person) | {"people": [], "agreement": None}
    if person.role == "owner":
        context["people"] = _people(services)
        context["agreement"] = agreement_of_experts(services.labels, services.journal)
    return pages_of(request).page("owner.html", person, page="owner", message=message, secret=secret, **context)


@router.get("/owner-state")
def state(request: Request, person: Viewer) -> JSONResponse:
    """The parts that move, for pages that ask."""
    return JSONResponse(_parts(request, person), headers=_NO_STORE)


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
            if now != seen or silence > 15.0:  # a proxy takes a silent stream for a dead one
                seen, sent = now, time.monotonic()
                parts = await run_in_threadpool(_parts, request, person)
                yield f"event: state\ndata: {json.dumps(parts)}\n\n"
            await asyncio.sleep(0.5)

    return StreamingResponse(events(), media_type="text/event-stream", headers={**_NO_STORE, "x-accel-buffering": "no"})


def _parts(request: Request, person: Person) -> dict[str, str]:
    pages, context = pages_of(request), page_context(services_of(request), person)
    parts = {"live": pages.render("_live.html", person, **context)}
    if person.role == "owner":
        parts["recent"] = pages.render("_recent.html", person, **context)
    return parts


def page_context(services: Services, person: Person) -> dict[str, Any]:
    """What the parts of the page need."""
    snapshot = services.latest.snapshot
    facts = figures(
        snapshot,
        services.journal,
        services.storage.cards(services.session),
        texts=services.texts,
        n_items=services.labels.n_items,
        paused=services.storage.open(services.session).paused,
        problem=services.latest.problem,
    )
    is_owner, words = person.role == "owner", services.texts["owner"]
    history = snapshot.history if snapshot else ()
    chances = [Row(row.n, row.met, row.met, row.met) for row in history if row.met is not None]
    return {
        "session_status": facts,
        "chart": chart(history, snapshot.bounds, words["chart"]) if snapshot else None,
        "chart_of_chance": chart(chances, (0.0, 1.0), words["chart_of_chance"]),
        "recent": recent_answers(services.journal, services.cards.words, time.time()) if is_owner else [],
        "choices": services.cards.choices() if is_owner else [],
    }


def _people(services: Services) -> list[dict[str, Any]]:
    """Who has a way in, and which."""
    words = services.texts["links"]
    now = services.storage.now()
    people: dict[str, dict[str, Any]] = {}
    for grant in services.access.grants():
        ended = {"name": grant.who, "role": grant.role, "is_open": False, "state": words["ended"]}
        row = people.setdefault(grant.who, ended)
        if is_open(grant, now):
            before = row["state"].split(", ") if row["is_open"] else []
            state = ", ".join(dict.fromkeys([*before, *words[grant.use].split(", ")]))
            row |= {"is_open": True, "state": state}
    return list(people.values())[:200]


@router.post("/pause")
def pause(services: Served, _: Owner, paused: Annotated[Literal["0", "1"], Form()]) -> Response:
    """Give out no new cards, or do so again."""
    services.storage.pause(services.session, paused=paused == "1")
    return RedirectResponse("owner", 303)


@router.post("/correct")
def correct(
    services: Served,
    person: Owner,
    event: Annotated[int, Form(ge=1, le=MOST_CARDS)],
    choice: Annotated[str, Form(max_length=20)],
    key: Annotated[str, Form(max_length=100)],
) -> Response:
    """Correct an answer; it is marked, since the owner has seen the interval."""
    entry = services.journal.entry(event)
    if entry is None:
        raise HTTPException(404)
    services.cards.correct(person, entry, Reply(choice, key), saw_estimate=True)
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
    if use == "link":  # it must be whole to be sent: with the address of this page as the person who reads it has it
        origin = request.headers.get("origin") or f"{request.url.scheme}://{request.headers.get('host', '')}"
        secret = f"{origin}{services.address.prefix}/enter?key={secret}"
    return _overview(request, person, message=words[f"new_{use}_text"].format(name=name, until=until), secret=secret)


@router.post("/revoke")
def revoke(services: Served, _: Owner, name: Annotated[str, Form(max_length=200)]) -> Response:
    """End all ways in of a person."""
    services.access.revoke(name)
    return RedirectResponse("owner", 303)


MOST_CARDS = 2**53


class SentReply(BaseModel):
    """What the script of the card sends."""

    card: int = Field(ge=1, le=MOST_CARDS)
    choice: str = Field(max_length=20)
    key: str = Field(max_length=100)
    seconds: float | None = None
    comment: str = Field("", max_length=LONGEST_COMMENT)


class HeldCard(BaseModel):
    """The card that is in sight."""

    card: int = Field(ge=1, le=MOST_CARDS)


@router.get("/enter")
def show_link(request: Request, key: Annotated[str, Query(max_length=200)] = "") -> Response:
    """A button; looking at it uses nothing up, since programs that check mail look, too."""
    services = services_of(request)
    _count_entry(services, request)
    grant = services.access.link(key)
    name = "" if grant is None else grant.who
    return pages_of(request).page("enter.html", is_good=grant is not None, name=name, key=key)


@router.post("/enter")
def use_link(request: Request, key: Annotated[str, Form(max_length=200)] = "") -> Response:
    """Use the link up, and be signed in."""
    services = services_of(request)
    _count_entry(services, request)
    cookie = services.access.enter(key)
    if cookie is None:
        return pages_of(request).page("enter.html", status=403, is_good=False)
    person = services.access.person_of(cookie, "cookie")
    response = RedirectResponse("owner" if person is not None and person.role == "owner" else "./", 303)
    response.set_cookie(
        services.access.cookie_name,
        cookie,
        max_age=int(LIFETIMES["cookie"]),
        path=None,  # the folder of this page, as the browser sees it, whatever a proxy makes of the path
        secure=services.address.is_https,
        httponly=True,
        samesite="lax",
    )
    return response


@router.post("/leave")
def leave(request: Request, _: SignedIn) -> Response:
    """Sign out."""
    services = services_of(request)
    name = services.access.cookie_name
    services.access.leave(request.cookies.get(name, ""))
    response = RedirectResponse("./", 303)
    response.set_cookie(name, "", max_age=0, path=None, httponly=True, samesite="lax")
    return response


def _count_entry(services: Services, request: Request) -> None:
    if not services.entries.takes(caller_of(request)):
        raise HTTPException(429, services.texts["errors"]["too_often"], headers={"retry-after": "10"})


@router.get("/")
def show_card(
    request: Request, person: SignedIn, before: Annotated[int | None, Query(ge=0, le=MOST_CARDS)] = None
) -> Response:
    """The card of now; with `before` the one answered before that card, to be corrected."""
    services, pages = services_of(request), pages_of(request)
    deal = None if before is None else services.cards.previous(person, before or None)
    deal = services.cards.current(person) if deal is None else deal
    context = pages.place_context(person, deal)
    store = f"{services.access.cookie_name} {person.name}"
    renew = services.cards.lease / 4
    return pages.page(
        "card.html", person, page="card", store=store, renew=renew, card_kind=services.maker.layout.kind, **context
    )


@router.post("/answer")
def answer_without_script(
    services: Served,
    person: SignedIn,
    card: Annotated[int, Form(ge=1, le=MOST_CARDS)],
    choice: Annotated[str, Form(max_length=20)],
    key: Annotated[str, Form(max_length=100)],
    other: Annotated[str, Form(max_length=20)] = "",
    comment: Annotated[str, Form(max_length=LONGEST_COMMENT)] = "",
) -> Response:
    """What the form sends where scripts are off."""
    _keep(services, person, card, Reply(other if choice == "other" else choice, key, None, comment))
    return RedirectResponse("./", 303)


@router.post("/reply")
def answer(request: Request, person: SignedIn, sent: SentReply) -> JSONResponse:
    """Keep an answer; the next card comes back with it."""
    deal = _keep(services_of(request), person, sent.card, Reply(sent.choice, sent.key, sent.seconds, sent.comment))
    return JSONResponse(_placed(request, person, deal), headers=_NO_STORE)


def _keep(services: Services, person: Person, card: int, reply: Reply) -> AssignedCard | None:
    try:
        return services.cards.answer(person, card, reply, saw_estimate=sees_estimate(services, person))
    except NoSuchCard as error:
        raise HTTPException(404, services.texts["errors"]["no_card"]) from error


def _placed(request: Request, person: Person, deal: AssignedCard | None) -> dict[str, Any]:
    pages = pages_of(request)
    html = pages.render("_place.html", person, **pages.place_context(person, deal))
    return {"html": html, "card": None if deal is None else deal.number}


@router.get("/next")
def next_card(request: Request, person: SignedIn) -> JSONResponse:
    """The card of now, for a page that waits."""
    deal = services_of(request).cards.current(person)
    return JSONResponse(_placed(request, person, deal), headers=_NO_STORE)


@router.get("/previous")
def previous_card(
    request: Request, person: SignedIn, before: Annotated[int, Query(ge=0, le=MOST_CARDS)] = 0
) -> JSONResponse:
    """The card that the person answered last, or before that card."""
    deal = services_of(request).cards.previous(person, before or None)
    if deal is None:
        return JSONResponse({}, headers=_NO_STORE)
    return JSONResponse({**_placed(request, person, deal), "answered": deal.answered}, headers=_NO_STORE)


@router.post("/renew")
def renew(services: Served, person: SignedIn, held: HeldCard) -> JSONResponse:
    """Hold the card that is in sight for longer."""
    return JSONResponse({"held": services.cards.renew(person, held.card)})


@router.get("/image")
def image(services: Served, person: SignedIn, card: Annotated[int, Query(ge=1, le=MOST_CARDS)]) -> Response:
    """The image of a card."""
    try:
        name = services.maker.image_path(services.cards.position_of(card))
    except NoSuchCard as error:
        raise HTTPException(404) from error
    file = None if services.images is None or name is None else services.images.find(name)
    if file is None:
        raise HTTPException(404)
    path, media_type = file
    saved = {"content-disposition": "attachment"} if media_type == "image/svg+xml" else {}
    return FileResponse(path, media_type=media_type, headers={"cache-control": "private, max-age=3600", **saved})
