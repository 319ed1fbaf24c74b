"""Recall, precision and F where positives are rare: what is drawn, what is believed, and how far off it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import trueup as tu
from benchmarks._vetting_rare import make_pool
from benchmarks._vetting_rivals import lure, oasis, value_of
from trueup.active.influence import is_ratio, raw_deviations
from trueup.active.rectified import middle_of, recalibration_of


@pytest.fixture(scope="module")
def pool():
    return make_pool(1, shared=0.7)


def test_the_middle_of_log_odds_keeps_the_mean_of_the_probability():
    probability, variance = np.array([0.002, 0.03, 0.4, 0.9, 0.5]), np.array([9.0, 4.0, 2.0, 0.25, 1.0])
    normal = np.random.default_rng(0).standard_normal(400_000)
    middle = middle_of(probability, variance)
    for p, m, v in zip(probability, middle, variance, strict=True):
        assert expit(m + np.sqrt(v) * normal).mean() == pytest.approx(p, rel=0.03)
    assert middle[0] < -8


def test_before_any_answer_the_ratio_is_what_the_votes_say(pool):
    """Levels that are very uncertain must not make a tenth of all clear negatives positive."""
    test = tu.ActiveTest(pool.predicted, pool.labels, metric="recall")
    model = recalibration_of(test.pool)
    rng = np.random.default_rng(0)
    draws = model.mean + model.scale * rng.standard_normal((500, len(model.scale)))
    negative = pool.predicted == 0
    expected = 1 - model.cumulative(draws)[:, negative, 0].mean()
    assert expected == pytest.approx(np.clip(test.pool.prior[negative, 1], 0.002, 1).mean(), rel=0.15)


@pytest.mark.parametrize(("name", "alpha"), [("recall", 0.0), ("f1", 0.5), ("precision", 1.0)])
def test_raw_deviations_are_those_of_importance_sampling(pool, name, alpha):
    """Marchant and Rubinstein (2017), equation 6, with the current guess of the measure."""
    test = tu.ActiveTest(pool.predicted, pool.labels, metric=name)
    assert is_ratio(test.pool)
    p, said = test.pool.prior[:, 1], pool.predicted
    value = (p * said).sum() / (alpha * said.sum() + (1 - alpha) * p.sum())
    if_said = np.sqrt(alpha**2 * value**2 * (1 - p) + (1 - value) ** 2 * p)
    expected = np.where(said == 1, if_said, (1 - alpha) * value * np.sqrt(p))
    deviations = raw_deviations(test.pool, test.pool.prior)
    np.testing.assert_allclose(deviations / deviations.sum(), expected / expected.sum(), atol=1e-6)
    assert not is_ratio(tu.ActiveTest(pool.predicted, pool.labels, metric="accuracy").pool)


def test_recall_of_a_rare_class_is_near_after_a_hundred_answers():
    """One slope for all items and draws by belief alone had an error of 0.10 here, and intervals 0.35 wide."""
    errors, held, widths = [], [], []
    for seed in range(8):
        pool = make_pool(seed, shared=0.7 * (seed % 2))
        true = value_of("recall", pool.predicted, pool.truth)
        test = tu.ActiveTest(pool.predicted, pool.labels, metric="recall", random_state=seed)
        while test.n_vetted < 100:
            test.tell({item: int(pool.truth[item]) for item in test.ask(10)})
        low, high = test.estimate().interval(0.95)
        errors.append(test.estimate().mean - true)
        held.append(low - 1e-9 <= true <= high + 1e-9)
        widths.append(high - low)
    assert np.sqrt(np.mean(np.square(errors))) < 0.08
    assert np.mean(widths) < 0.28
    assert sum(held) >= 6


@pytest.mark.parametrize("rival", [oasis, lure])
def test_rivals_come_near_the_truth_and_know_it_once_all_is_vetted(pool, rival):
    p = np.where(pool.truth == 1, 0.6, 0.03)
    values = [
        rival("f1", pool.predicted, p, lambda k: int(pool.truth[k]), (300,), np.random.default_rng(seed))[0]
        for seed in range(8)
    ]
    true = value_of("f1", pool.predicted, pool.truth)
    assert np.mean(values) == pytest.approx(true, abs=0.06)
    everything = lure("f1", pool.predicted, p, lambda k: int(pool.truth[k]), (1000,), np.random.default_rng(0))
    assert everything[0] == pytest.approx(true)
