"""Votes, predictions and vetted truths from files, and votes to files.

csv, csv.gz, tsv, jsonl, jsonl.gz and parquet, told apart by the suffix. Text files are read in blocks by the standard
library, so no frame library is needed; parquet needs polars or pyarrow.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any

import numpy as np

from trueup._base.optional import is_installed
from trueup._base.types import Floats
from trueup._base.validation import preview
from trueup.data.building import encode_columns
from trueup.data.encoding import (
    NULL_CODE,
    Block,
    Encoder,
    Vocabulary,
    is_null,
    is_plain_integer,
    numbers_from_text,
    vocabulary_from,
)
from trueup.data.files import Format, Sink, Source, format_of, named, open_table
from trueup.data.frames import check_column
from trueup.data.labels import Labels
from trueup.data.predictions import Predictions
from trueup.data.systems import Encoded, systems_from_columns, wanted_columns
from trueup.data.votes import AbstainPolicy, Duplicates
from trueup.exceptions import InvalidFile, InvalidLabels, InvalidPredictions, MissingExtra, MissingFile

__all__ = ["read_gold", "read_labels", "read_predictions", "write_labels"]

_ROWS = 50_000


def read_labels(
    path: Source,
    *,
    item: str = "item",
    labeler: str = "labeler",
    label: str = "label",
    classes: Sequence[Hashable] | None = None,
    missing: Any = (),
    abstain: Any = (),
    abstain_policy: AbstainPolicy = "ignore",
    duplicates: Duplicates = "keep",
    file_format: Format | None = None,
) -> Labels:
    """Votes from a file with one row a vote.

    In csv and tsv a blank cell is a null, and a column becomes integers only if every name in it is one written
    plainly ("7", not "007"), labels also only if `classes` does not name them as text.

    Parameters
    ----------
    path : path, "-" or file-like
        The file; "-" is standard input.
    item, labeler, label : str
        The names of the columns.
    classes, missing, abstain, abstain_policy, duplicates
        As in `Labels.from_frame`.
    file_format : {"csv", "tsv", "jsonl", "parquet"}, optional
        The format, where the suffix does not tell; csv for standard input and file-likes.
    """
    with open_table(path, file_format=file_format) as table:
        roles = {"item": item, "labeler": labeler, "label": label}
        for role, name in roles.items():
            check_column(name, table.columns, role=role)
        item_in, labeler_in, label_in = (Encoder(role, blank_is_null=table.from_text) for role in roles)
        table.read([(item, item_in), (labeler, labeler_in), (label, label_in)])
        columns = encode_columns(
            item=item_in,
            labeler=labeler_in,
            label=label_in,
            missing=missing,
            abstain=abstain,
            classes=classes,
            from_text=table.from_text,
        )
        return Labels._from_columns(columns, classes=classes, abstain_policy=abstain_policy, duplicates=duplicates)


def read_predictions(
    path: Source,
    *,
    item: str | None = "item",
    prediction: str = "prediction",
    score: str = "score",
    probabilities: Mapping[Hashable, str] | None = None,
    system: str | None = None,
    positive: Hashable | None = None,
    threshold: float | None = 0.5,
    labels: Labels | None = None,
    file_format: Format | None = None,
) -> Predictions:
    """Predictions from a file with a row for each item, or for each item and system.

    Parameters
    ----------
    path : path, "-" or file-like
        The file; "-" is standard input.
    item, prediction, score, probabilities, system, positive, threshold
        As in `Predictions.from_frame`.
    labels : Labels, optional
        The labels they belong to. Text from a csv file is then read as the names these labels have; without it a
        column becomes integers if every name in it is one.
    file_format : {"csv", "tsv", "jsonl", "parquet"}, optional
        The format, where the suffix does not tell.
    """
    with open_table(path, file_format=file_format) as table:
        wanted = wanted_columns(
            table.columns, item=item, prediction=prediction, score=score, probabilities=probabilities, system=system
        )
        encoders = {
            role: Encoder(role, blank_is_null=table.from_text)
            for role in wanted
            if role in ("item", "prediction", "system")
        }
        scores = _Numbers("score")
        columns = {name: _Numbers(column) for name, column in (probabilities or {}).items()}
        sinks: list[tuple[str, Sink]] = [(wanted[role], encoder) for role, encoder in encoders.items()]
        sinks += [(wanted["score"], scores)] if "score" in wanted else []
        sinks += [(column, columns[name]) for name, column in (probabilities or {}).items()]
        known = {} if labels is None else {"item": labels.items, "prediction": labels.classes}
        try:
            table.read(sinks)
            names = {role: encoder.finish() for role, encoder in encoders.items()}
            if table.from_text:
                names = {role: _named_as(encoded, known.get(role)) for role, encoded in names.items()}
        except InvalidLabels as error:
            raise InvalidPredictions(error.sentence.marked) from error
        parts = systems_from_columns(
            names,
            score=scores.finish() if "score" in wanted else None,
            probabilities={name: numbers.finish() for name, numbers in columns.items()},
            positive=positive,
            threshold=threshold,
        )
        return Predictions(parts)


def read_gold(
    path: Source,
    *,
    item: str = "item",
    label: str = "label",
    missing: Any = (),
    labels: Labels | None = None,
    file_format: Format | None = None,
) -> dict[Hashable, Hashable]:
    """Vetted truths from a file, as the mapping that `Labels.with_gold` takes.

    Parameters
    ----------
    path : path, "-" or file-like
        The file; "-" is standard input.
    item, label : str
        The names of the columns.
    missing : value or list of values
        Values of the label column that mean "not vetted"; None declares blank cells.
    labels : Labels, optional
        The labels they belong to. Text from a csv file is then read as the names these labels have.
    file_format : {"csv", "tsv", "jsonl", "parquet"}, optional
        The format, where the suffix does not tell.
    """
    with open_table(path, file_format=file_format) as table:
        for role, name in (("item", item), ("label", label)):
            check_column(name, table.columns, role=role)
        item_in, label_in = (Encoder(role, blank_is_null=table.from_text) for role in ("item", "label"))
        table.read([(item, item_in), (label, label_in)])
        special = tuple(missing) if isinstance(missing, list | tuple | set | frozenset) else (missing,)
        if table.from_text:
            special = tuple(None if is_null(v) or v == "" else str(v) for v in special)
        items, truths = item_in.finish(), label_in.finish(special=special)
        if table.from_text:
            items = _named_as(items, None if labels is None else labels.items)
            truths = _named_as(truths, None if labels is None else labels.classes)
        return _mapping(items, truths, blank_is_missing=any(map(is_null, special)))


def _mapping(items: Encoded, truths: Encoded, *, blank_is_missing: bool) -> dict[Hashable, Hashable]:
    (item, item_names), (truth, truth_names) = items, truths
    for codes, what, allowed in ((item, "item", False), (truth, "label", blank_is_missing)):
        empty = np.flatnonzero(codes == NULL_CODE)
        if len(empty) and not allowed:
            raise InvalidLabels(
                f"{what} must not be empty in gold, got {len(empty)} of {len(codes)} rows where it is (first: "
                f"⟨row {empty[0]}⟩); drop the rows" + (", or pass ⟨missing=None⟩" if what == "label" else "")
            )
    vetted = truth >= 0
    pairs = np.unique(np.stack([item[vetted], truth[vetted]], axis=1), axis=0)
    twice = np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])
    if len(twice):
        raise InvalidLabels(
            f"an item has one truth in gold, got several for {len(np.unique(pairs[twice, 0]))} items (first: "
            f"{item_names[pairs[twice[0], 0]]!s}); keep one of each"
        )
    return dict(zip(item_names[pairs[:, 0]].tolist(), truth_names[pairs[:, 1]].tolist(), strict=True))


def _named_as(encoded: Encoded, known: Vocabulary | None) -> Encoded:
    """Text from a file as the names it stands for: integers if all are, or what `known` writes in the same way."""
    codes, names = encoded
    if known is None:
        return numbers_from_text(codes, names)
    written: dict[str, Hashable] = {str(name): name for name in known.tolist()}
    numbers = known.dtype != object

    def meant(text: str) -> Hashable:
        if text in written:
            return written[text]
        return int(text.split(".")[0]) if numbers and is_plain_integer(text) else text

    return codes, vocabulary_from([meant(text) for text in names.tolist()])


class _Numbers:
    """Collects a column of numbers; blank and null are NaN."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._parts: list[Floats] = []
        self._n = 0

    def add(self, block: Block) -> None:
        values = block if isinstance(block, np.ndarray) else ["nan" if v == "" or is_null(v) else v for v in block]
        try:
            self._parts.append(np.array(values, dtype=np.float64))
        except (TypeError, ValueError) as error:
            row, bad = next((k, v) for k, v in enumerate(values) if not _is_number(v))
            raise InvalidPredictions(
                f"{self._column} must be a number, got {bad!r} in ⟨row {self._n + row}⟩; "
                "correct it, or leave the cell blank for no prediction"
            ) from error
        self._n += len(values)

    def finish(self) -> Floats:
        return np.concatenate(self._parts) if self._parts else np.empty(0)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def write_labels(labels: Labels, path: str | PathLike[str], *, file_format: Format | None = None) -> None:
    """Write the votes as a long table (item, labeler, label), one row a vote, that `read_labels` reads back.

    Items without votes, gold and what was left out are not in it. csv and tsv hold text and integers only: text that
    is written like an integer is read back as one.
    """
    who, kind = named(path), format_of(path, file_format)
    if not Path(path).parent.is_dir():
        raise MissingFile(f"the folder of {who} does not exist, got {str(Path(path).parent)!r}; make it first")
    if Path(path).is_dir():
        raise InvalidFile(f"{who} must be a file, got a folder; name a file in it")
    if kind == "parquet":
        _write_parquet(labels, path)
        return
    for what, names in (("item", labels.items), ("labeler", labels.labelers), ("answer", labels.answers)):
        odd = [v for v in names.tolist() if not _writable(v, blank=what == "answer") or (v == "" and kind != "jsonl")]
        if odd:
            raise InvalidLabels(
                f"a name of the {what}s cannot be written to {who}, got {preview(odd)}; use text or numbers as names, "
                "or pickle the labels"
            )
    with _open_for_writing(path, who) as stream:
        if kind == "jsonl":
            for item, labeler, label in _rows(labels):
                stream.write(json.dumps({"item": item, "labeler": labeler, "label": label}, ensure_ascii=False) + "\n")
        else:
            writer = csv.writer(stream, delimiter="\t" if kind == "tsv" else ",", lineterminator="\n")
            writer.writerow(["item", "labeler", "label"])
            writer.writerows(_rows(labels))


def _writable(name: object, *, blank: bool) -> bool:
    return isinstance(name, str | int | float) or (blank and name is None)


@contextmanager
def _open_for_writing(path: str | PathLike[str], who: str) -> Iterator[IO[str]]:
    try:
        if Path(path).suffix.lower() == ".gz":
            with gzip.open(path, "wt", encoding="utf-8", newline="") as stream:
                yield stream
        else:
            with Path(path).open("w", encoding="utf-8", newline="") as stream:
                yield stream
    except OSError as error:
        raise InvalidFile(f"{who} cannot be written, got {error!s:.100}; check the folder and its rights") from error


def _rows(labels: Labels) -> Iterator[tuple[Any, Any, Any]]:
    item, labeler, answer, times = labels.vote_table()
    for start in range(0, len(item), _ROWS):
        part = slice(start, start + _ROWS)
        codes = (np.repeat(c[part], times[part]) for c in (item, labeler, answer))
        names = zip((labels.items, labels.labelers, labels.answers), codes, strict=True)
        yield from zip(*(vocabulary[c].tolist() for vocabulary, c in names), strict=True)


def _write_parquet(labels: Labels, path: str | PathLike[str]) -> None:
    if is_installed("polars"):
        labels.to_frame(backend="polars").write_parquet(fspath(path))
    elif is_installed("pyarrow"):
        from pyarrow import parquet

        parquet.write_table(labels.to_frame(backend="pyarrow"), fspath(path))
    else:
        raise MissingExtra(f"writing {named(path)} needs polars or pyarrow: pip install 'trueup[polars]'")
