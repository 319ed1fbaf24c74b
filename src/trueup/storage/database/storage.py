"""`DatabaseStorage`: the storage over SQLAlchemy, for SQLite and PostgreSQL."""

from __future__ import annotations

import json
import os
import queue
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from trueup._base.validation import check_number
from trueup._base.writing import check_writable
from trueup.exceptions import InvalidParameter, StorageError
from trueup.sessions.log import Event, read_name
from trueup.storage.base import Accepted, Card, Grant, SessionKind, SessionRecord, Waiting, url_of_file
from trueup.storage.database import rows
from trueup.storage.database.sqlite import WriteLock, make_engine, make_private, shown_url, translate_database_errors
from trueup.storage.database.tables import (
    VERSION_TABLE,
    DatabaseNow,
    cards,
    check_schema,
    events,
    grants,
    known_schemas,
    migrate,
    read_row,
    read_schema,
    sessions,
    tables_in,
)

Result = TypeVar("Result")
Job = Callable[[sa.Connection], Any]

_ATTEMPTS = 5  # where two writers of PostgreSQL stood in each other's way
_MOST_AT_ONCE = 256  # jobs in one transaction
_NEUTRAL = "forgotten person"
_JUDGES = ("judges", "crowds")  # where the batch of a monitor names people


class DatabaseStorage:
    """Sessions in a database; see `trueup.storage.Storage` for what each method promises."""

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
        self._writing = self._engine.execution_options(may_write=True)
        is_sqlite = self._engine.dialect.name == "sqlite"
        turns = WriteLock(str(self._engine.url.database)) if is_sqlite else None
        self._writer: Writer | None = None if turns is None else Writer(self._writing, turns)
        self._process = os.getpid()
        self._end = weakref.finalize(self, _shut, self._writer, turns, self._engine, self._process)

    def _at_work(self) -> None:
        """A process that was forked has neither the thread nor the connections of its parent."""
        if os.getpid() != self._process:
            self._end.detach()
            self._engine.dispose(close=False)
            self._open()

    def _read(self, job: Callable[[sa.Connection], Result]) -> Result:
        self._at_work()
        with translate_database_errors(self.url), self._engine.begin() as connection:
            return job(connection)

    def _write(self, job: Callable[[sa.Connection], Result]) -> Result:
        """What a job returns, after its commit; jobs of SQLite go through the one writer of the process."""
        self._at_work()
        with translate_database_errors(self.url):
            if self._writer is not None:
                return self._writer.run(job)
            for attempt in count(1):
                try:
                    with self._writing.begin() as connection:
                        return job(connection)
                except sa.exc.OperationalError as error:
                    # PostgreSQL gave up a transaction for another one; nothing of it is kept, so it can be repeated.
                    if attempt == _ATTEMPTS or getattr(error.orig, "sqlstate", None) not in ("40001", "40P01"):
                        raise
            raise AssertionError("the last attempt returns or raises")

    def _read_in(self, name: str, job: Callable[[sa.Connection, Any], Result]) -> Result:
        """What a job reads in one session, given its row."""
        return self._read(lambda connection: job(connection, rows.open_row(connection, name)))

    def _write_in(self, name: str, job: Callable[[sa.Connection, Any], Result], *, lock: bool = False) -> Result:
        """What a job writes in one session, given its row, which is locked against other writers on request."""
        return self._write(lambda connection: job(connection, rows.open_row(connection, name, lock=lock)))

    def sessions(self) -> list[SessionRecord]:
        query = sa.select(sessions).order_by(sessions.c.name)
        return self._read(lambda connection: [read_row(SessionRecord, row) for row in connection.execute(query)])

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
        if not isinstance(name, str) or not name:
            raise InvalidParameter(f"`name` must be text, got {name!r}; pass the name of a session")
        row: dict[str, Any] = {"name": name, "kind": kind, "settings": dict(settings), "options": dict(options or {})}
        row |= {"fingerprints": dict(fingerprints or {}), "source": dict(source or {})}
        row |= {"created": DatabaseNow(), "paused": False, "n_events": 0, "n_draws": 0}

        def make(connection: sa.Connection) -> SessionRecord:
            try:
                with connection.begin_nested():
                    connection.execute(sa.insert(sessions).values(row))
            except sa.exc.IntegrityError:  # two processes may find out at the same time that there is one
                return rows.open_record(connection, name)
            if events:
                rows.add_events(connection, rows.open_row(connection, name, lock=True), events)
            return rows.open_record(connection, name)

        return self._write(make)

    def find(self, name: str) -> SessionRecord | None:
        return self._read(lambda connection: rows.find_record(connection, name))

    def open(self, name: str) -> SessionRecord:
        return self._read(lambda connection: rows.open_record(connection, name))

    def change(
        self, name: str, *, settings: Mapping[str, Any] | None = None, source: Mapping[str, Any] | None = None
    ) -> SessionRecord:
        def change(connection: sa.Connection, session: Any) -> SessionRecord:
            before = rows.open_record(connection, name)
            merged = {"settings": before.settings | dict(settings or {}), "source": before.source | dict(source or {})}
            connection.execute(sa.update(sessions).where(sessions.c.id == session.id).values(merged))
            return rows.open_record(connection, name)

        return self._write_in(name, change, lock=True)

    def pause(self, name: str, *, paused: bool = True) -> None:
        change = sa.update(sessions).where(sessions.c.name == name).values(paused=paused)
        self._write_in(name, lambda connection, _: connection.execute(change), lock=True)

    def delete(self, name: str) -> None:
        change = sa.delete(sessions).where(sessions.c.name == name)
        self._write_in(name, lambda connection, _: connection.execute(change), lock=True)

    def append(self, name: str, events: Sequence[Event], *, after: int | None = None) -> list[Event] | None:
        def add(connection: sa.Connection, session: Any) -> list[Event] | None:
            if after is not None and session.n_events != after:
                return None
            return [event for _, event in rows.add_events(connection, session, events)]

        return self._write_in(name, add, lock=True)

    def events(self, name: str, *, since: int = 0, most: int | None = None) -> list[Event]:
        return self._read_in(name, lambda connection, session: rows.read_events(connection, session, since, most))

    def cards(self, name: str, *, open_only: bool = True) -> list[Card]:
        return self._read_in(name, lambda connection, session: rows.read_cards(connection, session.id, open_only))

    def claim(self, name: str, who: str, *, seconds: float = 300.0) -> Card | None:
        length = _check_seconds(seconds)
        return self._write_in(name, lambda connection, session: rows.claim(connection, session, who, length))

    def renew(self, name: str, who: str, number: int, *, seconds: float = 300.0) -> Card | None:
        length = _check_seconds(seconds)
        return self._write_in(name, lambda connection, session: rows.renew(connection, session.id, who, number, length))

    def release(self, name: str, who: str, number: int) -> None:
        self._write_in(name, lambda connection, session: rows.release(connection, session.id, who, number))

    def answer(self, name: str, number: int, event: Event, *, next_seconds: float | None = None) -> Accepted:
        length = None if next_seconds is None else _check_seconds(next_seconds)
        return self._write(lambda connection: rows.answer(connection, name, number, event, length))

    def waiting(self, name: str, who: str) -> Waiting:
        return self._read_in(name, lambda connection, session: rows.waiting(connection, session.id, who))

    def grant(self, name: str, digest: str, *, who: str, role: str, use: str, seconds: float) -> Grant:
        end = DatabaseNow() + _check_seconds(seconds)
        row = {"digest": digest, "who": who, "role": role, "use": use, "created": DatabaseNow(), "expires": end}

        def add(connection: sa.Connection, session: Any) -> Grant:
            connection.execute(sa.insert(grants).values(**row, session=session.id))
            return read_row(Grant, connection.execute(_GRANTS.where(grants.c.digest == digest)).one())

        return self._write_in(name, add)

    def grants(self, name: str) -> list[Grant]:
        query = _GRANTS.where(sessions.c.name == name).order_by(grants.c.created, grants.c.digest)
        return self._read_in(name, lambda connection, _: [read_row(Grant, row) for row in connection.execute(query)])

    def find_grant(self, digest: str, *, use: str) -> Grant | None:
        return self._read(partial(_valid_grant, digest=digest, use=use))

    def use_grant(self, digest: str, *, use: str) -> Grant | None:
        is_mine = sa.and_(grants.c.digest == digest, grants.c.use == use, grants.c.used.is_(None), _is_valid())
        change = sa.update(grants).where(is_mine).values(used=DatabaseNow())
        return self._write(  # by one statement: of two callers one gets it
            lambda connection: _valid_grant(connection, digest, use) if connection.execute(change).rowcount else None
        )

    def revoke(self, name: str, *, who: str | None = None, digest: str | None = None) -> int:
        which = {grants.c.who: who, grants.c.digest: digest}
        end = sa.update(grants).where(grants.c.revoked.is_(None)).values(revoked=DatabaseNow())
        end = end.where(*(column == value for column, value in which.items() if value is not None))
        mine = sa.select(sessions.c.id).where(sessions.c.name == name).scalar_subquery()
        end = end.where(grants.c.session == mine)
        return self._write_in(name, lambda connection, _: connection.execute(end).rowcount)

    def forget(self, who: str) -> int:
        return self._write(partial(_forget, who=who))

    def now(self) -> float:
        return self._read(lambda connection: connection.execute(sa.select(DatabaseNow())).scalar_one())

    def close(self) -> None:
        self._end()

    def __repr__(self) -> str:
        return f"DatabaseStorage({self.url!r})"


def _make_tables(connection: sa.Connection, url: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7467)"))  # any number: one maker at a time
    if not check_schema(connection, url):  # else another process was quicker
        migrate(connection)


def _shut(writer: Writer | None, turns: WriteLock | None, engine: sa.Engine, process: int) -> None:
    """Finish what is being written; a process that was forked leaves what is its parent's alone."""
    if os.getpid() == process:
        if writer is not None:
            writer.close()
        if turns is not None:
            turns.close()
        engine.dispose()


_check_seconds = partial(check_number, name="seconds", low=0.0)
_GRANTS = sa.select(
    *(column for column in grants.columns if column.name != "session"), sessions.c.name.label("session")
).join(sessions)


def _is_valid() -> Any:
    return sa.and_(grants.c.revoked.is_(None), grants.c.expires > DatabaseNow())


def _valid_grant(connection: sa.Connection, digest: str, use: str) -> Grant | None:
    row = connection.execute(_GRANTS.where(grants.c.digest == digest, grants.c.use == use, _is_valid())).one_or_none()
    return None if row is None else read_row(Grant, row)


def _forget(connection: sa.Connection, who: str) -> int:
    """Put a neutral name in the place of another one everywhere; returns how many events carried it."""
    names = set(connection.scalars(sa.select(events.c.who).where(events.c.who.is_not(None)).distinct()))
    texts = sa.select(events.c.session, events.c.number, events.c.text)
    batches = connection.execute(texts.where(events.c.kind == "batch", events.c.text.is_not(None))).all()
    records = [json.loads(row.text) for row in batches]
    judges = [{str(read_name(name)) for key in _JUDGES for name in record[key]} for record in records]
    names = names.union(*judges)
    number = 1
    while f"{_NEUTRAL} {number}" in names:
        number += 1
    name = f"{_NEUTRAL} {number}"
    connection.execute(sa.delete(grants).where(grants.c.who == who))
    for column in (cards.c.leased_to, cards.c.reserved_for):
        connection.execute(sa.update(cards).where(column == who).values({column.name: name}))
    # The keys of their requests begin with a digest of the name, which whoever knows the names could read.
    n = connection.execute(sa.update(events).where(events.c.who == who).values(who=name, key=None)).rowcount
    for row, record, named in zip(batches, records, judges, strict=True):
        if who in named:
            record |= {key: [name if str(other) == who else other for other in record[key]] for key in _JUDGES}
            text = json.dumps(record, separators=(",", ":"))
            is_row = sa.and_(events.c.session == row.session, events.c.number == row.number)
            connection.execute(sa.update(events).where(is_row).values(text=text))
            n += 1
    return n


class Writer:
    """A thread that drains a queue of jobs into transactions, and answers each after the commit.

    A job that fails leaves nothing behind and takes no other with it. 20 threads wrote 154 events a second so, and 116
    with a transaction for each, on a disk that syncs.
    """

    def __init__(self, engine: sa.Engine, turn: AbstractContextManager[None]) -> None:
        self._engine, self._turn = engine, turn
        self._jobs: queue.SimpleQueue[tuple[Job, Future[Any]] | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="trueup-storage-writer", daemon=True)
        self._thread.start()

    def run(self, job: Callable[[sa.Connection], Result]) -> Result:
        """What the job returned, after its transaction was committed."""
        answer: Future[Result] = Future()
        with self._closing:
            if self._closed:
                raise StorageError("the storage is closed, got something to write; open it again")
            self._jobs.put((job, answer))
        return answer.result()

    def close(self) -> None:
        """Finish what is in the queue."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        if threading.current_thread() is not self._thread:  # where the last who knew it was a job
            self._thread.join()

    def _work(self) -> None:
        going_on = True
        while going_on:
            batch = [self._jobs.get()]
            while len(batch) < _MOST_AT_ONCE and batch[-1] is not None:
                try:
                    batch.append(self._jobs.get_nowait())
                except queue.Empty:
                    break
            going_on = batch[-1] is not None
            self._write([pair for pair in batch if pair is not None])
            del batch  # what a job knows is not kept until the next one comes

    def _write(self, batch: list[tuple[Job, Future[Any]]]) -> None:
        if not batch:
            return
        done: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with self._turn, self._engine.begin() as connection:
                for job, answer in batch:
                    try:  # where a job raises, nothing of it stays
                        with connection.begin_nested():
                            result = job(connection)
                    except Exception as error:
                        done.append((answer, None, error))
                    else:
                        done.append((answer, result, None))
        except BaseException as error:  # nothing of the batch was committed, and everyone who waits must hear of it
            for _, answer in batch:
                answer.set_exception(error)
            return
        for answer, result, problem in done:
            if problem is None:
                answer.set_result(result)
            else:
                answer.set_exception(problem)


_ROWS_AT_ONCE = 1000


def copy_database(source: str, target: str) -> int:
    """Copy all sessions into an empty database, whatever the kinds of the two; returns how many sessions."""
    with translate_database_errors(source, target), _snapshot(source) as from_here:
        schema = _known_schema(from_here, source)  # before anything is made at the target
        with _engine(target) as engine, engine.execution_options(may_write=True).begin() as to_there:
            others = tables_in(to_there)
            if others or read_schema(to_there, target) is not None:
                raise StorageError(
                    f"a copy is made into an empty database, got {shown_url(target)} with the tables "
                    f"{', '.join(others[:5])}; name another one"
                )
            migrate(to_there, schema)
            return _copy_rows(from_here, to_there)


@contextmanager
def _engine(url: str, *, create: bool = True) -> Iterator[sa.Engine]:
    engine = make_engine(url, create=create)[0]
    try:
        yield engine
    finally:
        engine.dispose()


def back_up(source: str, path: Path) -> None:
    """Write the whole database to a new file of SQLite, which is there whole or not at all."""
    target = check_writable(path)
    url_of_file(target)  # it must be possible to open it again
    if target.exists():
        raise StorageError(f"a backup is a new file, got {str(path)!r}, which is there; name another one")
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        with translate_database_errors(source), _snapshot(source) as connection:
            is_sqlite = connection.dialect.name == "sqlite"
            _known_schema(connection, source)
            if is_sqlite:
                _back_up_file(connection, part)
        if not is_sqlite:
            copy_database(source, url_of_file(part))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def upgrade(url: str, backup: Path | None) -> Path | None:
    """Bring a database to the newest schema, after a backup; None if there was nothing to do."""
    with translate_database_errors(url), _engine(url, create=False) as engine:
        with engine.connect() as connection:
            schema = _known_schema(connection, url)
        if schema == known_schemas()[-1]:
            return None
        if backup is None:  # beside a file; for a server in the folder of this process
            file = Path(str(engine.url.database))
            name = f"{file.stem}-schema-{schema}-backup.db"
            backup = file.with_name(name) if engine.dialect.name == "sqlite" else Path(name)
        back_up(url, backup)
        with engine.execution_options(may_write=True).begin() as connection:
            migrate(connection)
        return backup


def _known_schema(connection: sa.Connection, url: str) -> str:
    """The schema of a database that this trueup can read the tables of."""
    schema = read_schema(connection, shown_url(url))
    if schema is None:
        raise StorageError(f"{shown_url(url)} holds no sessions of trueup, got an empty or another database; name one")
    return schema


@contextmanager
def _snapshot(url: str) -> Iterator[sa.Connection]:
    """A connection that sees one moment of a database that is there."""
    with _engine(url, create=False) as engine:
        level = {"isolation_level": "REPEATABLE READ"} if engine.dialect.name == "postgresql" else {}
        with engine.execution_options(**level).connect() as connection:
            yield connection


def _copy_rows(source: sa.Connection, target: sa.Connection) -> int:
    tables = sa.MetaData()
    tables.reflect(source, only=lambda name, _: name != VERSION_TABLE)
    for table in tables.sorted_tables:
        found = source.execution_options(stream_results=True).execute(sa.select(table))
        for part in found.mappings().partitions(_ROWS_AT_ONCE):
            target.execute(sa.insert(table), [dict(row) for row in part])
    sessions = tables.tables["sessions"]
    last = target.scalar(sa.select(sa.func.max(sessions.c.id)))
    if target.dialect.name == "postgresql" and last is not None:
        target.execute(sa.text("SELECT setval(pg_get_serial_sequence('sessions', 'id'), :last)"), {"last": last})
    return target.scalar(sa.select(sa.func.count()).select_from(sessions)) or 0


def _back_up_file(connection: sa.Connection, path: Path) -> None:
    """Page by page, as SQLite does it itself."""
    source = connection.connection.driver_connection
    if not isinstance(source, sqlite3.Connection):
        raise TypeError(f"a connection of SQLite was due, got {type(source).__name__}")
    make_private(path)
    with closing(sqlite3.connect(path)) as target:
        source.backup(target)
