"""trueup convert, formats, metrics and mcp: tables and exports, what can be read and measured, tools for assistants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trueup._base.cells import csv_text, safe_cell
from trueup._base.writing import write_text_safely
from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command
from trueup.cli._console import note, print_records, say
from trueup.cli._files import check_writable_format, read_votes, votes_export
from trueup.cli._options import arg, opt
from trueup.exceptions import InvalidLabels, InvalidParameter, silenced_warnings

if TYPE_CHECKING:
    from trueup.adapters import Export
    from trueup.data.labels import Labels


@dataclass(frozen=True)
class OtherOutputs:
    """What else to write, as csv."""

    gold_out: str | None = opt(None, "The checked classes: item, label.", "FILE", writes=True)
    predictions_out: str | None = opt(
        None, "The predictions: item, system, prediction, confidence.", "FILE", writes=True
    )
    items_out: str | None = opt(None, "The columns of the items.", "FILE", writes=True)


@as_command
def convert(
    how: options.VoteOptions,
    others: OtherOutputs,
    source: str = arg(..., "SOURCE", "An export, see 'trueup formats', or a table of votes.", reads=True),
    target: str = arg(..., "TARGET", "The file to write.", writes=True),
    to: str | None = opt(
        None,
        "Write what the votes say of each item, with its probability: one of WRITABLE.",
        "FORMAT",
        chosen="WRITABLE",
    ),
    noise: str = opt("dawid-skene", "The model of what votes say; one of NOISE_MODELS.", chosen="NOISE_MODELS"),
    with_text: options.WithText = False,
    force: options.Force = False,
) -> None:
    """From an export to plain tables, or from votes to tasks with suggestions for a tool."""
    if to is not None:
        check_writable_format(to)
    export = votes_export(source, how)
    if export is None and others.predictions_out is not None:
        raise InvalidParameter(
            f"--predictions-out is for exports with predictions, got the table {source!r}; leave it out"
        )
    # An export may hold gold or predictions and no votes.
    has_votes = export is None or any(label is not None for label in export.votes["label"])
    labels = _read(source, how, of_one_class=to is None) if has_votes else None
    if labels is None and export is not None:
        for sentence in export.notes:
            note(sentence)
    if to is not None:
        from trueup.adapters import write_tasks
        from trueup.noise import fit

        if labels is None:
            raise InvalidParameter("--to writes what votes say, got an export without votes; leave it out")
        with silenced_warnings():
            posterior = fit(labels, noise).posterior(labels)
        task: dict[str, Any] = {"posterior": posterior, "agent": f"trueup-{noise}", "like": export}
        write_tasks(labels, target, file_format=to, with_text=with_text, **task)
        left_out = _left_out(labels, labels.item_table.given, with_text=with_text)
        say(f"Wrote {labels.n_items:,} items to {target}{left_out}.")
    elif labels is not None:
        _write_votes(labels, target, export)
    else:
        note(f"{source} holds no votes, so {target} is not written")
    if others.gold_out is not None:
        gold = labels.gold if labels is not None else export.gold if export is not None else {}
        write_text_safely(others.gold_out, csv_text(["item", "label"], list(gold.items())))
        say(f"Wrote {len(gold):,} checked classes to {others.gold_out}.")
    if others.predictions_out is not None and export is not None:
        names = ["item", "system", "prediction", "confidence"]
        columns = export.answers.predictions or {name: [] for name in names}
        rows = list(zip(*(columns[name] for name in names), strict=True))
        write_text_safely(others.predictions_out, csv_text(names, rows))
        say(f"Wrote {len(rows):,} predictions to {others.predictions_out}.")
    if others.items_out is not None and labels is not None:
        hidden = () if with_text else labels.text_columns
        names = [name for name in labels.item_columns if name not in hidden]
        # What others wrote of an item must not run in a spreadsheet; names stay as they are, to be joined by.
        values = [labels.items.tolist(), *(map(safe_cell, labels.item_column(name).tolist()) for name in names)]
        write_text_safely(others.items_out, csv_text(["item", *names], list(zip(*values, strict=True))))
        left_out = _left_out(labels, labels.item_columns, with_text=with_text)
        say(f"Wrote {labels.n_items:,} items to {others.items_out}{left_out}.")


def _read(source: str, how: options.VoteOptions, *, of_one_class: bool) -> Labels:
    """The votes; a table that names one class only gets another without votes."""
    try:
        return read_votes(source, how)
    except InvalidLabels as error:
        only = getattr(error.__cause__, "only_class", None) or error.only_class
        if only is None or not of_one_class:
            raise
        other = str(only + 1) if isinstance(only, int) else f"not {only}"
        return read_votes(source, replace(how, class_names=[str(only), other]))


def _write_votes(labels: Labels, target: str, export: Export | None) -> None:
    from trueup.data.files import format_of, write_rows
    from trueup.data.reading import write_labels

    if export is None or format_of(target, None) == "parquet":
        write_labels(labels, target)
        say(f"Wrote {labels.n_votes:,} votes to {target}.")
        return
    names = ("item", "labeler", "label", "run")
    rows = [row for row in zip(*(export.votes[name] for name in names), strict=True) if row[2] is not None]
    write_rows(target, list(names), rows, file_format=None)
    n_abstentions = len(export.votes["item"]) - len(rows)
    left = f"; {n_abstentions:,} abstentions are not in it" if n_abstentions else ""
    say(f"Wrote {len(rows):,} votes to {target}{left}.")


def _left_out(labels: Labels, columns: Sequence[str], *, with_text: bool) -> str:
    """What of the items is not written, for the end of a sentence."""
    hidden = [name for name in labels.text_columns if name in columns]
    return f"; {', '.join(hidden)} left out, --with-text writes it" if hidden and not with_text else ""


_CLASSES = ("no", "yes")  # of the descriptions; the second is the positive one
_NEEDS = {"counts": "classes", "labels": "classes", "scores": "scores", "probabilities": "probabilities"}


@as_command
def metrics() -> Answer:
    """List the metrics, what they mean, and what of the predictions they need."""
    from trueup.metrics import get_metric, list_metrics

    better = {True: "higher", False: "lower", None: "neither"}
    records = [
        {
            "name": name,
            "description": metric.description,
            "needs": _NEEDS[metric.needs],
            "bounds": list(metric.bounds),
            "better": better[metric.higher_is_better],
        }
        for name, metric in ((name, get_metric(name, _CLASSES)) for name in list_metrics())
    ]

    def end(bound: float) -> str:
        return f"{bound:g}".replace("inf", "∞").replace("-", "−")

    def show(_: Any) -> None:
        columns: dict[Any, Any] = {"metric": "name", ("what it is", "left"): "description", ("needs", "left"): "needs"}
        columns |= {"from": lambda row: end(row["bounds"][0]), "to": lambda row: end(row["bounds"][1])}
        print_records({**columns, ("better", "left"): "better"}, records)
        say(
            "Also: METRIC:CLASS for one class (recall:yes), macro_, micro_ and weighted_ averages over classes, fN "
            "with any weight of recall (f2), and other numbers after an @ (precision@10)."
        )

    return Answer({"metrics": records}, show, is_bare=True)


@as_command
def formats() -> Answer:
    """List the tools whose exports are read, what becomes of them, and what can be written for them."""
    from trueup.adapters import ADAPTERS

    records = [
        {
            "name": name,
            "title": adapter.title,
            "becomes": adapter.becomes,
            "writes": adapter.writes or None,
            "basis": f"from {adapter.basis}",
        }
        for name, adapter in ((name, ADAPTERS[name]) for name in ADAPTERS)
    ]

    def show(_: Any) -> None:
        columns: dict[Any, Any] = {"format": "name", ("files", "left"): "title"}
        columns |= {("what becomes of them", "left"): "becomes", ("writes", "left"): lambda row: row["writes"] or ""}
        print_records({**columns, ("written from", "left"): "basis"}, records)
        say(
            "Files are recognised by their structure; --format names the tool where that does not tell. Plain tables "
            "(csv, tsv, jsonl, parquet) are read as they are, and written by 'trueup convert'."
        )

    return Answer({"formats": records}, show, is_bare=True)


@as_command
def mcp(
    root: str = opt(".", "The folder below which files may be read.", "FOLDER", show=True),
    write: bool = opt(False, "Let tools write new files below the root, too."),
) -> None:
    """Serve check, evaluate, compare, share, agreement, plan_checks and gate to an assistant (MCP over stdio)."""
    from trueup.integrations.mcp import serve

    serve(root, write=write)
