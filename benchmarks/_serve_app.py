"""The vetting app under load: the wait for the next card, memory, and requests that make no sense."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import as_text
from trueup.serve.estimating import InProcess, LatestSnapshot
from trueup.serve.running import Server
from trueup.serve.services import Services
from trueup.storage import open_storage
from trueup.storage.database.sqlite import has_wal_fix

_PATIENCE = 600.0


def make_data(n_items: int) -> tuple[Any, Any]:
    """Predictions and votes of three labelers for each item, with a short text."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=n_items)
    votes = np.where(rng.random((n_items, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
    labels = tu.Labels.from_matrix(votes)
    labels = labels.with_items({"item": labels.items.tolist(), "text": [f"Text of item {k}" for k in range(n_items)]})
    return np.where(rng.random(n_items) < 0.85, truth, 1 - truth), labels


class Running:
    """A server in this process, its estimate in another."""

    def __init__(self, n_items: int, folder: Path, journal: str | None = None) -> None:
        predictions, labels = make_data(n_items)
        url = f"sqlite:///{folder}/load.db" + ("" if journal is None else f"?journal={journal}")
        make = partial(tu.ActiveTest, predictions, labels, noise="dawid-skene", storage=url, name="load")
        self.storage, self.latest = open_storage(url), LatestSnapshot()
        self.estimating = InProcess(make, self.storage, url, "load", self.latest)
        begin = time.perf_counter()
        self.estimating.start()
        self.estimating.wait_until_ready()
        self.seconds_to_fit = time.perf_counter() - begin
        self.services: Services = Services(self.storage, "load", labels, self.latest, self.estimating)
        self.services.requests.a_second = self.services.requests.at_once = 1e9  # these experts are no people
        addresses: list[str] = []
        self.server = Server(self.services, port=0, ready=addresses.append)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        begin = time.perf_counter()
        self.thread.start()
        _wait(lambda: addresses)
        self.address = addresses[0]
        _wait(lambda: self.storage.cards("load") or self.latest.problem)
        assert self.latest.problem is None, self.latest.problem
        self.seconds_to_card = time.perf_counter() - begin

    def token(self, name: str, role: str = "expert") -> str:
        return self.services.access.give("token", name, role)  # type: ignore[arg-type]

    def stop(self) -> None:
        self.server.handle_exit(2, None)
        self.thread.join(30)
        self.estimating.stop()
        self.storage.close()

    def megabytes(self) -> dict[str, float]:
        """The most memory that the server and the process of the estimate had."""
        return {
            "MB of the server, most": round(_peak(os.getpid())),
            "MB of the estimate, most": round(_peak(self.estimating.pid)),
        }


def _peak(pid: int | None) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _wait(sign: Any) -> None:
    until = time.monotonic() + _PATIENCE
    while not sign():
        if time.monotonic() > until:
            raise TimeoutError("the server does not begin")
        time.sleep(0.01)


# Load ---------------------------------------------------------------------------------------------------------------


def connect(address: str) -> http.client.HTTPConnection:
    """A connection to the server; requests wait for two minutes."""
    parts = urlsplit(address)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)


def answer_cards(address: str, token: str, n: int, think: float, results: Any) -> None:
    """One expert: looks at each of n cards for `think` seconds on average, and keeps how long the next one took."""
    connection = connect(address)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def call(method: str, path: str, body: Any = None) -> dict[str, Any]:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return answer

    rng = np.random.default_rng(abs(hash(token)))
    waits, cards, empty = [], [], 0
    card = call("GET", "/next")["card"]
    while len(cards) < n:
        if card is None:
            empty += 1
            time.sleep(0.2)  # a page waits longer
            card = call("GET", "/next")["card"]
            continue
        time.sleep(float(rng.uniform(0.5, 1.5)) * think)
        begin = time.perf_counter()
        following = call("POST", "/reply", {"card": card, "choice": "1", "key": f"{card}", "seconds": 1.0})["card"]
        waits.append(time.perf_counter() - begin)
        cards.append(card)
        card = following
    results.put((waits, cards, empty))


def watch(address: str, token: str) -> None:
    """The owner, whose page is open all the while."""
    connection = connect(address)
    connection.request("GET", "/owner-events", headers={"authorization": f"Bearer {token}"})
    stream = connection.getresponse()
    with suppress(OSError, http.client.HTTPException):
        while stream.readline():
            pass


def answer_all(address: str, tokens: list[str], owner: str, n: int, think: float, results: Any) -> None:
    """All experts, in one process, while the owner watches."""
    threading.Thread(target=watch, args=(address, owner), daemon=True).start()
    threads = [threading.Thread(target=answer_cards, args=(address, token, n, think, results)) for token in tokens]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def load(quick: bool) -> str:
    """Experts who look at each card for a second on average, in each journal mode that SQLite may keep here."""
    n_items, n_experts, n_answers, think = (2_000, 4, 20, 0.1) if quick else (100_000, 20, 200, 1.0)
    journals = ["rollback", *(["wal"] if has_wal_fix(sqlite3.sqlite_version_info) else [])]
    return _section({journal: _load(n_items, n_experts, n_answers, think, journal) for journal in journals})


def _section(rows: dict[str, dict[str, Any]]) -> str:
    """A line for each number, a column for each row."""
    names = list(next(iter(rows.values())))
    table = [[name, *(str(row[name]) for row in rows.values())] for name in names]
    return as_text(["", *rows], table)


def _load(n_items: int, n_experts: int, n_answers: int, think: float, journal: str) -> dict[str, Any]:
    """Many experts at once."""
    with tempfile.TemporaryDirectory() as folder:
        running = Running(n_items, Path(folder), journal)
        # The experts share a process of their own: what they cost is not the server's.
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        tokens, owner = [running.token(f"e{k}") for k in range(n_experts)], running.token("owner", "owner")
        arguments = (running.address, tokens, owner, n_answers, think, results)
        experts = context.Process(target=answer_all, args=arguments)
        begin = time.perf_counter()
        experts.start()
        ages: list[float] = []
        told: list[Any] = []
        while len(told) < n_experts:
            while not results.empty():
                told.append(results.get())
            ages.append(_behind(running))
            time.sleep(0.5)
        seconds = time.perf_counter() - begin
        events = running.storage.events("load")
        answers = [event for event in events if event.kind == "tell" and event.purpose is None]
        waits = np.array([wait for one in told for wait in one[0]])
        cards = [card for one in told for card in one[1]]
        report = {
            "items": n_items,
            "experts": n_experts,
            "answers": len(waits),
            "answers a second": round(len(waits) / seconds, 1),
            "ms to the next card, median": round(1000 * float(np.median(waits)), 1),
            "ms to the next card, p95": round(1000 * float(np.quantile(waits, 0.95)), 1),
            "looks at an empty queue": sum(one[2] for one in told),
            "cards out twice": len(cards) - len(set(cards)),
            "items answered twice as draws": len(answers) - len({event.item for event in answers}),
            "seconds the estimate is behind, most": round(max(ages), 1),
            **running.megabytes(),
        }
        experts.join()
        running.stop()
        return report


def _behind(running: Running) -> float:
    """How old the first answer is that the latest estimate does not know; 0 where it knows all."""
    snapshot = running.latest.snapshot
    new = running.storage.events("load", since=0 if snapshot is None else snapshot.n_events, most=2000)
    first = next((event.at for event in new if event.kind != "ask" and event.at is not None), None)
    return 0.0 if first is None else max(running.storage.now() - first, 0.0)


# Memory -------------------------------------------------------------------------------------------------------------


def memory(quick: bool) -> str:
    """A server with many items, and how long it takes to begin; each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    rows = {}
    for n_items in (2_000, 20_000) if quick else (100_000, 1_000_000):
        with ProcessPoolExecutor(1, mp_context=context) as one:
            rows[f"{n_items:,} items"] = one.submit(_memory, n_items).result()
    return _section(rows)


def _memory(n_items: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        running = Running(n_items, Path(folder))
        report = {
            "seconds to fit": round(running.seconds_to_fit, 1),
            "seconds from fitted to the first card": round(running.seconds_to_card, 1),
            **running.megabytes(),
        }
        running.stop()
        return report


# Fuzz ---------------------------------------------------------------------------------------------------------------

_PATHS = """enter leave answer reply next previous renew image owner owner-state pause correct link revoke
export-answers.csv export-log.json api/status api/ask api/tell api/skip api/correct api/estimate api/log
api/openapi.json static/vetting.js nothing ../.."""
_NAMES = "card choice key comment seconds before event name role use paused items answers"
_VALUES: tuple[Any, ...] = (0, 1, -1, 2**63, 1e308, "", "1", "later", "<script>", "=cmd()", "../../etc/passwd", "\x00")
_VALUES += ("\ud800", None, True, [], {}, [{"item": 1, "truth": 1}], [{"item": {}, "truth": []}])
_VALUES += ("x" * 5000, "٣", "NaN")


def fuzz(quick: bool) -> str:
    """Requests that make no sense: none may end in an error of the server, or be stored."""
    return _section({"": _fuzz(300 if quick else 10_000)})


def _fuzz(n_requests: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        running = Running(1_000, Path(folder))
        running.services.entries.a_second = running.services.entries.at_once = 1e9
        tokens = [running.token("fuzz"), running.token("fuzz owner", "owner"), "wrong", None]
        codes: Counter[int] = Counter()
        broken = refused_but_stored = 0
        connection = connect(running.address)
        for _ in range(n_requests):
            method, path, headers, body = _any_request(rng, tokens)
            before = running.storage.open("load").n_events
            try:
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                text = answer.read()
            except (http.client.HTTPException, OSError, UnicodeError):
                connection.close()
                broken += 1
                continue
            codes[answer.status] += 1
            assert b"Traceback" not in text
            if answer.status >= 400:
                new = running.storage.events("load", since=before)
                refused_but_stored += any(event.kind != "ask" for event in new)
        report = {
            "requests": n_requests,
            "answers by status": dict(sorted(codes.items())),
            "5xx": sum(n for code, n in codes.items() if code >= 500),
            "connections closed by the server": broken,
            "refused and stored all the same": refused_but_stored,
        }
        running.stop()
        return report


def _any_request(rng: np.random.Generator, tokens: list[str | None]) -> tuple[str, str, dict[str, str], bytes | None]:
    def pick(choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    method = pick(("GET", "GET", "POST", "POST", "POST", "POST", "PUT", "HEAD"))
    fields = {pick(_NAMES.split()): pick(_VALUES) for _ in range(int(rng.integers(5)))}
    kind = pick(("json", "form", "none", "bytes"))
    headers = {"host": pick((*["127.0.0.1"] * 8, "evil.example", "localhost"))}
    token = pick(tokens)
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    if rng.random() < 0.3:
        headers["sec-fetch-site"] = pick(("same-origin", "cross-site", "x"))
    body = None
    if kind == "json":
        headers["content-type"] = "application/json"
        body = json.dumps(fields).encode()
    elif kind == "form":
        headers["content-type"] = "application/x-www-form-urlencoded"
        body = urlencode({name: str(value).encode("utf-8", "replace") for name, value in fields.items()}).encode()
    elif kind == "bytes":
        headers["content-type"] = pick(("application/json", "multipart/form-data; boundary=x", "text/plain"))
        body = rng.bytes(int(rng.integers(200)))
    path = "/" + pick(("", *_PATHS.split()))
    if rng.random() < 0.3:
        path += "?card=" + pick(("1", "0", "-1", "x", "%00", "99999999999999999999"))
    return method, path, headers, body
