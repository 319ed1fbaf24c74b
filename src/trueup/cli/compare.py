"""trueup compare: which system is better, and how sure is that?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from trueup._base.wording import chance, level_words
from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command
from trueup.cli._console import interval_head, name_options, print_records, progress_bar, say, shown, with_cli_terms
from trueup.cli._files import check_overlap, read_both
from trueup.cli._gates import GateOptions, Gates, PairGateOptions
from trueup.cli.evaluate import dependence, dependence_findings, evaluate_each, write_report

if TYPE_CHECKING:
    from trueup.answers.comparison import Comparison
    from trueup.data.labels import Labels
    from trueup.data.predictions import Predictions
    from trueup.data.systems import System


_MOST_IN_REPORT = 6  # systems that are evaluated for a report; each takes as long as `trueup evaluate`
_MOST_PAIRS = 20


@as_command
def compare(
    votes: options.VotesFile,
    predictions: options.ManyPredictionFiles,
    votes_how: options.VoteOptions,
    predictions_how: options.PredictionOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    pair_gates: PairGateOptions,
    metric: options.Metric = "accuracy",
    target: options.Target = None,
    noise: options.Noise = None,
    level: options.Level = 0.95,
    by: options.By = None,
    cluster: options.Cluster = None,
    weights: options.Weights = None,
    judged_on: str | None = options.opt(
        None,
        "Judge all systems on the items that all have predicted (common, the default), or each on its own.",
        "WHICH",
    ),
    unknown: str = options.opt("ignore", "Predictions for items that have no votes: error or ignore."),
    unknown_class: str = options.opt("error", "Predictions of classes nobody voted for: error or ignore."),
    report: options.Report = None,
    with_text: options.WithText = False,
    seed: options.Seed = 0,
    fail_if_dependent: options.FailIfDependent = False,
) -> Answer:
    """Which of several systems is better, and how sure is that?"""
    from trueup.answers.compare import compare as judge_all

    gate = Gates(gates, pair_gates)
    labels, systems, positive = read_both(votes, predictions, votes_how, predictions_how)
    gate.find(systems.systems.tolist())
    check_overlap(systems, labels)
    settings: dict[str, Any] = {"noise": noise, "level": level, "cluster": cluster, "weights": weights}
    settings |= {"positive": positive, "random_state": seed, **sampler.named}
    name_options(items="--judged-on")
    with progress_bar(f"comparing {systems.n_systems} systems") as progress:
        comparison = judge_all(
            systems,
            labels,
            metric=metric,
            unknown=unknown,  # type: ignore[arg-type]  # these are checked by the callee, with a sentence
            unknown_class=unknown_class,  # type: ignore[arg-type]
            progress=progress,
            **options.given(**settings, by=by, target=target, items=judged_on),
        )
    comparison = with_cli_terms(comparison)
    verdicts = gate.on(comparison)
    findings = dependence_findings(dependence(labels) if fail_if_dependent else None, wanted=fail_if_dependent)
    predicted = items_predicted(systems, labels)
    if report is not None:
        # The report shows each system by itself as well: the best are evaluated, on the items compared on.
        judged = systems if judged_on == "own" else on_judged_items(systems, comparison)
        best = {name: judged[name] for name in comparison.ranking[:_MOST_IN_REPORT]}
        settings |= {"metrics": list(dict.fromkeys([metric, "accuracy"]))}
        settings |= dict.fromkeys(("missing", "unknown", "unknown_class"), "ignore")
        each = evaluate_each(type(judged).stack(best), labels, **settings)
        about: dict[str, Any] = {
            "comparison": comparison,
            "seed": seed,
            "with_text": with_text,
            "items_predicted": predicted,
        }
        write_report(report, each, labels, **about)

    def body() -> Mapping[str, Any]:
        slices = {} if by is None else {"by": about_slices(comparison)}
        return {**about_comparison(comparison), "items_predicted": predicted, **slices}

    def show(body: Mapping[str, Any]) -> None:
        show_comparison(comparison, body, predicted)
        if by is not None:
            _show_slices(body["by"], level)

    return Answer(body, show, findings=findings, warnings=comparison.warnings, verdicts=verdicts)


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


def _show_slices(slices: Mapping[str, Any], level: float) -> None:
    heading = f"{slices['first']} minus {slices['second']} by {slices['column']}"
    columns: dict[Any, Any] = {heading: "slice", "items": "n_items", "mean": "mean", interval_head(level): "interval"}
    rows = [{**row, **row["difference"]} for row in slices["slices"]]
    print_records({**columns, "first is better": "prob_first_better"}, rows)


def items_predicted(systems: Predictions, labels: Labels) -> dict[str, int]:
    """How many items of the votes each system has predicted."""
    return {
        str(part.name): part.n if part.items is None else int((labels.find_items(part.items) >= 0).sum())
        for part in systems.parts
    }


def on_judged_items(systems: Predictions, comparison: Comparison) -> Predictions:
    """The systems on the items that all were compared on, so that a report says of each what fits the comparison."""
    import numpy as np

    if comparison.codes is None:
        return systems
    labels = comparison.labels
    judged = np.asarray((comparison.codes >= 0).all(axis=0))

    def kept(system: System) -> System:
        if system.items is None:
            return system
        where = labels.find_items(system.items)
        rows = np.flatnonzero((where >= 0) & judged[where])
        names = ("items", "codes", "probabilities", "scores")
        columns = {name: values[rows] for name in names if (values := getattr(system, name)) is not None}
        return replace(system, n=len(rows), **columns)

    return replace(systems, parts=tuple(map(kept, systems.parts)))


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
