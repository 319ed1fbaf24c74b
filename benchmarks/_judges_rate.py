"""How often a system passes in truth: one judge, or three that err together, and some vetted items of 5,000."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import trueup as tu
from benchmarks._answers import coverage_table, draw_gold, interval_row, row_of, select, width_over
from benchmarks._runs import Case, Figure, Row
from benchmarks._vetting_rivals import Sample, ppi_plus_plus
from trueup._base.types import Codes
from trueup.answers.evaluate import evaluate_again
from trueup.answers.gates import Gate

N_ITEMS = 5000
GOLD = (40, 60, 100)
RIGHT = (0.80, 0.90)  # of a judge, on items that fail and that pass
RATES = (0.5, 0.8)
COPYING = 0.5  # of three judges of one family: how often one repeats its verdict
OWN, PEER, PEER_OF_ALL = "trueup", "PPI++", "PPI++ of their mean"
PROBABILITY = 0.95


def verdicts_of(truth: Codes, n_judges: int, rng: np.random.Generator) -> Codes:
    """One judge, or a family of several: each repeats its verdict, or gives one of their own."""

    def judged() -> Codes:
        return np.where(rng.random(len(truth)) < np.take(RIGHT, truth), truth, 1 - truth)

    if n_judges == 1:
        return judged()[:, None]
    family = judged()
    return np.stack([np.where(rng.random(len(truth)) < COPYING, family, judged()) for _ in range(n_judges)], axis=1)


def run_rate(case: Case) -> list[Row]:
    """The rate of the population, of which the items are a sample."""
    rng = np.random.default_rng([case.seed, 18])
    n_judges = int(case.world.split()[0])
    rate = float(rng.uniform(*RATES))
    truth = (rng.random(N_ITEMS) < rate).astype(np.int64)
    verdicts = verdicts_of(truth, n_judges, rng)
    labels = tu.Labels.from_matrix(verdicts, classes=[0, 1])
    best = verdicts[:, (verdicts == truth[:, None]).mean(axis=0).argmax()].astype(float)
    plain = tu.share(labels, of=1, target="population", check_dependence=False, random_state=case.seed)
    rows = []
    for n in GOLD:
        vetted, at = draw_gold(labels, truth, n, rng)
        again = evaluate_again(plain.evaluation, vetted)
        estimate = again[plain.name]
        met, missed = Gate("rate", "at least", rate).chances(estimate)
        rows.append(row_of(OWN, rate, estimate, n_gold=n, basis=again.basis, met=met, missed=missed))
        others = np.delete(np.arange(N_ITEMS), at)
        of_peers = {PEER: best} | ({PEER_OF_ALL: verdicts.mean(axis=1)} if n_judges > 1 else {})
        for peer, said in of_peers.items():
            sample = Sample(truth[at].astype(float), said[at], said[others])
            rows.append(interval_row(peer, rate, *ppi_plus_plus(sample), n_gold=n))
    return rows


def gate_errors(rows: Sequence[Row]) -> tuple[float, float]:
    """How often a gate whose bound is the very truth is passed, and how often it fails."""
    met, missed = (np.array([row[name] for row in rows]) for name in ("met", "missed"))
    return float((met >= PROBABILITY).mean()), float((missed >= PROBABILITY).mean())


def summarise_rate(rows: Sequence[Row]) -> str:
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    groups = [(f"{world}, {n} vetted", {"world": world, "n_gold": n}) for world in worlds for n in GOLD]
    text = coverage_table(rows, groups, (OWN, PEER, PEER_OF_ALL), ratios={"× PPI++": width_over(PEER)})
    told = []
    for title, values in groups:
        passed, failed = gate_errors(select(rows, answer=OWN, **values))
        told.append(f"  {title}: passed {100 * passed:.1f}%, failed {100 * failed:.1f}%")
    gates = "\n".join(told)
    return (
        f"The share of {N_ITEMS:,} items that pass, in the population. A judge is right on 90% of those that pass and "
        f"80% of those that fail;\nthree judges repeat the verdict of their family with {COPYING:.0%}. PPI++ has the "
        f"best single judge, or the mean of the three.\n\n{text}\n\nA gate whose bound is the very truth, at "
        f"probability {PROBABILITY}:\n{gates}"
        "\n\nTarget: 93–97%; one judge at most 1.05 times as wide as PPI++, three at most .95 times. A gate is passed "
        "at most\n5% of the time, and failed as seldom."
    )


RATE_FIGURE = Figure(("1 judge", "3 judges"), run_rate, summarise_rate, n_runs=400, n_quick=2, first_seed=18_000)
