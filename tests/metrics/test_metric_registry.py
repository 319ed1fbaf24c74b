"""Metrics by name, and functions as metrics."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn import metrics as sk

from trueup.exceptions import InvalidParameter
from trueup.metrics import (
    FunctionMetric,
    Metric,
    as_metric,
    confusion_counts,
    get_metric,
    list_metrics,
    register_metric,
)
from trueup.metrics import registry as module

BINARY = ["no", "yes"]
ANIMALS = ["cat", "cow", "dog"]
RNG = np.random.default_rng(0)
TWO = RNG.integers(1, 30, (2, 2))
THREE = RNG.integers(1, 30, (3, 3))


def test_every_listed_name_works():
    for name in list_metrics():
        metric = get_metric(name, BINARY)
        assert isinstance(metric, Metric)
        assert metric.name == name
        assert metric.bounds[0] <= metric(TWO) <= metric.bounds[1]
        assert metric.description
        if name != "prevalence":
            assert np.isfinite(get_metric(name, ANIMALS)(THREE))


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("TPR", "recall"),
        ("sensitivity", "recall"),
        ("fpr", "false_alarm_rate"),
        ("false-alarm-rate", "false_alarm_rate"),
        ("ppv", "precision"),
        ("error", "error_rate"),
        ("cohen-kappa", "kappa"),
        ("cohen_kappa", "kappa"),
        ("matthews_corrcoef", "mcc"),
        ("F1", "f1"),
        ("f1_score", "f1"),
        ("f1.0", "f1"),
        ("f-2", "f2"),
        ("f0.50", "f0.5"),
        ("f1_macro", "macro_f1"),
        ("macro-F1", "macro_f1"),
        ("weighted tpr", "weighted_recall"),
        ("accuracy_score", "accuracy"),
        ("Balanced-Accuracy", "balanced_accuracy"),
        ("recall: yes", "recall:yes"),
    ],
)
def test_spellings(alias, name):
    found = get_metric(alias, BINARY)
    assert found.name == name
    assert found(TWO) == get_metric(name, BINARY)(TWO)


def test_positive_class():
    by_default = get_metric("recall", BINARY)(TWO)
    assert by_default == pytest.approx(TWO[1, 1] / TWO[1].sum())
    assert get_metric("recall", BINARY, positive="no")(TWO) == pytest.approx(TWO[0, 0] / TWO[0].sum())
    # The second of the *sorted* classes, wherever its row is.
    assert get_metric("recall", ["yes", "no"])(TWO) == pytest.approx(TWO[0, 0] / TWO[0].sum())
    assert get_metric("recall", [0, 1], positive="0")(TWO) == get_metric("recall:0", [0, 1])(TWO)
    assert get_metric("recall", np.array([2, 10]))(TWO) == by_default
    assert np.isfinite(get_metric("recall", ["a", 1])(TWO))
    assert get_metric("prevalence", BINARY)(TWO) == pytest.approx(TWO[1].sum() / TWO.sum())
    with pytest.raises(InvalidParameter, match="positive must be one of the classes"):
        get_metric("recall", BINARY, positive="maybe")


def test_many_classes():
    assert get_metric("recall", ANIMALS)(THREE) == get_metric("macro_recall", ANIMALS)(THREE)
    assert get_metric("recall:cow", ANIMALS)(THREE) == pytest.approx(THREE[1, 1] / THREE[1].sum())
    assert get_metric("f3:dog", ANIMALS).name == "f3:dog"
    with pytest.raises(
        InvalidParameter, match=r"prevalence' needs a class when there are 3; ask for e\.g\. 'prevalence:cat'"
    ):
        get_metric("prevalence", ANIMALS)
    assert get_metric("prevalence:dog", ANIMALS)(THREE) == pytest.approx(THREE[2].sum() / THREE.sum())


def test_names_match_scikit_learn_end_to_end():
    y, p = RNG.integers(0, 3, (2, 200))
    counts = confusion_counts(y, p, 3)
    for how in ("macro", "micro", "weighted"):
        assert get_metric(f"{how}_f2", ANIMALS)(counts) == pytest.approx(sk.fbeta_score(y, p, beta=2, average=how))


def test_directions_and_bounds():
    assert get_metric("error_rate", BINARY).higher_is_better is False
    assert get_metric("false_alarm_rate", BINARY).higher_is_better is False
    assert get_metric("prevalence", BINARY).higher_is_better is None
    assert get_metric("mcc", BINARY).bounds == (-1.0, 1.0)
    assert get_metric("kappa", BINARY).bounds == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("acuracy", "did you mean 'accuracy'"),
        ("macro_recal", "did you mean 'macro_recall'"),
        ("quality", "must be one that list_metrics"),
        ("recall:cta", "did you mean 'cat'"),
        ("accuracy:cat", "one number for all classes"),
        ("macro_mcc", "one number for all classes"),
        ("macro_recall:cat", "leave out 'macro'"),
        ("micro_prevalence", "leave out 'micro'"),
        ("f0", "beta above 0"),
        ("", "must be one that list_metrics"),
        (7, "metric must be a name, got 7"),
    ],
)
def test_bad_names_are_one_sentence(name, sentence):
    with pytest.raises(InvalidParameter, match=sentence) as caught:
        get_metric(name, ANIMALS)
    assert "\n" not in str(caught.value)


def test_bad_classes():
    for classes in (["a"], ["a", "a"], [1, "1"], []):
        with pytest.raises(InvalidParameter, match="at least two different ones"):
            get_metric("accuracy", classes)


def test_register(monkeypatch):
    monkeypatch.setattr(module, "_registered", {})
    made = register_metric("Cost-Ratio", lambda c: c[..., 0, 1] / c.sum(axis=(-2, -1)), higher_is_better=False)
    assert get_metric("cost_ratio", BINARY) is made
    assert "cost_ratio" in list_metrics()
    assert made(TWO) == pytest.approx(TWO[0, 1] / TWO.sum())
    register_metric("cost ratio", lambda c: c[..., 0, 0])
    assert get_metric("cost_ratio", BINARY)(TWO) == TWO[0, 0]
    for taken in ("accuracy", "tpr", "f3", "macro_f1"):
        with pytest.raises(InvalidParameter, match="choose another"):
            register_metric(taken, lambda c: c)
    with pytest.raises(InvalidParameter, match="without a colon"):
        register_metric("a:b", lambda c: c)
    with pytest.raises(InvalidParameter, match="must be callable"):
        register_metric("mine", 3)


class TestFunctionMetric:
    def test_on_draws(self):
        truths = RNG.integers(0, 2, (20, 50))
        p = RNG.integers(0, 2, 50)
        metric = as_metric(sk.f1_score, BINARY)
        assert isinstance(metric, FunctionMetric)
        assert metric.name == "f1_score"
        np.testing.assert_allclose(metric.evaluate_draws(truths, p), [sk.f1_score(t, p) for t in truths])
        assert metric(truths[0], p) == sk.f1_score(truths[0], p)

    def test_classes_are_handed_over(self):
        metric = FunctionMetric(lambda y, p: sk.recall_score(y, p, pos_label="yes"))
        values = metric.evaluate_draws([[0, 1, 1]], [0, 1, 0], classes=BINARY)
        assert values.tolist() == [0.5]

    def test_undefined_is_nan(self):
        recall = FunctionMetric(sk.recall_score)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            values = recall.evaluate_draws([[0, 0], [0, 1]], [1, 1])
        assert math.isnan(values[0])
        assert values[1] == 1

        def picky(y, p):
            if not y.any():
                raise ValueError("no positives")
            return 1 / int(y.sum() - 1)

        assert np.isnan(FunctionMetric(picky).evaluate_draws([[0, 0], [0, 1], [1, 1]], [1, 1])).tolist() == [
            True,
            True,
            False,
        ]

    def test_other_warnings_are_passed_on_once(self):
        def noisy(y, p):
            warnings.warn("slow", RuntimeWarning, stacklevel=1)
            return 1.0

        with pytest.warns(RuntimeWarning, match="slow") as caught:
            values = FunctionMetric(noisy).evaluate_draws(np.zeros((5, 2)), [0, 0])
        assert len(caught) == 1
        assert values.tolist() == [1.0] * 5

    def test_other_errors_are_not_hidden(self):
        with pytest.raises(TypeError):
            FunctionMetric(lambda y: 1.0)([0], [0])

    def test_as_metric(self):
        named = as_metric("recall", BINARY)
        assert isinstance(named, Metric)
        assert as_metric(named, BINARY) is named
        with pytest.raises(InvalidParameter, match="metric must be a name or a function"):
            as_metric(3, BINARY)
        with pytest.raises(InvalidParameter, match="must be callable"):
            FunctionMetric("recall")
