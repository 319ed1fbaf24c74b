"""From a URL to an engine of SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from trueup._base.optional import require
from trueup.exceptions import StorageError
from trueup.storage.database.sqlite import make_sqlite_engine


def shown_url(url: str | sa.URL) -> str:
    """A URL as a user writes it, without the password."""
    return sa.make_url(url).render_as_string(hide_password=True).replace("+pysqlite", "").replace("+psycopg", "")


@contextmanager
def faults_told(*urls: str) -> Iterator[None]:
    """What the database complains of, in one sentence."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        reason = " ".join(str(error.orig).split())
        raise StorageError(
            f"the storage {' or '.join(map(shown_url, urls))} cannot be used, got {reason:.200}; check that it runs, "
            "its rights and the disk"
        ) from error


def make_engine(address: str, *, create: bool = True) -> tuple[sa.Engine, tuple[str, ...]]:
    """The engine, and what a user should know about how it keeps things; a file that is not there may be made."""
    try:
        url = sa.make_url(address)
    except (sa.exc.ArgumentError, ValueError) as error:  # the latter of a port that is no number
        raise StorageError(
            "a storage is named by a URL, got none; write sqlite:///test.db or postgresql://user@host/database"
        ) from error
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        engine, journal = make_sqlite_engine(url, create=create)
        return engine, (journal.why,)
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        require("psycopg", purpose="a storage in PostgreSQL")
        return sa.create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True), ()
    raise StorageError(
        f"a storage must be SQLite or PostgreSQL, got {url.drivername!r}; write sqlite:///test.db or "
        "postgresql://user@host/database"
    )
