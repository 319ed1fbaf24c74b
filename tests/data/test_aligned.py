"""`AlignedPredictions`: what is asked of predictions once they follow the items and classes of the labels."""

import numpy as np
import pandas as pd
import pytest

from trueup.data.labels import Labels
from trueup.data.predictions import Predictions, as_predictions
from trueup.exceptions import InvalidParameter, InvalidPredictions


@pytest.fixture
def labels() -> Labels:
    return Labels.from_frame({"item": ["a", "b", "c"], "labeler": [1, 1, 1], "label": ["cat", "dog", "dog"]})


@pytest.fixture
def three() -> Labels:
    return Labels.from_matrix([[0, 1], [1, 2], [2, 2]])


def scored(labels: Labels, **options: object):
    return as_predictions({"m": [0.1, 0.9, 0.4], "n": [0.5, 0.5, 0.5]}, labels, of_scores=True, **options).align(labels)


class TestOutputs:
    def test_each_kind(self, labels):
        aligned = as_predictions([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], labels).align(labels)
        assert aligned.outputs("classes").tolist() == [[0, 1, 0]]
        assert aligned.outputs("scores").tolist() == [[0.1, 0.8, 0.5]]
        assert aligned.outputs("probabilities").shape == (1, 3, 2)
        assert aligned.n_classes == 2

    @pytest.mark.parametrize(
        ("outputs", "of_scores", "kind"),
        [
            ([0.1, 0.2, 0.3], True, "classes"),
            (["cat", "dog", "dog"], False, "scores"),
            (["cat", "dog", "dog"], False, "probabilities"),
        ],
    )
    def test_a_kind_that_a_system_does_not_give(self, outputs, of_scores, kind, labels):
        aligned = as_predictions(outputs, labels, of_scores=of_scores).align(labels)
        with pytest.raises(InvalidPredictions):
            aligned.outputs(kind, needed_by="f1")


class TestSubsets:
    def test_some_systems(self, labels):
        aligned = scored(labels)
        for chosen in (np.array([False, True]), np.array([1]), slice(1, 2)):
            one = aligned.of_systems(chosen)
            assert one.systems.tolist() == ["n"]
            assert one.scores.tolist() == [[0.5, 0.5, 0.5]]
            assert one.codes is None
            assert one.missing.tolist() == [0]


class TestPreparation:
    def test_scores_are_turned_towards_the_positive_class(self, labels):
        aligned = scored(labels)
        assert aligned.positive == 1
        assert aligned.prepared_for("scores", positive=1) is aligned
        turned = aligned.prepared_for("scores", positive=0)
        assert turned.positive == 0
        np.testing.assert_array_equal(turned.scores, -aligned.scores)

    def test_scores_of_more_classes_must_name_theirs(self, three):
        aligned = as_predictions([0.1, 0.2, 0.3], three, of_scores=True).align(three)
        with pytest.raises(InvalidPredictions):
            aligned.prepared_for("scores", positive=2)
        named = as_predictions([0.1, 0.2, 0.3], three, of_scores=True, positive=2).align(three)
        assert named.prepared_for("scores", positive=2) is named
        with pytest.raises(InvalidPredictions):
            named.prepared_for("scores", positive=0)

    def test_scores_between_0_and_1_serve_as_probabilities(self, labels):
        prepared = scored(labels, positive="cat").prepared_for("probabilities", positive=0)
        np.testing.assert_allclose(prepared.probabilities[0], [[0.1, 0.9], [0.9, 0.1], [0.4, 0.6]])
        logits = as_predictions([-3.0, 0.2, 0.9], labels, of_scores=True).align(labels)
        assert logits.prepared_for("probabilities", positive=1).probabilities is None


class TestOneCoercion:
    def test_items_may_be_called_like_columns(self):
        labels = Labels.from_frame({"item": ["item", "score"], "labeler": [1, 1], "label": ["cat", "dog"]})
        assert as_predictions({"item": "cat", "score": "cat"}, labels).align(labels).codes.tolist() == [[0, 0]]

    @pytest.mark.parametrize(
        ("outputs", "options", "error"),
        [
            ({"m": ["cat"] * 3}, {"least": 2}, InvalidPredictions),
            (["cat"] * 3, {"positive": "dgo"}, InvalidParameter),
            (pd.DataFrame({"m": ["cat"] * 3}), {}, InvalidPredictions),
            (
                Predictions((*Predictions.from_classes(["cat"]).parts, *Predictions.from_classes(["dog"]).parts)),
                {},
                InvalidPredictions,
            ),
        ],
    )
    def test_what_is_refused(self, outputs, options, error, labels):
        with pytest.raises(error):
            as_predictions(outputs, labels, **options)
