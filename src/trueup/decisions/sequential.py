r"""Is a sum over items positive? Bets on checked items, which hold however often one looks.

Items are drawn one after the other, with known chances. Before draw t let K be the sum over the items that are known,
E what is expected of those that are open, and q the chances of the draw. With u the value of the item that is drawn
and e what was expected of it,

.. math:: X_t = K + E + (u - e) / q

has the sum T for its mean, given all before. Who starts with 1 and bets a part λ of the lowest that X can be has a
wealth, the product of :math:`1 + \lambda X_t`, that is no more than 1 in the mean if T ≤ 0, and so reaches 1/α with a
chance of at most α, ever (Ville). A wealth of 1/α therefore proves T > 0 at any look. Several sizes of the bet are held
at once, and what all of them own together is the wealth. Nothing depends on how good the expectations are but how soon
the answer comes.

References
----------
I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86, 2024. J. Shekhar,
Z. Xu, Z. Lipton, P. Liang, A. Ramdas, "Risk-limiting financial audits via weighted sampling without replacement",
UAI 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logsumexp

from trueup._base.types import Booleans, Codes, Floats

STAKES = np.geomspace(0.01, 0.95, 16)  # sizes of bets, as parts of the largest that cannot ruin
_BY_REACH = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
_LIKE_ALL = 0.15  # how far an item is drawn as if nothing were known of it but what is known of all
_SMALL = 1e-12
_CHUNK = 256


@dataclass(frozen=True, eq=False)
class Sides:
    """The sums to be proved positive: each condition, and then the contrary of each."""

    terms: Floats = field(repr=False)  # (n_sides, n_items, n_classes): what an item adds where it is of a class
    lowest: Floats = field(repr=False)  # (n_sides, n_items)
    beyond: Floats  # (n_sides,): how far below 0 the sum may still be where it counts as proved, 0 or a little less

    @classmethod
    def of(cls, terms: Sequence[Floats], includes_bound: Sequence[bool]) -> Sides:
        """From the terms of each condition, of shape (n_items, n_classes)."""
        both = np.stack([*terms, *(-table for table in terms)])
        slack = [1e-9 if inside else -1e-9 for inside in includes_bound]
        return cls(both, both.min(axis=2), np.array([*slack, *(-part for part in slack)]))

    @property
    def n_conditions(self) -> int:
        """Number of conditions."""
        return len(self.terms) // 2

    def values(self, items: Codes, codes: Codes) -> Floats:
        """What items add, shape (n_sides, n); those of unknown class (−1) as little as they can."""
        of_class = self.terms[:, items, np.maximum(codes, 0)]
        return np.where(codes >= 0, of_class, self.lowest[:, items])


@dataclass(frozen=True, eq=False)
class View:
    """What is expected of the items after some answers, and how the next ones are drawn."""

    expected: Floats = field(repr=False)  # (n_sides, n_items)
    pull: Floats = field(repr=False)  # (n_items,): the chance of a draw, in proportion
    shift: Floats  # (n_sides,): what sampling the items from a population may add to each sum

    def largest_fall(self, sides: Sides, other: View | None = None) -> Floats:
        """How far below what is expected a draw can be, per unit of the pull that is left, shape (n_sides,)."""
        pull = (other or self).pull
        at = pull > 0
        falls = (self.expected[:, at] - sides.lowest[:, at]) / pull[at]
        return np.asarray(falls.max(axis=1, initial=0.0))


def make_view(sides: Sides, chances: Floats, is_open: Booleans, known: Floats, shift: Floats) -> View:
    """The view from the chances of each class, with draws as they serve the conditions best; `known` sums the rest."""
    expected = np.einsum("sic,ic->si", sides.terms, chances)
    n = sides.n_conditions
    mixed = (1 - _LIKE_ALL) * chances + _LIKE_ALL * chances.mean(axis=0)
    first = np.einsum("sic,ic->si", sides.terms[:n], mixed)
    squares = np.einsum("sic,ic->si", sides.terms[:n] ** 2, mixed)
    deviation = np.sqrt(np.maximum(squares - first**2, 0.0)) * is_open
    reach = (expected - sides.lowest) * is_open
    total = known + expected[:, is_open].sum(axis=1) - shift
    spread = np.sqrt((deviation**2).sum(axis=1) + 0.01 * total[:n] ** 2 + _SMALL)
    met = np.clip(0.5 + total[:n] / (2 * spread), 0.1, 0.9)  # a rough P(condition is met)
    weight = np.concatenate([met, 1 - met])
    by_deviation = _in_parts(deviation).sum(axis=0)
    by_reach = (weight[:, None] * _in_parts(reach)).sum(axis=0)
    best, pull = -np.inf, by_reach
    for share in _BY_REACH:
        tried = (1 - share) * by_deviation / max(by_deviation.sum(), _SMALL) + share * by_reach / by_reach.sum()
        gained = _growth(tried, deviation, reach, np.abs(total), spread) @ weight
        if gained > best:
            best, pull = gained, tried
    return View(expected, pull, shift)


def _in_parts(table: Floats) -> Floats:
    """Rows that sum to 1, or stay 0."""
    return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), _SMALL))


def _growth(pull: Floats, deviation: Floats, reach: Floats, total: Floats, spread: Floats) -> Floats:
    """About how much the logarithm of each wealth grows with a draw."""
    at = pull > 0
    chance = pull[at] / pull.sum()
    variance = np.tile((deviation[:, at] ** 2 / chance).sum(axis=1), 2)
    mean = np.sqrt(total**2 + np.tile(spread, 2) ** 2 * 0.1)
    largest = 1 / np.maximum((reach[:, at] / chance).max(axis=1, initial=0.0) - mean, _SMALL)
    stake = np.minimum(mean / (variance + mean**2 + _SMALL), 0.95 * largest)
    return np.asarray(stake * mean - stake**2 * (variance + mean**2) / 2)


def stake_weights(sides: Sides, view: View, is_open: Booleans, sums: Floats) -> Floats:
    """What each size of a bet starts with, as logarithms of shape (n_sides, n_stakes).

    Half evenly, half by how often each is the best size, by drawn sums of shape (n_sides, n_draws).
    """
    chance = np.where(is_open, view.pull, 0.0) / view.pull[is_open].sum()
    at = chance > 0
    second = np.stack(
        [(side[at] ** 2).mean(axis=1) for side in sides.terms]
    )  # in place of the variance of an item, which the chances do not say well before any answer
    variance = (np.minimum(second, (view.expected[:, at] - sides.lowest[:, at]) ** 2) / chance[at]).sum(axis=1)
    fall = view.largest_fall(sides) * view.pull[is_open].sum()
    weights = np.full((len(sides.terms), len(STAKES)), 0.5 / len(STAKES))
    for side, drawn in enumerate(sums):
        gains = drawn[drawn > 0]
        if not len(gains):
            weights[side] *= 2
            continue
        best = gains / (variance[side] + gains**2 + _SMALL) * np.maximum(fall[side] - gains, _SMALL)
        place = np.abs(np.log(np.clip(best, STAKES[0], STAKES[-1]))[:, None] - np.log(STAKES)).argmin(axis=1)
        weights[side] += 0.5 * np.bincount(place, minlength=len(STAKES)) / len(place)
    return np.asarray(np.log(weights))


@dataclass(frozen=True, eq=False)
class Standing:
    """Where the bets stand after some draws."""

    known: Floats  # (n_sides,): the sum over what is known
    is_open: Booleans = field(repr=False)  # (n_items,)
    wealth: Floats = field(repr=False)  # (n_sides, n_stakes), logarithms of what each size owns
    most: Floats  # (n_sides,): the logarithm of the most that all sizes owned together at any look
    n_strange: int = 0  # draws whose chance is not that of the view that they were drawn by

    @property
    def log_wealth(self) -> Floats:
        """What all sizes own together, as logarithms."""
        return np.asarray(logsumexp(self.wealth, axis=1))


def bet(sides: Sides, standing: Standing, item: int, code: int, chance: float, now: View, drawn: View) -> Standing:
    """After one more draw; where its chance is not what the view says that it was drawn by, nothing is bet."""
    at, is_open = np.array([item]), standing.is_open
    value = sides.values(at, np.array([code]))[:, 0]
    total = standing.known + now.expected[:, is_open].sum(axis=1) - now.shift
    left = float(drawn.pull[is_open].sum())
    wealth = standing.wealth
    # A chance may be off by 1%: the largest stake leaves five times as much.
    is_known = bool(np.isclose(drawn.pull[item], chance * left, rtol=0.01, atol=0.0))
    if is_known:
        gain = total + (value - now.expected[:, item]) / chance
        fall = np.maximum(now.largest_fall(sides, drawn) * left - total, _SMALL)
        wealth = wealth + np.log1p(STAKES * (gain / fall)[:, None])
    open_now = is_open.copy()
    open_now[item] = False
    standing = replace(standing, n_strange=standing.n_strange + (not is_known))
    return advance(sides, replace(standing, known=standing.known + value, is_open=open_now, wealth=wealth), now.shift)


def advance(sides: Sides, standing: Standing, shift: Floats) -> Standing:
    """With the most that was owned so far; without limit where what is open can change nothing."""
    least = standing.known + sides.lowest[:, standing.is_open].sum(axis=1) - shift + sides.beyond
    most = np.maximum(standing.most, standing.log_wealth)
    return replace(standing, most=np.where(least >= 0, np.inf, most))


def learn(sides: Sides, standing: Standing, item: int, code: int, shift: Floats) -> Standing:
    """After an answer on an item that was not drawn: it is known from now on, and proves nothing else."""
    value = sides.values(np.array([item]), np.array([code]))[:, 0]
    is_open = standing.is_open.copy()
    is_open[item] = False
    return advance(sides, replace(standing, known=standing.known + value, is_open=is_open), shift)


def draws_until(
    sides: Sides, standing: Standing, view: View, truths: Codes, limits: Floats, *, most: int, rng: np.random.Generator
) -> tuple[Codes, Codes]:
    """How many more draws a decision takes in each world of `truths`, and which it is: 1 passed, -1 failed.

    Of a world that is undecided after `most` draws it is 0, after `most` + 1; `limits` are logarithms of the wealth.
    """
    n, worlds = sides.n_conditions, len(truths)
    open_items = np.flatnonzero(standing.is_open & (view.pull > 0))
    pull = view.pull[open_items]
    order = np.argsort(rng.standard_exponential((worlds, len(pull))) / pull, axis=1, kind="stable")[:, :most]
    left = np.full(worlds, pull.sum())
    total = np.tile(standing.known + view.expected[:, standing.is_open].sum(axis=1) - view.shift, (worlds, 1))
    least = np.tile(
        standing.known + sides.lowest[:, standing.is_open].sum(axis=1) - view.shift + sides.beyond, (worlds, 1)
    )
    wealth, top = np.tile(standing.wealth, (worlds, 1, 1)), np.tile(standing.most, (worlds, 1))
    falls = view.largest_fall(sides)
    number, verdict = np.full(worlds, most + 1), np.zeros(worlds, dtype=np.int64)
    for start in range(0, order.shape[1], _CHUNK):
        going = np.flatnonzero(verdict == 0)
        if not len(going):
            break
        items = open_items[order[going, start : start + _CHUNK]]
        value = sides.values(items, np.take_along_axis(truths[going], items, axis=1)).swapaxes(0, 1)
        expected = view.expected[:, items].swapaxes(0, 1)  # (worlds, sides, draws)
        taken = np.cumsum(view.pull[items], axis=1)
        before = np.maximum(left[going, None] - taken + view.pull[items], view.pull[items])
        beyond = value - expected
        moved = np.cumsum(beyond, axis=2)
        totals = total[going, :, None] + moved - beyond
        gain = totals + beyond * (before / view.pull[items])[:, None]
        fall = np.maximum(falls[None, :, None] * before[:, None] - totals, _SMALL)
        grown = np.cumsum(np.log1p(STAKES * (gain / fall)[..., None]), axis=2) + wealth[going, :, None]
        owned = np.maximum.accumulate(np.maximum(logsumexp(grown, axis=3), top[going][..., None]), axis=2)
        sure = least[going, :, None] + np.cumsum(value - sides.lowest[:, items].swapaxes(0, 1), axis=2)
        proved: Booleans = (owned >= limits[:, None]) | np.maximum.accumulate(sure >= 0, axis=2)
        passed, failed = np.all(proved[:, :n], axis=1), np.any(proved[:, n:], axis=1)
        decided = np.asarray(np.logical_or(passed, failed))
        first = np.argmax(decided, axis=1)
        done = np.flatnonzero(decided.any(axis=1))
        number[going[done]] = start + first[done] + 1
        verdict[going[done]] = np.where(failed[done, first[done]], -1, 1)
        left[going] -= taken[:, -1]
        total[going] += moved[..., -1]
        least[going] = sure[..., -1]
        wealth[going], top[going] = grown[:, :, -1], owned[..., -1]
    return number, verdict
