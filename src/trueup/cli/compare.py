"""trueup compare: which system is better, and how sure is that?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli._bundles import unbundled
from trueup.cli._options import (
    AsJson,
    FailIfDependent,
    Level,
    ManyPredictionFiles,
    Metric,
    Noise,
    PredictionOptions,
    Report,
    SamplerOptions,
    Seed,
    VoteOptions,
    VotesFile,
)

if TYPE_CHECKING:
    from trueup.comparison import Comparison

__all__ = ["compare"]

_FAIL = "Exit with 1 on a finding"
_MOST_IN_REPORT = 6  # systems that are evaluated for a report; each takes as long as `trueup evaluate`


@unbundled
def compare(
    votes: VotesFile,
    predictions: ManyPredictionFiles,
    votes_how: VoteOptions,
    predictions_how: PredictionOptions,
    sampler: SamplerOptions,
    metric: Metric = "accuracy",
    target: Annotated[
        str, typer.Option("--target", help="population: where the items came from; sample: these very items.")
    ] = "population",
    noise: Noise = "subtypes",
    level: Level = 0.95,
    items: Annotated[
        str | None,
        typer.Option(
            "--items",
            show_default=False,
            help="Judge all systems on the items that all have predicted (common, the default), or each on its own.",
        ),
    ] = None,
    unknown: Annotated[
        str, typer.Option("--unknown", help="Predictions for items that have no votes: error or ignore.")
    ] = "ignore",
    unknown_class: Annotated[
        str, typer.Option("--unknown-class", help="Predictions of classes nobody voted for: error or ignore.")
    ] = "error",
    as_json: AsJson = False,
    report: Report = None,
    seed: Seed = 0,
    fail_unless_better: Annotated[
        list[str],
        typer.Option(
            "--fail-unless-better",
            metavar="A:B",
            show_default=False,
            rich_help_panel=_FAIL,
            help="Unless system A is surely better than B: the interval of their difference leaves out zero.",
        ),
    ] = [],  # noqa: B006
    fail_if_worse: Annotated[
        list[str],
        typer.Option(
            "--fail-if-worse",
            metavar="A:B",
            show_default=False,
            rich_help_panel=_FAIL,
            help="If system A is surely worse than B.",
        ),
    ] = [],  # noqa: B006
    fail_if_dependent: FailIfDependent = False,
) -> None:
    """Which of several systems is better, and how sure is that?"""
    from trueup._compare import compare as judge_all
    from trueup.cli._command_line import command_line, options_said
    from trueup.cli._comparing import (
        about_pairs,
        findings_about,
        items_predicted,
        named_pairs,
        on_judged_items,
        show_comparison,
    )
    from trueup.cli._console import print_json, progress_bar
    from trueup.cli._exit import fail_on
    from trueup.cli._judging import dependence, warn_once
    from trueup.cli._reading import about_files, check_one_stdin, check_overlap, class_named, read_systems, read_votes
    from trueup.cli._reporting import check_report_path, json_head
    from trueup.cli._words import for_the_command_line

    check_report_path(report)
    sampler.check(noise=noise)
    check_one_stdin(votes, *predictions, votes_how.gold)
    labels = read_votes(votes, votes_how)
    systems = read_systems(predictions, labels, predictions_how, item=votes_how.item, file_format=votes_how.file_format)
    names = [str(name) for name in systems.systems.tolist()]
    better = named_pairs(fail_unless_better, names, option="--fail-unless-better")
    worse = named_pairs(fail_if_worse, names, option="--fail-if-worse")
    check_overlap(systems, labels)
    positive = None if predictions_how.positive is None else class_named(labels, predictions_how.positive)
    common: dict[str, Any] = {"noise": noise, "level": level, "positive": positive, "random_state": seed}
    with progress_bar(f"comparing {systems.n_systems} systems") as hear:
        found = judge_all(
            systems,
            labels,
            metric=metric,
            target=target,  # type: ignore[arg-type]  # checked by the callee, with a sentence
            items=items,  # type: ignore[arg-type]
            unknown=unknown,  # type: ignore[arg-type]
            unknown_class=unknown_class,  # type: ignore[arg-type]
            progress=hear,
            **common,
            **sampler.given,
        )
    found = replace(found, warnings=tuple(map(for_the_command_line, found.warnings)))
    findings = findings_about(found, better=better, worse=worse)
    if fail_if_dependent:
        check = dependence(labels)
        findings += [check.sentence] if check is not None and check.dependent else []
    predicted = items_predicted(systems, labels)
    head = json_head(seed=seed, files=about_files(votes=votes, predictions=predictions, gold=votes_how.gold))
    if report is not None:
        said = options_said(
            votes_how,
            predictions_how,
            sampler,
            metric=(metric, "accuracy"),
            target=(target, "population"),
            noise=(noise, "subtypes"),
            level=(level, 0.95),
            items=(items, None),
            unknown=(unknown, "ignore"),
            unknown_class=(unknown_class, "error"),
        )
        settings = {**head["files"], "command": command_line(), "items_predicted": predicted, **said}
        judged = systems if items == "own" else on_judged_items(systems, found)
        # Before anything is printed: the reader of a pipe may go away.
        _report(report, found, judged, labels, {**common, **sampler.given}, metric, settings)
    if as_json:
        body = {**found.to_dict(), "items_predicted": predicted, "pairs": about_pairs(found)}
        print_json({**head, **body, "findings": findings})
    else:
        show_comparison(found, predicted)
    warn_once([found.warnings])
    fail_on(findings)


def _report(
    path: str,
    found: Comparison,
    systems: Any,
    labels: Any,
    settings: dict[str, Any],
    metric: str,
    files: dict[str, Any],
) -> None:
    """The report shows each system by itself as well, so the best of them are evaluated, on the items compared on."""
    from trueup.cli._judging import evaluate_each
    from trueup.cli._reporting import write_report
    from trueup.predictions import Predictions

    best = {name: systems[name] for name in found.ranking[:_MOST_IN_REPORT]}
    each = evaluate_each(
        Predictions.stack(best),
        labels,
        metrics=list(dict.fromkeys([metric, "accuracy"])),
        missing="ignore",
        unknown="ignore",
        unknown_class="ignore",
        **settings,
    )
    write_report(path, each, labels, comparison=found, seed=settings["random_state"], settings=files)
