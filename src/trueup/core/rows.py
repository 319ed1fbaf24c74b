"""Items as the core sees them: the base, what systems say, and the probabilities that follow from coefficients.

For an item i with base f_i the class has the probabilities

    P(z_i = c | β, γ) ∝ f_ic^β · exp( Σ_k γ_k x_ik [t_ik = c] ),

where feature k names a class t_ik of the item: the output of a system, a constant class, or the positive class with the
item's score as x_ik. x_ik is 1 for systems and classes, and 0 where a feature says nothing. The *level* of a feature is
the weighted mean of P(z_i = t_ik) over the items that it speaks of: the accuracy of a system, the share of a class.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from trueup._base.types import Codes, Floats, Positions

_LARGEST = 80.0  # of the logarithm of a ratio of probabilities


@dataclass(frozen=True, eq=False)
class Rows:
    """Items with the features that correct their base."""

    log_base: Floats = field(repr=False)  # (n_rows, n_classes): log f
    targets: Codes = field(repr=False)  # (n_features, n_rows): the class t that each feature names
    values: Floats = field(repr=False)  # (n_features, n_rows): x
    weights: Floats = field(repr=False)  # (n_rows,): what each row counts for in a level
    # (n_rows, n_classes): what is added to β log f, where a class stands for many; see `Slots` of `trueup.core.truth`
    offset: Floats | None = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.log_base)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.log_base.shape[1])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.targets)

    def at(self, positions: Codes) -> Rows:
        """Some of the rows."""
        offset, targets = None if self.offset is None else self.offset[positions], self.targets[:, positions]
        return Rows(self.log_base[positions], targets, self.values[:, positions], self.weights[positions], offset)

    def of_features(self, chosen: slice | Codes) -> Rows:
        """The same rows with some of the features."""
        return replace(self, targets=self.targets[chosen], values=self.values[chosen])

    @cached_property
    def in_single_precision(self) -> Rows:
        """The same rows, of which probabilities come with seven digits in less than half of the time."""
        names = ("log_base", "values", "offset")
        tables: dict[str, Any] = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        single: dict[str, Any] = {name: table.astype(np.float32) for name, table in tables.items()}
        return replace(self, **single)

    @cached_property
    def masses(self) -> Floats:
        """The weight of the rows that each feature speaks of, shape (n_features,)."""
        return np.asarray(np.maximum((self.values != 0) @ self.weights, 1e-300))

    @cached_property
    def _cells(self) -> Positions:
        """The place of the named class among rows × classes, shape (n_features, n_rows)."""
        return np.asarray(np.arange(self.n_rows) * self.n_classes + self.targets)

    @cached_property
    def design(self) -> sparse.csr_array:
        """What each feature says of each row and class, shape (n_rows · n_classes, n_features)."""
        feature, row = np.nonzero(self.values)
        entries = (self.values[feature, row], (self._cells[feature, row], feature))
        return sparse.csr_array(entries, shape=(self.log_base.size, self.n_features))

    def probabilities(self, beta: Floats, gamma: Floats) -> Floats:
        """P(class) of each row for each θ, shape (n_rows, n_classes, n_points); γ is of (n_points, n_features)."""
        if self.n_classes == 2 and self.offset is None:
            return self._of_two_classes(beta, gamma)
        kind = self.log_base.dtype
        heights = self.design @ np.ascontiguousarray(gamma.T, dtype=kind)
        heights += self.log_base.reshape(-1, 1) * beta.astype(kind)
        if self.offset is not None:
            heights += self.offset.reshape(-1, 1)
        np.clip(heights, -_LARGEST, _LARGEST, out=heights)
        np.exp(heights, out=heights)
        chances = heights.reshape(self.n_rows, self.n_classes, len(beta))
        chances /= chances.sum(axis=1, keepdims=True)
        return chances

    def _of_two_classes(self, beta: Floats, gamma: Floats) -> Floats:
        """The same for two classes, from log odds: half as many exponentials."""
        log_odds = np.diff(self.log_base)
        signed = np.where(self.targets == 1, self.values, -self.values).T
        odds = signed @ gamma.T.astype(signed.dtype)
        odds += log_odds * beta.astype(log_odds.dtype)
        np.clip(odds, -_LARGEST, _LARGEST, out=odds)
        np.exp(odds, out=odds)
        chances = np.empty((self.n_rows, 2, len(beta)), dtype=odds.dtype)
        np.divide(1, 1 + odds, out=chances[:, 0])
        np.multiply(odds, chances[:, 0], out=chances[:, 1])
        return chances

    def named(self, probabilities: Floats) -> Floats:
        """P(z = t) times x of each row, shape (n_features, n_rows, n_points)."""
        flat = probabilities.reshape(-1, probabilities.shape[2])
        return np.asarray(flat[self._cells] * self.values[:, :, None])

    def levels(self, named: Floats) -> Floats:
        """The level of each feature, shape (n_points, n_features)."""
        return np.asarray((self.weights @ named).T / self.masses)

    @cached_property
    def _same_class(self) -> sparse.csr_array:
        """What pairs of features count for where both name the same class, shape (n_features², n_rows · n_classes)."""
        first, second = (index.ravel() for index in np.indices((self.n_features, self.n_features)))
        pair, row, entry = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)], [np.empty(0)]
        for k in range(len(first)):
            one, other = first[k], second[k]
            both = self.weights * self.values[one] * self.values[other]
            at = np.flatnonzero((self.targets[one] == self.targets[other]) & (both != 0))
            pair.append(np.full(len(at), k))
            row.append(self._cells[one, at])
            entry.append(both[at])
        cells = (np.concatenate(pair), np.concatenate(row))
        return sparse.csr_array((np.concatenate(entry), cells), shape=(len(first), self.log_base.size))

    def covariances(self, probabilities: Floats, named: Floats) -> Floats:
        """J: the sums over rows of the covariances of features, shape (n_points, n_features, n_features)."""
        n_points, n = probabilities.shape[2], self.n_features
        if not n:
            return np.zeros((n_points, 0, 0))
        together = (self._same_class @ probabilities.reshape(-1, n_points)).T.reshape(n_points, n, n)
        apart = np.ascontiguousarray(named.transpose(2, 0, 1))
        return np.asarray(together - (apart * self.weights) @ apart.transpose(0, 2, 1))

    def variances(self) -> Floats:
        """The diagonal of J where the base is taken as it is, shape (n_features,)."""
        chance = np.exp(self.log_base).ravel()[self._cells]
        return np.asarray((self.values**2 * chance * (1 - chance)) @ self.weights)
