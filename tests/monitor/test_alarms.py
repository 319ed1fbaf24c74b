"""Alarms: within the part of their stream, in the order in which they tell most."""

import numpy as np
import pytest

from trueup.monitor.batch import History, Stream
from trueup.monitor.change import find_alarms, find_change

N = 14
TIMES = [f"2026-01-{k + 1:02}" for k in range(N)]
SIZES = np.full(N, 200)
HITS = np.array([*np.tile([165, 167, 166, 166], 3), 166, 138])


def alarms_of(streams, part, false_alarms, strata=None):
    watched = {stream: History(np.arange(N), HITS, SIZES, part) for stream in streams}
    return find_alarms(watched, strata or [{}] * N, TIMES, false_alarms=false_alarms, baseline=10)


@pytest.mark.parametrize("part", [1.0, 0.6, 0.01])
def test_a_stream_may_use_its_part_and_no_more(part):
    chance = find_change(HITS, SIZES, false_alarms=0.99, baseline=10).chance
    enough = 1.001 * chance / part
    (alarm,) = alarms_of([Stream("agreement")], part, enough)
    assert alarm.chance == pytest.approx(chance / part)
    assert (alarm.when, alarm.since) == ("2026-01-14", "2026-01-14")
    assert alarms_of([Stream("agreement")], part, 0.8 * enough) == []


def test_the_most_telling_comes_first_and_every_stream_has_its_words():
    streams = {
        Stream("agreement"): "the system agreed with most judges on",
        Stream("agreement", named="pass"): "most judges said 'pass' for",
        Stream("system says", named="pass"): "the system said 'pass' for",
        Stream("judge says", ("ann",), "pass"): "'ann' said 'pass' for",
        Stream("judges agree", ("ann", "bob")): "'ann' and 'bob' agreed on",
        Stream("judge on gold", ("bob",)): "'bob' was wrong on",
        Stream("system on gold"): "the system was right on",
        Stream("system on gold", named="pass"): "the truth was 'pass' for",
    }
    alarms = alarms_of(streams, 1.0, 0.05)
    assert [alarm.kind for alarm in alarms] == ["the system"] * 2 + ["the judge"] + ["something"] * 5
    assert [alarm.judge for alarm in alarms if alarm.judge] == ["bob", "ann"]
    for words in streams.values():
        assert sum(words in alarm.sentence for alarm in alarms) == 1
