r"""How far the metric moves when the class of one item becomes known.

Let Q be the plug-in value of a metric: that of the expected confusion counts, or the quotient of expected sums of a
ranking metric. The effect of learning that item j is of class c is, to first order,

.. math:: \Delta_{jc} = g_{jc} - \sum_{c'} p_{jc'} g_{jc'}, \qquad g_{jc} = \frac{\partial Q}{\partial p_{jc}},

so it is zero on average. It is exact for what is linear in the truths: accuracy, error, precision, precision@k, and
average precision with a known number of positives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import check_integer
from trueup.active.pool import Pool
from trueup.active.score_slopes import class_slopes, positive_slopes
from trueup.estimators.metric_scope import counts_right_only
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric

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
        The number of positives if it is known; see `trueup.active.score_slopes.positive_slopes`.

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
