r"""Has a share changed? A test of counts batch by batch that may be looked at after every batch, for ever.

If nothing changed, the items of all batches are exchangeable. So of the ``K`` hits among the ``M`` items so far, those
among the ``n`` newest are hypergeometric, whatever the share itself is: the p-value of the newest 1, 2, 3, 5, 8, …
batches against all before is exact, and knows no unknown baseline. Every look and every window has a share of the
permitted false alarms, and all shares together are at most one:

.. math:: \alpha_{j,w} = \alpha \, b_w \, \frac{\log(19.5)}{(j + 19)\log^2(j + 19)}, \qquad \sum_w b_w = 1, \qquad
          \sum_{j \ge 1} \sum_w \alpha_{j,w} \le \alpha,

since :math:`1/(x \log^2 x)` is convex, so that each term is at most its integral from half a step before to half a step
after. By the union bound the chance that any look, however many there are, raises a false alarm is at most
:math:`\alpha`. Inverted, that is a confidence sequence of the difference: an alarm is where it excludes zero.

Batches may differ from one another more than their items explain (weekdays, topics), by some dispersion
:math:`\varphi \ge 1`. What tells of it are the Pearson residuals of the batches before a window, each against those
before it: they are independent of the window, and their :math:`\nu` squares add up to
:math:`S \sim \varphi \chi^2_\nu`. The p-value is its mean over what they leave open,

.. math:: p = \int 2 \, \Phi(-|z| / \sqrt\varphi) \, \pi(d\varphi \mid S, \nu), \qquad
          \pi = \tfrac12 \delta_1 + \tfrac12 \, a \, \varphi^{-1-a} \quad (\varphi \ge 1,\ a = 0.1),

with :math:`z` the normal score of the hypergeometric p-value. Where items explain all, the first part keeps the power
of the exact test; where batches clearly differ it has no weight left, and the second is the test of Student with
:math:`\nu` degrees of freedom, but for the little that its proper prior knows. That never makes a p-value smaller, so
the bound above stays; with real differences between batches it is an approximation, which the tests measure for any
dispersion and short baselines, and ``benchmarks/judges.py`` for whole monitors.

References
----------
H. Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41,
1970 (sequences of intervals). A. Tartakovsky, I. Nikiforov, M. Basseville, "Sequential Analysis: Hypothesis Testing and
Changepoint Detection", CRC Press, 2014 (windows against what was before). R. L. Brown, J. Durbin, J. M. Evans,
"Techniques for testing the constancy of regression relationships over time", JRSS B 37, 1975 (recursive residuals).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp, ndtr, ndtri_exp, xlogy

from trueup._base.types import Floats

Counts = npt.NDArray[np.int64]

# Batches since a change, each with its part of the permitted false alarms: one of them meets a change of any age.
WINDOWS = {1: 0.1, 2: 0.2, 3: 0.2, 5: 0.15, 8: 0.1, 13: 0.1, 21: 0.05, 34: 0.05, 55: 0.05}
_SHIFT = 19  # looks over which the permitted false alarms are spread about evenly
# What is held of the dispersion before any batch: that it is 1, and else how fast it thins out. With less for the first
# or a greater second, small changes take longer; with more, batches that differ a little raise more than is permitted.
_NO_EXCESS, _THINNING = 0.5, 0.1
_DISPERSIONS = 60  # points of the mean over it; the p-value is then off by less than one part in a thousand


@dataclass(frozen=True)
class Change:
    """A share that differs from what it was.

    Attributes
    ----------
    look : int
        The place of the batch after which that was seen, from 0 on.
    first : int
        The place of the first batch that differs, as the counts up to that look have it likeliest.
    before, after : float
        The share in the batches before that one, and since.
    n_before, n_after : int
        Items.
    chance : float
        At most so probable if nothing had changed, all looks and windows counted.
    """

    look: int
    first: int
    before: float
    after: float
    n_before: int
    n_after: int
    chance: float


def share_of_look(look: int | Counts) -> Floats:
    """The part of the permitted false alarms that the j-th look may use, j from 1 on; all together at most 1.

    Examples
    --------
    >>> [round(float(share_of_look(j)), 4) for j in (1, 20, 200)]
    [0.0165, 0.0057, 0.0005]
    >>> bool(share_of_look(np.arange(1, 10**6)).sum() < 1)
    True
    """
    place = np.asarray(look, dtype=np.float64) + _SHIFT
    return np.asarray(math.log(_SHIFT + 0.5) / (place * np.log(place) ** 2))


def dispersions(hits: Counts, sizes: Counts) -> Floats:
    """How much more batches differ than their items explain, from those before each place; at least 1.

    Returns
    -------
    array of shape (n + 1,)
        At place k of the first k batches.
    """
    squares, n_telling = _residuals(hits, sizes)
    return np.asarray(np.maximum(squares / np.maximum(n_telling, 1), 1.0))


def _residuals(hits: Counts, sizes: Counts) -> tuple[Floats, Counts]:
    """The sum of squares, and the number, of the residuals of the batches before each place.

    The residual of a batch is against those before it and itself, so that all of them are independent.
    """
    n_all, k_all = np.cumsum(sizes)[1:], np.cumsum(hits)[1:]
    m, x = sizes[1:], hits[1:]
    share = k_all / n_all
    spread = m * share * (1 - share) * (n_all - m) / np.maximum(n_all - 1, 1)
    tells = spread > 0
    squares = np.where(tells, (x - m * share) ** 2 / np.where(tells, spread, 1.0), 0.0)
    return np.concatenate([[0.0, 0.0], np.cumsum(squares)]), np.concatenate([[0, 0], np.cumsum(tells)])


def find_change(hits: Counts, sizes: Counts, *, false_alarms: float, baseline: int) -> Change | None:
    """The first look at which a share is not what it was; None where there is none.

    Parameters
    ----------
    hits, sizes : int array of shape (n_batches,)
        Items for which something holds, and items, of each batch; no batch is empty.
    false_alarms : float
        The chance with which this may ever happen without a change.
    baseline : int
        Batches that there are before the first look, and before any window.

    Examples
    --------
    >>> sizes = np.full(20, 200)
    >>> steady = np.tile([165, 168, 171, 164], 5)
    >>> find_change(steady, sizes, false_alarms=0.05, baseline=10) is None
    True
    >>> fallen = np.where(np.arange(20) < 15, steady, steady - 30)
    >>> change = find_change(fallen, sizes, false_alarms=0.05, baseline=10)
    >>> change.first, change.look, round(change.before, 2), round(change.after, 2)
    (15, 15, 0.84, 0.67)
    """
    n = len(sizes)
    if n <= baseline:
        return None
    sums, totals = (np.concatenate([[0], np.cumsum(part)]) for part in (hits, sizes))
    ends, windows = np.meshgrid(np.arange(baseline + 1, n + 1), np.array(list(WINDOWS)), indexing="ij")
    starts = ends - windows
    limits = false_alarms * share_of_look(ends - baseline) * np.array(list(WINDOWS.values()))
    usable = starts >= baseline
    starts = np.where(usable, starts, baseline)
    squares, n_telling = (part[starts] for part in _residuals(hits, sizes))
    table = sums[ends] - sums[starts], totals[ends] - totals[starts], sums[ends], totals[ends]
    # A tail is at least its first term, so that nearly all looks need no sum of terms.
    least = np.minimum(math.log(2) + _log_probability(*table), 0.0)
    near = usable & (least <= np.log(limits))
    near[near] = _given_dispersion(least[near], squares[near], n_telling[near]) <= limits[near]
    for row in np.flatnonzero(near.any(axis=1)):
        close = np.flatnonzero(near[row])
        tails = [_log_two_sided(*map(int, cells)) for cells in zip(*(part[row, close] for part in table), strict=True)]
        values = _given_dispersion(np.array(tails), squares[row, close], n_telling[row, close])
        chances = false_alarms * values / limits[row, close]
        best = int(chances.argmin())
        if chances[best] <= false_alarms:
            end = int(ends[row, close[best]])
            start = _likeliest_start(sums[: end + 1], totals[: end + 1], baseline)
            return Change(
                end - 1,
                start,
                float(sums[start] / totals[start]),
                float((sums[end] - sums[start]) / (totals[end] - totals[start])),
                int(totals[start]),
                int(totals[end] - totals[start]),
                float(chances[best]),
            )
    return None


def _likeliest_start(sums: Counts, totals: Counts, baseline: int) -> int:
    """Since when two shares describe the counts best."""
    starts = np.arange(baseline, len(sums) - 1)

    def likelihood(hits: Counts, n: Counts) -> Floats:
        return np.asarray(xlogy(hits, hits / n) + xlogy(n - hits, 1 - hits / n))

    before = likelihood(sums[starts], totals[starts])
    return int(starts[(before + likelihood(sums[-1] - sums[starts], totals[-1] - totals[starts])).argmax()])


def _log_probability(hits: Counts, n: Counts, all_hits: Counts, n_all: Counts) -> Floats:
    """Log of the hypergeometric probability of some hits among n of all."""

    def log_choose(of: Counts, some: Counts) -> Floats:
        return np.asarray(gammaln(of + 1) - gammaln(some + 1) - gammaln(of - some + 1))

    return log_choose(all_hits, hits) + log_choose(n_all - all_hits, n - hits) - log_choose(n_all, n)


def _log_two_sided(hits: int, n: int, all_hits: int, n_all: int) -> float:
    """Log of twice the tail on the side on which the hits lie, of at most 1: that of the test of Fisher."""
    low, high = max(0, n - (n_all - all_hits)), min(n, all_hits)
    is_few = hits * n_all <= n * all_hits
    tail = np.arange(low, hits + 1) if is_few else np.arange(hits, high + 1)
    return min(math.log(2) + float(logsumexp(_log_probability(tail, *np.array([n, all_hits, n_all])))), 0.0)


def _given_dispersion(log_values: Floats, squares: Floats, n_telling: Counts) -> Floats:
    """P-values where batches differ as much more than their items explain as the residuals before them leave open.

    Parameters
    ----------
    log_values : array of shape (n,)
        Logs of p-values from items alone; logs, since among great batches small differences are beyond all numbers.
    squares, n_telling : array of shape (n,)
        Sum of squares of the residuals, and their number.
    """
    scores = ndtri_exp(log_values - math.log(2))
    half = np.maximum(n_telling, 1) / 2
    reach = np.log(np.maximum(squares / (2 * half), 1.0)) + 10 / np.sqrt(half) + 2
    places = (np.arange(_DISPERSIONS) + 0.5) / _DISPERSIONS
    excess = reach[:, None] * places**1.5  # logs of dispersions, closer to one another near none
    steps = reach[:, None] * 1.5 * np.sqrt(places) / _DISPERSIONS
    log_weights = (
        math.log((1 - _NO_EXCESS) * _THINNING)
        + np.log(steps)
        - (n_telling[:, None] / 2 + _THINNING) * excess
        - squares[:, None] / 2 * np.exp(-excess)
    )
    log_weights = np.column_stack([math.log(_NO_EXCESS) - squares / 2, log_weights])
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    roots = np.exp(np.column_stack([np.zeros(len(scores)), excess]) / 2)
    tails = 2 * ndtr(scores[:, None] / roots)
    return np.asarray((weights * tails).sum(axis=1) / weights.sum(axis=1))
