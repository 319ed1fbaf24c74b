"""The truth of all items given votes, systems and checked items: what every plain answer is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from trueup._base.types import Codes, Floats
from trueup.core.base import MOST_MATRIX_CLASSES, base_of, clip_base
from trueup.core.checks import Surprise, check_weights, design_effect, surprises
from trueup.core.features import Features, build_features, features_of, first_of_equals, standard_scores
from trueup.core.parts import MOST_ITEMS, base_values, calibrated_times, group_sizes, inclusion_chances
from trueup.core.posterior import N_POINTS, Checks, Recalibration, ThetaDraws, draw_theta, draw_truths
from trueup.core.prior import CrowdPrior
from trueup.core.rows import Rows
from trueup.data.labels import Labels
from trueup.data.votes import shared_votes
from trueup.estimators.truth import TruthDraws
from trueup.exceptions import silenced_warnings
from trueup.noise import DawidSkene, OneCoin
from trueup.noise.base import as_table

MOST_CLASSES = 60  # with more, items have slots
_LIKELIEST = 3  # classes of the base
_NEVER = -600.0  # log-odds of a slot whose class has another one


@dataclass(frozen=True, eq=False)
class Slots:
    """The slots of items where classes are many: a few that matter have one of their own, all others share the last.

    An item's slots are the classes with effects, what systems name, its likeliest classes and its checked one. The
    others are alike: each has the same part of what the base leaves to them.
    """

    classes: Codes = field(repr=False)  # (n_items, n_slots)
    n_others: Codes = field(repr=False)  # (n_items,): classes without a slot
    log_base: Floats = field(repr=False)  # (n_items, n_slots): as in `Rows`
    offset: Floats = field(repr=False)  # (n_items, n_slots): as in `Rows`
    n_classes: int

    @classmethod
    def of(cls, base: Floats, named: Codes) -> Slots:
        """The slots of items."""
        n_classes = base.shape[1]
        likeliest = np.argpartition(-base, _LIKELIEST, axis=1)[:, :_LIKELIEST]
        classes = np.column_stack([named.T, likeliest])
        is_first = classes >= 0
        for k in range(1, classes.shape[1]):
            is_first[:, k] &= ~(classes[:, :k] == classes[:, k : k + 1]).any(axis=1)
        of_slots = np.take_along_axis(base, np.maximum(classes, 0), axis=1)
        n_others = n_classes - is_first.sum(axis=1)
        left = np.maximum(1 - (of_slots * is_first).sum(axis=1), 1e-12) / np.maximum(n_others, 1)
        candidates = np.arange(classes.shape[1] + 1)  # one more than slots: some of these has none
        has_slot = (classes[:, :, None] == candidates).any(axis=1)
        offset = np.column_stack([np.where(is_first, 0.0, _NEVER), np.log(n_others)])
        log_base = np.log(np.column_stack([np.maximum(of_slots, 1e-12), left]))
        return cls(np.column_stack([classes, has_slot.argmin(axis=1)]), n_others, log_base, offset, n_classes)

    def at(self, positions: Codes) -> Slots:
        """The slots of some of the items."""
        parts = {name: getattr(self, name)[positions] for name in ("classes", "n_others", "log_base", "offset")}
        return replace(self, **parts)

    def places(self, codes: Codes) -> Codes:
        """The slots of classes, shape of the codes: (..., n_items); -1 stays."""
        found = np.stack([(self.classes[:, :-1] == row[:, None]).argmax(axis=1) for row in np.atleast_2d(codes)])
        return np.where(codes >= 0, found.reshape(codes.shape), -1)

    def draw_classes(self, slots: Codes, rng: np.random.Generator) -> Codes:
        """Classes for drawn slots, shape (n_draws, n_items); those without a slot are equally likely."""
        drawn = np.take_along_axis(self.classes, slots.T.astype(np.int64), axis=1).T.astype(np.int16)
        draw, item = np.nonzero(slots == self.classes.shape[1] - 1)
        other = rng.integers(self.n_classes, size=len(draw))
        is_taken = (self.classes[item, :-1] == other[:, None]).any(axis=1)
        drawn[draw, item] = np.where(is_taken, self.classes[item, -1], other)
        return drawn

    def spread(self, chances: Floats) -> Floats:
        """P(class) of items from P(slot), shape (n_items, n_classes)."""
        item = np.arange(len(chances))
        out = np.repeat((chances[:, -1] / self.n_others)[:, None], self.n_classes, axis=1)
        is_first = self.offset[:, :-1] == 0
        for k in range(self.classes.shape[1] - 1):
            at = item[is_first[:, k]]
            out[at, self.classes[at, k]] = chances[at, k]
        return out


# Nearly even on the scale of angles, as Jeffreys' prior of a share is.
_ANYTHING = CrowdPrior(level_scale=0.6, slope=1.0, slope_scale=1e-3, part_share=1.0, degrees=50.0)
_MOST_TRUTHS = 400_000_000  # classes of items drawn in all, one byte each
MOST_TOGETHER = 4  # systems in one model: hardly any more levels that deviate as real ones do can be true at once
_MEAN_POINTS = 64  # θ that the mean of millions of items is taken over
_BLOCK_OF_ITEMS = 20_000


@dataclass(frozen=True, eq=False)
class TruthModel:
    """p(truth | votes, systems, checked items) for one question."""

    labels: Labels = field(repr=False)
    base: Floats = field(repr=False)  # (n_items, n_classes): P(class | votes); see `trueup.core.base`
    codes: Codes = field(repr=False)  # (n_systems, n_items): the class that each system names, -1 for none
    # (n_scorers, n_items): scores of the positive class, NaN for none
    scores: Floats | None = field(default=None, repr=False)
    positive: int | None = None
    # (n_levels,): what votes suggest, where this is not the mean of the base; see `own_centres`
    centres: Floats | None = field(default=None, repr=False)
    slices: Codes | None = field(default=None, repr=False)  # (n_items,)
    clusters: Codes | None = field(default=None, repr=False)  # (n_items,)
    weights: Floats | None = field(default=None, repr=False)  # (n_items,)
    times: Floats | None = field(default=None, repr=False)  # (n_items,): how many each stands for, if some of many
    may_sample: bool = True  # whether some items may stand for all where there are very many
    prior: CrowdPrior = field(default_factory=CrowdPrior)
    n_draws: int = 2048
    seed: int = 0

    @cached_property
    def drawn(self) -> Codes:
        """The class of each checked item that was drawn by chance, -1 for all others."""
        return drawn_gold(self.labels)

    @cached_property
    def chosen(self) -> Codes:
        """The class of each checked item that somebody chose, -1 for all others."""
        known = np.where(self.labels.gold_codes >= 0, self.labels.gold_codes, self.labels.held_codes)
        return np.where(self.drawn >= 0, -1, known).astype(np.int32)

    @cached_property
    def known(self) -> Codes:
        """The class of each checked item, -1 for all others; gold kept aside that somebody chose is not used."""
        return np.where(self.drawn >= 0, self.drawn, self.labels.gold_codes).astype(np.int32)

    @property
    def n_checked(self) -> int:
        """Number of checked items."""
        return int((self.known >= 0).sum())

    @property
    def basis(self) -> str:
        """What the answer rests on, in words."""
        return basis_in_words(self.n_checked, len(self.known))

    @cached_property
    def _sampled(self) -> tuple[Codes | None, Floats | None]:
        """The items that truths are drawn of, None for all, and how many items each stands for, None for one."""
        n_items = len(self.base)
        if self.times is not None or not self.may_sample or n_items <= MOST_ITEMS:
            return None, self.times
        n_classes = self.base.shape[1]
        groups = [*self.codes, self.base.argmax(axis=1)]
        groupings = [(codes, group_sizes(codes, n_classes)) for codes in groups]
        if self.slices is not None:
            groupings.append((self.slices, group_sizes(self.slices, int(self.slices.max(initial=-1)) + 1)))
        is_checked = (self.known >= 0) | (self.chosen >= 0)
        chance = np.where(is_checked, 1.0, inclusion_chances(n_items, groupings, n_items))
        items = np.flatnonzero(np.random.default_rng([self.seed, 3]).random(n_items) < chance)
        totals = base_values(self.base, self.codes).sum(axis=0)
        return items, calibrated_times(chance[items], base_values(self.base[items], self.codes[:, items]), totals)

    def _at_sampled(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The columns of a table, or the entries of a row, of the items that truths are drawn of."""
        items = self._sampled[0]
        return table if items is None else table[..., items]

    @cached_property
    def _standard_scores(self) -> Floats | None:
        """The scores as `standard_scores` has them, of all items together."""
        return None if self.scores is None else np.stack([standard_scores(row) for row in self.scores])

    @cached_property
    def features(self) -> Features:
        """What corrects the base."""
        tables = (self._standard_scores, self.slices)
        scores, slices = (None if table is None else self._at_sampled(table) for table in tables)
        base, codes = self._at_sampled(self.base.T).T, self._at_sampled(self.codes)
        return build_features(base, codes, scores=scores, positive=self.positive, slices=slices)

    @cached_property
    def rows(self) -> Rows:
        """The items that truths are drawn of."""
        times = self._sampled[1]
        weights = None if self.weights is None else self._at_sampled(self.weights)
        if times is not None:
            weights = times if weights is None else times * weights
        return _rows_of(self.features, self._at_sampled(self.base.T).T, self.slots, weights)

    @cached_property
    def slots(self) -> Slots | None:
        """What stands in the place of classes in the rows, where classes are many."""
        checked = np.where(self.known >= 0, self.known, self.chosen)
        return _slots_of(self.features, self._at_sampled(self.base.T).T, self._at_sampled(checked))

    def rows_at(self, items: Codes, truth: Codes) -> tuple[Rows, Codes]:
        """The rows of some items that are checked, and the places of their classes."""
        sampled = self._sampled[0]
        at = items if sampled is None else np.searchsorted(sampled, items)
        return self.rows.at(at), truth if self.slots is None else self.slots.at(at).places(truth)

    @cached_property
    def recalibration(self) -> Recalibration:
        """How points become coefficients."""
        return Recalibration(self.rows, self.features, self.prior, centres=self.centres, seed=self.seed)

    @cached_property
    def checks(self) -> Checks | None:
        """The checked items that were drawn by chance."""
        at = np.flatnonzero(self.drawn >= 0)
        if not len(at):
            return None
        weights = check_weights(self.labels.gold_chance[at])
        if self.clusters is not None:
            weights = weights / design_effect(self.base[at], self.codes[:, at], self.drawn[at], self.clusters[at])
        return Checks(*self.rows_at(at, self.drawn[at]), weights)

    @cached_property
    def theta(self) -> ThetaDraws:
        """Draws of the coefficients."""
        if self.checks is None and self.n_draws >= N_POINTS:
            return self.recalibration.prior_draws
        n_points = max(16, min(N_POINTS, self.n_draws))
        return draw_theta(self.recalibration, self.checks, n_points=n_points, rng=np.random.default_rng([self.seed, 0]))

    @cached_property
    def truth(self) -> TruthDraws:
        """Draws of the truth of all items, or of some that stand for all."""
        return self.draw()

    def draw(self) -> TruthDraws:
        """The same, not kept."""
        items, times = self._sampled
        known = self._at_sampled(self.known)
        each = max(1, min(self.n_draws, _MOST_TRUTHS // max(len(known), 1)) // len(self.theta.beta))
        rng = np.random.default_rng([self.seed, 1])
        at = known if self.slots is None else self.slots.places(known)
        truths, posterior = draw_truths(self.rows, self.theta, at, each=each, rng=rng, times=times)
        if self.slots is not None:
            truths, posterior = self.slots.draw_classes(truths, rng), self.slots.spread(posterior)
        chances = posterior if items is None else self._posterior_of_all
        return TruthDraws(truths, chances, {"effective_draws": self.theta.effective}, items=items, times=times)

    def _posterior_of_all(self) -> Floats:
        """P(class) of each item, where truths are drawn of some: from few θ, in blocks of items."""
        kept = slice(None, None, max(1, len(self.theta.beta) // _MEAN_POINTS))
        beta, gamma = self.theta.beta[kept], self.theta.gamma[kept]
        posterior = np.empty_like(self.base)
        for first in range(0, len(posterior), _BLOCK_OF_ITEMS):
            block = slice(first, first + _BLOCK_OF_ITEMS)
            scores = None if self._standard_scores is None else self._standard_scores[:, block]
            slices = None if self.slices is None else self.slices[block]
            features = features_of(self.features.chosen, 0, self.codes[:, block], scores=scores, slices=slices)
            slots = _slots_of(features, self.base[block], self.known[block])
            chances = _rows_of(features, self.base[block], slots).probabilities(beta, gamma).mean(axis=2)
            posterior[block] = chances if slots is None else slots.spread(chances)
        checked = np.flatnonzero(self.known >= 0)
        posterior[checked] = np.eye(posterior.shape[1])[self.known[checked]]
        return posterior

    def mean_chances(self) -> Floats:
        """P(class) of each item from few θ and without drawing truths, shape (n_items, n_classes)."""
        if self.slots is not None or self._sampled[0] is not None:
            return self._posterior_of_all()
        few = slice(None, None, max(1, len(self.theta.beta) // _MEAN_POINTS))
        chances = self.rows.probabilities(self.theta.beta[few], self.theta.gamma[few]).mean(axis=2)
        checked = np.flatnonzero(self.known >= 0)
        chances[checked] = np.eye(chances.shape[1])[self.known[checked]]
        return np.asarray(chances)

    def chances_of(self, drawn: Codes, n_points: int) -> tuple[Floats, Codes]:
        """P(class) of some drawn items, of shape (n, n_named, n_points), and which classes these are."""
        few = slice(None, None, max(1, len(self.theta.beta) // n_points))
        chances = self.rows.at(drawn).probabilities(self.theta.beta[few], self.theta.gamma[few])
        if self.slots is not None:
            return chances, self.slots.classes[drawn]
        return chances, np.broadcast_to(np.arange(chances.shape[1]), chances.shape[:2])

    def with_labels(self, labels: Labels, seed: int | None = None, n_draws: int | None = None) -> TruthModel:
        """The model for the same votes with other checked items; the base is kept if it would be the same."""
        seed, n_draws = self.seed if seed is None else seed, self.n_draws if n_draws is None else n_draws
        model = replace(self, labels=labels, seed=seed, n_draws=n_draws)
        if not np.array_equal(chosen_gold(labels), chosen_gold(self.labels)):
            return replace(model, base=base_of(labels_of_base(labels)))
        if "_parts" in self.__dict__:
            model.__dict__["_parts"] = {k: part.with_labels(labels, seed, n_draws) for k, part in self._parts.items()}
        if self._sampled[0] is None and self.slots is None:
            for name in ("_standard_scores", "features", "rows", "recalibration"):
                if name in self.__dict__:
                    model.__dict__[name] = self.__dict__[name]
            if "recalibration" in model.__dict__:  # whose draws are of a seed
                model.__dict__["recalibration"] = self.recalibration.with_seed(seed)
        return model

    @property
    def is_divided(self) -> bool:
        """Whether systems are too many for one model, so that each has its own."""
        return len(self.features.systems) > MOST_TOGETHER

    @cached_property
    def _parts(self) -> dict[int, TruthModel]:
        """The models of single systems that were asked for, by the place of the system."""
        return {}

    def of_system(self, k: int) -> TruthModel:
        """The model of one of the systems, as if the others did not exist."""
        if k not in self._parts:
            self._parts[k] = self.of_systems([k])
        return self._parts[k]

    def of_systems(self, places: Sequence[int]) -> TruthModel:
        """The model of some of the systems, as if the others did not exist; of none, of the items alone."""
        at = np.array(places, dtype=np.int64)
        scores = self.scores[at] if self.scores is not None and len(at) else None
        model = replace(self, codes=self.codes[at], scores=scores, centres=None)
        if self.centres is None:
            return model
        levels = [feature.system for feature in self.features.chosen[: len(self.centres)]]
        systems = [place for n, place in enumerate(levels) if place >= 0]
        same = [next(n for n, s in enumerate(systems) if np.array_equal(self.codes[s], row)) for row in model.codes]
        centres = self.centres[[*dict.fromkeys(same), *range(len(systems), len(levels))]]
        return replace(model, centres=centres) if len(centres) == model.features.n_levels else model

    def checks_alone(self) -> TruthModel:
        """The model of somebody who knows no votes: class shares for a base, and levels that may be anything."""
        is_checked = self.drawn >= 0
        counts = np.bincount(self.drawn[is_checked], minlength=self.base.shape[1]) + 0.5
        base = np.broadcast_to(counts / counts.sum(), self.base.shape)
        known = np.where(is_checked, self.labels.gold_codes, -1).astype(np.int32)
        labels = replace(self.labels, gold_codes=known)
        return replace(self, labels=labels, base=np.array(base), prior=_ANYTHING, centres=None)

    def surprises(self) -> tuple[list[Surprise], list[Surprise]]:
        """How checked items fit what votes suggest: those drawn by chance, and those that somebody chose."""
        of_drawn: list[Surprise] = []
        of_chosen: list[Surprise] = []
        if self.is_divided and ((self.known >= 0) | (self.chosen >= 0)).any():
            for k in self.features.systems:
                for found, more in zip((of_drawn, of_chosen), self.of_system(k).surprises(), strict=True):
                    found += [replace(one, system=k) for one in more]
            return of_drawn, of_chosen
        at = np.flatnonzero(self.drawn >= 0)
        if len(at):
            prior_draws = self.recalibration.prior_draws
            of_drawn = surprises(*self.rows_at(at, self.drawn[at]), self.features.systems, prior_draws)
        at = np.flatnonzero(self.chosen >= 0)
        if len(at):
            model = self
            if (chosen_gold(self.labels) >= 0).any():
                model = replace(self, base=base_of(self.labels.without_gold()), centres=None)
            prior_draws = model.recalibration.prior_draws
            of_chosen = surprises(*model.rows_at(at, self.chosen[at]), model.features.systems, prior_draws)
        return of_drawn, of_chosen


def _slots_of(features: Features, base: Floats, checked: Codes) -> Slots | None:
    """The slots of items with these features; None where classes are few enough to have one each."""
    if base.shape[1] <= MOST_CLASSES:
        return None
    return Slots.of(base, np.vstack([features.targets[first_of_equals(features.targets)], checked]))


def _rows_of(features: Features, base: Floats, slots: Slots | None, weights: Floats | None = None) -> Rows:
    """Items with features and weights that sum to 1."""
    if slots is None:
        return features.rows(base, weights)
    given = np.ones(len(base)) if weights is None else weights
    places = slots.places(features.targets)
    return Rows(slots.log_base, places, features.values, given / given.sum(), slots.offset)


def own_centres(labels: Labels, base: Floats, codes: Codes, labelers: Codes) -> Floats:
    """The levels of systems that votes suggest; for labelers whose votes are among them, without these."""
    features = build_features(base, codes)
    rows = features.rows(base)
    centres = rows.levels(rows.named(base[:, :, None]))[0][: features.n_levels]
    apart = LabelersApart(labels)
    for k, place in enumerate(features.systems):
        if labelers[place] >= 0:
            item = np.flatnonzero(codes[place] >= 0)
            chances = apart.base(int(labelers[place]), item)
            centres[k] = chances[np.arange(len(item)), codes[place, item]].mean()
    return np.asarray(centres)


class LabelersApart:
    """What the votes of all labelers but one say of an item."""

    def __init__(self, labels: Labels) -> None:
        labels = replace(labels, votes=shared_votes(labels))
        with silenced_warnings():
            model = (DawidSkene() if labels.n_classes <= MOST_MATRIX_CLASSES else OneCoin()).fit(labels)
        self._joint = np.log(np.maximum(model.posterior(labels), 1e-300))
        self._table = np.log(np.maximum(as_table(model.confusion_for(labels)), 1e-300))
        self._votes, self._n_answers = labels.votes.tocsc(), labels.n_answers

    def base(self, labeler: int, items: Codes) -> Floats:
        """P(class) of items from the votes of the others."""
        own = slice(labeler * self._n_answers, (labeler + 1) * self._n_answers)
        return clip_base(softmax(self._joint[items] - self._votes[:, own].tocsr()[items] @ self._table[own], axis=1))


def drawn_gold(labels: Labels) -> Codes:
    """The class of each checked item that was drawn by chance, -1 for all others; also of gold kept aside."""
    known = np.where(labels.gold_codes >= 0, labels.gold_codes, labels.held_codes)
    return np.where(np.isnan(labels.gold_chance), -1, known).astype(np.int32)


def chosen_gold(labels: Labels) -> Codes:
    """The class of each checked item that the base takes for known: those that somebody chose."""
    return np.where(drawn_gold(labels) >= 0, -1, labels.gold_codes).astype(np.int32)


def labels_of_base(labels: Labels) -> Labels:
    """The labels with the gold that the base takes for known."""
    return replace(labels, gold_codes=chosen_gold(labels))


def basis_in_words(n_checked: int, n_items: int) -> str:
    """What an answer rests on.

    Examples
    --------
    >>> basis_in_words(0, 5), basis_in_words(1, 5), basis_in_words(5, 5)
    ('votes alone', 'votes and 1 checked item', 'all items checked')
    """
    if not n_checked:
        return "votes alone"
    if n_checked == n_items:
        return "all items checked"
    return f"votes and {n_checked:,} checked item{'s' if n_checked > 1 else ''}"
