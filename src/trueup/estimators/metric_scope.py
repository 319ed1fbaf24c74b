"""What of the truth a metric looks at: right or wrong alone, one class against the others, or every class.

Metrics are functions, some of them by users, so this is found by trial: two tables of counts that agree in what the
metric is thought to look at, and differ in the rest, have the same value. Both are fixed, have no two equal cells and
all classes, so that they do not agree by accident.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trueup._base.types import Booleans, Codes, Floats
from trueup.data.aligned import AlignedPredictions
from trueup.metrics import Metric
from trueup.metrics.counts import confusion_counts

_MOST_CLASSES = 200  # of which each is tried as the only one
_CLOSE = 1e-9
_RARE = 1e-3  # the share of a class that an average over classes does not let vanish
_LEAST_PART = 0.05  # of what is due to one class of an average, by which its cells move the metric if they count
_BLOCK = 5_000_000  # numbers held at once


def counts_right_only(metric: Metric, n_classes: int) -> bool:
    """Whether a metric of counts depends on nothing but how many items are predicted right, as accuracy does."""
    if metric.needs != "counts":
        return False
    cells = np.eye(n_classes, dtype=np.int64)
    return _depends_on_sums(metric, cells)


def only_class(metric: Metric, n_classes: int, positive: int) -> int | None:
    """The class that a metric of counts looks at, with all others as one; None if it tells more classes apart.

    With two classes it is the positive one, for either tells the whole.
    """
    if n_classes == 2:
        return positive
    if metric.needs != "counts":
        return None
    order = [positive, *(c for c in range(n_classes) if c != positive)] if n_classes <= _MOST_CLASSES else [positive]
    for one in order:
        is_one = np.arange(n_classes) == one
        if _depends_on_sums(metric, 2 * is_one[:, None] + is_one[None, :]):
            return one
    return None


def _depends_on_sums(metric: Metric, groups: Codes) -> bool:
    """Whether the metric is the same for two tables whose sums over groups of cells are equal."""
    flat = groups.ravel()
    size = len(flat)
    first = 20.0 + 10.0 * np.sin(1.0 + 1.7 * np.arange(size))
    second = 20.0 + 10.0 * np.sin(2.0 + 2.3 * np.arange(size))
    sums = np.bincount(flat, weights=first) / np.maximum(np.bincount(flat, weights=second), _CLOSE)
    second = second * sums[flat]
    values = metric(np.stack([first, second]).reshape(2, *groups.shape))
    return bool(np.abs(values[0] - values[1]) <= _CLOSE * max(1.0, abs(float(values[0]))))


def gold_in_denominator(metric: Metric, outputs: AlignedPredictions, gold: Codes, positive: int) -> int:
    """How many vetted items the metric looks at: the least over systems.

    Parameters
    ----------
    metric : Metric
    outputs : AlignedPredictions
    gold : integer array of shape (n_items,)
        The class of vetted items, -1 for the others.
    positive : int
        Code of the positive class.

    Returns
    -------
    int
        Of a metric of counts, the items in cells (truth, prediction) whose count moves it: for recall the positives,
        for precision those predicted positive, for F1 all but true negatives. A metric of scores compares positives
        with negatives: twice the rarer of them. Of an average over classes in the same way: so many times the rarest
        class as there are classes.

    Examples
    --------
    >>> import trueup as tu
    >>> labels = tu.Labels.from_matrix([[0, 0], [0, 1], [1, 1], [1, 1]])
    >>> outputs = tu.Predictions.from_classes([0, 1, 1, 1]).align(labels)
    >>> gold = np.array([0, 0, 1, -1])
    >>> from trueup.metrics import get_metric
    >>> [gold_in_denominator(get_metric(name, [0, 1]), outputs, gold, 1) for name in ("recall", "precision", "f1")]
    [1, 2, 2]
    """
    vetted = (gold >= 0) & outputs.has_output(metric.looks_at)
    return min((_count_looked_at(metric, outputs, k, row, gold, positive) for k, row in enumerate(vetted)), default=0)


def _count_looked_at(
    metric: Metric, outputs: AlignedPredictions, system: int, vetted: Booleans, gold: Codes, positive: int
) -> int:
    truth = gold[vetted]
    if metric.needs == "scores":
        n_positive = int((truth == positive).sum())
        return 2 * min(n_positive, len(truth) - n_positive)
    if metric.needs != "counts":
        return len(truth)
    n_classes = outputs.n_classes
    codes = outputs.outputs("classes")[system, vetted]
    counts = confusion_counts(truth, codes, n_classes)
    occupied = np.argwhere(counts > 0)
    moves = np.zeros(len(occupied), dtype=bool)
    # A second table, since a slope may be zero at one by accident.
    for table in (counts + 1.0, counts + 1.0 + 0.5 * np.sin(1.0 + np.arange(counts.size)).reshape(counts.shape)):
        moves |= _moves_metric(metric, table, occupied)
    looked_at = int(counts[tuple(occupied[moves].T)].sum())
    occurring = np.union1d(truth, outputs.outputs("classes")[system])
    return min(looked_at, n_classes * _least_of_classes(metric, counts, occurring[occurring >= 0], looked_at))


def _least_of_classes(metric: Metric, counts: Floats, classes: Codes, otherwise: int) -> int:
    """Of an average over classes, how many items the class has that has fewest; the other number for other metrics.

    In an average a class counts as much as the others, however rare it is. Whether it is its items that count then, as
    for recall, or those predicted to be of it, as for precision, or both, is found by making one class rare.
    """
    n_classes = len(counts)
    if not 2 < n_classes <= _MOST_CLASSES:
        return otherwise
    table = 20.0 + 10.0 * np.sin(1.0 + 1.7 * np.arange(n_classes**2)).reshape(n_classes, n_classes)
    least = otherwise
    for one in classes:
        others = np.arange(n_classes) != one
        rare = table.copy()
        rare[one] *= _RARE
        rare[others, one] *= _RARE
        more_missed, more_claimed = rare.copy(), rare.copy()
        more_missed[one, others] *= 10
        more_claimed[others, one] *= 10
        value, missed, claimed = metric(np.stack([rare, more_missed, more_claimed]))
        by_row, by_column = (abs(float(moved - value)) > _LEAST_PART / n_classes for moved in (missed, claimed))
        if by_row or by_column:
            items = counts[one, one] + by_row * counts[one, others].sum() + by_column * counts[others, one].sum()
            least = min(least, int(items))
    return least


def _moves_metric(metric: Metric, table: Floats, cells: Codes) -> Booleans:
    """Which of the cells the metric depends on, by one item more in each."""
    value = float(metric(table))
    moves = np.empty(len(cells), dtype=bool)
    rows = max(1, _BLOCK // table.size)
    for first in range(0, len(cells), rows):
        some = cells[first : first + rows]
        tables = np.repeat(table[None], len(some), axis=0)
        tables[np.arange(len(some)), some[:, 0], some[:, 1]] += 1.0
        moves[first : first + rows] = np.abs(metric(tables) - value) > _CLOSE
    return moves


def collapse_outputs(outputs: AlignedPredictions, one_class: int) -> AlignedPredictions:
    """Predicted classes as 1 for one class and 0 for all others; -1 stays."""
    codes = outputs.outputs("classes")
    return replace(outputs, codes=np.where(codes < 0, codes, codes == one_class).astype(codes.dtype), n_classes=2)
