"""The command line: parse, call, print. See `_app` for how a command is added."""

from trueup.cli._app import COMMANDS, app, as_command, main

__all__ = ["COMMANDS", "app", "as_command", "main"]
