"""NoisyLabelClassifier: each strategy is what it says, on small cases that can be had another way."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.training import NoisyLabelClassifier
from trueup.training.copies import weighted_copies
from trueup.training.objectives import LogisticObjective, SoftTargets, minimise, soft_logistic
from trueup.training.strategies import TRAINING_STRATEGIES

EXACT = {"tol": 1e-10, "max_iter": 1000}


def logistic(**options):
    return LogisticRegression(**EXACT, **options)


def test_weighted_copies_keep_the_mass_of_each_item():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([0.05] * 5, size=200)
    for options in ({"min_weight": 0.0}, {"min_weight": 0.01}, {"min_weight": 0.5}, {"min_weight": 0, "max_copies": 2}):
        found = weighted_copies(shares, **options)
        weight = np.ones(len(found.item)) if found.weight is None else found.weight
        np.testing.assert_allclose(np.bincount(found.item, weight, minlength=200), 1.0)
        assert np.bincount(found.item).max() <= options.get("max_copies", 5)
    exact = weighted_copies(shares, min_weight=0.0)
    table = np.zeros_like(shares)
    table[exact.item, exact.code] = exact.weight
    np.testing.assert_allclose(table, shares)


def test_mmse_minimises_the_mmse_risk(three_classes):
    X, labels, _ = three_classes
    model = NoisyLabelClassifier(logistic(), min_weight=0.0).fit(X, labels)
    objective = LogisticObjective(X, SoftTargets(model.posterior_), 3, 1.0)
    best = minimise(objective, np.zeros(12), tol=1e-9, max_iter=500)
    np.testing.assert_allclose(model.estimator_.coef_, objective.parts(best.theta)[0], atol=1e-4)


@pytest.mark.parametrize("strategy", sorted(TRAINING_STRATEGIES))
def test_perfect_labelers_give_the_ordinary_classifier(strategy, three_classes):
    X, _, truth = three_classes
    plain = logistic().fit(X, truth)
    noise = tu.noise.Confusion(np.eye(3))
    perfect = tu.Labels.from_matrix(np.repeat(truth[:, None], 3, axis=1))
    for y, model in ((perfect, noise), (truth, "dawid-skene")):
        found = NoisyLabelClassifier(logistic(), strategy=strategy, noise=model).fit(X, y)
        np.testing.assert_allclose(found.predict_proba(X), plain.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("estimator", [logistic(), GaussianNB()], ids=["logistic", "gaussian"])
def test_bad_labelers_hurt_majority_and_not_mmse(estimator):
    wins = []
    for seed in range(5):
        sim = tu.simulate.tars(
            n_items=1000,
            n_labelers=7,
            confusion=[[[0.9, 0.1], [0.1, 0.9]]] * 2
            + [[[0.5, 0.5], [0.95, 0.05]]] * 2
            + [[[0.5, 0.5], [0.5, 0.5]]] * 3,
            means=[[0, 0], [2, 0]],
            random_state=seed,
        )
        noise = tu.noise.Confusion(sim.parameters["confusion"])
        train, test = slice(0, 500), slice(500, None)
        labels = sim.labels.select(items=range(500))
        scores = [
            NoisyLabelClassifier(clone(estimator), strategy=strategy, noise=noise)
            .fit(sim.features[train], labels)
            .score(sim.features[test], sim.truth[test])
            for strategy in ("mmse", "majority")
        ]
        wins.append(scores[0] - scores[1])
    assert np.mean(wins) > 0.01


@pytest.mark.parametrize("strategy", sorted(set(TRAINING_STRATEGIES) - {"majority"}))
def test_every_strategy_learns(strategy, crowd):
    X, labels, X_test, truth, sim = crowd
    best = LogisticRegression().fit(X, sim.truth[:600]).score(X_test, truth)
    model = NoisyLabelClassifier(LogisticRegression(), strategy=strategy).fit(X, labels)
    assert model.score(X_test, truth) > best - 0.05
    assert model.posterior_.shape == (600, 2)


def test_order_of_classes_does_not_matter(crowd):
    X, labels, X_test, *_ = crowd
    frame = {"item": [], "labeler": [], "label": []}
    for i, t, a, _ in zip(*labels.vote_table(), strict=True):
        frame["item"].append(int(i)), frame["labeler"].append(int(t)), frame["label"].append("ba"[a])
    forth, back = (tu.Labels.from_frame(frame, classes=classes) for classes in (["a", "b"], ["b", "a"]))
    for strategy in ("mmse", "unbiased", "voting"):
        a, b = (NoisyLabelClassifier(logistic(), strategy=strategy).fit(X, y) for y in (forth, back))
        assert a.classes_.tolist() == ["a", "b"]
        assert b.classes_.tolist() == ["b", "a"]
        np.testing.assert_allclose(a.predict_proba(X_test), b.predict_proba(X_test)[:, ::-1], atol=1e-4)
        assert (a.predict(X_test) == b.predict(X_test)).all()
        assert (b.predict(X_test) == b.classes_[b.predict_proba(X_test).argmax(axis=1)]).all()
        if strategy != "voting":
            np.testing.assert_allclose(a.decision_function(X_test), -b.decision_function(X_test), atol=1e-3)


def test_the_unbiased_loss_is_unbiased():
    """Items for every x, truth and label, as many as they are probable, give the coefficients of the truth."""
    matrix = np.array([[0.6, 0.4], [0.1, 0.9]])
    x, p, n = np.array([-1.0, 0.0, 2.0]), np.array([0.2, 0.5, 0.9]), 1000
    truth_shares = np.stack([1 - p, p], axis=1)
    noisy = np.rint(n * truth_shares @ matrix).astype(int)
    X = np.repeat(x, noisy.sum(axis=1))[:, None]
    said = np.concatenate([np.repeat([0, 1], counts) for counts in noisy])
    labels = tu.Labels.from_matrix(said[:, None], classes=range(2))
    prior = truth_shares.mean(axis=0)
    found = NoisyLabelClassifier(
        LogisticRegression(C=1.0, tol=1e-8), strategy="unbiased", noise=tu.noise.Confusion(matrix, prior=prior)
    ).fit(X, labels)
    slope, intercept = soft_logistic(X, np.repeat(truth_shares, noisy.sum(axis=1), axis=0), penalty=1.0)
    np.testing.assert_allclose(found.estimator_.coef_, slope, atol=1e-3)
    np.testing.assert_allclose(found.estimator_.intercept_, intercept, atol=1e-3)


def test_unbiased_corrects_one_sided_noise():
    matrix = [[0.55, 0.45], [0.0, 1.0]]
    sim = tu.simulate.tars(n_items=4000, confusion=matrix, means=[[0, 0], [3, 0]], random_state=1)
    noise = tu.noise.Confusion(matrix)
    for estimator in (logistic(), make_pipeline(StandardScaler(), logistic()), GaussianNB()):
        naive, found = (
            NoisyLabelClassifier(estimator, strategy=strategy, noise=noise).fit(sim.features, sim.labels)
            for strategy in ("majority", "unbiased")
        )
        assert found.score(sim.features, sim.truth) > 0.92 > 0.9 > naive.score(sim.features, sim.truth)


@pytest.mark.parametrize("strategy", ["mmse", "replication", "label-estimation"])
def test_steps_of_a_pipeline_see_each_item_once(strategy, crowd):
    X, labels, *_ = crowd
    model = NoisyLabelClassifier(make_pipeline(StandardScaler(), logistic()), strategy=strategy).fit(X, labels)
    np.testing.assert_allclose(model.estimator_[0].mean_, X.mean(axis=0))
    assert model.estimator_[0].n_samples_seen_ == 600
    outside = make_pipeline(StandardScaler(), NoisyLabelClassifier(logistic(), strategy=strategy)).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(X), outside.predict_proba(X), atol=1e-6)


def test_items_without_votes():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
    labels = tu.Labels.from_matrix([[0, 0], [0, 0], [1, 1], [1, 1], [0, 1]]).select(items=range(4))
    columns = {
        "item": [0, 0, 1, 1, 2, 2, 3, 3, 4],
        "labeler": [0, 1] * 4 + [0],
        "label": [0, 0, 0, 0, 1, 1, 1, 1, None],
    }
    with pytest.warns(tu.exceptions.DataWarning, match="1 of 5 items"):
        full = tu.Labels.from_frame(columns, missing=None)
    noise = tu.noise.Confusion([[0.8, 0.2], [0.2, 0.8]], prior=[0.4, 0.6])
    assert full.n_items == 5
    dropped = NoisyLabelClassifier(logistic(), noise=noise).fit(X, full)
    without = NoisyLabelClassifier(logistic(), noise=noise).fit(X[:4], labels)
    np.testing.assert_allclose(dropped.estimator_.coef_, without.estimator_.coef_, atol=1e-6)
    kept = NoisyLabelClassifier(logistic(), noise=noise, unlabelled="prior").fit(X, full)
    np.testing.assert_allclose(kept.posterior_[4], [0.4, 0.6])
    assert abs(kept.estimator_.coef_ - dropped.estimator_.coef_).max() > 1e-3
    with pytest.raises(InvalidLabels, match="got 1 without"):
        NoisyLabelClassifier(logistic(), noise=noise, unlabelled="error").fit(X, full)


def test_frames_and_texts():
    pd = pytest.importorskip("pandas")
    from sklearn.feature_extraction.text import TfidfVectorizer

    labels = tu.Labels.from_matrix([["b", "b", "a"], ["a", "a", "a"], ["b", "b", "b"], ["a", "b", "a"]], missing=None)
    noise = tu.noise.Confusion([[0.8, 0.2], [0.2, 0.8]])
    texts = ["good film", "bad film", "good", "bad bad"]
    model = NoisyLabelClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()), noise=noise).fit(texts, labels)
    assert model.predict(texts).tolist() == ["b", "a", "b", "a"]
    frame = pd.DataFrame({"length": [9.0, 1.0, 8.0, 2.0]}, index=list("wxyz"))
    model = NoisyLabelClassifier(LogisticRegression(), noise=noise).fit(frame, labels)
    assert model.predict(frame).tolist() == ["b", "a", "b", "a"]
    assert model.feature_names_in_.tolist() == ["length"]


def test_clones_share_the_votes(crowd):
    labels = crowd[1]
    model = clone(NoisyLabelClassifier(LogisticRegression(C=3.0), labels=labels, strategy="majority"))
    assert model.labels is labels
    assert (model.estimator.C, model.strategy) == (3.0, "majority")


def test_an_estimator_without_weights_is_offered_replication(crowd):
    X, labels, X_test, truth, _ = crowd
    with pytest.raises(InvalidParameter, match=r'KNeighborsClassifier.*strategy="replication"'):
        NoisyLabelClassifier(KNeighborsClassifier()).fit(X, labels)
    model = NoisyLabelClassifier(KNeighborsClassifier(50), strategy="replication", n_copies=4).fit(X, labels)
    assert model.score(X_test, truth) > 0.8


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({}, lambda X, y: (X[:-1], y), "599 rows and 600 items"),
        ({"strategy": "mse"}, None, "did you mean 'mmse'"),
        ({"unlabelled": "skip"}, None, "`unlabelled` must be one of"),
        ({"min_weight": 0.7}, None, "`min_weight` must be a number"),
        ({"max_copies": 0}, None, "`max_copies` must be an integer"),
        ({}, lambda X, y: (X, None), "requires y to be passed"),
        ({"noise": "glad", "strategy": "voting"}, None, "confusion matrix for each labeler"),
    ],
    ids=["rows", "strategy", "unlabelled", "min-weight", "max-copies", "no-y", "no-matrices"],
)
def test_bad_input_is_one_sentence(options, change, message, crowd):
    X, y = crowd[:2] if change is None else change(*crowd[:2])
    with pytest.raises(ValueError, match=message) as error:
        NoisyLabelClassifier(LogisticRegression(), **options).fit(X, y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("y", [[0, 1, 600], [0.5, 1.0, 2.0], [-1, 0, 1]], ids=["beyond", "float", "negative"])
def test_positions_must_be_positions(y, crowd):
    with pytest.raises(InvalidParameter, match=r"positions in labels\.items \(0 to 599\)"):
        NoisyLabelClassifier(LogisticRegression(), labels=crowd[1]).fit(crowd[0][:3], y)


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(max_depth=2, random_state=0), SVC(), logistic()])
def test_balanced_classes_count_weights_and_not_copies(estimator):
    rng = np.random.default_rng(0)
    truth = (rng.random(1000) < 0.1).astype(int)
    X = rng.normal(size=(1000, 2)) + truth[:, None]
    votes = np.where(rng.random((1000, 5)) < 0.75, truth[:, None], 1 - truth[:, None])
    balanced = clone(estimator).set_params(class_weight="balanced")
    known = tu.noise.Confusion([[0.75, 0.25], [0.25, 0.75]], prior=[0.9, 0.1])
    share = {}
    for name, one in (("plain", estimator), ("balanced", balanced)):
        model = NoisyLabelClassifier(one, noise=known).fit(X, tu.Labels.from_matrix(votes))
        share[name] = model.predict(X).mean()
    ideal = clone(balanced).fit(X, truth).predict(X).mean()
    assert share["plain"] < 0.1
    assert abs(share["balanced"] - ideal) < 0.12
    assert model.estimator_.get_params()["class_weight"] == "balanced"


def test_a_search_without_a_scorer_is_an_error(crowd):
    X, labels, *_ = crowd
    with pytest.raises(InvalidParameter, match="score needs true classes"):
        cross_val_score(
            NoisyLabelClassifier(logistic(), labels=labels), X, np.arange(600), cv=KFold(3), error_score="raise"
        )
