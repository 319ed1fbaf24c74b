"""The program: which commands there are, and how a run ends.

A command is a function in a module and its name in `_MODULES`; another package adds one by an entry point of the group
"trueup.commands", a function with typer's annotations or a `typer.Typer`. Modules are loaded when their command is run,
and all of them for the help of the program, so they load what takes long inside their functions.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from trueup._base.registry import Registry
from trueup.cli._command import as_command, typed
from trueup.cli._console import (
    BAD_INPUT,
    BUG,
    DISK_FULL,
    FINE,
    INTERRUPTED,
    PIPE_CLOSED,
    complain,
    note,
    warnings_shown,
)
from trueup.cli._options import Command
from trueup.exceptions import TrueupError

__all__ = ["COMMANDS", "app", "as_command", "main"]


@dataclass(frozen=True)
class Location:
    """Where a command of trueup is found, and the panel of the help that shows it."""

    module: str
    panel: str

    def load(self, name: str) -> Any:
        """The function, or the group of functions."""
        return getattr(importlib.import_module(f"trueup.cli.{self.module}"), name.replace("-", "_"))


_JUDGE, _LABELERS, _TOOLS, _TRY, _OTHERS = _PANELS = (
    "Judge systems",
    "Know the labelers, plan and vet",
    "Other tools",
    "Try it",
    "Of other packages",
)
_MODULES = {
    _JUDGE: "auc=judge check=judge compare=judge detect evaluate=judge mean-score=judge metrics=convert "
    "monitor=storage preferences=judge share=judge",
    _LABELERS: "agreement=labelers labelers plan=labelers rates serve storage vet",
    _TOOLS: "convert formats=convert inspect=judge mcp=convert",
    _TRY: "demo simulate=demo",
}
COMMANDS: Registry[Any] = Registry(
    "command",
    {
        name: Location(module or name, panel)
        for panel, words in _MODULES.items()
        for name, _, module in (word.partition("=") for word in words.split())
    },
    group="trueup.commands",
)


def _panel_of(name: str) -> str:
    part = COMMANDS[name]
    return part.panel if isinstance(part, Location) else _OTHERS


@cache
def _built(name: str, part: Any) -> Any:
    """The command as click has it."""
    group = part.load(name) if isinstance(part, Location) else part
    if not isinstance(group, typer.Typer):
        function, group = group, typer.Typer(add_completion=False)
        group.command(name, cls=Command)(function)
    command: Any = typer.main.get_command(group)
    command.name, command.rich_help_panel = name, _panel_of(name)
    return command


# The base of all errors of usage. Recent versions of typer bring their own copy of click, so it has no fixed address.
_UsageProblem: Any = typer.BadParameter.__mro__[2]


class _Program(TyperGroup):
    """Loads a command when it is asked for, and turns what it raises into one sentence and an exit code."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)  # the names alone, which a wrong one is compared with

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, panel by panel."""
        return sorted(COMMANDS, key=lambda name: (_PANELS.index(_panel_of(name)), name))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None."""
        return _built(COMMANDS.resolve(cmd_name), COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        debug = bool(ctx.params.get("debug"))
        try:
            with warnings_shown(everything=debug):
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
        except (typer.Exit, typer.Abort, _UsageProblem):
            raise
        except BaseException as error:
            if debug and not isinstance(error, BrokenPipeError):
                traceback.print_exc()
            raise SystemExit(_ended_by(error, debug=debug)) from None


def _ended_by(error: BaseException, *, debug: bool) -> int:
    """Print what ended a command in one sentence; returns the exit code."""
    if isinstance(error, BrokenPipeError):
        _let_go_of_output()
        return PIPE_CLOSED
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted; no file is left half written")
        return INTERRUPTED
    if isinstance(error, TrueupError):
        complain(error.sentence)
        return DISK_FULL if _is_full_disk(error.__cause__) else BAD_INPUT
    if _is_full_disk(error):
        _let_go_of_output()
        complain("standard output cannot be written whole, got a full disk; make room and run it again")
        return DISK_FULL
    if isinstance(error, MemoryError):
        complain(f"this machine has too little memory for that, got {error!s:.100}; ask for less, or read less at once")
        return BAD_INPUT
    if not isinstance(error, Exception):
        raise error
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    complain(
        f"something went wrong that should not ({what:.300}); this is a mistake in trueup"
        + ("" if debug else ", and --debug shows where it happened")
    )
    return BUG


def _is_full_disk(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _let_go_of_output() -> None:
    """Point standard output to nowhere, so that the interpreter does not complain about it on its way out."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


app = typer.Typer(
    name="trueup",
    cls=_Program,
    help="How good is a classifier really, when the labels are noisy?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"trueup {version('trueup')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error happened; may stand anywhere.")] = False,
) -> None:
    """How good is a classifier really, when the labels are noisy?"""


@cache
def _program() -> Any:
    return typer.main.get_command(app)


# Options of earlier versions, and what to do instead.
_RETIRED = {
    "--assume": "there is one plain answer since version 0.3, got --assume; leave it out, or name a --noise such as "
    "dawid-skene for independent errors (in Python, prior= takes what trueup.calibrate makes of sets of your own)"
}


# Options that have another name now, by command; the earlier one is taken for one version more.
_RENAMED = {
    "plan": {"--stratify": "--by"},
    "share": {"--bins": "--n-bins", "--lowest": "--low", "--highest": "--high"},
    "mean-score": {"--bins": "--n-bins", "--lowest": "--low", "--highest": "--high"},
}


def _as_named_now(args: list[str]) -> list[str]:
    """A command line with the names of this version, and a note on each that is not."""
    command = next((arg for arg in args if not arg.startswith("-")), "")
    if command == "share" and "--mean" in args:
        note("`trueup share --mean` is called `trueup mean-score` since version 0.3, and is gone in 0.4")
        args = ["mean-score" if arg == "share" else arg for arg in args if arg != "--mean"]
        command = "mean-score"
    named = []
    for arg in args:
        name, equals, value = arg.partition("=")
        now = _RENAMED.get(command, {}).get(name)
        if now is not None:
            note(f"{name} is called {now} since version 0.3, and is gone in 0.4")
        named.append(arg if now is None else f"{now}{equals}{value}")
    return named


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code; `args` by default those of the process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A label that the terminal cannot show must not end the program.
            stream.reconfigure(errors="backslashreplace")
    arguments = _as_named_now(_debug_first(list(sys.argv[1:] if args is None else args)))
    typed.set(arguments)
    try:
        code = _program().main(args=arguments, prog_name="trueup", standalone_mode=False)
    except _UsageProblem as problem:
        raise SystemExit(_show_usage(problem)) from None
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted")
        raise SystemExit(INTERRUPTED) from None
    raise SystemExit(code if isinstance(code, int) else FINE)


def _debug_first(args: list[str]) -> list[str]:
    """Let --debug stand after the command, too, where one types it on a second try."""
    ours = args[: args.index("--")] if "--" in args else args
    if "--debug" not in ours:
        return args
    return ["--debug", *(a for a in ours if a != "--debug"), *args[len(ours) :]]


def _show_usage(problem: Any) -> int:
    """One sentence for a command line that makes no sense."""
    context = getattr(problem, "ctx", None)
    if type(problem).__name__ == "NoArgsIsHelpError":
        problem.show()  # the help itself
        return BAD_INPUT
    if getattr(problem, "option_name", None) in _RETIRED:
        complain(_RETIRED[problem.option_name])
        return BAD_INPUT
    sentence = str(problem.format_message()).strip().rstrip(".")
    path = "trueup" if context is None else context.command_path
    # click ends a sentence in the middle: "No such command 'chek'. Did you mean 'check'?"
    sentence = sentence.replace(". Did you mean", "; did you mean")
    complain(f"{sentence[:1].lower()}{sentence[1:]}; see '{path} --help'")
    return BAD_INPUT
