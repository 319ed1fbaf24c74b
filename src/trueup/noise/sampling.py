"""Bayesian draws: truth, prior and matrices together.

The sampler works on the same sparse vote matrix as EM. Raters beyond the labelers (the predictions of a classifier)
are more columns of it, so evaluating a classifier is asking for the matrix of one more rater.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.labels import Labels
from trueup.exceptions import ConvergenceWarning, InvalidPredictions
from trueup.noise import kernels
from trueup.noise.base import CompiledStart, NoiseModel, Sampler, vote_shares
from trueup.noise.diagnostics import effective_draws, rhat
from trueup.noise.item_prior import LogLinearPrior
from trueup.noise.registry import resolve


@dataclass(frozen=True)
class PosteriorDraws:
    """Draws from the posterior; the first axis of each array runs over draws, chain after chain.

    Attributes
    ----------
    prior : array of shape (n_draws, n_classes)
        P(class).
    labeler_accuracy : array of shape (n_draws, n_labelers)
        The share of a labeler's votes that name the drawn truth; NaN for a labeler without votes.
    rater_counts : array of shape (n_draws, n_raters, n_classes, n_answers)
        How often each extra rater gave each answer to items of each drawn class: its confusion counts on this sample.
    rater_confusion : array of shape (n_draws, n_raters, n_classes, n_answers)
        The extra raters' matrices P(answer | class).
    posterior : array of shape (n_items, n_classes)
        P(class) of each item: how often it was drawn.
    truths : array of shape (n_kept, n_items)
        Some of the drawn truths, evenly spaced over the draws at positions `truth_draws`.
    log_likelihood : array of shape (n_draws,)
    n_chains : int
    rhat, ess : float
        The worst R-hat and the least effective number of draws among prior, raters' accuracies and log-likelihood.
    """

    prior: Floats
    labeler_accuracy: Floats
    rater_counts: Floats
    rater_confusion: Floats
    posterior: Floats
    truths: npt.NDArray[np.int16] = field(repr=False)
    truth_draws: npt.NDArray[np.int64] = field(repr=False)
    log_likelihood: Floats
    n_chains: int
    rhat: float
    ess: float

    @property
    def n_draws(self) -> int:
        """Number of draws of all chains."""
        return len(self.prior)

    @property
    def converged(self) -> bool:
        """Whether chains agree (R-hat at most 1.05) and are worth 100 draws."""
        return self.rhat <= 1.05 and self.ess >= 100


def sample(
    labels: Labels,
    model: str | NoiseModel = "dawid-skene",
    *,
    raters: npt.ArrayLike | None = None,
    item_prior: LogLinearPrior | None = None,
    n_chains: int = 4,
    n_warmup: int = 1000,
    n_draws: int = 2000,
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    warn: bool = True,
) -> PosteriorDraws:
    """Draw truth, prior and matrices from their joint posterior by Gibbs sampling.

    Parameters
    ----------
    labels : Labels
    model : str or NoiseModel
        A model that can be drawn, by name ("clusters", "subtypes", "dawid-skene", "one-coin", or one that was
        registered with samplers of its own) or as an object, whose parameters count and whose fit does not.
    raters : array of shape (n_raters, n_items) or (n_items,), optional
        Codes of the classes that extra raters gave, -1 for none.
    item_prior : LogLinearPrior, optional
        What else is known of the items; its coefficients are drawn too.
    n_chains, n_warmup, n_draws : int
        Chains start from dispersed guesses of the truth; the warm-up is thrown away; `n_draws` is for each chain.
    progress : callable, optional
        Called with the share of the work done.
    """
    check_integer(n_chains, name="n_chains", low=1)
    check_integer(n_warmup, name="n_warmup", low=0)
    check_integer(n_draws, name="n_draws", low=4)
    codes = _rater_codes(raters, labels)
    problem = SamplingProblem(labels, _with_raters(labels, codes), len(codes), item_prior)
    drawn_model = resolve(model)
    samplers = drawn_model.samplers(labels, problem.n_all, n_chains)
    seeds = as_generator(random_state).spawn(n_chains)
    done = np.zeros(n_chains)

    def run(chain: int) -> Chain:
        def report(share: float) -> None:
            done[chain] = share
            if progress is not None:
                progress(float(done.mean()))

        of_chain = Chain(problem, samplers[chain], chain, n_draws, n_chains)
        of_chain.run(n_warmup, seeds[chain], report)
        return of_chain

    if n_chains == 1:
        chains = [run(0)]
    else:
        with ThreadPoolExecutor(min(n_chains, os.cpu_count() or 1)) as pool:
            chains = list(pool.map(run, range(n_chains)))
    draws = _joined(chains, problem)
    if warn and not draws.converged:
        warnings.warn(
            f"the chains of {drawn_model!r} have not mixed (R-hat {draws.rhat:.2f}, {draws.ess:.0f} effective draws); "
            "raise ⟨n_draws⟩, or take it that the votes admit several readings of the truth and vet some items",
            ConvergenceWarning,
            stacklevel=2,
        )
    return draws


def _rater_codes(raters: npt.ArrayLike | None, labels: Labels) -> Codes:
    if raters is None:
        return np.empty((0, labels.n_items), dtype=np.int32)
    codes = np.atleast_2d(np.asarray(raters, dtype=np.int32))
    if codes.shape[1] != labels.n_items:
        raise InvalidPredictions(f"raters must have one code for each of {labels.n_items} items, got {codes.shape[1]}")
    if codes.max(initial=-1) >= labels.n_classes or codes.min(initial=-1) < -1:
        raise InvalidPredictions(f"raters must be codes from -1 to {labels.n_classes - 1}, got others")
    return codes


def _with_raters(labels: Labels, codes: Codes) -> sparse.csr_array:
    if not len(codes):
        return labels.votes
    rater, item = np.nonzero(codes >= 0)
    column = rater * labels.n_answers + codes[rater, item]
    extra = sparse.coo_array(
        (np.ones(len(item)), (item, column)), shape=(labels.n_items, len(codes) * labels.n_answers)
    )
    return sparse.csr_array(sparse.hstack([labels.votes, extra], format="csr"))


def _joined(chains: list[Chain], problem: SamplingProblem) -> PosteriorDraws:
    drawn = np.sum([c.drawn for c in chains], axis=0)
    # Chains with other numbers of states, as with and without extra clusters, are draws of two models: each must mix.
    kinds = [[c for c in chains if c.sampler.n_states == n] for n in sorted({c.sampler.n_states for c in chains})]
    monitored = [values for kind in kinds for values in _monitored(kind, problem)]
    n_draws = len(chains[0].prior)
    return PosteriorDraws(
        prior=np.concatenate([c.prior for c in chains]),
        labeler_accuracy=np.concatenate([c.accuracy for c in chains]),
        rater_counts=np.concatenate([c.rater_counts for c in chains]),
        rater_confusion=np.concatenate([c.rater_confusion for c in chains]),
        posterior=drawn / drawn.sum(axis=1, keepdims=True),
        truths=np.concatenate([c.truths for c in chains]),
        truth_draws=np.concatenate([c.truth_draws + k * n_draws for k, c in enumerate(chains)]),
        log_likelihood=np.concatenate([c.log_likelihood for c in chains]),
        n_chains=len(chains),
        rhat=float(np.nanmax([1.0, *[rhat(m) for m in monitored]])),
        ess=float(min(effective_draws(m) for m in monitored)),
    )


def _monitored(chains: list[Chain], problem: SamplingProblem) -> list[Floats]:
    """What convergence is judged by, each of shape (n_chains, n_draws)."""
    n_classes = problem.labels.n_classes
    values = [np.stack([c.prior[:, y] for c in chains]) for y in range(n_classes)]
    for r in range(problem.n_raters):
        counts = np.stack([c.rater_counts[:, r] for c in chains])
        right = np.einsum("ndcc->nd", counts[..., :n_classes])
        values.append(right / np.maximum(counts.sum(axis=(2, 3)), 1))
    if not problem.n_raters:
        values.append(np.stack([np.nanmean(c.accuracy, axis=1) for c in chains]))
    return values


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


class Chain:
    """One chain and what it leaves: arrays as those of `PosteriorDraws`, and how often each class was drawn."""

    def __init__(self, problem: SamplingProblem, sampler: Sampler, number: int, n_draws: int, n_chains: int) -> None:
        labels = problem.labels
        self.problem, self.sampler, self.number, self.n_draws = problem, sampler, number, n_draws
        n_kept = max(1, min(n_draws, 500, _MAX_KEPT_TRUTHS // max(labels.n_items * n_chains, 1)))
        self.truth_draws = np.unique(np.linspace(0, n_draws - 1, n_kept).astype(np.int64))
        self.truths = np.empty((len(self.truth_draws), labels.n_items), dtype=np.int16)
        self.prior = np.zeros((n_draws, labels.n_classes))
        self.accuracy = np.zeros((n_draws, labels.n_labelers))
        self.rater_counts = np.zeros((n_draws, problem.n_raters, labels.n_classes, labels.n_answers))
        self.rater_confusion = np.zeros_like(self.rater_counts)
        self.drawn = np.zeros((labels.n_items, labels.n_classes))
        self.log_likelihood = np.empty(n_draws)

    def run(self, n_warmup: int, rng: np.random.Generator, report: Callable[[float], None]) -> None:
        """Run from a start of its own; `report` hears of the share done."""
        states = self._first_states(rng)
        engine = kernels.engine_for(self.problem.votes, n_warmup + self.n_draws)
        start = self.sampler.compiled_start() if engine == "numba" else None
        if start is None:
            self._sweep(states, n_warmup, rng, report, engine)
        else:
            self._sweep_compiled(start, states.astype(np.int64), n_warmup, rng, report)

    def _first_states(self, rng: np.random.Generator) -> npt.NDArray[np.int16]:
        """A dispersed first guess of the state of each item.

        Classes are drawn from the shares of votes, flatter in every second chain. Of the extra states, the first chain
        gives a random share of the items to each, the next the items with divided votes to one of their class, and the
        next those to one of the runner-up class.
        """
        labels = self.problem.labels
        shares, n_classes = vote_shares(labels), labels.n_classes
        flat = shares ** (1.0 if self.number % 4 < 2 else 0.5)
        flat /= flat.sum(axis=1, keepdims=True)
        truth = (flat.cumsum(axis=1) < rng.random(labels.n_items)[:, None]).sum(axis=1).clip(0, n_classes - 1)
        states, target = truth, truth
        n_extra = self.sampler.n_states - n_classes
        if n_extra:
            kind = self.number // 2 % 3
            if kind == 0:
                moved = rng.random(labels.n_items) < 0.5
            else:
                top = shares.max(axis=1)
                moved = top <= max(0.7, float(np.quantile(top, 0.4)))
                order = np.argsort(shares + 1e-6 * rng.random(shares.shape), axis=1, kind="stable")
                target = truth if kind == 1 else order[:, -2]
            if n_extra >= 2 * n_classes:  # several extra ones of each class
                target = target + n_classes * rng.integers(n_extra // n_classes, size=labels.n_items)
            states = np.where(moved, n_classes + target % n_extra, states)
        return np.where(labels.gold_codes >= 0, labels.gold_codes, states).astype(np.int16)

    def _sweep_compiled(
        self,
        start: CompiledStart,
        states: npt.NDArray[np.int64],
        n_warmup: int,
        rng: np.random.Generator,
        report: Callable[[float], None],
    ) -> None:
        """All sweeps in compiled code; progress is reported by a second thread that looks at a counter."""
        from trueup.noise.kernels import compiled_gibbs

        total = n_warmup + self.n_draws
        done = np.zeros(1)
        finished = threading.Event()
        votes, labels, item_prior = self.problem.votes, self.problem.labels, self.problem.item_prior
        indptr, indices = votes.indptr.astype(np.int64), votes.indices.astype(np.int64)

        def sweeps(warmup: int, draws: slice, kept: slice, first_draw: int, known: Floats) -> None:
            compiled_gibbs.run_chain(
                indptr,
                indices,
                votes.data,
                labels.gold_codes,
                known,
                states,
                *start,
                labels.n_classes,
                labels.n_labelers,
                warmup,
                self.truth_draws[kept] - first_draw,
                rng,
                self.prior[draws],
                self.accuracy[draws],
                self.rater_counts[draws],
                self.rater_confusion[draws],
                self.drawn,
                self.truths[kept],
                self.log_likelihood[draws],
                done,
            )

        def watch() -> None:
            while not finished.wait(0.2):
                report(float(done[0] / total))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            if item_prior is None:
                sweeps(n_warmup, slice(None), slice(None), 0, np.empty((0, labels.n_classes)))
            else:
                state = item_prior.start()
                for first in range(-n_warmup, self.n_draws, _SWEEPS_A_REDRAW):
                    state = item_prior.redraw(state, start.state_class[states], rng)
                    last = min(first + _SWEEPS_A_REDRAW, self.n_draws)
                    draws = slice(max(first, 0), max(last, 0))
                    kept = slice(*np.searchsorted(self.truth_draws, (draws.start, draws.stop)))
                    known = item_prior.probabilities(state.coefficients)
                    sweeps(min(last, 0) - min(first, 0), draws, kept, draws.start, known)
        finally:
            finished.set()
            watcher.join()
        report(1.0)

    def _sweep(
        self,
        states: npt.NDArray[np.int16],
        n_warmup: int,
        rng: np.random.Generator,
        report: Callable[[float], None],
        engine: kernels.Engine,
    ) -> None:
        """All sweeps with one call of the kernel each; the reference for the compiled chain."""
        labels, votes, item_prior, sampler = (
            self.problem.labels,
            self.problem.votes,
            self.problem.item_prior,
            self.sampler,
        )
        counts, state_counts = kernels.count_states(votes, states, sampler.n_states)
        total = n_warmup + self.n_draws
        coefficients = None if item_prior is None else item_prior.start()
        known: Floats | None = None
        for sweep in range(total):
            sampler.draw(counts, state_counts, _gold_counts(labels, states, sampler.n_states), rng)
            if item_prior is not None and coefficients is not None and sweep % _SWEEPS_A_REDRAW == 0:
                coefficients = item_prior.redraw(coefficients, sampler.state_class[states], rng)
                known = item_prior.probabilities(coefficients.coefficients)
            step = kernels.gibbs_step(
                votes,
                sampler.table,
                sampler.weights,
                rng.random(labels.n_items),
                gold=labels.gold_codes,
                state_class=sampler.state_class,
                engine=engine,
                item_prior=known,
            )
            counts, state_counts, states = step.counts, step.state_counts, step.states
            if sweep >= n_warmup:
                self._record(sweep - n_warmup, step)
            if sweep % 50 == 49 or sweep == total - 1:
                report((sweep + 1) / total)

    def _record(self, k: int, step: kernels.Sweep) -> None:
        """Keep what a sweep drew as draw `k`."""
        labels, sampler = self.problem.labels, self.sampler
        truth = sampler.state_class[step.states]
        self.drawn[np.arange(labels.n_items), truth] += 1
        self.prior[k] = sampler.class_prior()
        by_class = sampler.class_counts(step.counts, np.arange(labels.n_labelers))
        right = np.einsum("tcc->t", by_class[:, :, : labels.n_classes])
        volume = labels.votes_per_labeler
        self.accuracy[k] = np.where(volume > 0, right / np.maximum(volume, 1), np.nan)
        raters = np.arange(labels.n_labelers, self.problem.n_all)
        self.rater_counts[k] = sampler.class_counts(step.counts, raters)
        self.rater_confusion[k] = sampler.confusion(raters)
        self.log_likelihood[k] = step.log_likelihood
        self.truths[self.truth_draws == k] = truth


def _gold_counts(labels: Labels, states: npt.NDArray[np.int16], n_states: int) -> Floats:
    """How many items of each known class are in each state, shape (n_states, n_classes)."""
    known = np.flatnonzero(labels.gold_codes >= 0)
    cell = states[known].astype(np.int64) * labels.n_classes + labels.gold_codes[known]
    return np.bincount(cell, minlength=n_states * labels.n_classes).reshape(n_states, -1).astype(float)
