"""What metrics would be if the majority of votes were the truth: what is reported today, beside what trueup says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from trueup.metrics import FunctionMetric, Metric, ScoreMetric, as_metric, get_score_metric

if TYPE_CHECKING:
    from trueup.evaluation import Evaluation
    from trueup.labels import Labels

__all__ = ["AnyMetric", "finite", "majority_codes", "majority_values", "metric_of"]

AnyMetric = Metric | ScoreMetric | FunctionMetric
Codes = npt.NDArray[np.int64]


def finite(value: Any) -> float | None:
    """A number as JSON has it, None where there is none."""
    number = float(value)
    return number if math.isfinite(number) else None


def majority_values(evaluation: Evaluation, labels: Labels) -> dict[str, float | None]:
    """Each metric of an evaluation with the majority vote for the truth; None where it is undefined.

    Gold is taken for the truth where there is some. Of tied classes each has its part of an item in a confusion
    matrix; metrics of scores and functions need one of them, which is drawn, always the same way.
    """
    counts = _majority_counts(labels, evaluation.problem.predictions)
    found = {}
    for name in evaluation.metrics:
        metric = metric_of(evaluation, name)
        if isinstance(metric, Metric):
            found[name] = finite(metric(counts))
        else:
            found[name] = _dirty_output(evaluation, labels, metric)
    return found


def majority_codes(labels: Labels) -> Codes:
    """The class that most votes name, gold where it is known, -1 for none; ties are drawn, always the same way."""
    votes = labels.answer_counts[:, : labels.n_classes]
    order = np.random.default_rng(0).random(votes.shape)
    codes = np.where(votes == votes.max(axis=1, keepdims=True), order, -1.0).argmax(axis=1)
    codes = np.where(votes.max(axis=1) > 0, codes, -1)
    return np.where(labels.gold_codes >= 0, labels.gold_codes, codes).astype(np.int64)


def metric_of(evaluation: Evaluation, name: str) -> AnyMetric:
    """The metric behind a name of an evaluation."""
    if name in evaluation.functions:
        return evaluation.functions[name]
    of_scores = get_score_metric(name, len(evaluation.classes))
    if of_scores is not None:
        return of_scores
    return as_metric(name, evaluation.classes.tolist(), positive=evaluation.classes[evaluation.positive])


def _majority_counts(labels: Labels, predictions: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Confusion counts with the majority vote as the truth, ties in equal parts; `majority` without its bootstrap."""
    votes = labels.answer_counts[:, : labels.n_classes]
    first = (votes == votes.max(axis=1, keepdims=True)) & (votes > 0)
    known = np.flatnonzero(labels.gold_codes >= 0)
    first[known] = False
    first[known, labels.gold_codes[known]] = True
    share = first / np.maximum(first.sum(axis=1, keepdims=True), 1)
    given = np.flatnonzero(predictions >= 0)
    counts = np.zeros((labels.n_classes, labels.n_classes))
    np.add.at(counts, predictions[given], share[given])
    return counts.T


def _dirty_output(evaluation: Evaluation, labels: Labels, metric: ScoreMetric | FunctionMetric) -> float | None:
    """A metric of scores or a function of labels with the majority vote as the truth."""
    truth = majority_codes(labels)
    predictions = evaluation.problem.predictions
    if isinstance(metric, FunctionMetric):
        both = (truth >= 0) & (predictions >= 0)
        if not both.any():
            return None
        return finite(metric.evaluate_draws(truth[None, both], predictions[both], classes=evaluation.classes)[0])
    outputs = _outputs(evaluation, metric)
    if outputs is None:
        return None
    both = (truth >= 0) & np.isfinite(outputs.reshape(len(truth), -1)).all(axis=1)
    if not both.any():
        return None
    return finite(metric.evaluate(truth[None, both], outputs[both], positive=evaluation.positive)[0])


def _outputs(evaluation: Evaluation, metric: ScoreMetric) -> npt.NDArray[np.float64] | None:
    aligned = getattr(evaluation.ranked, "aligned", None)
    probabilities = None if aligned is None or aligned.probabilities is None else np.asarray(aligned.probabilities[0])
    if metric.needs == "probabilities":
        return probabilities
    if evaluation.scores is not None:
        return evaluation.scores
    return None if probabilities is None else np.asarray(probabilities[:, evaluation.positive])
