"""trueup evaluate: how good is a system really?"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from trueup._base.wording import interval, level_words, number, percent
from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command, this_call
from trueup.cli._console import (
    as_json,
    interval_head,
    note,
    option_names,
    print_records,
    progress_bar,
    say,
    shown,
    with_cli_terms,
)
from trueup.cli._files import check_overlap, read_both
from trueup.cli._gates import GateOptions, Gates

if TYPE_CHECKING:
    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.data.labels import Labels
    from trueup.data.predictions import Predictions
    from trueup.noise import IndependenceCheck, NoiseModel


@as_command
def evaluate(
    votes: options.VotesFile,
    predictions: options.PredictionsFile,
    votes_how: options.VoteOptions,
    predictions_how: options.PredictionOptions,
    fit: options.FitOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    metric: options.Metrics = ["accuracy", "precision", "recall", "f1"],  # noqa: B006  typer shows it as the default
    method: str = options.opt(
        "bayes", "bayes is calibrated; the others are for comparison. One of METHODS.", chosen="METHODS"
    ),
    target: options.Target = None,
    noise: options.Noise = None,
    level: options.Level = 0.95,
    by: options.By = None,
    cluster: options.Cluster = None,
    weights: options.Weights = None,
    only_system: options.OnlySystem = None,
    report: options.Report = None,
    with_text: options.WithText = False,
    seed: options.Seed = 0,
    fail_if_dependent: options.FailIfDependent = False,
) -> Answer:
    """How good is a system really? Every metric with an interval, from predictions and noisy votes alone."""
    from trueup.report.measures import majority_values

    gate = Gates(gates)
    labels, systems, positive = read_both(votes, predictions, votes_how, predictions_how, only_system)
    _check_bounds(gate, labels, positive)
    evaluations = evaluate_each(
        systems,
        labels,
        noise=noise,
        metrics=list(dict.fromkeys([*metric, *gate.metrics])),
        method=method,
        target=target,
        level=level,
        positive=positive,
        by=by,
        cluster=cluster,
        weights=weights,
        random_state=seed,
        **vars(fit),
        **sampler.named,
    )
    reports = [verdict for evaluation in evaluations.values() if (verdict := gate.on(evaluation)) is not None]
    checks = {name: evaluation.independence for name, evaluation in evaluations.items()}
    if fail_if_dependent and all(check is None for check in checks.values()):
        checks = dict.fromkeys(checks, dependence(labels))  # methods that learn no noise do not look
    first = next(iter(checks.values()))
    # Before anything is printed: the reader of a pipe may go away.
    write_report(report, evaluations, labels, seed=seed, with_text=with_text)
    majority = {name: majority_values(evaluation, labels) for name, evaluation in evaluations.items()}

    def body() -> Mapping[str, Any]:
        results = [
            {
                "system": name,
                **evaluation.to_dict(),
                **({} if by is None else {"by": evaluation.by.to_dict()}),
                "majority_as_truth": majority[name],
                "independence": about_independence(checks[name], evaluation.model),
            }
            for name, evaluation in evaluations.items()
        ]
        return results[0] if len(results) == 1 else {"systems": results}

    def show(body: Mapping[str, Any]) -> None:
        for result in body.get("systems", [body]):
            show_evaluation(result, evaluations[result["system"]], labels, is_alone=len(evaluations) == 1)
            say()

    return Answer(
        body,
        show,
        findings=dependence_findings(first, wanted=fail_if_dependent),
        warnings=[sentence for evaluation in evaluations.values() for sentence in evaluation.warnings],
        verdicts=functools.reduce(lambda a, b: a.joined(b), reports) if reports else None,
    )


def _check_bounds(gate: Gates, labels: Labels, positive: Hashable | None) -> None:
    """Stop where there is no such metric, or where a metric cannot have its bound."""
    from trueup.answers.gates import check_bound
    from trueup.metrics import get_metric

    spelled = {"at_least": "--fail-below", "at_most": "--fail-above"}
    for side, by_metric in gate.bounds.items():
        for name, bound in by_metric.items():
            with option_names(metric=spelled[side], metrics=spelled[side], **spelled):
                check_bound(get_metric(name, labels.classes.tolist(), positive), bound, name=side)


def evaluate_each(predictions: Predictions, labels: Labels, **settings: Any) -> dict[str, Evaluation]:
    """Each system judged by itself; `settings` as `trueup.evaluate` has them."""
    from trueup.answers.evaluate import evaluate

    check_overlap(predictions, labels)
    evaluations = {}
    names = predictions.systems.tolist()
    for k, name in enumerate(names):
        what = "evaluating" if len(names) == 1 else f"evaluating {name} ({k + 1} of {len(names)})"
        with progress_bar(what) as progress:
            answer = evaluate(predictions[name], labels, progress=progress, **options.given(**settings))
        evaluations[str(name)] = with_cli_terms(answer)
    return evaluations


def dependence(labels: Labels) -> IndependenceCheck | None:
    """Whether labelers err together, where nothing that was computed has looked; None where nothing can be said."""
    from trueup.answers.notes import dependence_of

    return dependence_of(labels)


def dependence_findings(check: IndependenceCheck | None, *, wanted: bool) -> list[str]:
    """What ``--fail-if-dependent`` fails on."""
    return [check.sentence] if wanted and check is not None and check.dependent else []


def about_independence(check: IndependenceCheck | None, model: NoiseModel | None) -> dict[str, Any] | None:
    """The check of independence for JSON, and what it means for an answer that rests on a noise model."""
    if check is None:
        return None
    advice = "" if model is None else check.advice(model)
    return {**vars(check), "dependent": check.dependent, "advice": advice}


def write_report(
    path: str | None,
    evaluations: Mapping[str, Evaluation],
    labels: Labels,
    *,
    comparison: Comparison | None = None,
    title: str | None = None,
    seed: int,
    with_text: bool = False,
    **settings: Any,
) -> None:
    """Write the report, if one is wanted, and print where on standard error."""
    from trueup.report import build_report, save_report

    if path is not None:
        settings = {**this_call().settings, **settings}
        given: dict[str, Any] = {"comparison": comparison, "title": title, "seed": seed, "settings": settings}
        save_report(as_json(build_report(evaluations, labels=labels, with_text=with_text, **given)), path)
        note(f"report: {path}")


def show_evaluation(result: Mapping[str, Any], evaluation: Evaluation, labels: Labels, *, is_alone: bool) -> None:
    """What is known of a system, for people."""
    metrics, majority = result["metrics"], result["majority_as_truth"]
    first = next(iter(metrics))
    mean, low, high = (metrics[first][key] for key in ("mean", "low", "high"))
    who = "" if is_alone else f"{shown(result['system'])}: "
    where = "on these items" if evaluation.target == "sample" else "on items like these"
    if mean is None:
        say(f"{who}{_undefined(first, evaluation)}.")
    elif low is None:
        why = "checked items contradict it: no interval" if evaluation.refused else "this method gives no interval"
        say(f"{who}{first} is {number(mean)} {where}; {why}.")
    else:
        beside = (
            "" if majority[first] is None else f"; the majority of votes as truth would say {number(majority[first])}"
        )
        level = level_words(evaluation.level)
        say(f"{who}{first} is between {interval(low, high, joint=' and ')} {where} ({level} interval){beside}.")
    say(f"This rests on {evaluation.answer_in_words()}.")
    records = [{"metric": name, "majority": majority[name], **estimate} for name, estimate in metrics.items()]
    ends = interval_head(evaluation.level)
    columns = {"metric": "metric", "estimate": "mean", ends: "interval", "majority as truth": "majority"}
    print_records(columns, records)
    next_step = evaluation.next_step()
    if next_step is not None:
        say(f"{next_step}: trueup plan draw.")
    if evaluation.independence is not None and not evaluation.independence.dependent:
        say(evaluation.independence.in_short)
    for metric in metrics:
        if math.isnan(evaluation[metric].mean):
            if metric != first:
                say(f"{_undefined(metric, evaluation)}.")
        elif evaluation[metric].undefined > 0:
            say(
                f"{metric} is undefined on {percent(evaluation[metric].undefined, 1)} of the drawn truths, where it is "
                "a share of nothing; estimate and interval are of the others."
            )
    positive = f"; positive class {shown(result['positive'])}" if labels.n_classes == 2 else ""
    say(
        f"{evaluation.n_items:,} predictions, {labels.n_votes:,} votes of {labels.n_labelers:,} labelers; method "
        f"{evaluation.method}, noise {evaluation.noise}, target {evaluation.target}{positive}."
    )
    if "by" in result:
        _show_slices(result["by"], ends)


def _show_slices(slices: Mapping[str, Any], ends: str) -> None:
    """The metrics of each slice, and which are worse than the rest."""
    for metric, worse in slices["worse"].items():
        columns: dict[Any, Any] = {f"{metric} by {slices['column']}": "slice", "items": "n_items", "estimate": "mean"}
        columns |= {ends: "interval", "worse than the rest": "prob_worse"}
        if metric == "accuracy":  # how many items to check is known of the accuracy alone
            columns["to check for ±.05"] = lambda row: slices["vettings"][row["slice"]]
        print_records(columns, [row for row in slices["slices"] if row["metric"] == metric])
        if worse:
            say(f"Worse than the rest by {metric}: {', '.join(map(shown, worse))}.")


def _undefined(metric: str, evaluation: Evaluation) -> str:
    why = "it is a share of nothing"
    if metric == "precision" and len(evaluation.classes) == 2:
        why = f"no item is predicted as {shown(evaluation.classes[evaluation.positive])}"
    return f"{metric} is undefined on these items: {why}"
