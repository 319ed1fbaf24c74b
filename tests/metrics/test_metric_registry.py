"""Metrics of every kind by name, and functions as metrics."""

from __future__ import annotations

import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import metrics as sk

from trueup._base import registry as base
from trueup.cli._console import option_names, to_cli_terms
from trueup.exceptions import InvalidParameter
from trueup.metrics import (
    METRICS,
    Metric,
    as_metric,
    as_metrics,
    get_metric,
    list_metrics,
    list_score_metrics,
    register_metric,
)

BINARY = ["no", "yes"]
ANIMALS = ["cat", "cow", "dog"]
RNG = np.random.default_rng(0)
TWO = RNG.integers(1, 30, (2, 2))
THREE = RNG.integers(1, 30, (3, 3))


def data(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    truths = rng.integers(0, n_classes, (6, 30))
    truths[:, :n_classes] = np.arange(n_classes)
    probabilities = rng.dirichlet(np.ones(n_classes), 30)
    return truths, probabilities, rng.exponential(size=truths.shape)


@pytest.fixture
def own_metrics():
    """Registrations that end with the test."""
    with METRICS.preserved():
        yield


def test_every_listed_name_works():
    for name in list_metrics("counts"):
        metric = get_metric(name, BINARY)
        assert metric.name == name
        assert metric.bounds[0] <= metric(TWO) <= metric.bounds[1]
        if name != "prevalence":
            assert np.isfinite(get_metric(name, ANIMALS)(THREE))
    truths = np.arange(60).reshape(2, 30) % 3
    table = RNG.dirichlet(np.ones(3), 30)
    for name in list_score_metrics():
        metric = get_metric(name, ANIMALS)
        outputs = table if metric.needs == "probabilities" else table[:, 1]
        assert metric.name == ("auc_ovr" if name == "auc" else name)
        assert metric.of_outputs(truths, outputs, positive=1).shape == (2,)


def test_names_are_listed_by_what_they_need():
    kinds = {needs: list_metrics(needs) for needs in ("counts", "scores", "probabilities", "labels")}
    assert kinds["labels"] == []
    assert sorted(name for names in kinds.values() for name in names) == list_metrics()
    for needs, names in kinds.items():
        assert {get_metric(name, BINARY).needs for name in names} <= {needs}
    assert list_score_metrics() == sorted(kinds["scores"] + kinds["probabilities"])
    with pytest.raises(InvalidParameter, match="did you mean 'scores'"):
        list_metrics("score")


def test_descriptions_name_their_class():
    names = list_metrics()
    families = ("precision", "recall", "specificity", "false_alarm_rate", "prevalence", "f1", "f3")
    found = [get_metric(name, BINARY) for name in names]
    found += [get_metric(f"{name}:{c}", [0, 1]) for name in families for c in (0, 1)]
    for metric in found:
        assert not re.search(r"[{}]|  |\bNone\b", metric.description)
        assert metric.name.partition(":")[2] in metric.description


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
def test_spellings(alias, name):
    found = get_metric(alias, BINARY)
    assert found.name == name
    assert found.description
    if found.needs == "counts":
        assert found(TWO) == get_metric(name, BINARY)(TWO)


def test_positive_class():
    by_default = get_metric("recall", BINARY)(TWO)
    assert by_default == pytest.approx(TWO[1, 1] / TWO[1].sum())
    assert get_metric("recall", BINARY, positive="no")(TWO) == pytest.approx(TWO[0, 0] / TWO[0].sum())
    # The second of the classes as they are given, whatever they are called; so do all doors.
    assert get_metric("recall", ["yes", "no"])(TWO) == by_default
    assert get_metric("recall", [0, 1], positive="0")(TWO) == get_metric("recall:0", [0, 1])(TWO)
    assert get_metric("recall", np.array([2, 10]))(TWO) == by_default
    assert np.isfinite(get_metric("recall", ["a", 1])(TWO))
    assert get_metric("prevalence", BINARY)(TWO) == pytest.approx(TWO[1].sum() / TWO.sum())
    with pytest.raises(InvalidParameter, match="`positive` must be one of the classes"):
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


def test_directions_and_bounds():
    assert get_metric("error_rate", BINARY).higher_is_better is False
    assert get_metric("false_alarm_rate", BINARY).higher_is_better is False
    assert get_metric("prevalence", BINARY).higher_is_better is None
    assert get_metric("mcc", BINARY).bounds == (-1.0, 1.0)
    assert get_metric("kappa", BINARY).bounds == (-1.0, 1.0)


@pytest.mark.parametrize(
    "name",
    [
        *("acuracy", "macro_recal", "quality", "recall:cta", "accuracy:cat", "macro_mcc", "macro_recall:cat", ""),
        *("micro_prevalence", "f0", 7, "auc:cat", "accuracy@3", "precison@3", "macro_recall@3"),
    ],
)
def test_bad_names_are_one_sentence(name):
    with pytest.raises(InvalidParameter) as caught:
        get_metric(name, ANIMALS)
    assert caught.value.parameter == "metric"
    assert "\n" not in str(caught.value)


def test_bad_classes():
    for classes in (["a"], ["a", "a"], [1, "1"], []):
        with pytest.raises(InvalidParameter, match="at least two different ones"):
            get_metric("accuracy", classes)


@pytest.mark.usefixtures("own_metrics")
class TestRegister:
    def test_of_counts(self):
        made = register_metric("Cost-Ratio", lambda c: c[..., 0, 1] / c.sum(axis=(-2, -1)), higher_is_better=False)
        assert get_metric("cost_ratio", BINARY) is made
        assert "cost_ratio" in list_metrics("counts")
        assert made(TWO) == pytest.approx(TWO[0, 1] / TWO.sum())
        register_metric("cost ratio", lambda c: c[..., 0, 0])
        assert get_metric("cost_ratio", BINARY)(TWO) == TWO[0, 0]

    def test_of_every_other_kind(self):
        first = register_metric(
            "first", lambda truths, scores, weights: truths[:, scores.argmax()] * 1.0, needs="scores"
        )
        assert get_metric("First", ANIMALS) is first
        assert "first" in list_score_metrics()
        assert first.of_outputs([[0, 1]], np.array([1.0, 2.0]), positive=1).tolist() == [1.0]
        register_metric("sure", lambda truths, table, weights: np.full(len(truths), table.max()), needs="probabilities")
        assert get_metric("sure", BINARY).of_outputs([[0]], np.array([[0.3, 0.7]])).tolist() == [0.7]
        register_metric("hits", lambda y, p: (y == p).sum(), needs="labels")
        assert get_metric("hits", BINARY).of_labels([[0, 1]], [0, 1]).tolist() == [2.0]
        assert list_metrics("labels") == ["hits"]

    @pytest.mark.parametrize("taken", ["accuracy", "tpr", "f3", "macro_f1", "AUC", "partial_auc", "weighted_tpr"])
    def test_names_of_trueup_are_taken(self, taken):
        with pytest.raises(InvalidParameter, match="choose another"):
            register_metric(taken, lambda c: c)

    def test_what_cannot_be_registered(self):
        for name in ("a:b", "mine@3", "", "  "):
            with pytest.raises(InvalidParameter, match="word"):
                register_metric(name, lambda c: c)
        with pytest.raises(InvalidParameter, match="must be callable"):
            register_metric("mine", 3)
        with pytest.raises(InvalidParameter, match="`bounds` of the metric 'mine'"):
            register_metric("mine", lambda c: c, bounds=(1, 0))
        with pytest.raises(InvalidParameter, match="must be a Metric of that name, got <function"):
            METRICS.register("mine", lambda c: c)
        assert "mine" not in METRICS

    def test_another_package_adds_one(self, monkeypatch):
        theirs = Metric("their_share", lambda counts: counts[..., 0, 0])
        entry = SimpleNamespace(name="their_share", value="theirs:share", load=lambda: theirs)
        monkeypatch.setattr(base, "entry_points", lambda group: [entry] if group == "trueup.metrics" else [])
        assert get_metric("their-share", BINARY) is theirs


class TestAsMetric:
    def test_a_name_or_a_metric(self):
        named = as_metric("recall", BINARY)
        assert named.name == "recall"
        assert as_metric(named, BINARY) is named
        assert as_metric("auc", BINARY).needs == "scores"

    def test_a_function_has_the_name_it_was_defined_by(self):
        assert as_metric(sk.f1_score, BINARY).name == "f1_score"
        assert as_metric(partial(sk.fbeta_score, beta=2), BINARY).name == "fbeta_score"
        assert as_metric(lambda y, p: 1.0, BINARY).name == "function"
        assert as_metric(sk.f1_score, BINARY).description == "the function f1_score of the true and predicted classes"

    @pytest.mark.parametrize("named", [("cost", sk.f1_score), {"cost": sk.f1_score}], ids=["pair", "mapping"])
    def test_a_function_with_a_name(self, named):
        metric = as_metric(named, BINARY)
        assert (metric.name, metric.function) == ("cost", sk.f1_score)

    @pytest.mark.parametrize("bad", [3, None, {"a": sk.f1_score, "b": sk.f1_score}, ("a", 3), {}, (1, sk.f1_score)])
    def test_anything_else_is_refused(self, bad):
        with pytest.raises(InvalidParameter, match="`metric` must be a name, a Metric, a function") as caught:
            as_metric(bad, BINARY)
        assert caught.value.parameter == "metric"


class TestAsMetrics:
    def test_names_are_kept_as_they_were_written(self):
        metrics = as_metrics(["F1", "log-loss", ("cost", sk.f1_score), {"other": sk.f1_score}, sk.f1_score], BINARY)
        assert list(metrics) == ["F1", "log-loss", "cost", "other", "f1_score"]
        assert [metric.name for metric in metrics.values()] == ["f1", "log_loss", "cost", "other", "f1_score"]

    def test_one_will_do(self):
        for one in ("recall", sk.f1_score, get_metric("recall", BINARY)):
            assert len(as_metrics(one, BINARY)) == 1

    def test_a_mapping_names_functions_and_renames_metrics(self):
        metrics = as_metrics({"cost": sk.f1_score, "found": "recall:yes"}, BINARY)
        assert metrics["cost"].needs == "labels"
        assert metrics["found"](TWO) == get_metric("recall", BINARY)(TWO)

    def test_the_positive_class_is_passed_on(self):
        assert as_metrics(["recall"], BINARY, "no")["recall"](TWO) == get_metric("recall:no", BINARY)(TWO)

    @pytest.mark.parametrize(
        ("metrics", "sentence"),
        [
            ([sk.f1_score] * 2, "different names, got 'f1_score' twice; name functions by a mapping"),
            ([], "at least one metric, got none"),
            (5, "`metrics` must be a metric, or a list or mapping of some, got 5"),
        ],
    )
    def test_what_is_refused(self, metrics, sentence):
        with pytest.raises(InvalidParameter, match=sentence):
            as_metrics(metrics, BINARY)


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
        get_metric(name, BINARY)
    assert repr(name) in str(caught.value)
    assert "write" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_positive_class_decides():
    truths, probabilities, _ = data(2)
    auc = get_metric("auc", BINARY)
    as_one = auc.of_outputs(truths, probabilities[:, 1], positive=1)
    np.testing.assert_allclose(as_one, [sk.roc_auc_score(y, probabilities[:, 1]) for y in truths])
    np.testing.assert_allclose(auc.of_outputs(truths, probabilities[:, 0], positive=0), as_one)
    np.testing.assert_allclose(auc.of_outputs(truths, probabilities[:, 1], positive=0), 1 - as_one)


def test_auc_of_more_classes_is_one_against_the_rest():
    truths, probabilities, _ = data(3)
    auc = get_metric("auc", ANIMALS)
    assert auc.needs == "probabilities"
    expected = [sk.roc_auc_score(y, probabilities, multi_class="ovr") for y in truths]
    np.testing.assert_allclose(auc.of_outputs(truths, probabilities, positive=0), expected)


def test_which_way_is_good():
    lower = {"log_loss", "brier", "calibration_error"}
    for name in list_score_metrics():
        found = get_metric(name, BINARY)
        assert found.higher_is_better == (found.name not in lower)


def test_bounds_of_the_brier_score():
    two, three = get_metric("brier", BINARY), get_metric("brier", ANIMALS)
    assert two.of_outputs([[0]], [[0.0, 1.0]], positive=1).tolist() == [two.bounds[1]]
    assert three.of_outputs([[0]], [[0.0, 1.0, 0.0]], positive=1).tolist() == [three.bounds[1]]


def test_each_door_has_its_own_list_of_metrics():
    with pytest.raises(InvalidParameter, match=r"one that `list_metrics\(\)` lists, got 'foo'") as caught:
        get_metric("foo", ["no", "yes"])
    with option_names(metric="--metric"):
        assert to_cli_terms(caught.value.sentence).startswith("--metric must be one that trueup metrics lists")
