"""Evaluations of one system or several for a command: made, checked against limits, shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from trueup.cli._console import complain, interval, number, print_table, progress_bar, say, shown
from trueup.cli._reading import key_and_value
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trueup.evaluation import Evaluation
    from trueup.labels import Labels
    from trueup.noise import IndependenceCheck
    from trueup.posteriors import Estimate
    from trueup.predictions import Predictions

__all__ = ["Limit", "about_independence", "evaluate_each", "limits", "majority_values", "show_evaluation", "warn_once"]


@dataclass(frozen=True)
class Limit:
    """A bound that a metric must not surely be beyond."""

    metric: str
    value: float
    side: Literal["below", "above"]

    def finding(self, estimate: Estimate, level: float, *, who: str) -> str | None:
        """A sentence if the whole interval lies beyond the bound, else None."""
        low, high = estimate.interval(level)
        if math.isnan(low):
            raise InvalidParameter(
                f"--fail-{self.side} needs an interval, got none for {self.metric} of {who}; use --method bayes, or a "
                "metric that is defined on these items"
            )
        if not (high < self.value if self.side == "below" else low > self.value):
            return None
        return (
            f"{self.metric} of {who} is surely {self.side} {self.value:g}: the {level:.0%} interval is "
            f"{interval(low, high)}"
        )


def limits(below: Sequence[str], above: Sequence[str]) -> list[Limit]:
    """The bounds of ``--fail-below`` and ``--fail-above``, each ``METRIC=VALUE``."""
    found = []
    sides: tuple[tuple[Literal["below", "above"], Sequence[str]], ...] = (("below", below), ("above", above))
    for side, texts in sides:
        for text in texts:
            metric, value = key_and_value(text, option=f"--fail-{side}")
            try:
                bound = float(value)
            except ValueError:
                bound = math.nan
            if math.isnan(bound):
                raise InvalidParameter(f"--fail-{side} takes METRIC=NUMBER, got {text!r}; write e.g. accuracy=0.9")
            found.append(Limit(metric, bound, side))
    return found


def evaluate_each(predictions: Predictions, labels: Labels, **settings: Any) -> dict[str, Evaluation]:
    """Each system judged by itself; `settings` as `trueup.evaluate` has them."""
    from trueup._evaluate import evaluate

    found = {}
    names = predictions.systems.tolist()
    for k, name in enumerate(names):
        what = "evaluating" if len(names) == 1 else f"evaluating {name} ({k + 1} of {len(names)})"
        with progress_bar(what) as hear:
            found[str(name)] = evaluate(predictions[name], labels, progress=hear, **settings)
    return found


def majority_values(evaluation: Evaluation, labels: Labels) -> dict[str, float]:
    """What the metrics would be with the majority of votes for the truth; those of scores are left out."""
    from trueup.estimators import majority
    from trueup.metrics import Metric, as_metric, get_score_metric

    predicted = evaluation.problem.predictions
    counts = majority(labels, predicted, ties="split", random_state=0).counts.mean_counts
    found = {}
    for name in evaluation.metrics:
        if get_score_metric(name, labels.n_classes) is not None:
            continue
        metric = as_metric(name, labels.classes.tolist(), positive=labels.classes[evaluation.positive])
        if isinstance(metric, Metric):
            found[name] = float(metric(counts))
    return found


def show_evaluation(name: str | None, evaluation: Evaluation, labels: Labels, majority: Mapping[str, float]) -> None:
    """A sentence and a table for people."""
    who = "" if name is None else f"{shown(name)}: "
    first = evaluation.metrics[0]
    low, high = evaluation[first].interval(evaluation.level)
    where = "on these items" if evaluation.target == "sample" else "on items like these"
    if math.isnan(low):
        say(f"{who}{first} is {number(evaluation[first].mean)} {where}; this method gives no interval.")
    else:
        dirty = f"; the majority of votes as truth would say {majority[first]:.3f}" if first in majority else ""
        say(f"{who}{first} is between {low:.3f} and {high:.3f} {where} ({evaluation.level:.0%} interval){dirty}.")
    rows = []
    for metric in evaluation.metrics:
        estimate = evaluation[metric]
        bounds = interval(*estimate.interval(evaluation.level))
        rows.append((metric, number(estimate.mean), bounds, number(majority.get(metric))))
    print_table(("metric", "estimate", f"{evaluation.level:.0%} interval", "majority as truth"), rows)
    say(
        f"{evaluation.n_items:,} predictions, {labels.n_votes:,} votes of {labels.n_labelers:,} labelers; method "
        f"{evaluation.method}, noise {evaluation.noise}."
    )


def warn_once(groups: Sequence[Sequence[str]]) -> None:
    """The warnings of several results, each sentence once, on standard error."""
    for sentence in dict.fromkeys(sentence for group in groups for sentence in group):
        complain(sentence, kind="warning")


def about_independence(found: IndependenceCheck | None) -> dict[str, Any] | None:
    """The check of independence for JSON."""
    if found is None:
        return None
    return {
        "ratio": found.ratio,
        "p_value": found.p_value,
        "dependent": found.dependent,
        "sentence": found.sentence,
    }
