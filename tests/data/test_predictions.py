"""`Predictions`: what users pass, and how it is brought in line with the labels."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import trueup as tu
from trueup.data.labels import Labels
from trueup.data.predictions import Predictions, as_predictions
from trueup.exceptions import InvalidPredictions


@pytest.fixture
def labels() -> Labels:
    return Labels.from_frame({"item": ["a", "b", "c"], "labeler": [1, 1, 1], "label": ["cat", "dog", "dog"]})


@pytest.fixture
def three() -> Labels:
    return Labels.from_matrix([[0, 1], [1, 2], [2, 2]])


def codes(predictions, labels, **options):
    return as_predictions(predictions, labels).align(labels, **options).codes.tolist()


WIDE = {"id": ["a", "b", "c"], "text": ["A", "B", "C"], "bert": ["cat", "dog", "cat"], "t5": ["dog", "dog", "cat"]}


class TestSideBySide:
    def test_columns_of_the_known_classes_are_systems(self, labels):
        predictions = tu.read_predictions(WIDE, item="id", labels=labels)
        assert predictions.systems.tolist() == ["bert", "t5"]
        assert predictions.align(labels).codes.tolist() == [[0, 1, 0], [1, 1, 0]]

    @pytest.mark.parametrize("named", ["t5, bert", ["t5", "bert"]])
    def test_several_columns_that_are_named_are_systems(self, named, labels):
        predictions = Predictions.from_frame(WIDE, item="id", prediction=named)
        assert predictions.systems.tolist() == ["t5", "bert"]
        assert predictions["bert"].align(labels).codes.tolist() == [[0, 1, 0]]

    def test_a_column_that_is_not_there_is_named(self, labels):
        with pytest.raises(InvalidPredictions, match="no column 'gpt'"):
            Predictions.from_frame(WIDE, item="id", prediction="bert,gpt")
        with pytest.raises(InvalidPredictions, match="no column 'prediction'"):
            tu.read_predictions({"id": ["a"], "bert": ["a new class"]}, item="id", labels=labels)


class TestWhatUsersPass:
    @pytest.mark.parametrize(
        "predictions",
        [
            ["cat", "dog", "cat"],
            ("cat", "dog", "cat"),
            np.array(["cat", "dog", "cat"]),
            np.array(["cat", "dog", "cat"], dtype=object),
            pd.Series(["cat", "dog", "cat"]),
            pd.Series(["cat", "dog", "cat"], dtype="category"),
            pl.Series(["cat", "dog", "cat"]),
            pa.chunked_array([["cat", "dog", "cat"]]),
            {"b": "dog", "a": "cat", "c": "cat"},
            pd.Series(["dog", "cat", "cat"], index=["b", "a", "c"]),
            pd.DataFrame({"item": ["b", "a", "c"], "prediction": ["dog", "cat", "cat"]}),
            {"item": ["b", "a", "c"], "prediction": ["dog", "cat", "cat"]},
            {"item": ["b", "a", "c"], "score": [0.9, 0.1, 0.2]},
            np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]),
            np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], dtype=np.float32),
            [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]],
            Predictions.from_classes(["dog", "cat", "cat"], items=["b", "a", "c"]),
            Predictions.from_scores([0.1, 0.5, 0.4]),
            Predictions.from_scores([0.9, 0.1, 0.7], positive="cat"),
        ],
        ids=lambda p: type(p).__name__,
    )
    def test_one_answer_for_all(self, predictions, labels):
        assert codes(predictions, labels) == [[0, 1, 0]]

    def test_many_systems(self, labels):
        aligned = as_predictions(
            {
                "x": ["cat", "dog", "cat"],
                "y": {"c": "dog", "b": "dog", "a": "dog"},
                "z": Predictions.from_scores([0, 1, 1]),
            },
            labels,
        ).align(labels)
        assert aligned.systems.tolist() == ["x", "y", "z"]
        assert aligned.codes.tolist() == [[0, 1, 0], [1, 1, 1], [0, 1, 1]]
        assert aligned.scores is None
        assert aligned.n_systems == 3

    @pytest.mark.parametrize("values", [[0, 1, 2], [0.0, 1.0, 2.0], np.array([0, 1, 2], dtype=np.int8)])
    def test_whole_floats_are_classes(self, values, three):
        assert codes(values, three) == [[0, 1, 2]]

    def test_scores_are_not_classes(self, labels):
        for scores in (np.array([0.1, 0.2, 0.9]), {"a": 0.1, "b": 0.5, "c": 1.0}, pd.Series([0.1, 0.2, 0.3])):
            with pytest.raises(InvalidPredictions):
                as_predictions(scores, labels)

    @pytest.mark.parametrize(
        "predictions",
        [
            ["cat", "dog"],
            np.zeros((2, 3)),
            "cat",
            7,
            np.zeros((3, 2, 1)),
            ["cat", 1, "dog"],
            [["cat"], ["dog"], ["cat"]],
            pd.Series(["cat", "dog", "cat"], index=["a", "b", "z"]),
            ["bird", "cat", "dog"],
            [0, 1, 1],
            {1: "cat"},
            {"a": "cat", "b": "dog"},
            {},
            {"a": "cat", "b": None, "c": "dog"},
            [None, None, None],
        ],
    )
    def test_bad_input(self, predictions, labels):
        with pytest.raises(InvalidPredictions):
            as_predictions(predictions, labels).align(labels)


class TestPolicies:
    def test_unknown_items_are_left_out_and_counted(self, labels):
        p = Predictions.from_classes({"a": "cat", "b": "dog", "c": "cat", "z": "dog"})
        aligned = p.align(labels, unknown="ignore")
        assert aligned.codes.tolist() == [[0, 1, 0]]
        assert aligned.unknown_items.tolist() == [1]
        with pytest.raises(InvalidPredictions, match='unknown="ignore"'):
            p.align(labels)

    def test_missing_predictions_are_kept_as_none_and_counted(self, labels):
        aligned = Predictions.from_classes({"c": "dog"}).align(labels, missing="ignore")
        assert aligned.codes.tolist() == [[-1, -1, 1]]
        assert aligned.missing.tolist() == [2]
        aligned = Predictions.from_scores([0.2, np.nan, 0.7]).align(labels, missing="ignore")
        assert aligned.codes.tolist() == [[0, -1, 1]]
        assert np.isnan(aligned.scores[0, 1])
        table = [[0.2, 0.8], [np.nan, np.nan], [1, 0]]
        aligned = Predictions.from_probabilities(table, classes=["cat", "dog"]).align(labels, missing="ignore")
        assert aligned.codes.tolist() == [[1, -1, 0]]

    def test_unknown_classes(self, labels):
        p = Predictions.from_classes(["cat", "bird", "dog"])
        aligned = p.align(labels, unknown_class="ignore", missing="ignore")
        assert aligned.codes.tolist() == [[0, -1, 1]]
        assert (aligned.unknown_classes.tolist(), aligned.missing.tolist()) == ([1], [1])
        with pytest.raises(InvalidPredictions):
            p.align(labels, unknown_class="ignore")


class TestProbabilities:
    def test_columns_follow_the_classes_of_the_labels(self, labels):
        p = Predictions.from_probabilities([[0.7, 0.3], [0.1, 0.9], [0.4, 0.6]], classes=["dog", "cat"])
        aligned = p.align(labels)
        assert aligned.probabilities[0].tolist() == [[0.3, 0.7], [0.9, 0.1], [0.6, 0.4]]
        assert aligned.codes.tolist() == [[1, 0, 0]]
        assert aligned.scores.tolist() == [[0.7, 0.1, 0.4]]
        assert aligned.positive == 1

    @pytest.mark.parametrize(
        "table", [[[0.5, 0.6]], [[0.5, 0.5], [0.5, 0.1]], [[1.5, -0.5]], [[0.5, np.nan]], [0.5, 0.5], [["a", "b"]]]
    )
    def test_bad_probabilities(self, table):
        with pytest.raises(InvalidPredictions):
            Predictions.from_probabilities(table, classes=["cat", "dog"])


class TestScores:
    def test_a_threshold_needs_two_classes(self, three):
        with pytest.raises(InvalidPredictions):
            Predictions.from_scores([3, -1, 2]).align(three)

    def test_stacked_labelers_are_labelers(self, labels):
        each = labels.as_systems()
        again = Predictions.stack({name: each[name] for name in each.systems.tolist()})
        assert again.are_labelers
        other = Predictions.from_classes(["cat"] * labels.n_items, items=labels.items)
        assert not Predictions.stack({"a": each[each.systems[0]], "b": other}).are_labelers

    def test_systems_must_speak_for_one_class(self, labels):
        a = Predictions.from_scores([0, 1, 1], positive="cat")
        with pytest.raises(InvalidPredictions, match="one class"):
            Predictions.stack({"a": a, "b": Predictions.from_scores([0, 1, 1])}).align(labels)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Predictions.from_scores([[1, 2]]),
            lambda: Predictions.from_scores([np.inf, 1]),
            lambda: Predictions.from_scores(["a"]),
            lambda: Predictions.from_scores([1, 2], items=["a"]),
            lambda: Predictions.from_scores([1, 2], items=["a", "a"]),
            lambda: Predictions.from_scores([1, 2], items=["a", None]),
            lambda: Predictions.from_classes({"a": 1}, items=["a"]),
            lambda: Predictions.stack({}),
            lambda: Predictions.stack({"a": [1]}),
        ],
    )
    def test_bad_scores_and_names(self, make):
        with pytest.raises(InvalidPredictions):
            make()


FRAME = {
    "item": ["a", "b", "c"],
    "prediction": ["cat", "dog", "dog"],
    "score": [0.1, 0.4, 0.9],
    "p_cat": [0.9, 0.6, 0.1],
    "p_dog": [0.1, 0.4, 0.9],
}


class TestFrame:
    @pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
    def test_all_kinds_at_once(self, make, labels):
        p = Predictions.from_frame(make(FRAME), probabilities={"cat": "p_cat", "dog": "p_dog"})
        aligned = p.align(labels)
        assert aligned.codes.tolist() == [[0, 1, 1]]  # the column of classes wins over the likeliest and the threshold
        assert aligned.scores.tolist() == [[0.1, 0.4, 0.9]]
        assert aligned.probabilities[0, :, 0].tolist() == [0.9, 0.6, 0.1]
        assert repr(p) == "Predictions(1 system, 3 items, classes and probabilities and scores)"

    def test_a_column_of_systems(self, labels):
        frame = {
            "item": ["a", "b", "c", "c", "b", "a"],
            "model": ["x", "x", "x", "y", "y", "y"],
            "prediction": ["cat", "cat", "cat", "dog", "cat", "dog"],
        }
        p = Predictions.from_frame(frame, system="model")
        assert p.align(labels).codes.tolist() == [[0, 0, 0], [1, 0, 1]]
        assert p["y"].align(labels).codes.tolist() == [[1, 0, 1]]
        with pytest.raises(InvalidPredictions, match="no system 'z'"):
            p["z"]

    def test_a_column_system_is_found_unless_it_names_the_items(self, labels, tmp_path):
        frame = {"item": [*"abc"] * 2, "system": ["x"] * 3 + ["y"] * 3, "prediction": ["cat"] * 3 + ["dog"] * 3}
        path = tmp_path / "outputs.csv"
        path.write_text("\n".join(map(",".join, zip(*([name, *cells] for name, cells in frame.items()), strict=True))))
        for p in (Predictions.from_frame(frame), tu.read_predictions(frame), tu.read_predictions(path, labels=labels)):
            assert p.systems.tolist() == ["x", "y"]
            assert p.align(labels).codes.tolist() == [[0, 0, 0], [1, 1, 1]]
        together = tu.read_predictions(path, item="item,system")
        assert together.systems.tolist() == ["model"]
        assert together.parts[0].items.tolist()[:2] == [("a", "x"), ("b", "x")]

    @pytest.mark.parametrize(
        ("frame", "options"),
        [
            ({"item": ["a"]}, {}),
            ({"prediction": ["a"]}, {}),
            (FRAME, {"score": "scores"}),
            (FRAME, {"probabilities": {"cat": "q"}}),
            ({"item": ["a", "a"], "prediction": ["x", "y"]}, {}),
            ({"item": ["a", None], "prediction": ["x", "y"]}, {}),
            ({"item": ["a", "b"], "prediction": ["x", 1]}, {}),
            ({"item": ["a", "b"], "prediction": ["x"]}, {}),
            ({"item": [], "prediction": []}, {}),
            ({"item": ["a", "b"], "score": ["x", "y"]}, {}),
        ],
    )
    def test_bad_frames(self, frame, options):
        with pytest.raises(InvalidPredictions):
            Predictions.from_frame(frame, **options)
