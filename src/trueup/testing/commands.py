"""What every command of the program keeps to, as checks that anyone can run on a new one.

    from trueup.testing.commands import COMMAND_CHECKS

    @pytest.mark.parametrize("check", COMMAND_CHECKS)
    def test_contract(check):
        check("my-command")

Each check takes the name of a command, ``"rates true-error"`` for one of a group, and raises AssertionError where the
contract is broken. What they look at is run once for a command, in a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

# Runs the program on several lists of arguments; prints how each run ended, what it said, and what was loaded by then.
_PROGRAM = """
import contextlib, io, json, sys, traceback
from trueup.cli import main

runs = []
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
    runs.append({"code": code, "out": out.getvalue(), "said": err.getvalue().strip(), "loaded": list(sys.modules)})
json.dump(runs, sys.stdout)
"""
# What takes long to load, and what help needs nothing of; the registries, whose names it lists, load lighter parts of
# scipy.
_HEAVY = {"scipy.stats", "sklearn", "pandas", "polars", "pyarrow", "matplotlib", "numba", "torch"}
_PATIENCE = 240  # seconds; nothing here takes as long, however busy the machine
_NO_FILE = "there is no such file.csv"


@dataclass(frozen=True)
class _Run:
    """How a run of the program ended, what it printed on standard output and error, and what was loaded by then."""

    code: int
    out: str
    said: str
    loaded: Sequence[str]


@cache
def _runs(command: str) -> tuple[_Run, _Run, _Run]:
    """The help of a command, one with an unknown option, and one with files that do not exist."""
    words = command.split()
    # Help comes first: nothing was loaded before it but the program.
    arguments = [[*words, "--help"], [*words, "--no-such-option"], [*words, _NO_FILE, _NO_FILE]]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_PATIENCE,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "120"},
    )
    assert done.returncode == 0, f"{command!r} ended the process: {done.stderr}"
    assert done.stderr == "", f"{command!r} must speak through sys.stderr only, got {done.stderr!r}"
    shown, unknown, missing = (_Run(**run) for run in json.loads(done.stdout))
    return shown, unknown, missing


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
