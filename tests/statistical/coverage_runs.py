"""Runs of simulations that the statistical tests count hits in."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from scipy import stats

import trueup as tu
from trueup.metrics import confusion_counts, get_metric
from trueup.noise.chain import SystemOutputs
from trueup.posteriors import DrawnEstimate

LEVEL = 0.95
TOO_NARROW = 0.8  # the fault that the tests must find: intervals 20% too narrow
KNOWN_METRICS = ("accuracy", "precision", "recall", "false_alarm_rate", "f1")


@dataclass
class Cases:
    """Estimates beside true values."""

    true: list[float] = field(default_factory=list)
    mean: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(self, true: float, estimate: Any) -> None:
        if np.isnan(true):
            return  # a metric without a value is no case
        low, high = estimate.interval(LEVEL)
        for kept, value in zip(
            (self.true, self.mean, self.low, self.high), (true, estimate.mean, low, high), strict=True
        ):
            kept.append(value)

    def __add__(self, other: "Cases") -> "Cases":
        return Cases(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    def __len__(self) -> int:
        return len(self.true)

    def hits(self, *, shrunk: float = 1.0) -> int:
        """How many intervals hold the truth, each first shrunk towards its middle."""
        low, high, true = (np.array(x) for x in (self.low, self.high, self.true))
        middle, half = (low + high) / 2, shrunk * (high - low) / 2
        return int(((middle - half - 1e-9 <= true) & (true <= middle + half + 1e-9)).sum())

    def coverage(self) -> float:
        return self.hits() / len(self)

    def mean_absolute_error(self) -> float:
        return float(np.abs(np.array(self.mean) - self.true).mean())


def fewest(n: int, *, alarm: float = 0.005, level: float = LEVEL) -> int:
    """The number of hits of n below which an interval of that level falls with probability `alarm` at most."""
    return int(stats.binom.ppf(alarm, n, level))


def power(n: int, *, narrow: float = TOO_NARROW, alarm: float = 0.005) -> float:
    """The chance to find that (normal) intervals are too narrow by a factor, from n independent cases."""
    covers = 2 * stats.norm.cdf(narrow * stats.norm.ppf((1 + LEVEL) / 2)) - 1
    return float(stats.binom.cdf(fewest(n, alarm=alarm) - 1, n, covers))


@cache
def known_runs(n_runs: int, n_items: int, first_seed: int) -> dict[tuple[str, str], Cases]:
    """Su's Section 5.2.3 with operating points drawn from the unit square; cases by method and metric."""
    cases = {(method, name): Cases() for method in ("bayes", "mmse") for name in KNOWN_METRICS}
    for seed in range(first_seed, first_seed + n_runs):
        rng = np.random.default_rng(seed)
        sim = tu.simulate.su(n_items=n_items, operating_point=tuple(rng.random(2)), random_state=rng)
        p = sim.parameters
        noise = tu.noise.Difficulty(difficulty=p["difficulty"], fallibility=p["fallibility"], prior=p["prior"])
        counts = confusion_counts(sim.truth, sim.predictions, 2)
        for method in ("bayes", "mmse"):
            ev = tu.evaluate(sim.predictions, sim.labels, noise=noise, metrics=KNOWN_METRICS, method=method)
            for name in KNOWN_METRICS:
                cases[method, name].add(float(get_metric(name, [0, 1], positive=1)(counts)), ev[name])
    return cases


def many_class_runs(n_runs: int, n_items: int, sweeps: tuple[int, int], first_seed: int) -> Cases:
    """Accuracy of a classifier of eight classes, from three votes an item of ten labelers whose noise is learned."""
    cases = Cases()
    for seed in range(first_seed, first_seed + n_runs):
        rng = np.random.default_rng(seed)
        sim = tu.simulate.dawid_skene(n_classes=8, n_items=n_items, n_labelers=10, votes_per_item=3, random_state=rng)
        ev = tu.evaluate(
            sim.predictions,
            sim.labels,
            noise="dawid-skene",
            metrics=["accuracy"],
            check_dependence=False,
            n_warmup=sweeps[0],
            n_draws=sweeps[1],
            random_state=seed,
        )
        cases.add(sim.accuracy, ev["accuracy"])
    return cases


@cache
def learned_runs(n_runs: int, most_items: int, sweeps: tuple[int, int], first_seed: int) -> dict[str, Cases]:
    """Votes from the Dawid–Skene model, noise learned; cases of the classifier, of all labelers, and by majority."""
    cases = {name: Cases() for name in ("classifier", "labelers", "majority")}
    for seed in range(first_seed, first_seed + n_runs):
        rng = np.random.default_rng(seed)
        sim = tu.simulate.dawid_skene(
            n_classes=int(rng.integers(2, 6)),
            n_items=int(rng.integers(200, most_items + 1)),
            n_labelers=int(rng.integers(5, 21)),
            votes_per_item=3,
            random_state=rng,
        )
        draws = tu.noise.sample(
            sim.labels,
            "dawid-skene",
            outputs=SystemOutputs.of_classes(
                sim.predictions[None].astype(np.int64), len(sim.labels.classes), np.ones(1)
            ),
            n_chains=2,
            n_warmup=sweeps[0],
            n_draws=sweeps[1],
            random_state=seed,
            warn=False,
        )
        accuracy = (draws.truths == sim.predictions).mean(axis=1)
        cases["classifier"].add(sim.accuracy, DrawnEstimate(accuracy))
        item, labeler, answer, _ = sim.labels.vote_table()
        right = np.bincount(labeler, answer == sim.truth[item], sim.labels.n_labelers) / np.bincount(labeler)
        for t in range(sim.labels.n_labelers):
            cases["labelers"].add(float(right[t]), DrawnEstimate(draws.labeler_accuracy[:, t]))
        ev = tu.evaluate(sim.predictions, sim.labels, metrics=["accuracy"], method="majority", random_state=seed)
        cases["majority"].add(sim.accuracy, ev["accuracy"])
    return cases
