"""How well scores rank the positive items, for each of many drawn truths.

Every function takes truths of shape (n_draws, n_items), scores of shape (n_items,) and, if wanted, weights of the
items in each draw, and returns one value a draw, nan where the metric is undefined. Weights are those of a (Bayesian)
bootstrap: with whole numbers that sum to the number of items, the value is that of the list in which each item occurs
so often.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.types import Booleans, Floats
from trueup._base.validation import RandomState, as_generator, check_integer, check_number
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics.score_groups import (
    blocks,
    check_scores,
    check_truths,
    check_weights,
    masses,
    rank_items,
    ratio,
)

_Inputs = tuple[Booleans, Floats, Floats | None]


def auc(truths: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Floats:
    r"""The area under the ROC curve: the share of pairs of a positive and a negative that are ordered right.

    .. math:: \mathrm{AUC} = \frac{1}{PM} \sum_{i: y_i = 1} \sum_{j: y_j = 0}
        \bigl( 1[s_i > s_j] + \tfrac12 1[s_i = s_j] \bigr)
        = \frac12 + \frac{1}{PM} \sum_{i: y_i = 1} \bigl( r_i - \tfrac{N+1}{2} \bigr)

    for *P* positives, *M* negatives and mid-ranks :math:`r_i` (Mann and Whitney 1947). The second form is one matrix
    product for all draws. The value is nan for a draw with one class only.

    Parameters
    ----------
    truths : array of shape (n_draws, n_items). 1 or True where the item is positive; many draws of it at once.
    scores : array of shape (n_items,). Higher for items more likely to be positive.
    weights : array of shape (n_draws, n_items), optional. What each item counts for; a pair counts for the product.
    """
    truth, score, weight = _inputs(truths, scores, weights)
    if weight is None:
        return _rank_sum_auc(truth, _centred_ranks(score[None]))[:, 0]
    values = np.empty(len(truth))
    for rows, positives, negatives in masses(truth, rank_items(score), weight):
        above = np.cumsum(positives, axis=1) - positives / 2
        values[rows] = ratio((negatives * above).sum(axis=1), positives.sum(axis=1) * negatives.sum(axis=1))
    return values


def auc_draws(
    probabilities: npt.ArrayLike, scores: npt.ArrayLike, n_draws: int, random_state: RandomState = None
) -> Floats:
    """The AUC of one or many systems for truths drawn item by item.

    The truths are those of independent items and are drawn in blocks that are not kept, so memory does not grow with
    their number. All systems see the same truths: differences between columns are those of paired systems. The
    uniforms have 24 bits, so a probability is as good as rounded to 1/2²⁴.

    Returns an array of shape (n_draws, n_systems), nan for a draw with one class only.

    Parameters
    ----------
    probabilities : array of shape (n_items,). P(positive) of each item.
    scores : array of shape (n_items,) or (n_systems, n_items)
    """
    chance = np.asarray(probabilities, dtype=float)
    if chance.ndim != 1 or not len(chance) or not ((chance >= 0) & (chance <= 1)).all():
        raise InvalidParameter(f"probabilities must be one in [0, 1] for each item, got shape {chance.shape}")
    table = np.atleast_2d(check_scores(scores))
    if table.ndim != 2 or table.shape[1] != len(chance):
        raise InvalidPredictions(f"scores must be systems × {len(chance)}, got {table.shape}; pass one row a system")
    n = check_integer(n_draws, name="n_draws", low=0)
    rng = as_generator(random_state)
    ranks, limit = _centred_ranks(table), chance.astype(np.float32)
    values = np.empty((n, len(table)))
    for rows in blocks(n, len(chance)):
        uniforms = rng.random((rows.stop - rows.start, len(chance)), dtype=np.float32)
        values[rows] = _rank_sum_auc(uniforms < limit, ranks)
    return values


def _centred_ranks(scores: Floats) -> Floats:
    """Mid-ranks less their mean, doubled, as columns, and a column of ones; shape (n_items, n_systems + 1)."""
    n_systems, n_items = scores.shape
    table = np.ones((n_items, n_systems + 1))
    table[:, :-1] = 2 * np.asarray(scipy.stats.rankdata(scores, axis=1)).T - (n_items + 1)
    return table


def _rank_sum_auc(truths: Booleans, ranks: Floats) -> Floats:
    """AUCs of shape (n_draws, n_systems) from `_centred_ranks`."""
    n_items = truths.shape[1]
    values = np.empty((len(truths), ranks.shape[1] - 1))
    for rows in blocks(*truths.shape):
        sums = truths[rows].astype(float) @ ranks
        positives = sums[:, -1:]
        values[rows] = 0.5 + ratio(sums[:, :-1], 2 * positives * (n_items - positives))
    return values


def partial_auc(
    truths: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None, *, max_fpr: float
) -> Floats:
    r"""The area under the part of the ROC curve with few false alarms, so scaled that ½ is chance and 1 perfect.

    .. math:: \tfrac12 \Bigl( 1 + \frac{A - f^2/2}{f - f^2/2} \Bigr)

    where *A* is the area up to the false positive rate *f* (McClish 1989; ``roc_auc_score(max_fpr=)`` of
    scikit-learn).

    Truths, scores, weights and what is returned are those of `auc`; `max_fpr` is the false positive rate up to which
    the curve counts, above 0 and at most 1.

    Examples
    --------
    >>> partial_auc([[0, 0, 1, 1]], [0.1, 0.4, 0.35, 0.8], max_fpr=0.5).round(4).tolist()
    [0.6667]
    """
    truth, score, weight = _inputs(truths, scores, weights)
    most = check_number(max_fpr, name="max_fpr", low=0.0, high=1.0)
    if most == 0:
        raise InvalidParameter(f"max_fpr must be a number in (0, 1], got {max_fpr!r}; pass e.g. 0.1")
    values = np.empty(len(truth))
    for rows, positives, negatives in masses(truth, rank_items(score), weight):
        x, y = (np.cumsum(part, axis=1) for part in (negatives, positives))
        x, y = ratio(x, x[:, -1:]), ratio(y, y[:, -1:])
        before_x, before_y = (np.concatenate([np.zeros((len(part), 1)), part[:, :-1]], axis=1) for part in (x, y))
        width = np.minimum(x, most) - np.minimum(before_x, most)
        # The share of each step that lies within; a vertical step lies there whole.
        inside = np.divide(width, x - before_x, out=np.ones_like(x), where=x > before_x)
        values[rows] = (width * (before_y + (y - before_y) * inside / 2)).sum(axis=1)
    chance = most**2 / 2
    return (1 + (values - chance) / (most - chance)) / 2


def average_precision(truths: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Floats:
    r"""The precision at each positive item, averaged.

    .. math:: \mathrm{AP} = \sum_g (R_g - R_{g-1}) P_g

    with precision and recall above each distinct score, as in scikit-learn: items of equal score enter together.

    As for `auc`; nan for a draw without positives, where scikit-learn says 0.

    Examples
    --------
    >>> average_precision([[0, 0, 1, 1]], [0.1, 0.4, 0.35, 0.8]).round(4).tolist()
    [0.8333]
    """
    truth, score, weight = _inputs(truths, scores, weights)
    values = np.empty(len(truth))
    for rows, positives, negatives in masses(truth, rank_items(score), weight):
        hits = np.cumsum(positives, axis=1)
        taken = hits + np.cumsum(negatives, axis=1)
        precision = np.divide(hits, taken, out=np.zeros_like(hits), where=taken > 0)
        values[rows] = ratio((positives * precision).sum(axis=1), hits[:, -1])
    return values


def precision_at_k(
    truths: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None, *, k: int
) -> Floats:
    """The share of positives among the k items with the highest scores.

    Items of equal score at the boundary count in part: the value is the mean over all ways to break the tie. With
    weights, the top k of N items are the top share k/N of the weight.

    Truths, scores, weights and what is returned are those of `auc`; `k` goes from 1 to the number of items.

    Examples
    --------
    >>> precision_at_k([[1, 0, 1, 0]], [0.9, 0.8, 0.7, 0.7], k=3).tolist()
    [0.5]
    """
    hits, taken, _ = _top(truths, scores, weights, k)
    return ratio(hits, taken)


def recall_at_k(
    truths: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None, *, k: int
) -> Floats:
    """The share of the positives that are among the k items with the highest scores; ties as in `precision_at_k`.

    Truths, scores, weights and `k` are those of `precision_at_k`; nan for a draw without positives.

    Examples
    --------
    >>> recall_at_k([[1, 0, 1, 0]], [0.9, 0.8, 0.7, 0.7], k=3).tolist()
    [0.75]
    """
    hits, _, positives = _top(truths, scores, weights, k)
    return ratio(hits, positives)


def ndcg(
    truths: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None = None, *, k: int | None = None
) -> Floats:
    r"""The normalised discounted cumulative gain of positive items (Järvelin and Kekäläinen 2002).

    .. math:: \frac{\sum_{r \le k} y_{(r)} / \log_2(r + 1)}{\sum_{r \le \min(k, P)} 1 / \log_2(r + 1)}

    Items of equal score share the mean discount of their places, as in scikit-learn. With weights, places are shares
    of the weight times *N*, and the cumulative discount is linear between whole places.

    As for `auc`, of the first `k` places, all by default; nan for a draw without positives, where scikit-learn says 0.

    Examples
    --------
    >>> ndcg([[0, 1, 1]], [0.9, 0.8, 0.1]).round(4).tolist()
    [0.6934]
    """
    truth, score, weight = _inputs(truths, scores, weights)
    n = len(score)
    places = np.arange(n + 1.0)
    top = n if k is None else check_k(k, n)
    gain = np.concatenate([[0.0], np.cumsum(1 / np.log2(places[1:] + 1))])[np.minimum(places, top).astype(int)]
    ranked = rank_items(score)
    if weight is None:
        mean_gain = np.diff(gain[np.append(ranked.starts, n)]) / ranked.sizes
        best = gain[truth.sum(axis=1)]
        return ratio(_share_sums(truth, ranked.spread(mean_gain)), best)
    values = np.empty(len(truth))
    for rows, positives, negatives in masses(truth, ranked, weight):
        mass = positives + negatives
        scale = ratio(n, mass.sum(axis=1, keepdims=True))
        until = np.interp(np.cumsum(mass, axis=1) * scale, places, gain)
        gained = np.diff(until, axis=1, prepend=0.0)
        share = np.divide(positives, mass, out=np.zeros_like(mass), where=mass > 0)
        best = np.interp(positives.sum(axis=1) * scale[:, 0], places, gain)
        values[rows] = ratio((share * gained).sum(axis=1), best)
    return values


def check_k(k: int, n_items: int) -> int:
    """A number of places from 1 to the number of items."""
    top = check_integer(k, name="k", low=1)
    if top > n_items:
        raise InvalidParameter(f"k must be at most the number of items, {n_items}, got {top}; choose a smaller k")
    return top


def _top(
    truths: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None, k: int
) -> tuple[Floats, Floats, Floats]:
    """Of each draw the mass of positives among the top k, the mass of the top k, and that of all positives."""
    truth, score, weight = _inputs(truths, scores, weights)
    top = check_k(k, len(score))
    ranked = rank_items(score)
    if weight is None:
        share = np.clip(top - ranked.starts, 0, ranked.sizes) / ranked.sizes
        return _share_sums(truth, ranked.spread(share)), np.full(len(truth), float(top)), truth.sum(axis=1)
    hits, taken, positive = np.empty((3, len(truth)))
    for rows, positives, negatives in masses(truth, ranked, weight):
        mass = positives + negatives
        total = np.cumsum(mass, axis=1)
        taken[rows] = total[:, -1] * top / len(score)
        filled = np.clip(taken[rows][:, None] - (total - mass), 0, mass)
        share = np.divide(filled, mass, out=np.zeros_like(mass), where=mass > 0)
        hits[rows] = (positives * share).sum(axis=1)
        positive[rows] = positives.sum(axis=1)
    return hits, taken, positive


def _share_sums(truths: Booleans, share: Floats) -> Floats:
    """The sum over positives of what each item counts for; items that count for nothing are not looked at."""
    used = np.flatnonzero(share)
    values = np.empty(len(truths))
    for rows in blocks(len(truths), len(used)):
        values[rows] = truths[rows][:, used] @ share[used]
    return values


def _inputs(truths: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None) -> _Inputs:
    truth = check_truths(truths)
    values = check_scores(scores)
    if values.shape != (truth.shape[1],):
        raise InvalidPredictions(
            f"scores must be one for each of {truth.shape[1]} items, got shape {values.shape}; pass one system at "
            "a time"
        )
    return truth, values, check_weights(weights, truth.shape)
