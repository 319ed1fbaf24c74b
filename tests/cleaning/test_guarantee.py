"""Checks that end when all labels are good enough: does the promise hold, and what does it cost?"""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter


def run(sim, **options):
    """Check until the end: the share of wrong labels, and the share of items that were checked."""
    check = tu.cleaning.check_until(sim.labels, **options)
    while not check.finished:
        check.tell({item: int(sim.truth[item]) for item in check.ask(1000)})
    final = np.array(list(check.labels.values()))
    return float((final != sim.truth).mean()), check.n_checked / len(final), check


@pytest.mark.parametrize("copies", [False, True])
def test_the_promise_holds_whatever_the_votes_are(copies):
    wrong = []
    for seed in range(80):
        sim = tu.simulate.dawid_skene(n_items=300, n_labelers=3, accuracy=0.8, random_state=seed)
        if copies:  # one labeler's votes three times: sure, and often wrong
            item, labeler, label, _ = sim.labels.vote_table()
            own = labeler == 0
            columns = {
                "item": np.concatenate([item, item[own], item[own]]),
                "labeler": np.concatenate([labeler, np.full(own.sum(), 7), np.full(own.sum(), 8)]),
                "label": np.concatenate([label, label[own], label[own]]),
            }
            sim = replace(sim, labels=tu.Labels.from_frame(columns))
        share, _, _ = run(sim, error=0.05, confidence=0.9, random_state=seed)
        wrong.append(share > 0.05)
    assert sum(wrong) <= stats.binom.ppf(0.995, len(wrong), 0.1)


def test_good_votes_spare_most_checks():
    sim = tu.simulate.dawid_skene(n_items=5000, n_labelers=5, accuracy=0.9, random_state=1)
    share, checked, check = run(sim, error=0.02, random_state=0)
    assert share <= 0.02
    assert checked < 0.2
    assert 0 < check.bound <= 0.02
    assert run(sim, error=0.02, random_state=0)[:2] == (share, checked)


def test_the_bound_of_a_small_pool_is_that_of_all_its_samples():
    """Six items of which two of the surest are wrong: in how many samples of three is more left wrong than promised?"""
    labels = tu.Labels.from_frame(
        {"item": [k for k in range(6) for _ in range(3)], "labeler": [0, 1, 2] * 6, "label": ["x"] * 9 + ["y"] * 9}
    )
    truth = ["y", "x", "x", "y", "y", "x"]
    failed = 0
    for sample in combinations(range(6), 3):
        check = tu.cleaning.check_until(labels, error=0.2, confidence=0.7, n_sample=3, random_state=0)
        check._sample = np.array(sample)
        while not check.finished:
            check.tell({item: truth[item] for item in check.ask(6)})
        failed += sum(check.labels[k] != truth[k] for k in range(6)) > 0.2 * 6
    assert failed / 20 <= 0.3


def test_bad_options_and_answers():
    sim = tu.simulate.dawid_skene(n_items=50, n_labelers=3, random_state=2)
    for options in ({"error": 0}, {"confidence": 1}, {"n_sample": 0}):
        with pytest.raises(InvalidParameter) as caught:
            tu.cleaning.check_until(sim.labels, **options)
        assert caught.value.parameter in options
    with pytest.raises(InvalidLabels):
        tu.cleaning.check_until(sim.truth)
    check = tu.cleaning.check_until(sim.labels, random_state=0)
    for answers in ({"nowhere": 1}, {0: "no class"}):
        with pytest.raises(InvalidParameter):
            check.tell(answers)
    assert check.n_checked == 0
