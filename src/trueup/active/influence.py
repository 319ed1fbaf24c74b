r"""How far the metric moves when the class of one item becomes known.

Let Q be the plug-in value of a metric: that of the expected confusion counts, or the quotient of expected sums of a
ranking metric. The effect of learning that item j is of class c is, to first order,

.. math:: \Delta_{jc} = g_{jc} - \sum_{c'} p_{jc'} g_{jc'}, \qquad g_{jc} = \frac{\partial Q}{\partial p_{jc}},

so it is zero on average. It is exact for what is linear in the truths: accuracy, error, precision, precision@k, and
average precision with a known number of positives.

The plug-in value is the quotient of the expected numerator and the expected denominator of the metric. A slope is its
derivative. Metrics that are linear in the truths (precision@k, Brier score, log loss) have exact slopes: vetting item
j changes their expectation by its slope times :math:`z_j - p_j`. For quotients the slopes are those of first order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import check_integer
from trueup.active.expected import RankedList, precision_at_k_slopes, precision_sum, precision_sum_slopes
from trueup.active.pool import Pool
from trueup.estimators.system_values import counts_right_only
from trueup.exceptions import InvalidParameter
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

# ------------------ How the plug-in value of a metric of scores or probabilities grows with each item's P(class).

Valued = tuple[float, Floats]
_GROUPS = 128  # of items alike in score, at either spacing, where a metric can only be differentiated numerically
_STEP_OF_SCORE_SLOPES = 1e-6
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
    step = _STEP_OF_SCORE_SLOPES * n
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


_STEP = 1e-6  # of the number of items, for differences
_BLOCK = 4_000_000  # numbers held at once
_SMALL = 2000  # items of the list on which a function is tried out


@dataclass(frozen=True, eq=False)
class Influence:
    """The plug-in value of a metric, and what learning an item's class would do to it.

    Attributes
    ----------
    value : float
        nan where it is undefined or not known.
    effects : array of shape (n_items, n_classes)
        The change if the item turns out to be of the class; zero on average over the classes of each item.
    """

    value: float
    effects: Floats = field(repr=False)

    def expected_change(self, probabilities: Floats) -> Floats:
        """The expected absolute change, shape (n_items,)."""
        return np.asarray(np.einsum("nc,nc->n", probabilities, np.abs(self.effects)))

    def variance(self, probabilities: Floats) -> Floats:
        """The variance of the change, shape (n_items,)."""
        return np.asarray(np.einsum("nc,nc,nc->n", probabilities, self.effects, self.effects))

    def reach(self) -> Floats:
        """How far the answer can move the metric, whatever is believed of it: shape (n_items,)."""
        return np.asarray(np.ptp(self.effects, axis=1))

    def minus(self, other: Influence) -> Influence:
        """That on the difference of two systems."""
        return Influence(self.value - other.value, self.effects - other.effects)


def influence(
    pool: Pool,
    probabilities: Floats,
    *,
    system: int = 0,
    n_positives: float | Sequence[float] | None = None,
) -> Influence:
    """The influence of each item on the metric of one system.

    With categories the metric is the mean over categories, so an item moves it by what it does to its own category,
    divided by their number. An item without a prediction moves nothing.

    Parameters
    ----------
    pool : Pool
    probabilities : array of shape (n_items, n_classes)
        P(class) of each item; vetted items are certain.
    system : int
        The position of the system.
    n_positives : float or one for each category, optional
        The number of positives if it is known; see `trueup.active.influence.positive_slopes`.

    Returns
    -------
    Influence

    Examples
    --------
    >>> import trueup as tu
    >>> from trueup.active.pool import Pool
    >>> labels = tu.Labels.from_matrix([[0, 0], [1, 0], [1, 1], [1, 1]])
    >>> aligned = tu.Predictions.from_classes([0, 1, 1, 0]).align(labels)
    >>> chances = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9], [0.1, 0.9]])
    >>> pool = Pool(labels, aligned, tu.metrics.get_metric("accuracy", [0, 1]), 1, chances, chances.argmax(axis=1))
    >>> effect = influence(pool, chances)
    >>> round(effect.value, 3), effect.expected_change(chances).round(3).tolist()
    (0.6, [0.045, 0.125, 0.045, 0.045])
    """
    table = np.asarray(probabilities, dtype=float)
    if table.shape != (pool.n_items, pool.n_classes):
        raise InvalidParameter(
            f"probabilities must have the shape {(pool.n_items, pool.n_classes)} of items and classes, "
            f"got {table.shape}"
        )
    effects = np.zeros(table.shape)
    values = []
    for positions, outputs, positives in lists_of(pool, system, n_positives):
        if len(positions) == pool.n_items:
            value, effects = _effects(pool, table, outputs, positives)
        else:
            value, effects[positions] = _effects(pool, table[positions], outputs, positives)
        values.append(value)
    effects /= pool.n_categories
    low, high = pool.metric.bounds
    width = high - low
    if np.isfinite(width):
        # A class that hardly ever occurs has a steep slope; no answer moves the metric further than it can go.
        np.clip(effects, -width, width, out=effects)
    defined = [value for value in values if not np.isnan(value)]
    return Influence(float(np.mean(defined)) if defined else np.nan, effects)


def root_mean_square(of_systems: Sequence[Floats]) -> Floats:
    """Of several systems one number for each item, shape (n_items,)."""
    if len(of_systems) == 1:
        return of_systems[0]
    return np.asarray(np.sqrt(np.mean(np.square(of_systems), axis=0)))


def expected_counts(probabilities: Floats, codes: Codes) -> Floats:
    """The expected confusion counts, shape (n_classes, n_classes), rows the truth.

    Parameters
    ----------
    probabilities : array of shape (n_items, n_classes)
        P(class) of each item.
    codes : integer array of shape (n_items,)
        Predicted classes.

    Examples
    --------
    >>> expected_counts(np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([0, 0])).tolist()
    [[1.25, 0.0], [0.75, 0.0]]
    """
    n_classes = probabilities.shape[1]
    rows = [np.bincount(codes, weights=column, minlength=n_classes) for column in probabilities.T]
    return np.array(rows, dtype=float)


def is_ratio(pool: Pool) -> bool:
    """Whether the metric is of the counts of one system and weighs items by what the system says, such as recall."""
    one = pool.n_systems == 1 and pool.categories is None
    return one and pool.metric.needs == "counts" and not counts_right_only(pool.metric, pool.n_classes)


def raw_deviations(pool: Pool, probabilities: Floats) -> Floats:
    """The root of the expected square of what each item adds to a ratio, shape (n_items,).

    Draws in proportion to it minimise the variance of a ratio of weighted sums, with nothing believed of the items
    that are not drawn (Sawade et al. 2010, Marchant and Rubinstein 2017).
    """
    assert pool.aligned.codes is not None
    codes = pool.aligned.codes[0]
    slopes = count_slopes(pool.metric, expected_counts(probabilities, codes))
    given = np.flatnonzero(codes >= 0)
    squares = np.zeros(pool.n_items)
    squares[given] = np.einsum("nc,cn->n", probabilities[given], slopes[:, codes[given]] ** 2)
    return np.asarray(np.sqrt(squares))


def count_slopes(metric: Metric, counts: Floats) -> Floats:
    """The derivative of a metric by each confusion count, by central differences; 0 where it is undefined.

    Parameters
    ----------
    metric : Metric
    counts : array of shape (n_classes, n_classes)

    Returns
    -------
    array of shape (n_classes, n_classes)

    Examples
    --------
    >>> from trueup.metrics import get_metric
    >>> count_slopes(get_metric("precision", [0, 1]), np.array([[5.0, 1.0], [1.0, 3.0]])).round(4).tolist()
    [[0.0, -0.1875], [0.0, 0.0625]]
    """
    n_classes = len(counts)
    step = _STEP * max(float(counts.sum()), 1.0)
    slopes = np.empty(n_classes**2)
    rows = max(1, _BLOCK // n_classes**2)
    for first in range(0, n_classes**2, rows):
        cells = np.arange(first, min(first + rows, n_classes**2))
        upper = np.repeat(counts.reshape(1, -1), len(cells), axis=0)
        lower = upper.copy()
        at = np.arange(len(cells)), cells
        upper[at] += step
        lower[at] = np.maximum(lower[at] - step, 0.0)
        shape = (len(cells), n_classes, n_classes)
        slopes[cells] = (metric(upper.reshape(shape)) - metric(lower.reshape(shape))) / (upper[at] - lower[at])
    return np.nan_to_num(slopes, nan=0.0, posinf=0.0, neginf=0.0).reshape(n_classes, n_classes)


def lists_of(
    pool: Pool, system: int, n_positives: float | Sequence[float] | None = None
) -> Iterator[tuple[Positions, npt.NDArray[Any], float | None]]:
    """Of each category the positions of its items, what the metric looks at of them, and the known positives.

    An item without an output is in no list. Without categories there is one list.
    """
    if check_integer(system, name="system", low=0) >= pool.n_systems:
        raise InvalidParameter(f"system must be a position below {pool.n_systems}, got {system}")
    outputs = pool.aligned.outputs(pool.used, needed_by=pool.metric.name)[system]
    known = _known_positives(n_positives, pool.n_categories)
    some = np.flatnonzero(pool.aligned.has_output(pool.used)[system])
    for category, places in pool.by_category(some):
        positions = some[places]
        yield positions, outputs if len(positions) == len(outputs) else outputs[positions], known[category]


def _effects(pool: Pool, p: Floats, outputs: npt.NDArray[Any], n_positives: float | None) -> tuple[float, Floats]:
    """The value of one list of items and the effects of its items."""
    metric = pool.metric
    if metric.needs == "scores":
        chance = np.ascontiguousarray(p[:, pool.positive])
        value, slopes = positive_slopes(metric, chance, outputs, n_positives=n_positives)
        effects = np.multiply.outer(-slopes * chance, np.ones(p.shape[1]))
        effects[:, pool.positive] += slopes
        return value, effects
    if metric.needs == "probabilities":
        value, gains = class_slopes(metric, p, outputs)
    elif metric.needs == "counts":
        counts = expected_counts(p, outputs)
        value = float(metric(counts))
        gains = count_slopes(metric, counts).T[outputs]
    else:
        value, of_counts = _function_slopes(metric, expected_counts(p, outputs), pool.labels.classes)
        gains = of_counts.T[outputs]
    return value, gains - np.einsum("nc,nc->n", p, gains)[:, None]


def _function_slopes(metric: Metric, counts: Floats, classes: npt.NDArray[Any]) -> tuple[float, Floats]:
    """What moving one item between true classes does to any function of truths and predictions.

    A function that treats the items alike depends on the counts only. So it is tried on a short list with about the
    expected counts: once as it is, and once for each cell that an item could move to.
    """
    n_classes, total = len(counts), counts.sum()
    short = np.rint(counts * _SMALL / total).astype(int)
    truth = np.repeat(np.arange(n_classes), short.sum(axis=1))
    said = np.concatenate([np.repeat(np.arange(n_classes), row) for row in short])
    cells, rows = [], [truth]
    for column in np.unique(said):
        here = int(short[:, column].argmax())
        item = int(np.flatnonzero((said == column) & (truth == here))[0])
        for c in range(n_classes):
            if c != here:
                moved = truth.copy()
                moved[item] = c
                cells.append((c, int(column)))
                rows.append(moved)
    values = metric.of_labels(np.stack(rows), said, classes=classes)
    slopes = np.zeros((n_classes, n_classes))
    for (c, column), value in zip(cells, values[1:], strict=True):
        slopes[c, column] = np.nan_to_num((value - values[0]) * len(truth) / total)
    return float(values[0]), slopes


def _known_positives(n_positives: float | Sequence[float] | None, n_categories: int) -> list[float | None]:
    if n_positives is None:
        return [None] * n_categories
    known = np.asarray(n_positives, dtype=float)
    if known.shape not in ((), (n_categories,)) or not (np.isfinite(known) & (known >= 0)).all():
        raise InvalidParameter(
            f"n_positives must be a number that is not negative, or one for each of {n_categories} categories, "
            f"got {n_positives!r}"
        )
    return [float(one) for one in np.broadcast_to(known, (n_categories,))]
