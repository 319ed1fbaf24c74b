"""The work beside the server in a thread, for sessions that are made in tests."""

import threading
from collections.abc import Sequence

from trueup.serve.estimating import FollowedLog, LatestSnapshot, MakeSession, Watcher, append_cards, in_a_sentence
from trueup.sessions.log import Event
from trueup.storage import Storage

_PAUSE = 0.02  # seconds between two looks at the log
_PATIENCE = 1.0  # seconds that the thread gets to end


class InThread:
    """A watcher in a thread of this process, where a server has one in a process of its own."""

    def __init__(self, make: MakeSession, storage: Storage, name: str, latest: LatestSnapshot) -> None:
        self._make, self._storage, self._name, self._latest = make, storage, name, latest
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trueup-watcher", daemon=True)

    def start(self) -> None:
        """Begin to work; once is enough."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """End; what is being worked out is given up."""
        self._stopped.set()
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
                    self._stopped.wait(_PAUSE)
        except Exception as error:
            if not self._stopped.is_set():
                self._latest.put(problem=in_a_sentence(error))
