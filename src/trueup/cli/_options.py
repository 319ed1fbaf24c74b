"""The options and arguments that commands share: one name, one meaning and one help text everywhere.

A command takes them one by one (``seed: Seed = 0``) or in bundles (`VoteOptions`, …), which `_app.as_command` spreads
out for typer. What can be chosen is listed from the registries, when a help is shown and not before: they take long to
load.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from trueup.exceptions import InvalidParameter

_FORMS = "csv, csv.gz, tsv, jsonl, jsonl.gz, parquet, or an export, see 'trueup formats'; - is standard input"


# What can be chosen -------------------------------------------------------------------------------------------------


def _noise_models() -> list[str]:
    from trueup.noise import list_models

    return [*list_models(), "auto"]


def _methods() -> list[str]:
    from trueup.estimators import METHODS

    return [name for name in METHODS.names() if METHODS[name].needs is None]


def _metric_names() -> list[str]:
    from trueup.metrics import list_metrics

    return list_metrics()


def _strategies() -> list[str]:
    from trueup.active.strategies import STRATEGIES

    return STRATEGIES.names()


def _estimators() -> list[str]:
    from trueup.active.estimators import ESTIMATORS

    return list(ESTIMATORS)


def _views() -> list[str]:
    from trueup.estimators import VIEWS

    return ["bayes", *VIEWS]


def _formats() -> list[str]:
    from trueup.adapters import list_formats

    return list_formats()


def _writable() -> list[str]:
    from trueup.adapters import writable_formats

    return writable_formats()


# By the word that stands for the list in a help text.
lists: dict[str, Callable[[], list[str]]] = {
    "NOISE_MODELS": _noise_models,
    "METHODS": _methods,
    "METRICS": _metric_names,
    "STRATEGIES": _strategies,
    "ESTIMATORS": _estimators,
    "FORMATS": _formats,
    "VIEWS": _views,
    "WRITABLE": _writable,
}
_LIST_IN_HELP = re.compile(r"\b[A-Z]+(?:_[A-Z]+)?\b")


class Command(TyperCommand):
    """A command whose help lists what can be chosen, read from the registries when the help is shown."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        for parameter in self.params:
            text = getattr(parameter, "help", None)
            if text:
                parameter.help = _LIST_IN_HELP.sub(  # type: ignore[attr-defined]  # of options and arguments alike
                    lambda match: ", ".join(lists[match[0]]()) if match[0] in lists else match[0], text
                )
        super().format_help(ctx, formatter)


def option(flag: str, text: str, *more_flags: str, chosen_from: str | None = None, **settings: Any) -> Any:
    """An option with its help; `chosen_from` names the list of `lists` that completes it."""
    if chosen_from is not None:
        settings["autocompletion"] = lists[chosen_from]
    if "panel" in settings:
        settings["rich_help_panel"] = settings.pop("panel")
    if "metavar" in settings:
        settings.setdefault("show_default", False)
    return typer.Option(flag, *more_flags, help=text, **settings)


@dataclass(frozen=True)
class InputFile:
    """Marks a parameter as the path of a file to read, which `_app.as_command` looks for before anything is loaded."""


@dataclass(frozen=True)
class OutputFile:
    """Marks a parameter as the path of a file to write, which `_app.as_command` checks before anything is loaded."""


# Arguments ----------------------------------------------------------------------------------------------------------

VotesFile = Annotated[
    str, typer.Argument(metavar="VOTES", help=f"The votes, a row each: item, labeler, label ({_FORMS})."), InputFile()
]
PredictionsFile = Annotated[
    str,
    typer.Argument(metavar="PREDICTIONS", help=f"The predictions, a row an item: item, prediction ({_FORMS})."),
    InputFile(),
]
PairsFile = Annotated[
    str,
    typer.Argument(
        metavar="PAIRS",
        help="The verdicts, a row each: item, judge, first, second, winner (a system, first or A, second or B, tie).",
    ),
    InputFile(),
]
OptionalPredictionsFile = Annotated[
    str | None,
    typer.Argument(metavar="PREDICTIONS", show_default=False, help=f"The predictions: item, prediction ({_FORMS})."),
    InputFile(),
]
ManyPredictionFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="PREDICTIONS", help=f"A file with several systems (see --system), or a file for each ({_FORMS})."
    ),
    InputFile(),
]

# Single options -----------------------------------------------------------------------------------------------------

Noise = Annotated[
    str | None,
    option(
        "--noise",
        "How labelers err, by this model alone; one of NOISE_MODELS.",
        chosen_from="NOISE_MODELS",
        show_default="none: the plain answer",
    ),
]
Method = Annotated[
    str,
    option("--method", "bayes is calibrated; the others are for comparison. One of METHODS.", chosen_from="METHODS"),
]
Target = Annotated[
    str | None,
    option(
        "--target",
        "sample: these very items; population: where they came from.",
        show_default="sample, unless a method knows the population only",
    ),
]
OnlySystem = Annotated[str | None, option("--only-system", "Of several systems in the file, this one.", metavar="NAME")]
Level = Annotated[float, option("--level", "Probability of the intervals that are shown.")]
Seed = Annotated[int, option("--seed", "Seed of all chance: the same seed gives the same numbers.", min=0)]
AsJson = Annotated[bool, option("--json", "Print JSON for machines and nothing else on standard output.")]
Report = Annotated[
    str | None, option("--report", "Also write a report: .html, .md or .json.", metavar="PATH"), OutputFile()
]
WithText = Annotated[
    bool, option("--with-text", "Let texts about the items (columns of --items) into what is written; else only names.")
]
Metric = Annotated[
    str, option("--metric", "The metric to judge by; see 'trueup metrics'.", "-m", chosen_from="METRICS")
]
Metrics = Annotated[
    list[str],
    option("--metric", "A metric; may be given several times. See 'trueup metrics'.", "-m", chosen_from="METRICS"),
]
FailIfDependent = Annotated[bool, option("--fail-if-dependent", "Exit with 1 if labelers surely err together.")]
By = Annotated[str | None, option("--by", "A column of the items: an answer for each of its values.", metavar="COLUMN")]
Cluster = Annotated[
    str | None,
    option("--cluster", "A column of the items: those with the same value came together.", metavar="COLUMN"),
]
Weights = Annotated[str | None, option("--weights", "A column of the items: what each counts for.", metavar="COLUMN")]


# Bundles ------------------------------------------------------------------------------------------------------------

_votes, _predictions, _fit, _sampler = (
    functools.partial(option, panel=panel)
    for panel in (
        "How to read the votes",
        "How to read the predictions",
        "Where votes and predictions do not fit",
        "How long to compute",
    )
)
_votes_column = functools.partial(_votes, metavar="COLUMN", show_default=True)
_predictions_column = functools.partial(_predictions, metavar="COLUMN", show_default=True)
_pairs_column = functools.partial(option, panel="How to read the verdicts", metavar="COLUMN", show_default=True)
_RUN = "Column that tells several verdicts of a labeler on an item apart (epochs, temperatures)."
_WIDE = "A row an item and a column a labeler, named by it, in place of a row a vote."
_NO_VOTE = "A label that means no vote, e.g. NA; '' is an empty cell. May be given several times."
_ABSTAIN = "A label that means the labeler looked and did not decide. May be given several times."
_CLASS = "A class that could be chosen; once for each, where nobody voted for some of them."
_GOLD = "Vetted truths, a row each; its columns are named as those of the votes."
_GOLD_DRAWN = "How the items of the gold file were drawn from all items: random or chosen."
_ITEMS = "What is known of the items, a row each: a column as --item, and any others."
_FORMAT = (
    "The tool that exported the votes, see 'trueup formats', where the file does not tell; or the format of what has "
    "no suffix, such as standard input: csv (the default), tsv or jsonl."
)
_QUESTION = "Of an export that asks several questions, this one."
_KEEP_NAMES = "Keep mails, names and addresses of people in an export; else they are called annotator-1 and so on."
_PRELABELED = "Leave out answers in an export that began with what a model had filled in."
_SYSTEM = "Column of the systems' names, where a file holds several; 'system' is found by itself."


@dataclass(frozen=True)
class VoteOptions:
    """How the votes are read; see `_files.read_votes`."""

    item: Annotated[str, _votes_column("--item", "Column of the items; several with commas: prompt,system.")] = "item"
    labeler: Annotated[str, _votes_column("--labeler", "Column of the labelers.")] = "labeler"
    label: Annotated[str, _votes_column("--label", "Column of the labels.")] = "label"
    run: Annotated[str | None, _votes("--run", _RUN, metavar="COLUMN")] = None
    wide: Annotated[bool | None, _votes("--wide/--no-wide", _WIDE, show_default="as the table looks")] = None
    no_vote: Annotated[list[str], _votes("--no-vote", _NO_VOTE, metavar="VALUE")] = field(default_factory=list)
    abstain: Annotated[list[str], _votes("--abstain", _ABSTAIN, metavar="VALUE")] = field(default_factory=list)
    abstain_policy: Annotated[
        str, _votes("--abstain-policy", "Leave abstentions out, or keep each as an answer: ignore or answer.")
    ] = "ignore"
    class_names: Annotated[list[str], _votes("--class", _CLASS, metavar="NAME")] = field(default_factory=list)
    duplicates: Annotated[
        str, _votes("--duplicates", "Several votes of a labeler on an item: keep, first, last or error.")
    ] = "keep"
    gold: Annotated[str | None, _votes("--gold", _GOLD, metavar="FILE"), InputFile()] = None
    gold_column: Annotated[
        str | None,
        _votes("--gold-column", "Column of the truths in the gold file; by default as --label.", metavar="COLUMN"),
    ] = None
    gold_drawn: Annotated[
        str | None,
        _votes("--gold-drawn", _GOLD_DRAWN, metavar="HOW", show_default="what the file says, else chosen"),
    ] = None
    items: Annotated[str | None, _votes("--items", _ITEMS, metavar="FILE"), InputFile()] = None
    file_format: Annotated[str | None, _votes("--format", _FORMAT, metavar="FORMAT", chosen_from="FORMATS")] = None
    question: Annotated[str | None, _votes("--question", _QUESTION, metavar="NAME")] = None
    keep_names: Annotated[bool, _votes("--keep-names", _KEEP_NAMES)] = False
    exclude_prelabeled: Annotated[bool, _votes("--exclude-prelabeled", _PRELABELED)] = False


@dataclass(frozen=True)
class PairOptions:
    """How verdicts on pairs are read, also those of a gold file; the columns of `trueup.read_pairs`."""

    item: Annotated[str, _pairs_column("--item", "Column of the items, such as prompt.")] = "item"
    judge: Annotated[str, _pairs_column("--judge", "Column of the judges, if any.")] = "judge"
    first: Annotated[str, _pairs_column("--first", "Column of the systems that were shown first.")] = "first"
    second: Annotated[str, _pairs_column("--second", "Column of the systems that were shown second.")] = "second"
    winner: Annotated[str, _pairs_column("--winner", "Column of the winners.")] = "winner"
    file_format: Annotated[
        str, option("--format", _FORMAT, panel="How to read the verdicts", metavar="FORMAT", chosen_from="FORMATS")
    ] = "auto"


@dataclass(frozen=True)
class PredictionOptions:
    """How the predictions are read; see `_files.read_systems`."""

    prediction: Annotated[str, _predictions_column("--prediction", "Column of the predicted classes.")] = "prediction"
    score: Annotated[str, _predictions_column("--score", "Column of the scores, if any.")] = "score"
    class_probability: Annotated[
        list[str],
        _predictions(
            "--class-probability", "The column with the probability of a class; once for each.", metavar="CLASS=COLUMN"
        ),
    ] = field(default_factory=list)
    system: Annotated[str | None, _predictions("--system", _SYSTEM, metavar="COLUMN")] = None
    positive: Annotated[
        str | None,
        _predictions(
            "--positive", "The positive class of two, for which scores speak; by default the second.", metavar="CLASS"
        ),
    ] = None
    threshold: Annotated[
        float, _predictions("--threshold", "Scores from here on mean the positive class, where only scores are given.")
    ] = 0.5


@dataclass(frozen=True)
class FitOptions:
    """What to do where votes and predictions do not fit each other."""

    missing: Annotated[str, _fit("--missing", "Items with votes and without a prediction: error or ignore.")] = "error"
    unknown: Annotated[str, _fit("--unknown", "Predictions for items without votes: error or ignore.")] = "error"
    unknown_class: Annotated[
        str, _fit("--unknown-class", "Predictions of classes nobody voted for: error or ignore.")
    ] = "error"

    @property
    def policies(self) -> dict[str, Any]:
        """As the library takes them."""
        return {"missing": self.missing, "unknown": self.unknown, "unknown_class": self.unknown_class}


@dataclass(frozen=True)
class SamplerOptions:
    """How long the sampler runs; None leaves it to the library."""

    draws: Annotated[
        int | None,
        _sampler(
            "--draws",
            "Draws of the posterior; fewer are rougher.",
            metavar="N",
            min=1,
            max=10**7,
            show_default="the library's",
        ),
    ] = None
    warmup: Annotated[
        int | None,
        _sampler(
            "--warmup",
            "Steps of each chain that are thrown away first.",
            metavar="N",
            min=1,
            max=10**7,
            show_default="the library's",
        ),
    ] = None

    @property
    def named(self) -> dict[str, Any]:
        """What was given, as the library names it."""
        named = {"n_draws": self.draws, "n_warmup": self.warmup}
        return {name: value for name, value in named.items() if value is not None}


def options_said(*bundles: Any, **single: tuple[Any, Any]) -> dict[str, Any]:
    """The options that are not as by default, by name; files are left out, which are told with their hashes.

    Examples
    --------
    >>> options_said(SamplerOptions(draws=100), target=("sample", "sample"), level=(0.9, 0.95))
    {'draws': 100, 'level': 0.9}
    """
    said = {}
    for bundle in bundles:
        for one in fields(bundle):
            default = one.default_factory() if one.default_factory is not MISSING else one.default
            value = getattr(bundle, one.name)
            if value != default and one.name not in ("gold", "items"):
                said[one.name] = value
    return said | {name: value for name, (value, default) in single.items() if value != default}


# Text that was typed ------------------------------------------------------------------------------------------------


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


def parse_pairs(texts: Iterable[str], *, option: str) -> dict[str, Any]:
    """Values from texts such as "n_items=500": numbers, lists, tuples, None, true and false; all else is text.

    Examples
    --------
    >>> parse_pairs(["n=5", "accuracy=(0.6, 0.9)", "case=bad", "strength=inf"], option="--set")
    {'n': 5, 'accuracy': (0.6, 0.9), 'case': 'bad', 'strength': inf}
    """
    pairs: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InvalidParameter(f"{option} must be NAME=VALUE, got {text!r}; write e.g. {option} n_items=500")
        name = name.strip().replace("-", "_")
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
