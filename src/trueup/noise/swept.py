"""Chains of the sampler on votes in files: a sweep is one pass over the blocks, and only counts travel.

Parameters are drawn here, given counts. The state of each item is drawn where its votes are, given parameters, from
uniform numbers that belong to the item and the sweep; so draws do not depend on how items are spread over files, and
nothing is kept of an item between sweeps.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from trueup._base.engines import choose_engine, for_threads
from trueup._base.types import Codes, Floats
from trueup.data.labels import Labels
from trueup.data.partitions import VoteBlock, keyed_uniforms
from trueup.data.scanning import LabelScan
from trueup.data.votes import shares_of_witness
from trueup.exceptions import ConvergenceWarning, InvalidParameter
from trueup.noise import kernels
from trueup.noise.base import NoiseModel, Sampler, check_matrices_fit, normalise
from trueup.noise.clusters import Clusters
from trueup.noise.dawid_skene import DawidSkene
from trueup.noise.diagnostics import effective_draws, rhat
from trueup.noise.one_coin import OneCoin
from trueup.noise.passes import scan_over

_SWEPT = (Clusters, DawidSkene, OneCoin)
_CHAINS = 4
_SWEEPS = {"n_warmup": 300, "n_draws": 300}  # of each chain
_ROWS = 200_000  # items whose states are drawn at once
_MOST_COUNTS = 50_000_000  # numbers that are kept of all draws together
_FEWEST_KEPT = 50
_DIVIDED = 0.7  # the share of the first answer up to which votes are divided


@dataclass(frozen=True, eq=False)
class Parameters:
    """What a sweep must know of a chain.

    Attributes
    ----------
    table : array of shape (n_labelers · n_answers, n_states)
    weights : array of shape (n_states,)
    state_class : integer array of shape (n_states,)
    seed : tuple of int
        Of the uniform numbers of its items.
    """

    table: Floats
    weights: Floats
    state_class: Codes
    seed: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SweptCounts:
    """What a sweep gives.

    Attributes
    ----------
    votes : array of shape (n_labelers · n_answers, n_states)
    states : array of shape (n_states,)
        Items in each state.
    known : array of shape (n_states, n_classes)
        Items of each known class in each state.
    log_likelihood : float
    """

    votes: Floats
    states: Floats
    known: Floats
    log_likelihood: float = 0.0

    def __add__(self, other: SweptCounts) -> SweptCounts:
        return SweptCounts(
            self.votes + other.votes,
            self.states + other.states,
            self.known + other.known,
            self.log_likelihood + other.log_likelihood,
        )


@dataclass(frozen=True, eq=False)
class SweptDraws:
    """Draws of what labelers said of items of each class.

    Attributes
    ----------
    counts : array of shape (n_draws, n_labelers, n_classes, n_answers)
        Votes on items of each drawn class; several of a labeler on an item count for one together.
    class_counts : array of shape (n_draws, n_classes)
        Items of each drawn class.
    rhat, ess : float
        The worst R-hat and the least effective number of draws among class shares, accuracies and log-likelihood.
    """

    counts: Floats
    class_counts: Floats
    rhat: float
    ess: float


def sweep_scan(scan: LabelScan[Labels], model: NoiseModel, *, n_draws: int, rng: np.random.Generator) -> SweptDraws:
    """Draw the truth of all items with the parameters of the model, and count the votes by it.

    Parameters
    ----------
    scan : LabelScan
    model : NoiseModel
        One of `_SWEPT`, whose parameters count and whose fit does not.
    n_draws : int
        That are kept at most.
    rng : Generator
    """
    if not isinstance(model, _SWEPT):
        offers = ", ".join(repr(one.alias) for one in _SWEPT)
        raise InvalidParameter(
            f"⟨noise⟩ of votes that are scanned must be one of {offers}, got {model!r}; take one of these, or read all "
            "votes into memory with scan.read()",
            parameter="noise",
        )
    check_matrices_fit(scan.n_labelers, scan.n_classes, scan.n_answers)
    keyed = LabelScan(scan.files, replace(scan.reader, keeps_keys=True), scan.regroup)
    if keyed.n_repeats:
        keyed = keyed.mapped(partial(as_one_witness, n_answers=scan.n_answers))
    samplers = model.samplers(keyed, keyed.n_labelers, _CHAINS)  # type: ignore[arg-type]  # its sizes are all they ask
    streams = rng.spawn(_CHAINS)
    chains = [_Chain(keyed, sampler, n_draws // _CHAINS, own) for sampler, own in zip(samplers, streams, strict=True)]
    seed = int(rng.integers(2**62))
    sizes = [(sampler.n_states, number) for number, sampler in enumerate(samplers)]
    counts = scan_over(keyed, _added, first_counts_of, sizes, (seed,), keyed.n_classes, keyed.n_answers)
    n_warmup = _SWEEPS["n_warmup"]
    for sweep in range(n_warmup + _SWEEPS["n_draws"]):
        pairs = enumerate(zip(chains, counts, strict=True))
        told = [chain.draw(one, (seed, sweep + 1, number)) for number, (chain, one) in pairs]
        counts = scan_over(keyed, _added, sweep_block, told, keyed.n_classes)
        if sweep >= n_warmup:
            for chain, one in zip(chains, counts, strict=True):
                chain.record(sweep - n_warmup, one)
    return _joined(chains)


def as_one_witness(block: VoteBlock, n_answers: int) -> VoteBlock:
    """A block in which several votes of a labeler on an item share one."""
    return replace(block, data=shares_of_witness(block.matrix, n_answers))


def first_counts_of(
    block: VoteBlock,
    sizes: Sequence[tuple[int, int]],
    seed: tuple[int, ...],
    n_classes: int,
    n_answers: int,
    n_threads: int,
) -> list[SweptCounts]:
    """Counts of a block under dispersed first guesses of the states of items, one for each chain.

    Classes are drawn from the shares of votes, flatter in every second pair of chains. Of the extra states, a random
    half of the items go to those of their class in the first pair, and items with divided votes in the next.
    """
    matrix, gold = block.matrix, block.gold_codes
    answers = np.bincount(
        np.repeat(np.arange(block.n_items), np.diff(block.indptr)) * n_answers + block.indices % n_answers,
        matrix.data,
        block.n_items * n_answers,
    ).reshape(-1, n_answers)
    shares = normalise(answers[:, :n_classes].astype(float))
    counts = []
    for n_states, number in sizes:
        flat = normalise(shares ** (1.0 if number % 4 < 2 else 0.5))
        first, second = (keyed_uniforms(block.keys, *seed, number, k) for k in (0, 1))
        states = np.minimum((flat.cumsum(axis=1) <= first[:, None]).sum(axis=1), n_classes - 1)
        n_extra = n_states - n_classes
        if n_extra:
            moved = second < 0.5 if number % 4 < 2 else shares.max(axis=1) <= _DIVIDED
            states = np.where(moved, n_classes + states % n_extra, states)
        states = np.where(gold >= 0, gold, states).astype(np.int16)
        known = _known_counts(states, gold, n_states, n_classes)
        counts.append(SweptCounts(*kernels.count_states(matrix, states, n_states), known))
    return counts


def sweep_block(block: VoteBlock, told: Sequence[Parameters], n_classes: int, n_threads: int) -> list[SweptCounts]:
    """Draw the states of the items of a block in each chain, and count them."""
    engine = choose_engine(work=len(block.indices) * len(told))
    totals: list[SweptCounts] | None = None
    for low in range(0, block.n_items, _ROWS):
        part = block.rows(low, min(low + _ROWS, block.n_items))
        arrays = (part.indptr, part.indices, part.data)
        votes: Any = kernels.prepare_rows(*arrays, part.n_columns, n_threads=1) if engine == "numba" else part.matrix
        gold, keys = part.gold_codes, part.keys

        def sweep(chain: Parameters, votes: Any = votes, gold: Codes = gold, keys: Any = keys) -> SweptCounts:
            step = kernels.gibbs_step(
                votes,
                chain.table,
                chain.weights,
                keyed_uniforms(keys, *chain.seed),
                gold=gold,
                state_class=chain.state_class,
                engine=engine,
            )
            known = _known_counts(step.states, gold, len(chain.weights), n_classes)
            return SweptCounts(step.counts, step.state_counts, known, step.log_likelihood)

        if n_threads == 1:
            counts = [sweep(chain) for chain in told]
        else:
            with ThreadPoolExecutor(min(n_threads, len(told))) as pool:
                counts = list(pool.map(for_threads(sweep), told))
        totals = counts if totals is None else _added(totals, counts)
    assert totals is not None
    return totals


def _known_counts(states: Codes, gold: Codes, n_states: int, n_classes: int) -> Floats:
    """How many items of each known class are in each state, shape (n_states, n_classes)."""
    known = np.flatnonzero(gold >= 0)
    cell = states[known].astype(np.int64) * n_classes + gold[known]
    return np.bincount(cell, minlength=n_states * n_classes).reshape(n_states, -1).astype(float)


def _added(one: list[SweptCounts], other: list[SweptCounts]) -> list[SweptCounts]:
    """The counts of two blocks together, chain by chain."""
    return [mine + theirs for mine, theirs in zip(one, other, strict=True)]


class _Chain:
    """The parameters of one chain, and what it leaves."""

    def __init__(self, scan: LabelScan[Labels], sampler: Sampler, n_kept: int, rng: np.random.Generator) -> None:
        shape = (scan.n_labelers, scan.n_classes, scan.n_answers)
        n_draws = _SWEEPS["n_draws"]
        most = max(_FEWEST_KEPT, _MOST_COUNTS // (_CHAINS * int(np.prod(shape))))
        self.kept = np.unique(np.linspace(0, n_draws - 1, max(1, min(n_kept, n_draws, most))).astype(np.int64))
        self.sampler, self.rng, self._n_classes = sampler, rng, scan.n_classes
        self.counts = np.empty((len(self.kept), *shape))
        self.class_counts = np.empty((len(self.kept), scan.n_classes))
        self.monitored = np.empty((n_draws, scan.n_classes + 2))

    def draw(self, counts: SweptCounts, seed: tuple[int, ...]) -> Parameters:
        """Draw the parameters given counts."""
        sampler = self.sampler
        sampler.draw(counts.votes, counts.states, counts.known, self.rng)
        return Parameters(sampler.table, sampler.weights, sampler.state_class.copy(), seed)

    def record(self, k: int, counts: SweptCounts) -> None:
        """Keep what sweep `k` drew."""
        sampler, n_classes = self.sampler, self._n_classes
        by_class = sampler.class_counts(counts.votes, np.arange(self.counts.shape[1]))
        right = np.einsum("tcc->t", by_class[:, :, :n_classes]) / np.maximum(by_class.sum(axis=(1, 2)), 1e-12)
        self.monitored[k] = [*sampler.class_prior(), right.mean(), counts.log_likelihood]
        if k in self.kept:
            at = int(np.searchsorted(self.kept, k))
            self.counts[at] = by_class
            self.class_counts[at] = np.bincount(sampler.state_class, counts.states, n_classes)


def _joined(chains: Sequence[_Chain]) -> SweptDraws:
    sizes = sorted({chain.sampler.n_states for chain in chains})  # draws of several models: each must mix
    kinds = [np.stack([chain.monitored for chain in chains if chain.sampler.n_states == size]) for size in sizes]
    values = [kind[:, :, k] for kind in kinds for k in range(kind.shape[2])]
    draws = SweptDraws(
        np.concatenate([chain.counts for chain in chains]),
        np.concatenate([chain.class_counts for chain in chains]),
        float(np.nanmax([1.0, *map(rhat, values)])),
        float(min(map(effective_draws, values))),
    )
    if draws.rhat > 1.05 or draws.ess < 100:
        warnings.warn(
            f"the chains have not mixed (R-hat {draws.rhat:.2f}, {draws.ess:.0f} effective draws); take it that the "
            "votes admit several readings of the truth, and vet some items",
            ConvergenceWarning,
            stacklevel=4,
        )
    return draws
