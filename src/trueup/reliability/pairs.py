"""Agreement of every two labelers: Cohen's and Scott's coefficients, their means, and Kendall's W."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from trueup._base.types import Codes, Floats
from trueup.reliability.intervals import Spread, noise_of_items, two_way
from trueup.reliability.sums import ratio
from trueup.reliability.tables import VoteRows

MOST_COLUMNS = 3000  # labelers × classes: the tables of all pairs then take 72 MB
_MOST_GROUPS = 200  # of items that Kendall's W is worked out without


@dataclass(frozen=True)
class PairTables:
    """How often each two labelers said which classes of the items that both voted on."""

    rows: VoteRows
    table: Floats  # (n_labelers, n_classes, n_labelers, n_classes): weights of items
    items: Floats  # (n_labelers, n_labelers): items that both voted on

    @staticmethod
    def of(rows: VoteRows) -> PairTables:
        """Count them."""
        n = rows.n_labelers, rows.n_classes
        matrix = item_matrix(rows)
        scaled = sparse.csr_array(sparse.diags_array(rows.weights) @ matrix)
        table = _product(matrix, scaled).reshape(*n, *n)
        if (rows.weights == 1).all():
            return PairTables(rows, table, np.rint(table.sum(axis=(1, 3))))
        ones = sparse.csr_array((np.ones(len(rows.item)), (rows.item, rows.labeler)), shape=(rows.n_items, n[0]))
        return PairTables(rows, table, _product(ones, ones))

    @cached_property
    def squares(self) -> Floats:
        """As `table`, with the squares of the weights of items."""
        if (self.rows.weights == 1).all():
            return self.table
        matrix = item_matrix(self.rows)
        scaled = sparse.csr_array(sparse.diags_array(self.rows.weights**2) @ matrix)
        return _product(matrix, scaled).reshape(self.table.shape)

    @cached_property
    def effective(self) -> Floats:
        """How many items of one weight say as much as those that both voted on."""
        squares = self.squares.sum(axis=(1, 3))
        return np.asarray(np.divide(self.mass**2, squares, out=np.zeros_like(squares), where=squares > 0))

    @cached_property
    def mass(self) -> Floats:
        """The weight of the items that both voted on; 0 on the diagonal."""
        mass: Floats = self.table.sum(axis=(1, 3))
        np.fill_diagonal(mass, 0.0)
        return mass

    @cached_property
    def margins(self) -> Floats:
        """Of each labeler the share of each class on the items shared with each other; (labeler, class, other)."""
        return ratio(self.table.sum(axis=3), self.mass[:, None, :])

    def agreement(self, weights: Floats) -> Floats:
        """How far each two agree, by the agreement of classes."""
        return ratio(np.einsum("akbl,kl->ab", self.table, weights, optimize=True), self.mass)

    def chance(self, weights: Floats, *, pooled: bool) -> Floats:
        """How far each two would agree by chance, each by their own shares of classes (Cohen) or pooled (Scott)."""
        one, other = self.margins, self.margins.transpose(2, 1, 0)  # both (labeler, class, other)
        if pooled:
            one = other = (one + other) / 2
        return np.asarray(np.einsum("akb,kl,alb->ab", one, weights, other, optimize=True))

    def kappa(self, weights: Floats, *, pooled: bool = False) -> Floats:
        """The coefficient of every two; nan where they share no item, or chance leaves nothing."""
        chance = self.chance(weights, pooled=pooled)
        return ratio(self.agreement(weights) - chance, 1 - chance)

    def effects(self, weights: Floats, *, pooled: bool = False) -> Floats:
        """What a shared item on which two labelers say two classes changes in their coefficient; as `table`."""
        one, other = self.margins, self.margins.transpose(2, 1, 0)
        agreed, chance = self.agreement(weights), self.chance(weights, pooled=pooled)
        rest = 1 - chance
        if pooled:
            middle = (one + other) / 2
            expected = np.einsum("kl,alb->akb", weights, middle, optimize=True)
            of_one = of_other = expected
        else:
            of_one = np.einsum("kl,alb->akb", weights, other, optimize=True)  # of what the first said
            of_other = np.einsum("kl,akb->alb", weights, one, optimize=True)
        by_chance = of_one[:, :, :, None] + of_other.transpose(0, 2, 1)[:, None, :, :] - 2 * chance[:, None, :, None]
        gain = weights[None, :, None, :] - agreed[:, None, :, None]
        scale = ratio(1.0, rest * self.mass)[:, None, :, None]
        missed = ratio(1 - agreed, rest)[:, None, :, None]
        return np.asarray(np.nan_to_num((gain - missed * by_chance) * scale))

    def spread(self, weights: Floats, *, pooled: bool = False) -> tuple[Floats, Floats]:
        """The coefficient of every two and its variance over items."""
        effects = self.effects(weights, pooled=pooled)
        variance = np.einsum("akbl,akbl->ab", self.squares, effects**2, optimize=True)
        return self.kappa(weights, pooled=pooled), variance * ratio(self.effective, self.effective - 1)

    def bias(self, weights: Floats, *, pooled: bool = False) -> Floats:
        """By how much the coefficient of every two is too high on average, by the jackknife over their items.

        A coefficient without an item depends on the two classes that were said of it alone. Few items make it too low.
        """
        value = self.kappa(weights, pooled=pooled)
        n_classes, n = self.rows.n_classes, self.effective
        mean_without = np.zeros_like(n)
        one, other = self.margins * n[:, None, :], self.margins.transpose(2, 1, 0) * n[:, None, :]
        agreed = self.agreement(weights) * n
        for k in range(n_classes):
            for m in range(n_classes):
                first, second = one.copy(), other.copy()
                first[:, k] -= 1
                second[:, m] -= 1
                if pooled:
                    first = second = (first + second) / 2
                agreement = ratio(agreed - weights[k, m], n - 1)
                chance = ratio(np.einsum("akb,kl,alb->ab", first, weights, second, optimize=True), (n - 1) ** 2)
                without = ratio(agreement - chance, 1 - chance)
                mean_without += ratio(self.table[:, k, :, m], self.mass) * np.where(
                    np.isfinite(without), without, value
                )
        return np.where(n > 2, np.nan_to_num((n - 1) * (mean_without - value)), 0.0)

    def mean(self, weights: Floats, *, pooled: bool, with_labelers: bool) -> Spread:
        """The mean over pairs, each by the items that it shares, and how sure it is."""
        kappa = self.kappa(weights, pooled=pooled)
        part = np.where(np.isfinite(kappa), self.mass, 0.0)
        if not part.any():
            return Spread(*np.full((3, 1), np.nan))
        part = part / part.sum()
        value = float((part * np.nan_to_num(kappa)).sum())
        bias = np.array([float((part * self.bias(weights, pooled=pooled)).sum())])
        more = np.sqrt(np.nan_to_num(ratio(self.effective, self.effective - 1)))  # as in `spread`
        effects = self.effects(weights, pooled=pooled) * (part * more)[:, None, :, None]
        rows = self.rows
        by_row = _of_rows(rows, effects.reshape(rows.n_labelers * rows.n_classes, -1))  # with all others of the item
        by_row *= rows.weights[rows.item]
        by_item = np.bincount(rows.item, by_row, rows.n_items)
        n_items = rows.effective(2)
        of_items = np.array([n_items / max(n_items - 1, 1) * (by_item**2).sum()])
        if not with_labelers:
            return Spread(np.array([value]), of_items, np.array([max(n_items - 1.0, 1.0)]), bias)
        share = 2 * part.sum(axis=1)  # of the pairs that a labeler is in
        own = 2 * np.nansum(part * np.nan_to_num(kappa), axis=1)
        voted = share > 0
        gaps = ratio(value - own, 1 - share)[voted] - value
        effect = -ratio(2 * by_row - share[rows.labeler] * by_item[rows.item], 1 - share[rows.labeler])
        noise = noise_of_items(rows.item, rows.labeler, np.nan_to_num(effect)[:, None])
        return replace(two_way(np.array([value]), of_items, n_items, gaps[:, None], noise), bias=bias)


def item_matrix(rows: VoteRows) -> sparse.csr_array:
    """The shares as items × (labeler · class)."""
    shares = rows.shares.tocoo()
    column = rows.labeler[shares.row] * rows.n_classes + shares.col
    shape = rows.n_items, rows.n_labelers * rows.n_classes
    return sparse.csr_array((shares.data, (rows.item[shares.row], column)), shape=shape)


def _product(one: sparse.csr_array, other: sparse.csr_array) -> Floats:
    """The product of the first transposed and the second; dense where that is quicker."""
    if one.nnz**2 / max(one.shape[0], 1) < 0.02 * one.shape[0] * one.shape[1] ** 2:
        return np.asarray((one.T @ other).toarray(), dtype=float)
    total = np.zeros((one.shape[1], other.shape[1]))
    step = max(1, 4_000_000 // one.shape[1])
    for start in range(0, one.shape[0], step):
        total += one[start : start + step].toarray().T @ other[start : start + step].toarray()
    return total


def _of_rows(rows: VoteRows, effects: Floats) -> Floats:
    """Of each row the sum of its effects with all rows of its item."""
    matrix = item_matrix(rows)
    by_row = np.empty(len(rows.item))
    step = max(1, 4_000_000 // matrix.shape[1])
    ends = np.searchsorted(rows.item, np.arange(0, rows.n_items + step, step))
    for k, start in enumerate(range(0, rows.n_items, step)):
        at = slice(int(ends[k]), int(ends[k + 1]))
        part = matrix[start : start + step]
        sums = part.toarray() @ effects if part.nnz > 0.05 * part.shape[0] * part.shape[1] else part @ effects
        column = sums.reshape(len(sums), rows.n_labelers, rows.n_classes)
        own = column[rows.item[at] - start, rows.labeler[at]]
        by_row[at] = np.asarray(rows.shares[at].multiply(own).sum(axis=1)).ravel()
    return by_row


# ------------------ Kendall's W


def kendall(rows: VoteRows, values: Floats, *, with_labelers: bool) -> Spread:
    """The mean rank correlation that W is made of, of the items that all labelers voted on."""
    complete = rows.votes_per_item == rows.n_labelers
    m = rows.n_labelers
    if complete.sum() < 3:
        return Spread(*np.full((3, 1), np.nan))
    chosen = rows.on_items(complete)
    ratings = np.asarray(chosen.shares @ values).ravel()[np.argsort(chosen.item * m + chosen.labeler, kind="stable")]
    _, codes = np.unique(ratings, return_inverse=True)
    table = codes.reshape(-1, m)
    n = len(table)
    n_values = int(codes.max()) + 1
    counts = np.stack([np.bincount(table[:, r], minlength=n_values) for r in range(m)]).astype(float)
    value, without = _rank_correlation(table, counts)
    if not np.isfinite(value):
        return Spread(*np.full((3, 1), np.nan))
    group = np.arange(n) % _MOST_GROUPS  # items come in no order
    n_groups = int(group.max()) + 1
    gaps, cells = np.empty(n_groups), np.empty((n_groups, m))
    for g in range(n_groups):
        gone = table[group == g]
        fewer = counts - np.stack([np.bincount(gone[:, r], minlength=n_values) for r in range(m)])
        gaps[g], cells[g] = _rank_correlation(table[group != g], fewer)
    of_items = (n_groups - 1) / n_groups * np.nansum((gaps - np.nanmean(gaps)) ** 2)
    spread = Spread(np.array([value]), np.array([of_items]), np.array([n_groups - 1.0]))
    if with_labelers:
        both = cells - gaps[:, None] - without + value  # what a group and a labeler change together
        item, labeler = np.divmod(np.arange(n_groups * m), m)
        noise = noise_of_items(item, labeler, np.nan_to_num(both).reshape(-1, 1))
        spread = two_way(spread.value, spread.variance, n_groups, (without - value)[:, None], noise)
    return spread


def _rank_correlation(table: Codes, counts: Floats) -> tuple[float, Floats]:
    """The mean rank correlation of all labelers, and that without each of them; mean ranks of ties."""
    ranks = np.cumsum(counts, axis=1) - counts / 2 - counts.sum(axis=1, keepdims=True) / 2  # about their mean
    own = np.take_along_axis(ranks.T, table, axis=0)
    total = own.sum(axis=1)
    squares = (own**2).sum(axis=0)
    m = table.shape[1]
    covariance = float(total @ total) - squares.sum()
    all_of_them = float(ratio(covariance, (m - 1) * squares.sum()))
    less = covariance - 2 * (total @ own - squares)  # without the pairs of a labeler
    return all_of_them, ratio(less, (m - 2) * (squares.sum() - squares))
