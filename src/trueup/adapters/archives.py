"""Files that hold files: folders, zip and tar, read member by member within limits.

A member that claims to be, or turns out to be, far larger than it is packed is refused before it fills the memory.
"""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from trueup._base.optional import is_installed, require
from trueup.exceptions import InvalidFile, MissingExtra, quoted

LARGEST_MEMBER = 2**29
_FREE_TOTAL, _LARGEST_RATIO = 2**27, 100  # what may be unpacked in all: so much, and so many times the packed size
_MOST_FILES = 1_000_000
GZIP_MAGIC = b"\x1f\x8b"
_ZSTANDARD = 93  # the method in zip files
_LOCAL_HEADER = struct.Struct("<26xHH")  # lengths of the name and of the extra field


class Archive(ABC):
    """Named members of a folder or of a packed file.

    Attributes
    ----------
    names : list of str
        The members, with / between folders, in their order in the archive.
    """

    names: list[str]

    def __init__(self, who: str) -> None:
        self.who = who

    @abstractmethod
    def open(self, name: str) -> IO[bytes]:
        """A member as a stream of bytes, no longer than is allowed."""

    def read(self, name: str) -> bytes:
        """A member as bytes."""
        with self.open(name) as stream:
            return stream.read()

    def ending_in(self, suffix: str | tuple[str, ...]) -> list[str]:
        """The names that end so, in their order; what macOS adds beside each file is left out."""
        return [name for name in self.names if name.endswith(suffix) and not name.rpartition("/")[2].startswith("._")]


class Allowance:
    """How much may still be unpacked of a file.

    Parameters
    ----------
    who : str
        How errors call the file.
    most : int
        So many bytes in all.
    """

    def __init__(self, who: str, most: int) -> None:
        self._who, self._most = who, most
        self._left = most

    @classmethod
    def for_packed(cls, who: str, n_bytes: int) -> Allowance:
        """What may be unpacked of a file of this size."""
        return cls(who, _FREE_TOTAL + _LARGEST_RATIO * n_bytes)

    def take(self, n_bytes: int, what: str) -> None:
        """Count bytes that are about to be unpacked, or refuse."""
        if n_bytes > LARGEST_MEMBER:
            raise self._refusal(f"{what} of {n_bytes:,} bytes", LARGEST_MEMBER)
        self._left -= n_bytes
        if self._left < 0:
            raise self._refusal(f"more than {self._most:,} bytes in all", self._most)

    def _refusal(self, got: str, most: int) -> InvalidFile:
        return InvalidFile(
            f"{self._who} would unpack to more than is read from a file of its size, got {got}, at most {most:,}; "
            "check that it is the export itself, or unpack it and name the folder"
        )


class _Limited(io.RawIOBase):
    """A stream that refuses to give more than an allowance, and closes with it what lies under it."""

    def __init__(self, stream: Any, under: Sequence[Any], allowance: Allowance, what: str) -> None:
        self._stream, self._under, self._allowance, self._what = stream, under, allowance, what

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        self._allowance.take(len(block), self._what)
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        for stream in (self._stream, *self._under):
            stream.close()
        super().close()


def limited(stream: Any, allowance: Allowance, what: str, *, under: Sequence[Any] = ()) -> IO[bytes]:
    """A stream of what is unpacked, refused once it is more than an allowance; `under` is closed with it."""
    return io.BufferedReader(_Limited(stream, under, allowance, what), 2**18)


class Folder(Archive):
    """A folder and what lies below it."""

    def __init__(self, path: Path, who: str) -> None:
        super().__init__(who)
        self._path = path
        files = []
        for file in path.rglob("*"):
            if file.is_file():
                files.append(file.relative_to(path).as_posix())
            if len(files) > _MOST_FILES:
                raise InvalidFile(f"{who} has too many files, got more than {_MOST_FILES:,}; name the folder of one")
        self.names = sorted(files)

    def open(self, name: str) -> IO[bytes]:
        """A file of the folder."""
        return (self._path / name).open("rb")


class Zip(Archive):
    """A zip file, whose members may be packed with Zstandard, as the logs of Inspect are."""

    def __init__(self, open_file: Callable[[], IO[bytes]], who: str, size: int) -> None:
        super().__init__(who)
        self._open_file = open_file
        self._allowance = Allowance.for_packed(who, size)
        with open_file() as stream, zipfile.ZipFile(stream) as archive:
            self._info = {info.filename: info for info in archive.infolist() if not info.is_dir()}
        self.names = list(self._info)

    def check_size(self) -> None:
        """Refuse the file if it claims to be too large to be unpacked whole."""
        for info in self._info.values():
            self._allowance.take(info.file_size, f"the member {quoted(info.filename)}")

    def open(self, name: str) -> IO[bytes]:
        """A member, unpacked."""
        info, what = self._info[name], f"the member {quoted(name)}"
        self._allowance.take(info.file_size, what)
        if info.compress_type == _ZSTANDARD:
            with self._open_file() as stream:
                return io.BytesIO(self._unpack_zstandard(stream, info))
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(self._open_file())))
            try:
                member = archive.open(info)
            except (RuntimeError, NotImplementedError) as error:  # locked by a password, or packed in a rare way
                raise InvalidFile(
                    f"{what} of {self.who} cannot be read, got {error!s:.80}; unpack the file and name the folder"
                ) from error
            return limited(member, Allowance(self.who, info.file_size), what, under=[stack.pop_all()])

    def _unpack_zstandard(self, stream: IO[bytes], info: zipfile.ZipInfo) -> bytes:
        stream.seek(info.header_offset)
        header = stream.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size:
            raise self._damage(info, "the end of the file")
        stream.seek(sum(_LOCAL_HEADER.unpack(header)), io.SEEK_CUR)
        # Never more than the file has, whatever the directory of the archive claims.
        packed = stream.read(min(info.compress_size, LARGEST_MEMBER))
        content = _unpacked(packed, info.file_size, self.who)
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise self._damage(info, f"{len(content):,} bytes with another check sum")
        return content

    def _damage(self, info: zipfile.ZipInfo, got: str) -> InvalidFile:
        return InvalidFile(
            f"the member {quoted(info.filename)} of {self.who} is damaged, got {got}; copy the file again"
        )


def _unpacked(packed: bytes, size: int, who: str) -> bytes:
    """Bytes that were packed with Zstandard, at most one more than they are said to be."""
    if not is_installed("zstandard"):
        if is_installed("compression"):  # from Python 3.14 on
            built_in = require("compression.zstd", purpose="reading it")
            return bytes(built_in.ZstdDecompressor().decompress(packed, max_length=size + 1))
        raise MissingExtra(
            f"{who} is packed with Zstandard, which needs zstandard: pip install 'trueup[inspect]', or unpack the log "
            "with 'inspect log convert --to json'"
        )
    zstandard = require("zstandard", purpose="reading it")
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            return bytes(reader.read(size + 1))
    except zstandard.ZstdError as error:
        raise InvalidFile(f"{who} is damaged, got {error!s:.80}; copy the file again") from error


class Tar(Archive):
    """A tar file, gzipped or not; its members are read at once, since it can only be read in order."""

    def __init__(self, open_file: Callable[[], IO[bytes]], who: str) -> None:
        super().__init__(who)
        self._content: dict[str, bytes] = {}
        with open_file() as packed:
            is_gzipped = packed.read(2) == GZIP_MAGIC
            packed.seek(0)
            allowance = Allowance(who, LARGEST_MEMBER)
            unpacked = gzip.GzipFile(fileobj=packed) if is_gzipped else packed
            # The whole stream is limited: headers can be as long as they claim, too.
            with limited(unpacked, allowance, "a stream") as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    opened = archive.extractfile(member) if member.isfile() else None
                    if opened is not None:
                        self._content[member.name] = opened.read()
        self.names = list(self._content)

    def open(self, name: str) -> IO[bytes]:
        """A member."""
        return io.BytesIO(self._content[name])
