"""The log-linear prior of items against exact sums and quadrature."""

from itertools import product

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm

from trueup.estimators.system_features import LogLinearPrior
from trueup.exceptions import InvalidParameter

GRID = np.linspace(-8, 8, 81)


def features_of(x, n_classes):
    """An intercept for each class but the first, and x for the last class."""
    features = np.zeros((len(x), n_classes, n_classes))
    for y in range(1, n_classes):
        features[:, y, y - 1] = 1.0
    features[:, -1, n_classes - 1] = x
    return features


def grid_of(features, scale):
    """All coefficients of a grid with their log prior, and log P(class) of items at each; two features."""
    w = np.array(list(product(GRID, GRID)))
    log_prior = norm.logpdf(w, scale=scale).sum(axis=1)
    return w, log_prior, log_softmax(np.einsum("icf,wf->wic", features, w), axis=2)


@pytest.mark.parametrize("by_walkers", [False, True])
def test_coefficients_given_votes_of_known_noise_have_the_exact_posterior(by_walkers, monkeypatch):
    if by_walkers:
        monkeypatch.setattr("trueup.estimators.system_features._ENOUGH", np.inf)
    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    log_likelihood = np.log(rng.dirichlet([0.5, 0.5], size=30))
    features, scale = features_of(x, 2), np.array([1.5, 1.0])
    drawn = LogLinearPrior(features, scale).draws_given_votes(log_likelihood, 6000 if by_walkers else 4000, rng)
    w, log_prior, log_p = grid_of(features, scale)
    weight = log_prior + logsumexp(log_likelihood + log_p, axis=2).sum(axis=1)
    weight = np.exp(weight - logsumexp(weight))
    mean = weight @ w
    sd = np.sqrt(weight @ (w - mean) ** 2)
    assert drawn.effective > (500 if by_walkers else 1000)
    worth = min(drawn.effective, 1500 if by_walkers else np.inf)
    np.testing.assert_allclose(drawn.coefficients.mean(axis=0), mean, atol=4.5 * sd.max() / np.sqrt(worth))
    np.testing.assert_allclose(drawn.coefficients.std(axis=0), sd, rtol=0.08)


def test_many_items_take_the_normal_law(monkeypatch):
    rng = np.random.default_rng(2)
    x = rng.normal(size=3000)
    truth = rng.random(3000) < 1 / (1 + np.exp(-x))
    vote = truth ^ (rng.random(3000) < 0.2)
    log_likelihood = np.log(np.where(vote[:, None] == [False, True], 0.8, 0.2))
    prior = LogLinearPrior(features_of(x, 2), [2.0, 2.0])
    weighted = prior.draws_given_votes(log_likelihood, 500, np.random.default_rng(3))
    monkeypatch.setattr("trueup.estimators.system_features._MOST_EVALUATIONS", 0)
    plain = prior.draws_given_votes(log_likelihood, 2000, np.random.default_rng(4))
    assert np.isfinite(weighted.effective)
    assert plain.effective == np.inf
    sd = weighted.coefficients.std(axis=0)
    np.testing.assert_allclose(
        plain.coefficients.mean(axis=0), weighted.coefficients.mean(axis=0), atol=0.25 * sd.max()
    )
    np.testing.assert_allclose(plain.coefficients.std(axis=0), sd, rtol=0.15)


@pytest.mark.parametrize(
    ("features", "scale", "match"),
    [
        (np.zeros((3, 2)), [1.0], "items × classes × features"),
        (np.full((3, 2, 1), np.nan), [1.0], "finite"),
        (np.zeros((3, 2, 1)), [0.0], "positive number"),
        (np.zeros((3, 2, 1)), [1.0, 1.0], "positive number"),
    ],
    ids=["shape", "nan", "zero scale", "too many scales"],
)
def test_bad_features_are_refused(features, scale, match):
    with pytest.raises(InvalidParameter, match=match):
        LogLinearPrior(features, scale)
