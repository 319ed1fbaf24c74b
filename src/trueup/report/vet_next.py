"""Which items an expert should look at first, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._base.types import Codes, Floats
from trueup._base.wording import chance
from trueup.estimators.problem import class_posterior
from trueup.metrics import Metric, get_metric
from trueup.report.measures import metric_of
from trueup.report.sentences import metric_label, quoted, text

if TYPE_CHECKING:
    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.data.labels import Labels


_MOST = 12
_MOST_CLASSES = 60  # whose every cell is moved for derivatives; beyond, the accuracy stands for the metric
_STEP = 1e-4  # of an item, for derivatives


def vet_next_data(
    labels: Labels,
    evaluations: Mapping[str, Evaluation],
    comparison: Comparison | None,
    *,
    positive: int | None = None,
    with_text: bool = False,
) -> dict[str, Any] | None:
    r"""The items whose truth would move the answer most, with one sentence each.

    With :math:`g(y)` the change of the metric per item of class y predicted as this one is (a derivative in the
    confusion counts), the worth of vetting is the standard deviation of g under P(class) of the item. Where two
    systems are compared, g is that of the difference between the first two; `positive` is the code of the positive
    class of the comparison. What else is known of an item is told, texts only `with_text`.
    """
    found = _compared(labels, comparison, positive) if comparison is not None else None
    if found is None and evaluations:
        found = _evaluated(labels, next(iter(evaluations.items())))
    if found is None:
        return None
    about, truth, slopes, said = found
    mean = (truth * slopes).sum(axis=1)
    worth = np.sqrt(np.maximum((truth * (slopes - mean[:, None]) ** 2).sum(axis=1), 0.0))
    worth[labels.gold_codes >= 0] = 0.0
    order = np.argsort(-worth, kind="stable")[:_MOST]
    order = order[worth[order] > 1e-6 / max(len(worth), 1)]  # less is the error of the derivatives
    if not len(order):
        return None
    columns = [name for name in labels.item_columns if with_text or name not in labels.text_columns]
    return {
        "about": about,
        "rows": [
            {
                "item": text(labels.items[i]),
                "known": {text(name): text(labels.item_column(name)[i]) for name in columns},
                "moves": float(worth[i]),
                "why": _why(labels, int(i), truth[i], {name: codes[i] for name, codes in said.items()}),
            }
            for i in order
        ],
    }


def _evaluated(labels: Labels, system: tuple[str, Evaluation]) -> tuple[str, Floats, Floats, dict[str, Codes]] | None:
    name, evaluation = system
    metrics = [metric_of(evaluation, wanted) for wanted in evaluation.metrics]
    counted = [metric for metric in metrics if metric.needs == "counts"]
    few = len(evaluation.classes) <= _MOST_CLASSES
    metric = counted[0] if counted and few else get_metric("accuracy", evaluation.classes.tolist())
    codes = evaluation.problem.predictions
    truth = evaluation.solution.truth
    if truth is None:
        truth = class_posterior(evaluation.problem, evaluation.solution.confusion)
    return metric_label(metric.name), truth, _slopes(metric, truth, codes), {name: codes}


def _compared(
    labels: Labels, comparison: Comparison, positive: int | None
) -> tuple[str, Floats, Floats, dict[str, Codes]] | None:
    """The same for the difference of the two systems at the top."""
    if comparison.codes is None or len(comparison) < 2:
        return None
    few = len(labels.classes) <= _MOST_CLASSES
    try:
        classes = labels.classes.tolist()
        wanted = None if positive is None else classes[positive]
        counted = get_metric(comparison.metric if few else "accuracy", classes, positive=wanted)
    except ValueError:
        return None
    if counted.needs != "counts":
        return None
    first, second = comparison.ranking[:2]
    places = {system: k for k, system in enumerate(comparison.systems.tolist())}
    said = {text(system): comparison.codes[places[system]] for system in (first, second)}
    truth = comparison.truth.posterior
    mine, other = (_slopes(counted, truth, codes) for codes in said.values())
    about = f"the difference in {metric_label(counted.name)} between {quoted(first)} and {quoted(second)}"
    return about, truth, mine - other, said


def _slopes(metric: Metric, truth: Floats, codes: Codes) -> Floats:
    """How the metric changes with the class of each item, shape (n_items, n_classes); 0 without a prediction."""
    n_classes = truth.shape[1]
    given = np.flatnonzero(codes >= 0)
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts.T, codes[given], truth[given])
    if metric.name == "accuracy":
        gradient = (np.eye(n_classes) - np.trace(counts) / max(counts.sum(), 1.0)) / max(counts.sum(), 1.0)
    else:
        # Upwards only: a count cannot fall below zero, and many cells are empty.
        step = _STEP * np.eye(n_classes * n_classes).reshape(-1, n_classes, n_classes)
        gradient = (metric(counts + step) - metric(counts)) / _STEP
        gradient = np.nan_to_num(gradient).reshape(n_classes, n_classes)
    slopes = np.zeros(truth.shape)
    slopes[given] = gradient.T[codes[given]]
    return slopes


def _why(labels: Labels, item: int, truth: Floats, said: Mapping[str, int]) -> str:
    names = labels.classes.tolist()
    votes = labels.answer_counts[item, : labels.n_classes]
    total = int(votes.sum())
    parts = []
    if total:
        top = np.argsort(-votes, kind="stable")[:3]
        told = ", ".join(f"{int(votes[y])} for {quoted(names[y], 30)}" for y in top if votes[y] > 0)
        rest = total - int(votes[top].sum())
        told += f", {rest} for others" if rest > 0 else ""
        parts.append(f"{total} vote{'s' if total > 1 else ''}: {told}")
    else:
        parts.append("No votes")
    given = {name: code for name, code in said.items() if code >= 0}
    if len(given) == 1:
        parts.append(f"the system says {quoted(names[next(iter(given.values()))], 30)}")
    else:
        parts += [f"{quoted(name, 30)} says {quoted(names[code], 30)}" for name, code in given.items()]
    likely = np.argsort(-truth, kind="stable")[:2]
    chances = " and ".join(f"{quoted(names[y], 30)} with {chance(truth[y])}" for y in likely)
    return f"{'; '.join(parts)}. The truth is {chances}."
