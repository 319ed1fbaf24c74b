"""ROC and precision–recall curves with their uncertainty."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.metrics import roc_auc_score

import trueup as tu
from trueup import Predictions, noise, simulate
from trueup.exceptions import InvalidParameter


@pytest.fixture(autouse=True)
def _no_open_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def scored():
    data = simulate.dawid_skene(n_items=400, n_labelers=5, prior=(0.6, 0.4), accuracy=(0.75, 0.9), random_state=0)
    scores = 1 / (1 + np.exp(-(2 * data.truth - 1) - np.random.default_rng(1).normal(size=400)))
    model = noise.Confusion(data.parameters["confusion"], prior=data.parameters["prior"])
    return data, scores, model


@pytest.fixture(scope="module")
def evaluation(scored):
    data, scores, model = scored
    return tu.evaluate(Predictions.from_scores(scores), data.labels, noise=model)


def true_points(truth, scores, thresholds):
    said = scores >= thresholds[:, None]
    tp, fp = (said & (truth == 1)).sum(axis=1), (said & (truth == 0)).sum(axis=1)
    return fp / (truth == 0).sum(), tp / (truth == 1).sum(), tp / np.maximum(tp + fp, 1)


def test_roc_holds_the_true_curve(scored, evaluation):
    data, scores, _ = scored
    curve = evaluation.curve("roc")
    false_alarm, recall, _ = true_points(data.truth, scores, curve.thresholds)
    for true, interval in ((false_alarm, curve.x_interval), (recall, curve.y_interval)):
        held = (interval[:, 0] - 1e-9 <= true) & (true <= interval[:, 1] + 1e-9)
        assert held.mean() > 0.85
    # From the lowest threshold, where all is positive, both rates fall.
    assert curve.x[0] == curve.y[0] == pytest.approx(1.0)
    assert np.diff(curve.x).max() < 0.02
    assert np.diff(curve.y).max() < 0.02
    assert curve.area == pytest.approx(roc_auc_score(data.truth, scores), abs=0.03)


def test_precision_recall_holds_the_true_curve(scored, evaluation):
    data, scores, _ = scored
    curve = evaluation.curve("pr", n_thresholds=21)
    assert len(curve.thresholds) <= 21
    _, recall, precision = true_points(data.truth, scores, curve.thresholds)
    held = (curve.y_interval[:, 0] - 1e-9 <= precision) & (precision <= curve.y_interval[:, 1] + 1e-9)
    assert held.mean() > 0.85
    np.testing.assert_allclose(curve.x, recall, atol=0.1)
    assert np.diff(curve.x).max() < 0.02
    assert np.isnan(curve.area)


@pytest.mark.parametrize("form", ["scores", "probabilities"])
def test_the_positive_class_does_not_turn_the_curve_around(scored, form):
    """Scores speak for class 1; seen from class 0 the classifier is as good."""
    data, scores, model = scored
    predictions = Predictions.from_scores(scores) if form == "scores" else np.column_stack([1 - scores, scores])
    area = tu.evaluate(predictions, data.labels, noise=model, positive=0).curve(n_thresholds=15).area
    assert area == pytest.approx(roc_auc_score(data.truth, scores), abs=0.05)


def test_heat_map_and_plots(evaluation):
    curve = evaluation.curve(n_thresholds=11)
    edges, heat = curve.heat_map(20)
    assert heat.shape == (20, 20)
    assert edges[0] == 0.0
    assert edges[-1] == 1.0
    assert heat.sum() == pytest.approx(len(curve.thresholds))
    # Rows run along y: the point (1, 1) of the lowest threshold is in the last row and column.
    assert heat[-1, -1] >= 1.0
    assert heat[0, -1] == 0.0
    ax = curve.plot(heat=True)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("false alarm rate", "recall")


def test_curves_need_scores_and_two_classes(scored, evaluation):
    data, _, model = scored
    with pytest.raises(InvalidParameter, match="a curve needs scores"):
        tu.evaluate(data.predictions, data.labels, noise=model).curve()
    with pytest.raises(InvalidParameter, match="`kind` must be one of"):
        evaluation.curve("rock")
    with pytest.raises(InvalidParameter, match="n_thresholds"):
        evaluation.curve(n_thresholds=1)
