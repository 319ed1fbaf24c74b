"""What every command of the program keeps to, as checks that anyone can run; CONTRIBUTING.md has an example.

Each check takes the name of a command, ``"rates true-error"`` for one of a group. What they look at is run once for a
command, in a process of its own or in one that `_run_together` started for many.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Runs the program on several lists of arguments; prints how each run ended, what it said, and what is loaded by then
# and was not loaded by a run before it.
_PROGRAM = """
import contextlib, io, json, sys, traceback
from trueup.cli import main

with_the_program = set(sys.modules)
runs, loaded_before = [], set()
for arguments in json.loads(sys.argv[1]):
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as leaving:
            code = leaving.code
        except BaseException:
            traceback.print_exc()
            code = 1
    loaded = set(sys.modules) - loaded_before
    loaded_before |= loaded - with_the_program
    runs.append({"code": code, "out": out.getvalue(), "said": err.getvalue().strip(), "loaded": sorted(loaded)})
json.dump(runs, sys.stdout)
"""
# What takes long to load, and what help needs nothing of; the registries, whose names it lists, load lighter parts of
# scipy.
_HEAVY = {"scipy.stats", "sklearn", "pandas", "polars", "pyarrow", "matplotlib", "numba", "torch"}
_PATIENCE = 240  # seconds; nothing here takes as long, however busy the machine
_NO_FILE = "there is no such file.csv"


@dataclass(frozen=True)
class _Run:
    """How a run of the program ended, what it printed on standard output and error, and what it loaded."""

    code: int
    out: str
    said: str
    loaded: Sequence[str]


_RUNS: dict[str, list[_Run]] = {}  # of each command: its help, with an unknown option, and with files that do not exist


def _run_together(commands: Sequence[str]) -> None:
    """Run commands in one process, for the checks that follow: to start one takes longer than a check."""
    ends = (["--help"], ["--no-such-option"], [_NO_FILE, _NO_FILE])
    # Help comes first, that of all commands: nothing was loaded before it but the program.
    arguments = [[*command.split(), *end] for end in ends for command in commands]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_PATIENCE,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "120"},
    )
    named = ", ".join(map(repr, commands))
    assert done.returncode == 0, f"{named} ended the process: {done.stderr}"
    assert done.stderr == "", f"{named} must speak through sys.stderr only, got {done.stderr!r}"
    runs = [_Run(**run) for run in json.loads(done.stdout)]
    for k, command in enumerate(commands):
        _RUNS[command] = runs[k :: len(commands)]


def _runs(command: str) -> list[_Run]:
    """The help of a command, one with an unknown option, and one with files that do not exist."""
    if command not in _RUNS:
        _run_together([command])
    return _RUNS[command]


def _assert_one_sentence(run: _Run) -> None:
    assert run.code == 2, f"bad input must end with exit code 2, got {run.code}: {run.said}"
    assert run.out == "", f"an error must print nothing on standard output, got {run.out!r:.200}"
    assert "Traceback" not in run.said, run.said
    assert len(run.said.splitlines()) == 1, f"an error must be one line, got:\n{run.said}"
    assert run.said.startswith("error: "), f"an error must start with 'error: ', got {run.said!r}"


def check_help(command: str) -> None:
    """Help is there: it ends well, says how the command is used, and tells what it does in a sentence."""
    run, _, _ = _runs(command)
    assert run.code == 0, run.said
    assert run.said == "", f"help must print nothing on standard error, got {run.said!r}"
    shown = [line.strip() for line in run.out.splitlines() if line.strip()]
    assert shown, "help printed nothing"
    assert "Usage:" in shown[0], f"help must start with the usage, got {shown[0]!r}"
    assert len(shown) > 1, "help must say what the command does; give its function a docstring"
    assert re.match(r"\w", shown[1]), f"help must say what the command does; give its function a docstring; {shown[1]}"


def check_help_is_quick(command: str) -> None:
    """Help loads nothing heavy; what a command needs is imported where it runs."""
    run, _, _ = _runs(command)
    heavy = sorted(_HEAVY.intersection(run.loaded))
    assert not heavy, f"help of {command!r} loads {', '.join(heavy)}; import them inside the command's function"


def check_unknown_option(command: str) -> None:
    """An option that there is not is one sentence."""
    _, run, _ = _runs(command)
    _assert_one_sentence(run)


def check_missing_files(command: str) -> None:
    """Files that do not exist, or that nobody asked for, are one sentence."""
    _, _, run = _runs(command)
    _assert_one_sentence(run)


COMMAND_CHECKS: tuple[Callable[[str], None], ...] = (
    check_help,
    check_help_is_quick,
    check_unknown_option,
    check_missing_files,
)
