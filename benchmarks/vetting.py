"""What answers of an expert are worth: active testing beside random vetting, PPI++, importance sampling and LURE.

Run ``python -m benchmarks.vetting [section ...] [--quick] [--repetitions n] [--json out.json]``; without names all
sections are run. Sections: crowd (50 truths for a labeler of a crowd), rare (beside OASIS and LURE where 5% are
positive). ``--repetitions`` is for each pool, and for all of "rare"; every section
has its own default. TRUEUP_PEERS names a Python that has ppi-python, which is left out without it. Real data are found
through TRUEUP_DATA. Truth answers what is asked, and measures; nothing else.
"""

from __future__ import annotations

import argparse
import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._answers import interval_row, row_of, select, tally_of
from benchmarks._coverage_tally import LEVEL, Tally, as_text, share, tracked
from benchmarks._data import CROWD_SETS, graded_labelers, load_crowd, one_against_others
from benchmarks._runs import MOST_PROCESSES, RUNS, Case, Row, run_cases
from benchmarks._sections import run_sections
from benchmarks._vetting_rivals import Sample, lure, oasis, ppi_plus_plus, ppi_python, value_of
from trueup._base.types import Codes, Floats
from trueup.posteriors import wilson

# ---- Real crowds: how wide are intervals after 50 answers, and how many answers does a half-width take?


N_VETTED = 50
BATCH = 10
WILSON = "Wilson, random"
PPI, PEER = "PPI++, random", "ppi-python, random"
BAYES = "bayes, random"
OURS = {"random": "rectified, random", "propensity": "rectified, propensity"}
METHODS = (WILSON, PPI, PEER, OURS["random"], OURS["propensity"], BAYES)
HALF_WIDTH = 0.02
Tallies = dict[str, dict[str, Tally]]


def crowd(quick: bool, repetitions: int | None = None) -> str:
    """Labelers as classifiers, 50 truths: coverage and width beside a Wilson interval on 50 random truths."""
    n_cases = math.ceil((repetitions or (5 if quick else 20)) / REPETITIONS_A_CASE)
    names = pool_names(quick, most=2 if quick else 8)
    cases = [Case(with_peer(name), k) for k in range(n_cases) for name in names]
    processes, folder = (1, None) if quick else (MOST_PROCESSES, RUNS)
    rows = run_cases("vetting-crowd", run_crowd, cases, processes=processes, folder=folder)
    sets = list(dict.fromkeys(set_of(name) for name in names))
    tallies: Tallies = {
        method: {name: tally_of(select(rows, answer=method, set=name)) for name in sets}
        for method in METHODS
        if select(rows, answer=method)
    }
    about = (
        f"{len(names)} labelers of {len(sets)} crowd sets as classifiers, {N_VETTED} vetted truths, "
        f"{n_cases * REPETITIONS_A_CASE} repetitions each (bayes: {n_cases})"
    )
    return _crowd_section(about, tallies)


def run_crowd(case: Case) -> list[Row]:
    """Some repetitions of one labeler."""
    pool = _pools_of(set_of(case.world))[int(case.world.split(_SEPARATOR)[1])]
    sessions = {name: pool.session(strategy=name) for name in OURS}
    believed = pool.believed(sessions["random"])
    rows, samples = [], []
    for k in range(REPETITIONS_A_CASE):
        seed = case.seed * REPETITIONS_A_CASE + k
        tests = {
            name: vet(test.restart(random_state=seed), pool.truth, N_VETTED, batch=BATCH)
            for name, test in sessions.items()
        }
        rows += [row_of(OURS[name], pool.accuracy, test.estimate()) for name, test in tests.items()]
        if k == 0:  # it is fitted anew each time
            bayes = pool.session(strategy="random", estimator="bayes").replay(tests["random"].log)
            rows.append(row_of(BAYES, pool.accuracy, bayes.estimate()))
        vetted = tests["random"].progress.vetted
        hits = pool.hits[vetted]
        ends = wilson(float(hits.sum()), len(hits))
        rows.append(interval_row(WILSON, pool.accuracy, float(hits.mean()), ends))
        samples.append(Sample(hits, believed[vetted], believed[~vetted]))
        rows.append(interval_row(PPI, pool.accuracy, *ppi_plus_plus(samples[-1])))
    rows += [interval_row(PEER, pool.accuracy, sum(ends) / 2, ends) for ends in ppi_python(samples) or []]
    return [{**row, "set": pool.name} for row in rows]


def _crowd_section(about: str, tallies: Tallies) -> str:
    together = {name: sum(by_set.values(), Tally()) for name, by_set in tallies.items()}
    sets = list(tallies[WILSON])
    rows = []
    for name, tally in together.items():
        by_set = tallies[name]
        ratios = {key: by_set[key].width / tallies[WILSON][key].width for key in sets}
        worst = min(sets, key=lambda key: by_set[key].coverage)
        ratio, mean_ratio = tally.width / together[WILSON].width, float(np.mean(list(ratios.values())))
        widths = [f"{width:.3f}" for width in (tally.width, ratio, mean_ratio)]
        worst_cell = f"{100 * by_set[worst].coverage:.0f} ({worst})"
        rows.append([name, str(len(tally)), share(tally), *widths, f"{tally.rmse:.4f}", worst_cell])
    head = ["method", "cases", "covers %", "width", "/ Wilson", "mean of sets", "rmse", "worst set"]
    of_sets = []
    for key in sets:
        own, wilsons = [by[key] for by in tallies.values()], tallies[WILSON][key].width
        of_sets.append([key, *(f"{tally.coverage:.2f} / {tally.width / wilsons:.2f}" for tally in own)])
    return "\n\n".join(
        [
            about,
            as_text(head, rows),
            "Coverage and width as a share of Wilson's:",
            as_text(["set", *tallies], of_sets),
            "Asked of rectified: coverage of at least 94% at a width of at most 0.74, then towards 0.65.",
            *(() if PEER in tallies else ("ppi-python is left out: set TRUEUP_PEERS to a Python that has it.",)),
        ]
    )


# ---- Pools of items to vet: real labelers graded as classifiers from the votes of the others


QUICK_SETS = ("crowd-bluebird", "crowd-snow-temp")
REPETITIONS_A_CASE = 5  # for which a pool is read once
_LEAST_ITEMS = 100
_SEPARATOR = " / "


@dataclass(frozen=True, eq=False)
class Pool:
    """One system, noisy votes, and the truth that only an expert gets to see; classes by item."""

    name: str
    labels: tu.Labels
    predictions: Mapping[Any, Any]
    truth: Mapping[Any, Any]

    @cached_property
    def hits(self) -> Floats:
        """Whether the system is right on each item, in the order of ``labels.items``."""
        return np.array([self.predictions[i] == self.truth[i] for i in self.labels.items.tolist()], dtype=float)

    @property
    def accuracy(self) -> float:
        """The true accuracy on the pool."""
        return float(self.hits.mean())

    def session(self, **settings: Any) -> tu.ActiveTest:
        """A session on this pool."""
        return tu.ActiveTest(self.predictions, self.labels, **settings)

    def believed(self, test: tu.ActiveTest) -> Floats:
        """P(the system is right) of each item by the votes alone."""
        codes = test.pool.aligned.codes
        assert codes is not None
        return np.asarray(test.pool.prior[np.arange(test.pool.n_items), codes[0]])


@lru_cache(maxsize=2)
def _pools_of(name: str) -> tuple[Pool, ...]:
    """Of the labelers with most votes of a crowd set, each on the items he voted on and whose truth is known."""
    labels, truth = load_crowd(name)
    classes = labels.classes.tolist()
    known = {item: classes[c] for item, c in zip(labels.items.tolist(), truth.tolist(), strict=True) if c >= 0}
    pools = []
    for t in graded_labelers(name, labels).tolist():
        others, votes = one_against_others(labels, t)
        mine = {item: vote for item, vote in votes.items() if item in known}
        if len(mine) >= _LEAST_ITEMS:
            pools.append(Pool(name, others.select(items=list(mine)), mine, {item: known[item] for item in mine}))
    return tuple(pools)


def pool_names(quick: bool, *, most: int = 8) -> list[str]:
    """Of so many labelers of each crowd set at most."""
    sets = QUICK_SETS if quick else CROWD_SETS
    return [f"{name}{_SEPARATOR}{k}" for name in sets for k in range(len(_pools_of(name)[:most]))]


def set_of(name: str) -> str:
    """The crowd set that a pool is of."""
    return name.split(_SEPARATOR)[0]


def with_peer(name: str) -> str:
    """The name of a case that a peer is asked about too, where there is one: without it less is kept."""
    return f"{name}{_SEPARATOR}peer" if os.environ.get("TRUEUP_PEERS") else name


def vet(test: tu.ActiveTest, truth: Mapping[Any, Any], n: int, *, batch: int) -> tu.ActiveTest:
    """The session after n answers, asked for in batches."""
    while test.n_vetted < n:
        asked = test.ask(min(batch, n - test.n_vetted))
        if not len(asked):
            break
        test.tell({item: truth[item] for item in asked})
    return test


# ---- Recall, precision and F of a rare class beside OASIS and LURE, on simulated pools with 5% positives


N_ITEMS = 1000
SHARE = 0.05
N_LABELERS = 3
N_ANSWERS = (50, 100, 200)
MEASURES = ("recall", "precision", "f1")
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
    """Labelers and the system see an item with noise, and have thresholds.

    A part of the noise, of standard deviation `shared`, is the same for all; that of one's own makes it up to one.
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


def rare(quick: bool, repetitions: int | None = None) -> str:
    """Root of the mean squared error after so many answers, with what the votes say for all methods."""
    n_pools = math.ceil((repetitions or (8 if quick else 500)) / (RUNS_A_POOL * len(WORLDS)))
    squares: dict[tuple[str, str, str, int], list[float]] = defaultdict(list)
    held: dict[tuple[str, str, int], list[bool]] = defaultdict(list)
    for k in tracked(range(n_pools), "rare"):
        for world, shared in WORLDS.items():
            pool = make_pool(FIRST_SEED + k, shared=shared)
            for measure in MEASURES:
                _run_pool(pool, world, measure, squares, held, seed=FIRST_SEED + k)
    cells = [(measure, n) for measure in MEASURES for n in N_ANSWERS]
    rows = []
    for title, worlds in (("all", tuple(WORLDS)), *((world, (world,)) for world in WORLDS)):
        for method in ("trueup", *_RIVALS):
            errors = [np.sqrt(np.mean([squares[world, method, m, n] for world in worlds])) for m, n in cells]
            rows.append([title, method, *(f"{error:.4f}" for error in errors)])
    rows += [[world, "covers %", *(f"{100 * np.mean(held[world, m, n]):.1f}" for m, n in cells)] for world in WORLDS]
    head = ["pools", "method", *(f"{measure}, {n}" for measure, n in cells)]
    n_runs = n_pools * RUNS_A_POOL * len(WORLDS)
    return "\n\n".join(
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the sections that are named, or all."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--repetitions", type=int)
    own, rest = parser.parse_known_args(arguments)
    sections = {run.__name__: partial(run, repetitions=own.repetitions) for run in (crowd, rare)}
    run_sections("vetting", __doc__, sections, rest)


if __name__ == "__main__":
    main()
