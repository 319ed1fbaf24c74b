"""What a command prints: sentences, tables, JSON, progress and warnings, in the terms of the command line."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from trueup._base.wording import chance, interval, level_words, number
from trueup.exceptions import TrueupError, TrueupWarning

if TYPE_CHECKING:
    from rich.console import Console

    from trueup.posteriors import Estimate


# The exit codes; docs/guide/cli.md lists them for users.
FINE = 0
FINDING = 1  # the user asked to fail on it, and it was found: a gate that failed, or another finding
BAD_INPUT = 2  # bad usage or a bad file
BUG = 3  # an error nobody foresaw
DISK_FULL = 4  # a file could not be written for want of room
UNDECIDED = 5  # a gate is neither passed nor failed
INTERRUPTED = 130  # as shells have it for Ctrl-C
PIPE_CLOSED = 141  # as shells have it for a reader that went away, e.g. `| head -1`


Column = str | tuple[str, str]
AnyAnswer = TypeVar("AnyAnswer", bound=Any)
_PIECE = 8192
_WIDE = 10_000  # no line of a table is cut in a pipe

# Texts of the library in a result; strings elsewhere may be names that users gave.
_KEYS_OF_SENTENCES = {"advice", "findings", "notes", "panel_sentence", "reading_notes", "sentence", "warnings"}
_PARAMETER = re.compile(r"`((?:[^\W\d]\w*\.)*[^\W\d]\w*(?:\(\))?)(?:([= ])([^`]*))?`")

# The option of the running command for each parameter of the library, and how to do here what a function does there.
_OPTIONS: ContextVar[Mapping[str, str]] = ContextVar("options", default=MappingProxyType({}))
_OF_OTHER_COMMANDS = {"noise": "--noise", "method": "--method"}
_IN_PLACE_OF = {
    "labels.with_gold": "--gold",
    "pairs.with_gold": "--gold",
    "labels.with_items": "--items",
    "labels.binned()": "--n-bins of trueup share",
    "labels.items": "the items in the file of votes",
    "labels.labelers": "the labelers in the file of votes",
    "labels.without_labeler": "remove their rows from the votes",
    "Predictions.from_scores": "a column of them, see --score",
    "Predictions.from_probabilities": "a column for each class, see --class-probability",
    "rates.error_bounds": "trueup rates bounds",
    "trueup.labelers.draw_sample": "trueup plan draw",
    "trueup.ActiveTest": "trueup vet",
    "list_metrics()": "trueup metrics",
}


@contextmanager
def option_names(**options: str) -> Iterator[None]:
    """Inside, sentences of the library name these options in place of its parameters; errors come out so."""
    token = _OPTIONS.set({**_OPTIONS.get(), **options})
    try:
        yield
    except TrueupError as error:
        error.args = (to_cli_terms(error.sentence),)
        raise
    finally:
        _OPTIONS.reset(token)


def name_options(**options: str) -> None:
    """From here on, to the end of the command, sentences of the library name these options, too."""
    _OPTIONS.set({**_OPTIONS.get(), **options})


def to_cli_terms(sentence: str) -> str:
    """A sentence with options in place of the parameters that are marked in it."""
    return _PARAMETER.sub(_spell, sentence)


def with_cli_terms(answer: AnyAnswer) -> AnyAnswer:
    """An answer whose warnings give advice in the terms of the command line, also in a report."""
    return replace(answer, warnings=tuple(map(to_cli_terms, answer.warnings)))


def _spell(match: re.Match[str]) -> str:
    """What the command line has for a parameter; one that it lacks is marked as of Python."""
    name, value = match[1], match[3]
    if match[2] == " " and name != "row":  # a command
        return match[0]
    if name == "row":  # counted from 0 there, here from 1, as in a file without its header
        return f"row {int(value or 0) + 1} after the header"
    if name in _IN_PLACE_OF:
        return _IN_PLACE_OF[name]
    option = _OPTIONS.get().get(name) or _OF_OTHER_COMMANDS.get(name)
    if option is None:
        return f"{match[0][1:-1]} in Python" if not name.isidentifier() or value is not None else match[0]
    typed = "''" if value == "None" else (value or "").strip("[]\"'…")
    return option if typed in ("", "True") else f"{option} {typed}"


# Sentences and tables -----------------------------------------------------------------------------------------------


def shown(value: object) -> str:
    r"""A name as one line of harmless text: ``[red]`` and ``=cmd()`` as they are, a line break as ``\n``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    class Piped(Console):
        """A console that leaves a closed pipe to the program, which has an exit code of its own for it."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    return Piped(file=stream, markup=False, highlight=False, emoji=False, width=None if stream.isatty() else _WIDE)


def say(text: str = "") -> None:
    """Print a sentence of the result; on a terminal it is wrapped between words."""
    from rich.text import Text

    _console().print(Text("\n".join(shown(line) for line in to_cli_terms(text).split("\n"))))


def note(text: str) -> None:
    """Print on standard error what is not part of the result, e.g. where a file was written."""
    from rich.text import Text

    _console(stderr=True).print(Text(shown(to_cli_terms(text))))


def complain(text: str, *, kind: str = "error") -> None:
    """One line on standard error: ``error: …``, ``finding: …``, ``gate: …``, ``next: …`` or ``warning: …``."""
    from rich.text import Text

    style = {"error": "bold red", "warning": "yellow", "next": "cyan"}.get(kind, "bold magenta")
    _console(stderr=True).print(Text.assemble((f"{kind}: ", style), shown(to_cli_terms(text))), soft_wrap=True)


def print_table(
    columns: Sequence[Column], rows: Sequence[Sequence[object]], *, title: str | None = None, places: int | None = None
) -> None:
    """A table for people: names first; numbers are rounded, a pair of numbers is an interval, None is a dash."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    heading = None if title is None else Text(shown(title), style="bold")
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for k, column in enumerate(columns):
        text, justify = column if isinstance(column, tuple) else (column, "left" if k == 0 else "right")
        table.add_column(Text(shown(text)), justify=cast(Any, justify), overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(_written(cell, places) if k else cell)) for k, cell in enumerate(row)))
    _console().print(table)


def print_records(
    columns: Mapping[Any, str | Callable[[Any], object]],
    records: Sequence[Mapping[str, Any]],
    *,
    title: str | None = None,
    places: int | None = None,
) -> None:
    """A table of dictionaries such as those of `to_dict`: for each heading a key, or a function of the dictionary.

    The key "interval" is the ends "low" and "high"; numbers whose key begins with "prob" are probabilities.
    """

    def cell(record: Mapping[str, Any], key: str | Callable[[Any], object]) -> object:
        if callable(key):
            return key(record)
        if key == "interval":
            return record["low"], record["high"]
        return chance(record[key]) if key.startswith("prob") else record[key]

    rows = [[cell(record, key) for key in columns.values()] for record in records]
    print_table(list(columns), rows, title=title, places=places)


def print_report_table(table: Mapping[str, Any]) -> None:
    """A table of `trueup.report`, as its pages have it."""
    columns = [(name, "left" if k < table["n_words"] else "right") for k, name in enumerate(table["head"])]
    rows = [[cell if isinstance(cell, str) else f"{cell[0]} ({cell[1]})" for cell in row] for row in table["rows"]]
    print_table(columns, rows, title=table["caption"])


def show_page(report: Mapping[str, Any], *, without: Collection[str] = ()) -> None:
    """The page of an answer for people: its sentences and its tables, without notes that are printed elsewhere."""
    from trueup.report.saving import PAGES

    page = PAGES[report["page"]](report)
    for sentence in [page["title"], *page["verdict"], *page["remarks"]]:
        say(sentence)
    say(f"{', '.join(f'{number} {what}' for number, what in page['facts'])}.")
    for part in page["parts"]:
        for table in part["tables"]:
            print_report_table(table)
    for sentence in [*page["next_steps"], *(f"- {note}" for note in page["notes"] if note not in without)]:
        say(sentence)


def ends_of(estimate: Estimate, level: float) -> dict[str, float]:
    """What `print_records` shows of an estimate."""
    low, high = estimate.interval(level)
    return {"mean": estimate.mean, "low": low, "high": high}


def interval_head(level: float) -> str:
    """The heading of a column of intervals."""
    return f"{level_words(level)} interval"


def _written(value: Any, places: int | None) -> object:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, tuple):
        return interval(value[0], value[1], places)
    if value is None or isinstance(value, float):
        return number(value, places or 3)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value


# JSON ---------------------------------------------------------------------------------------------------------------


def as_json(value: Any) -> Any:
    """What `json.dumps` takes: numpy as plain numbers and lists, names as text where they are keys, NaN as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {
            str(key): as_json(_in_cli_terms(inner) if str(key) in _KEYS_OF_SENTENCES else inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _in_cli_terms(value: Any) -> Any:
    """A text, or several, with options in place of parameters."""
    if isinstance(value, str):
        return to_cli_terms(value)
    return [_in_cli_terms(inner) for inner in value] if isinstance(value, list | tuple) else value


def print_json(data: Any) -> None:
    """One JSON document on standard output; with ``--json`` nothing else may go there."""
    text = json.dumps(as_json(data), indent=2, allow_nan=False) + "\n"
    # In pieces: with PYTHONUNBUFFERED one big write to a pipe whose reader has gone is cut off without an error.
    for start in range(0, len(text), _PIECE):
        sys.stdout.write(text[start : start + _PIECE])


# While a command runs -----------------------------------------------------------------------------------------------


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], None] | None]:
    """A function to call with the share of the work done, or None where standard error is no terminal.

    Inside, Ctrl-C ends the program at once with exit code 130. Compiled chains cannot be stopped, and the interpreter
    would wait for their end. So no file must be written inside.
    """
    if not sys.stderr.isatty():
        with _leaving_on_interrupt(lambda: None):
            yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True) as bar, _leaving_on_interrupt(bar.stop):
        task = bar.add_task(shown(what), total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextmanager
def _leaving_on_interrupt(tidy: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return

    def leave(number: int, frame: FrameType | None) -> None:
        tidy()
        complain("interrupted; nothing was written")
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(INTERRUPTED)

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def warnings_shown(*, everything: bool = False) -> Iterator[None]:
    """Show trueup's warnings as one line each on standard error, and others only if `everything` is wanted."""
    seen: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if str(message) not in seen:
            seen.add(str(message))
            complain(str(message), kind="warning")

    with warnings.catch_warnings():
        warnings.simplefilter("default" if everything else "ignore")
        warnings.simplefilter("always", TrueupWarning)
        warnings.showwarning = show
        yield
