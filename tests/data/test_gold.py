"""Gold as designed data: how vetted items were drawn, and what contradicts."""

import numpy as np
import pytest

from trueup import Labels
from trueup.exceptions import InvalidLabels


@pytest.fixture
def labels():
    votes = np.random.default_rng(0).integers(0, 2, size=(10, 3))
    return Labels.from_matrix(votes, items=[f"q{i}" for i in range(10)])


class TestDrawn:
    def test_probabilities_are_kept_for_each(self, labels):
        told = labels.with_gold({"q1": 1, "q2": 0}, drawn={"q2": 1, "q1": np.float32(0.25)})
        assert told.drawn_gold == {"q1": 0.25, "q2": 1.0}

    def test_random_calls_make_one_sample_however_they_are_split(self, labels):
        truths = {"q1": 1, "q2": 0, "q9": 0}
        at_once = labels.with_gold(truths, drawn="random")
        one_by_one = labels
        for item, name in truths.items():
            one_by_one = one_by_one.with_gold({item: name}, drawn="random")
        overlapping = labels.with_gold({"q1": 1, "q2": 0}, drawn="random").with_gold({"q2": 0, "q9": 0}, drawn="random")
        again = at_once.with_gold(truths, drawn="random")
        for other in (one_by_one, overlapping, again):
            assert other.drawn_gold == at_once.drawn_gold

    def test_what_is_told_later(self, labels):
        told = labels.with_gold({"q1": 1}, drawn="random")
        assert told.with_gold({"q1": 1, "q2": 0}).drawn_gold == {"q1": 0.1}
        assert told.with_gold({"q1": 1}, role="check").gold_chance[1] == 0.1
        assert told.with_gold({"q1": 1}, drawn={"q1": 0.7}).drawn_gold == {"q1": 0.7}
        bare = told.without_gold()
        assert bare.drawn_gold == bare.gold == {}

    def test_equal_probabilities_are_a_simple_sample_that_random_adds_to(self, labels):
        told = labels.with_gold({"q1": 1}, drawn={"q1": 0.1}).with_gold({"q2": 0}, drawn="random")
        assert told.drawn_gold == {"q1": 0.2, "q2": 0.2}

    def test_several_chances_and_a_simple_sample_do_not_add_up(self, labels):
        told = labels.with_gold({"q1": 1, "q2": 0}, drawn={"q1": 0.1, "q2": 0.5})
        with pytest.raises(InvalidLabels):
            told.with_gold({"q3": 0}, drawn="random")
        assert told.with_gold({"q3": 0}, drawn={"q3": 0.2}).drawn_gold == {"q1": 0.1, "q2": 0.5, "q3": 0.2}

    @pytest.mark.parametrize("value", [0, -0.1, 1.5, np.nan, np.inf, None, True, "often"])
    def test_what_is_no_probability_is_named_with_its_item(self, labels, value):
        with pytest.raises(InvalidLabels, match=rf"got {value!r} for item 'q2'"):
            labels.with_gold({"q1": 1, "q2": 0}, drawn={"q1": 0.5, "q2": value})

    def test_a_mapping_names_the_items_of_the_gold(self, labels):
        with pytest.raises(InvalidLabels):
            labels.with_gold({"q1": 1, "q2": 0}, drawn={"q1": 0.5})
        with pytest.raises(InvalidLabels):
            labels.with_gold({"q1": 1}, drawn={"q1": 0.5, "q2": 0.5})


def test_drawn_gold_of_a_selection(labels):
    vetted = labels.with_gold({"q1": 1, "q2": 0}, drawn={"q1": 0.25, "q2": 0.5}).with_gold({"q3": 1})
    some = vetted.select(items=["q2", "q3", "q4"])
    assert some.drawn_gold == {"q2": 0.5}
    assert some.gold_chance.shape == (3,)
    assert vetted.select(labelers=[0]).drawn_gold == vetted.drawn_gold


class TestContradictions:
    @pytest.mark.parametrize("role", ["fit", "check"])
    def test_both_values_are_named(self, labels, role):
        told = labels.with_gold({"q1": 1, "q2": 0})
        with pytest.raises(InvalidLabels):
            told.with_gold({"q1": 0, "q2": 1, "q3": 1}, role=role)

    def test_a_correction_is_said(self, labels):
        told = labels.with_gold({"q1": 1}, drawn="random").with_gold({"q1": 0}, correct=True)
        assert told.gold == {"q1": 0}
        assert told.drawn_gold == {"q1": 0.1}
