"""What was measured of one system: metrics, densities, confusion matrix and curves, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.evaluation import Evaluation
from trueup.data.labels import Labels
from trueup.estimators.published.practice import shared_counts
from trueup.exceptions import TrueupError
from trueup.metrics import Metric, get_metric
from trueup.noise.majority import majority_codes, majority_shares
from trueup.posteriors import Estimate
from trueup.reliability.agreement import agreement
from trueup.report.sentences import metric_label, plain, text

if TYPE_CHECKING:
    from trueup.reliability import Agreement


_UNEVEN = np.array([[5.0, 3.0], [1.0, 8.0]])  # counts for which every metric differs between the two classes
_POINTS = 96  # of a density
_MOST_ATOMS = 120
_THRESHOLDS = 25
_MOST_CELLS = 12  # confusions that are listed
_MOST_CLASSES = 60  # whose whole matrix is kept


_AS_THEY_ARE = ("n_items", "method", "target", "level", "refused", "basis", "n_checked")  # of an evaluation


def _rounded(values: Any, digits: int = 5) -> list[float | None]:
    """Coordinates of a picture; more digits would only make the file long."""
    return [None if not math.isfinite(v) else float(f"{v:.{digits}g}") for v in np.asarray(values, float).tolist()]


def system_data(name: str, evaluation: Evaluation, *, with_pictures: bool) -> dict[str, Any]:
    """Everything a report says of one system."""
    dirty = majority_values(evaluation, evaluation.labels)
    metrics = []
    for wanted in evaluation.metrics:
        metric, estimate = evaluation.metric(wanted), evaluation[wanted]
        metrics.append(
            {
                **estimate.to_dict(evaluation.level),
                "name": text(wanted),
                "label": metric_label(wanted),
                "description": text(metric.description),
                "higher_is_better": metric.higher_is_better,
                "bounds": [finite(b) for b in estimate.bounds],
                "dirty": dirty[wanted],
                "density": _density(estimate) if with_pictures else None,
            }
        )
    first, step = next(iter(evaluation.metrics), "accuracy"), evaluation.next_step()
    named = first.replace("_", " ")
    return {
        **{name: getattr(evaluation, name) for name in _AS_THEY_ARE},
        "name": text(name),
        "positive": text(evaluation.classes[evaluation.positive]) if len(evaluation.classes) == 2 else None,
        "positive_metrics": [
            metric_label(one)
            for one in evaluation.metrics
            if depends_on_positive(evaluation.metric(one), one, evaluation.classes.tolist())
        ],
        "noise": text(evaluation.noise),
        "rests_on": evaluation.answer_in_words(),
        "metrics": metrics,
        "vettings": {str(n): finite(width) for n, width in evaluation.vettings.items()},
        "next_step": step and step.replace(f"the {named} ", f"the {metric_label(first)} ", 1),
        "confusion": _confusion(evaluation) if with_pictures else None,
        "curves": _curves(evaluation) if with_pictures else [],
        "diagnostics": {key: finite(value) for key, value in evaluation.diagnostics.items()},
    }


def depends_on_positive(metric: Metric, name: str, classes: Sequence[Any]) -> bool:
    """Whether it matters which of two classes is the positive one."""
    if len(classes) != 2 or metric.needs != "counts":
        return metric.needs == "scores" and len(classes) == 2
    values = [float(get_metric(name, classes, positive=c)(_UNEVEN)) for c in classes]
    return values[0] != values[1]


def _density(estimate: Estimate) -> dict[str, Any] | None:
    """The distribution as points of a line, or as bars where there are few values."""
    if not math.isfinite(estimate.mean) or not math.isfinite(estimate.std):
        return None
    atoms = getattr(estimate, "support", None)
    if estimate.std == 0:
        return {"kind": "bars", "x": _rounded([estimate.mean]), "y": [1.0]}
    ends = estimate.ppf([0.0005, 0.9995])
    if atoms is not None and ((atoms >= ends[0]) & (atoms <= ends[1])).sum() <= _MOST_ATOMS:
        x = atoms[(atoms >= ends[0]) & (atoms <= ends[1])]
        return {"kind": "bars", "x": _rounded(x), "y": _rounded(estimate.pdf(x), 4)}
    x = np.linspace(ends[0], ends[1], _POINTS)
    smoothed = getattr(estimate, "smoothed", None)
    height = estimate.pdf(x) if smoothed is None else np.interp(x, *smoothed())
    return {"kind": "line", "x": _rounded(x), "y": _rounded(height, 4)}


def _confusion(evaluation: Evaluation) -> dict[str, Any]:
    """Expected counts (shares, for a population); the intervals of all cells, or of the biggest confusions."""
    confusion = evaluation.confusion
    mean, names = confusion.mean, [text(c) for c in evaluation.classes.tolist()]
    wrong = mean.copy()
    np.fill_diagonal(wrong, -1.0)
    order = [divmod(int(k), len(names)) for k in np.argsort(-wrong, axis=None, kind="stable")[:_MOST_CELLS]]
    biggest = [(y, p) for y, p in order if y != p and mean[y, p] > 0]
    whole = len(names) <= 12
    cells = [(y, p) for y in range(len(names)) for p in range(len(names))] if whole else biggest
    ends = {cell: confusion.counts.cell(*cell).interval(evaluation.level) for cell in cells}
    shares = confusion.conditional
    return {
        "unit": "share" if evaluation.target == "population" else "items",
        "level": evaluation.level,
        "classes": names,
        "mean": [[finite(v) for v in row] for row in mean] if len(names) <= _MOST_CLASSES else None,
        "low": [[finite(ends[y, p][0]) for p in range(len(names))] for y in range(len(names))] if whole else None,
        "high": [[finite(ends[y, p][1]) for p in range(len(names))] for y in range(len(names))] if whole else None,
        "biggest": [
            {
                "truth": names[y],
                "prediction": names[p],
                "mean": finite(mean[y, p]),
                "low": finite(ends[y, p][0]),
                "high": finite(ends[y, p][1]),
                "share": finite(shares[y, p]),
            }
            for y, p in biggest
        ],
    }


def _curves(evaluation: Evaluation) -> list[dict[str, Any]]:
    if evaluation.scores is None or len(evaluation.classes) != 2:
        return []
    curves = []
    for kind in ("roc", "pr"):
        curve = evaluation.curve(kind, n_thresholds=_THRESHOLDS)
        if np.isnan(curve.y_interval).all():  # of models that are not believed there is no band to show
            continue
        order = np.argsort(curve.x, kind="stable")
        curves.append(
            {
                "kind": kind,
                "level": curve.level,
                "x": _rounded(curve.x[order]),
                "y": _rounded(curve.y[order]),
                "low": _rounded(curve.y_interval[order, 0]),
                "high": _rounded(curve.y_interval[order, 1]),
            }
        )
    return curves


def finite(value: Any) -> float | None:
    """A number as JSON has it, None where there is none."""
    number = float(value)
    return number if math.isfinite(number) else None


def majority_values(evaluation: Evaluation, labels: Labels) -> dict[str, float | None]:
    """Each metric of an evaluation with the majority vote for the truth; None where it is undefined."""
    shares, population = majority_shares(labels), evaluation.task.population
    if population is not None and population.weights is not None:
        shares = shares * population.weights[:, None]
    counts = shared_counts(shares, evaluation.problem.predictions)
    found = {}
    for name in evaluation.metrics:
        metric = evaluation.metric(name)
        if metric.needs == "counts":
            found[name] = finite(metric(counts))
        else:
            found[name] = _dirty_output(evaluation, labels, metric)
    return found


def _dirty_output(evaluation: Evaluation, labels: Labels, metric: Metric) -> float | None:
    """A metric of scores or a function of labels with the majority vote as the truth."""
    truth = majority_codes(labels)
    predictions = evaluation.problem.predictions
    if metric.needs == "labels":
        both = (truth >= 0) & (predictions >= 0)
        if not both.any():
            return None
        return finite(metric.of_labels(truth[None, both], predictions[both], classes=evaluation.classes)[0])
    prepared = evaluation.task.outputs.prepared_for(metric.looks_at, positive=evaluation.positive)
    table = prepared.scores if metric.needs == "scores" else prepared.probabilities
    if table is None:
        return None
    outputs = np.asarray(table[0])
    if metric.of_system is not None:  # of detections, which needs all items: those without votes are no objects
        own = metric.for_system(evaluation.task.outputs.systems[0])
        known = np.where(truth >= 0, truth, 1 - evaluation.positive)
        return finite(own.of_outputs(known[None], outputs, positive=evaluation.positive)[0])
    both = (truth >= 0) & np.isfinite(outputs.reshape(len(truth), -1)).all(axis=1)
    if not both.any():
        return None
    return finite(metric.of_outputs(truth[None, both], outputs[both], positive=evaluation.positive)[0])


# ------------------ How far labelers agree: a page, and the few lines of it that every report has.

_MOST_VOTES = 200_000  # of a report that is about something else


def agreement_report(answer: Agreement) -> dict[str, Any]:
    """All that the page says, as a dict that JSON can hold."""
    data = answer.to_dict()
    return {
        "format": 1,
        "page": "agreement",
        "title": "Do the labelers agree?",
        **data,
        "verdict": [plain(data["sentence"])],
        "notes": [plain(note) for note in data["notes"]],
        "n_votes": answer.labels.n_votes,
    }


def agreement_data(labels: Labels) -> Mapping[str, Any] | None:
    """What every report says of agreement; None where no two labelers voted on an item."""
    if labels.n_votes > _MOST_VOTES:
        labels = labels.select(items=labels.items[:: -(-labels.n_votes // _MOST_VOTES)])
    try:
        answer = agreement(labels)
    except TrueupError:
        return None
    shown = [name for name in ("percent", "alpha", "ac1") if name in answer]
    return {
        "sentence": plain(answer.sentence),
        "coefficients": {name: answer[name].to_dict(answer.level) for name in shown},
    }
