"""What every command of the program keeps to, as checks that anyone can run on a new one.

    from trueup.testing.commands import COMMAND_CHECKS

    @pytest.mark.parametrize("check", COMMAND_CHECKS)
    def test_contract(check):
        check("my-command")

Each check takes the name of a command, ``"rates true-error"`` for one of a group, runs the program in a process of its
own, and raises AssertionError where the contract is broken.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache

_PROGRAM = "import sys; from trueup.cli import main; main(sys.argv[1:])"
# What takes long to load, and what help needs nothing of; the registries, whose names it lists, load lighter parts of
# scipy.
_HEAVY = {"scipy.stats", "sklearn", "pandas", "polars", "pyarrow", "matplotlib", "numba", "torch"}
_PATIENCE = 240  # seconds; no help takes as long, however busy the machine
_NO_FILE = "there is no such file.csv"


@cache
def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program; what it imports is on standard error, in the lines of ``-X importtime``."""
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-c", _PROGRAM, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_PATIENCE,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "120"},
    )


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """What it said on standard error itself."""
    lines = done.stderr.splitlines()
    return "\n".join(line for line in lines if not line.startswith("import time:")).strip()


def _assert_one_sentence(done: subprocess.CompletedProcess[str]) -> None:
    said = _said(done)
    assert done.returncode == 2, f"bad input must end with exit code 2, got {done.returncode}: {said}"
    assert done.stdout == "", f"an error must print nothing on standard output, got {done.stdout!r:.200}"
    assert "Traceback" not in said, said
    assert len(said.splitlines()) == 1, f"an error must be one line, got:\n{said}"
    assert said.startswith("error: "), f"an error must start with 'error: ', got {said!r}"


def check_help(command: str) -> None:
    """Help is there: it ends well, says how the command is used, and tells what it does in a sentence."""
    done = _run(*command.split(), "--help")
    assert done.returncode == 0, _said(done)
    assert _said(done) == "", f"help must print nothing on standard error, got {_said(done)!r}"
    shown = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    assert shown, "help printed nothing"
    assert "Usage:" in shown[0], f"help must start with the usage, got {shown[0]!r}"
    assert len(shown) > 1, "help must say what the command does; give its function a docstring"
    assert re.match(r"\w", shown[1]), f"help must say what the command does; give its function a docstring; {shown[1]}"


def check_help_is_quick(command: str) -> None:
    """Help loads nothing heavy; what a command needs is imported where it runs."""
    done = _run(*command.split(), "--help")
    names = set(re.findall(r"^import time:.*\|\s*([\w.]+)$", done.stderr, re.MULTILINE))
    heavy = sorted(names & _HEAVY)
    assert not heavy, f"help of {command!r} loads {', '.join(heavy)}; import them inside the command's function"


def check_unknown_option(command: str) -> None:
    """An option that there is not is one sentence."""
    _assert_one_sentence(_run(*command.split(), "--no-such-option"))


def check_missing_files(command: str) -> None:
    """Files that do not exist, or that nobody asked for, are one sentence."""
    _assert_one_sentence(_run(*command.split(), _NO_FILE, _NO_FILE))


COMMAND_CHECKS: tuple[Callable[[str], None], ...] = (
    check_help,
    check_help_is_quick,
    check_unknown_option,
    check_missing_files,
)
