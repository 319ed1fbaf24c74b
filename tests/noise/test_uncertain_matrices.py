"""Matrices with a distribution: variational Bayes beside plain loops."""

import numpy as np
import pytest
from scipy.special import psi

from trueup import simulate
from trueup.noise.registry import UncertainMatrices

SHAPES = ("matrix", "class", "coin")


def believed_by_loops(counts, shape, pooling):
    """Mean log-probabilities (labelers, classes, answers) from expected counts."""
    n_labelers, n_classes, n_answers = counts.shape
    logs = np.empty(counts.shape)
    for t in range(n_labelers):
        for y in range(n_classes):
            if shape == "matrix":
                pooled = (counts[:, y].sum(axis=0) + 1e-3) / (counts[:, y].sum() + 1e-3 * n_answers)
                alpha = counts[t, y] + pooling * pooled + 0.01
                logs[t, y] = psi(alpha) - psi(alpha.sum())
                continue
            rows = [y] if shape == "class" else range(n_classes)
            right = sum(counts[t, k, k] for k in rows)
            total = sum(counts[t, k].sum() for k in rows)
            usual = (sum(counts[:, k, k].sum() for k in rows) + 2) / (sum(counts[:, k].sum() for k in rows) + 3)
            a, b = right + pooling * usual, total - right + pooling * (1 - usual)
            others = [k for k in range(n_answers) if k != y]
            shares = {k: counts[:, y, k].sum() + 0.5 if shape == "class" else 1.0 for k in others}
            logs[t, y, y] = psi(a) - psi(a + b)
            for k in others:
                logs[t, y, k] = psi(b) - psi(a + b) + np.log(shares[k] / sum(shares.values()))
    return logs


@pytest.mark.filterwarnings("ignore::trueup.exceptions.TrueupWarning")
@pytest.mark.parametrize("shape", SHAPES)
def test_steps_are_those_of_plain_loops(shape):
    how = {"prior": np.full(3, 1 / 3), "accuracy": (0.3, 0.9), "random_state": 0}
    data = simulate.dawid_skene(n_items=40, n_labelers=6, votes_per_item=4, n_classes=3, **how)
    labels = data.labels.with_gold({0: int(data.truth[0])})
    votes = labels.votes.toarray().reshape(40, 6, 3)
    posterior = votes.sum(axis=1) / votes.sum(axis=(1, 2))[:, None]
    posterior[0] = np.eye(3)[data.truth[0]]
    for _ in range(4):
        logs = believed_by_loops(np.einsum("ita,iy->tya", votes, posterior), shape, 1.5)
        weights = posterior.sum(axis=0) + 1
        joint = np.einsum("ita,tya->iy", votes, logs) + psi(weights) - psi(weights.sum())
        before, posterior = posterior, np.exp(joint - joint.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        posterior[0] = np.eye(3)[data.truth[0]]
    model = UncertainMatrices(shape=shape, pooling=1.5, max_iter=4, tol=0.0).fit(labels)
    np.testing.assert_allclose(model.prior_, (posterior.sum(axis=0) + 1) / 43, rtol=1e-9)
    prior = np.log(model.prior_) + np.einsum("ita,tya->iy", votes, believed_by_loops(
        np.einsum("ita,iy->tya", votes, before), shape, 1.5
    ))  # fmt: skip
    expected = np.exp(prior - prior.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.posterior(labels)[1:], expected[1:], rtol=1e-7)
    assert model.posterior(labels)[0].max() == 1.0
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1.0)


@pytest.mark.parametrize("shape", SHAPES)
def test_many_votes_leave_no_doubt_about_matrices(shape):
    data = simulate.dawid_skene(n_items=5000, n_labelers=6, random_state=0)
    model = UncertainMatrices(shape=shape, pooling=1.0).fit(data.labels)
    truth = np.asarray(data.parameters["confusion"])
    if shape == "coin":
        truth = np.repeat(np.einsum("tcc->t", truth)[:, None] / 2, 2, axis=1)
        np.testing.assert_allclose(model.confusion_[:, [0, 1], [0, 1]], truth, atol=0.06)
    else:
        np.testing.assert_allclose(model.confusion_, truth, atol=0.06)
