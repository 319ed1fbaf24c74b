"""What every metric keeps to, as checks that anyone can run on a new one; CONTRIBUTING.md has an example.

Each check takes a metric, of whatever it needs, and the number of classes it is for.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup._base.types import Codes, Floats
from trueup.metrics import Metric, confusion_counts

_N_ITEMS, _N_DRAWS = 40, 6
_SCALE = 3.5


@dataclass(frozen=True)
class _Example:
    """Drawn truths, and what a system says of the same items."""

    truths: Codes
    scores: Floats
    probabilities: Floats

    def evaluate(self, metric: Metric, *, weights: Floats | None = None) -> Floats:
        """The metric for each truth, shape (n_draws,), whatever it needs."""
        if metric.needs == "counts":
            return metric.of_counts(self.counts)
        if metric.needs == "labels":
            return metric.of_labels(self.truths, self.codes)
        outputs = self.scores if metric.needs == "scores" else self.probabilities
        return metric.of_outputs(self.truths, outputs, positive=1, weights=weights)

    @property
    def codes(self) -> Codes:
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def counts(self) -> Floats:
        return confusion_counts(self.truths, self.codes, self.probabilities.shape[1])

    def take(self, *, draws: Any = slice(None), items: Any = slice(None)) -> _Example:
        """Some of the draws, or the items in another order."""
        return _Example(self.truths[draws][:, items], self.scores[items], self.probabilities[items])


def _example(n_classes: int, seed: int = 0) -> _Example:
    """Every class occurs in every truth and in the predictions; some scores are equal."""
    rng = np.random.default_rng(seed)
    truths = rng.integers(0, n_classes, (_N_DRAWS, _N_ITEMS))
    truths[:, :n_classes] = np.arange(n_classes)
    probabilities = rng.dirichlet(np.ones(n_classes), _N_ITEMS)
    probabilities[n_classes : 2 * n_classes] = 0.8 * np.eye(n_classes) + 0.2 / n_classes
    return _Example(truths, probabilities[:, 1].round(1), probabilities)


def check_batches(metric: Metric, n_classes: int = 2) -> None:
    """Many truths at once give one value each, the value that each gives alone."""
    example = _example(n_classes)
    values = example.evaluate(metric)
    assert values.shape == (_N_DRAWS,), f"{_N_DRAWS} truths gave values of shape {values.shape}"
    alone = np.concatenate([example.take(draws=[k]).evaluate(metric) for k in range(_N_DRAWS)])
    np.testing.assert_allclose(values, alone, rtol=1e-9, atol=1e-12)
    if metric.needs == "counts":
        table = example.counts.reshape(2, _N_DRAWS // 2, n_classes, n_classes)
        np.testing.assert_allclose(metric.of_counts(table).ravel(), values, rtol=1e-9, atol=1e-12)
        assert metric.of_counts(table[0, 0]).shape == ()


def check_bounds(metric: Metric, n_classes: int = 2) -> None:
    """Values lie within the bounds, for good systems, bad ones and in between."""
    low, high = metric.bounds
    for seed in range(5):
        example = _example(n_classes, seed)
        right = np.eye(n_classes)[example.truths[0]]
        best, worst = (_Example(example.truths, table[:, 1], table) for table in (right, np.roll(right, 1, axis=1)))
        for system in (example, best, worst):
            values = system.evaluate(metric)
            inside = np.isnan(values) | ((values >= low - 1e-9) & (values <= high + 1e-9))
            assert inside.all(), f"{values[~inside]} beyond the bounds {metric.bounds}"


def check_undefined(metric: Metric, n_classes: int = 2) -> None:
    """A truth of one class gives a value or nan, without a warning; so do counts without any item."""
    example = _example(n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for c in range(n_classes):
            values = _Example(np.full_like(example.truths, c), example.scores, example.probabilities).evaluate(metric)
            assert not np.isinf(values).any(), "what is undefined must be nan, not infinite"
        if metric.needs == "counts":
            assert not np.isinf(metric.of_counts(np.zeros((n_classes, n_classes)))), "undefined must be nan"


def check_order(metric: Metric, n_classes: int = 2) -> None:
    """The order of the items does not matter."""
    example = _example(n_classes)
    order = np.random.default_rng(1).permutation(_N_ITEMS)
    np.testing.assert_allclose(example.take(items=order).evaluate(metric), example.evaluate(metric), rtol=1e-9)


def check_scale(metric: Metric, n_classes: int = 2) -> None:
    """A metric of counts within bounds is a rate: all counts times the same number change nothing."""
    if metric.needs == "counts" and np.isfinite(metric.bounds).all():
        counts = _example(n_classes).counts
        np.testing.assert_allclose(metric.of_counts(_SCALE * counts), metric.of_counts(counts), rtol=1e-9, atol=1e-12)


def check_weights(metric: Metric, n_classes: int = 2) -> None:
    """For metrics of scores and probabilities, weights that are all alike are as good as none."""
    if metric.looks_at == "classes":
        return
    example = _example(n_classes)
    for weight in (1.0, _SCALE):
        values = example.evaluate(metric, weights=np.full(example.truths.shape, weight))
        np.testing.assert_allclose(values, example.evaluate(metric), rtol=1e-9, atol=1e-12)


def check_pickle(metric: Metric, n_classes: int = 2) -> None:
    """A metric can be sent to another process, and is the same there."""
    again = pickle.loads(pickle.dumps(metric))
    example = _example(n_classes)
    assert (again.name, again.needs, again.bounds) == (metric.name, metric.needs, metric.bounds)
    np.testing.assert_array_equal(example.evaluate(again), example.evaluate(metric))


def check_description(metric: Metric, n_classes: int = 2) -> None:
    """What it is, in words that can stand in a sentence: one line, no full stop."""
    assert metric.description, "a report needs a description"
    assert "\n" not in metric.description
    assert not metric.description.endswith(".")


METRIC_CHECKS: tuple[Callable[..., None], ...] = (
    check_batches,
    check_bounds,
    check_undefined,
    check_order,
    check_scale,
    check_weights,
    check_pickle,
    check_description,
)
