"""The volume of predictions: derivatives, what is largest, and what it finds where votes alone mislead."""

import numpy as np
import pytest
from scipy.optimize import check_grad

import trueup as tu
from trueup.exceptions import InvalidParameter
from trueup.training import NoisyLogisticRegression
from trueup.training.objectives import LogisticObjective, NoisyLikelihood, SoftTargets, WithVolume


class Nothing:
    """A loss that is 0, so that the volume is alone."""

    def value_and_slope(self, scores):
        return 0.0, np.zeros_like(scores)


def volume_of(scores, shares):
    return -WithVolume(Nothing(), 1.0, np.asarray(shares)).value_and_slope(scores)[0] / len(scores)


@pytest.mark.parametrize("kind", ["likelihood", "soft"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradient(kind, n_classes):
    rng = np.random.default_rng(0)
    X, chances = rng.normal(size=(30, 4)), rng.dirichlet([1.0] * n_classes, size=30)
    loss = NoisyLikelihood(np.log(chances)) if kind == "likelihood" else SoftTargets(chances)
    objective = LogisticObjective(X, WithVolume(loss, 0.6, rng.dirichlet([2.0] * n_classes)), n_classes, 0.7)
    theta = rng.normal(size=objective.n_rows * 5)
    assert check_grad(*(lambda t, k=k: objective.value_and_gradient(t)[k] for k in (0, 1)), theta, seed=0) < 1e-4


def test_equal_shares_give_the_published_term():
    scores = np.random.default_rng(0).normal(size=(40, 3))
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(volume_of(scores, [1 / 3] * 3), np.linalg.slogdet(chances.T @ chances / 40)[1])


def confused_crowd(seed, shares, *, n_features, together):
    """Features tell four classes apart; of class 0 the crowd says 1 as often, of class 2 more often 3, often as one."""
    rng = np.random.default_rng(seed)
    says = [[0.45, 0.5, 0.03, 0.02], [0.1, 0.85, 0.03, 0.02], [0.02, 0.03, 0.4, 0.55], [0.02, 0.03, 0.05, 0.9]]
    truth = rng.choice(4, size=1600, p=shares)
    X = rng.normal(size=(1600, n_features)) + 3.0 * np.eye(4, n_features)[truth]
    votes = np.full((800, 20), -1)
    for i in range(800):
        alone, all_say = rng.choice(4, size=3, p=says[truth[i]]), rng.choice(4, p=says[truth[i]])
        votes[i, rng.choice(20, size=3, replace=False)] = np.where(rng.random(3) < together, all_say, alone)
    return X[:800], tu.Labels.from_matrix(votes, classes=range(4)), X[800:], truth[800:]


@pytest.mark.parametrize(
    "shares", [pytest.param((0.25,) * 4, marks=pytest.mark.slow), (0.4, 0.3, 0.2, 0.1)], ids=["equal", "unequal"]
)
@pytest.mark.parametrize(
    ("n_features", "together", "gain"), [(8, 0.9, 0.2), (100, 0.3, 0.02)], ids=["err-together", "many-features"]
)
def test_finds_what_the_crowd_confuses(shares, n_features, together, gain):
    scores = []
    for seed in range(2):
        X, labels, X_test, truth = confused_crowd(seed, shares, n_features=n_features, together=together)
        models = (NoisyLogisticRegression(joint=True, C=0.01, volume=volume, tol=1e-5) for volume in (0.0, 1.0))
        scores.append([model.fit(X, labels).score(X_test, truth) for model in models])
    plain, wide = np.mean(scores, axis=0)
    assert wide > max(0.85, plain + gain), (plain, wide)


def test_bad_input(crowd):
    X, labels, *_ = crowd
    with pytest.raises(InvalidParameter, match="volume is a term of a likelihood"):
        NoisyLogisticRegression(method="mmse", volume=1.0).fit(X, labels)
    with pytest.raises(InvalidParameter, match="class_shares must be 2 positive numbers that sum to 1"):
        NoisyLogisticRegression(volume=1.0, class_shares=[0.5, 0.6]).fit(X, labels)
    with pytest.raises(InvalidParameter, match="`class_shares` must be one of"):
        NoisyLogisticRegression(volume=1.0, class_shares="flat").fit(X, labels)
