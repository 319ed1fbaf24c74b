"""The walks of examples/ run from beginning to end in an empty folder, and say what they promise."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WALKS = {
    "crowd": ["rests on votes and 60 checked items; holds the truth: True", "better: True", "report: report.html"],
    "judges": ["Labelers err together", "in truth; holds the truth: True", "verdict: passed"],
    "cleaning": ["24% of the training labels are wrong", "40 chosen by the advisor"],
    "training": ["better: True"],
    "detection": ["Labels(335 items, 3 labelers", "holds the truth: True", "ranking: ["],
    "active_testing": ["answers count", "holds the truth: True", "why it can stop: Half of the interval is"],
}
NEEDS = {"training": "torch", "active_testing": "fastapi"}


def test_there_are_six_walks_and_a_list_of_them():
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert set(WALKS) == scripts - {"train_network"}
    assert all(f"`{name}.py`" in listed for name in scripts)


LONG = {"active_testing", "training"}  # more than ten seconds


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in WALKS]
)
def test_a_walk_ends_well(name, tmp_path):
    needed = NEEDS.get(name, "numpy")
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"the walk {name} needs {needed}: pip install {needed}")
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / f"{name}.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for words in WALKS[name]:
        assert words in done.stdout
    assert "holds the truth: False" not in done.stdout
