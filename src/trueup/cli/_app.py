"""How a command ends: the exit codes, and failing on findings."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from trueup.cli._console import BAD_INPUT, BUG, FINDING, FINE, INTERRUPTED, PIPE_CLOSED, complain, plain_warnings
from trueup.exceptions import TrueupError

__all__ = [
    "BAD_INPUT",
    "BUG",
    "COMMANDS",
    "FINDING",
    "FINE",
    "INTERRUPTED",
    "PIPE_CLOSED",
    "app",
    "command_line",
    "fail_on",
    "main",
    "options_said",
    "register",
    "remembered",
]


def fail_on(findings: Sequence[str]) -> None:
    """End a command: a line on standard error for each finding and exit code 1, or nothing if there is none.

    Call it last, after everything was printed and written.
    """
    for sentence in findings:
        complain(sentence, kind="finding")
    if findings:
        raise typer.Exit(FINDING)


_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


@contextmanager
def remembered(arguments: Sequence[str]) -> Iterator[None]:
    """Inside, `command_line` is of these arguments."""
    token = _ARGUMENTS.set(tuple(arguments))
    try:
        yield
    finally:
        _ARGUMENTS.reset(token)


def command_line() -> str:
    """The command as a shell takes it.

    Examples
    --------
    >>> with remembered(["evaluate", "my votes.csv", "p.csv"]):
    ...     command_line()
    "trueup evaluate 'my votes.csv' p.csv"
    """
    return shlex.join(["trueup", *_ARGUMENTS.get()])


def options_said(*bundles: Any, **single: tuple[Any, Any]) -> dict[str, Any]:
    """The options that are not as by default, by name; files are left out, which are told with their hashes.

    Parameters
    ----------
    *bundles : dataclass instances
        Such as `VoteOptions`.
    **single : tuple
        Of an option by itself: its value and its default.

    Examples
    --------
    >>> from trueup.cli._options import SamplerOptions
    >>> options_said(SamplerOptions(draws=100), target=("sample", "sample"), level=(0.9, 0.95))
    {'draws': 100, 'level': 0.9}
    """
    found = {}
    for bundle in bundles:
        for field in fields(bundle):
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            value = getattr(bundle, field.name)
            if value != default and field.name != "gold":
                found[field.name] = value
    return found | {name: value for name, (value, default) in single.items() if value != default}


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


# The base of all errors of usage. Recent versions of typer bring their own copy of click, so it has no fixed address.
_UsageProblem: Any = typer.BadParameter.__mro__[2]


class _Guarded(TyperGroup):
    """Turns what a command raises into one sentence and an exit code, before typer has its own way with it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        debug = bool(ctx.params.get("debug"))
        try:
            with plain_warnings(everything=debug):
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
        except KeyboardInterrupt:
            if debug:
                traceback.print_exc()
            complain("interrupted; no file is left half written")
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:
            _let_go_of_pipes()
            raise SystemExit(PIPE_CLOSED) from None
        except TrueupError as error:
            if debug:
                traceback.print_exc()
            complain(str(error))
            raise SystemExit(BAD_INPUT) from None
        except (typer.Exit, typer.Abort, _UsageProblem):
            raise
        except Exception as error:
            if debug:
                traceback.print_exc()
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            complain(
                f"something went wrong that should not ({what:.300}); this is a mistake in trueup"
                + ("" if debug else ", and --debug shows where it happened")
            )
            raise SystemExit(BUG) from None


def _let_go_of_pipes() -> None:
    """Point standard output to nowhere, so that the interpreter does not complain about it on its way out."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


app = typer.Typer(
    name="trueup",
    cls=_Guarded,
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


register(app)


@cache
def _program() -> Any:
    return typer.main.get_command(app)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code; `args` by default those of the process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A label that the terminal cannot show must not end the program.
            stream.reconfigure(errors="backslashreplace")
    given = _debug_first(list(sys.argv[1:] if args is None else args))
    try:
        with remembered(given):
            code = _program().main(args=given, prog_name="trueup", standalone_mode=False)
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
    sentence = str(problem.format_message()).strip().rstrip(".")
    path = "trueup" if context is None else context.command_path
    # click ends a sentence in the middle: "No such command 'chek'. Did you mean 'check'?"
    sentence = sentence.replace(". Did you mean", "; did you mean")
    complain(f"{sentence[:1].lower()}{sentence[1:]}; see '{path} --help'")
    return BAD_INPUT
