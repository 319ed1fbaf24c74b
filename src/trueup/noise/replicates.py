"""Many data sets of one design at once: drawn from a model of independent errors, fitted anew, and summed up.

A design is who votes on which item. Its data sets are held as one array of answers, a row for each data set, so that a
few hundred fits are one computation. Votes are in the order of places: the first vote of every item, then the second
of every item that has one, and so on, with the items of most votes first. What a place holds is then a run of votes
that belong to the first so many items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats, Positions
from trueup.data.labels import Labels
from trueup.data.votes import one_vote_each
from trueup.noise.base import normalise

Answers = npt.NDArray[np.int16]
Maximise = Callable[[Floats], Floats]

_MOST_ITEMS = 2000
_MOST_PLACES = 20  # votes on an item that are looked at
_MOST_WORK = 24_000  # votes times classes
_LEAST_VOTES = 3000  # however many classes there are
_BLOCK = 250_000  # numbers held at once
_LEAST = 1e-9
_MOST_PAIRS = 300  # pairs of labelers whose agreement is looked at
_LEAST_OVERLAP = 8  # items that two labelers have in common


@dataclass(frozen=True, eq=False)
class VoteDesign:
    """Who votes on which item, one vote of each witness.

    Attributes
    ----------
    labeler : integer array of shape (n_votes,)
        In the order of places, as positions in `labelers`.
    per_place : tuple of int
        How many items have a first vote, a second one, and so on.
    gold : integer array of shape (n_items,)
        The known class of each item, or -1.
    labelers : integer array of shape (n_labelers,)
        Who they are, as positions in the labels.
    """

    labeler: Positions
    per_place: tuple[int, ...]
    gold: Codes
    labelers: Positions

    @property
    def n_items(self) -> int:
        """Number of items, the ones of most votes first."""
        return len(self.gold)

    @property
    def n_labelers(self) -> int:
        """Number of labelers."""
        return len(self.labelers)

    @cached_property
    def places(self) -> list[slice]:
        """Where the votes of each place are."""
        ends = np.cumsum(self.per_place).tolist()
        return [slice(end - n, end) for end, n in zip(ends, self.per_place, strict=True)]

    def add_up(self, of_votes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sums over the votes of each item, from shape (n_sets, n_votes) to (n_sets, n_items)."""
        total = np.zeros((len(of_votes), self.n_items), dtype=of_votes.dtype)
        for place, n in zip(self.places, self.per_place, strict=True):
            total[:, :n] += of_votes[:, place]
        return total

    def spread_out(self, of_items: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """For each vote what its item has, from shape (n_sets, n_items) to (n_sets, n_votes)."""
        return np.concatenate([of_items[:, :n] for n in self.per_place], axis=1)

    @cached_property
    def meetings(self) -> tuple[Positions, Positions, Positions]:
        """Pairs of votes on an item by two labelers who met often.

        The first and the second vote of each, ordered by the pair of labelers; and where each such pair begins.
        """
        first, second = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for k, later in enumerate(self.places):
            for earlier in self.places[:k]:
                first.append(np.arange(earlier.start, earlier.start + self.per_place[k]))
                second.append(np.arange(later.start, later.stop))
        one, other = np.concatenate(first), np.concatenate(second)
        ends = np.sort(np.stack([self.labeler[one], self.labeler[other]]), axis=0)
        _, pair, times = np.unique(ends[0] * self.n_labelers + ends[1], return_inverse=True, return_counts=True)
        often = np.argsort(-times, kind="stable")[:_MOST_PAIRS]
        often = np.sort(often[times[often] >= _LEAST_OVERLAP])
        kept = np.flatnonzero(np.isin(pair, often))
        kept = kept[np.argsort(pair[kept], kind="stable")]
        return one[kept], other[kept], np.cumsum(times[often]) - times[often]


def design_of(labels: Labels, rng: np.random.Generator, *, n_classes: int) -> tuple[VoteDesign, Answers]:
    """The design of some items with several witnesses, at most 2,000 at random, and the answers, shape (1, n_votes).

    There are fewer where there are many classes, so that a few hundred fits take a second or so. A labeler who voted
    several times on an item is one witness, and one of the votes is taken; of an item with very many, some are.
    """
    labels = one_vote_each(labels, rng)
    n_witnesses = np.minimum(labels.votes_per_item, _MOST_PLACES)
    chosen = rng.permutation(np.flatnonzero(n_witnesses > 1))[:_MOST_ITEMS]
    chosen = chosen[np.cumsum(n_witnesses[chosen]) <= max(_MOST_WORK // n_classes, _LEAST_VOTES)]
    chosen = chosen[np.argsort(-n_witnesses[chosen], kind="stable")]
    item, labeler, answer, times = _votes_on(labels, chosen)
    item, labeler, answer = (np.repeat(codes, times) for codes in (item, labeler, answer))
    order = np.lexsort((rng.random(len(item)), item))
    item, labeler, answer = item[order], labeler[order], answer[order]
    place = np.arange(len(item)) - np.searchsorted(item, item)
    order = np.lexsort((item, place))[: int((place < _MOST_PLACES).sum())]
    labelers, labeler = np.unique(labeler[order], return_inverse=True)
    per_place = tuple(np.bincount(place[order]).tolist())
    return VoteDesign(labeler, per_place, labels.gold_codes[chosen], labelers), answer[order].astype(np.int16)[None]


def _votes_on(labels: Labels, chosen: Positions) -> tuple[Positions, Positions, Positions, Positions]:
    """Item (its place in `chosen`), labeler, answer and how often."""
    part = labels.votes[chosen]
    labeler, answer = np.divmod(part.indices.astype(np.int64), labels.n_answers)
    return np.repeat(np.arange(len(chosen)), np.diff(part.indptr)), labeler, answer, part.data.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Rates:
    """P(class) and P(answer | labeler, class) of each data set.

    Attributes
    ----------
    weights : array of shape (n_classes, n_sets)
    table : array of shape (n_classes, n_sets, n_labelers, n_answers)
    """

    weights: Floats
    table: Floats

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.weights)

    def item_weights(self, gold: Codes) -> Floats:
        """P(class) of each item, shape (n_classes, n_sets, n_items or 1); a known class is certain."""
        known = np.flatnonzero(gold >= 0)
        if not len(known):
            return self.weights[:, :, None]
        weights = np.repeat(self.weights[:, :, None], len(gold), axis=2)
        weights[:, :, known] = (np.arange(self.n_classes)[:, None] == gold[known])[:, None, :]
        return weights

    def errors(self, y: int) -> Floats:
        """P(a vote names another class) in class y, shape (n_sets, n_labelers); an abstention is no error."""
        decided = self.table[y, :, :, : self.n_classes]
        return np.asarray(decided.sum(axis=2) - decided[:, :, y])


@dataclass(frozen=True, eq=False)
class Summaries:
    """What data sets say beyond the rates fitted to them; all but the last have the shape (n_sets,).

    Attributes
    ----------
    joint_errors, joint_errors_expected : arrays
        Pairs of wrong votes on an item, given all votes; and what independent errors with the fitted rates give.
    agreement : array of shape (n_sets, n_pairs)
        How often two labelers agree, less what independent errors give, in units of its binomial spread.
    """

    joint_errors: Floats
    joint_errors_expected: Floats
    agreement: Floats

    @property
    def ratio(self) -> Floats:
        """Pairs of wrong votes over the expected ones."""
        return np.asarray(self.joint_errors / np.maximum(self.joint_errors_expected, 1e-9))


def draw_answers(
    design: VoteDesign, rates: Rates, n_sets: int, rng: np.random.Generator, *, correlation: float = 0.0
) -> Answers:
    """Data sets of the design, shape (n_sets, n_votes), from the rates of a single one.

    With `correlation` ρ, a vote follows what is drawn once for its item with probability √ρ: errors of two labelers who
    err alike often then correlate at ρ, and everybody's rates stay as they are.
    """
    n_classes, _, n_labelers, n_answers = rates.table.shape
    reach = np.broadcast_to(rates.item_weights(design.gold)[:, 0].cumsum(axis=0), (n_classes, design.n_items))
    uniform = rng.random((n_sets, design.n_items), dtype=np.float32)
    truth = np.zeros(uniform.shape, dtype=np.int64)
    for y in range(n_classes - 1):
        truth += uniform >= reach[y]
    row = design.spread_out(truth) * n_labelers + design.labeler
    draw = rng.random(row.shape, dtype=np.float32)
    if correlation > 0:
        follows = rng.random(row.shape, dtype=np.float32) < np.sqrt(correlation)
        draw = np.where(follows, design.spread_out(rng.random(uniform.shape, dtype=np.float32)), draw)
    upto = rates.table[:, 0].cumsum(axis=2).astype(np.float32).reshape(-1, n_answers)
    answers = np.zeros(row.shape, dtype=np.int16)
    for answer in range(n_answers - 1):
        answers += draw >= np.take(np.ascontiguousarray(upto[:, answer]), row)
    return answers


def refit(
    design: VoteDesign, answers: Answers, start: Rates, maximise: Maximise | None, *, n_steps: int
) -> tuple[Rates, Summaries]:
    """The first data set fitted anew, and what is left to say of all, each fitted by EM from `start`.

    Parameters
    ----------
    start : Rates
        Of a single data set.
    maximise : callable (counts) -> table, optional
        The M-step; both have the shape (n_classes, n_sets, n_labelers, n_answers). None where rates are known.
    """
    parts = [_refit_block(design, answers[rows], start, maximise, n_steps) for rows in _blocks(answers, start)]
    weights, table = parts[0][0].weights[:, :1], parts[0][0].table[:, :1]
    names = ("joint_errors", "joint_errors_expected", "agreement")
    summaries = Summaries(*(np.concatenate([getattr(one, name) for _, one in parts]) for name in names))
    return Rates(weights, table), summaries


def _blocks(answers: Answers, start: Rates) -> Iterator[slice]:
    rows = max(1, _BLOCK // max(answers.shape[1], start.table[:, 0].size))
    for first in range(0, len(answers), rows):
        yield slice(first, first + rows)


def _refit_block(
    design: VoteDesign, answers: Answers, start: Rates, maximise: Maximise | None, n_steps: int
) -> tuple[Rates, Summaries]:
    n_classes, _, n_labelers, n_answers = start.table.shape
    shape = (n_classes, len(answers), n_labelers, n_answers)
    cell = (np.arange(len(answers))[:, None] * n_labelers + design.labeler) * n_answers + answers
    weights, table = np.repeat(start.weights, len(answers), axis=1), np.broadcast_to(start.table, shape)
    rates = Rates(weights, table)
    posterior = _posterior(design, rates, cell)
    if maximise is not None:
        for _ in range(n_steps):
            counts = np.empty(shape)
            for s, share in enumerate(posterior):
                votes = np.bincount(cell.ravel(), design.spread_out(share).ravel(), counts[s].size)
                counts[s] = votes.reshape(shape[1:])
            weights = posterior.sum(axis=2) / design.n_items
            rates = Rates(weights, maximise(counts))
            posterior = _posterior(design, rates, cell)
    return rates, _summaries(design, answers, rates, posterior)


def _posterior(design: VoteDesign, rates: Rates, cell: Positions) -> Floats:
    """P(class | votes), shape (n_classes, n_sets, n_items)."""
    joint = np.empty((len(rates.table), len(cell), design.n_items))
    with np.errstate(divide="ignore"):  # a class may have no weight
        log_weights = np.log(rates.item_weights(design.gold))
    for s, table in enumerate(rates.table):
        joint[s] = design.add_up(np.take(np.log(np.maximum(table, _LEAST)).ravel(), cell)) + log_weights[s]
    joint -= joint.max(axis=0)
    np.exp(joint, out=joint)
    joint /= joint.sum(axis=0)
    return joint


def _summaries(design: VoteDesign, answers: Answers, rates: Rates, posterior: Floats) -> Summaries:
    weights = rates.item_weights(design.gold)
    observed, expected = np.zeros((2, len(answers)))
    n_decided = design.add_up((answers < rates.n_classes).astype(np.int16))
    for y in range(rates.n_classes):
        n_wrong = n_decided - design.add_up((answers == y).astype(np.int16))
        observed += (posterior[y] * (n_wrong * (n_wrong - 1) / 2)).sum(axis=1)
        expected += (weights[y] * _pair_products(design, rates.errors(y))).sum(axis=1)
    return Summaries(observed, expected, _agreement(design, answers, rates))


def _pair_products(design: VoteDesign, of_labelers: Floats) -> Floats:
    """The sum over pairs of votes on an item of the product of what their labelers have, shape (n_sets, n_items)."""
    of_votes = of_labelers[:, design.labeler]
    return np.asarray(design.add_up(of_votes) ** 2 - design.add_up(of_votes**2)) / 2


def _agreement(design: VoteDesign, answers: Answers, rates: Rates) -> Floats:
    one, other, starts = design.meetings
    if not len(starts):
        return np.zeros((len(answers), 0))
    times = np.diff(np.append(starts, len(one)))
    same = np.add.reduceat(answers[:, one] == answers[:, other], starts, axis=1, dtype=np.int64)
    chance = np.zeros(same.shape)
    for weight, table in zip(rates.weights, rates.table, strict=True):
        both = table[:, design.labeler[one[starts]]] * table[:, design.labeler[other[starts]]]
        chance += weight[:, None] * both.sum(axis=2)
    chance = np.clip(chance, 0.01, 0.99)
    return np.asarray((same - times * chance) / np.sqrt(times * chance * (1 - chance)))


def pooled_rows(strength: Floats) -> Maximise:
    """The M-step of matrices that are drawn towards the matrix of all labelers, with a strength for each class."""

    def maximise(counts: Floats) -> Floats:
        pooled = normalise(counts.sum(axis=2, keepdims=True) + 1e-3)
        return normalise(counts + strength[:, None, None, None] * pooled)

    return maximise


def one_coin_rows(n_classes: int, *, right: float, wrong: float) -> Maximise:
    """The M-step of labelers who err in all ways alike, with pseudo-counts of right and wrong votes."""

    def maximise(counts: Floats) -> Floats:
        n_right = np.sum([counts[y, :, :, y] for y in range(n_classes)], axis=0)
        per_answer = counts.sum(axis=0)
        n_decided = per_answer[:, :, :n_classes].sum(axis=2)
        accuracy = (n_right + right) / np.maximum(n_decided + right + wrong, _LEAST)
        rate = normalise(np.concatenate([n_decided[:, :, None] + _LEAST, per_answer[:, :, n_classes:]], axis=2))
        table = np.empty_like(counts)
        table[:, :, :, :n_classes] = (rate[:, :, 0] * (1 - accuracy) / (n_classes - 1))[:, :, None]
        table[:, :, :, n_classes:] = rate[:, :, 1:]
        for y in range(n_classes):
            table[y, :, :, y] = rate[:, :, 0] * accuracy
        return table

    return maximise
