"""Real crowds: how wide are intervals after 50 answers, and how many answers does a half-width take?"""

from __future__ import annotations

import math

import numpy as np

from benchmarks._answers import interval_row, row_of, select, tally_of
from benchmarks._coverage_tally import Section, Tally, as_text, share
from benchmarks._runs import Case, Row
from benchmarks._vetting_pools import REPETITIONS_A_CASE, kept_rows, load_pool, pool_names, set_of, vet, with_peer
from benchmarks._vetting_rivals import Sample, ppi_plus_plus, ppi_python
from trueup.posteriors import wilson

__all__ = ["crowd"]

N_VETTED = 50
BATCH = 10
WILSON = "Wilson, random"
PPI, PEER = "PPI++, random", "ppi-python, random"
BAYES = "bayes, random"
OURS = {"random": "rectified, random", "propensity": "rectified, propensity"}
METHODS = (WILSON, PPI, PEER, OURS["random"], OURS["propensity"], BAYES)
HALF_WIDTH = 0.02
Tallies = dict[str, dict[str, Tally]]


def crowd(quick: bool, repetitions: int | None = None) -> Section:
    """Labelers as classifiers, 50 truths: coverage and width beside a Wilson interval on 50 random truths."""
    n_cases = math.ceil((repetitions or (5 if quick else 20)) / REPETITIONS_A_CASE)
    names = pool_names(quick, most=2 if quick else 8)
    cases = [Case(with_peer(name), k) for k in range(n_cases) for name in names]
    rows = kept_rows("crowd", run_crowd, cases, quick=quick)
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
    pool = load_pool(case.world)
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


def _crowd_section(about: str, tallies: Tallies) -> Section:
    together = {name: sum(by_set.values(), Tally()) for name, by_set in tallies.items()}
    sets = list(tallies[WILSON])
    rows, numbers = [], {}
    for name, tally in together.items():
        by_set = tallies[name]
        ratios = {key: by_set[key].width / tallies[WILSON][key].width for key in sets}
        worst = min(sets, key=lambda key: by_set[key].coverage)
        ratio, mean_ratio = tally.width / together[WILSON].width, float(np.mean(list(ratios.values())))
        rows.append(
            [
                name,
                str(len(tally)),
                share(tally),
                f"{tally.width:.3f}",
                f"{ratio:.3f}",
                f"{mean_ratio:.3f}",
                f"{tally.rmse:.4f}",
                f"{100 * by_set[worst].coverage:.0f} ({worst})",
            ]
        )
        numbers[name] = {
            **tally.numbers(),
            "ratio": ratio,
            "mean ratio": mean_ratio,
            "sets": {key: {"coverage": by_set[key].coverage, "ratio": ratios[key]} for key in sets},
        }
    head = ["method", "cases", "covers %", "width", "/ Wilson", "mean of sets", "rmse", "worst set"]
    of_sets = [
        [
            key,
            *(f"{by[key].coverage:.2f} / {by[key].width / tallies[WILSON][key].width:.2f}" for by in tallies.values()),
        ]
        for key in sets
    ]
    text = "\n\n".join(
        [
            about,
            as_text(head, rows),
            "Coverage and width as a share of Wilson's:",
            as_text(["set", *tallies], of_sets),
            "Asked of rectified: coverage of at least 94% at a width of at most 0.74, then towards 0.65.",
            *(() if PEER in tallies else ("ppi-python is left out: set TRUEUP_PEERS to a Python that has it.",)),
        ]
    )
    return Section(text, numbers)


# ------------------------------------------------------------------ answers for a half-width
