"""Tables with named columns: how they are read, and data frames (through narwhals), which only this module knows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import narwhals.stable.v1 as nw
import numpy as np

from trueup._base.cells import plain_cell
from trueup._base.optional import is_installed
from trueup._base.validation import check_choice, did_you_mean, preview
from trueup.data.encoding import (
    Block,
    Distinct,
    Encoded,
    Encoder,
    Vocabulary,
    is_plain_integer,
    joined,
    numbers_from_text,
    recoded,
    vocabulary_from,
)
from trueup.exceptions import InvalidLabels, MissingExtra

_BLOCK = 250_000
_BACKENDS = ("pandas", "polars", "pyarrow")


def _as_narwhals(value: Any, **options: Any) -> Any:
    """What narwhals makes of a frame or a series; doubled columns, which it refuses, are an error of ours."""
    try:
        return nw.from_native(value, **options)
    except nw.exceptions.DuplicateError:
        doubled = [name for name, times in Counter(value.columns).items() if times > 1]
        raise InvalidLabels(f"a frame must name each column once, got {preview(doubled)} again; rename them") from None


def is_frame(value: Any) -> bool:
    """Whether a value is an eager frame of a library narwhals knows."""
    return isinstance(_as_narwhals(value, eager_only=True, pass_through=True), nw.DataFrame)


def series_parts(value: Any) -> tuple[list[Any], list[Any] | None] | None:
    """The values of a series and its index where it has one that names rows, or None if it is no series."""
    series = _as_narwhals(value, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return None
    index = nw.maybe_get_index(series)
    if index is None or (type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)):
        return series.to_list(), None  # rows that are only numbered have no names
    return series.to_list(), list(index)


def matrix_parts(value: Any) -> tuple[Any, list[Any] | None, list[Any] | None]:
    """An array of a wide frame, the names of its rows where it has some, and those of its columns."""
    frame = _as_narwhals(value, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return value, None, None
    index = nw.maybe_get_index(frame)
    return frame.to_numpy(), None if index is None else list(index), list(frame.columns)


def class_order(frame: Any, column: str | None = None) -> list[Any] | None:
    """The categories of a column, or of all, in their order, if it is an ordered categorical or an enumeration."""
    if column is None:
        table = _as_narwhals(frame, eager_only=True, pass_through=True)
        columns = list(table.iter_columns()) if isinstance(table, nw.DataFrame) else []
    elif column in column_names(frame):
        values = frame[column] if isinstance(frame, Mapping) else _table(frame).get_column(column)
        columns = [_as_narwhals(values, series_only=True, pass_through=True)]
    else:
        columns = []
    orders = [
        list(series.cat.get_categories().to_list())
        if isinstance(series, nw.Series)
        and isinstance(series.dtype, nw.Categorical | nw.Enum)
        and nw.is_ordered_categorical(series)
        else None
        for series in columns
    ]
    return orders[0] if orders and all(order == orders[0] for order in orders) else None


def column_names(frame: Any) -> list[str]:
    """The names of the columns of a frame or of a dict of columns."""
    return list(frame) if isinstance(frame, Mapping) else list(_table(frame).columns)


def _table(frame: Any) -> Any:
    try:
        return _as_narwhals(frame, eager_only=True)
    except TypeError as error:
        raise InvalidLabels(
            f"a frame or a dict of columns is needed, got {type(frame).__name__}; see Labels.from_matrix and "
            "read_labels"
        ) from error


def column_blocks(frame: Any, name: str) -> Iterator[Block]:
    """A column of a frame or of a dict of columns, in blocks; integers stay arrays, the rest become Python values."""
    if isinstance(frame, Mapping):
        column = _as_narwhals(frame[name], series_only=True, pass_through=True)
    else:
        column = _table(frame).get_column(name)
    if isinstance(column, nw.Series):
        whole = column.dtype.is_integer() and column.null_count() == 0
        for start in range(0, len(column), _BLOCK):
            block = column[start : start + _BLOCK]
            yield block.to_numpy() if whole else block.to_list()
        return
    try:
        if isinstance(column, str | bytes):
            raise TypeError
        n, _ = len(column), column[:0]
    except (TypeError, KeyError):
        raise InvalidLabels(f"column {name!r} must be a list or array, got {type(column).__name__}; pass one") from None
    for start in range(0, n, _BLOCK):
        block = column[start : start + _BLOCK]
        if isinstance(block, np.ndarray) and block.dtype.kind in "iu":
            yield block
        else:
            yield block.tolist() if hasattr(block, "tolist") else list(block)


class Sink(Protocol):
    """What takes a column, block by block."""

    def add(self, block: Block) -> None: ...


class Table(Protocol):
    """Named columns, of a frame or of an open file, each of which can be sent to a sink."""

    columns: list[str]
    from_text: bool  # whether names and numbers are text that stands for them

    def read(self, sinks: Sequence[tuple[str, Sink]]) -> None: ...


class FrameTable:
    """A frame or a dict of columns as a table."""

    from_text = False

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        if not isinstance(frame, Mapping):
            table = self._frame = _table(frame)
            # An index that has a name, as of a pivot table, is a column too.
            index = getattr(nw.maybe_get_index(table), "names", [])
            named = [name for name in index if name is not None and name not in table.columns]
            if named:
                self._frame = _as_narwhals(nw.to_native(table).reset_index(level=named))
        self.columns = column_names(self._frame)

    def class_order(self, column: str) -> list[Any] | None:
        """The categories of a column, where they have an order."""
        return class_order(self._frame, column)

    def read(self, sinks: Sequence[tuple[str, Sink]]) -> None:
        """Send each named column to its sink."""
        for name, sink in sinks:
            for block in column_blocks(self._frame, name):
                sink.add(block)


class Cells:
    """Collects a column as it is."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def add(self, block: Block) -> None:
        """Take the next block."""
        self.values += block.tolist() if isinstance(block, np.ndarray) else block


def read_names(
    table: Table,
    roles: Mapping[str, str | Sequence[str]],
    *,
    special: Sequence[Any] = (),
    known: Mapping[str, Vocabulary] | None = None,
    sinks: Sequence[tuple[str, Sink]] = (),
) -> dict[str, Encoded]:
    """The columns of names of a table as codes and vocabulary, by role; other columns go to their `sinks`."""
    keys = {role: key_columns(column, table.columns, role=role) for role, column in roles.items()}
    encoders = {role: [Encoder(role, blank_is_null=table.from_text) for _ in key] for role, key in keys.items()}
    for _, sink in sinks:
        if isinstance(sink, Distinct):
            sink.most = lambda: math.prod(encoder.most_names for encoder in encoders["item"])
    columns = [pair for role, key in keys.items() for pair in zip(key, encoders[role], strict=True)]
    table.read([*columns, *sinks])
    named: dict[str, Encoded] = {}
    for role, of_role in encoders.items():
        parts = [encoder.finish(special=special if role == "label" else ()) for encoder in of_role]
        if table.from_text:
            names, n = (known or {}).get(role), len(parts)
            known_parts = [names if n == 1 else None] * n
            if n > 1 and names is not None and all(isinstance(name, tuple) and len(name) == n for name in names):
                known_parts = [vocabulary_from(dict.fromkeys(name[k] for name in names)) for k in range(n)]
            parts = [named_as(part, of_part) for part, of_part in zip(parts, known_parts, strict=True)]
        named[role] = joined(parts)
    return named


def key_columns(name: str | Sequence[str], columns: list[str], *, role: str) -> list[str]:
    """The columns that together name something: one, a list, or a text with commas between them; all must be there."""
    key = parts_of(name, columns)
    for column in key:
        check_column(column, columns, role=role)
    return key


# Other names of the columns, for tables that lack the usual one; none that may name a question, which several systems
# answer.
_OTHER_NAMES = {
    "item": ("item_id", "output_id", "response_id", "document_id", "doc_id", "id"),
    "labeler": ("judge", "annotator", "rater", "worker", "labeler_id", "judge_id", "annotator_id", "rater_id"),
    "label": ("verdict", "rating", "vote", "annotation", "score", "grade"),
    "truth": ("gold", "true_label", "true_class", "gold_label"),
}


def column_of(role: str, name: Any, columns: list[str]) -> Any:
    """The column of a role: the one that is named, or where a table lacks the usual one, its only one of the others."""
    if name != role or name in columns:
        return name
    found = [column for column in columns if column.casefold() in _OTHER_NAMES[role]]
    if found == ["id"] and column_of("labeler", "labeler", columns) in columns:
        return name  # it may number the votes
    return found[0] if len(found) == 1 else name


def has_key(name: str | Sequence[str], columns: list[str]) -> bool:
    """Whether all columns that together name something are there."""
    return set(parts_of(name, columns)) <= set(columns)


def parts_of(name: str | Sequence[str], columns: list[str]) -> list[str]:
    """The columns that together name something, whether they are there or not."""
    if isinstance(name, str):
        return [name] if name in columns or "," not in name else [part.strip() for part in name.split(",")]
    return list(name) if isinstance(name, list | tuple) else [name]  # type: ignore[list-item]  # any name of a frame


def named_as(encoded: Encoded, known: Vocabulary | None) -> Encoded:
    """Text from a file as the names it stands for: integers if all are, or what `known` writes in the same way."""
    codes, names = encoded
    if known is None:
        return numbers_from_text(codes, names)
    written: dict[str, Hashable] = {str(name): name for name in known.tolist()}
    numbers = known.dtype != object

    def meant(text: str) -> Hashable:
        name = written.get(text, plain_cell(text, written))
        return int(text.split(".")[0]) if numbers and name is text and is_plain_integer(text) else name

    at: dict[Hashable, int] = {}  # "1" and "1.0" may be one name
    rank = np.array([at.setdefault(meant(text), len(at)) for text in names.tolist()], dtype=np.int32)
    return recoded(codes, rank), vocabulary_from(list(at))


def check_column(name: str, columns: list[str], *, role: str) -> None:
    """Raise where a table has no column of this name."""
    if name not in columns:
        listed = ", ".join(map(repr, columns)) or "none"
        hint = "" if name == role else did_you_mean(name, columns)  # nobody meant what stands there by default
        raise InvalidLabels(
            f"there is no column {name!r} for the {role}, got columns {listed}; name it with `{role}=…`{hint}"
        )


def make_frame(columns: Mapping[str, Any], *, backend: str | None = None) -> Any:
    """A frame of the named backend, or of the first installed of pandas, polars and pyarrow."""
    if backend is not None:
        check_choice(backend, _BACKENDS, name="backend")
    for name in _BACKENDS if backend is None else (backend,):
        if is_installed(name):
            plain = {k: v if isinstance(v, np.ndarray) and v.dtype.kind != "O" else list(v) for k, v in columns.items()}
            try:
                return nw.from_dict(plain, backend=name).to_native()  # type: ignore[arg-type]
            except Exception as error:  # each library has its own errors for a column it cannot hold
                raise InvalidLabels(
                    f'{name} cannot hold a column of these names, got {error!s:.80}; pass `backend="pandas"`'
                ) from error
    needed = backend or "pandas, polars or pyarrow"
    raise MissingExtra(f"a frame needs {needed}, which is not installed: pip install 'trueup[polars]'")
