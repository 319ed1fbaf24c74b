"""From text a user typed to values, and from values to cells and pictures."""

from __future__ import annotations

import ast
import csv
import io
import os
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from trueup._base.writing import check_writable
from trueup.exceptions import InvalidFile, InvalidParameter, TrueupWarning

__all__ = [
    "Plot",
    "by_name",
    "check_picture",
    "csv_text",
    "parse_matrix",
    "parse_pairs",
    "parse_rate",
    "plain_cell",
    "safe_cell",
    "save_plot",
    "silenced",
]

Plot = Annotated[
    str | None,
    typer.Option("--plot", metavar="PATH", show_default=False, help="Also draw it: .png, .svg or .pdf."),
]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_PICTURES = (".png", ".svg", ".pdf")


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""A table as csv.

    Examples
    --------
    >>> csv_text(["item", "label"], [["a,b", 1]])
    'item,label\n"a,b",1\n'
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()


def safe_cell(value: Any) -> Any:
    """A value that a spreadsheet shows and never runs: text that starts like a formula gets an apostrophe.

    Examples
    --------
    >>> safe_cell("=cmd()"), safe_cell("a=b"), safe_cell(-1)
    ("'=cmd()", 'a=b', -1)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def plain_cell(value: Any, known: Mapping[str, Hashable]) -> Any:
    """What `safe_cell` made safe, as it was; an apostrophe that belongs to a name stays.

    Examples
    --------
    >>> plain_cell("'=cmd()", {"=cmd()": "=cmd()"}), plain_cell("'tis", {"tis": "tis"})
    ('=cmd()', "'tis")
    """
    if isinstance(value, str) and value not in known and value[:1] == "'" and value[1:].startswith(_FORMULA):
        return known.get(value[1:], value)
    return value


def by_name(names: Iterable[Any]) -> dict[str, Hashable]:
    """Names by how they are written, so that what is typed can be found."""
    return {str(name): name for name in names}


def parse_pairs(texts: Iterable[str], *, option: str) -> dict[str, Any]:
    """Values from texts such as "n_items=500": numbers, lists, tuples, None, true and false; all else is text.

    Examples
    --------
    >>> parse_pairs(["n=5", "accuracy=(0.6, 0.9)", "case=bad", "strength=inf"], option="--set")
    {'n': 5, 'accuracy': (0.6, 0.9), 'case': 'bad', 'strength': inf}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InvalidParameter(f"{option} must be NAME=VALUE, got {text!r}; write e.g. {option} n_items=500")
        name = name.strip().replace("-", "_")
        if name in found:
            raise InvalidParameter(f"{option} must name each parameter once, got {name!r} twice; leave one out")
        found[name] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    words: dict[str, Any] = {"inf": float("inf"), "none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def parse_rate(text: str, *, option: str) -> tuple[float, int | None]:
    """A rate such as "0.12", or a count such as "120/1000" with its number.

    Examples
    --------
    >>> parse_rate("0.12", option="--apparent"), parse_rate("120/1000", option="--apparent")
    ((0.12, None), (0.12, 1000))
    """
    count, slash, number = text.partition("/")
    try:
        if not slash:
            return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1), None
        part, whole = int(count), int(number)
    except ValueError:
        raise InvalidParameter(
            f"{option} must be a rate such as 0.12, 12% or 120/1000, got {text!r}; write one of them"
        ) from None
    if not 0 <= part <= whole or whole == 0:
        raise InvalidParameter(f"{option} must be a part of a whole, got {text!r}; write e.g. 120/1000")
    return part / whole, whole


def parse_matrix(text: str, *, option: str) -> list[list[float]]:
    """A matrix such as "520,60;80,340", rows apart by semicolons.

    Examples
    --------
    >>> parse_matrix("520,60; 80,340", option="--joint")
    [[520.0, 60.0], [80.0, 340.0]]
    """
    try:
        rows = [[float(cell) for cell in row.replace(",", " ").split()] for row in text.split(";")]
    except ValueError:
        rows = []
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise InvalidParameter(
            f"{option} must be a matrix of numbers such as '520,60;80,340', got {text!r:.60}; write rows of one "
            "length with ';' between them"
        )
    return rows


def check_picture(path: str) -> Path:
    """Stop before long work whose picture could not be saved."""
    if Path(path).suffix.lower() not in _PICTURES:
        raise InvalidFile(
            f"{path!r} must be a picture, got the suffix {Path(path).suffix!r}; use one of {', '.join(_PICTURES)}"
        )
    check_writable(path)
    return Path(path)


def save_plot(axes: Any, path: Path) -> None:
    """Save the figure of these axes, in the format of the suffix, whole or not at all.

    Whether that can work is best asked before long work, with `check_picture`.
    """
    from trueup._base.optional import require

    figure, target = axes.get_figure(), check_writable(path)
    scratch = target.with_name(f".{target.name[:100]}.{os.getpid()}.part")
    try:
        with scratch.open("wb") as stream:
            figure.savefig(stream, format=path.suffix.lower().lstrip("."))
        scratch.replace(target)
    except OSError as error:
        raise InvalidFile(
            f"{str(path)!r} cannot be written, got {error!s:.100}; check the folder, its rights and the disk"
        ) from error
    finally:
        scratch.unlink(missing_ok=True)
        require("matplotlib.pyplot", purpose="a plot").close(figure)


@contextmanager
def silenced() -> Iterator[None]:
    """No warnings of trueup: what they say is said elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        yield
