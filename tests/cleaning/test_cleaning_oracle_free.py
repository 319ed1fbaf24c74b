"""Training without an oracle: the loss is unbiased, its minimum is found, and the filter drops what is wrong."""

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import trueup as tu
from trueup.cleaning import UnbiasedScorer, noise_aware_probabilities, noise_removed, noise_tolerant
from trueup.exceptions import InvalidParameter
from trueup.training.objectives import soft_logistic

MATRICES = {2: np.array([[0.6, 0.4], [0.05, 0.95]]), 3: np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.3, 0.0, 0.7]])}


def noisy(n=400, c=2, seed=0, gap=2.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(c, size=n)
    X = rng.normal(size=(n, 3)) + gap * np.eye(c, 3)[truth]
    y = (rng.random(n)[:, None] > MATRICES[c][truth].cumsum(axis=1)).sum(axis=1)
    return X, truth, y


@pytest.mark.parametrize("c", [2, 3])
def test_soft_logistic_on_hard_labels_is_logistic_regression(c):
    X, truth, _ = noisy(c=c)
    slope, intercept = soft_logistic(X, np.eye(c)[truth], penalty=1.0)
    model = LogisticRegression(tol=1e-8).fit(X, truth)
    assert slope == pytest.approx(model.coef_, abs=1e-3)
    assert intercept - intercept.mean() == pytest.approx(model.intercept_ - model.intercept_.mean(), abs=1e-3)
    flat, none = soft_logistic(X, np.eye(c)[truth], penalty=1.0, fit_intercept=False)
    assert (none == 0).all()
    assert not np.allclose(flat, slope)


@pytest.mark.parametrize("c", [2, 3])
def test_the_loss_has_the_true_loss_as_its_expectation(c):
    matrix = MATRICES[c]
    scores = np.random.default_rng(0).normal(size=c)
    losses = special.logsumexp(scores) - scores
    weights = UnbiasedScorer(np.arange(c), matrix).weights  # one row for each label that could be seen
    assert weights.sum(axis=1) == pytest.approx(np.ones(c))
    assert matrix @ (weights @ losses) == pytest.approx(losses)


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("piped", [False, True], ids=["plain", "pipeline"])
def test_noise_tolerant_beats_the_dirty_model_and_minimises_its_loss(c, piped):
    X, _, y = noisy(3000, c=c)
    names = np.array(["x", "a", "m"])[:c]  # not in sorted order
    estimator = make_pipeline(StandardScaler(), LogisticRegression()) if piped else LogisticRegression()
    model = noise_tolerant(estimator, X, y, MATRICES[c], classes=names)
    dirty = LogisticRegression().fit(X, names[y])
    fresh, target, _ = noisy(3000, c=c, seed=1)
    assert model.score(fresh, names[target]) > dirty.score(fresh, names[target]) + 0.01
    if not piped:
        weights = UnbiasedScorer(y, MATRICES[c]).weights
        order = [names.tolist().index(name) for name in model.classes_]
        apart = (model.predict_proba(X) - weights[:, order]).T @ X
        gradient = apart[1:] + model.coef_ if c == 2 else apart + model.coef_
        assert np.abs(gradient).max() < 0.05  # of sums over 3000 items


@pytest.mark.parametrize("c", [2, 3])
def test_noise_aware_is_the_maximum_of_its_likelihood(c):
    X, truth, y = noisy(300, c=c)
    found = noise_aware_probabilities(X, y, MATRICES[c], penalty=2.0)
    k = c if c > 2 else 1

    def coefficients(theta):
        table = theta.reshape(k, 4)
        return table if c > 2 else np.vstack([np.zeros(4), table])

    def objective(theta):
        table = coefficients(theta)
        p = special.softmax(np.c_[X, np.ones(300)] @ table.T, axis=1)
        return -np.log((p * MATRICES[c][:, y].T).sum(axis=1)).sum() + (table[:, :3] ** 2).sum()

    best = optimize.minimize(objective, np.zeros(k * 4), method="BFGS", options={"gtol": 1e-6}).x
    p = special.softmax(np.c_[X, np.ones(300)] @ coefficients(best).T, axis=1) * MATRICES[c][:, y].T
    assert found == pytest.approx(p / p.sum(axis=1, keepdims=True), abs=2e-3)
    assert (found.argmax(axis=1) == truth).mean() > (y == truth).mean()


def test_noise_aware_probabilities_are_calibrated():
    right, said = [], []
    for seed in range(20):
        X, truth, y = noisy(1000, seed=seed)
        p = noise_aware_probabilities(X, y, MATRICES[2])
        said.append(p[:, 1])
        right.append(truth)
    p, t = np.concatenate(said), np.concatenate(right)
    for low in np.arange(0, 1, 0.2):
        part = (p >= low) & (p < low + 0.2)
        assert t[part].mean() == pytest.approx(p[part].mean(), abs=4 * 0.5 / np.sqrt(part.sum()) + 0.02)


def test_noise_removed_leaves_out_what_looks_wrong_and_keeps_what_is_known():
    X, truth, y = noisy(400, gap=5.0)
    model = noise_removed(LogisticRegression(), X, y)
    assert model.score(X, truth) > LogisticRegression().fit(X, y).score(X, truth)
    everything = noise_removed(LogisticRegression(), X, y, keep=np.ones(400, dtype=bool))
    assert np.allclose(everything.coef_, LogisticRegression().fit(X, y).coef_)
    names = noise_removed(LogisticRegression(), X, y, classes=["no", "yes"])
    assert names.classes_.tolist() == ["no", "yes"]


def test_from_an_advisor():
    sim = tu.simulate.tars(n_items=600, means=[[0, 0], [3, 0]], noise_rates=(0.4, 0.05), random_state=0)
    noise = tu.noise.Confusion([[0.6, 0.4], [0.05, 0.95]])
    advisor = tu.CleaningAdvisor(LogisticRegression(), sim.features, sim.labels, noise=noise)
    dirty = advisor.model_.score(sim.features, sim.truth)
    for method in ("noise-tolerant", "noise-removal"):
        assert advisor.oracle_free(method).score(sim.features, sim.truth) > dirty
    with pytest.raises(InvalidParameter, match="method must be"):
        advisor.oracle_free("magic")
