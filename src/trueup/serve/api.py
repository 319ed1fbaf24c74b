"""The JSON API: the verbs of `ActiveTest` for programs, with a token in the header ``Authorization: Bearer …``."""

from __future__ import annotations

import secrets
from collections.abc import Hashable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from trueup.exceptions import InvalidParameter
from trueup.serve.card_service import LONGEST_COMMENT, OUTCOMES, OUTSIDE, Reply
from trueup.serve.guard import Person
from trueup.serve.rendering import Owner, SignedIn, Viewer, sees_estimate, services_of
from trueup.serve.services import Services
from trueup.sessions.log import events_to_json, plain_name, read_name

_MOST_ANSWERS = 1_000
_MOST_EVENTS = 5_000


class Refused(BaseModel):
    """Why a request was refused, in one sentence."""

    error: str


router = APIRouter(
    prefix="/api",
    tags=["vetting"],
    responses={code: {"model": Refused} for code in (400, 401, 403, 404, 413, 421, 422, 429)},
)

# Names are text or numbers; one that is made of several parts is a list.
_Part = str | int | Annotated[float, Field(allow_inf_nan=False)]
Name = _Part | Annotated[list[_Part], Field(max_length=20)]


class Answer(BaseModel):
    """What is true of an item."""

    model_config = ConfigDict(extra="forbid")
    item: Name
    truth: Name
    seconds: float | None = Field(None, ge=0, allow_inf_nan=False)
    comment: str = Field("", max_length=LONGEST_COMMENT)


class AnswerBatch(BaseModel):
    """Answers; all are checked before any counts."""

    model_config = ConfigDict(extra="forbid")
    answers: list[Answer] = Field(min_length=1, max_length=_MOST_ANSWERS)
    key: str | None = Field(None, min_length=1, max_length=80, pattern=r"^[!-~]+$")


class Skipped(BaseModel):
    """Items without a class: for later, for which nobody can tell, or of a class that is not listed."""

    model_config = ConfigDict(extra="forbid")
    items: list[Name] = Field(min_length=1, max_length=_MOST_ANSWERS)
    how: str = Field("cannot-tell", pattern="^(later|cannot-tell|none-of-these)$")
    key: str | None = Field(None, min_length=1, max_length=80, pattern=r"^[!-~]+$")


class AskedCard(BaseModel):
    """A card that is held for the caller."""

    number: int
    item: Any
    seconds_left: float
    fields: dict[str, Any]


class Asked(BaseModel):
    """The card to answer now, if there is one, and why not."""

    card: AskedCard | None
    n_out: int = 0
    next_back: float | None = None


class Accepted(BaseModel):
    """How many answers came in."""

    n: int


class Status(BaseModel):
    """What every member of a session may know of it."""

    session: str
    name: str
    role: str
    classes: list[Any]
    n_items: int
    n_answered: int
    paused: bool


@router.get("/status")
def status(request: Request, person: SignedIn) -> Status:
    """Who the caller is, and what the session is about."""
    services = services_of(request)
    services.journal.refresh()
    return Status(
        session=services.session,
        name=person.name,
        role=person.role,
        classes=[plain_name(name) for name in services.cards.names.classes],
        n_items=services.labels.n_items,
        n_answered=services.journal.n_answered(person.name),
        paused=services.storage.open(services.session).paused,
    )


@router.post("/ask")
def ask(request: Request, person: SignedIn) -> Asked:
    """The card to answer now, held for the caller; the same until it is answered."""
    services = services_of(request)
    deal = services.cards.current(person)
    if deal is None:
        waiting = services.cards.waiting(person)
        return Asked(card=None, n_out=waiting.n_out, next_back=waiting.next_back)
    at = services.cards.position_of(deal.number)
    columns = {name: services.labels.item_column(name)[at] for name in services.labels.item_table.given}
    card = AskedCard(
        number=deal.number,
        item=plain_name(services.cards.names.items[at]),
        seconds_left=deal.seconds_left,
        fields={name: _json_value(value) for name, value in columns.items()},
    )
    return Asked(card=card)


def _json_value(value: Any) -> Any:
    plain = plain_name(value)
    return plain if isinstance(plain, str | int | float | bool | list | dict) or plain is None else str(plain)


@router.post("/tell")
def tell(request: Request, person: SignedIn, batch: AnswerBatch) -> Accepted:
    """Keep answers."""
    return _keep(services_of(request), person, _replies(services_of(request), batch))


@router.post("/skip")
def skip(request: Request, person: SignedIn, skipped: Skipped) -> Accepted:
    """Name no class for items."""
    services = services_of(request)
    key = skipped.key or secrets.token_urlsafe(18)
    assert skipped.how in OUTSIDE
    items = [_item(services, item) for item in skipped.items]
    return _keep(services, person, [(item, Reply(skipped.how, f"{key}:{k}")) for k, item in enumerate(items)])


@router.post("/correct")
def correct(request: Request, person: SignedIn, batch: AnswerBatch) -> Accepted:
    """Change what the caller said; the owner may change what anybody said, which is marked."""
    services = services_of(request)
    replies = _replies(services, batch)
    services.journal.refresh()
    entries = []
    for item, reply in replies:
        said = [
            entry
            for entry in services.journal.of_item(item)
            if entry.event.kind in OUTCOMES and (person.role == "owner" or entry.event.who == person.name)
        ]
        if not said:
            raise InvalidParameter(f"only an answer can be corrected, got none of yours for {item!r:.60}; tell one")
        entries.append((said[-1], reply))
    for entry, reply in entries:
        services.cards.correct(person, entry, reply, saw_estimate=sees_estimate(services, person))
    return Accepted(n=len(entries))


def _replies(services: Services, batch: AnswerBatch) -> list[tuple[Hashable, Reply]]:
    key = batch.key or secrets.token_urlsafe(18)
    names = services.cards.names
    replies = []
    for k, answer in enumerate(batch.answers):
        item = _item(services, answer.item)
        code = names.code(read_name(answer.truth), item)
        replies.append((item, Reply(str(code), f"{key}:{k}", answer.seconds, answer.comment)))
    return replies


def _item(services: Services, name: Any) -> Hashable:
    names = services.cards.names
    item: Hashable = names.items[names.position(read_name(name))]
    return item


def _keep(services: Services, person: Person, replies: list[tuple[Hashable, Reply]]) -> Accepted:
    for item, reply in replies:
        services.cards.say(person, item, reply, saw_estimate=sees_estimate(services, person))
    return Accepted(n=len(replies))


@router.get("/estimate")
def estimate(request: Request, _: Viewer) -> dict[str, Any]:
    """Where the session stands: the latest estimate with its draws, and when the work on it began."""
    snapshot = services_of(request).latest.snapshot
    return {"ready": False} if snapshot is None else {"ready": True, **snapshot.to_dict()}


@router.get("/log")
def log(request: Request, _: Owner, since: Annotated[int, Query(ge=0, le=2**53)] = 0) -> dict[str, Any]:
    """The log after the first `since` events, some thousand at a time."""
    services = services_of(request)
    n = services.journal.refresh()
    events = [entry.event for entry in services.journal.entries(since)[:_MOST_EVENTS]]
    return {"n": n, "events": events_to_json(events)}
