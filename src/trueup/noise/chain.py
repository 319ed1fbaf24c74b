"""One chain of the sampler: states of the items and parameters of the model, drawn in turn given systems."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.types import Floats, Positions
from trueup._base.validation import as_generator
from trueup.data.labels import Labels
from trueup.noise import kernels
from trueup.noise.base import Sampler, TableModel, from_table, vote_shares

ROW_MASS = 2.0  # what is expected of a system beforehand, in items: that it says what it mostly says


@dataclass(frozen=True, eq=False)
class SystemOutputs:
    """What the systems under test say of the items, as answers with rows of their own in every state."""

    codes: npt.NDArray[np.int64]  # (n_systems, n_items): A class or a bin of scores, -1 for none
    n_answers: npt.NDArray[np.int64]  # (n_systems,)
    power: Floats  # (n_systems,)
    said_class: Positions | None = None  # (columns of all systems,)

    @classmethod
    def of_classes(cls, codes: npt.NDArray[np.int64], n_classes: int, power: Floats) -> SystemOutputs:
        """Systems that say classes."""
        sizes = np.full(len(codes), n_classes, dtype=np.int64)
        return cls(codes, sizes, power, said_class=np.tile(np.arange(n_classes), len(codes)))

    @classmethod
    def none(cls, n_items: int) -> SystemOutputs:
        """No systems."""
        return cls(np.empty((0, n_items), np.int64), np.empty(0, np.int64), np.empty(0))

    def informative(self) -> SystemOutputs:
        """Those that do not say the same of all items: the others tell nothing of them."""
        kept = np.array([len(np.unique(codes[codes >= 0])) > 1 for codes in self.codes], dtype=bool)
        if kept.all():
            return self
        said_class = None if self.said_class is None else self.said_class[np.repeat(kept, self.n_answers)]
        return SystemOutputs(self.codes[kept], self.n_answers[kept], self.power[kept], said_class)

    @property
    def first(self) -> npt.NDArray[np.int64]:
        """The first column of each system, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_answers)]).astype(np.int64)

    def row_prior(self, n_states: int = 1, closeness: Floats | None = None) -> Floats:
        """Pseudo-counts of the columns in each state, shape (columns, n_states).

        In each state what a system mostly says; where classes are near each other or far, an answer as much more in a
        state as it is near (`Sampler.closeness`).
        """
        rows = [np.empty((0, n_states))]
        near = np.ones((int(self.n_answers.sum()), n_states))
        if closeness is not None and self.said_class is not None:
            near = np.where(self.said_class[:, None] >= 0, closeness[self.said_class], 1.0)
        for s, codes in enumerate(self.codes):
            counts = np.bincount(codes[codes >= 0], minlength=self.n_answers[s]) + 1.0
            weights = counts[:, None] * near[self.first[s] : self.first[s + 1]]
            rows.append(ROW_MASS * weights / weights.sum(axis=0))
        return np.concatenate(rows)


_MAX_KEPT_TRUTHS = 50_000_000  # labels in all: 100 MB


@dataclass(frozen=True)
class SamplingProblem:
    """Labels, what their votes count for, and systems."""

    labels: Labels
    votes: sparse.csr_array
    outputs: SystemOutputs

    @cached_property
    def row_of_item(self) -> Positions:
        """A number that identical items (votes, outputs, gold) share."""
        votes = self.votes
        codes = np.vstack([self.labels.gold_codes, self.outputs.codes]).T.copy()
        numbers: dict[tuple[bytes, bytes, bytes], int] = {}
        rows = np.empty(len(codes), dtype=np.int64)
        for i, (first, last) in enumerate(pairwise(votes.indptr)):
            key = (votes.indices[first:last].tobytes(), votes.data[first:last].tobytes(), codes[i].tobytes())
            rows[i] = numbers.setdefault(key, len(numbers))
        return rows

    def arrays(self, sampler: Sampler) -> tuple[Any, ...]:
        """Votes, systems and gold as the loops take them."""
        votes, outputs, rows = self.votes, self.outputs, self.row_of_item
        counts = (votes.indptr.astype(np.int64), votes.indices.astype(np.int64), votes.data.astype(np.float64))
        # Of one layout: the chain is compiled anew, for many seconds, for each kind of array.
        row_prior = outputs.row_prior(sampler.n_states, sampler.closeness)
        systems = (np.ascontiguousarray(outputs.codes), outputs.first, outputs.power, row_prior)
        return (*counts, rows, np.unique(rows, return_index=True)[1]), systems, self.labels.gold_codes


class Chain:
    """One chain and what it leaves: arrays as those of `PosteriorDraws`, and the summed chances of the classes."""

    def __init__(self, problem: SamplingProblem, sampler: Sampler, number: int, n_draws: int, n_chains: int) -> None:
        labels = problem.labels
        self.problem, self.sampler, self.number, self.n_draws = problem, sampler, number, n_draws
        n_kept = max(1, min(n_draws, 500, _MAX_KEPT_TRUTHS // max(labels.n_items * n_chains, 1)))  # truths of a chain
        self.truth_draws = np.unique(np.linspace(0, n_draws - 1, n_kept).astype(np.int64))
        self.truths = np.empty((len(self.truth_draws), labels.n_items), dtype=np.int16)
        self.prior = np.zeros((n_draws, labels.n_classes))
        self.accuracy = np.zeros((n_draws, labels.n_labelers))
        self.log_likelihood = np.empty(n_draws)
        self.mean_table = np.zeros((problem.votes.shape[1], sampler.n_states))

    def run(
        self, n_warmup: int, rng: np.random.Generator, report: Callable[[float], None], *, each: int | None = None
    ) -> None:
        """Run from a start of its own; a second thread looks at a counter, and `report` gets the share done."""
        from trueup.noise.kernels import loops

        sampler, labels, arrays = self.sampler, self.problem.labels, self.problem.arrays(self.sampler)
        _, columns, data, rows, first_item = arrays[0]
        model = sampler.state(arrays)
        is_compiled = kernels.engine_for_chains() == "numba" and not isinstance(model, loops.OwnSampler)
        run = loops.run_chain if is_compiled else loops.in_python(loops.run_chain)
        # A dispersed first guess of the state of each item.
        flat = vote_shares(labels) ** (1.0 if self.number % 4 < 2 else 0.5)
        flat /= flat.sum(axis=1, keepdims=True)
        guess = (flat.cumsum(axis=1) < rng.random(labels.n_items)[:, None]).sum(axis=1).clip(0, labels.n_classes - 1)
        states = np.where(labels.gold_codes >= 0, labels.gold_codes, guess).astype(np.int64)
        each = sampler.sweeps_a_draw if each is None else each
        volume = np.bincount(columns // labels.n_answers, data, labels.n_labelers).astype(np.float64)
        chances = np.zeros((len(first_item), labels.n_classes))
        out = (self.prior, self.accuracy, self.log_likelihood, self.mean_table, chances)
        done = np.zeros(2)  # sweeps, and the log-likelihood of the last
        finished = threading.Event()

        def watch() -> None:
            while not finished.wait(0.2):
                report(float(done[0] / (n_warmup + each * self.n_draws)))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            run(model, arrays, volume, states, n_warmup, each, self.truth_draws, rng, out, self.truths, done)
        finally:
            finished.set()
            watcher.join()
        sampler.state_class = model.labels.astype(np.int32)
        self.chances = chances[rows]
        report(1.0)


def fit_by_draws(model: TableModel, labels: Labels, sampler: Sampler, n_warmup: int, n_draws: int) -> None:
    """The mean of the matrices over the draws of one chain; sets what the contract promises."""
    chain = Chain(SamplingProblem(labels, labels.votes, SystemOutputs.none(labels.n_items)), sampler, 0, n_draws, 1)
    rng = as_generator(model.random_state)  # type: ignore[attr-defined]
    chain.run(n_warmup, rng, lambda _: None, each=1)
    model.prior_, model.confusion_ = chain.prior.mean(axis=0), from_table(chain.mean_table, labels.n_answers)
    model.pooled_ = model.confusion_.mean(axis=0)
    model.n_iter_, model.converged_ = n_draws, True
    model.loss_history_ = (-chain.log_likelihood / max(labels.n_votes, 1)).tolist()
