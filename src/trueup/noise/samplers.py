"""The conditional draws of parameters, one class for each model.

A sampler alternates two draws: the states of all items given the parameters (`_kernels.gibbs_step`) and the parameters
given the states. The second is here. A state is a cluster of items; `labels` says which class each cluster belongs to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from trueup._base.types import Codes, Floats
from trueup.noise.base import normalise

__all__ = ["ClusterSampler", "DawidSkeneSampler", "OneCoinSampler", "Sampler"]

# labels, is_extra, pooled rows, strengths, prior parameters, whether pooled rows and strengths are drawn
CompiledParameters = tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], Floats, Floats, Floats, bool]
_TINY = 1e-300


class Sampler(ABC):
    """Parameters of one chain: `table` (labelers·answers, states), `weights` (states,), `labels` (states,)."""

    table: Floats
    weights: Floats
    labels: Codes

    def __init__(self, n_labelers: int, n_classes: int, n_answers: int) -> None:
        self.n_labelers, self.n_classes, self.n_answers = n_labelers, n_classes, n_answers

    @property
    def n_states(self) -> int:
        """Number of clusters."""
        return len(self.labels)

    @abstractmethod
    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        """Draw the parameters given the states.

        Parameters
        ----------
        counts : array of shape (n_labelers * n_answers, n_states)
            How often labelers gave answers to items of each state.
        state_counts : array of shape (n_states,)
        gold : array of shape (n_states, n_classes)
            How many items of each known class are in each state; a state that holds one has that class.
        """

    def confusion(self, labelers: npt.NDArray[np.int64]) -> Floats:
        """P(answer | class) of some labelers, the clusters of a class averaged; shape (n, n_classes, n_answers)."""
        by_state = self.table.reshape(self.n_labelers, self.n_answers, -1)[labelers] * self.weights
        joint = np.stack([by_state[:, :, self.labels == y].sum(axis=2) for y in range(self.n_classes)], axis=1)
        return np.asarray(joint / np.maximum(joint.sum(axis=2, keepdims=True), _TINY))

    def class_counts(self, counts: Floats, labelers: npt.NDArray[np.int64]) -> Floats:
        """How often some labelers gave each answer to items of each class; shape (n, n_classes, n_answers)."""
        by_state = counts.reshape(self.n_labelers, self.n_answers, -1)[labelers]
        per_class = [by_state[:, :, self.labels == y].sum(axis=2) for y in range(self.n_classes)]
        return np.asarray(np.stack(per_class, axis=1), dtype=float)

    def class_prior(self) -> Floats:
        """P(class)."""
        return np.asarray(np.bincount(self.labels, self.weights, self.n_classes), dtype=float)


class DawidSkeneSampler(Sampler):
    """Rows of all matrices have independent Dirichlet priors: `diagonal` for the right answer, 1 for the others."""

    def __init__(self, n_labelers: int, n_classes: int, n_answers: int, *, diagonal: float = 3.0) -> None:
        super().__init__(n_labelers, n_classes, n_answers)
        self.labels = np.arange(n_classes, dtype=np.int32)
        self._base = np.ones((n_answers, n_classes))
        self._base[self.labels, self.labels] = diagonal

    def as_arrays(self) -> CompiledParameters:
        """The start of a compiled chain: rows with fixed pseudo-counts."""
        base = np.ascontiguousarray(self._base.T)
        total = base.sum(axis=1)
        nothing = np.zeros(len(base), dtype=np.bool_)
        return self.labels.astype(np.int64), nothing, base / total[:, None], total, np.ones(6), False

    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        """Dirichlet draws of rows and prior."""
        shape = counts.reshape(self.n_labelers, self.n_answers, self.n_classes) + self._base
        gamma = rng.standard_gamma(shape)
        self.table = (gamma / gamma.sum(axis=1, keepdims=True)).reshape(counts.shape)
        self.weights = rng.dirichlet(1.0 + state_counts)


class OneCoinSampler(Sampler):
    """Accuracies have Beta(right, wrong) priors; abstentions are drawn with a rate that ignores the class."""

    def __init__(
        self, n_labelers: int, n_classes: int, n_answers: int, *, right: float = 2.0, wrong: float = 1.0
    ) -> None:
        super().__init__(n_labelers, n_classes, n_answers)
        self.labels = np.arange(n_classes, dtype=np.int32)
        self._right, self._wrong = right, wrong

    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        """Beta draws of accuracies, Dirichlet draw of the prior."""
        by_labeler = counts.reshape(self.n_labelers, self.n_answers, self.n_classes)
        decided = by_labeler[:, : self.n_classes]
        right = np.einsum("tcc->t", decided)
        wrong = decided.sum(axis=(1, 2)) - right
        accuracy = rng.beta(right + self._right, wrong + self._wrong)
        table = np.repeat(((1 - accuracy) / (self.n_classes - 1))[:, None, None], self.n_classes, axis=1)
        table = np.repeat(table, self.n_classes, axis=2)
        table[:, self.labels, self.labels] = accuracy[:, None]
        if self.n_answers > self.n_classes:
            spoken = np.column_stack([decided.sum(axis=(1, 2)), by_labeler[:, self.n_classes :].sum(axis=2)])
            rate = rng.standard_gamma(spoken + 1.0)
            rate /= rate.sum(axis=1, keepdims=True)
            silent = np.repeat(rate[:, 1:, None], self.n_classes, axis=2)
            table = np.concatenate([table * rate[:, :1, None], silent], axis=1)
        self.table = table.reshape(counts.shape)
        self.weights = rng.dirichlet(1.0 + state_counts)


class ClusterSampler(Sampler):
    """Main clusters, one for each class, and extra ones whose class is itself unknown.

    An item belongs to a main cluster with probability 1 − ε and to an extra one with probability ε ~ Beta(`rare`); the
    default makes the weights of all clusters together Dirichlet(1).
    Labelers are pooled within a cluster g: rows θ_t[g] ~ Dir(s_g m_g), strength s_g ~ Gamma(`strength`), and
    m_g ~ Dir(1, with `main_diagonal` or `extra_diagonal` at the cluster's class). So an extra cluster may be a hard or
    a misleading kind of any class, and which one it is enters the uncertainty: the class of an extra cluster is drawn
    given the votes, and moves exchange the roles of clusters (exact Metropolis steps), so that chains agree where
    fixed labels would leave each in a mode of its own. Without extra clusters this is Dawid–Skene with partial
    pooling.
    """

    def __init__(
        self,
        n_labelers: int,
        n_classes: int,
        n_answers: int,
        *,
        n_extra: int,
        main_diagonal: float = 4.0,
        extra_diagonal: float = 3.0,
        rare: tuple[float, float] | None = None,
        strength: tuple[float, float] = (2.0, 0.5),
    ) -> None:
        super().__init__(n_labelers, n_classes, n_answers)
        self.labels = np.concatenate([np.arange(n_classes), np.arange(n_extra) % n_classes]).astype(np.int32)
        self.is_extra = np.arange(n_classes + n_extra) >= n_classes
        self._main, self._extra, self._strength_prior = main_diagonal, extra_diagonal, strength
        self._rare = (float(max(n_extra, 1)), float(n_classes)) if rare is None else rare
        n_states = n_classes + n_extra
        self.strength = np.full(n_states, strength[0] / strength[1])
        self.pooled = normalise(self._base())

    def as_arrays(self) -> CompiledParameters:
        """The start of a compiled chain."""
        prior = np.array([self._main, self._extra, *self._rare, *self._strength_prior])
        return self.labels.astype(np.int64), self.is_extra.copy(), self.pooled.copy(), self.strength.copy(), prior, True

    def _diagonal(self) -> Floats:
        return np.where(self.is_extra, self._extra, self._main)

    def _base(self) -> Floats:
        base = np.ones((len(self.labels), self.n_answers))
        base[np.arange(len(self.labels)), self.labels] = self._diagonal()
        return base

    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        """Strengths, classes of the extra clusters, pooled rows, roles, weights and rows, in this order."""
        by_state = counts.reshape(self.n_labelers, self.n_answers, -1).transpose(2, 0, 1)  # states, labelers, answers
        tables = self._draw_tables_and_strengths(by_state, rng)
        self._draw_extra_labels(tables, gold, rng)
        gamma = rng.standard_gamma(self._base() + tables) + 1e-12
        self.pooled = gamma / gamma.sum(axis=1, keepdims=True)
        self._exchange_roles(state_counts, gold, rng)
        self._draw_weights(state_counts, rng)
        shape = (self.strength[:, None] * self.pooled)[:, None, :] + by_state
        rows = np.maximum(rng.standard_gamma(shape), 1e-100)
        rows /= rows.sum(axis=2, keepdims=True)
        self.table = np.ascontiguousarray(rows.transpose(1, 2, 0)).reshape(counts.shape)

    def _draw_tables_and_strengths(self, by_state: Floats, rng: np.random.Generator) -> Floats:
        """Auxiliary table counts of the Dirichlet–multinomials (states, answers), and the strengths given them.

        With n votes drawn from a Dirichlet–multinomial with mass b on an answer, the number of tables is a sum of
        Bernoulli(b / (b + r)), r = 0 … n − 1 (Antoniak); given tables, pooled rows are conjugate. The strength is
        drawn with the auxiliary variables of Escobar and West.
        """
        state, labeler, answer = np.nonzero(by_state)
        n = by_state[state, labeler, answer].astype(np.int64)
        mass = self.strength[state] * self.pooled[state, answer]
        cell = np.repeat(np.arange(len(n)), n - 1)
        seated = np.arange(len(cell)) - np.repeat(np.cumsum(n - 1) - (n - 1), n - 1) + 1
        new = rng.random(len(cell)) * (mass[cell] + seated) < mass[cell]
        opened = 1 + np.bincount(cell, new, len(n))
        width = self.n_answers
        tables = np.bincount(state * width + answer, opened, len(self.labels) * width).reshape(-1, width)
        totals = by_state.sum(axis=2)
        state, labeler = np.nonzero(totals)
        total = totals[state, labeler]
        strength = self.strength[state]
        log_x = np.bincount(state, np.log(rng.beta(strength + 1, total)), len(self.labels))
        extra = np.bincount(state, rng.random(len(total)) * (total + strength) < total, len(self.labels))
        shape, rate = self._strength_prior
        drawn = rng.standard_gamma(np.maximum(shape + tables.sum(axis=1) - extra, 1e-3)) / (rate - log_x)
        self.strength = np.maximum(drawn, 1e-2)
        return np.asarray(tables, dtype=float)

    def _draw_extra_labels(self, tables: Floats, gold: Floats, rng: np.random.Generator) -> None:
        """The class of each extra cluster given its tables, the pooled row integrated out."""
        of_classes = tables[self.is_extra][:, : self.n_classes]
        if len(of_classes):
            weight = gammaln(self._extra + of_classes) - gammaln(1.0 + of_classes)
            weight[_contradicts(gold[self.is_extra])] = -np.inf
            gumbel = rng.gumbel(size=weight.shape)
            self.labels[self.is_extra] = np.argmax(weight + gumbel, axis=1)

    def _exchange_roles(self, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        """Propose that two clusters, one main at least, exchange class and role, weights integrated out."""
        log_pooled = np.log(self.pooled)
        forbidden = _contradicts(gold)
        # Pairs are unordered and the condition is the same from both sides, so each step has its own reverse.
        for a in range(len(self.labels)):
            for b in range(a + 1, len(self.labels)):
                la, lb = self.labels[a], self.labels[b]
                if (self.is_extra[a] and self.is_extra[b]) or forbidden[a, lb] or forbidden[b, la]:
                    continue
                diagonal = self._diagonal()
                change = (diagonal[a] - 1) * (log_pooled[b, la] - log_pooled[a, la])
                change += (diagonal[b] - 1) * (log_pooled[a, lb] - log_pooled[b, lb])
                roles = self.is_extra.copy()
                roles[[a, b]] = roles[[b, a]]
                if self.is_extra[a] != self.is_extra[b]:
                    change += self._log_allocation(state_counts, roles)
                    change -= self._log_allocation(state_counts, self.is_extra)
                if np.log(rng.random()) < change:
                    self.labels[a], self.labels[b] = lb, la
                    self.is_extra = roles

    def _log_allocation(self, state_counts: Floats, is_extra: npt.NDArray[np.bool_]) -> float:
        """Log P(how many items are in each cluster), up to a constant."""
        extra, main = float(state_counts[is_extra].sum()), float(state_counts[~is_extra].sum())
        n_extra, n_main = int(is_extra.sum()), int((~is_extra).sum())
        value = gammaln(self._rare[0] + extra) + gammaln(self._rare[1] + main) - gammaln(n_main + main)
        return float(value - gammaln(n_extra + extra))

    def _draw_weights(self, state_counts: Floats, rng: np.random.Generator) -> None:
        gamma = np.maximum(rng.standard_gamma(1.0 + state_counts), _TINY)
        if not self.is_extra.any():
            self.weights = gamma / gamma.sum()
            return
        a, b = self._rare
        extra, main = state_counts[self.is_extra].sum(), state_counts[~self.is_extra].sum()
        share = rng.beta(a + extra, b + main)
        total = np.where(self.is_extra, gamma[self.is_extra].sum(), gamma[~self.is_extra].sum())
        self.weights = np.maximum(gamma / total * np.where(self.is_extra, share, 1 - share), _TINY)


def _contradicts(gold: Floats) -> npt.NDArray[np.bool_]:
    """Which classes a state cannot have, since it holds an item known to be of another; shape (n_states, n_classes)."""
    return np.asarray(gold.sum(axis=1, keepdims=True) > gold)
