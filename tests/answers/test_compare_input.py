"""Every form of systems that `compare` takes, and one sentence for what it does not take."""

import numpy as np
import pandas as pd
import pytest
from crowds import CLASSES, FAST, crowd

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.noise import Confusion


def test_sequences_and_frames_a_user_may_have():
    labels, truth, rng = crowd(60)
    a, b = CLASSES[truth], CLASSES[np.where(rng.random(60) < 0.7, truth, 1 - truth)]
    expected = tu.compare({"a": a, "b": b}, labels, **FAST).draws
    long = pd.DataFrame({"item": [*range(60)] * 2, "system": ["a"] * 60 + ["b"] * 60, "prediction": [*a, *b]})
    for systems in (
        {"a": tuple(a), "b": tuple(b)},
        {"a": pd.Index(a), "b": pd.Categorical(b)},
        long,
        {column: long[column].tolist() for column in long},
    ):
        np.testing.assert_array_equal(tu.compare(systems, labels, **FAST).draws, expected)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda a: {"systems": {}}, InvalidPredictions, "empty mapping"),
        (lambda a: {"systems": pd.DataFrame({"a": a, "b": a})}, InvalidPredictions, "if each column is a system"),
        (lambda a: {"systems": {"a": a, "b": a * 0.5}}, InvalidPredictions, "^system 'b': scores where classes"),
        (lambda a: {"systems": {"a": a, "b": a + np.inf}, "metric": "auc"}, InvalidPredictions, "^system 'b': scores"),
        (lambda a: {"labels": np.stack([a, a], axis=1)}, InvalidLabels, "`labels` must be Labels, got ndarray"),
        (lambda a: {"n_chain": 2}, InvalidParameter, "did you mean 'n_chains'"),
        (
            lambda a: {"noise": Confusion(np.array([[[0.8, 0.2], [0.2, 0.8]]] * 4)), "n_warm": 2},
            InvalidParameter,
            "did you mean 'n_warmup'",
        ),
        (lambda a: {"metric": lambda y, p: "x"}, InvalidParameter, "the metric 'function' failed on a drawn truth"),
        (lambda a: {"metric": "auc", "positive": 7}, InvalidParameter, "`positive` must be one of the classes"),
    ],
    ids=["empty", "wide", "scores", "infinite", "labels", "option", "option, known noise", "function", "positive"],
)
def test_one_sentence_for_what_is_wrong(change, error, match):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 40)
    labels = tu.Labels.from_matrix(np.stack([truth] * 4, axis=1), classes=[0, 1])
    call = {"systems": {"a": truth, "b": 1 - truth}, "labels": labels, **FAST, **change(truth)}
    with pytest.raises(error, match=match) as caught:
        tu.compare(call.pop("systems"), call.pop("labels"), **call)
    assert "\n" not in str(caught.value)


def test_a_system_of_another_kind_of_name_is_not_in_the_comparison():
    labels, truth, _ = crowd(40)
    cmp = tu.compare({0: CLASSES[truth], 1: CLASSES[1 - truth]}, labels, **FAST)
    assert 0 in cmp
    assert "0" not in cmp
    with pytest.raises(InvalidParameter, match=r"of type number .* of type text"):
        cmp["0"]
