"""From files to labels and predictions, from typed names to those in the files, and from results to files."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from trueup._base.cells import csv_text, safe_cell
from trueup._base.writing import replace_file
from trueup.cli._console import note, option_names
from trueup.cli._options import PredictionOptions, VoteOptions, key_and_value
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions

if TYPE_CHECKING:
    from trueup.adapters import Export
    from trueup.data.aligned import System
    from trueup.data.labels import Labels
    from trueup.data.predictions import Predictions


STANDARD_INPUT = "-"
# What was read from pipes in this call; they can be read once.
pipes: ContextVar[dict[str, bytes] | None] = ContextVar("pipes", default=None)

# Pipes --------------------------------------------------------------------------------------------------------------


class _ReadPipe(io.BytesIO):
    """What came through a pipe, under the name that errors call it by."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


def is_pipe(path: str) -> bool:
    """Whether a path is standard input or another pipe, such as that of ``<(zcat votes.csv.gz)``."""
    if path == STANDARD_INPUT:
        return True
    file = Path(path)
    return file.exists() and not file.is_file() and not file.is_dir()


def source_of(path: str) -> str | io.BytesIO:
    """A path as the library reads it; a pipe is read once and kept, since a file is looked into more than once."""
    called = "standard input" if path == STANDARD_INPUT else repr(path)
    return _ReadPipe(_piped(path), called) if is_pipe(path) else path


def _piped(path: str) -> bytes:
    contents = pipes.get()
    if contents is None:
        contents = {}
    if path not in contents:
        if path == STANDARD_INPUT:
            stream = getattr(sys.stdin, "buffer", sys.stdin)
            content = stream.read()
            contents[path] = content.encode() if isinstance(content, str) else content
        else:
            contents[path] = Path(path).read_bytes()
    return contents[path]


def fingerprint(path: str) -> str:
    """The SHA-256 of a file, or of all files of a folder."""
    if is_pipe(path):
        return hashlib.sha256(_piped(path)).hexdigest()
    file = Path(path)
    if file.is_dir():  # some tools export folders
        digest = hashlib.sha256()
        for part in sorted(file.rglob("*")):
            if part.is_file():
                digest.update(f"{part.relative_to(file).as_posix()} {fingerprint(str(part))}\n".encode())
        return digest.hexdigest()
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def about_files(**paths: str | Sequence[str] | None) -> dict[str, Any]:
    """Name and SHA-256 of each file read, for reproduction: ``{"votes": {"file": …, "sha256": …}}``."""

    def about(path: str) -> dict[str, str]:
        return {"file": "standard input" if path == STANDARD_INPUT else path, "sha256": fingerprint(path)}

    return {
        role: about(named) if isinstance(named, str) else [about(path) for path in named]
        for role, named in paths.items()
        if named is not None
    }


# Votes and predictions ----------------------------------------------------------------------------------------------


def read_votes(path: str, how: VoteOptions) -> Labels:
    """The votes, with the gold and the columns of the items if there are some."""
    from trueup.adapters import read_gold, read_labels

    file_format = _format_of(path, how.file_format, is_votes=True)
    names = {"no_vote", "class_names", "abstain", "gold", "items", "file_format"}
    as_given = {name: value for name, value in asdict(how).items() if name not in names}

    sheets, golds = sheets_of(how).paths, cast(Any, how.gold)  # one file, or several of commands that take them
    gold = [golds] if isinstance(golds, str) else [name for name in golds or () if name not in sheets]

    def read(classes: Sequence[Hashable] | None) -> Labels:
        return read_labels(
            source_of(path),
            classes=classes,
            missing=[value or None for value in how.no_vote],
            abstain=[value or None for value in how.abstain],
            gold=source_of(gold[0]) if gold else None,
            items=None if how.items is None else source_of(how.items),
            file_format=file_format,
            **as_given,
        )

    with option_names(missing="--no-vote"):
        labels = _read_with_classes(read, how.class_names)
    for name in gold[1:]:
        drawn: Any = how.gold_drawn
        columns = {"item": how.item, "label": how.gold_column or how.label}
        labels = labels.with_gold(read_gold(source_of(name), drawn=drawn, labels=labels, **columns))
    for sentence in labels.reading_notes:
        note(sentence)
    return labels


class Sheets(NamedTuple):
    """Tables that --ask wrote, the columns that name an item, and that of its class."""

    paths: list[str]
    items: list[str]
    label: str


def sheets_of(how: VoteOptions) -> Sheets:
    """The tables among the files of checked items, of a command that takes several."""
    given: Any = how.gold
    paths = sheets_among(given) if isinstance(given, list) else []
    return Sheets(paths, [name.strip() for name in how.item.split(",")], how.gold_column or how.label)


def sheet_text(columns: Mapping[str, Sequence[Any]], labels: Labels, items: Any, *, with_text: bool) -> str:
    """Items as csv for a spreadsheet, with their columns if asked for."""
    places, named = labels.find_items(items), dict(columns)
    for name in labels.item_table.given if with_text else ():
        named.setdefault(name, labels.item_column(name)[places].tolist())
    return csv_text(list(named), [[safe_cell(cell) for cell in row] for row in zip(*named.values(), strict=True)])


def sheets_among(gold: Sequence[str]) -> list[str]:
    """Those of the files that --ask wrote."""
    from trueup.decisions.sheets import is_sheet

    return [path for path in gold if is_sheet(source_of(path))]


def read_both(
    votes: str,
    predictions: str | Sequence[str],
    how: VoteOptions,
    how_predicted: PredictionOptions,
    only_system: str | None = None,
) -> tuple[Labels, Predictions, Hashable | None]:
    """The votes, the predictions of one system or of all, and the positive class; each has an item with votes."""
    from trueup._base.validation import preview

    labels = without_predictions(read_votes(votes, how), votes, predictions, how_predicted)
    positive = None if how_predicted.positive is None else class_named(labels, how_predicted.positive)
    systems = one_system(read_systems(predictions, labels, how_predicted, how), only_system)
    for system in systems.parts:
        if system.items is None or n_predicted(system, labels):
            continue
        which = "" if systems.n_systems == 1 else f" of system {str(system.name)!r}"
        raise InvalidPredictions(  # no policy can mend that
            f"no item of the predictions{which} has votes, got the items {preview(system.items)} where the votes have "
            f"{preview(labels.items)}; name the items alike in both files"
        )
    return labels, systems, positive


def without_predictions(labels: Labels, votes: str, predictions: str | Sequence[str], how: PredictionOptions) -> Labels:
    """The votes of a wide table without the column of its predictions, where one file holds both."""
    files = [predictions] if isinstance(predictions, str) else predictions
    if votes not in files or how.prediction not in labels.labelers.tolist():
        return labels
    note(f"The column {how.prediction!r} has the predictions and is no labeler.")
    return labels.without_labeler(how.prediction)


def votes_export(path: str, how: VoteOptions) -> Export | None:
    """What else the file of the votes holds, if it is the export of a tool."""
    from trueup.adapters import export_format, read_export

    tool = export_format(source_of(path), item=how.item, file_format=_format_of(path, how.file_format, is_votes=True))
    if tool is None:
        return None
    return read_export(
        source_of(path),
        file_format=tool,
        question=how.question,
        keep_names=how.keep_names,
        exclude_prelabeled=how.exclude_prelabeled,
    )


def _read_with_classes(read: Callable[[Sequence[Hashable] | None], Labels], names: list[str]) -> Labels:
    """Read votes with classes that were typed: numbers if all are, as in a file, and text if the file has them so."""
    if not names:
        return read(None)
    if not all(name.isascii() and name.removeprefix("-").isdigit() and str(int(name)) == name for name in names):
        return read(names)
    try:
        return read([int(name) for name in names])
    except InvalidLabels:
        with suppress(InvalidLabels):
            return read(names)
        raise


def read_systems(
    paths: str | Sequence[str], labels: Labels, how: PredictionOptions, how_votes: VoteOptions
) -> Predictions:
    """The predictions of one file, or of several files with a system each, named by the files."""
    from trueup.data.predictions import Predictions

    files = [paths] if isinstance(paths, str) else list(paths)
    if len(files) == 1:
        return _read_file(files[0], labels, how, how_votes)
    systems: dict[Hashable, Predictions] = {}
    for path in files:
        of_file = _read_file(path, labels, how, how_votes)
        stem = "standard input" if path == STANDARD_INPUT else Path(path).name.split(".")[0]
        for name in of_file.systems.tolist():
            key = f"{stem}: {name}" if of_file.n_systems > 1 else stem
            if key in systems:
                raise InvalidPredictions(
                    f"each system needs a name of its own, got {key!r} twice; rename the file {path!r}, or put all "
                    "systems in one file with a column 'system'"
                )
            systems[key] = of_file[name]
    return Predictions.stack(systems)


def _read_file(path: str, labels: Labels, how: PredictionOptions, how_votes: VoteOptions) -> Predictions:
    from trueup.adapters import export_format, read_predictions

    known = _format_of(path, how_votes.file_format)
    tool = export_format(source_of(path), item=how_votes.item, file_format=known)
    probabilities = dict(key_and_value(text, option="--class-probability") for text in how.class_probability)
    return read_predictions(
        source_of(path),
        item=how_votes.item,
        prediction=how.prediction,
        score=how.score,
        probabilities={class_named(labels, name): column for name, column in probabilities.items()},
        system=how.system,
        positive=None if how.positive is None else class_named(labels, how.positive),
        threshold=how.threshold,
        labels=labels,
        file_format=known,
        question=None if tool is None else how_votes.question,
    )


def _format_of(path: str, file_format: str | None, *, is_votes: bool = False) -> str:
    """The format that was given for a pipe; of a file "auto", by its suffix or structure, unless the tool was named."""
    from trueup._base.validation import check_choice
    from trueup.adapters import ADAPTERS
    from trueup.data.files import FORMATS, table_suffix

    if file_format is not None and file_format not in FORMATS:
        if file_format not in ADAPTERS:
            check_choice(file_format, (*FORMATS, *ADAPTERS), name="file_format")
        if is_votes or is_pipe(path) or table_suffix(path) is None:
            return file_format
        return "auto"
    return (file_format or "csv") if is_pipe(path) else "auto"


def one_system(predictions: Predictions, name: str | None) -> Predictions:
    """The system of this name, or all if none is named."""
    if name is None:
        return predictions
    return predictions[_named(name, predictions.systems.tolist(), "system", "systems")]


def n_predicted(system: System, labels: Labels) -> int:
    """How many items of the votes a system has predicted."""
    return system.n if system.items is None else int((labels.find_items(system.items) >= 0).sum())


def predicted_classes(systems: Predictions, labels: Labels) -> list[Any]:
    """The class that the first system predicts for each item; None where it predicts none."""
    codes = systems.align(labels, missing="ignore").codes
    if codes is None:
        raise InvalidPredictions("predictions must name classes, got scores alone; add a column 'prediction'")
    classes = [*labels.classes.tolist(), None]  # the last serves the code of an item without a prediction
    return [classes[code] for code in codes[0].tolist()]


def by_name(names: Iterable[Any]) -> dict[str, Hashable]:
    """Names by how they are written, so that what is typed can be found."""
    return {str(name): name for name in names}


def class_named(labels: Labels, text: str) -> Hashable:
    """The class that a text on the command line means: ``1`` is the number if the labels are numbers."""
    return _named(text, labels.classes.tolist(), "class", "classes")


def _named(text: str, names: list[Any], what: str, plural: str) -> Hashable:
    from trueup._base.validation import did_you_mean, preview

    known = by_name(names)
    if text not in known:
        raise InvalidParameter(
            f"there is no {what} {text!r}, got the {plural} {preview(names, most=10)}{did_you_mean(text, names[:1000])}"
        )
    return known[text]


def check_writable_format(name: str) -> None:
    """Stop where --to names no tool that files are written for."""
    from trueup._base.validation import check_choice
    from trueup.adapters import writable_formats

    check_choice(name, writable_formats(), name="to")


# Results ------------------------------------------------------------------------------------------------------------


def save_plot(axes: Any, path: str) -> None:
    """Save the figure of these axes, in the format of the suffix, whole or not at all."""
    from trueup._base.optional import require

    figure = axes.get_figure()
    try:
        with replace_file(path) as stream:
            figure.savefig(stream, format=Path(path).suffix.lower().lstrip("."))
    finally:
        require("matplotlib.pyplot", purpose="a plot").close(figure)
