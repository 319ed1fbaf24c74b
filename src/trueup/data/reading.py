"""Votes, predictions, vetted truths and item tables from files, and votes to files.

csv, csv.gz, tsv, jsonl, jsonl.gz and parquet, told apart by the suffix. Text files are read in blocks by the standard
library, so no frame library is needed; parquet needs polars or pyarrow.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from trueup._base.types import Positions
from trueup._base.validation import check_choice, preview
from trueup.data.building import declared, read_votes
from trueup.data.encoding import NULL_CODE, Encoded, Vocabulary, check_named, is_null
from trueup.data.files import Format, Source, format_of, named, open_table, write_frame, write_rows
from trueup.data.frames import Cells, check_column, make_frame, read_names
from trueup.data.gold import DRAWS, Draw, Gold, contradiction, read_design
from trueup.data.items import from_text
from trueup.data.labels import Labels
from trueup.data.partitions import CROWD_MARK
from trueup.data.predictions import Predictions
from trueup.data.systems import systems_of
from trueup.data.votes import AbstainPolicy, Duplicates
from trueup.exceptions import InvalidLabels

_ROWS = 50_000
_WORDS, _NUMBERS = "drawn", ("chance", "inclusion_probability")  # columns of gold files that tell how items were drawn


def read_labels(
    path: Source,
    *,
    item: str = "item",
    labeler: str = "labeler",
    label: str = "label",
    run: str | None = None,
    classes: Sequence[Hashable] | None = None,
    missing: Any = (),
    abstain: Any = (),
    abstain_policy: AbstainPolicy = "ignore",
    duplicates: Duplicates = "keep",
    items: Source | None = None,
    file_format: Format | None = None,
) -> Labels:
    """Votes from a table with one row a vote; the parameters are those of `trueup.read_labels`."""
    with open_table(path, file_format=file_format) as table:
        marks = Cells()
        columns = read_votes(
            table,
            item=item,
            labeler=labeler,
            label=label,
            run=run,
            missing=missing,
            abstain=abstain,
            classes=classes,
            sinks=[(CROWD_MARK, marks)] if CROWD_MARK in table.columns else [],
        )
        marked = [code for code, mark in zip(columns.labeler.tolist(), marks.values, strict=False) if _is_marked(mark)]
        labels = Labels._from_columns(
            columns,
            classes=classes,
            abstain_policy=abstain_policy,
            duplicates=duplicates,
            crowds=frozenset(columns.labelers[np.unique(np.array(marked, dtype=np.int64))].tolist()),
        )
    if items is None:
        return labels
    return labels.with_items(read_items(items, item=item, labels=labels), unknown="ignore")


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
    """Predictions from a table; the parameters are those of `trueup.read_predictions`."""
    with open_table(path, file_format=file_format) as table:
        parts = systems_of(
            table,
            item=item,
            prediction=prediction,
            score=score,
            probabilities=probabilities,
            system=system,
            positive=positive,
            threshold=threshold,
            known=_names_of(labels),
        )
    return Predictions(parts)


def _names_of(labels: Labels | None) -> dict[str, Vocabulary]:
    """What text in a file stands for, by role."""
    return {} if labels is None else {"item": labels.items, "prediction": labels.classes, "label": labels.classes}


def read_items(
    path: Source,
    *,
    item: str = "item",
    columns: Sequence[str] | None = None,
    labels: Labels | None = None,
    file_format: Format | None = None,
) -> dict[str, list[Any]]:
    """What is known of the items, from a file with a row for each, as the columns that `Labels.with_items` takes.

    In csv and tsv a blank cell is a null; a column becomes numbers if all of its cells are, and times if all are dates
    or times in ISO 8601.

    Parameters
    ----------
    path : path, "-" or file-like
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
    column: str,
    *,
    role: str,
    columns: Sequence[str] | None = None,
    labels: Labels | None = None,
    file_format: Format | None = None,
) -> tuple[list[Any], dict[str, list[Any]]]:
    """The names in one column, None for a null, and the values of the others; see `read_items`.

    Parameters
    ----------
    column : str
        That of the names.
    role : str
        What has these names, and the parameter that says which column it is.
    """
    with open_table(path, file_format=file_format) as table:
        chosen = [name for name in table.columns if name != column] if columns is None else list(columns)
        for name in chosen:
            check_column(name, table.columns, role="columns")
        cells = {name: Cells() for name in chosen}
        codes, names = read_names(table, {role: column}, known=_names_of(labels), sinks=[*cells.items()])[role]
        values = {name: from_text(cell.values) if table.from_text else cell.values for name, cell in cells.items()}
    with_null = [*names.tolist(), None]  # the last serves the code of a null
    return [with_null[code] for code in codes.tolist()], values


def read_gold(
    path: Source,
    *,
    item: str = "item",
    label: str = "label",
    drawn: Draw | None = None,
    missing: Any = (),
    labels: Labels | None = None,
    file_format: Format | None = None,
) -> Gold:
    """Vetted truths from a table; the parameters are those of `trueup.read_gold`."""
    if drawn is not None:
        check_choice(drawn, DRAWS, name="drawn")
    with open_table(path, file_format=file_format) as table:
        special, _ = declared(missing, (), from_text=table.from_text)
        words, numbers = Cells(), Cells()
        present = [name for name in table.columns if drawn is None and name not in (item, label)]
        sinks = [(name, words) for name in present if name == _WORDS]
        sinks += [(name, numbers) for name in [name for name in _NUMBERS if name in present][:1]]
        names = read_names(table, {"item": item, "label": label}, special=special, known=_names_of(labels), sinks=sinks)
        rows = names["item"], names["label"]
        if drawn == "random":
            _check_all_vetted(np.flatnonzero(rows[1][0] == NULL_CODE), len(rows[1][0]))
        if not sinks:
            return Gold(_mapping(*rows, blank_is_missing=None in special), drawn=drawn or "chosen")
        return _designed(*rows, words.values or None, numbers.values or None, blank_is_missing=None in special)


def _designed(
    items: Encoded, truths: Encoded, words: list[Any] | None, numbers: list[Any] | None, *, blank_is_missing: bool
) -> Gold:
    """The truths with how their items were drawn; every item that was drawn must be vetted."""
    (item, item_names), (truth, _) = items, truths
    check_named(item, "item")
    named_items = item_names[item].tolist()
    design = read_design(named_items, words, numbers)
    open_rows = [k for k in np.flatnonzero(truth == NULL_CODE).tolist() if design[named_items[k]] != "chosen"]
    _check_all_vetted(open_rows, sum(how != "chosen" for how in design.values()))
    mapping = _mapping(items, truths, blank_is_missing=blank_is_missing)
    return Gold(mapping, drawn={name: design[name] for name in mapping})


def _check_all_vetted(open_rows: Sequence[int] | Positions, n_drawn: int) -> None:
    """Stop a draw of which some items have no truth: those that are left out are seldom like the others."""
    if len(open_rows):
        raise InvalidLabels(
            f"every item that was drawn must be vetted, got {len(open_rows)} of {n_drawn} without a label (first: "
            f'⟨row {open_rows[0]}⟩); fill them in, or pass ⟨drawn="chosen"⟩ to do without the draw'
        )


def _mapping(items: Encoded, truths: Encoded, *, blank_is_missing: bool) -> dict[Hashable, Hashable]:
    (item, item_names), (truth, truth_names) = items, truths
    check_named(item, "item")
    empty = np.flatnonzero(truth == NULL_CODE)
    if len(empty) and not blank_is_missing:
        raise InvalidLabels(
            f"label must not be empty in gold, got {len(empty)} of {len(truth)} rows where it is (first: "
            f"⟨row {empty[0]}⟩); drop the rows, or pass ⟨missing=None⟩"
        )
    vetted = truth >= 0
    pairs = np.unique(np.stack([item[vetted], truth[vetted]], axis=1), axis=0)
    twice = np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])
    if len(twice):
        first = twice[0]
        raise contradiction(
            item_names[[pairs[first, 0]]].tolist()[0],
            truth_names[pairs[[first, first + 1], 1]].tolist(),
            len(np.unique(pairs[twice, 0])),
            remedy="keep one of each",
        )
    return dict(zip(item_names[pairs[:, 0]].tolist(), truth_names[pairs[:, 1]].tolist(), strict=True))


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


def _is_marked(cell: Any) -> bool:
    return str(cell).casefold() in ("1", "1.0", "true")


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
