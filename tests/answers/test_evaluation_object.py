"""What an evaluation can be asked for, and the forms it leaves in."""

import json
import pickle

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.metrics import confusion_matrix

import trueup as tu
from trueup import noise, simulate
from trueup.estimators import METHODS
from trueup.exceptions import InvalidParameter
from trueup.posteriors import JointEstimate

FAST = {"n_draws": 400, "n_warmup": 200, "check_dependence": False}


@pytest.fixture(autouse=True)
def _no_open_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return simulate.dawid_skene(
        n_items=300, n_labelers=5, accuracy=(0.75, 0.9), classifier_confusion=[[0.9, 0.1], [0.3, 0.7]], random_state=2
    )


@pytest.fixture(scope="module")
def evaluation(data):
    return tu.evaluate(data.predictions, data.labels, noise="dawid-skene", **FAST)


@pytest.mark.parametrize("how", ["known", "dawid-skene"])
def test_intervals_of_the_confusion_matrix_hold_the_truth(data, how):
    model = noise.Confusion(data.parameters["confusion"], prior=data.parameters["prior"])
    options = {} if how == "known" else FAST
    ev = tu.evaluate(data.predictions, data.labels, noise=model if how == "known" else how, **options)
    true = confusion_matrix(data.truth, data.predictions)
    intervals = ev.confusion.intervals(0.99)
    assert intervals.shape == (2, 2, 2)
    assert (intervals[..., 0] <= true).all()
    assert (true <= intervals[..., 1]).all()
    # Predictions are known, so columns add up to how often each class was predicted.
    np.testing.assert_allclose(ev.confusion.mean.sum(axis=0), true.sum(axis=0))
    np.testing.assert_allclose(ev.confusion.conditional.sum(axis=1), 1.0)


def test_cells_by_name(evaluation):
    confusion = evaluation.confusion
    assert confusion.cell(1, 0).mean == pytest.approx(confusion.mean[1, 0])
    share = confusion.conditional_cell(1, 1)
    assert share.mean == pytest.approx(evaluation["recall"].mean, abs=1e-9)
    assert confusion.conditional_cell(0, 1).mean == pytest.approx(evaluation["false_alarm_rate"].mean, abs=1e-9)
    assert share.mean + confusion.conditional_cell(1, 0).mean == pytest.approx(1.0)
    assert share.name == "P(1 | 1)"
    with pytest.raises(InvalidParameter, match="'cat' is no class; the classes are 0, 1"):
        confusion.cell("cat", 1)


@pytest.mark.parametrize("how", ["known", "dawid-skene"])
def test_joint_region_holds_the_truth(data, evaluation, how):
    ev = evaluation
    if how == "known":
        model = noise.Confusion(data.parameters["confusion"], prior=data.parameters["prior"])
        ev = tu.evaluate(data.predictions, data.labels, noise=model)
    joint = ev.joint("precision", "recall")
    assert isinstance(joint, JointEstimate)
    assert joint.means == pytest.approx((ev["precision"].mean, ev["recall"].mean), abs=2e-3)
    _, fp, fn, tp = confusion_matrix(data.truth, data.predictions).ravel()
    region = joint.region(0.99)
    assert region.contains(tp / (tp + fp), tp / (tp + fn))
    assert not region.contains(0.05, 0.05)
    assert joint.region(0.5).area < region.area


@pytest.mark.parametrize("how", ["known", "dawid-skene"])
def test_precision_without_predicted_positives_is_undefined(data, how):
    model = noise.Confusion(data.parameters["confusion"]) if how == "known" else how
    options = {} if how == "known" else FAST
    ev = tu.evaluate(np.zeros(300, dtype=int), data.labels, noise=model, **options)
    assert ev["precision"].undefined == pytest.approx(1.0)
    assert np.isnan(ev["precision"].mean)
    assert ev["recall"].mean == 0.0
    assert ev["recall"].undefined == pytest.approx(0.0, abs=1e-9)
    assert "no interval" in repr(ev)
    json.dumps(ev.to_dict(), allow_nan=False)


def test_a_class_that_may_be_absent_is_undefined_in_part():
    labels = tu.Labels.from_matrix([[0, 0, 0]] * 18 + [[0, 1, 0], [1, 0, 0]])
    ev = tu.evaluate([0] * 19 + [1], labels, noise=noise.Confusion([[0.9, 0.1], [0.1, 0.9]]))
    chance = noise.Confusion([[0.9, 0.1], [0.1, 0.9]]).posterior(labels)[:, 0].prod()
    assert 0 < ev["recall"].undefined < 1
    # The prediction of class 1 makes it more likely to occur than the votes alone do.
    assert ev["recall"].undefined < chance
    assert ev.to_frame(backend="pandas").set_index("metric").loc["recall", "undefined"] == ev["recall"].undefined


@pytest.mark.parametrize("method", [name for name in METHODS if "sample" in METHODS[name].targets])
def test_every_answer_can_be_written_as_json_and_pickled(data, method):
    options = {"truth": data.truth} if method == "ideal" else {}
    model = noise.Confusion(data.parameters["confusion"])
    ev = tu.evaluate(data.predictions, data.labels, noise=model, method=method, **options)
    back = json.loads(json.dumps(ev.to_dict(), allow_nan=False))
    assert list(back["metrics"]) == list(ev.metrics)
    assert back["metrics"]["accuracy"]["mean"] == pytest.approx(ev["accuracy"].mean)
    assert back["method"] == method
    assert back["n_items"] == 300
    np.testing.assert_allclose(back["confusion"], ev.confusion.mean)
    assert ev.to_frame(backend="pandas").shape == (4, 7)
    assert "accuracy" in repr(ev)
    assert ev.plot() is not None
    again = pickle.loads(pickle.dumps(ev))
    for name in ev:
        np.testing.assert_array_equal(again[name].interval(0.9), ev[name].interval(0.9))
    np.testing.assert_array_equal(again.confusion.intervals(), ev.confusion.intervals())


def test_drawn_answers_on_three_classes_are_the_same_after_pickling():
    sim = simulate.dawid_skene(n_items=24, n_classes=3, n_labelers=3, accuracy=0.8, random_state=0)
    for how in ({}, {"noise": "dawid-skene", **FAST}):
        before = tu.evaluate(sim.predictions, sim.labels, random_state=0, **how)
        after = pickle.loads(pickle.dumps(before))
        assert [after[name].interval(0.9) for name in before] == [before[name].interval(0.9) for name in before]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_of_every_library(evaluation, backend):
    module = pytest.importorskip(backend)
    frame = evaluation.to_frame(backend=backend)
    assert type(frame).__module__.split(".")[0] == module.__name__
    columns = list(frame.column_names if backend == "pyarrow" else frame.columns)
    assert columns == ["metric", "mean", "median", "std", "low", "high", "undefined"]
    assert len(frame) == 4
    cells = evaluation.confusion.to_frame(backend=backend)
    assert len(cells) == 4
    assert list(cells.column_names if backend == "pyarrow" else cells.columns)[:2] == ["truth", "prediction"]


def test_repr_shows_numbers_and_warnings(data):
    ev = tu.evaluate(data.predictions, data.labels, noise="glad", level=0.9, check_dependence=False)
    text = repr(ev)
    assert "300 predictions" in text
    assert "90% interval" in text
    assert f"{ev['accuracy'].mean:.4f}" in text
    assert ev.warnings
    assert all(f"! {sentence}" in text for sentence in ev.warnings)


def test_plot_draws_a_line_for_each_metric(evaluation):
    ax = evaluation.plot()
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(reversed(evaluation.metrics))
    low, high = evaluation["accuracy"].interval(0.95)
    bar = ax.lines[2 * (len(evaluation) - 1)]
    np.testing.assert_allclose(bar.get_xdata(), [low, high])
    _, mine = plt.subplots()
    assert evaluation.plot(ax=mine) is mine


def test_sensitivity_runs_between_the_bounds_of_lam_and_stork(data):
    model = noise.Confusion(data.parameters["confusion"], prior=data.parameters["prior"])
    ev = tu.evaluate(data.predictions, data.labels, noise=model)
    found = ev.sensitivity()
    posterior = model.posterior(data.labels)
    label = posterior.argmax(axis=1)
    apparent = np.mean(label != data.predictions)
    eps = np.mean(1 - posterior.max(axis=1))
    assert found.apparent == pytest.approx(apparent)
    assert found.mislabeling == pytest.approx(eps)
    assert found.error[0] == pytest.approx((apparent - eps) / (1 - 2 * eps))
    assert found.error[-1] == pytest.approx(apparent + eps)
    assert (np.diff(found.error) >= -1e-12).all()
    assert found.bounds == pytest.approx((found.error[0], found.error[-1]))
    np.testing.assert_allclose(found.accuracy, 1 - found.error)
    # Each point solves A = e + ε − 2[(1 − λ) e ε + λ min(e, ε)].
    e, x = found.error, found.dependence
    np.testing.assert_allclose(e + eps - 2 * ((1 - x) * e * eps + x * np.minimum(e, eps)), apparent, atol=1e-9)
    assert len(ev.sensitivity(n_points=5).error) == 5
    assert found.plot().get_ylabel() == "true error rate"
    with pytest.raises(InvalidParameter, match="n_points"):
        ev.sensitivity(n_points=1)


def test_sensitivity_of_a_classifier_better_than_the_labels():
    """Where the apparent error is below that of the labels, dependence cannot make it negative."""
    labels = tu.Labels.from_matrix([[0, 0, 1]] * 20 + [[1, 1, 0]] * 20)
    ev = tu.evaluate([0] * 20 + [1] * 20, labels, noise=noise.Confusion([[0.7, 0.3], [0.3, 0.7]]))
    found = ev.sensitivity()
    assert found.apparent == 0.0
    assert found.mislabeling == pytest.approx(0.3)
    assert ((found.error >= 0) & (found.error <= 1)).all()
    assert found.error[-1] == pytest.approx(0.3)
