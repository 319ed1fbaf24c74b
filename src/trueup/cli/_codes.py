"""The exit codes; docs/guide/cli.md lists them for users."""

from __future__ import annotations

__all__ = ["BAD_INPUT", "BUG", "FINDING", "FINE", "INTERRUPTED", "PIPE_CLOSED"]

FINE = 0
FINDING = 1  # the user asked to fail on it (--fail-…), and it was found
BAD_INPUT = 2  # bad usage or a bad file
BUG = 3  # an error nobody foresaw
INTERRUPTED = 130  # as shells have it for Ctrl-C
PIPE_CLOSED = 141  # as shells have it for a reader that went away, e.g. `| head -1`
