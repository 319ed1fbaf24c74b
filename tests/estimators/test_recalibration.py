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


@pytest.mark.parametrize("least", [200, np.inf])
def test_draws_of_the_correction_agree_with_a_grid(monkeypatch, least):
    """Those chosen from candidates, and those moved by slices, which many coefficients need."""
    monkeypatch.setattr("trueup.estimators.recalibration._LEAST_EFFECTIVE", least)
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


def test_the_evidence_is_the_same_by_candidates_and_by_moved_draws(monkeypatch):
    model, groups, truth = grouped([0.3, -0.3, 0.2], n_each=60)
    with_groups = model.with_groups(groups, 0.5)
    evidence = []
    for least in (0, np.inf):
        monkeypatch.setattr("trueup.estimators.recalibration._LEAST_EFFECTIVE", least)
        rng = np.random.default_rng(1)
        learned = recalibrate(with_groups, np.arange(180), truth, np.ones(180), n_draws=10, rng=rng)
        evidence.append(learned.log_evidence)
    assert evidence[0] == pytest.approx(evidence[1], abs=0.1)


def test_many_coefficients_are_drawn_well():
    """Of sixty coefficients and twenty items hardly one of the candidates is likely."""
    rng = np.random.default_rng(2)
    x = np.zeros((20, 2, 60))
    x[:, 1] = rng.normal(size=(20, 60))
    truth = (rng.random(20) < 0.5).astype(int)
    model = Recalibration(np.zeros((20, 2)), x, np.full(60, 0.2), np.full(60, 0.5))
    learned = recalibrate(model, np.arange(20), truth, np.ones(20), n_draws=1500, rng=rng)
    assert learned.effective == 1500
    assert len(np.unique(learned.draws[:, 0])) == 1500
    # Whatever the posterior, the gradient of its logarithm is zero on average.
    chances = 1 / (1 + np.exp(-learned.draws @ x[:, 1].T))
    gradient = (truth - chances) @ x[:, 1] - (learned.draws - 0.2) / 0.25
    error = gradient.std(axis=0) / np.sqrt(1500)
    assert np.abs(gradient.mean(axis=0) / error).max() < 5
