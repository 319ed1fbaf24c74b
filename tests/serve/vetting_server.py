"""A small session with a server around it, in this process and with all of its real parts."""

import http.client
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from starlette.testclient import TestClient
from threaded import InThread

import trueup as tu
from trueup.serve.estimating import LatestSnapshot
from trueup.serve.guard import Address, Guard
from trueup.serve.running import Server, make_app
from trueup.serve.services import Look, Services
from trueup.storage import Storage, open_storage

OWN_SITE = {"sec-fetch-site": "same-origin"}
HANGS_AFTER = 60.0


@dataclass
class Vetting:
    """A session that is served."""

    storage: Storage
    services: Services
    app: Guard
    truth: dict[Any, Any]
    clients: list[TestClient] = field(default_factory=list)

    def client(self) -> TestClient:
        """A browser without a cookie, so to speak."""
        client = TestClient(self.app, base_url="http://localhost", raise_server_exceptions=False)
        client.headers.update(OWN_SITE)
        return client

    def signed_in(self, name: str, role: str = "expert") -> TestClient:
        """A browser of someone who has used their link."""
        client = self.client()
        key = self.services.access.give("link", name, role)  # type: ignore[arg-type]
        response = client.post("/enter", data={"key": key}, follow_redirects=False)
        assert response.status_code == 303, (response.status_code, self.services.access.link(key), response.text)
        return client

    def program(self, name: str, role: str = "expert") -> TestClient:
        """A program with a token."""
        client = TestClient(self.app, base_url="http://localhost", raise_server_exceptions=False)
        client.headers["authorization"] = f"Bearer {self.services.access.give('token', name, role)}"  # type: ignore[arg-type]
        return client


def wait_for(sign: Callable[[], Any]) -> Any:
    """What a sign says once it says anything; waiting for ever is a failure."""
    until = time.monotonic() + HANGS_AFTER
    while not (answer := sign()):
        assert time.monotonic() < until, "nothing came"
        time.sleep(0.01)
    return answer


def some_data(n_items: int = 120, columns: dict[str, list[Any]] | None = None) -> tuple[Any, Any, dict[Any, Any]]:
    """Predictions, votes with a text for each item, and the truth."""
    sim = tu.simulate.dawid_skene(n_items=n_items, n_labelers=5, random_state=0)
    items = sim.labels.items.tolist()
    columns = {"text": [f"What is item {item}?" for item in items]} if columns is None else columns
    labels = sim.labels.with_items({"item": items, **columns})
    truth = dict(zip(items, np.asarray(sim.truth).tolist(), strict=True))
    rng = np.random.default_rng(1)
    said = {item: code if rng.random() < 0.8 else 1 - code for item, code in truth.items()}
    return said, labels, truth


@cache
def plain_data(n_items: int) -> tuple[Any, Any, dict[Any, Any]]:
    """The same for many tests."""
    return some_data(n_items)


@cache
def fitted(n_items: int) -> tu.ActiveTest:
    """A session that is fitted once."""
    predictions, labels, _ = plain_data(n_items)
    return tu.ActiveTest(predictions, labels, noise="dawid-skene", random_state=0)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables and nothing in them."""
    file = tmp_path_factory.mktemp("database") / "empty.db"
    open_storage(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def make_vetting(tmp_path: Path, empty_database: Path) -> Iterator[Callable[..., Vetting]]:
    """Makes sessions, and ends them."""
    made: list[Vetting] = []

    def make(
        *,
        data: Any = None,
        look: Look | None = None,
        address: Address | None = None,
        lease: float = 300.0,
        n_items: int = 120,
        wait: bool = True,
        **settings: Any,
    ) -> Vetting:
        predictions, labels, truth = plain_data(n_items) if data is None else data
        file = tmp_path / f"vetting{len(made)}.db"
        shutil.copy(empty_database, file)
        storage = open_storage(f"sqlite:///{file}")
        storage.create("q3", "active test", {"strategy": "propensity", **settings})
        session = partial(tu.ActiveTest, predictions, labels, noise="dawid-skene", random_state=0, **settings)
        if data is None and not settings:
            session = partial(fitted(n_items).restart, random_state=0)
        latest = LatestSnapshot()
        estimating = InThread(session, storage, "q3", latest)
        services = Services(
            storage, "q3", labels, latest, estimating, address or Address(), look or Look(), lease=lease
        )
        vetting = Vetting(storage, services, make_app(services), truth)
        made.append(vetting)
        if wait:
            estimating.start()
            wait_for(lambda: storage.cards("q3") or latest.problem)
            assert latest.problem is None, latest.problem
        return vetting

    yield make
    for vetting in made:
        vetting.services.stopping.set()
        vetting.services.estimating.stop()
        vetting.storage.close()


@pytest.fixture
def vetting(make_vetting: Callable[..., Vetting]) -> Vetting:
    """A session with text cards."""
    return make_vetting()


@pytest.fixture
def listening() -> Iterator[Callable[[Vetting], str]]:
    """Puts sessions on the network of this machine; the address of each."""
    running: list[tuple[Server, threading.Thread]] = []

    def listen(vetting: Vetting) -> str:
        addresses: list[str] = []
        server = Server(vetting.services, port=0, ready=addresses.append)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        running.append((server, thread))
        wait_for(lambda: addresses)
        return addresses[0]

    yield listen
    for server, thread in running:
        server.handle_exit(2, None)
        thread.join(HANGS_AFTER)


class _Forwarding(BaseHTTPRequestHandler):
    """Hands requests on to another server, with or without the path below which it is shown."""

    protocol_version = "HTTP/1.0"
    target: str
    prefix: str
    strips: bool

    def _forward(self) -> None:
        if not self.path.startswith(self.prefix + "/"):
            self.send_error(404)
            return
        path = self.path[len(self.prefix) :] if self.strips else self.path
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        there = urlsplit(self.target)
        with closing(http.client.HTTPConnection(there.hostname or "", there.port, timeout=HANGS_AFTER)) as connection:
            headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            connection.request(self.command, path, body or None, headers)
            self._hand_back(connection.getresponse())

    def _hand_back(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            while block := answer.read1(65536):
                self.wfile.write(block)
                self.wfile.flush()

    do_GET = do_POST = _forward  # noqa: N815  # the names that the base class looks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def proxy() -> Iterator[Callable[..., str]]:
    """Puts a proxy before a server, which shows it below a path; its address."""
    running: list[ThreadingHTTPServer] = []

    def start(target: str, prefix: str, *, strips: bool) -> str:
        about = {"target": target, "prefix": prefix, "strips": strips}
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Forwarding,), about))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_port}{prefix}/"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()
