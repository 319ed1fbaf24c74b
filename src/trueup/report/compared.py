"""Several systems side by side, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.exceptions import TrueupError
from trueup.metrics import get_metric
from trueup.report.measures import depends_on_positive, finite
from trueup.report.sentences import judged_words, metric_label, text

if TYPE_CHECKING:
    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation


__all__ = ["comparison_data", "positive_of"]

_LOOKED_AT = 200  # draws that tell which class is the positive one
_NEAR = 0.002  # closer than this, values do not tell
_ALL_PAIRS = 6  # of more systems, only the first is held against each of the others


def positive_of(comparison: Comparison, evaluations: Mapping[str, Evaluation]) -> int | None:
    """The code of the positive class of a comparison of two classes; None where there is none or it cannot be told.

    A comparison does not keep it. So it is the class with which the metric of the drawn truths comes nearest to the
    comparison's own values; where both do, or for a metric of scores, the class of the evaluations.
    """
    labels = comparison.labels
    if labels.n_classes != 2:
        return None
    given = [evaluation.positive for evaluation in evaluations.values()]
    first = given[0] if given and len(set(given)) == 1 else None
    if comparison.codes is None:
        return first
    order = (0, 1) if first == 0 else (1, 0)
    classes = labels.classes.tolist()
    try:
        metrics = [get_metric(comparison.metric, classes, positive=classes[code]) for code in order]
    except TrueupError:  # a function
        return None
    if metrics[0].looks_at != "classes":
        return first
    if not all(depends_on_positive(metric, comparison.metric, classes) for metric in metrics):
        return None
    truths = comparison.truth.truths[:_LOOKED_AT]
    away = [sum(_distance(m, truths, comparison, k) for k in range(len(comparison))) for m in metrics]
    return order[0] if away[0] <= away[1] + _NEAR else order[1]


def _distance(metric: Any, truths: Any, comparison: Comparison, system: int) -> float:
    """How far the metric of one system, averaged over draws, is from the comparison's own."""
    codes = comparison.codes[system]  # type: ignore[index]
    given = codes >= 0
    cells = 2 * truths[:, given] + codes[given]
    counts = np.stack([(cells == cell).sum(axis=1) for cell in range(4)], axis=1).reshape(-1, 2, 2)
    values = metric(counts.astype(float))
    if np.isnan(values).all() or np.isnan(comparison.means[system]):
        return 0.0
    return float(abs(np.nanmean(values) - comparison.means[system]))


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
        "told_apart": comparison.told_apart(a, b),
    }
