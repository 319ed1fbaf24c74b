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
    Method,
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
_METRICS = ["accuracy", "precision", "recall", "f1"]


@unbundled
def evaluate(
    votes: VotesFile,
    predictions: PredictionsFile,
    votes_how: VoteOptions,
    predictions_how: PredictionOptions,
    fit: FitOptions,
    sampler: SamplerOptions,
    metric: Metrics = _METRICS,
    method: Method = "bayes",
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
    from trueup.cli._command_line import command_line, options_said
    from trueup.cli._console import print_json, say
    from trueup.cli._exit import fail_on
    from trueup.cli._judging import (
        about_independence,
        dependence,
        evaluate_each,
        limits,
        show_evaluation,
        warn_once,
    )
    from trueup.cli._reading import about_files, check_one_stdin, class_named, one_system, read_systems, read_votes
    from trueup.cli._reporting import check_report_path, json_head, write_report
    from trueup.report.majority import majority_values

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
    checks = {name: evaluation.independence for name, evaluation in found.items()}
    if fail_if_dependent and all(check is None for check in checks.values()):
        checks = dict.fromkeys(checks, dependence(labels))  # methods that learn no noise do not look
    findings += [c.sentence for c in list(checks.values())[:1] if fail_if_dependent and c is not None and c.dependent]
    head = json_head(seed=seed, files=about_files(votes=votes, predictions=predictions, gold=votes_how.gold))
    said = options_said(
        votes_how,
        predictions_how,
        fit,
        sampler,
        metric=(metric, _METRICS),
        method=(method, "bayes"),
        target=(target, "sample"),
        noise=(noise, None),
        level=(level, 0.95),
        only_system=(only_system, None),
    )
    # Before anything is printed: the reader of a pipe may go away.
    write_report(report, found, labels, seed=seed, settings={**head["files"], "command": command_line(), **said})
    dirty = {name: majority_values(evaluation, labels) for name, evaluation in found.items()}
    if as_json:
        results = [
            {
                "system": name,
                **evaluation.to_dict(),
                "majority_as_truth": dirty[name],
                "independence": about_independence(checks[name]),
            }
            for name, evaluation in found.items()
        ]
        body = results[0] if len(results) == 1 else {"systems": results}
        print_json({**head, **body, "findings": findings})
    else:
        for name, evaluation in found.items():
            show_evaluation(name if len(found) > 1 else None, evaluation, labels, dirty[name])
            say()
    warn_once([evaluation.warnings for evaluation in found.values()])
    fail_on(findings)
