"""What a panel is worth: families of labelers whose correlations are known, counted on gold and from votes alone."""

import json

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.labelers.panels import ErrorMoments, size_sums

FAMILIES = ((0, 1, 2), (3, 4, 5))
NAMES = list("abcdef")


def draw(rng, n_items=600, families=FAMILIES, correlation=0.5, error=0.2, missing=0.0):
    """Truth and votes; errors of a family correlate so much, and all others not at all."""
    truth = rng.integers(2, size=n_items)
    wrong = rng.random((n_items, 6)) < error
    for family in families:
        together = rng.random(n_items) < error
        for t in family:
            copies = rng.random(n_items) < np.sqrt(correlation)
            wrong[copies, t] = together[copies]
    votes = np.where(wrong, 1 - truth[:, None], truth[:, None]).astype(np.int32)
    votes[rng.random(votes.shape) < missing] = -1
    return truth, votes


def labels_of(votes, truth=None, n_gold=None):
    labels = tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1], labelers=NAMES)
    if truth is None:
        return labels
    known = labels.items.tolist()[:n_gold]
    return labels.with_gold(dict(zip(known, truth[known].tolist(), strict=True)), drawn="random")


@pytest.fixture(scope="module")
def counted():
    truth, votes = draw(np.random.default_rng(6))
    return tu.labelers.panel(labels_of(votes, truth, 400))


@pytest.fixture(scope="module")
def from_votes():
    return tu.labelers.panel(labels_of(draw(np.random.default_rng(6))[1]))


class TestCounted:
    def test_two_families_of_three_are_worth_three(self, counted):
        low, high = counted.effective.interval(0.95)
        assert low < 3 < high
        assert counted.effective.mean == pytest.approx(3, rel=0.15)
        assert "400 checked items" in counted.basis
        assert not counted.warnings

    def test_correlations_are_those_of_errors(self, counted):
        for pair in counted.correlations:
            within = any({NAMES.index(name) for name in pair} <= set(family) for family in FAMILIES)
            assert counted.correlations[pair].mean == pytest.approx(0.5 * within, abs=0.15)
        assert counted.correlations["b", "a"].mean == counted.correlations["a", "b"].mean
        assert len(counted.correlations) == 15
        assert counted.correlations.to_frame()["items"].tolist() == [400] * 15

    def test_the_tree_finds_the_families(self, counted):
        assert counted.tree.groups() == [("a", "b", "c"), ("d", "e", "f")]
        assert counted.tree.joins.shape == (5, 4)
        assert counted.nearest("a")[0] in ("b", "c")

    def test_as_data(self, counted):
        told = json.loads(json.dumps(counted.to_dict()))
        assert told["effective"]["mean"] == counted.effective.mean
        assert len(told["correlations"]) == 15
        assert told["labelers"][1]["without"]["width"] == counted.without["b"].width(100)
        assert counted.to_frame()["labeler"].tolist() == NAMES
        assert str(counted.sentence) in repr(counted)

    def test_pictures(self, counted):
        pytest.importorskip("matplotlib")
        assert counted.tree.plot().get_xlabel()


def test_no_copy_of_a_labeler_is_worth_anything():
    truth, votes = draw(np.random.default_rng(1), families=())
    votes[:, 1] = votes[:, 0]
    panel = tu.labelers.panel(labels_of(votes, truth))
    assert panel.correlations["a", "b"].mean > 0.95
    assert panel.effective.mean == pytest.approx(36 / 8, rel=0.1)
    assert panel.without["b"].effective.mean == pytest.approx(5, rel=0.1)
    assert panel.without["b"].width(100) == pytest.approx(panel.width(100), rel=0.02)


class TestFromVotes:
    def test_two_families_of_three_are_worth_three(self, from_votes, counted):
        low, high = from_votes.effective.interval(0.95)
        assert low < 3 < high
        assert from_votes.effective.mean == pytest.approx(3, rel=0.15)
        assert from_votes.effective.std > counted.effective.std
        assert from_votes.tree.groups() == [("a", "b", "c"), ("d", "e", "f")]
        assert from_votes.warnings
        truth, votes = draw(np.random.default_rng(6))
        without_gold = tu.labelers.panel(labels_of(votes, truth, 400), truth="votes")
        assert "not counted" in from_votes.basis
        assert "not counted" in without_gold.basis


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_intervals_hold_as_often_as_they_say(missing):
    # Of 200 sets an interval 20% too narrow holds in 88%; three standard errors below 95% are 90.4%.
    rng, held, held_without = np.random.default_rng(3), 0, 0
    for _ in range(200):
        truth, votes = draw(rng, n_items=150, missing=missing)
        moments = ErrorMoments.of(votes, truth, 2)
        whole, without, _ = size_sums(moments, np.array([1, 2, 0, 4, 5, 3]))
        low, high = whole.effective().interval(0.95)
        held += low <= 3 <= high
        low, high = without[0].effective().interval(0.95)
        held_without += low <= 25 / 9 <= high
    assert 181 <= held <= 199
    assert 181 <= held_without <= 199


def test_sums_are_those_of_the_definition():
    truth, votes = draw(np.random.default_rng(4), n_items=80, missing=0.3)
    moments = ErrorMoments.of(votes, truth, 2)
    errors = np.where(votes >= 0, votes != truth[:, None], np.nan).astype(float)
    for y in range(2):
        errors[truth == y] -= np.nanmean(errors[truth == y], axis=0)
    both = ~np.isnan(errors[:, 0] * errors[:, 1])
    assert moments.covariance[0, 1] == pytest.approx(np.mean((errors[:, 0] * errors[:, 1])[both]))
    expected = moments.covariance[0, 1] / np.sqrt(np.mean(errors[both, 0] ** 2) * np.mean(errors[both, 1] ** 2))
    assert moments.correlation[0, 1] == pytest.approx(expected)
    whole = size_sums(moments, np.zeros(6, dtype=int))[0]
    assert whole.total == pytest.approx(moments.covariance.sum())
    # What items add to a sum is its derivative by their weights: it sums to nothing.
    assert whole.of_total.sum() == pytest.approx(0, abs=1e-12)


class TestHardPairs:
    def test_pairs_that_share_little_are_uncorrelated_in_the_effective_number_too(self):
        rng = np.random.default_rng(0)
        truth, votes = draw(rng, n_items=200, families=())
        votes[:6, :2] = 1 - truth[:6, None]  # always wrong together, on the few items that both have
        votes[6:100, 0] = votes[100:, 1] = -1
        moments = ErrorMoments.of(votes, truth, 2)
        assert moments.n_shared[0, 1] == 6
        assert moments.covariance[0, 1] == moments.correlation[0, 1] == 0
        whole, without, _ = size_sums(moments, np.array([1, 0, 3, 2, 5, 4]))
        for sums in (whole, *without):
            assert sums.of_total.sum() == pytest.approx(0, abs=1e-12)

    @pytest.mark.parametrize("n_apart", [0, 1])
    def test_errors_that_exclude_each_other(self, n_apart):
        truth = draw(np.random.default_rng(0), n_items=200)[0]
        wrong = np.arange(200) % 2
        other = 1 - wrong
        other[:n_apart] = wrong[:n_apart]
        votes = np.stack([truth ^ wrong, truth ^ other], axis=1).astype(np.int32)
        labels = tu.Labels.from_matrix(votes).with_gold(dict(enumerate(truth.tolist())), drawn="random")
        effective = tu.labelers.panel(labels).effective
        assert effective.mean == pytest.approx(2)
        assert effective.interval(0.95)[0] > 1.9


class TestWhatWasChecked:
    def test_drawn_items_alone_count_and_chosen_ones_with_a_note(self):
        truth, votes = draw(np.random.default_rng(6))
        drawn = labels_of(votes, truth, 300)
        both = tu.labelers.panel(drawn.with_gold({k: 1 - int(truth[k]) for k in range(300, 600)}))
        assert both.effective.mean == tu.labelers.panel(drawn).effective.mean
        assert not both.warnings
        chosen = tu.labelers.panel(labels_of(votes).with_gold(dict(enumerate(truth[:300].tolist()))))
        assert any("chosen" in note for note in chosen.warnings)
        assert "300 checked items" in both.basis
        assert "300 checked items" in chosen.basis

    def test_an_item_counts_by_the_inverse_of_its_chance(self):
        truth, votes = draw(np.random.default_rng(2), n_items=90, missing=0.3)
        twice = np.arange(90) % 2 + 1
        weighted = ErrorMoments.of(votes, truth, 2, twice.astype(float))
        repeated = ErrorMoments.of(np.repeat(votes, twice, axis=0), np.repeat(truth, twice), 2)
        assert weighted.covariance == pytest.approx(repeated.covariance)
        assert weighted.correlation == pytest.approx(repeated.correlation)
        whole = size_sums(weighted, np.zeros(6, dtype=int))[0]
        assert whole.of_total.sum() == pytest.approx(0, abs=1e-12)
        truth, votes = draw(np.random.default_rng(2), n_items=90)
        chances = {k: (0.9 if k % 2 else 0.3) for k in range(90)}
        labels = labels_of(votes).with_gold(dict(enumerate(truth.tolist())), drawn=chances)
        thrice = np.where(np.arange(90) % 2, 1, 3)
        expected = ErrorMoments.of(np.repeat(votes, thrice, axis=0), np.repeat(truth, thrice), 2).correlation
        assert tu.labelers.panel(labels).correlations.matrix == pytest.approx(expected)


class TestWrong:
    @pytest.mark.parametrize("votes", [[[0], [1]], [[0, -1], [-1, 1]]], ids=["one labeler", "nothing shared"])
    def test_labels(self, votes):
        with pytest.raises(InvalidLabels):
            tu.labelers.panel(tu.Labels.from_matrix(votes, missing=-1))

    @pytest.mark.parametrize(("parameter", "value"), [("truth", "gold"), ("of", 7), ("truth", "x")])
    def test_parameters(self, parameter, value):
        with pytest.raises(InvalidParameter) as raised:
            tu.labelers.panel(labels_of(draw(np.random.default_rng(0), n_items=40)[1]), **{parameter: value})
        assert raised.value.parameter == parameter

    @pytest.mark.parametrize("what", [("a", "z"), ("a", "a"), 0, ("a",), "ab"])
    def test_unknown_labelers(self, counted, what):
        with pytest.raises(InvalidParameter):
            counted.correlations[what]
