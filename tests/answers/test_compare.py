"""The front door `compare`: right answers where the truth is known, and one sentence where the input is wrong."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions

FAST = {"n_draws": 400, "check_dependence": False}


def crowd(n_items=300, *, seed=0, accuracy=(0.9, 0.85, 0.8, 0.7)):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_items) < 0.4).astype(int)
    votes = np.stack([np.where(rng.random(n_items) < a, truth, 1 - truth) for a in accuracy], axis=1)
    return tu.Labels.from_matrix(votes, classes=[0, 1]), truth, rng


def system(truth, accuracy, rng):
    return np.where(rng.random(len(truth)) < accuracy, truth, 1 - truth)


@pytest.fixture(scope="module")
def three():
    labels, truth, rng = crowd()
    systems = {"good": system(truth, 0.95, rng), "fair": system(truth, 0.85, rng), "poor": system(truth, 0.7, rng)}
    return tu.compare(systems, labels, noise="dawid-skene", target="sample", **FAST), systems, truth


def test_the_right_order_with_intervals_that_hold(three):
    cmp, systems, truth = three
    assert cmp.ranking == ["good", "fair", "poor"] == list(cmp)
    assert cmp.best == "good"
    for name, codes in systems.items():
        low, high = cmp[name].interval(0.999)
        assert low <= (codes == truth).mean() <= high


def test_differences_are_paired(three):
    cmp, systems, truth = three
    difference = cmp.difference("good", "fair")
    assert difference.mean == pytest.approx((cmp.draws[:, 0] - cmp.draws[:, 1]).mean())
    apart = np.sqrt(cmp["good"].std ** 2 + cmp["fair"].std ** 2)
    assert difference.std < apart  # what both share cancels
    low, high = difference.interval(0.999)
    assert low <= (systems["good"] == truth).mean() - (systems["fair"] == truth).mean() <= high
    assert cmp.difference("fair", "good").mean == pytest.approx(-difference.mean)


def test_probabilities_belong_together(three):
    cmp, _, _ = three
    assert sum(cmp.prob_best.values()) == pytest.approx(1)
    np.testing.assert_allclose(cmp.pairwise + cmp.pairwise.T, 1)
    np.testing.assert_allclose(cmp.rank_probabilities.sum(axis=0), 1)
    np.testing.assert_allclose(cmp.rank_probabilities.sum(axis=1), 1)
    assert cmp.prob_better("good", "poor") == cmp.pairwise[0, 2]
    assert cmp.is_significant("good", "poor")
    assert cmp.told_apart("good", "poor"), "its old name"
    assert cmp.regret_of("poor") > cmp.regret_of("fair") > cmp.expected_regret >= 0
    assert cmp.regret_of("poor") - cmp.regret_of("good") == pytest.approx(cmp.difference("good", "poor").mean)


def test_systems_differ_where_little_of_the_difference_is_beyond_zero(three):
    cmp, _, _ = three
    gap = -np.log((np.arange(1000) + 0.5) / 1000)
    for middle, share, differ in ((3.2, 0.04, False), (4.0, 0.02, True)):  # the shortest interval has one end at most
        skewed = replace(cmp, draws=np.column_stack([(middle - gap) / 10, np.zeros((1000, 2))]))
        assert skewed.prob_better("good", "poor") == pytest.approx(1 - share, abs=0.005)
        assert skewed.difference("good", "poor").interval(0.95)[0] > 0
        assert skewed.is_significant("good", "poor") is differ


def test_where_two_systems_differ(three):
    cmp, systems, truth = three
    found = cmp.disagreement("good", "fair")
    differ = systems["good"] != systems["fair"]
    assert (found.n_items, found.n_different) == (len(truth), int(differ.sum()))
    assert found.a_right.mean + found.b_right.mean + found.both_wrong.mean == pytest.approx(differ.sum())
    assert found.both_wrong.mean == 0  # of two classes one is right
    assert (found.a_right.mean - found.b_right.mean) / len(truth) == pytest.approx(cmp.difference("good", "fair").mean)
    assert found.prob_a_better == pytest.approx(cmp.prob_better("good", "fair"))
    assert "differ on" in repr(found)


def test_equal_systems_share_everything():
    labels, truth, rng = crowd(100)
    a = system(truth, 0.9, rng)
    cmp = tu.compare({"a": a, "b": a.copy()}, labels, noise="dawid-skene", **FAST)
    assert cmp.prob_best == {"a": 0.5, "b": 0.5}
    assert cmp.prob_better("a", "b") == 0.5
    assert not cmp.is_significant("a", "b")
    assert cmp.groups == [("a", "b")]


def test_lower_is_better_for_errors_and_losses():
    labels, truth, rng = crowd(200)
    systems = {"a": system(truth, 0.9, rng), "b": system(truth, 0.7, rng)}
    by_error = tu.compare(systems, labels, metric="error_rate", noise="dawid-skene", **FAST)
    assert by_error.ranking == ["a", "b"]
    assert by_error.difference("a", "b").mean < 0
    assert by_error.prob_best["a"] > 0.99
    p = np.clip(truth * 0.6 + 0.2 + 0.1 * rng.normal(size=200), 0.01, 0.99)
    by_loss = tu.compare(
        {"sharp": p, "flat": 0.5 + 0.1 * (p - 0.5)}, labels, metric="log_loss", noise="dawid-skene", **FAST
    )
    assert by_loss.ranking == ["sharp", "flat"]


def test_a_function_of_labels_is_a_metric():
    labels, truth, rng = crowd(120)
    systems = {"a": system(truth, 0.95, rng), "b": system(truth, 0.6, rng)}

    def hits(y_true, y_pred):
        return float((y_true == y_pred).mean())

    for target in ("sample", "population"):
        cmp = tu.compare(systems, labels, metric=hits, noise="dawid-skene", target=target, **FAST)
        named = tu.compare(systems, labels, metric="accuracy", noise="dawid-skene", target=target, **FAST)
        assert cmp.metric == "hits"
        assert cmp["a"].mean == pytest.approx(named["a"].mean, abs=0.01)
        assert cmp["a"].std == pytest.approx(named["a"].std, rel=0.3)


def test_many_classes_and_probabilities():
    sim = tu.simulate.dawid_skene(n_items=300, n_labelers=6, n_classes=4, random_state=0)
    rng = np.random.default_rng(0)
    sharp = rng.dirichlet(np.ones(4), 300) * 0.4
    sharp[np.arange(300), sim.truth] += 0.6
    flat = 0.3 * sharp + 0.7 * rng.dirichlet(np.ones(4), 300)
    for metric in ("auc", "auc_ovo", "log_loss", "brier", "accuracy"):
        cmp = tu.compare({"flat": flat, "sharp": sharp}, sim.labels, metric=metric, noise="dawid-skene", **FAST)
        assert cmp.ranking == ["sharp", "flat"]
        assert cmp.prob_best["sharp"] > 0.99


def test_labelers_with_their_own_items_and_abstentions():
    votes = np.array([["a", "a"], ["b", None], ["u", "b"], ["a", "b"]], dtype=object)
    labels = tu.Labels.from_matrix(votes, abstain="u", missing=None, classes=["a", "b"])
    aligned = labels.as_systems().align(labels, missing="ignore")
    assert aligned.codes.tolist() == [[0, 1, -1, 0], [0, -1, 1, 1]]
    with pytest.raises(InvalidPredictions, match="no labeler has 9 votes"):
        labels.as_systems(min_votes=9)
    assert labels.as_systems(min_votes=3).n_systems == 2


def test_systems_with_different_items_are_aligned_and_it_is_said():
    labels, truth, rng = crowd(100)
    items = labels.items.tolist()
    a = dict(zip(items, system(truth, 0.9, rng).tolist(), strict=True))
    b = {k: v for k, v in a.items() if k % 4} | {"stranger": 1}
    frames = {
        name: tu.Predictions.from_classes(list(one.values()), items=list(one)) for name, one in (("a", a), ("b", b))
    }
    with pytest.raises(InvalidPredictions, match="items of the labels"):
        tu.compare(frames, labels, unknown="error", **FAST)
    del b["stranger"]
    cmp = tu.compare({"a": a, "b": b}, labels, noise="dawid-skene", target="sample", **FAST)
    assert cmp.n_items == 75
    assert "25 items lack the prediction of some system" in " ".join(cmp.warnings)
    np.testing.assert_array_equal(cmp.draws[:, 0], cmp.draws[:, 1])
    own = tu.compare({"a": a, "b": b}, labels, noise="dawid-skene", target="sample", items="own", **FAST)
    assert own.n_items == 100
    assert "judged on different items" in " ".join(own.warnings)
    assert (own.draws[:, 0] != own.draws[:, 1]).any()


def test_what_comes_out(three):
    cmp, _, _ = three
    frame = cmp.to_frame()
    assert list(frame["system"]) == ["good", "fair", "poor"]
    assert list(frame["rank"]) == [1, 2, 3]
    record = cmp.to_dict()
    assert [row["system"] for row in record["systems"]] == ["good", "fair", "poor"]
    assert record["groups"]
    assert (record["seed"], record["positive"]) == (cmp.seed, cmp.positive_name)
    text = repr(cmp)
    assert text.splitlines()[0].startswith("Comparison of 3 systems by accuracy on 300 items")
    assert "best with probability" in text


def test_the_plot_shows_every_system(three):
    plt = pytest.importorskip("matplotlib.pyplot")
    cmp, _, _ = three
    ax = cmp.plot()
    assert [t.get_text() for t in ax.get_yticklabels()] == ["poor", "fair", "good"]
    assert "accuracy" in ax.get_xlabel()
    plt.close(ax.figure)


def bad(change):
    labels, truth, rng = crowd(40)
    call = {"systems": {"a": system(truth, 0.9, rng), "b": system(truth, 0.8, rng)}, "labels": labels, **FAST}
    call.update(change(truth))
    return call


WRONG_CALLS = {
    "single": (lambda y: {"systems": {"a": y}}, InvalidPredictions),
    "array": (lambda y: {"systems": y}, InvalidPredictions),
    "empty": (lambda y: {"systems": {}}, InvalidPredictions),
    "wide": (lambda y: {"systems": pd.DataFrame({"a": y, "b": y})}, InvalidPredictions),
    "labels": (lambda y: {"labels": np.stack([y, y], axis=1)}, InvalidLabels),
    "metric": (lambda y: {"metric": "acuracy"}, InvalidParameter),
    "prevalence": (lambda y: {"metric": "prevalence"}, InvalidParameter),
    "function": (lambda y: {"metric": lambda y, p: "x"}, InvalidParameter),
    "target": (lambda y: {"target": "both"}, InvalidParameter),
    "items": (lambda y: {"items": "all"}, InvalidParameter),
    "level": (lambda y: {"level": 95}, InvalidParameter),
    "draws": (lambda y: {"n_draws": 1}, InvalidParameter),
    "option": (lambda y: {"n_chain": 2}, InvalidParameter),
    "positive": (lambda y: {"metric": "auc", "positive": 7}, InvalidParameter),
    "scores": (lambda y: {"systems": {"a": y, "b": y * 0.5}}, InvalidPredictions),
    "classes for auc": (lambda y: {"metric": "auc", "systems": dict.fromkeys("ab", y_of(y))}, InvalidPredictions),
    "infinite": (
        lambda y: {"metric": "auc", "systems": {"a": y + 0.1, "b": np.where(y, np.inf, 0.0)}},
        InvalidPredictions,
    ),
    "not probabilities": (
        lambda y: {"metric": "log_loss", "systems": {"a": y * 7.0, "b": y * 3.0}},
        InvalidPredictions,
    ),
    "no threshold": (lambda y: {"systems": dict.fromkeys("ab", y_of(y * 1.0, threshold=None))}, InvalidPredictions),
    "nothing in common": (lambda y: {"systems": {"a": {0: 1, 1: 0}, "b": {2: 1, 3: 0}}}, InvalidPredictions),
}


def y_of(y, **how):
    return tu.Predictions.from_scores(y, **how) if how else tu.Predictions.from_classes(y)


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_bad_input_gets_one_sentence(case):
    change, error = WRONG_CALLS[case]
    call = bad(change)
    with pytest.raises(error) as caught:
        tu.compare(call.pop("systems"), call.pop("labels"), **call)
    assert "\n" not in str(caught.value)
    if case in ("target", "items", "level", "n_draws", "positive", "labels"):
        assert caught.value.parameter == case


def test_a_system_that_is_not_there():
    labels, truth, _ = crowd(40)
    cmp = tu.compare({"alpha": truth, "beta": 1 - truth}, labels, noise="dawid-skene", **FAST)
    with pytest.raises(InvalidParameter, match="there is no system 'alpa'"):
        cmp.difference("alpa", "beta")
    with pytest.raises(KeyError):
        dict(cmp)["gamma"]


def test_checked_items_correct_each_of_many_systems_as_they_do_one():
    data = tu.simulate.baseline(n_items=200, random_state=0)
    rng = np.random.default_rng(1)
    systems = {k: np.where(rng.random(200) < 0.6 + 0.03 * k, data.truth, 1 - data.truth) for k in range(9)}
    gold = {int(item): int(data.truth[item]) for item in rng.choice(200, 60, replace=False)}
    labels = data.labels.with_gold(gold, drawn="random")
    answer = tu.compare(systems, labels, **FAST)
    assert answer.basis == "votes and 60 checked items"
    for k in (0, 8):
        alone = tu.evaluate(systems[k], labels, **FAST)["accuracy"]
        assert answer[k].mean == pytest.approx(alone.mean, abs=2 * alone.std)
        assert answer[k].std < 1.2 * alone.std
        assert answer[k].mean == pytest.approx(np.mean(systems[k] == data.truth), abs=4 * answer[k].std)


def test_a_best_system_by_votes_alone_comes_with_what_checks_would_settle():
    data = tu.simulate.dawid_skene(n_items=300, n_labelers=7, accuracy=0.9, random_state=0)
    rng = np.random.default_rng(0)
    classes = {
        name: np.where(rng.random(300) < right, data.truth, 1 - data.truth) for name, right in (("a", 1.0), ("b", 0.5))
    }
    by_class = tu.compare(classes, data.labels, random_state=0)
    assert by_class.basis == "votes alone"
    assert by_class.prob_best["a"] > 0.9
    (advice,) = [w for w in by_class.warnings if "rests on votes alone" in w]
    assert re.search(r"20 checked items .* ±0\.\d+", advice)
    scores = {name: np.clip(codes + rng.normal(0, 0.3, 300), 0, 1) for name, codes in classes.items()}
    by_score = tu.compare(scores, data.labels, metric="auc", positive=1, random_state=0)
    assert by_score.prob_best["a"] > 0.9
    assert any("rests on votes alone" in w for w in by_score.warnings)
    named = tu.compare(classes, data.labels, noise="dawid-skene", random_state=0)
    assert not any("rests on votes alone" in w for w in named.warnings)
