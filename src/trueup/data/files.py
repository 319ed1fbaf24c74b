"""Tables in files: found by suffix, read block by block, written whole; every failure names the path."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, Literal

from trueup._base.optional import is_installed, require
from trueup._base.validation import check_choice
from trueup._base.writing import check_readable, replace_file
from trueup.data.frames import FrameTable, Sink, Table, is_frame
from trueup.exceptions import InvalidFile, InvalidLabels, InvalidPredictions, MissingExtra, TrueupError

Format = Literal["csv", "tsv", "jsonl", "parquet"]
Source = str | PathLike[str] | IO[str] | IO[bytes] | Any  # a path, a stream, a frame or a dict of columns

_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS: tuple[Format, ...] = ("csv", "tsv", "jsonl", "parquet")
_ROWS = 5_000
_HEAD = 1_000  # objects of JSON Lines that show which columns there are
_FIELD_LIMIT = 2**24
_NOTHING = "{} is empty, got no line at all; write the names of the columns first, then the rows"


def named(source: Source) -> str:
    """How errors call a source: the path as the user gave it."""
    if isinstance(source, str | PathLike):
        return "standard input" if source == "-" else repr(fspath(source))
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else f"the {type(source).__name__}"


def format_of(source: Source, file_format: Format | None) -> Format:
    """The format a user named, or that of the suffix; standard input and open files are csv."""
    if file_format is not None:
        return check_choice(file_format, FORMATS, name="file_format")
    if not isinstance(source, str | PathLike) or source == "-":
        return "csv"
    kind = table_suffix(source)
    if kind is None:
        got = Path(source).suffix.lower() or "no suffix"
        raise InvalidFile(
            f"the format of {named(source)} is unknown, got {got}; pass `file_format=…`: {', '.join(FORMATS)}"
        )
    return kind


def table_suffix(path: str | PathLike[str]) -> Format | None:
    """The format of the table that a suffix stands for, or None if it stands for none."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() != ".gz"]
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


@contextmanager
def open_table(source: Source, *, file_format: Format | None = None) -> Iterator[Table]:
    """Open a table, or take a frame for one; errors raised while it is open, about its content too, name the path."""
    if isinstance(source, Mapping) or is_frame(source):
        yield FrameTable(source)
        return
    who = named(source)
    if isinstance(source, str | PathLike) and source != "-":
        check_readable(source)
    kind = format_of(source, file_format)
    try:
        if kind == "parquet":
            if not isinstance(source, str | PathLike) or source == "-":
                raise InvalidFile(f"parquet needs a path, got {who}; write it to a file first")
            yield _ParquetTable(source)
            return
        with wrap_damage(who), _text(source) as stream:
            yield _CsvTable(stream, who, tab=kind == "tsv") if kind != "jsonl" else _JsonTable(stream, who)
    except (InvalidLabels, InvalidPredictions) as error:
        raise type(error)(f"in {who}, {error.sentence}") from error


@contextmanager
def wrap_damage(who: str, *others: type[Exception]) -> Iterator[None]:
    """Inside, what a damaged file leads to, also errors of `others`, becomes one error that names the file."""
    damages: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, *others)
    try:
        yield
    except TrueupError:
        raise
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x}"
        raise InvalidFile(f"{who} is not UTF-8 text, got {got}; save it as UTF-8") from error
    except damages as error:
        raise InvalidFile(f"{who} cannot be read, got {error!s:.100}; check that it is whole") from error


@contextmanager
def _text(source: Source) -> Iterator[IO[str]]:
    """A source as text; what was not opened here is not closed here."""
    if isinstance(source, str | PathLike) and source != "-":
        path = Path(source)
        opener: Any = gzip.open if path.suffix.lower() == ".gz" else Path.open
        with opener(path, "rb") as opened, io.TextIOWrapper(opened, encoding="utf-8-sig", newline="") as stream:
            yield stream
        return
    stream_in: Any = sys.stdin if isinstance(source, str | PathLike) else source
    stream_in = getattr(stream_in, "buffer", stream_in)
    if isinstance(stream_in.read(0), str):
        yield stream_in
        return
    wrapper = io.TextIOWrapper(stream_in, encoding="utf-8-sig", newline="")
    try:
        yield wrapper
    finally:
        wrapper.detach()


class _CsvTable:
    from_text = True

    def __init__(self, stream: IO[str], who: str, *, tab: bool) -> None:
        self._stream, self._who, self._skipped = stream, who, 0
        header = ""
        for line in stream:
            self._skipped += 1
            header = line.strip("\r\n\ufeff")
            if header.strip():
                break
        if not header.strip():
            raise InvalidFile(_NOTHING.format(who))
        try:
            splits = {mark: next(csv.reader([header], delimiter=mark)) for mark in ("\t" if tab else ",;\t")}
        except csv.Error as error:
            raise InvalidFile(f"{who} must begin with its columns' names, got {header!r:.40} ({error})") from error
        self._delimiter = max(splits, key=lambda mark: len(splits[mark]))
        self.columns = [name.strip() for name in splits[self._delimiter]]

    def read(self, sinks: Sequence[tuple[str, Sink]]) -> None:
        for name, _ in sinks:
            if self.columns.count(name) > 1:
                raise InvalidFile(f"{self._who} must name each column once, got {name!r} again; rename one")
        sink_at = [(self.columns.index(name), sink) for name, sink in sinks]
        reader = csv.reader(self._stream, delimiter=self._delimiter, strict=True)
        old_limit = csv.field_size_limit(_FIELD_LIMIT)
        try:
            while True:
                line = self._skipped + reader.line_num
                rows = list(islice(reader, _ROWS))
                if not rows:
                    return
                if set(map(len, rows)) != {len(self.columns)}:
                    self._check_widths(rows, line)
                    rows = [row for row in rows if row]  # without blank lines
                for column, sink in sink_at:
                    sink.add([row[column] for row in rows])
        except csv.Error as error:
            raise InvalidFile(
                f"{self._who} is not well-formed csv in line {self._skipped + reader.line_num}, got {error}; check "
                "the quotes"
            ) from error
        finally:
            csv.field_size_limit(old_limit)

    def _check_widths(self, rows: list[list[str]], line: int) -> None:
        """Stop at a row of the wrong width; the first is in the line after `line`."""
        for row in rows:
            line += 1
            if row and len(row) != len(self.columns):
                raise InvalidFile(
                    f"every line of {self._who} must have {len(self.columns)} fields, got {len(row)} in line {line}; "
                    f"check the delimiter ({self._delimiter!r} was found) and quote fields that hold it"
                )
            line += sum(field.count("\n") for field in row)


class _JsonTable:
    from_text = False

    def __init__(self, stream: IO[str], who: str) -> None:
        self._who = who
        self._rows = self._objects(stream)
        self._head = list(islice(self._rows, _HEAD))
        if not self._head:
            raise InvalidFile(_NOTHING.format(who))
        # writers leave out what is null, so the first line alone may not have every column
        self.columns = list(dict.fromkeys(key for row in self._head for key in row))

    def _objects(self, stream: IO[str]) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(stream, start=1):
            if not line.strip("\ufeff \r\n\t"):
                continue
            try:
                row = json.loads(line.lstrip("\ufeff"))
            except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, or too deep a list
                why = error.msg if isinstance(error, json.JSONDecodeError) else f"{error!s:.60}"
                raise InvalidFile(
                    f"every line of {self._who} must be a JSON object, got {line.strip()!r:.40} in line {number} "
                    f"({why}); write one object a line"
                ) from error
            if not isinstance(row, dict):
                raise InvalidFile(
                    f"every line of {self._who} must be an object, got {type(row).__name__} in line {number}"
                )
            yield row

    def read(self, sinks: Sequence[tuple[str, Sink]]) -> None:
        block = self._head
        while block:
            for name, sink in sinks:
                sink.add([row.get(name) for row in block])
            block = list(islice(self._rows, _ROWS))
            late = set().union(*block).difference(self.columns)
            if late:
                raise InvalidFile(
                    f"the first {_HEAD:,} objects of {self._who} must have all columns, {min(late)!r} is late"
                )


def _parquet_library(purpose: str) -> str:
    """The first of the libraries that is installed."""
    for name in ("polars", "pyarrow"):
        if is_installed(name):
            return name
    raise MissingExtra(f"{purpose} needs polars or pyarrow: pip install 'trueup[polars]'")


class _ParquetTable:
    from_text = False

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path, self._who = fspath(path), named(path)
        is_polars = _parquet_library(f"reading {self._who}") == "polars"
        library = require("polars" if is_polars else "pyarrow.parquet", purpose="reading parquet")
        self._read = library.read_parquet if is_polars else library.read_table
        with self._failing():
            schema = (library.read_parquet_schema if is_polars else library.read_schema)(self._path)
            self.columns = list(schema if is_polars else schema.names)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # each library has its own errors for a file that is not parquet
            raise InvalidFile(
                f"{self._who} cannot be read as parquet, got {error!s:.80}; check that it is whole"
            ) from error

    def read(self, sinks: Sequence[tuple[str, Sink]]) -> None:
        for name, sink in sinks:  # one column at a time: it is released before the next is read
            with self._failing():
                frame = self._read(self._path, columns=[name])
            FrameTable(frame).read([(name, sink)])
            del frame


def write_rows(
    path: str | PathLike[str], columns: list[str], rows: Iterable[tuple[Any, ...]], *, file_format: Format | None
) -> None:
    """Write a text table, gzipped if the suffix says so; None is a blank cell. A file is replaced whole."""
    kind = format_of(path, file_format)
    with replace_file(path) as target, ExitStack() as stack:
        packed = Path(path).suffix.lower() == ".gz"
        raw: Any = stack.enter_context(gzip.GzipFile("", "wb", fileobj=target, mtime=0)) if packed else target
        stream = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        stack.callback(stream.detach)  # detaching flushes, and leaves the file to whoever opened it
        if kind == "jsonl":
            for row in rows:
                named_cells = dict(zip(columns, row, strict=True))
                stream.write(json.dumps(named_cells, ensure_ascii=False, default=str) + "\n")
        else:
            writer = csv.writer(stream, delimiter="\t" if kind == "tsv" else ",", lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)


def write_frame(path: str | PathLike[str], make: Callable[..., Any]) -> None:
    """Write a parquet file of the frame that `make(backend=…)` gives. A file is replaced whole."""
    backend = _parquet_library(f"writing {named(path)}")
    frame = make(backend=backend)
    with replace_file(path) as stream:
        if backend == "polars":
            frame.write_parquet(stream)
        else:
            require("pyarrow.parquet", purpose="writing parquet").write_table(frame, stream)
