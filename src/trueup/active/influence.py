r"""How far the metric moves when the class of one item becomes known.

Let Q be the plug-in value of a metric: that of the expected confusion counts, or the quotient of expected sums of a
ranking metric. The effect of learning that item j is of class c is, to first order,

.. math:: \Delta_{jc} = g_{jc} - \sum_{c'} p_{jc'} g_{jc'}, \qquad g_{jc} = \frac{\partial Q}{\partial p_{jc}},

so it is zero on average. It is exact for what is linear in the truths: accuracy, error, precision, precision@k, and
average precision with a known number of positives.

The plug-in value is the quotient of the expected numerator and the expected denominator of the metric. A slope is its
derivative. Metrics that are linear in the truths (precision@k, Brier score, log loss) have exact slopes: vetting item
j changes their expectation by its slope times :math:`z_j - p_j`. For quotients the slopes are those of first order.

All functions take P(positive) of each item, 0 or 1 for vetted items, and the scores of one system. Items are
independent given these probabilities. Items of equal score enter together, as in `trueup.metrics.average_precision`.

With the items sorted by score and :math:`N_p` positives,

.. math:: N_p E[\mathrm{AP}] = \sum_k \frac{p_k}{k} \Bigl( 1 + \sum_{i<k} p_i \Bigr), \qquad
    s_j = \frac{1}{N_p} \Bigl[ \frac1j \Bigl( 1 + \sum_{i<j} p_i \Bigr) + \sum_{k>j} \frac{p_k}{k} \Bigr]

where :math:`s_j` is the slope: if item j is vetted, E[AP] changes by :math:`(z_j - p_j) s_j`. Nguyen et al. (2018) take
:math:`E[z_k^2]` for :math:`p_k^2` in their equation 9, and their equation 12 is a mean of signed changes.

References
----------
P. Nguyen, D. Ramanan, C. Fowlkes, "Active testing: an efficient and robust framework for estimating accuracy",
ICML 2018.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import roots_laguerre, roots_legendre

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.validation import check_choice, check_integer, check_number, preview
from trueup.answers.prepare import Settings, prepare
from trueup.core.base import base_of, clip_rare
from trueup.data.aligned import AlignedPredictions, OutputKind
from trueup.data.labels import Labels
from trueup.estimators.system_values import counts_right_only
from trueup.estimators.truth import settle_noise
from trueup.exceptions import InvalidParameter, InvalidPredictions, silenced_warnings
from trueup.metrics import (
    Metric,
    auc,
    auc_ovo,
    auc_ovr,
    average_precision,
    brier,
    check_scores,
    log_loss,
    ndcg,
    precision_at_k,
    recall_at_k,
)
from trueup.metrics.ranking import check_k
from trueup.metrics.score_groups import Ranked, rank_items
from trueup.noise import NoiseModel


@dataclass(frozen=True, eq=False)
class Pool:
    """The items that can be vetted, in the order of ``labels.items``.

    Attributes
    ----------
    aligned : AlignedPredictions. What the systems under test say of every item.
    positive : int. Code of the positive class.
    prior : array of shape (n_items, n_classes). P(class | votes) of the noise model.
    noisy : integer array of shape (n_items,). The most probable class given the votes.
    categories : integer array of shape (n_items,), optional
        The category of each item, if the metric is the mean over categories.
    category_names : tuple. Their names, in the order of the codes.
    """

    labels: Labels
    aligned: AlignedPredictions
    metric: Metric
    positive: int
    prior: Floats = field(repr=False)
    noisy: Codes = field(repr=False)
    categories: Codes | None = field(default=None, repr=False)
    category_names: tuple[Any, ...] = ()

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.labels.n_items

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.labels.n_classes

    @property
    def n_systems(self) -> int:
        """Number of systems."""
        return self.aligned.n_systems

    @property
    def n_categories(self) -> int:
        """Number of categories; 1 without any."""
        return 1 if self.categories is None else int(self.categories.max()) + 1

    @property
    def is_ratio(self) -> bool:
        """Whether the metric is of the counts of one system and weighs items by what it says, such as recall."""
        one = self.n_systems == 1 and self.categories is None
        return one and self.metric.needs == "counts" and not counts_right_only(self.metric, self.n_classes)

    @property
    def used(self) -> OutputKind:
        """What of the outputs the metric looks at."""
        return self.metric.looks_at

    def by_category(self, positions: Positions) -> Iterator[tuple[int, Positions]]:
        """Each category that has some of these items, and where among `positions` they stand; one without any."""
        codes = np.zeros(len(positions), dtype=np.int64) if self.categories is None else self.categories[positions]
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(self.n_categories + 1))
        for category, (start, end) in enumerate(pairwise(edges)):
            if end > start:
                yield category, order[start:end]


@dataclass(frozen=True, eq=False)
class State:
    """What a strategy sees.

    Attributes
    ----------
    probabilities : array of shape (n_items, n_classes). Current P(class) of each item; vetted items are certain.
    vetted, available : boolean arrays of shape (n_items,)
        Items with an answer; items that may be asked, i.e. not vetted, not waiting for an answer and not passed.
    """

    pool: Pool
    probabilities: Floats = field(repr=False)
    vetted: Booleans = field(repr=False)
    available: Booleans = field(repr=False)
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)  # what was worked out from this state


def make_pool(
    predictions: Any,
    labels: Labels,
    metric: Any,
    noise: str | NoiseModel | None,
    categories: Any,
    positive: Hashable | None,
) -> Pool:
    """Align, check, and see what the votes say before anyone is asked."""
    call = Settings("ActiveTest", {"metric": metric, "noise": noise, "positive": positive}, {})
    groups, group_names = _categories(categories, labels)
    task = prepare(predictions, labels, settings=call, metrics=metric, noise=noise, positive=positive, one_metric=True)
    name, needs = task.metric.name, task.metric.needs
    if "@" in name and needs == "scores" and not name.startswith("partial"):
        # A list that is shorter than k is found out before anyone is paid to look at it.
        shortest = task.outputs.n_items if groups is None else int(np.bincount(groups).min())
        least = int(float(name.rpartition("@")[2]))
        if least > shortest:
            raise InvalidParameter(f"{name} needs lists of at least {least} items, got one of {shortest}")
    with silenced_warnings():
        if task.noise is None:
            prior = base_of(labels, clip=clip_rare)
        else:
            prior = settle_noise(task.noise, labels, draw=False).posterior(labels)
    outputs = task.outputs_for(task.metric)
    return Pool(labels, outputs, task.metric, task.positive, prior, prior.argmax(axis=1), groups, group_names)


def _categories(categories: Any, labels: Labels) -> tuple[npt.NDArray[np.int64] | None, tuple[Any, ...]]:
    if categories is None:
        return None, ()
    if isinstance(categories, Mapping):
        missing = [item for item in labels.items.tolist() if item not in categories]
        if missing:
            raise InvalidParameter(f"categories must name every item, got none for {preview(missing)}")
        categories = [categories[item] for item in labels.items.tolist()]
    names = list(categories)
    if len(names) != labels.n_items:
        raise InvalidParameter(f"categories must be one for each of {labels.n_items} items, got {len(names)}")
    order = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return np.array([order[name] for name in names], dtype=np.int64), tuple(order)


Method = Literal["exact", "second-order"]
_NODES = 96


def expected_precision_at_k(probabilities: npt.ArrayLike, scores: npt.ArrayLike, *, k: int) -> float:
    r"""The expected share of positives among the k items with the highest scores (Nguyen et al. 2018, eq. 8).

    .. math:: E[\mathrm{Prec@K}] = \frac1K \sum_{i \le K} p_i

    Parameters
    ----------
    probabilities : array of shape (n_items,). P(positive); 0 or 1 for vetted items.
    scores : array of shape (n_items,)
    k : int. From 1 to the number of items. Of items tied at the boundary each counts in part.
    """
    p, s = _inputs(probabilities, scores)
    return float(p @ precision_at_k_slopes(s, k=k))


def precision_at_k_slopes(scores: npt.ArrayLike, *, k: int) -> Floats:
    """How much each item counts for in precision@k: 1/k in the top k, 0 below, a part of it if tied at the boundary."""
    s = check_scores(scores)
    top = check_k(k, len(s))
    edge = np.partition(s, len(s) - top)[len(s) - top]
    above, tied = s > edge, s == edge
    share = (top - np.count_nonzero(above)) / np.count_nonzero(tied)
    return np.asarray((above + tied * share) / top)


def expected_average_precision(
    probabilities: npt.ArrayLike, scores: npt.ArrayLike, *, n_positives: float | None = None, method: Method = "exact"
) -> float:
    r"""The expected average precision.

    With a known number of positives this is the closed form at the top of the module. Without it AP is a ratio A/B of
    dependent sums, B the number of positives. "exact" uses :math:`1/B = \int_0^1 t^{B-1} dt`, which makes of the ratio
    an integral of closed forms,

    .. math:: E[A/B;\, B > 0] = \int_0^1 \frac{G(t)}{t} \tilde A(t)\, dt, \qquad G(t) = \prod_i (1 - p_i + p_i t),

    where :math:`\tilde A(t)` is E[A] under :math:`\tilde p_i = p_i t / (1 - p_i + p_i t)`. "second-order" is

    .. math:: \frac{E A}{E B} - \frac{\mathrm{cov}(A, B)}{(E B)^2} + \frac{E A \, \mathrm{var}(B)}{(E B)^3}.

    Given that there is at least one positive; nan if there cannot be any.

    Parameters
    ----------
    probabilities : array of shape (n_items,). P(positive); 0 or 1 for vetted items.
    scores : array of shape (n_items,)
    n_positives : float, optional
        The number of positives, if it is known whatever the items turn out to be, such as the annotated objects an
        object detector had to find.
    method : {"exact", "second-order"}
        What to do where `n_positives` is not known. "second-order" is about a hundred times as fast.

    Examples
    --------
    >>> round(expected_average_precision([1.0, 0.5, 0.5], [3, 2, 1]), 4)
    0.9583
    >>> round(expected_average_precision([1.0, 0.5, 0.5], [3, 2, 1], n_positives=2), 4)
    0.9583
    """
    p, s = _inputs(probabilities, scores)
    ranked = rank_items(s)
    check_choice(method, get_args(Method), name="method")
    if n_positives is not None:
        return precision_sum(p, ranked) / _positives(n_positives)
    if not p.any():
        return np.nan
    expected = p.sum()
    if method == "second-order":
        above, variances = precision_sum(p, ranked), p * (1 - p)
        # The sum is linear in each truth, so its covariance with a truth is the slope times the truth's variance.
        covariance = variances @ precision_sum_slopes(p, ranked)
        return float(above / expected - covariance / expected**2 + above * variances.sum() / expected**3)
    # Without positives in the draw there is no AP; log1p of -1 is a vetted positive, which rules that out.
    with np.errstate(divide="ignore"):
        some = -np.expm1(np.log1p(-p).sum())
    if expected <= 100:  # then the integrand is smooth enough on [0, 1] as it stands
        nodes, weights = roots_legendre(_NODES)
        times, weights = (1 + nodes) / 2, weights / 2
        log_scale = -np.log(times)
    else:  # The integrand falls like t to the number of positives: t = exp(-x / number) makes it exp(-x) again.
        nodes, weights = roots_laguerre(_NODES)
        times, log_scale = np.exp(-nodes / expected), nodes - np.log(expected)
    total = 0.0
    for t, weight, scale in zip(times, weights, log_scale, strict=True):
        odds = 1 - p + p * t
        total += float(weight * np.exp(np.log(odds).sum() + scale)) * precision_sum(p * t / odds, ranked)
    return total / float(some)


def precision_sum(p: Floats, ranked: Ranked) -> float:
    """The expected sum, over positives, of the precision at their place: N_p·E[AP]."""
    sums, variances = ranked.sums(p), ranked.sums(p * (1 - p))
    return float(((sums * np.cumsum(sums) + variances) / ranked.taken).sum())


def precision_sum_slopes(p: Floats, ranked: Ranked) -> Floats:
    """The derivative of `precision_sum` by each probability; the sum is linear in each of them."""
    sums, taken = ranked.sums(p), ranked.taken
    below = np.cumsum((sums / taken)[::-1])[::-1] - sums / taken
    own = (1 + sums + np.cumsum(sums)) / taken
    return np.asarray(ranked.spread(own + below) - 2 * p * ranked.spread(1 / taken))


def expected_change(probabilities: npt.ArrayLike, slopes: npt.ArrayLike) -> Floats:
    """How far vetting an item is expected to move a metric, either way; for precision@k equation 11 of Nguyen et al."""
    p = _checked_probabilities(probabilities)
    return np.asarray(2 * p * (1 - p) * np.abs(np.asarray(slopes, dtype=float)))  # p |(1 − p) s| + (1 − p) |p s|


def paper_change(
    probabilities: npt.ArrayLike, scores: npt.ArrayLike, vetted: npt.ArrayLike, *, n_positives: float | None = None
) -> Floats:
    r"""Equation 12 of Nguyen et al. (2018) as printed, for the average precision.

    .. math:: \frac{1}{N_p} r_j p_j (1 - p_j), \qquad r_j = \frac1j \, |\{ i < j : i \text{ not vetted} \}|

    It is not what it is called: that is `expected_change`. Ties count by half. A vetted item scores nothing.
    """
    p, s = _inputs(probabilities, scores)
    is_open = ~np.asarray(vetted, dtype=bool)
    if is_open.shape != p.shape:
        raise InvalidParameter(f"vetted must be one truth value for each of {len(p)} items, got shape {is_open.shape}")
    ranked = rank_items(s)
    opened = ranked.sums(is_open.astype(float))
    higher = ranked.spread(np.cumsum(opened) - opened / 2) - is_open / 2
    place = ranked.spread(ranked.starts + (ranked.sizes + 1) / 2)
    total = p.sum() if n_positives is None else _positives(n_positives)
    return np.asarray(is_open * higher / place * p * (1 - p) / (total or 1.0))


def _inputs(probabilities: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Floats, Floats]:
    p, s = _checked_probabilities(probabilities), check_scores(scores)
    if s.shape != p.shape:
        raise InvalidPredictions(f"scores must be one for each of {len(p)} items, got shape {s.shape}; pass one system")
    return p, s


def _checked_probabilities(probabilities: npt.ArrayLike) -> Floats:
    p = np.asarray(probabilities, dtype=float)
    if p.ndim != 1 or not len(p) or not (p.min() >= 0 and p.max() <= 1):
        got = f"shape {p.shape}" if p.ndim != 1 or not len(p) else f"from {p.min()} to {p.max()}"
        raise InvalidParameter(f"probabilities must be one in [0, 1] for each item, got {got}; pass P(positive)")
    return p


def _positives(n_positives: float) -> float:
    return check_number(n_positives, name="n_positives", low=0.0, strict=True)


Valued = tuple[float, Floats]
_STEP = 1e-6  # of the number of items, for differences
_GROUPS = 128  # of items alike in score, at either spacing, where a metric can only be differentiated numerically
_LEAST = float(np.finfo(float).eps)  # as in `trueup.metrics.log_loss`


def positive_slopes(metric: Metric, p: Floats, scores: Floats, *, n_positives: float | None = None) -> Valued:
    """The plug-in value of a metric of scores, and its slope in P(positive) of each item."""
    function = getattr(metric.function, "func", metric.function)  # with options it is a partial one
    options = getattr(metric.function, "keywords", {})
    if function is precision_at_k:
        slopes = precision_at_k_slopes(scores, k=options["k"])
        return float(p @ slopes), slopes
    total = float(p.sum()) if n_positives is None else float(n_positives)
    if total <= 0:
        return np.nan, np.zeros(len(p))
    if function is average_precision:
        ranked = rank_items(scores)
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
    """The plug-in value of a metric of class probabilities, and its slope in P(class) of each item and class."""
    function = getattr(metric.function, "func", metric.function)
    n, n_classes = probabilities.shape
    if function is log_loss:
        losses = -np.log(np.clip(outputs, _LEAST, 1 - _LEAST)) / n
        return float((losses * probabilities).sum()), losses
    if function is brier:
        squares = (1 - outputs) ** 2
        if n_classes > 2:
            squares += (outputs**2).sum(axis=1, keepdims=True) - outputs**2
        squares = squares / n
        return float((squares * probabilities).sum()), squares
    if function in (auc_ovr, auc_ovo):
        parts = [auc_slopes(probabilities[:, c], outputs[:, c]) for c in range(n_classes)]
        values = np.array([value for value, _ in parts])
        defined = int(np.count_nonzero(~np.isnan(values)))
        # The slopes of a class that cannot be judged are zero.
        slopes = np.stack([slopes for _, slopes in parts], axis=1) / max(defined, 1)
        return (float(np.nanmean(values)) if defined else np.nan), slopes
    likeliest = outputs.argmax(axis=1)
    return np.nan, (likeliest[:, None] == np.arange(n_classes)) / n


def _ndcg_slopes(p: Floats, scores: Floats, k: int | None) -> Valued:
    """The gain is linear in the truths; the best gain is that of the expected number of positives."""
    n = len(p)
    places = np.arange(n + 1)
    gain = np.concatenate([[0.0], np.cumsum(1 / np.log2(places[1:] + 1))])
    gain = gain[np.minimum(places, n if k is None else check_k(k, n))]
    ranked = rank_items(scores)
    of_items = ranked.spread((gain[ranked.taken] - gain[ranked.starts]) / ranked.sizes)
    total = float(p.sum())
    best = float(np.interp(total, places, gain))
    last = min(int(total), n - 1)
    value = float(p @ of_items) / best
    return value, (of_items - value * (gain[last + 1] - gain[last])) / best


def _numerical_slopes(metric: Metric, p: Floats, scores: Floats) -> Valued:
    """Differences of the weighted metric of groups of similar items, which are small at the top of the list."""
    n = len(p)
    ranked = rank_items(scores)
    edges = np.unique(np.concatenate([np.geomspace(1, n, _GROUPS), np.linspace(0, n, _GROUPS + 1)]).astype(np.intp))
    starts = np.unique(ranked.starts[np.searchsorted(ranked.starts, edges[edges < n], side="right") - 1])
    groups = Ranked(ranked.order, starts)
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


_BLOCK = 4_000_000  # numbers held at once
_SMALL = 2000  # items of the list on which a function is tried out


@dataclass(frozen=True, eq=False)
class Influence:
    """The plug-in value of a metric, and what learning an item's class would do to it."""

    value: float  # nan where it is undefined or not known
    # shape (n_items, n_classes); the change if the item turns out to be of the class; zero on average over the classes
    # of each item
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
    pool: Pool, probabilities: Floats, *, system: int = 0, n_positives: float | Sequence[float] | None = None
) -> Influence:
    """The influence of each item on the metric of one system."""
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
    """The expected confusion counts, shape (n_classes, n_classes), rows the truth."""
    n_classes = probabilities.shape[1]
    rows = [np.bincount(codes, weights=column, minlength=n_classes) for column in probabilities.T]
    return np.array(rows, dtype=float)


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
    """The derivative of a metric by each confusion count, by central differences; 0 where it is undefined."""
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
    """Of each category the positions of its items, what the metric looks at of them, and the known positives."""
    if check_integer(system, name="system", low=0) >= pool.n_systems:
        raise InvalidParameter(f"system must be a position below {pool.n_systems}, got {system}")
    outputs = pool.aligned.outputs(pool.used, needed_by=pool.metric.name)[system]
    positives = [None] * pool.n_categories
    if n_positives is not None:
        known = np.asarray(n_positives, dtype=float)
        if known.shape not in ((), (pool.n_categories,)) or not (np.isfinite(known) & (known >= 0)).all():
            raise InvalidParameter(
                "n_positives must be a number that is not negative, or one for each of "
                f"{pool.n_categories} categories, got {n_positives!r}"
            )
        positives = np.broadcast_to(known, (pool.n_categories,)).tolist()
    some = np.flatnonzero(pool.aligned.has_output(pool.used)[system])
    for category, places in pool.by_category(some):
        positions = some[places]
        yield positions, outputs if len(positions) == len(outputs) else outputs[positions], positives[category]


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
    """What moving one item between true classes does to any function of truths and predictions."""
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
