"""The exit codes; docs/guide/cli.md lists them for users."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, cast

from trueup.exceptions import TrueupWarning

if TYPE_CHECKING:
    from rich.console import Console


__all__ = [
    "BAD_INPUT",
    "BUG",
    "FINDING",
    "FINE",
    "INTERRUPTED",
    "PIPE_CLOSED",
    "as_json",
    "chance",
    "complain",
    "for_the_command_line",
    "interval",
    "level_words",
    "note",
    "number",
    "percent",
    "plain_warnings",
    "print_json",
    "print_table",
    "progress_bar",
    "say",
    "shown",
]

FINE = 0
FINDING = 1  # the user asked to fail on it (--fail-…), and it was found
BAD_INPUT = 2  # bad usage or a bad file
BUG = 3  # an error nobody foresaw
INTERRUPTED = 130  # as shells have it for Ctrl-C
PIPE_CLOSED = 141  # as shells have it for a reader that went away, e.g. `| head -1`


Column = str | tuple[str, str]
_PIECE = 8192
_MOST_DIGITS = 7
_MOST_TO_TELL_APART = 4
_NOTHING = 1e-9  # what arithmetic leaves of a zero
_WIDE = 10_000  # no line of a table is cut in a pipe


def shown(value: object) -> str:
    r"""A name as one line of harmless text: ``[red]`` and ``=cmd()`` as they are, a line break as ``\n``.

    Examples
    --------
    >>> shown("a\nb"), shown("[red]"), shown(7), shown("\x1b[31m")
    ('a\\nb', '[red]', '7', '\\x1b[31m')
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table; a dash where there is none, and more digits where rounding would claim certainty.

    Examples
    --------
    >>> number(0.87654), number(None), number(float("nan")), number(0.99987), number(1.0)
    ('0.877', '–', '–', '0.9999', '1.000')
    """
    return "–" if value is None or math.isnan(value) else f"{value:.{_digits(digits, value)}f}"


def percent(value: float | None, digits: int = 0) -> str:
    """A share for a table; neither all nor nothing unless it is so.

    Examples
    --------
    >>> percent(0.954), percent(0.9541, 1), percent(0.9999, 1), percent(0.0001, 1), percent(1.0)
    ('95%', '95.4%', 'over 99.9%', 'under 0.1%', '100%')
    """
    if value is None or math.isnan(value):
        return "–"
    least = 10.0 ** -(digits + 2)
    if 0 < value < least / 2:
        return f"under {least:.{digits}%}"
    if 1 - least / 2 <= value < 1:
        return f"over {1 - least:.{digits}%}"
    return f"{value:.{digits}%}"


def chance(probability: float | None) -> str:
    """A probability from draws, which never claims certainty.

    Examples
    --------
    >>> chance(0.5), chance(1.0), chance(0.0)
    ('50%', 'over 99.9%', 'under 0.1%')
    """
    from trueup.report.sentences import chance as in_words

    return in_words(probability)


def level_words(level: float) -> str:
    """The probability of an interval, never rounded to 100%.

    Examples
    --------
    >>> level_words(0.95), level_words(0.999), level_words(0.99999)
    ('95%', '99.9%', '99.999%')
    """
    from trueup.report.sentences import percent as in_words

    return in_words(level)


def interval(low: float, high: float, digits: int = 3) -> str:
    """An interval for a table, with more digits where fewer would make its ends one, or certain.

    Examples
    --------
    >>> interval(0.8, 0.91), interval(0.99912, 0.99987), interval(0.9, 1.0)
    ('0.800 to 0.910', '0.9991 to 0.9999', '0.900 to 1.000')
    """
    if math.isnan(low) or math.isnan(high):
        return "–"
    # As many as tell the ends apart, but not many more.
    apart = math.ceil(-math.log10((high - low) / 2)) if 0 < high - low < math.inf else digits
    places = _digits(max(digits, min(apart, _MOST_TO_TELL_APART)), low, high)
    return f"{low:.{places}f} to {high:.{places}f}"


def _digits(least: int, *values: float) -> int:
    """Digits that do not show as 0 or 1 what is neither."""

    def is_rounded_off(value: float, digits: int) -> bool:
        return min(abs(value), abs(1 - value)) > _NOTHING and round(value, digits) in (0.0, 1.0)

    return next((k for k in range(least, _MOST_DIGITS) if not any(is_rounded_off(v, k) for v in values)), _MOST_DIGITS)


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

    _console().print(Text("\n".join(shown(line) for line in text.split("\n"))))


def note(text: str) -> None:
    """Tell something on standard error that is not part of the result, e.g. where a file was written."""
    from rich.text import Text

    _console(stderr=True).print(Text(shown(text)))


def complain(text: str, *, kind: Literal["error", "finding", "warning"] = "error") -> None:
    """One line on standard error: ``error: …``, ``finding: …`` or ``warning: …``."""
    from rich.text import Text

    style = {"error": "bold red", "finding": "bold magenta", "warning": "yellow"}[kind]
    _console(stderr=True).print(Text.assemble((f"{kind}: ", style), shown(for_the_command_line(text))), soft_wrap=True)


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    """A table for people.

    Parameters
    ----------
    columns : sequence
        The headings, or pairs of heading and alignment; by default the first column is left and the others right.
    rows : sequence of sequences
        The cells, as text already (see `number`, `percent`, `interval`) or anything that `shown` makes text of.
    title : str, optional
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=None if title is None else Text(shown(title), style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for k, column in enumerate(columns):
        heading, justify = column if isinstance(column, tuple) else (column, "left" if k == 0 else "right")
        table.add_column(Text(heading), justify=cast(Any, justify), overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    _console().print(table)


def as_json(value: Any) -> Any:
    """What `json.dumps` takes: numpy numbers and arrays as plain ones, names as text where they are keys, NaN as null.

    Examples
    --------
    >>> as_json({1: float("nan"), "a": (1, 2)})
    {'1': None, 'a': [1, 2]}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def print_json(data: Any) -> None:
    """One JSON document on standard output; with ``--json`` nothing else may go there."""
    text = json.dumps(as_json(data), indent=2, allow_nan=False) + "\n"
    # In pieces: with PYTHONUNBUFFERED one big write to a pipe whose reader has gone is cut off without an error.
    for start in range(0, len(text), _PIECE):
        sys.stdout.write(text[start : start + _PIECE])


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], None] | None]:
    """A function to call with the share of the work done, or None where standard error is no terminal.

    Inside, Ctrl-C ends the program at once with exit code 130. Compiled chains cannot be stopped, and the interpreter
    would wait for their end. So no file must be written inside.

    Examples
    --------
    >>> with progress_bar("evaluating") as hear:
    ...     pass  # evaluate(..., progress=hear)
    """
    if not sys.stderr.isatty():
        with _leaving_on_interrupt(lambda: None):
            yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with (
        Progress(*columns, console=_console(stderr=True), transient=True) as bar,
        _leaving_on_interrupt(bar.stop),
    ):
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
def plain_warnings(*, everything: bool = False) -> Iterator[None]:
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


_VALUE = re.compile(r'\b(missing|unknown|unknown_class|noise|duplicates|method|target|view|items)="([\w-]+)"')
_COLUMN = re.compile(r"name it with (item|labeler|label|prediction|score|system|truth)=…")
_NUMPY = re.compile(r"\bnp\.(?:int|float)\d+\(([^()]*)\)")
_FIRST_ROW = re.compile(r"\(first: row (\d+)\)")
# Longer phrases first: a short one may be a part of them.
_PHRASES = {
    "declare what that means: missing=None for no vote, abstain=None for an abstention": (
        "declare what that means: --no-vote '' for no vote, --abstain '' for an abstention"
    ),
    "pass missing=None": "pass --no-vote ''",
    "abstain=… for an abstention": "--abstain … for an abstention",
    "file_format=…": "--format, which is for standard input",
    "system=…": "--system",
    "pass classes=[…] with all that could be chosen": "name all that could be chosen with --class, once for each",
    "read the votes with classes=[…]": "name all classes with --class",
    "predict them, select the others with labels.select, or pass": "predict them, or pass",
    ": convert one of them, e.g. with int(…)": ": write them alike in both files",
    "pass Predictions.from_scores, arrays of scores, or class probabilities": (
        "add a column of scores (--score), or of the probability of each class (--probability)"
    ),
    "pass positive= to compare or Predictions.from_scores, or class probabilities": (
        "pass --positive, or a column with the probability of each class (--probability)"
    ),
    "pass positive= to compare or Predictions.from_scores": "pass --positive",
    "pass Predictions.from_scores": "add a column of scores (--score)",
    "pass threshold= to from_scores": "add a column of predictions",
    "they are kept, and without_labeler() leaves them out": "they are kept; remove their rows to leave them out",
    "with labels.without_labeler": "by removing its rows from the votes",
    ", add gold with labels.with_gold, or pass known rates with trueup.noise.Confusion": ", or add gold with --gold",
    ", or pass known rates with trueup.noise.Confusion": "",
    ", pass known rates with trueup.noise.Confusion": "",
    "with labels.with_gold": "with --gold",
    "labels.with_gold": "--gold",
    "pass n_draws": "pass --draws",
    "raise n_draws": "raise --draws",
}


def for_the_command_line(sentence: str) -> str:
    """A sentence of the library with options in place of parameters.

    Rows are counted from 0 there; here from 1, as in a file without its header.

    Examples
    --------
    >>> for_the_command_line('predict them, or pass missing="ignore"')
    'predict them, or pass --missing ignore'
    >>> for_the_command_line("got 1 of 3 rows where it is (first: row 0); name it with label=…")
    'got 1 of 3 rows where it is (first: row 1 after the header); name it with --label'
    """
    for phrase, words in _PHRASES.items():
        sentence = sentence.replace(phrase, words)
    sentence = _COLUMN.sub(lambda match: f"name it with --{match[1]}", sentence)
    sentence = _FIRST_ROW.sub(lambda match: f"(first: row {int(match[1]) + 1} after the header)", sentence)
    sentence = _NUMPY.sub(r"\1", sentence)
    sentence = re.sub(r"missing=('[^']*') for no vote", r"--no-vote \1 for no vote", sentence)
    return _VALUE.sub(lambda match: f"--{match[1].replace('_', '-')} {match[2]}", sentence)
