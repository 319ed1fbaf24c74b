"""A file as adapters see it: what its first bytes show, its records, its JSON, its members."""

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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal

from trueup._base.optional import is_installed, require
from trueup._base.writing import check_readable
from trueup.adapters.archives import GZIP_MAGIC, Allowance, Archive, Folder, Tar, Zip, limited
from trueup.adapters.streaming import JsonStream, glimpse
from trueup.data.files import Source, named, open_table, table_suffix
from trueup.data.frames import Cells
from trueup.exceptions import InvalidFile, MissingExtra, TrueupError

_GLIMPSE_BYTES = 2**18
_ROWS_GLIMPSED = 20
_TAR_MARK = 257
# What the libraries below raise of files that are damaged, or packed in a way they do not know.
_DAMAGES = (
    OSError,
    EOFError,
    zlib.error,
    struct.error,
    zipfile.BadZipFile,
    tarfile.TarError,
    json.JSONDecodeError,
    NotImplementedError,
)
Shape = Literal["object", "rows", "table", "archive", "other"]


@dataclass(frozen=True)
class Head:
    """What the beginning of a file shows, for adapters to recognise it by.

    Attributes
    ----------
    shape : {"object", "rows", "table", "archive", "other"}
        One JSON object; a list or lines of JSON; a csv, tsv, parquet or xlsx table; a folder, zip or tar; or none of
        these.
    rows : list of dict
        The first records of rows and tables; the object itself where there is one only.
    members : list of str
        The names in an archive.
    member_rows : list of dict
        The first records of the first member, of an archive that has files of JSON and no folders.
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
        if self.shape == "archive":
            names = ", ".join(map(repr, self.members[:5])) or "nothing"
            return f"an archive or folder with {names}{', …' if len(self.members) > 5 else ''}"
        if self.shape == "other":
            return "neither JSON nor a table"
        what = {"object": "a JSON object with the keys", "rows": "records with the keys", "table": "the columns"}
        keys = list(self.keys)
        listed = ", ".join(f"{key!r:.40}" for key in keys[:12]) or "none"
        return f"{what[self.shape]} {listed}{', …' if len(keys) > 12 else ''}"


class Content:
    """A file, folder or stream that is looked into, and then read by an adapter.

    Parameters
    ----------
    source : path, "-" or file-like
    file_format : {"csv", "tsv"}, optional
        The kind of table, of what has no suffix.
    """

    def __init__(self, source: Source, *, file_format: Any = None) -> None:
        self.who = named(source)
        self._bytes: bytes | None = None
        if isinstance(source, str | PathLike) and source != "-":
            self.path: Path | None = check_readable(source, folders=True)
            self.file_name = self.path.name
        else:
            self.path, self.file_name = None, ""
            stream: Any = sys.stdin if source == "-" else source
            stream = getattr(stream, "buffer", stream)
            content = stream.read()
            self._bytes = content.encode() if isinstance(content, str) else content
        self._table = file_format or (None if self.path is None else table_suffix(self.path))

    @property
    def stem(self) -> str:
        """The name of the file without suffixes, where the labeler is named by it."""
        return without_suffix(self.file_name) or "standard input"

    @property
    def size(self) -> int:
        """In bytes, of the file as it is."""
        if self._bytes is not None:
            return len(self._bytes)
        return 0 if self.path is None or self.path.is_dir() else self.path.stat().st_size

    def open_packed(self) -> IO[bytes]:
        """The bytes as they are."""
        if self._bytes is not None or self.path is None:
            return io.BytesIO(self._bytes or b"")
        return self.path.open("rb")

    def open(self) -> IO[bytes]:
        """The bytes, unpacked if they are gzipped."""
        stream = self.open_packed()
        is_gzipped = stream.read(2) == GZIP_MAGIC
        stream.seek(0)
        if not is_gzipped:
            return stream
        allowance = Allowance.for_packed(self.who, self.size)
        return limited(gzip.GzipFile(fileobj=stream), allowance, "a stream", under=[stream])

    @contextmanager
    def json(self) -> Iterator[JsonStream]:
        """A cursor in the JSON of the file, which is to be read to its end."""
        with self.open() as raw, io.TextIOWrapper(raw, encoding="utf-8-sig") as text:
            stream = JsonStream(text, self.who)
            yield stream
            stream.check_end()

    def records(self) -> Iterator[Any]:
        """The records of a list, of lines of JSON or of a table, one at a time; what is no object comes as it is."""
        if self.head.shape == "table":
            yield from self._table_rows()
            return
        with self.json() as stream:
            yield from stream.records()

    @contextmanager
    def member_json(self, name: str) -> Iterator[JsonStream]:
        """A cursor in the JSON of a member of the archive, which is to be read to its end."""
        with self.archive.open(name) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig") as text:
            stream = JsonStream(text, f"{name!r} in {self.who}")
            yield stream
            stream.check_end()

    def member_records(self, name: str) -> Iterator[Any]:
        """The records of a member of the archive: of a list, or one value a line."""
        with self.member_json(name) as stream:
            yield from stream.records()

    @cached_property
    def archive(self) -> Archive:
        """The members of a folder, zip or tar."""
        if self.path is not None and self.path.is_dir():
            return Folder(self.path, self.who)
        if self._starts_with(b"PK"):
            return Zip(self.open_packed, self.who, self.size)
        return Tar(self.open_packed, self.who)

    @cached_property
    def head(self) -> Head:
        """What the first bytes show."""
        if self.path is not None and self.path.is_dir():
            return self._archive_head()
        if self._starts_with(b"PK"):
            return self._table_head() if "xl/workbook.xml" in self.archive.names else self._archive_head()
        if self._starts_with(b"PAR1"):
            return self._table_head()
        with self.open() as stream:
            start = stream.read(_GLIMPSE_BYTES)
        if start[_TAR_MARK : _TAR_MARK + 5] == b"ustar":
            return self._archive_head()
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InvalidFile(f"{self.who} is not UTF-8 text, got UTF-16; save it as UTF-8, or export it again")
        text = start.decode("utf-8-sig", errors="replace").lstrip()
        if not text:
            raise InvalidFile(f"{self.who} is empty, got {len(start)} bytes without text; export it again")
        if text[:1] in ("{", "["):
            return _json_head(text)
        if self._table in ("csv", "tsv"):
            return self._table_head()
        return Head("other")

    def _archive_head(self) -> Head:
        names = self.archive.names
        rows: list[dict[str, Any]] = []
        if names and all(name.endswith((".json", ".jsonl")) and "/" not in name for name in names):
            with self.archive.open(names[0]) as stream:
                text = stream.read(_GLIMPSE_BYTES).decode("utf-8-sig", errors="replace").lstrip()
            rows = _json_head(text).rows if text[:1] in ("{", "[") else []
        return Head("archive", members=names, member_rows=rows)

    def _starts_with(self, magic: bytes) -> bool:
        with self.open_packed() as stream:
            return stream.read(len(magic)) == magic

    def _table_head(self) -> Head:
        if self._starts_with(b"PAR1"):
            with open_table(self._table_source(), file_format="parquet") as table:
                return Head("table", [dict.fromkeys(table.columns)])
        if self._starts_with(b"PK"):
            return Head("table", list(islice(self._table_rows(), _ROWS_GLIMPSED)))
        with self.open() as stream:
            lines = stream.read(_GLIMPSE_BYTES)
            if stream.read(1):
                lines = lines[: lines.rfind(b"\n") + 1]
        try:
            return Head("table", list(islice(_rows_of(io.BytesIO(lines), self._table), _ROWS_GLIMPSED)))
        except TrueupError:  # cut within a cell
            with open_table(io.BytesIO(lines), file_format=self._table) as table:
                return Head("table", [dict.fromkeys(table.columns)])

    def _table_source(self) -> Any:
        return self.path if self.path is not None else io.BytesIO(self._bytes or b"")

    def _table_rows(self) -> Iterator[dict[str, Any]]:
        """The rows of a table; blank cells of text are None."""
        if self._starts_with(b"PK"):
            if isinstance(self.archive, Zip):
                self.archive.check_size()
            return _sheet_rows(self.open_packed, self.who)
        return _rows_of(self._table_source(), "parquet" if self._starts_with(b"PAR1") else self._table)


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
def told_in_a_sentence(who: str, *, as_what: str = "an export") -> Iterator[None]:
    """Inside, whatever a damaged file leads to becomes one error that names the file."""
    try:
        yield
    except TrueupError:
        raise
    except UnicodeDecodeError as error:
        raise InvalidFile(
            f"{who} is not UTF-8 text, got byte 0x{error.object[error.start]:02x}; save it as UTF-8, or export it again"
        ) from error
    except _DAMAGES as error:
        raise InvalidFile(
            f"{who} cannot be read, got {error!s:.100}; check that it is whole and may be read"
        ) from error
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidFile(
            f"{who} cannot be read as {as_what}, got a layout that differs ({type(error).__name__}: {error!s:.60}); "
            "export it again, or name another ⟨file_format⟩"
        ) from error
