"""NoisyLogisticRegression: derivatives by finite differences, special cases, consistency."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

import trueup as tu
from trueup.exceptions import ConvergenceWarning, InvalidParameter
from trueup.training import NoisyLogisticRegression
from trueup.training.objectives import LogisticObjective, NoisyLikelihood, SoftTargets


def objective_of(kind, n_classes, *, fit_intercept=True, thin=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 4))
    loss = (
        NoisyLikelihood(np.log(rng.dirichlet([1.0] * n_classes, size=30)))
        if kind == "likelihood"
        else SoftTargets(rng.normal(size=(30, n_classes)) + 1 / n_classes)
    )
    if kind != "likelihood":
        loss = SoftTargets(loss.targets - loss.targets.mean(axis=1, keepdims=True) + 1 / n_classes)
    objective = LogisticObjective(sparse.csr_array(X) if thin else X, loss, n_classes, 0.7, fit_intercept)
    return objective, rng.normal(size=objective.n_rows * (4 + fit_intercept))


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "through-zero"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["likelihood", "soft"])
def test_gradient(kind, n_classes, fit_intercept, thin):
    objective, theta = objective_of(kind, n_classes, fit_intercept=fit_intercept, thin=thin)
    error = check_grad(
        lambda t: objective.value_and_gradient(t)[0], lambda t: objective.value_and_gradient(t)[1], theta, seed=0
    )
    assert error < 1e-4


def test_a_solver_of_before_says_that_it_goes(three_classes):
    X, labels, _ = three_classes
    with pytest.warns(DeprecationWarning, match="`solver` has no effect"):
        NoisyLogisticRegression(solver="trust-ncg").fit(X, labels)


def test_the_likelihood_is_that_of_the_votes(three_classes):
    X, labels, _ = three_classes
    noise = tu.noise.DawidSkene().fit(labels)
    matrices, theta = noise.confusion_for(labels), np.random.default_rng(0).normal(size=12)
    objective = LogisticObjective(X, NoisyLikelihood(noise.log_likelihood(labels)), 3, 0.0)
    slope, intercept = objective.parts(theta)
    chances = softmax(X @ slope.T + intercept, axis=1)
    total = 0.0
    for i in range(labels.n_items):
        start, end = labels.votes.indptr[i : i + 2]
        said = [matrices[column // 3, :, column % 3] for column in labels.votes.indices[start:end]]
        total -= np.log((chances[i] * np.prod(said, axis=0)).sum())
    np.testing.assert_allclose(objective.value_and_gradient(theta)[0], total)


@pytest.mark.parametrize("method", ["map", "mmse"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_perfect_labelers_give_sklearn(method, n_classes, three_classes):
    X, _, truth = three_classes
    truth = np.minimum(truth, n_classes - 1)
    plain = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(X, truth)
    labels = tu.Labels.from_matrix(np.repeat(truth[:, None], 2, axis=1))
    noise = tu.noise.Confusion(np.eye(n_classes))
    for y in (labels, truth):
        model = NoisyLogisticRegression(method=method, C=0.5, noise=noise).fit(X, y)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=2e-4)
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("joint", [False, True], ids=["known", "joint"])
def test_likelihood_is_consistent_where_the_risk_is_not(joint):
    # The classes are N(0, 1) and N(2, 1): the log-odds are 2 x − 2. Soft labels flatten them, the likelihood does not.
    matrices = [[[0.8, 0.2], [0.3, 0.7]]] * 3
    sim = tu.simulate.tars(n_items=8000, n_labelers=3, confusion=matrices, means=[[0.0], [2.0]], random_state=1)
    noise = "dawid-skene" if joint else tu.noise.Confusion(matrices)
    ml = NoisyLogisticRegression(method="ml", joint=joint, noise=noise).fit(sim.features, sim.labels)
    assert abs(ml.coef_[0, 0] - 2) < 0.25
    assert abs(ml.intercept_[0] + 2) < 0.3
    if joint:
        np.testing.assert_allclose(ml.noise_.confusion_for(sim.labels), matrices, atol=0.05)
    else:
        mmse = NoisyLogisticRegression(method="mmse", noise=noise).fit(sim.features, sim.labels)
        assert mmse.coef_[0, 0] < 1.5


def test_joint_learns_labelers_of_one_vote_an_item():
    rng = np.random.default_rng(0)
    sim = tu.simulate.tars(n_items=2000, means=[[0, 0], [4, 0]], noise_rates=0.0, random_state=0)
    right = np.linspace(0.55, 0.95, 8)
    who = rng.integers(8, size=2000)
    said = np.where(rng.random(2000) < right[who], sim.truth, 1 - sim.truth)
    labels = tu.Labels.from_frame({"item": np.arange(2000), "labeler": who, "label": said})
    with pytest.warns(tu.exceptions.IdentifiabilityWarning):
        model = NoisyLogisticRegression(joint=True).fit(sim.features, labels)
    learned = model.noise_.confusion_for(labels)[:, [0, 1], [0, 1]].mean(axis=1)
    np.testing.assert_allclose(learned, right, atol=0.08)
    assert (model.posterior_.argmax(axis=1) == sim.truth).mean() > 0.96 > (said == sim.truth).mean()


def test_sparse_features_and_gold(three_classes):
    X, labels, truth = three_classes
    told = labels.with_gold({int(i): int(truth[i]) for i in range(20)})
    dense = NoisyLogisticRegression(joint=True).fit(X, told)
    thin = NoisyLogisticRegression(joint=True).fit(sparse.csr_matrix(X), told)
    np.testing.assert_allclose(dense.coef_, thin.coef_, atol=1e-6)
    assert (dense.posterior_[:20].argmax(axis=1) == truth[:20]).all()
    assert dense.posterior_[:20].max(axis=1).min() == 1


def test_bad_input(crowd):
    X, labels, *_ = crowd
    with pytest.raises(InvalidParameter, match="joint=True maximises a likelihood"):
        NoisyLogisticRegression(method="mmse", joint=True).fit(X, labels)
    with pytest.raises(InvalidParameter, match="`method` must be one of"):
        NoisyLogisticRegression(method="em").fit(X, labels)
    with pytest.raises(InvalidParameter, match="`C` must be a number"):
        NoisyLogisticRegression(C=0).fit(X, labels)
    with pytest.warns(ConvergenceWarning, match="did not settle in 1 iterations"):
        NoisyLogisticRegression(max_iter=1).fit(X, labels)
