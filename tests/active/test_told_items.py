"""Items told without being asked, before the draws, between them and after them."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

import trueup as tu
from trueup.active.estimators import weighted_metric
from trueup.active.rectified import drawn_items, known_classes
from trueup.active.strategies import draw_shares, share_after, stands_for
from trueup.sessions.log import Event

N = 400
RNG = np.random.default_rng(0)
TRUTH = RNG.integers(2, size=N)
HARD = np.arange(N) < 120  # the system is right on 40% of these and on 95% of the others
PREDICTIONS = np.where(RNG.random(N) < np.where(HARD, 0.6, 0.05), 1 - TRUTH, TRUTH)
VOTES = np.where(RNG.random((N, 3)) < np.where(HARD, 0.45, 0.1)[:, None], 1 - TRUTH[:, None], TRUTH[:, None])
ACCURACY = float((PREDICTIONS == TRUTH).mean())


def fresh(estimator, **options):
    return tu.ActiveTest(
        PREDICTIONS,
        tu.Labels.from_matrix(VOTES),
        strategy="random",
        estimator=estimator,
        noise="majority",
        random_state=0,
        **options,
    )


def tell(test, items):
    test.tell({int(item): int(TRUTH[item]) for item in items})


def tell_the_hard(test):
    tell(test, np.flatnonzero(HARD & ~test.progress.vetted))


def session(base, seed, order):
    test = base.restart(random_state=seed)
    if order == "before":
        tell(test, np.flatnonzero(HARD)[:100])
    tell(test, test.ask(60 if order != "between" else 30))
    if order != "before":
        tell_the_hard(test)
    if order == "between":
        tell(test, test.ask(30))
    return test


@pytest.mark.parametrize("order", ["before", "after", "between"])
@pytest.mark.parametrize("estimator", ["rectified", "lure", "ppi++", "vetted-only"])
def test_intervals_hold_whenever_the_hard_items_are_told(estimator, order):
    """40 runs: intervals hold as a binomial variable allows, and the mean is the truth up to four standard errors.

    That of the core still leans to what votes say by a part of their error, which is 0.14: not by the told items.
    """
    base, n = fresh(estimator), 40
    found = [session(base, seed, order).estimate() for seed in range(n)]
    means = np.array([estimate.mean for estimate in found])
    held = sum(low <= ACCURACY <= high for low, high in (estimate.interval(0.95) for estimate in found))
    assert held >= stats.binom.ppf(0.0005, n, 0.93)
    leaning = 0.0
    if estimator == "rectified":
        error = base.estimate().mean - ACCURACY
        assert error < -0.1
        leaning = 0.25 * abs(error)
    assert means.mean() == pytest.approx(ACCURACY, abs=leaning + 4 * means.std(ddof=1) / np.sqrt(n))


@pytest.mark.parametrize("estimator", ["rectified", "lure", "vetted-only"])
def test_a_pool_that_is_told_to_its_end_is_known(estimator):
    test = session(fresh(estimator), 1, "after")
    tell(test, np.flatnonzero(~test.progress.vetted))
    np.testing.assert_allclose(test.estimate().interval(0.95), ACCURACY)


def test_sums_are_unbiased_over_all_sequences_though_an_item_is_told_between_the_draws():
    """Five items: one draw, then the largest that is left is told, then another draw."""
    values, chances = np.array([0.0, 1.0, 4.0, -2.0, 7.0]), np.array([0.4, 0.25, 0.2, 0.1, 0.05])
    shares, mean, total = draw_shares([5, 3]), 0.0, 0.0
    for first, second in permutations(range(5), 2):
        told = max((k for k in range(5) if k != first), key=lambda k: values[k])
        if second == told:
            continue
        left = [k for k in range(5) if k not in (first, told)]
        q = np.array([chances[first], chances[second] / chances[left].sum()])
        counted = stands_for(q, np.array([1, 2]), shares) @ values[[first, second]]
        mean += q.prod() * (counted + share_after(np.array([1]), shares)[0] * values[told])
        total += q.prod()
    assert total == pytest.approx(1.0)
    assert mean == pytest.approx(values.sum())


def test_the_session_weighs_as_the_formula_does():
    """Six items, two draws with an item told between them: the sum of what is right, by hand."""
    truth, predictions = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 1, 1, 1, 0, 0])
    labels = tu.Labels.from_matrix(np.repeat(truth[:, None], 2, axis=1))
    base = tu.ActiveTest(predictions, labels, estimator="lure", noise="majority", strategy="random")
    log = [
        *(Event("ask", 0, propensity=0.5), Event("tell", 0, 0, propensity=0.5), Event("tell", 4, 1)),
        *(Event("ask", 2, propensity=0.1), Event("tell", 2, 0, propensity=0.1)),
    ]
    test = base.replay(log)
    shares = draw_shares([6, 4])
    right, wrong = shares[0] / 0.5 + shares[1], shares[1] / 0.1 + shares[1]  # items 0 and 2; item 4 is wrong
    known, drawn = known_classes(test.pool, test.progress), drawn_items(test.pool, test.progress)
    assert weighted_metric(test.pool, predictions, known, drawn, tuned=False).value == pytest.approx(
        right / (right + wrong)
    )
    np.testing.assert_allclose(drawn.own, [0, 0, 0, 0, shares[1], 0])
