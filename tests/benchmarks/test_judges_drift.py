"""The measurement of drift: its worlds are what they say, and what it counts."""

import pytest

from benchmarks._judges_drift import CHANGE, DRIFT_FIGURE, WORLDS, run_world, summarise
from benchmarks._runs import Case


def test_a_fall_is_noticed_after_it_came_and_then_named():
    (row,) = run_world(Case("system falls 10 points", 3))
    assert CHANGE < row["votes"] <= row["system"]
    assert row["judge"] is None


def test_the_summary_counts_runs():
    nothing = {"votes": None, "system": None, "judge": None, "other judge": None}
    rows = [
        {"world": "steady", **nothing},
        {"world": "steady", **nothing, "votes": 50},
        {"world": "system falls 10 points", **nothing, "votes": CHANGE + 2, "system": CHANGE + 9},
        {"world": "system falls 10 points", **nothing, "votes": CHANGE + 5, "judge": CHANGE + 9},
        {"world": "system falls 10 points", **nothing},
    ]
    numbers = summarise(rows).numbers
    assert numbers["steady"]["false alarms"] == 0.5
    fallen = numbers["system falls 10 points"]
    assert fallen["noticed soon"] == pytest.approx(1 / 3)
    assert fallen["delay"] == 5
    assert fallen["delay of the name"] is None
    assert fallen["wrong name"] == pytest.approx(1 / 3)
    assert set(DRIFT_FIGURE.worlds) == set(WORLDS)
