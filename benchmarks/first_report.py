"""How long the first report takes a newcomer: install the wheel, follow the first commands of the quickstart.

Run ``python -m benchmarks.first_report [--json out.json]``. It needs a package index. Times are of the clock.
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

from benchmarks._coverage_tally import Section, as_text
from benchmarks._sections import run_sections

__all__ = ["main"]

_MOST_SECONDS = 180.0
_ROOT = Path(__file__).parents[1]
_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


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
    return Section(f"{table}\nasked: at most {_MOST_SECONDS:g} s", took)


def _timed(command: Sequence[str], folder: Path) -> float:
    """The seconds that a command takes, which must succeed."""
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - started


def main(arguments: Sequence[str] | None = None) -> None:
    """Print how long each command takes."""
    about = "How long the first report takes a newcomer."
    run_sections("python -m benchmarks.first_report", about, {"first-report": first_report}, arguments)


if __name__ == "__main__":
    main()
