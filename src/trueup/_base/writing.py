"""A file is written whole or not at all, and changed by one process at a time: a reader never sees half a file."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import IO

from trueup.exceptions import InvalidFile, MissingFile, TrueupError


def check_readable(path: str | PathLike[str], *, folders: bool = False) -> Path:
    """Stop where a file to read does not exist, or is a folder and `folders` will not do; it is not opened."""
    source, name = Path(path), repr(fspath(path))
    try:
        exists, is_folder = source.exists(), source.is_dir()
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{name} cannot be a path, got {error!s:.100}; check its name") from error
    if not exists:
        raise MissingFile(f"{name} does not exist, got no such file; check the path, taken from folder {Path.cwd()}")
    if is_folder and not folders:
        raise InvalidFile(f"{name} must be a file, got a folder; name a file in it")
    return source


def check_writable(path: str | PathLike[str]) -> Path:
    """Stop before long work whose result could not be written."""
    target, name = Path(path), repr(fspath(path))
    try:
        # A link is followed: the file it leads to is the one that is replaced.
        target = Path(os.path.realpath(target))
        if target.is_dir():
            raise InvalidFile(f"{name} must be a file, got a folder; name a file in it")
        if not target.parent.is_dir():
            raise MissingFile(f"the folder of {name} does not exist, got {str(Path(path).parent)!r}; make it first")
        may = os.access(target.parent, os.W_OK) and (not target.exists() or os.access(target, os.W_OK))
    except TrueupError:
        raise
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{name} cannot be written, got {error!s:.100}; check its name") from error
    if not may:
        raise InvalidFile(f"{name} cannot be written, got no right to; check the folder and its rights")
    return target


def write_text_safely(path: str | PathLike[str], text: str) -> None:
    """Write a UTF-8 text file in one step; see `replace_file`."""
    with replace_file(path) as stream:
        stream.write(text.encode())


@contextmanager
def replace_file(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """A stream that becomes the file by a rename: whatever happens, the path holds the old content or the new."""
    target = check_writable(path)
    # A device or a named pipe (/dev/stdout) is written to, not replaced.
    is_replaced = target.is_file() or not target.exists()
    temporary: Path | None = None
    try:
        if not is_replaced:
            with target.open("wb") as stream:
                yield stream
            return
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask())
        temporary.replace(target)
    except BrokenPipeError:
        _forget(temporary)
        raise
    except (OSError, UnicodeError) as error:
        _forget(temporary)
        raise InvalidFile(
            f"{fspath(path)!r} cannot be written, got {error!s:.100}; check the folder, its rights and the disk"
        ) from error
    except BaseException:
        _forget(temporary)
        raise
    _flush_folder(target.parent)


def _forget(temporary: Path | None) -> None:
    if temporary is not None:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    """The rights a new file does not get; they can only be read by setting them."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _flush_folder(folder: Path) -> None:
    """Make the rename last through a power cut, where the system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ------------------ One process at a time: a lock of the operating system on a file of its own.

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
