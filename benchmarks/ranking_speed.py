"""How fast are the metrics of scores, beside scipy and scikit-learn?

Usage: python -m benchmarks.ranking_speed [--quick]

Both sides get the same numbers in the same run and take turns; the median time of each counts. What is compiled is
compiled before. TRUEUP_ENGINE=scipy measures trueup without numba.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import kendalltau
from sklearn.metrics import roc_auc_score

import trueup as tu
from benchmarks._peers import seconds
from trueup.estimators.published.urkullu2019 import deterministic, probabilistic, subjectivist
from trueup.metrics import auc_draws, concordance, concordance_many

TURNS = 5


@dataclass(frozen=True)
class Row:
    """A line of the table: seconds of both sides, and the largest quotient that was asked for."""

    task: str
    ours: float
    theirs: float | None = None
    most: float | None = None


def median_seconds(*calls: Callable[[], Any]) -> list[float]:
    """Median seconds of each call; the calls take turns, after one round that does not count."""
    for call in calls:
        call()
    taken = [[seconds(call)[0] for call in calls] for _ in range(TURNS)]
    return np.median(taken, axis=0).tolist()


def concordance_rows(n_items: int) -> list[Row]:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=n_items)
    smooth = scores + rng.normal(size=n_items)
    levels = np.searchsorted(np.quantile(smooth, np.arange(1, 16) / 16), smooth)
    rows = []
    for name, truth in (("continuous truth", smooth), ("truth of 16 levels", levels)):
        times = median_seconds(lambda t=truth: concordance(scores, t), lambda t=truth: kendalltau(scores, t))
        rows.append(Row(f"concordance, {n_items:,} scores, {name} / kendalltau", *times, 1.5))
    tied = np.round(scores, 2)
    times = median_seconds(lambda: concordance(tied, smooth), lambda: kendalltau(tied, smooth))
    return [*rows, Row(f"concordance, {n_items:,} scores, tied scores / kendalltau", *times, 1.5)]


def draws_rows(n_items: int, n_draws: int) -> list[Row]:
    rng = np.random.default_rng(1)
    chance = rng.random(n_items)
    scores = chance + rng.normal(size=(10, n_items))
    truth = rng.random(n_items) < chance
    one, ten, peer = median_seconds(
        lambda: auc_draws(chance, scores[0], n_draws, random_state=0),
        lambda: auc_draws(chance, scores, n_draws, random_state=0),
        lambda: roc_auc_score(truth, scores[0]),
    )
    return [
        Row(f"{n_draws} drawn truths and AUCs, {n_items:,} items / one roc_auc_score", one, peer, 100),
        Row(f"{n_draws} drawn truths, AUCs of 10 systems, {n_items:,} items / one roc_auc_score", ten, peer),
    ]


def view_rows() -> list[Row]:
    rows = []
    for per_item, per_labeler in ((15, 15), (45, 3)):
        data = tu.simulate.urkullu(labels_per_item=per_item, labels_per_labeler=per_labeler, random_state=0)
        labels, scores = data.labels, data.scores
        truth = data.parameters["probability"]
        many, *views = median_seconds(
            lambda s=scores, t=truth: concordance_many(s, t),
            lambda x=labels, s=scores: deterministic(x, s, random_state=0),
            lambda x=labels, s=scores: subjectivist(x, s),
            lambda x=labels, s=scores: probabilistic(x, s),
        )
        where = f"100 systems, 1,000 items, {labels.n_votes:,} votes of {labels.n_labelers:,} labelers"
        names = ("deterministic", "subjectivist", "probabilistic")
        rows += [Row(f"{name} view, {where}", time) for name, time in zip(names, views, strict=True)]
        if per_labeler == 15:
            rows.insert(0, Row("concordance of 100 systems with one truth of 1,000 values", many))
    return rows


def show(rows: list[Row]) -> None:
    print(f"{'task':<90}{'trueup s':>10}{'peer s':>10}{'ratio':>9}{'asked ≤':>9}")
    for row in rows:
        theirs = "–" if row.theirs is None else f"{row.theirs:.4f}"
        ratio = "–" if row.theirs is None else f"{row.ours / row.theirs:.2f}"
        most = "–" if row.most is None else f"{row.most:g}"
        print(f"{row.task:<90}{row.ours:>10.4f}{theirs:>10}{ratio:>9}{most:>9}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the items and of the draws")
    part = 10 if parser.parse_args().quick else 1
    show([*concordance_rows(1_000_000 // part), *draws_rows(100_000 // part, 2000 // part), *view_rows()])


if __name__ == "__main__":
    main()
