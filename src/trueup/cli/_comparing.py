"""A comparison for a command: pairs named by the user, findings about them, tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from trueup.cli._console import chance, interval, level_words, number, print_table, say, shown
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup._systems import System
    from trueup.comparison import Comparison
    from trueup.labels import Labels
    from trueup.predictions import Predictions

__all__ = ["about_pairs", "findings_about", "items_predicted", "named_pairs", "on_judged_items", "show_comparison"]

_MOST_PAIRS = 20


def named_pairs(texts: Sequence[str], systems: Sequence[str], *, option: str) -> list[tuple[str, str]]:
    """The pairs of ``A:B``; a name may hold a colon itself, as long as one split only gives two systems.

    Examples
    --------
    >>> named_pairs(["v1:old:v2"], ["v1:old", "v2"], option="--fail-unless-better")
    [('v1:old', 'v2')]
    """
    from trueup._validation import preview

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
