"""The estimate after some vettings: truths drawn from the recalibrated model, the vetted ones as they are.

The model's probabilities for the items nobody vetted are corrected by those somebody did (`recalibrate`), each
counted by the inverse of its chance to be asked (`weighted_answers`). Truths are drawn from the corrected model, so any
metric of any number of systems, and any difference, comes from the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import expit, logit

from trueup._base.types import Codes, Floats, Positions
from trueup.active.influence import Influence, influence, is_ratio, root_mean_square
from trueup.active.pool import Pool
from trueup.active.strategy import draw_shares, effective_number, share_after, stands_for
from trueup.estimators.recalibration import Recalibration, draw_classes, recalibrate
from trueup.estimators.system_features import Used, main_features, principal_features
from trueup.sessions.progress import Progress

_LEAST_PROBABILITY = 0.01  # the votes are never believed more than this
_SLOPE_SCALE = 0.7
_LEAST_SLOPE_SCALE = 1.5
_INTERCEPT_SCALE = 1.0
_SYSTEM_SCALES: dict[Used, float] = {"classes": 2.5, "scores": 1.5, "probabilities": 1.5}
_MOST_SYSTEMS = 6
_LOST = 3.0  # vetted items that learning the correction costs
_LEAST_WEIGHT = 0.02
_NO_REACH = 1e-6  # of the farthest reach: an item that cannot move the metric
_UNIMPORTANT = 0.05
# For ratios such as recall of a rare class; chosen on simulated pools.
_LEAST_SHARE = 0.002
_VOTE_LEVEL_SCALE = 2.3
_VOTE_SLOPE_SCALE = 0.6  # votes of labelers who err together are too sure
_RATIO_DESIGN = 0.4
_QUADRATURE = 31  # points
_GRID = 41  # points along each axis
_BISECTIONS = 40
_FEW = 10  # answers by chance below which others count too


@dataclass(frozen=True, eq=False)
class Drawn:
    """The vetted items that were drawn by chance, and what is known beside them.

    Attributes
    ----------
    positions : integer array of shape (n,)
    weights : array of shape (n,)
        Of LURE; those of even draws are one.
    own : array of shape (n_items,)
        How far an item that is known without a draw counts for itself: 1 if it was known before the draws, 0 if it was
        told after them. They were drawn from a pool with it, and so stand for it.
    n_pool : float
        The items that the draws stand for. If some were told between draws it is as many as would leave a sum over all
        items as uncertain.
    """

    positions: Positions
    weights: Floats
    own: Floats
    n_pool: float


def drawn_items(pool: Pool, progress: Progress) -> Drawn:
    """Who was drawn by chance, and from which pool.

    Which items are told may hang on what was drawn before: the hard ones of those that are left, say. An item is out of
    the pool of a draw only if it was known by then.
    """
    is_gold = pool.labels.gold_codes >= 0
    vetted = progress.vetted & ~is_gold
    by_chance = ~np.isnan(progress.propensity)
    positions, told = np.flatnonzero(vetted & by_chance), np.flatnonzero(vetted & ~by_chance)
    in_order = np.sort(progress.draw[by_chance])
    place = np.searchsorted(in_order, progress.draw[positions]) + 1
    gone_at = np.where(progress.draw > 0, progress.draw, progress.told_after)[told]
    draws_before = np.searchsorted(in_order, gone_at, side="right")
    n_draws, n_open = int(place.max(initial=0)), int((~is_gold).sum())
    n_told = np.searchsorted(np.sort(draws_before), np.arange(n_draws), side="right")
    n_left = np.maximum(n_open - n_told - np.arange(n_draws), 1)  # before each draw
    shares = draw_shares(n_left)
    own = is_gold.astype(float)
    own[told] = share_after(draws_before, shares) if n_draws else 1.0
    if not n_draws:
        return Drawn(positions, np.zeros(0), own, float(n_open - len(told)))
    # Of n_draws from a pool of N that nothing else leaves, the share of each is so much of 1 / (N_m (N_m − 1)).
    part = float(shares[0] * n_left[0] * max(n_left[0] - 1, 0))
    n_pool = (n_draws + np.sqrt(n_draws**2 + 4 * n_draws * part)) / 2
    weights = n_draws / n_pool * stands_for(progress.propensity[positions], place, shares)
    return Drawn(positions, weights, own, float(n_pool))


@dataclass(frozen=True, eq=False)
class Weighted:
    """The vetted items that teach the correction.

    Attributes
    ----------
    positions, truth : integer arrays of shape (n,)
    weights : array of shape (n,)
        Mean one.
    own : array of shape (n_items,)
        How far each other item that is known counts for itself.
    n_pool : float
        The items that they stand for.
    by_chance : bool
        Whether each was drawn with a known probability; if not, no interval is valid.
    """

    positions: Positions
    truth: Codes
    weights: Floats
    own: Floats
    n_pool: float
    by_chance: bool


def weighted_answers(pool: Pool, progress: Progress) -> Weighted:
    """Who counts for how much.

    Items told without being asked by chance are known, and nothing else: they stand for no other items. Only where
    hardly any were drawn by chance all answers count alike, and the interval may not hold as often as it says.
    """
    drawn, is_gold = drawn_items(pool, progress), pool.labels.gold_codes >= 0
    n, n_others = len(drawn.positions), int((progress.vetted & ~is_gold).sum()) - len(drawn.positions)
    if n < _FEW and n_others > n:
        positions = np.flatnonzero(progress.vetted)
        own = (is_gold & ~progress.vetted).astype(float)
        n_pool = pool.n_items - float(own.sum())
        return Weighted(positions, progress.truth[positions], np.ones(len(positions)), own, n_pool, False)
    # The last draws can have weights below zero; a likelihood has no use for them.
    weights = np.maximum(drawn.weights, _LEAST_WEIGHT)
    weights = weights / max(weights.mean(), 1e-12) if n else weights
    return Weighted(drawn.positions, progress.truth[drawn.positions], weights, drawn.own, drawn.n_pool, True)


@dataclass(frozen=True, eq=False)
class PoolRecalibration(Recalibration):
    """A recalibration of the items of a pool, for a metric.

    Attributes
    ----------
    importance : array of shape (n_items,)
        What an answer on each item counts for beside its chance; less where the metric does not look at the item.
    design : float
        How far answers count by the inverse of their chance: 1 wholly, 0 all alike.
    """

    importance: Floats
    design: float = 1.0


def recalibration_of(pool: Pool) -> PoolRecalibration:
    """The features by which the model's probabilities can be corrected."""
    if pool.n_classes == 2 and is_ratio(pool):
        return _recalibration_by_vote(pool)
    n_classes, used = pool.n_classes, pool.used
    offset = np.log(np.maximum(pool.prior, _LEAST_PROBABILITY))
    centred = (offset - offset.mean(axis=1, keepdims=True))[None]
    centred = centred - centred.mean(axis=1, keepdims=True)  # what items have in common is the intercepts'
    spread = max(float(centred.std()), 1e-6)
    intercepts = np.broadcast_to(np.eye(n_classes)[1:, None, :], (n_classes - 1, pool.n_items, n_classes))
    blocks = [centred / spread, intercepts]
    # Where the votes hardly move the model, its slope must be free to be steep.
    scales = [max(_SLOPE_SCALE * spread, _LEAST_SLOPE_SCALE), _INTERCEPT_SCALE]
    few = pool.n_systems <= _MOST_SYSTEMS
    for kind in _outputs_used(pool, used):
        blocks.append((main_features if few else principal_features)(pool.aligned, n_classes, kind))
        scales.append(_SYSTEM_SCALES[kind])
    # What each item could do to the metric, as things stand before anyone looked.
    effects = [influence(pool, pool.prior, system=system) for system in range(pool.n_systems)]
    if few and used == "scores":
        blocks.append(_metric_features(effects))
        scales.append(_SYSTEM_SCALES[used])
    features = np.concatenate(blocks)
    scale = np.repeat(scales, [len(block) for block in blocks]).astype(float)
    return PoolRecalibration(
        offset=offset,
        features=np.ascontiguousarray(np.moveaxis(features, 0, 2)),
        mean=np.zeros(len(scale)),
        scale=scale,
        importance=_importance(effects),
    )


def _recalibration_by_vote(pool: Pool) -> PoolRecalibration:
    """A level and a slope apart for items that the system calls positive and for others, which a ratio sums apart.

    Levels are so uncertain that their mean on the scale of probabilities is far above their middle on that of
    log-odds. Of the many items that nobody takes for positive, recall would then expect far more to be positive than
    the votes say; so the middle is put where the mean is what the votes say.
    """
    assert pool.aligned.codes is not None
    believed = np.clip(pool.prior[:, 1], _LEAST_SHARE, 1 - _LEAST_SHARE)
    log_odds = logit(believed)
    blocks, scales = [], []
    for members in (pool.aligned.codes[0] == 1, pool.aligned.codes[0] != 1):
        centre = log_odds[members].mean() if members.any() else 0.0
        blocks += [members.astype(float), np.where(members, log_odds - centre, 0.0)]
        scales += [_VOTE_LEVEL_SCALE, _VOTE_SLOPE_SCALE]
    for kind in _outputs_used(pool, pool.used)[1:]:
        both = main_features(pool.aligned, 2, kind)[0]
        blocks.append(both[:, 1] - both[:, 0])
        scales.append(_SYSTEM_SCALES[kind])
    of_positive, scale = np.stack(blocks, axis=1), np.array(scales)
    features = np.zeros((pool.n_items, 2, len(scale)))
    features[:, 1] = of_positive
    middle = middle_of(believed, of_positive**2 @ scale**2)
    return PoolRecalibration(
        offset=np.stack([np.zeros_like(middle), middle], axis=1),
        features=features,
        mean=np.zeros(len(scale)),
        scale=scale,
        importance=_importance([influence(pool, pool.prior)]),
        design=_RATIO_DESIGN,
    )


def middle_of(probability: Floats, variance: Floats) -> Floats:
    """The mean of normal log-odds of this variance for which the mean of the probability is as given.

    Found on a grid of both, and between its points along straight lines: a pool may have a million items.

    Examples
    --------
    >>> middle_of(np.array([0.1, 0.01]), np.array([4.0, 4.0])).round(1).tolist()
    [-3.4, -6.4]
    """
    log_odds, deviation = logit(probability), np.sqrt(variance)
    axes = tuple(np.linspace(values.min(), values.max() + 1e-9, _GRID) for values in (log_odds, deviation))
    of_grid, spread = (table.ravel() for table in np.meshgrid(*axes, indexing="ij"))
    points, weights = np.polynomial.hermite_e.hermegauss(_QUADRATURE)
    reach = 20.0 + 2 * spread**2
    low, high = of_grid - reach, of_grid + reach
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = expit(middle[:, None] + spread[:, None] * points) @ (weights / weights.sum()) < expit(of_grid)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    between = scipy.interpolate.RegularGridInterpolator(axes, ((low + high) / 2).reshape(_GRID, _GRID))
    return np.asarray(between(np.stack([log_odds, deviation], axis=1)))


def _metric_features(effects: list[Influence]) -> Floats:
    """One feature for each system: how the metric weighs the item, shape (n_systems, n_items, n_classes).

    A list metric such as precision@k looks at some items and not at others. With its own weights as a feature, what it
    sums up over the vetted items is what the corrected model expects.
    """
    features = np.stack([one.effects - one.effects.mean(axis=1, keepdims=True) for one in effects])
    spread = features.std(axis=(1, 2), keepdims=True)
    return np.asarray(np.divide(features, spread, out=np.zeros_like(features), where=spread > 0))


def _importance(effects: list[Influence]) -> Floats:
    """One for items whose class the metric looks at, and next to nothing for others.

    How far an item moves it depends on what is not known yet; whether it does, on the systems' outputs alone.
    """
    reach = root_mean_square([one.reach() for one in effects])
    return np.where(reach > _NO_REACH * reach.max(initial=0.0), 1.0, _UNIMPORTANT)


def _outputs_used(pool: Pool, used: Used) -> list[Used]:
    """What the metric looks at, and the richest of what else the systems give: a sure system is right more often."""
    if used != "classes":
        return [used]
    if pool.aligned.probabilities is not None:
        return ["classes", "probabilities"]
    if pool.aligned.scores is not None and pool.aligned.positive is not None:
        return ["classes", "scores"]
    return ["classes"]


def recalibrated_probabilities(model: PoolRecalibration, pool: Pool, progress: Progress) -> Floats:
    """Current P(class) of each item at the mode of the correction; vetted items are certain."""
    answers = weighted_answers(pool, progress)
    mode = recalibrate(model, answers.positions, answers.truth, _tempered(answers, model), n_draws=0).mode
    known = known_classes(pool, progress)
    return np.where(known[:, None] >= 0, np.eye(pool.n_classes)[known], model.probabilities(mode))


def draw_rectified(
    model: PoolRecalibration, pool: Pool, progress: Progress, *, n_draws: int, rng: np.random.Generator
) -> Codes:
    """Truths of all items, shape (n_draws, n_items), given the answers so far."""
    answers = weighted_answers(pool, progress)
    n_draws = int(np.clip(200_000_000 // max(pool.n_items, 1), 50, n_draws))
    each = 1 if pool.n_items <= 20_000 else 4
    n_coefficients = -(-n_draws // each)
    learned = recalibrate(
        model, answers.positions, answers.truth, _tempered(answers, model), n_draws=n_coefficients, rng=rng
    )
    truths = draw_classes(model, learned.draws, each=each, rng=rng)
    known, certain = known_classes(pool, progress), answers.own >= 1
    certain[answers.positions] = True
    truths[:, certain] = known[certain]
    partly = np.flatnonzero((answers.own > 0) & ~certain)
    if len(partly):  # each truth is one by the pool of one of the draws, with what was known before that draw
        is_known = rng.random((len(truths), 1)) < answers.own[partly]
        truths[:, partly] = np.where(is_known, known[partly], truths[:, partly])
    return truths[:n_draws]


def _tempered(answers: Weighted, model: PoolRecalibration) -> Floats:
    """Weights that add up to the items they are worth, less what the correction costs: intervals of few items.

    A scale that lets answers that were as good as known cost nothing (a "sandwich") is narrower, and holds too rarely
    where crowds err together.
    """
    weights = answers.weights**model.design * model.importance[answers.positions]
    n = effective_number(weights)
    return np.asarray(weights * (max(n - _LOST, 0.5 * n) / max(float(weights.sum()), 1e-12)))


def known_classes(pool: Pool, progress: Progress) -> Positions:
    """The class of each item as the expert or the gold says, -1 where unknown."""
    return np.where(progress.truth >= 0, progress.truth, pool.labels.gold_codes).astype(np.int64)
