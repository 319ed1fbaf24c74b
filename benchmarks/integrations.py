"""What trueup costs where evaluations run.

Run ``python -m benchmarks.integrations [section ...] [--quick] [--json out.json]``; without names all sections are run.
Sections: pytest (a run of one empty test with the plugin and without it, in turns; the best of each).
Times are of the clock on this machine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks._coverage_tally import Section, as_text
from benchmarks._sections import run_sections

__all__ = ["main"]

_PLUGIN = "trueup.integrations.pytest_plugin"


def _pytest_seconds(folder: Path, *plugins: str) -> float:
    """How long pytest takes with no plugin of other packages but these."""
    named = [option for name in plugins for option in ("-p", name)]
    command = [sys.executable, "-m", "pytest", "-q", "--disable-plugin-autoload", *named]
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - started


def pytest_runs(quick: bool) -> Section:
    """One empty test."""
    times = 3 if quick else 40
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
        runs = [(_pytest_seconds(folder), _pytest_seconds(folder, _PLUGIN)) for _ in range(times)]
    plain, loaded = (min(column) for column in zip(*runs, strict=True))
    rows = [("without the plugin", plain), ("with it", loaded), ("added", loaded - plain)]
    cells = [[what, f"{1000 * took:.0f}"] for what, took in rows]
    table = as_text(["a run of pytest with one empty test", "ms"], cells)
    return Section(table, dict(rows))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the sections that are named, or all."""
    sections = {"pytest": pytest_runs}
    run_sections("python -m benchmarks.integrations", "What trueup costs elsewhere.", sections, arguments)


if __name__ == "__main__":
    main()
