"""The program `trueup`: its global options, and what becomes of errors.

To add a command, write a module ``trueup/cli/<name>.py`` with

- a function ``<name>`` (or, for a command with subcommands, a ``typer.Typer`` called ``app``), whose parameters are
  annotated with the options of `_options`; decorate it with `_bundles.unbundled` if it takes bundles of them;
- light imports at the top only (typer, `_options`, `_console`, `_exit`): numpy, sklearn and the rest of trueup are
  imported inside the function, which keeps ``trueup --help`` quick;

and a line in `_commands.COMMANDS`. A command prints with `_console` (results on standard output, the rest on standard
error), raises trueup's exceptions for what is wrong, and ends with `_exit.fail_on` where the user asked to fail on a
finding. It catches no interrupts and no broken pipes: that is done here, for all commands.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from trueup.cli._command_line import remembered
from trueup.cli._commands import register
from trueup.cli._console import complain, plain_warnings
from trueup.cli._exit import BAD_INPUT, BUG, FINE, INTERRUPTED, PIPE_CLOSED
from trueup.exceptions import TrueupError

__all__ = ["app", "main"]

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
