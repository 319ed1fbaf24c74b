"""What the systems under test say of the items, and rows of answers that are drawn for them in every state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import psi

from trueup._base.types import Booleans, Floats, Positions
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
    group_mass : float
        What is expected of the last one beforehand where it is the group of the items, in items.
    said_class : integer array of shape (columns of all systems,), optional
        The class that each answer is for, -1 for none; without it answers are for none.
    """

    codes: npt.NDArray[np.int64]
    n_answers: npt.NDArray[np.int64]
    power: Floats
    group_mass: float = ROW_MASS
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

    def with_groups(self, groups: npt.NDArray[Any], mass: float = ROW_MASS) -> SystemOutputs:
        """With the group of each item as one more thing that is said of it: classes may be frequent in some groups."""
        return SystemOutputs(
            np.vstack([self.codes, groups]).astype(np.int64),
            np.append(self.n_answers, groups.max() + 1),
            np.append(self.power, 1.0),
            mass,
            None if self.said_class is None else np.append(self.said_class, np.full(groups.max() + 1, -1)),
        )

    def telling(self) -> SystemOutputs:
        """Those that do not say the same of all items: the others tell nothing of them."""
        kept = np.array([len(np.unique(codes[codes >= 0])) > 1 for codes in self.codes], dtype=bool)
        if kept.all():
            return self
        return SystemOutputs(
            self.codes[kept],
            self.n_answers[kept],
            self.power[kept],
            self.group_mass if kept[-1] else ROW_MASS,
            None if self.said_class is None else self.said_class[np.repeat(kept, self.n_answers)],
        )

    @property
    def first(self) -> npt.NDArray[np.int64]:
        """The first column of each system, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_answers)]).astype(np.int64)

    def row_prior(self, n_groups: int = 1, closeness: Floats | None = None, times: Floats | None = None) -> Floats:
        """Pseudo-counts of the columns in each group of states, shape (columns, n_groups).

        In each group what a system mostly says; where classes are near each other or far, an answer as much more in a
        group as it is near (`Sampler.closeness`). Items count so many times as `times` says.
        """
        rows = [np.empty((0, n_groups))]
        masses = [*[ROW_MASS] * (len(self.codes) - 1), self.group_mass]
        near = np.ones((int(self.n_answers.sum()), n_groups))
        if closeness is not None and self.said_class is not None:
            near = np.where(self.said_class[:, None] >= 0, closeness[self.said_class], 1.0)
        for s, (codes, mass) in enumerate(zip(self.codes, masses[: len(self.codes)], strict=True)):
            said = codes >= 0
            often = None if times is None else times[said]
            counts = np.bincount(codes[said], often, minlength=self.n_answers[s]) + 1.0
            weights = counts[:, None] * near[self.first[s] : self.first[s + 1]]
            rows.append(mass * weights / weights.sum(axis=0))
        return np.concatenate(rows)

    def indicator(self) -> sparse.csr_array:
        """Items × columns."""
        system, item = np.nonzero(self.codes >= 0)
        column = self.first[system] + self.codes[system, item]
        shape = (self.codes.shape[1], int(self.first[-1]))
        return sparse.csr_array(sparse.coo_array((np.ones(len(item)), (item, column)), shape=shape))


class OutputRows:
    """The systems' rows in each group of states, drawn given the states.

    A row θ ~ Dir(prior + counts) of a system that counts for w enters as exp(w m + √w (log θ − m)), where m is the mean
    of log θ. With w = 1 this is θ. Of k copies with w = 1 / k each, the product has the mean and the covariance that
    log θ of one of them has: rows drawn from 1 / k of the counts would have that spread too, but each is drawn to the
    edge where an answer is rare, so that many copies would be taken for all but infallible.
    """

    def __init__(self, outputs: SystemOutputs, sampler: Sampler) -> None:
        self.outputs, self.group = outputs, sampler.state_group
        self.n_groups = sampler.n_groups
        self.indicator = outputs.indicator()
        self._prior = outputs.row_prior(sampler.n_groups, sampler.closeness)
        self.has_output: Booleans = np.asarray((outputs.codes >= 0).any(axis=0))
        self.log_rows: Floats = np.empty((0, self.n_groups))
        self._said: Floats = np.empty((0, 0))

    def draw(self, states: npt.NDArray[np.int16], rng: np.random.Generator) -> None:
        """Draw the rows given the states."""
        if len(self.outputs.codes):
            counts = kernels.count_states(self.indicator, self.group[states].astype(np.int16), self.n_groups)[0]
            self.log_rows = self.draw_log_rows(counts, rng)

    def log_likelihood(self) -> Floats | None:
        """Log p(outputs of an item | state), shape (n_items, n_states); None without systems."""
        if not len(self.outputs.codes):
            return None
        self._said = np.asarray(self.indicator @ self.log_rows[:, self.group])
        return self._said

    def draw_log_rows(self, counts: Floats, rng: np.random.Generator) -> Floats:
        """Logarithms of the rows as each system counts, given how often it gave each answer in each group of states.

        Both have shape (columns of all systems, n_groups).
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

    def inverse_densities(self, posterior: Floats) -> Floats:
        """One over the density of the outputs on each item given its votes, shape (n_items,); 0 where none are."""
        if not self.has_output.any():
            return np.zeros(len(posterior))
        return np.where(self.has_output, (posterior * np.exp(-self._said)).sum(axis=1), 0.0)
