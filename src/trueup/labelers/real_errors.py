"""How far off what votes say of labelers may be, as real crowds are off: moves of the accuracies of all of them.

A labeler is as a system whose answers are in the votes: what models disagree by about the share of their votes that is
right, with the floor of real crowds and widened (`trueup.estimators.real_map`), is how far their accuracy may be off.
What is wrong about one labeler is wrong about another as far as they said the same of the same items.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from trueup._base.types import Booleans, Codes, Floats
from trueup.data.labels import Labels
from trueup.data.votes import one_vote_each
from trueup.estimators.kinds import some_truths
from trueup.estimators.readings import Readings
from trueup.estimators.truth import TruthEngine

_CELLS = 10_000_000  # random numbers that are drawn at once
_NOTHING = 1e-9


def accuracy_moves(engine: TruthEngine, truths: Codes, rng: np.random.Generator) -> list[Floats]:
    """How far accuracies are from those of drawn truths, on all items and then in each slice.

    By the map, what all models may be off by is normal. Draws of a few kinds are in as many places, and no further off
    than the kind that is furthest: so their own differences about a labeler are taken back.

    Parameters
    ----------
    engine : TruthEngine
        As `labeler_engine` makes it, told all that is vetted.
    truths : integer array of shape (n_draws, n_items)
        Of all kinds (`Readings.of_all_kinds`).

    Returns
    -------
    list of arrays of shape (n_draws, n_labelers)
    """
    readings, real_map = engine.readings("classes"), engine.real_map
    everything = NamedVotes.of(engine.labels, rng)
    # Of vetted items the truth is known: nothing is wrong about the votes on these.
    votes = everything.where(readings.known[everything.item] < 0)
    parts = [np.ones(votes.n_items, dtype=bool)]
    if engine.groups is not None:
        parts += [engine.groups == k for k in range(int(engine.groups.max(initial=-1)) + 1)]
    blind = _blind_moves(votes, parts, engine.labels.n_classes, len(truths), rng)
    whole, moves = blind[0], []
    for part, moved in zip(parts, blind, strict=True):
        own, of_all = (some.where(part[some.item]) for some in (votes, everything))
        unknown = own.sums() / np.maximum(of_all.sums(), 1.0)
        # What moves all items moves their part; what is left is the slice's own.
        correlation = moved.deviations / np.maximum(whole.deviations, _NOTHING)
        rest = moved.values - correlation * whole.values
        together = whole.values + np.sqrt(real_map.slice_share) * rest
        shares = own.right_given(truths)
        chance = np.sqrt(_by_chance(own, readings.centre)) * rng.standard_normal(shares.shape)
        moved_by_map = real_map.deviations(_spread(own, readings)) * together
        centred = _offset(own, readings, truths) + shares.mean(axis=0)
        moves.append(unknown * (centred + moved_by_map + chance - shares))
    return moves


@dataclass(frozen=True, eq=False)
class NamedVotes:
    """Votes that name a class: one entry for each labeler, item and answer.

    Attributes
    ----------
    item, labeler, answer : integer arrays of shape (n_votes,)
    times : array of shape (n_votes,)
        1 for all but anonymous crowds, of whom many give one answer.
    n_items, n_labelers : int
    """

    item: Codes
    labeler: Codes
    answer: Codes
    times: Floats
    n_items: int
    n_labelers: int

    @classmethod
    def of(cls, labels: Labels, rng: np.random.Generator) -> NamedVotes:
        """Of several votes of a labeler on an item, one by chance."""
        table = one_vote_each(labels, rng).vote_table()
        named = table[2] < labels.n_classes
        item, labeler, answer = (column[named] for column in table[:3])
        return cls(item, labeler, answer, table[3][named].astype(float), labels.n_items, labels.n_labelers)

    def where(self, chosen: Booleans) -> NamedVotes:
        """Some of the votes."""
        columns = {name: getattr(self, name)[chosen] for name in ("item", "labeler", "answer", "times")}
        return replace(self, **columns)

    def on(self, members: Booleans) -> NamedVotes:
        """Those on some of the items, whose places count from the first of these."""
        own, place = self.where(members[self.item]), np.cumsum(members) - 1
        return replace(own, item=place[own.item], n_items=int(members.sum()))

    def sums(self, values: Floats | Booleans | float = 1.0) -> Floats:
        """The sum of something of each vote, by labeler; by default how many votes there are."""
        return np.bincount(self.labeler, self.times * values, self.n_labelers).astype(float)

    def means(self, values: Floats | Booleans) -> Floats:
        """The mean of something of each vote, by labeler; 0 for those without votes."""
        return self.sums(values) / np.maximum(self.sums(), 1.0)

    def right_by(self, posterior: Floats) -> Floats:
        """The expected share of right votes of each labeler, given P(class) of each item."""
        return self.means(posterior[self.item, self.answer])

    def right_given(self, truths: Codes) -> Floats:
        """The share of right votes of each labeler in each of the drawn truths, shape (n_draws, n_labelers)."""
        return np.array([self.means(truth[self.item] == self.answer) for truth in truths])

    def variances(self, posterior: Floats) -> Floats:
        """Of the number of right votes of each labeler, if each item's class is drawn on its own."""
        chance = posterior[self.item, self.answer]
        pairs, pair = np.unique(self.labeler.astype(np.int64) * self.n_items + self.item, return_inverse=True)
        expected = np.bincount(pair, self.times * chance, len(pairs))
        of_pairs = np.bincount(pairs // max(self.n_items, 1), expected**2, self.n_labelers)
        return np.asarray(np.maximum(self.sums(self.times * chance) - of_pairs, 0.0))


def _spread(votes: NamedVotes, readings: Readings) -> Floats:
    """What the models disagree by about the accuracy of each labeler, beyond the chance of each item's draw."""
    part = votes.on(readings.some)
    n_votes = part.sums()
    variance = readings.kinds.spread_of(lambda truths: part.right_given(some_truths(truths)), part.right_by) ** 2
    variance = np.maximum(variance - _by_chance(part, readings.kinds.centre), 0.0)
    usual = float(n_votes @ variance) / max(float(n_votes.sum()), 1.0)
    # Nothing was drawn of labelers who voted on other items alone: they are as the others are.
    return np.sqrt(np.where(n_votes > 0, variance, usual))


def _by_chance(votes: NamedVotes, posterior: Floats) -> Floats:
    """The variance of each labeler's share of right votes from drawing each item's class on its own."""
    return np.asarray(votes.variances(posterior) / np.maximum(votes.sums(), 1.0) ** 2)


def _offset(votes: NamedVotes, readings: Readings, truths: Codes) -> Floats:
    """By how much all kinds on some of the items say otherwise of each labeler than truths carried to all items.

    A gap that chance explains must not be carried to all votes of a labeler.
    """
    if readings.some.all():
        return np.zeros(votes.n_labelers)
    part = votes.on(readings.some)
    gap = part.right_by(readings.kinds.centre) - part.right_given(truths[:, readings.some]).mean(axis=0)
    return np.asarray(gap * gap**2 / np.maximum(gap**2 + _by_chance(part, readings.kinds.centre), 1e-300))


@dataclass(frozen=True, eq=False)
class BlindMoves:
    """How shares of right votes move if nothing is known of the truth.

    Attributes
    ----------
    values : array of shape (n_draws, n_labelers)
        In units of their standard deviation.
    deviations : array of shape (n_labelers,)
        Standard deviations of the number of right votes.
    """

    values: Floats
    deviations: Floats


def _blind_moves(
    votes: NamedVotes, parts: list[Booleans], n_classes: int, n_draws: int, rng: np.random.Generator
) -> list[BlindMoves]:
    """On each part of the items, together.

    Each class of an item gets a random weight, and all votes for it move by that: what `blind_correlations` says of
    systems, without a matrix of all pairs of labelers.
    """
    shape = (votes.n_labelers, votes.n_items * n_classes)
    place = votes.item * n_classes + votes.answer
    tables, moves = [], []
    for part in parts:
        inside, on_part = votes.times * part[votes.item], votes.on(part)
        chances = np.full((on_part.n_items, n_classes), 1 / n_classes)
        deviations = np.sqrt(n_classes * on_part.variances(chances))
        scale = 1 / np.maximum(deviations, _NOTHING)
        tables.append(sparse.csr_array((inside * scale[votes.labeler], (votes.labeler, place)), shape=shape))
        moves.append(BlindMoves(np.empty((n_draws, votes.n_labelers)), deviations))
    n_rows = max(1, _CELLS // max(shape[1], 1))
    for start in range(0, n_draws, n_rows):
        rows = slice(start, min(start + n_rows, n_draws))
        weights = rng.standard_normal((votes.n_items, n_classes, rows.stop - rows.start), dtype=np.float32)
        weights -= weights.mean(axis=1, keepdims=True)
        for table, moved in zip(tables, moves, strict=True):
            moved.values[rows] = (table @ weights.reshape(shape[1], -1)).T
    return moves
