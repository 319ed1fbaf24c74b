"""What makes a function a command: its options for typer, its files checked, its answer printed, its exit code."""

from __future__ import annotations

import functools
import inspect
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from trueup._base.writing import check_readable, check_writable
from trueup.cli._console import (
    BAD_INPUT,
    FINDING,
    FINE,
    UNDECIDED,
    as_json,
    complain,
    note,
    option_names,
    print_json,
    show_page,
)
from trueup.cli._files import STANDARD_INPUT, about_files, pipes, save_plot
from trueup.cli._options import Command, Option, given
from trueup.exceptions import InvalidFile

if TYPE_CHECKING:
    from trueup.answers.gates import GateReport

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
_AS_JSON = Option("Print JSON for machines and nothing else on standard output.", flags=("--json",))
_NOT_IN_REPORTS = ("as_json", "seed", "with_text")


@dataclass(frozen=True)
class Answer:
    """What a command found. A command that returns one has the option ``--json``."""

    body: Any  # for machines; or a function that makes it, which is called for them alone
    show: Callable[[Any], None] | None = None  # prints the body for people; by default the page is printed
    findings: Sequence[str] = ()  # each ends the command with exit code 1
    problems: Sequence[str] = ()  # each ends it with exit code 2
    warnings: Iterable[str] = ()
    verdicts: GateReport | None = None  # on the gates; they decide the exit code
    page: Callable[[], Mapping[str, Any]] | None = None  # of --report
    picture: Callable[[], Any] | None = None  # the axes of --plot
    head: Mapping[str, Any] | None = None  # seed and files, where they are not those of the call
    is_bare: bool = False  # a list of what there is: the same for all calls


@dataclass(frozen=True)
class Parameter:
    """A parameter of a command: of its function, or a field of a bundle of options."""

    name: str
    hint: Any
    default: Any
    option: Option | None
    panel: str | None = None

    @classmethod
    def of(cls, name: str, hint: Any, default: Any, panel: str | None = None) -> Parameter:
        """With the option that its default or its type holds, if either does."""
        option = next((about for about in getattr(hint, "__metadata__", ()) if isinstance(about, Option)), None)
        if isinstance(default, Field):
            option = default.metadata.get("option", option)
            made = default.default if default.default_factory is MISSING else default.default_factory()
            default = inspect.Parameter.empty if made is MISSING else made
        return cls(name, hint, default, option, panel)

    def for_typer(self) -> inspect.Parameter:
        """As typer reads it from a signature."""
        hint = self.hint
        if self.option is not None:
            plain = hint.__origin__ if hasattr(hint, "__metadata__") else hint
            hint = Annotated[plain, self.option.for_typer(self.name, self.panel)]
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=self.default, annotation=hint)


@dataclass(frozen=True)
class Call:
    """A command that runs, with what was typed for its parameters."""

    name: str
    parameters: Sequence[Parameter]
    values: Mapping[str, Any]

    def given(self, which: Callable[[Option], Any]) -> dict[str, Any]:
        """The values of the options of a kind."""
        return {p.name: self.values[p.name] for p in self.parameters if p.option is not None and which(p.option)}

    @property
    def paths(self) -> dict[str, Any]:
        """The files to read, by parameter."""
        return {name: value for name, value in self.given(lambda option: option.reads).items() if value}

    @cached_property
    def files(self) -> dict[str, Any]:
        """Name and SHA-256 of each file read."""
        return about_files(**self.paths)

    @property
    def settings(self) -> dict[str, Any]:
        """For a report: the files, the command as it was typed, and each option that is not as by default."""
        options = self.given(lambda option: not (option.is_argument or option.reads or option.writes))
        defaults = {p.name: p.default for p in self.parameters}
        changed = {k: v for k, v in options.items() if v != defaults[k] and k not in _NOT_IN_REPORTS}
        return {**self.files, "command": shlex.join(["trueup", *typed.get()]), **changed}


_CALL: ContextVar[Call] = ContextVar("call")
typed: ContextVar[Sequence[str]] = ContextVar("typed", default=())  # the arguments of the program


def this_call() -> Call:
    """The command that runs."""
    return _CALL.get()


def call_library(function: Callable[..., Any], *args: Any, **what_differs: Any) -> Any:
    """Call a function of the library with each option that was given and that it takes; others have its defaults."""
    taken = inspect.signature(function).parameters.values()
    names = {p.name for p in taken if p.kind is p.KEYWORD_ONLY}
    if any(p.kind is p.VAR_KEYWORD for p in taken):  # passed on to the sampler of a noise model
        names |= {"n_draws", "n_warmup"}
    options = {name: this_call().values.get(_NAMED_HERE.get(name, name)) for name in names}
    return function(*args, **{**given(**options), **what_differs})


def as_command(function: Callable[..., Any]) -> Callable[..., None]:
    """A function as typer takes it, which checks its files before it loads anything and names its own options.

    Parameters of a dataclass type are replaced by the fields of that dataclass; an `Answer` is printed.

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
    parameters: list[Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if isinstance(hint, type) and is_dataclass(hint):
            bundles[name] = hint
            inner = get_type_hints(hint, include_extras=True)
            panel = (hint.__doc__ or "").partition("\n")[0].removesuffix(".")
            parameters += [Parameter.of(part.name, inner[part.name], part, panel) for part in fields(hint)]
        else:
            parameters.append(Parameter.of(name, hint, parameter.default))
    if hints.get("return") is Answer:
        parameters.append(Parameter("as_json", bool, False, _AS_JSON))
    # The option of each parameter of the command, and of the library's parameters behind them.
    options = {p.name: p.option.names(p.name)[0].split("/")[0] for p in parameters if p.option is not None}
    if "no_vote" in options:
        options.setdefault("missing", options["no_vote"])
    options |= {there: options[here] for there, here in _NAMED_HERE.items() if here in options}

    @functools.wraps(function)
    def call(**values: Any) -> None:
        this = Call(function.__name__.replace("_", "-"), parameters, dict(values))
        tokens = pipes.set({}), _CALL.set(this)
        try:
            with option_names(**options):
                _check_inputs(this.paths.values())
                _check_outputs(this, options)
                as_json = values.pop("as_json", False)
                for name, bundle in bundles.items():
                    values[name] = bundle(**{part.name: values.pop(part.name) for part in fields(bundle)})
                answer = function(**values)
                if isinstance(answer, Answer):
                    _finish(answer, this, as_json=as_json)
        finally:
            pipes.reset(tokens[0])
            _CALL.reset(tokens[1])

    # typer reads the signature or the annotations, by its version; it must not look at the function inside.
    del call.__wrapped__
    signature = inspect.Signature([parameter.for_typer() for parameter in parameters])
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    call.options = options  # type: ignore[attr-defined]
    return call


def add_to(
    group: typer.Typer, name: str | None = None, cls: type[Command] = Command
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a function a command of a group such as `trueup rates`."""
    return lambda function: group.command(name, cls=cls)(as_command(function))


def _check_inputs(values: Iterable[str | Sequence[str]]) -> None:
    """Stop where a file does not exist, and where standard input is to be read twice."""
    paths = [path for value in values for path in ([value] if isinstance(value, str) else value)]
    if paths.count(STANDARD_INPUT) > 1:
        raise InvalidFile("standard input (-) can be one of the files, got it twice; write the other to a file")
    for path in paths:
        if path != STANDARD_INPUT:
            check_readable(path, folders=True)  # some tools export folders


def _check_outputs(call: Call, options: Mapping[str, str]) -> None:
    """Stop where a result could not be written, or would replace a file that it must not replace."""
    suffixes = {p.name: p.option.writes for p in call.parameters if p.option is not None}
    for name, path in call.given(lambda option: option.writes).items():
        if path is None:
            continue
        allowed = suffixes[name]
        if isinstance(allowed, tuple) and Path(path).suffix.lower() not in allowed:
            listed = " or ".join(filter(None, (", ".join(allowed[:-1]), allowed[-1])))
            raise InvalidFile(f"{options[name]} must end in {listed}, got {str(path)!r}; name it so")
        target = check_writable(path)
        if target.exists() and not target.is_file():  # a pipe or a device takes several
            continue
        for other, value in call.values.items():
            if other != name and target in _places_in(value):
                raise InvalidFile(
                    f"{options[name]} must be a file of its own, got {str(path)!r}, which is that of "
                    f"{options[other]}; name another"
                )
        if target.exists() and call.values.get("force") is False:
            raise InvalidFile(
                f"{str(path)!r} must not exist yet, since what is in it would be lost, got a file; name another, or "
                "use --force"
            )


def _places_in(value: Any) -> set[Path]:
    """Where the texts that were given for a parameter, or what is after ``NAME=``, lead to as paths."""
    given = [str(part) for part in (value if isinstance(value, list) else [value]) if isinstance(part, str | Path)]
    texts = [text for part in given for text in (part, part.partition("=")[2])]
    return {Path(os.path.realpath(text)) for text in texts if text and "\0" not in text}


def _finish(answer: Answer, call: Call, *, as_json: bool) -> None:
    """Write and print an answer, then its warnings, findings and gates, and end with the exit code that they mean."""
    from importlib.metadata import version

    verdicts = answer.verdicts
    _write_files(answer, call)  # before anything is printed: the reader of a pipe may go away
    body = answer.body() if callable(answer.body) and as_json else answer.body
    if as_json and answer.is_bare:
        print_json(body)
    elif as_json:
        head = {"version": version("trueup"), "seed": call.values.get("seed"), "files": call.files}
        gate = {} if verdicts is None else {"gate": verdicts.to_dict()}
        print_json({"findings": list(answer.findings), **head, **(answer.head or {}), **body, **gate})
    elif answer.show is not None:
        answer.show(body)
    elif answer.page is not None:
        show_page(answer.page(), without=tuple(answer.warnings))
    gates = () if verdicts is None else tuple(result.sentence for result in verdicts.results)
    steps = () if verdicts is None or call.values.get("ask") is None else verdicts.next_steps
    by_kind = {"error": answer.problems, "warning": answer.warnings, "finding": answer.findings, "gate": gates}
    for kind, sentences in {**by_kind, "next": steps}.items():
        for sentence in dict.fromkeys(sentences):
            complain(sentence, kind=kind)
    verdict = "passed" if verdicts is None else verdicts.verdict
    code = FINDING if answer.findings or verdict == "failed" else UNDECIDED if verdict == "undecided" else FINE
    if answer.problems or code != FINE:
        raise typer.Exit(BAD_INPUT if answer.problems else code)


def _write_files(answer: Answer, call: Call) -> None:
    """Write what options name files for: a report, a plot, and the verdicts on gates."""
    if answer.picture is not None and call.values["plot"] is not None:
        save_plot(answer.picture(), call.values["plot"])
    found: dict[str, Any] = {"report": answer.page, "junit": answer.verdicts, "summary": answer.verdicts}
    for name, content in found.items():
        path = call.values.get(name)
        if path is not None and content is not None:
            from trueup.report import save_junit, save_report, save_summary

            if name == "report":
                save_report(as_json(content()), path)
            else:
                save = save_junit if name == "junit" else save_summary
                save(content, path, name=call.name if name == "junit" else f"trueup {call.name}")
            note(f"{name}: {path}")
