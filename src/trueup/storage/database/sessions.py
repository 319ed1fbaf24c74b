"""Sessions in their table."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from trueup.exceptions import SessionMissing, quoted
from trueup.storage.base import SessionRecord
from trueup.storage.database.tables import DatabaseNow, events, sessions


def record_of(row: Any) -> SessionRecord:
    """What a row stands for."""
    return SessionRecord(
        row.name,
        row.kind,
        row.settings,
        row.options,
        row.fingerprints,
        row.source,
        row.created,
        row.paused,
        row.n_events,
    )


def all_sessions(connection: sa.Connection) -> list[SessionRecord]:
    """All sessions, by name."""
    return [record_of(row) for row in connection.execute(sa.select(sessions).order_by(sessions.c.name))]


# What most calls need of a session; settings can be long, and are read where they are asked for.
_STATE = sessions.c.id, sessions.c.paused, sessions.c.n_events, sessions.c.n_draws


def find_record(connection: sa.Connection, name: str) -> SessionRecord | None:
    """A session; None if there is none."""
    row = connection.execute(sa.select(sessions).where(sessions.c.name == name)).one_or_none()
    return None if row is None else record_of(row)


def open_record(connection: sa.Connection, name: str) -> SessionRecord:
    """A session; an error if there is none."""
    record = find_record(connection, name)
    if record is None:
        raise _missing(connection, name)
    return record


def open_row(connection: sa.Connection, name: str, *, lock: bool = False) -> Any:
    """The state of a session, locked against other writers on request; an error if there is none."""
    query = sa.select(*_STATE).where(sessions.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise _missing(connection, name)
    return row


def _missing(connection: sa.Connection, name: str) -> SessionMissing:
    names = [quoted(one) for one in connection.scalars(sa.select(sessions.c.name).order_by(sessions.c.name))]
    there = "none" if not names else f"{', '.join(names[:5])}{', …' if len(names) > 5 else ''}"
    return SessionMissing(f"there is no session {quoted(name)} in this storage, got {there}; use one of its names")


def add_session(connection: sa.Connection, **values: Any) -> bool:
    """Make a session; False if there is one of that name, which two processes may find out at the same time."""
    try:
        with connection.begin_nested():
            connection.execute(
                sa.insert(sessions).values(**values, created=DatabaseNow(), paused=False, n_events=0, n_draws=0)
            )
    except sa.exc.IntegrityError:
        return False
    return True


def change_session(connection: sa.Connection, name: str, **values: Any) -> None:
    """Put new values in a session's row."""
    connection.execute(sa.update(sessions).where(sessions.c.name == name).values(**values))


def delete_session(connection: sa.Connection, name: str) -> None:
    """Remove a session and everything that hangs on it."""
    row = open_row(connection, name, lock=True)
    connection.execute(sa.delete(sessions).where(sessions.c.id == row.id))


def n_events_by(connection: sa.Connection, who: str) -> int:
    """How many events an expert has, in all sessions."""
    return connection.scalar(sa.select(sa.func.count()).select_from(events).where(events.c.who == who)) or 0
