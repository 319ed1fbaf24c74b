"""The pages of figures, made from what is stored: tables of asked beside measured, outputs, and pictures.

On a page, what stands between ``<!-- table: name -->`` or ``<!-- begin: name -->`` and ``<!-- end -->`` is made; the
prose around is written by hand and has no measured number. benchmarks/asked.toml says what is asked and where in a
stored result the answer stands, so a figure without one cannot appear. A reference that ends with a limit, as in
``{1 > shared > 2 :: 93 to 97}``, is set in bold where what stands there misses it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from benchmarks._results import Result

ASKED = Path(__file__).parent / "asked.toml"
NOT_RUN = "not run with this version"
CHANGED = re.compile(r" Since then \d+ of \d+ modules have changed: .*\.(?=\n|$)")
MOST_NAMED = 4  # modules that have changed
REFERENCE = re.compile(r"\{([^{}]+)\}")
LIMIT = " :: "
LIMITS = re.compile(r"(?:at least (?P<least>\S+)|at most (?P<most>\S+)|(?P<low>\S+) to (?P<high>\S+))")
NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?")
STANDARD_ERRORS = 2  # outside of a limit that chance is granted
AGREED = re.compile(r"^(\d+) of (\d+) agree\.$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """What is asked of a figure, in words."""

    figure: str  # the name of the stored result
    what: str
    asked: str
    measured: str | None = None  # words with references into the stored result; None: the table points to the output
    missing: str | None = None  # why there can be no measured value


@dataclass(frozen=True)
class Headline:
    """One of the figures of the first page, with what its picture needs."""

    figure: str
    what: str
    asked: str
    measured: str  # a reference, to a number with or without ± and its standard error
    unit: str
    axis: tuple[float, float]  # the ends of the scale
    good: tuple[float, float]  # the ends of what was asked for
    page: str  # where there is more

    @property
    def name(self) -> str:
        """Of the picture."""
        return re.sub(r"\W+", "-", self.what.lower()).strip("-")[:48].strip("-")


def asked_rows(path: Path = ASKED) -> dict[str, list[Row]]:
    """The rows of each table by its name."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: [Row(**row) for row in rows] for name, rows in tables.items() if name != "headline"}


def headlines(path: Path = ASKED) -> list[Headline]:
    """The figures of the first page."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["headline"]
    return [Headline(**{**row, "axis": tuple(row["axis"]), "good": tuple(row["good"])}) for row in rows]


def filled(template: str, text: str, result: Result) -> str:
    """The template with each reference replaced by what stands there; one that leads nowhere is an error."""
    return REFERENCE.sub(lambda m: _referred(m[1], text, result), template)


def _referred(reference: str, text: str, result: Result) -> str:
    place, _, limit = reference.partition(LIMIT)
    cell = _cell(place, text, result)
    return f"**{cell}**" if limit and misses(cell, limit) else cell


def misses(cell: str, limit: str) -> bool:
    """Whether a number is outside of "at least …", "at most …" or "… to …", by two standard errors where it has one."""
    match = LIMITS.fullmatch(limit)
    if match is None:
        raise ValueError(f"a limit is 'at least x', 'at most x' or 'x to y', and not {limit!r}")
    value, *rest = _numbers(cell)
    chance = STANDARD_ERRORS * rest[0] if "±" in cell else 0.0
    low, high = match["least"] or match["low"], match["most"] or match["high"]
    return (low is not None and value + chance < float(low)) or (high is not None and value - chance > float(high))


def _numbers(told: str) -> list[float]:
    return [float(part.replace(",", "")) for part in NUMBER.findall(told.replace("−", "-"))]


def _cell(reference: str, text: str, result: Result) -> str:
    if reference == "agreed":
        counts = [(int(yes), int(all_)) for yes, all_ in AGREED.findall(text)]
        return f"{sum(yes for yes, _ in counts)} of {sum(all_ for _, all_ in counts)}"
    if reference.startswith("~"):
        match = re.search(reference[1:], text)
        if match is None:
            raise KeyError(f"the output of {result.command} has no {reference[1:]!r}")
        return match[1].strip()
    number, row, columns = reference.split(" > ")
    cells = [result.tables[int(number) - 1].cell(row, column) for column in columns.split(" ± ")]
    return " ± ".join(cells).removesuffix(".0000")  # counts are printed as other numbers of an experiment are


def table_of(
    rows: list[Row], texts: Mapping[str, str], results: Mapping[str, Result], commands: Mapping[str, str]
) -> str:
    """A table in Markdown: figure, asked, measured, command; what is older is marked."""
    lines = ["| figure | asked | measured | command |", "|---|---|---|---|"]
    last = None
    for row in rows:
        command = "" if commands[row.figure] == last else f"`{commands[row.figure]}`"
        last = commands[row.figure]
        lines.append(f"| {row.what} | {row.asked} | {_measured(row, texts, results)} | {command} |")
    return "\n".join(lines) + "\n"


def _measured(row: Row, texts: Mapping[str, str], results: Mapping[str, Result]) -> str:
    if row.missing:
        return f"{NOT_RUN}: {row.missing}"
    if row.figure not in results:
        return NOT_RUN
    result = results[row.figure]
    value = "see the output" if row.measured is None else filled(row.measured, texts[row.figure], result)
    return value if result.is_of_this_version else f"{value} (version {result.versions['trueup']})"


def output_of(command: str, file: str, result: Result | None, why_not: str) -> str:
    """One line on a figure: its command, how it was measured, and the file of what was printed."""
    if result is None:
        return f"- `{command}`: {NOT_RUN}. {why_not}"
    age = "" if result.is_of_this_version else f"**older, version {result.versions['trueup']}**, "
    seeds = f", seeds {result.seeds[0]} to {result.seeds[1]}" if result.seeds else ""
    repeated = f", {', '.join(result.repetitions[:4])}" if result.repetitions else ""
    changed = f"{_changes_since(result)}" if result.modules else " Modules not recorded."
    return f"- `{command}`: {age}`benchmarks/results/{file}`, {result.processor}{repeated}{seeds}.{changed}"


def _changes_since(result: Result) -> str:
    """Which of its modules have changed since, as a sentence; nothing where none has."""
    names = result.changed_modules
    if not names or result.modules is None:
        return ""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    named = ", ".join(f"`{name}`" for name in names[:MOST_NAMED])
    return f" Since then {len(names)} of {len(result.modules)} modules have changed: {named}{more}."


def without_marks(page: str) -> str:
    """A page without the marks that depend on the sources of the day."""
    return CHANGED.sub("", page)


def value_of(headline: Headline, text: str, result: Result) -> tuple[str, float, float]:
    """What is told of a headline, its number, and the standard error, nan if there is none."""
    told = filled(headline.measured, text, result)
    numbers = _numbers(told)
    return told, numbers[0], numbers[1] if "±" in told else float("nan")


def picture(headline: Headline, told: str, value: float, error: float) -> str:
    """A scale with what was asked for as a band and what was measured as a dot, with two standard errors either way."""
    low, high = headline.axis

    def at(x: float) -> float:
        return 20 + 480 * (min(max(x, low), high) - low) / (high - low)

    left, right = at(headline.good[0]), at(headline.good[1])
    spread = "" if error != error else f'<path d="M{at(value - 2 * error):.1f} 30H{at(value + 2 * error):.1f}"/>'
    alt = f"{headline.what}: {told}{headline.unit}; asked: {headline.asked}"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 64" width="520" height="64" role="img">'
        f"<title>{escape(alt, quote=False)}</title>"
        '<rect width="520" height="64" rx="6" fill="#ffffff"/>'
        f'<rect x="{left:.1f}" y="18" width="{max(right - left, 3):.1f}" height="24" fill="#9ad0c2"/>'
        '<path d="M20 30H500" stroke="#555555"/>'
        f'<g stroke="#7a1f4b" stroke-width="5">{spread}</g>'
        f'<circle cx="{at(value):.1f}" cy="30" r="8" fill="#7a1f4b"/>'
        '<g font-family="sans-serif" font-size="13" fill="#222222">'
        f'<text x="20" y="60">{low:g}</text><text x="500" y="60" text-anchor="end">{high:g}</text>'
        f'<text x="260" y="60" text-anchor="middle">asked: {escape(headline.asked, quote=False)}</text>'
        f'<text x="{min(max(at(value), 60), 460):.1f}" y="14" text-anchor="middle">'
        f"{escape(told + headline.unit, quote=False)}</text>"
        "</g></svg>\n"
    )
