"""Looking after a storage: backups, copies and upgrades."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from trueup.storage.opening import require_database


def back_up(url: str, path: str | PathLike[str]) -> None:
    """Write a whole storage to a new file of SQLite, also that of a server; others may go on writing.

    Parameters
    ----------
    url : str
    path : path
        Must not exist, and have no question mark. It is a storage itself: ``sqlite:///`` and the path open it.
    """
    require_database("a backup")
    from trueup.storage.database import copying

    copying.back_up(url, Path(path))


def copy_storage(source: str, target: str) -> int:
    """Copy all sessions of a storage into an empty database, from SQLite to PostgreSQL or back.

    Parameters
    ----------
    source, target : str
        URLs.

    Returns
    -------
    int
        How many sessions there are.
    """
    require_database("a copy of a storage")
    from trueup.storage.database import copying

    return copying.copy_database(source, target)


def upgrade(url: str, *, backup: str | PathLike[str] | None = None) -> Path | None:
    """Bring a storage that an older trueup made to the schema of this one, after a backup.

    Parameters
    ----------
    url : str
    backup : path, optional
        Where the backup is written; by default beside the database, or for a server in the current folder.

    Returns
    -------
    Path or None
        The backup; None if there was nothing to do.
    """
    require_database("an upgrade")
    from trueup.storage.database import copying

    return copying.upgrade(url, None if backup is None else Path(backup))[2]
