"""Twelve slices with 60 vetted items in all: do their intervals hold, and are the right ones called worse?

The slices are drawn from a population, whose rates are asked for; beside them those of exactly these items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

import trueup as tu
from benchmarks._answers import draw_gold, for_population, row_of, select, tally_of
from benchmarks._coverage_tally import as_text, share_over_runs
from benchmarks._runs import Case, Figure, Row
from trueup._base.types import Codes, Floats

N_SLICES = 12
SIZES = (40, 400)
GOLD = 60
N_REFITTED = 40  # data sets of which each slice is also fitted by itself: twelve fits, for a ratio of widths
N_JUDGES = 3
RIGHT = (0.80, 0.90)
LEVEL_OF_RATES, SPREAD_OF_RATES = 1.0, 0.6  # of the slices' rates, in log-odds
TOGETHER, TOGETHER_SAMPLE, REFITTED = "population", "these items", "these items, refitted"
FIRST_SEED = 19_000
# What slices do to the judges: by how much their log-odds of being right differ between slices, for all judges alike.
WORLDS = {"judges alike everywhere": 0.0, "judges differ by slice": 0.5, "judges favour one slice": 0.0}
FAVOURING = "judges favour one slice"
FAVOURED = 0.3  # so many of its failures all judges let pass together, which no vote shows


@dataclass(frozen=True, eq=False)
class SlicedWorld:
    """Labels with a column "topic", the truth and the slice of each item, the rates of slices in the population."""

    labels: tu.Labels
    truth: Codes
    topic: Codes
    rates: Floats
    favoured: int  # the slice that judges favour, -1 for none


def make(world: str, rng: np.random.Generator) -> SlicedWorld:
    """One data set."""
    sizes = np.exp(rng.uniform(*np.log(SIZES), N_SLICES)).astype(int)
    topic = np.repeat(np.arange(N_SLICES), sizes)
    rates = expit(rng.normal(LEVEL_OF_RATES, SPREAD_OF_RATES, N_SLICES))
    truth = (rng.random(len(topic)) < rates[topic]).astype(np.int64)
    shift = rng.normal(0, WORLDS[world], (N_SLICES, 2))
    right = expit(logit(np.take(RIGHT, truth)) + shift[topic, truth])
    verdicts = np.where(rng.random((len(topic), N_JUDGES)) < right[:, None], truth[:, None], 1 - truth[:, None])
    favoured = int(rng.integers(N_SLICES)) if world == FAVOURING else -1
    if world == FAVOURING:
        verdicts[(topic == favoured) & (truth == 0) & (rng.random(len(topic)) < FAVOURED)] = 1
    labels = tu.Labels.from_matrix(verdicts, classes=[0, 1])
    labels = labels.with_items({"item": labels.items.tolist(), "topic": topic.tolist()})
    return SlicedWorld(labels, truth, topic, rates, favoured)


def run_slices(case: Case) -> list[Row]:
    """All slices from one fit, and in some data sets each by itself."""
    rng = np.random.default_rng([case.seed, 19])
    made = make(case.world, rng)
    vetted, _ = draw_gold(made.labels, made.truth, GOLD, rng)
    options = {"check_dependence": False, "random_state": case.seed}
    of_these = tu.share(vetted, of=1, by="topic", **options)
    of_all = for_population(of_these)
    sizes = np.bincount(made.topic, minlength=N_SLICES)
    shares = np.bincount(made.topic, made.truth, minlength=N_SLICES) / sizes
    named = {TOGETHER: of_all.lower(), TOGETHER_SAMPLE: of_these.lower()}
    rows = []
    for k in range(N_SLICES):
        about = {"slice": k, "n_items": int(sizes[k]), "favoured": k == made.favoured}
        for answer, estimates, true in ((TOGETHER, of_all, made.rates), (TOGETHER_SAMPLE, of_these, shares)):
            others = np.arange(N_SLICES) != k
            lower = bool(true[k] < np.average(true[others], weights=sizes[others]))
            rows.append(row_of(answer, float(true[k]), estimates[k], named=k in named[answer], lower=lower, **about))
        if case.seed < FIRST_SEED + N_REFITTED and case.world != FAVOURING:
            alone = tu.share(vetted.select(items=vetted.items[made.topic == k]), of=1, **options)
            rows.append(row_of(REFITTED, float(shares[k]), alone.overall, **about))
    return rows


def false_discoveries(rows: Sequence[Row]) -> tuple[float, float, float]:
    """The mean share of named slices that are not lower, its standard error, and how many are named a run."""
    shares, n_named = [], []
    for seed in dict.fromkeys(row["seed"] for row in rows):
        named = [row for row in rows if row["seed"] == seed and row["named"]]
        n_named.append(len(named))
        shares.append(sum(not row["lower"] for row in named) / max(len(named), 1))
    return float(np.mean(shares)), float(np.std(shares) / np.sqrt(len(shares))), float(np.mean(n_named))


def worst_by_size(rows: Sequence[Row]) -> float:
    """The least coverage of the twelve places that a slice may have by its size among those of its data set."""
    by_place: dict[int, list[Row]] = {}
    for seed in dict.fromkeys(row["seed"] for row in rows):
        for place, row in enumerate(sorted(select(rows, seed=seed), key=lambda row: row["n_items"])):
            by_place.setdefault(place, []).append(row)
    return min(tally_of(own).coverage for own in by_place.values())


def summarise_slices(rows: Sequence[Row]) -> str:
    lines, told = [], []
    for world in dict.fromkeys(row["world"] for row in rows):
        of_world = select(rows, world=world)
        refitted = select(of_world, answer=REFITTED)
        on_the_same = {row["seed"] for row in refitted}
        for answer in dict.fromkeys(row["answer"] for row in of_world):
            own = select(of_world, answer=answer)
            tally, runs = tally_of(own), [row["seed"] for row in own]
            ratio = "–"
            if refitted and answer != TOGETHER:  # the same rates, so that their widths may be compared
                on_these = tally_of([row for row in own if row["seed"] in on_the_same])
                ratio = f"{on_these.width / tally_of(refitted).width:.2f}"
            cells = [f"{tally.mae:.4f}", f"{tally.width:.4f}", ratio, str(len(set(runs)))]
            lines.append([world, answer, share_over_runs(tally, runs), *cells])
        for answer in (TOGETHER, TOGETHER_SAMPLE):
            own = select(of_world, answer=answer)
            rate, error, n_named = false_discoveries(own)
            favoured = select(own, favoured=True)
            of_favoured = f"{100 * tally_of(favoured).coverage:.1f}" if favoured else "–"
            cells = [f"{100 * worst_by_size(own):.1f}", of_favoured, f"{n_named:.2f}"]
            told.append([world, answer, *cells, f"{100 * rate:.1f} ± {100 * error:.1f}"])
    head = ["world", "rates of", "covers % ± s.e.", "mean |error|", "width", "× refitted", "runs"]
    table = as_text(head, lines, left=(0, 1))
    head = ["world", "rates of", "worst slice covers %", "favoured covers %", "called lower a run", "falsely % ± s.e."]
    findings = as_text(head, told, left=(0, 1))
    return (
        f"{N_SLICES} slices of {SIZES[0]} to {SIZES[1]} items that are drawn from a population, rates with a standard "
        f"deviation of {SPREAD_OF_RATES} in\nlog-odds, {N_JUDGES} judges, {GOLD} vetted items in all; where judges "
        f"favour one slice, they let {FAVOURED:.0%} of its failures pass\ntogether. ± is the standard error over data "
        f"sets, the worst slice is that of the twelve places by size.\n\n{table}\n\n{findings}\n\n"
        "Target: 93–97% averaged, at least 88% in the worst slice, at most 5% called lower falsely; at most .8 times "
        "as wide as refitted."
    )


SLICES_FIGURE = Figure(tuple(WORLDS), run_slices, summarise_slices, n_runs=400, n_quick=1, first_seed=FIRST_SEED)
