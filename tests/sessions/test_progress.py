"""What the log comes to: which class stands, who differs, what was put off, and which answers count."""

import json

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidParameter
from trueup.sessions.log import NONE_OF_THESE, Event, Names, events_from_json, events_to_json
from trueup.sessions.progress import count_answers, fold

NAMES = Names(list("abcdef"), ["no", "yes"])
DRAWS = [Event("ask", item, propensity=0.2) for item in "abcd"]


def state(*events):
    return fold([*DRAWS, *events], NAMES)


def told(item, truth, who, **more):
    return Event("tell", item, truth, who, 0.2, **more)


def test_the_first_answer_stands_until_a_third_settles_it():
    first, second = told("a", "no", "ann"), told("a", "yes", "bob", purpose="overlap")
    assert state(first).truth[0] == 0
    both = state(first, second)
    assert both.truth[0] == 0
    assert both.disputed[0]
    settled = state(first, second, told("a", "yes", "eve", purpose="settle"))
    assert settled.truth[0] == 1
    assert not settled.disputed[0]
    assert settled.n_tells == 1
    assert settled.experts == ("ann", "bob", "eve")


def test_later_keeps_the_draw_and_cannot_tell_ends_it():
    later = state(Event("later", "b", who="ann"))
    assert later.waiting[1]
    assert later.put_off[1]
    assert later.draw[1] == 2
    handed_out_again = state(Event("later", "b", who="ann"), Event("ask", "b"))
    assert handed_out_again.draw.tolist() == [1, 2, 3, 4, 0, 0]
    assert handed_out_again.propensity[1] == 0.2
    assert not handed_out_again.put_off[1]
    doubted = state(Event("cannot tell", "b", who="ann"))
    assert doubted.cannot_tell[1]
    assert not doubted.waiting[1]
    assert not state(Event("cannot tell", "b", who="ann"), told("b", "no", "bob")).cannot_tell[1]


def test_logs_of_before_call_it_a_pass():
    old = events_from_json(json.dumps([{"kind": "ask", "item": "a"}, {"kind": "pass", "item": "a"}]))
    assert fold(old, NAMES).cannot_tell[0]


def test_none_of_these_is_one_more_class_and_can_be_corrected_to():
    assert state(Event("none of these", "a", who="ann")).truth[0] == 2
    assert state(told("a", "no", "ann"), Event("correct", "a", who="ann")).truth[0] == 2
    assert events_from_json(events_to_json([Event("none of these", "a")])) == [Event("none of these", "a")]


def test_answers_in_sight_of_a_prediction_and_corrections_in_sight_of_the_estimate_are_apart():
    sighted = state(told("a", "no", "ann", blind=False))
    assert (sighted.truth[0], sighted.unswayed[0]) == (0, -1)
    assert state(told("a", "no", "ann", saw_estimate=True)).unswayed[0] == 0
    marked = state(told("a", "no", "ann"), Event("correct", "a", "yes", "owner", 0.2, saw_estimate=True))
    assert (marked.truth[0], marked.unswayed[0]) == (1, 0)


def test_answers_count_in_the_order_of_the_draws():
    assert count_answers(state(told("c", "no", "ann"))).n_draws == 0
    answers = [told("a", "no", "ann"), Event("cannot tell", "b", who="bob"), told("d", "yes", "ann")]
    counted = count_answers(state(*answers))
    assert counted.n_draws == 2
    assert counted.progress.truth.tolist() == [0, -1, -1, -1, -1, -1]
    assert counted.undecided.tolist() == [False, True, False, False, False, False]
    assert counted.ahead.tolist() == [False, False, False, True, False, False]
    assert count_answers(state(*answers, told("c", "no", "bob"))).n_draws == 4
    # An item told without a draw holds nothing up and counts for itself.
    assert count_answers(state(Event("tell", "f", "yes", "ann"))).progress.truth[5] == 1


def test_a_log_of_answers_alone_shows_its_gaps():
    log = [Event("tell", "a", "no", propensity=0.2, draw=1), Event("tell", "c", "no", propensity=0.2, draw=3)]
    assert count_answers(fold(log, NAMES)).n_draws == 1


def test_disputed_and_sighted_draws_are_undecided():
    disputed = [told("a", "no", "ann"), told("a", "yes", "bob", purpose="overlap")]
    progress = state(*disputed, told("b", "no", "ann", blind=False))
    assert count_answers(progress).undecided[:2].tolist() == [True, True]
    everything = count_answers(progress, "all")
    assert everything.undecided[:2].tolist() == [True, False]
    assert everything.progress.truth[1] == 0


def test_folding_in_parts_is_folding_at_once():
    log = [
        *DRAWS,
        told("b", "no", "ann"),
        Event("ask", "b", purpose="overlap"),
        Event("later", "a", who="ann"),
        told("b", "yes", "bob", purpose="overlap"),
        Event("none of these", "a", who="bob"),
    ]
    whole = fold(log, NAMES)
    for cut in range(len(log)):
        parts = fold(log[cut:], NAMES, since=fold(log[:cut], NAMES))
        for name, value in vars(whole).items():
            np.testing.assert_array_equal(getattr(parts, name), value)


@pytest.fixture(scope="module")
def session():
    votes = {"item": NAMES.items * 2, "labeler": ["x"] * 6 + ["y"] * 6, "label": ["no", "yes"] * 6}
    labels = tu.Labels.from_frame(votes, classes=NAMES.classes)
    return tu.ActiveTest(dict.fromkeys(NAMES.items, "no"), labels, noise="majority")


def test_an_answer_belongs_to_the_card_that_its_expert_holds(session):
    asked = [*DRAWS, told("a", "no", "ann"), Event("ask", "a", purpose="overlap")]
    test = session.replay(asked)
    with pytest.raises(InvalidParameter, match="correct=True"):
        test.tell({"a": "yes"}, who="ann")
    test.tell({"a": "yes"}, who="bob")
    assert (test.log[-1].kind, test.log[-1].purpose, test.log[-1].draw) == ("tell", "overlap", 1)
    late = session.replay(asked[:-1])
    late.tell({"a": "yes"}, who="bob", second=True)
    assert late.log[-1].purpose == "overlap"
    corrected = session.replay(asked)
    corrected.tell({"a": NONE_OF_THESE}, who="ann", correct=True)
    assert (corrected.log[-1].kind, corrected.log[-1].truth) == ("correct", None)


def test_all_answers_are_checked_before_any_counts(session):
    test = session.replay([])
    with pytest.raises(InvalidParameter, match="must be one of the classes"):
        test.tell({"a": "yes", "b": "maybe"})
    with pytest.raises(InvalidParameter, match="an item that waits"):
        test.skip(["a"], later=True)
    with pytest.raises(InvalidParameter, match="seconds"):
        test.skip(["a"], seconds=-1.0)
    assert test.log == ()
    test.tell({"a": "yes"}, who="ann")
    assert test.log == (Event("tell", "a", "yes", "ann", blind=True),)
