"""Whether a metric looks at right and wrong alone.

Metrics are functions, some of them by users, so this is found by trial: two tables of counts that agree in what the
metric is thought to look at, and differ in the rest, have the same value. Both are fixed, have no two equal cells and
all classes, so that they do not agree by accident.
"""

from __future__ import annotations

import numpy as np

from trueup._base.types import Codes
from trueup.metrics import Metric

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
