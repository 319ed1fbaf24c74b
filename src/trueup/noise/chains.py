"""One chain of the sampler: a dispersed start, then sweeps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup.labels import Labels
from trueup.noise import _kernels
from trueup.noise.base import Floats, vote_shares
from trueup.noise.item_prior import LogLinearPrior
from trueup.noise.samplers import ClusterSampler, DawidSkeneSampler, Sampler

__all__ = ["Chain", "SamplingProblem", "run_chain"]

_MAX_KEPT_TRUTHS = 50_000_000  # labels in all: 100 MB
_SWEEPS_A_REDRAW = 4  # of the truth for each of the coefficients of an item prior, which costs more


@dataclass(frozen=True)
class SamplingProblem:
    """Labels, and their votes with those of the extra raters as more columns; and what else is known of the items."""

    labels: Labels
    votes: sparse.csr_array
    n_raters: int
    item_prior: LogLinearPrior | None = None

    @property
    def n_all(self) -> int:
        """Labelers and extra raters."""
        return self.labels.n_labelers + self.n_raters


@dataclass(frozen=True)
class Chain:
    """What a chain leaves; see `gibbs.PosteriorDraws`."""

    prior: Floats
    accuracy: Floats
    rater_counts: Floats
    rater_confusion: Floats
    drawn: Floats
    truths: npt.NDArray[np.int16]
    truth_draws: npt.NDArray[np.int64]
    log_likelihood: Floats
    n_states: int


def _first_states(
    problem: SamplingProblem, sampler: Sampler, chain: int, rng: np.random.Generator
) -> npt.NDArray[np.int16]:
    """A dispersed first guess of the cluster of each item.

    Classes are drawn from the shares of votes, flatter in every second chain. Of the extra clusters, the first chain
    gives a random share of the items to each, the next the items with divided votes to one of their class, and the
    next those to one of the runner-up class.
    """
    labels = problem.labels
    shares = vote_shares(labels)
    n_classes = labels.n_classes
    flat = shares ** (1.0 if chain % 4 < 2 else 0.5)
    flat /= flat.sum(axis=1, keepdims=True)
    truth = (flat.cumsum(axis=1) < rng.random(labels.n_items)[:, None]).sum(axis=1).clip(0, n_classes - 1)
    known = labels.gold_codes >= 0
    n_extra = sampler.n_states - n_classes
    states = truth.copy()
    if n_extra:
        top = shares.max(axis=1)
        contested = top <= max(0.7, float(np.quantile(top, 0.4)))
        kind = chain // 2 % 3
        if kind == 0:
            moved = rng.random(labels.n_items) < 0.5
            target = truth
        else:
            moved = contested
            order = np.argsort(shares + 1e-6 * rng.random(shares.shape), axis=1)
            target = truth if kind == 1 else order[:, -2]
        states = np.where(moved, n_classes + target % n_extra, states)
    states = np.where(known, labels.gold_codes, states)
    return np.asarray(states, dtype=np.int16)


def run_chain(
    problem: SamplingProblem,
    sampler: Sampler,
    chain: int,
    n_warmup: int,
    n_draws: int,
    rng: np.random.Generator,
    n_chains: int,
    report: Callable[[float], None],
) -> Chain:
    """Run a chain from its own start; `report` hears of the share done."""
    labels, n_items = problem.labels, problem.labels.n_items
    n_kept = max(1, min(n_draws, 500, _MAX_KEPT_TRUTHS // max(n_items * n_chains, 1)))
    kept = np.unique(np.linspace(0, n_draws - 1, n_kept).astype(np.int64))
    shape = (n_draws, problem.n_raters, labels.n_classes, labels.n_answers)
    out = Chain(
        np.zeros((n_draws, labels.n_classes)),
        np.zeros((n_draws, labels.n_labelers)),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros((n_items, labels.n_classes)),
        np.empty((len(kept), n_items), dtype=np.int16),
        kept,
        np.empty(n_draws),
        sampler.n_states,
    )
    states = _first_states(problem, sampler, chain, rng)
    engine = _kernels.engine_for(problem.votes, n_warmup + n_draws)
    if engine == "numba" and isinstance(sampler, DawidSkeneSampler | ClusterSampler):
        _sweep_compiled(problem, sampler, states, n_warmup, rng, report, out)
    else:
        _sweep(problem, sampler, states, n_warmup, rng, report, out, engine)
    return out


def _sweep_compiled(
    problem: SamplingProblem,
    sampler: DawidSkeneSampler | ClusterSampler,
    states: npt.NDArray[np.int16],
    n_warmup: int,
    rng: np.random.Generator,
    report: Callable[[float], None],
    out: Chain,
) -> None:
    """All sweeps in compiled code; progress is reported by a second thread that looks at a counter."""
    from trueup.noise import _numba_gibbs

    total = n_warmup + len(out.prior)
    done = np.zeros(1)
    parameters = sampler.as_arrays()
    finished = threading.Event()
    votes, labels = problem.votes, problem.labels
    indptr, indices = votes.indptr.astype(np.int64), votes.indices.astype(np.int64)
    current = states.astype(np.int64)

    def sweeps(warmup: int, draws: slice, kept: slice, first_draw: int, known: Floats) -> None:
        _numba_gibbs.run_chain(
            indptr,
            indices,
            votes.data,
            labels.gold_codes,
            known,
            current,
            *parameters,
            labels.n_classes,
            labels.n_labelers,
            warmup,
            out.truth_draws[kept] - first_draw,
            rng,
            out.prior[draws],
            out.accuracy[draws],
            out.rater_counts[draws],
            out.rater_confusion[draws],
            out.drawn,
            out.truths[kept],
            out.log_likelihood[draws],
            done,
        )

    def watch() -> None:
        while not finished.wait(0.2):
            report(float(done[0] / total))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        if problem.item_prior is None:
            sweeps(n_warmup, slice(None), slice(None), 0, np.empty((0, labels.n_classes)))
        else:
            state = problem.item_prior.start()
            for first in range(-n_warmup, len(out.prior), _SWEEPS_A_REDRAW):
                state = problem.item_prior.redraw(state, parameters[0][current], rng)
                last = min(first + _SWEEPS_A_REDRAW, len(out.prior))
                draws = slice(max(first, 0), max(last, 0))
                kept = slice(*np.searchsorted(out.truth_draws, (draws.start, draws.stop)))
                known = problem.item_prior.probabilities(state.coefficients)
                sweeps(min(last, 0) - min(first, 0), draws, kept, draws.start, known)
    finally:
        finished.set()
        watcher.join()
    report(1.0)


def _sweep(
    problem: SamplingProblem,
    sampler: Sampler,
    states: npt.NDArray[np.int16],
    n_warmup: int,
    rng: np.random.Generator,
    report: Callable[[float], None],
    out: Chain,
    engine: _kernels.Engine,
) -> None:
    """All sweeps with one call of the kernel each; the reference for the compiled chain."""
    labels, votes, n_items = problem.labels, problem.votes, problem.labels.n_items
    chosen = sparse.csr_array(
        (np.ones(n_items), states.astype(np.int32), np.arange(n_items + 1)), shape=(n_items, sampler.n_states)
    )
    counts = np.asarray((votes.T @ chosen).toarray())
    state_counts = np.bincount(states, minlength=sampler.n_states).astype(float)
    gold = _gold_counts(labels, states, sampler.n_states)
    raters = np.arange(labels.n_labelers, problem.n_all)
    everyone = np.arange(labels.n_labelers)
    rows = np.arange(n_items)
    volume = labels.votes_per_labeler
    total = n_warmup + len(out.prior)
    coefficients = None if problem.item_prior is None else problem.item_prior.start()
    known: Floats | None = None
    current = states
    for sweep in range(total):
        sampler.draw(counts, state_counts, gold, rng)
        if problem.item_prior is not None and coefficients is not None and sweep % _SWEEPS_A_REDRAW == 0:
            coefficients = problem.item_prior.redraw(coefficients, sampler.labels[current], rng)
            known = problem.item_prior.probabilities(coefficients.coefficients)
        step = _kernels.gibbs_step(
            votes,
            sampler.table,
            sampler.weights,
            rng.random(n_items),
            gold=labels.gold_codes,
            state_class=sampler.labels,
            engine=engine,
            item_prior=known,
        )
        counts, state_counts, current = step.counts, step.state_counts, step.states
        gold = _gold_counts(labels, step.states, sampler.n_states)
        k = sweep - n_warmup
        if k >= 0:
            truth = sampler.labels[step.states]
            out.drawn[rows, truth] += 1
            out.prior[k] = sampler.class_prior()
            by_class = sampler.class_counts(counts, everyone)
            right = np.einsum("tcc->t", by_class[:, :, : labels.n_classes])
            out.accuracy[k] = np.where(volume > 0, right / np.maximum(volume, 1), np.nan)
            out.rater_counts[k] = sampler.class_counts(counts, raters)
            out.rater_confusion[k] = sampler.confusion(raters)
            out.log_likelihood[k] = step.log_likelihood
            at = np.searchsorted(out.truth_draws, k)
            if at < len(out.truth_draws) and out.truth_draws[at] == k:
                out.truths[at] = truth
        if sweep % 50 == 49 or sweep == total - 1:
            report((sweep + 1) / total)


def _gold_counts(labels: Labels, states: npt.NDArray[np.int16], n_states: int) -> Floats:
    """How many items of each known class are in each state, shape (n_states, n_classes)."""
    known = np.flatnonzero(labels.gold_codes >= 0)
    cell = states[known].astype(np.int64) * labels.n_classes + labels.gold_codes[known]
    return np.bincount(cell, minlength=n_states * labels.n_classes).reshape(n_states, -1).astype(float)
