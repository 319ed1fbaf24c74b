"""Judges against experts and against gold."""

import json

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter


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
    labels, _ = simulated()
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


def test_one_expert_and_none():
    labels, _ = simulated(100)
    one = tu.agreement(labels, experts=["e1"]).judges
    assert one["judge"].corrected is None
    assert one.notes
    with pytest.raises(InvalidLabels) as refused:
        _ = tu.agreement(labels).judges
    assert refused.value.parameter == "experts"
    with pytest.raises(InvalidParameter):
        one["nobody"]
