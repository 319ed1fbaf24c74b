"""The strategy and the estimate at work beside the server: cards are drawn ahead, and the estimate follows the log.

A watcher reads the log and asks for cards to be written; it writes nothing itself. It works in a process of its own,
so that no expert waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trueup.serve.snapshots import Row, Snapshot, first_history, take_snapshot
from trueup.sessions.log import Event
from trueup.sessions.session import Session
from trueup.storage import Storage

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
