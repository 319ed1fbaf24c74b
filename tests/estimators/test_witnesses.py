"""Which systems say the same, and where their scores are equal."""

import numpy as np

from trueup import Labels, Predictions, compare
from trueup.data.aligned import AlignedPredictions
from trueup.estimators.kinds import as_outputs, different_systems, witness_weights
from trueup.estimators.readings import direction_features


def test_items_without_predictions_do_not_make_systems_alike():
    rng = np.random.default_rng(0)
    table = rng.integers(2, size=(2, 4000))
    full = witness_weights(table)
    assert (full > 0.95).all()
    sparse = np.concatenate([table, np.full((2, 16_000), -1)], axis=1)
    np.testing.assert_allclose(witness_weights(sparse), full)
    assert len(different_systems(sparse[:, 3950:])) == 2


def test_copies_and_no_systems_are_counted():
    codes = np.array([[0, 1, 1, -1], [0, 1, 1, -1]])
    np.testing.assert_allclose(witness_weights(codes), 0.5)
    assert different_systems(codes).shape == (1, 4)
    assert different_systems(codes[:0]).shape == (0, 4)


def test_equal_scores_have_one_direction_whatever_the_order_of_items():
    scores = np.array([0.2, 0.5, 0.5, 0.5, 0.9, 0.2])
    labels = Labels.from_matrix(np.array([[0, 0], [1, 1], [0, 1], [1, 1], [1, 1], [0, 0]]))
    outputs = Predictions.from_scores(scores).align(labels).prepared_for("scores", positive=1)
    feature = direction_features(outputs, 2, "scores", np.full((6, 2), 0.5))[0, :, 1]
    assert feature[0] == feature[5]
    assert feature[1] == feature[2] == feature[3]


def test_large_data_need_no_classes_of_systems(monkeypatch):
    monkeypatch.setattr("trueup.estimators.readings.MOST_VOTES", 4_000)
    monkeypatch.setattr("trueup.estimators.readings._SOME_VOTES", 1_500)
    votes = np.random.default_rng(1).integers(2, size=(1_500, 3))
    labels = Labels.from_matrix(votes)
    scores = votes.mean(axis=1)
    few = {"n_warmup": 20, "check_dependence": False, "n_draws": 100}
    assert len(compare(labels.as_systems(), labels, **few)) == 3
    assert len(compare({"a": scores, "b": -scores}, labels, metric="auc", **few)) == 2


def test_a_system_and_its_opposite_are_one_witness():
    """Of two classes: whoever knows one knows the other, whatever the share of each class."""
    rng = np.random.default_rng(3)
    one, other = (rng.random((2, 500)) < [[0.2], [0.5]]).astype(np.int64)
    np.testing.assert_allclose(witness_weights(np.stack([one, 1 - one])), 0.5)
    np.testing.assert_allclose(witness_weights(np.stack([one, other])), 1.0, atol=0.12)
    np.testing.assert_allclose(witness_weights(np.stack([one, 1 - one, other])), [0.5, 0.5, 1.0], atol=0.12)


def test_of_three_classes_nothing_is_an_opposite():
    codes = np.random.default_rng(4).integers(3, size=600)
    np.testing.assert_allclose(witness_weights(np.stack([codes, (codes + 1) % 3])), 1.0)


def test_each_answer_of_a_system_knows_the_class_it_is_for():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(4), (2, 60))
    none, names = np.zeros(2, np.int64), np.array(["a", "b"], dtype=object)
    codes = probabilities.argmax(axis=2).astype(np.int32)
    systems = AlignedPredictions(names, codes, probabilities[..., 1], probabilities, 1, none, none, none, 4)
    for used in ("classes", "probabilities"):
        outputs = as_outputs(systems, used)
        columns = outputs.first[:-1, None] + outputs.codes
        np.testing.assert_array_equal(outputs.said_class[columns], codes)
    assert as_outputs(systems, "scores").said_class is None
