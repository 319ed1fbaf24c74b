"""Who may enter: hashes of secrets, with an end."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from trueup.storage.base import Grant
from trueup.storage.database.tables import DatabaseNow, grants, sessions


def grant_of(row: Any) -> Grant:
    """What a row stands for."""
    return Grant(
        row.digest, row.session_name, row.who, row.role, row.use, row.created, row.expires, row.used, row.revoked
    )


def _named() -> Any:
    columns = [column for column in grants.columns if column.name != "session"]
    return sa.select(*columns, sessions.c.name.label("session_name")).join(sessions)


def add_grant(connection: sa.Connection, seconds: float, **values: Any) -> None:
    """Keep the hash of a secret for some seconds."""
    connection.execute(sa.insert(grants).values(**values, created=DatabaseNow(), expires=DatabaseNow() + seconds))


def grants_of(connection: sa.Connection, session: int) -> list[Grant]:
    """All grants of a session."""
    query = _named().where(grants.c.session == session).order_by(grants.c.created, grants.c.digest)
    return [grant_of(row) for row in connection.execute(query)]


def _is_valid() -> Any:
    return sa.and_(grants.c.revoked.is_(None), grants.c.expires > DatabaseNow())


def find_grant(connection: sa.Connection, digest: str, use: str) -> Grant | None:
    """The grant of a hash if it is valid."""
    row = connection.execute(_named().where(grants.c.digest == digest, grants.c.use == use, _is_valid())).one_or_none()
    return None if row is None else grant_of(row)


def use_grant(connection: sa.Connection, digest: str, use: str) -> Grant | None:
    """Use a grant up; one statement, so that of two callers one gets it."""
    is_mine = sa.and_(grants.c.digest == digest, grants.c.use == use, grants.c.used.is_(None), _is_valid())
    row = connection.execute(
        sa.update(grants).where(is_mine).values(used=DatabaseNow()).returning(grants.c.digest)
    ).one_or_none()
    return None if row is None else find_grant(connection, digest, use)


def revoke(connection: sa.Connection, session: int, who: str | None, digest: str | None) -> int:
    """End grants; those that have been ended before do not count."""
    change = sa.update(grants).where(grants.c.session == session, grants.c.revoked.is_(None))
    if who is not None:
        change = change.where(grants.c.who == who)
    if digest is not None:
        change = change.where(grants.c.digest == digest)
    return connection.execute(change.values(revoked=DatabaseNow())).rowcount
