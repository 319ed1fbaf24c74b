"""The estimate after some checks: truths drawn from the core, the checked ones as they are.

What votes say of the items that nobody checked is corrected by those that somebody did, each counted by the inverse of
its chance to be asked (`weighted_answers`). Truths are drawn from the corrected model, so any metric of any number of
systems, and any difference, comes from the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trueup._base.types import Codes, Floats, Positions
from trueup.active.influence import Pool, influence, root_mean_square
from trueup.active.strategies import draw_shares, share_after, stands_for
from trueup.core.base import clip_base, clip_rare
from trueup.core.checks import effective_weights
from trueup.core.features import build_features, standard_scores
from trueup.core.posterior import N_POINTS, Checks, Recalibration, ThetaDraws, draw_theta, draw_truths, find_mode
from trueup.core.prior import CrowdPrior
from trueup.core.rows import Rows
from trueup.sessions.progress import Progress

_LEAST_WEIGHT = 0.02
_MOST_TRUTHS = 200_000_000  # classes of items drawn in all
_FEW = 10  # answers by chance below which others count too


@dataclass(frozen=True, eq=False)
class Drawn:
    """The vetted items that were drawn by chance, and what is known beside them."""

    positions: Positions  # shape (n,)
    weights: Floats  # shape (n,); of LURE; those of even draws are one
    # shape (n_items,); how far an item that is known without a draw counts for itself: 1 if it was known before the
    # draws, 0 if it was told after them. They were drawn from a pool with it, and so stand for it
    own: Floats
    # The items that the draws stand for; with some told between draws, as many as leave a sum as uncertain
    n_pool: float
    by_chance: bool = True  # else no interval is valid


def drawn_items(pool: Pool, progress: Progress) -> Drawn:
    """Who was drawn by chance, and from which pool."""
    is_gold = pool.labels.gold_codes >= 0
    vetted = progress.vetted & ~is_gold
    by_chance = ~np.isnan(progress.propensity)
    positions, unasked = np.flatnonzero(vetted & by_chance), np.flatnonzero(vetted & ~by_chance)
    in_order = np.sort(progress.draw[by_chance])
    place = np.searchsorted(in_order, progress.draw[positions]) + 1
    gone_at = np.where(progress.draw > 0, progress.draw, progress.told_after)[unasked]
    draws_before = np.searchsorted(in_order, gone_at, side="right")
    n_draws, n_open = int(place.max(initial=0)), int((~is_gold).sum())
    n_told = np.searchsorted(np.sort(draws_before), np.arange(n_draws), side="right")
    n_left = np.maximum(n_open - n_told - np.arange(n_draws), 1)  # before each draw
    shares = draw_shares(n_left)
    own = is_gold.astype(float)
    own[unasked] = share_after(draws_before, shares) if n_draws else 1.0
    if not n_draws:
        return Drawn(positions, np.zeros(0), own, float(n_open - len(unasked)))
    # Of n_draws from a pool of N that nothing else leaves, the share of each is so much of 1 / (N_m (N_m − 1)).
    part = float(shares[0] * n_left[0] * max(n_left[0] - 1, 0))
    n_pool = (n_draws + np.sqrt(n_draws**2 + 4 * n_draws * part)) / 2
    weights = n_draws / n_pool * stands_for(progress.propensity[positions], place, shares)
    return Drawn(positions, weights, own, float(n_pool))


def weighted_answers(pool: Pool, progress: Progress) -> Drawn:
    """Who counts for how much: the drawn items with weights of mean one, none of them below zero."""
    drawn, is_gold = drawn_items(pool, progress), pool.labels.gold_codes >= 0
    n, n_others = len(drawn.positions), int((progress.vetted & ~is_gold).sum()) - len(drawn.positions)
    if n < _FEW and n_others > n:
        positions = np.flatnonzero(progress.vetted)
        own = (is_gold & ~progress.vetted).astype(float)
        return Drawn(positions, np.ones(len(positions)), own, pool.n_items - float(own.sum()), by_chance=False)
    weights = np.maximum(drawn.weights, _LEAST_WEIGHT)  # of the last draws they can be below zero
    return replace(drawn, weights=weights / max(weights.mean(), 1e-12) if n else weights)


@dataclass(frozen=True, eq=False)
class PoolModel:
    """The core for the items of a pool, and how much an answer on each says of its metric."""

    rows: Rows
    recalibration: Recalibration
    # shape (n_items,); what an answer on each item counts for beside its chance; less where the metric does not look at
    # the item
    importance: Floats
    # Whether by the inverse of its chance, too. Ratios do without: positives are drawn so much more often that 100
    # answers weighted so are worth 30, and recall is off by .09. The chances follow from the rows, which the core knows
    is_weighted: bool


def model_of(pool: Pool) -> PoolModel:
    """The core for a pool before anybody answered."""
    base, aligned = (clip_rare if pool.is_ratio else clip_base)(pool.prior), pool.aligned
    codes = np.empty((0, pool.n_items), dtype=np.int32) if aligned.codes is None else aligned.codes
    scores = aligned.scores if pool.n_classes == 2 and pool.used != "classes" else None
    scores = None if scores is None else np.stack([standard_scores(row) for row in scores])
    features = build_features(base, codes, scores=scores, positive=pool.positive)
    rows = features.rows(base)
    # How far an item moves the metric depends on what is not known yet; whether it does, on the systems' outputs alone.
    effects = [influence(pool, pool.prior, system=system) for system in range(pool.n_systems)]
    reach = root_mean_square([effect.reach() for effect in effects])
    importance = np.where(reach > 1e-6 * reach.max(initial=0.0), 1.0, 0.05)
    return PoolModel(rows, Recalibration(rows, features, CrowdPrior()), importance, is_weighted=not pool.is_ratio)


def _checks(model: PoolModel, answers: Drawn, truth: Positions) -> Checks:
    """The answers that teach, with weights that sum to the number of evenly drawn items they are worth."""
    importance = model.importance[answers.positions]
    weights = effective_weights(answers.weights * importance if model.is_weighted else importance)
    return Checks(model.rows.at(answers.positions), truth[answers.positions], weights)


def corrected_probabilities(model: PoolModel, pool: Pool, progress: Progress) -> Floats:
    """Current P(class) of each item where the correction is likeliest; checked items are certain."""
    checks = _checks(model, weighted_answers(pool, progress), progress.truth)
    point = np.zeros(model.recalibration.n_dimensions)
    if len(checks.truth):
        point, _ = find_mode(model.recalibration, checks)
    chances = model.rows.probabilities(*model.recalibration.coefficients(point[None]))[:, :, 0]
    known = known_classes(pool, progress)
    return np.where(known[:, None] >= 0, np.eye(pool.n_classes)[known], chances)


def draw_theta_given(
    model: PoolModel, pool: Pool, progress: Progress, *, n_points: int, rng: np.random.Generator
) -> ThetaDraws:
    """Draws of the correction, given the answers so far."""
    checks = _checks(model, weighted_answers(pool, progress), progress.truth)
    return draw_theta(model.recalibration, checks, n_points=n_points, rng=rng)


def draw_rectified(
    model: PoolModel, pool: Pool, progress: Progress, *, n_draws: int, rng: np.random.Generator
) -> Codes:
    """Truths of all items, shape (about n_draws, n_items), given the answers so far."""
    n_draws = int(np.clip(_MOST_TRUTHS // max(pool.n_items, 1), 50, n_draws))
    theta = draw_theta_given(model, pool, progress, n_points=min(N_POINTS, n_draws), rng=rng)
    return draw_truths_given(theta, model, pool, progress, each=max(1, round(n_draws / len(theta.beta))), rng=rng)


def draw_truths_given(
    theta: ThetaDraws, model: PoolModel, pool: Pool, progress: Progress, *, each: int, rng: np.random.Generator
) -> Codes:
    """Truths of all items, some for each draw of the correction."""
    answers = weighted_answers(pool, progress)
    known, certain = known_classes(pool, progress), answers.own >= 1
    certain[answers.positions] = True
    truths, _ = draw_truths(model.rows, theta, np.where(certain, known, -1), each=each, rng=rng)
    partly = np.flatnonzero((answers.own > 0) & ~certain)
    if len(partly):  # each truth is one by the pool of one of the draws, with what was known before that draw
        is_known = rng.random((len(truths), 1)) < answers.own[partly]
        truths[:, partly] = np.where(is_known, known[partly], truths[:, partly])
    return truths


def known_classes(pool: Pool, progress: Progress) -> Positions:
    """The class of each item as the expert or the gold says, -1 where unknown."""
    return np.where(progress.truth >= 0, progress.truth, pool.labels.gold_codes).astype(np.int64)
