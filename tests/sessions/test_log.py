"""The log of a session: what each event does, JSON in and out, and logs that are refused."""

import json

import numpy as np
import pytest

import trueup as tu
from trueup.active import Event
from trueup.exceptions import InvalidParameter
from trueup.sessions.log import Names, events_from_json, events_to_json, session_from_json, session_to_json
from trueup.sessions.progress import fold
from trueup.sessions.session import draw_in_turn

NAMES = Names(["a", "b", "c"], ["no", "yes"])


def test_each_event_does_its_part():
    log = [
        Event("ask", "b", propensity=0.5),
        Event("ask", "a"),
        Event("tell", "b", "yes", "ann", 0.5),
        Event("pass", "a", who="ann"),
        Event("tell", "c", "no"),
        Event("correct", "b", "no", "bob", 0.5),
    ]
    state = fold(log, NAMES)
    assert state.truth.tolist() == [-1, 0, 0]
    assert state.waiting.tolist() == [False, False, False]
    assert state.cannot_tell.tolist() == [True, False, False]
    assert state.draw.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(state.propensity, [np.nan, 0.5, np.nan])
    assert state.n_tells == 2


def test_json_gives_the_same_events():
    log = [Event("ask", ("x", 1), propensity=1 / 3), Event("tell", ("x", 1), np.int64(2), "ann", 1 / 3)]
    back = events_from_json(json.dumps(events_to_json(log)))
    assert back == log
    settings, options, events = session_from_json(session_to_json({"level": 0.9}, {"floor": np.float64(0.1)}, log))
    assert (settings, options, events) == ({"level": 0.9}, {"floor": 0.1}, log)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Event("tell", "z", "no"), "names item 'z'"),
        (Event("tell", ["a"], "no"), "names item"),
        (Event("tell", "a", "maybe"), "names class 'maybe'"),
        (Event("tell", "a"), "names class None"),
        (Event("guess", "a", "no"), "got Event"),
        ({"kind": "tell"}, "must hold events"),
        (Event("ask", "a", propensity=0.0), "the propensity of item 'a'"),
        (Event("ask", "a", propensity=1.5), "the propensity of item 'a'"),
        (Event("ask", "a", propensity=float("nan")), "the propensity of item 'a'"),
    ],
    ids=["item", "unhashable", "class", "no-class", "kind", "record", "zero", "above-one", "nan"],
)
def test_bad_events_are_refused(event, words):
    with pytest.raises(InvalidParameter, match=words):
        fold([event], NAMES)


@pytest.mark.parametrize(
    "text",
    ["{", "3", "[]", '{"log": []}', '{"format": 9, "settings": {}, "options": {}, "log": []}'],
    ids=["broken", "number", "list", "no-settings", "format"],
)
def test_what_is_no_session_is_refused(text):
    with pytest.raises(InvalidParameter):
        session_from_json(text)


@pytest.mark.parametrize(
    "records",
    ["{}", [3], [{"kind": "tell"}], [{"kind": "x", "item": 1}], [{"kind": "ask", "item": 1, "more": 2}]],
    ids=["dict", "number", "no-item", "kind", "field"],
)
def test_what_is_no_log_is_refused(records):
    with pytest.raises(InvalidParameter):
        events_from_json(records)


def test_draws_in_turn_follow_the_chances():
    """Pairs drawn without replacement: the frequency of each is the product of the chances that were written down."""
    chances = np.array([0.0, 0.5, 0.3, 0.2])
    rng = np.random.default_rng(0)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(4000):
        chosen, given = draw_in_turn(chances, 2, rng)
        first, second = chosen
        assert given == pytest.approx([chances[first], chances[second] / (1 - chances[first])])
        seen[first, second] = seen.get((first, second), 0) + 1
    assert len(seen) == 6
    for (first, second), count in seen.items():
        p = chances[first] * chances[second] / (1 - chances[first])
        assert abs(count - 4000 * p) < 4 * np.sqrt(4000 * p * (1 - p))


class SharedLog:
    """A log that others write to, too."""

    def __init__(self):
        self.events = []

    def read(self, since):
        return self.events[since:]

    def append(self, events, after):
        if len(self.events) != after:
            return None
        self.events += events
        return list(events)


def test_sessions_that_follow_one_log_stand_where_it_leads():
    sim = tu.simulate.baseline(n_items=50, random_state=0)
    first = tu.ActiveTest(sim.predictions, sim.labels, noise="dawid-skene", random_state=0)
    second = first.restart(random_state=0)
    first.ask(3)  # in memory, and left behind
    log = SharedLog()
    first.follow(log)
    second.follow(log)
    assert first.log == ()
    asked = first.ask(2)
    second.tell({asked[0]: int(sim.truth[asked[0]])})
    assert first.n_vetted == 0, "nothing moves until it is read"
    first.refresh()
    assert (first.n_vetted, first.log) == (1, second.log)
    assert first.labels is sim.labels
