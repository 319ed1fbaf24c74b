"""The pages of experts: the way in, the card, and what its script sends."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response

from trueup.serve.card_service import LONGEST_COMMENT, NoSuchCard, Reply
from trueup.serve.guard import LIFETIMES, Person
from trueup.serve.rendering import SignedIn, caller_of, pages_of, sees_estimate, services_of
from trueup.serve.services import Services

router = APIRouter(include_in_schema=False)

_RENEWALS = 4  # in the time of a lease
_NO_STORE = {"cache-control": "no-store, private"}
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


# The way in ---------------------------------------------------------------------------------------------------------


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


# The card -----------------------------------------------------------------------------------------------------------


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
    renew = services.cards.lease / _RENEWALS
    return pages.page(
        "card.html", person, page="card", store=store, renew=renew, card_kind=services.maker.layout.kind, **context
    )


@router.post("/answer")
def answer_without_script(
    request: Request,
    person: SignedIn,
    card: Annotated[int, Form(ge=1, le=MOST_CARDS)],
    choice: Annotated[str, Form(max_length=20)],
    key: Annotated[str, Form(max_length=100)],
    other: Annotated[str, Form(max_length=20)] = "",
    comment: Annotated[str, Form(max_length=LONGEST_COMMENT)] = "",
) -> Response:
    """What the form sends where scripts are off."""
    _keep(services_of(request), person, card, Reply(other if choice == "other" else choice, key, None, comment))
    return RedirectResponse("./", 303)


@router.post("/reply")
def answer(request: Request, person: SignedIn, sent: SentReply) -> JSONResponse:
    """Keep an answer; the next card comes back with it."""
    deal = _keep(services_of(request), person, sent.card, Reply(sent.choice, sent.key, sent.seconds, sent.comment))
    return JSONResponse(_placed(request, person, deal), headers=_NO_STORE)


def _keep(services: Services, person: Person, card: int, reply: Reply) -> Any:
    try:
        _, deal = services.cards.answer(person, card, reply, saw_estimate=sees_estimate(services, person))
    except NoSuchCard as error:
        raise HTTPException(404, services.texts["errors"]["no_card"]) from error
    services.estimating.nudge()
    return deal


def _placed(request: Request, person: Person, deal: Any) -> dict[str, Any]:
    html = pages_of(request).place(person, deal)
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
def renew(request: Request, person: SignedIn, held: HeldCard) -> JSONResponse:
    """Hold the card that is in sight for longer."""
    return JSONResponse({"held": services_of(request).cards.renew(person, held.card)})


@router.get("/image")
def image(request: Request, person: SignedIn, card: Annotated[int, Query(ge=1, le=MOST_CARDS)]) -> Response:
    """The image of a card."""
    services = services_of(request)
    try:
        name = services.maker.image_path(services.cards.position_of(card))
    except NoSuchCard as error:
        raise HTTPException(404) from error
    file = None if services.images is None or name is None else services.images.find(name)
    if file is None:
        raise HTTPException(404)
    headers = {"cache-control": "private, max-age=3600"}
    if file.is_attachment:
        headers["content-disposition"] = "attachment"
    return FileResponse(file.path, media_type=file.media_type, headers=headers)
