"""All adapters by name, which of them a file is for, and files that other tools take."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.cells import csv_text, safe_cell
from trueup._base.registry import Registry
from trueup._base.validation import check_choice
from trueup._base.writing import write_text_safely
from trueup.adapters import annotation_tools, judge_logs, pairwise, presets
from trueup.adapters.collecting import Adapter, Answer, Target, check_adapter
from trueup.adapters.content import Content
from trueup.adapters.export import Export
from trueup.data.encoding import is_null
from trueup.data.labels import Labels
from trueup.exceptions import InvalidFile, InvalidParameter

ADAPTERS: Registry[Adapter] = Registry(
    "file_format",
    annotation_tools.TOOLS | judge_logs.TOOLS | pairwise.TOOLS | presets.TOOLS,
    aliases={"labelstudio": "label-studio", "inspect-ai": "inspect", "sagemaker": "ground-truth"},
    group="trueup.adapters",
    check=check_adapter,
)


def list_formats() -> list[str]:
    """The names of the formats of other tools, as ``file_format=`` takes them."""
    return ADAPTERS.names()


def matches(content: Content) -> dict[str, list[str]]:
    """The formats that a file may be, each with the marks that were seen; two marks are needed."""
    seen = {name: ADAPTERS[name].sniff(content.head) for name in ADAPTERS}
    return {name: marks for name, marks in seen.items() if len(marks) >= 2}


def detect(content: Content) -> str:
    """The one format that a file is; none or several are an error that lists what was seen."""
    likely = matches(content)
    if len(likely) == 1:
        return next(iter(likely))
    known = ", ".join(ADAPTERS)
    if likely:
        listed = " and ".join(f"{name} ({', '.join(marks)})" for name, marks in likely.items())
        raise InvalidFile(
            f"{content.who} may be the export of several tools, got the marks of {listed}; name one with "
            "`file_format=…`"
        )
    raise InvalidFile(
        f"the format of {content.who} is not known, got {content.head.described()}; known are the exports of {known}, "
        "which `file_format=…` names, and tables (csv, tsv, jsonl, parquet) with columns for the item, the labeler and "
        "the label: convert it, or name its columns"
    )


# ------------------ Ways back: items to vet, and what the votes say of items, as files that other tools take.

_TABLES = ("csv", "jsonl")


def writable_formats() -> list[str]:
    """The formats that `write_tasks` can write."""
    return [*_TABLES, *(name for name in ADAPTERS if ADAPTERS[name].write is not None)]


def write_tasks(
    labels: Labels,
    path: str | PathLike[str],
    *,
    file_format: str,
    items: Iterable[Hashable] | None = None,
    posterior: npt.ArrayLike | None = None,
    question: str | None = None,
    agent: str = "trueup",
    with_text: bool = True,
    like: Export | None = None,
) -> None:
    """Write items for another tool: to be vetted there, or with what the votes say of each and how surely.

    Parameters
    ----------
    labels : Labels. The items are of these, and their columns (`Labels.with_items`) are written along.
    file_format : str. The tool, or "csv" or "jsonl" for a plain table; see `writable_formats`.
    items : iterable, optional. The items to write, e.g. those of `ActiveTest.ask`; by default all.
    posterior : array of shape (n_items, n_classes), optional
        The probabilities of the classes, e.g. ``noise.posterior(labels)``: the likeliest class of each item is
        suggested with its probability. Without it nothing is suggested, so that experts are not swayed.
    question : str, optional. The question, control or score in the tool; by default that of `like`, else "label".
    agent : str. Who suggests.
    with_text : bool. Whether to write the columns of long text too.
    like : Export, optional. An export of the tool, with the names of its controls.
    """
    name = file_format if file_format in _TABLES else ADAPTERS.resolve(file_format)
    check_choice(name, writable_formats(), name="file_format")
    question = question or (None if like is None else like.question or like.questions[0]) or "label"
    asked = None if like is None else like.by_question.get(question)
    best: list[tuple[Any, float | None]] = [(None, None)] * labels.n_items
    if posterior is not None:
        table = np.asarray(posterior, dtype=np.float64)
        if table.shape != (labels.n_items, labels.n_classes):
            raise InvalidParameter(
                f"`posterior` must be items × classes of the labels, got shape {table.shape} for {labels.n_items} "
                f"items and {labels.n_classes} classes; pass noise.posterior(labels)",
            )
        classes = labels.classes.tolist()
        best = [(classes[k], float(p)) for k, p in zip(table.argmax(axis=1), table.max(axis=1), strict=True)]
    hidden = () if with_text else labels.text_columns
    columns = {name: labels.item_column(name).tolist() for name in labels.item_table.given if name not in hidden}
    names, positions = (
        labels.items.tolist(),
        range(labels.n_items) if items is None else labels.item_codes(items).tolist(),
    )
    answers = [
        Answer(names[k], *best[k], {name: values[k] for name, values in columns.items() if not is_null(values[k])})
        for k in positions
    ]
    write = None if name in _TABLES else ADAPTERS[name].write
    if write is not None:
        text = write(answers, Target(question, agent, {} if asked is None else dict(asked.details)))
    else:
        given = list(dict.fromkeys(name for answer in answers for name in answer.columns or {}))
        header = ["item", "label", "confidence", *given]
        rows = [
            [answer.item, answer.label, answer.confidence, *map((answer.columns or {}).get, given)]
            for answer in answers
        ]
        if name == "csv":
            # What strangers wrote of an item must not run in a spreadsheet; names stay as they are, to be joined by.
            text = csv_text(header, [[*row[:3], *map(safe_cell, row[3:])] for row in rows])
        else:
            objects = (dict(zip(header, row, strict=True)) for row in rows)
            text = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in objects)
    write_text_safely(path, text)
