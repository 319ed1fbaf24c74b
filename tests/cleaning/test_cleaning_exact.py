"""Retraining by joblib: each candidate has the model it says."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.tree import DecisionTreeClassifier

from trueup.cleaning import UnbiasedScorer, flip_candidates, retrained_scores


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(90, 3))).argmax(axis=1)
    scorer = UnbiasedScorer(y[50:], 0.7 * np.eye(3) + 0.1, classes=["c", "a", "b"])
    changes = flip_candidates(y[:50], np.full((50, 3), 1 / 3)).select(np.arange(0, 60, 5))
    return X[:50], y[:50], X[50:], scorer, changes


@pytest.mark.parametrize("backend", ["sequential", "threading"])
def test_scores_are_those_of_models_trained_one_by_one(problem, backend):
    """Whatever backend joblib was told to use."""
    X, y, X_val, scorer, changes = problem
    estimator = DecisionTreeClassifier(max_depth=3, random_state=0)
    done = []
    with parallel_config(backend, n_jobs=2):
        found = retrained_scores(estimator, X, y, X_val, scorer, changes, progress=lambda k, n: done.append((k, n)))
    wanted = []
    for i, c in zip(changes.item, changes.to, strict=True):
        labels = y.copy()
        labels[i] = c
        names = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, scorer.classes[labels]).predict(X_val)
        wanted.append(scorer.scores(np.array([scorer.classes.tolist().index(name) for name in names])))
    assert found.scores == pytest.approx(np.array(wanted))
    assert found.predictions.shape == (len(changes), len(X_val))
    assert done[-1] == (len(changes), len(changes))
    assert not hasattr(estimator, "tree_")
