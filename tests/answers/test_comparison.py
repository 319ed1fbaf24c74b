"""The answer of `compare`: ranking, groups and regret as they are defined, and intervals of differences that hold."""

import numpy as np
import pandas as pd
import pytest
from crowds import CLASSES, FAST, crowd
from sklearn.metrics import roc_auc_score

import trueup as tu
from trueup.answers.comparison import separated
from trueup.data.predictions import are_in_votes
from trueup.exceptions import InvalidParameter
from trueup.noise import Confusion


def test_a_system_without_a_value_is_ranked_last_and_it_is_said():
    labels, truth, _ = crowd(60)
    systems = {"never": np.full(60, "cat"), "a": CLASSES[truth]}
    cmp = tu.compare(systems, labels, metric="precision", **FAST)
    assert cmp.ranking == ["a", "never"]
    assert cmp.prob_best == {"a": 1.0, "never": 0.0}
    assert np.isnan(cmp["never"].mean)
    assert np.isnan(cmp.regret_of("never"))
    assert any("undefined for system 'never' on all drawn truths" in sentence for sentence in cmp.warnings)
    assert list(cmp.to_frame()["system"]) == ["a", "never"]


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
            low, high = cmp.difference(ranking[first], ranking[last]).interval(0.8, "equal")
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


@pytest.mark.slow
def test_differences_of_five_systems_hold_as_often_as_said():
    # 80 runs of three pairs that share a truth: a standard error of at most 0.025.
    assert coverage(80) > 0.90


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


def test_a_system_of_another_kind_of_name_is_not_in_the_comparison():
    labels, truth, _ = crowd(40)
    cmp = tu.compare({0: CLASSES[truth], 1: CLASSES[1 - truth]}, labels, **FAST)
    assert 0 in cmp
    assert "0" not in cmp
    with pytest.raises(InvalidParameter, match=r"of type number .* of type text"):
        cmp["0"]


def any_pair_named(means, rng, n_systems=6, n_draws=500, rho=0.5, error=0.05):
    """Which pairs are named where estimates and draws of some systems are normal with a common correlation."""
    root = np.linalg.cholesky(np.full((n_systems, n_systems), rho) + (1 - rho) * np.eye(n_systems))
    draws = means + root @ rng.standard_normal(n_systems) + rng.standard_normal((n_draws, n_systems)) @ root.T
    first, second = np.triu_indices(n_systems, k=1)
    return separated(draws[:, first] - draws[:, second], error)[2] > 0


def test_equal_systems_are_rarely_named():
    rng = np.random.default_rng(0)
    n_runs = 1000
    wrong = sum(any_pair_named(np.zeros(6), rng).any() for _ in range(n_runs))
    assert abs(wrong / n_runs - 0.05) < 3 * np.sqrt(0.05 * 0.95 / n_runs)


def test_pairs_that_are_left_are_held_against_the_largest_of_those_left():
    rng = np.random.default_rng(1)
    first, second = np.triu_indices(6, k=1)
    is_equal = (first < 3) == (second < 3)
    named = np.array([any_pair_named(np.array([0, 0, 0, 9.0, 9, 9]), rng) for _ in range(1000)])
    assert named[:, ~is_equal].mean() > 0.99
    wrong = named[:, is_equal].any(axis=1).mean()
    assert 0.02 < wrong < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_where_all_items_are_checked_every_difference_is_named():
    sim = tu.simulate.dawid_skene(n_items=80, random_state=3)
    truth = sim.truth.tolist()
    systems = {"right": truth, "a": [1 - y if k < 9 else y for k, y in enumerate(truth)]}
    systems["b"] = systems["a"]
    labels = sim.labels.with_gold(dict(enumerate(truth)), drawn="random")
    pairs = tu.compare(systems, labels).significant_pairs()
    assert [(pair.better, pair.worse) for pair in pairs] == [("right", "a"), ("right", "b")]
    assert [pair.low for pair in pairs] == pytest.approx([9 / 80] * 2)
    with pytest.raises(InvalidParameter) as caught:
        tu.compare(systems, labels).significant_pairs(error=1)
    assert caught.value.parameter == "error"


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


def test_only_a_labeler_with_all_of_their_votes_is_in_them():
    labels, _, _ = crowd(20)
    aligned = labels.as_systems().align(labels)
    assert are_in_votes(aligned, labels).all()
    aligned.codes[1, 0] = 1 - aligned.codes[1, 0]
    assert are_in_votes(aligned, labels).tolist() == [True, False, True, True]
    assert not are_in_votes(aligned, labels.select(labelers=[0]))[2:].any()
