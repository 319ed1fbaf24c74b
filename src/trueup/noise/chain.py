"""One chain of the sampler: states of the items and parameters of the model, drawn in turn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.engines import OF_ONE_MACHINE, OF_ONE_PROCESSOR, EngineName
from trueup._base.types import Codes, Floats, Positions
from trueup.data.labels import Labels
from trueup.noise import kernels
from trueup.noise.base import Sampler, Start, vote_shares
from trueup.noise.item_prior import LogLinearPrior
from trueup.noise.placing import run_where_memory_suffices
from trueup.noise.system_outputs import OutputRows, SystemOutputs

_MAX_KEPT_TRUTHS = 50_000_000  # labels in all: 100 MB
_MOST_KEPT = 500  # truths of a chain
_SWEEPS_A_REDRAW = 4  # of the truth for each of the coefficients of an item prior, which costs more


@dataclass(frozen=True)
class SamplingProblem:
    """Labels, and their votes with those of extra raters as more columns; systems; and what is known of the items."""

    labels: Labels
    votes: sparse.csr_array
    n_raters: int
    outputs: SystemOutputs
    item_prior: LogLinearPrior | None = None

    @property
    def n_all(self) -> int:
        """Labelers and extra raters."""
        return self.labels.n_labelers + self.n_raters

    @cached_property
    def volumes(self) -> Floats:
        """How many votes each labeler gave."""
        labeler = self.votes.indices // self.labels.n_answers
        return np.bincount(labeler, self.votes.data, self.n_all)[: self.labels.n_labelers].astype(float, copy=False)

    @cached_property
    def places(self) -> npt.NDArray[np.int64]:
        """A number that items of which all is said alike share, -1 for an item that has no like."""
        votes, gold = self.votes, self.labels.gold_codes
        if self.item_prior is not None:
            return np.full(len(gold), -1, dtype=np.int64)
        said = np.vstack([gold, self.outputs.codes]).T.copy()
        numbers: dict[tuple[bytes, bytes, bytes], int] = {}
        same = np.empty(len(gold), dtype=np.int64)
        for i, (first, last) in enumerate(zip(votes.indptr[:-1], votes.indptr[1:], strict=True)):
            key = (votes.indices[first:last].tobytes(), votes.data[first:last].tobytes(), said[i].tobytes())
            same[i] = numbers.setdefault(key, len(numbers))
        n_alike = np.bincount(same, minlength=len(numbers))
        places = np.where(n_alike > 1, np.cumsum(n_alike > 1) - 1, -1)
        return np.asarray(places[same])

    @cached_property
    def first_alike(self) -> Positions:
        """The first item of which the same is said as of each item."""
        places = self.places
        own = np.arange(len(places))
        numbers, first = np.unique(places, return_index=True)
        return np.asarray(np.where(places >= 0, first[np.searchsorted(numbers, places)], own))


def engines_of_chains(item_prior: LogLinearPrior | None) -> tuple[EngineName, ...]:
    """The engines that chains run with; coefficients of an item prior are drawn on the processor alone."""
    return OF_ONE_MACHINE if item_prior is None else OF_ONE_PROCESSOR


class Chain:
    """One chain and what it leaves: arrays as those of `PosteriorDraws`, and the summed chances of the classes."""

    def __init__(self, problem: SamplingProblem, sampler: Sampler, number: int, n_draws: int, n_chains: int) -> None:
        labels = problem.labels
        self.problem, self.sampler, self.number, self.n_draws = problem, sampler, number, n_draws
        n_kept = max(1, min(n_draws, _MOST_KEPT, _MAX_KEPT_TRUTHS // max(labels.n_items * n_chains, 1)))
        self.truth_draws = np.unique(np.linspace(0, n_draws - 1, n_kept).astype(np.int64))
        self.truths = np.empty((len(self.truth_draws), labels.n_items), dtype=np.int16)
        self.prior = np.zeros((n_draws, labels.n_classes))
        self.accuracy = np.zeros((n_draws, labels.n_labelers))
        self.rater_counts = np.zeros((n_draws, problem.n_raters, labels.n_classes, labels.n_answers))
        self.rater_confusion = np.zeros_like(self.rater_counts)
        self.chances = np.zeros((labels.n_items, labels.n_classes))
        self.log_likelihood = np.empty(n_draws)

    def run(self, n_warmup: int, rng: np.random.Generator, report: Callable[[float], None]) -> None:
        """Run from a start of its own; `report` hears of the share done."""
        states = self._first_states(rng)

        offers = engines_of_chains(self.problem.item_prior)

        def sweep() -> None:
            engine = kernels.engine_for_chains(offers)
            start = self.sampler.compiled_start() if engine == "numba" else None
            if engine == "torch":
                self._sweep_on_device(states, n_warmup, rng, report)
            elif start is None:
                self._sweep(states, n_warmup, rng, report, engine)
            else:
                self._sweep_compiled(start, states.astype(np.int64), n_warmup, rng, report)

        run_where_memory_suffices(sweep, self.problem.votes.nnz, n_warmup + self.n_draws, offers=offers)

    def _first_states(self, rng: np.random.Generator) -> npt.NDArray[np.int16]:
        """A dispersed first guess of the state of each item.

        Classes are drawn from the shares of votes, flatter in every second chain. Half of the items, at random, go to
        further states of their class, where there are some.
        """
        labels = self.problem.labels
        shares, n_classes = vote_shares(labels), labels.n_classes
        flat = shares ** (1.0 if self.number % 4 < 2 else 0.5)
        flat /= flat.sum(axis=1, keepdims=True)
        truth = (flat.cumsum(axis=1) < rng.random(labels.n_items)[:, None]).sum(axis=1).clip(0, n_classes - 1)
        known = labels.gold_codes >= 0
        states, n_extra = truth, self.sampler.n_states - n_classes
        if n_extra:
            states = np.where(rng.random(labels.n_items) < 0.5, n_classes + truth % n_extra, truth)
        return np.where(known, labels.gold_codes, states).astype(np.int16)

    def _sweep_compiled(
        self,
        start: Start,
        states: npt.NDArray[np.int64],
        n_warmup: int,
        rng: np.random.Generator,
        report: Callable[[float], None],
    ) -> None:
        """All sweeps in compiled code; progress is reported by a second thread that looks at a counter."""
        total = n_warmup + self.n_draws
        done = np.zeros(2)  # sweeps, and the log-likelihood of the last
        finished = threading.Event()
        votes, labels, item_prior = self.problem.votes, self.problem.labels, self.problem.item_prior
        counts = (votes.indptr.astype(np.int64), votes.indices.astype(np.int64), votes.data.astype(np.float64))
        table = (*counts, self.problem.places)
        outputs = self.problem.outputs
        # Of one layout: the chain is compiled anew, for many seconds, for each kind of array.
        row_prior = outputs.row_prior(self.sampler.n_states, self.sampler.closeness)
        systems = (np.ascontiguousarray(outputs.codes), outputs.first, outputs.power, row_prior)

        def sweeps(warmup: int, draws: slice, kept: slice, first_draw: int, known: Floats) -> None:
            truths = self.truths[kept]
            start.run(
                table,
                systems,
                labels.gold_codes,
                known,
                states,
                labels.n_labelers,
                warmup,
                self.truth_draws[kept] - first_draw,
                rng,
                (self.prior[draws], self.accuracy[draws], self.rater_counts[draws], self.rater_confusion[draws]),
                (self.chances, truths if len(truths) else np.empty((1, labels.n_items), np.int16)),
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
        self.chances = self.chances[self.problem.first_alike]  # chances of like items are recorded at the first
        report(1.0)

    def _sweep(
        self,
        states: npt.NDArray[np.int16],
        n_warmup: int,
        rng: np.random.Generator,
        report: Callable[[float], None],
        engine: EngineName,
    ) -> None:
        """All sweeps with one call of the kernel each; the reference for the compiled chain."""
        labels, votes, item_prior, sampler = (
            self.problem.labels,
            self.problem.votes,
            self.problem.item_prior,
            self.sampler,
        )
        rows = OutputRows(self.problem.outputs, sampler)
        counts, state_counts = kernels.count_states(votes, states, sampler.n_states)
        total = n_warmup + self.n_draws
        coefficients = None if item_prior is None else item_prior.start()
        known: Floats | None = None
        for sweep in range(total):
            if item_prior is not None and coefficients is not None and sweep % _SWEEPS_A_REDRAW == 0:
                coefficients = item_prior.redraw(coefficients, sampler.state_class[states], rng)
                known = item_prior.probabilities(coefficients.coefficients)
            if known is not None:
                sampler.evidence = _evidence(known, states, sampler.n_states)
            sampler.draw(counts, state_counts, self._gold_counts(states[self._known_items]), rng)
            rows.draw(states, rng)
            step = kernels.gibbs_step(
                votes,
                sampler.table,
                sampler.weights,
                rng.random(labels.n_items),
                gold=labels.gold_codes,
                state_class=sampler.state_class,
                engine=engine,
                item_prior=known,
                log_likelihood_beside=rows.log_likelihood(),
            )
            counts, state_counts, states = step.counts, step.state_counts, step.states
            if sweep >= n_warmup:
                self._record(sweep - n_warmup, step)
            if sweep % 50 == 49 or sweep == total - 1:
                report((sweep + 1) / total)

    def _sweep_on_device(
        self,
        states: npt.NDArray[np.int16],
        n_warmup: int,
        rng: np.random.Generator,
        report: Callable[[float], None],
    ) -> None:
        """All sweeps with the items on a device; the parameters are drawn here, as in `_sweep`."""
        from trueup.noise.torch.items import DeviceItems

        problem, sampler = self.problem, self.sampler
        rows = OutputRows(problem.outputs, sampler)
        items = DeviceItems(
            problem.votes,
            problem.labels.gold_codes,
            rows.indicator,
            states,
            n_states=sampler.n_states,
            n_classes=problem.labels.n_classes,
            seed=int(rng.integers(2**63)),
        )
        counts, state_counts = items.count()
        total = n_warmup + self.n_draws
        for sweep in range(total):
            sampler.draw(counts, state_counts, self._gold_counts(items.states_of_known()), rng)
            if len(problem.outputs.codes):
                items.add_output_likelihood(rows.draw_log_rows(items.count_outputs(), rng))
            log_likelihood = items.draw(sampler.table, sampler.weights, sampler.state_class)
            counts, state_counts = items.count()
            k = sweep - n_warmup
            if k >= 0:
                self._record_parameters(k, counts, log_likelihood)
                items.add_chances(sampler.state_class)
            if k in self.truth_draws:
                self.truths[self.truth_draws == k] = items.truth(sampler.state_class)
            if sweep % 50 == 49 or sweep == total - 1:
                report((sweep + 1) / total)
        self.chances += items.chances()

    @cached_property
    def _known_items(self) -> Positions:
        """The items whose class is known."""
        return np.flatnonzero(self.problem.labels.gold_codes >= 0)

    def _gold_counts(self, states_of_known: Codes) -> Floats:
        """How many items of each known class are in each state, shape (n_states, n_classes)."""
        n_states, n_classes = self.sampler.n_states, self.problem.labels.n_classes
        cell = states_of_known.astype(np.int64) * n_classes + self.problem.labels.gold_codes[self._known_items]
        return np.bincount(cell, minlength=n_states * n_classes).reshape(n_states, -1).astype(float)

    def _record_parameters(self, k: int, counts: Floats, log_likelihood: float) -> None:
        """Keep the parameters, and the counts that the states drawn under them gave, as draw `k`."""
        labels, sampler = self.problem.labels, self.sampler
        by_class = sampler.class_counts(counts, np.arange(labels.n_labelers))
        right = np.einsum("tcc->t", by_class[:, :, : labels.n_classes])
        volume = self.problem.volumes
        self.prior[k] = sampler.class_prior()
        self.accuracy[k] = np.where(volume > 0, right / np.maximum(volume, 1e-12), np.nan)
        raters = np.arange(labels.n_labelers, self.problem.n_all)
        self.rater_counts[k] = sampler.class_counts(counts, raters)
        self.rater_confusion[k] = sampler.confusion(raters)
        self.log_likelihood[k] = log_likelihood

    def _record(self, k: int, step: kernels.Sweep) -> None:
        """Keep what a sweep drew as draw `k`."""
        labels, sampler = self.problem.labels, self.sampler
        truth = sampler.state_class[step.states]
        self._record_parameters(k, step.counts, step.log_likelihood)
        if step.posterior is None:
            self.chances[np.arange(labels.n_items), truth] += 1
        else:
            self.chances += step.posterior @ np.eye(labels.n_classes)[sampler.state_class]
        if k in self.truth_draws:
            self.truths[self.truth_draws == k] = truth


def _evidence(known: Floats, states: npt.NDArray[np.int16], n_states: int) -> Floats:
    """The sum of the log prior of each class over the items of a state."""
    total = np.zeros((n_states, known.shape[1]))
    np.add.at(total, states, np.log(np.maximum(known, kernels.FLOOR)))
    return total
