"""Metrics of scores by name."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from trueup import metrics
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics import ScoreMetric, check_scores, get_score_metric, list_score_metrics


def data(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    truths = rng.integers(0, n_classes, (6, 30))
    truths[:, :n_classes] = np.arange(n_classes)
    probabilities = rng.dirichlet(np.ones(n_classes), 30)
    return truths, probabilities, rng.exponential(size=truths.shape)


@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("roc_auc", "auc"),
        ("ROC-AUC", "auc"),
        ("auc-ovo", "auc_ovo"),
        ("hand-till", "auc_ovo"),
        ("AP", "average_precision"),
        ("average-precision", "average_precision"),
        ("precision@10", "precision@10"),
        (" Recall@5 ", "recall@5"),
        ("ndcg", "ndcg"),
        ("ndcg@03", "ndcg@3"),
        ("partial-auc@0.1", "partial_auc@0.1"),
        ("partial_auc@.25", "partial_auc@0.25"),
        ("log-loss", "log_loss"),
        ("brier", "brier"),
        ("ece", "calibration_error"),
    ],
)
def test_names(name, known_as):
    found = get_score_metric(name, 2)
    assert found is not None
    assert found.name == known_as
    assert found.description


def test_every_listed_name_is_known_and_evaluates_within_its_bounds():
    for n_classes in (2, 4):
        truths, probabilities, weights = data(n_classes)
        for name in list_score_metrics():
            metric = get_score_metric(name, n_classes)
            assert metric is not None
            outputs = probabilities if metric.needs == "probabilities" else probabilities[:, 1]
            for weight in (None, weights):
                values = metric.evaluate(truths, outputs, positive=1, weights=weight)
                assert values.shape == (6,)
                assert ((values >= metric.bounds[0]) & (values <= metric.bounds[1])).all()


@pytest.mark.parametrize("name", ["accuracy", "precision", "recall", "f1", "kendall", "auc:cat", "auc_ov", ""])
def test_other_names_are_none(name):
    assert get_score_metric(name, 2) is None


@pytest.mark.parametrize(
    "name",
    [
        "precision@0",
        "precision@",
        "precision@ten",
        "recall@1.5",
        "ndcg@-1",
        "partial_auc",
        "partial_auc@2",
        "partial_auc@0",
        "partial_auc@x",
        "auc@3",
        "log_loss@3",
    ],
)
def test_ill_formed_names_say_so(name):
    with pytest.raises(InvalidParameter) as caught:
        get_score_metric(name, 2)
    assert repr(name) in str(caught.value)
    assert "write" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_positive_class_decides():
    truths, probabilities, _ = data(2)
    auc = get_score_metric("auc", 2)
    assert auc is not None
    as_one = auc.evaluate(truths, probabilities[:, 1], positive=1)
    np.testing.assert_allclose(as_one, [sk.roc_auc_score(y, probabilities[:, 1]) for y in truths])
    np.testing.assert_allclose(auc.evaluate(truths, probabilities[:, 0], positive=0), as_one)
    np.testing.assert_allclose(auc.evaluate(truths, probabilities[:, 1], positive=0), 1 - as_one)


def test_auc_of_more_classes_is_one_against_the_rest():
    truths, probabilities, _ = data(3)
    auc = get_score_metric("auc", 3)
    assert auc is not None
    assert auc.needs == "probabilities"
    expected = [sk.roc_auc_score(y, probabilities, multi_class="ovr") for y in truths]
    np.testing.assert_allclose(auc.evaluate(truths, probabilities, positive=0), expected)


def test_ranking_one_of_more_classes():
    truths, probabilities, _ = data(3)
    metric = get_score_metric("average_precision", 3)
    assert metric is not None
    expected = [sk.average_precision_score(y == 2, probabilities[:, 2]) for y in truths]
    np.testing.assert_allclose(metric.evaluate(truths, probabilities[:, 2], positive=2), expected)


def test_which_way_is_good():
    lower = {"log_loss", "brier", "calibration_error"}
    for name in list_score_metrics():
        found = get_score_metric(name, 2)
        assert found is not None
        assert found.higher_is_better == (found.name not in lower)


def test_bounds_of_the_brier_score():
    two, three = get_score_metric("brier", 2), get_score_metric("brier", 3)
    assert two is not None
    assert three is not None
    assert two.evaluate([[0]], [[0.0, 1.0]], positive=1).tolist() == [two.bounds[1]]
    assert three.evaluate([[0]], [[0.0, 1.0, 0.0]], positive=1).tolist() == [three.bounds[1]]


def test_a_long_k_is_one_sentence_at_evaluation():
    for name in ("precision@31", "recall@31", "ndcg@31"):
        metric = get_score_metric(name, 2)
        assert metric is not None
        truths, probabilities, weights = data(2)
        for weight in (None, weights):
            with pytest.raises(InvalidParameter, match="at most the number of items, 30, got 31"):
                metric.evaluate(truths, probabilities[:, 1], positive=1, weights=weight)


def test_positive_and_codes_are_checked():
    auc = get_score_metric("auc", 2)
    assert auc is not None
    with pytest.raises(InvalidParameter, match="positive"):
        auc.evaluate([[0, 1]], [0.1, 0.2], positive=2)
    with pytest.raises(InvalidParameter, match="between 0 and 1"):
        auc.evaluate([[0, 2]], [0.1, 0.2], positive=1)


def test_a_metric_of_ones_own():
    own = ScoreMetric("first", lambda truths, scores, weights: truths[:, np.argmax(scores)].astype(float), "scores")
    assert own.evaluate([[0, 1], [1, 0]], [0.1, 0.9], positive=1).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_raise_and_name_the_system(bad):
    with pytest.raises(InvalidPredictions, match="the scores of 'model' must be finite, got 2"):
        check_scores([0.1, bad, bad], system="model")


def test_constant_scores_are_a_sentence():
    sentence = check_scores(np.full(5, 0.25), system="m")
    assert sentence is not None
    assert "'m' are all 0.25" in sentence
    assert sentence.endswith(".")
    assert check_scores([[0.5, 0.5]] * 3) is not None
    assert check_scores([[0.5, 0.5], [0.4, 0.6]]) is None
    assert check_scores([0.3]) is None
    assert check_scores([1, 2, 3]) is None


def test_the_package_offers_them():
    assert {"ScoreMetric", "auc", "brier", "get_score_metric", "list_score_metrics"} <= set(metrics.__all__)
