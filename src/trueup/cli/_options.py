"""Options and arguments: how a command declares them, and those that several commands share.

A parameter of a command is an option if its default is `opt(…)` or its type is `Annotated[…, Option(…)]`; a parameter
of a dataclass type stands for the fields of that dataclass, shown together under the first line of its docstring. What
can be chosen is listed from the registries when a help is shown and not before: they take long to load.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from trueup.exceptions import InvalidParameter

# What can be chosen -------------------------------------------------------------------------------------------------


def _load(module: str, name: str) -> Any:
    return getattr(import_module(f"trueup.{module}"), name)


def _plain_methods(methods: Any) -> list[str]:
    """Those that need nothing but votes and predictions."""
    return [name for name in methods.names() if methods[name].needs is None]


# By the word that stands for the list in a help text.
lists: dict[str, Callable[[], list[str]]] = {
    "NOISE_MODELS": lambda: [*_load("noise", "list_models")(), "auto"],
    "METHODS": lambda: _plain_methods(_load("estimators", "METHODS")),
    "METRICS": lambda: _load("metrics", "list_metrics")(),
    "STRATEGIES": lambda: _load("active.strategies", "STRATEGIES").names(),
    "ESTIMATORS": lambda: list(_load("active.estimators", "ESTIMATORS")),
    "FORMATS": lambda: _load("adapters", "list_formats")(),
    "VIEWS": lambda: ["bayes", *_load("estimators", "VIEWS")],
    "WRITABLE": lambda: _load("adapters", "writable_formats")(),
}
_LIST_IN_HELP = re.compile(rf"\b({'|'.join(lists)})\b")


class Command(TyperCommand):
    """A command whose help lists what can be chosen, read from the registries when the help is shown."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        for parameter in self.params:
            if text := getattr(parameter, "help", None):
                listed = _LIST_IN_HELP.sub(lambda match: ", ".join(lists[match[0]]()), text)
                parameter.help = listed  # type: ignore[attr-defined]  # of options and arguments alike
        super().format_help(ctx, formatter)


# How options are declared -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """An option of a command, or an argument; `for_typer` makes typer's of it."""

    help: str
    metavar: str | None = None
    flags: tuple[str, ...] = ()  # further ones, or in place of the parameter's name
    chosen: str | None = None  # the name of the list of `lists` that completes it
    show: str | bool | None = None  # the default in the help; by default hidden where there is a metavar
    reads: bool = False  # the path of a file to read, which is looked for before anything is loaded
    writes: bool | tuple[str, ...] = False  # the path of a file to write, and the suffixes that it may have
    is_argument: bool = False
    settings: tuple[tuple[str, Any], ...] = ()  # further ones of typer

    def names(self, parameter: str) -> tuple[str, ...]:
        """The flags, the longest first; of an argument what the help calls it."""
        if self.is_argument:
            return (self.metavar or parameter.upper(),)
        long = any(flag.startswith("--") for flag in self.flags)
        flags = self.flags if long else (f"--{parameter.replace('_', '-')}", *self.flags)
        return tuple(sorted(flags, key=len, reverse=True))

    def for_typer(self, parameter: str, panel: str | None) -> Any:
        """As typer takes it."""
        show = self.metavar is None if self.show is None else self.show
        given: dict[str, Any] = {
            "help": self.help,
            "metavar": self.metavar,
            "show_default": show,
            **dict(self.settings),
        }
        if self.chosen is not None:
            given["autocompletion"] = lists[self.chosen]
        if self.is_argument:
            return typer.Argument(**given)
        return typer.Option(*self.names(parameter), rich_help_panel=panel, **given)


def opt(default: Any, text: str, metavar: str | None = None, *flags: str, **more: Any) -> Any:
    """An option as the default of a parameter or field; ``...`` where it must be given. See `Option`."""
    about = {name: more.pop(name) for name in ("chosen", "show", "reads", "writes", "is_argument") if name in more}
    option = Option(text, metavar, flags, settings=tuple(more.items()), **about)
    if default is ...:
        return field(metadata={"option": option})
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata={"option": option})
    return field(default=default, metadata={"option": option})


def arg(default: Any, metavar: str, text: str, **more: Any) -> Any:
    """An argument as the default of a parameter; ``...`` where it must be given."""
    return opt(default, text, metavar, is_argument=True, **more)


# Shared arguments and options ---------------------------------------------------------------------------------------

_FORMS = "csv, csv.gz, tsv, jsonl, jsonl.gz, parquet, or an export, see 'trueup formats'; - is standard input"


def _file(metavar: str, text: str, **more: Any) -> Option:
    return Option(text, metavar, reads=True, is_argument=True, **more)


VotesFile = Annotated[str, _file("VOTES", f"The votes, a row each: item, labeler, label ({_FORMS}).")]
PredictionsFile = Annotated[str, _file("PREDICTIONS", f"The predictions, a row an item: item, prediction ({_FORMS}).")]
OptionalPredictionsFile = Annotated[
    str | None, _file("PREDICTIONS", f"The predictions: item, prediction ({_FORMS}).", show=False)
]
ManyPredictionFiles = Annotated[
    list[str], _file("PREDICTIONS", f"A file with several systems (see --system), or a file for each ({_FORMS}).")
]
PairsFile = Annotated[
    str,
    _file(
        "PAIRS",
        "The verdicts, a row each: item, judge, first, second, winner (a system, first or A, second or B, tie).",
    ),
]

Noise = Annotated[
    str | None,
    Option("How labelers err, by this model alone; one of NOISE_MODELS.", chosen="NOISE_MODELS", show="none"),
]
Target = Annotated[
    str | None, Option("sample: these very items (the default where possible); population: where they came from.")
]
OnlySystem = Annotated[str | None, Option("Of several systems in the file, this one.", "NAME")]
Level = Annotated[float, Option("Probability of the intervals that are shown.")]
Seed = Annotated[int, Option("Seed of all chance: the same seed gives the same numbers.", settings=(("min", 0),))]
Report = Annotated[
    str | None, Option("Also write a report: .html, .md or .json.", "PATH", writes=(".html", ".md", ".json"))
]
Plot = Annotated[str | None, Option("Also draw it: .png, .svg or .pdf.", "PATH", writes=(".png", ".svg", ".pdf"))]
WithText = Annotated[
    bool, Option("Let texts about the items (columns of --items) into what is written; else only names.")
]
Force = Annotated[bool, Option("Replace files that are there.")]
Metric = Annotated[str, Option("The metric to judge by; see 'trueup metrics'.", flags=("-m",), chosen="METRICS")]
Metrics = Annotated[
    list[str], Option("A metric; may be given several times. See 'trueup metrics'.", flags=("-m",), chosen="METRICS")
]
FailIfDependent = Annotated[bool, Option("Exit with 1 if labelers surely err together.")]
By = Annotated[str | None, Option("A column of the items: an answer for each of its values.", "COLUMN")]
Cluster = Annotated[str | None, Option("A column of the items: those with the same value came together.", "COLUMN")]
Weights = Annotated[str | None, Option("A column of the items: what each counts for.", "COLUMN")]


@dataclass(frozen=True)
class AnswerOptions:
    """What is asked for."""

    target: Target = None
    noise: Noise = None
    level: Level = 0.95
    by: By = None
    cluster: Cluster = None
    weights: Weights = None


_FORMAT = (
    "The tool that exported the votes, see 'trueup formats', where the file does not tell; or the format of what has "
    "no suffix, such as standard input: csv (the default), tsv or jsonl."
)
_LIBRARY = "the library's"


def _column(default: str, text: str) -> Any:
    return opt(default, text, "COLUMN", show=True)


@dataclass(frozen=True)
class VoteOptions:
    """How to read the votes."""

    item: str = _column("item", "Column of the items; several with commas: prompt,system.")
    labeler: str = _column("labeler", "Column of the labelers.")
    label: str = _column("label", "Column of the labels.")
    run: str | None = opt(None, "Column that numbers several verdicts of a labeler on an item.", "COLUMN")
    wide: bool | None = opt(
        None, "A row an item and a column a labeler.", None, "--wide/--no-wide", show="as the table looks"
    )
    no_vote: list[str] = opt([], "A label that means no vote, e.g. NA; '' is an empty cell. Repeatable.", "VALUE")
    abstain: list[str] = opt([], "A label that means: looked and did not decide. Repeatable.", "VALUE")
    abstain_policy: str = opt("ignore", "Leave abstentions out, or keep each as an answer: ignore or answer.")
    class_names: list[str] = opt([], "A class; once for each, where some have no vote.", "NAME", "--class")
    duplicates: str = opt("keep", "Several votes of a labeler on an item: keep, first, last or error.")
    gold: str | None = opt(None, "Checked classes, a row each; columns as of the votes.", "FILE", reads=True)
    gold_column: str | None = opt(None, "Column of the classes in the gold file; by default as --label.", "COLUMN")
    gold_drawn: str | None = opt(
        None, "How the items of --gold were drawn: random or chosen.", "HOW", show="what the file says, else chosen"
    )
    items: str | None = opt(None, "Columns of the items, a row each: one as --item, and others.", "FILE", reads=True)
    file_format: str | None = opt(None, _FORMAT, "FORMAT", "--format", chosen="FORMATS")
    question: str | None = opt(None, "Of an export that asks several questions, this one.", "NAME")
    keep_names: bool = opt(False, "Keep mails and names of people in an export; else they become annotator-1 etc.")
    exclude_prelabeled: bool = opt(False, "Leave out answers in an export that began with what a model had filled in.")


@dataclass(frozen=True)
class CheckedVoteOptions(VoteOptions):
    """How to read the votes."""

    gold: list[str] = opt(  # type: ignore[assignment]
        [], "Checked classes, a row each; or a table of --ask, filled in. Repeatable.", "FILE", reads=True
    )


@dataclass(frozen=True)
class PairOptions:
    """How to read the verdicts."""

    item: str = _column("item", "Column of the items, such as prompt.")
    judge: str = _column("judge", "Column of the judges, if any.")
    first: str = _column("first", "Column of the systems that were shown first.")
    second: str = _column("second", "Column of the systems that were shown second.")
    winner: str = _column("winner", "Column of the winners.")
    file_format: str = opt("auto", _FORMAT, "FORMAT", "--format", chosen="FORMATS")


@dataclass(frozen=True)
class PredictionOptions:
    """How to read the predictions."""

    prediction: str = _column("prediction", "Column of the predicted classes; several with commas: a system each.")
    score: str = _column("score", "Column of the scores, if any.")
    class_probability: list[str] = opt([], "The column with the probability of a class; once for each.", "CLASS=COLUMN")
    system: str | None = opt(None, "Column of the systems, if any; 'system' is found by itself.", "COLUMN")
    positive: str | None = opt(None, "The positive class of two, for scores; by default the second.", "CLASS")
    threshold: float = opt(0.5, "Scores from here on mean the positive class, where only scores are given.")


@dataclass(frozen=True)
class FitOptions:
    """Where votes and predictions do not fit."""

    missing: str = opt("error", "Items with votes and without a prediction: error or ignore.")
    unknown: str = opt("error", "Predictions for items without votes: error or ignore.")
    unknown_class: str = opt("error", "Predictions of classes nobody voted for: error or ignore.")


@dataclass(frozen=True)
class SamplerOptions:
    """How long to compute."""

    draws: int | None = opt(None, "Draws of the posterior; fewer are rougher.", "N", min=1, max=10**7, show=_LIBRARY)
    warmup: int | None = opt(None, "First steps of each chain to discard.", "N", min=1, max=10**7, show=_LIBRARY)


def given(**values: Any) -> dict[str, Any]:
    """Those that are not None, so that the others have the defaults of the library."""
    return {name: value for name, value in values.items() if value is not None}


# Text that was typed ------------------------------------------------------------------------------------------------


def key_and_value(text: str, *, option: str) -> tuple[str, str]:
    """The two sides of ``KEY=VALUE``, split at the last equals sign."""
    key, _, value = text.rpartition("=")
    if not (key and value):
        raise InvalidParameter(f"{option} takes NAME=VALUE, got {text!r}; write e.g. {option} name=value")
    return key, value


def parse_pairs(texts: Iterable[str], *, option: str) -> dict[str, Any]:
    """Values from texts such as "n_items=500": numbers, lists, tuples, None, true and false; all else is text."""
    pairs: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InvalidParameter(f"{option} must be NAME=VALUE, got {text!r}; write e.g. {option} n_items=500")
        if name in pairs:
            raise InvalidParameter(f"{option} must name each parameter once, got {name!r} twice; leave one out")
        pairs[name] = _value(value.strip())
    return pairs


def _value(text: str) -> Any:
    words: dict[str, Any] = {"inf": float("inf"), "none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
