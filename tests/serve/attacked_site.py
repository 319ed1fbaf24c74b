"""A small vetting app on the network of this machine, and an intruder's tools: any request, whole or in pieces."""

import http.client
import io
import logging
import socket
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from threaded import InThread
from vetting_server import wait_for

import trueup as tu
from trueup.serve.card_service import Layout
from trueup.serve.estimating import LatestSnapshot
from trueup.serve.running import Server
from trueup.serve.services import Look, Services
from trueup.storage import open_storage

NAME = "q3"
OWN_SITE = {"sec-fetch-site": "same-origin"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}
SECRET = b"not for experts"
_PATIENCE = 60.0

READS = ("/", "/next", "/previous", "/owner", "/owner-state", "/owner-events", "/image?card=1", "/export-answers.csv")
READS += ("/export-sheet.csv", "/export-log.json", "/export-report.html", "/api/status", "/api/estimate", "/api/log")
WRITES = ("/answer", "/reply", "/renew", "/pause", "/correct", "/link", "/revoke", "/leave")
WRITES += ("/api/ask", "/api/tell", "/api/skip", "/api/correct")
OWNERS = tuple(path for path in READS if path.startswith(("/owner", "/export", "/api/estimate", "/api/log")))


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    text: str


def refused(answers: Iterable[Answer], *statuses: int) -> None:
    """Every answer has one of these statuses, 0 where the server hung up, and none tells a secret."""
    answers = list(answers)
    assert {answer.status for answer in answers} <= set(statuses)
    assert not any(SECRET.decode() in answer.text or "Traceback" in answer.text for answer in answers)


@dataclass
class Site:
    """The app as an intruder has it: an address; and the services, to see what came of it.

    Attributes
    ----------
    folder : Path
        Of the images; a file beside it must not be seen.
    logged : io.StringIO
        What the server wrote to its own log.
    """

    services: Services
    server: Server
    address: str
    folder: Path
    logged: io.StringIO
    may_store: int = 0  # answers that a test may leave in the log

    @cached_property
    def place(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.address)
        return parts.hostname or "", parts.port or 80

    @property
    def n_told(self) -> int:
        """How many answers are in the log."""
        return sum(event.kind != "ask" for event in self.services.storage.events(NAME))

    def cookie(self, name: str, role: str = "expert") -> dict[str, str]:
        """The header of someone who has used their link."""
        access = self.services.access
        secret = access.enter(access.give("link", name, role))  # type: ignore[arg-type]
        return {"cookie": f"{access.cookie_name}={secret}"}

    def token(self, name: str, role: str = "expert") -> dict[str, str]:
        """The header of a program."""
        return {"authorization": f"Bearer {self.services.access.give('token', name, role)}"}  # type: ignore[arg-type]

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        own_site: bool = True,
    ) -> Answer:
        """Any request, by default as if it came from a page of the app; status 0 where the server hangs up."""
        given = {"host": f"{self.place[0]}:{self.place[1]}", **(OWN_SITE if own_site else {}), **(headers or {})}
        connection = http.client.HTTPConnection(*self.place, timeout=_PATIENCE)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                connection.putheader(name, value)
            is_chunked = body is not None and not isinstance(body, bytes)
            if isinstance(body, bytes) and "content-length" not in given:
                connection.putheader("content-length", str(len(body)))
            if is_chunked:
                connection.putheader("transfer-encoding", "chunked")
            connection.endheaders(body, encode_chunked=is_chunked)
            return self._read(connection)
        except ConnectionError:  # it hung up before all was sent
            return Answer(0, {}, "")
        finally:
            connection.close()

    def _read(self, connection: http.client.HTTPConnection) -> Answer:
        answer = connection.getresponse()
        is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
        text = b"" if is_stream else answer.read()
        return Answer(answer.status, dict(answer.headers.items()), text.decode("utf-8", "replace"))

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Look at a page."""
        return self.send("GET", path, headers)

    def post(
        self, path: str, headers: Mapping[str, str] | None = None, form: Mapping[str, Any] | None = None
    ) -> Answer:
        """Send a form."""
        return self.send("POST", path, {**FORM, **(headers or {})}, urlencode(form or {}).encode())

    def raw(self, *parts: bytes, pause: float = 0.0, seconds: float = 10.0) -> Answer:
        """Bytes as they are, in pieces; status 0 where the server hangs up without a word."""
        said = b""
        with socket.create_connection(self.place, timeout=seconds) as connection:
            try:
                for part in parts:
                    connection.sendall(part)
                    time.sleep(pause)
                while piece := connection.recv(65536):
                    said += piece
                    if b"\r\n\r\n" in said and b"connection: close" not in said.lower():
                        break
            except (ConnectionError, TimeoutError):
                pass
        status = int(said[9:12]) if said.startswith(b"HTTP/1.1 ") else 0
        return Answer(status, {}, said.decode("utf-8", "replace"))


def _data(n_items: int = 40) -> tuple[dict[str, str], tu.Labels]:
    """Predictions and votes for some items, with a text and the name of an image for each."""
    sim = tu.simulate.dawid_skene(n_items=n_items, n_labelers=4, random_state=0)
    items = sim.labels.items.tolist()
    images = ["a.png", "../secret.png", "out.png", "door/secret.png"]
    columns = {"text": [f"Text {k}" for k in range(n_items)], "image": [images[k % 4] for k in range(n_items)]}
    return dict(zip(items, sim.truth.tolist(), strict=True)), sim.labels.with_items({"item": items, **columns})


def _make_images(folder: Path) -> Path:
    root = folder / "images"
    root.mkdir()
    (root / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "secret.png").write_bytes(SECRET)
    with suppress(OSError):  # a system that allows no links needs no guard against them
        (root / "out.png").symlink_to(folder / "secret.png")
        (root / "door").symlink_to(folder)
    return root


@contextmanager
def open_site() -> Iterator[Site]:
    """A server with a session that has some answers of bob, and an image folder with links that lead out of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = _make_images(folder)
        predictions, labels = _data()
        storage, latest = open_storage(f"sqlite:///{folder}/site.db"), LatestSnapshot()
        storage.create(NAME, "active test", {"strategy": "propensity"})
        make = partial(tu.ActiveTest, predictions, labels, noise="majority", random_state=0)
        look = Look(layout=Layout("image", ("text",), image="image"), images=images)
        services = Services(storage, NAME, labels, latest, InThread(make, storage, NAME, latest), look=look)
        services.entries.a_second = services.entries.at_once = 1e9  # but where it is tried to guess
        addresses: list[str] = []
        server = Server(services, port=0, ready=addresses.append)
        logged = io.StringIO()
        listening = logging.StreamHandler(logged)
        logging.getLogger("uvicorn.error").addHandler(listening)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            wait_for(lambda: addresses)
            wait_for(lambda: storage.cards(NAME) and latest.snapshot)
            yield Site(services, server, addresses[0], images, logged)
        finally:
            server.handle_exit(2, None)
            thread.join(_PATIENCE)
            logging.getLogger("uvicorn.error").removeHandler(listening)
            storage.close()
