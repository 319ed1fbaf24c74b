"""Votes, predictions, vetted truths and item tables from files, and votes to files.

csv, csv.gz, tsv, jsonl, jsonl.gz and parquet, told apart by the suffix. Text files are read in blocks by the standard
library, so no frame library is needed; parquet needs polars or pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from trueup._base.validation import preview
from trueup.data.building import CROWD_MARK
from trueup.data.encoding import Vocabulary, is_null
from trueup.data.files import Format, Source, format_of, named, open_table, write_frame, write_rows
from trueup.data.frames import Cells, check_column, key_columns, make_frame, read_names
from trueup.data.gold import names_by_role
from trueup.data.items import text_as_values
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels

_ROWS = 50_000


def read_items(
    path: Source,
    *,
    item: str | Sequence[str] = "item",
    columns: Sequence[str] | None = None,
    labels: Labels | None = None,
    file_format: Format | None = None,
) -> dict[str, list[Any]]:
    """What is known of the items, from a file with a row for each, as the columns that `Labels.with_items` takes.

    In csv and tsv a blank cell is a null; a column becomes numbers if all of its cells are, and times if all are dates
    or times in ISO 8601.

    Parameters
    ----------
    path : path, "-", file-like, frame or dict of columns
        The file; "-" is standard input.
    item : str
        The column that names the item.
    columns : sequence of str, optional
        The columns to read; by default all.
    labels : Labels, optional
        The labels they belong to. Text from a csv file is then read as the names these labels have.
    file_format : {"csv", "tsv", "jsonl", "parquet"}, optional
        The format, where the suffix does not tell.
    """
    names, values = read_named_rows(path, item, role="item", columns=columns, labels=labels, file_format=file_format)
    return {"item": names, **values}


def read_named_rows(
    path: Source,
    column: str | Sequence[str],
    *,
    role: str,
    columns: Sequence[str] | None = None,
    labels: Labels | None = None,
    file_format: Format | None = None,
) -> tuple[list[Any], dict[str, list[Any]]]:
    """The names in one column, None for a null, and the values of the others; see `read_items`."""
    with open_table(path, file_format=file_format) as table:
        key = key_columns(column, table.columns, role=role)
        chosen = [name for name in table.columns if name not in key] if columns is None else list(columns)
        for name in chosen:
            check_column(name, table.columns, role="columns")
        cells = {name: Cells() for name in chosen}
        codes, names = read_names(table, {role: column}, known=names_by_role(labels), sinks=[*cells.items()])[role]
        values = {name: text_as_values(cell.values) if table.from_text else cell.values for name, cell in cells.items()}
    with_null = [*names.tolist(), None]  # the last serves the code of a null
    return [with_null[code] for code in codes.tolist()], values


def write_labels(
    labels: Labels,
    path: str | PathLike[str],
    *,
    items: str | PathLike[str] | None = None,
    file_format: Format | None = None,
) -> None:
    """Write the votes as a long table (item, labeler, label), one row a vote, that `read_labels` reads back.

    Items without votes, gold and what was left out are not in it. csv and tsv hold text and integers only: text that
    is written like an integer is read back as one. The votes of an anonymous crowd are marked in a column ``is_crowd``.
    A file is replaced whole or stays as it was.

    Parameters
    ----------
    labels : Labels
    path : path
        The file of the votes.
    items : path, optional
        The file of what is known of the items, a row for each, which `read_labels` takes as `items`; without it their
        columns are not written.
    file_format : {"csv", "tsv", "jsonl", "parquet"}, optional
        The format of both, where the suffix does not tell.
    """
    if items is not None and not labels.item_columns:
        raise InvalidLabels("there are no item columns to write, got none; add them with labels.with_items")
    names = {"item": labels.items, "labeler": labels.labelers, "label": labels.answers}
    for role, vocabulary in names.items():
        _check_writable_names(vocabulary, role, path, format_of(path, file_format))
    if format_of(path, file_format) == "parquet":
        write_frame(path, partial(_vote_frame, labels))
    else:
        header = [*names, CROWD_MARK] if labels.crowds else list(names)
        write_rows(path, header, _vote_rows(labels), file_format=file_format)
    if items is not None:
        columns = {"item": labels.items, **labels.item_table.columns}
        if format_of(items, file_format) == "parquet":
            write_frame(items, partial(make_frame, columns))
        else:
            rows = zip(*(_cells(values) for values in columns.values()), strict=True)
            write_rows(items, list(columns), rows, file_format=file_format)


def _check_writable_names(names: Vocabulary, role: str, path: str | PathLike[str], kind: Format) -> None:
    if kind == "parquet":
        return
    blank = role == "label"
    odd = [
        name
        for name in names.tolist()
        if not (isinstance(name, str | int | float) or (blank and name is None)) or (name == "" and kind != "jsonl")
    ]
    if odd:
        raise InvalidLabels(
            f"a name of the {role}s cannot be written to {named(path)}, got {preview(odd)}; use text or numbers as "
            "names, or pickle the labels"
        )


def _vote_frame(labels: Labels, *, backend: str) -> Any:
    if not labels.crowds:
        return labels.to_frame(backend=backend, with_items=False)
    names = ("item", "labeler", "label", CROWD_MARK)
    return make_frame(dict(zip(names, zip(*_vote_rows(labels), strict=True), strict=True)), backend=backend)


def _vote_rows(labels: Labels) -> Iterator[tuple[Any, ...]]:
    item, labeler, answer, times = labels.vote_table()
    vocabularies = [labels.items, labels.labelers, labels.answers]
    if labels.crowds:
        vocabularies.append(labels.is_crowd.astype(np.int64))
    for start in range(0, len(item), _ROWS):
        part = slice(start, start + _ROWS)
        i, t, z = (np.repeat(c[part], times[part]) for c in (item, labeler, answer))
        yield from zip(*(v[c].tolist() for v, c in zip(vocabularies, (i, t, z, t), strict=False)), strict=True)


def _cells(values: Vocabulary) -> list[Any]:
    """Values as a text file holds them: times in ISO 8601, no value as an empty cell."""
    listed = [None if is_null(value) else value for value in values.tolist()]
    return [value.isoformat() if isinstance(value, date) else value for value in listed]
