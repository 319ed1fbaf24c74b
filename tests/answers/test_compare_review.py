"""What users got wrong, or were told wrong, by `compare` and `auc`: directions, other labels, missing items, priors."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_expit, logsumexp
from scipy.stats import norm
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

import trueup as tu
from trueup.data.coercion import are_in_votes
from trueup.estimators.system_features import main_features, principal_features, system_prior
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions, TrueupWarning
from trueup.noise import Confusion, item_prior
from trueup.noise.item_prior import LogLinearPrior

FAST = {"noise": "dawid-skene", "n_draws": 200, "n_warmup": 100, "check_dependence": False}
CLASSES = np.array(["cat", "dog"])


def crowd(n_items=100, *, seed=0, accuracy=(0.9, 0.85, 0.8, 0.7)):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_items) < 0.4).astype(int)
    votes = np.stack([np.where(rng.random(n_items) < a, truth, 1 - truth) for a in accuracy], axis=1)
    return tu.Labels.from_matrix(CLASSES[votes], classes=CLASSES.tolist()), truth, rng


@pytest.fixture(scope="module")
def known():
    """Labels with gold on every item, so that all answers are exact; and scores for the second class, "dog"."""
    labels, truth, rng = crowd(80)
    labels = labels.with_gold(dict(zip(labels.items.tolist(), CLASSES[truth].tolist(), strict=True)))
    return labels, truth, {"a": truth + rng.normal(size=80), "b": truth + 2 * rng.normal(size=80)}


# ---------------------------------------------------------------------- which class scores speak for


@pytest.mark.parametrize("positive", ["cat", "dog", None])
@pytest.mark.parametrize("metric", ["auc", "average_precision"])
def test_scores_that_name_the_other_class_are_turned_around(known, metric, positive):
    labels, truth, scores = known
    named = {k: tu.Predictions.from_scores(s, positive="dog") for k, s in scores.items()}
    cmp = tu.compare(named, labels, metric=metric, positive=positive, target="sample", **FAST)
    reference = {"auc": roc_auc_score, "average_precision": average_precision_score}[metric]
    for name, s in scores.items():
        expected = reference(truth == 0, -s) if positive == "cat" else reference(truth, s)
        assert cmp[name].mean == pytest.approx(expected)
    evaluated = tu.evaluate(named["a"], labels, metrics=[metric], positive=positive, noise="dawid-skene", n_warmup=100)
    assert evaluated[metric].mean == pytest.approx(cmp["a"].mean)


@pytest.mark.parametrize("view", ["bayes", "deterministic", "probabilistic"])
def test_arrays_of_scores_speak_for_the_positive_class(known, view):
    labels, truth, scores = known
    options = {"noise": "dawid-skene", "n_draws": 400} if view == "bayes" else {}
    expected = roc_auc_score(truth == 0, scores["a"])
    assert tu.auc(scores["a"], labels, view=view, positive="cat", **options).mean == pytest.approx(expected, abs=1e-9)
    turned = tu.Predictions.from_scores(scores["a"], positive="dog")
    assert tu.auc(turned, labels, view=view, positive="cat", **options).mean == pytest.approx(1 - expected, abs=1e-9)


def test_the_class_of_the_scores_is_the_positive_one_of_counts_too(known):
    labels, truth, scores = known
    systems = {k: tu.Predictions.from_scores(1 - s, positive="cat") for k, s in scores.items()}
    cmp = tu.compare(systems, labels, metric="f1", target="sample", **FAST)
    for name, s in scores.items():
        assert cmp[name].mean == pytest.approx(f1_score(truth == 0, 1 - s >= 0.5))


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
    with pytest.raises(InvalidPredictions, match="scores must speak for the positive class"):
        tu.compare(scores, labels, metric="ap", **FAST)


# ---------------------------------------------------------------------- labelers as systems


def test_judges_of_other_labels_are_systems_like_any_other():
    humans, truth, rng = crowd(300, accuracy=(0.7, 0.7, 0.7))
    said = np.stack([np.where(rng.random(300) < a, truth, 1 - truth) for a in (0.95, 0.9)], axis=1)
    judges = tu.Labels.from_matrix(CLASSES[said], classes=CLASSES.tolist())  # their names are those of humans too
    known = Confusion(np.array([[[0.7, 0.3], [0.3, 0.7]]] * 3), prior=[0.6, 0.4])
    options = {"noise": known, "target": "sample", "n_draws": 400, "check_dependence": False}
    cmp = tu.compare(judges.as_systems(), humans, **options)
    arrays = tu.compare({0: CLASSES[said[:, 0]], 1: CLASSES[said[:, 1]]}, humans, **options)
    np.testing.assert_array_equal(cmp.draws, arrays.draws)
    for k in range(2):  # left out of the model of the truth, they would be pulled a quarter towards chance
        assert cmp[k].mean == pytest.approx((said[:, k] == truth).mean(), abs=0.09)


def test_only_a_labeler_with_all_of_his_votes_is_in_them():
    labels, _, _ = crowd(20)
    aligned = labels.as_systems().align(labels)
    assert are_in_votes(aligned, labels).all()
    aligned.codes[1, 0] = 1 - aligned.codes[1, 0]
    assert are_in_votes(aligned, labels).tolist() == [True, False, True, True]
    assert not are_in_votes(aligned, labels.select(labelers=[0]))[2:].any()


# ---------------------------------------------------------------------- the prior of an item


def test_items_without_a_prediction_have_an_intercept_of_their_own():
    rng = np.random.default_rng(3)
    truth = (rng.random(4000) < 0.3).astype(int)
    said = np.where(truth == 1, rng.random(4000) < 0.5, rng.random(4000) < 0.02).astype(int)  # precise, but misses half
    labels = tu.Labels.from_matrix(truth[:, None], classes=[0, 1])
    aligned = tu.Predictions.from_classes(dict(enumerate(said[:800].tolist()))).align(labels, missing="ignore")
    prior = system_prior(aligned, 2, used="classes")
    log_likelihood = np.log(np.where(truth[:, None] == [0, 1], 1 - 1e-9, 1e-9))
    w = prior.draws_given_votes(log_likelihood, 200, rng).coefficients.mean(axis=0)
    p = prior.probabilities(w)[:, 1]
    for group in (np.flatnonzero(said[:800] == 1), np.flatnonzero(said[:800] == 0), np.arange(800, 4000)):
        assert p[group][0] == pytest.approx(truth[group].mean(), abs=0.03)


@pytest.mark.parametrize("used", ["classes", "scores"])
def test_copies_of_a_system_are_not_believed_more_before_the_votes_speak(used):
    labels, _, rng = crowd(50)
    output = rng.normal(size=50)
    spreads = []
    for n in (1, 3, 8):
        named = {k: tu.Predictions.from_scores(output, threshold=0.0) for k in range(n)}
        prior = system_prior(tu.Predictions.stack(named).align(labels), 2, used=used)
        x = prior._rows[:, 1] if prior._row_of is None else prior._rows[prior._row_of, 1]
        spreads.append(np.sqrt((x**2 / prior.precision).sum(axis=1)))
    np.testing.assert_allclose(spreads[1], spreads[0])
    np.testing.assert_allclose(spreads[2], spreads[0])


def test_components_do_not_depend_on_how_many_systems_are_held(monkeypatch):
    labels, truth, rng = crowd(60)
    named = {k: tu.Predictions.from_scores(truth + rng.normal(size=60)) for k in range(12)}
    aligned = tu.Predictions.stack(named).align(labels)
    whole = principal_features(aligned, 2, "scores")
    monkeypatch.setattr("trueup.estimators.system_features._BLOCK", 300)
    np.testing.assert_allclose(principal_features(aligned, 2, "scores"), whole, atol=1e-9)
    flat = main_features(aligned, 2, "scores").reshape(12, -1)
    _, _, directions = np.linalg.svd(flat, full_matrices=False)
    inside = whole.reshape(len(whole), -1) @ directions[: len(whole)].T
    np.testing.assert_allclose((inside**2).sum(), (whole**2).sum())


def test_walkers_have_the_exact_posterior(monkeypatch):
    rng = np.random.default_rng(1)
    x = rng.normal(size=25)
    log_likelihood = np.log(rng.dirichlet([0.5, 0.5], size=25))
    features = np.zeros((25, 2, 2))
    features[:, 1] = np.stack([np.ones(25), x], axis=1)
    monkeypatch.setattr(item_prior, "_ENOUGH", np.inf)
    drawn = LogLinearPrior(features, [1.5, 2.0]).draws_given_votes(log_likelihood, 6000, rng)
    grid = np.array(list(product(np.linspace(-8, 8, 121), np.linspace(-10, 10, 121))))
    odds = grid @ features[:, 1].T
    weight = norm.logpdf(grid, scale=[1.5, 2.0]).sum(axis=1)
    weight += logsumexp(log_likelihood + np.stack([log_expit(-odds), log_expit(odds)], axis=2), axis=2).sum(axis=1)
    weight = np.exp(weight - logsumexp(weight))
    mean = weight @ grid
    sd = np.sqrt(weight @ (grid - mean) ** 2)
    assert 500 < drawn.effective < 1e5
    np.testing.assert_allclose(drawn.coefficients.mean(axis=0), mean, atol=4.5 * sd.max() / np.sqrt(1500))
    np.testing.assert_allclose(drawn.coefficients.std(axis=0), sd, rtol=0.08)


def test_many_features_do_not_leave_a_handful_of_draws():
    labels, truth, rng = crowd(120, accuracy=(0.75, 0.7, 0.7))
    scores = {k: 1.5 * truth + rng.normal(size=120) for k in range(8)}
    known = Confusion(np.array([[[a, 1 - a], [1 - a, a]] for a in (0.75, 0.7, 0.7)]), prior=[0.6, 0.4])
    cmp = tu.compare(scores, labels, metric="auc", noise=known, n_draws=400, check_dependence=False)
    assert cmp.truth.diagnostics["effective_draws"] > 100  # candidates of one law alone are worth about 15


# ---------------------------------------------------------------------- nothing silent, and one sentence


def test_auc_does_not_leave_items_out_in_silence(known):
    labels, _, scores = known
    holes = np.where(np.arange(80) < 5, np.nan, scores["a"])
    for view in ("bayes", "deterministic", "subjectivist", "probabilistic"):
        with pytest.raises(InvalidPredictions, match="got none for 5 of 80 items"):
            tu.auc(holes, labels, view=view)


def test_auc_says_what_compare_would_say(known):
    labels, _, _ = known
    for view in ("bayes", "probabilistic"):
        with pytest.warns(TrueupWarning, match="they rank nothing"):
            assert tu.auc(np.ones(80), labels, view=view, noise="dawid-skene").mean == pytest.approx(0.5)


@pytest.mark.parametrize("view", ["deterministic", "subjectivist", "probabilistic"])
def test_a_truth_of_one_class_has_no_auc(view):
    labels = tu.Labels.from_matrix(np.ones((20, 3), dtype=int), classes=[0, 1])
    with pytest.raises(InvalidLabels, match="one class only"):
        tu.auc(np.arange(20.0), labels, view=view)


def test_a_system_without_a_value_is_ranked_last_and_it_is_said():
    labels, truth, _ = crowd(60)
    systems = {"never": np.full(60, "cat"), "a": CLASSES[truth]}
    cmp = tu.compare(systems, labels, metric="precision", **FAST)
    assert cmp.ranking == ["a", "never"]
    assert cmp.prob_best == {"a": 1.0, "never": 0.0}
    assert np.isnan(cmp["never"].mean)
    assert np.isnan(cmp.regret_of("never"))
    assert any("undefined for system 'never' on every drawn truth" in sentence for sentence in cmp.warnings)
    assert list(cmp.to_frame()["system"]) == ["a", "never"]


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
        (lambda a: {"labels": np.stack([a, a], axis=1)}, InvalidLabels, "labels must be Labels, got ndarray"),
        (lambda a: {"n_chain": 2}, InvalidParameter, "did you mean 'n_chains'"),
        (
            lambda a: {"noise": Confusion(np.array([[[0.8, 0.2], [0.2, 0.8]]] * 4)), "n_warm": 2},
            InvalidParameter,
            "did you mean 'n_warmup'",
        ),
        (lambda a: {"metric": lambda y, p: "x"}, InvalidPredictions, "or the function fails"),
        (lambda a: {"metric": "auc", "positive": 7}, InvalidParameter, "positive must be one of the classes"),
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


# ---------------------------------------------------------------------- many systems


def test_groups_and_regrets_are_those_of_the_definition():
    labels, truth, rng = crowd(200)
    systems = {
        k: CLASSES[np.where(rng.random(200) < q, truth, 1 - truth)] for k, q in enumerate(np.linspace(0.6, 1, 25))
    }
    cmp = tu.compare(systems, labels, level=0.8, **FAST)
    ranking, found, reach = cmp.ranking, [], 0
    for first in range(25):
        last = first + 1
        while last < 25:
            low, high = cmp.difference(ranking[first], ranking[last]).interval(0.8)
            if low > 0 or high < 0:
                break
            last += 1
        if last > reach:
            found.append(tuple(ranking[first:last]))
            reach = last
    assert cmp.groups == found
    assert len(found) > 2
    for name in ranking[:3]:
        assert cmp.regret_of(name) == pytest.approx((cmp.draws.max(axis=1) - cmp.draws[:, name]).mean())


# ---------------------------------------------------------------------- statistics


def coverage(n_runs):
    """How often 95% intervals of differences in AUC hold, five systems of two qualities that err together."""
    held = []
    confusion = np.array([[[a, 1 - a], [1 - a, a]] for a in (0.85, 0.8, 0.75, 0.7, 0.65)])
    for run in range(n_runs):
        rng = np.random.default_rng([17, run])
        truth = (rng.random(300) < 0.4).astype(int)
        right = rng.random((300, 5)) < confusion[:, 0, 0]
        votes = np.where(right, truth[:, None], 1 - truth[:, None])
        votes[:, 1:][rng.random((300, 4)) < 0.4] = -1
        labels = tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1])
        shared = rng.normal(size=(2, 300))
        quality = np.array([1.8, 1.2, 1.8, 1.2, 1.8])
        noise = np.sqrt(0.6) * shared[[0, 1, 0, 1, 0]] + np.sqrt(0.4) * rng.normal(size=(5, 300))
        scores = quality[:, None] * truth + noise
        true = [roc_auc_score(truth, s) for s in scores]
        cmp = tu.compare(
            dict(enumerate(scores)), labels, metric="auc", noise=Confusion(confusion, prior=[0.6, 0.4]),
            target="sample", n_draws=400, check_dependence=False, random_state=run,
        )  # fmt: skip
        for a, b in ((0, 1), (2, 3), (4, 1)):
            low, high = cmp.difference(a, b).interval(0.95)
            held.append(low <= true[a] - true[b] <= high)
    return float(np.mean(held))


def test_differences_of_five_systems_hold_now_and_then():
    assert coverage(6) >= 0.7


@pytest.mark.slow
def test_differences_of_five_systems_hold_as_often_as_said():
    # 80 runs of three pairs that share a truth: a standard error of at most 0.025.
    assert coverage(80) > 0.90
