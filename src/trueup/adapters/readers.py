"""All adapters by name; labels, gold, predictions and pairs from tables and exports; and files that other tools take.

A plain table is read as it is. It is taken for an export only where it lacks the column of items and has the marks of
one tool.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.cells import csv_text, safe_cell
from trueup._base.registry import Registry
from trueup._base.validation import check_choice
from trueup._base.writing import write_text_safely
from trueup.adapters import annotation_tools, judge_logs, pairwise, presets
from trueup.adapters.collecting import Adapter, Answer, Collector, Target, check_adapter
from trueup.adapters.content import Content, wrap_read_errors
from trueup.adapters.export import Export
from trueup.data import reading
from trueup.data.aligned import systems_of
from trueup.data.building import VoteFormat, declared
from trueup.data.encoding import is_null
from trueup.data.files import FORMATS, Source, named, open_table, table_suffix
from trueup.data.frames import has_key
from trueup.data.gold import DRAWS, Draw, Gold, gold_from, names_by_role
from trueup.data.labels import Labels
from trueup.data.pairs import Pairs
from trueup.data.pairs import read_pairs as read_pair_table
from trueup.data.predictions import Predictions
from trueup.data.votes import AbstainPolicy, Duplicates
from trueup.exceptions import InvalidFile, InvalidLabels, InvalidParameter

AUTO = "auto"
_OPTIONAL = ("run", "wide", "system", "probabilities")  # no column by default


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


def read_export(
    path: Source,
    *,
    file_format: str = AUTO,
    question: str | None = None,
    keep_names: bool = False,
    exclude_prelabeled: bool = False,
) -> Export:
    """Votes, gold, predictions and items from the export of another tool, with notes on what was made of it.

    Parameters
    ----------
    path : path, "-" or file-like. The file, or the folder where a tool writes several.
    file_format : str
        "auto" to recognise the tool by the structure of the file, or one of `trueup.adapters.list_formats`.
    question : str, optional. Which of several questions; `Export.questions` lists them.
    keep_names : bool
        Keep mails, names and addresses as the names of labelers; by default they are called annotator-1 and so on.
    exclude_prelabeled : bool. Leave out answers that began with what a model had filled in.
    """
    content = Content(path)
    with wrap_read_errors(content.who):
        name = detect(content) if file_format == AUTO else ADAPTERS.resolve(file_format)
    with wrap_read_errors(content.who, as_what=f"an export of {name}"):
        collector = Collector(question=question, keep_names=keep_names, exclude_prelabeled=exclude_prelabeled)
        ADAPTERS[name].read(content, collector)
        export = collector.finish(name, content.who)
        return export if question is None else export.of(question)


def export_format(path: Source, *, item: str | Sequence[str] | None = "item", file_format: str = AUTO) -> str | None:
    """The tool whose export a file is, or None for a plain table: one with the column of items, or no tool's marks.

    Parameters
    ----------
    item : str or None. The column of items that makes a table a plain one.
    file_format : str. "auto", the format of a table, or the name of a tool.
    """
    if file_format in FORMATS:
        return None
    if file_format != AUTO:
        if file_format not in ADAPTERS:
            check_choice(file_format, (AUTO, *FORMATS, *ADAPTERS), name="file_format")
        return ADAPTERS.resolve(file_format)
    if not isinstance(path, str | PathLike) or path == "-":
        return None  # a stream is csv unless it is named
    if table_suffix(path) is None:
        content = Content(path)
        with wrap_read_errors(content.who):
            return detect(content)
    with open_table(path) as table:
        if item is None or has_key(item, table.columns):
            return None
    content = Content(path)
    with wrap_read_errors(content.who):
        return detect(content) if matches(content) else None


def read_labels(
    path: Source,
    *,
    item: str | Sequence[str] = "item",
    labeler: str = "labeler",
    label: str = "label",
    run: str | None = None,
    wide: bool | None = None,
    classes: Sequence[Hashable] | None = None,
    missing: Any = (),
    abstain: Any = (),
    abstain_policy: AbstainPolicy = "ignore",
    duplicates: Duplicates = "keep",
    gold: Source | None = None,
    gold_column: str | None = None,
    gold_drawn: Draw | None = None,
    items: Source | None = None,
    file_format: str = AUTO,
    question: str | None = None,
    keep_names: bool = False,
    exclude_prelabeled: bool = False,
) -> Labels:
    """Votes from a file or a frame with one row a vote, or from the export of another tool, with its gold and items.

    In csv and tsv a blank cell is a null, and a column becomes integers only if every name in it is one written
    plainly ("7", not "007"), labels also only if `classes` does not name them as text. A column ``is_crowd``, which
    `write_labels` writes, marks with 1 the votes of a labeler who stands for an anonymous crowd. Other columns that
    have one value for each item become item columns.

    Parameters
    ----------
    path : path, "-", file-like, frame or dict of columns. The file; "-" is standard input.
    item, labeler, label, run, wide, classes, missing, abstain, abstain_policy, duplicates
        As in `Labels.from_frame`.
    gold : path, file-like, frame or dict of columns, optional
        Vetted truths, a row each, as `read_gold` takes them; a row without a label is not vetted.
    gold_column : str, optional. The column of the truths there; by default as `label`.
    gold_drawn : {"chosen", "random"}, optional. How their items were drawn, in place of what the file says.
    items : path, file-like, frame or dict of columns, optional
        Columns of the items, with the same column that names them, as for `Labels.with_items`; rows for items without
        votes are left out. The file of the votes itself: its columns that describe items.
    file_format : str
        "auto": a table by its suffix (csv for standard input and file-likes), else the export of a tool by its
        structure. Or "csv", "tsv", "jsonl", "parquet", or one of `trueup.adapters.list_formats`. Files of gold and of
        items are of the format of their suffix, or of this one.
    question, keep_names, exclude_prelabeled
        As in `read_export`, of exports.
    """
    tool = export_format(path, item=item, file_format=file_format)
    how = VoteFormat(item, labeler, label, run, wide, classes, missing, abstain, abstain_policy, duplicates)
    if tool is None:
        _refuse(question=question, keep_names=keep_names or None, exclude_prelabeled=exclude_prelabeled or None)
        with open_table(path, file_format=_table_format(file_format)) as table:
            labels = Labels._from_table(table, how)
    else:
        _refuse_columns(path, tool, item=item, labeler=labeler, label=label, run=run, wide=wide)
        export = read_export(
            path, file_format=tool, question=question, keep_names=keep_names, exclude_prelabeled=exclude_prelabeled
        )
        labels = export._labels(how)
    _check_gold(gold, gold_column=gold_column, gold_drawn=gold_drawn)
    if gold is not None:
        gold_tool = export_format(gold, item=item, file_format=_beside(gold, file_format))
        try:
            truths = read_gold(
                gold,
                item=item,
                label=gold_column or label,
                drawn=gold_drawn,
                missing=[None, *declared(missing, ())[0]],
                labels=labels,
                file_format=gold_tool or _beside(gold, file_format),
                question=None if gold_tool is None else question,  # the question is of exports alone
            )
        except InvalidLabels as error:  # here the column has another name
            raise InvalidLabels(error.sentence.replace("`label=", "`gold_column=")) from error
        if not truths:
            raise InvalidFile(f"{named(gold)} has no truths, got no label in any row; fill them in")
        labels = labels.with_gold(truths)
    if items is None:
        return labels
    # The table of votes itself names the columns that it has of the items.
    columns = labels.item_columns if isinstance(items, str | PathLike) and items == path else None
    form = _table_format(_beside(items, file_format))
    about = reading.read_items(items, item=item, columns=columns, labels=labels, file_format=form)
    return labels.with_items(about, unknown="ignore")


def read_predictions(
    path: Source,
    *,
    item: str | Sequence[str] | None = "item",
    prediction: str | Sequence[str] = "prediction",
    score: str = "score",
    probabilities: Mapping[Hashable, str] | None = None,
    system: str | None = None,
    positive: Hashable | None = None,
    threshold: float | None = 0.5,
    labels: Labels | None = None,
    file_format: str = AUTO,
    question: str | None = None,
) -> Predictions:
    """Predictions from a file with a row for each item, or for each item and system, or from the export of a tool.

    Parameters
    ----------
    path : path, "-", file-like, frame or dict of columns. The file; "-" is standard input.
    item, prediction, score, probabilities, system, positive, threshold
        As in `Predictions.from_frame`, of tables.
    labels : Labels, optional. Text from a csv file is read as the names that these labels have.
    file_format : str. As in `read_labels`.
    question : str, optional. Of exports, which of several questions.
    """
    columns: dict[str, Any] = {"item": item, "prediction": prediction, "score": score, "system": system}
    columns["probabilities"] = probabilities or None
    tool = export_format(path, item=item, file_format=file_format)
    if tool is None:
        _refuse(question=question)
        with open_table(path, file_format=_table_format(file_format)) as table:
            known = names_by_role(labels)
            return Predictions(systems_of(table, positive=positive, threshold=threshold, known=known, **columns))
    _refuse_columns(path, tool, **columns)
    return read_export(path, file_format=tool, question=question).predictions()


def read_gold(
    path: Source,
    *,
    item: str | Sequence[str] = "item",
    label: str = "label",
    drawn: Draw | None = None,
    missing: Any = (),
    labels: Labels | None = None,
    file_format: str = AUTO,
    question: str | None = None,
) -> Gold:
    """Vetted truths from a file, or from the export of a tool, as the mapping that `Labels.with_gold` takes.

    Its attribute `drawn` says how the items came to be vetted: a column ``chance`` (or ``inclusion_probability``) has
    the probability with which each was drawn, or a column ``drawn`` says "random" or "chosen". An item that was drawn
    and is not vetted yet is an error: without it the rest is no sample.

    Parameters
    ----------
    path : path, "-", file-like, frame or dict of columns. The file; "-" is standard input.
    item, label : str. The names of the columns of a table.
    drawn : {"chosen", "random"}, optional. How all items were drawn, in place of what the file says.
    missing : value or list of values. Values of the label column that mean "not vetted"; None declares blank cells.
    labels : Labels, optional. Text from a csv file is read as the names that these labels have.
    file_format : str. As in `read_labels`.
    question : str, optional. Of exports, which of several questions.
    """
    tool = export_format(path, item=item, file_format=file_format)
    if tool is None:
        _refuse(question=question)
        with open_table(path, file_format=_table_format(file_format)) as table:
            return gold_from(table, item, label, drawn=drawn, missing=missing, labels=labels)
    _refuse_columns(path, tool, item=item, label=label)
    gold = read_export(path, file_format=tool, question=question).gold
    return gold if drawn is None else Gold(gold, drawn=check_choice(drawn, DRAWS, name="drawn"))


def read_pairs(
    path: Source,
    *,
    item: str | Sequence[str] = "item",
    judge: str = "judge",
    first: str = "first",
    second: str = "second",
    winner: str = "winner",
    gold: Source | None = None,
    gold_drawn: Draw | None = None,
    file_format: str = AUTO,
) -> Pairs:
    """Verdicts on pairs of systems from a file with one row a verdict, or from the export of a tool.

    Parameters
    ----------
    path : path, "-", file-like, frame or dict of columns. The file; "-" is standard input.
    item, judge, first, second, winner : str
        The names of the columns of a table, as in `Pairs.from_frame`; without a column of judges, all verdicts are of
        one. Exports of arenas and MT-Bench have the order, too; where one has none, a note in ``pairs.notes`` says so.
    gold : path, file-like, frame or dict of columns, optional
        Verdicts that are taken to be right, as those of people, with the same columns; see `Pairs.with_gold`.
    gold_drawn : {"chosen", "random"}, optional. How their contests were drawn.
    file_format : str. As in `read_labels`.
    """
    columns: dict[str, Any] = {"item": item, "judge": judge, "first": first, "second": second, "winner": winner}
    is_named = any(value != name for name, value in columns.items())  # a table whose columns are named is a plain one
    tool = export_format(path, item=None if is_named else item, file_format=file_format)
    if tool is None:
        verdicts = read_pair_table(path, file_format=_table_format(file_format), **columns)
    else:
        _refuse_columns(path, tool, **columns)
        verdicts = read_export(path, file_format=tool).pairs()
    _check_gold(gold, gold_drawn=gold_drawn)
    if gold is None:
        return verdicts
    return verdicts.with_gold(read_pairs(gold, file_format=_beside(gold, file_format), **columns), drawn=gold_drawn)


def _check_gold(gold: Source | None, **about: str | None) -> None:
    """Stop options of gold where there is none."""
    for name, value in about.items():
        if gold is None and value is not None:
            raise InvalidParameter(f"`{name}` is about a gold file, got no `gold`; name the file")


def _beside(path: Source, file_format: str) -> str:
    """The format of a file beside that of the votes: by its suffix if it has one, else as that of the votes."""
    if isinstance(path, str | PathLike) and path != "-" and table_suffix(path) is not None:
        return AUTO
    return file_format


def _table_format(file_format: str) -> Any:
    return None if file_format == AUTO else file_format


def _refuse(**wishes: Any) -> None:
    """Stop options of exports where there is a table."""
    for name, value in wishes.items():
        if value is not None:
            raise InvalidParameter(
                f"`{name}` is for exports of other tools, got {value!r} and a plain table; leave it out, or name "
                "the tool with `file_format=…`",
            )


def _refuse_columns(path: Source, tool: str, **columns: Any) -> None:
    """Stop columns of a table where there is an export."""
    for name, value in columns.items():
        if value != (None if name in _OPTIONAL else name):
            raise InvalidParameter(
                f"`{name}` names a column of plain tables, got {value!r} for {named(path)}, an export of {tool}; "
                "leave it out, or pass `file_format=…` with the format of the table",
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
