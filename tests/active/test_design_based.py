"""LURE and PPI++ of a session: by enumeration, beside a second implementation, and their intervals by simulation."""

import numpy as np
import pytest
from scipy import stats

import trueup as tu
from benchmarks._vetting_rivals import Sample, ppi_plus_plus


def world(seed, n=300, together=0.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    right = rng.random((n, 3)) < 0.75
    right[rng.random(n) < together] = False
    labels = tu.Labels.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None]))
    predictions = np.where(rng.random(n) < 0.8, truth, 1 - truth)
    return truth, labels, predictions


def vetted(test, truth, n):
    test.tell({item: int(truth[item]) for item in test.ask(n)})
    return test


def test_ppi_is_that_of_a_second_implementation_on_even_draws():
    truth, labels, predictions = world(1, n=2000)
    test = tu.ActiveTest(predictions, labels, estimator="ppi++", noise="dawid-skene", strategy="random")
    vetted(test, truth, 200)
    agree = test.pool.prior[np.arange(2000), predictions]
    at = test.progress.vetted
    sample = Sample((predictions == truth)[at].astype(float), agree[at], agree[~at])
    mean, (low, high) = ppi_plus_plus(sample)
    mine = test.estimate()
    half = (mine.interval(0.95)[1] - mine.interval(0.95)[0]) / 2
    assert mine.mean == pytest.approx(mean, abs=0.004)
    # Theirs is of an endless population: its model part is uncertain, and its vetted items are not known.
    assert half == pytest.approx((high - low) / 2 * np.sqrt(0.9), rel=0.1)


def test_lure_with_even_draws_is_the_share_among_the_vetted():
    truth, labels, predictions = world(2)
    test = vetted(tu.ActiveTest(predictions, labels, estimator="lure", strategy="random"), truth, 60)
    at = test.progress.vetted
    right = (predictions == truth)[at]
    error = np.sqrt(right.var(ddof=1) / 60 * (1 - 60 / 300))
    low, high = test.estimate().interval(0.95)
    assert test.estimate().mean == pytest.approx(right.mean(), abs=4 * error / np.sqrt(1000))
    assert (high - low) / 2 == pytest.approx(stats.t.ppf(0.975, 59) * error, rel=0.1)


def test_gold_and_told_items_count_for_themselves():
    truth, labels, predictions = world(3, n=100)
    labels = labels.with_gold({k: int(truth[k]) for k in range(40)})
    test = tu.ActiveTest(predictions, labels, estimator="lure", strategy="random")
    test.tell({k: int(truth[k]) for k in range(40, 80)})
    vetted(test, truth, 10)
    right = predictions == truth
    drawn = ~np.isnan(test.progress.propensity)
    assert drawn[:80].sum() == 0
    expected = (right[:80].sum() + 20 * right[drawn].mean()) / 100
    assert test.estimate().median == pytest.approx(expected, abs=0.01)
    assert any("answered without being asked for" in sentence for sentence in test.warnings)


@pytest.mark.parametrize("estimator", ["ppi++", "lure"])
@pytest.mark.parametrize("strategy", [pytest.param("random", marks=pytest.mark.slow), "propensity"])
def test_intervals_hold_though_the_crowd_errs_together(estimator, strategy):
    held, n = 0, 100
    for seed in range(n):
        truth, labels, predictions = world(100 + seed, together=0.2)
        test = tu.ActiveTest(
            predictions, labels, estimator=estimator, strategy=strategy, noise="majority", random_state=seed
        )
        low, high = vetted(test, truth, 60).estimate().interval(0.95)
        held += low <= np.mean(predictions == truth) <= high
    assert held >= stats.binom.ppf(0.002, n, 0.93)


def test_a_difference_uses_the_same_items_for_both():
    """Two systems that agree on nearly all items: their difference is much surer than either."""
    truth, labels, predictions = world(4, n=1000)
    other = predictions.copy()
    other[:20] = 1 - other[:20]
    test = tu.ActiveTest({"a": predictions, "b": other}, labels, estimator="lure", strategy="random")
    vetted(test, truth, 200)
    assert test.difference("a", "b").std < 0.5 * test.estimate("a").std


def test_what_the_learned_estimator_believes_is_what_the_strategy_sees():
    rng = np.random.default_rng(0)
    truth, labels, _ = world(5)
    scores = truth + rng.normal(size=len(truth))
    learned = tu.ActiveTest(scores, labels, metric="auc", estimator="learned", strategy="uncertainty")
    other = tu.ActiveTest(scores, labels, metric="auc", estimator="rectified", strategy="uncertainty")
    some = {k: int(truth[k]) for k in range(40)}
    learned.tell(some)
    other.tell(some)
    from trueup.active import learned_probabilities

    expected = learned_probabilities(learned.pool.noisy, scores, learned.progress.vetted, learned.progress.truth == 1)
    np.testing.assert_allclose(learned.state.probabilities[:, 1], expected)
    assert np.abs(learned.state.probabilities - other.state.probabilities).max() > 0.05


@pytest.mark.parametrize(
    ("estimator", "strategy"),
    [
        pytest.param("ppi++", "random", marks=pytest.mark.slow),
        ("ppi++", "propensity"),
        pytest.param("lure", "random", marks=pytest.mark.slow),
    ],
)
def test_intervals_for_the_population_count_the_chance_by_which_the_pool_came_about(estimator, strategy):
    """Votes that are nearly always right leave the pool itself as all there is to doubt."""
    population, held, n = 0.7, 0, 200
    for seed in range(n):
        rng = np.random.default_rng(1000 + seed)
        truth = rng.integers(2, size=400)
        votes = np.where(rng.random((400, 5)) < 0.9, truth[:, None], 1 - truth[:, None])
        predictions = np.where(rng.random(400) < population, truth, 1 - truth)
        test = tu.ActiveTest(
            predictions,
            tu.Labels.from_matrix(votes),
            estimator=estimator,
            strategy=strategy,
            noise="one-coin",
            target="population",
            random_state=seed,
        )
        low, high = vetted(test, truth, 150).estimate().interval(0.95)
        held += low <= population <= high
    assert stats.binom.ppf(0.01, n, 0.945) <= held <= stats.binom.ppf(0.99, n, 0.955)
