"""trueup compare: which system is better, and how sure is that?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from trueup._base.wording import chance, interval, level_words, number
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
    read_systems,
    read_votes,
    write_report,
)
from trueup.cli._gates import GateOptions, PairGateOptions, about_gates, check_gates, end_by, gates_of, write_junit
from trueup.cli.evaluate import dependence, evaluate_each

if TYPE_CHECKING:
    from trueup.answers.comparison import Comparison
    from trueup.data.aligned import System
    from trueup.data.labels import Labels
    from trueup.data.predictions import Predictions


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
    judged_on: Annotated[
        str | None,
        options.option(
            "--judged-on",
            "Judge all systems on the items that all have predicted (common, the default), or each on its own.",
            metavar="WHICH",
        ),
    ] = None,
    unknown: Annotated[
        str, options.option("--unknown", "Predictions for items that have no votes: error or ignore.")
    ] = "ignore",
    unknown_class: Annotated[
        str, options.option("--unknown-class", "Predictions of classes nobody voted for: error or ignore.")
    ] = "error",
    as_json: options.AsJson = False,
    report: options.Report = None,
    with_text: options.WithText = False,
    seed: options.Seed = 0,
    fail_if_dependent: options.FailIfDependent = False,
) -> None:
    """Which of several systems is better, and how sure is that?"""
    from trueup.answers.compare import compare as judge_all

    has_gate = check_gates(gates, pair_gates)
    bounds = gates.bounds
    check_report_path(report)
    labels = read_votes(votes, votes_how)
    systems = read_systems(predictions, labels, predictions_how, votes_how)
    pairs = pair_gates.named_as(systems.systems.tolist())
    check_overlap(systems, labels)
    positive = None if predictions_how.positive is None else class_named(labels, predictions_how.positive)
    asked: dict[str, Any] = {
        "noise": noise,
        "level": level,
        "cluster": cluster,
        "weights": weights,
        "positive": positive,
        "random_state": seed,
        **sampler.named,
    }
    settings = {name: value for name, value in {**asked, "by": by, "target": target}.items() if value is not None}
    with progress_bar(f"comparing {systems.n_systems} systems") as hear, option_names(items="--judged-on"):
        comparison = judge_all(
            systems,
            labels,
            metric=metric,
            items=judged_on,  # type: ignore[arg-type]  # these are checked by the callee, with a sentence
            unknown=unknown,  # type: ignore[arg-type]
            unknown_class=unknown_class,  # type: ignore[arg-type]
            progress=hear,
            **settings,
        )
        comparison = replace(comparison, warnings=tuple(map(to_cli_terms, comparison.warnings)))
    verdicts = gates_of(comparison, gates, bounds, pairs) if has_gate else None
    findings = []
    if fail_if_dependent:
        check = dependence(labels)
        findings += [check.sentence] if check is not None and check.dependent else []
    predicted = items_predicted(systems, labels)
    head = json_head(
        seed=seed, files=about_files(votes=votes, predictions=predictions, gold=votes_how.gold, items=votes_how.items)
    )
    if report is not None:
        said = options.options_said(
            votes_how,
            predictions_how,
            sampler,
            metric=(metric, "accuracy"),
            target=(target, None),
            noise=(noise, None),
            level=(level, 0.95),
            by=(by, None),
            cluster=(cluster, None),
            weights=(weights, None),
            judged_on=(judged_on, None),
            unknown=(unknown, "ignore"),
            unknown_class=(unknown_class, "error"),
        )
        about = {**head["files"], "command": command_line(), "items_predicted": predicted, **said}
        judged = systems if judged_on == "own" else on_judged_items(systems, comparison)
        # Before anything is printed: the reader of a pipe may go away.
        _report(report, comparison, judged, labels, asked, metric, about, with_text)
    write_junit(verdicts, gates.junit, name="compare")
    if as_json:
        body = {**comparison.to_dict(), "items_predicted": predicted, "pairs": about_pairs(comparison)}
        if by is not None:
            body["by"] = about_slices(comparison)
        print_json({**head, **body, **about_gates(verdicts), "findings": findings})
    else:
        show_comparison(comparison, predicted)
        if by is not None:
            show_slices(comparison)
    warn_once([comparison.warnings])
    end_by(verdicts, findings)


def _report(
    path: str,
    comparison: Comparison,
    systems: Predictions,
    labels: Labels,
    settings: Mapping[str, Any],
    metric: str,
    about: Mapping[str, Any],
    with_text: bool,
) -> None:
    """The report shows each system by itself as well, so the best of them are evaluated, on the items compared on."""
    from trueup.data.predictions import Predictions

    best = {name: systems[name] for name in comparison.ranking[:_MOST_IN_REPORT]}
    each = evaluate_each(
        Predictions.stack(best),
        labels,
        metrics=list(dict.fromkeys([metric, "accuracy"])),
        missing="ignore",
        unknown="ignore",
        unknown_class="ignore",
        **settings,
    )
    write_report(
        path,
        each,
        labels,
        comparison=comparison,
        seed=settings["random_state"],
        settings=about,
        with_text=with_text,
    )


def _pairs(comparison: Comparison) -> list[tuple[Any, Any]]:
    """Each system with the next of the ranking, and the best with all others, as far as there is room."""
    ranking = comparison.ranking
    pairs = [(ranking[0], other) for other in ranking[1:]]
    pairs += pairwise(ranking[1:])
    return pairs[:_MOST_PAIRS]


def about_pairs(comparison: Comparison) -> list[dict[str, Any]]:
    """The differences for JSON."""
    return [
        {
            "a": str(a),
            "b": str(b),
            "prob_a_better": comparison.prob_better(a, b),
            "told_apart": comparison.is_significant(a, b),
            "difference": comparison.difference(a, b).to_dict(comparison.level),
        }
        for a, b in _pairs(comparison)
    ]


def about_slices(comparison: Comparison) -> dict[str, Any]:
    """Each system in each slice, and the first two of the ranking beside each other there, for JSON."""
    first, second = comparison.ranking[:2]
    slicing = comparison.by.slicing
    slices = []
    for (name, part), size in zip(comparison.by.items(), slicing.sizes.tolist(), strict=True):
        slices.append(
            {
                "slice": str(name),
                "n_items": size,
                "systems": {str(system): part[system].to_dict(comparison.level) for system in comparison.ranking},
                "prob_first_better": part.prob_better(first, second),
                "difference": part.difference(first, second).to_dict(comparison.level),
            }
        )
    return {"column": slicing.column, "first": str(first), "second": str(second), "slices": slices}


def show_slices(comparison: Comparison) -> None:
    """The first two of the ranking beside each other in each slice, for people."""
    about = about_slices(comparison)
    rows = [
        (
            one["slice"],
            f"{one['n_items']:,}",
            number(one["difference"]["mean"]),
            interval(one["difference"]["low"], one["difference"]["high"]),
            chance(one["prob_first_better"]),
        )
        for one in about["slices"]
    ]
    heading = f"{shown(about['first'])} minus {shown(about['second'])} by {about['column']}"
    print_table((heading, "items", "mean", f"{level_words(comparison.level)} interval", "first is better"), rows)


def items_predicted(systems: Predictions, labels: Labels) -> dict[str, int]:
    """How many items of the votes each system has predicted."""
    return {
        str(one.name): one.n if one.items is None else int((labels.find_items(one.items) >= 0).sum())
        for one in systems.parts
    }


def on_judged_items(systems: Predictions, comparison: Comparison) -> Predictions:
    """The systems on the items that all were compared on, so that what is said of each fits the comparison."""
    import numpy as np

    if comparison.codes is None:
        return systems
    labels = comparison.labels
    judged = np.asarray((comparison.codes >= 0).all(axis=0))

    def kept(one: System) -> System:
        if one.items is None:
            return one
        where = labels.find_items(one.items)
        rows = np.flatnonzero((where >= 0) & judged[where])
        columns = {
            name: values[rows]
            for name in ("items", "codes", "probabilities", "scores")
            if (values := getattr(one, name)) is not None
        }
        return replace(one, n=len(rows), **columns)

    return replace(systems, parts=tuple(kept(one) for one in systems.parts))


def show_comparison(comparison: Comparison, predicted: Mapping[str, int]) -> None:
    """The ranking and the differences for people."""
    ranking, level = comparison.ranking, comparison.level
    first, second = ranking[0], ranking[1]
    sure = "and is better than" if comparison.is_significant(first, second) else "but may be no better than"
    if comparison.refused:
        say(f"{shown(first)} comes first of {len(ranking)} by {comparison.metric}, but checked items contradict that.")
    else:
        say(
            f"{shown(first)} is the best of {len(ranking)} by {comparison.metric} with probability "
            f"{chance(comparison.prob_best[first])}, {sure} "
            f"{shown(second)} ({level_words(level)} interval)."
        )
    ranks = []
    for rank, system in enumerate(ranking, start=1):
        estimate = comparison[system]
        bounds = interval(*estimate.interval(level))
        best = "–" if comparison.refused else chance(comparison.prob_best[system])
        ranks.append((rank, system, number(estimate.mean), bounds, best))
    say(f"This rests on {comparison.answer_in_words()}.")
    columns = (("rank", "right"), ("system", "left"), comparison.metric, f"{level_words(level)} interval", "best with")
    print_table(columns, ranks)
    rows = []
    for a, b in _pairs(comparison):
        difference = comparison.difference(a, b)
        bounds = interval(*difference.interval(level))
        better = "–" if comparison.refused else chance(comparison.prob_better(a, b))
        rows.append((f"{shown(a)} minus {shown(b)}", number(difference.mean), bounds, better))
    print_table(("difference", "mean", f"{level_words(level)} interval", "first is better"), rows)
    say(f"{comparison.n_items:,} items; noise {comparison.noise}, target {comparison.target}.")
    if set(predicted.values()) != {comparison.n_items}:
        some = [f"{shown(system)} {predicted[str(system)]:,}" for system in ranking[:_MOST_PAIRS]]
        say(
            f"Items with votes that each has predicted: {', '.join(some)}{', …' if len(ranking) > _MOST_PAIRS else ''}."
        )
