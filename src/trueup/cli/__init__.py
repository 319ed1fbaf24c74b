"""The command line: parse, call, print. See `_app` for how a command is added."""

from trueup.cli._app import app, main

__all__ = ["app", "main"]
