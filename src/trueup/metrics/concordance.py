"""Pairs of items that scores put in the right order: the AUC for a truth of more than two values, and within groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.engines import choose_engine
from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import check_integer
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics.score_groups import ascending_order, check_scores, check_weights, ratio

_WORTH_COMPILING = 50_000  # scores from which compiled code repays loading numba


def concordance(scores: npt.ArrayLike, truth: npt.ArrayLike, *, weights: npt.ArrayLike | None = None) -> float:
    r"""Of the pairs of items with different truth, the share that the scores put in the same order.

    .. math:: \frac{\sum_{i, j: t_i > t_j} \bigl( 1[s_i > s_j] + \tfrac12 1[s_i = s_j] \bigr)}
        {\sum_{i, j: t_i > t_j} 1}

    This is one minus the normalised Kendall tau distance with ties (Urkullu et al. 2019, Section 3.3). If the truth has
    two values it is the AUC. It takes O(n log n) steps.

    Returns nan if no two items differ in truth.

    Kendall (1945), The treatment of ties in ranking problems, Biometrika 33. Knight (1966), A computer method for
    calculating Kendall's tau with ungrouped data, JASA 61.

    Parameters
    ----------
    scores : array of shape (n_items,)
    truth : array of shape (n_items,). Any numbers; only their order counts.
    weights : array of shape (n_items,), optional. What each item counts for; a pair counts for the product.
    """
    if weights is None:
        return float(concordance_many(np.asarray(scores)[None], truth)[0])
    return float(concordance_draws(scores, truth, np.asarray(weights)[None])[0])


def concordance_many(scores: npt.ArrayLike, truth: npt.ArrayLike) -> Floats:
    """The `concordance` of many systems, a row of scores each, with one truth; shape (n_systems,).

    Examples
    --------
    >>> concordance_many([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], [0.0, 0.5, 1.0]).tolist()
    [1.0, 0.0]
    """
    table, codes, sizes = _inputs(scores, truth)
    n = table.shape[1]
    pairs = _pairs(n) - int(_pairs(sizes).sum())
    ordered, tied = _in_order(table, codes, len(sizes))
    wrong = discordant_mass(ordered, np.broadcast_to(1.0, ordered.shape), len(sizes))
    return ratio(pairs - wrong - tied / 2, float(pairs))


def concordance_draws(scores: npt.ArrayLike, truth: npt.ArrayLike, weights: npt.ArrayLike) -> Floats:
    """The `concordance` of one system for many weights of the items, e.g. those of a Bayesian bootstrap.

    Weights have the shape (n_draws, n_items), and what is returned (n_draws,).

    Examples
    --------
    >>> concordance_draws([0.1, 0.4, 0.3], [0, 1, 2], [[1, 1, 1], [1, 0, 1]]).round(4).tolist()
    [0.6667, 1.0]
    """
    table, codes, sizes = _inputs(np.asarray(scores)[None], truth)
    n = table.shape[1]
    mass = check_weights(weights, (len(np.atleast_2d(np.asarray(weights))), n))
    assert mass is not None
    order, moved = (rows[0] for rows in ascending_order(table))
    run = np.cumsum(np.concatenate([[False], moved[1:] != moved[:-1]]))
    order = order[np.lexsort((codes[order], run))]  # equal scores by truth, so that they are never in the wrong order
    codes, mass = codes[order], mass[:, order]
    by_truth = np.stack([np.bincount(codes, weights=row, minlength=len(sizes)) for row in mass])
    pairs = (by_truth * (np.cumsum(by_truth, axis=1) - by_truth)).sum(axis=1)
    cell = np.concatenate([[True], (np.diff(run) != 0) | (np.diff(codes) != 0)])
    of_cells = np.add.reduceat(mass, np.flatnonzero(cell), axis=1)
    of_runs = np.add.reduceat(mass, np.flatnonzero(np.concatenate([[True], np.diff(run) != 0])), axis=1)
    tied = ((of_runs**2).sum(axis=1) - (of_cells**2).sum(axis=1)) / 2
    wrong = discordant_mass(codes[None], mass, len(sizes))
    return np.clip(ratio(pairs - wrong - tied / 2, pairs), 0.0, 1.0)


def _inputs(scores: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[Floats, Codes, Positions]:
    """Scores of shape (n_systems, n_items), the truth as codes in its order, and the number of items of each code."""
    table = check_scores(scores)
    values = np.asarray(truth, dtype=float)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InvalidParameter(f"truth must be one finite number for each item, got shape {values.shape}")
    if table.ndim != 2 or table.shape[1] != len(values):
        raise InvalidPredictions(f"scores must be one for each of {len(values)} items, got shape {table.shape[1:]}")
    order, moved = (rows[0] for rows in ascending_order(values[None]))
    codes = np.empty(len(values), dtype=np.int32)
    codes[order] = np.cumsum(np.concatenate([[False], moved[1:] != moved[:-1]]))
    return table, codes, np.bincount(codes)


def _in_order(table: Floats, codes: Codes, n_levels: int) -> tuple[Codes, Positions]:
    """The codes by ascending score, equal scores by code, and the number of pairs of equal score but other codes."""
    order, moved = ascending_order(table)
    ordered = np.take(codes, order)
    same = moved[:, 1:] == moved[:, :-1]
    tied = np.zeros(len(table), dtype=np.int64)
    rows = np.flatnonzero(same.any(axis=1))
    if len(rows):
        first = np.zeros((len(rows), 1), dtype=np.int64)
        run = np.concatenate([first, np.cumsum(~same[rows], axis=1)], axis=1)
        keys = run * n_levels + ordered[rows]
        keys.sort(axis=1)
        ordered[rows] = keys % n_levels
        tied[rows] = _tied_pairs(run) - _tied_pairs(keys)
    return ordered, tied


def _tied_pairs(sorted_rows: Codes) -> Positions:
    """The number of pairs of equal numbers in each sorted row."""
    n_rows, n = sorted_rows.shape
    starts = np.ones((n_rows, n), dtype=bool)
    np.not_equal(sorted_rows[:, 1:], sorted_rows[:, :-1], out=starts[:, 1:])
    at = np.flatnonzero(starts)
    lengths = np.diff(at, append=n_rows * n)
    # Whole numbers below 2⁵³ in floating point: exact.
    return np.bincount(at // n, weights=_pairs(lengths), minlength=n_rows).astype(np.int64)


def _pairs(n: Any) -> Any:
    return n * (n - 1) // 2


def discordant_mass(codes: Codes, masses: Floats, n_levels: int) -> Floats:
    """For each row the mass of the pairs whose first code is the larger; a pair counts for the product of its masses.

    Codes, shape (n_rows, n_items) or (1, n_items), are compared bit by bit. At each bit, items are in groups of codes
    that agree in all higher bits, and a pair in a group is in the wrong order if a one stands before a zero.
    """
    codes = np.broadcast_to(codes, masses.shape)
    if choose_engine(work=masses.size, worth=_WORTH_COMPILING) == "numba":
        from trueup.metrics import compiled_concordance as compiled

        return np.asarray(compiled.discordant_mass(codes, masses, n_levels))
    wrong = np.zeros(len(masses))
    for bit in range(int(n_levels - 1).bit_length()):
        order = np.argsort(codes >> (bit + 1), axis=1, kind="stable")
        ordered, mass = np.take_along_axis(codes, order, axis=1), np.take_along_axis(masses, order, axis=1)
        is_one, group = (ordered >> bit) & 1, ordered >> (bit + 1)
        ones = np.cumsum(is_one * mass, axis=1)
        starts = np.diff(group, axis=1, prepend=-1) != 0
        before = np.maximum.accumulate(np.where(starts, ones - is_one * mass, 0.0), axis=1)
        wrong += ((1 - is_one) * mass * (ones - before)).sum(axis=1)
    return wrong


@dataclass(frozen=True, eq=False)
class GroupedItems:
    """Which items are in which group, and whether each is positive there; make one with `from_entries`.

    A group may be the items that a labeler saw, positive where they said so. An item may be in many groups, and be
    positive in some only.

    Attributes
    ----------
    item, group : integer array of shape (n_entries,). The entries, sorted by item.
    of, against : array of shape (n_entries,)
        What an entry counts for as a positive and as a negative; one of them is 0.

    Examples
    --------
    >>> groups = GroupedItems.from_entries([0, 1, 2, 1, 2], [0, 0, 0, 1, 1], [0, 0, 1, 1, 0], n_items=3, n_groups=2)
    >>> groups.auc([[0.1, 0.4, 0.35]]).tolist()
    [[0.5, 1.0]]
    """

    item: Positions
    group: Positions
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
        item, group : integer array of shape (n_entries,). Positions of items and numbers of groups.
        positive : boolean array of shape (n_entries,)
        mass : array of shape (n_entries,), optional. What each entry counts for; 1 if not given.
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
        """The mass of those pairs that scores, a row a system, order right; a tie by half; shape (n_systems, n_groups).

        The time grows with the number of entries, not with that of pairs or of groups.
        """
        table = check_scores(scores)
        if table.ndim != 2 or table.shape[1] != self.n_items:
            raise InvalidPredictions(
                f"scores must have the shape (systems, {self.n_items}), got {table.shape}; pass one row a system"
            )
        order, moved = ascending_order(table)
        distinct = np.concatenate([np.ones((len(moved), 1), dtype=bool), moved[:, 1:] != moved[:, :-1]], axis=1)
        used = self._used
        if choose_engine(work=len(table) * len(used.item), worth=_WORTH_COMPILING) == "numba":
            from trueup.metrics import compiled_concordance as compiled

            parts = used._starts, used.group, used.of, used.against, used._once
            return np.asarray(compiled.group_wins(order, distinct, *parts, self.n_groups))
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

    def _wins_of_one(self, place: Positions) -> Floats:
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
