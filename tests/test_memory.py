"""Reading votes from parquet takes at most eight times the raw int32 triples in memory."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RAW = 3 * 4

# In a process of its own: a child starts with the peak of its parent, which here would be that of the whole suite.
_GROWTH = """
import sys
from benchmarks.memory import growth
print(growth(int(sys.argv[1]), text=sys.argv[2] == "text")[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units elsewhere")
@pytest.mark.parametrize(
    ("n_votes", "names"),
    [(1_000_000, "int"), (5_000_000, "int"), pytest.param(5_000_000, "text", marks=pytest.mark.slow)],
)
def test_reading_stays_within_eight_times_the_raw_triples(n_votes, names):
    command = [sys.executable, "-c", _GROWTH, str(n_votes), names]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert float(run.stdout) < 8 * RAW * n_votes
