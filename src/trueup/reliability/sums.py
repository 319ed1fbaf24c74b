"""Coefficients of agreement as functions of a few sums over items, and what these sums are without an item or labeler.

So a jackknife over all items and all labelers costs about as much as the coefficients themselves.

Notation, with n_ik votes for class k among m_i on item i: Q_i is the number of ordered pairs of votes of different
labelers on i that agree, and a_i = Q_i / m_i(m_i − 1) the agreement on i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from trueup._base.types import Codes, Floats
from trueup.reliability.tables import Scale, Spread, VoteRows, noise_of_items, squared_differences, two_way

# Sums that are not one a class.
_NUMBERS = {"items", "agree", "voted", "pairable", "twice", "squares", "labelers", "near"}


@dataclass(frozen=True)
class Changes:
    """What the sums of a part are made of."""

    items: Floats  # (n_items, n_sums): what each item adds
    rows: Floats  # (n_rows, n_sums): by how much the sums change when a row goes


class AgreementSums:
    """The sums behind the coefficients of classes: of their numbers, and of how far two agree where that is weighed."""

    def __init__(self, rows: VoteRows, scale: Scale, values: Floats | None, weights: Floats | None) -> None:
        self.rows, self.scale, self.values, self.weights = rows, scale, values, weights
        n = rows.n_classes
        sizes = {"items": 1, "agree": 1, "voted": 1, "shares": n, "pairable": 1, "twice": 1, "said": n, "same": n}
        if rows.is_named:
            sizes |= {"margins": n, "squares": 1, "labelers": 1}
        if weights is not None:
            sizes |= {"near": 1}
        if scale != "nominal":
            sizes |= {"apart": n * n if scale == "ordinal" else 1}
        ends = np.cumsum([0, *sizes.values()])
        self.slots: dict[str, slice] = {name: slice(a, b) for name, a, b in zip(sizes, ends, ends[1:], strict=False)}
        self.n_sums = int(ends[-1])
        self.gaps = None if scale in ("nominal", "ordinal") else squared_differences(scale, n, values)

    @cached_property
    def labeler_shares(self) -> tuple[Floats, Floats]:
        """The weight of the votes of each labeler, and the share of each class among them."""
        mass = self.rows.weights[self.rows.item]
        n_rows = len(mass)
        by_labeler = sparse.csr_array(
            (mass, (self.rows.labeler, np.arange(n_rows))), shape=(self.rows.n_labelers, n_rows)
        )
        sums = (by_labeler @ self.rows.shares).toarray()
        total = sums.sum(axis=1)
        return total, sums / np.where(total > 0, total, 1.0)[:, None]

    def parts(self) -> Iterator[tuple[VoteRows, Changes]]:
        """The changes of the sums, part by part."""
        for part in self.rows.parts(self.n_sums):
            yield part, self._changes(part)

    def without_labeler(self, total: Floats, row_changes: Floats) -> Floats:
        """The sums without each labeler, given the sums of the changes by its rows; shape (n_labelers, n_sums)."""
        left = total + row_changes
        if "margins" in self.slots:
            mass, shares = self.labeler_shares
            left[:, self.slots["margins"]] = total[self.slots["margins"]] - shares
            left[:, self.slots["squares"]] = total[self.slots["squares"]] - (shares**2).sum(axis=1, keepdims=True)
            left[:, self.slots["labelers"]] = total[self.slots["labelers"]] - (mass > 0)[:, None]
        return left

    def total(self, items: Floats) -> Floats:
        """The sums of all, from what all items add; those over labelers are no sums over items."""
        total = items.copy()
        if "margins" in self.slots:
            mass, shares = self.labeler_shares
            total[self.slots["margins"]] = shares.sum(axis=0)
            total[self.slots["squares"]] = (shares**2).sum()
            total[self.slots["labelers"]] = (mass > 0).sum()
        return total

    def _changes(self, part: VoteRows) -> Changes:
        share = part.shares.toarray()
        item = part.item
        counts = _sum_rows(share, item, part.n_items)
        m = np.bincount(item, minlength=part.n_items).astype(float)
        weight = part.weights
        is_pair, is_two, is_one = m >= 2, m[item] == 2, m[item] == 1
        items, rows = np.zeros((part.n_items, self.n_sums)), np.zeros((len(item), self.n_sums))
        of_pair, of_three = np.maximum(m - 1, 1), np.maximum(m - 2, 1)

        def put(name: str, by_item: Floats, without_row: Floats) -> None:
            """What items add, and what the item of each row adds without this row."""
            at = self.slots[name]
            items[:, at] = _column(by_item)
            rows[:, at] = _column(without_row) - items[item, at]

        def pairs(cross: Floats) -> tuple[Floats, Floats]:
            """Pairs of an item, and those of the item of each row without this row."""
            by_item = _sum_rows(cross, item, part.n_items)
            return by_item, by_item[item] - 2 * cross

        cross = counts[item] * share - share**2  # the others that say the same as a row, by class
        same, same_without = pairs(cross)
        agree, agree_without = same.sum(axis=1), same_without.sum(axis=1)
        left = ~is_two & ~is_one  # rows without which their item still has a pair
        put("items", is_pair.astype(float), left.astype(float))
        put("agree", agree / (np.maximum(m, 1) * of_pair), agree_without / (of_pair * of_three)[item] * left)
        put("voted", (m > 0).astype(float), (~is_one).astype(float))
        put("shares", counts / np.maximum(m, 1)[:, None], (counts[item] - share) / of_pair[item][:, None])
        put("pairable", m * is_pair, (m[item] - 1) * left)
        put("twice", weight * m * is_pair, weight[item] * (m[item] - 1) * left)  # of weights squared
        put("said", counts * is_pair[:, None], (counts[item] - share) * left[:, None])
        put("same", same / of_pair[:, None], same_without * (left / of_three[item])[:, None])
        if self.weights is not None:
            near, near_without = pairs(_cross(counts[item], share, self.weights))
            put("near", near / (np.maximum(m, 1) * of_pair), near_without / (of_pair * of_three)[item] * left)
        if self.scale == "ordinal":
            both = (counts[item] - share)[:, :, None] * share[:, None, :]
            both = ((both + both.swapaxes(1, 2)) / 2).reshape(len(item), -1)
            apart, apart_without = pairs(both)
            put("apart", apart / of_pair[:, None], apart_without * (left / of_three[item])[:, None])
        elif self.gaps is not None:
            apart, apart_without = pairs(_cross(counts[item], share, self.gaps))
            put("apart", apart / of_pair, apart_without * left / of_three[item])
        items, rows = items * weight[:, None], rows * weight[item][:, None]
        if "margins" in self.slots:
            self._put_margins(part, share, items, rows)
        return Changes(items, rows)

    def _put_margins(self, part: VoteRows, share: Floats, items: Floats, rows: Floats) -> None:
        """The sums over labelers of their shares of classes, and of the squares of these."""
        mass, shares = self.labeler_shares
        weight = part.weights[part.item]
        mean, rest = shares[part.labeler], mass[part.labeler] - weight
        is_last = rest <= 1e-9 * weight
        after = (mass[part.labeler, None] * mean - weight[:, None] * share) / np.where(is_last, 1.0, rest)[:, None]
        after[is_last] = 0.0
        rows[:, self.slots["margins"]] = after - mean
        rows[:, self.slots["squares"]] = ((after**2).sum(axis=1) - (mean**2).sum(axis=1))[:, None]
        rows[:, self.slots["labelers"]] = -is_last[:, None].astype(float)
        for name in ("margins", "squares", "labelers"):
            at = self.slots[name]
            items[:, at] = -_sum_rows(rows[:, at], part.item, part.n_items)

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

        def of(name: str) -> Any:
            value = sums[..., self.slots[name]]
            return value[..., 0] if name in _NUMBERS else value

        percent = ratio(of("agree"), of("items"))
        shares = ratio(of("shares"), of("voted")[..., None])
        spread = 1 - (shares**2).sum(axis=-1)
        found = {"percent": percent, "fleiss": beyond_chance(percent, 1 - spread)}
        if self.rows.is_named:
            pairs = of("labelers") * (of("labelers") - 1)
            chance = ratio((of("margins") ** 2).sum(axis=-1) - of("squares"), pairs)
            found["conger"] = beyond_chance(percent, chance)
        found["alpha"] = self._alpha(of)
        of_all = 1 / max(n - 1, 1) if n > 1 else np.nan
        found["ac1"] = beyond_chance(percent, spread * of_all)
        if self.weights is not None:
            near = ratio(of("near"), of("items"))
            found["ac2"] = beyond_chance(near, self.weights.sum() * spread * of_all / n)
        found["brennan_prediger"] = beyond_chance(percent, np.full(np.shape(percent), 1 / n))
        by_class = ratio(of("same"), of("said"))
        return np.concatenate([np.stack([found[name] for name in self.names], axis=-1), by_class], axis=-1)

    def _alpha(self, of: Callable[[str], Any]) -> Floats:
        said, pairable = of("said"), of("pairable")
        if self.scale == "nominal":
            observed = pairable - of("same").sum(axis=-1)
            expected = pairable**2 - (said**2).sum(axis=-1)
        elif self.gaps is not None:
            observed = of("apart")[..., 0]
            expected = ((said @ self.gaps) * said).sum(axis=-1)
        else:
            gaps = squared_differences("ordinal", self.rows.n_classes, self.values, said)
            observed = (of("apart") * gaps.reshape(*gaps.shape[:-2], -1)).sum(axis=-1)
            expected = np.einsum("...k,...kl,...l->...", said, gaps, said)
        one = ratio(of("twice"), pairable)  # what a vote weighs: pairable / one is their effective number
        return np.asarray(1 - ratio(observed * (pairable - one), expected))


def ratio(above: Any, below: Any) -> Floats:
    """The quotient; nan where there is nothing below."""
    above, below = np.broadcast_arrays(np.asarray(above, dtype=float), np.asarray(below, dtype=float))
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 1e-12))


def beyond_chance(agreement: Any, chance: Any) -> Floats:
    """The share of what chance leaves; nan where chance leaves nothing."""
    return ratio(agreement - chance, 1 - chance)


def _part_of(part: Floats, whole: Floats, tiny: Floats) -> Floats:
    """The quotient; nan where the whole is no more than rounding errors."""
    return np.where(whole > tiny, ratio(part, whole), np.nan)


def _column(values: Floats) -> Floats:
    return values[:, None] if values.ndim == 1 else values


def _sum_rows(values: Floats, item: Codes, n_items: int) -> Floats:
    """Sums over the rows of each item, which are in order."""
    sums = np.zeros((n_items, *values.shape[1:]))
    if len(item):
        starts = np.flatnonzero(np.diff(item, prepend=-1))
        sums[item[starts]] = np.add.reduceat(values, starts, axis=0)
    return sums


def _cross(counts: Floats, share: Floats, weights: Floats) -> Floats:
    """How far each row agrees with all others of its item."""
    return np.asarray((((counts - share) @ weights) * share).sum(axis=1))


class RatingSums:
    """The sums behind intraclass correlations: variances of items, labelers and the rest, by the method of moments.

    Henderson's first method, which is the analysis of variance where no vote is missing. Only items with two votes and
    more count, all alike. Nan where the variances add up to nothing.
    """

    names = ("icc1", "icc_a1", "icc_c1")
    n_sums = 9

    def __init__(self, rows: VoteRows, values: Floats) -> None:
        alike = replace(rows, weights=np.ones(rows.n_items))
        self.rows = alike.on_items(rows.votes_per_item >= 2)
        self.rating = np.asarray(self.rows.shares @ values).ravel()
        self.rating = self.rating - self.rating.mean()  # the sums keep their digits
        self._n = np.bincount(self.rows.labeler, minlength=rows.n_labelers).astype(float)
        self._sum = np.bincount(self.rows.labeler, self.rating, rows.n_labelers)

    def parts(self) -> Iterator[tuple[VoteRows, Changes]]:
        """The changes of the sums, all at once."""
        item, y = self.rows.item, self.rating
        m, total = np.bincount(item).astype(float), np.bincount(item, y)
        squares = np.bincount(item, y * y)
        ones = np.ones(len(m))
        # n votes, n items, labelers, Σy, Σy², Σ of item totals squared over their number, the same of labelers,
        # Σ of numbers squared of items and of labelers; the last two of labelers change row by row
        n, s = self._n[self.rows.labeler], self._sum[self.rows.labeler]
        left = np.where(n > 1, (s - y) ** 2 / np.maximum(n - 1, 1), 0.0)
        labeler_rows = np.column_stack([-(n == 1).astype(float), left - s * s / n, 1 - 2 * n])
        by_item = -_sum_rows(labeler_rows, item, len(m))
        totals = [m, ones, by_item[:, 0], total, squares, total**2 / m, by_item[:, 1], m**2, by_item[:, 2]]
        items = np.column_stack(totals)
        mi, ti = m[item], total[item]
        gone = mi == 1
        of_items = np.where(gone, 0.0, (ti - y) ** 2 / np.maximum(mi - 1, 1)) - ti**2 / mi
        last, gap, square = labeler_rows.T
        rows = [-np.ones(len(y)), -gone.astype(float), last, -y, -y * y, of_items, gap, 1 - 2 * mi, square]
        yield self.rows, Changes(items, np.column_stack(rows))

    def total(self, items: Floats) -> Floats:
        """The sums of all."""
        total = items.copy()
        voted = self._n > 0
        total[2], total[8] = voted.sum(), (self._n**2).sum()
        total[6] = (self._sum[voted] ** 2 / self._n[voted]).sum()
        return total

    def without_labeler(self, total: Floats, row_changes: Floats) -> Floats:
        """The sums without each labeler."""
        left = total + row_changes
        left[:, 2] = total[2] - (self._n > 0)
        left[:, 6] = total[6] - self._sum**2 / np.maximum(self._n, 1)
        left[:, 8] = total[8] - self._n**2
        return left

    def coefficients(self, sums: Floats) -> Floats:
        """ICC(1), ICC(A,1) and ICC(C,1); shape (..., 3)."""
        n, a, b, total, squares, by_item, by_labeler, item_squares, labeler_squares = np.moveaxis(sums, -1, 0)
        mean = ratio(total**2, n)
        between, within = by_item - mean, squares - by_item
        k = ratio(n - ratio(item_squares, n), a - 1)  # votes an item
        noise = ratio(within, n - a)
        items = ratio(between - (a - 1) * noise, (a - 1) * k)
        tiny = 1e-9 * ratio(squares - mean, n)
        one_way = _part_of(items, items + noise, tiny)
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
        absolute = _part_of(of_item, of_item + of_labeler + of_rest, tiny)
        consistent = _part_of(of_item, of_item + of_rest, tiny)
        found = np.stack([one_way, absolute, consistent], axis=-1)
        found[..., 1:][~sound] = np.nan
        return found


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
        value, n = self.kappa(weights, pooled=pooled), self.effective
        one, other = self.margins * n[:, None, :], self.margins.transpose(2, 1, 0) * n[:, None, :]
        if pooled:
            one = other = (one + other) / 2
        agreed = self.agreement(weights) * n
        by_chance = np.einsum("akb,kl,alb->ab", one, weights, other, optimize=True)[:, :, None]
        of_one = np.einsum("kl,alb->akb", weights, other, optimize=True)  # of what the first said
        of_other = np.einsum("akb,kl->alb", one, weights, optimize=True)
        if pooled:
            of_one = of_other = (of_one + of_other) / 2
        mean_without = np.zeros_like(n)
        for k in range(self.rows.n_classes):  # of the item that is left out; all classes of the other at once
            twice = weights[k]
            if pooled:
                twice = (weights[k] + weights[:, k] + weights[k, k] + np.diag(weights)) / 4
            rest = by_chance - of_one[:, k, :, None] - of_other.transpose(0, 2, 1) + twice
            agreement = ratio(agreed[:, :, None] - weights[k], (n - 1)[:, :, None])
            chance = ratio(rest, ((n - 1) ** 2)[:, :, None])
            without = ratio(agreement - chance, 1 - chance)
            without = np.where(np.isfinite(without), without, value[:, :, None])
            mean_without += (ratio(self.table[:, k], self.mass[:, :, None]) * without).sum(axis=-1)
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
