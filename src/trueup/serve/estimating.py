"""The process of the watcher, seen from the server: it is started, heard and ended here.

A watcher reads the log and asks for cards to be written; it writes nothing itself. It works in a process of its own,
so that no expert waits for it.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Protocol

from trueup.exceptions import TrueupError
from trueup.serve.snapshots import Row, Snapshot, first_history, take_snapshot
from trueup.sessions.log import Event
from trueup.sessions.session import Session
from trueup.storage import Storage, open_storage

# ------------------ The strategy and the estimate at work beside the server: cards are drawn ahead, and the estimate

FEWEST_AHEAD = 12  # cards that wait for an expert
_MOST_AHEAD = 1_000
_AHEAD_OF_EACH = 5  # cards that wait for each expert at work
_SECONDS_AHEAD = 4.0  # of the pace of the last minute
_A_MINUTE = 60.0


class Appending(Protocol):
    """Writes cards for a watcher."""

    def __call__(self, events: Sequence[Event], after: int) -> list[Event] | None:
        """The log after the first `after` events, these at its end; None where others drew cards since."""


@dataclass(frozen=True)
class FollowedLog:
    """The log as a session in a watcher sees it: read from the storage, written by the server."""

    storage: Storage
    name: str
    write: Appending

    def read(self, since: int) -> list[Event]:
        """The events after the first `since`."""
        return self.storage.events(self.name, since=since)

    def append(self, events: Sequence[Event], after: int) -> list[Event] | None:
        """Have events written."""
        return self.write(events, after)


def append_cards(storage: Storage, name: str, events: Sequence[Event], after: int) -> list[Event] | None:
    """Add cards to a log to which answers may have come meanwhile; they do not change which cards are right.

    Returns
    -------
    list of Event or None
        All that came after the first `after` events, with the cards at the end; None where cards of others came in
        between, so that these would have to be drawn anew.
    """
    tail: list[Event] = []
    while True:
        tail += storage.events(name, since=after + len(tail))
        if any(event.kind == "ask" for event in tail):
            return None
        kept = storage.append(name, events, after=after + len(tail))
        if kept is not None:
            return [*tail, *kept]


class Watcher:
    """Keeps enough cards ahead, and the estimate up to date.

    Parameters
    ----------
    session : Session
        Over a `FollowedLog`.
    storage : Storage
        To read from.
    name : str
    publish : callable
        Called with each new `Snapshot`.
    """

    def __init__(self, session: Session, storage: Storage, name: str, publish: Callable[[Snapshot], Any]) -> None:
        self._session = session
        self._storage = storage
        self._name = name
        self._publish = publish
        self._history: tuple[Row, ...] | None = None
        self._n_seen = -1
        self._n_drawn_for = -1
        self._seconds = 0.0  # that the last estimate took

    def step(self) -> bool:
        """Do what is due; False if nothing was."""
        self._session.refresh()
        drew = self._draw_ahead()
        n_events = len(self._session.log)
        if n_events == self._n_seen:
            return drew
        new = self._session.log[max(self._n_seen, 0) :]
        if self._n_seen < 0 or any(event.kind != "ask" for event in new):
            if self._history is None:
                self._history = first_history(self._session)
            begin = time.monotonic()
            snapshot = take_snapshot(self._session, self._history)
            self._seconds = time.monotonic() - begin
            self._history = snapshot.history
            self._publish(snapshot)
        self._n_seen = n_events
        return True

    def _draw_ahead(self) -> bool:
        """Ask for cards where fewer wait than experts will want soon."""
        record = self._storage.open(self._name)
        if record.paused:
            return False
        n_events = len(self._session.log)
        if n_events == self._n_drawn_for:
            return False  # nothing came in since, and what could be drawn was
        # Cards with a purpose are not for everybody; they come on top.
        cards = self._storage.cards(self._name)
        n_out = sum(card.seconds_left > 0 for card in cards)
        waiting = sum(card.seconds_left == 0 and card.purpose is None for card in cards)
        n = cards_ahead(self._session.log, n_out, now=time.time(), seconds=self._seconds) - waiting
        batch = self._session.ask(n) if n > 0 else ()
        self._n_drawn_for = len(self._session.log)
        return len(batch) > 0


def cards_ahead(log: Sequence[Event], n_out: int, *, now: float, seconds: float) -> int:
    """How many cards should wait: a few, and more where many experts are at work or quick, or estimates take long.

    Parameters
    ----------
    log : sequence of Event
    n_out : int
        Cards that experts have now; where the queue has run dry these are few, so who answered lately counts as well.
    now : float
        Seconds since 1970.
    seconds : float
        That the last estimate took: nothing is drawn meanwhile.

    Examples
    --------
    >>> cards_ahead([], 0, now=0.0, seconds=1.0), cards_ahead([], 20, now=0.0, seconds=1.0)
    (12, 100)
    """
    recent = 0
    people = set()
    for event in reversed(log):
        if event.at is not None and event.at < now - _A_MINUTE:
            break
        if event.kind != "ask":
            recent += 1
            people.add(event.who)
    by_pace = int(recent / _A_MINUTE * (_SECONDS_AHEAD + 2 * seconds))
    return min(max(FEWEST_AHEAD, _AHEAD_OF_EACH * max(n_out, len(people)), by_pace), _MOST_AHEAD)


MakeSession = Callable[[], Session]
_PAUSE = 0.2  # seconds between two looks at the log
_PATIENCE = 1.0  # seconds that a process gets to end


class LatestSnapshot:
    """The latest snapshot, for those who want it and for those who wait for the next."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._snapshot: Snapshot | None = None
        self._problem: str | None = None
        self._version = 0

    @property
    def snapshot(self) -> Snapshot | None:
        """The latest; None before the first."""
        return self._snapshot

    @property
    def problem(self) -> str | None:
        """Why there will be no more, in one sentence."""
        return self._problem

    @property
    def version(self) -> int:
        """Counts what was put up."""
        return self._version

    def put(self, snapshot: Snapshot | None = None, *, problem: str | None = None) -> None:
        """Put up a snapshot, or what went wrong."""
        with self._changed:
            self._snapshot = snapshot or self._snapshot
            self._problem = problem or self._problem
            self._version += 1
            self._changed.notify_all()

    def wait(self, version: int, timeout: float) -> bool:
        """Wait for another version; whether there is one."""
        with self._changed:
            return self._changed.wait_for(lambda: self._version != version, timeout)


class InThread:
    """A watcher in a thread of the server: for small sessions and for tests.

    Parameters
    ----------
    make : callable
        Makes the session; it may take long.
    storage : Storage
    name : str
    latest : LatestSnapshot
    """

    def __init__(self, make: MakeSession, storage: Storage, name: str, latest: LatestSnapshot) -> None:
        self._make, self._storage, self._name, self._latest = make, storage, name, latest
        self._stopped = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trueup-watcher", daemon=True)

    def start(self) -> None:
        """Begin to work; once is enough."""
        if self._thread.ident is None:
            self._thread.start()

    def nudge(self) -> None:
        """Something came in."""
        self._wake.set()

    def stop(self) -> None:
        """End; what is being worked out is given up."""
        self._stopped.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)

    def _run(self) -> None:
        def write(events: Sequence[Event], after: int) -> list[Event] | None:
            return append_cards(self._storage, self._name, events, after)

        try:
            session = self._make()
            session.follow(FollowedLog(self._storage, self._name, write))
            watcher = Watcher(session, self._storage, self._name, self._latest.put)
            while not self._stopped.is_set():
                if not watcher.step():
                    self._wake.wait(_PAUSE)
                self._wake.clear()
        except Exception as error:
            if not self._stopped.is_set():
                self._latest.put(problem=_sentence(error))


class InProcess:
    """A watcher in a process of its own.

    Parameters
    ----------
    make : callable
        Makes the session there; it is pickled.
    storage : Storage
    url : str
        Of the storage, which the process opens to read.
    name : str
    latest : LatestSnapshot
    """

    def __init__(self, make: MakeSession, storage: Storage, url: str, name: str, latest: LatestSnapshot) -> None:
        self._storage, self._name, self._latest = storage, name, latest
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._there: Connection | None = there
        self._process = context.Process(
            target=_watch, args=(there, make, url, name), name="trueup-watcher", daemon=True
        )
        self._thread = threading.Thread(target=self._listen, name="trueup-listener", daemon=True)
        self._stopped = False
        self._is_ready = threading.Event()
        self._failure: TrueupError | None = None

    def start(self) -> None:
        """Begin to work; once is enough."""
        if self._process.pid is not None:
            return
        self._process.start()
        assert self._there is not None
        self._there.close()  # the process has its own
        self._there = None
        self._thread.start()

    def nudge(self) -> None:
        """It looks at the log by itself."""

    @property
    def pid(self) -> int | None:
        """Of the process; None before it was started."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Wait for the session to be there: until it is fitted. What is wrong with it is raised."""
        self._is_ready.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self._stopped = True
        if self._process.pid is not None:
            self._process.kill()  # it only reads, so that nothing can be left half done
            self._process.join(_PATIENCE)
        self._here.close()

    def _listen(self) -> None:
        try:
            while True:
                what, content = self._here.recv()
                if what == "cards":
                    self._here.send(append_cards(self._storage, self._name, *content))
                elif what == "snapshot":
                    self._latest.put(content)
                elif what == "ready":
                    self._is_ready.set()
                else:
                    self._fail(content)
        except (EOFError, OSError):
            self._fail(TrueupError("the process of the estimate has ended; start the server again"))
        except Exception as error:
            self._fail(TrueupError(_sentence(error)))

    def _fail(self, failure: TrueupError) -> None:
        if self._stopped or self._failure is not None:
            return  # the first one says why
        self._failure = failure
        self._latest.put(problem=str(failure.sentence))
        self._is_ready.set()


def _watch(pipe: Connection, make: MakeSession, url: str, name: str) -> None:
    """The work of the process, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the server ends this one

    def write(events: Sequence[Event], after: int) -> list[Event] | None:
        pipe.send(("cards", (list(events), after)))
        kept: list[Event] | None = pipe.recv()
        return kept

    def publish(snapshot: Snapshot) -> Any:
        pipe.send(("snapshot", snapshot))

    try:
        storage = open_storage(url)
        session = make()
        session.follow(FollowedLog(storage, name, write))
        pipe.send(("ready", None))
        watcher = Watcher(session, storage, name, publish)
        while True:
            if not watcher.step() and pipe.poll(_PAUSE):
                pipe.recv()  # nothing is sent unasked: the server has ended, however that came
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except TrueupError as error:
        pipe.send(("failure", error))
    except Exception as error:
        pipe.send(("failure", TrueupError(_sentence(error))))


def _sentence(error: Exception) -> str:
    """What went wrong, for the page of the owner."""
    if isinstance(error, TrueupError):
        return str(error.sentence)
    return traceback.format_exception_only(error)[-1].strip()[:300]
