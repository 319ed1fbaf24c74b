"""trueup evaluate, compare, auc and check: how good is a system really, and do the files fit?"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from trueup._base.wording import chance, interval, level_words, number, percent
from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command, this_call
from trueup.cli._console import (
    interval_head,
    name_options,
    option_names,
    print_records,
    print_table,
    progress_bar,
    say,
    shown,
    with_cli_terms,
)
from trueup.cli._files import (
    check_overlap,
    n_predicted,
    read_both,
    read_systems,
    read_votes,
    sheets_of,
    without_predictions,
)
from trueup.cli._gates import GateOptions, Gates, PairGateOptions
from trueup.cli._options import given, opt
from trueup.exceptions import InvalidPredictions, silenced_warnings

if TYPE_CHECKING:
    from trueup._base.types import Target
    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.data.aligned import System
    from trueup.data.labels import Labels
    from trueup.data.predictions import Predictions
    from trueup.noise import IndependenceCheck, NoiseModel


@as_command
def evaluate(
    votes: options.VotesFile,
    predictions: options.PredictionsFile,
    votes_how: options.CheckedVoteOptions,
    predictions_how: options.PredictionOptions,
    fit: options.FitOptions,
    asked: options.AnswerOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    metric: options.Metrics = ["accuracy", "precision", "recall", "f1"],  # noqa: B006  typer shows it as the default
    method: str = opt("bayes", "bayes is calibrated; the others are for comparison. One of METHODS.", chosen="METHODS"),
    only_system: options.OnlySystem = None,
    report: options.Report = None,
    with_text: options.WithText = False,
    seed: options.Seed = 0,
    fail_if_dependent: options.FailIfDependent = False,
) -> Answer:
    """How good is a system really? Every metric with an interval, from predictions and noisy votes alone."""
    from trueup.answers.notes import dependence_of
    from trueup.report.measures import majority_values

    gate = Gates(gates)
    labels, systems, positive = read_both(votes, predictions, votes_how, predictions_how, only_system)
    _check_bounds(gate, labels, positive)
    metrics = list(dict.fromkeys([*metric, *gate.metrics]))
    settings = {"metrics": metrics, "method": method, "positive": positive, "random_state": seed, **vars(fit)}
    settings |= {**vars(asked), **sampler.named}
    sheets, names = sheets_of(votes_how), systems.systems.tolist()
    if len(names) > 1 and (sheets.paths or gate.how.ask is not None):
        raise InvalidPredictions(f"--ask is about one system, got {len(names)}; name it with --only-system")
    check_overlap(systems, labels)
    evaluations: dict[str, Evaluation] = {}
    reports = []
    for k, name in enumerate(names):
        what = "evaluating" if len(names) == 1 else f"evaluating {name} ({k + 1} of {len(names)})"
        ask = functools.partial(_evaluated, systems[name], what, settings)
        evaluations[str(name)], found = gate.settle(ask, labels, sheets)
        reports += [] if found is None else [found]
    checks = {name: evaluation.independence for name, evaluation in evaluations.items()}
    if fail_if_dependent and all(check is None for check in checks.values()):
        checks = dict.fromkeys(checks, dependence_of(labels))  # methods that learn no noise do not look
    first = next(iter(checks.values()))
    majority = {name: majority_values(evaluation, labels) for name, evaluation in evaluations.items()}

    def body() -> Mapping[str, Any]:
        results = [
            {
                "system": name,
                **evaluation.to_dict(),
                **({} if asked.by is None else {"by": evaluation.by.to_dict()}),
                "majority_as_truth": majority[name],
                "independence": about_independence(labels, checks[name], evaluation.model),
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
        page=lambda: systems_page(evaluations, labels),
        findings=dependence_findings(first, wanted=fail_if_dependent),
        warnings=[sentence for evaluation in evaluations.values() for sentence in evaluation.warnings],
        verdicts=functools.reduce(lambda a, b: a.joined(b), reports) if reports else None,
    )


def _evaluated(system: Predictions, what: str, settings: Mapping[str, Any], labels: Labels) -> Evaluation:
    """One system judged by itself; `settings` as `trueup.evaluate` has them."""
    from trueup.answers.evaluate import evaluate

    with progress_bar(what) as progress:
        answer = evaluate(system, labels, progress=progress, **given(**settings))
    return with_cli_terms(answer)


def _check_bounds(gate: Gates, labels: Labels, positive: Hashable | None) -> None:
    """Stop where there is no such metric, or where a metric cannot have its bound."""
    from trueup.answers.gates import check_bound
    from trueup.metrics import get_metric

    spelled = {"at_least": "--fail-below", "at_most": "--fail-above"}
    for side, by_metric in gate.bounds.items():
        for name, bound in by_metric.items():
            with option_names(metric=spelled[side], metrics=spelled[side], **spelled):
                check_bound(get_metric(name, labels.classes.tolist(), positive), bound, name=side)


def dependence_findings(check: IndependenceCheck | None, *, wanted: bool) -> list[str]:
    """What ``--fail-if-dependent`` fails on."""
    return [check.sentence] if wanted and check is not None and check.dependent else []


def about_independence(
    labels: Labels, check: IndependenceCheck | None, model: NoiseModel | None = None
) -> dict[str, Any] | None:
    """The check of independence for JSON, and what to do about it, as all answers and pages say."""
    from trueup.answers.notes import advice_on_dependence

    if check is None:
        return None
    return {**vars(check), "dependent": check.dependent, "advice": advice_on_dependence(labels, check, model)}


def systems_page(evaluations: Mapping[str, Evaluation], labels: Labels, **about: Any) -> dict[str, Any]:
    """The report on systems; `about` has what else `build_report` takes, and settings to show."""
    from trueup.report import build_report

    call = this_call()
    given: dict[str, Any] = {name: about.pop(name, None) for name in ("comparison", "title")}
    given |= {"seed": call.values["seed"], "with_text": call.values.get("with_text", False)}
    return build_report(evaluations, labels=labels, settings={**call.settings, **about}, **given)


def show_evaluation(result: Mapping[str, Any], evaluation: Evaluation, labels: Labels, *, is_alone: bool) -> None:
    """What is known of a system, for people."""
    metrics, majority = result["metrics"], result["majority_as_truth"]
    first = next(iter(metrics))
    mean, low, high = (metrics[first][key] for key in ("mean", "low", "high"))
    prefix = "" if is_alone else f"{shown(result['system'])}: "
    where = "on these items" if evaluation.target == "sample" else "on items like these"
    if mean is None:
        say(f"{prefix}{_undefined(first, evaluation)}.")
    elif low is None:
        why = "checked items contradict it: no interval" if evaluation.refused else "this method gives no interval"
        say(f"{prefix}{first} is {number(mean)} {where}; {why}.")
    else:
        beside = (
            "" if majority[first] is None else f"; the majority of votes as truth would say {number(majority[first])}"
        )
        level = level_words(evaluation.level)
        say(f"{prefix}{first} is between {interval(low, high, joint=' and ')} {where} ({level} interval){beside}.")
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
        _show_slices(result["by"], ends, evaluation.target)


def _show_slices(slices: Mapping[str, Any], ends: str, target: Target) -> None:
    """The metrics of each slice, and which are worse than the rest."""
    from trueup.answers.next_checks import on_which

    for metric, worse in slices["worse"].items():
        columns: dict[Any, Any] = {f"{metric} by {slices['column']}": "slice", "items": "n_items", "estimate": "mean"}
        columns |= {ends: "interval", "worse than the rest": "prob_worse"}
        if metric == "accuracy":  # how many items to check is known of the accuracy alone
            half = number(slices["vetting_width"] / 2, 3)
            columns[f"checks in all for ±{half} {on_which(target)}"] = lambda row: slices["vettings"][row["slice"]]
        print_records(columns, [row for row in slices["slices"] if row["metric"] == metric])
        if worse:
            say(f"Worse than the rest by {metric}: {', '.join(map(shown, worse))}.")


def _undefined(metric: str, evaluation: Evaluation) -> str:
    why = "it is a share of nothing"
    if metric == "precision" and len(evaluation.classes) == 2:
        why = f"no item is predicted as {shown(evaluation.classes[evaluation.positive])}"
    return f"{metric} is undefined on these items: {why}"


_MOST_PAIRS = 20


@as_command
def compare(
    votes: options.VotesFile,
    predictions: options.ManyPredictionFiles,
    votes_how: options.CheckedVoteOptions,
    predictions_how: options.PredictionOptions,
    asked: options.AnswerOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    pair_gates: PairGateOptions,
    metric: options.Metric = "accuracy",
    judged_on: str | None = opt(
        None,
        "Judge all systems on the items that all have predicted (common, the default), or each on its own.",
        "WHICH",
    ),
    unknown: str = opt("ignore", "Predictions for items that have no votes: error or ignore."),
    unknown_class: str = opt("error", "Predictions of classes nobody voted for: error or ignore."),
    report: options.Report = None,
    with_text: options.WithText = False,
    seed: options.Seed = 0,
    fail_if_dependent: options.FailIfDependent = False,
) -> Answer:
    """Which of several systems is better, and how sure is that?"""
    from trueup.answers.compare import compare as judge_all
    from trueup.answers.notes import dependence_of

    gate = Gates(gates, pair_gates)
    labels, systems, positive = read_both(votes, predictions, votes_how, predictions_how)
    gate.find(systems.systems.tolist())
    check_overlap(systems, labels)
    settings = {**vars(asked), "positive": positive, "random_state": seed, **sampler.named}
    name_options(items="--judged-on")

    def ask(labels: Labels) -> Comparison:
        with progress_bar(f"comparing {systems.n_systems} systems") as progress:
            return judge_all(
                systems,
                labels,
                metric=metric,
                unknown=unknown,  # type: ignore[arg-type]  # these are checked by the callee, with a sentence
                unknown_class=unknown_class,  # type: ignore[arg-type]
                progress=progress,
                **given(**settings, items=judged_on),
            )

    comparison, verdicts = gate.settle(ask, labels, sheets_of(votes_how))
    comparison = with_cli_terms(comparison)
    check = dependence_of(labels) if fail_if_dependent else None
    predicted = {str(system.name): n_predicted(system, labels) for system in systems.parts}

    def body() -> Mapping[str, Any]:
        slices = {} if asked.by is None else {"by": about_slices(comparison)}
        return {**about_comparison(comparison), "items_predicted": predicted, **slices}

    def show(body: Mapping[str, Any]) -> None:
        show_comparison(comparison, body, predicted)
        if asked.by is not None:
            _show_pair_by_slice(body["by"], asked.level)

    return Answer(
        body,
        show,
        page=lambda: systems_page({}, labels, comparison=comparison, items_predicted=predicted),
        findings=dependence_findings(check, wanted=fail_if_dependent),
        warnings=comparison.warnings,
        verdicts=verdicts,
    )


def about_comparison(comparison: Comparison) -> dict[str, Any]:
    """The ranking, and each system beside the next and the best, as far as there is room, for JSON."""
    ranking, level = comparison.ranking, comparison.level
    pairs = [*((ranking[0], other) for other in ranking[1:]), *pairwise(ranking[1:])][:_MOST_PAIRS]
    records = [
        {
            "a": str(a),
            "b": str(b),
            "prob_a_better": comparison.prob_better(a, b),
            "told_apart": comparison.is_significant(a, b),
            "difference": comparison.difference(a, b).to_dict(level),
        }
        for a, b in pairs
    ]
    return {**comparison.to_dict(), "pairs": records}


def about_slices(comparison: Comparison) -> dict[str, Any]:
    """Each system in each slice, and the first two of the ranking beside each other there, for JSON."""
    first, second = comparison.ranking[:2]
    slicing = comparison.by.slicing
    slices = [
        {
            "slice": str(name),
            "n_items": size,
            "systems": {str(system): part[system].to_dict(comparison.level) for system in comparison.ranking},
            "prob_first_better": part.prob_better(first, second),
            "difference": part.difference(first, second).to_dict(comparison.level),
        }
        for (name, part), size in zip(comparison.by.items(), slicing.sizes.tolist(), strict=True)
    ]
    return {"column": slicing.column, "first": str(first), "second": str(second), "slices": slices}


def _show_pair_by_slice(slices: Mapping[str, Any], level: float) -> None:
    heading = f"{slices['first']} minus {slices['second']} by {slices['column']}"
    columns: dict[Any, Any] = {heading: "slice", "items": "n_items", "mean": "mean", interval_head(level): "interval"}
    rows = [{**row, **row["difference"]} for row in slices["slices"]]
    print_records({**columns, "first is better": "prob_first_better"}, rows)


def show_comparison(comparison: Comparison, body: Mapping[str, Any], predicted: Mapping[str, int]) -> None:
    """The ranking and the differences for people."""
    (first, second, *_), level = comparison.ranking, comparison.level
    best = f"{shown(first)} comes first of {len(comparison)} by {comparison.metric}, but checked items contradict that."
    if not comparison.refused:
        sure = "and is better than" if comparison.is_significant(first, second) else "but may be no better than"
        best = (
            f"{shown(first)} is the best of {len(comparison)} by {comparison.metric} with probability "
            f"{chance(comparison.prob_best[first])}, {sure} {shown(second)} ({level_words(level)} interval)."
        )
    say(best)
    say(f"This rests on {comparison.answer_in_words()}.")
    ends = interval_head(level)

    def if_sure(key: str) -> Any:
        return (lambda row: None) if comparison.refused else key

    ranks = [{"rank": rank, **row} for rank, row in enumerate(body["systems"], start=1)]
    print_records(
        {
            ("rank", "right"): "rank",
            ("system", "left"): "system",
            comparison.metric: "mean",
            ends: "interval",
            "best with": if_sure("prob_best"),
        },
        ranks,
    )
    rows = [{**row, **row["difference"], "pair": f"{row['a']} minus {row['b']}"} for row in body["pairs"]]
    columns = {"difference": "pair", "mean": "mean", ends: "interval", "first is better": if_sure("prob_a_better")}
    print_records(columns, rows)
    say(f"{comparison.n_items:,} items; noise {comparison.noise}, target {comparison.target}.")
    if set(predicted.values()) != {comparison.n_items}:
        listed = ", ".join(f"{shown(system)} {n:,}" for system, n in list(predicted.items())[:_MOST_PAIRS])
        say(f"Items with votes that each has predicted: {listed}{', …' if len(predicted) > _MOST_PAIRS else ''}.")


@as_command
def auc(
    votes: options.VotesFile,
    predictions: options.PredictionsFile,
    votes_how: options.VoteOptions,
    predictions_how: options.PredictionOptions,
    sampler: options.SamplerOptions,
    view: list[str] = opt(["bayes"], "What the truth is: VIEWS or all. Several may be given.", chosen="VIEWS"),
    target: options.Target = None,
    noise: options.Noise = None,
    level: options.Level = 0.95,
    only_system: options.OnlySystem = None,
    seed: options.Seed = 0,
) -> Answer:
    """The area under the ROC curve of a system's scores (columns item, score), from noisy votes alone."""
    from trueup._base.validation import check_choice, check_level
    from trueup.answers.compare import auc as area
    from trueup.answers.prepare import DEFAULT_TARGET

    known = options.lists["VIEWS"]()
    views = known if "all" in view else [check_choice(name, known, name="view") for name in dict.fromkeys(view)]
    check_level(level)
    labels, systems, positive = read_both(votes, predictions, votes_how, predictions_how, only_system)
    check_overlap(systems, labels)
    settings = given(noise=noise, target=target, **sampler.named)
    results = []
    for name in systems.systems.tolist():
        for chosen in views:
            # Beside the posterior, which they are for, options of the noise say nothing to the other views.
            is_meant = chosen == "bayes" or "bayes" not in views
            with progress_bar(f"{name}, {chosen}") as progress:
                estimate = area(
                    systems[name],
                    labels,
                    view=chosen,  # type: ignore[arg-type]  # checked above
                    positive=positive,
                    random_state=seed,
                    progress=progress,
                    **{key: value for key, value in settings.items() if is_meant or key == "n_draws"},
                )
            results.append({"system": str(name), "view": chosen, **estimate.to_dict(level)})
    # The other views take the votes as they are.
    noise_words = (noise or "learned from public sets") if "bayes" in views else "not used"
    target = target or DEFAULT_TARGET

    def show(_: Mapping[str, Any]) -> None:
        columns: dict[Any, Any] = {
            "system": "system",
            ("view", "left"): "view",
            "AUC": "mean",
            interval_head(level): "interval",
        }
        print_records(columns, results)
        say(f"{labels.n_items:,} items; noise {noise_words}, target {target}.")

    return Answer({"noise": noise_words, "target": target, "results": results}, show)


_MOST_CLASSES = 20
_MOST_VOTES = 60_000  # dependence is looked for in this many votes at most, of items chosen by chance


@as_command
def check(
    votes: options.VotesFile,
    votes_how: options.VoteOptions,
    predictions_how: options.PredictionOptions,
    fit: options.FitOptions,
    predictions: options.OptionalPredictionsFile = None,
    dependence: bool = opt(
        True, "Check whether labelers err together; takes seconds.", None, "--dependence/--no-dependence"
    ),
    fail_if_dependent: options.FailIfDependent = False,
) -> Answer:
    """Validate the files and say what is in them; exit code 2 if `trueup evaluate` would refuse them."""
    from trueup.report.measures import agreement_data

    labels = read_votes(votes, votes_how)
    systems, problems = [], []
    if predictions is not None:
        labels = without_predictions(labels, votes, predictions, predictions_how)
        read = read_systems(predictions, labels, predictions_how, votes_how)
        systems = [_about_system(part, labels) for part in read.parts]
        problems = _problems_with(read, labels, vars(fit))
    about: dict[str, Any] = {"independence": None, "effective_labelers": None}
    if dependence or fail_if_dependent:
        about = _about_dependence(labels)
    found = about["independence"]
    findings = []
    if fail_if_dependent and found is not None and found["dependent"]:
        findings = [f"{found['sentence']} {found['advice']}"]
    agreed = agreement_data(labels)
    notes = [*labels.notes(), *_about_gold(labels), *([] if agreed is None else [agreed["sentence"]])]
    body = {"votes": labels.summary(), "notes": notes, "systems": systems, "agreement": agreed, **about}
    body["problems"] = problems

    return Answer(body, lambda body: _show(labels, body), findings=findings, problems=problems)


def _about_gold(labels: Labels) -> list[str]:
    """What there is to say of how the gold was drawn."""
    if not labels.gold:
        return []
    from trueup.answers.notes import design_doubts, sampling_unknown

    return [*design_doubts(labels), *sampling_unknown(labels)]


def _show(labels: Labels, body: Mapping[str, Any]) -> None:
    counts = body["votes"]
    per_item, per_labeler, drawn = counts["votes_per_item"], counts["votes_per_labeler"], counts["drawn_gold"]
    rows: list[tuple[str, object]] = [
        ("votes", counts["votes"]),
        ("items", counts["items"]),
        ("labelers", counts["labelers"]),
        ("votes an item", f"{per_item['min']} to {per_item['max']}, {per_item['mean']:.1f} on average"),
        ("votes a labeler", f"{per_labeler['min']} to {per_labeler['max']}, median {per_labeler['median']:.0f}"),
        ("repeated votes", counts["repeated_votes"]),
        ("rows without a vote", counts["missing"]),
        ("abstentions", counts["abstentions"]),
        ("checked items", f"{counts['gold']:,}" + (f", {drawn:,} of them drawn" if drawn else "")),
        ("columns of the items", ", ".join(labels.item_columns) or "none"),
    ]
    print_table(("the votes", ("", "left")), rows)
    print_table(("class", "share of votes"), [(name, percent(share, 1)) for name, share in class_shares(labels)])
    if body["systems"]:
        columns: dict[Any, Any] = {"system": "system", ("gives", "left"): "gives", "rows": "rows"}
        columns |= {"items with votes": "items", "without": "missing"}
        columns |= {"unknown items": "unknown_items", "unknown classes": "unknown_classes"}
        print_records(columns, body["systems"])
    for sentence in body["notes"]:
        say(f"- {shown(sentence)}")
    for part in (body["independence"], body["effective_labelers"]):
        if part is not None:
            say(f"- {shown(part['sentence'])} {shown(part.get('advice', ''))}".rstrip())


def class_shares(labels: Labels) -> list[tuple[Hashable, float]]:
    """The share of votes of each class, the commonest first; of very many classes the commonest only."""
    totals = labels.answer_counts.sum(axis=0)[: labels.n_classes]
    order = sorted(range(labels.n_classes), key=lambda k: -totals[k])[:_MOST_CLASSES]
    names = labels.classes.tolist()
    return [(names[k], float(totals[k] / max(totals.sum(), 1))) for k in order]


def _about_system(system: System, labels: Labels) -> dict[str, Any]:
    """Rows, items of the votes predicted and not, items and classes that the votes do not have."""
    outputs = {"classes": system.codes, "scores": system.scores, "probabilities": system.probabilities}
    n_found = n_predicted(system, labels)
    others: list[Hashable] = []
    if system.codes is not None and system.classes is not None:
        names, classes = system.classes.tolist(), set(labels.classes.tolist())
        others = [names[code] for code in system.codes.tolist() if code >= 0 and names[code] not in classes]
    return {
        "system": str(system.name),
        "gives": ", ".join(name for name, values in outputs.items() if values is not None),
        "rows": system.n,
        "items": n_found,
        "missing": labels.n_items - n_found,
        "unknown_items": system.n - n_found,
        "unknown_classes": len(others),
        "classes_nobody_voted_for": sorted({str(name) for name in others}),
    }


def _problems_with(predictions: Predictions, labels: Labels, policies: Mapping[str, Any]) -> list[str]:
    """A sentence for each reason why an evaluation would refuse the files."""
    problems: list[str] = []
    ignoring: dict[str, Any] = dict.fromkeys(policies, "ignore")
    for name in predictions.systems.tolist():
        # One policy at a time, so that each reason is found, not only the first.
        for policy, value in policies.items():
            try:
                predictions[name].align(labels, **{**ignoring, policy: value})
            except InvalidPredictions as error:
                problems.append(error.sentence)
    return list(dict.fromkeys(problems))


def _about_dependence(labels: Labels) -> dict[str, Any]:
    """Whether labelers err together, and how many independent ones the votes are worth."""
    import numpy as np

    from trueup.answers.notes import dependence_of
    from trueup.noise import effective_labelers

    if labels.n_votes > _MOST_VOTES:
        chosen = np.random.default_rng(0).random(labels.n_items) < _MOST_VOTES / labels.n_votes
        labels = labels.select(items=labels.items[chosen])
    with silenced_warnings():
        independence = dependence_of(labels)
        # Where no item has two votes nothing can be said of either.
        effective = None if independence is None else effective_labelers(labels)
    return {
        "independence": about_independence(labels, independence),
        "effective_labelers": None if effective is None else asdict(effective),
        "votes_looked_at": labels.n_votes,
    }
