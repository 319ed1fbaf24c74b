"""Which class scores are for, and which is the positive one, in `compare`, `evaluate` and `auc`; what `auc` refuses."""

import numpy as np
import pytest
from crowds import FAST
from sklearn.metrics import average_precision_score, roc_auc_score

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidPredictions, TrueupWarning


@pytest.mark.parametrize("positive", ["cat", "dog", None])
@pytest.mark.parametrize("metric", ["auc", "average_precision"])
def test_scores_that_name_the_other_class_are_turned_around(vetted, metric, positive):
    labels, truth, scores = vetted
    named = {k: tu.Predictions.from_scores(s, positive="dog") for k, s in scores.items()}
    cmp = tu.compare(named, labels, metric=metric, positive=positive, target="sample", **FAST)
    reference = {"auc": roc_auc_score, "average_precision": average_precision_score}[metric]
    for name, s in scores.items():
        expected = reference(truth == 0, -s) if positive == "cat" else reference(truth, s)
        assert cmp[name].mean == pytest.approx(expected)
    evaluated = tu.evaluate(named["a"], labels, metrics=[metric], positive=positive, noise="dawid-skene", n_warmup=100)
    assert evaluated[metric].mean == pytest.approx(cmp["a"].mean)


@pytest.mark.parametrize("view", ["bayes", "deterministic", "probabilistic"])
def test_arrays_of_scores_speak_for_the_positive_class(vetted, view):
    labels, truth, scores = vetted
    options = {"noise": "dawid-skene", "n_draws": 400} if view == "bayes" else {}
    expected = roc_auc_score(truth == 0, scores["a"])
    assert tu.auc(scores["a"], labels, view=view, positive="cat", **options).mean == pytest.approx(expected, abs=1e-9)
    turned = tu.Predictions.from_scores(scores["a"], positive="dog")
    assert tu.auc(turned, labels, view=view, positive="cat", **options).mean == pytest.approx(1 - expected, abs=1e-9)


def test_one_of_many_classes_is_ranked_by_its_probability():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 90)
    labels = tu.Labels.from_matrix(np.stack([truth] * 3, axis=1), classes=[0, 1, 2])
    labels = labels.with_gold(dict(enumerate(truth.tolist())))
    p = rng.dirichlet(np.ones(3), (2, 90))
    cmp = tu.compare({"a": p[0], "b": p[1]}, labels, metric="ap", positive=1, target="sample", **FAST)
    assert cmp["a"].mean == pytest.approx(average_precision_score(truth == 1, p[0][:, 1]))
    scores = {"a": p[0][:, 1], "b": p[1][:, 1]}
    by_scores = tu.compare(scores, labels, metric="ap", positive=1, target="sample", **FAST)
    assert by_scores["a"].mean == pytest.approx(cmp["a"].mean)
    with pytest.raises(InvalidPredictions):
        tu.compare(scores, labels, metric="ap", **FAST)


def test_auc_does_not_leave_items_out_in_silence(vetted):
    labels, _, scores = vetted
    holes = np.where(np.arange(80) < 5, np.nan, scores["a"])
    for view in ("bayes", "deterministic", "subjectivist", "probabilistic"):
        with pytest.raises(InvalidPredictions, match="got none for 5 of 80 items"):
            tu.auc(holes, labels, view=view)


def test_auc_says_what_compare_would_say(vetted):
    labels, _, _ = vetted
    for options in ({"noise": "dawid-skene"}, {"view": "probabilistic"}):
        with pytest.warns(TrueupWarning, match="they rank nothing"):
            assert tu.auc(np.ones(80), labels, **options).mean == pytest.approx(0.5)


@pytest.mark.parametrize("view", ["deterministic", "subjectivist", "probabilistic"])
def test_a_truth_of_one_class_has_no_auc(view):
    labels = tu.Labels.from_matrix(np.ones((20, 3), dtype=int), classes=[0, 1])
    with pytest.raises(InvalidLabels, match="one class only"):
        tu.auc(np.arange(20.0), labels, view=view)
