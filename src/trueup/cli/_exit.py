"""How a command ends: the exit codes, and failing on findings."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from trueup.cli._codes import BAD_INPUT, BUG, FINDING, FINE, INTERRUPTED, PIPE_CLOSED
from trueup.cli._console import complain

__all__ = ["BAD_INPUT", "BUG", "FINDING", "FINE", "INTERRUPTED", "PIPE_CLOSED", "fail_on"]


def fail_on(findings: Sequence[str]) -> None:
    """End a command: a line on standard error for each finding and exit code 1, or nothing if there is none.

    Call it last, after everything was printed and written.
    """
    for sentence in findings:
        complain(sentence, kind="finding")
    if findings:
        raise typer.Exit(FINDING)
