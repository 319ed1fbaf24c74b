"""Models drawn on some of many items, beside models drawn on all: how far the ends of the intervals lie apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from unittest import mock

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import Section, as_text, share
from benchmarks._engine_answers import ASSUMPTIONS, row_of, select, tally_of
from benchmarks._engine_runs import Case, Figure, Row
from benchmarks._engine_worlds import WORLDS, World
from trueup.estimators import readings

__all__ = ["LARGE_FIGURE"]

N_ITEMS, N_VOTES = 9_000, 5
PARTS = {"some items": readings.MOST_VOTES, "all items": 10**9}


def many_labelers(n_items: int, seed: int) -> World:
    """A crowd of a hundred, each with 450 votes; independent errors."""
    sim = tu.simulate.dawid_skene(n_items=n_items, n_labelers=100, votes_per_item=N_VOTES, random_state=seed)
    return World(sim.labels, np.asarray(sim.truth), np.asarray(sim.predictions))


VERSIONS = "families, three versions"  # of the system, which err with it
MAKERS: dict[str, Callable[[int, int], World]] = {
    **{name: WORLDS[name] for name in ("independent", "families", "difficulty", "kinds")},
    VERSIONS: WORLDS["families"],
    "a hundred labelers": many_labelers,
}


def run_large(case: Case) -> list[Row]:
    world, own = MAKERS[case.world](N_ITEMS, case.seed), "own"
    systems = {own: world.predictions}
    if case.world == VERSIONS:
        rng = np.random.default_rng(case.seed)
        systems |= {k: np.where(rng.random(N_ITEMS) < 0.05, 1 - world.predictions, world.predictions) for k in "abc"}
    rows = []
    for part, most in PARTS.items():
        with mock.patch.object(readings, "MOST_VOTES", most):
            how = {"check_dependence": False, "random_state": case.seed}
            if len(systems) > 1:
                cmp = tu.compare(systems, world.labels, metric="accuracy", **how)
                found = {name: cmp.assuming(name)[own] for name in ASSUMPTIONS}
            else:
                ev = tu.evaluate(world.predictions, world.labels, metrics=["accuracy"], **how)
                found = {name: ev.assuming(name)["accuracy"] for name in ASSUMPTIONS}
            rows += [row_of(name, world.accuracy, estimate, part=part) for name, estimate in found.items()]
    return rows


def summarise_large(rows: Sequence[Row]) -> Section:
    lines, numbers = [], {}
    for world in MAKERS:
        for answer in ASSUMPTIONS:
            some, whole = (select(rows, world=world, answer=answer, part=part) for part in PARTS)
            if not some:
                continue
            off = [
                abs(a[end] - b[end]) for a, b in zip(some, whole, strict=True) for end in ("equal_low", "equal_high")
            ]
            of_some, of_all = tally_of(some), tally_of(whole)
            relative = float(np.mean(off)) / of_all.width
            cells = [f"{np.mean(off):.4f}", f"{relative:.3f}", f"{of_some.width:.4f}", f"{of_all.width:.4f}"]
            lines.append([world, answer, *cells, share(of_some), share(of_all), str(len(some))])
            numbers[f"{world}, {answer}"] = {"error of ends over width": relative, "width": of_some.width}
    head = ["world", "answer", "ends off by", "over width", "width", "width, all", "holds %", "holds %, all", "runs"]
    text = (
        f"{N_ITEMS:,} items, {N_VOTES} votes on each: models drawn on some of the items, as where there are more than "
        f"{readings.MOST_VOTES:,} votes,\nbeside models drawn on all. Ends are those of equal tails.\n\n"
        f"{as_text(head, lines, left=(0, 1))}\n\nTarget: ends off by at most a tenth of the width."
    )
    return Section(text, numbers)


LARGE_FIGURE = Figure(
    worlds=tuple(MAKERS),
    run=run_large,
    summarise=summarise_large,
    n_runs=20,
    n_quick=1,
    first_seed=168_000,
    quick_worlds=("families",),
)
