"""Several systems: one that errs with the crowd against a better one, equals, many with scores, and copies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from trueup.answers.vetted import compare_again

import trueup as tu
from benchmarks._coverage_tally import Section, as_text, error_over_runs, share, share_over_runs
from benchmarks._engine_answers import ASSUMPTIONS, draw_gold, row_of, select, tally_of
from benchmarks._engine_runs import Case, Figure, Row
from benchmarks._engine_worlds import (
    DEPENDENT,
    Codes,
    World,
    better_system,
    equal_system,
    family_of_systems,
    make,
    scored_systems,
)

__all__ = ["AUC_FIGURE", "COPIES_FIGURE", "PAIRS_FIGURE"]

N_ITEMS = 300
N_SCORED = 500
GAIN = 0.03
N_GOLD = 20
N_EXCHANGED = 10
N_SYSTEMS = (2, 5, 20)
MOST_PAIRS = 10  # of one data set: more say little that is new
N_FAMILY = 20
ALONE = "alone"
GOLD = f"headline, {N_GOLD} vetted"


# ------------------------------------------------------------------ two systems


def rows_of_pair(world: World, first: Codes, second: Codes, pair: str, seed: int) -> list[Row]:
    """The difference of the second system over the first, under each assumption and with vetted items."""
    systems = {"a": first, "b": second}
    true = float(np.mean(second == world.truth) - np.mean(first == world.truth))
    options: dict[str, Any] = {"check_dependence": False, "random_state": seed}

    def row(answer: str, comparison: Any) -> Row:
        first_is_best = float(comparison.prob_best["a"])
        return row_of(answer, true, comparison.difference("b", "a"), pair=pair, first_is_best=first_is_best)

    cmp = tu.compare(systems, world.labels, **options)
    rows = [row(name, cmp.assuming(name)) for name in ASSUMPTIONS]
    labels, _ = draw_gold(world.labels, world.truth, N_GOLD, np.random.default_rng([seed, 16]))
    return [*rows, row(GOLD, compare_again(cmp, labels))]


def run_pairs(case: Case) -> list[Row]:
    world = make(case.world, N_ITEMS, case.seed)
    rng = np.random.default_rng([case.seed, 3])
    better = better_system(world, GAIN, rng)
    equals = equal_system(world, N_EXCHANGED, rng), equal_system(world, N_EXCHANGED, rng)
    return [
        *rows_of_pair(world, world.predictions, better, "better", case.seed),
        *rows_of_pair(world, *equals, "equal", case.seed),
    ]


def summarise_pairs(rows: Sequence[Row]) -> Section:
    lines, numbers = [], {}
    for world in dict.fromkeys(row["world"] for row in rows):
        for pair in ("better", "equal"):
            for answer in (*ASSUMPTIONS, GOLD):
                own = select(rows, world=world, pair=pair, answer=answer)
                tally = tally_of(own)
                wrong = sum(row["high"] < 0 for row in own) / len(own)
                apart = sum(row["high"] < 0 or row["low"] > 0 for row in own) / len(own)
                first = float(np.mean([row["first_is_best"] for row in own]))
                cells = [f"{100 * wrong:.1f}", f"{100 * apart:.1f}", f"{first:.2f}"]
                cells += [f"{tally.bias:+.4f}", f"{tally.mae:.4f}", f"{tally.width:.3f}", str(len(own))]
                lines.append([f"{world}, {pair}", answer, share(tally), *cells])
                extra = {"wrong_side": wrong, "told_apart": apart, "first_is_best": first}
                numbers[f"{world}, {pair}, {answer}"] = {**tally.numbers(), **extra}
    head = [
        "world, second system",
        "answer",
        "covers % ± s.e.",
        "wrong side %",
        "called different %",
    ]
    head += ["P(first is best)", "mean error", "mean |error|", "width", "runs"]
    return Section(
        f"Two systems on {N_ITEMS} items of 5 labelers who err together: the first errs with the crowd, the second is "
        f"{100 * GAIN:.0f} points\nbetter and errs on items of its own; or both err with the crowd but for "
        f"{N_EXCHANGED} items each, equally often.\n"
        "Difference of the second over the first, on exactly these items.\n\n"
        f"{as_text(head, lines, left=(0, 1))}\n\n"
        f"Target: the headline (real) is wholly on the wrong side in at most 5%; with {N_GOLD} vetted items it holds "
        "93–97%;\nequals are called different in at most 5%.",
        numbers,
    )


# ------------------------------------------------------------------ scores of several systems


def run_auc(case: Case) -> list[Row]:
    name, _, number = case.world.partition(", ")
    world = make(name, N_SCORED, case.seed)
    rng = np.random.default_rng([case.seed, 5])
    systems = scored_systems(world, int(number), rng)
    cmp = tu.compare(systems, world.labels, metric="auc", check_dependence=False, random_state=case.seed)
    pairs = list(combinations(systems, 2))
    chosen = rng.choice(len(pairs), min(len(pairs), MOST_PAIRS), replace=False)
    true = {system: float(roc_auc_score(world.truth, scores)) for system, scores in systems.items()}
    return [
        row_of(answer, true[a] - true[b], cmp.assuming(answer).difference(a, b))
        for answer in ASSUMPTIONS
        for a, b in (pairs[k] for k in chosen.tolist())
    ]


def summarise_auc(rows: Sequence[Row]) -> Section:
    lines, numbers = [], {}
    for world in dict.fromkeys(row["world"] for row in rows):
        for answer in ASSUMPTIONS:
            own = select(rows, world=world, answer=answer)
            tally = tally_of(own)
            runs = [row["seed"] for row in own]
            cells = [share_over_runs(tally, runs), f"{tally.bias:+.4f}", f"{tally.mae:.4f}"]
            lines.append([f"{world} systems", answer, *cells, f"{tally.width:.4f}", str(len(set(runs)))])
            numbers[f"{world}, {answer}"] = {**tally.numbers(), "standard_error": error_over_runs(tally.held, runs)}
    head = ["world, number", "answer", "covers % ± s.e.", "mean error", "mean |error|", "width", "runs"]
    return Section(
        f"Differences of the AUC of 2 to 20 systems, {N_SCORED} items of 5 labelers who err together; the systems err "
        f"with them.\nAt most {MOST_PAIRS} pairs of each data set; ± is the standard error over data sets.\n\n"
        f"{as_text(head, lines, left=(0, 1))}\n\nTarget: the headline (real) holds 93–97%.",
        numbers,
    )


# ------------------------------------------------------------------ copies


def run_copies(case: Case) -> list[Row]:
    """The accuracy of one system alone, beside itself, beside one that is nearly it, and among twenty of its family."""
    kind, _, few = case.world.partition(", ")
    world = make(kind, N_ITEMS, case.seed)
    labels = world.labels.select(labelers=[0, 1, 4]) if few else world.labels
    rng = np.random.default_rng([case.seed, 6])
    options: dict[str, Any] = {"check_dependence": False, "random_state": case.seed}
    alone = tu.evaluate(world.predictions, labels, metrics=["accuracy"], **options)
    rows = [row_of(ALONE, world.accuracy, alone.assuming(name)["accuracy"], assumption=name) for name in ASSUMPTIONS]
    company = {
        "with a copy": family_of_systems(world.predictions, 2, 0.0, rng),
        "with 1% altered": family_of_systems(world.predictions, 2, 0.01, rng),
        f"among {N_FAMILY} of a family": family_of_systems(world.predictions, N_FAMILY, 0.05, rng),
    }
    for title, systems in company.items():
        cmp = tu.compare(systems, labels, **options)
        rows += [row_of(title, world.accuracy, cmp.assuming(name)["a"], assumption=name) for name in ASSUMPTIONS]
    return rows


def summarise_copies(rows: Sequence[Row]) -> Section:
    lines, numbers = [], {}
    for world in dict.fromkeys(row["world"] for row in rows):
        for assumption in ASSUMPTIONS:
            of_group = select(rows, world=world, assumption=assumption)
            alone = select(of_group, answer=ALONE)
            for answer in dict.fromkeys(row["answer"] for row in of_group):
                own = select(of_group, answer=answer)
                tally = tally_of(own)
                ratio = tally.width / tally_of(alone).width
                moved = float(np.mean([abs(a["mean"] - b["mean"]) for a, b in zip(own, alone, strict=True)]))
                cells = [f"{tally.width:.4f}", f"{ratio:.2f}", f"{moved:.4f}", f"{tally.bias:+.4f}", str(len(own))]
                lines.append([world, assumption, answer, share(tally), *cells])
                numbers[f"{world}, {assumption}, {answer}"] = {**tally.numbers(), "ratio": ratio, "moved": moved}
    head = ["world", "answer", "system a", "covers % ± s.e.", "width", "× alone", "mean moved", "mean error", "runs"]
    return Section(
        f"One system and its copies, {N_ITEMS} items of 5 labelers, or of 3\n\n"
        f"{as_text(head, lines, left=(0, 1, 2))}\n\n"
        "Target: a copy, or one with 1% of the answers altered, changes the width by at most 10%; "
        f"{N_FAMILY} systems of a family do not\noutvote three labelers.",
        numbers,
    )


PAIRS_FIGURE = Figure(
    worlds=("families", "difficulty"),
    run=run_pairs,
    summarise=summarise_pairs,
    n_runs=400,
    n_quick=2,
    first_seed=163_000,
)
AUC_FIGURE = Figure(
    worlds=tuple(f"{world}, {n}" for world in DEPENDENT for n in N_SYSTEMS),
    run=run_auc,
    summarise=summarise_auc,
    n_runs=150,
    n_quick=1,
    first_seed=164_000,
)
COPIES_FIGURE = Figure(
    worlds=("independent", "families", "families, three labelers"),
    run=run_copies,
    summarise=summarise_copies,
    n_runs=50,  # widths of one data set beside one another, so that few tell; each takes half a minute
    n_quick=1,
    first_seed=165_000,
)
