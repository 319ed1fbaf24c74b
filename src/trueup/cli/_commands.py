"""The list of commands, in the order of the help."""

from __future__ import annotations

import importlib

import typer

__all__ = ["COMMANDS", "register"]

_JUDGE, _LABELERS, _TRY = "Judge systems", "Know the labelers, plan and vet", "Try it"

# The modules in trueup.cli and the panel of the help they are shown in.
COMMANDS = {
    "check": _JUDGE,
    "evaluate": _JUDGE,
    "compare": _JUDGE,
    "auc": _JUDGE,
    "labelers": _LABELERS,
    "plan": _LABELERS,
    "rates": _LABELERS,
    "vet": _LABELERS,
    "demo": _TRY,
    "simulate": _TRY,
}


def register(app: typer.Typer) -> None:
    """Add every command to the program."""
    for name, panel in COMMANDS.items():
        module = importlib.import_module(f"trueup.cli.{name}")
        group = getattr(module, "app", None)
        if group is None:
            app.command(name, rich_help_panel=panel)(getattr(module, name))
        else:
            app.add_typer(group, name=name, rich_help_panel=panel)
