"""The one class of metrics: what it takes by what it needs, what it checks, and how its failures read."""

import math
import warnings

import numpy as np
import pytest
from sklearn import metrics as sk

from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric, get_metric

BINARY = ["no", "yes"]


def labels_metric(function, name="mine"):
    return Metric(name, function, needs="labels")


class TestOfOutputs:
    def test_truths_reach_a_function_of_probabilities_as_codes(self):
        largest = Metric("largest", lambda truths, table, weights: truths.max(axis=1) * 1.0, needs="probabilities")
        assert largest.of_outputs([[0, 1], [2, 0]], np.full((2, 3), 1 / 3)).tolist() == [1.0, 2.0]

    def test_positive_and_codes_are_checked(self):
        auc, brier = get_metric("auc", BINARY), get_metric("brier", BINARY)
        with pytest.raises(InvalidParameter, match="needs `positive`, the code of a class, got None"):
            auc.of_outputs([[0, 1]], [0.1, 0.2])
        with pytest.raises(InvalidParameter, match="`positive` must be an integer of at least 0, got -1"):
            auc.of_outputs([[0, 1]], [0.1, 0.2], positive=-1)
        with pytest.raises(InvalidParameter, match="class codes"):
            auc.of_outputs([[0.5, 1]], [0.1, 0.2], positive=1)
        with pytest.raises(InvalidParameter, match="between 0 and 1"):
            brier.of_outputs([[0, 2]], [[0.5, 0.5], [0.5, 0.5]])


class TestOfLabels:
    def test_classes_are_handed_over(self):
        metric = labels_metric(lambda y, p: sk.recall_score(y, p, pos_label="yes"))
        assert metric.of_labels([[0, 1, 1]], [0, 1, 0], classes=BINARY).tolist() == [0.5]

    def test_undefined_is_nan(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            values = labels_metric(sk.recall_score).of_labels([[0, 0], [0, 1]], [1, 1])
        assert math.isnan(values[0])
        assert values[1] == 1
        assert np.isnan(labels_metric(lambda y, p: math.nan).of_labels([[0, 0]], [1, 1])).all()


@pytest.mark.parametrize(
    ("function", "cause", "words"),
    [
        (lambda y, p: 1 / 0, ZeroDivisionError, "ZeroDivisionError: division by zero"),
        (lambda y, p: int("x"), ValueError, "ValueError: invalid literal"),
        (lambda y: 1.0, TypeError, "TypeError"),
        (lambda y, p: None, TypeError, "TypeError"),
        (lambda y, p: {}["missing"], KeyError, "KeyError"),
    ],
)
def test_a_function_of_labels_that_fails_is_named_with_its_error(function, cause, words):
    with pytest.raises(InvalidParameter, match=f"the metric 'cost' failed on a drawn truth, got {words}") as caught:
        labels_metric(function, "cost").of_labels([[0, 1]], [0, 1])
    assert isinstance(caught.value.__cause__, cause)
    assert caught.value.parameter == "metric"


def test_a_function_of_counts_or_scores_that_fails_is_named():
    with pytest.raises(InvalidParameter, match="the metric 'cost' failed"):
        Metric("cost", lambda counts: counts[..., 9, 9])(np.ones((2, 2)))
    with pytest.raises(InvalidParameter, match="the metric 'cost' failed"):
        Metric("cost", lambda truths, scores, weights: 1 / 0, needs="scores").of_outputs([[0, 1]], [1, 2], positive=1)
    with pytest.raises(InvalidParameter, match=r"'flat' must return an array of shape \(5,\), .* got \(\)"):
        Metric("flat", lambda counts: counts.sum())(np.ones((5, 2, 2)))


def test_sentences_of_trueup_itself_are_passed_on():
    with pytest.raises(InvalidParameter, match=r"^k must be at most the number of items, 2, got 10"):
        get_metric("precision@10", BINARY).of_outputs([[0, 1]], [1, 2], positive=1)


@pytest.mark.parametrize(
    ("name", "method", "sentence"),
    [
        ("auc", "of_counts", r"metric 'auc' needs scores, got counts; call of_outputs\(\)"),
        ("brier", "of_labels", r"metric 'brier' needs probabilities, got labels; call of_outputs\(\)"),
        ("accuracy", "of_outputs", r"metric 'accuracy' needs counts, got scores or probabilities; call of_counts\(\)"),
    ],
)
def test_what_a_metric_does_not_take_is_refused(name, method, sentence):
    arguments = ([[1, 0], [0, 1]],) if method == "of_counts" else ([[0, 1]], [0, 1])
    with pytest.raises(InvalidParameter, match=sentence):
        getattr(get_metric(name, BINARY), method)(*arguments)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": " "}, "`name` of a metric must be a word, got ' '"),
        ({"function": 3}, "`function` of the metric 'mine' must be callable, got 3"),
        ({"needs": "count"}, "did you mean 'counts'"),
        (
            {"bounds": (1.0, 0.0)},
            r"`bounds` of the metric 'mine' must be a smaller and a larger number, got \(1.0, 0.0\)",
        ),
        ({"bounds": 1.0}, "`bounds` of the metric 'mine'"),
        ({"bounds": (0.0, 0.5, 1.0)}, "`bounds` of the metric 'mine'"),
        ({"bounds": (math.nan, 1.0)}, "`bounds` of the metric 'mine'"),
        ({"higher_is_better": "yes"}, "must be True, False or None, got 'yes'"),
    ],
)
def test_what_no_metric_can_be(change, sentence):
    with pytest.raises(InvalidParameter, match=sentence) as caught:
        Metric(**{"name": "mine", "function": sum, **change})
    assert caught.value.parameter in change
