"""Weights of drawn items by enumeration; the rectified estimate where the answer is known."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

import trueup as tu
from trueup.active import effective_number, lure_weights
from trueup.active.rectified import weighted_answers

VALUES = np.array([0.0, 1.0, 4.0, -2.0, 7.0])
WANTED = np.array([0.4, 0.25, 0.2, 0.1, 0.05])


def world(seed, n=200, n_classes=2, together=0.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    right = rng.random((n, 5)) < 0.8
    right[rng.random(n) < together] = False
    votes = np.where(right, truth[:, None], (truth[:, None] + 1) % n_classes)
    predictions = np.where(rng.random(n) < 0.8, truth, (truth + 1) % n_classes)
    return truth, tu.Labels.from_matrix(votes), predictions


@pytest.mark.parametrize("n_drawn", [1, 2, 3, 4, 5])
def test_lure_is_unbiased_over_all_sequences(n_drawn):
    """Every sequence of draws of five items, with the chance of each: the mean is that of the pool."""
    total = expected = 0.0
    for order in permutations(range(5), n_drawn):
        left, chances = WANTED.copy(), []
        for k in order:
            chances.append(left[k] / left.sum())
            left[k] = 0.0
        p = float(np.prod(chances))
        weights = lure_weights(chances, np.arange(1, n_drawn + 1), 5)
        total += p
        expected += p * float(np.mean(weights * VALUES[list(order)]))
    assert total == pytest.approx(1.0)
    assert expected == pytest.approx(VALUES.mean())


def test_effective_number():
    assert effective_number([2.0, 2.0, 2.0]) == pytest.approx(3.0)
    assert effective_number([1.0, 0.0]) == pytest.approx(1.0)
    assert effective_number([]) == 0.0


def test_weights_are_those_of_the_log():
    """The formula, item by item from the chances in the log: of all of a batch but one that was passed."""
    truth, labels, predictions = world(1)
    test = tu.ActiveTest(predictions, labels, strategy="propensity", floor=0.2)
    asked = list(test.ask(40))
    test.skip(asked[:1])
    test.tell({item: int(truth[item]) for item in asked[1:]})
    by_hand = {}
    for m, event in enumerate((event for event in test.log if event.kind == "ask"), start=1):
        by_hand[event.item] = 1 + (200 - 40) / (200 - m) * (1 / ((200 - m + 1) * event.propensity) - 1)
    expected = np.array([by_hand[item] for item in sorted(asked[1:])])
    answers = weighted_answers(test.pool, test.progress)
    assert answers.positions.tolist() == sorted(asked[1:])
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(answers.weights, expected / expected.mean())


def test_vetted_only_is_jeffreys_for_accuracy():
    truth, labels, predictions = world(2)
    test = tu.ActiveTest(predictions, labels, strategy="random", estimator="vetted-only", target="population")
    asked = list(test.ask(40))
    test.tell({item: int(truth[item]) for item in asked})
    right = int((truth[asked] == predictions[asked]).sum())
    exact = stats.beta(right + 0.5, 40 - right + 0.5)
    estimate = test.estimate()
    assert estimate.mean == pytest.approx(exact.mean(), abs=4 * exact.std() / np.sqrt(1000))
    np.testing.assert_allclose(estimate.interval(0.95, kind="equal"), exact.interval(0.95), atol=0.02)
    assert stats.kstest(estimate.draws(1000, random_state=0), exact.cdf).pvalue > 1e-3


def test_vetted_only_of_half_a_pool_holds_as_often_as_it_says():
    """100 runs of 50 of 100 items, 20 of them told before the draws and wrong."""
    held, n = 0, 100
    for seed in range(n):
        truth, labels, predictions = world(300 + seed, n=100)
        predictions[:20] = 1 - truth[:20]
        test = tu.ActiveTest(
            predictions, labels, strategy="random", estimator="vetted-only", noise="majority", random_state=seed
        )
        test.tell({k: int(truth[k]) for k in range(20)})
        test.tell({item: int(truth[item]) for item in test.ask(30)})
        low, high = test.estimate().interval(0.95)
        held += low - 1e-9 <= np.mean(predictions == truth) <= high + 1e-9
    assert stats.binom.ppf(0.0005, n, 0.93) <= held


def test_a_wrong_crowd_is_corrected():
    """All labelers err together on a fifth of the items: 300 checks leave a tenth of the error at most, in 20 runs."""
    before, after, held, n = [], [], 0, 20
    for seed in range(n):
        truth, labels, predictions = world(seed, n=1000, together=0.2)
        test = tu.ActiveTest(predictions, labels, strategy="random", random_state=seed)
        true = float((truth == predictions).mean())
        before.append(test.estimate().mean - true)
        test.tell({item: int(truth[item]) for item in test.ask(300)})
        low, high = test.estimate().interval(0.95)
        after.append(test.estimate().mean - true)
        held += low <= true <= high
    assert np.mean(before) < -0.1
    assert abs(np.mean(after)) < 0.1 * abs(np.mean(before))
    assert np.sqrt(np.mean(np.square(after))) < 0.025
    assert held >= stats.binom.ppf(0.0005, n, 0.95)
