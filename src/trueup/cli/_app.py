"""The program: what makes a function a command, which commands there are, and how a run ends.

A command is one module and one line in `COMMANDS`; another package adds one by an entry point of the group
"trueup.commands", a function with typer's annotations or a `typer.Typer`. Modules are loaded when their command is run,
and all of them for the help of the program, so they load what takes long inside their functions.
"""

from __future__ import annotations

import errno
import functools
import importlib
import inspect
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from trueup._base.registry import Registry
from trueup._base.writing import check_readable, check_writable
from trueup.cli._console import (
    BAD_INPUT,
    BUG,
    DISK_FULL,
    FINE,
    INTERRUPTED,
    PIPE_CLOSED,
    complain,
    note,
    option_names,
    warnings_shown,
)
from trueup.cli._options import Command, InputFile, OutputFile
from trueup.exceptions import InvalidFile, TrueupError

STANDARD_INPUT = "-"

# Commands -----------------------------------------------------------------------------------------------------------

# What was read from pipes in this run; they can be read once.
pipes: ContextVar[dict[str, bytes] | None] = ContextVar("pipes", default=None)


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """A function as typer takes it, which checks its files before it loads anything and speaks of its own options.

    Parameters of a dataclass type are replaced by the fields of that dataclass.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int = 3
    ...     height: int = 4
    >>> def area(name: str, size: Size) -> None:
    ...     assert (name, size) == ("a", Size(3, 5))
    >>> list(inspect.signature(as_command(area)).parameters)
    ['name', 'width', 'height']
    >>> as_command(area)(name="a", width=3, height=5)
    """
    hints = get_type_hints(function, include_extras=True)
    bundles: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if isinstance(hint, type) and is_dataclass(hint):
            bundles[name] = hint
            inner = get_type_hints(hint, include_extras=True)
            parameters += [_parameter(one, inner[one.name]) for one in fields(hint)]
        else:
            parameters.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))
    options = options_by_parameter(parameters)
    inputs, outputs = (
        [p.name for p in parameters if any(isinstance(about, mark) for about in _metadata(p.annotation))]
        for mark in (InputFile, OutputFile)
    )

    @functools.wraps(function)
    def call(**values: Any) -> None:
        token = pipes.set({})
        try:
            with option_names(**options):
                _check_inputs([values[name] for name in inputs])
                _check_outputs(outputs, values, options)
                for name, bundle in bundles.items():
                    values[name] = bundle(**{one.name: values.pop(one.name) for one in fields(bundle)})
                function(**values)
        finally:
            pipes.reset(token)

    # typer reads the signature or the annotations, by its version; it must not look at the function inside.
    del call.__wrapped__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__metadata__", ())


def _parameter(one: Field[Any], annotation: Any) -> inspect.Parameter:
    default = one.default
    if default is MISSING:
        default = inspect.Parameter.empty if one.default_factory is MISSING else one.default_factory()
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _check_inputs(values: Iterable[str | Sequence[str] | None]) -> None:
    """Stop where a file does not exist, and where standard input is to be read twice."""
    paths = [path for value in values for path in ([value] if isinstance(value, str) else value or [])]
    if paths.count(STANDARD_INPUT) > 1:
        raise InvalidFile("standard input (-) can be one of the files, got it twice; write the other to a file")
    for path in paths:
        if path != STANDARD_INPUT:
            check_readable(path, folders=True)  # some tools export folders


def _check_outputs(outputs: Sequence[str], values: Mapping[str, Any], options: Mapping[str, str]) -> None:
    """Stop where a result could not be written, or would replace another file that the same call names."""
    for name in outputs:
        if values[name] is None:
            continue
        target = check_writable(values[name])
        if target.exists() and not target.is_file():  # a pipe or a device takes several
            continue
        for other, value in values.items():
            if other != name and target in _places_in(value):
                raise InvalidFile(
                    f"{options[name]} must be a file of its own, got {str(values[name])!r}, which is that of "
                    f"{options[other]}; name another"
                )


def _places_in(value: Any) -> set[Path]:
    """Where the texts that were given for a parameter, or what is after ``NAME=``, lead to as paths."""
    given = value if isinstance(value, list | tuple) else [value]
    texts = [text for one in given if isinstance(one, str | Path) for text in (str(one), str(one).partition("=")[2])]
    return {Path(os.path.realpath(text)) for text in texts if text and "\0" not in text}


# Parameters of the library whose options are named otherwise here: by the parameter of the command.
_NAMED_HERE = {
    "classes": "class_names",
    "designs": "design",
    "drawn": "gold_drawn",
    "metrics": "metric",
    "n_classes": "classes",
    "n_draws": "draws",
    "n_warmup": "warmup",
    "random_state": "seed",
}


def add_to(group: typer.Typer, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command of a group such as `trueup rates`."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        return group.command(name, cls=Command)(as_command(function))

    return add


class GroupWithDefault(TyperGroup):
    """A group whose first command is meant where none is named: ``plan votes.csv`` is ``plan spend votes.csv``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the first command unless a command, or the help of all, is asked for."""
        names = self.list_commands(ctx)
        if not args or args[0] not in (*names, *ctx.help_option_names):
            args = [names[0], *args]
        return super().parse_args(ctx, args)


def options_by_parameter(parameters: Sequence[inspect.Parameter]) -> dict[str, str]:
    """The option of each parameter of a command, and of the library's parameters behind them."""
    options = {}
    for parameter in parameters:
        for about in _metadata(parameter.annotation):
            if isinstance(about, typer.models.OptionInfo):
                # typer keeps the first name of an annotated option where its default would be.
                names = (about.default, *(about.param_decls or ()))
                written = [name for name in names if isinstance(name, str) and name.startswith("-")]
                longest = max(written, key=len, default=f"--{parameter.name.replace('_', '-')}")
                options[parameter.name] = longest.split("/")[0]
            elif isinstance(about, typer.models.ArgumentInfo):
                options[parameter.name] = str(about.metavar or parameter.name.upper())
    return options | {there: options[here] for there, here in _NAMED_HERE.items() if here in options}


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


# The program --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a command of trueup is found, and the panel of the help that shows it."""

    module: str
    panel: str

    def load(self) -> Any:
        """The function, or the group of functions."""
        module = importlib.import_module(self.module)
        return getattr(module, "app", None) or getattr(module, self.module.rpartition(".")[2])


_PANELS = ("Judge systems", "Know the labelers, plan and vet", "Other tools", "Try it", "Of other packages")
_JUDGE, _LABELERS, _TOOLS, _TRY, _OTHERS = _PANELS

COMMANDS: Registry[Any] = Registry(
    "command",
    {
        "auc": Place("trueup.cli.auc", _JUDGE),
        "check": Place("trueup.cli.check", _JUDGE),
        "compare": Place("trueup.cli.compare", _JUDGE),
        "detect": Place("trueup.cli.detect", _JUDGE),
        "evaluate": Place("trueup.cli.evaluate", _JUDGE),
        "mean-score": Place("trueup.cli.mean_score", _JUDGE),
        "metrics": Place("trueup.cli.metrics", _JUDGE),
        "monitor": Place("trueup.cli.monitor", _JUDGE),
        "preferences": Place("trueup.cli.preferences", _JUDGE),
        "share": Place("trueup.cli.share", _JUDGE),
        "convert": Place("trueup.cli.convert", _TOOLS),
        "formats": Place("trueup.cli.formats", _TOOLS),
        "labelers": Place("trueup.cli.labelers", _LABELERS),
        "plan": Place("trueup.cli.plan", _LABELERS),
        "rates": Place("trueup.cli.rates", _LABELERS),
        "serve": Place("trueup.cli.serve", _LABELERS),
        "storage": Place("trueup.cli.storage", _LABELERS),
        "vet": Place("trueup.cli.vet", _LABELERS),
        "demo": Place("trueup.cli.demo", _TRY),
        "simulate": Place("trueup.cli.simulate", _TRY),
    },
    group="trueup.commands",
)


def _panel_of(name: str) -> str:
    part = COMMANDS[name]
    return part.panel if isinstance(part, Place) else _OTHERS


@cache
def _built(name: str, part: Any) -> Any:
    """The command as click has it."""
    function = part.load() if isinstance(part, Place) else part
    group = function
    if not isinstance(function, typer.Typer):
        group = typer.Typer(add_completion=False)
        group.command(name, cls=Command)(function)
    command: Any = typer.main.get_command(group)
    command.name = name
    command.rich_help_panel = _panel_of(name)
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
    """Say what ended a command in one sentence; returns the exit code."""
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
    try:
        with remembered(arguments):
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
