"""Metrics of every kind by name, and functions as metrics."""

import numpy as np
import pytest
from sklearn import metrics as sk

from trueup.exceptions import InvalidParameter
from trueup.metrics import METRICS, as_metric, as_metrics, get_metric, list_metrics, list_score_metrics, register_metric

BINARY = ["no", "yes"]
ANIMALS = ["cat", "cow", "dog"]
RNG = np.random.default_rng(0)
TWO = RNG.integers(1, 30, (2, 2))
THREE = RNG.integers(1, 30, (3, 3))


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


SPELLINGS = {
    "recall": ["TPR", "sensitivity"],
    "false_alarm_rate": ["fpr", "false-alarm-rate"],
    "precision": ["ppv"],
    "error_rate": ["error"],
    "kappa": ["cohen-kappa", "cohen_kappa"],
    "mcc": ["matthews_corrcoef"],
    "f1": ["F1", "f1_score", "f1.0"],
    "f2": ["f-2"],
    "f0.5": ["f0.50"],
    "macro_f1": ["f1_macro", "macro-F1"],
    "weighted_recall": ["weighted tpr"],
    "accuracy": ["accuracy_score"],
    "balanced_accuracy": ["Balanced-Accuracy"],
    "recall:yes": ["recall: yes"],
    "auc": ["roc_auc", "ROC-AUC"],
    "auc_ovo": ["auc-ovo", "hand-till"],
    "average_precision": ["AP", "average-precision"],
    "precision@10": ["precision@10"],
    "recall@5": [" Recall@5 "],
    "ndcg@3": ["ndcg@03"],
    "partial_auc@0.1": ["partial-auc@0.1"],
    "partial_auc@0.25": ["partial_auc@.25"],
    "log_loss": ["log-loss"],
    "calibration_error": ["ece"],
}


@pytest.mark.parametrize(("alias", "name"), [(alias, name) for name, aliases in SPELLINGS.items() for alias in aliases])
def test_spellings(alias, name):
    found = get_metric(alias, BINARY)
    assert found.name == name
    assert found.description
    if found.needs == "counts":
        assert found(TWO) == get_metric(name, BINARY)(TWO)


def test_many_classes():
    assert get_metric("recall", ANIMALS)(THREE) == get_metric("macro_recall", ANIMALS)(THREE)
    assert get_metric("recall:cow", ANIMALS)(THREE) == pytest.approx(THREE[1, 1] / THREE[1].sum())
    assert get_metric("f3:dog", ANIMALS).name == "f3:dog"
    with pytest.raises(
        InvalidParameter, match=r"prevalence' needs a class when there are 3; ask for e\.g\. 'prevalence:cat'"
    ):
        get_metric("prevalence", ANIMALS)
    assert get_metric("prevalence:dog", ANIMALS)(THREE) == pytest.approx(THREE[2].sum() / THREE.sum())


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


@pytest.mark.parametrize("bad", [3, None, {"a": sk.f1_score, "b": sk.f1_score}, ("a", 3), {}, (1, sk.f1_score)])
def test_anything_else_is_no_metric(bad):
    with pytest.raises(InvalidParameter, match="`metric` must be a name, a Metric, a function") as caught:
        as_metric(bad, BINARY)
    assert caught.value.parameter == "metric"


class TestAsMetrics:
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
        *("precision@0", "precision@", "precision@ten", "recall@1.5", "ndcg@-1", "partial_auc", "partial_auc@2"),
        *("partial_auc@0", "partial_auc@x", "auc@3", "log_loss@3"),
    ],
)
def test_ill_formed_names_say_so(name):
    with pytest.raises(InvalidParameter) as caught:
        get_metric(name, BINARY)
    assert repr(name) in str(caught.value)
    assert "write" in str(caught.value)
    assert "\n" not in str(caught.value)
