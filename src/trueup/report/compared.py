"""Several systems side by side, as plain data."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from trueup.report.measures import depends_on_positive, finite
from trueup.report.sentences import judged_words, metric_label, text

if TYPE_CHECKING:
    from trueup.answers.comparison import Comparison


_ALL_PAIRS = 6  # of more systems, only the first is held against each of the others


def positive_of(comparison: Comparison) -> int | None:
    """The code of the positive class of a comparison; None where the metric does not depend on it."""
    classes = comparison.classes.tolist()
    return comparison.positive if depends_on_positive(comparison.measure, comparison.metric, classes) else None


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Ranking, chances to be the best, and differences with their intervals."""
    level, ranking = comparison.level, comparison.ranking
    pairs = list(combinations(ranking, 2)) if len(ranking) <= _ALL_PAIRS else [(ranking[0], s) for s in ranking[1:]]
    return {
        "metric": text(comparison.metric),
        "label": metric_label(comparison.metric),
        "higher_is_better": comparison.higher_is_better,
        "target": comparison.target,
        "noise": text(comparison.noise),
        "level": level,
        "n_items": comparison.n_items,
        "basis": comparison.basis,
        "rests_on": comparison.answer_in_words(),
        "refused": comparison.refused,
        "judged": judged_words(comparison.n_items, comparison.labels.n_items),
        "systems": [
            {
                **comparison[system].to_dict(level),
                "system": text(system),
                "rank": place + 1,
                "prob_best": comparison.prob_best[system],
                "regret": finite(comparison.regret_of(system)),
            }
            for place, system in enumerate(ranking)
        ],
        "pairs": [_pair(comparison, a, b) for a, b in pairs],
        "groups": [[text(system) for system in group] for group in comparison.groups],
        "expected_regret": finite(comparison.expected_regret),
    }


def _pair(comparison: Comparison, a: Any, b: Any) -> dict[str, Any]:
    difference = comparison.difference(a, b)
    low, high = difference.interval(comparison.level)
    return {
        "a": text(a),
        "b": text(b),
        "mean": finite(difference.mean),
        "low": finite(low),
        "high": finite(high),
        "prob_a_better": comparison.prob_better(a, b),
        "told_apart": comparison.is_significant(a, b),
    }
