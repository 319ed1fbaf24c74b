"""Accuracy of one system from votes alone and with a few vetted items, in worlds with and without joint errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from trueup.answers.vetted import evaluate_again

import trueup as tu
from benchmarks._coverage_tally import Section
from benchmarks._engine_answers import (
    ASSUMPTIONS,
    REFERENCE,
    DrawnClasses,
    coverage_table,
    draw_gold,
    row_of,
    rows_of_rivals,
    scaled_width,
    select,
    tally_of,
    width_over,
)
from benchmarks._engine_runs import Case, Figure, Row
from benchmarks._engine_worlds import DEPENDENT, World, make

__all__ = ["DEPENDENT_FIGURE", "GOLD_FIGURE", "INDEPENDENT_FIGURE"]

SIZES = (200, 1000)
N_ITEMS = 300
GOLD = (20, 50)
HEADLINE = "headline"
RIVALS = ("PPI++, pool", "PPI++ as printed", "Wilson")


def rows_of_votes(world: World, seed: int, **more: Any) -> list[Row]:
    """The three answers, and "dawid-skene" called by name."""
    options: dict[str, Any] = {"metrics": ["accuracy"], "check_dependence": False, "random_state": seed}
    ev = tu.evaluate(world.predictions, world.labels, **options)
    rows = [row_of(name, world.accuracy, ev.assuming(name)["accuracy"], **more) for name in ASSUMPTIONS]
    named = tu.evaluate(world.predictions, world.labels, noise=REFERENCE, **options)
    return [*rows, row_of(REFERENCE, world.accuracy, named["accuracy"], **more)]


def run_independent(case: Case) -> list[Row]:
    n_items = int(case.world)
    return rows_of_votes(make("independent", n_items, case.seed), case.seed)


def run_dependent(case: Case) -> list[Row]:
    return rows_of_votes(make(case.world, N_ITEMS, case.seed), case.seed)


def run_gold(case: Case) -> list[Row]:
    """The headline with vetted items, and what others make of the same ones."""
    world = make(case.world, N_ITEMS, case.seed)
    rng = np.random.default_rng([case.seed, 16])
    drawn = DrawnClasses(world.labels.classes)
    plain = tu.evaluate(
        world.predictions, world.labels, metrics={"right": drawn}, check_dependence=False, random_state=case.seed
    )
    rows = [row_of(HEADLINE, world.accuracy, plain["right"], n_gold=0, basis=plain.basis)]
    right = (world.predictions == world.truth).astype(np.int64)
    p_right = drawn.probabilities[np.arange(N_ITEMS), world.predictions]
    for n in GOLD:
        labels, at = draw_gold(world.labels, world.truth, n, rng)
        ev = evaluate_again(plain, labels)
        rows.append(row_of(HEADLINE, world.accuracy, ev["accuracy"], n_gold=n, basis=ev.basis_of("accuracy")))
        rows += rows_of_rivals(right, p_right, at, n_gold=n)
    return rows


def summarise_votes(rows: Sequence[Row], title: str, target: str) -> Section:
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    groups = [(world, {"world": world}) for world in worlds]
    ratios = {"× dawid-skene": width_over(REFERENCE)}
    text, numbers = coverage_table(rows, groups, (*ASSUMPTIONS, REFERENCE), ratios=ratios)
    return Section(f"{title}\n\n{text}\n\n{target}", numbers)


def summarise_independent(rows: Sequence[Row]) -> Section:
    return summarise_votes(
        rows,
        "Independent errors: two classes, 5 labelers of 65–90% who all vote, a classifier of 80%; by number of items",
        "Target: shared holds 93–97%, at most 1.6 (200 items) and 1.2 times (1000) as wide as dawid-skene.",
    )


def summarise_dependent(rows: Sequence[Row]) -> Section:
    return summarise_votes(
        rows,
        f"Joint errors: two classes, {N_ITEMS} items, 5 labelers; the classifier shares what they share",
        "Target: shared holds at least 90% with families, difficulty and kinds. Nothing in the votes shows a blind "
        "spot: it is there for real.",
    )


def summarise_gold(rows: Sequence[Row]) -> Section:
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    groups = [(f"{w}, {n} vetted", {"world": w, "n_gold": n}) for w in worlds for n in (0, *GOLD)]

    def at_equal_coverage(own: list[Row], of_group: Sequence[Row]) -> float:
        rival = select(of_group, answer="PPI++, pool")
        if not rival or own[0]["answer"] != HEADLINE:
            return math.nan
        return tally_of(own).width / scaled_width(rival, tally_of(own).coverage)

    ratios = {"× PPI++": width_over("PPI++, pool"), "× PPI++ at equal coverage": at_equal_coverage}
    text, numbers = coverage_table(rows, groups, (HEADLINE, *RIVALS), ratios=ratios)
    unrectified = sum(row.get("basis") != "gold" for row in rows if row["answer"] == HEADLINE and row["n_gold"])
    return Section(
        f"Vetted items drawn at random: two classes, {N_ITEMS} items, 5 labelers who err together; the accuracy on "
        "exactly these\nitems. PPI++ with P(right) of the default model from votes alone: for this pool, and for the "
        f"population as printed.\n\n{text}\n\nHeadlines with vetted items that do not rest on them: {unrectified}.\n"
        "Target: the headline holds 93–97%, at most 1.0 times as wide as PPI++ scaled to equal coverage.",
        numbers,
    )


INDEPENDENT_FIGURE = Figure(
    worlds=tuple(str(n) for n in SIZES),
    run=run_independent,
    summarise=summarise_independent,
    n_runs=400,
    n_quick=2,
    first_seed=160_000,
)
DEPENDENT_FIGURE = Figure(
    worlds=(*DEPENDENT, "blind spot"),
    run=run_dependent,
    summarise=summarise_dependent,
    n_runs=400,
    n_quick=2,
    first_seed=161_000,
)
GOLD_FIGURE = Figure(
    worlds=(*DEPENDENT, "misled crowd"),
    run=run_gold,
    summarise=summarise_gold,
    n_runs=400,
    n_quick=2,
    first_seed=162_000,
)
