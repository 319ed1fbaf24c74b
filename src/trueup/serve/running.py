"""A server from a session: the estimate in its process, links for those who work, and the end."""

from __future__ import annotations

import logging
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Annotated, Any

import numpy as np
import uvicorn
from fastapi import APIRouter, FastAPI, Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.staticfiles import StaticFiles

from trueup._base.validation import check_integer, check_number
from trueup.active import ESTIMATORS, ActiveTest
from trueup.active.estimators import MetricEstimator
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter, TrueupError
from trueup.serve.card_service import LEASE, LONGEST_COMMENT, OUTCOMES, OUTSIDE, Reply
from trueup.serve.estimating import InProcess, LatestSnapshot, MakeSession
from trueup.serve.guard import LOOPBACK, Access, Address, Guard, Person, Role, is_open
from trueup.serve.pages import Owner, Pages, Served, SignedIn, Viewer, sees_estimate, wants_json
from trueup.serve.pages import router as pages_for_people
from trueup.serve.services import Look, Services
from trueup.sessions.log import events_to_json, plain_name, read_name
from trueup.sessions.session import Session
from trueup.storage import open_storage

_MOST_ANSWERS = 1_000


class Refused(BaseModel):
    """Why a request was refused, in one sentence."""

    error: str


# ------------------ The JSON API: the verbs of `ActiveTest` for programs, with a token in the header Authorization.

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
def status(services: Served, person: SignedIn) -> Status:
    """Who the caller is, and what the session is about."""
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
def ask(services: Served, person: SignedIn) -> Asked:
    """The card to answer now, held for the caller; the same until it is answered."""
    deal = services.cards.current(person)
    if deal is None:
        waiting = services.cards.waiting(person)
        return Asked(card=None, n_out=waiting.n_out, next_back=waiting.next_back)
    at = services.cards.position_of(deal.number)
    columns = {name: services.labels.item_column(name)[at] for name in services.labels.item_table.given}
    fields = {name: plain_name(value) for name, value in columns.items()}
    odd = {k: str(v) for k, v in fields.items() if not (v is None or isinstance(v, str | int | float | list | dict))}
    card = AskedCard(
        number=deal.number,
        item=plain_name(services.cards.names.items[at]),
        seconds_left=deal.seconds_left,
        fields=fields | odd,
    )
    return Asked(card=card)


@router.post("/tell")
def tell(services: Served, person: SignedIn, batch: AnswerBatch) -> Accepted:
    """Keep answers."""
    return _keep(services, person, _replies(services, batch))


@router.post("/skip")
def skip(services: Served, person: SignedIn, skipped: Skipped) -> Accepted:
    """Name no class for items."""
    key = skipped.key or secrets.token_urlsafe(18)
    assert skipped.how in OUTSIDE
    items = [_item(services, item) for item in skipped.items]
    return _keep(services, person, [(item, Reply(skipped.how, f"{key}:{k}")) for k, item in enumerate(items)])


@router.post("/correct")
def correct(services: Served, person: SignedIn, batch: AnswerBatch) -> Accepted:
    """Change what the caller said; the owner may change what anybody said, which is marked."""
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
def estimate(services: Served, _: Viewer) -> dict[str, Any]:
    """Where the session stands: the latest estimate with its draws, and when the work on it began."""
    snapshot = services.latest.snapshot
    return {"ready": False} if snapshot is None else {"ready": True, **snapshot.to_dict()}


@router.get("/log")
def log(services: Served, _: Owner, since: Annotated[int, Query(ge=0, le=2**53)] = 0) -> dict[str, Any]:
    """The log after the first `since` events, some thousand at a time."""
    n = services.journal.refresh()
    events = [entry.event for entry in services.journal.entries(since)[:5_000]]
    return {"n": n, "events": events_to_json(events)}


# Nothing is reported to anybody, whatever the environment says. Versions without telemetry take no notice.
_NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def make_app(services: Services) -> Guard:
    """The application of a server."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        services.estimating.start()
        try:
            yield
        finally:
            services.stopping.set()
            services.estimating.stop()

    app = FastAPI(
        title="trueup vetting",
        version="1",
        description="Ask, tell, skip, correct and estimate over the network; the verbs of `trueup.ActiveTest`.",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
        redirect_slashes=False,  # it would build an absolute address
        telemetry=_NO_TELEMETRY,
    )
    pages = Pages(services)
    app.state.services, app.state.pages = services, pages
    app.mount("/static", StaticFiles(packages=[("trueup.serve", "static")]), name="static")
    for routes in (pages_for_people, router):
        app.include_router(routes)

    async def refuse(request: Request, error: Exception) -> Response:
        """One sentence, as a page or as JSON; never a traceback."""
        words, status = services.texts["errors"], 422
        if isinstance(error, HTTPException):
            status = error.status_code
            sentence = words["not_found"] if status == 404 else str(error.detail)
        elif isinstance(error, RequestValidationError):
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"] if part != "body")
            sentence = f"{where}: {first['msg']}" if where else str(first["msg"])
        else:
            assert isinstance(error, TrueupError)
            sentence = str(error.sentence)
        headers = dict(getattr(error, "headers", None) or {})
        if wants_json(request):
            return JSONResponse({"error": sentence}, status, headers=headers)
        return pages.error(request, status, sentence, headers=headers)

    for kind in (HTTPException, RequestValidationError, TrueupError):
        app.add_exception_handler(kind, refuse)
    return Guard(app, address=services.address)


class Server(uvicorn.Server):
    """A server that tells open streams to end, and says where it listens."""

    def __init__(
        self,
        services: Services,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        ready: Callable[[str], None] | None = None,
    ) -> None:
        config = uvicorn.Config(
            make_app(services),
            host=host,
            port=port,
            log_level="warning",
            access_log=False,  # links are secrets
            proxy_headers=False,  # nothing rests on what a proxy says
            server_header=False,
            ws="none",  # nothing here speaks it
            limit_concurrency=400,  # more are turned away at once, before the system has no more to give
            timeout_graceful_shutdown=1,
        )
        logging.getLogger("python_multipart").setLevel(logging.ERROR)  # it warns of every body that makes no sense
        super().__init__(config)
        self._services = services
        self._ready = ready
        self.slowest_head = 20.0  # seconds without a whole request; silent connections are ended sooner
        self._waiting: dict[Any, tuple[Any, float]] = {}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets=sockets)
        if self._ready is not None and not self.should_exit:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether to end."""
        if counter % 10 == 0:
            self._end_slow_connections(time.monotonic())
        return await super().on_tick(counter)

    def _end_slow_connections(self, now: float) -> None:
        """End connections on which a request comes byte by byte: uvicorn would wait for ever."""
        waiting: dict[Any, tuple[Any, float]] = {}
        connections: list[Any] = list(self.server_state.connections)
        for connection in connections:
            cycle = connection.cycle  # the last request; another one begins the wait anew
            if cycle is None or cycle.response_complete:
                before, since = self._waiting.get(connection, (cycle, now))
                waiting[connection] = (cycle, since if before is cycle else now)
        self._waiting = waiting
        for connection, (_, since) in waiting.items():
            if now - since > self.slowest_head:
                connection.transport.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ctrl-C and the like: streams end by themselves."""
        self._services.stopping.set()
        super().handle_exit(sig, frame)


def check_port(host: str, port: int) -> None:
    """Stop where a server could not listen, before anything is worked out for it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if sys.platform != "win32":  # there it would allow two servers at one port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            raise InvalidParameter(
                f"the server must be able to listen at `port={port}` of {host}, got {error!s:.100}; end the program "
                "that listens there, or pass another port, 0 for any that is free",
                parameter="port",
            ) from error


Announce = Callable[[str], Any]


def check_estimator(estimator: str | MetricEstimator) -> None:
    """Stop where a team would decide when to stop by an interval that nothing warrants."""
    made = ESTIMATORS.make(estimator, {}, base=MetricEstimator)
    if made.is_warranted:
        return
    others = ", ".join(f'"{name}"' for name in ESTIMATORS.names() if ESTIMATORS[name].is_warranted)
    raise InvalidParameter(
        f'`estimator` of a session that is served must hold whatever the votes are, got "{made.name}", which believes '
        f"them and was measured to hold too rarely where people err together; use one of {others}",
    )


@dataclass(frozen=True)
class ServerSettings:
    """Where the server listens, and for how long a card is held."""

    host: str = "127.0.0.1"  # The address to listen at; this machine only by default
    port: int = 8000  # 0 for any that is free
    public_url: str | None = None  # The address that people open, where a proxy stands in front
    lease: float = LEASE  # Seconds for which a card is held; it is renewed while the page is in sight
    owner: str = "owner"  # The name of the owner
    experts: tuple[str, ...] = ()  # Who gets a link when the server starts, unless they have one

    def __post_init__(self) -> None:
        check_integer(self.port, name="port", low=0)
        check_number(self.lease, name="lease", low=1.0, high=86_400.0)
        if self.host not in LOOPBACK and self.public_url is None:  # to others, without a word on how they reach it
            raise InvalidParameter(
                f"`host` {self.host!r} opens the server to other machines, got no public address; put a proxy with "
                "https in front, let it speak to 127.0.0.1, and pass the address that people open with "
                "`public_url=https://…`",
            )
        Address.of(self.public_url)


def run_server(
    make: MakeSession,
    url: str,
    name: str,
    labels: Labels,
    *,
    settings: ServerSettings | None = None,
    look: Look | None = None,
    seed: int = 0,
    announce: Announce | None = None,
) -> None:
    """Serve a session until Ctrl-C."""
    settings, look, say = settings or ServerSettings(), look or Look(), announce or (lambda _: None)
    look.maker(labels, seed)  # what is wrong with the cards is said before anything is worked out
    check_port(settings.host, settings.port)
    storage, latest = open_storage(url), LatestSnapshot()
    estimating = InProcess(make, storage, url, name, latest)
    estimating.start()
    try:
        estimating.wait_until_ready()
        address = Address.of(settings.public_url)
        services = Services(storage, name, labels, latest, estimating, address, look, seed, settings.lease)
        for note in storage.notes:
            say(note)

        def ready(address: str) -> None:
            base = base_url(settings, address)
            say(f"Serving {name!r} at {base}; everything is kept in {storage.url}. Ctrl-C ends it.")
            now = storage.now()
            has_way_in = {grant.who for grant in services.access.grants() if is_open(grant, now)}
            say(link_line(services.access, settings.owner, "owner", base))
            for expert in settings.experts:
                if expert not in has_way_in:
                    say(link_line(services.access, expert, "expert", base))

        with suppress(KeyboardInterrupt):  # that is how a server is ended
            Server(services, host=settings.host, port=settings.port, ready=ready).run()
    finally:
        estimating.stop()
        storage.close()


def base_url(settings: ServerSettings, address: str) -> str:
    """The address that people open, with a slash at its end."""
    return address if settings.public_url is None else settings.public_url.rstrip("/") + "/"


def link_line(access: Access, name: str, role: Role, base: str) -> str:
    """A new link, with whom it is for."""
    return f"{name} ({role}), once: {base}enter?key={access.give('link', name, role)}"


def run(
    session: Session,
    url: str,
    name: str,
    *,
    settings: ServerSettings | None = None,
    look: Look | None = None,
    announce: Announce | None = None,
) -> None:
    """Serve a session that was made in Python with ``storage=url`` and ``name=name``, also a `CleaningAdvisor`."""
    storage = open_storage(url)
    try:
        record = storage.find(name)
    finally:
        storage.close()
    if record is None:
        raise InvalidParameter(
            f"the session must be in the storage, got none of the name {name!r}; make it with `storage={url}` and "
            f"`name={name}`"
        )
    if isinstance(session, ActiveTest):
        check_estimator(session.estimator)
    unbound = session.replay([])  # a copy without a log, which can travel
    make = partial(unbound.replay, [])
    run_server(make, url, name, session.labels, settings=settings, look=look, announce=announce)


# ------------------ A session to try the app with

_THINGS = ("the kettle", "this lamp", "the train ticket app", "my new headphones", "the hotel room", "the bread knife")
MOODS = {
    "bad": (
        "I sent {thing} back after two days.",
        "{thing} broke, and nobody answered my letters.",
        "I would not buy {thing} again.",
    ),
    "fine": (
        "{thing} does what it says, no more.",
        "{thing} arrived on time. It is as in the picture.",
        "I have not much to say about {thing}.",
    ),
    "good": (
        "{thing} made my mornings better.",
        "I have told all my friends about {thing}.",
        "{thing} is worth every penny, even after a year.",
    ),
}
_MORE = ("It came in a brown box.", "My neighbour has the same one.", "I used it in the rain, too.", "Thank you.")
_PEOPLE = ("wren", "finch", "robin", "swift", "heron")


_REMOVE = """
import pathlib, shutil, sys, time
sys.stdin.read()
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not pathlib.Path(sys.argv[1]).exists():
        break
    time.sleep(0.2)
"""


@contextmanager
def passing_folder() -> Iterator[str]:
    """A folder that is gone afterwards, also where this process is killed: another one waits for its end."""
    folder = tempfile.mkdtemp(prefix="trueup-demo-")
    remover = [sys.executable, "-I", "-c", _REMOVE, folder]
    with subprocess.Popen(remover, stdin=subprocess.PIPE, start_new_session=True):
        yield folder


def demo_data(n_items: int = 300) -> tuple[dict[str, str], Labels]:
    """Predictions and votes for made-up reviews, with their text."""
    rng = np.random.default_rng(0)
    moods = list(MOODS)
    truth = rng.integers(len(moods), size=n_items)
    items = [f"review-{k:03d}" for k in range(1, n_items + 1)]

    def guesses(accuracy: float) -> list[str]:
        is_right = rng.random(n_items) < accuracy
        other = (truth + rng.integers(1, len(moods), size=n_items)) % len(moods)
        return [moods[k] for k in np.where(is_right, truth, other)]

    votes: dict[str, list[str]] = {"item": [], "labeler": [], "label": []}
    for person, accuracy in zip(_PEOPLE, (0.85, 0.8, 0.75, 0.7, 0.6), strict=True):
        chosen = rng.random(n_items) < 0.6
        for item, guess, is_voted in zip(items, guesses(accuracy), chosen | (person == _PEOPLE[0]), strict=True):
            if is_voted:
                votes["item"].append(item)
                votes["labeler"].append(person)
                votes["label"].append(guess)
    texts = []
    for k in truth:
        thing, sentence = _THINGS[int(rng.integers(len(_THINGS)))], MOODS[moods[k]][int(rng.integers(3))]
        text = f"{sentence.format(thing=thing)} {_MORE[int(rng.integers(len(_MORE)))]}"
        texts.append(text[0].upper() + text[1:])
    labels = Labels.from_frame(votes, classes=moods).with_items({"item": items, "review": texts})
    return dict(zip(items, guesses(0.8), strict=True)), labels
