"""Cross-validation and searches that never see the truth."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.training import NoisyLabelClassifier, NoisyLogisticRegression, scorer


class Sayer:
    """A classifier that says what it is given, of all rows in order."""

    def __init__(self, said):
        self.said, self.classes_ = said, np.array([0, 1])

    def predict(self, X):
        return self.said


@pytest.fixture(scope="module")
def fitted(crowd):
    X, labels, _, _, sim = crowd
    return NoisyLabelClassifier(LogisticRegression()).fit(X, labels), sim, np.arange(600, 1200)


@pytest.mark.parametrize(
    ("metric", "actual"),
    [
        ("auc", lambda model, X, y: roc_auc_score(y, model.decision_function(X))),
        ("accuracy", lambda model, X, y: accuracy_score(y, model.predict(X))),
        (accuracy_score, lambda model, X, y: accuracy_score(y, model.predict(X))),
    ],
    ids=["auc", "accuracy", "function"],
)
def test_the_estimate_is_near_the_truth(metric, actual, fitted):
    model, sim, test = fitted
    judge = scorer(metric, sim.labels, noise="dawid-skene")
    truth = actual(model, sim.features[test], sim.truth[test])
    assert abs(judge(model, sim.features[test], test) - truth) < 0.03
    low, high = judge.estimate(model, sim.features[test], test).interval(0.99)
    assert low < truth < high


def test_the_plain_score_is_low_where_votes_are_weak_and_keeps_the_order(fitted):
    """Four of seven labelers guess: the classifier is better than what votes can show."""
    model, sim, test = fitted
    better = model.predict(sim.features[test])
    worse = np.where(np.arange(600) % 5 == 0, 1 - better, better)
    judge = scorer("accuracy", sim.labels)
    scores = []
    for said in (better, worse):
        estimate = judge.estimate(Sayer(said), test, test)
        assert estimate.mean < np.mean(said == sim.truth[test]) < estimate.interval(0.95)[1]
        scores.append(estimate.mean)
    assert scores[0] > scores[1] + 0.05


def test_with_perfect_labelers_the_score_is_the_metric(fitted):
    model, sim, test = fitted
    labels = tu.Labels.from_matrix(sim.truth[:, None])
    judge = scorer("auc", labels, noise=tu.noise.Confusion(np.eye(2)))
    expected = roc_auc_score(sim.truth[test], model.decision_function(sim.features[test]))
    assert judge(model, sim.features[test], test) == pytest.approx(expected, abs=1e-9)
    assert judge(model, sim.features, None) == pytest.approx(
        roc_auc_score(sim.truth, model.decision_function(sim.features)), abs=1e-9
    )


def test_the_positive_class_can_be_chosen(fitted):
    model, sim, test = fitted
    first, second = (
        scorer("auc", sim.labels, positive=c, noise="dawid-skene")(model, sim.features[test], test) for c in (0, 1)
    )
    assert first == pytest.approx(second, abs=0.02)
    recall = [
        scorer("recall", sim.labels, positive=c, noise="dawid-skene")(model, sim.features[test], test) for c in (0, 1)
    ]
    actual = [(model.predict(sim.features[test]) == sim.truth[test])[sim.truth[test] == c].mean() for c in (0, 1)]
    np.testing.assert_allclose(recall, actual, atol=0.06)


def test_cross_validation(crowd):
    X, labels, _, _, sim = crowd
    folds = KFold(3, shuffle=True, random_state=0)
    judge = scorer("auc", labels, noise="dawid-skene", n_draws=100)
    y = np.arange(600)
    for model in (NoisyLabelClassifier(LogisticRegression(), labels=labels), NoisyLogisticRegression(labels=labels)):
        estimated = cross_val_score(model, X, y, scoring=judge, cv=folds)
        actual = cross_val_score(LogisticRegression(), X, sim.truth[:600], scoring="roc_auc", cv=folds)
        assert abs(estimated.mean() - actual.mean()) < 0.03


@pytest.mark.parametrize("noise", [None, "dawid-skene"])
def test_a_search_finds_the_better_model_without_truth(crowd, noise):
    X, labels, *_ = crowd
    shifted = np.column_stack([X, 1e4 * np.random.default_rng(0).normal(size=(600, 40))])
    model = make_pipeline(StandardScaler(), NoisyLabelClassifier(LogisticRegression(), labels=labels))
    grid = {"noisylabelclassifier__estimator__C": [1e-6, 1e-2], "noisylabelclassifier__strategy": ["mmse", "majority"]}
    search = GridSearchCV(model, grid, scoring=scorer("accuracy", labels, noise=noise, n_draws=50), cv=KFold(3))
    search.fit(shifted, np.arange(600))
    assert search.best_params_["noisylabelclassifier__estimator__C"] == 1e-2
    assert noise is None or search.best_score_ > 0.75


def test_it_can_be_pickled(fitted):
    model, sim, test = fitted
    judge = scorer("accuracy", sim.labels, n_draws=50)
    again = pickle.loads(pickle.dumps(judge))
    assert again(model, sim.features[test], test) == judge(model, sim.features[test], test)


def test_bad_input(fitted):
    model, sim, test = fitted
    with pytest.raises(InvalidParameter, match="`positive` must be one of the classes"):
        scorer("auc", sim.labels, positive="yes")
    with pytest.raises(InvalidLabels, match="labels must be Labels"):
        scorer("auc", sim.truth)
    with pytest.raises(InvalidParameter, match="metric"):
        scorer("acuracy", sim.labels)
    judge = scorer("log_loss", sim.labels)
    with pytest.raises(InvalidLabels, match="600 rows and 10 positions"):
        judge(model, sim.features[test], test[:10])
    with pytest.raises(InvalidPredictions, match="wrap it in"):
        judge(LogisticRegression().fit(sim.features[:9], np.arange(9)), sim.features[test], test)
    with pytest.raises(InvalidPredictions, match="log_loss needs predict_proba"):
        judge(LinearSVC().fit(sim.features, sim.truth), sim.features[test], test)


def share_held(n, *, narrowed=1.0):
    """How often the 90% interval of accuracy holds the actual value, with labelers whose rates are known."""
    matrix, held = [[0.75, 0.25], [0.3, 0.7]], 0
    for seed in range(n):
        sim = tu.simulate.tars(
            n_items=260, n_labelers=3, confusion=[matrix] * 3, means=[[0, 0], [1.5, 0]], random_state=seed
        )
        model = LogisticRegression().fit(sim.features[:60], sim.truth[:60])
        at = np.arange(60, 260)
        judge = scorer("accuracy", sim.labels, noise=tu.noise.Confusion(matrix, prior=[0.5, 0.5]), n_draws=400)
        low, high = judge.estimate(model, sim.features[at], at).interval(0.9)
        middle, half = (low + high) / 2, narrowed * (high - low) / 2 + 1e-9
        held += abs(model.score(sim.features[at], sim.truth[at]) - middle) <= half
    return held / n


def least(n):
    """Two standard errors below a share of 0.9."""
    return 0.9 - 2 * np.sqrt(0.09 / n)


def test_intervals_of_scores_hold_as_often_as_they_say():
    assert share_held(100) > least(100)


@pytest.mark.slow
def test_intervals_of_scores_hold_and_a_fifth_less_would_not():
    assert share_held(500, narrowed=0.8) < least(500) < share_held(500)
