"""Whether a metric looks at right and wrong alone.

Metrics are functions, some of them by users, so this is found by trial: two tables of counts with as many right and as
many wrong items have the same value. Both are fixed and have no two equal cells, so that they do not agree by accident.
"""

from __future__ import annotations

import numpy as np

from trueup.metrics import Metric

_CLOSE = 1e-9


def counts_right_only(metric: Metric, n_classes: int) -> bool:
    """Whether a metric of counts depends on nothing but how many items are predicted right, as accuracy does."""
    if metric.needs != "counts":
        return False
    is_right = np.eye(n_classes, dtype=bool)
    cells = np.arange(n_classes**2).reshape(n_classes, n_classes)
    first = 20.0 + 10.0 * np.sin(1.0 + 1.7 * cells)
    second = 20.0 + 10.0 * np.sin(2.0 + 2.3 * cells)
    for group in (is_right, ~is_right):
        second[group] *= first[group].sum() / max(second[group].sum(), _CLOSE)
    values = metric(np.stack([first, second]))
    return bool(np.abs(values[0] - values[1]) <= _CLOSE * max(1.0, abs(float(values[0]))))
