"""What is decided once for all doors: labels, noise, seed, positive class, and the call as data."""

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter

FAST = {"n_draws": 200}


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 120)
    votes = np.where(rng.random((120, 4)) < 0.8, truth[:, None], 1 - truth[:, None])
    labels = tu.Labels.from_matrix(votes, classes=[0, 1])
    return labels, tu.Predictions.from_scores(truth + rng.normal(size=120), threshold=0.5, positive=1)


@pytest.mark.parametrize(
    "door",
    [
        lambda labels: tu.evaluate([0, 1], labels),
        lambda labels: tu.compare({"a": [0, 1], "b": [1, 1]}, labels),
        lambda labels: tu.auc([0.1, 0.9], labels),
        lambda labels: tu.ActiveTest([0, 1], labels),
    ],
    ids=["evaluate", "compare", "auc", "ActiveTest"],
)
def test_votes_that_are_no_labels_get_one_sentence(door):
    with pytest.raises(InvalidLabels, match="`labels` must be Labels, got ndarray; make them with"):
        door(np.array([[0, 1], [1, 1]]))


@pytest.mark.parametrize("method", ["bayes", "majority", "labeler-mean", "unbiased"])
def test_an_unknown_noise_model_is_an_error_with_every_method(scored, method):
    labels, scores = scored
    with pytest.raises(InvalidParameter, match=r"`noise` must be one of .* did you mean .dawid-skene."):
        tu.evaluate(scores, labels, noise="dawid-skeen", method=method)


def test_a_generator_counts_for_metrics_of_scores_and_functions(scored):
    """Its state decides the draws; it is not replaced by a fixed seed."""
    labels, scores = scored
    metrics = {"auc": "auc", "hits": lambda y, p: float((y == p).mean())}

    def means(random_state):
        ev = tu.evaluate(scores, labels, metrics=metrics, random_state=random_state, check_dependence=False, **FAST)
        return [ev[name].mean for name in metrics]

    first, again, other = (means(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_the_seed_of_an_answer_gives_it_again(scored):
    labels, scores = scored
    ev = tu.evaluate(scores, labels, metrics=["auc"], random_state=np.random.default_rng(3), **FAST)
    again = tu.evaluate(scores, labels, **ev.settings.changed())
    assert again["auc"].mean == ev["auc"].mean
    assert ev.settings.changed().keys() == {"metrics", "random_state", *FAST}


def test_one_default_answer_and_target_for_every_function(scored):
    labels, scores = scored
    ev = tu.evaluate(scores, labels, check_dependence=False, **FAST)
    cmp = tu.compare({"a": scores, "b": scores}, labels, metric="auc", check_dependence=False, n_draws=50)
    test = tu.ActiveTest(scores, labels)
    assert {ev.basis, cmp.basis} == {"votes alone"}
    assert ev.noise == cmp.noise
    assert {ev.target, cmp.target, test.target} == {"sample"}
    low, high = ev["auc"].interval(0.95)
    assert low - 0.05 < ev.curve("roc", n_thresholds=11).area < high + 0.05


def test_sensitivity_looks_at_labels_that_do_not_know_the_predictions(scored):
    """The apparent error is the disagreement with what the votes say; the drawn truth knows the classifier."""
    labels, scores = scored
    ev = tu.evaluate(scores, labels, check_dependence=False, **FAST)
    counts = labels.answer_counts
    clear = counts[:, 0] != counts[:, 1]
    assert clear.mean() > 0.7
    wrong = counts.argmax(axis=1) != ev.predictions
    assert wrong[clear].sum() <= ev.sensitivity().apparent * len(clear) <= wrong[clear].sum() + (~clear).sum()


def test_a_door_for_one_metric_refuses_two(scored):
    labels, scores = scored
    with pytest.raises(InvalidParameter, match="ActiveTest takes one `metric`, got 2"):
        tu.ActiveTest(scores, labels, metric=["accuracy", "f1"])
    with pytest.raises(InvalidParameter, match="compare takes one `metric`, got 2"):
        tu.compare({"a": scores, "b": scores}, labels, metric={"a": "accuracy", "b": "f1"})


@pytest.mark.parametrize("extra", [{"noise": "glad"}, {"target": "population"}, {"n_warmup": 10}])
def test_views_of_a_paper_take_no_keywords_of_the_posterior(scored, extra):
    labels, scores = scored
    with pytest.raises(InvalidParameter, match=f'`{next(iter(extra))}` goes with `view="bayes"`'):
        tu.auc(scores, labels, view="probabilistic", **extra)


def test_a_class_that_only_gold_has_is_told(scored):
    labels, scores = scored
    open_labels = tu.Labels.from_frame(labels.to_frame(backend="pandas"))
    classes = tu.evaluate(scores, labels, check_dependence=False, **FAST).predictions
    ev = tu.evaluate(classes, open_labels.with_gold({0: 7}), metrics=["recall"], check_dependence=False, **FAST)
    assert any("Only gold names [7]" in sentence and "averages over all" in sentence for sentence in ev.warnings)
