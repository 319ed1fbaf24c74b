"""The measurement of drift: its worlds are what they say, and what it counts."""

from benchmarks._judges_drift import CHANGE, run_world
from benchmarks._runs import Case


def test_a_fall_is_noticed_after_it_came_and_then_named():
    (row,) = run_world(Case("system falls 10 points", 3))
    assert CHANGE < row["votes"] <= row["system"]
    assert row["judge"] is None
