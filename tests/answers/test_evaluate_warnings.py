"""What a user hears before trusting the numbers, and what bad input is told."""

import numpy as np
import pytest

import trueup as tu
from trueup import Labels, Predictions, noise, simulate
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions, TrueupError

FAST = {"n_draws": 100}


@pytest.fixture(scope="module")
def data():
    return simulate.dawid_skene(n_items=200, n_labelers=5, accuracy=(0.75, 0.9), random_state=0)


def has(ev, *words):
    return any(all(word in sentence for word in words) for sentence in ev.warnings)


def test_clean_data_raise_no_alarm(data):
    ev = tu.evaluate(data.predictions, data.labels, noise="dawid-skene", n_draws=1000, n_warmup=300)
    assert ev.warnings == ()
    assert ev.independence is not None
    assert not ev.independence.dependent
    assert tu.evaluate(data.predictions, data.labels, check_dependence=False, **FAST).independence is None


@pytest.mark.filterwarnings("ignore::trueup.exceptions.IdentifiabilityWarning")
@pytest.mark.parametrize("how", ["dawid-skene", "one-coin"])
def test_one_labeler_and_a_classifier_cannot_be_told_apart(data, how):
    ev = tu.evaluate(data.predictions, data.labels.select(labelers=[0]), noise=how, **FAST)
    assert has(ev, "fewer than three", "labels.with_gold")
    assert ev.warnings[0].startswith("No item has more than")


def test_two_labelers_and_a_classifier_are_three_raters(data):
    """What is drawn counts the classifier as a rater, so no warning may say that rates cannot be known."""
    two = data.labels.select(labelers=[0, 1])
    ev = tu.evaluate(data.predictions, two, noise="dawid-skene", check_dependence=False, **FAST)
    assert not has(ev, "fewer than three")


def test_a_classifier_that_is_a_labeler_is_recognised(data):
    item, labeler, answer, _ = data.labels.vote_table()
    copy = np.empty(200, dtype=int)
    copy[item[labeler == 2]] = answer[labeler == 2]
    ev = tu.evaluate(copy, data.labels, noise="dawid-skene", check_dependence=False, **FAST)
    assert has(ev, "copy of labeler 2", "without_labeler")
    without = data.labels.without_labeler(2)
    assert not has(tu.evaluate(copy, without, noise="dawid-skene", check_dependence=False, **FAST), "copy")
    plain = tu.evaluate(data.predictions, data.labels, noise="dawid-skene", check_dependence=False, **FAST)
    assert not has(plain, "copy")


def test_dependent_labelers_are_named(data):
    dependent = simulate.dependent(
        n_items=800, n_labelers=6, subtype_weights=(0.6, 0.4), subtype_accuracy=(0.95, 0.55), random_state=0
    )
    ev = tu.evaluate(dependent.predictions, dependent.labels, noise="dawid-skene", **FAST)
    assert has(ev, "Labelers err together")
    assert ev.independence.dependent


def test_a_class_that_hardly_occurs_is_named():
    rng = np.random.default_rng(0)
    votes = (rng.random((2000, 3)) < 0.001).astype(int)
    labels = Labels.from_matrix(votes)
    ev = tu.evaluate(votes[:, 0], labels, noise=noise.Confusion([[0.999, 0.001], [0.001, 0.999]], prior=[0.999, 0.001]))
    assert has(ev, "Class 1 hardly occurs")


def test_fitted_noise_is_said_to_be_taken_as_known(data):
    ev = tu.evaluate(data.predictions, data.labels, noise=noise.GLAD(tol=1e-3), check_dependence=False)
    assert has(ev, "GLAD was fitted and is taken as known")
    assert has(tu.evaluate(data.predictions, data.labels, method="mmse", noise="one-coin"), "too narrow")


def test_chains_that_have_not_mixed_are_said():
    weak = simulate.baseline(n_items=200, random_state=1)
    ev = tu.evaluate(weak.predictions, weak.labels, noise="dawid-skene", check_dependence=False, n_draws=10, n_warmup=0)
    assert has(ev, "have not mixed")
    assert ev.solution.diagnostics["r_hat"] > 1.05


CASES = {
    InvalidPredictions: {
        "wrong length": lambda d: {"predictions": [0, 1]},
        "unknown item": lambda d: {"predictions": {**dict(enumerate(d.predictions.tolist())), 999: 1}},
        "unknown items": lambda d: {"predictions": {f"i{k}": 0 for k in range(200)}},
        "missing item": lambda d: {"predictions": {0: 1, 1: 0}},
        "class outside": lambda d: {"predictions": np.full(200, 2)},
        "scores": lambda d: {"predictions": np.linspace(0.1, 0.9, 200)},
        "scores alone": lambda d: {"predictions": Predictions.from_scores(np.linspace(0, 1, 200), threshold=None)},
        "two systems": lambda d: {"predictions": {"a": d.predictions, "b": d.predictions}},
    },
    InvalidParameter: {
        "level 1": lambda d: {"level": 1.0},
        "level 0": lambda d: {"level": 0},
        "level in percent": lambda d: {"level": 95},
        "method": lambda d: {"method": "baeys"},
        "metric": lambda d: {"metrics": ["acuracy"]},
        "no metric": lambda d: {"metrics": []},
        "no metric at all": lambda d: {"metrics": [3]},
        "metric of a class": lambda d: {"metrics": ["recall:7"]},
        "noise": lambda d: {"noise": "ordinall"},
        "target": lambda d: {"target": "populaton"},
        "target and method": lambda d: {"target": "population", "method": "mmse"},
        "truth without ideal": lambda d: {"truth": d.truth},
        "ideal without truth": lambda d: {"method": "ideal"},
        "short truth": lambda d: {"method": "ideal", "truth": [0, 1]},
        "positive": lambda d: {"positive": "yes"},
        "missing": lambda d: {"missing": "drop"},
        "random_state": lambda d: {"random_state": "seed"},
        "draws": lambda d: {"n_draws": 0},
    },
    TrueupError: {"truth of half": lambda d: {"method": "ideal", "truth": {i: int(d.truth[i]) for i in range(100)}}},
    InvalidLabels: {"matrices of other classes": lambda d: {"noise": noise.Confusion(np.eye(3))}},
}


@pytest.mark.parametrize(("error", "case"), [(error, case) for error, cases in CASES.items() for case in cases])
def test_bad_input_gets_one_sentence(data, error, case):
    changed = CASES[error][case](data)
    arguments = {"predictions": data.predictions, "noise": "dawid-skene", "check_dependence": False, **changed}
    with pytest.raises(error) as caught:
        tu.evaluate(arguments.pop("predictions"), data.labels, **arguments)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 500
    if caught.value.parameter is not None:
        assert f"`{caught.value.parameter}" in sentence or caught.value.parameter in sentence


def test_functions_need_truths_to_be_drawn(data):
    def mine(y_true, y_pred):
        return 0.5

    ev = tu.evaluate(
        data.predictions,
        data.labels,
        noise="dawid-skene",
        target="population",
        metrics=[mine],
        check_dependence=False,
        **FAST,
    )
    with pytest.raises(InvalidParameter, match="target='sample'"):
        ev["mine"]


def test_numbers_that_are_codes_are_not_taken_for_ratings():
    rng = np.random.default_rng(0)
    truth = rng.integers(24, size=120)
    votes = np.where(rng.random((120, 4)) < 0.7, truth[:, None], rng.integers(24, size=(120, 4)))
    codes = Labels.from_matrix(votes, classes=range(24))
    how = {"noise": "majority", "check_dependence": False}
    assert not has(tu.evaluate(truth, codes, metrics=["accuracy"], **how), "look like ratings")
    near = np.clip(truth[:, None] + rng.integers(-2, 3, size=(120, 4)), 0, 23)
    ratings = Labels.from_matrix(near, classes=range(24))
    assert has(tu.evaluate(truth, ratings, metrics=["accuracy"], **how), "look like ratings")
    assert has(tu.evaluate(truth, codes, metrics=["mae"], **how), "look like ratings"), "an order was asked for"


def test_votes_that_never_differ_are_told(data):
    unanimous = Labels.from_matrix(np.repeat(data.truth[:, None], 3, axis=1))
    assert has(tu.evaluate(data.predictions, unanimous, noise="majority", check_dependence=False), "All votes agree on")
    assert not has(tu.evaluate(data.predictions, data.labels, noise="majority", check_dependence=False), "All votes")


def test_where_nothing_is_found_the_power_of_the_check_is_printed(data):
    ev = tu.evaluate(data.predictions, data.labels, noise="dawid-skene", **FAST)
    assert not ev.independence.dependent
    line = repr(ev).splitlines()[-1].strip()
    assert line.startswith("No sign that labelers err together (errors correlated at 0.1 would have been noticed in ")
    assert line.endswith(f"{ev.independence.power:.0%} of cases).")
    assert not has(ev, "No sign"), "silence is no warning"
    assert "No sign" not in repr(tu.evaluate(data.predictions, data.labels, check_dependence=False, **FAST))


@pytest.mark.parametrize(("n_items", "warned"), [(60, True), (400, False)])
def test_few_votes_for_a_row_of_a_matrix_are_named(n_items, warned):
    data = tu.simulate.dawid_skene(n_items=n_items, n_classes=5, n_labelers=20, votes_per_item=3, random_state=0)
    ev = tu.evaluate(data.predictions, data.labels, noise="dawid-skene", check_dependence=False, n_draws=40)
    assert any("votes a class on average" in note for note in ev.warnings) is warned
