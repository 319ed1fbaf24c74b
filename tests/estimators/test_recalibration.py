"""The correction of a model: its chances, its sums and its draws where they are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from trueup.estimators.recalibration import Recalibration, recalibrate, recalibrate_with_groups


def test_cumulative_chances_are_those_of_the_model():
    rng = np.random.default_rng(0)
    model = Recalibration(rng.normal(size=(7, 3)), rng.normal(size=(7, 3, 2)), np.zeros(2), np.ones(2))
    draws = rng.normal(size=(4, 2))
    expected = [np.cumsum(model.probabilities(one), axis=1)[:, :-1] for one in draws]
    np.testing.assert_allclose(model.cumulative(draws), expected)


def test_the_correction_matches_the_vetted_sums():
    """With a wide prior the corrected model expects of the vetted items what was found: that is the rectification."""
    rng = np.random.default_rng(0)
    x = np.zeros((60, 2, 2))
    x[:, 1, 0], x[:, 1, 1] = 1.0, rng.integers(2, size=60)
    truth = rng.integers(2, size=60)
    model = Recalibration(np.log(np.full((60, 2), [0.9, 0.1])), x, np.zeros(2), np.full(2, 1e3))
    weights = rng.uniform(0.5, 1.5, size=60)
    learned = recalibrate(model, np.arange(60), truth, weights, n_draws=0)
    p = model.probabilities(learned.mode)
    expected = np.einsum("n,nc,ncf->f", weights, p, x)
    np.testing.assert_allclose(expected, weights @ x[np.arange(60), truth], atol=1e-3)


def test_draws_of_the_correction_agree_with_a_grid():
    rng = np.random.default_rng(1)
    x = np.zeros((25, 2, 1))
    x[:, 1, 0] = 1.0
    truth = (rng.random(25) < 0.3).astype(int)
    model = Recalibration(np.log(np.full((25, 2), 0.5)), x, np.array([0.7]), np.array([1.0]))
    draws = recalibrate(model, np.arange(25), truth, np.ones(25), n_draws=4000, rng=rng).draws[:, 0]
    grid = np.linspace(-5, 5, 4001)
    log_height = truth.sum() * grid - 25 * np.logaddexp(0, grid) - (grid - 0.7) ** 2 / 2
    p = np.exp(log_height - log_height.max())
    p /= p.sum()
    mean = p @ grid
    std = np.sqrt(p @ (grid - mean) ** 2)
    assert draws.mean() == pytest.approx(mean, abs=6 * std / np.sqrt(2000))
    assert draws.std() == pytest.approx(std, rel=0.08)


def grouped(effects, *, n_each, seed=0):
    """A binary model that is right on average, items in groups whose log-odds are off by effects, and their truths."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(effects)), n_each)
    offset = np.zeros((len(groups), 2))
    model = Recalibration(offset, np.zeros((len(groups), 2, 1)), np.zeros(1), np.ones(1))
    truth = (rng.random(len(groups)) < 1 / (1 + np.exp(-np.asarray(effects)[groups]))).astype(np.int64)
    return model, groups, truth


@pytest.mark.parametrize(("effects", "low", "high"), [([0.0] * 12, 0.0, 0.35), ([-1.5, 1.5] * 6, 0.8, 2.5)])
def test_how_much_groups_differ_is_learned(effects, low, high):
    model, groups, truth = grouped(effects, n_each=60)
    scales, prior = np.array([0.1, 0.5, 1.2]), np.zeros(3)
    rng = np.random.default_rng(0)
    _, learned = recalibrate_with_groups(
        model, groups, scales, prior, np.arange(len(truth)), truth, np.ones(len(truth)), n_draws=500, rng=rng
    )
    assert low < learned.draws[:, 1:].std() < high  # the first coefficient is of the model itself


def test_the_evidence_between_spreads_of_groups_agrees_with_integration():
    model, groups, truth = grouped([0.8], n_each=6)
    scales = np.array([0.2, 1.0])
    evidence = []
    for scale in scales:
        with_groups = model.with_groups(groups, float(scale))
        drawn = recalibrate(with_groups, np.arange(6), truth, np.ones(6), n_draws=10, rng=np.random.default_rng(1))
        evidence.append(drawn.log_evidence)
    grid = np.linspace(-8, 8, 4001)
    n_true = truth.sum()
    likelihood = 1 / (1 + np.exp(-grid)) ** n_true / (1 + np.exp(grid)) ** (6 - n_true)
    exact = [np.log((likelihood * norm.pdf(grid, scale=scale)).sum()) for scale in scales]
    assert evidence[1] - evidence[0] == pytest.approx(exact[1] - exact[0], abs=0.1)
