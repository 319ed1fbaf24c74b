"""Votes, predictions, vetted truths and item tables from files, and votes to files.

The suffix gives the format: csv, csv.gz, tsv, jsonl, jsonl.gz or parquet. Text files are read in blocks by the standard
library, so no frame library is needed; parquet needs polars or pyarrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from trueup._base.validation import preview
from trueup.data.building import CROWD_MARK
from trueup.data.encoding import Vocabulary, is_null
from trueup.data.files import Format, Source, format_of, named, open_table, write_frame, write_rows
from trueup.data.frames import make_frame
from trueup.data.gold import names_by_role
from trueup.data.items import read_rows
from trueup.data.labels import Labels
from trueup.data.votes import vote_columns
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
    """The columns that describe items, from a file with a row for each, as `Labels.with_items` takes them.

    In csv and tsv a blank cell is a null; a column becomes numbers if all of its cells are, and times if all are dates
    or times in ISO 8601.

    Parameters
    ----------
    path : path, "-", file-like, frame or dict of columns. The file; "-" is standard input.
    item : str. The column that names the item.
    columns : sequence of str, optional. The columns to read; by default all.
    labels : Labels, optional. Text from a csv file is read as the names that these labels have.
    file_format : {"csv", "tsv", "jsonl", "parquet"}, optional. The format, by default that of the suffix.
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
        return read_rows(table, column, role=role, columns=columns, known=names_by_role(labels))


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
    path : path. The file of the votes.
    items : path, optional. The file of the columns of the items, a row for each, which `read_labels` takes as `items`.
    file_format : {"csv", "tsv", "jsonl", "parquet"}, optional. The format of both, by default those of the suffixes.
    """
    if items is not None and not labels.item_columns:
        raise InvalidLabels("there are no item columns to write, got none; add them with labels.with_items")
    kind = format_of(path, file_format)
    for role, names in (("item", labels.items), ("labeler", labels.labelers), ("label", labels.answers)):
        odd = [
            name
            for name in names.tolist()
            if not (isinstance(name, str | int | float) or (role == "label" and name is None))
            or (name == "" and kind != "jsonl")
        ]
        if odd and kind != "parquet":
            raise InvalidLabels(
                f"a name of the {role}s cannot be written to {named(path)}, got {preview(odd)}; use text or numbers as "
                "names, or pickle the labels"
            )
    votes = vote_columns(labels)[1]
    if labels.crowds:
        votes[CROWD_MARK] = np.repeat(labels.is_crowd[labels.vote_table()[1]], labels.vote_table()[3]).astype(np.int64)
    _write(path, votes, file_format)
    if items is not None:
        columns: dict[str, Any] = {"item": labels.items, **labels.item_table.columns}
        if format_of(items, file_format) != "parquet":
            columns = {name: _cells(values) for name, values in columns.items()}
        _write(items, columns, file_format)


def _write(path: str | PathLike[str], columns: Mapping[str, Any], file_format: Format | None) -> None:
    """Write columns, arrays or lists, as a table."""
    if format_of(path, file_format) == "parquet":
        write_frame(path, partial(make_frame, columns))
        return
    blocks = ([values[k : k + _ROWS] for values in columns.values()] for k in range(0, len(columns["item"]), _ROWS))
    lists = ([part.tolist() if isinstance(part, np.ndarray) else part for part in block] for block in blocks)
    rows = (row for block in lists for row in zip(*block, strict=True))
    write_rows(path, list(columns), rows, file_format=file_format)


def _cells(values: Vocabulary) -> list[Any]:
    """Values as a text file holds them: times in ISO 8601, no value as an empty cell."""
    present = (None if is_null(value) else value for value in values.tolist())
    return [value.isoformat() if isinstance(value, date) else value for value in present]
