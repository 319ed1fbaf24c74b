"""Gold that is said to be drawn at random and does not look so, and gold of which nothing is said."""

import numpy as np
import pytest

import trueup as tu
from trueup.answers.notes import design_doubts, sampling_unknown

FAST = {"noise": "dawid-skene", "n_draws": 50, "n_warmup": 50}


@pytest.fixture(scope="module")
def crowd():
    """400 items, a fifth of them of class 1, five labelers of all qualities."""
    return tu.simulate.dawid_skene(n_items=400, n_labelers=5, prior=[0.8, 0.2], random_state=0)


def with_checks(crowd, items, drawn="random"):
    return crowd.labels.with_gold({int(i): int(crowd.truth[i]) for i in items}, drawn=drawn)


def test_a_random_sample_raises_no_doubt(crowd):
    rng = np.random.default_rng(1)
    assert [design_doubts(with_checks(crowd, rng.choice(400, 60, replace=False))) for _ in range(50)].count([]) >= 49


def test_one_class_where_the_votes_say_otherwise(crowd):
    doubts = design_doubts(with_checks(crowd, np.flatnonzero(crowd.truth == 1)[:40]))
    assert any("most votes are for 1 on " in doubt and 'drawn="chosen"' in doubt for doubt in doubts)


def test_one_class_where_votes_are_poor_and_say_otherwise():
    """Labelers who are right two times in three do not move majorities enough, but 150 votes do."""
    crowd = tu.simulate.dawid_skene(n_items=600, n_labelers=5, accuracy=0.66, prior=[0.45, 0.55], random_state=0)
    doubts = design_doubts(with_checks(crowd, np.flatnonzero(crowd.truth == 1)[:30]))
    assert any("all 30 items have the class 1" in doubt and 'drawn="chosen"' in doubt for doubt in doubts)
    fewer = with_checks(crowd, np.flatnonzero(crowd.truth == 1)[:9])
    assert not any("have the class" in doubt for doubt in design_doubts(fewer))


@pytest.mark.parametrize(("contested", "words"), [(True, "too many contested items"), (False, "agree on")])
def test_contested_and_easy_items(crowd, contested, words):
    counts = crowd.labels.answer_counts
    order = np.argsort(counts.max(axis=1), kind="stable")
    chosen = order[:60] if contested else order[-100:]
    assert any(words in doubt for doubt in design_doubts(with_checks(crowd, chosen)))


def test_several_chances_are_unlike_the_rest_by_design(crowd):
    ones = np.flatnonzero(crowd.truth == 1)[:40]
    chances = {int(i): 0.5 if k % 2 else 0.25 for k, i in enumerate(ones)}
    assert design_doubts(with_checks(crowd, ones, chances)) == []
    assert design_doubts(with_checks(crowd, ones, "chosen")) == []


def test_nothing_to_doubt_without_votes_or_others(crowd):
    assert design_doubts(with_checks(crowd, range(400))) == []
    assert design_doubts(crowd.labels) == []
    unanimous = tu.Labels.from_matrix([[0, 0]] * 50, classes=[0, 1]).with_gold({0: 0, 1: 0}, drawn="random")
    assert design_doubts(unanimous) == []
    single = tu.Labels.from_matrix([[0], [1]] * 30).with_gold({0: 0, 1: 1}, drawn="random")
    assert design_doubts(single) == []


def test_much_chosen_gold_asks_how_it_was_drawn(crowd):
    assert len(sampling_unknown(with_checks(crowd, [0], "chosen"))) == 1
    (sentence,) = sampling_unknown(with_checks(crowd, range(20), "chosen"))
    assert sentence.startswith("20 of 20 ")
    assert 'drawn="random"' in sentence
    assert sampling_unknown(with_checks(crowd, range(20))) == []
    assert sampling_unknown(with_checks(crowd, range(400), "chosen")) == []


def test_an_answer_says_so(crowd):
    ones = np.flatnonzero(crowd.truth == 1)[:40]
    doubtful = tu.evaluate(crowd.truth, with_checks(crowd, ones), check_dependence=False, **FAST)
    assert any("declared as drawn at random" in sentence for sentence in doubtful.warnings)
    silent = tu.evaluate(crowd.truth, with_checks(crowd, ones, "chosen"), check_dependence=False, **FAST)
    assert any("if they were drawn at random" in sentence for sentence in silent.warnings)
