"""Slices, clusters, weights and rates of groups: one fit, the same draws of the truth."""

import numpy as np
import pytest

import trueup as tu
from trueup.answers.evaluation import Slices
from trueup.exceptions import InvalidLabels, InvalidParameter

QUICK = {"check_dependence": False, "random_state": 2}
N = 240
SYSTEM = np.array(["alpha", "beta", "gamma"])[np.arange(N) % 3]
PASSES = {"alpha": 0.9, "beta": 0.7, "gamma": 0.4}


@pytest.fixture(scope="module")
def judged():
    """Outputs of three systems judged by five judges, three outputs a prompt; the truth beside it."""
    rng = np.random.default_rng(4)
    truth = (rng.random(N) < [PASSES[name] for name in SYSTEM]).astype(int)
    right = rng.random((N, 5)) < 0.88
    labels = tu.Labels.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None]).tolist())
    items = {"item": list(range(N)), "system": SYSTEM.tolist(), "prompt": (np.arange(N) // 3).tolist()}
    items["weight"] = np.where(SYSTEM == "alpha", 3.0, 1.0).tolist()
    return labels.with_items(items), truth


@pytest.fixture(scope="module")
def vetted(judged):
    labels, truth = judged
    at = np.random.default_rng(0).choice(N, 45, replace=False)
    return labels.with_gold({int(i): int(truth[i]) for i in at}, drawn="random")


@pytest.fixture(scope="module")
def shares(judged):
    return tu.share(judged[0], of=1, by="system", **QUICK)


@pytest.fixture(scope="module")
def rates(vetted):
    return tu.share(vetted, of=1, by="system", **QUICK)


def test_the_share_of_each_group_is_near_the_truth(shares, rates, judged):
    truth = judged[1]
    for name in PASSES:
        true = truth[name == SYSTEM].mean()
        assert abs(shares[name].mean - true) < 0.15
        assert abs(rates[name].mean - true) < 0.05  # 15 checked items in a group
        (low, high), (lowest, highest) = (answer[name].interval(0.95) for answer in (rates, shares))
        assert max(low, lowest) < true < min(high, highest)
        assert high - low < 0.4 * (highest - lowest)
    assert shares.ranking == ["alpha", "beta", "gamma"] == list(shares)
    assert shares.prob_best["alpha"] > 0.6
    assert shares.lower() == []
    assert rates.prob_best["alpha"] > 0.99
    assert rates.lower() == ["gamma"]
    assert (shares.basis, rates.basis) == ("votes alone", "votes and 45 checked items")
    assert all(15 < rates.vettings[name] < shares.vettings[name] < 80 for name in PASSES)


def test_few_are_named_although_many_are_looked_at(vetted):
    """Of slices by chance one in twenty is worse with 95%: the rule of Benjamini and Hochberg asks for more."""
    slices = tu.share(vetted, of=1, by={k: k * 7 % 20 for k in range(N)}, **QUICK)._groups
    chances = np.sort(list(slices.prob_worse().values()))[::-1]
    assert (chances > 0.95).sum() >= 1
    n_draws = len(slices.compared().draws)
    values = (n_draws * (1 - chances) + 1) / (n_draws + 1)
    for level in (0.05, 0.5):
        meets = np.flatnonzero(values <= level * np.arange(1, 21) / 20)
        assert len(slices.worse(false_discoveries=level)) == (0 if not len(meets) else meets[-1] + 1)
    assert len(slices.worse()) < (chances > 0.95).sum()


def test_a_group_that_is_alone_is_told(judged):
    alone = tu.share(judged[0], of=1, by=dict.fromkeys(range(N), "alpha"), **QUICK)
    assert any("'alpha' alone" in sentence for sentence in alone.warnings)
    assert alone.to_dict()["lower"] == []


def test_groups_are_those_of_the_whole(shares):
    sizes = {name: (name == SYSTEM).sum() for name in PASSES}
    together = sum(shares[name].mean * sizes[name] for name in PASSES) / N
    assert together == pytest.approx(shares.overall.mean, abs=1e-9)
    difference = shares.difference("alpha", "gamma")
    assert difference.mean == pytest.approx(shares["alpha"].mean - shares["gamma"].mean, abs=1e-9)


def test_clusters_that_are_alike_widen_the_interval(vetted, judged):
    """Ten items of one truth a cluster: their share varies as that of 24 items does, and not of 240."""
    truth = judged[1]
    checked = vetted.with_gold({i: int(truth[i]) for i in range(N)}, drawn="random")
    alike = {int(i): (code, k // 10) for code in (0, 1) for k, i in enumerate(np.flatnonzero(truth == code))}
    one_by_one = tu.share(checked, of=1, target="population", **QUICK).overall.std
    clustered = tu.share(checked, of=1, cluster=alike, **QUICK)
    assert clustered.evaluation.target == "population"
    assert clustered.overall.std == pytest.approx(np.sqrt(10) * one_by_one, rel=0.1)


def test_weights_move_the_mean_to_what_counts_more(judged, vetted):
    truth = judged[1]
    weighted, even = (
        tu.share(vetted, of=1, target="population", weights=weights, **QUICK).overall.mean
        for weights in ("weight", None)
    )
    expected = np.average(truth, weights=np.where(SYSTEM == "alpha", 3.0, 1.0)) - truth.mean()
    assert weighted - even == pytest.approx(expected, abs=0.02)


def test_the_mean_score_is_a_share_stretched(judged, shares):
    labels, _ = judged
    scores = tu.mean_score(labels, values={0: 1, 1: 5}, by="system", **QUICK)
    assert scores["beta"].mean == pytest.approx(1 + 4 * shares["beta"].mean, abs=1e-9)
    assert tu.mean_score(labels, **QUICK).overall.bounds == (0.0, 1.0)


def test_slices_of_an_evaluation_and_a_comparison(judged, vetted):
    labels, truth = vetted, judged[1]
    rng = np.random.default_rng(1)
    better = np.where(rng.random(N) < 0.9, truth, 1 - truth)
    worse = np.where((SYSTEM == "gamma") & (rng.random(N) < 0.6), 1 - truth, better)
    ev = tu.evaluate(worse, labels, by="system", **QUICK)
    assert isinstance(ev.by, Slices)
    assert ev.by.worse("accuracy") == ["gamma"]
    assert ev.by["alpha"]["accuracy"].mean == pytest.approx(ev.by.compared("accuracy")["alpha"].mean)
    assert ev.by["gamma"].n_items == 80
    assert set(ev.by.to_frame(backend="pandas")["system"]) == set(PASSES)
    assert "gamma" in repr(ev.by)
    cmp = tu.compare({"a": better, "b": worse}, labels, by="system", **QUICK)
    assert cmp.by["gamma"].prob_better("a", "b") > 0.95
    assert abs(cmp.by["alpha"].difference("a", "b").mean) < 0.02


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda labels: tu.share(labels, of="maybe"), InvalidParameter, "`of` must be one of"),
        (lambda labels: tu.share([1, 2], of=1), InvalidParameter, "Labels"),
        (lambda labels: tu.share(labels, of=1, by="sytem"), InvalidLabels, "system"),
        (lambda labels: tu.share(labels, of=1, by=7), InvalidParameter, "mapping"),
        (lambda labels: tu.share(labels, of=1, by={"nobody": 1}), InvalidParameter, "nobody"),
        (lambda labels: tu.share(labels, of=1, weights="system"), InvalidParameter, "numbers"),
        (lambda labels: tu.share(labels, of=1, weights={0: -1.0}), InvalidParameter, "above 0"),
        (lambda labels: tu.share(labels, of=1, cluster="prompt", target="sample"), InvalidParameter, "leave that out"),
        (lambda labels: tu.mean_score(labels, values={0: 1}), InvalidParameter, "none for"),
        (lambda labels: tu.mean_score(labels, values={0: 1, 1: 1}), InvalidParameter, "differ"),
        (lambda labels: tu.evaluate([1] * N, labels, by="system", noise="dawid-skene"), InvalidParameter, "by"),
        (lambda labels: tu.evaluate([1] * N, labels, **QUICK).by, InvalidParameter, "without"),
    ],
)
def test_bad_input_gets_a_sentence(judged, call, error, words):
    with pytest.raises(error, match=words):
        call(judged[0])


def test_vetted_items_in_whole_clusters_are_told(judged, vetted):
    labels, truth = judged
    whole = labels.with_gold({item: int(truth[item]) for item in range(30)}, drawn=dict.fromkeys(range(30), 0.125))
    told = tu.share(whole, of=1, cluster="prompt", **QUICK).warnings
    assert any("come from 10 clusters" in sentence for sentence in told)
    for labels, cluster in ((vetted, "prompt"), (whole, None)):
        assert not any("clusters" in sentence for sentence in tu.share(labels, of=1, cluster=cluster, **QUICK).warnings)
