"""How long the command line takes, as a user feels it: the program is started, and ends.

Run ``python -m benchmarks.command_line [section ...] [--quick] [--json out.json]``; without names all sections are run.
Sections: help, evaluate (8000 real votes, with and without a report), demo (with nothing compiled yet, and again).
Times are of the clock on this machine, the best of a few.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks._coverage_tally import as_text
from benchmarks._data import graded_labelers, load_crowd, one_against_others
from benchmarks._sections import run_sections
from trueup import write_labels

_SET = "crowd-snow-rte"
_MOST_HELP, _MOST_EVALUATE, _MOST_DEMO = 0.6, 15.0, 60.0


def _seconds(arguments: Sequence[str], *, folder: Path, times: int, environment: dict[str, str] | None = None) -> float:
    """The shortest time that the installed program takes; it must succeed."""
    program = Path(sys.executable).with_name("trueup")
    found = []
    for _ in range(times):
        started = time.perf_counter()
        command, variables = [str(program), *arguments], {**os.environ, **(environment or {})}
        subprocess.run(command, cwd=folder, check=True, capture_output=True, env=variables)
        found.append(time.perf_counter() - started)
    return min(found)


def _section(*rows: tuple[str, float, float]) -> str:
    cells = [[name, f"{most:g}", f"{took:.2f}"] for name, most, took in rows]
    return as_text(["command", "asked, s", "measured, s"], cells)


def show_help(quick: bool) -> str:
    """``trueup --help`` on a warm disk."""
    return _section(("trueup --help", _MOST_HELP, _seconds(["--help"], folder=Path.cwd(), times=2 if quick else 8)))


def evaluate(quick: bool) -> str:
    """All votes of a crowd, and one of its labelers as the system: what is timed does not ask who is right."""
    labels, _ = load_crowd(_SET)
    _, votes = one_against_others(labels, int(graded_labelers(_SET, labels)[0]))
    times = 1 if quick else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_labels(labels, folder / "votes.csv")
        lines = ["item,prediction", *(f"{item},{vote}" for item, vote in votes.items())]
        (folder / "predictions.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        call = ["evaluate", "votes.csv", "predictions.csv", "--missing", "ignore", "--seed", "1"]
        plain = _seconds(call, folder=folder, times=times)
        reported = _seconds([*call, "--report", "report.html"], folder=folder, times=times)
        about = f"trueup evaluate, {labels.n_votes:,} votes"
        return _section((about, _MOST_EVALUATE, plain), ("the same with --report", _MOST_EVALUATE, reported))


def demo(quick: bool) -> str:
    """``trueup demo`` after installation, when kernels are still to be compiled, and later."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cache").mkdir()
        fresh = {"NUMBA_CACHE_DIR": str(folder / "cache")}
        turns = {"trueup demo, nothing compiled": 1} | ({} if quick else {"trueup demo, again": 2})
        times = {name: _seconds(["demo"], folder=folder, times=n, environment=fresh) for name, n in turns.items()}
        return _section(*((name, _MOST_DEMO, taken) for name, taken in times.items()))


main = partial(run_sections, "command_line", __doc__, {"help": show_help, "evaluate": evaluate, "demo": demo})


if __name__ == "__main__":
    main()
