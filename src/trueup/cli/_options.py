"""The options and arguments that commands share: one name, one meaning and one help text everywhere.

A command takes them one by one (``seed: Seed = 0``) or in bundles (`VoteOptions`, …), which `_bundles.unbundled`
spreads out for typer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from trueup.exceptions import InvalidParameter

__all__ = [
    "AsJson",
    "FailIfDependent",
    "FitOptions",
    "Level",
    "ManyPredictionFiles",
    "Method",
    "Metric",
    "Metrics",
    "Noise",
    "NoiseOrDefault",
    "OnlySystem",
    "OptionalPredictionsFile",
    "Positive",
    "PredictionOptions",
    "PredictionsFile",
    "Report",
    "SamplerOptions",
    "Seed",
    "VoteOptions",
    "VotesFile",
]

_VOTES = "How to read the votes"
_PREDICTIONS = "How to read the predictions"
_FIT = "Where votes and predictions do not fit"
_SAMPLER = "How long to compute"
_FORMS = "csv, csv.gz, tsv, jsonl, jsonl.gz or parquet; - is standard input"


_DRAWN = ("clusters", "subtypes", "dawid-skene", "one-coin")  # noise models whose parameters are drawn with the truth


def _noise_models() -> list[str]:
    return ["clusters", "subtypes", "dawid-skene", "one-coin", "glad", "difficulty", "soft-truth", "majority", "auto"]


def _methods() -> list[str]:
    from trueup.estimators import LABELER_METHODS, METHODS, VOTE_METHODS

    return [*METHODS, *LABELER_METHODS, *VOTE_METHODS]


def _metric_names() -> list[str]:
    from trueup.metrics import list_metrics

    return list_metrics()


# Arguments ----------------------------------------------------------------------------------------------------------

VotesFile = Annotated[
    str, typer.Argument(metavar="VOTES", help=f"The votes, a row each: item, labeler, label ({_FORMS}).")
]
PredictionsFile = Annotated[
    str, typer.Argument(metavar="PREDICTIONS", help=f"The predictions, a row an item: item, prediction ({_FORMS}).")
]
OptionalPredictionsFile = Annotated[
    str | None,
    typer.Argument(metavar="PREDICTIONS", show_default=False, help=f"The predictions: item, prediction ({_FORMS})."),
]
ManyPredictionFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="PREDICTIONS", help=f"A file with several systems (see --system), or a file for each ({_FORMS})."
    ),
]

# Single options -----------------------------------------------------------------------------------------------------

Noise = Annotated[
    str,
    typer.Option(
        "--noise", autocompletion=_noise_models, help="How labelers err; one of " + ", ".join(_noise_models()) + "."
    ),
]
NoiseOrDefault = Annotated[
    str | None,
    typer.Option(
        "--noise",
        autocompletion=_noise_models,
        show_default="clusters, or dawid-skene where a method needs it",
        help="How labelers err; one of " + ", ".join(_noise_models()) + ".",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        autocompletion=_methods,
        # In words, since the list itself would have to be imported for every --help; a test holds them together.
        help="bayes is calibrated; the others are for comparison: mmse, estimated-labels, no-predictions, "
        "prior-average, ideal, labeler-mean, labeler-median, majority, unbiased, dirty, noise-removal.",
    ),
]
OnlySystem = Annotated[
    str | None,
    typer.Option("--only-system", metavar="NAME", show_default=False, help="Of several systems in the file, this one."),
]
Level = Annotated[float, typer.Option("--level", help="Probability of the intervals that are shown.")]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive", metavar="CLASS", show_default=False, help="The positive class of two; by default the second."
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all chance: the same seed gives the same numbers.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines and nothing else on standard output.")]
Report = Annotated[
    str | None,
    typer.Option("--report", metavar="PATH", show_default=False, help="Also write a report: .html, .md or .json."),
]
Metric = Annotated[str, typer.Option("--metric", "-m", autocompletion=_metric_names, help="The metric to judge by.")]
Metrics = Annotated[
    list[str],
    typer.Option("--metric", "-m", autocompletion=_metric_names, help="A metric; may be given several times."),
]
FailIfDependent = Annotated[
    bool,
    typer.Option(
        "--fail-if-dependent", rich_help_panel="Exit with 1 on a finding", help="If labelers surely err together."
    ),
]


# Bundles ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VoteOptions:
    """How the votes are read; see `_reading.read_votes`."""

    item: Annotated[
        str, typer.Option("--item", metavar="COLUMN", help="Column of the items.", rich_help_panel=_VOTES)
    ] = "item"
    labeler: Annotated[
        str, typer.Option("--labeler", metavar="COLUMN", help="Column of the labelers.", rich_help_panel=_VOTES)
    ] = "labeler"
    label: Annotated[
        str, typer.Option("--label", metavar="COLUMN", help="Column of the labels.", rich_help_panel=_VOTES)
    ] = "label"
    no_vote: Annotated[
        list[str],
        typer.Option(
            "--no-vote",
            metavar="VALUE",
            show_default=False,
            rich_help_panel=_VOTES,
            help="A label that means no vote, e.g. NA; '' is an empty cell. May be given several times.",
        ),
    ] = field(default_factory=list)
    abstain: Annotated[
        list[str],
        typer.Option(
            "--abstain",
            metavar="VALUE",
            show_default=False,
            rich_help_panel=_VOTES,
            help="A label that means the labeler looked and did not decide. May be given several times.",
        ),
    ] = field(default_factory=list)
    class_names: Annotated[
        list[str],
        typer.Option(
            "--class",
            metavar="NAME",
            show_default=False,
            rich_help_panel=_VOTES,
            help="A class that could be chosen; once for each, where nobody voted for some of them.",
        ),
    ] = field(default_factory=list)
    duplicates: Annotated[
        str,
        typer.Option(
            "--duplicates",
            rich_help_panel=_VOTES,
            help="Several votes of a labeler on an item: keep, first, last or error.",
        ),
    ] = "keep"
    gold: Annotated[
        str | None,
        typer.Option(
            "--gold",
            metavar="FILE",
            show_default=False,
            rich_help_panel=_VOTES,
            help="Vetted truths, a row each; its columns are named as those of the votes.",
        ),
    ] = None
    gold_column: Annotated[
        str | None,
        typer.Option(
            "--gold-column",
            metavar="COLUMN",
            show_default=False,
            rich_help_panel=_VOTES,
            help="Column of the truths in the gold file; by default as --label.",
        ),
    ] = None
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            show_default=False,
            rich_help_panel=_VOTES,
            help="Format of standard input: csv (the default), tsv or jsonl.",
        ),
    ] = None


@dataclass(frozen=True)
class PredictionOptions:
    """How the predictions are read; see `_reading.read_systems`."""

    prediction: Annotated[
        str,
        typer.Option(
            "--prediction", metavar="COLUMN", help="Column of the predicted classes.", rich_help_panel=_PREDICTIONS
        ),
    ] = "prediction"
    score: Annotated[
        str,
        typer.Option("--score", metavar="COLUMN", help="Column of the scores, if any.", rich_help_panel=_PREDICTIONS),
    ] = "score"
    probability: Annotated[
        list[str],
        typer.Option(
            "--probability",
            metavar="CLASS=COLUMN",
            show_default=False,
            rich_help_panel=_PREDICTIONS,
            help="The column with the probability of a class; once for each class.",
        ),
    ] = field(default_factory=list)
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            metavar="COLUMN",
            show_default=False,
            rich_help_panel=_PREDICTIONS,
            help="Column of the systems' names, where a file holds several; 'system' is found by itself.",
        ),
    ] = None
    positive: Annotated[
        str | None,
        typer.Option(
            "--positive",
            metavar="CLASS",
            show_default=False,
            rich_help_panel=_PREDICTIONS,
            help="The positive class of two, for which scores speak; by default the second.",
        ),
    ] = None
    threshold: Annotated[
        float,
        typer.Option(
            "--threshold",
            rich_help_panel=_PREDICTIONS,
            help="Scores from here on mean the positive class, where only scores are given.",
        ),
    ] = 0.5


@dataclass(frozen=True)
class FitOptions:
    """What to do where votes and predictions do not fit each other."""

    missing: Annotated[
        str,
        typer.Option(
            "--missing", rich_help_panel=_FIT, help="Items with votes and without a prediction: error or ignore."
        ),
    ] = "error"
    unknown: Annotated[
        str,
        typer.Option("--unknown", rich_help_panel=_FIT, help="Predictions for items without votes: error or ignore."),
    ] = "error"
    unknown_class: Annotated[
        str,
        typer.Option(
            "--unknown-class", rich_help_panel=_FIT, help="Predictions of classes nobody voted for: error or ignore."
        ),
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
        typer.Option(
            "--draws",
            metavar="N",
            min=1,
            show_default="2000",
            rich_help_panel=_SAMPLER,
            help="Draws of the posterior; fewer are quicker and rougher.",
        ),
    ] = None
    warmup: Annotated[
        int | None,
        typer.Option(
            "--warmup",
            metavar="N",
            min=1,
            show_default="1000",
            rich_help_panel=_SAMPLER,
            help="Steps of each chain that are thrown away first.",
        ),
    ] = None

    @property
    def given(self) -> dict[str, Any]:
        """What was given, as the library names it."""
        named = {"n_draws": self.draws, "n_warmup": self.warmup}
        return {name: value for name, value in named.items() if value is not None}

    def check(self, *, noise: str | None, method: str = "bayes") -> None:
        """Only what is drawn can be drawn for longer; raise an error in the words of the command line."""
        from trueup._base.validation import check_choice

        if noise is not None:
            check_choice(noise.lower().replace("_", "-"), _noise_models(), name="--noise")
        drawn = noise is None or noise.lower().replace("_", "-") in _DRAWN
        if self.given and not (method == "bayes" and drawn):
            raise InvalidParameter(
                f"--draws and --warmup go with --method bayes and --noise {', '.join(_DRAWN)}, got --method {method} "
                f"and --noise {noise}; leave them out"
            )
