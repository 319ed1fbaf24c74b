"""From files to labels and predictions, and from names typed on a command line to those in the files."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from trueup.cli._console import speaking
from trueup.cli._options import PredictionOptions, VoteOptions
from trueup.exceptions import InvalidFile, InvalidLabels, InvalidParameter, InvalidPredictions

if TYPE_CHECKING:
    from collections.abc import Hashable

    from trueup.data.labels import Labels
    from trueup.data.predictions import Predictions


__all__ = [
    "STANDARD_INPUT",
    "about_files",
    "check_one_stdin",
    "check_overlap",
    "class_named",
    "item_named",
    "key_and_value",
    "one_system",
    "read_systems",
    "read_votes",
    "unbundled",
]

STANDARD_INPUT = "-"
_SYSTEM = "system"  # the column that is found by itself


def check_one_stdin(*paths: str | None) -> None:
    """Standard input can be read once."""
    if sum(path == STANDARD_INPUT for path in paths) > 1:
        raise InvalidFile("standard input (-) can be one of the files, got it twice; write the other to a file")


def read_votes(path: str, how: VoteOptions) -> Labels:
    """The votes, with the gold if there is some.

    Parameters
    ----------
    path : str
        The file; "-" is standard input.
    how : VoteOptions
    """
    from trueup.data.reading import read_gold, read_labels

    check_one_stdin(path, how.gold)

    def read(classes: Sequence[Hashable] | None) -> Labels:
        return read_labels(
            path,
            item=how.item,
            labeler=how.labeler,
            label=how.label,
            classes=classes,
            missing=[_blank_as_none(value) for value in how.no_vote],
            abstain=[_blank_as_none(value) for value in how.abstain],
            duplicates=how.duplicates,  # type: ignore[arg-type]  # checked by the callee, with a sentence
            file_format=_format_of(path, how.file_format),
        )

    with speaking(missing="--no-vote"):
        labels = _read_with_classes(read, how.class_names, again=path != STANDARD_INPUT)
    if how.gold is None:
        return labels
    with speaking(missing="--no-vote", label="--gold-column"):
        truths = read_gold(
            how.gold,
            item=how.item,
            label=how.gold_column or how.label,
            missing=[None, *how.no_vote],
            labels=labels,
            file_format=_format_of(how.gold, how.file_format),
        )
        return labels.with_gold(truths)


def _read_with_classes(read: Callable[[Sequence[Hashable] | None], Labels], names: list[str], *, again: bool) -> Labels:
    """Read votes with classes that were typed: numbers if all are, as in a file, and text if the file has them so."""
    if not names:
        return read(None)
    if not all(name.isascii() and name.removeprefix("-").isdigit() and str(int(name)) == name for name in names):
        return read(names)
    try:
        return read([int(name) for name in names])
    except InvalidLabels:
        if not again:
            raise
        try:
            return read(names)
        except InvalidLabels:
            pass
        raise


def check_overlap(predictions: Predictions, labels: Labels) -> None:
    """Stop where a system has no item of the votes: no policy can mend that."""
    from trueup._base.validation import preview

    for system in predictions.parts:
        if system.items is None or (labels.find_items(system.items) >= 0).any():
            continue
        who = "" if predictions.n_systems == 1 else f" of system {str(system.name)!r}"
        raise InvalidPredictions(
            f"no item of the predictions{who} has votes, got the items {preview(system.items)} where the votes have "
            f"{preview(labels.items)}; name the items alike in both files"
        )


def read_systems(
    paths: str | Sequence[str], labels: Labels, how: PredictionOptions, *, item: str, file_format: str | None = None
) -> Predictions:
    """The predictions of one file, or of several files with a system each, named by the files.

    Parameters
    ----------
    paths : str or sequence of str
    labels : Labels
        The votes they belong to; text in the files is read as the names these have.
    how : PredictionOptions
    item : str
        The column of the items (`VoteOptions.item`).
    file_format : str, optional
        Of standard input.
    """
    from trueup.data.predictions import Predictions

    files = [paths] if isinstance(paths, str) else list(paths)
    check_one_stdin(*files)
    if len(files) == 1:
        return _read_file(files[0], labels, how, item, file_format)
    found: dict[Hashable, Predictions] = {}
    for path in files:
        one = _read_file(path, labels, how, item, file_format)
        stem = "standard input" if path == STANDARD_INPUT else Path(path).name.split(".")[0]
        many = one.n_systems > 1
        for name in one.systems.tolist():
            key = f"{stem}: {name}" if many else stem
            if key in found:
                raise InvalidPredictions(
                    f"each system needs a name of its own, got {key!r} twice; rename the file {path!r}, or put all "
                    "systems in one file with a column 'system'"
                )
            found[key] = one[name]
    return Predictions.stack(found)


def one_system(predictions: Predictions, wanted: str | None) -> Predictions:
    """The system of this name, or all if none is named."""
    if wanted is None:
        return predictions
    return predictions[_named(wanted, predictions.systems.tolist(), "system", "systems")]


def _read_file(path: str, labels: Labels, how: PredictionOptions, item: str, file_format: str | None) -> Predictions:
    from trueup.data.reading import read_predictions

    known = _format_of(path, file_format)
    probabilities = dict(key_and_value(text, option="--probability") for text in how.probability)
    try:
        return read_predictions(
            path,
            item=item,
            prediction=how.prediction,
            score=how.score,
            probabilities={class_named(labels, name): column for name, column in probabilities.items()},
            system=how.system or (_SYSTEM if _has_column(path, _SYSTEM, known) else None),
            positive=None if how.positive is None else class_named(labels, how.positive),
            threshold=how.threshold,
            labels=labels,
            file_format=known,
        )
    except InvalidFile as error:
        # The reader of tables does not know what a row of this file is.
        raise InvalidFile(str(error).replace("a row for each vote", "a row for each item")) from error


def _has_column(path: str, column: str, file_format: Any) -> bool:
    """Whether a file has a column; standard input cannot be looked into and read again."""
    from trueup.data.files import open_table

    if path == STANDARD_INPUT:
        return False
    with open_table(path, file_format=file_format) as table:
        return column in table.columns


def _format_of(path: str, file_format: str | None) -> Any:
    """The format of standard input as given; that of a file is told by its suffix."""
    return file_format if path == STANDARD_INPUT else None


def _blank_as_none(value: str) -> str | None:
    return value or None


def key_and_value(text: str, *, option: str) -> tuple[str, str]:
    """The two sides of ``KEY=VALUE``, split at the last equals sign.

    Examples
    --------
    >>> key_and_value("accuracy=0.9", option="--fail-below")
    ('accuracy', '0.9')
    """
    key, equals, value = text.rpartition("=")
    if not (key and equals and value):
        raise InvalidParameter(f"{option} takes NAME=VALUE, got {text!r}; write e.g. {option} name=value")
    return key, value


def class_named(labels: Labels, text: str) -> Hashable:
    """The class that a text on the command line means: ``1`` is the number if the labels are numbers."""
    return _named(text, labels.classes.tolist(), "class", "classes")


def item_named(labels: Labels, text: str) -> Hashable:
    """The item that a text on the command line means."""
    return _named(text, labels.items.tolist(), "item", "items")


def _named(text: str, names: list[Any], what: str, plural: str) -> Hashable:
    from trueup._base.validation import did_you_mean, preview

    for name in names:
        if str(name) == text:
            return name  # type: ignore[no-any-return]
    raise InvalidParameter(
        f"there is no {what} {text!r}, got the {plural} {preview(names, most=10)}{did_you_mean(text, names[:1000])}"
    )


def about_files(**paths: str | Sequence[str] | None) -> dict[str, Any]:
    """Name and SHA-256 of each file read, for reproduction: ``{"votes": {"file": …, "sha256": …}}``."""
    import hashlib

    def one(path: str) -> dict[str, str | None]:
        if path == STANDARD_INPUT:
            return {"file": "standard input", "sha256": None}
        with Path(path).open("rb") as stream:
            return {"file": path, "sha256": hashlib.file_digest(stream, "sha256").hexdigest()}

    return {
        role: one(given) if isinstance(given, str) else [one(path) for path in given]
        for role, given in paths.items()
        if given is not None
    }


def unbundled(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters of a dataclass type are replaced by the fields of that dataclass.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int = 3
    ...     height: int = 4
    >>> def area(name: str, size: Size) -> None:
    ...     assert (name, size) == ("a", Size(3, 5))
    >>> list(inspect.signature(unbundled(area)).parameters)
    ['name', 'width', 'height']
    >>> unbundled(area)(name="a", width=3, height=5)
    """
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    bundles: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        hint = hints[name]
        if isinstance(hint, type) and is_dataclass(hint):
            bundles[name] = hint
            inner = get_type_hints(hint, include_extras=True)
            parameters += [_parameter(field, inner[field.name]) for field in fields(hint)]
        else:
            parameters.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))

    options = options_by_parameter(parameters)

    @functools.wraps(function)
    def call(**given: Any) -> None:
        for name, bundle in bundles.items():
            given[name] = bundle(**{field.name: given.pop(field.name) for field in fields(bundle)})
        with speaking(**options):
            function(**given)

    # typer reads the signature or the annotations, by its version; it must not look at the function inside.
    del call.__wrapped__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


# Parameters of the library whose options are named otherwise here: by the parameter of the command.
_NAMED_HERE = {
    "classes": "class_names",
    "designs": "design",
    "metrics": "metric",
    "n_classes": "classes",
    "n_draws": "draws",
    "n_warmup": "warmup",
    "random_state": "seed",
}


def options_by_parameter(parameters: Sequence[inspect.Parameter]) -> dict[str, str]:
    """The option of each parameter of a command, and of the library's parameters behind them."""
    options = {}
    for parameter in parameters:
        for about in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(about, typer.models.OptionInfo):
                # typer keeps the first name of an annotated option where its default would be.
                names = (about.default, *(about.param_decls or ()))
                written = [name for name in names if isinstance(name, str) and name.startswith("-")]
                longest = max(written, key=len, default=f"--{parameter.name.replace('_', '-')}")
                options[parameter.name] = longest.split("/")[0]
            elif isinstance(about, typer.models.ArgumentInfo):
                options[parameter.name] = str(about.metavar or parameter.name.upper())
    return options | {there: options[here] for there, here in _NAMED_HERE.items() if here in options}


def _parameter(field: Field[Any], annotation: Any) -> inspect.Parameter:
    default = field.default
    if default is MISSING:
        default = inspect.Parameter.empty if field.default_factory is MISSING else field.default_factory()
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
