"""trueup evaluate: how good is a system really?"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trueup._base.wording import chance, interval, level_words, number, percent
from trueup.cli import _options as options
from trueup.cli._app import as_command, command_line
from trueup.cli._console import (
    json_head,
    option_names,
    print_json,
    print_table,
    progress_bar,
    say,
    shown,
    to_cli_terms,
    warn_once,
)
from trueup.cli._files import (
    about_files,
    check_overlap,
    check_report_path,
    class_named,
    one_system,
    read_systems,
    read_votes,
    write_report,
)
from trueup.cli._gates import GateOptions, about_gates, check_gates, end_by, gates_of, write_junit

if TYPE_CHECKING:
    from trueup.answers.evaluation import Evaluation
    from trueup.data.labels import Labels
    from trueup.data.predictions import Predictions
    from trueup.noise import IndependenceCheck, NoiseModel


_METRICS = ["accuracy", "precision", "recall", "f1"]


@as_command
def evaluate(
    votes: options.VotesFile,
    predictions: options.PredictionsFile,
    votes_how: options.VoteOptions,
    predictions_how: options.PredictionOptions,
    fit: options.FitOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    metric: options.Metrics = _METRICS,
    method: options.Method = "bayes",
    target: options.Target = None,
    noise: options.Noise = None,
    level: options.Level = 0.95,
    by: options.By = None,
    cluster: options.Cluster = None,
    weights: options.Weights = None,
    only_system: options.OnlySystem = None,
    as_json: options.AsJson = False,
    report: options.Report = None,
    with_text: options.WithText = False,
    seed: options.Seed = 0,
    fail_if_dependent: options.FailIfDependent = False,
) -> None:
    """How good is a system really? Every metric with an interval, from predictions and noisy votes alone."""
    from trueup.report.measures import majority_values

    has_gate = check_gates(gates)
    bounds = gates.bounds
    check_report_path(report)
    labels = read_votes(votes, votes_how)
    positive = None if predictions_how.positive is None else class_named(labels, predictions_how.positive)
    bounded = check_bounds(bounds, labels, positive)
    systems = read_systems(predictions, labels, predictions_how, votes_how)
    systems = one_system(systems, only_system)
    evaluations = evaluate_each(
        systems,
        labels,
        noise=noise,
        metrics=list(dict.fromkeys([*metric, *bounded])),
        method=method,
        target=target,
        level=level,
        positive=positive,
        by=by,
        cluster=cluster,
        weights=weights,
        random_state=seed,
        **fit.policies,
        **sampler.named,
    )
    verdicts = None
    if has_gate:
        reports = [gates_of(evaluation, gates, bounds) for evaluation in evaluations.values()]
        verdicts = functools.reduce(lambda report, other: report.joined(other), reports)
    checks = {name: evaluation.independence for name, evaluation in evaluations.items()}
    if fail_if_dependent and all(check is None for check in checks.values()):
        checks = dict.fromkeys(checks, dependence(labels))  # methods that learn no noise do not look
    findings = [c.sentence for c in list(checks.values())[:1] if fail_if_dependent and c is not None and c.dependent]
    head = json_head(
        seed=seed, files=about_files(votes=votes, predictions=predictions, gold=votes_how.gold, items=votes_how.items)
    )
    said = options.options_said(
        votes_how,
        predictions_how,
        fit,
        sampler,
        metric=(metric, _METRICS),
        method=(method, "bayes"),
        target=(target, None),
        noise=(noise, None),
        level=(level, 0.95),
        by=(by, None),
        cluster=(cluster, None),
        weights=(weights, None),
        only_system=(only_system, None),
    )
    # Before anything is printed: the reader of a pipe may go away.
    about = {**head["files"], "command": command_line(), **said}
    write_report(report, evaluations, labels, seed=seed, settings=about, with_text=with_text)
    write_junit(verdicts, gates.junit, name="evaluate")
    dirty = {name: majority_values(evaluation, labels) for name, evaluation in evaluations.items()}
    if as_json:
        results = [
            {
                "system": name,
                **evaluation.to_dict(),
                **({} if by is None else {"by": evaluation.by.to_dict()}),
                "majority_as_truth": dirty[name],
                "independence": about_independence(checks[name], evaluation.model),
            }
            for name, evaluation in evaluations.items()
        ]
        body = results[0] if len(results) == 1 else {"systems": results}
        print_json({**head, **body, **about_gates(verdicts), "findings": findings})
    else:
        for name, evaluation in evaluations.items():
            show_evaluation(name if len(evaluations) > 1 else None, evaluation, labels, dirty[name])
            show_slices(evaluation)
            say()
    warn_once([evaluation.warnings for evaluation in evaluations.values()])
    end_by(verdicts, findings)


def check_bounds(bounds: Mapping[str, Mapping[str, float]], labels: Labels, positive: Hashable | None) -> list[str]:
    """The metrics that have a bound; one that there is not, and a bound that it cannot have, are errors."""
    from trueup.answers.gates import check_bound
    from trueup.metrics import get_metric

    spelled = {"at_least": "--fail-below", "at_most": "--fail-above"}
    for side, by_metric in bounds.items():
        for name, bound in by_metric.items():
            with option_names(metric=spelled[side], metrics=spelled[side], **spelled):
                check_bound(get_metric(name, labels.classes.tolist(), positive), bound, name=side)
    return list(dict.fromkeys(name for by_metric in bounds.values() for name in by_metric))


def evaluate_each(predictions: Predictions, labels: Labels, **settings: Any) -> dict[str, Evaluation]:
    """Each system judged by itself; `settings` as `trueup.evaluate` has them."""
    from trueup.answers.evaluate import evaluate

    check_overlap(predictions, labels)
    named = {name: value for name, value in settings.items() if value is not None}  # what is not said has its default
    evaluations = {}
    names = predictions.systems.tolist()
    for k, name in enumerate(names):
        what = "evaluating" if len(names) == 1 else f"evaluating {name} ({k + 1} of {len(names)})"
        with progress_bar(what) as hear:
            one = evaluate(predictions[name], labels, progress=hear, **named)
        # Everything that a command prints or writes gives advice in the words of the command line.
        evaluations[str(name)] = replace(one, warnings=tuple(map(to_cli_terms, one.warnings)))
    return evaluations


def dependence(labels: Labels) -> IndependenceCheck | None:
    """Whether labelers err together, where nothing that was computed has looked; None where nothing can be said."""
    from trueup.answers.notes import dependence_of

    return dependence_of(labels)


def show_evaluation(
    name: str | None, evaluation: Evaluation, labels: Labels, majority: Mapping[str, float | None]
) -> None:
    """What is known of a system, for people."""
    who = "" if name is None else f"{shown(name)}: "
    first, level = evaluation.metrics[0], level_words(evaluation.level)
    low, high = evaluation[first].interval(evaluation.level)
    where = "on these items" if evaluation.target == "sample" else "on items like these"
    if math.isnan(evaluation[first].mean):
        say(f"{who}{_undefined(first, evaluation)}.")
    elif math.isnan(low) and evaluation.refused:
        say(f"{who}{first} is {number(evaluation[first].mean)} {where}; checked items contradict it: no interval.")
    elif math.isnan(low):
        say(f"{who}{first} is {number(evaluation[first].mean)} {where}; this method gives no interval.")
    else:
        dirty = majority[first]
        beside = "" if dirty is None else f"; the majority of votes as truth would say {number(dirty)}"
        between = interval(low, high, joint=" and ")
        say(f"{who}{first} is between {between} {where} ({level} interval){beside}.")
    rows = []
    for metric in evaluation.metrics:
        estimate = evaluation[metric]
        bounds = interval(*estimate.interval(evaluation.level))
        rows.append((metric, number(estimate.mean), bounds, number(majority[metric])))
    say(f"This rests on {evaluation.answer_in_words()}.")
    print_table(("metric", "estimate", f"{level} interval", "majority as truth"), rows)
    next_step = evaluation.next_step()
    if next_step is not None:
        say(f"{next_step}: trueup plan draw.")
    if evaluation.independence is not None and not evaluation.independence.dependent:
        say(evaluation.independence.in_short)
    for metric in evaluation.metrics:
        share = evaluation[metric].undefined
        if math.isnan(evaluation[metric].mean):
            if metric != first:
                say(f"{_undefined(metric, evaluation)}.")
        elif share > 0:
            say(
                f"{metric} is undefined on {percent(share, 1)} of the drawn truths, where it is a share of nothing; "
                "estimate and interval are of the others."
            )
    positive = f"; positive class {shown(evaluation.classes[evaluation.positive])}" if labels.n_classes == 2 else ""
    say(
        f"{evaluation.n_items:,} predictions, {labels.n_votes:,} votes of {labels.n_labelers:,} labelers; method "
        f"{evaluation.method}, noise {evaluation.noise}, target {evaluation.target}{positive}."
    )


def show_slices(evaluation: Evaluation) -> None:
    """The metrics of each slice, if slices were asked for, and which are worse than the rest."""
    if evaluation.task.slices is None:
        return
    level = level_words(evaluation.level)
    slices = evaluation.by.to_dict()
    for metric in evaluation.metrics:
        # How many items to check is known of the accuracy alone.
        to_vet = metric == "accuracy"
        rows = [
            (
                row["slice"],
                f"{row['n_items']:,}",
                number(row["mean"]),
                interval(row["low"], row["high"]),
                chance(row["prob_worse"]),
                *([f"{slices['vettings'][row['slice']]:,}"] if to_vet else []),
            )
            for row in slices["slices"]
            if row["metric"] == metric
        ]
        head = (f"{metric} by {slices['column']}", "items", "estimate", f"{level} interval")
        print_table((*head, "worse than the rest", *(["to check for ±.05"] if to_vet else [])), rows)
        if slices["worse"][metric]:
            say(f"Worse than the rest by {metric}: {', '.join(map(shown, slices['worse'][metric]))}.")


def _undefined(metric: str, evaluation: Evaluation) -> str:
    why = "it is a share of nothing"
    if metric == "precision" and len(evaluation.classes) == 2:
        why = f"no item is predicted as {shown(evaluation.classes[evaluation.positive])}"
    return f"{metric} is undefined on these items: {why}"


def about_independence(check: IndependenceCheck | None, model: NoiseModel | None) -> dict[str, Any] | None:
    """The check of independence for JSON, and what it means for an answer that rests on a noise model."""
    if check is None:
        return None
    advice = "" if model is None else check.advice(model)
    return {**vars(check), "dependent": check.dependent, "advice": advice}
