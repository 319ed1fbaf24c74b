"""A noisy judge whose rates are known, networks with one human vote an image, and a pool of a million items."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._answers import interval_row, row_of, select, tally_of
from benchmarks._coverage_cifar import drawn_labels, load_cifar
from benchmarks._coverage_tally import Section, Tally, as_text, share
from benchmarks._data import data_folder
from benchmarks._runs import Case, Row
from benchmarks._vetting_pools import Pool, kept_rows, vet, with_peer
from benchmarks._vetting_rivals import Sample, ppi_plus_plus, ppi_python
from trueup.posteriors import wilson

__all__ = ["cifar", "judge", "speed"]

Codes = npt.NDArray[np.int64]
Thing = TypeVar("Thing")

# With this share of positives the known widths come out: 0.178, 0.128 and 0.197 on the mean of 600 draws.
SENSITIVITY, SPECIFICITY, PREVALENCE = 0.9, 0.8, 0.7
N_JUDGED, N_GOLD = 5000, 100
# The default, which can learn little where every item has one vote; and one that believes the vote at first.
NOISES = ("soft-truth", "dawid-skene")
N_IMAGES_VETTED = 100


# ------------------------------------------------------------------ a mean from a noisy judge


def judge(quick: bool, repetitions: int | None = None) -> Section:
    """The share of positives among 5000 items by a judge, with 100 random truths: beside PPI++ on the same draws.

    The share of positives is the accuracy of a system that always says yes.
    """
    repetitions = repetitions or (5 if quick else 200)
    cases = [Case(with_peer("judge"), seed) for seed in range(repetitions)]
    found = kept_rows("judge", run_judge, cases, quick=quick)
    tallies = {name: tally_of(select(found, answer=name)) for name in dict.fromkeys(row["answer"] for row in found)}
    rows = [
        [name, share(t), f"{t.width:.3f}", f"{t.width / tallies['PPI++'].width:.3f}", f"{t.rmse:.4f}"]
        for name, t in tallies.items()
    ]
    wider = {}
    for noise in NOISES:
        pairs = zip(tallies[f"rectified, {noise}, population"].widths, tallies["PPI++"].widths, strict=True)
        wider[noise] = float(np.mean([ours > theirs for ours, theirs in pairs]))
    often = ", ".join(f"{100 * rate:.0f}% of the draws with {noise}" for noise, rate in wider.items())
    text = "\n\n".join(
        [
            f"A judge with sensitivity {SENSITIVITY} and specificity {SPECIFICITY} on {N_JUDGED} items, {N_GOLD} of "
            f"them with truth; share of positives {PREVALENCE}; {repetitions} repetitions",
            as_text(["method", "covers %", "width", "/ PPI++", "rmse"], rows),
            f"rectified (population) is wider than PPI++ on {often}.\n"
            "Asked: never wider than PPI++. Known: classical 0.179, PPI++ 0.129, Rogan–Gladen 0.199.",
        ]
    )
    return Section(text, {**{name: t.numbers() for name, t in tallies.items()}, "wider than PPI++": wider})


def run_judge(case: Case) -> list[Row]:
    """One judge."""
    truth, said = _judged(np.random.default_rng(case.seed))
    labels = tu.Labels.from_matrix(said[:, None], classes=[0, 1])
    pool = Pool("judge", labels, dict.fromkeys(range(N_JUDGED), 1), dict(enumerate(truth.tolist())))
    # The same draws whatever the noise model: even chances do not depend on it.
    test = vet(pool.session(strategy="random", random_state=case.seed), pool.truth, N_GOLD, batch=N_GOLD)
    vetted = test.progress.vetted
    hits, predicted = truth[vetted].astype(float), said.astype(float)
    rows = []
    for noise in NOISES:
        for target, true in (("sample", pool.accuracy), ("population", PREVALENCE)):
            like = pool.session(strategy="random", noise=noise, target=target, random_state=case.seed)
            rows.append(row_of(f"rectified, {noise}, {target}", true, like.replay(test.log).estimate()))
    mean, spread = float(hits.mean()), 1.959964 * float(hits.std()) / np.sqrt(N_GOLD)
    sample = Sample(hits, predicted[vetted], predicted[~vetted])
    rows += [
        interval_row("classical", PREVALENCE, mean, (mean - spread, mean + spread)),
        interval_row("Wilson", PREVALENCE, mean, wilson(float(hits.sum()), N_GOLD)),
        interval_row("PPI++", PREVALENCE, *ppi_plus_plus(sample)),
        interval_row("Rogan–Gladen", PREVALENCE, *_rogan_gladen(sample)),
    ]
    return rows + [interval_row("ppi-python", PREVALENCE, sum(e) / 2, e) for e in ppi_python([sample]) or []]


def _judged(rng: np.random.Generator) -> tuple[Codes, Codes]:
    truth = (rng.random(N_JUDGED) < PREVALENCE).astype(np.int64)
    right = rng.random(N_JUDGED) < np.where(truth == 1, SENSITIVITY, SPECIFICITY)
    return truth, np.where(right, truth, 1 - truth)


def _rogan_gladen(sample: Sample) -> tuple[float, tuple[float, float]]:
    """The share that the judge sees, corrected by the rates found on the vetted items; interval by the delta method."""
    n_positive = sample.y.sum()
    n_negative = len(sample.y) - n_positive
    sensitivity = float(sample.y @ sample.predicted / n_positive)
    specificity = float((1 - sample.y) @ (1 - sample.predicted) / n_negative)
    seen, slope = float(sample.others.mean()), sensitivity + specificity - 1
    mean = (seen + specificity - 1) / slope
    variance = (
        seen * (1 - seen) / len(sample.others)
        + mean**2 * sensitivity * (1 - sensitivity) / n_positive
        + (1 - mean) ** 2 * specificity * (1 - specificity) / n_negative
    ) / slope**2
    half = 1.959964 * float(np.sqrt(variance))
    return mean, (mean - half, mean + half)


# ------------------------------------------------------------------ CIFAR-10H


def _network_probabilities() -> dict[str, npt.NDArray[np.float64]]:
    """What each network gives to each class of each image."""
    import pyarrow.parquet as pq

    found = {}
    for path in sorted((data_folder() / "cifar10h").glob("pred_*.parquet")):
        table = pq.read_table(path)
        columns = [table[c].to_numpy() for c in table.column_names if c != "item"]
        found[path.stem.removeprefix("pred_")] = np.column_stack(columns).astype(float)
    return found


def cifar(quick: bool, repetitions: int | None = None) -> Section:
    """The error of five networks from one human vote an image and 100 answers, beside the answers alone."""
    repetitions = repetitions or (2 if quick else 4)
    n_images = 2000 if quick else 10_000
    networks = list(_network_probabilities())
    cases = [Case(f"{name} / {n_images}", seed) for seed in range(repetitions) for name in networks]
    found = kept_rows("cifar", run_cifar, cases, quick=quick)
    tallies = {
        (name, how): tally_of(select(found, network=name, answer=how))
        for name in networks
        for how in dict.fromkeys(row["answer"] for row in found)
    }
    rows, numbers = [], {}
    for (name, how), tally in sorted(tallies.items()):
        ratio = tally.width / tallies[name, "vetted only"].width
        rows.append([name, how, share(tally), f"{50 * tally.width:.2f}", f"{ratio:.3f}", f"{100 * tally.rmse:.2f}"])
        numbers[f"{name}, {how}"] = {**tally.numbers(), "ratio": ratio}
    for how in dict.fromkeys(how for _, how in tallies):
        tally, base = (sum((t for (_, h), t in tallies.items() if h == x), Tally()) for x in (how, "vetted only"))
        ratio = tally.width / base.width
        rows.append(["all", how, share(tally), f"{50 * tally.width:.2f}", f"{ratio:.3f}", f"{100 * tally.rmse:.2f}"])
        numbers[f"all, {how}"] = {**tally.numbers(), "ratio": ratio}
    text = "\n\n".join(
        [
            f"CIFAR-10H: error of five networks on {n_images} images, one human vote each, {N_IMAGES_VETTED} "
            f"vetted, {repetitions} repetitions",
            as_text(
                ["network", "vetted", "covers %", "half-width, points", "/ vetted only", "rmse, points"],
                rows,
                left=(0, 1),
            ),
            "Vetted only: Wilson's interval of the random ones. Asked: at most 0.65 of it, coverage of at least 94%.",
        ]
    )
    return Section(text, numbers)


def run_cifar(case: Case) -> list[Row]:
    """One network and one draw of the votes."""
    network, n_images = case.world.split(" / ")
    counts, truth, _ = load_cifar()
    counts, truth = counts[: int(n_images)], truth[: int(n_images)]
    p = _network_probabilities()[network][: int(n_images)]
    p = p / p.sum(axis=1, keepdims=True)
    is_wrong = p.argmax(axis=1) != truth
    true, answers = float(is_wrong.mean()), dict(enumerate(truth.tolist()))
    labels = drawn_labels(counts, 1, seed=case.seed)
    rows = []
    for noise, strategy in itertools.product(NOISES, ("random", "propensity")):
        test = tu.ActiveTest(p, labels, metric="error", noise=noise, strategy=strategy, random_state=case.seed)
        vet(test, answers, N_IMAGES_VETTED, batch=10)
        rows.append(row_of(f"{strategy}, {noise}", true, test.estimate()))
        if (noise, strategy) == (NOISES[0], "random"):
            wrong = float(is_wrong[test.progress.vetted].sum())
            ends = wilson(wrong, N_IMAGES_VETTED)
            rows.append(interval_row("vetted only", true, wrong / N_IMAGES_VETTED, ends))
    return [{**row, "network": network} for row in rows]


# ------------------------------------------------------------------ speed


def speed(quick: bool, repetitions: int | None = None) -> Section:
    """Seconds of each step on a large pool with three votes an item, by strategy."""
    n_items = 100_000 if quick else 1_000_000
    rounds = repetitions or 5
    rng = np.random.default_rng(0)
    truth = (rng.random(n_items) < 0.4).astype(np.int64)

    def noisy(skill: float) -> Codes:
        return np.where(rng.random(n_items) < skill, truth, 1 - truth)

    labels = tu.Labels.from_matrix(np.stack([noisy(s) for s in (0.9, 0.8, 0.75)], axis=1), classes=[0, 1])
    predicted = noisy(0.85)
    rows, numbers = [], {}
    for strategy in ("random", "propensity", "uncertainty", "meec"):
        test, (first, _) = _timed(lambda s=strategy: tu.ActiveTest(predicted, labels, strategy=s))  # type: ignore[misc]
        asks, tells = [], []
        for _ in range(rounds):
            asked, seconds = _timed(lambda t=test: t.ask(1))  # type: ignore[misc]
            asks.append(seconds)
            tells.append(_timed(lambda t=test, a=asked: t.tell({i: int(truth[i]) for i in a}))[1])  # type: ignore[misc]
        ten = _timed(lambda t=test: t.ask(10))[1]  # type: ignore[misc]
        wall, processor = np.median(asks, axis=0)
        worst, tell = np.max(asks, axis=0)[0], np.median(tells, axis=0)[0]
        rows.append([strategy, *(f"{s:.3f}" for s in (first, wall, worst, processor, tell, ten[0]))])
        numbers[strategy] = {"first fit": first, "ask(1)": asks, "tell": tells, "ask(10)": ten}
    head = ["strategy", "first fit, s", "ask(1), median", "worst", "of the processor", "tell", "ask(10)"]
    text = "\n\n".join(
        [
            f"{n_items:,} items with three votes, accuracy of one system, {rounds} rounds",
            as_text(head, rows),
            "Asked: ask(1) in at most 1 s after the first fit.",
        ]
    )
    return Section(text, numbers)


def _timed(call: Callable[[], Thing]) -> tuple[Thing, tuple[float, float]]:
    """What the call gives; its seconds by the clock and by the processor, which differ on a machine with other work."""
    started, worked = time.perf_counter(), time.process_time()
    found = call()
    return found, (time.perf_counter() - started, time.process_time() - worked)
