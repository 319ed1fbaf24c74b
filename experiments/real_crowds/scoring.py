"""AUC on real crowds: a quarter of the labelers is a system whose score is the share of its votes for a class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

import trueup as tu
from benchmarks._engine_answers import ASSUMPTIONS
from benchmarks._engine_runs import Case, Row
from experiments.real_crowds.grading import ALL_VOTES, crowd_of, grade_row
from experiments.real_crowds.sets import MIN_GRADED_ITEMS, NO_TRUTH, CrowdSet

__all__ = ["N_SPLITS", "has_scores", "run_scores", "two_systems"]

N_SPLITS = 6
MOST_ITEMS = 600
POSITIVE = 1

Floats = npt.NDArray[np.float64]


def has_scores(crowd: CrowdSet) -> bool:
    """Whether quarters of a crowd can be ranked: of two classes, with four labelers at least."""
    return crowd.labels.n_classes == 2 and crowd.labels.n_labelers >= 4


def two_systems(crowd: CrowdSet, seed: int) -> tuple[dict[Any, dict[str, float]], tu.Labels]:
    """The scores of two quarters of a crowd on the items that both and others have judged, and the others' votes."""
    rng = np.random.default_rng([seed, 62])
    known = np.flatnonzero(crowd.truth != NO_TRUTH)
    labels = crowd.labels.select(items=crowd.labels.items[np.sort(rng.permutation(known)[:MOST_ITEMS])])
    order = rng.permutation(labels.n_labelers)
    size = labels.n_labelers // 4
    quarters = {"a": order[:size], "b": order[size : 2 * size]}
    scores = {name: _shares_of_votes(labels, members) for name, members in quarters.items()}
    others = labels.without_labeler(*labels.labelers[order[: 2 * size]].tolist())
    judged = set(others.items.tolist())
    return {
        item: {name: float(of_quarter[k]) for name, of_quarter in scores.items()}
        for k, item in enumerate(labels.items.tolist())
        if item in judged and not any(np.isnan(of_quarter[k]) for of_quarter in scores.values())
    }, others


def _shares_of_votes(labels: tu.Labels, members: npt.NDArray[np.int64]) -> Floats:
    """The share of some labelers' votes on each item that are for the positive class; NaN where they have none."""
    item, voter, answer, times = labels.vote_table()
    own = np.isin(voter, members) & (answer < labels.n_classes)
    votes = np.bincount(item[own], times[own], labels.n_items)
    positive = np.bincount(item[own], times[own] * (answer[own] == POSITIVE), labels.n_items)
    return np.where(votes > 0, positive / np.maximum(votes, 1), np.nan)


def run_scores(case: Case) -> list[Row]:
    """The AUC of two quarters of a crowd and their difference, from the votes of the other half."""
    crowd = crowd_of(case.world)
    by_item, others = two_systems(crowd, case.seed)
    truths, positive = crowd.truths, crowd.labels.classes.tolist()[POSITIVE]
    is_positive = np.array([truths[item] == positive for item in by_item])
    if len(by_item) < MIN_GRADED_ITEMS or is_positive.all() or not is_positive.any():
        return []
    scores = {name: np.array([both[name] for both in by_item.values()]) for name in "ab"}
    true = {name: float(roc_auc_score(is_positive, own)) for name, own in scores.items()}
    systems = {
        name: tu.Predictions.from_scores(own, items=list(by_item), positive=positive, threshold=None, system=name)
        for name, own in scores.items()
    }
    cmp = tu.compare(systems, others, metric="auc", check_dependence=False, random_state=case.seed)
    rows = []
    for answer in ASSUMPTIONS:
        found = cmp.assuming(answer)
        rows += [grade_row(crowd, name, "auc", ALL_VOTES, answer, true[name], found[name]) for name in systems]
        gain = true["b"] - true["a"]
        rows.append(grade_row(crowd, "b − a", "difference", ALL_VOTES, answer, gain, found.difference("b", "a")))
    return rows
