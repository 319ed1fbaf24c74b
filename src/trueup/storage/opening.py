"""From a URL to a storage."""

from __future__ import annotations

from os import PathLike, fspath
from typing import TYPE_CHECKING

from trueup._base.optional import require
from trueup.exceptions import StorageError

if TYPE_CHECKING:
    from trueup.storage.base import Storage


def require_database(purpose: str) -> None:
    """Say which extra is missing, if one is."""
    for module in ("sqlalchemy", "alembic"):
        require(module, purpose=purpose)


def url_of_file(path: str | PathLike[str]) -> str:
    """The URL of a file of SQLite.

    Examples
    --------
    >>> url_of_file("test.db")
    'sqlite:///test.db'
    """
    if "?" in fspath(path):  # what comes after it would be options
        raise StorageError(
            f"a file of a storage must have no question mark in its path, got {fspath(path)!r}; rename it"
        )
    return f"sqlite:///{fspath(path)}"


def open_storage(url: str | Storage, *, create: bool = True) -> Storage:
    """The storage at a URL; an empty database gets its tables.

    Parameters
    ----------
    url : str or Storage
        ``sqlite:///test.db`` (three slashes and a path, four for an absolute one) or
        ``postgresql://user@host/database``. A storage is returned as it is. ``?journal=rollback`` keeps a rollback
        journal where SQLite would keep a write-ahead log.
    create : bool
        Whether a file that is not there is made, and an empty database gets its tables; else that is an error.

    Raises
    ------
    StorageError
        The database is of another version of trueup, on a network file system, or cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     storage = open_storage(f"sqlite:///{folder}/test.db")
    ...     names = [session.name for session in storage.sessions()]
    ...     storage.close()
    >>> names
    []
    """
    if not isinstance(url, str):
        return url
    require_database("a storage of sessions")
    from trueup.storage.database.storage import DatabaseStorage

    return DatabaseStorage(url, create=create)
