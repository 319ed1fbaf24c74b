"""Coefficients of agreement as functions of a few sums over items, and what these sums are without an item or labeler.

So a jackknife over all items and all labelers costs about as much as the coefficients themselves.

Notation, with n_ik votes for class k among m_i on item i: Q_i is the number of ordered pairs of votes of different
labelers on i that agree, and a_i = Q_i / m_i(m_i − 1) the agreement on i.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from trueup._base.types import Codes, Floats
from trueup.reliability.tables import (
    Changes,
    Scale,
    Spread,
    Sums,
    VoteRows,
    distances,
    noise_of_items,
    ordinal_differences,
    two_way,
)


class AgreementSums(Sums):
    """The sums behind the coefficients of classes: of their numbers, and of how far two agree where that is weighed."""

    def __init__(self, rows: VoteRows, scale: Scale, values: Floats | None, weights: Floats | None) -> None:
        self.rows, self.scale, self.values, self.weights = rows, scale, values, weights
        self.gaps = None if values is None or scale in ("nominal", "ordinal") else distances(scale, values)
        n = rows.n_classes
        sizes = {"items": 1, "agree": 1, "voted": 1, "pairable": 1, "twice": 1, "shares": n, "said": n, "same": n}
        if weights is not None:
            sizes["near"] = 1
        if scale != "nominal":
            sizes["apart"] = n * n if scale == "ordinal" else 1
        if rows.is_named:
            sizes["labelers"] = n + 2  # the share of each class among the votes of a labeler, their squares, and 1
        ends = np.cumsum([0, *sizes.values()])
        self.slots: dict[str, slice] = {name: slice(a, b) for name, a, b in zip(sizes, ends, ends[1:], strict=False)}
        self.n_sums = int(ends[-1])
        mass = rows.weights[rows.item]
        places = sparse.csr_array((mass, (rows.labeler, np.arange(len(mass)))), shape=(rows.n_labelers, len(mass)))
        said = (places @ rows.shares).toarray()
        self._mass = said.sum(axis=1)
        shares = said / np.where(self._mass > 0, self._mass, 1.0)[:, None]
        self.of_labelers = _squared(shares, self._mass > 0) if rows.is_named else np.empty((rows.n_labelers, 0))

    def changes(self, part: VoteRows) -> Changes:
        """What the sums of a part are made of."""
        share, item, weight = part.shares.toarray(), part.item, part.weights
        alone = self._products(share)
        one = np.ones(len(item))
        counts, with_self, m = (_sum_rows(values, item, part.n_items) for values in (share, alone, one))
        items = self._of_items(counts, with_self, m, weight)
        rows = self._of_items(counts[item] - share, with_self[item] - alone, m[item] - 1, weight[item]) - items[item]
        if not self.rows.is_named:
            return Changes(items, rows)
        before, mass, own = self.of_labelers[part.labeler], self._mass[part.labeler], weight[item]
        is_last = mass - own <= 1e-9 * own
        rest = np.where(is_last, 1.0, mass - own)[:, None]
        after = (mass[:, None] * before[:, : part.n_classes] - own[:, None] * share) / rest
        after[is_last] = 0.0
        return self.with_labelers(part, items, rows, _squared(after, ~is_last) - before)

    def _products(self, votes: Floats) -> Floats:
        """Pairs that votes make with themselves: of the same class, near ones, and how far they are apart."""
        products = [votes**2]
        for weights in (self.weights, self.gaps):
            if weights is not None:
                products.append(((votes @ weights) * votes).sum(axis=1, keepdims=True))
        if self.scale == "ordinal":
            products.append((votes[:, :, None] * votes[:, None, :]).reshape(len(votes), -1))
        return np.concatenate(products, axis=1)

    def _of_items(self, counts: Floats, with_self: Floats, m: Floats, weight: Floats) -> Floats:
        """What items add, given their votes for each class, the products of votes with themselves, and all votes."""
        is_pair, some, others = (m > 1)[:, None], np.maximum(m, 1)[:, None], np.maximum(m - 1, 1)[:, None]
        pairs = np.where(is_pair, self._products(counts) - with_self, 0.0)
        same, near, apart = np.split(pairs, np.cumsum([counts.shape[1], self.weights is not None]), axis=1)
        pairable = m[:, None] * is_pair
        columns = [
            is_pair,
            same.sum(axis=1, keepdims=True) / (some * others),
            m > 0,
            pairable,
            weight[:, None] * pairable,
        ]
        columns += [counts / some, counts * is_pair, same / others, near / (some * others), apart / others]
        return np.column_stack(columns) * weight[:, None]

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficients, in the order of `coefficients`."""
        named = ("conger",) if self.rows.is_named else ()
        weighted = ("ac2",) if self.weights is not None else ()
        return ("percent", "fleiss", *named, "alpha", "ac1", *weighted, "brennan_prediger")

    def coefficients(self, sums: Floats) -> Floats:
        """The coefficients and after them the agreement on each class; nan where one has no value.

        From sums of shape (..., n_sums), an array of shape (..., n_coefficients + n_classes).
        """
        n = self.rows.n_classes
        parts = {name: sums[..., slot] for name, slot in self.slots.items()}
        items, agree, voted, pairable, twice = (parts[name][..., 0] for name in list(parts)[:5])
        percent = ratio(agree, items)
        spread = 1 - (ratio(parts["shares"], voted[..., None]) ** 2).sum(axis=-1)
        of_all = 1 / max(n - 1, 1) if n > 1 else np.nan
        found = {
            "percent": percent,
            "fleiss": beyond_chance(percent, 1 - spread),
            "alpha": self._alpha(parts, pairable, ratio(twice, pairable)),
            "ac1": beyond_chance(percent, spread * of_all),
            "brennan_prediger": beyond_chance(percent, np.full(np.shape(percent), 1 / n)),
        }
        if self.rows.is_named:
            margins, squares, labelers = np.split(parts["labelers"], [n, n + 1], axis=-1)
            shared = (margins**2).sum(axis=-1) - squares[..., 0]
            found["conger"] = beyond_chance(percent, ratio(shared, (labelers * (labelers - 1))[..., 0]))
        if self.weights is not None:
            near = ratio(parts["near"][..., 0], items)
            found["ac2"] = beyond_chance(near, self.weights.sum() * spread * of_all / n)
        by_class = ratio(parts["same"], parts["said"])
        return np.concatenate([np.stack([found[name] for name in self.names], axis=-1), by_class], axis=-1)

    def _alpha(self, parts: dict[str, Floats], pairable: Floats, one: Floats) -> Floats:
        """Krippendorff's alpha; `one` is what a vote weighs, so that pairable / one is their effective number."""
        said = parts["said"]
        if self.scale == "nominal" or self.values is None:
            observed, expected = pairable - parts["same"].sum(axis=-1), pairable**2 - (said**2).sum(axis=-1)
        elif self.gaps is not None:
            observed, expected = parts["apart"][..., 0], ((said @ self.gaps) * said).sum(axis=-1)
        else:
            gaps = ordinal_differences(self.values, said)
            observed = (parts["apart"] * gaps.reshape(*gaps.shape[:-2], -1)).sum(axis=-1)
            expected = np.einsum("...k,...kl,...l->...", said, gaps, said)
        return np.asarray(1 - ratio(observed * (pairable - one), expected))


def ratio(above: Any, below: Any) -> Floats:
    """The quotient; nan where there is nothing below."""
    above, below = np.broadcast_arrays(np.asarray(above, dtype=float), np.asarray(below, dtype=float))
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 1e-12))


def beyond_chance(agreement: Any, chance: Any) -> Floats:
    """The share of what chance leaves; nan where chance leaves nothing."""
    return ratio(agreement - chance, 1 - chance)


def _squared(shares: Floats, counts: Any) -> Floats:
    """Shares of classes, the sum of their squares, and whether there are any, as columns."""
    return np.column_stack([shares, (shares**2).sum(axis=1), counts])


def _sum_rows(values: Floats, item: Codes, n_items: int) -> Floats:
    """Sums over the rows of each item, which are in order."""
    sums = np.zeros((n_items, *values.shape[1:]))
    if len(item):
        starts = np.flatnonzero(np.diff(item, prepend=-1))
        sums[item[starts]] = np.add.reduceat(values, starts, axis=0)
    return sums


class RatingSums(Sums):
    """The sums behind intraclass correlations: variances of items, labelers and the rest, by the method of moments.

    Henderson's first method, which is the analysis of variance where no vote is missing. Only items with two votes and
    more count, all alike. Nan where the variances add up to nothing.
    """

    names = ("icc1", "icc_a1", "icc_c1")
    n_sums = 9

    def __init__(self, rows: VoteRows, values: Floats) -> None:
        self.rows = replace(rows, weights=np.ones(rows.n_items)).on_items(rows.votes_per_item >= 2)
        self._values = values - (self.rows.shares @ values).mean()  # so that sums keep their digits
        rating = np.asarray(self.rows.shares @ self._values).ravel()
        n = np.bincount(self.rows.labeler, minlength=rows.n_labelers).astype(float)
        self._states = np.column_stack([n, np.bincount(self.rows.labeler, rating, rows.n_labelers)])
        self.of_labelers = self._of_labelers(self._states)

    def changes(self, part: VoteRows) -> Changes:
        """What the sums of a part are made of."""
        y = np.asarray(part.shares @ self._values).ravel()
        alone = np.column_stack([np.ones(len(y)), y, y * y])
        states, labelers = _sum_rows(alone, part.item, part.n_items), self._states[part.labeler]
        items = self._of_items(states)
        rows = self._of_items(states[part.item] - alone) - items[part.item]
        left = self._of_labelers(labelers - alone[:, :2])
        return self.with_labelers(part, items, rows, left - self._of_labelers(labelers))

    @staticmethod
    def _of_items(states: Floats) -> Floats:
        """Votes, items, Σy, Σy², Σ of totals squared over numbers, and Σ of numbers squared."""
        n, total, squares = states.T
        return np.column_stack([n, n > 0, total, squares, total**2 / np.maximum(n, 1), n**2])

    @staticmethod
    def _of_labelers(states: Floats) -> Floats:
        """Labelers, Σ of totals squared over numbers, and Σ of numbers squared."""
        n, total = states.T
        return np.column_stack([n > 0, total**2 / np.maximum(n, 1), n**2])

    def coefficients(self, sums: Floats) -> Floats:
        """ICC(1), ICC(A,1) and ICC(C,1); shape (..., 3)."""
        n, a, total, squares, by_item, item_squares, b, by_labeler, labeler_squares = np.moveaxis(sums, -1, 0)
        mean = ratio(total**2, n)
        between, within = by_item - mean, squares - by_item
        k = ratio(n - ratio(item_squares, n), a - 1)  # votes an item
        noise = ratio(within, n - a)
        items = ratio(between - (a - 1) * noise, (a - 1) * k)
        tiny = 1e-9 * ratio(squares - mean, n)

        def part_of(part: Floats, whole: Floats) -> Floats:
            """The quotient; nan where the whole is no more than rounding errors."""
            return np.where(whole > tiny, ratio(part, whole), np.nan)

        # E of: between items, between labelers, the rest; unknown: variances of items, labelers and the rest
        ka, kb = ratio(item_squares, n), ratio(labeler_squares, n)
        between_labelers = by_labeler - mean
        rest = squares - by_item - by_labeler + mean
        cells = [n - ka, a - kb, a - 1, b - ka, n - kb, b - 1, ka - b, kb - a, n - a - b + 1]
        system = np.stack(cells, axis=-1).reshape(*np.shape(n), 3, 3)
        known = np.stack([between, between_labelers, rest], axis=-1)
        sound = np.isfinite(system).all(axis=(-1, -2)) & (np.abs(np.linalg.det(np.nan_to_num(system))) > 1e-9)
        safe = np.where(sound[..., None, None], system, np.eye(3))
        of_item, of_labeler, of_rest = np.moveaxis(np.linalg.solve(safe, known[..., None])[..., 0], -1, 0)
        absolute, consistent = part_of(of_item, of_item + of_labeler + of_rest), part_of(of_item, of_item + of_rest)
        found = np.stack([part_of(items, items + noise), absolute, consistent], axis=-1)
        found[..., 1:][~sound] = np.nan
        return found


MOST_COLUMNS = 3000  # labelers × classes: the tables of all pairs then take 72 MB
_MOST_GROUPS = 200  # of items that Kendall's W is worked out without


class PairTables:
    """How often each two labelers said which classes of the items that both voted on.

    `table` is (n_labelers, n_classes, n_labelers, n_classes), weights of items, and `items` (n_labelers, n_labelers).
    """

    def __init__(self, rows: VoteRows) -> None:
        self.rows = rows
        matrix, shape = item_matrix(rows), (rows.n_labelers, rows.n_classes) * 2

        def weighted(weights: Floats) -> Floats:
            """The table with these weights of items."""
            return _product(matrix, sparse.csr_array(sparse.diags_array(weights) @ matrix)).reshape(shape)

        plain = self.table = self._squares = weighted(np.ones(rows.n_items))
        if (rows.weights != 1).any():
            self.table, self._squares = weighted(rows.weights), weighted(rows.weights**2)
        self.items = np.rint(plain.sum(axis=(1, 3)))
        self.mass: Floats = self.table.sum(axis=(1, 3))  # of the items that both voted on; 0 on the diagonal
        np.fill_diagonal(self.mass, 0.0)
        squares = self._squares.sum(axis=(1, 3))
        # How many items of one weight say as much as those that both voted on.
        self.effective = np.divide(self.mass**2, squares, out=np.zeros_like(squares), where=squares > 0)
        # The share of each class in the votes of a labeler on the items shared with another; (labeler, class, other).
        self.margins = ratio(self.table.sum(axis=3), self.mass[:, None, :])

    def agreement(self, weights: Floats) -> Floats:
        """How far each two agree, by the agreement of classes."""
        return ratio(np.einsum("akbl,kl->ab", self.table, weights, optimize=True), self.mass)

    def _by_chance(self, weights: Floats, pooled: bool, scale: Any = 1.0) -> tuple[Floats, Floats, Floats]:
        """How far each two agree by chance, each by their own shares of classes (Cohen) or pooled ones (Scott).

        Then its slopes along what the first said and along what the other said; (labeler, class, other).
        """
        one, other = self.margins * scale, self.margins.transpose(2, 1, 0) * scale
        if pooled:
            one = other = (one + other) / 2
        along_one = np.einsum("kl,alb->akb", weights, other, optimize=True)
        return (
            np.einsum("akb,akb->ab", one, along_one),
            along_one,
            np.einsum("kl,akb->alb", weights, one, optimize=True),
        )

    def kappa(self, weights: Floats, *, pooled: bool = False) -> Floats:
        """The coefficient of every two; nan where they share no item, or chance leaves nothing."""
        return beyond_chance(self.agreement(weights), self._by_chance(weights, pooled)[0])

    def effects(self, weights: Floats, *, pooled: bool = False) -> Floats:
        """What a shared item on which two labelers say two classes changes in their coefficient; as `table`."""
        agreed, (chance, along_one, along_other) = self.agreement(weights), self._by_chance(weights, pooled)
        by_chance = along_one[..., None] + along_other.transpose(0, 2, 1)[:, None] - 2 * chance[:, None, :, None]
        gain = weights[None, :, None, :] - agreed[:, None, :, None]
        scale = ratio(1.0, (1 - chance) * self.mass)[:, None, :, None]
        missed = ratio(1 - agreed, 1 - chance)[:, None, :, None]
        return np.asarray(np.nan_to_num((gain - missed * by_chance) * scale))

    def spread(self, weights: Floats) -> tuple[Floats, Floats]:
        """The coefficient of every two and its variance over items."""
        variance = np.einsum("akbl,akbl->ab", self._squares, self.effects(weights) ** 2, optimize=True)
        return self.kappa(weights), variance * ratio(self.effective, self.effective - 1)

    def bias(self, weights: Floats, *, pooled: bool = False) -> Floats:
        """By how much the coefficient of every two is too high on average, by the jackknife over their items.

        A coefficient without an item depends on the two classes that were said of it alone. Few items make it too low.
        """
        value, n = self.kappa(weights, pooled=pooled), self.effective
        agreed = self.agreement(weights) * n
        by_chance, along_one, along_other = self._by_chance(weights, pooled, n[:, None, :])
        mean_without = np.zeros_like(n)
        for k in range(self.rows.n_classes):  # of the item that is left out; all classes of the other at once
            twice = weights[k]
            if pooled:
                twice = (weights[k] + weights[:, k] + weights[k, k] + np.diag(weights)) / 4
            rest = by_chance[..., None] - along_one[:, k, :, None] - along_other.transpose(0, 2, 1) + twice
            agreement = ratio(agreed[:, :, None] - weights[k], (n - 1)[:, :, None])
            without = beyond_chance(agreement, ratio(rest, ((n - 1) ** 2)[:, :, None]))
            without = np.where(np.isfinite(without), without, value[:, :, None])
            mean_without += (ratio(self.table[:, k], self.mass[:, :, None]) * without).sum(axis=-1)
        return np.where(n > 2, np.nan_to_num((n - 1) * (mean_without - value)), 0.0)

    def mean(self, weights: Floats, *, pooled: bool, with_labelers: bool) -> Spread:
        """The mean over pairs, each by the items that it shares, and how sure it is."""
        kappa, rows = self.kappa(weights, pooled=pooled), self.rows
        part = np.where(np.isfinite(kappa), self.mass, 0.0)
        if not part.any():
            return Spread(*np.full((3, 1), np.nan))
        part = part / part.sum()
        weighted = part * np.nan_to_num(kappa)
        value = np.array([weighted.sum()])
        bias = np.array([(part * self.bias(weights, pooled=pooled)).sum()])
        more = np.sqrt(np.nan_to_num(ratio(self.effective, self.effective - 1)))  # as in `spread`
        effects = self.effects(weights, pooled=pooled) * (part * more)[:, None, :, None]
        by_row = _of_rows(rows, effects.reshape(rows.n_labelers * rows.n_classes, -1))  # with all others of the item
        by_row *= rows.weights[rows.item]
        by_item = np.bincount(rows.item, by_row, rows.n_items)
        n_items = rows.effective(2)
        of_items = np.array([n_items / max(n_items - 1, 1) * (by_item**2).sum()])
        if not with_labelers:
            return Spread(value, of_items, np.array([max(n_items - 1.0, 1.0)]), bias)
        share = 2 * part.sum(axis=1)  # of the pairs that a labeler is in
        gaps = ratio(value - 2 * weighted.sum(axis=1), 1 - share)[share > 0] - value
        effect = -ratio(2 * by_row - share[rows.labeler] * by_item[rows.item], 1 - share[rows.labeler])
        noise = noise_of_items(rows.item, rows.labeler, np.nan_to_num(effect)[:, None])
        return replace(two_way(value, of_items, n_items, gaps[:, None], noise), bias=bias)


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


def kendall(rows: VoteRows, values: Floats, *, with_labelers: bool) -> Spread:
    """The mean rank correlation that W is made of, of the items that all labelers voted on."""
    nothing, m = Spread(*np.full((3, 1), np.nan)), rows.n_labelers
    complete = rows.votes_per_item == m
    if complete.sum() < 3:
        return nothing
    chosen = rows.on_items(complete)
    ratings = np.asarray(chosen.shares @ values).ravel()[np.argsort(chosen.item * m + chosen.labeler, kind="stable")]
    table = np.unique(ratings, return_inverse=True)[1].reshape(-1, m)

    def counts_of(table: Codes) -> Floats:
        """How often each labeler gave each rating."""
        return np.stack([np.bincount(column, minlength=table_size) for column in table.T]).astype(float)

    table_size = int(table.max()) + 1
    counts = counts_of(table)
    value, without = _rank_correlation(table, counts)
    if not np.isfinite(value):
        return nothing
    group = np.arange(len(table)) % _MOST_GROUPS  # items come in no order
    n_groups = int(group.max()) + 1
    left = [_rank_correlation(table[group != g], counts - counts_of(table[group == g])) for g in range(n_groups)]
    gaps, cells = np.array([gap for gap, _ in left]), np.stack([cell for _, cell in left])
    of_items = np.array([(n_groups - 1) / n_groups * np.nansum((gaps - np.nanmean(gaps)) ** 2)])
    if not with_labelers:
        return Spread(np.array([value]), of_items, np.array([n_groups - 1.0]))
    both = cells - gaps[:, None] - without + value  # what a group and a labeler change together
    item, labeler = np.divmod(np.arange(n_groups * m), m)
    noise = noise_of_items(item, labeler, np.nan_to_num(both).reshape(-1, 1))
    return two_way(np.array([value]), of_items, n_groups, (without - value)[:, None], noise)


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
