"""A server from a session: the estimate in its process, links for those who work, and the end."""

from __future__ import annotations

import logging
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.staticfiles import StaticFiles

import trueup.serve
from trueup._base.validation import check_integer, check_number
from trueup.active import ESTIMATORS, ActiveTest
from trueup.active.estimators import MetricEstimator
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter, TrueupError
from trueup.serve.api import router as programs
from trueup.serve.card_service import LEASE
from trueup.serve.estimating import InProcess, LatestSnapshot, MakeSession
from trueup.serve.guard import LOOPBACK, Access, Address, Guard, Role
from trueup.serve.pages import router as pages_for_people
from trueup.serve.rendering import Pages, wants_json
from trueup.serve.services import Look, Services, make_services
from trueup.sessions.session import Session
from trueup.storage import Storage, open_storage

# Nothing is told to anybody, whatever the environment says. Versions without telemetry take no notice.
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
    folder = trueup.serve.__path__[0]
    app.mount("/static", StaticFiles(directory=f"{folder}/static"), name="static")
    for routes in (pages_for_people, programs):
        app.include_router(routes)

    async def refuse(request: Request, error: Exception) -> Response:
        """One sentence, as a page or as JSON; never a traceback."""
        status, sentence = _told(services, error)
        if wants_json(request):
            return JSONResponse({"error": sentence}, status, headers=_headers(error))
        return pages.error(request, status, sentence, headers=_headers(error))

    app.add_exception_handler(HTTPException, refuse)
    app.add_exception_handler(RequestValidationError, refuse)
    app.add_exception_handler(TrueupError, refuse)
    return Guard(app, address=services.address)


def _told(services: Services, error: Exception) -> tuple[int, str]:
    words = services.texts["errors"]
    if isinstance(error, HTTPException):
        return error.status_code, words["not_found"] if error.status_code == 404 else str(error.detail)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        return 422, f"{where}: {first['msg']}" if where else str(first["msg"])
    assert isinstance(error, TrueupError)
    return 422, str(error.sentence)


def _headers(error: Exception) -> dict[str, str]:
    return dict(getattr(error, "headers", None) or {})


_GRACE = 1  # seconds that requests and streams get to end
_MOST_CONNECTIONS = 400  # more are turned away at once, before the system has no more to give
_SLOWEST_HEAD = 20.0  # seconds a connection may be without a whole request; silent ones are ended sooner


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
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE,
        )
        logging.getLogger("python_multipart").setLevel(logging.ERROR)  # it warns of every body that makes no sense
        super().__init__(config)
        self._services = services
        self._ready = ready
        self.slowest_head = _SLOWEST_HEAD
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


def check_binding(host: str, public_url: str | None) -> None:
    """Stop before a server is opened to others without a word on how they reach it."""
    if host in LOOPBACK or public_url is not None:
        return
    raise InvalidParameter(
        f"`host` {host!r} opens the server to other machines, got no public address; put a proxy with https in front, "
        "let it speak to 127.0.0.1, and pass the address that people open with `public_url=https://…`",
    )


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
        check_binding(self.host, self.public_url)
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
    settings = ServerSettings() if settings is None else settings
    (look or Look()).maker(labels, seed)  # what is wrong with the cards is said before anything is worked out
    check_port(settings.host, settings.port)
    say = announce or (lambda _: None)
    latest = LatestSnapshot()
    with_storage = open_storage(url)
    estimating = InProcess(make, with_storage, url, name, latest)
    estimating.start()
    try:
        estimating.wait_until_ready()
        services = make_services(
            with_storage,
            name,
            labels,
            latest,
            estimating,
            address=Address.of(settings.public_url),
            look=look,
            seed=seed,
            lease=settings.lease,
        )
        for note in with_storage.notes:
            say(note)

        def ready(address: str) -> None:
            base = base_url(settings, address)
            say(f"Serving {name!r} at {base}; everything is kept in {with_storage.url}. Ctrl-C ends it.")
            for line in first_links(services.access, with_storage, settings, base):
                say(line)

        with suppress(KeyboardInterrupt):  # that is how a server is ended
            Server(services, host=settings.host, port=settings.port, ready=ready).run()
    finally:
        estimating.stop()
        with_storage.close()


def base_url(settings: ServerSettings, address: str) -> str:
    """The address that people open, with a slash at its end."""
    return address if settings.public_url is None else settings.public_url.rstrip("/") + "/"


def first_links(access: Access, storage: Storage, settings: ServerSettings, base: str) -> Iterable[str]:
    """A line for the owner, and for each expert who has no way in yet."""
    now = storage.now()
    has_way_in = {
        grant.who
        for grant in access.grants()
        if grant.revoked is None and grant.expires > now and not (grant.use == "link" and grant.used is not None)
    }
    people: list[tuple[str, Role]] = [(settings.owner, "owner")]
    people += [(expert, "expert") for expert in settings.experts if expert not in has_way_in]
    for name, role in people:
        yield link_line(access, name, role, base)


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
    run_server(partial(_itself, unbound), url, name, session.labels, settings=settings, look=look, announce=announce)


def _itself(session: Session) -> Session:
    return session
