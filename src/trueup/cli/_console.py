"""The exit codes; docs/guide/cli.md lists them for users."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from trueup.exceptions import Sentence, TrueupError, TrueupWarning

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
    "in_our_words",
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
    "speaking",
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
    text = in_our_words(value) if isinstance(value, str) else str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


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
    _console(stderr=True).print(Text.assemble((f"{kind}: ", style), shown(text)), soft_wrap=True)


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
    if isinstance(value, str):
        return in_our_words(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else str(value)


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
            complain(message.sentence if isinstance(message, TrueupWarning) else str(message), kind="warning")

    with warnings.catch_warnings():
        warnings.simplefilter("default" if everything else "ignore")
        warnings.simplefilter("always", TrueupWarning)
        warnings.showwarning = show
        yield


# The option of the running command for each parameter of the library, and how to do here what a function does there.
_OPTIONS: ContextVar[Mapping[str, str]] = ContextVar("options", default=MappingProxyType({}))
_IN_PLACE_OF = {
    "labels.with_gold": "--gold",
    "labels.without_labeler": "remove their rows from the votes",
    "Predictions.from_scores": "a column of them, see --score",
    "Predictions.from_probabilities": "a column for each class, see --probability",
    "rates.error_bounds": "trueup rates bounds",
}


_OF_OTHER_COMMANDS = {"noise": "--noise", "method": "--method"}


@contextmanager
def speaking(**options: str) -> Iterator[None]:
    """Inside, sentences of the library name these options in place of its parameters; errors come out so.

    Examples
    --------
    >>> with speaking(duplicates="--duplicates"):
    ...     in_our_words(Sentence('⟨row 0⟩ is a repetition; pass ⟨duplicates="first"⟩'))
    'row 1 after the header is a repetition; pass --duplicates first'
    """
    token = _OPTIONS.set({**_OPTIONS.get(), **options})
    try:
        yield
    except TrueupError as error:
        error.args = (in_our_words(error.sentence),)
        raise
    finally:
        _OPTIONS.reset(token)


def in_our_words(sentence: str) -> str:
    """A sentence with options in place of the parameters that are marked in it."""
    return sentence.spelled(_spell) if isinstance(sentence, Sentence) else sentence


def _spell(name: str, value: str | None) -> str:
    """What the command line has for a parameter; one that it lacks is said to be for Python."""
    if name == "row":  # counted from 0 there, here from 1, as in a file without its header
        return f"row {int(value or 0) + 1} after the header"
    if name in _IN_PLACE_OF:
        return _IN_PLACE_OF[name]
    option = _OPTIONS.get().get(name) or _OF_OTHER_COMMANDS.get(name)
    if option is None:
        return f"{name if value is None else f'{name}={value}'} in Python"
    typed = "''" if value == "None" else (value or "").strip("[]\"'…")
    return option if typed in ("", "True") else f"{option} {typed}"
