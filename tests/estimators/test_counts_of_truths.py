"""Tests of counts that are made as they are asked for."""

import numpy as np
import pytest

import trueup as tu
from trueup.estimators.counts import DrawnCounts
from trueup.estimators.system_values import Population, counts_by_cell, system_counts
from trueup.estimators.truth import CountsOfTruths, TruthDraws, solution_of
from trueup.exceptions import InvalidLabels
from trueup.metrics import get_metric


def drawn(n_classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, n_classes, size=60)
    return rng.integers(n_classes, size=(30, 60)), codes


def test_cells_are_counted_as_by_products() -> None:
    truths, codes = drawn()
    np.testing.assert_array_equal(counts_by_cell(truths, codes, 4), system_counts(truths, codes[None], 4)[:, 0])
    weights = np.random.default_rng(1).random(truths.shape, dtype=np.float32)
    expected = system_counts(truths, codes[None], 4, weights=weights)[:, 0]
    np.testing.assert_allclose(counts_by_cell(truths, codes, 4, weights), expected, rtol=1e-5)


@pytest.mark.parametrize("n_classes", [4, 13])
def test_it_says_what_drawn_counts_say(n_classes: int) -> None:
    truths, codes = drawn(n_classes)
    lazy = CountsOfTruths(truths, codes, n_classes)
    held = DrawnCounts(counts_by_cell(truths, codes, n_classes))
    np.testing.assert_allclose(lazy.mean_counts, held.mean_counts)
    for name in ("accuracy", "macro_f1", "mcc"):
        metric = get_metric(name, list(range(n_classes)), None)
        one, other = lazy.estimate(metric), held.estimate(metric)
        assert (one.mean, one.std, *one.interval(0.9)) == (other.mean, other.std, *other.interval(0.9))
    assert lazy.cell(1, 2).mean == held.cell(1, 2).mean
    accuracy, kappa = (get_metric(name, list(range(n_classes)), None) for name in ("accuracy", "kappa"))
    assert lazy.joint(accuracy, kappa).mode == held.joint(accuracy, kappa).mode
    assert lazy.draw_counts(3, 0).shape == (3, n_classes, n_classes)
    assert lazy.draw_truths(5, 0).shape == (5, 60)


@pytest.mark.parametrize("population", [None, Population()])
def test_large_tables_are_not_held(population: Population | None, monkeypatch: pytest.MonkeyPatch) -> None:
    truths, codes = drawn()
    truth = TruthDraws(np.tile(truths, (40, 1)), np.full((60, 4), 0.25))

    def accuracy() -> tuple[float, float]:
        solution = solution_of(truth, codes, 4, population=population, rng=np.random.default_rng(0))
        estimate = solution.counts.estimate(get_metric("accuracy", [0, 1, 2, 3], None))
        return estimate.mean, estimate.std

    held = accuracy()
    monkeypatch.setattr("trueup.estimators.truth._MOST_CELLS", 100)
    made = accuracy()
    assert made == pytest.approx(held, abs=0.01)


def test_a_plain_call_takes_a_thousand_classes() -> None:
    data = tu.simulate.dawid_skene(
        n_items=150, n_classes=1000, n_labelers=20, votes_per_item=3, accuracy=(0.6, 0.9), random_state=1
    )
    ev = tu.evaluate(data.predictions, data.labels)
    low, high = ev["accuracy"].interval(0.95)
    assert low <= data.accuracy <= high
    assert high - low < 0.5


@pytest.mark.parametrize("noise", ["dawid-skene", "one-coin"])
def test_matrices_that_no_machine_holds_are_refused(noise: str) -> None:
    rng = np.random.default_rng(0)
    votes = rng.integers(3_000, size=(40, 40))
    labels = tu.Labels.from_matrix(votes, classes=list(range(3_000)))
    with pytest.raises(InvalidLabels, match="40 labelers and 3,000 classes would have 360,000,000 cells"):
        tu.evaluate(votes[:, 0], labels, noise=noise)
