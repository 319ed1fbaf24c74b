"""How long the command line takes, as a user feels it: the program is started, and ends.

Run ``python -m benchmarks.command_line [section ...] [--quick] [--json out.json]``; without names all sections are run.
Sections: help, evaluate (8000 real votes, with and without a report), demo (with nothing compiled yet, and again),
first-report (from installing the wheel in an empty environment to the report, by the commands of the quickstart; needs
a package index). Times are of the clock on this machine, the best of a few.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path

from benchmarks._coverage_real import graded_labelers, one_against_others
from benchmarks._coverage_tally import Section, as_text
from benchmarks._data import load_crowd
from benchmarks._sections import run_sections
from trueup import write_labels

__all__ = ["main"]

_SET = "crowd-snow-rte"
_MOST_HELP, _MOST_EVALUATE, _MOST_DEMO, _MOST_FIRST_REPORT = 0.6, 15.0, 60.0, 180.0
_ROOT = Path(__file__).parents[1]
_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _seconds(arguments: Sequence[str], *, folder: Path, times: int, environment: dict[str, str] | None = None) -> float:
    """The shortest time that the installed program takes; it must succeed."""
    program = Path(sys.executable).with_name("trueup")
    found = []
    for _ in range(times):
        started = time.perf_counter()
        subprocess.run(
            [str(program), *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
            env={**os.environ, **(environment or {})},
        )
        found.append(time.perf_counter() - started)
    return min(found)


def _section(rows: list[tuple[str, float, float]]) -> Section:
    table = as_text(
        ["command", "asked, s", "measured, s"], [[name, f"{most:g}", f"{took:.2f}"] for name, most, took in rows]
    )
    return Section(table, {name: took for name, _, took in rows})


def show_help(quick: bool) -> Section:
    """``trueup --help`` on a warm disk."""
    return _section([("trueup --help", _MOST_HELP, _seconds(["--help"], folder=Path.cwd(), times=2 if quick else 8))])


def evaluate(quick: bool) -> Section:
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
        return _section(
            [
                (f"trueup evaluate, {labels.n_votes:,} votes", _MOST_EVALUATE, plain),
                ("the same with --report", _MOST_EVALUATE, reported),
            ]
        )


def demo(quick: bool) -> Section:
    """``trueup demo`` after installation, when kernels are still to be compiled, and later."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cache").mkdir()
        fresh = {"NUMBA_CACHE_DIR": str(folder / "cache")}
        rows = [
            ("trueup demo, nothing compiled", _MOST_DEMO, _seconds(["demo"], folder=folder, times=1, environment=fresh))
        ]
        if not quick:
            rows.append(
                ("trueup demo, again", _MOST_DEMO, _seconds(["demo"], folder=folder, times=2, environment=fresh))
            )
        return _section(rows)


def first_report(quick: bool) -> Section:
    """The commands at the top of the quickstart, one by one, in an environment that has nothing but pip."""
    first_block = _CONSOLE.search((_ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8"))
    if first_block is None:
        raise ValueError("docs/quickstart.md has no block of commands; the section follows its first one")
    commands = [line.removeprefix("$ ") for line in first_block[1].splitlines() if line.startswith("$ ")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip", "--quiet"]
        _timed([*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(_ROOT)], folder)
        wheel = next(folder.glob("trueup-*.whl"))
        venv.create(folder / "environment", with_pip=True)
        programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
        took = {}
        for command in commands:
            program, *rest = shlex.split(command)
            if program == "pip":  # what is downloaded is part of the wait
                rest = [
                    "--quiet",
                    *rest[:1],
                    "--no-cache-dir",
                    *(str(wheel) if word == "trueup" else word for word in rest[1:]),
                ]
            took[command] = _timed([str(programs / program), *rest], folder)
        if not (folder / "report.html").exists():
            raise FileNotFoundError(
                "the commands of docs/quickstart.md made no report.html; the section times them up to it"
            )
    took["all of them"] = sum(took.values())
    table = as_text(["command", "s"], [[command, f"{seconds:.1f}"] for command, seconds in took.items()])
    return Section(f"{table}\nasked: at most {_MOST_FIRST_REPORT:g} s", took)


def _timed(command: Sequence[str], folder: Path) -> float:
    """The seconds that a command takes, which must succeed."""
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - started


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the sections that are named, or all."""
    sections = {"help": show_help, "evaluate": evaluate, "demo": demo, "first-report": first_report}
    run_sections("python -m benchmarks.command_line", "How long the command line takes.", sections, arguments)


if __name__ == "__main__":
    main()
