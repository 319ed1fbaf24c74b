"""What the systems under test say of the items, and rows of answers that are drawn for them in every state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.types import Floats, Positions

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
