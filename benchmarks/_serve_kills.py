"""Whether answers survive kill -9: processes that answer together, killed at random, and the server of the database.

Each process is a storage with a few experts, each a thread, that send answers and tell through a pipe when one was
acknowledged; the pipe outlives them. A process that is killed is started again and sends what was not acknowledged once
more, under the same key. At the end the log is held against what was acknowledged.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import queue
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import as_text, say
from trueup.exceptions import StorageError
from trueup.sessions.log import Event, events_from_json, events_to_json
from trueup.storage import Storage, open_session, open_storage

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the server that the tests start

_NAME = "kills"
_LEASE = 2.0  # seconds: a card whose expert was killed comes back soon
_PROCESSES, _EXPERTS = 4, 3


@dataclass
class Heard:
    """What was heard from the processes."""

    sent: dict[str, tuple[int, str, int]] = field(default_factory=dict)  # card, expert and answer by key
    acknowledged: dict[str, int] = field(default_factory=dict)  # the number of the event by key
    # Leases of each card: expert, begin and end by the clock of the database.
    claims: dict[int, list[tuple[str, float, float]]] = field(default_factory=lambda: defaultdict(list))
    resent: int = 0

    def add(self, line: list[Any]) -> None:
        """One line of a process."""
        if line[0] == "sent":
            self.resent += line[1] in self.sent
            self.sent[line[1]] = line[2], line[3], line[4]
        elif line[0] == "kept":
            self.acknowledged[line[1]] = line[2]
        else:
            self.claims[line[1]].append((line[2], line[3] - _LEASE, line[3]))

    def pending(self, experts: list[str]) -> list[tuple[str, int, str, int]]:
        """What these experts have sent and not heard back of."""
        return [
            (key, *about) for key, about in self.sent.items() if about[1] in experts and key not in self.acknowledged
        ]


def _patiently(call: Callable[[], Any]) -> Any:
    """Try until the server of the database, which may have been killed, is there again."""
    while True:
        try:
            return call()
        except StorageError:
            time.sleep(0.05)


def _work(url: str, experts: list[str], pending: list[tuple[str, int, str, int]], out: Any, seed: int) -> None:
    """A process: its experts answer until there is nothing left."""
    storage = _patiently(lambda: open_storage(url))
    lock = threading.Lock()

    def report(*line: Any) -> None:
        with lock:
            out.send_bytes(json.dumps(line).encode())  # shorter than what a pipe takes at once: whole or not at all

    def claimed(card: Any) -> Any:
        if card is not None:
            report("claim", card.number, card.leased_to, card.leased_until)
        return card

    def answer(who: str) -> None:
        rng = np.random.default_rng([seed, hash(who) % 2**32])
        for key, number, _, truth in [one for one in pending if one[2] == who]:
            send(key, number, who, truth, next_seconds=None)
        while True:
            card = claimed(_patiently(lambda: storage.claim(_NAME, who, seconds=_LEASE)))
            while card is not None:
                key = f"{who} {card.number} {rng.integers(2**40)}"
                card = claimed(send(key, card.number, who, int(rng.integers(2)), next_seconds=_LEASE))
            if not _patiently(lambda: storage.waiting(_NAME, who).n_open):
                return
            time.sleep(0.05)

    def send(key: str, number: int, who: str, truth: int, next_seconds: float | None) -> Any:
        report("sent", key, number, who, truth)
        event = Event("tell", None, truth, who, key=key, seconds=1.0, blind=True)
        kept = _patiently(lambda: storage.answer(_NAME, number, event, next_seconds=next_seconds))
        report("kept", key, kept.number)
        return kept.next_card

    threads = [threading.Thread(target=answer, args=[who]) for who in experts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    storage.close()


class Crew:
    """The processes, what is heard from them, and the kills."""

    def __init__(self, url: str, seed: int) -> None:
        self._url, self._rng = url, np.random.default_rng(seed)
        self._lines: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
        # Children of a process without threads, which has loaded everything: quick to start, and safe.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__, "trueup.storage.database.storage"])
        self._crew: dict[int, tuple[Any, list[str], threading.Thread]] = {}
        self._n_begun = 0
        self.heard = Heard()

    def start(self, place: int, experts: list[str]) -> None:
        """Start a process with these experts, who go on where they were."""
        read, write = self._context.Pipe(duplex=False)
        arguments = self._url, experts, self.heard.pending(experts), write, self._n_begun
        process = self._context.Process(target=_work, args=arguments, daemon=True)
        self._n_begun += 1
        process.start()
        write.close()
        listener = threading.Thread(target=self._listen, args=[read], daemon=True)
        listener.start()
        self._crew[place] = process, experts, listener

    def _listen(self, read: Any) -> None:
        with read, suppress(EOFError):
            while True:
                self._lines.put(json.loads(read.recv_bytes()))

    def hear(self) -> None:
        """Take in what was said."""
        with suppress(queue.Empty):
            while True:
                self.heard.add(self._lines.get_nowait())

    def kill(self) -> None:
        """Kill a process at random, and start it again; half of the time its experts do not come back."""
        place = int(self._rng.choice(sorted(self._crew)))
        process, experts, listener = self._crew[place]
        with suppress(ProcessLookupError):  # done already
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        listener.join()
        self.hear()
        comes_back = self._rng.random() < 0.5 or self.heard.pending(experts)
        self.start(place, experts if comes_back else _names(self._n_begun))

    @property
    def is_done(self) -> bool:
        """Whether all have left by themselves."""
        return not any(process.is_alive() for process, _, _ in self._crew.values())

    def end(self) -> None:
        """Hear the last words."""
        for process, _, listener in self._crew.values():
            process.join()
            listener.join()
        self.hear()


def _names(number: int) -> list[str]:
    return [f"expert {number}.{k}" for k in range(_EXPERTS)]


def _prepare(url: str, n: int) -> Any:
    """A session with n items that are asked for; returns its data."""
    sim = tu.simulate.baseline(n_items=n, random_state=0)
    test = tu.ActiveTest(sim.predictions, sim.labels, strategy="random", noise="majority", storage=url, name=_NAME)
    test.ask(n)
    return sim


def _run(url: str, n: int, n_kills: int, *, server: Any = None, n_server_kills: int = 0) -> dict[str, Any]:
    """All answers with all kills; returns what was found."""
    sim = _prepare(url, n)
    crew = Crew(url, seed=1)
    rng = np.random.default_rng(2)
    kinds = ["process"] * n_kills + ["server"] * n_server_kills
    moments = zip(rng.integers(n // 50, n - n // 50, len(kinds)).tolist(), kinds, strict=True)
    done = dict.fromkeys(("process", "server"), 0)
    due = sorted(moments)
    for place in range(_PROCESSES):
        crew.start(place, _names(place))
    while not crew.is_done:
        crew.hear()
        while due and len(crew.heard.acknowledged) >= due[0][0]:
            _, kind = due.pop(0)
            done[kind] += 1
            if kind == "process":
                crew.kill()
            else:
                server.kill()
                server.start()
        time.sleep(0.005)
    crew.end()
    found = _held_against(url, crew.heard, n, sim)
    return {"kills": done["process"], "of the server": done["server"], **found}


def _held_against(url: str, heard: Heard, n: int, sim: Any) -> dict[str, Any]:
    """The log held against what was heard."""
    with closing(open_storage(url)) as storage:
        log = storage.events(_NAME)
        tells = {event.key: (number, event) for number, event in enumerate(log, 1) if event.kind == "tell"}
        lost = [key for key, number in heard.acknowledged.items() if tells.get(key, (0, None))[0] != number]
        by_card = defaultdict(list)
        for _, event in tells.values():
            by_card[event.card, event.who].append(event)
        wrong = [
            key
            for key, (_, event) in tells.items()
            if key not in heard.sent or heard.sent[key] != (event.card, event.who, event.truth)
        ]
        n_rows = sum(event.kind != "ask" for event in log)
        return {
            "answers": len(tells),
            "acknowledged": len(heard.acknowledged),
            "sent again": heard.resent,
            "lost": len(lost),
            "doubled": sum(len(events) - 1 for events in by_card.values()) + n_rows - len(tells),
            "altered": len(wrong),
            "leases at once": _overlaps(heard, tells),
            "open": len(storage.cards(_NAME)),
            "replay": _replays(storage, log, sim),
            "check": _integrity(url),
        }


def _overlaps(heard: Heard, tells: dict[Any, tuple[int, Event]]) -> int:
    """Leases of one card to two experts at the same time; a lease ends with its time or its answer."""
    answered = {(event.card, event.who): event.at for _, event in tells.values()}
    n = 0
    for card, leases in heard.claims.items():
        leases.sort(key=lambda lease: lease[1])
        for (who, _, end), (other, begin, _) in pairwise(leases):
            last = min(end, answered.get((card, who)) or end)
            n += who != other and begin < last - 1e-3  # the clock of SQLite counts milliseconds
    return n


def _replays(storage: Storage, log: list[Event], sim: Any) -> bool:
    """Whether the session, its log as text and its log in memory lead to the same numbers, bit for bit."""
    opened = open_session(tu.ActiveTest, storage, _NAME, sim.predictions, sim.labels)
    written = opened.replay(events_from_json(json.dumps(events_to_json(log))))
    return (
        opened.log == tuple(log) == written.log
        and opened.progress.truth.tobytes() == written.progress.truth.tobytes()
        and opened.estimate().interval(0.95) == written.estimate().interval(0.95)
    )


def _integrity(url: str) -> str:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///").partition("?")[0])) as connection:
            return str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
        for (index,) in connection.execute(
            "SELECT c.oid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "JOIN pg_namespace s ON s.oid = c.relnamespace WHERE s.nspname = 'public'"
        ).fetchall():
            connection.execute("SELECT bt_index_check(%s::regclass, true)", [index])
    return "ok"


def _syncs(url: str, folder: Path) -> float | None:
    """Syncs of the disk for each answer of one expert, counted by the system; None where strace is not there."""
    if shutil.which("strace") is None or not url.startswith("sqlite"):
        return None
    trace = folder / "trace"
    n = 100
    code = (
        "import sys; from trueup.storage import open_storage; from trueup.sessions.log import Event\n"
        f"s = open_storage({url!r}); s.create('n', 'active test', {{}}, events=[Event('ask', k) for k in range({n})])\n"
        "sys.stderr.write('begin'); sys.stderr.flush()\n"
        f"[s.answer('n', k + 1, Event('tell', None, 1, 'ann', key=str(k)), next_seconds=60) for k in range({n})]\n"
        "sys.stderr.write('end'); sys.stderr.flush(); s.close()"
    )
    subprocess.run(
        ["strace", "-f", "-e", "trace=fsync,fdatasync,write", "-o", trace, sys.executable, "-c", code],
        check=True,
        capture_output=True,
    )
    text = trace.read_text(encoding="utf-8", errors="replace")
    between = text[text.index('write(2, "begin"') : text.index('write(2, "end"')]
    return len(re.findall(r"\b(?:fsync|fdatasync)\(\d+", between)) / n


def kills(quick: bool) -> str:
    """All databases and journals that this machine has."""
    n, n_kills, n_server = (300, 5, 2) if quick else (10_000, 50, 10)
    rows, notes = [], []
    for journal in ("rollback", "wal"):
        with tempfile.TemporaryDirectory() as name:
            url = f"sqlite:///{name}/test.db?journal={journal}"
            try:
                open_storage(url).close()
            except StorageError as error:
                notes.append(f"SQLite with journal={journal} was left out: {error}")
                continue
            say(f"  SQLite, {journal}")
            found = _run(url, n, n_kills)
            found["syncs an answer"] = _syncs(f"sqlite:///{name}/syncs.db?journal={journal}", Path(name))
            rows.append((f"SQLite {sqlite3.sqlite_version}, {journal}", found))
    from postgres_server import NoPostgres, OwnPostgres, binaries

    try:
        with closing(OwnPostgres(binaries(), ("fsync=on", "shared_buffers=64MB"))) as server:
            say("  PostgreSQL")
            found = _run(server.new_database(), n, n_kills, server=server, n_server_kills=n_server)
            rows.append(("PostgreSQL, fsync on", {**found, "syncs an answer": None}))
    except NoPostgres as problem:
        notes.append(f"PostgreSQL was left out: {problem}")
    return _table(rows, notes)


def _table(rows: list[tuple[str, dict[str, Any]]], notes: list[str]) -> str:
    names = ["database", *next(iter(rows))[1]] if rows else ["database"]
    table = as_text(names, [[name, *map(_shown, found.values())] for name, found in rows])
    about = (
        f"{_PROCESSES} processes with {_EXPERTS} experts each. A kill of a process does not try the disk: what the "
        "system has taken over is written although the process is gone. So the syncs that one answer with the next "
        "lease costs are counted once, by the system."
    )
    return "\n".join([table, "", about, *notes])


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "the same" if value else "DIFFERS"
    if isinstance(value, int):
        return f"{value:,}"
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
