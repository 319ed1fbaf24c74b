"""`DatabaseStorage`: the storage over SQLAlchemy, for SQLite and PostgreSQL."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sa

from trueup._base.validation import check_number
from trueup.exceptions import InvalidParameter, StorageError
from trueup.sessions.log import Event
from trueup.storage.base import Card, Grant, Kept, SessionKind, SessionRecord, Waiting
from trueup.storage.database import grants, leases, log, people, sessions
from trueup.storage.database.schema import check_schema, migrate
from trueup.storage.database.sqlite import Turns, faults_told, make_engine, shown_url
from trueup.storage.database.tables import DatabaseNow
from trueup.storage.database.writer import Writer

Result = TypeVar("Result")
_ATTEMPTS = 5  # where two writers of PostgreSQL stood in each other's way


class DatabaseStorage:
    """Sessions in a database; see `trueup.storage.Storage` for what each method promises.

    Parameters
    ----------
    url : str
        Of SQLite or PostgreSQL.
    create : bool
        Whether an empty database gets its tables; else it is an error.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        self._address = url
        self._open(create=create)
        if not self._read(partial(check_schema, url=self.url)):
            if not create:
                raise StorageError(f"there is no storage {self.url}, got an empty database; name one that has sessions")
            self._write(partial(_make_tables, url=self.url))

    def _open(self, *, create: bool = True) -> None:
        self._engine, self.notes = make_engine(self._address, create=create)
        self.url = shown_url(self._engine.url)
        self._is_sqlite = self._engine.dialect.name == "sqlite"
        self._writing = self._engine.execution_options(may_write=True)
        turns = Turns(str(self._engine.url.database)) if self._is_sqlite else None
        self._writer: Writer | None = None if turns is None else Writer(self._writing, turns)
        self._process = os.getpid()
        self._end = weakref.finalize(self, _shut, self._writer, turns, self._engine, self._process)

    # ------------------------------------------------------------------ reading and writing

    def _at_work(self) -> None:
        """A process that was forked has neither the thread nor the connections of its parent."""
        if os.getpid() != self._process:
            self._end.detach()
            self._engine.dispose(close=False)
            self._open()

    def _read(self, job: Callable[[sa.Connection], Result]) -> Result:
        self._at_work()
        with faults_told(self.url), self._engine.connect() as connection, connection.begin():
            return job(connection)

    def _write(self, job: Callable[[sa.Connection], Result]) -> Result:
        """What a job returns, after its commit; jobs of SQLite go through the one writer of the process."""
        self._at_work()
        with faults_told(self.url):
            if self._writer is not None:
                return self._writer.run(job)
            for _ in range(_ATTEMPTS - 1):
                try:
                    return self._write_now(job)
                except sa.exc.OperationalError as error:
                    if not _stood_in_the_way(error):
                        raise
            return self._write_now(job)

    def _write_now(self, job: Callable[[sa.Connection], Result]) -> Result:
        with self._writing.connect() as connection, connection.begin():
            return job(connection)

    # ------------------------------------------------------------------ sessions

    def sessions(self) -> list[SessionRecord]:
        """All sessions, by name."""
        return self._read(sessions.all_sessions)

    def create(
        self,
        name: str,
        kind: SessionKind,
        settings: Mapping[str, Any],
        *,
        options: Mapping[str, Any] | None = None,
        fingerprints: Mapping[str, str] | None = None,
        source: Mapping[str, Any] | None = None,
        events: Sequence[Event] = (),
    ) -> SessionRecord:
        """A new session with a log, or the one of that name as it is if there is one."""
        if not isinstance(name, str) or not name:
            raise InvalidParameter(
                f"⟨name⟩ must be a text, got {name!r}; pass the name of the session", parameter="name"
            )

        def make(connection: sa.Connection) -> SessionRecord:
            is_new = sessions.add_session(
                connection,
                name=name,
                kind=kind,
                settings=dict(settings),
                options=dict(options or {}),
                fingerprints=dict(fingerprints or {}),
                source=dict(source or {}),
            )
            if is_new and events:
                log.add_events(connection, sessions.open_row(connection, name, lock=True), events)
            return sessions.open_record(connection, name)

        return self._write(make)

    def find(self, name: str) -> SessionRecord | None:
        """The session of that name, if there is one."""
        return self._read(lambda connection: sessions.find_record(connection, name))

    def open(self, name: str) -> SessionRecord:
        """The session of that name."""
        return self._read(lambda connection: sessions.open_record(connection, name))

    def change(
        self, name: str, *, settings: Mapping[str, Any] | None = None, source: Mapping[str, Any] | None = None
    ) -> SessionRecord:
        """Change settings or parts of the source of a session; those not named stay."""

        def change(connection: sa.Connection) -> SessionRecord:
            sessions.open_row(connection, name, lock=True)
            before = sessions.open_record(connection, name)
            sessions.change_session(
                connection,
                name,
                settings={**before.settings, **(settings or {})},
                source={**before.source, **(source or {})},
            )
            return sessions.open_record(connection, name)

        return self._write(change)

    def pause(self, name: str, *, paused: bool = True) -> None:
        """Give out no new cards, or do so again."""

        def change(connection: sa.Connection) -> None:
            sessions.open_row(connection, name, lock=True)
            sessions.change_session(connection, name, paused=paused)

        self._write(change)

    def delete(self, name: str) -> None:
        """Remove a session with its log."""
        self._write(lambda connection: sessions.delete_session(connection, name))

    # ------------------------------------------------------------------ the log

    def append(self, name: str, events: Sequence[Event], *, after: int | None = None) -> list[Event] | None:
        """Add events to the end of the log; None if it has grown since it had `after` events."""

        def add(connection: sa.Connection) -> list[Event] | None:
            session = sessions.open_row(connection, name, lock=True)
            if after is not None and session.n_events != after:
                return None
            return [event for _, event in log.add_events(connection, session, events)]

        return self._write(add)

    def events(self, name: str, *, since: int = 0, most: int | None = None) -> list[Event]:
        """The log after the first `since` events."""

        def read(connection: sa.Connection) -> list[Event]:
            session = sessions.open_row(connection, name)
            return [] if session.n_events <= since else log.read_events(connection, session.id, since, most)

        return self._read(read)

    # ------------------------------------------------------------------ cards and leases

    def cards(self, name: str, *, open_only: bool = True) -> list[Card]:
        """The cards in the order in which they were drawn."""
        return self._read(
            lambda connection: leases.read_cards(
                connection, sessions.open_row(connection, name).id, open_only=open_only
            )
        )

    def claim(self, name: str, who: str, *, seconds: float = 300.0) -> Card | None:
        """The card that an expert is to answer now, leased to them."""
        length = _check_seconds(seconds)
        return self._write(
            lambda connection: leases.claim(connection, sessions.open_row(connection, name), who, length)
        )

    def renew(self, name: str, who: str, number: int, *, seconds: float = 300.0) -> Card | None:
        """Hold a card for longer; None if it is settled or somebody else has it by now."""
        length = _check_seconds(seconds)
        return self._write(
            lambda connection: leases.renew(connection, sessions.open_row(connection, name).id, who, number, length)
        )

    def release(self, name: str, who: str, number: int) -> None:
        """Give a card back unanswered."""
        self._write(lambda connection: leases.release(connection, sessions.open_row(connection, name).id, who, number))

    def answer(self, name: str, number: int, event: Event, *, next_seconds: float | None = None) -> Kept:
        """Keep what an expert says about a card and, in the same transaction, lease them the next one."""
        length = None if next_seconds is None else _check_seconds(next_seconds)
        return self._write(lambda connection: leases.answer(connection, name, number, event, length))

    def waiting(self, name: str, who: str) -> Waiting:
        """What is out with others, for an expert who got no card."""
        return self._read(lambda connection: leases.waiting(connection, sessions.open_row(connection, name).id, who))

    # ------------------------------------------------------------------ who may enter

    def grant(self, name: str, digest: str, *, who: str, role: str, use: str, seconds: float) -> Grant:
        """Keep the hash of a secret that opens a session for some seconds."""
        length = _check_seconds(seconds)

        def add(connection: sa.Connection) -> Grant:
            session = sessions.open_row(connection, name)
            grants.add_grant(connection, length, digest=digest, session=session.id, who=who, role=role, use=use)
            return next(one for one in grants.grants_of(connection, session.id) if one.digest == digest)

        return self._write(add)

    def grants(self, name: str) -> list[Grant]:
        """All that were given for a session."""
        return self._read(lambda connection: grants.grants_of(connection, sessions.open_row(connection, name).id))

    def find_grant(self, digest: str, *, use: str) -> Grant | None:
        """The grant of a secret's hash, if it is neither over nor revoked."""
        return self._read(lambda connection: grants.find_grant(connection, digest, use))

    def use_grant(self, digest: str, *, use: str) -> Grant | None:
        """Use it up: the first caller gets it, every other one None."""
        return self._write(lambda connection: grants.use_grant(connection, digest, use))

    def revoke(self, name: str, *, who: str | None = None, digest: str | None = None) -> int:
        """End the grants of an expert, one of them, or all of a session; returns how many."""
        return self._write(
            lambda connection: grants.revoke(connection, sessions.open_row(connection, name).id, who, digest)
        )

    # ------------------------------------------------------------------ people, and the end

    def forget(self, who: str) -> int:
        """Put a neutral name in the place of an expert's, in all sessions; returns how many events."""
        return self._write(lambda connection: people.forget(connection, who))

    def now(self) -> float:
        """The clock of the database, in seconds since 1970."""
        return self._read(lambda connection: connection.execute(sa.select(DatabaseNow())).scalar_one())

    def close(self) -> None:
        """Finish what is being written and let go of the database."""
        self._end()

    def __repr__(self) -> str:
        return f"DatabaseStorage({self.url!r})"


def _make_tables(connection: sa.Connection, url: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7467)"))  # any number: one maker at a time
    if not check_schema(connection, url):  # else another process was quicker
        migrate(connection)


def _shut(writer: Writer | None, turns: Turns | None, engine: sa.Engine, process: int) -> None:
    """Finish what is being written; a process that was forked leaves what is its parent's alone."""
    if os.getpid() == process:
        if writer is not None:
            writer.close()
        if turns is not None:
            turns.close()
        engine.dispose()


def _check_seconds(seconds: float) -> float:
    return check_number(seconds, name="seconds", low=0.0)


def _stood_in_the_way(error: sa.exc.OperationalError) -> bool:
    """Whether PostgreSQL gave up a transaction for another one; then nothing of it is kept, and it can be repeated."""
    return getattr(error.orig, "sqlstate", None) in ("40001", "40P01")
