"""The majority vote says the same at every door, where many items are tied."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import trueup as tu
from trueup.noise.majority import majority_codes, majority_shares
from trueup.report.summary import majority_values
from trueup.training import NoisyLabelClassifier

METRICS = ("accuracy", "precision", "recall", "f1", "mcc")


@pytest.fixture(scope="module")
def tied():
    """Two labelers of 300 items, every third item tied and some of them with gold, and predictions."""
    data = tu.simulate.dawid_skene(
        n_items=300, n_labelers=2, accuracy=[0.75, 0.8], prior=(0.7, 0.3), classifier_accuracy=0.8, random_state=1
    )
    labels = data.labels.with_gold({item: int(data.truth[item]) for item in range(20)})
    votes = labels.answer_counts
    assert (votes[:, 0] == votes[:, 1]).mean() > 0.3
    return labels, data.predictions


@pytest.fixture(scope="module")
def expected(tied):
    """What ties give on average: a tied item counts by half for either class."""
    labels, predictions = tied
    lead = labels.answer_counts[:, 1] - labels.answer_counts[:, 0]
    positive = np.where(labels.gold_codes >= 0, labels.gold_codes, (np.sign(lead) + 1) / 2)
    counts = np.array([[share[predictions == code].sum() for code in (0, 1)] for share in (1 - positive, positive)])
    return {name: float(tu.metrics.get_metric(name, [0, 1])(counts)) for name in METRICS}


@pytest.mark.parametrize("options", [{"method": "majority"}, {"method": "dirty", "noise": "majority"}])
def test_methods_of_evaluate(tied, expected, options):
    labels, predictions = tied
    evaluation = tu.evaluate(predictions, labels, metrics=METRICS, random_state=5, **options)
    assert {name: evaluation[name].mean for name in METRICS} == pytest.approx(expected, abs=1e-12)


def test_the_report(tied, expected):
    labels, predictions = tied
    evaluation = tu.evaluate(predictions, labels, metrics=METRICS, method="majority")
    assert majority_values(evaluation, labels) == pytest.approx(expected, abs=1e-12)


def test_weights_count_for_the_majority_as_for_the_estimate_beside_it(tied):
    labels, predictions = tied
    weights = np.where(predictions == 0, 3.0, 1.0)
    labels = labels.without_gold().with_items({"item": labels.items.tolist(), "weight": weights.tolist()})
    evaluation = tu.evaluate(predictions, labels, metrics=["accuracy"], weights="weight", check_dependence=False)
    right = majority_shares(labels)[np.arange(300), predictions]
    assert majority_values(evaluation, labels)["accuracy"] == pytest.approx(np.average(right, weights=weights))


def test_the_noise_model(tied, expected):
    labels, predictions = tied
    posterior = tu.noise.Majority(kind="hard").fit(labels).posterior(labels)
    np.testing.assert_array_equal(posterior, majority_shares(labels))
    assert posterior[np.arange(300), predictions].mean() == pytest.approx(expected["accuracy"])


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps the classes it is trained on."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.seen_ = np.unique(y), np.asarray(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def test_training_has_the_classes_of_majority_codes_in_any_order(tied):
    labels, _ = tied
    codes = majority_codes(labels)
    votes = labels.answer_counts
    unknown = labels.gold_codes < 0
    assert (codes[unknown & (votes[:, 0] == votes[:, 1])] == votes.sum(axis=0).argmax()).all()
    few = np.array([[0, 1], [1, 1], [0, 1], [0, 0], [1, 1]])
    assert majority_codes(tu.Labels.from_matrix(few)).tolist() == [1, 1, 1, 0, 1]
    assert majority_codes(tu.Labels.from_matrix(few[::-1])).tolist() == [1, 0, 1, 1, 1]
    model = NoisyLabelClassifier(Recorder(), strategy="majority").fit(np.arange(300.0)[:, None], labels)
    np.testing.assert_array_equal(model.estimator_.seen_, codes)
