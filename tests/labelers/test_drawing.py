"""Samples of items for an expert: their chances are what they say, and every item can be drawn."""

from collections import Counter

import numpy as np
import pytest
import scipy

import trueup as tu
from trueup.exceptions import InvalidParameter
from trueup.labelers import draw_sample


@pytest.fixture(scope="module")
def labels():
    """100 items, the last ten of which most votes call 1; three topics of 5, 15 and 80 items."""
    votes = np.zeros((100, 3), dtype=int)
    votes[90:] = 1
    topics = ["law"] * 5 + ["sport"] * 15 + ["news"] * 80
    return tu.Labels.from_matrix(votes).with_items({"item": range(100), "topic": topics})


def test_a_simple_sample(labels):
    sample = draw_sample(labels, 20, random_state=1)
    assert len(sample) == len(set(sample.items.tolist())) == 20
    assert sample.drawn == dict.fromkeys(sample.items.tolist(), 0.2)
    assert sample.strata is None
    assert list(sample.columns()) == ["item", "label", "chance"]
    again = draw_sample(labels, 20, random_state=1)
    assert again.items.tolist() == sample.items.tolist()
    assert draw_sample(labels, 20, random_state=2).items.tolist() != sample.items.tolist()


@pytest.mark.parametrize(
    ("by", "allocation", "n", "counts"),
    [
        ("topic", "equal", 12, {"law": 4, "sport": 4, "news": 4}),
        ("topic", "equal", 30, {"law": 5, "sport": 13, "news": 12}),
        ("topic", "proportional", 20, {"law": 1, "sport": 3, "news": 16}),
        ("topic", "proportional", 3, {"law": 1, "sport": 1, "news": 1}),
        ("topic", "equal", 100, {"law": 5, "sport": 15, "news": 80}),
        ("votes", "equal", 20, {0: 10, 1: 10}),
    ],
)
def test_strata_get_their_numbers_and_chances(labels, by, allocation, n, counts):
    sample = draw_sample(labels, n, by=by, allocation=allocation, random_state=0)
    drawn = {name: sample.strata.count(name) for name in counts}
    assert sorted(drawn.values()) == sorted(counts.values())
    assert drawn["law" if by == "topic" else 0] == counts["law" if by == "topic" else 0]
    sizes = {"law": 5, "sport": 15, "news": 80, 0: 90, 1: 10}
    for name, chance in zip(sample.strata, sample.chances, strict=True):
        assert chance == drawn[name] / sizes[name]
    assert sum(1 / sample.chances) == pytest.approx(100)


def test_chances_are_how_often_items_are_drawn(labels):
    rng = np.random.default_rng(0)
    times = np.zeros(100)
    for _ in range(2000):
        sample = draw_sample(labels, 12, by="topic", random_state=rng)
        times[sample.items] += 1
    expected = np.repeat([4 / 5, 4 / 15, 4 / 80], [5, 15, 80])
    error = np.sqrt(expected * (1 - expected) / 2000)
    assert (np.abs(times / 2000 - expected) < 4 * error).all()


def test_known_items_are_drawn_and_told(labels):
    gold = labels.with_gold({0: 0, 1: 1}).with_gold({2: 1}, role="check")
    sample = draw_sample(gold, 100, random_state=0)
    assert sample.known == {0: 0, 1: 1, 2: 1}
    filled = dict(zip(sample.columns()["item"], sample.columns()["label"], strict=True))
    assert (filled[0], filled[2], filled[3]) == (0, 1, None)
    assert repr(sample) == "Sample(100 items, 3 of them known)"


def test_a_sample_is_gold_with_its_chances(labels, tmp_path):
    sample = draw_sample(labels, 20, by="votes", random_state=0)
    frame = sample.to_frame(backend="pandas")
    frame["label"] = 1
    frame.to_csv(tmp_path / "gold.csv", index=False)
    told = labels.with_gold(tu.read_gold(tmp_path / "gold.csv", labels=labels))
    assert told.drawn_gold == pytest.approx(sample.drawn)


@pytest.mark.parametrize(
    "options",
    [
        {"n": 0},
        {"n": 101},
        {"n": 2, "by": "topic"},
        {"n": 5, "by": [1, 2]},
        {"n": 5, "by": [[1]] * 100},
        {"n": 5, "by": "topic", "allocation": "optimal"},
    ],
)
def test_bad_input(labels, options):
    with pytest.raises(InvalidParameter):
        draw_sample(labels, **options)


def test_contests_are_drawn_alike_and_shown_in_either_order():
    pairs = tu.simulate.pairs(n_contests=40, n_systems=3, n_judges=2, random_state=0).pairs
    times, turned = Counter(), 0
    for seed in range(400):
        drawn = tu.labelers.draw_contests(pairs, 10, random_state=seed)
        canonical = [(item, *sorted(two)) for item, *two in drawn]
        assert len(set(canonical)) == 10
        times.update(canonical)
        turned += sum(contest not in pairs.contests for contest in drawn)
    assert set(times) == set(pairs.contests)
    counts = np.array(list(times.values()))
    assert ((counts - 100) ** 2 / 75).sum() < scipy.stats.chi2.ppf(0.9999, 39)  # each is one of four draws
    assert turned == pytest.approx(2000, abs=4 * np.sqrt(1000))
    assert drawn == tu.labelers.draw_contests(pairs, 10, random_state=399)
