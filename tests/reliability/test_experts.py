"""Judges against experts and against gold."""

import json

import numpy as np
import pytest

import trueup as tu


def simulated(n_items=800, seed=0):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_items) < 0.4).astype(int)
    accuracy = {"e1": (0.9, 0.8), "e2": (0.85, 0.9), "e3": (0.9, 0.9), "judge": (0.95, 0.7), "other": (0.6, 0.7)}
    votes = {}
    for name, right in accuracy.items():
        found = rng.random(n_items) < np.array(right)[truth]
        votes[name] = np.where(found, truth, 1 - truth)
    frame = {"item": [], "labeler": [], "label": []}
    for name, said in votes.items():
        frame["item"] += list(range(n_items))
        frame["labeler"] += [name] * n_items
        frame["label"] += said.tolist()
    return tu.Labels.from_frame(frame), truth


def test_against_gold_rates_are_counted():
    labels, truth = simulated(200)
    labels = labels.with_gold({k: int(truth[k]) for k in range(150)})
    judges = tu.agreement(labels).judges
    said = labels.to_frame(backend="pandas").pivot(index="item", columns="labeler", values="label")["judge"].to_numpy()
    row, gold = judges["judge"], truth[:150]
    assert row.n_items == 150
    assert row.percent.mean == pytest.approx((said[:150] == gold).mean())
    assert row.sensitivity[1].mean == pytest.approx((said[:150] == 1)[gold == 1].mean())
    assert row.specificity[1].mean == pytest.approx((said[:150] == 0)[gold == 0].mean())
    assert row.corrected is None
    assert not judges.ceiling
    json.dumps(judges.to_dict(), allow_nan=False)


def test_the_errors_of_experts_are_taken_off():
    labels, _ = simulated(seed=1)
    judges = tu.agreement(labels, experts=["e1", "e2", "e3"]).judges
    row = judges["judge"]
    for estimate, true in ((row.sensitivity[1], 0.7), (row.specificity[1], 0.95)):
        low, high = estimate.interval()
        assert low < true < high
        assert high - low < 0.16
    assert row.corrected.mean > row.kappa.mean + 0.05  # experts' errors make judges look worse
    pairs = [
        tu.agreement(labels.select(labelers=two))["cohen"].mean for two in (["e1", "e2"], ["e1", "e3"], ["e2", "e3"])
    ]
    assert judges.ceiling["kappa"].mean == pytest.approx(np.mean(pairs))
    assert list(judges) == ["judge", "other"]
    assert judges.to_frame(backend="pandas").shape == (16, 7)


@pytest.mark.slow
def test_intervals_of_corrected_rates_hold():
    # 60 runs: at 95% at least 50 hold with a probability of .999
    held = 0
    for seed in range(60):
        labels = simulated(250, seed)[0].without_labeler("other")
        row = tu.agreement(labels, experts=["e1", "e2", "e3"]).judges["judge"]
        low, high = row.sensitivity[1].interval()
        held += low <= 0.7 <= high
    assert held >= 50


def test_the_rate_of_a_rare_class_is_as_sure_as_its_items():
    held = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        truth = (np.arange(200) < 6).astype(int)
        votes = np.where(rng.random((200, 2)) < 0.8, truth[:, None], 1 - truth[:, None])
        gold = dict(enumerate(truth.tolist()))
        low, high = tu.agreement(tu.Labels.from_matrix(votes).with_gold(gold)).judges[0].sensitivity[1].interval()
        held += low <= 0.8 <= high
    assert held >= 53  # with a chance of .999 where 98% hold; 79% did
    votes[:3] = truth[:3, None]
    few = tu.Labels.from_matrix(votes).with_gold({k: int(truth[k]) for k in (*range(3), *range(50, 200))})
    estimate = tu.agreement(few).judges[0].sensitivity[1]
    assert estimate.mean == 1.0
    assert estimate.interval()[0] < 0.6


def test_errors_of_experts_who_share_no_items_are_not_known():
    labels, _ = simulated(100)
    frame = labels.to_frame(backend="pandas")
    first = frame["item"] < 50
    kept = frame["labeler"].eq("judge") | (frame["labeler"].eq("e1") & first) | (frame["labeler"].eq("e2") & ~first)
    judges = tu.agreement(tu.Labels.from_frame(frame[kept]), experts=["e1", "e2"]).judges
    assert judges["judge"].corrected is None
    assert any("two experts" in note for note in judges.notes)


def test_names_and_order_of_items_do_not_matter_to_judges():
    labels, _ = simulated(120)
    frame = labels.without_labeler("other").to_frame(backend="pandas")
    one = tu.agreement(tu.Labels.from_frame(frame), experts=["e1", "e2"]).judges
    frame["item"] = np.random.default_rng(0).permutation(120)[frame["item"]]
    other = tu.agreement(tu.Labels.from_frame(frame.sample(frac=1, random_state=0)), experts=["e1", "e2"]).judges
    assert one.ceiling["kappa"].std == pytest.approx(other.ceiling["kappa"].std, abs=1e-9)
    for (*_, a), (*_, b) in zip(one["judge"].estimates(), other["judge"].estimates(), strict=True):
        assert a.mean == pytest.approx(b.mean, abs=1e-6)
        assert a.interval() == pytest.approx(b.interval(), abs=1e-4)
