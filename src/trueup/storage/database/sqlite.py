"""SQLite: how it is opened so that a crash or a power cut loses nothing."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from trueup._base.optional import require
from trueup.exceptions import StorageError


def shown_url(url: str | sa.URL) -> str:
    """A URL as a user writes it, without the password."""
    return sa.make_url(url).render_as_string(hide_password=True).replace("+pysqlite", "").replace("+psycopg", "")


@contextmanager
def translate_database_errors(*urls: str) -> Iterator[None]:
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


if sys.platform != "win32":
    import fcntl

_SECONDS_TO_WAIT = 60.0  # for another process to finish writing
_OLDEST = (3, 35, 0)  # UPDATE … RETURNING
_SYNCHRONOUS = {"wal": 2, "delete": 3}  # FULL and EXTRA, as the pragma answers
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|afpfs|webdav|davfs\d?|ncpfs|ceph|lustre|gfs2?|ocfs2|glusterfs|beegfs|gpfs|pvfs2|"
    r"fuse\.(sshfs|glusterfs|ceph|rclone|s3fs|gcsfuse|davfs2?|juicefs|ceph-fuse)"
)


@dataclass(frozen=True)
class Journal:
    """How a database keeps what it is about to write."""

    mode: str  # As the pragma names it; "delete" is the rollback journal
    why: str  # One line for people


def has_wal_fix(version: tuple[int, ...]) -> bool:
    """Whether a version of SQLite can reset its write-ahead log without ever losing what was committed."""
    return version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)


def choose_journal(version: tuple[int, ...], asked: str | None = None) -> Journal:
    """The journal for a version of SQLite, or the one that is asked for where it is safe."""
    name = ".".join(map(str, version))
    if asked not in (None, "wal", "rollback"):
        raise StorageError(f"the journal of SQLite is 'wal' or 'rollback', got {asked!r}; leave it out, or name one")
    if asked == "rollback":
        return Journal("delete", "A rollback journal with synchronous=EXTRA is kept, as the URL asks for.")
    if has_wal_fix(version):
        return Journal("wal", f"SQLite {name} keeps a write-ahead log with full sync.")
    if asked == "wal":
        raise StorageError(
            f"a write-ahead log needs SQLite 3.44.6, 3.50.7, 3.51.3 or later of these lines, got {name}, which can "
            "lose commits; leave out ?journal=wal"
        )
    return Journal(
        "delete",
        f"SQLite {name} can lose commits when it resets its write-ahead log (mended in 3.44.6, 3.50.7 and 3.51.3), so "
        "a rollback journal with synchronous=EXTRA is kept.",
    )


def make_sqlite_engine(url: sa.URL, *, create: bool) -> tuple[sa.Engine, Journal]:
    """The engine for a file, which is made where it is not there or is an error then, and the journal that it keeps."""
    if sqlite3.sqlite_version_info < _OLDEST:
        raise StorageError(
            f"SQLite must be {'.'.join(map(str, _OLDEST))} or later, got {sqlite3.sqlite_version}; use PostgreSQL, or "
            "a newer Python"
        )
    path = _path_of(url)
    if path.is_dir():
        raise StorageError(f"a storage of SQLite is a file, got the folder {str(path)!r}; name a file in it")
    asked = url.query.get("journal")
    journal = choose_journal(sqlite3.sqlite_version_info, asked if isinstance(asked, str) else None)
    if create:
        make_private(path)
    elif not path.exists():
        raise StorageError(f"there is no storage sqlite:///{path}, got no such file; name one that is there")
    engine = sa.create_engine(
        url.set(drivername="sqlite+pysqlite", database=str(path), query={}),
        connect_args={"timeout": _SECONDS_TO_WAIT, "check_same_thread": False, "isolation_level": None},
    )
    sa.event.listen(engine, "connect", lambda connection, _: prepare(connection, journal, str(path)))
    sa.event.listen(engine, "begin", _begin)
    return engine, journal


def make_private(path: Path) -> None:
    """A new file is for its owner alone: it holds what people said, and who may enter. SQLite's other files follow."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return  # it is there, or the connection will say why it cannot be


def _path_of(url: sa.URL) -> Path:
    """The file, in a folder that is there and not across a network."""
    others = sorted(set(url.query) - {"journal"})
    if others:
        raise StorageError(f"a URL of SQLite has the option 'journal' only, got {others[0]!r}; leave it out")
    if not url.database or url.database == ":memory:":
        raise StorageError(
            "a storage must be a file that other processes can open, got a database in memory; use sqlite:///test.db"
        )
    path = Path(url.database).absolute()
    if not path.parent.is_dir():
        raise StorageError(f"the folder of {str(path)!r} does not exist, got {str(path.parent)!r}; make it first")
    kind = file_system_of(path)
    if kind is not None and _NETWORK.fullmatch(kind):
        raise StorageError(
            f"SQLite is not safe across a network, got {str(path)!r} on {kind}; use a folder of this machine, or "
            "PostgreSQL"
        )
    return path


def file_system_of(path: Path) -> str | None:
    """The kind of file system that a path lies on; None where it is unknown."""
    mounts = Path("/proc/self/mounts")
    if sys.platform == "win32":
        import ctypes

        remote = 4  # DRIVE_REMOTE
        is_remote = str(path).startswith("\\\\") or ctypes.windll.kernel32.GetDriveTypeW(path.anchor) == remote
        return "smb" if is_remote else None
    if mounts.exists():
        return kind_of_mount(path.resolve(), mounts.read_text(encoding="utf-8", errors="replace"))
    if sys.platform == "darwin":
        listed = subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=False)
        return kind_of_mount(path.resolve(), listed.stdout)
    return None


_MOUNT = re.compile(r"^(?:.+ on (?P<mac>/.*) \((?P<mac_kind>\w+)|\S+ (?P<place>/\S*) (?P<kind>\S+) )", re.MULTILINE)


def kind_of_mount(path: Path, mounts: str) -> str | None:
    """The kind of the innermost mount that a path lies under, from /proc/self/mounts or what `mount` of macOS says."""
    kinds = {}
    for match in _MOUNT.finditer(mounts):  # a later mount at the same place hides the one before
        place = match["mac"] or re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), match["place"])
        kinds[Path(place)] = match["mac_kind"] or match["kind"]
    return next((kinds[folder] for folder in (path, *path.parents) if folder in kinds), None)


def prepare(connection: Any, journal: Journal, path: str) -> None:
    """Set up a new connection, and read back whether it is as it should be."""
    mode = None
    try:
        mode = _pragma(connection, "journal_mode")
        if mode != journal.mode:
            mode = _pragma(connection, f"journal_mode={journal.mode}")
    except sqlite3.DatabaseError as error:
        if mode is None or "locked" not in str(error):
            raise StorageError(f"{path!r} is no database of SQLite, got {error!s:.100}; name another file") from error
    if mode == "wal" and journal.mode != "wal":
        raise StorageError(
            f"{path!r} must be without a write-ahead log, which SQLite {sqlite3.sqlite_version} can lose commits of, "
            "got one that another process has open; end that process first"
        )
    if mode not in _SYNCHRONOUS:
        raise StorageError(f"{path!r} must keep a journal on disk, got journal_mode={mode}; name another file")
    # The latter: a name that is forgotten does not stay in free pages.
    for name, value in {"synchronous": _SYNCHRONOUS[mode], "foreign_keys": 1, "secure_delete": 1}.items():
        _pragma(connection, f"{name}={value}")
        answer = _pragma(connection, name)
        if answer != value:
            raise StorageError(
                f"{path!r} must be opened with {name}={value}, got {answer!r} read back; use another build of SQLite"
            )


class WriteLock:
    """Whose turn it is to write, among the processes that share a file; first come, first served.

    SQLite itself lets who waits look again and again: of 8 processes that wrote all the time for 6 seconds, five wrote
    at most 7 times with its busy timeout alone, and all at least 67 times with this lock of the system on a file.
    """

    def __init__(self, database: str) -> None:
        self._file: int | None = None
        if sys.platform != "win32":
            with suppress(OSError):  # where it cannot be, there is no order among those who wait
                self._file = os.open(f"{database}-turns", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> None:
        if self._file is not None and sys.platform != "win32":
            fcntl.lockf(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        if self._file is not None and sys.platform != "win32":
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _pragma(connection: Any, text: str) -> Any:
    row = connection.execute(f"PRAGMA {text}").fetchone()
    return None if row is None else row[0]


def _begin(connection: sa.Connection) -> None:
    """Who may write says so at once: two that read first and write then would be in each other's way."""
    may_write = connection.get_execution_options().get("may_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if may_write else "BEGIN")
