"""Vetting from nothing to everything: what each estimator says on the way, over many data sets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

import trueup as tu
from experiments.nguyen2018.joint import JointlyLearned, joint_probabilities
from experiments.nguyen2018.settings import K, Tagging, close_pair, simulated, strips
from trueup.active.estimators import learned_probabilities

__all__ = [
    "ESTIMATORS",
    "PAIR_SHARES",
    "SHARES",
    "STRATEGIES",
    "Walk",
    "estimates",
    "pair_walks",
    "single_walks",
    "tracked",
    "vetted_only",
    "walk",
]

Array = npt.NDArray[np.float64]

SHARES = np.linspace(0.0, 1.0, 11)
PAIR_SHARES = SHARES[:6]  # two systems are compared at up to one half
ESTIMATORS = ("vetted-only", "naive", "learned", "learned jointly", "rectified")
JOINT_MEEC = "meec by joint"  # MEEC by the chances of `JointlyLearned`, after a first batch at random
# The paper's random draws a tag first. "propensity", "separate" and "meec by joint" are not in the paper.
STRATEGIES = {
    "random": "stratified",
    "mcm": "most-confident-mistake",
    "meec": "meec",
    "propensity": "propensity",
    "separate": "separate",
    JOINT_MEEC: "meec",
}
BATCHES = 20  # the pool is asked in so many; the paper says "small batches"
LEVEL_SHARES = (1, 3, 5)  # places in SHARES at which the interval is looked at


@dataclass(frozen=True, eq=False)
class Walk:
    """One data set vetted by one strategy.

    Attributes
    ----------
    said : mapping from estimator to an array of shape (n_systems, n_shares, n_tags)
        Precision@48 of each tag at each share of vetted pairs.
    true : array of shape (n_systems, n_tags)
    stale : array of shape (n_shares, n_tags)
        That of the first system by the learned estimator as fitted one step before, with the new truths put in.
    intervals : array of shape (len(LEVEL_SHARES), 2)
        The 95% interval of the first system's mean over tags, rectified; nan if not asked for.
    """

    said: dict[str, Array]
    true: Array
    stale: Array
    intervals: Array

    def errors(self, estimator: str) -> Array:
        """Mean over tags of the absolute error of the first system, shape (n_shares,)."""
        return np.asarray(np.abs(self.said[estimator][0] - self.true[0]).mean(axis=1))

    def gaps(self, estimator: str) -> tuple[Array, float]:
        """First system less the second, mean over tags: as estimated, shape (n_shares,), and truly."""
        mean = self.said[estimator].mean(axis=2)
        return mean[0] - mean[1], float(self.true[0].mean() - self.true[1].mean())


def vetted_only(tagging: Tagging, vetted: npt.NDArray[np.bool_], system: str) -> Array:
    """The share of positives among vetted pairs of each list; the mean of the others where there are none."""
    seen = tagging.precision(vetted, system)
    positive = tagging.precision(vetted * tagging.truth, system)
    found = np.divide(positive, seen, out=np.full(len(seen), np.nan), where=seen > 0)
    filled: Array = np.where(seen > 0, found, np.nanmean(found) if (seen > 0).any() else np.nan)
    return filled


def _joint(tagging: Tagging, vetted: npt.NDArray[np.bool_]) -> Array:
    return joint_probabilities(
        tagging.noisy, np.stack(list(tagging.scores.values())), vetted, tagging.truth, tagging.tags
    )


def estimates(
    tagging: Tagging, test: tu.ActiveTest, system: str, joint: Array | None = None
) -> tuple[dict[str, Array], Array]:
    """Precision@48 of each tag by all estimators, and the probabilities of the learned one."""
    vetted = test.progress.vetted
    p = learned_probabilities(tagging.noisy, tagging.scores[system], vetted, tagging.truth, categories=tagging.tags)
    said = {
        "vetted-only": vetted_only(tagging, vetted, system),
        "naive": tagging.precision(np.where(vetted, tagging.truth, tagging.noisy), system),
        "learned": tagging.precision(p, system),
        "learned jointly": tagging.precision(_joint(tagging, vetted) if joint is None else joint, system),
        "rectified": tagging.precision(test.state.probabilities[:, 1], system),
    }
    return said, p


def walk(tagging: Tagging, strategy: str, *, seed: int = 0, intervals: bool = False, shares: Array = SHARES) -> Walk:
    """Vet pairs in batches up to each share, by a strategy of the paper's name."""
    systems = list(tagging.scores)
    test = tu.ActiveTest(
        tagging.scores if len(systems) > 1 else tagging.scores[systems[0]],
        tagging.labels,
        metric=f"precision@{K}",
        categories=tagging.tags.tolist(),
        strategy=STRATEGIES[strategy],
        estimator=JointlyLearned() if strategy == JOINT_MEEC else "rectified",
        noise="majority",
        random_state=seed,
    )
    n, batch = tagging.n_pairs, -(-tagging.n_pairs // BATCHES)
    said: dict[str, list[list[Array]]] = {name: [] for name in ESTIMATORS}
    stale, held = [], np.full((len(LEVEL_SHARES), 2), np.nan)
    before: Array | None = None
    first_batch = np.random.default_rng([13, seed]).permutation(n)
    for place, share in enumerate(shares):
        while test.n_vetted < round(share * n):
            n_asked = min(batch, round(share * n) - test.n_vetted)
            is_first = strategy == JOINT_MEEC and not test.n_vetted
            asked = first_batch[:n_asked].tolist() if is_first else test.ask(n_asked)
            test.tell({pair: int(tagging.truth[pair]) for pair in asked})
        joint = _joint(tagging, test.progress.vetted)
        found = [estimates(tagging, test, system, joint) for system in systems]
        for name in ESTIMATORS:
            said[name].append([of_tags[name] for of_tags, _ in found])
        p = found[0][1]
        kept = p if before is None else before
        stale.append(tagging.precision(np.where(test.progress.vetted, tagging.truth, kept), systems[0]))
        before = p
        if intervals and place in LEVEL_SHARES:
            held[LEVEL_SHARES.index(place)] = test.estimate(systems[0] if len(systems) > 1 else None).interval(0.95)
    true = np.stack([tagging.precision(tagging.truth, system) for system in systems])
    arrays = {name: np.array(values).transpose(1, 0, 2) for name, values in said.items()}
    return Walk(arrays, true, np.array(stale), held)


def tracked(seeds: Sequence[int], what: str) -> Iterator[int]:
    """The seeds, with a line on standard error that counts them."""
    for done, seed in enumerate(seeds):
        print(f"\r{what}: {done + 1} of {len(seeds)}", end="", file=sys.stderr, flush=True)
        yield seed
    print(file=sys.stderr)


SETS: dict[str, Callable[[int], Tagging]] = {"simulated": simulated, "strips": strips}


@cache
def single_walks(which: str, strategy: str, n_runs: int) -> tuple[Walk, ...]:
    """One system (Figures 5 and 6)."""
    return tuple(
        walk(SETS[which](seed), strategy, seed=seed, intervals=strategy == "propensity")
        for seed in tracked(range(n_runs), f"{which}, {strategy}")
    )


@cache
def pair_walks(which: str, strategy: str, n_runs: int) -> tuple[Walk, ...]:
    """Two close systems (Figure 8)."""
    return tuple(
        walk(close_pair(which, seed), strategy, seed=seed, shares=PAIR_SHARES)
        for seed in tracked(range(1000, 1000 + n_runs), f"{which}, two systems, {strategy}")
    )
