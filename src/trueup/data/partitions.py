"""One file of a scan: its names, its votes as `Labels` and as bare arrays, and files regrouped by item."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.optional import require
from trueup._base.types import Codes, Floats
from trueup._base.validation import kind_of, preview
from trueup.data.building import CROWD_MARK, Columns, VoteFormat, assemble, declared, read_votes
from trueup.data.encoding import Encoder, Vocabulary, is_null, is_plain_integer
from trueup.data.files import Format, open_table
from trueup.data.frames import Cells, Sink, Table, check_column
from trueup.data.votes import Votes
from trueup.exceptions import InvalidFile, InvalidLabels, InvalidPredictions

Keys = npt.NDArray[np.uint64]
_V = TypeVar("_V", bound=Votes)
_TEXT = np.empty(0, dtype=object)  # a vocabulary that leaves text what it is
_NO_FLOATS = np.empty(0)
_SOURCES = "sources.json"  # what a folder of regrouped files was made from; written last
_MOST_FILES = 512
_ROLES = ("item", "labeler", "label", "run")
SystemSource = str | Mapping[Hashable, Hashable]  # a column of the files, or classes by item


@dataclass(frozen=True, eq=False)
class FirstLook:
    """The names in a file, as it writes them."""

    labelers: Vocabulary
    labels: Vocabulary
    from_text: bool
    has_numbered_items: bool  # whether all items of a text file are written as integers

    @classmethod
    def at(cls, path: str, options: VoteFormat, file_format: Format | None) -> FirstLook:
        """Read the columns of labelers and labels alone; in a text file, which is read whole anyway, the items too."""
        with open_table(path, file_format=file_format) as table:
            columns = {"item": str(options.item), "labeler": options.labeler, "label": options.label}
            for role, name in columns.items():
                check_column(name, table.columns, role=role)
            if CROWD_MARK in table.columns:
                raise InvalidLabels(
                    f"scans take no anonymous crowds, got a column {CROWD_MARK!r}; read the file with "
                    "trueup.read_labels"
                )
            roles = ("labeler", "label", "item") if table.from_text else ("labeler", "label")
            encoders = {role: Encoder(role, blank_is_null=table.from_text) for role in roles}
            table.read([(columns[role], encoder) for role, encoder in encoders.items()])
            special = sum(declared(options.missing, options.abstain, from_text=table.from_text), ())
            codes, labelers = encoders["labeler"].finish()
            _, labels = encoders["label"].finish(special=special)
            numbered = table.from_text and all(map(is_plain_integer, encoders["item"].finish()[1]))
            if not len(codes):
                raise InvalidLabels("there are no votes, got 0 rows; delete the file, or leave it out of the scan")
            return cls(labelers, labels, table.from_text, numbered)


@dataclass(frozen=True, eq=False)
class VoteBlock:
    """The votes on some items without any names; what passes over a scan see."""

    indptr: npt.NDArray[np.int64]  # with `indices`: rows and columns of the vote matrix, as of a CSR matrix
    indices: npt.NDArray[np.int32]
    data: Floats  # how often; empty if every vote was given once
    gold: Codes  # (n_items,): known classes, -1 for none; empty if there are none at all
    n_columns: int
    keys: Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))  # (n_items,)
    outputs: npt.NDArray[np.int16] = field(default_factory=lambda: np.empty((0, 0), dtype=np.int16))
    vetted: npt.NDArray[np.int16] = field(default_factory=lambda: np.empty(0, dtype=np.int16))  # (n_items,)

    @classmethod
    def of(cls, labels: Votes) -> VoteBlock:
        """The votes of labels in memory."""
        gold = labels.gold_codes
        return cls.of_matrix(labels.votes, gold if (gold >= 0).any() else gold[:0])

    @classmethod
    def of_matrix(cls, matrix: sparse.csr_array, gold: Codes, **beside: npt.NDArray[Any]) -> VoteBlock:
        """From a sparse matrix of votes, and what else is known of the items."""
        indptr, indices = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
        data = _NO_FLOATS if (matrix.data == 1).all() else matrix.data
        return cls(indptr, indices, data, gold, matrix.shape[1], **beside)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.indptr) - 1

    @property
    def gold_codes(self) -> Codes:
        """The known class of each item, -1 for none."""
        return self.gold if len(self.gold) else np.full(self.n_items, -1, dtype=np.int32)

    @property
    def matrix(self) -> sparse.csr_array:
        """The votes as a sparse matrix; not kept, since its ones take twice the memory of all else."""
        data = self.data if len(self.data) else np.ones(len(self.indices))
        return sparse.csr_array((data, self.indices, self.indptr), shape=(self.n_items, self.n_columns))

    def rows(self, low: int, high: int) -> VoteBlock:
        """Some of the items."""
        first, last = self.indptr[low], self.indptr[high]
        beside = {name: getattr(self, name)[low:high] for name in ("gold", "keys", "outputs", "vetted")}
        indptr, indices = self.indptr[low : high + 1] - first, self.indices[first:last]
        return replace(self, indptr=indptr, indices=indices, data=self.data[first:last], **beside)

    def items(self, chosen: npt.NDArray[Any]) -> VoteBlock:
        """Some of the items, in the order in which they are named."""
        beside = {name: getattr(self, name)[chosen] for name in ("keys", "outputs", "vetted")}
        return self.of_matrix(self.matrix[chosen], self.gold_codes[chosen], **beside)


@dataclass(frozen=True, eq=False)
class Facts:
    """What a scan must know of a file."""

    n_items: int
    n_votes: int
    n_repeats: int
    n_missing: int
    histogram: npt.NDArray[np.int64]  # how many items have no vote, one, two, …
    keys: Keys = field(repr=False)  # (n_items,): A number for each item that does not depend on the file
    ends: tuple[Any, Any]  # the first and the last item
    n_gold: int  # vetted items


def item_keys(items: Vocabulary) -> Keys:
    """A number for each item: the same in every process, and another one for another item.

    Examples
    --------
    >>> item_keys(np.array([3, 4])).tolist()
    [3, 4]
    """
    if items.dtype.kind in "iu":
        return items.astype(np.int64).view(np.uint64)
    digests = b"".join(blake2b(repr(name).encode(), digest_size=8).digest() for name in items.tolist())
    return np.frombuffer(digests, dtype="<u8")


def mixed_keys(keys: Keys) -> Keys:
    """Keys in which every bit depends on all others, so that numbered items spread evenly (splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def keyed_uniforms(keys: Keys, *seed: int) -> Floats:
    """A number in [0, 1) for each item, which depends on its key and the seed alone.

    Examples
    --------
    >>> one, other = keyed_uniforms(item_keys(np.array([3, 4])), 7), keyed_uniforms(item_keys(np.array([4, 3])), 7)
    >>> one.tolist() == other[::-1].tolist(), one.tolist() == keyed_uniforms(item_keys(np.array([3, 4])), 8).tolist()
    (True, False)
    """
    words = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    with np.errstate(over="ignore"):
        mixed = mixed_keys(mixed_keys(keys ^ words[0]) + words[1])
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)


@dataclass(frozen=True, eq=False)
class PartitionReader(Generic[_V]):
    """Reads files of one scan, all with the same labelers and classes."""

    make: type[_V]  # what a file becomes
    options: VoteFormat
    file_format: Format | None
    labelers: Vocabulary
    classes: Vocabulary
    text_items: bool  # whether items of text files stay text, since not all files have numbers for them
    gold: Mapping[Hashable, Hashable] = field(default_factory=dict, repr=False)
    drawn: Mapping[Hashable, float] = field(default_factory=dict, repr=False)
    keeps_keys: bool = False  # whether blocks have the keys of their items, what systems say, and what was drawn
    systems: tuple[SystemSource, ...] = ()
    may_miss: bool = False  # whether items may be without a prediction
    common: bool = False  # whether an item that one system does not predict has no prediction of any
    vetted: Mapping[Hashable, Hashable] = field(default_factory=dict, repr=False)  # of drawn items, with their keys

    @cached_property
    def _class_position(self) -> dict[Hashable, int]:
        return {name: k for k, name in enumerate(self.classes.tolist())}

    @cached_property
    def _options(self) -> VoteFormat:
        """The options with the classes of all files."""
        return replace(self.options, classes=self.classes.tolist(), wide=False)

    def read(self, path: str) -> _V:
        """The votes of a file."""
        return self._read(path, ())[0]

    def columns_of(self, table: Table, sinks: Sequence[tuple[str, Sink]]) -> Columns:
        """The columns of a table with votes, and what `sinks` take of its other columns."""
        known = {"labeler": self.labelers} | ({"item": _TEXT} if self.text_items else {})
        return read_votes(table, self._options, known=known, sinks=sinks)

    def _read(self, path: str, further: Sequence[str]) -> tuple[_V, dict[str, list[Any]]]:
        """The votes of a file, and what further columns say of each item, None where they say nothing."""
        with open_table(path, file_format=self.file_format) as table:
            for name in further:
                check_column(name, table.columns, role="predictions")
            cells = {name: Cells() for name in further}
            columns = self.columns_of(table, list(cells.items()))
            position = {name: k for k, name in enumerate(self.labelers.tolist())}
            codes = np.array([position.get(name, -1) for name in columns.labelers.tolist()] + [-1], dtype=np.int32)
            columns = replace(columns, labeler=codes[columns.labeler], labelers=self.labelers)
            fields = {**assemble(columns, self._options), "fixed_classes": self.options.classes is not None}
            labels = self.make(**fields)
            beside = {name: _of_items(columns.item, of.values, labels.items, name) for name, of in cells.items()}
        if self.gold:
            gold = self._class_codes(labels.items.tolist(), self.gold)
            labels = replace(labels, gold_codes=np.where(gold >= 0, gold, labels.gold_codes))
        return labels, beside

    def _class_codes(self, items: Sequence[Hashable], classes: Mapping[Hashable, Hashable]) -> Codes:
        """The classes of items as codes, -1 for those that are not named."""
        position = self._class_position
        return np.array([position[classes[item]] if item in classes else -1 for item in items], dtype=np.int32)

    def encode(self, path: str) -> tuple[VoteBlock, Facts]:
        """The votes of a file as bare arrays, and what the scan must know of them."""
        columns = dict.fromkeys(name for name in self.systems if isinstance(name, str))
        labels, cells = self._read(path, list(columns))
        block, keys, names = VoteBlock.of(labels), item_keys(labels.items), labels.items.tolist()
        n_gold = int((labels.gold_codes >= 0).sum())
        if self.keeps_keys:
            outputs = np.empty((len(names), len(self.systems)), dtype=np.int16)
            for k, source in enumerate(self.systems):
                values = cells[source] if isinstance(source, str) else [source.get(name) for name in names]
                outputs[:, k] = self._predicted(values, labels, path)
            if self.common:
                outputs[(outputs < 0).any(axis=1)] = -1
            vetted = self._class_codes(names, self.vetted).astype(np.int16)
            block, n_gold = replace(block, keys=keys, outputs=outputs, vetted=vetted), n_gold + int((vetted >= 0).sum())
        sizes = (labels.n_items, labels.n_votes, labels.n_repeats, labels.n_missing)
        return block, Facts(*sizes, labels.vote_histogram, keys, (names[0], names[-1]), n_gold)

    def _predicted(self, cells: list[Any], labels: _V, path: str) -> Codes:
        """The codes of the classes that a system predicts, -1 for none."""
        position = dict(self._class_position)
        if isinstance(cells[0], str):
            position |= {str(name): code for name, code in position.items()}
        codes = np.array([-1 if is_null(cell) or cell == "" else position.get(cell, -2) for cell in cells], np.int32)
        unknown, missing = np.flatnonzero(codes == -2), np.flatnonzero(codes < 0)
        if len(unknown):
            raise InvalidPredictions(
                f"in {path!r}, predictions must be among the classes {preview(self.classes, most=6)}, got "
                f"{preview([cells[k] for k in unknown[:3]])} for {len(unknown):,} items; correct them"
            )
        if len(missing) and not self.may_miss:
            raise InvalidPredictions(
                f"in {path!r}, every item must have a prediction, got none for {len(missing):,} of {len(codes):,} "
                f"(first: {labels.items[missing[:1]].tolist()[0]!r}); predict them too, or pass `missing='ignore'`"
            )
        return codes


def _of_items(item: Codes, cells: Sequence[Any], items: Vocabulary, column: str) -> list[Any]:
    """What a column that has a cell for each vote says of each item: one thing."""
    values: dict[int, Any] = {}
    for code, cell in zip(item.tolist(), cells, strict=True):
        if values.setdefault(code, cell) != cell:
            raise InvalidLabels(
                f"column {column!r} must have one value an item, got {preview([values[code], cell])} of "
                f"{items[[code]].tolist()[0]!r}; correct the file"
            )
    return [values.get(code) for code in range(len(items))]


def check_kinds(first: Vocabulary, other: Vocabulary, *, what: str, first_file: str, other_file: str) -> None:
    """Refuse names of another type in one file."""
    if len(first) and len(other):
        mine, theirs = (kind_of(names[:1].tolist()[0]) for names in (first, other))
        if mine != theirs:
            raise InvalidLabels(
                f"the {what}s of all files must be of one type, got {mine} in {first_file!r} (e.g. "
                f"{preview(first[:1])}) and {theirs} in {other_file!r} (e.g. {preview(other[:1])}); write them alike"
            )


def regrouped_files(files: Sequence[str], reader: PartitionReader[Any], folder: str) -> tuple[str, ...]:
    """The files of the folder; it is made if it is not there, and must be of the same files if it is."""
    digest = blake2b(digest_size=16)
    for path in files:
        found = Path(path).stat()
        digest.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    sources = {"files": digest.hexdigest(), "columns": [getattr(reader.options, role) for role in _ROLES]}
    target = Path(folder)
    if target.exists():
        marker = target / _SOURCES
        if not marker.is_file() or json.loads(marker.read_text(encoding="utf-8")) != sources:
            raise InvalidFile(f"the folder {folder!r} must hold these votes or not exist, got others; delete it")
        return tuple(map(str, sorted(target.glob("*.parquet"))))
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        _write_by_item(files, reader, partial)
        (partial / _SOURCES).write_text(json.dumps(sources), encoding="utf-8")
        partial.rename(target)  # all or nothing
    except BaseException:
        rmtree(partial, ignore_errors=True)
        raise
    return tuple(map(str, sorted(target.glob("*.parquet"))))


def _write_by_item(files: Sequence[str], reader: PartitionReader[Any], folder: Path) -> None:
    """Send the rows of every file to the file of their item; no more than one file is in memory."""
    arrow = require("pyarrow", purpose="`regroup`")
    parquet = require("pyarrow.parquet", purpose="`regroup`")
    with ExitStack() as stack:
        writers: dict[int, Any] = {}
        for path in files:
            rows, keys = _rows_of(path, reader)
            try:
                table = arrow.table(rows)
            except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
                raise InvalidLabels(
                    f"in {path!r}, names must be text or numbers, got {error!s:.80}; write them alike"
                ) from error
            goal = mixed_keys(keys) % np.uint64(min(len(files), _MOST_FILES))
            for number in np.unique(goal).tolist():
                part = table.take(np.flatnonzero(goal == number))
                if number not in writers:
                    writer = parquet.ParquetWriter(folder / f"part-{number:05d}.parquet", part.schema)
                    writers[number] = stack.enter_context(writer)
                writers[number].write_table(part)


def _rows_of(path: str, reader: PartitionReader[Any]) -> tuple[dict[str, list[Any]], Any]:
    """The votes of a file by name, and the key of each row's item."""
    item, labeler, label, run = (getattr(reader.options, role) for role in _ROLES)
    with open_table(path, file_format=reader.file_format) as table:
        others = {name: Cells() for name in table.columns if name not in (item, labeler, label, run)}
        columns = reader.columns_of(table, list(others.items()))
    special = [None, *columns.missing, *columns.abstain]
    labels = [*columns.names.tolist(), *special[::-1]]  # a code of -1 is the last, -2 the one before it
    rows = {
        item: columns.items[columns.item].tolist(),
        labeler: columns.labelers[columns.labeler].tolist(),
        label: [labels[code] for code in columns.label.tolist()],
    }
    if columns.run is not None:
        rows[run] = columns.run.tolist()
    rows |= {name: cells.values for name, cells in others.items()}
    return rows, item_keys(columns.items)[columns.item]
