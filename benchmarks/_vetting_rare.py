"""Recall, precision and F of a rare class beside OASIS and LURE, on simulated pools with 5% positives."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._coverage_tally import LEVEL, Section, as_text, tracked
from benchmarks._vetting_rivals import lure, oasis, value_of

__all__ = ["RarePool", "make_pool", "rare"]

Codes = npt.NDArray[np.int64]

N_ITEMS = 1000
SHARE = 0.05
N_LABELERS = 3
N_ANSWERS = (50, 100, 200)
MEASURES = ("recall", "precision", "f1")
BATCH = 10
RUNS_A_POOL = 4
FIRST_SEED = 271_000  # not used in development
_APART = 3.0  # of positives and negatives, in standard deviations of what one sees of an item
_RIVALS = {"OASIS": oasis, "LURE": lure}


@dataclass(frozen=True, eq=False)
class RarePool:
    """Noisy votes, the predictions of a system, and the truth that an expert gets to see; classes are 0 and 1."""

    labels: tu.Labels
    predicted: Codes
    truth: Codes


def make_pool(seed: int, *, shared: float) -> RarePool:
    """Labelers and the system see an item with noise, of which a part is the same for all, and have thresholds.

    Parameters
    ----------
    seed : int
    shared : float
        The standard deviation of the noise that is the same for all; that of one's own makes it up to one.
    """
    rng = np.random.default_rng(seed)
    truth = rng.permutation((np.arange(N_ITEMS) < round(SHARE * N_ITEMS)).astype(np.int64))
    seen = _APART * truth + shared * rng.standard_normal(N_ITEMS)
    own = math.sqrt(1 - shared**2)
    thresholds, noise = rng.uniform(1.4, 2.0, N_LABELERS), rng.uniform(0.9, 1.3, N_LABELERS)
    votes = (seen[:, None] + own * noise * rng.standard_normal((N_ITEMS, N_LABELERS)) > thresholds).astype(np.int64)
    predicted = (seen + own * rng.standard_normal(N_ITEMS) > 1.7).astype(np.int64)
    return RarePool(tu.Labels.from_matrix(votes, classes=[0, 1]), predicted, truth)


WORLDS = {"errors are independent": 0.0, "errors are shared": 0.7}


def rare(quick: bool, repetitions: int | None = None) -> Section:
    """Root of the mean squared error after 50, 100 and 200 answers, with what the votes say for all methods."""
    n_pools = math.ceil((repetitions or (8 if quick else 500)) / (RUNS_A_POOL * len(WORLDS)))
    squares: dict[tuple[str, str, str, int], list[float]] = defaultdict(list)
    held: dict[tuple[str, str, int], list[bool]] = defaultdict(list)
    for k in tracked(range(n_pools), "rare"):
        for world, shared in WORLDS.items():
            pool = make_pool(FIRST_SEED + k, shared=shared)
            for measure in MEASURES:
                _run_pool(pool, world, measure, squares, held, seed=FIRST_SEED + k)
    methods = ("trueup", *_RIVALS)
    rmse = {key: math.sqrt(np.mean(values)) for key, values in squares.items()}
    together = {
        (method, measure, n): math.sqrt(np.mean([v for world in WORLDS for v in squares[world, method, measure, n]]))
        for method in methods
        for measure in MEASURES
        for n in N_ANSWERS
    }
    head = ["pools", "method", *(f"{measure}, {n}" for measure in MEASURES for n in N_ANSWERS)]
    cells = [(measure, n) for measure in MEASURES for n in N_ANSWERS]
    rows = [["all", method, *(f"{together[method, m, n]:.4f}" for m, n in cells)] for method in methods]
    rows += [
        [world, method, *(f"{rmse[world, method, m, n]:.4f}" for m, n in cells)]
        for world in WORLDS
        for method in methods
    ]
    rows += [[world, "covers %", *(f"{100 * np.mean(held[world, m, n]):.1f}" for m, n in cells)] for world in WORLDS]
    n_runs = n_pools * RUNS_A_POOL * len(WORLDS)
    text = "\n\n".join(
        [
            f"Root of the mean squared error by the number of answers: {n_runs} runs on {n_pools * len(WORLDS)} pools "
            f"of {N_ITEMS} items, {100 * SHARE:.0f}% positive, {N_LABELERS} labelers",
            as_text(head, rows, left=(0, 1)),
            "OASIS and LURE get P(positive | votes) of the noise model as their score. OASIS: 30 strata by the\n"
            "cumulative root of frequencies, 0.1% even draws, a prior of two answers a stratum that fades. LURE: no\n"
            "chance below half of an even one. Covers: how often the 95% interval of trueup holds.\n"
            "Asked: ahead on each.",
        ]
    )
    numbers = {
        "runs": n_runs,
        "rmse": {f"{method}, {m}, {n}": value for (method, m, n), value in together.items()},
        "rmse_by_world": {", ".join(map(str, key)): value for key, value in rmse.items()},
        "coverage": {", ".join(map(str, key)): float(np.mean(values)) for key, values in held.items()},
    }
    return Section(text, numbers)


def _run_pool(
    pool: RarePool,
    world: str,
    measure: str,
    squares: dict[tuple[str, str, str, int], list[float]],
    held: dict[tuple[str, str, int], list[bool]],
    *,
    seed: int,
) -> None:
    true = value_of(measure, pool.predicted, pool.truth)
    first = tu.ActiveTest(pool.predicted, pool.labels, metric=measure)
    score = first.pool.prior[:, 1]
    for run in range(RUNS_A_POOL):
        test = first.restart(random_state=run)
        for n in N_ANSWERS:
            while test.n_vetted < n:
                test.tell({item: int(pool.truth[item]) for item in test.ask(min(BATCH, n - test.n_vetted))})
            estimate = test.estimate()
            low, high = estimate.interval(LEVEL)
            squares[world, "trueup", measure, n].append((estimate.mean - true) ** 2)
            held[world, measure, n].append(bool(low - 1e-9 <= true <= high + 1e-9))
        for name, rival in _RIVALS.items():
            rng = np.random.default_rng([seed, run])
            values = rival(measure, pool.predicted, score, lambda k: int(pool.truth[k]), N_ANSWERS, rng)
            for n, value in zip(N_ANSWERS, values, strict=True):
                # An answer that is not defined is worth the middle of the scale.
                squares[world, name, measure, n].append(0.25 if math.isnan(value) else (value - true) ** 2)
