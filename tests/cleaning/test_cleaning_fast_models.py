"""Fast models predict what retraining with one label changed predicts."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from trueup.cleaning import fast_linear, flip_candidates, flip_models
from trueup.cleaning.flips import retrained_predictions

TIGHT = {"tol": 1e-10, "max_iter": 5000}
WEIGHTS = {0: 1.0, 1: 3.0, 2: 2.0}


def tight(**options):
    return LogisticRegression(**TIGHT, **options)


def svm(**options):
    return LinearSVC(dual=False, tol=1e-10, max_iter=100_000, **options)


# name: estimator, number of classes, whether features are counts
NEWTON = {
    "logistic": (tight(), 2, False),
    "logistic C, no intercept": (tight(C=0.1, fit_intercept=False), 2, False),
    "logistic liblinear": (tight(solver="liblinear", intercept_scaling=2.0), 2, False),
    "logistic weights": (tight(class_weight={0: 1.0, 1: 3.0}), 2, False),
    "logistic balanced": (tight(class_weight="balanced"), 2, False),
    "softmax": (tight(), 3, False),
    "softmax weights": (tight(class_weight=WEIGHTS), 3, False),
    "softmax balanced": (tight(class_weight="balanced", fit_intercept=False), 3, False),
    "svm": (svm(), 2, False),
    "svm three classes": (svm(C=0.3), 3, False),
    "svm weights": (svm(class_weight=WEIGHTS), 3, False),
    "svm balanced": (svm(class_weight="balanced"), 3, False),
}
CLOSED = {
    "ridge": (RidgeClassifier(), 2, False),
    "ridge weights": (RidgeClassifier(alpha=0.1, class_weight=WEIGHTS), 3, False),
    "ridge balanced": (RidgeClassifier(class_weight="balanced", fit_intercept=False), 3, False),
    "gaussian": (GaussianNB(), 2, False),
    "gaussian priors": (GaussianNB(priors=[0.2, 0.3, 0.5], var_smoothing=1e-3), 3, False),
    "multinomial": (MultinomialNB(alpha=0.3), 3, True),
    "multinomial uniform": (MultinomialNB(fit_prior=False), 2, True),
    "bernoulli": (BernoulliNB(binarize=2.5), 3, True),
    "bernoulli prior": (BernoulliNB(class_prior=[0.4, 0.6], binarize=2.5, alpha=0.1), 2, True),
}


def data(n, n_classes, *, counts=False, seed=0, d=4):
    rng = np.random.default_rng(seed)
    X = rng.poisson(2.5, size=(2 * n, d)).astype(float) if counts else rng.normal(size=(2 * n, d)) + 0.5
    y = (X @ rng.normal(size=(d, n_classes)) + 1.5 * rng.gumbel(size=(2 * n, n_classes))).argmax(axis=1)
    return X[:n], y[:n], X[n:]


def all_predictions(models, X_val, changes, **options):
    found = np.full((len(changes), X_val.shape[0]), -1)
    for rows, predictions in models.decision_blocks(X_val, changes, **options):
        assert (found[rows] == -1).all()  # each candidate once
        found[rows] = predictions
    return found


@cache
def retrained(name):
    """All models of a setting, trained one by one."""
    estimator, n_classes, counts = {**NEWTON, **CLOSED}[name]
    n = 120 // n_classes
    X, y, X_val = data(n, n_classes, counts=counts)
    changes = flip_candidates(y, np.full((n, n_classes), 1 / n_classes))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="sklearn")  # its solvers complain of the tolerance
        model = estimator.fit(X, y)
        wanted = retrained_predictions(estimator, X, y, X_val, np.arange(n_classes), changes, warm_start=False)
    return model, X, y, X_val, changes, wanted


def both(name, **options):
    model, X, y, X_val, changes, wanted = retrained(name)
    models = flip_models(model, X, y)
    base = model.predict(X_val)
    assert (models.base_predictions(X_val) == base).all()
    assert (wanted != base).any()  # there is something to find
    return all_predictions(models, X_val, changes, **options), wanted, base


@pytest.mark.parametrize("name", NEWTON)
def test_newton_steps_to_convergence_are_retraining(name):
    found, wanted, _ = both(name, exact=True)
    assert (found == wanted).all()


@pytest.fixture
def never_exact(monkeypatch):
    """Small problems are solved to convergence; here the steps themselves are tested."""
    monkeypatch.setattr(fast_linear, "SMALL_WORK", 0)


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_are_retraining(name):
    found, wanted, _ = both(name)
    assert (found == wanted).all()


@pytest.mark.parametrize(
    ("estimator", "n_classes"), [(tight(), 2), (tight(), 3), (MultinomialNB(), 3)], ids=["two", "three", "counts"]
)
def test_blocks_do_not_depend_on_the_memory_limit_or_on_sparsity(estimator, n_classes):
    X, y, X_val = data(50, n_classes, counts=True)
    changes = flip_candidates(y, np.full((50, n_classes), 1 / n_classes))
    estimator.fit(X, y)
    models = flip_models(estimator, X, y)
    plain = all_predictions(models, X_val, changes)
    assert (all_predictions(models, X_val, changes, memory_limit=20_000) == plain).all()
    thin = flip_models(estimator, sparse.csr_array(X), y)
    assert (all_predictions(thin, sparse.csr_array(X_val), changes) == plain).all()


@pytest.mark.parametrize(("n_classes", "share"), [(2, 0.01), (3, 0.05)], ids=["second order", "first order"])
@pytest.mark.usefixtures("never_exact")
def test_steps_are_close_to_retraining(n_classes, share):
    X, y, _ = data(400, n_classes, d=2)
    changes = flip_candidates(y, np.full((400, n_classes), 1 / n_classes)).select(np.arange(0, 400, 40))
    model = tight().fit(X, y)
    models = flip_models(model, X, y)
    shifts = models.shifts(changes, exact=False, memory_limit=1 << 30)
    for shift, i, c in zip(shifts, changes.item, changes.to, strict=True):
        labels = y.copy()
        labels[i] = c
        again = tight().fit(X, labels)
        move = np.abs(again.coef_ - model.coef_).max()
        off = np.abs(models.theta[:, 1:] + shift[:, 1:] - again.coef_).max()
        assert off < 2e-5 + share * move


def test_pipelines_whose_transformers_do_not_see_labels():
    X, y, X_val = data(100, 2)
    changes = flip_candidates(y, np.full((100, 2), 0.5))
    pipeline = make_pipeline(StandardScaler(), PCA(3), tight()).fit(X, y)
    found = all_predictions(flip_models(pipeline, X, y), X_val, changes, exact=True)
    wanted = retrained_predictions(pipeline, X, y, X_val, np.arange(2), changes)
    assert (found == wanted).all()
    assert flip_models(make_pipeline(SelectKBest(k=2), tight()).fit(X, y), X, y) is None


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(),
        LogisticRegression(l1_ratio=0.5, solver="saga", max_iter=5000),
        LinearSVC(loss="hinge", max_iter=100_000),
        RidgeClassifier(positive=True),
        MultinomialNB(alpha=[1.0, 2.0, 1.0, 1.0]),
    ],
    ids=["tree", "elastic net", "hinge", "positive ridge", "alphas"],
)
def test_no_fast_path(estimator):
    X, y, _ = data(60, 2, counts=True)
    assert flip_models(estimator.fit(X, y), X, y) is None
