"""Labelers graded as systems: from the others' votes alone, from fewer of them, and with a few vetted items.

Every case is a function of its name and number, so that an interrupted measurement can go on.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._coverage_tally import LEVEL
from benchmarks._engine_answers import ASSUMPTIONS
from benchmarks._engine_runs import Case, Row
from benchmarks._vetting_rivals import Sample, ppi_of_pool, ppi_ratio_of_pool
from experiments.real_crowds.sets import MIN_GRADED_ITEMS, CrowdSet, load_set, thin_votes
from trueup.answers.vetted import compare_again, evaluate_again
from trueup.posteriors import Estimate, wilson

__all__ = [
    "ALL_VOTES",
    "HEADLINE",
    "N_VETTED",
    "PPI",
    "RANKED_BY",
    "REPETITIONS_A_CASE",
    "RESTS_ON",
    "grade_row",
    "graded_class",
    "pairs_of",
    "run_gold",
    "run_gold_pair",
    "run_pair",
    "run_ranking",
    "run_system",
    "true_values",
]

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

RESTS_ON = ("labelers",)  # beside what all figures rest on
RANKED_BY = "clusters"  # a model whose answer is shown beside
ALL_VOTES = "all votes"
FEWER_VOTES = {"5 votes": 5, "3 votes": 3}
N_VETTED = (20, 30, 60)
REPETITIONS_A_CASE = 25  # draws of vetted items for which the models are drawn once
MOST_PAIRS = 6
HEADLINE, PPI, WILSON = "headline", "PPI++", "Wilson"
MOST_OF_POOL = 0.5  # vetted at most: beyond it there is little left to estimate
SEPARATOR = " / "


# ------------------------------------------------------------------ what is graded


@lru_cache(maxsize=4)
def crowd_of(name: str) -> CrowdSet:
    """A set, kept while its labelers are graded."""
    return load_set(name)


def graded_class(crowd: CrowdSet) -> Hashable:
    """The class that recall, precision and prevalence are about: the second of two, or that with most votes."""
    labels = crowd.labels
    at = 1 if labels.n_classes == 2 else int(labels.votes_per_answer[: labels.n_classes].argmax())
    return labels.classes.tolist()[at]


def pairs_of(crowd: CrowdSet) -> list[tuple[Hashable, Hashable]]:
    """Pairs of graded labelers with enough items of known truth in common, at most six, drawn with a fixed seed."""
    items = {labeler: set(crowd.predictions_of(labeler)) for labeler in crowd.graded}
    pairs = [(a, b) for a, b in combinations(crowd.graded, 2) if len(items[a] & items[b]) >= MIN_GRADED_ITEMS]
    order = np.random.default_rng(len(pairs)).permutation(len(pairs))
    return [pairs[k] for k in order[:MOST_PAIRS]]


def true_values(said: npt.NDArray[Any], truth: npt.NDArray[Any], one_class: Hashable) -> dict[str, float]:
    """The metrics of a system that said this where that is true; NaN where one is not defined."""
    is_said, is_true = said == one_class, truth == one_class
    hits = float(np.sum(is_said & is_true))
    return {
        "accuracy": float(np.mean(said == truth)),
        "prevalence": float(np.mean(is_true)),
        "recall": _quotient(hits, float(is_true.sum())),
        "precision": _quotient(hits, float(is_said.sum())),
        "f1": _quotient(2 * hits, float(is_said.sum() + is_true.sum())),
    }


def metrics_of(crowd: CrowdSet, *names: str) -> dict[str, str]:
    """What to ask of the library: metrics of one class by its name."""
    one_class = graded_class(crowd)
    return {name: name if name == "accuracy" else f"{name}:{one_class}" for name in names}


# ------------------------------------------------------------------ votes alone


def run_system(case: Case) -> list[Row]:
    """One labeler of a set, graded from all or some of the others' votes; the number is the labeler's place."""
    name, condition = case.world.split(SEPARATOR)
    crowd = crowd_of(name)
    labeler = crowd.graded[case.seed]
    predictions = crowd.predictions_of(labeler)
    labels = crowd.others_of(labeler)
    if condition != ALL_VOTES:
        labels = thin_votes(crowd, FEWER_VOTES[condition], labeler=labeler)
    metrics = metrics_of(crowd, "accuracy", "recall", "prevalence")
    ev = tu.evaluate(
        predictions, labels, metrics=metrics, missing="ignore", check_dependence=False, random_state=case.seed
    )
    true = true_values(*_answers_and_truth(crowd, predictions), graded_class(crowd))
    rows = []
    for answer in ASSUMPTIONS:
        estimates = ev.assuming(answer)
        rows += [grade_row(crowd, str(labeler), m, condition, answer, true[m], estimates[m]) for m in metrics]
    return [row for row in rows if not np.isnan(row["true"])]


def run_pair(case: Case) -> list[Row]:
    """The difference of accuracy of two labelers on the items of both; the number is the pair's place."""
    crowd = crowd_of(case.world)
    a, b = pairs_of(crowd)[case.seed]
    systems = _on_common_items(crowd, a, b)
    true = _accuracy(crowd, systems["a"]) - _accuracy(crowd, systems["b"])
    cmp = tu.compare(systems, crowd.others_of(a, b), check_dependence=False, random_state=case.seed)
    return [
        grade_row(crowd, f"{a} − {b}", "difference", ALL_VOTES, answer, true, cmp.assuming(answer).difference("a", "b"))
        for answer in ASSUMPTIONS
    ]


def run_ranking(case: Case) -> list[Row]:
    """The ranking of all labelers of a set by all votes, their own among them; the graded ones are looked at."""
    crowd = crowd_of(case.world)
    rows = []
    for answer, options in {"real": {}, RANKED_BY: {"noise": RANKED_BY}}.items():
        ranking = tu.labelers.rank(crowd.labels, random_state=case.seed, **options)
        for labeler in crowd.graded:
            true = _accuracy(crowd, crowd.predictions_of(labeler))
            estimate = ranking[labeler].accuracy
            rows.append(grade_row(crowd, str(labeler), "accuracy", ALL_VOTES, answer, true, estimate))
    return rows


# ------------------------------------------------------------------ with vetted items


def run_gold(case: Case) -> list[Row]:
    """Many draws of vetted items of one labeler's pool; cases take the labelers in turn.

    The models are drawn once for all of them: they are told nothing of items drawn at random.
    """
    crowd = crowd_of(case.world)
    labeler = crowd.graded[case.seed % len(crowd.graded)]
    predictions = crowd.predictions_of(labeler)
    pool = crowd.others_of(labeler).select(items=list(predictions))
    said, truth = _answers_and_truth(crowd, {item: predictions[item] for item in pool.items.tolist()})
    one_class = graded_class(crowd)
    true = true_values(said, truth, one_class)
    metrics = metrics_of(crowd, "accuracy", "precision", "recall", "f1")
    plain = tu.evaluate(predictions, pool, metrics=metrics, check_dependence=False, random_state=case.seed)
    p_class = np.asarray(plain.solution.truth)
    rng = np.random.default_rng([case.seed, 60])
    rows = []
    for n in N_VETTED * REPETITIONS_A_CASE:
        if n > MOST_OF_POOL * pool.n_items:
            continue
        at = np.sort(rng.choice(pool.n_items, n, replace=False))
        ev = evaluate_again(plain, pool.with_gold(_named(pool, truth, at), drawn="random"))
        about = (crowd, str(labeler), f"{n} vetted")
        rows += [grade_row(about[0], about[1], m, about[2], HEADLINE, true[m], ev[m]) for m in metrics]
        rivals = rival_intervals(said, truth, p_class, pool.classes, one_class, at)
        rows += [
            _interval_row(about[0], about[1], m, about[2], answer, true[m], *interval)
            for (m, answer), interval in rivals.items()
        ]
    return [row for row in rows if not np.isnan(row["true"])]


def run_gold_pair(case: Case) -> list[Row]:
    """Many draws of vetted items of the pool of two labelers; cases take the pairs in turn."""
    crowd = crowd_of(case.world)
    pairs = pairs_of(crowd)
    a, b = pairs[case.seed % len(pairs)]
    systems = _on_common_items(crowd, a, b)
    pool = crowd.others_of(a, b).select(items=list(systems["a"]))
    said = {name: _answers_and_truth(crowd, {i: s[i] for i in pool.items.tolist()})[0] for name, s in systems.items()}
    truth = _answers_and_truth(crowd, {i: systems["a"][i] for i in pool.items.tolist()})[1]
    gain = (said["a"] == truth).astype(float) - (said["b"] == truth)
    plain = tu.compare(systems, pool, check_dependence=False, random_state=case.seed)
    p_class = plain.truth.posterior
    codes = {name: _codes(answers, pool.classes) for name, answers in said.items()}
    at_all = np.arange(pool.n_items)
    f = p_class[at_all, codes["a"]] - p_class[at_all, codes["b"]]
    rng = np.random.default_rng([case.seed, 61])
    rows = []
    for n in N_VETTED * REPETITIONS_A_CASE:
        if n > MOST_OF_POOL * pool.n_items:
            continue
        at = np.sort(rng.choice(pool.n_items, n, replace=False))
        cmp = compare_again(plain, pool.with_gold(_named(pool, truth, at), drawn="random"))
        about = (crowd, f"{a} − {b}", "difference", f"{n} vetted")
        rows.append(grade_row(*about, HEADLINE, float(gain.mean()), cmp.difference("a", "b")))
        rows.append(_interval_row(*about, PPI, float(gain.mean()), *ppi_of_pool(_sample(gain, f, at))))
    return rows


def rival_intervals(
    said: npt.NDArray[Any],
    truth: npt.NDArray[Any],
    p_class: Floats,
    classes: npt.NDArray[Any],
    one_class: Hashable,
    at: Codes,
) -> dict[tuple[str, str], tuple[float, tuple[float, float]]]:
    """Mean and interval by metric and rival, from what is vetted and P(class) by a model that has not seen it.

    What is not defined, as precision where nothing vetted was said to be of the class, is left out.
    """
    right = (said == truth).astype(float)
    p_right = p_class[np.arange(len(said)), _codes(said, classes)]
    p_one = p_class[:, classes.tolist().index(one_class)]
    is_said, is_true = (said == one_class).astype(float), (truth == one_class).astype(float)
    hits, p_hits = is_said * is_true, is_said * p_one
    n_right = float(right[at].sum())
    ratios = {
        "precision": (_sample(hits, p_hits, at), _sample(is_said, is_said, at)),
        "recall": (_sample(hits, p_hits, at), _sample(is_true, p_one, at)),
        "f1": (_sample(2 * hits, 2 * p_hits, at), _sample(is_said + is_true, is_said + p_one, at)),
    }
    of_ratios = {
        (name, PPI): _clipped(*interval) for name, pair in ratios.items() if (interval := ppi_ratio_of_pool(*pair))
    }
    return {
        ("accuracy", PPI): ppi_of_pool(_sample(right, p_right, at)),
        ("accuracy", WILSON): (n_right / len(at), wilson(n_right, len(at), level=LEVEL)),
        **of_ratios,
    }


# ------------------------------------------------------------------ rows


def grade_row(
    crowd: CrowdSet, system: str, metric: str, condition: str, answer: str, true: float, estimate: Estimate
) -> Row:
    """An estimate beside the truth as plain numbers; see `Grade`."""
    interval = estimate.interval(LEVEL)
    return _interval_row(crowd, system, metric, condition, answer, true, estimate.mean, interval, estimate.std)


def _interval_row(
    crowd: CrowdSet,
    system: str,
    metric: str,
    condition: str,
    answer: str,
    true: float,
    mean: float,
    interval: tuple[float, float],
    sd: float | None = None,
) -> Row:
    """A `Grade` as plain numbers; without a standard deviation, that of a normal law with this interval."""
    spread = (interval[1] - interval[0]) / (2 * 1.959964) if sd is None else sd
    return {
        "crowd": crowd.name,
        "family": crowd.family,
        "system": system,
        "metric": metric,
        "condition": condition,
        "answer": answer,
        "true": float(true),
        "mean": float(mean),
        "sd": float(spread),
        "low": float(interval[0]),
        "high": float(interval[1]),
    }


def _answers_and_truth(crowd: CrowdSet, predictions: Mapping[Any, Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """What is said and what is true, in the order of the predictions."""
    truths = crowd.truths
    kind = crowd.labels.classes.dtype
    said = np.array(list(predictions.values()), dtype=kind)
    return said, np.array([truths[item] for item in predictions], dtype=kind)


def _on_common_items(crowd: CrowdSet, a: Hashable, b: Hashable) -> dict[str, dict[Any, Any]]:
    """The predictions of two labelers on the items that both answered."""
    first, second = crowd.predictions_of(a), crowd.predictions_of(b)
    common = [item for item in first if item in second]
    return {"a": {item: first[item] for item in common}, "b": {item: second[item] for item in common}}


def _accuracy(crowd: CrowdSet, predictions: Mapping[Any, Any]) -> float:
    said, truth = _answers_and_truth(crowd, predictions)
    return float(np.mean(said == truth))


def _named(pool: tu.Labels, truth: npt.NDArray[Any], at: Codes) -> dict[Any, Any]:
    return dict(zip(pool.items[at].tolist(), truth[at].tolist(), strict=True))


def _codes(answers: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Codes:
    position = {name: code for code, name in enumerate(classes.tolist())}
    return np.array([position[name] for name in answers.tolist()])


def _sample(values: Floats, predicted: Floats, at: Codes) -> Sample:
    """Values of vetted items, and predictions for these and for the others."""
    return Sample(np.asarray(values, dtype=float)[at], predicted[at], np.delete(predicted, at))


def _clipped(mean: float, interval: tuple[float, float]) -> tuple[float, tuple[float, float]]:
    """A share lies in [0, 1], which a linearised ratio with few positives does not know."""
    low, high = (min(max(end, 0.0), 1.0) for end in interval)
    return min(max(mean, 0.0), 1.0), (low, high)


def _quotient(above: float, below: float) -> float:
    return above / below if below else float("nan")
