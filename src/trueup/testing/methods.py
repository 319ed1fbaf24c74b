"""What every method of `evaluate` keeps to, as checks that anyone can run on a new one; CONTRIBUTING.md has an example.

Each check takes a `Method` and, where its function needs options, a function from a `MethodExample` to these.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup._base.types import Codes, Floats
from trueup.data.labels import Labels
from trueup.estimators import CountsPosterior, Method, Problem, Solution
from trueup.exceptions import silenced_warnings
from trueup.metrics import confusion_counts, get_metric
from trueup.noise import Confusion
from trueup.posteriors import Estimate

_N_ITEMS, _N_LABELERS = 150, 5
_RATES = (0.9, 0.85, 0.8, 0.8, 0.75)
_METRICS = ("accuracy", "recall", "f1")
# Means of draws differ by chance where items stand in another order.
_CHANCE = 0.03


@dataclass(frozen=True)
class MethodExample:
    """Votes of five labelers whose matrices are known, and a system, on two classes.

    Attributes
    ----------
    codes : integer array of shape (n_items,). The predicted classes, -1 for none.
    truth : integer array of shape (n_items,)
    features : array of shape (n_items, 2)
    """

    labels: Labels
    codes: Codes
    truth: Codes
    features: Floats

    @property
    def noise(self) -> Confusion:
        """The labelers' matrices, which are the same for both classes, and the shares of the classes."""
        prior = [0.6 if name == "no" else 0.4 for name in self.labels.classes.tolist()]
        return Confusion([[[rate, 1 - rate], [1 - rate, rate]] for rate in _RATES], prior=prior).fit(self.labels)

    def exactly(self, name: str) -> float:
        """A metric against the truth."""
        counted = self.codes >= 0
        counts = confusion_counts(self.truth[None, counted], self.codes[counted], 2)
        return float(get_metric(name, [0, 1]).of_counts(counts)[0])


# What a method needs beyond what every method gets, such as features.
Options = Callable[[MethodExample], Mapping[str, Any]]


def _no_options(example: MethodExample) -> Mapping[str, Any]:
    return {}


def _example(
    *, gold: bool = False, turned: bool = False, missing: int = 0, order: Codes | None = None
) -> MethodExample:
    """The same data, if asked with gold on all items, the classes the other way round, or items in another order."""
    rng = np.random.default_rng(7)
    truth = (rng.random(_N_ITEMS) < 0.4).astype(np.int64)
    votes = np.where(rng.random((_N_ITEMS, _N_LABELERS)) < _RATES, truth[:, None], 1 - truth[:, None])
    codes = np.where(rng.random(_N_ITEMS) < 0.8, truth, 1 - truth)
    features = rng.normal(size=(_N_ITEMS, 2)) + 2.0 * truth[:, None]
    codes[:missing] = -1
    items = np.arange(_N_ITEMS) if order is None else order
    classes = ["no", "yes"]
    labels = Labels.from_matrix(
        np.array(classes, dtype=object)[votes[items]], items=items.tolist(), classes=classes[:: -1 if turned else 1]
    )
    if gold:
        labels = labels.with_gold({int(item): classes[truth[item]] for item in items})
    if turned:
        truth, codes = 1 - truth, np.where(codes < 0, -1, 1 - codes)
    return MethodExample(labels, codes[items], truth[items], features[items])


def _solve(method: Method, example: MethodExample, options: Options) -> Solution:
    """Call a method as `trueup.evaluate` does, with known noise."""
    keywords: dict[str, Any] = {"random_state": np.random.default_rng(0), **options(example)}
    if len(method.targets) > 1:
        keywords["target"] = method.targets[0]
    labels, codes, noise = example.labels, example.codes, example.noise
    with silenced_warnings():
        if method.sees == "votes":
            return method.solve(labels, codes, **keywords)
        if method.sees == "noise":
            return method.solve(labels, codes, noise=noise, **keywords)
        return method.solve(Problem(codes, noise.log_likelihood(labels), noise.prior_, labels.gold_codes), **keywords)


def _estimates(solution: Solution, *, positive: int = 1) -> dict[str, Estimate]:
    return {name: solution.counts.estimate(get_metric(name, [0, 1], positive)) for name in _METRICS}


def check_solution(method: Method, options: Options = _no_options) -> None:
    """It returns a `Solution` whose counts give an estimate of every metric, near the truth on easy votes."""
    example = _example()
    solution = _solve(method, example, options)
    assert isinstance(solution, Solution), f"a method returns a Solution, got {type(solution).__name__}"
    assert isinstance(solution.counts, CountsPosterior), "the counts of a Solution must be a CountsPosterior"
    assert solution.counts.mean_counts.shape == (2, 2)
    assert all(isinstance(note, str) for note in solution.notes)
    assert all(np.isscalar(number) for number in solution.diagnostics.values())
    for name, estimate in _estimates(solution).items():
        assert 0 <= estimate.mean <= 1, f"{name} is {estimate.mean}"
        assert abs(estimate.mean - example.exactly(name)) < 0.25, f"{name} is {estimate.mean}"


def check_gold(method: Method, options: Options = _no_options) -> None:
    """Where all truths are known the answer is exact, or near it for a method that is about the population."""
    example = _example(gold=True)
    allowed = 1e-6 if method.targets[0] == "sample" else 0.02
    for name, estimate in _estimates(_solve(method, example, options)).items():
        gap = abs(estimate.mean - example.exactly(name))
        assert gap <= allowed, f"{name} is off by {gap:.3g} although every truth is known"


def check_intervals(method: Method, options: Options = _no_options) -> None:
    """Where the truth is open no interval has width zero; a method that cannot say how sure it is says nothing."""
    for name, estimate in _estimates(_solve(method, _example(), options)).items():
        low, high = estimate.interval(0.95)
        unknown = np.isnan(low) and np.isnan(high)
        assert unknown or low < high, f"the interval of {name} has width zero; return PointCounts where it is unknown"
        assert unknown or low - 1e-9 <= estimate.median <= high + 1e-9


def check_order(method: Method, options: Options = _no_options) -> None:
    """The order of items does not matter."""
    order = np.random.default_rng(1).permutation(_N_ITEMS)
    _assert_alike(method, options, "items", _example(order=order))


def check_class_order(method: Method, options: Options = _no_options) -> None:
    """The order of the classes does not matter, as long as the positive class is the same."""
    _assert_alike(method, options, "classes", _example(turned=True), positive=0)


def _assert_alike(method: Method, options: Options, what: str, other: MethodExample, *, positive: int = 1) -> None:
    """Data in another order give the same."""
    expected = _estimates(_solve(method, _example(), options))
    for name, estimate in _estimates(_solve(method, other, options), positive=positive).items():
        gap = abs(expected[name].mean - estimate.mean)
        assert gap < _CHANCE, f"{name} changes by {gap:.3g} with the order of {what}"


def check_repeatable(method: Method, options: Options = _no_options) -> None:
    """The same seed gives the same, and an estimate survives pickling."""
    first, again = (_estimates(_solve(method, _example(), options)) for _ in range(2))
    kept = pickle.loads(pickle.dumps(first))
    for name in _METRICS:
        expected = [first[name].mean, *first[name].interval(0.9)]
        for other in (again, kept):
            np.testing.assert_allclose([other[name].mean, *other[name].interval(0.9)], expected, rtol=1e-9)


def check_missing(method: Method, options: Options = _no_options) -> None:
    """Items without a prediction do not count."""
    example = _example(missing=30)
    n = float(_solve(method, example, options).counts.mean_counts.sum())
    most = _N_ITEMS - 30
    exact = method.targets[0] == "sample"
    assert n <= most + 1e-6, f"{most} predictions are counted as {n:g}"
    assert not exact or n >= most - 1e-6, f"{most} predictions are counted as {n:g}"


METHOD_CHECKS: tuple[Callable[..., None], ...] = (
    check_solution,
    check_gold,
    check_intervals,
    check_order,
    check_class_order,
    check_repeatable,
    check_missing,
)
