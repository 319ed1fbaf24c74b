"""Naive Bayes on votes: scikit-learn's where votes are right, EM that never falls back, consistency."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB, MultinomialNB

import trueup as tu
from trueup.exceptions import ConvergenceWarning, InvalidParameter
from trueup.training import NoisyGaussianNB, NoisyMultinomialNB

MATRICES = [[[0.8, 0.2], [0.3, 0.7]]] * 3


@pytest.fixture(scope="module")
def words():
    """Counts of ten words in 600 texts of two classes, and three labelers."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=600)
    shares = rng.dirichlet([2.0] * 10, size=2)
    X = np.stack([rng.multinomial(15, shares[y]) for y in truth])
    votes = np.where(rng.random((600, 3)) < np.where(truth == 1, 0.7, 0.2)[:, None], 1, 0)
    return X, tu.Labels.from_matrix(votes), truth, shares


def test_perfect_labelers_give_sklearn(crowd, words):
    X, _, X_test, _, sim = crowd
    plain = GaussianNB().fit(X, sim.truth[:600])
    np.testing.assert_allclose(
        NoisyGaussianNB(method="ml").fit(X, sim.truth[:600]).predict_proba(X_test),
        plain.predict_proba(X_test),
        atol=1e-8,
    )
    counts, _, truth, _ = words
    for method in ("map", "mmse"):
        found = NoisyMultinomialNB(method=method, alpha=0.5).fit(counts, truth)
        expected = MultinomialNB(alpha=0.5).fit(counts, truth)
        np.testing.assert_allclose(found.feature_log_prob_, expected.feature_log_prob_, atol=1e-8)
        np.testing.assert_allclose(found.class_log_prior_, expected.class_log_prior_, atol=1e-8)


@pytest.mark.parametrize("method", ["ml", "map"])
def test_the_objective_never_rises(method, crowd, words):
    histories = [
        NoisyGaussianNB(method=method).fit(crowd[0], crowd[1]).loss_history_,
        NoisyMultinomialNB(method=method, noise=tu.noise.Confusion(MATRICES)).fit(*words[:2]).loss_history_,
    ]
    for history in histories:
        assert len(history) > 2
        assert np.diff(history).max() < 1e-6


def test_gaussians_are_found_again():
    sim = tu.simulate.tars(n_items=8000, n_labelers=3, confusion=MATRICES, means=[[0.0], [2.0]], random_state=1)
    noise = tu.noise.Confusion(MATRICES)
    model = NoisyGaussianNB(method="ml", noise=noise).fit(sim.features, sim.labels)
    np.testing.assert_allclose(model.theta_.ravel(), [0, 2], atol=0.1)
    np.testing.assert_allclose(model.var_.ravel(), 1, atol=0.1)
    soft = NoisyGaussianNB(method="mmse", noise=noise).fit(sim.features, sim.labels)
    assert soft.theta_[0, 0] > 0.15  # soft labels mix the classes


def test_items_without_votes_teach_a_generative_model():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=2000)
    X = rng.normal(size=(2000, 1)) + 4.0 * truth[:, None]
    said = [int(v) if i < 6 else None for i, v in enumerate(truth)]
    with pytest.warns(tu.exceptions.DataWarning, match="1994 of 2,000 items"):
        labels = tu.Labels.from_frame({"item": np.arange(2000), "labeler": ["a"] * 2000, "label": said}, missing=None)
    noise = tu.noise.Confusion([[0.95, 0.05], [0.05, 0.95]])
    few, all_items = (
        NoisyGaussianNB(noise=noise, unlabelled=how).fit(X, labels).theta_.ravel() for how in ("drop", "prior")
    )
    assert np.abs(all_items - [0, 4]).max() < 0.15 < np.abs(few - [0, 4]).max()


def test_bad_input(crowd):
    X, labels, *_ = crowd
    with pytest.raises(InvalidParameter, match="needs counts"):
        NoisyMultinomialNB().fit(X, labels)
    with pytest.raises(InvalidParameter, match="`method` must be one of"):
        NoisyGaussianNB(method="em").fit(X, labels)
    with pytest.warns(ConvergenceWarning, match="did not settle"):
        NoisyGaussianNB(max_iter=1).fit(X, labels)
