"""trueup compare: which system is better, and how sure is that?"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli._console import chance, interval, level_words, number, print_table, say, shown
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
from trueup.cli._reading import unbundled
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.answers.comparison import Comparison
    from trueup.data.labels import Labels
    from trueup.data.predictions import Predictions
    from trueup.data.systems import System


__all__ = [
    "about_pairs",
    "compare",
    "findings_about",
    "items_predicted",
    "named_pairs",
    "on_judged_items",
    "show_comparison",
]

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
    noise: Noise = "clusters",
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
    from trueup.answers.compare import compare as judge_all
    from trueup.cli._app import command_line, fail_on, options_said
    from trueup.cli._console import in_our_words, print_json, progress_bar
    from trueup.cli._reading import about_files, check_one_stdin, check_overlap, class_named, read_systems, read_votes
    from trueup.cli._reporting import check_report_path, json_head
    from trueup.cli.evaluate import dependence, warn_once

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
    found = replace(found, warnings=tuple(map(in_our_words, found.warnings)))
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
            noise=(noise, "clusters"),
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
    from trueup.cli._reporting import write_report
    from trueup.cli.evaluate import evaluate_each
    from trueup.data.predictions import Predictions

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


_MOST_PAIRS = 20


def named_pairs(texts: Sequence[str], systems: Sequence[str], *, option: str) -> list[tuple[str, str]]:
    """The pairs of ``A:B``; a name may hold a colon itself, as long as one split only gives two systems.

    Examples
    --------
    >>> named_pairs(["v1:old:v2"], ["v1:old", "v2"], option="--fail-unless-better")
    [('v1:old', 'v2')]
    """
    from trueup._base.validation import preview

    found = []
    for text in texts:
        parts = text.split(":")
        splits = [(":".join(parts[:k]), ":".join(parts[k:])) for k in range(1, len(parts))]
        fitting = [(a, b) for a, b in splits if a in systems and b in systems and a != b]
        if len(fitting) != 1:
            raise InvalidParameter(
                f"{option} takes the names of two systems as A:B, got {text!r}; the systems are "
                f"{preview(list(systems), most=10)}"
            )
        found += fitting
    return found


def findings_about(
    comparison: Comparison, *, better: Sequence[tuple[str, str]], worse: Sequence[tuple[str, str]]
) -> list[str]:
    """A sentence for each pair where the first is not surely better, or is surely worse."""
    by_text = {str(name): name for name in comparison.systems.tolist()}
    found = []
    for pairs, wanted in ((better, True), (worse, False)):
        for a, b in pairs:
            low, high = comparison.difference(by_text[a], by_text[b]).interval(comparison.level)
            if not comparison.higher_is_better:
                low, high = -high, -low
            sure = low > 0 if wanted else high < 0
            if sure != wanted:
                better_with = chance(comparison.prob_better(by_text[a], by_text[b]))
                found.append(
                    f"{a!r} is {'not surely better' if wanted else 'surely worse'} than {b!r} by {comparison.metric}: "
                    f"better with probability {better_with}, and it gains {interval(low, high)} "
                    f"({level_words(comparison.level)} interval)"
                )
    return found


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
            "told_apart": comparison.told_apart(a, b),
            "difference": comparison.difference(a, b).to_dict(comparison.level),
        }
        for a, b in _pairs(comparison)
    ]


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
    sure = "and is told apart from" if comparison.told_apart(first, second) else "but cannot be told apart from"
    say(
        f"{shown(first)} is the best of {len(ranking)} by {comparison.metric} with probability "
        f"{chance(comparison.prob_best[first])}, {sure} "
        f"{shown(second)} ({level_words(level)} interval)."
    )
    ranks = []
    for rank, system in enumerate(ranking, start=1):
        estimate = comparison[system]
        bounds = interval(*estimate.interval(level))
        ranks.append((rank, system, number(estimate.mean), bounds, chance(comparison.prob_best[system])))
    columns = (("rank", "right"), ("system", "left"), comparison.metric, f"{level_words(level)} interval", "best with")
    print_table(columns, ranks)
    rows = []
    for a, b in _pairs(comparison):
        difference = comparison.difference(a, b)
        bounds = interval(*difference.interval(level))
        better = chance(comparison.prob_better(a, b))
        rows.append((f"{shown(a)} minus {shown(b)}", number(difference.mean), bounds, better))
    print_table(("difference", "mean", f"{level_words(level)} interval", "first is better"), rows)
    say(f"{comparison.n_items:,} items; noise {comparison.noise}, target {comparison.target}.")
    if set(predicted.values()) != {comparison.n_items}:
        some = [f"{shown(system)} {predicted[str(system)]:,}" for system in ranking[:_MOST_PAIRS]]
        say(
            f"Items with votes that each has predicted: {', '.join(some)}{', …' if len(ranking) > _MOST_PAIRS else ''}."
        )
