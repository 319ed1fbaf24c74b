"""Accuracy of one system from votes alone where classes are many, with errors that are independent and that are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks._coverage_tally import Section
from benchmarks._engine_answers import REFERENCE
from benchmarks._engine_coverage import rows_of_votes, summarise_votes
from benchmarks._engine_runs import Case, Figure, Row
from benchmarks._engine_worlds import WORLDS, World, lookalikes

__all__ = ["CLASSES_FIGURE"]

N_CLASSES = (3, 5, 8)
N_ITEMS = 300
KINDS: dict[str, Callable[..., World]] = {
    **{name: WORLDS[name] for name in ("independent", "families", "difficulty", "kinds")},
    "lookalikes": lookalikes,
}


def prior_of(n_classes: int) -> list[float]:
    """Shares of classes that fall evenly; the first is twice as common as the last."""
    weights = np.linspace(2.0, 1.0, n_classes)
    return list(weights / weights.sum())


def run_classes(case: Case) -> list[Row]:
    kind, n_classes = case.world.split(", ")
    world = KINDS[kind](N_ITEMS, case.seed, prior_of(int(n_classes)))
    return rows_of_votes(world, case.seed)


def summarise_classes(rows: Sequence[Row]) -> Section:
    return summarise_votes(
        rows,
        f"Many classes: {N_ITEMS} items, 5 labelers who all vote; kind of errors and number of classes. The classifier "
        "shares what they\nshare. Lookalikes: a quarter of the items is hard, and three of four errors on them are one "
        f"class. {REFERENCE} is named.",
        "Target: with independent errors shared holds 93–97%, else at least 90%.",
    )


CLASSES_FIGURE = Figure(
    worlds=tuple(f"{kind}, {n}" for kind in KINDS for n in N_CLASSES),
    run=run_classes,
    summarise=summarise_classes,
    n_runs=100,
    n_quick=1,
    first_seed=169_000,
    quick_worlds=("lookalikes, 5",),
)
