"""Vetted items drawn with different chances: those that are kept are a sample with equal ones."""

import numpy as np
import pytest
from batches import day

import trueup as tu
from trueup.exceptions import InvalidParameter
from trueup.monitor.batch import equalize_inclusion, instant_of, moment

RARE, OFTEN = 0.04, 0.4


@pytest.mark.parametrize("n_items", [20, 200])
def test_every_item_is_kept_with_the_same_chance(n_items):
    """One in five is drawn ten times as often; in small batches the others are often missing."""
    rng = np.random.default_rng([1, n_items])
    is_often = np.arange(n_items) % 5 == 0
    n_kept, earlier = np.zeros(n_items), 1.0
    n_batches = 400_000 // n_items
    for k in range(n_batches):
        design = np.where(is_often, OFTEN, RARE)
        chances = np.where(rng.random(n_items) < design, design, np.nan)
        n_kept += equalize_inclusion(chances, when=day(k), earlier=earlier)
        earlier = min(earlier, np.nanmin(chances, initial=1.0))
    shares = n_kept / n_batches
    assert shares[is_often].mean() == pytest.approx(RARE, rel=0.1)
    assert shares[~is_often].mean() == pytest.approx(RARE, rel=0.05)


def test_what_is_kept_is_the_same_every_time_and_another_in_every_batch():
    chances = np.where(np.arange(200) < 100, OFTEN, RARE)
    kept = [equalize_inclusion(chances, when=when, earlier=1.0) for when in (day(0), day(0), day(1))]
    assert (kept[0] == kept[1]).all()
    assert (kept[0] != kept[2]).any()


def watch_another_design(seed: int) -> tu.Monitor:
    """Nothing changes but who is checked: 10% of all, and from the 16th day on disagreements more often than others."""
    rng = np.random.default_rng([2, seed])
    watch = tu.Monitor()
    for k in range(40):
        truth = rng.integers(2, size=200)
        said = np.where(rng.random((200, 4)) < [0.9, 0.9, 0.9, 0.85], truth[:, None], 1 - truth[:, None])
        disagree = (said[:, :3].sum(axis=1) > 1) != said[:, 3]
        design = np.full(200, 0.1) if k < 15 else np.where(disagree, OFTEN, RARE)
        checked = np.flatnonzero(rng.random(200) < design).tolist()
        labels = tu.Labels.from_matrix(said[:, :3]).with_gold(
            {item: int(truth[item]) for item in checked}, drawn={item: float(design[item]) for item in checked}
        )
        watch.add(labels, said[:, 3], when=day(k))
    return watch


def test_another_design_of_checking_is_no_change_of_the_system():
    watches = [watch_another_design(seed) for seed in range(4)]
    assert [watch.alarms for watch in watches] == [()] * 4
    watch = watches[0]
    (note,) = watch.notes
    assert "were set aside at random, since items of a batch were drawn with different chances" in note
    n_drawn = sum(row["n_gold"] for row in watch.course_rows())
    assert 150 < int(note.split(" of ")[0]) < n_drawn - 300
    rows = [row for row in watch.judge_rows() if row["when"] == day(39)]
    assert [row["n_gold"] for row in rows] == [rows[0]["n_gold"]] * 3
    assert np.mean([row["error"] for row in rows]) == pytest.approx(0.1, abs=0.07)
    again = tu.Monitor.from_json(watch.to_json())
    assert again.notes == watch.notes
    assert again.judge_rows() == watch.judge_rows()


@pytest.mark.parametrize(
    "labels",
    [
        ["2026-W1", "2026-W02", "2026-W9", "2026-W10", "2026-04-01", "2026-04-01T12:00"],
        ["2025-12", "2026-1", "2026-02", "2026-11"],
        ["2026-Q1", "2026-Q4", "2027-q1"],
        [1, "2", 10, "100"],
        ["week 9", "Week 10", "week 11"],
    ],
)
def test_labels_of_batches_have_an_order(labels):
    moments = [moment(instant_of(label)) for label in labels]
    assert moments == sorted(moments)
    assert len(set(moments)) == len(labels)
    assert len({kind for kind, _ in moments}) == 1


@pytest.mark.parametrize("label", ["today", "2026-13", "2026-W60", "2026-Q5", "v1.10", "", 7.5, True, None])
def test_what_has_no_order_is_no_label_of_a_batch(label):
    with pytest.raises(InvalidParameter) as caught:
        instant_of(label)
    assert caught.value.parameter == "when"
