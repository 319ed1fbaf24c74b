"""Pages from templates, and who asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, HTTPException
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from trueup.serve.card_service import LONGEST_COMMENT, AssignedCard
from trueup.serve.guard import Person
from trueup.serve.services import Services
from trueup.serve.status_words import duration, goal, isolated
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

    def place(self, person: Person, deal: AssignedCard | None) -> str:
        """The card, or why there is none, without the page around it."""
        return self.render("_place.html", person, **self.place_context(person, deal))

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
