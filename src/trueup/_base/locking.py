"""One process at a time: a lock of the operating system on a file beside the one that is changed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trueup.exceptions import InvalidFile

_SECONDS_TO_WAIT = 30.0
_SECONDS_BETWEEN = 0.05


@contextmanager
def locked(path: Path, *, wait: float | None = None) -> Iterator[None]:
    """Hold a file for as long as it is read, changed and written; another command waits its turn."""
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


def _try_lock(lock: Path, path: Path) -> int | None:
    try:
        opened = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise InvalidFile(
            f"{str(path)!r} cannot be written, got {error!s:.100}; check the folder and its rights"
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
