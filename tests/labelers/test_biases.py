"""Whether judges favour long answers, the first one, or their own family: effects that simulations know."""

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter

SKILL = np.array([0.7, 0.6, 0.5, 0.6, 0.5, 0.4])  # by how much the truth moves a verdict
LENGTH = 0.15
FAMILIES = ["red", "red", "blue", "blue", "green", "green"]


def judged(seed, n_items=200, effects=(LENGTH, 0, 0, 0, 0, 0), gold=False, own=0.0, missing=0.0):
    """Votes with an item column that is 1 more often for good items, and one of six families."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_items)
    length = (rng.random(n_items) < np.where(truth, 0.65, 0.35)).astype(float)
    family = rng.choice(["red", "blue", "green"], n_items)
    is_own = family[:, None] == np.array(FAMILIES)
    chance = 0.5 + SKILL * (truth[:, None] - 0.5) + np.array(effects) * (length[:, None] - 0.5) + own * (is_own - 1 / 3)
    votes = (rng.random((n_items, 6)) < chance).astype(int)
    votes[rng.random(votes.shape) < missing] = -1
    labels = tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1])
    labels = labels.with_items({"item": np.arange(n_items), "length": length, "family": family})
    labels = labels.with_labelers({"labeler": np.arange(6), "family": FAMILIES})
    return labels.with_gold(dict(enumerate(truth.tolist())), drawn="random") if gold else labels


@pytest.mark.parametrize("gold", [True, False])
def test_intervals_hold_as_often_as_they_say(gold):
    # 480 intervals: were they 20% too narrow, 88% would hold; three standard errors below 95% are 92%.
    held = 0
    for seed in range(80):
        found = tu.labelers.bias(judged(seed, n_items=120, gold=gold), on="length")
        for t in range(6):
            low, high = found[t]["length"].interval(0.95)
            held += low <= (LENGTH if t == 0 else 0.0) <= high
    assert 0.92 * 480 <= held <= 0.98 * 480


@pytest.mark.parametrize("gold", [True, False])
def test_an_effect_is_found_given_the_truth(gold):
    found = tu.labelers.bias(judged(1, 5000, gold=gold), on=["length"])
    assert found[0]["length"].mean == pytest.approx(LENGTH, abs=0.05)
    for t in range(1, 6):  # good items are long, and judges are right of them: that is no bias
        assert found[t]["length"].mean == pytest.approx(0.0, abs=0.05)
    assert found[0].n_items == 5000
    assert ("checked" in found.basis) == gold


def test_what_all_favour_shows_on_gold_alone():
    effects = (0.15,) * 6
    counted = tu.labelers.bias(judged(2, 5000, effects, gold=True), on="length")
    beside = tu.labelers.bias(judged(2, 5000, effects), on="length")
    assert np.mean([counted[t]["length"].mean for t in range(6)]) == pytest.approx(0.15, abs=0.02)
    assert np.mean([beside[t]["length"].mean for t in range(6)]) == pytest.approx(0.0, abs=0.03)
    assert beside.warnings
    assert not counted.warnings


def contests(seed, n=400, shift=0.2, judges=("gpt", "ann", "bob"), gold=False):
    rng = np.random.default_rng(seed)
    better = rng.random(n) < 0.5
    rows = []
    for judge in judges:
        first_shown = rng.random(n) < 0.5
        effect = shift * (first_shown - 0.5) if judge == "gpt" else 0.0
        wins = rng.random(n) < 0.5 + 0.5 * (better - 0.5) + effect
        for k in range(n):
            rows.append((k, judge, *(("a", "b") if first_shown[k] else ("b", "a")), "a" if wins[k] else "b"))
    frame = dict(zip(("item", "judge", "first", "second", "winner"), zip(*rows, strict=True), strict=True))
    pairs = tu.read_pairs({name: list(values) for name, values in frame.items()})
    truths = {(k, "a", "b"): "a" if better[k] else "b" for k in range(n)}
    return pairs.with_gold(truths, drawn="random") if gold else pairs


@pytest.mark.parametrize("gold", [True, False])
def test_a_judge_favours_what_is_shown_first(gold):
    found = tu.labelers.bias(contests(0, 2000, gold=gold), on=["position"])
    assert found["gpt"]["position"].mean == pytest.approx(0.2, abs=0.05)
    assert found["ann"]["position"].mean == pytest.approx(0.0, abs=0.06)
    alone = tu.labelers.bias(contests(1, 600, judges=("gpt",), gold=gold), on="position")
    low, high = alone["gpt"]["position"].interval(0.95)
    assert 0 < low < 0.2 < high


class TestWhatWasChecked:
    def test_drawn_items_alone_count(self):
        labels = judged(1, 400, gold=True)
        truth = dict(enumerate(labels.gold_codes.tolist()))
        bare = judged(1, 400)
        drawn = bare.with_gold({k: y for k, y in truth.items() if k < 200}, drawn="random")
        both = tu.labelers.bias(drawn.with_gold({k: 1 - y for k, y in truth.items() if k >= 200}), on="length")
        assert both[0]["length"].mean == tu.labelers.bias(drawn, on="length")[0]["length"].mean
        assert not both.warnings
        chosen = tu.labelers.bias(bare.with_gold(truth), on="length")
        assert any("chosen" in note for note in chosen.warnings)

    def test_an_item_counts_by_the_inverse_of_its_chance(self):
        labels, bare = judged(2, 2000, gold=True), judged(2, 2000)
        rng, is_long = np.random.default_rng(0), bare.item_column("length") == 1
        agrees = bare.votes.toarray().reshape(2000, 6, 2).argmax(axis=2)[:, 0] == labels.gold_codes
        chance = np.where(agrees & is_long, 0.2, 0.8)  # items where labeler 0 is right are drawn less often
        drawn = np.flatnonzero(rng.random(2000) < chance).tolist()
        some = bare.with_gold({k: int(labels.gold_codes[k]) for k in drawn}, drawn={k: float(chance[k]) for k in drawn})
        assert tu.labelers.bias(some, on="length")[0]["length"].mean == pytest.approx(
            tu.labelers.bias(labels, on="length")[0]["length"].mean, abs=0.05
        )


def test_an_effect_of_two_values_is_a_difference_of_rates():
    found = tu.labelers.bias(judged(0, 24, gold=True), on="length", truth="gold")
    for one in found.values():
        low, high = one["length"].interval(0.999)
        assert -1 <= low < high <= 1


def with_column(values):
    return judged(0).with_items({"item": np.arange(200), "x": values})


@pytest.mark.parametrize(
    ("call", "error", "parameter"),
    [
        *((lambda on=on: tu.labelers.bias(judged(0), on=on), InvalidParameter, "on") for on in ([], 3, None, [3])),
        (lambda: tu.labelers.bias(judged(0), on=["length", "length"]), InvalidParameter, "on"),
        (lambda: tu.labelers.bias(judged(0), on=["length", None]), InvalidParameter, "on"),
        (lambda: tu.labelers.bias(judged(0), on="lenght"), InvalidLabels, None),
        (lambda: tu.labelers.bias(judged(0), on=["length", "own"]), InvalidLabels, None),
        (
            lambda: tu.labelers.bias(judged(0).with_labelers({"labeler": range(6)}), on="own_family"),
            InvalidLabels,
            None,
        ),
        (lambda: tu.labelers.bias(with_column(np.r_[np.inf, 1:200]), on="x"), InvalidLabels, "on"),
        (lambda: tu.labelers.bias(with_column(np.resize(["law", "sports", "chat"], 200)), on="x"), InvalidLabels, "on"),
        (lambda: tu.labelers.bias(with_column(["site"] * 200), on="x"), InvalidLabels, "on"),
        (lambda: tu.labelers.bias(judged(0).select(labelers=[0, 1]), on="length"), InvalidLabels, None),
        (lambda: tu.labelers.bias(judged(0), on="length", truth="gold"), InvalidParameter, "truth"),
        (lambda: tu.labelers.bias(judged(0), on="length", of="pass"), InvalidParameter, None),
        (lambda: tu.labelers.bias(judged(0, 12), on="length"), InvalidLabels, None),
        (lambda: tu.labelers.bias(contests(0, 30), on="length"), InvalidParameter, "on"),
        (lambda: tu.labelers.bias(judged(0), on="length")["gpt"], InvalidParameter, None),
        (lambda: tu.labelers.bias(judged(0), on="length")[0]["width"], InvalidParameter, None),
    ],
)
def test_what_cannot_be_answered(call, error, parameter):
    with pytest.raises(error) as raised:
        call()
    assert parameter is None or raised.value.parameter == parameter


def test_texts_count_by_their_length_and_are_no_categories():
    essays = [f"{'so ' * (k % 7)}{k}." for k in range(200)]  # most differ, so these are texts
    assert tu.labelers.bias(with_column(essays), on="x")[0]
