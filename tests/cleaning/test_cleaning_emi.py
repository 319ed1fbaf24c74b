"""Expected model improvement: its definition, its standard error, its ranking and its shortlist."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from trueup.cleaning import UnbiasedScorer, expected_improvement, true_class_probabilities
from trueup.exceptions import InvalidParameter

MATRICES = {2: np.array([[0.6, 0.4], [0.1, 0.9]]), 3: 0.7 * np.eye(3) + 0.1}


def problem(n=60, n_val=80, c=2, metric="accuracy", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_val, 3))
    truth = (X @ rng.normal(size=(3, c)) + 0.5 * rng.gumbel(size=(n + n_val, c))).argmax(axis=1)
    codes = (rng.random(n + n_val)[:, None] > MATRICES[c][truth].cumsum(axis=1)).sum(axis=1)
    chances = true_class_probabilities(codes[:n], MATRICES[c], np.full(c, 1 / c))
    return X[:n], codes[:n], X[n:], UnbiasedScorer(codes[n:], MATRICES[c], metric=metric), chances


def by_definition(estimator, X, y, X_val, scorer, chances):
    """Eq. 16, model by model, with the standard error of the paired differences of items."""
    base = estimator.fit(X, y).predict(X_val)
    expected, errors = np.zeros(len(y)), np.zeros(len(y))
    rows = np.arange(scorer.n_items)
    for i in range(len(y)):
        each = np.zeros(scorer.n_items)
        for c in range(scorer.n_classes):
            if c == y[i]:
                continue
            labels = y.copy()
            labels[i] = c
            predictions = estimator.fit(X, labels).predict(X_val)
            expected[i] += chances[i, c] * (scorer.scores(predictions) - scorer.scores(base))
            each += chances[i, c] * scorer.gains(base)[rows, predictions]
        errors[i] = each.std(ddof=1) / np.sqrt(len(each))
    return scorer.sign * expected, errors


@pytest.mark.parametrize("how", ["fast", "exact"])
@pytest.mark.parametrize("metric", ["accuracy", "error_rate", "macro_f1"])
@pytest.mark.parametrize("c", [2, 3])
def test_definition(c, metric, how):
    task = problem(n=30, n_val=60, c=c, metric=metric)
    expected, errors = by_definition(RidgeClassifier(), *task)
    assert np.unique(expected.round(9)).size > 5
    found = expected_improvement(RidgeClassifier(), *task, how=how, weigh=False)
    assert found.improvement == pytest.approx(expected, abs=1e-11)
    assert found.standard_error == pytest.approx(errors, abs=1e-11)
    assert (found.score == found.improvement).all()
    assert found.exact.all()
    assert found.best()[0] in np.flatnonzero(expected.round(9) == expected.round(9).max())


@pytest.mark.parametrize("c", [2, 3])
def test_fast_logistic_ranks_as_retraining_does(c):
    task = problem(n=80 if c == 2 else 40, n_val=150, c=c)
    estimator = LogisticRegression(tol=1e-9, max_iter=5000)
    full = expected_improvement(estimator, *task, how="exact", warm_start=False)
    for weigh in (True, False):
        fast = expected_improvement(estimator, *task, weigh=weigh, refine=30)
        full = full if weigh else replace(full, score=full.improvement)
        assert fast.how == "fast"
        assert full.how == "exact"
        assert fast.best(20).tolist() == full.best(20).tolist()
        assert fast.improvement[fast.exact] == pytest.approx(full.improvement[fast.exact], abs=1e-11)
        assert fast.exact[fast.order[:20]].all()


def test_weights_are_equation_22():
    task = problem()
    found = expected_improvement(GaussianNB(), *task)
    unsure = 1 - GaussianNB().fit(task[0], task[1]).predict_proba(task[0]).max(axis=1)
    assert found.uncertainty == pytest.approx(unsure)
    assert found.score == pytest.approx(unsure * special.expit(found.improvement))


@pytest.mark.parametrize("estimator", [LogisticRegression(), DecisionTreeClassifier(max_depth=2, random_state=0)])
def test_the_chance_of_a_wrong_label_says_what_is_trained_and_ranks(estimator):
    task, done = problem(c=3), []
    found = expected_improvement(
        estimator, *task, by_chance=True, scale=3.0, refine=12, shortlist=12, progress=lambda k, n: done.append((k, n))
    )
    weight = found.uncertainty * (1 - task[4][np.arange(60), task[1]])
    assert found.score == pytest.approx(weight * special.expit(3 * found.improvement), rel=0.05)
    assert set(np.flatnonzero(found.exact)) == set(np.argsort(-weight, kind="stable")[:12])
    assert done[-1] == (24, 24)  # two classes for each of the twelve


def test_the_standard_error_is_the_spread_over_validation_parts():
    """The same training part, many validation parts: improvements differ as the standard error says."""
    rng = np.random.default_rng(3)
    X, y, _, _, chances = problem(n=40, n_val=10)
    means, errors = [], []
    for _ in range(150):
        X_val = rng.normal(size=(400, 3))
        truth = (X_val[:, 0] > 0).astype(int)
        codes = (rng.random(400)[:, None] > MATRICES[2][truth].cumsum(axis=1)).sum(axis=1)
        scorer = UnbiasedScorer(codes, MATRICES[2])
        found = expected_improvement(RidgeClassifier(), X, y, X_val, scorer, chances, weigh=False)
        means.append(found.improvement)
        errors.append(found.standard_error)
    spread, told = np.std(means, axis=0), np.sqrt(np.mean(np.square(errors), axis=0))
    big = told > 0.3 * told.max()
    assert big.sum() > 3
    assert spread[big] == pytest.approx(told[big], rel=0.25)


class TestShortlist:
    def test_the_shortlist_is_retrained_and_ranks_first(self):
        task = problem()
        estimator = DecisionTreeClassifier(max_depth=2, random_state=0)
        found = expected_improvement(estimator, *task, shortlist=12)
        full = expected_improvement(estimator, *task, how="exact")
        assert found.how == "shortlist"
        assert found.exact.sum() == 12
        assert found.improvement[found.exact] == pytest.approx(full.improvement[found.exact])
        assert found.exact[found.order[:12]].all()
        best = found.best()[0]
        assert full.score[best] == full.score[found.exact].max()


def test_bad_input():
    X, y, X_val, scorer, chances = problem()
    with pytest.raises(InvalidParameter, match="fast path"):
        expected_improvement(DecisionTreeClassifier(), X, y, X_val, scorer, chances, how="fast")
    with pytest.raises(InvalidParameter, match="must be one of"):
        expected_improvement(RidgeClassifier(), X, y, X_val, scorer, chances, how="quick")
    with pytest.raises(InvalidParameter, match="a row for each of 60"):
        expected_improvement(RidgeClassifier(), X[:-1], y, X_val, scorer, chances)
