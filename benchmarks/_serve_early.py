"""The first looks at a session, before the draws suffice for a rule to stop it: do the intervals hold there?"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np

from benchmarks._coverage_tally import Section, Tally, as_text, share, tracked
from benchmarks._serve_sessions import SESSIONS_OF_A_POOL, STRATEGIES, WARRANTED, Experts, World, run_session
from trueup.active.estimators import TooFewAnswers, as_estimate
from trueup.sessions.progress import count_answers

__all__ = ["early"]

LOOKS = (20, 30, 40, 60, 80)
EDGES = (2, 6, 10, 15, 20, 30)  # where the classes of draws that count begin
FIRST_SEED = 100_000  # pools that no other section has


def early(quick: bool, repetitions: int | None = None) -> Section:
    """20 experts at once, looked at from the first answers on: coverage by the number of draws that count."""
    n = repetitions or (40 if quick else 400)
    tallies: dict[tuple[str, int], Tally] = defaultdict(Tally)
    world = World(-1)
    for seed in tracked(range(FIRST_SEED, FIRST_SEED + n), "sessions"):
        if world.seed != seed // SESSIONS_OF_A_POOL:
            world = World(seed // SESSIONS_OF_A_POOL)
        run = run_session(world, STRATEGIES[seed % len(STRATEGIES)], seed, Experts())
        for counted in (count_answers(run.progress(look)) for look in LOOKS):
            if counted.n_draws < EDGES[0]:
                continue
            first = EDGES[int(np.searchsorted(EDGES, counted.n_draws, side="right")) - 1]
            for name in WARRANTED:
                try:
                    values = world.estimations[name].after(counted, seed=seed).values[:, 0]
                except TooFewAnswers:
                    continue
                tallies[name, first].add(world.value(), as_estimate(values, (0.0, 1.0), ""))
    rows = []
    for name in WARRANTED:
        cells = [tallies[name, first] for first in EDGES]
        rows.append([name, *map(share, cells)])
        rows.append(["  width", *(f"{cell.width:.3f}" for cell in cells)])
    rows.append(["looks", *(str(len(tallies["rectified", first])) for first in EDGES)])
    heads = [*(f"{a}–{b - 1}" for a, b in pairwise(EDGES)), f"{EDGES[-1]}+"]
    text = (
        f"{n} sessions of 20 experts: share of 95% intervals that hold the accuracy, by the number of draws that "
        f"count, at looks after {', '.join(map(str, LOOKS))} outcomes\n\n" + as_text(["estimator", *heads], rows)
    )
    numbers = {f"{name}, from {first}": tally.numbers() for (name, first), tally in tallies.items() if len(tally)}
    return Section(text, {"sessions": n, "looks": numbers})
