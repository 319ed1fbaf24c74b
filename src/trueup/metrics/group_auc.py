"""The AUC within each of many small groups of items, for many systems at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import check_integer
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics.concordance import engine_for
from trueup.metrics.score_groups import ascending_order, check_finite, ratio

__all__ = ["GroupedItems"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupedItems:
    """Which items are in which group, and whether each is positive there; make one with `from_entries`.

    A group may be the items that a labeler saw, positive where he said so. An item may be in many groups, and be
    positive in some only.

    Attributes
    ----------
    item, group : integer array of shape (n_entries,)
        The entries, sorted by item.
    of, against : array of shape (n_entries,)
        What an entry counts for as a positive and as a negative; one of them is 0.
    n_items, n_groups : int

    Examples
    --------
    >>> groups = GroupedItems.from_entries([0, 1, 2, 1, 2], [0, 0, 0, 1, 1], [0, 0, 1, 1, 0], n_items=3, n_groups=2)
    >>> groups.auc([[0.1, 0.4, 0.35]]).tolist()
    [[0.5, 1.0]]
    """

    item: Integers
    group: Integers
    of: Floats
    against: Floats
    n_items: int
    n_groups: int

    @classmethod
    def from_entries(
        cls,
        item: npt.ArrayLike,
        group: npt.ArrayLike,
        positive: npt.ArrayLike,
        *,
        n_items: int,
        n_groups: int,
        mass: npt.ArrayLike | None = None,
    ) -> GroupedItems:
        """Groups from one entry for each item of each group, in any order.

        Parameters
        ----------
        item, group : integer array of shape (n_entries,)
            Positions of items and numbers of groups.
        positive : boolean array of shape (n_entries,)
        n_items, n_groups : int
        mass : array of shape (n_entries,), optional
            What each entry counts for; 1 if not given.
        """
        items, groups = np.asarray(item, dtype=np.int64), np.asarray(group, dtype=np.int64)
        is_positive = np.asarray(positive, dtype=bool)
        masses = np.ones(items.shape) if mass is None else np.asarray(mass, dtype=float)
        if not items.shape == groups.shape == is_positive.shape == masses.shape == (items.size,):
            raise InvalidParameter(
                "item, group, positive and mass must have one value for each entry, got the shapes "
                f"{items.shape}, {groups.shape}, {is_positive.shape} and {masses.shape}"
            )
        for codes, high, name in ((items, n_items, "item"), (groups, n_groups, "group")):
            check_integer(high, name=f"n_{name}s", low=1)
            if codes.size and (codes.min() < 0 or codes.max() >= high):
                raise InvalidParameter(f"{name} must lie between 0 and {high - 1}, got {codes.min()} to {codes.max()}")
        order = np.argsort(items, kind="stable")
        of, against = np.where(is_positive, masses, 0.0)[order], np.where(is_positive, 0.0, masses)[order]
        return cls(items[order], groups[order], of, against, n_items, n_groups)

    @cached_property
    def pairs(self) -> Floats:
        """The mass of the pairs of a positive and a negative in each group, shape (n_groups,)."""
        return self._sums(self.of) * self._sums(self.against)

    def wins(self, scores: npt.ArrayLike) -> Floats:
        """The mass of those pairs that the scores order right, a tie by half.

        The time grows with the number of entries, not with that of pairs or of groups.

        Parameters
        ----------
        scores : array of shape (n_systems, n_items)

        Returns
        -------
        array of shape (n_systems, n_groups)
        """
        table = check_finite(scores)
        if table.ndim != 2 or table.shape[1] != self.n_items:
            raise InvalidPredictions(
                f"scores must have the shape (systems, {self.n_items}), got {table.shape}; pass one row a system"
            )
        order, moved = ascending_order(table)
        distinct = np.concatenate([np.ones((len(moved), 1), dtype=bool), moved[:, 1:] != moved[:, :-1]], axis=1)
        used = self._used
        if engine_for(len(table) * len(used.item)) == "numba":
            from trueup.metrics import compiled_concordance as _numba_concordance

            return np.asarray(
                _numba_concordance.group_wins(
                    order, distinct, used._starts, used.group, used.of, used.against, used._once, self.n_groups
                )
            )
        wins = np.empty((len(table), self.n_groups))
        for row in range(len(table)):
            place = np.empty(self.n_items, dtype=np.int64)
            place[order[row]] = np.cumsum(distinct[row])
            wins[row] = used._wins_of_one(place[used.item])
        return wins

    def auc(self, scores: npt.ArrayLike) -> Floats:
        """The AUC of each system in each group, shape (n_systems, n_groups); nan for groups with one class only."""
        return ratio(self.wins(scores), self.pairs)

    @cached_property
    def _used(self) -> GroupedItems:
        """The entries of groups that have pairs."""
        used = (self.pairs > 0)[self.group]
        parts = self.item[used], self.group[used], self.of[used], self.against[used]
        return GroupedItems(*parts, self.n_items, self.n_groups)

    @cached_property
    def _starts(self) -> npt.NDArray[np.intp]:
        """Where the entries of each item start, shape (n_items + 1,)."""
        return np.searchsorted(self.item, np.arange(self.n_items + 1))

    @cached_property
    def _once(self) -> bool:
        """Whether no item is in a group twice."""
        cells = np.sort(self.item * self.n_groups + self.group)
        return bool((cells[1:] != cells[:-1]).all())

    def _sums(self, values: Floats) -> Floats:
        return np.asarray(np.bincount(self.group, weights=values, minlength=self.n_groups), dtype=float)

    def _wins_of_one(self, place: Integers) -> Floats:
        """The wins for one system, given the place of each entry's item, by sorting entries by group and place."""
        if not len(place):
            return np.zeros(self.n_groups)
        key = self.group * (int(place.max()) + 1) + place
        order = ascending_order(key.astype(float)[None])[0][0]
        key, group = key[order], self.group[order]
        below = np.concatenate([[0.0], np.cumsum(self.against[order])])
        # Half of the negatives before those of equal place are added, half after; an item may be in a group twice.
        starts = np.concatenate([[True], key[1:] != key[:-1]])
        edges = np.append(np.flatnonzero(starts), len(key))
        lower = (below[edges[:-1]] + below[edges[1:]])[np.cumsum(starts) - 1] / 2
        before_group = below[np.searchsorted(group, np.arange(self.n_groups))][group]
        wins = np.empty_like(lower)
        wins[order] = lower - before_group
        return self._sums(self.of * wins)
