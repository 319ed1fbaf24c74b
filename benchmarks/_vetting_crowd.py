"""Real crowds: how wide are intervals after 50 answers, and how many answers does a half-width take?"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

import trueup as tu
from benchmarks._answers import interval_row, row_of, select, tally_of
from benchmarks._coverage_tally import LEVEL, Section, Tally, as_text, share
from benchmarks._runs import Case, Row
from benchmarks._vetting_pools import REPETITIONS_A_CASE, Pool, kept_rows, load_pool, pool_names, set_of, vet, with_peer
from benchmarks._vetting_rivals import Sample, ppi_plus_plus, ppi_python
from trueup.active import Event
from trueup.posteriors import wilson

__all__ = ["crowd", "needed"]

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


def needed(quick: bool, repetitions: int | None = None) -> Section:
    """Answers until half of the interval of the accuracy is at most 0.02 wide."""
    repetitions = repetitions or 1
    names = pool_names(quick, most=2 if quick else 8)
    found = kept_rows("needed", run_needed, [Case(name, k) for k in range(repetitions) for name in names], quick=quick)
    by_set: dict[str, list[list[float]]] = defaultdict(list)
    for row in found:
        by_set[set_of(row["world"])].append(row["numbers"])
    held = [row["held"] for row in found]
    means = {name: np.mean(rows, axis=0) for name, rows in by_set.items()}
    rows, shares = [], []
    for name, mean in means.items():
        shares.append([*(mean[3:] / mean[1]), *(mean[3:] / mean[2])])
        rows.append([name, *(f"{x:.0f}" for x in mean), *(f"{x:.2f}" for x in shares[-1])])
    overall = np.mean(shares, axis=0)
    rows.append(["mean of the shares", *[""] * 5, *(f"{x:.2f}" for x in overall)])
    total = np.mean(list(means.values()), axis=0)
    of_means = np.array([*(total[3:] / total[1]), *(total[3:] / total[2])])
    rows.append(["share of the means", *(f"{x:.0f}" for x in total), *(f"{x:.2f}" for x in of_means)])
    covered = dict(zip(OURS, np.mean(held, axis=0).tolist(), strict=True))
    head = [
        "set",
        "items",
        "Wilson",
        "finite",
        *OURS,
        *(f"{s} / Wilson" for s in OURS),
        *(f"{s} / finite" for s in OURS),
    ]
    text = "\n\n".join(
        [
            f"Answers for a half-width of {HALF_WIDTH} on accuracy: {len(names)} labelers, {repetitions} repetitions",
            as_text(head, rows),
            "Wilson: vetted-only, random, until half of Wilson's interval is narrow enough or all items are vetted;\n"
            "finite: the same with the correction for a finite pool. Asked: at most 0.5 on the mean over the sets.\n"
            "Where it stops the interval holds the truth: "
            + ", ".join(f"{name} {100 * rate:.0f}%" for name, rate in covered.items())
            + f" of {len(held)}.",
        ]
    )
    numbers = {
        "sets": {name: mean.tolist() for name, mean in means.items()},
        "mean of the shares": dict(zip(head[-4:], overall.tolist(), strict=True)),
        "share of the means": dict(zip(head[-4:], of_means.tolist(), strict=True)),
        "coverage": covered,
    }
    return Section(text, numbers)


def run_needed(case: Case) -> list[Row]:
    """One labeler: the number of items, what Wilson's intervals take, and what sessions take."""
    pool = load_pool(case.world)
    ours = [_needed_by(pool, pool.session(strategy=name, random_state=case.seed)) for name in OURS]
    numbers = [pool.labels.n_items, *_vetted_only(pool, case.seed), *(n for n, _ in ours)]
    return [{"numbers": numbers, "held": [bool(inside) for _, inside in ours]}]


def _vetted_only(pool: Pool, seed: int) -> tuple[int, int]:
    """Answers that Wilson's interval takes; and the same if it knows how few items are left."""
    n_items = pool.labels.n_items
    upto = np.cumsum(np.random.default_rng(seed).permutation(pool.hits))
    half = np.array([np.ptp(wilson(float(right), n)) / 2 for n, right in enumerate(upto, start=1)])
    left = np.sqrt(1 - np.arange(1, n_items + 1) / n_items)
    first, finite = (
        int(np.argmax(widths <= HALF_WIDTH)) + 1 if (widths <= HALF_WIDTH).any() else n_items
        for widths in (half, half * left)
    )
    return first, finite


def _needed_by(pool: Pool, test: tu.ActiveTest) -> tuple[int, bool]:
    """Answers that the session takes, and whether its interval then holds the truth.

    By bisection: it is asked for all items, and cut where half the interval fits.
    """
    n_items = pool.labels.n_items
    vet(test, pool.truth, n_items, batch=max(BATCH, math.ceil(n_items / 25)))
    log, tells = test.log, [k for k, event in enumerate(test.log) if event.kind == "tell"]
    low, high, inside = BATCH, len(tells), True
    while high - low > max(0.02 * high, 1):
        middle = (low + high) // 2
        ends = test.replay(_first_tells(log, tells[middle - 1])).estimate().interval(LEVEL)
        if (ends[1] - ends[0]) / 2 <= HALF_WIDTH:
            high, inside = middle, ends[0] - 1e-9 <= pool.accuracy <= ends[1] + 1e-9
        else:
            low = middle
    return high, inside


def _first_tells(log: tuple[Event, ...], last: int) -> list[Event]:
    """The log up to a tell, without what was asked and had no answer by then."""
    told = {event.item for event in log[: last + 1] if event.kind == "tell"}
    return [event for event in log[: last + 1] if event.item in told]
