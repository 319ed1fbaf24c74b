"""The log of a session as the server remembers it: read once, then only what is new."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from trueup.sessions.log import Event
from trueup.storage import Storage

OUTCOMES = ("tell", "correct", "cannot tell", "none of these", "pass")  # what can be undone is one of these, or later
_MOST_AT_ONCE = 5_000


@dataclass(frozen=True)
class Entry:
    """An event and its number in the log, from 1 on."""

    number: int
    event: Event


class Journal:
    """What was logged, by person and by item. Threads may use it at once.

    Parameters
    ----------
    storage : Storage
    session : str
    """

    def __init__(self, storage: Storage, session: str) -> None:
        self._storage = storage
        self._session = session
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._by_person: dict[str, list[Entry]] = defaultdict(list)
        self._by_item: dict[Hashable, list[Entry]] = defaultdict(list)

    def refresh(self) -> int:
        """Read what is new; returns how long the log is."""
        with self._lock:
            while True:
                new = self._storage.events(self._session, since=len(self._entries), most=_MOST_AT_ONCE)
                for event in new:
                    self._add(event)
                if len(new) < _MOST_AT_ONCE:
                    return len(self._entries)

    def _add(self, event: Event) -> None:
        entry = Entry(len(self._entries) + 1, event)
        self._entries.append(entry)
        self._by_item[event.item].append(entry)
        if event.who is not None and event.kind != "ask":
            self._by_person[event.who].append(entry)

    def entries(self, since: int = 0) -> list[Entry]:
        """All events after the first `since`."""
        with self._lock:
            return self._entries[since:]

    def entry(self, number: int) -> Entry | None:
        """The event with this number."""
        with self._lock:
            return self._entries[number - 1] if 0 < number <= len(self._entries) else None

    def of_item(self, item: Hashable) -> list[Entry]:
        """All that was logged of an item."""
        with self._lock:
            return list(self._by_item.get(item, ()))

    def people(self) -> list[str]:
        """Who said anything, in the order they came."""
        with self._lock:
            return list(self._by_person)

    def of_person(self, who: str) -> list[Entry]:
        """All that a person said."""
        with self._lock:
            return list(self._by_person.get(who, ()))

    def n_answered(self, who: str) -> int:
        """How many cards a person settled."""
        with self._lock:
            return sum(entry.event.kind in OUTCOMES[:1] + OUTCOMES[2:] for entry in self._by_person.get(who, ()))

    def last_answers(self, who: str) -> list[Entry]:
        """The last word of a person on each card, the newest card first. A correction stands where the answer stood."""
        latest: dict[int, Entry] = {}
        for entry in self.of_person(who):
            card = entry.event.card
            if card is not None and entry.event.kind in (*OUTCOMES, "later"):
                latest[card] = entry if card not in latest else Entry(latest[card].number, entry.event)
        return sorted(latest.values(), key=lambda entry: entry.number, reverse=True)

    def recent(self, n: int, kinds: Sequence[str] = (*OUTCOMES, "later")) -> list[Entry]:
        """The last events of some kinds, the newest first."""
        with self._lock:
            chosen: list[Entry] = []
            for entry in reversed(self._entries):
                if entry.event.kind in kinds:
                    chosen.append(entry)
                    if len(chosen) == n:
                        break
            return chosen
