"""A file is written whole or not at all: a reader never sees half a file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import IO

from trueup.exceptions import InvalidFile, MissingFile, TrueupError


def check_readable(path: str | PathLike[str], *, folders: bool = False) -> Path:
    """Stop where a file to read does not exist, or is a folder and `folders` will not do; it is not opened."""
    source, who = Path(path), repr(fspath(path))
    try:
        exists, is_folder = source.exists(), source.is_dir()
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{who} cannot be a path, got {error!s:.100}; check its name") from error
    if not exists:
        raise MissingFile(f"{who} does not exist, got no such file; check the path, taken from folder {Path.cwd()}")
    if is_folder and not folders:
        raise InvalidFile(f"{who} must be a file, got a folder; name a file in it")
    return source


def check_writable(path: str | PathLike[str]) -> Path:
    """Stop before long work whose result could not be written."""
    target, who = Path(path), repr(fspath(path))
    try:
        # A link is followed: the file it leads to is the one that is replaced.
        target = Path(os.path.realpath(target))
        if target.is_dir():
            raise InvalidFile(f"{who} must be a file, got a folder; name a file in it")
        if not target.parent.is_dir():
            raise MissingFile(f"the folder of {who} does not exist, got {str(Path(path).parent)!r}; make it first")
        may = os.access(target.parent, os.W_OK) and (not target.exists() or os.access(target, os.W_OK))
    except TrueupError:
        raise
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{who} cannot be written, got {error!s:.100}; check its name") from error
    if not may:
        raise InvalidFile(f"{who} cannot be written, got no right to; check the folder and its rights")
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
