"""What the tests of storages share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from trueup.sessions.log import Event, Kind
from trueup.storage import Storage

Opening = Callable[[], Storage]

NAME = "q3"
ODD = (
    "<script>alert(1)</script>",
    "=cmd()",
    "../../etc/passwd",
    "a\0b",
    "\u202eright to left",
    "\ud800",
    "'; DROP TABLE events; --",
    "x" * 100_000,
    "",
)


def ask(*items: Any, **about: Any) -> list[Event]:
    """Items that are drawn, each with a chance."""
    return [Event("ask", item, propensity=0.25, why="It is uncertain.", **about) for item in items]


def tell(truth: Any, who: str, key: str | None = None, kind: Kind = "tell", **about: Any) -> Event:
    """What an expert says about a card."""
    return Event(kind, None, truth, who, key=key, **about)


def begin(storage: Storage, *items: Any) -> Storage:
    """A session with items that were drawn."""
    storage.create(NAME, "active test", {"metric": "accuracy"}, fingerprints={"votes": "1"})
    storage.append(NAME, ask(*items))
    return storage


def refusal(call: Callable[[], object], kind: type[Exception]) -> str:
    """What is said where something is refused, as it must be."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"a {kind.__name__} was due")


def numbers(cards: Iterable[Any]) -> list[int]:
    """The numbers of cards."""
    return [card.number for card in cards]


def all_at_once(jobs: Sequence[Callable[[], object]]) -> None:
    """Run jobs in threads that start at the same moment."""
    start = threading.Barrier(len(jobs))

    def wait_and_run(job: Callable[[], object]) -> None:
        start.wait()
        job()

    threads = [threading.Thread(target=wait_and_run, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
