"""trueup evaluate, compare, auc and check, and without predictions share, mean-score, preferences and inspect."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, cast

from trueup._base.wording import number, percent
from trueup.cli import _files as files
from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command, call_library, this_call
from trueup.cli._console import (
    interval_head,
    name_options,
    note,
    option_names,
    print_records,
    print_report_table,
    print_table,
    progress_bar,
    say,
    show_page,
    shown,
    with_cli_terms,
)
from trueup.cli._gates import GateOptions, Gates, PairGateOptions, VerdictOptions, numbers_by_name
from trueup.cli._options import given, opt
from trueup.exceptions import InvalidParameter, InvalidPredictions, silenced_warnings

if TYPE_CHECKING:
    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.answers.gates import GateReport
    from trueup.answers.preferences import Preferences
    from trueup.answers.share import DerivedAnswer, Shares
    from trueup.data.aligned import System
    from trueup.data.labels import Labels
    from trueup.data.pairs import Pairs
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
    from trueup.answers.evaluate import evaluate as judge
    from trueup.answers.notes import dependence_of
    from trueup.report.summary import majority_values

    gate = Gates(gates)
    labels, systems, positive = files.read_both(votes, predictions, votes_how, predictions_how, only_system)
    _check_bounds(gate, labels, positive)
    metrics = list(dict.fromkeys([*metric, *gate.metrics]))
    sheets, names = files.sheets_of(votes_how), systems.systems.tolist()
    if len(names) > 1 and (sheets.paths or gate.how.ask is not None):
        raise InvalidPredictions(f"--ask is about one system, got {len(names)}; name it with --only-system")

    def ask(name: Hashable, what: str, labels: Labels) -> Evaluation:
        with progress_bar(what) as progress:
            how = {"metrics": metrics, "positive": positive, "progress": progress}
            answer: Evaluation = call_library(judge, systems[name], labels, **how)
            return with_cli_terms(answer)

    evaluations: dict[str, Evaluation] = {}
    reports = []
    for k, name in enumerate(names):
        what = "evaluating" if len(names) == 1 else f"evaluating {name} ({k + 1} of {len(names)})"
        evaluations[str(name)], found = gate.settle(functools.partial(ask, name, what), labels, sheets)
        reports += [] if found is None else [found]
    checks = {name: evaluation.independence for name, evaluation in evaluations.items()}
    if fail_if_dependent and all(check is None for check in checks.values()):
        checks = dict.fromkeys(checks, dependence_of(labels))  # methods that learn no noise do not look

    def body() -> Mapping[str, Any]:
        results = [
            {
                "system": name,
                **evaluation.to_dict(),
                **({} if asked.by is None else {"by": evaluation.by.to_dict()}),
                "majority_as_truth": majority_values(evaluation, labels),
                "independence": about_independence(labels, checks[name], evaluation.model),
            }
            for name, evaluation in evaluations.items()
        ]
        return results[0] if len(results) == 1 else {"systems": results}

    return Answer(
        body,
        lambda _: _show_evaluations(evaluations, labels, has_slices=asked.by is not None),
        page=lambda: systems_page(evaluations, labels),
        findings=dependence_findings(next(iter(checks.values())), wanted=fail_if_dependent),
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
    named: dict[str, Any] = {name: about.pop(name, None) for name in ("comparison", "title")}
    named |= {"seed": call.values["seed"], "with_text": call.values.get("with_text", False)}
    return build_report(evaluations, labels=labels, settings={**call.settings, **about}, **named)


def _show_evaluations(evaluations: Mapping[str, Evaluation], labels: Labels, *, has_slices: bool) -> None:
    """The sentences and the table of the report, and what is undefined."""
    from trueup.report.sentences import metric_table
    from trueup.report.summary import system_data

    for name, evaluation in evaluations.items():
        system = system_data(name, evaluation, labels.n_items, with_pictures=False)
        answer = system["answer"]
        first = "" if len(evaluations) == 1 else f"{shown(name)}: "
        say(" ".join([f"{first}{answer['claim']} {answer['value']} {answer['rest']}", *answer["sentences"]]))
        print_report_table(metric_table({"systems": [system], "about": {"level": evaluation.level}}))
        if system["next_step"] is not None:
            say(f"{system['next_step']}: trueup plan draw.")
        if evaluation.independence is not None and not evaluation.independence.dependent:
            say(evaluation.independence.in_short)
        for metric, estimate in evaluation.items():
            if math.isnan(estimate.mean):
                why = "its denominator is 0"
                if metric == "precision" and len(evaluation.classes) == 2:
                    why = f"no item is predicted as {shown(evaluation.classes[evaluation.positive])}"
                say(f"{metric} is undefined on these items: {why}.")
            elif estimate.undefined > 0:
                say(
                    f"{metric} is undefined on {percent(estimate.undefined, 1)} of the drawn truths, where its "
                    "denominator is 0; estimate and interval are of the others."
                )
        positive = "" if system["positive"] is None else f"; positive class {shown(system['positive'])}"
        where = "these items" if evaluation.target == "sample" else "items like these"
        say(
            f"{evaluation.n_items:,} predictions, {labels.n_votes:,} votes of {labels.n_labelers:,} labelers; about "
            f"{where}; method {evaluation.method}, noise {evaluation.noise}, target {evaluation.target}{positive}."
        )
        if has_slices:
            _show_slices(evaluation)
        say()


def _show_slices(evaluation: Evaluation) -> None:
    """The metrics of each slice, and which are worse than the rest."""
    from trueup.answers.next_checks import on_which

    slices = evaluation.by.to_dict()
    for metric, worse in slices["worse"].items():
        columns: dict[Any, Any] = {f"{metric} by {slices['column']}": "slice", "items": "n_items", "estimate": "mean"}
        columns |= {interval_head(evaluation.level): "interval", "worse than the rest": "prob_worse"}
        if metric == "accuracy":  # how many items to check is known of the accuracy alone
            goal = f"±{number(slices['vetting_width'] / 2, 3)} {on_which(evaluation.target)}"
            columns[f"checks in all for {goal}"] = lambda row: slices["vettings"][row["slice"]]
        print_records(columns, [row for row in slices["slices"] if row["metric"] == metric])
        if worse:
            say(f"Worse than the rest by {metric}: {', '.join(map(shown, worse))}.")


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
    labels, systems, positive = files.read_both(votes, predictions, votes_how, predictions_how)
    gate.find(systems.systems.tolist())
    name_options(items="--judged-on")

    def ask(labels: Labels) -> Comparison:
        with progress_bar(f"comparing {systems.n_systems} systems") as progress:
            how = {"positive": positive, "items": judged_on, "progress": progress}
            return cast("Comparison", call_library(judge_all, systems, labels, **how))

    comparison, verdicts = gate.settle(ask, labels, files.sheets_of(votes_how))
    comparison = with_cli_terms(comparison)
    predicted = {str(system.name): files.n_predicted(system, labels) for system in systems.parts}
    slices = {} if asked.by is None else {"by": _about_slices(comparison)}

    def show(_: Any) -> None:
        show_comparison(comparison)
        if set(predicted.values()) != {comparison.n_items}:
            listed = ", ".join(f"{shown(system)} {n:,}" for system, n in list(predicted.items())[:_MOST_PAIRS])
            more = ", …" if len(predicted) > _MOST_PAIRS else ""
            say(f"Items with votes that each has predicted: {listed}{more}.")
        for by in slices.values():
            head = f"{by['first']} minus {by['second']} by {by['column']}"
            columns: dict[Any, Any] = {head: "slice", "items": "n_items", "mean": "mean"}
            columns |= {interval_head(asked.level): "interval", "first is better": "prob_first_better"}
            print_records(columns, [{**row, **row["difference"]} for row in by["slices"]])

    return Answer(
        lambda: {**about_comparison(comparison), "items_predicted": predicted, **slices},
        show,
        page=lambda: systems_page({}, labels, comparison=comparison, items_predicted=predicted),
        findings=dependence_findings(dependence_of(labels) if fail_if_dependent else None, wanted=fail_if_dependent),
        warnings=comparison.warnings,
        verdicts=verdicts,
    )


def about_comparison(comparison: Comparison) -> dict[str, Any]:
    """The ranking, and pairs of each system with the next and the best, for JSON."""
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


def _about_slices(comparison: Comparison) -> dict[str, Any]:
    """Each system in each slice, and the difference of the first two there, for JSON."""
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


def show_comparison(comparison: Comparison) -> None:
    """The ranking and the differences, in the sentences and tables of the report."""
    from trueup.report.sentences import pair_table, system_tables, verdict
    from trueup.report.summary import comparison_data

    data = comparison_data(comparison)
    for sentence in verdict(data):
        say(sentence)
    for table in (*system_tables(data), pair_table(data)):
        print_report_table(table)
    say(f"{comparison.n_items:,} items; noise {comparison.noise}, target {comparison.target}.")


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

    all_views = options.lists["VIEWS"]()
    views = all_views if "all" in view else [check_choice(name, all_views, name="view") for name in dict.fromkeys(view)]
    check_level(level)
    labels, systems, positive = files.read_both(votes, predictions, votes_how, predictions_how, only_system)
    results = []
    for name in systems.systems.tolist():
        for chosen in views:
            # Beside the posterior, which they are for, options of the noise say nothing to the other views.
            is_meant = chosen == "bayes" or "bayes" not in views
            how = {"view": chosen, "positive": positive, "random_state": seed, "n_draws": sampler.draws}
            how |= {"noise": noise, "target": target, "n_warmup": sampler.warmup} if is_meant else {}
            with progress_bar(f"{name}, {chosen}") as progress:
                estimate = area(systems[name], labels, progress=progress, **given(**how))
            results.append({"system": str(name), "view": chosen, **estimate.to_dict(level)})
    # The other views take the votes as they are.
    noise_words = (noise or "learned from public sets") if "bayes" in views else "not used"
    target = target or DEFAULT_TARGET

    def show(_: Any) -> None:
        columns: dict[Any, Any] = {"system": "system", ("view", "left"): "view", "AUC": "mean"}
        print_records({**columns, interval_head(level): "interval"}, results)
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
    from trueup.answers.notes import design_doubts, sampling_unknown
    from trueup.report.summary import agreement_data

    labels = files.read_votes(votes, votes_how)
    systems, problems = [], []
    if predictions is not None:
        labels = files.without_predictions(labels, votes, predictions, predictions_how)
        read = files.read_systems(predictions, labels, predictions_how, votes_how)
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
    notes = [*labels.notes(), *(design_doubts(labels) + sampling_unknown(labels) if labels.gold else ())]
    notes += [] if agreed is None else [agreed["sentence"]]
    body = {"votes": labels.summary(), "notes": notes, "systems": systems, "agreement": agreed, **about}
    return Answer({**body, "problems": problems}, lambda b: _show(labels, b), findings=findings, problems=problems)


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
    totals = labels.answer_counts.sum(axis=0)[: labels.n_classes]
    shares = dict(zip(labels.classes.tolist(), (totals / max(totals.sum(), 1)).tolist(), strict=True))
    commonest = sorted(shares.items(), key=lambda pair: -pair[1])[:_MOST_CLASSES]
    print_table(("class", "share of votes"), [(name, percent(share, 1)) for name, share in commonest])
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


def _about_system(system: System, labels: Labels) -> dict[str, Any]:
    """Rows, items of the votes predicted and not, items and classes that the votes do not have."""
    outputs = {"classes": system.codes, "scores": system.scores, "probabilities": system.probabilities}
    n_found = files.n_predicted(system, labels)
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


# Without predictions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BinOptions:
    """Ratings of which few are equal."""

    n_bins: int | None = opt(None, "Put ratings into so many bins of equal width.", "N", max=10_000)
    low: float | None = opt(None, "Where the first bin begins; by default at the lowest rating.", "NUMBER")
    high: float | None = opt(None, "Where the last bin ends; by default at the highest rating.", "NUMBER")

    def put(self, labels: Labels) -> Labels:
        """Ratings in bins, where the user asks for some."""
        if self.n_bins is None and (self.low is not None or self.high is not None):
            raise InvalidParameter("--low and --high are the ends of bins, got no --n-bins; say how many")
        return labels if self.n_bins is None else labels.binned(self.n_bins, low=self.low, high=self.high)


@as_command
def share(
    votes: options.VotesFile,
    votes_how: options.CheckedVoteOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    pair_gates: PairGateOptions,
    asked: options.AnswerOptions,
    bins: BinOptions,
    of: str | None = opt(None, "The class whose share is asked for, e.g. pass.", "CLASS"),
    at_least: float | None = opt(None, "In place of --of: the least rating that counts.", "NUMBER"),
    report: options.Report = None,
    seed: options.Seed = 0,
) -> Answer:
    """How often is the truth of some class? A rate with an interval for each group of items; no predictions needed.

    Of ratings: the share of those from --at-least on; ratings such as 0.37 go into --n-bins first.
    """
    from trueup.answers.share import share as entry_point

    what = of if of is not None else f"{at_least or 0:g}"
    gate = Gates(gates, pair_gates).only_on(what, f"the share of {what!r}")
    labels = bins.put(files.read_votes(votes, votes_how))
    chosen = None if of is None else files.class_named(labels, of)
    return _shares(entry_point, labels, votes_how, gate, asked.by, of=chosen, at_least=at_least)


@as_command
def mean_score(
    votes: options.VotesFile,
    votes_how: options.CheckedVoteOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    pair_gates: PairGateOptions,
    asked: options.AnswerOptions,
    bins: BinOptions,
    values: list[str] = opt([], "The score of a class that is no number; once for each.", "CLASS=NUMBER"),
    report: options.Report = None,
    seed: options.Seed = 0,
) -> Answer:
    """How high is the true rating? A mean with an interval for each group of items; no predictions needed.

    Bounds are on the mean: --fail-below mean=3.5.
    """
    from trueup.answers.share import mean_score as entry_point

    gate = Gates(gates, pair_gates).only_on("mean", "the mean")
    labels = bins.put(files.read_votes(votes, votes_how))
    scores = {
        files.class_named(labels, name): score for name, score in numbers_by_name(values, "--values", "class").items()
    }
    return _shares(entry_point, labels, votes_how, gate, asked.by, values=scores or None)


def _shares(
    entry_point: Callable[..., Shares],
    labels: Labels,
    how: options.CheckedVoteOptions,
    gate: Gates,
    by: str | None,
    **what: Any,
) -> Answer:
    """The rates or means, and the verdicts on them."""
    from trueup.data.slices import slices_of

    gate.find([] if by is None else slices_of(labels, by).names.tolist())

    def ask(labels: Labels) -> Shares:
        with progress_bar("reading the votes") as progress:
            return cast("Shares", call_library(entry_point, labels, progress=progress, **what))

    hint = "For each system by itself: --by system." if by is None and "system" in labels.item_columns else ""
    return _derived(*gate.settle(ask, labels, files.sheets_of(how)), hint)


def _derived(answer: DerivedAnswer, verdicts: GateReport | None, hint: str = "") -> Answer:
    """Rates or preferences, which are printed as their page has them."""
    page = functools.partial(answer.report, settings=this_call().settings)

    def show(_: Any) -> None:
        show_page(page(), without=answer.warnings)
        if hint:
            say(hint)

    return Answer(answer.to_dict, show, warnings=answer.warnings, verdicts=verdicts, page=page)


@as_command
def preferences(
    pairs: options.PairsFile,
    columns: options.PairOptions,
    sampler: options.SamplerOptions,
    gates: VerdictOptions,
    pair_gates: PairGateOptions,
    gold: list[str] = opt(
        [],
        "Verdicts taken to be right, as those of people; columns as of the pairs; or a table of --ask. Repeatable.",
        "FILE",
        reads=True,
    ),
    gold_drawn: str | None = opt(None, "How the contests in --gold were drawn: random or chosen.", "HOW"),
    ties: str = opt("half", "A true tie is half a win for both, or neither's: half or class."),
    noise: str | None = opt(None, "How judges err, by this model alone, e.g. mirrored.", "MODEL"),
    target: str = opt("population", "Items like these, or exactly these contests: population or sample."),
    level: options.Level = 0.95,
    report: options.Report = None,
    seed: options.Seed = 0,
) -> Answer:
    """Which system is preferred in truth? Win rates, a ranking and the judges' position bias, with intervals."""
    from trueup.adapters import read_pairs
    from trueup.answers.preferences import preferences as entry_point

    gate = Gates(gates, pair_gates)
    sheets = files.sheets_among(gold)
    people = [path for path in gold if path not in sheets]
    if len(people) > 1:
        raise InvalidParameter(f"--gold takes one file that --ask did not write, got {len(people)}; join them")
    verdicts: Pairs = call_library(
        read_pairs, files.source_of(pairs), gold=files.source_of(people[0]) if people else None
    )
    for sentence in verdicts.notes:
        note(sentence)
    gate.find(verdicts.systems.tolist())

    def ask(verdicts: Pairs) -> Preferences:
        with progress_bar("reading the verdicts") as progress:
            return cast("Preferences", call_library(entry_point, verdicts, progress=progress))

    named = files.Sheets(sheets, [columns.item, columns.first, columns.second], columns.winner)
    return _derived(*gate.settle(ask, verdicts, named))


@as_command
def inspect(
    logs: Annotated[list[str], options.Option("Logs, .eval or .json.", "LOGS", reads=True, is_argument=True)],
    of: str = opt("C", "The grade whose share is asked for.", "GRADE", show=True),
    question: str | None = opt(None, "Of several kinds of scores, this one.", "NAME"),
    gold_key: str | None = opt(None, "The key of the metadata that holds the right grade.", "KEY"),
    gold_drawn: str | None = opt(None, "How the checked samples were drawn: random or chosen.", "HOW"),
    by: str = opt("system", "The groups: a column of the answers, such as a key of the metadata.", "COLUMN"),
    scores: str | None = opt(
        None, "Also write a copy of the log, with what its graders say together as a score more.", "LOG", writes=True
    ),
    level: options.Level = 0.95,
    seed: options.Seed = 0,
) -> Answer:
    """How often is each model right, and do its graders agree? From finished logs of Inspect."""
    from trueup.answers.share import share
    from trueup.integrations.inspect import read_logs, write_scores
    from trueup.reliability import agreement

    if scores is not None and len(logs) != 1:
        raise InvalidParameter(f"--scores writes a copy of one log, got {len(logs)}; name one")
    labels = read_logs(*logs, question=question, gold=gold_key, drawn=gold_drawn)  # type: ignore[arg-type]
    shares = share(labels, of=files.class_named(labels, of), by=by, cluster="sample", level=level, random_state=seed)
    agreed = agreement(labels, level=level).to_dict() if labels.n_labelers > 1 else None
    if scores is not None:
        note(f"log: {write_scores(logs[0], scores, question=question)}")

    def show(_: Any) -> None:
        show_page(shares.report(), without=shares.warnings)
        if agreed is not None:
            say(agreed["sentence"])

    return Answer(lambda: {**shares.to_dict(), "agreement": agreed}, show, warnings=shares.warnings)
