r"""How the plug-in value of a metric of scores or probabilities grows with each item's P(class).

The plug-in value is the quotient of the expected numerator and the expected denominator of the metric. A slope is its
derivative. Metrics that are linear in the truths (precision@k, Brier score, log loss) have exact slopes: vetting item
j changes their expectation by its slope times :math:`z_j - p_j`. For quotients the slopes are those of first order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy

from trueup._base.types import Floats
from trueup.active.expected import RankedList, precision_at_k_slopes, precision_sum, precision_sum_slopes
from trueup.metrics import (
    Metric,
    auc,
    auc_ovo,
    auc_ovr,
    average_precision,
    brier,
    log_loss,
    ndcg,
    precision_at_k,
    recall_at_k,
)
from trueup.metrics.ranking import check_k

Valued = tuple[float, Floats]
_GROUPS = 128  # of items alike in score, at either spacing, where a metric can only be differentiated numerically
_STEP = 1e-6
_LEAST = float(np.finfo(float).eps)  # as in `trueup.metrics.log_loss`


def positive_slopes(metric: Metric, p: Floats, scores: Floats, *, n_positives: float | None = None) -> Valued:
    """The plug-in value of a metric of scores, and its slope in P(positive) of each item.

    Parameters
    ----------
    metric : Metric
        One that needs scores. Metrics that trueup has no formula for are differentiated numerically, in groups of
        items with similar scores.
    p : array of shape (n_items,)
        P(positive).
    scores : array of shape (n_items,)
    n_positives : float, optional
        The number of positives if it is known; only average precision and recall@k use it.

    Returns
    -------
    float, array of shape (n_items,)

    Examples
    --------
    >>> from trueup.metrics import get_metric
    >>> metric = get_metric("precision@2", [0, 1])
    >>> value, slopes = positive_slopes(metric, np.array([0.5, 1.0, 0.2]), np.array([3.0, 2.0, 1.0]))
    >>> value, slopes.tolist()
    (0.75, [0.5, 0.5, 0.0])
    """
    function, options = _unwrapped(metric)
    if function is precision_at_k:
        slopes = precision_at_k_slopes(scores, k=options["k"])
        return float(p @ slopes), slopes
    total = float(p.sum()) if n_positives is None else float(n_positives)
    if total <= 0:
        return np.nan, np.zeros(len(p))
    if function is average_precision:
        ranked = RankedList.of(scores)
        value = precision_sum(p, ranked) / total
        return value, (precision_sum_slopes(p, ranked) - (value if n_positives is None else 0.0)) / total
    if function is recall_at_k:
        share = precision_at_k_slopes(scores, k=options["k"]) * options["k"]
        value = float(p @ share) / total
        return value, (share - (value if n_positives is None else 0.0)) / total
    if function is auc:
        return auc_slopes(p, scores)
    if function is ndcg:
        return _ndcg_slopes(p, scores, options.get("k"))
    return _numerical_slopes(metric, p, scores)


def auc_slopes(p: Floats, scores: Floats) -> Valued:
    r"""The plug-in AUC and its slopes.

    .. math:: \frac{\sum_{i \ne j} p_i (1 - p_j) \psi_{ij}}{\sum_{i \ne j} p_i (1 - p_j)}, \qquad
        \psi_{ij} = 1[s_i > s_j] + \tfrac12 1[s_i = s_j]

    Since :math:`\psi_{ij} + \psi_{ji} = 1`, both sums need the mid-ranks alone.

    Examples
    --------
    >>> value, _ = auc_slopes(np.array([1.0, 0.0, 0.5]), np.array([3.0, 1.0, 2.0]))
    >>> value
    1.0
    """
    n, total = len(p), p.sum()
    beaten = np.asarray(scipy.stats.rankdata(scores)) - 1
    above = p @ beaten - (total**2 - p @ p) / 2
    pairs = total * (n - total) - p @ (1 - p)
    if pairs <= _LEAST * n**2:
        return np.nan, np.zeros(n)
    value = above / pairs
    others = total - p
    return float(value), (beaten - others - value * (n - 1 - 2 * others)) / pairs


def class_slopes(metric: Metric, probabilities: Floats, outputs: Floats) -> Valued:
    """The plug-in value of a metric of class probabilities, and its slope in P(class) of each item and class.

    Log loss and Brier score are exact. The mean AUC over pairs of classes is taken for that of each class against the
    others, which is near it. For what else there may be, such as calibration errors, an item counts by whether its
    likeliest class is right; the value is then unknown.

    Parameters
    ----------
    metric : Metric
        One that needs probabilities.
    probabilities : array of shape (n_items, n_classes)
        P(class).
    outputs : array of shape (n_items, n_classes)
        What the system says.

    Returns
    -------
    float, array of shape (n_items, n_classes)

    Examples
    --------
    >>> from trueup.metrics import get_metric
    >>> says = np.array([[0.9, 0.1], [0.5, 0.5]])
    >>> value, slopes = class_slopes(get_metric("brier", [0, 1]), np.array([[1.0, 0.0], [0.5, 0.5]]), says)
    >>> round(value, 3), slopes.round(3).tolist()
    (0.13, [[0.005, 0.405], [0.125, 0.125]])
    """
    function, _ = _unwrapped(metric)
    n, n_classes = probabilities.shape
    if function is log_loss:
        return _mean(-np.log(np.clip(outputs, _LEAST, 1 - _LEAST)) / n, probabilities)
    if function is brier:
        squares = (1 - outputs) ** 2
        if n_classes > 2:
            squares += (outputs**2).sum(axis=1, keepdims=True) - outputs**2
        return _mean(squares / n, probabilities)
    if function in (auc_ovr, auc_ovo):
        parts = [auc_slopes(probabilities[:, c], outputs[:, c]) for c in range(n_classes)]
        values = np.array([value for value, _ in parts])
        defined = int(np.count_nonzero(~np.isnan(values)))
        # The slopes of a class that cannot be judged are zero.
        slopes = np.stack([slopes for _, slopes in parts], axis=1) / max(defined, 1)
        return (float(np.nanmean(values)) if defined else np.nan), slopes
    likeliest = outputs.argmax(axis=1)
    return np.nan, (likeliest[:, None] == np.arange(n_classes)) / n


def _mean(table: Floats, probabilities: Floats) -> Valued:
    return float((table * probabilities).sum()), table


def _ndcg_slopes(p: Floats, scores: Floats, k: int | None) -> Valued:
    """The gain is linear in the truths; the best gain is that of the expected number of positives."""
    n = len(p)
    places = np.arange(n + 1)
    gain = np.concatenate([[0.0], np.cumsum(1 / np.log2(places[1:] + 1))])
    gain = gain[np.minimum(places, n if k is None else check_k(k, n))]
    ranked = RankedList.of(scores)
    of_items = ranked.spread((gain[ranked.taken] - gain[ranked.starts]) / ranked.sizes)
    total = float(p.sum())
    best = float(np.interp(total, places, gain))
    last = min(int(total), n - 1)
    value = float(p @ of_items) / best
    return value, (of_items - value * (gain[last + 1] - gain[last])) / best


def _numerical_slopes(metric: Metric, p: Floats, scores: Floats) -> Valued:
    """Differences of the weighted metric of groups of similar items, which are small at the top of the list."""
    n = len(p)
    ranked = RankedList.of(scores)
    edges = np.unique(np.concatenate([np.geomspace(1, n, _GROUPS), np.linspace(0, n, _GROUPS + 1)]).astype(np.intp))
    starts = np.unique(ranked.starts[np.searchsorted(ranked.starts, edges[edges < n], side="right") - 1])
    groups = RankedList(ranked.order, starts)
    size = len(starts)
    mass = np.concatenate([groups.sums(p), groups.sums(1 - p)])
    truth = np.repeat([True, False], size)
    outputs = np.tile(groups.sums(scores) / groups.sizes, 2)
    step = _STEP * n
    upper = mass + step * np.eye(2 * size)
    lower = np.maximum(mass - step * np.eye(2 * size), 0.0)
    rows = np.concatenate([mass[None], upper, lower])
    values = np.asarray(metric.function(np.broadcast_to(truth, rows.shape), outputs, rows), dtype=float)
    slope = (values[1 : 2 * size + 1] - values[2 * size + 1 :]) / (upper - lower).diagonal()
    slope = np.nan_to_num(slope, nan=0.0, posinf=0.0, neginf=0.0)
    return float(values[0]), groups.spread(slope[:size] - slope[size:])


def _unwrapped(metric: Metric) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function of a metric and what was bound to it."""
    if isinstance(metric.function, partial):
        return metric.function.func, dict(metric.function.keywords)
    return metric.function, {}
