"""The vetting app under load: answers a second, waits, memory, and requests that make no sense.

    python -m benchmarks.serve                      all sections, a few minutes each
    python -m benchmarks.serve load --items 100000 --experts 20 --answers 200
    python -m benchmarks.serve memory --items 1000000
    python -m benchmarks.serve fuzz --requests 10000

- load: experts who answer as fast as the server lets them, over the network of the machine. No item may be out twice;
  the wait is from the answer to the next card; the age of the estimate is read every half second.
- memory: of the server and of the process of the estimate, and the time from a fitted session to the first card.
- fuzz: random methods, paths, headers and bodies, of people who are signed in and of strangers.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import trueup as tu
from trueup.serve.estimating import InProcess, LatestSnapshot
from trueup.serve.server import Server
from trueup.serve.services import Services, make_services
from trueup.storage import open_storage

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

    def __init__(self, n_items: int, folder: Path) -> None:
        predictions, labels = make_data(n_items)
        url = f"sqlite:///{folder}/load.db"
        make = partial(tu.ActiveTest, predictions, labels, noise="dawid-skene", storage=url, name="load")
        self.storage, self.latest = open_storage(url), LatestSnapshot()
        self.estimating = InProcess(make, self.storage, url, "load", self.latest)
        begin = time.perf_counter()
        self.estimating.start()
        self.estimating.wait_until_ready()
        self.seconds_to_fit = time.perf_counter() - begin
        self.services: Services = make_services(self.storage, "load", labels, self.latest, self.estimating)
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
        """Of a person."""
        return self.services.access.give("token", name, role)  # type: ignore[arg-type]

    def stop(self) -> None:
        """End the server and the process."""
        self.server.handle_exit(2, None)
        self.thread.join(30)
        self.estimating.stop()
        self.storage.close()

    def megabytes(self) -> dict[str, float]:
        """The most memory that the server and the process of the estimate had."""
        return {"server": _peak(os.getpid()), "estimate": _peak(self.estimating.pid)}


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


def answer_cards(address: str, token: str, n: int, results: Any) -> None:
    """One expert, in a process of its own: answers n cards and keeps how long each next card took."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def call(method: str, path: str, body: Any = None) -> dict[str, Any]:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return answer

    waits, cards, empty = [], [], 0
    card = call("GET", "/next")["card"]
    while len(cards) < n:
        if card is None:
            empty += 1
            time.sleep(0.02)
            card = call("GET", "/next")["card"]
            continue
        begin = time.perf_counter()
        following = call("POST", "/reply", {"card": card, "choice": "1", "key": f"{card}", "seconds": 1.0})["card"]
        waits.append(time.perf_counter() - begin)
        cards.append(card)
        card = following
    results.put((waits, cards, empty))


def load(n_items: int, n_experts: int, n_answers: int) -> dict[str, Any]:
    """Many experts at once."""
    with tempfile.TemporaryDirectory() as folder:
        running = Running(n_items, Path(folder))
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        # Some processes with a thread for each expert would share one interpreter; each expert has their own instead.
        experts = [
            context.Process(target=answer_cards, args=(running.address, running.token(f"e{k}"), n_answers, results))
            for k in range(n_experts)
        ]
        begin = time.perf_counter()
        for expert in experts:
            expert.start()
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
            "journal": running.storage.notes[0] if running.storage.notes else "",
            "MB": running.megabytes(),
        }
        for expert in experts:
            expert.join()
        running.stop()
        return report


def _behind(running: Running) -> float:
    """How old the first answer is that the latest estimate does not know; 0 where it knows all."""
    snapshot = running.latest.snapshot
    new = running.storage.events("load", since=0 if snapshot is None else snapshot.n_events, most=2000)
    first = next((event.at for event in new if event.kind != "ask" and event.at is not None), None)
    return 0.0 if first is None else max(running.storage.now() - first, 0.0)


# Memory -------------------------------------------------------------------------------------------------------------


def memory(n_items: int) -> dict[str, Any]:
    """A server with many items, and how long it takes to begin."""
    with tempfile.TemporaryDirectory() as folder:
        running = Running(n_items, Path(folder))
        report = {
            "items": n_items,
            "seconds to fit": round(running.seconds_to_fit, 1),
            "seconds from fitted to the first card": round(running.seconds_to_card, 1),
            "MB": running.megabytes(),
        }
        running.stop()
        return report


# Fuzz ---------------------------------------------------------------------------------------------------------------

_PATHS = (
    "",
    "enter",
    "leave",
    "answer",
    "reply",
    "next",
    "previous",
    "renew",
    "image",
    "owner",
    "owner-state",
    "pause",
)
_PATHS += ("correct", "link", "revoke", "export-answers.csv", "export-log.json", "api/status", "api/ask", "api/tell")
_PATHS += (
    "api/skip",
    "api/correct",
    "api/estimate",
    "api/log",
    "api/openapi.json",
    "static/vetting.js",
    "nothing",
    "../..",
)
_NAMES = (
    "card",
    "choice",
    "key",
    "comment",
    "seconds",
    "before",
    "event",
    "name",
    "role",
    "use",
    "paused",
    "items",
    "answers",
)
_VALUES: tuple[Any, ...] = (
    0,
    1,
    -1,
    2**63,
    1e308,
    "",
    "1",
    "later",
    "<script>",
    "=cmd()",
    "../../etc/passwd",
    "\x00",
    "\ud800",
)
_VALUES += (None, True, [], {}, [{"item": 1, "truth": 1}], [{"item": {}, "truth": []}], "x" * 5000, "٣", "NaN")


def fuzz(n_requests: int) -> dict[str, Any]:
    """Requests that make no sense: none may end in an error of the server, or be stored."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        running = Running(1_000, Path(folder))
        parts = urlsplit(running.address)
        tokens = [running.token("fuzz"), running.token("fuzz owner", "owner"), "wrong", None]
        codes: dict[int, int] = {}
        broken = 0
        refused_but_stored = 0
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
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
            codes[answer.status] = codes.get(answer.status, 0) + 1
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

    method = pick(("GET", "POST", "POST", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"))
    fields = {pick(_NAMES): pick(_VALUES) for _ in range(int(rng.integers(5)))}
    kind = pick(("json", "form", "none", "bytes"))
    headers = {"host": pick((None, None, None, "evil.example", "localhost")) or "127.0.0.1"}
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
        from urllib.parse import urlencode

        headers["content-type"] = "application/x-www-form-urlencoded"
        body = urlencode({name: str(value).encode("utf-8", "replace") for name, value in fields.items()}).encode()
    elif kind == "bytes":
        headers["content-type"] = pick(("application/json", "multipart/form-data; boundary=x", "text/plain"))
        body = rng.bytes(int(rng.integers(200)))
    path = "/" + pick(_PATHS)
    if rng.random() < 0.3:
        path += "?card=" + pick(("1", "0", "-1", "x", "%00", "99999999999999999999"))
    return method, path, headers, body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", nargs="?", choices=["load", "memory", "fuzz"])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--experts", type=int, default=20)
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--requests", type=int, default=10_000)
    given = parser.parse_args()
    sections = {
        "load": lambda: load(given.items, given.experts, given.answers),
        "memory": lambda: memory(given.items),
        "fuzz": lambda: fuzz(given.requests),
    }
    for name in [given.section] if given.section else sections:
        print(name, json.dumps(sections[name](), indent=1), flush=True)


if __name__ == "__main__":
    main()
