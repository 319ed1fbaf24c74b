"""A file as adapters see it: what its first bytes show, its records, its JSON, its members.

A member that claims to be, or turns out to be, far larger than it is packed is refused before it fills the memory.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import struct
import sys
import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal

from trueup._base.optional import is_installed, require
from trueup._base.writing import check_readable
from trueup.data.files import Source, named, open_table, table_suffix, wrap_damage
from trueup.data.frames import Cells
from trueup.exceptions import InvalidFile, MissingExtra, TrueupError

# ------------------ JSON read piece by piece

_BLOCK = 2**20
_NEAR_END = 16  # the longest literal is -Infinity; what fails this close to the end may be cut off
_BLANKS = " \t\r\n\ufeff"
_DEEPEST_GLIMPSE = 100
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*("|$)|[][{},]', re.DOTALL)


class JsonStream:
    """A cursor in JSON text that arrives in blocks, over the decoder of the standard library.

    Not `ijson`, which refuses the NaN and Infinity that tools in Python write (its issue 33). `members` walks through
    an object and `elements` through a list; in the body of the first, the member is taken by `value`, `elements` or
    `members`, once.

    Examples
    --------
    >>> import io
    >>> stream = JsonStream(io.StringIO('{"a": [1, 2], "b": 3}'), "it")
    >>> {key: list(stream.elements()) if key == "a" else stream.value() for key in stream.members()}
    {'a': [1, 2], 'b': 3}
    """

    def __init__(self, stream: IO[str], who: str) -> None:
        self._stream, self._who = stream, who
        self._text, self._at, self._ended = "", 0, False
        self._line = 1
        self._scan = json.JSONDecoder().raw_decode

    def next_character(self) -> str:
        """The next character that is not blank, or nothing at the end; the cursor stands on it."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _BLANKS:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill():
                return ""

    def value(self) -> Any:
        """The next value, whole."""
        self.next_character()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except RecursionError:
                raise InvalidFile(
                    f"{self._who} is nested too deeply, got objects in objects from line {self._line_at(self._at)} on"
                ) from None
            except json.JSONDecodeError as error:
                cut_off = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _NEAR_END
                beyond = error.pos - self._at
                if not (cut_off and self._fill()):
                    raise self._damage(error.msg, self._at + beyond) from None
            except ValueError as error:  # a number of thousands of digits
                raise self._damage(f"{error!s:.60}", self._at) from None
            else:
                if end < len(self._text) or not self._fill():  # a number at the very end may go on in the next block
                    self._at = end
                    return value

    def elements(self) -> Iterator[Any]:
        """The elements of the list that comes next, one at a time."""
        yield from (self.value() for _ in self._steps("[", "]", "list"))

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next; the caller takes the member of each before the next key."""
        for _ in self._steps("{", "}", "object"):
            key = self.value()
            if not isinstance(key, str):
                raise self._damage(f"the key {key!r:.20}", self._at)
            self._expect(":")
            yield key

    def records(self) -> Iterator[Any]:
        """The elements of a list, of several in a row, or all values that are no list."""
        if self.next_character() != "[":
            while self.next_character():
                yield self.value()
        while self.next_character() == "[":
            yield from self.elements()

    def check_end(self) -> None:
        """Stop where something comes after the value that was read, which would be lost."""
        if self.next_character():
            raise self._damage("something after its end", self._at)

    def _steps(self, opening: str, closing: str, what: str) -> Iterator[None]:
        if self.next_character() != opening:
            raise self._damage(f"no {what} where one should be", self._at)
        self._at += 1
        is_first = True
        while self.next_character() != closing:
            if not is_first:
                self._expect(",")
            yield
            is_first = False
        self._at += 1

    def _expect(self, character: str) -> None:
        if self.next_character() != character:
            raise self._damage(f"no {character!r} where one should be", self._at)
        self._at += 1

    def _fill(self) -> bool:
        """More text; blocks grow with what is kept, so that a long value is not decoded again and again."""
        if self._ended:
            return False
        self._line += self._text.count("\n", 0, self._at)
        kept = self._text[self._at :]
        block = self._stream.read(max(_BLOCK, len(kept)))
        self._ended = not block
        self._text, self._at = kept + block, 0
        return not self._ended

    def _line_at(self, position: int) -> int:
        return self._line + self._text.count("\n", 0, position)

    def _damage(self, what: str, position: int) -> InvalidFile:
        place = "its end" if self._ended and position >= len(self._text) else f"line {self._line_at(position)}"
        return InvalidFile(
            f"{self._who} is not whole JSON, got {what!r} at {place}; export it again, or check that it was "
            "copied whole"
        )


def glimpse(text: str) -> tuple[Any, str]:
    """What the start of a JSON text holds, as far as it goes, and the text after the first value, if that has ended.

    A layout can so be recognised from the first bytes of a file of any length. What is damaged ends the glimpse.

    Examples
    --------
    >>> glimpse('[{"id": 1, "data": {"text": "lo')
    ([{'id': 1, 'data': {'text': 'lo'}}], '')
    """
    text = text.lstrip(_BLANKS)
    try:
        value, end = json.JSONDecoder().raw_decode(text)
        return value, text[end:].lstrip(_BLANKS)
    except (ValueError, RecursionError):
        damage = len(text)
    for end, closing in reversed(list(_cuts(text))):
        if end > damage:
            continue
        try:
            return json.loads(text[:end] + closing), ""
        except json.JSONDecodeError as error:
            damage = error.pos
        except (ValueError, RecursionError):
            break
    return None, ""


def _cuts(text: str) -> Iterator[tuple[int, str]]:
    """Where a JSON text may be cut, and what closes all that is open there."""
    closing = ""
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in ("{", "["):
            closing = ("}" if mark == "{" else "]") + closing
            yield token.end(), closing
        elif mark in ("}", "]"):
            closing = closing[1:]
        elif mark == ",":
            yield token.start(), closing
        elif token[1] == "":  # a text that has no end
            yield len(text), '"' + closing
        if len(closing) > _DEEPEST_GLIMPSE:
            return


# ------------------ Files that hold files: folders, zip and tar, read member by member within limits.

LARGEST_MEMBER = 2**29
_FREE_TOTAL, _LARGEST_RATIO = 2**27, 100  # what may be unpacked in all: so much, and so many times the packed size
_MOST_FILES = 1_000_000
GZIP_MAGIC = b"\x1f\x8b"
_ZSTANDARD = 93  # the method in zip files
_LOCAL_HEADER = struct.Struct("<26xHH")  # lengths of the name and of the extra field


class Archive(ABC):
    """Named members of a folder or of a packed file."""

    names: list[str]  # the members, with / between folders, in their order in the archive

    @abstractmethod
    def open(self, name: str) -> IO[bytes]:
        """A member as a stream of bytes, no longer than is allowed."""

    def ending_in(self, suffix: str | tuple[str, ...]) -> list[str]:
        """The names that end so, in their order; what macOS adds beside each file is left out."""
        return [name for name in self.names if name.endswith(suffix) and not name.rpartition("/")[2].startswith("._")]


class Allowance:
    """How much may still be unpacked of a file; by default of one of so many bytes."""

    def __init__(self, who: str, most: int | None = None, *, packed: int = 0) -> None:
        self._who, self._most = who, _FREE_TOTAL + _LARGEST_RATIO * packed if most is None else most
        self._left = self._most

    def take(self, n_bytes: int, what: str) -> None:
        """Count bytes that are about to be unpacked, or refuse."""
        self._left -= n_bytes
        if n_bytes > LARGEST_MEMBER or self._left < 0:
            is_member = n_bytes > LARGEST_MEMBER
            got = f"{what} of {n_bytes:,} bytes" if is_member else f"more than {self._most:,} bytes in all"
            raise InvalidFile(
                f"{self._who} would unpack to more than is read from a file of its size, got {got}, at most "
                f"{LARGEST_MEMBER if is_member else self._most:,}; check that it is the export itself, or unpack it "
                "and name the folder"
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
        self._path = path
        files = list(islice((file for file in path.rglob("*") if file.is_file()), _MOST_FILES + 1))
        if len(files) > _MOST_FILES:
            raise InvalidFile(f"{who} has too many files, got more than {_MOST_FILES:,}; name the folder of one")
        self.names = sorted(file.relative_to(path).as_posix() for file in files)

    def open(self, name: str) -> IO[bytes]:
        """A file of the folder."""
        return (self._path / name).open("rb")


class Zip(Archive):
    """A zip file, whose members may be packed with Zstandard, as the logs of Inspect are."""

    def __init__(self, open_file: Callable[[], IO[bytes]], who: str, size: int) -> None:
        self.who, self._open_file, self._allowance = who, open_file, Allowance(who, packed=size)
        with open_file() as stream, zipfile.ZipFile(stream) as archive:
            self._info = {info.filename: info for info in archive.infolist() if not info.is_dir()}
        self.names = list(self._info)

    def check_size(self) -> None:
        """Refuse the file if it claims to be too large to be unpacked whole."""
        for info in self._info.values():
            self._allowance.take(info.file_size, f"the member {info.filename!r}")

    def open(self, name: str) -> IO[bytes]:
        """A member, unpacked."""
        info, what = self._info[name], f"the member {name!r}"
        self._allowance.take(info.file_size, what)
        if info.compress_type == _ZSTANDARD:
            return io.BytesIO(self._unpack_zstandard(info))
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(self._open_file())))
            try:
                member = archive.open(info)
            except (RuntimeError, NotImplementedError) as error:  # locked by a password, or packed in a rare way
                raise InvalidFile(f"{what} of {self.who} cannot be read, got {error!s:.80}; unpack the file") from error
            return limited(member, Allowance(self.who, info.file_size), what, under=[stack.pop_all()])

    def _unpack_zstandard(self, info: zipfile.ZipInfo) -> bytes:
        got = "the end of the file"
        with self._open_file() as stream:
            stream.seek(info.header_offset)
            header = stream.read(_LOCAL_HEADER.size)
            if len(header) == _LOCAL_HEADER.size:
                stream.seek(sum(_LOCAL_HEADER.unpack(header)), io.SEEK_CUR)
                # Never more than the file has, whatever the directory of the archive claims.
                packed = stream.read(min(info.compress_size, LARGEST_MEMBER))
                content = _unpacked(packed, info.file_size, self.who)
                if len(content) == info.file_size and zlib.crc32(content) == info.CRC:
                    return content
                got = f"{len(content):,} bytes with another check sum"
        raise InvalidFile(f"the member {info.filename!r} of {self.who} is damaged, got {got}; copy the file again")


def _unpacked(packed: bytes, size: int, who: str) -> bytes:
    """Bytes that were packed with Zstandard, at most one more than they are said to be."""
    if not is_installed("zstandard"):
        if is_installed("compression"):  # from Python 3.14 on
            built_in = require("compression.zstd", purpose="reading it")
            return bytes(built_in.ZstdDecompressor().decompress(packed, max_length=size + 1))
        raise MissingExtra(f"{who} is packed with Zstandard, which needs zstandard: pip install 'trueup[inspect]'")
    zstandard = require("zstandard", purpose="reading it")
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            return bytes(reader.read(size + 1))
    except zstandard.ZstdError as error:
        raise InvalidFile(f"{who} is damaged, got {error!s:.80}; copy the file again") from error


class Tar(Archive):
    """A tar file, gzipped or not; its members are read at once, since it can only be read in order."""

    def __init__(self, open_file: Callable[[], IO[bytes]], who: str) -> None:
        self._content: dict[str, bytes] = {}
        with open_file() as packed:
            is_gzipped = packed.read(2) == GZIP_MAGIC
            packed.seek(0)
            unpacked = gzip.GzipFile(fileobj=packed) if is_gzipped else packed
            # The whole stream is limited: headers can be as long as they claim, too.
            whole = limited(unpacked, Allowance(who, LARGEST_MEMBER), "a stream")
            with whole as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    opened = archive.extractfile(member) if member.isfile() else None
                    if opened is not None:
                        self._content[member.name] = opened.read()
        self.names = list(self._content)

    def open(self, name: str) -> IO[bytes]:
        """A member."""
        return io.BytesIO(self._content[name])


_GLIMPSE_BYTES = 2**18
_ROWS_GLIMPSED = 20
_TAR_MARK = 257

Shape = Literal["object", "rows", "table", "archive", "other"]


@dataclass(frozen=True)
class Head:
    """What the beginning of a file shows, for adapters to recognise it by.

    Attributes
    ----------
    shape : {"object", "rows", "table", "archive", "other"}
        One JSON object; a list or lines of JSON; a csv, tsv, parquet or xlsx table; a folder, zip or tar; or other.
    rows : list of dict. The first records of rows and tables; the object itself where there is one only.
    members : list of str. The names in an archive.
    member_rows : list of dict. The first records of the first member, of an archive of JSON files without folders.
    """

    shape: Shape
    rows: list[dict[str, Any]] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    member_rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def document(self) -> dict[str, Any]:
        """The members of a single JSON object that were seen; nothing where there are several."""
        return self.rows[0] if self.shape == "object" and self.rows else {}

    @cached_property
    def keys(self) -> dict[str, Any]:
        """All keys of the first records, each with the first value that is not null."""
        keys: dict[str, Any] = {}
        for row in self.rows:
            for key, value in row.items():
                if keys.get(key) is None:
                    keys[key] = value
        return keys

    def described(self) -> str:
        """What was seen, for an error."""
        if self.shape == "other":
            return "neither JSON nor a table"
        names = self.members if self.shape == "archive" else list(self.keys)
        most = 5 if self.shape == "archive" else 12
        listed = ", ".join(f"{name!r:.40}" for name in names[:most]) + (", …" if len(names) > most else "")
        what = {
            "archive": "an archive or folder with",
            "object": "a JSON object with the keys",
            "rows": "records with the keys",
            "table": "the columns",
        }
        return f"{what[self.shape]} {listed or ('nothing' if self.shape == 'archive' else 'none')}"


class Content:
    """A file, folder or stream that is looked into, and then read by an adapter.

    Its `file_format`, "csv" or "tsv", is the kind of table where there is no suffix.
    """

    def __init__(self, source: Source, *, file_format: Any = None) -> None:
        self.who = named(source)
        self._bytes = b""
        self.path: Path | None = None
        if isinstance(source, str | PathLike) and source != "-":
            self.path = check_readable(source, folders=True)
        else:
            stream: Any = sys.stdin if source == "-" else source
            content = getattr(stream, "buffer", stream).read()
            self._bytes = content.encode() if isinstance(content, str) else content
        self.file_name = "" if self.path is None else self.path.name
        self._table = file_format or (None if self.path is None else table_suffix(self.path))

    @property
    def stem(self) -> str:
        """The name of the file without suffixes, where the labeler is named by it."""
        return without_suffix(self.file_name) or "standard input"

    @property
    def size(self) -> int:
        """In bytes, of the file as it is."""
        if self.path is None:
            return len(self._bytes)
        return 0 if self.path.is_dir() else self.path.stat().st_size

    def open_packed(self) -> IO[bytes]:
        """The bytes as they are."""
        return io.BytesIO(self._bytes) if self.path is None else self.path.open("rb")

    def open(self) -> IO[bytes]:
        """The bytes, unpacked if they are gzipped."""
        stream = self.open_packed()
        if not self._magic.startswith(GZIP_MAGIC):
            return stream
        allowance = Allowance(self.who, packed=self.size)
        return limited(gzip.GzipFile(fileobj=stream), allowance, "a stream", under=[stream])

    @contextmanager
    def json(self) -> Iterator[JsonStream]:
        """A cursor in the JSON of the file, which is to be read to its end."""
        with _json_of(self.open(), self.who) as stream:
            yield stream

    def records(self) -> Iterator[Any]:
        """The records of a list, of lines of JSON or of a table, one at a time; what is no object comes as it is."""
        if self.head.shape == "table":
            yield from self._table_rows()
            return
        with self.json() as stream:
            yield from stream.records()

    def member_records(self, name: str) -> Iterator[Any]:
        """The records of a member of the archive: of a list, or one value a line."""
        with _json_of(self.archive.open(name), f"{name!r} in {self.who}") as stream:
            yield from stream.records()

    @cached_property
    def archive(self) -> Archive:
        """The members of a folder, zip or tar."""
        if self.path is not None and self.path.is_dir():
            return Folder(self.path, self.who)
        if self._magic.startswith(b"PK"):
            return Zip(self.open_packed, self.who, self.size)
        return Tar(self.open_packed, self.who)

    @cached_property
    def head(self) -> Head:
        """What the first bytes show."""
        if self.path is not None and self.path.is_dir():
            return self._archive_head()
        if self._magic.startswith(b"PK"):
            is_workbook = "xl/workbook.xml" in self.archive.names
            return (
                Head("table", list(islice(self._table_rows(), _ROWS_GLIMPSED))) if is_workbook else self._archive_head()
            )
        if self._magic == b"PAR1":
            with open_table(self.path or self.open_packed(), file_format="parquet") as table:
                return Head("table", [dict.fromkeys(table.columns)])
        with self.open() as stream:
            start, is_all = stream.read(_GLIMPSE_BYTES), not stream.read(1)
        if start[_TAR_MARK : _TAR_MARK + 5] == b"ustar":
            return self._archive_head()
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InvalidFile(f"{self.who} is not UTF-8 text, got UTF-16; save it as UTF-8, or export it again")
        text = start.decode("utf-8-sig", errors="replace").lstrip()
        if not text:
            raise InvalidFile(f"{self.who} is empty, got {len(start)} bytes without text; export it again")
        if text[:1] in ("{", "["):
            return _json_head(text)
        if self._table not in ("csv", "tsv"):
            return Head("other")
        lines = start if is_all else start[: start.rfind(b"\n") + 1]
        try:
            return Head("table", list(islice(_rows_of(io.BytesIO(lines), self._table), _ROWS_GLIMPSED)))
        except TrueupError:  # cut within a cell
            with open_table(io.BytesIO(lines), file_format=self._table) as table:
                return Head("table", [dict.fromkeys(table.columns)])

    @cached_property
    def _magic(self) -> bytes:
        """The first bytes, by which files of many kinds are known."""
        with self.open_packed() as stream:
            return stream.read(4)

    def _archive_head(self) -> Head:
        names = self.archive.names
        rows: list[dict[str, Any]] = []
        if names and all(name.endswith((".json", ".jsonl")) and "/" not in name for name in names):
            with self.archive.open(names[0]) as stream:
                text = stream.read(_GLIMPSE_BYTES).decode("utf-8-sig", errors="replace").lstrip()
            rows = _json_head(text).rows if text[:1] in ("{", "[") else []
        return Head("archive", members=names, member_rows=rows)

    def _table_rows(self) -> Iterator[dict[str, Any]]:
        """The rows of a table; blank cells of text are None."""
        if self._magic.startswith(b"PK"):
            if isinstance(self.archive, Zip):
                self.archive.check_size()
            return _sheet_rows(self.open_packed, self.who)
        return _rows_of(self.path or self.open_packed(), "parquet" if self._magic == b"PAR1" else self._table)


@contextmanager
def _json_of(opened: IO[bytes], who: str) -> Iterator[JsonStream]:
    with opened as raw, io.TextIOWrapper(raw, encoding="utf-8-sig") as text:
        stream = JsonStream(text, who)
        yield stream
        stream.check_end()


def without_suffix(name: str) -> str:
    """The name of a file without what tells its kind; other dots belong to it, as in j.smith.jsonl and llama-3.1.json.

    Examples
    --------
    >>> without_suffix("j.smith.jsonl.gz"), without_suffix("llama-3.1")
    ('j.smith', 'llama-3.1')
    """
    return re.sub(r"(\.(json|jsonl|ndjson|csv|tsv|parquet|xlsx|zip|tar|tgz))?(\.gz)?$", "", name, flags=re.IGNORECASE)


def _rows_of(source: Any, file_format: Any) -> Iterator[dict[str, Any]]:
    with open_table(source, file_format=file_format) as table:
        columns = {name: Cells() for name in table.columns if name}
        table.read(list(columns.items()))
    for row in zip(*(cells.values for cells in columns.values()), strict=True):
        yield {
            name: None if isinstance(cell, str) and not cell else cell for name, cell in zip(columns, row, strict=True)
        }


def _json_head(text: str) -> Head:
    value, rest = glimpse(text)
    if isinstance(value, list):
        return Head("rows", [row for row in value[:_ROWS_GLIMPSED] if isinstance(row, dict)])
    if not rest.startswith("{"):
        return Head("object", [value] if isinstance(value, dict) else [])
    rows = []
    for line in text.splitlines()[:_ROWS_GLIMPSED]:
        row = glimpse(line)[0] if line.strip() else None
        if isinstance(row, dict):
            rows.append(row)
    return Head("rows", rows)


def _sheet_rows(open_file: Any, who: str) -> Iterator[dict[str, Any]]:
    """The rows of the first sheet of an xlsx file."""
    if not is_installed("openpyxl"):
        raise MissingExtra(f"{who} is a workbook, which needs openpyxl: pip install openpyxl, or save it as csv")
    with open_file() as stream:
        book = require("openpyxl", purpose="reading xlsx").load_workbook(stream, read_only=True, data_only=True)
        rows = book.worksheets[0].iter_rows(values_only=True)
        header = [None if name is None else str(name) for name in next(rows, ())]
        for row in rows:
            yield {name: cell for name, cell in zip(header, row, strict=False) if name is not None}


@contextmanager
def wrap_read_errors(who: str, *, as_what: str = "an export") -> Iterator[None]:
    """Inside, whatever a damaged file leads to becomes one error that names the file."""
    # What the libraries raise of files that are damaged, or packed in a way they do not know.
    damages = (struct.error, zipfile.BadZipFile, tarfile.TarError, json.JSONDecodeError, NotImplementedError)
    try:
        with wrap_damage(who, *damages):
            yield
    except TrueupError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidFile(
            f"{who} cannot be read as {as_what}, got a layout that differs ({type(error).__name__}: {error!s:.60}); "
            "export it again, or name another `file_format`"
        ) from error
