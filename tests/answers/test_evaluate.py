"""The front door: what goes in, every method, and agreement with what lies below."""

import numpy as np
import pytest
from sklearn import metrics as sk

import trueup as tu
from trueup import Labels, Predictions, estimators, noise, simulate
from trueup.estimators import METHODS, Problem
from trueup.exceptions import InvalidParameter
from trueup.metrics import get_metric

FAST = {"n_draws": 200, "check_dependence": False}
DEFAULT = ("accuracy", "precision", "recall", "f1")


def votes_of(labels):
    table = np.full((labels.n_items, labels.n_labelers), -1)
    item, labeler, answer, _ = labels.vote_table()
    table[item, labeler] = answer
    return table


@pytest.fixture(scope="module")
def binary():
    return simulate.dawid_skene(
        n_items=300, n_labelers=5, prior=(0.6, 0.4), accuracy=(0.7, 0.9), classifier_accuracy=0.8, random_state=0
    )


@pytest.fixture(scope="module")
def three():
    return simulate.dawid_skene(
        n_items=200, n_classes=3, n_labelers=5, accuracy=(0.7, 0.9), classifier_accuracy=0.8, random_state=1
    )


@pytest.fixture(scope="module")
def known(binary):
    return noise.Confusion(binary.parameters["confusion"], prior=binary.parameters["prior"])


def test_an_evaluation_is_a_mapping_of_estimates(binary):
    ev = tu.evaluate(binary.predictions, binary.labels, **FAST)
    assert isinstance(ev, tu.Evaluation)
    assert tuple(ev) == ev.metrics == DEFAULT
    assert len(ev) == 4
    assert ev["accuracy"].name == "accuracy"
    assert ev["mcc"].bounds == (-1.0, 1.0)  # not asked for, known all the same
    assert ev["accuracy"] is ev["accuracy"]
    assert "accuracy" in ev
    assert "nonsense" not in ev
    assert (ev.method, ev.target, ev.basis, ev.level, ev.n_items) == ("bayes", "sample", "votes alone", 0.95, 300)
    low, high = ev["accuracy"].interval(0.95)
    assert low < binary.accuracy < high


def test_all_forms_of_predictions_are_one(binary, known):
    forms = {
        "array": binary.predictions,
        "list": binary.predictions.tolist(),
        "mapping": {int(i): int(binary.predictions[i]) for i in reversed(range(300))},
        "classes": Predictions.from_classes(binary.predictions),
        "probabilities": np.where(binary.predictions[:, None] == [0, 1], 0.9, 0.1),
        "scores": Predictions.from_scores(np.where(binary.predictions == 1, 0.7, 0.2)),
        "frame": {"item": np.arange(300), "prediction": binary.predictions},
    }
    means = {name: tu.evaluate(form, binary.labels, noise=known)["f1"].mean for name, form in forms.items()}
    assert len(set(means.values())) == 1, means


def test_items_without_prediction_do_not_count(binary, known):
    some = {i: int(binary.predictions[i]) for i in range(120)}
    ev = tu.evaluate(some, binary.labels, noise=known, missing="ignore")
    assert ev.n_items == 120
    assert ev.confusion.mean.sum() == pytest.approx(120)
    alone = tu.evaluate(some, binary.labels.select(items=range(120)), noise=known)
    assert ev["f1"].mean == pytest.approx(alone["f1"].mean)


ALL = [name for name in METHODS if "sample" in METHODS[name].targets]


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("which", ["binary", "three"])
def test_every_method_runs(method, which, request):
    data = request.getfixturevalue(which)
    options = {"ideal": {"truth": data.truth}, "prior-average": {"n_draws": 2000}}.get(method, {})
    if method == "bayes":
        options.update(n_draws=200, n_warmup=100)
    ev = tu.evaluate(
        data.predictions, data.labels, noise="dawid-skene", method=method, check_dependence=False, **options
    )
    assert ev.method == method
    for name in DEFAULT:
        assert 0 < ev[name].mean < 1
    # With such votes all methods but those that ignore the predictions come near.
    tolerance = 0.2 if method in ("prior-average", "labeler-mean", "labeler-median") else 0.1
    assert ev["accuracy"].mean == pytest.approx(data.accuracy, abs=tolerance)


@pytest.mark.parametrize("which", ["binary", "three"])
@pytest.mark.parametrize("target", ["sample", "population"])
def test_known_noise_is_the_estimator_on_the_same_arrays(which, target, request):
    data = request.getfixturevalue(which)
    model = noise.Confusion(data.parameters["confusion"], prior=data.parameters["prior"])
    ev = tu.evaluate(data.predictions, data.labels, noise=model, target=target, random_state=5)
    problem = Problem(data.predictions, model.log_likelihood(data.labels), model.prior_)
    rng = np.random.default_rng(5)
    counts = estimators.bayes(problem, target=target, random_state=rng).counts
    for name in DEFAULT:
        expected = counts.estimate(get_metric(name, data.labels.classes.tolist()))
        assert ev[name].mean == pytest.approx(expected.mean, rel=1e-12)
        assert ev[name].interval(0.9) == pytest.approx(expected.interval(0.9), rel=1e-12)
    assert not ev.warnings


def test_functions_agree_with_the_metrics_of_that_name(binary):
    def share_right(y_true, y_pred):
        return float(np.mean(y_true == y_pred))

    ev = tu.evaluate(
        binary.predictions,
        binary.labels,
        noise="dawid-skene",
        metrics=[sk.matthews_corrcoef, share_right, "mcc"],
        n_draws=500,
        n_warmup=200,
        check_dependence=False,
    )
    assert tuple(ev) == ("matthews_corrcoef", "share_right", "mcc")
    assert ev["matthews_corrcoef"].mean == pytest.approx(ev["mcc"].mean, abs=0.25 * ev["mcc"].std)
    assert ev["matthews_corrcoef"].std == pytest.approx(ev["mcc"].std, rel=0.2)
    assert ev["share_right"].mean == pytest.approx(ev["accuracy"].mean, abs=0.25 * ev["accuracy"].std)
    named = noise.Confusion(binary.parameters["confusion"], prior=binary.parameters["prior"])
    exact = tu.evaluate(binary.predictions, binary.labels, noise=named, metrics=sk.matthews_corrcoef)
    assert exact["matthews_corrcoef"].mean == pytest.approx(exact["mcc"].mean, abs=0.25 * exact["mcc"].std)


def test_two_functions_of_one_name_are_not_mixed_up(binary, known):
    low, high = (lambda y, p: 0.25), (lambda y, p: 0.75)
    with pytest.raises(InvalidParameter, match="got 'function' twice; name functions by a mapping"):
        tu.evaluate(binary.predictions, binary.labels, noise=known, metrics=[low, high])
    ev = tu.evaluate(binary.predictions, binary.labels, noise=known, metrics={"low": low, "high": high, "mine": "F1"})
    assert {name: estimate.mean for name, estimate in ev.items()} == {"low": 0.25, "high": 0.75, "mine": ev["f1"].mean}


def test_a_metric_object_is_measured_whatever_it_needs(binary, known):
    class_one = tu.metrics.Metric("ones", lambda counts: counts[..., 1].sum(axis=-1))
    top = tu.metrics.Metric("top", lambda truths, scores, weights: truths[:, scores.argmax()] * 1.0, needs="scores")
    scores = tu.Predictions.from_scores(np.where(binary.predictions == 1, 0.9, 0.2), threshold=0.5, positive=1)
    ev = tu.evaluate(scores, binary.labels, noise=known, metrics=[class_one, top])
    assert ev["ones"].mean == pytest.approx(np.sum(binary.predictions == 1))
    assert 0 < ev["top"].mean <= 1


def test_a_function_that_raises_is_named(binary, known):
    def cost(y_true, y_pred):
        return 1 / 0

    ev = tu.evaluate(binary.predictions, binary.labels, noise=known, metrics=[cost])
    with pytest.raises(
        InvalidParameter, match="the metric 'cost' failed on a drawn truth, got ZeroDivisionError"
    ) as error:
        ev["cost"]
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_order_of_items_and_names_of_classes_do_not_matter(three):
    model = noise.Confusion(three.parameters["confusion"], prior=three.parameters["prior"])
    plain = tu.evaluate(three.predictions, three.labels, noise=model)
    order = np.random.default_rng(0).permutation(200)
    shuffled = Labels.from_matrix(votes_of(three.labels)[order], classes=[0, 1, 2])
    other = tu.evaluate(three.predictions[order], shuffled, noise=model)
    names = np.array(["zebra", "ant", "mouse"], dtype=object)
    rank = [1, 2, 0]  # of the new classes among the old ones: ant, mouse, zebra
    votes = votes_of(three.labels)
    renamed = Labels.from_matrix(names[votes], classes=sorted(names))
    matrices = three.parameters["confusion"][:, rank][:, :, rank]
    third = tu.evaluate(
        names[three.predictions], renamed, noise=noise.Confusion(matrices, prior=three.parameters["prior"][rank])
    )
    for name in DEFAULT:
        for ev in (other, third):
            assert ev[name].mean == pytest.approx(plain[name].mean, abs=0.15 * plain[name].std), name
            assert ev[name].std == pytest.approx(plain[name].std, rel=0.12), name
    assert third["recall:zebra"].mean == pytest.approx(plain["recall:0"].mean, abs=0.15 * plain["recall:0"].std)


def test_progress_is_heard(binary):
    heard = []
    tu.evaluate(binary.predictions, binary.labels, progress=heard.append, **FAST)
    assert max(heard) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise": "glad", "n_warmup": 10}, "takes the options n_draws, got `n_warmup`; leave it out"),
        ({"noise": "dawid-skene", "n_warmups": 10}, "got `n_warmups`; did you mean 'n_warmup'"),
        ({"method": "labeler-mean", "n_draws": 10}, "`method='labeler-mean'` takes no options, got `n_draws`"),
    ],
    ids=["not-drawn", "misspelt", "none"],
)
def test_an_option_the_method_does_not_know_is_said(options, words):
    data = simulate.dawid_skene(n_items=30, random_state=0)
    with pytest.raises(InvalidParameter, match=words):
        tu.evaluate(data.predictions, data.labels, **options)
