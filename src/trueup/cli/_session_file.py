"""A vetting session on disk: one JSON file that is always whole, and that one command at a time may change."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trueup._writing import write_text_safely
from trueup.exceptions import InvalidFile, MissingFile

__all__ = ["KnownFile", "SessionFile", "locked"]

_FORMAT = "trueup vet"
_VERSION = 1
_SECONDS_TO_WAIT = 30.0
_SECONDS_BETWEEN = 0.05


@dataclass(frozen=True)
class KnownFile:
    """A file that a session rests on: where it lies, seen from the session file, and what was in it."""

    path: str
    sha256: str

    @classmethod
    def of(cls, path: Path, session: Path) -> KnownFile:
        """The file as it is now."""
        if str(path) == "-":
            raise InvalidFile(
                "a session must find its files again, got standard input ('-'); save it to a file and name that"
            )
        return cls(_seen_from(path, session), _fingerprint(path))

    def find(self, session: Path) -> Path:
        """Where the file lies now; an error if its content is another one."""
        path = session.resolve().parent / self.path
        if not path.exists():
            raise MissingFile(
                f"{str(session)!r} rests on {str(path)!r}, got no such file; put it back there, or start a new session"
            )
        if _fingerprint(path) != self.sha256:
            raise InvalidFile(
                f"{str(path)!r} must be as it was when the session {str(session)!r} began, got other content; "
                "put the old file back, or start a new session"
            )
        return path


@dataclass(frozen=True)
class SessionFile:
    """What the file holds.

    Attributes
    ----------
    files : dict of KnownFile
        By role: "votes", "predictions", "predictions 2", …, and "gold" where there is one.
    reading : dict
        How the files are read: columns and what else was said about them.
    test : dict
        What `ActiveTest.to_json` gave.
    reasons : list of [item, why]
        Of the items that wait for an answer.
    """

    files: dict[str, KnownFile]
    reading: dict[str, Any]
    test: dict[str, Any]
    reasons: list[list[Any]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write it whole or not at all."""
        record = {
            "format": _FORMAT,
            "version": _VERSION,
            "files": {role: {"path": one.path, "sha256": one.sha256} for role, one in self.files.items()},
            "reading": self.reading,
            "reasons": self.reasons,
            "test": self.test,
        }
        write_text_safely(path, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> SessionFile:
        """Read it back, or say in one sentence why not."""
        if not path.exists():
            raise MissingFile(
                f"there is no session {str(path)!r}, got no such file; begin one with `trueup vet start` or "
                "`trueup vet ask SESSION VOTES PREDICTIONS`"
            )
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidFile(f"{str(path)!r} cannot be read, got {error!s:.100}; name a session file") from error
        except ValueError as error:
            raise InvalidFile(f"{str(path)!r} is no session, got {error!s:.100}; name a session file") from error
        if not isinstance(record, dict) or record.get("format") != _FORMAT or not _is_whole(record):
            raise InvalidFile(f"{str(path)!r} is no session of `trueup vet`, got other JSON; name a session file")
        if record.get("version") != _VERSION:
            raise InvalidFile(
                f"{str(path)!r} must be of version {_VERSION}, got {record.get('version')!r}; use the trueup that "
                "wrote it"
            )
        files = {role: KnownFile(one["path"], one["sha256"]) for role, one in record["files"].items()}
        return cls(files, record["reading"], record["test"], record.get("reasons", []))


def _is_whole(record: Mapping[str, Any]) -> bool:
    files = record.get("files")
    return (
        isinstance(files, dict)
        and "votes" in files
        and all(isinstance(one, dict) and {"path", "sha256"} <= one.keys() for one in files.values())
        and all(isinstance(record.get(part), dict) for part in ("reading", "test"))
        and all(isinstance(pair, list) and len(pair) == 2 for pair in record.get("reasons", []))
    )


def _seen_from(path: Path, session: Path) -> str:
    """Relative, so that the folder can be moved; absolute where there is no way from one to the other."""
    try:
        return Path(os.path.relpath(path.resolve(), session.resolve().parent)).as_posix()
    except ValueError:  # another drive
        return str(path.resolve())


def _fingerprint(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InvalidFile(f"{str(path)!r} cannot be read, got {error!s:.100}; check its name and rights") from error


@contextmanager
def locked(path: Path, *, wait: float | None = None) -> Iterator[None]:
    """Hold a session for as long as it is read, changed and written; another command waits its turn.

    The lock is one of the operating system on a file beside the session, so it ends with the process that holds it,
    whatever ends that.
    """
    lock = path.with_name(f".{path.name}.lock")
    until = time.monotonic() + (_SECONDS_TO_WAIT if wait is None else wait)
    while (held := _try_lock(lock, path)) is None:
        if time.monotonic() >= until:
            raise InvalidFile(
                f"{str(path)!r} is in use by another trueup command, got no turn to change it; try again when that "
                "one has ended"
            )
        time.sleep(_SECONDS_BETWEEN)
    try:
        yield
    finally:
        with suppress(OSError):  # an open file cannot be removed everywhere; it does no harm
            lock.unlink()
        os.close(held)


def _try_lock(lock: Path, session: Path) -> int | None:
    try:
        opened = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise InvalidFile(
            f"{str(session)!r} cannot be written, got {error!s:.100}; check the folder and its rights"
        ) from error
    try:
        _lock_now(opened)
        # Who held it before may have removed the file after it was opened here; then the lock is on nothing.
        if os.path.samestat(os.fstat(opened), os.stat(lock)):  # noqa: PTH116
            return opened
    except OSError:
        pass
    os.close(opened)
    return None


if sys.platform == "win32":
    import msvcrt

    def _lock_now(opened: int) -> None:
        msvcrt.locking(opened, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock_now(opened: int) -> None:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
