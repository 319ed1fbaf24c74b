"""The correction of a model: its chances, its sums and its draws where they are known."""

from __future__ import annotations

import numpy as np
import pytest

from trueup.estimators.recalibration import Recalibration, recalibrate


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
