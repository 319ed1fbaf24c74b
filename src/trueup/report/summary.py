"""An evaluation as plain data: all that a report says, ready for JSON and for the templates."""

from __future__ import annotations

import math
import platform
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from itertools import combinations
from typing import Any

import numpy as np

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState
from trueup._base.wording import chance, some
from trueup.answers.comparison import Comparison
from trueup.answers.evaluation import Evaluation
from trueup.answers.notes import advice_on_dependence, dependence_of
from trueup.answers.prepare import Settings
from trueup.core.prior import CrowdPrior
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.estimators.problem import class_posterior
from trueup.estimators.published.practice import shared_counts
from trueup.estimators.truth import is_drawn
from trueup.exceptions import InvalidParameter, TrueupError, TrueupWarning, silenced_warnings
from trueup.labelers import rank
from trueup.metrics import Metric, get_metric
from trueup.noise import DawidSkene, IndependenceCheck, NoiseModel, effective_labelers
from trueup.noise.majority import majority_codes, majority_shares
from trueup.posteriors import Estimate
from trueup.reliability.agreement import Agreement, agreement
from trueup.report.sentences import (
    answer,
    is_unnamed,
    judged_words,
    metric_label,
    plain,
    plain_warnings,
    positive_words,
    quoted,
    text,
    title_for,
    verdict,
)

FORMAT = 1

# ------------------ What was measured of one system: metrics, densities, confusion matrix and curves.

_UNEVEN = np.array([[5.0, 3.0], [1.0, 8.0]])  # counts for which every metric differs between the two classes
_POINTS = 96  # of a density
_MOST_ATOMS = 120
_THRESHOLDS = 25
_MOST_CELLS = 12  # confusions that are listed
_MOST_CLASSES_OF_MATRIX = 60  # whose whole matrix is kept
_WITH_INTERVALS = 12  # classes

_AS_THEY_ARE = ("n_items", "method", "target", "level", "refused", "basis", "n_checked")  # of an evaluation


def _rounded(values: Any, digits: int = 5) -> list[float | None]:
    """Coordinates of a picture; more digits would only make the file long."""
    return [None if not math.isfinite(v) else float(f"{v:.{digits}g}") for v in np.asarray(values, float).tolist()]


def system_data(name: str, evaluation: Evaluation, n_items: int, *, with_pictures: bool) -> dict[str, Any]:
    """Everything a report says of one system, of `n_items` with votes."""
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
    classes = evaluation.classes.tolist()
    matters = [name for name in evaluation.metrics if depends_on_positive(evaluation.metric(name), name, classes)]
    first, step, rests_on = (
        next(iter(evaluation.metrics), "accuracy"),
        evaluation.next_step(),
        evaluation.answer_in_words(),
    )
    is_named, n_checked = evaluation.core is None, evaluation.n_checked
    return {
        **{name: getattr(evaluation, name) for name in _AS_THEY_ARE},
        "name": text(name),
        "positive": text(classes[evaluation.positive]) if len(classes) == 2 else None,
        "positive_metrics": list(map(metric_label, matters)),
        "noise": text(evaluation.noise),
        "rests_on": rests_on,
        "metrics": metrics,
        "answer": answer(metrics[0], rests_on, n_checked=n_checked, is_named=is_named, refused=evaluation.refused),
        "judged": judged_words(evaluation.n_items, n_items),
        "vettings": {str(n): finite(width) for n, width in evaluation.vettings.items()},
        "next_step": step and step.replace(f"the {first.replace('_', ' ')} ", f"the {metric_label(first)} ", 1),
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
    confusion, names = evaluation.confusion, [text(c) for c in evaluation.classes.tolist()]
    mean, shares, places = confusion.mean, confusion.conditional, range(len(names))
    wrong = mean.copy()
    np.fill_diagonal(wrong, -1.0)
    order = [divmod(int(k), len(names)) for k in np.argsort(-wrong, axis=None, kind="stable")[:_MOST_CELLS]]
    biggest = [(y, p) for y, p in order if y != p and mean[y, p] > 0]
    whole = len(names) <= _WITH_INTERVALS
    cells = [(y, p) for y in places for p in places] if whole else biggest
    ends = {cell: list(map(finite, confusion.counts.cell(*cell).interval(evaluation.level))) for cell in cells}
    low, high = ([[ends[y, p][k] for p in places] for y in places] if whole else None for k in (0, 1))
    return {
        "unit": "share" if evaluation.target == "population" else "items",
        "level": evaluation.level,
        "classes": names,
        "mean": [[finite(v) for v in row] for row in mean] if len(names) <= _MOST_CLASSES_OF_MATRIX else None,
        "low": low,
        "high": high,
        "biggest": [
            {
                "truth": names[y],
                "prediction": names[p],
                "mean": finite(mean[y, p]),
                **dict(zip(("low", "high"), ends[y, p], strict=True)),
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
        lines = {"x": curve.x, "y": curve.y, "low": curve.y_interval[:, 0], "high": curve.y_interval[:, 1]}
        shown = {name: _rounded(values[order]) for name, values in lines.items()}
        curves.append({"kind": kind, "level": curve.level, **shown})
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
    metrics = {name: evaluation.metric(name) for name in evaluation.metrics}
    return {
        name: finite(metric(counts)) if metric.needs == "counts" else _dirty_output(evaluation, labels, metric)
        for name, metric in metrics.items()
    }


def _dirty_output(evaluation: Evaluation, labels: Labels, metric: Metric) -> float | None:
    """A metric of scores or a function of labels with the majority vote as the truth."""
    truth, predictions, outputs = majority_codes(labels), evaluation.problem.predictions, evaluation.task.outputs
    if metric.needs == "labels":
        both = (truth >= 0) & (predictions >= 0)
        if not both.any():
            return None
        return finite(metric.of_labels(truth[None, both], predictions[both], classes=evaluation.classes)[0])
    prepared = outputs.prepared_for(metric.looks_at, positive=evaluation.positive)
    table = prepared.scores if metric.needs == "scores" else prepared.probabilities
    if table is None:
        return None
    values = np.asarray(table[0])
    both = (truth >= 0) & np.isfinite(values.reshape(len(truth), -1)).all(axis=1)
    if metric.of_system is not None:  # of detections, which needs all items: those without votes are no objects
        metric, both = metric.for_system(outputs.systems[0]), np.ones(len(truth), dtype=np.bool_)
        truth = np.where(truth >= 0, truth, 1 - evaluation.positive)
    if not both.any():
        return None
    return finite(metric.of_outputs(truth[None, both], values[both], positive=evaluation.positive)[0])


# ------------------ How far labelers agree: a page, and the few lines of it that every report has.

_MOST_VOTES_OF_AGREEMENT = 200_000  # of a report that is about something else


def agreement_report(answer: Agreement) -> dict[str, Any]:
    """All that the page says, as a dict that JSON can hold."""
    data = answer.to_dict()
    return {
        "format": FORMAT,
        "page": "agreement",
        "title": "Do the labelers agree?",
        **data,
        "verdict": [plain(data["sentence"])],
        "notes": [plain(note) for note in data["notes"]],
        "n_votes": answer.labels.n_votes,
    }


def agreement_data(labels: Labels) -> Mapping[str, Any] | None:
    """What every report says of agreement; None where no two labelers voted on an item."""
    if labels.n_votes > _MOST_VOTES_OF_AGREEMENT:
        labels = labels.select(items=labels.items[:: -(-labels.n_votes // _MOST_VOTES_OF_AGREEMENT)])
    try:
        answer = agreement(labels)
    except TrueupError:
        return None
    shown = [name for name in ("percent", "alpha", "ac1") if name in answer]
    return {
        "sentence": plain(answer.sentence),
        "coefficients": {name: answer[name].to_dict(answer.level) for name in shown},
    }


# ------------------ The people behind the votes: skill, bias, volume and spam of each; and whether they err together.

_MOST_VOTES = 20_000  # looked at: skill needs no more, and a page should not take longer than the evaluation
# Numbers in all confusion matrices: each sweep of a chain draws them, and each step of a fit with subtypes counts them.
_MOST_PARAMETERS = 30_000


def labeler_data(
    labels: Labels,
    *,
    level: float,
    seed: RandomState = None,
    model: NoiseModel | None = None,
    prior: CrowdPrior | None = None,
) -> dict[str, Any] | None:
    """One row a labeler, the best first; None where there are not two."""
    if labels.n_labelers < 2 or not labels.n_votes:
        return None
    part, notes = _part(labels)
    about: dict[str, Any] = {"level": level, "rows": [], "n_suspects": 0, "suspect_votes": 0, "n_votes": labels.n_votes}
    if _n_parameters(part) > _MOST_PARAMETERS:
        too_many = "There are too many labelers and classes to judge skill here; see trueup.labelers.rank."
        return {**about, "notes": [too_many]}
    named = model if model is not None and is_drawn(model) else None
    how: dict[str, Any] = {"noise": named, "prior": prior if named is None else None, "level": level}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrueupWarning)
        try:
            ranking = rank(part, random_state=int(seed) if isinstance(seed, int | np.integer) else 0, **how)
        except TrueupError:  # e.g. votes that say nothing of skill: the report does without the table
            return None
    for message in [*(w.message for w in caught if issubclass(w.category, TrueupWarning)), *ranking.warnings]:
        words = text(message).strip()
        notes.append(f"{words[:1].upper()}{words[1:].rstrip('.')}.")
    votes = dict(zip(labels.labelers.tolist(), labels.votes_per_labeler.tolist(), strict=True))
    rows: list[dict[str, Any]] = [
        {
            "labeler": text(row.labeler),
            "votes": int(votes[row.labeler]),
            "rank": list(row.rank),
            **{name: _ends(getattr(row, name), level) for name in ("accuracy", "information", "bias", "spam")},
            "bias_class": text(row.bias_class),
            "spam_probability": row.spam_probability,
        }
        for row in ranking
    ]
    suspects = [row["votes"] for row in rows if row["spam_probability"] > 0.5]
    about |= {"rows": rows, "n_suspects": len(suspects), "suspect_votes": sum(suspects)}
    return {**about, "notes": list(dict.fromkeys(notes))}


def _n_parameters(labels: Labels) -> int:
    """Numbers in the confusion matrices of all labelers."""
    return labels.n_labelers * labels.n_classes * labels.n_answers


def _part(labels: Labels) -> tuple[Labels, list[str]]:
    """These labels, or a random part of the items where there are many votes."""
    if labels.n_votes <= _MOST_VOTES:
        return labels, []
    chosen = np.random.default_rng(0).random(labels.n_items) < _MOST_VOTES / labels.n_votes
    chosen &= labels.votes_per_item > 0
    if not chosen.any():
        return labels, []
    part = labels.select(items=labels.items[chosen])
    part = part.select(labelers=part.labelers[part.votes_per_labeler > 0])
    n_left_out = labels.n_labelers - part.n_labelers
    more = f"; {n_left_out:,} labelers are not among them" if n_left_out else ""
    judged = f"Skill was judged on {part.n_items:,} of {labels.n_items:,} items, chosen at random, to save time"
    return part, [f"{judged}{more}."]


def _ends(estimate: Estimate, level: float) -> dict[str, float | None]:
    low, high = estimate.interval(level)
    return {"mean": finite(estimate.mean), "low": finite(low), "high": finite(high)}


def dependence_data(
    labels: Labels, check: IndependenceCheck | None, *, model: NoiseModel | None
) -> dict[str, Any] | None:
    """Whether labelers err together, what the panel is worth, and what to do."""
    if labels.n_labelers < 2 or not (labels.votes_per_item > 1).any():
        return None
    part, _ = _part(labels)
    panel = None
    with silenced_warnings(), suppress(TrueupError):  # warnings are among those of the evaluation
        # The default has subtypes, which would take minutes where there are many matrices.
        panel = effective_labelers(part, DawidSkene().fit(part) if _n_parameters(part) > _MOST_PARAMETERS else None)
    if check is None and panel is None:
        return None
    found = {name: getattr(check, name, None) for name in ("dependent", "ratio", "p_value", "sentence")}
    found |= {name: getattr(panel, name, None) for name in ("votes_per_item", "effective", "correlation")}
    found = {name: finite(value) if isinstance(value, float) else value for name, value in found.items()}
    if check is None:
        advice = ["The check was not made; leave `check_dependence` on to have it made."]
    elif not check.dependent:
        more = "" if labels.gold else " The check misses weak dependence, so a few checked items are still worth it."
        advice = [f"Nothing needs to be done about that.{more}"]
    else:
        more = "More votes of the same kind of labelers help little; votes of labelers who err differently help more."
        advice = [advice_on_dependence(labels, check, model), more]
    return {**found, "panel_sentence": getattr(panel, "sentence", None), "advice": advice}


# ------------------ Which items an expert should look at first, and why.

_MOST = 12
_MOST_CLASSES_OF_VET_NEXT = 60  # whose every cell is moved for derivatives; beyond, the accuracy stands for the metric
_STEP = 1e-4  # of an item, for derivatives


def vet_next_data(
    labels: Labels, evaluations: Mapping[str, Evaluation], comparison: Comparison | None, *, with_text: bool = False
) -> dict[str, Any] | None:
    """The items whose truth would move the answer most, with one sentence each."""
    found = _compared(comparison) if comparison is not None else None
    if found is None and evaluations:
        found = _evaluated(*next(iter(evaluations.items())))
    if found is None:
        return None
    about, truth, slopes, predicted = found
    mean = (truth * slopes).sum(axis=1)
    worth = np.sqrt(np.maximum((truth * (slopes - mean[:, None]) ** 2).sum(axis=1), 0.0))
    worth[labels.gold_codes >= 0] = 0.0
    order = np.argsort(-worth, kind="stable")[:_MOST]
    order = order[worth[order] > 1e-6 / max(len(worth), 1)]  # less is the error of the derivatives
    columns = [name for name in labels.item_columns if with_text or name not in labels.text_columns]

    def fact(value: Any) -> str:
        return f"{value:.6g}" if isinstance(value, float | np.floating) else text(value)

    rows = [
        {
            "item": text(labels.items[i]),
            "known": {text(name): fact(labels.item_column(name)[i]) for name in columns},
            "moves": float(worth[i]),
            "why": _why(labels, int(i), truth[i], {name: codes[i] for name, codes in predicted.items()}),
        }
        for i in order
    ]
    return {"about": about, "rows": rows} if rows else None


# What is moved, in words; the chances of the classes of items; by how much each class moves it; the predictions.
_Moves = tuple[str, Floats, Floats, dict[str, Codes]]


def _evaluated(name: str, evaluation: Evaluation) -> _Moves:
    metrics = [evaluation.metric(wanted) for wanted in evaluation.metrics]
    counted = [metric for metric in metrics if metric.needs == "counts"]
    few = len(evaluation.classes) <= _MOST_CLASSES_OF_VET_NEXT
    metric = counted[0] if counted and few else get_metric("accuracy", evaluation.classes.tolist())
    codes = evaluation.problem.predictions
    truth = evaluation.solution.truth if evaluation.core is None else evaluation.core.truth.posterior
    if truth is None:
        truth = class_posterior(evaluation.problem, evaluation.solution.confusion)
    about = metric_label(metric.name)
    if not counted and metrics:  # of scores: how far an item moves it is known of the accuracy alone
        about = f"{metric_label(next(iter(evaluation.metrics)))}, by what each item counts for in the accuracy"
    return about, truth, _slopes(metric, truth, codes), {name: codes}


def _compared(comparison: Comparison) -> _Moves | None:
    """The same for the difference of the two systems at the top."""
    if comparison.codes is None or len(comparison) < 2:
        return None
    few = len(comparison.classes) <= _MOST_CLASSES_OF_VET_NEXT
    counted = comparison.measure if few else get_metric("accuracy", comparison.classes.tolist())
    if counted.needs != "counts":
        return None
    first, second = comparison.ranking[:2]
    systems, truth = comparison.systems.tolist(), comparison.truth.posterior
    predicted = {text(system): comparison.codes[systems.index(system)] for system in (first, second)}
    higher, lower = (_slopes(counted, truth, codes) for codes in predicted.values())
    about = f"the difference in {metric_label(counted.name)} between {quoted(first)} and {quoted(second)}"
    return about, truth, higher - lower, predicted


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


def _why(labels: Labels, item: int, truth: Floats, predicted: Mapping[str, int]) -> str:
    names = [quoted(name, 30) for name in labels.classes.tolist()]
    votes = labels.answer_counts[item, : labels.n_classes]
    total, top = int(votes.sum()), np.argsort(-votes, kind="stable")[:3]
    shown = [f"{int(votes[y])} for {names[y]}" for y in top if votes[y] > 0]
    rest = total - int(votes[top].sum())
    shown += [f"{rest} for others"] if rest > 0 else []
    parts = [f"{some(total, 'vote')}: {', '.join(shown)}" if total else "No votes"]
    given = {name: names[code] for name, code in predicted.items() if code >= 0}
    if len(given) == 1:
        parts.append(f"the system says {next(iter(given.values()))}")
    else:
        parts += [f"{quoted(name, 30)} says {said}" for name, said in given.items()]
    chances = " and ".join(f"{names[y]} with {chance(truth[y])}" for y in np.argsort(-truth, kind="stable")[:2])
    return f"{'; '.join(parts)}. The truth is {chances}."


# ------------------ How to get the same numbers again: settings, versions, and the command or the calls in Python.

_PACKAGES = ("trueup", "numpy", "scipy", "scikit-learn", "numba", "narwhals", "jinja2")
_BY_COMMAND = "This command was run; on the same files and with the same versions it gives the same numbers."
_IN_PYTHON = (
    "These are the calls, with every argument that differs from its default. What was handed over as an object, such "
    "as a noise model or a function, has to be handed over again."
)


def reproduction_data(
    evaluations: Mapping[str, Evaluation],
    comparison: Comparison | None,
    *,
    seed: RandomState,
    settings: Mapping[str, Any] | None,
    unnamed: bool,
) -> dict[str, Any]:
    """Method, settings, versions, seed, and the command or else a snippet."""
    first = next(iter(evaluations.values()), None)
    main: Any = first if first is not None else comparison
    about = {text(key): plain_data(value) for key, value in (settings or {}).items()}
    command = about.pop("command", None)
    shown = main.seed if seed is None else seed
    versions = {}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "method": first.method if first is not None else "compare",
        "noise": text(main.noise),
        "target": main.target,
        "level": main.level,
        "seed": plain_data(shown),
        "settings": about,
        "python": platform.python_version(),
        "versions": versions,
        "seed_words": text(shown),
        "words": _IN_PYTHON if command is None else _BY_COMMAND,
        "command": None if command is None else text(command),
        "snippet": python_snippet(evaluations, comparison, unnamed=unnamed) if command is None else None,
    }


def plain_data(value: Any) -> Any:
    """A setting as JSON has it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {text(key): plain_data(v) for key, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        values = sorted(value, key=str) if isinstance(value, set | frozenset) else list(value)
        return [plain_data(v) for v in values]
    return text(value)


def python_snippet(evaluations: Mapping[str, Evaluation], comparison: Comparison | None, *, unnamed: bool) -> str:
    """The calls of `evaluate` and `compare`, from the settings that their answers keep."""
    calls = {text(name): arguments(evaluation.settings) for name, evaluation in evaluations.items()}
    begin, first = ["import trueup as tu", ""], next(iter(calls.values()), [])
    if unnamed:
        about = "# labels and predictions are those of the evaluation"
        call = ["evaluation = tu.evaluate(", "    predictions,", *first, ")", "print(evaluation)"]
        return "\n".join([*begin, about, *call])
    whose = "comparison" if not calls else "evaluation" if len(calls) == 1 and comparison is None else "evaluations"
    lines = [*begin, f"# labels are those of the {whose}; systems has the predictions of each system by name"]
    compared = set(calls) if comparison is None else set(map(text, comparison.systems.tolist()))
    if calls and compared == set(calls) and all(call == first for call in calls.values()):
        lines += ["evaluations = {", "    name: tu.evaluate(", "        system,"]
        lines += [f"    {line}" for line in first]
        lines += ["    )", "    for name, system in systems.items()", "}", "print(evaluations)"]
    elif calls:
        lines.append("evaluations = {}")
        for name, call in calls.items():
            lines += [f"evaluations[{name!r}] = tu.evaluate(", f"    systems[{name!r}],", *call, ")"]
        lines.append("print(evaluations)")
    if comparison is not None:
        lines += ["comparison = tu.compare(", "    systems,", *arguments(comparison.settings), ")"]
        lines.append("print(comparison)")
    return "\n".join(lines)


def arguments(settings: Settings) -> list[str]:
    """The labels and the arguments that differ from the defaults, a line each."""
    lines = ["    labels,"]
    for name, value in settings.changed().items():
        objects: list[str] = []
        code = _code(name, value, objects)
        remark = f"  # handed over again: {', '.join(objects)}" if objects else ""
        lines.append(f"    {name}={code},{remark}")
    return lines


def _code(name: str, value: Any, objects: list[str]) -> str:
    """A value as Python has it; an object is a name, which is added to `objects`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value) if not isinstance(value, float) or np.isfinite(value) else f"float({str(value)!r})"
    if isinstance(value, list | tuple):
        inside = [_code(name, element, objects) for element in value]
        return (
            f"[{', '.join(inside)}]" if isinstance(value, list) else f"({', '.join(inside)}{',' * (len(inside) == 1)})"
        )
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return f"{{{', '.join(f'{key!r}: {_code(key, element, objects)}' for key, element in value.items())}}}"
    called = getattr(value, "__name__", name)
    word = called if called.isidentifier() else name
    objects.append(word if word != name else f"{word}, {plain(repr(value))[:60]}")
    return word


# ------------------ Several systems side by side, as plain data.

_ALL_PAIRS = 6  # of more systems, only the first is compared with each of the others


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Ranking, chances to be the best, and differences with their intervals."""
    level, ranking = comparison.level, comparison.ranking
    pairs = list(combinations(ranking, 2)) if len(ranking) <= _ALL_PAIRS else [(ranking[0], s) for s in ranking[1:]]
    return {
        **{name: getattr(comparison, name) for name in ("higher_is_better", "target", "n_items", "basis", "refused")},
        "metric": text(comparison.metric),
        "label": metric_label(comparison.metric),
        "noise": text(comparison.noise),
        "level": level,
        "rests_on": comparison.answer_in_words(),
        "judged": judged_words(comparison.n_items, comparison.labels.n_items),
        "systems": [
            {
                **comparison[system].to_dict(level),
                "system": text(system),
                "rank": rank,
                "prob_best": comparison.prob_best[system],
                "regret": finite(comparison.regret_of(system)),
            }
            for rank, system in enumerate(ranking, start=1)
        ],
        "pairs": [
            {
                "a": text(a),
                "b": text(b),
                **_ends(comparison.difference(a, b), level),
                "prob_a_better": comparison.prob_better(a, b),
                "told_apart": comparison.is_significant(a, b),
            }
            for a, b in pairs
        ],
        "groups": [[text(system) for system in group] for group in comparison.groups],
        "expected_regret": finite(comparison.expected_regret),
    }


_WITH_PICTURES = 6  # systems; the others are in the tables
_MOST_CLASSES = 50  # whose names are listed


def build_report(
    evaluations: Mapping[str, Evaluation] | Evaluation,
    *,
    labels: Labels | LabelScan[Labels] | None = None,
    comparison: Comparison | None = None,
    title: str | None = None,
    seed: RandomState = None,
    settings: Mapping[str, Any] | None = None,
    with_text: bool = False,
) -> dict[str, Any]:
    """All that a report says, as a dict that JSON can hold.

    Numbers are those of the evaluations themselves. A part that there is nothing to say about is None or empty, and
    left out on the page. The same evaluations always give the same dict: there is no date in it.

    Parameters
    ----------
    evaluations : Evaluation or mapping from name to Evaluation
        Of one system or of several on the same labels. May be empty where there is a comparison.
    labels : Labels, optional. The votes that the labeler table is about; by default those of the first evaluation.
    comparison : Comparison, optional. Of the same systems.
    seed : int, optional. By default that of the evaluation.
    settings : mapping, optional
        What else a reader needs to get the same numbers: file names, their checksums. Shown as given. ``"command"``
        is the whole command line, shown as the way to get the same numbers in place of the calls in Python.
    with_text : bool
        Whether texts about items (see `Labels.with_items`) may be shown; else only their other columns are.

    Returns
    -------
    dict
        With the key ``"format"``, a number that grows when the shape of the dict changes.

    Examples
    --------
    >>> import trueup as tu
    >>> from trueup.report import build_report
    >>> sim = tu.simulate.baseline(n_items=200, random_state=0)
    >>> ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> data = build_report(ev, title="A trial")
    >>> data["format"], data["title"], data["systems"][0]["metrics"][0]["mean"] == ev["accuracy"].mean
    (1, 'A trial', True)
    """
    named = _named(evaluations)
    main: Any = next(iter(named.values()), comparison)
    if main is None:
        raise InvalidParameter("a report needs an evaluation or a comparison, got neither; pass evaluate's answer")
    labels = main.labels if labels is None else labels
    systems = [
        system_data(name, evaluation, labels.n_items, with_pictures=place < _WITH_PICTURES)
        for place, (name, evaluation) in enumerate(named.items())
    ]
    compared = None if comparison is None else comparison_data(comparison)
    found = {text(name): evaluation.warnings for name, evaluation in named.items()}
    positive = {s["name"]: (s["positive"], s["positive_metrics"]) for s in systems if s["positive_metrics"]}
    if comparison is not None:
        shown = {sentence for sentences in found.values() for sentence in sentences}
        found[""] = tuple(sentence for sentence in comparison.warnings if sentence not in shown)
        classes = comparison.classes.tolist()
        if depends_on_positive(comparison.measure, comparison.metric, classes) and comparison.positive is not None:
            positive[""] = (text(classes[comparison.positive]), [metric_label(comparison.metric)])
    names = [text(name) for name in named or main.ranking]
    check = next((e.independence for e in named.values() if e.independence is not None), None)
    if not named and comparison is not None and comparison.settings.arguments["check_dependence"]:
        check = dependence_of(comparison.labels)
    about = {
        "n_items": labels.n_items,
        "n_votes": labels.n_votes,
        "n_labelers": labels.n_labelers,
        "n_classes": labels.n_classes,
        "n_gold": len(labels.gold),
        "n_gold_drawn": 0,
        "item_columns": [],
        "notes": [],
        "votes_per_item": labels.n_votes / max(labels.n_items, 1),
        "classes": [text(c) for c in labels.classes.tolist()[:_MOST_CLASSES]],
        "target": main.target,
        "level": main.level,
        "positive": positive_words(positive),
    }
    if isinstance(labels, LabelScan):  # its votes are not in memory, and its items have no columns
        about["n_gold_drawn"] = len(labels.reader.drawn)
        from_votes = dict.fromkeys(("agreement", "labelers", "dependence"))
    else:
        about |= {"n_gold_drawn": len(labels.drawn_gold), "notes": list(labels.reading_notes)}
        about["item_columns"] = [text(name) for name in labels.item_columns]
        noise = {"model": main.model} if main.core is None else {"prior": main.core.prior}  # as of the answers
        seed_of_table = main.seed if seed is None else seed
        from_votes = {
            "agreement": agreement_data(labels),
            "labelers": labeler_data(labels, level=main.level, seed=seed_of_table, **noise),
            "dependence": dependence_data(labels, check, model=main.model),
        }
    unnamed = comparison is None and is_unnamed(list(named))
    return {
        "format": FORMAT,
        "title": plain(title) if title else title_for(names, compared=comparison is not None),
        "about": about,
        "systems": systems,
        "verdict": verdict(compared),
        "warnings": plain_warnings(found, max(len(named), 1)),
        "comparison": compared,
        **from_votes,
        "vet_next": vet_next_data(main.labels, named, comparison, with_text=with_text),
        "reproduction": reproduction_data(named, comparison, seed=seed, settings=settings, unnamed=unnamed),
    }


def _named(evaluations: Mapping[str, Evaluation] | Evaluation) -> dict[str, Evaluation]:
    """By name; one evaluation alone is that of "system"."""
    if isinstance(evaluations, Evaluation):  # itself a mapping, of metrics
        return {"system": evaluations}
    wrong = next(((name, value) for name, value in evaluations.items() if not isinstance(value, Evaluation)), None)
    if wrong is not None:
        raise InvalidParameter(
            f"evaluations must be what evaluate returns, got {type(wrong[1]).__name__} for {wrong[0]!r}; pass the "
            "Evaluation, or {name: Evaluation}"
        )
    return {str(name): value for name, value in evaluations.items()}
