"""Copies of whole databases: backups, moves between SQLite and PostgreSQL, and what is done before an upgrade."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import sqlalchemy as sa

from trueup._base.writing import check_writable
from trueup.exceptions import StorageError
from trueup.storage.base import url_of_file
from trueup.storage.database.schema import VERSION_TABLE, known_schemas, migrate, read_schema, tables_in
from trueup.storage.database.sqlite import make_engine, make_private, shown_url, translate_database_errors

_ROWS_AT_ONCE = 1000


def copy_database(source: str, target: str) -> int:
    """Copy all sessions into an empty database, whatever the kinds of the two; returns how many sessions."""
    with (
        translate_database_errors(source, target),
        _engine(source, create=False) as reading,
        _snapshot(reading) as from_here,
    ):
        schema = _known_schema(from_here, source)  # before anything is made at the target
        with _engine(target) as engine, _writing(engine) as to_there:
            others = [name for name in tables_in(to_there) if name != VERSION_TABLE]
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
        with (
            translate_database_errors(source),
            _engine(source, create=False) as engine,
            _snapshot(engine) as connection,
        ):
            is_sqlite = engine.dialect.name == "sqlite"
            _known_schema(connection, source)
            if is_sqlite:
                _back_up_file(connection, part)
        if not is_sqlite:
            copy_database(source, url_of_file(part))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def upgrade(url: str, backup: Path | None) -> tuple[str, str, Path | None]:
    """Bring a database to the newest schema, after a backup; returns the schemas before and after, and the backup."""
    with translate_database_errors(url), _engine(url, create=False) as engine:
        newest = known_schemas()[-1]
        with _snapshot(engine) as connection:
            schema = _known_schema(connection, url)
        if schema == newest:
            return schema, newest, None
        path = backup or _backup_name(engine.url, schema)
        back_up(url, path)
        with _writing(engine) as connection:
            migrate(connection)
        return schema, newest, path


def _backup_name(url: sa.URL, schema: str) -> Path:
    """Beside a file; for a server in the folder that one is in."""
    place = Path(str(url.database))
    name = f"{place.stem}-schema-{schema}-backup.db"
    return place.with_name(name) if url.drivername.startswith("sqlite") else Path(name)


def _known_schema(connection: sa.Connection, url: str) -> str:
    """The schema of a database that this trueup can read the tables of."""
    schema = read_schema(connection, shown_url(url))
    if schema is None:
        raise StorageError(f"{shown_url(url)} holds no sessions of trueup, got an empty or another database; name one")
    return schema


def _snapshot(engine: sa.Engine) -> sa.Connection:
    """A connection that sees one moment."""
    if engine.dialect.name == "postgresql":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    return engine.connect()


def _writing(engine: sa.Engine) -> AbstractContextManager[sa.Connection]:
    """A transaction that may write."""
    return engine.execution_options(may_write=True).begin()


def _copy_rows(source: sa.Connection, target: sa.Connection) -> int:
    tables = sa.MetaData()
    tables.reflect(source, only=lambda name, _: name != VERSION_TABLE)
    for table in tables.sorted_tables:
        rows = source.execution_options(stream_results=True).execute(sa.select(table))
        for part in rows.mappings().partitions(_ROWS_AT_ONCE):
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
