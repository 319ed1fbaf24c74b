"""What the systems under test say of the items, and rows of answers that are drawn for them in every state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import psi

from trueup._base.types import Floats, Positions
from trueup.noise import kernels
from trueup.noise.base import Sampler

ROW_MASS = 2.0  # what is expected of a system beforehand, in items: that it says what it mostly says


@dataclass(frozen=True, eq=False)
class SystemOutputs:
    """What the systems under test say of the items, as answers with rows of their own in every state.

    Attributes
    ----------
    codes : integer array of shape (n_systems, n_items)
        A class or a bin of scores, -1 for none.
    n_answers : integer array of shape (n_systems,)
    power : array of shape (n_systems,)
        What each counts for: 1 for a witness of its own, less for one of several that say much the same.
    said_class : integer array of shape (columns of all systems,), optional
        The class that each answer is for, -1 for none; without it answers are for none.
    """

    codes: npt.NDArray[np.int64]
    n_answers: npt.NDArray[np.int64]
    power: Floats
    said_class: Positions | None = None

    @classmethod
    def of_classes(cls, codes: npt.NDArray[np.int64], n_classes: int, power: Floats) -> SystemOutputs:
        """Systems that say classes."""
        sizes = np.full(len(codes), n_classes, dtype=np.int64)
        return cls(codes, sizes, power, said_class=np.tile(np.arange(n_classes), len(codes)))

    @classmethod
    def none(cls, n_items: int) -> SystemOutputs:
        """No systems."""
        return cls(np.empty((0, n_items), np.int64), np.empty(0, np.int64), np.empty(0))

    def telling(self) -> SystemOutputs:
        """Those that do not say the same of all items: the others tell nothing of them."""
        kept = np.array([len(np.unique(codes[codes >= 0])) > 1 for codes in self.codes], dtype=bool)
        if kept.all():
            return self
        return SystemOutputs(
            self.codes[kept],
            self.n_answers[kept],
            self.power[kept],
            None if self.said_class is None else self.said_class[np.repeat(kept, self.n_answers)],
        )

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

    def indicator(self) -> sparse.csr_array:
        """Items × columns."""
        system, item = np.nonzero(self.codes >= 0)
        column = self.first[system] + self.codes[system, item]
        shape = (self.codes.shape[1], int(self.first[-1]))
        return sparse.csr_array(sparse.coo_array((np.ones(len(item)), (item, column)), shape=shape))


class OutputRows:
    """The systems' rows in each state, drawn given the states.

    A row θ ~ Dir(prior + counts) of a system that counts for w enters as exp(w m + √w (log θ − m)), where m is the mean
    of log θ. With w = 1 this is θ. Of k copies with w = 1 / k each, the product has the mean and the covariance that
    log θ of one of them has: rows drawn from 1 / k of the counts would have that spread too, but each is drawn to the
    edge where an answer is rare, so that many copies would be taken for all but infallible.
    """

    def __init__(self, outputs: SystemOutputs, sampler: Sampler) -> None:
        self.outputs, self.n_states = outputs, sampler.n_states
        self.indicator = outputs.indicator()
        self._prior = outputs.row_prior(sampler.n_states, sampler.closeness)
        self.log_rows: Floats = np.empty((0, sampler.n_states))

    def draw(self, states: npt.NDArray[np.int16], rng: np.random.Generator) -> None:
        """Draw the rows given the states."""
        if len(self.outputs.codes):
            self.log_rows = self.draw_log_rows(kernels.count_states(self.indicator, states, self.n_states)[0], rng)

    def log_likelihood(self) -> Floats | None:
        """Log p(outputs of an item | state), shape (n_items, n_states); None without systems."""
        return np.asarray(self.indicator @ self.log_rows) if len(self.outputs.codes) else None

    def draw_log_rows(self, counts: Floats, rng: np.random.Generator) -> Floats:
        """Logarithms of the rows as each system counts, given how often it gave each answer in each state.

        Both have shape (columns of all systems, n_states).
        """
        outputs = self.outputs
        power = np.repeat(outputs.power, outputs.n_answers)[:, None]
        mass = self._prior + counts
        rows = np.maximum(rng.standard_gamma(mass), 1e-100)
        first = outputs.first[:-1]
        total, total_mass = (np.repeat(np.add.reduceat(x, first), outputs.n_answers, axis=0) for x in (rows, mass))
        logs = np.log(np.maximum(rows / total, kernels.FLOOR))
        means = np.maximum(psi(mass) - psi(total_mass), np.log(kernels.FLOOR))
        return np.asarray(np.where(power == 1.0, logs, power * means + np.sqrt(power) * (logs - means)))
