r"""What precision@k and average precision are expected to be, and how far one answer of an expert moves them.

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

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import roots_laguerre, roots_legendre

from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_number
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics import check_scores
from trueup.metrics.ranking import check_k

Method = Literal["exact", "second-order"]
_METHODS: tuple[Method, ...] = ("exact", "second-order")
_NODES = 96
_FEW_POSITIVES = 100.0  # expected ones, up to which the integrand is smooth enough on [0, 1] as it stands


@dataclass(frozen=True, eq=False)
class RankedList:
    """The items from the highest score to the lowest, and where each group of equal scores starts.

    Examples
    --------
    >>> RankedList.of(np.array([0.1, 0.9, 0.9])).order.tolist()
    [1, 2, 0]
    """

    order: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]

    @classmethod
    def of(cls, scores: Floats) -> RankedList:
        """The list of these scores."""
        order = np.argsort(-scores, kind="stable")
        moved = scores[order]
        return cls(order, np.flatnonzero(np.concatenate([[True], moved[1:] != moved[:-1]])))

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        """The number of items of each group."""
        return np.diff(self.starts, append=len(self.order))

    @property
    def taken(self) -> npt.NDArray[np.intp]:
        """The number of items of each group and all above it."""
        return self.starts + self.sizes

    def sums(self, of_items: Floats) -> Floats:
        """Sums over each group of values of the items, given in the items' own order."""
        return np.asarray(np.add.reduceat(of_items[self.order], self.starts))

    def spread(self, of_groups: Floats) -> Floats:
        """Values of the groups as values of the items, in the items' own order."""
        values = np.empty(len(self.order))
        values[self.order] = np.repeat(of_groups, self.sizes)
        return values


def expected_precision_at_k(probabilities: npt.ArrayLike, scores: npt.ArrayLike, *, k: int) -> float:
    r"""The expected share of positives among the k items with the highest scores (Nguyen et al. 2018, eq. 8).

    .. math:: E[\mathrm{Prec@K}] = \frac1K \sum_{i \le K} p_i

    Parameters
    ----------
    probabilities : array of shape (n_items,)
        P(positive); 0 or 1 for vetted items.
    scores : array of shape (n_items,)
    k : int
        From 1 to the number of items. Of items tied at the boundary each counts in part.

    Examples
    --------
    >>> expected_precision_at_k([1.0, 0.5, 0.9], [3, 2, 1], k=2)
    0.75
    """
    p, s = _inputs(probabilities, scores)
    return float(p @ precision_at_k_slopes(s, k=k))


def precision_at_k_slopes(scores: npt.ArrayLike, *, k: int) -> Floats:
    """How much each item counts for in precision@k: 1/k in the top k, 0 below, a part of it if tied at the boundary.

    Parameters
    ----------
    scores : array of shape (n_items,)
    k : int

    Returns
    -------
    array of shape (n_items,)

    Examples
    --------
    >>> precision_at_k_slopes([0.9, 0.2, 0.8, 0.2], k=3).round(3).tolist()
    [0.333, 0.167, 0.333, 0.167]
    """
    s = _checked_scores(scores)
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

    Parameters
    ----------
    probabilities : array of shape (n_items,)
        P(positive); 0 or 1 for vetted items.
    scores : array of shape (n_items,)
    n_positives : float, optional
        The number of positives, if it is known whatever the items turn out to be, such as the annotated objects an
        object detector had to find.
    method : {"exact", "second-order"}
        What to do where `n_positives` is not known. "second-order" is about a hundred times as fast.

    Returns
    -------
    float
        Given that there is at least one positive; nan if there cannot be any.

    Examples
    --------
    >>> round(expected_average_precision([1.0, 0.5, 0.5], [3, 2, 1]), 4)
    0.9583
    >>> round(expected_average_precision([1.0, 0.5, 0.5], [3, 2, 1], n_positives=2), 4)
    0.9583
    """
    p, s = _inputs(probabilities, scores)
    ranked = RankedList.of(s)
    how = check_choice(method, _METHODS, name="method")
    if n_positives is not None:
        return precision_sum(p, ranked) / _positives(n_positives)
    if not p.any():
        return np.nan
    if how == "second-order":
        return _second_order(p, ranked)
    return _integrated(p, ranked)


def precision_sum(p: Floats, ranked: RankedList) -> float:
    """The expected sum, over positives, of the precision at their place: N_p·E[AP]."""
    sums, variances = ranked.sums(p), ranked.sums(p * (1 - p))
    return float(((sums * np.cumsum(sums) + variances) / ranked.taken).sum())


def precision_sum_slopes(p: Floats, ranked: RankedList) -> Floats:
    """The derivative of `precision_sum` by each probability; the sum is linear in each of them."""
    sums, taken = ranked.sums(p), ranked.taken
    below = np.cumsum((sums / taken)[::-1])[::-1] - sums / taken
    own = (1 + sums + np.cumsum(sums)) / taken
    return np.asarray(ranked.spread(own + below) - 2 * p * ranked.spread(1 / taken))


def expected_change(probabilities: npt.ArrayLike, slopes: npt.ArrayLike) -> Floats:
    r"""How far vetting an item is expected to move the expectation of a metric, either way.

    .. math:: p_j |(1 - p_j) s_j| + (1 - p_j) |p_j s_j| = 2 p_j (1 - p_j) |s_j|

    For precision@k this is equation 11 of Nguyen et al. (2018).

    Parameters
    ----------
    probabilities : array of shape (n_items,)
        P(positive).
    slopes : array of shape (n_items,)
        From `precision_at_k_slopes` or `trueup.active.influence.positive_slopes`.

    Returns
    -------
    array of shape (n_items,)

    Examples
    --------
    >>> expected_change([1.0, 0.5, 0.9], precision_at_k_slopes([3, 2, 1], k=2)).tolist()
    [0.0, 0.25, 0.0]
    """
    p = _checked_probabilities(probabilities)
    return np.asarray(2 * p * (1 - p) * np.abs(np.asarray(slopes, dtype=float)))


def paper_change(
    probabilities: npt.ArrayLike, scores: npt.ArrayLike, vetted: npt.ArrayLike, *, n_positives: float | None = None
) -> Floats:
    r"""Equation 12 of Nguyen et al. (2018) as printed, for the average precision.

    .. math:: \frac{1}{N_p} r_j p_j (1 - p_j), \qquad r_j = \frac1j \, |\{ i < j : i \text{ not vetted} \}|

    It is not what it is called: see `expected_change` for the expected change. Ties
    count by half. A vetted item scores nothing.

    Parameters
    ----------
    probabilities, scores
        As for `expected_average_precision`.
    vetted : boolean array of shape (n_items,)
    n_positives : float, optional
        By default the expected number.

    Returns
    -------
    array of shape (n_items,)

    Examples
    --------
    >>> paper_change([0.5, 0.5, 0.5], [3, 2, 1], [False, False, False], n_positives=1).round(4).tolist()
    [0.0, 0.125, 0.1667]
    """
    p, s = _inputs(probabilities, scores)
    is_open = ~np.asarray(vetted, dtype=bool)
    if is_open.shape != p.shape:
        raise InvalidParameter(f"vetted must be one truth value for each of {len(p)} items, got shape {is_open.shape}")
    ranked = RankedList.of(s)
    opened = ranked.sums(is_open.astype(float))
    higher = ranked.spread(np.cumsum(opened) - opened / 2) - is_open / 2
    place = ranked.spread(ranked.starts + (ranked.sizes + 1) / 2)
    total = p.sum() if n_positives is None else _positives(n_positives)
    return np.asarray(is_open * higher / place * p * (1 - p) / (total or 1.0))


def _second_order(p: Floats, ranked: RankedList) -> float:
    total, variances = p.sum(), p * (1 - p)
    above = precision_sum(p, ranked)
    # The sum is linear in each truth, so its covariance with a truth is the slope times the truth's variance.
    covariance = variances @ precision_sum_slopes(p, ranked)
    return float(above / total - covariance / total**2 + above * variances.sum() / total**3)


def _integrated(p: Floats, ranked: RankedList) -> float:
    expected = p.sum()
    # Without positives in the draw there is no AP; log1p of -1 is a vetted positive, which rules that out.
    with np.errstate(divide="ignore"):
        some = -np.expm1(np.log1p(-p).sum())
    if expected <= _FEW_POSITIVES:
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


def _inputs(probabilities: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Floats, Floats]:
    p, s = _checked_probabilities(probabilities), _checked_scores(scores)
    if s.shape != p.shape:
        raise InvalidPredictions(
            f"scores must be one for each of {len(p)} items, got shape {s.shape}; pass one system at a time"
        )
    return p, s


def _checked_probabilities(probabilities: npt.ArrayLike) -> Floats:
    p = np.asarray(probabilities, dtype=float)
    if p.ndim != 1 or not len(p) or not (p.min() >= 0 and p.max() <= 1):
        raise InvalidParameter(f"probabilities must be one in [0, 1] for each item, got {_shown(p)}; pass P(positive)")
    return p


def _checked_scores(scores: npt.ArrayLike) -> Floats:
    check_scores(scores)
    return np.asarray(scores, dtype=float)


def _positives(n_positives: float) -> float:
    return check_number(n_positives, name="n_positives", low=0.0, strict=True)


def _shown(values: npt.NDArray[Any]) -> str:
    return f"shape {values.shape}" if values.ndim != 1 or not len(values) else f"from {values.min()} to {values.max()}"
