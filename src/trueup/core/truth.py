"""The truth of all items given votes, systems and checked items: what every plain answer is computed from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import softmax

from trueup._base.types import Codes, Floats
from trueup.core.base import MOST_MATRIX_CLASSES, base_of, clip_base
from trueup.core.checks import Surprise, check_weights, design_effect, surprises
from trueup.core.draws import draw_truths
from trueup.core.features import Features, build_features
from trueup.core.posterior import N_POINTS, Checks, Recalibration, ThetaDraws, draw_theta
from trueup.core.prior import CrowdPrior
from trueup.core.rows import Rows
from trueup.data.labels import Labels
from trueup.estimators.truth_draws import TruthDraws
from trueup.exceptions import silenced_warnings
from trueup.noise import DawidSkene, OneCoin
from trueup.noise.base import as_table

# Nearly even on the scale of angles, as Jeffreys' prior of a share is.
_ANYTHING = CrowdPrior(level_scale=0.6, slope=1.0, slope_scale=1e-3, part_share=1.0, degrees=50.0)
_MOST_TRUTHS = 400_000_000  # classes of items drawn in all, one byte each


@dataclass(frozen=True, eq=False)
class TruthModel:
    """p(truth | votes, systems, checked items) for one question.

    Attributes
    ----------
    labels : Labels
    base : array of shape (n_items, n_classes)
        P(class | votes); see `trueup.core.base`.
    codes : integer array of shape (n_systems, n_items)
        The class that each system names, -1 for none.
    scores : array of shape (n_scorers, n_items), optional
        Scores of the positive class, NaN for none.
    positive : int, optional
    centres : array of shape (n_levels,), optional
        The levels that votes let expect, where these are not the means of the base; see `own_centres`.
    slices, clusters : integer arrays of shape (n_items,), optional
    weights : array of shape (n_items,), optional
    prior : CrowdPrior
    n_draws : int
    seed : int
    """

    labels: Labels = field(repr=False)
    base: Floats = field(repr=False)
    codes: Codes = field(repr=False)
    scores: Floats | None = field(default=None, repr=False)
    positive: int | None = None
    centres: Floats | None = field(default=None, repr=False)
    slices: Codes | None = field(default=None, repr=False)
    clusters: Codes | None = field(default=None, repr=False)
    weights: Floats | None = field(default=None, repr=False)
    prior: CrowdPrior = field(default_factory=CrowdPrior)
    n_draws: int = 2048
    seed: int = 0

    # ------------------------------------------------------------------ what is known

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

    # ------------------------------------------------------------------ the model

    @cached_property
    def features(self) -> Features:
        """What corrects the base."""
        return build_features(self.base, self.codes, scores=self.scores, positive=self.positive, slices=self.slices)

    @cached_property
    def rows(self) -> Rows:
        """All items."""
        return self.features.rows(self.base, self.weights)

    @cached_property
    def recalibration(self) -> Recalibration:
        """How points become coefficients."""
        return Recalibration(self.rows, self.features, self.prior, centres=self.centres)

    @cached_property
    def checks(self) -> Checks | None:
        """The checked items that were drawn by chance."""
        at = np.flatnonzero(self.drawn >= 0)
        if not len(at):
            return None
        weights = check_weights(self.labels.gold_chance[at])
        if self.clusters is not None:
            weights = weights / design_effect(self.base[at], self.drawn[at], self.clusters[at])
        return Checks(self.rows.at(at), self.drawn[at], weights)

    @cached_property
    def theta(self) -> ThetaDraws:
        """Draws of the coefficients."""
        n_points = max(16, min(N_POINTS, self.n_draws))
        return draw_theta(self.recalibration, self.checks, n_points=n_points, rng=np.random.default_rng([self.seed, 0]))

    @cached_property
    def truth(self) -> TruthDraws:
        """Draws of the truth of all items."""
        each = max(1, min(self.n_draws, _MOST_TRUTHS // max(len(self.base), 1)) // len(self.theta.beta))
        rng = np.random.default_rng([self.seed, 1])
        truths, posterior = draw_truths(self.rows, self.theta, self.known, each=each, rng=rng)
        return TruthDraws(truths, posterior, {"effective_draws": self.theta.effective})

    def with_labels(self, labels: Labels, seed: int | None = None) -> TruthModel:
        """The model for the same votes with other checked items; the base is kept where it was told the same."""
        model = replace(self, labels=labels, seed=self.seed if seed is None else seed)
        if not np.array_equal(told_gold(labels), told_gold(self.labels)):
            return replace(model, base=base_of(labels_of_base(labels)))
        for name in ("features", "rows", "recalibration"):
            model.__dict__[name] = getattr(self, name)
        return model

    def checks_alone(self) -> TruthModel:
        """The model of somebody who knows no votes: class shares for a base, and levels that may be anything."""
        is_checked = self.drawn >= 0
        counts = np.bincount(self.drawn[is_checked], minlength=self.base.shape[1]) + 0.5
        base = np.broadcast_to(counts / counts.sum(), self.base.shape)
        known = np.where(is_checked, self.labels.gold_codes, -1).astype(np.int32)
        labels = replace(self.labels, gold_codes=known)
        return replace(self, labels=labels, base=np.array(base), prior=_ANYTHING, centres=None)

    # ------------------------------------------------------------------ does it fit

    def surprises(self) -> tuple[list[Surprise], list[Surprise]]:
        """How checked items fit what votes let expect: those drawn by chance, and those that somebody chose."""
        prior_draws = draw_theta(self.recalibration, None, rng=np.random.default_rng([self.seed, 2]))
        of_drawn, of_chosen = [], []
        at = np.flatnonzero(self.drawn >= 0)
        if len(at):
            of_drawn = surprises(self.rows.at(at), self.features.systems, prior_draws, self.drawn[at])
        at = np.flatnonzero(self.chosen >= 0)
        if len(at):
            model = self
            if (told_gold(self.labels) >= 0).any():
                model = replace(self, base=base_of(self.labels.without_gold()), centres=None)
                prior_draws = draw_theta(model.recalibration, None, rng=np.random.default_rng([self.seed, 2]))
            of_chosen = surprises(model.rows.at(at), model.features.systems, prior_draws, self.chosen[at])
        return of_drawn, of_chosen


def own_centres(labels: Labels, base: Floats, codes: Codes, labelers: Codes) -> Floats:
    """The levels that votes let expect of systems; of labelers whose votes are among them, without these.

    A labeler's votes are divided out of the posterior of Dawid–Skene, in place of a fit without them.

    Parameters
    ----------
    labels : Labels
    base : array of shape (n_items, n_classes)
    codes : integer array of shape (n_systems, n_items)
    labelers : integer array of shape (n_systems,)
        The place of each system among the labelers, -1 for a system that is none.

    Returns
    -------
    array of shape (n_levels,)
        In the order of `build_features`.
    """
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
    """What the votes of all labelers but one say of an item.

    Parameters
    ----------
    labels : Labels
    """

    def __init__(self, labels: Labels) -> None:
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


def told_gold(labels: Labels) -> Codes:
    """The class of each checked item that the base takes for known: those that somebody chose."""
    return np.where(drawn_gold(labels) >= 0, -1, labels.gold_codes).astype(np.int32)


def labels_of_base(labels: Labels) -> Labels:
    """The labels with the gold that the base takes for known."""
    return replace(labels, gold_codes=told_gold(labels))


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
