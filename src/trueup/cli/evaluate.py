"""trueup evaluate: how good is a system really?"""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli._bundles import unbundled
from trueup.cli._options import (
    AsJson,
    FailIfDependent,
    FitOptions,
    Level,
    Metrics,
    NoiseOrDefault,
    OnlySystem,
    PredictionOptions,
    PredictionsFile,
    Report,
    SamplerOptions,
    Seed,
    VoteOptions,
    VotesFile,
)

__all__ = ["evaluate"]

_FAIL = "Exit with 1 on a finding"


@unbundled
def evaluate(
    votes: VotesFile,
    predictions: PredictionsFile,
    votes_how: VoteOptions,
    predictions_how: PredictionOptions,
    fit: FitOptions,
    sampler: SamplerOptions,
    metric: Metrics = ["accuracy", "precision", "recall", "f1"],  # noqa: B006  typer shows it as the default
    method: Annotated[str, typer.Option("--method", help="bayes is calibrated; others are for comparison.")] = "bayes",
    target: Annotated[
        str, typer.Option("--target", help="sample: these very items; population: where they came from.")
    ] = "sample",
    noise: NoiseOrDefault = None,
    level: Level = 0.95,
    only_system: OnlySystem = None,
    as_json: AsJson = False,
    report: Report = None,
    seed: Seed = 0,
    fail_below: Annotated[
        list[str],
        typer.Option(
            "--fail-below",
            metavar="METRIC=VALUE",
            show_default=False,
            rich_help_panel=_FAIL,
            help="If the whole interval of the metric is below the value. May be given several times.",
        ),
    ] = [],  # noqa: B006
    fail_above: Annotated[
        list[str],
        typer.Option(
            "--fail-above",
            metavar="METRIC=VALUE",
            show_default=False,
            rich_help_panel=_FAIL,
            help="If the whole interval of the metric is above the value (log_loss and the like).",
        ),
    ] = [],  # noqa: B006
    fail_if_dependent: FailIfDependent = False,
) -> None:
    """How good is a system really? Every metric with an interval, from predictions and noisy votes alone."""
    from trueup.cli._console import print_json, say
    from trueup.cli._exit import fail_on
    from trueup.cli._judging import (
        about_independence,
        evaluate_each,
        limits,
        majority_values,
        show_evaluation,
        warn_once,
    )
    from trueup.cli._reading import about_files, check_one_stdin, class_named, one_system, read_systems, read_votes
    from trueup.cli._reporting import check_report_path, json_head, write_report

    bounds = limits(fail_below, fail_above)
    sampler.check(method=method, noise=noise)
    check_report_path(report)
    check_one_stdin(votes, predictions, votes_how.gold)
    labels = read_votes(votes, votes_how)
    systems = read_systems(predictions, labels, predictions_how, item=votes_how.item, file_format=votes_how.file_format)
    systems = one_system(systems, only_system)
    metrics = list(dict.fromkeys([*metric, *(bound.metric for bound in bounds)]))
    positive = None if predictions_how.positive is None else class_named(labels, predictions_how.positive)
    found = evaluate_each(
        systems,
        labels,
        noise=noise,
        metrics=metrics,
        method=method,
        target=target,
        level=level,
        positive=positive,
        random_state=seed,
        **fit.policies,
        **sampler.given,
    )
    findings = [
        sentence
        for name, evaluation in found.items()
        for bound in bounds
        if (
            sentence := bound.finding(
                evaluation[bound.metric], level, who="the system" if len(found) == 1 else f"system {name!r}"
            )
        )
        is not None
    ]
    checks = [e.independence for e in found.values()]
    findings += [c.sentence for c in checks[:1] if fail_if_dependent and c is not None and c.dependent]
    files = about_files(votes=votes, predictions=predictions, gold=votes_how.gold)
    head = json_head(seed=seed, files=files)
    results = [
        {"system": name, **evaluation.to_dict(), "independence": about_independence(evaluation.independence)}
        for name, evaluation in found.items()
    ]
    if as_json:
        body = results[0] if len(results) == 1 else {"systems": results}
        print_json({**head, **body, "findings": findings})
    else:
        for name, evaluation in found.items():
            show_evaluation(name if len(found) > 1 else None, evaluation, labels, majority_values(evaluation, labels))
            say()
    warn_once([evaluation.warnings for evaluation in found.values()])
    write_report(report, found, labels, seed=seed, settings={**head["files"], "command": "evaluate"})
    fail_on(findings)
