"""All figures of docs/figures/ by one command: run what measures them, keep what it prints, make the pages from it.

Run ``python -m benchmarks.figures [name ...]``; without names all are measured, which takes hours. A figure whose
stored result was measured with the same versions and the same modules is left alone, so an interrupted run goes on
where it stopped; ``--again`` measures it anew. ``--quick`` only shows that every command works: nothing is stored.
``--page`` measures nothing and makes the pages from what is stored. ``--list`` says what there is, and how old.

What a command prints is stored as ``benchmarks/results/<name>.txt`` under a header with the versions, without times of
sections and paths of the machine, so that a difference of two runs is a difference of figures. Beside it
``<name>.json`` has the same as data (`benchmarks._results`). How pages are made of it says `benchmarks._figure_pages`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import trueup
from benchmarks import _figure_pages as pages
from benchmarks._coverage_tally import say
from benchmarks._data import data_folder
from benchmarks._results import Result

ROOT = Path(__file__).parents[1]
FIRST_PAGE = ROOT / "docs" / "figures.md"
FOLDER = ROOT / "docs" / "figures"
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("numpy", "scipy", "scikit-learn")
SECONDS = re.compile(r" +\(\d+(?:\.\d+)? s\)(?= ===$|$)", re.MULTILINE)
SKIPPED = re.compile(r"^(?:.* was )?skipped: (.*)$", re.MULTILINE)
BLOCK = re.compile(r"(<!-- (begin|table): ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Figure:
    """A command whose output is figures."""

    name: str
    command: tuple[str, ...]  # what follows ``python``
    page: str
    quick: str = "--quick"  # the option that makes it a matter of minutes, "" for none
    why_not: str = "It takes more than five minutes of one core."  # that it may not have been run with this version

    @property
    def line(self) -> str:
        """The command as a user types it."""
        return " ".join(("python", *self.command))

    @property
    def file(self) -> Path:
        """Where its output is stored; its data lie beside it."""
        return RESULTS / f"{self.name}.txt"

    @property
    def data(self) -> Path:
        """Where its result is stored as data."""
        return RESULTS / f"{self.name}.json"


def _read_figures(path: Path) -> dict[str, Figure]:
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    options = {"quick": tables.pop("_quick"), "why_not": tables.pop("_why_not")}
    return {
        name: Figure(name, tuple(command.split()), page, **{o: by[name] for o, by in options.items() if name in by})
        for page, commands in tables.items()
        for name, command in commands.items()
    }


FIGURES = _read_figures(Path(__file__).with_suffix(".toml"))


def header(figure: Figure) -> str:
    """The command and the versions it is measured with."""
    versions = ", ".join([f"trueup {trueup.__version__}", *(f"{package} {version(package)}" for package in PACKAGES)])
    return f"$ {figure.line}\n{versions}, Python {platform.python_version()}, {platform.machine()}\n"


def clean(printed: str, *, folders: Sequence[tuple[str, str]] = ()) -> str:
    """What was printed without the seconds of sections, blanks at the end of lines and paths of this machine."""
    for path, name in folders:
        printed = printed.replace(path, name)
    lines = [line.rstrip() for line in SECONDS.sub("", printed).splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def stored(figure: Figure) -> str | None:
    """The stored output with its header, or None."""
    return figure.file.read_text(encoding="utf-8") if figure.file.exists() else None


def result_of(figure: Figure) -> Result | None:
    """The stored result as data, or None."""
    return Result.read(figure.data) if figure.data.exists() else None


def is_current(figure: Figure) -> bool:
    """Whether it is stored, measured with these versions and with the modules as they are."""
    result = result_of(figure)
    return result is not None and (stored(figure) or "").startswith(header(figure)) and result.changed_modules == []


def outputs(page: str) -> str:
    """What stands between the markers of the outputs of a page."""
    figures = [figure for figure in FIGURES.values() if figure.page == page]
    lines = [pages.output_of(one.line, one.file.name, stored(one) and result_of(one), one.why_not) for one in figures]
    return "\n".join(lines) + "\n"


def table(name: str) -> str:
    """What stands between the markers of a table."""
    rows = pages.asked_rows()[name]
    texts = {row.figure: text for row in rows if (text := stored(FIGURES[row.figure])) is not None}
    results = {figure: result for figure in texts if (result := result_of(FIGURES[figure])) is not None}
    return pages.table_of(rows, texts, results, {row.figure: FIGURES[row.figure].line for row in rows})


def page_with(page: str) -> str:
    """The page with every block and every table as it should be; an unknown name is an error."""
    known = {"begin": {figure.page for figure in FIGURES.values()}, "table": pages.asked_rows().keys() | {"headlines"}}
    unknown = sorted({name for _, kind, name, _ in BLOCK.findall(page) if name not in known[kind]})
    if unknown:
        raise ValueError(
            f"the page has blocks of unknown names {', '.join(unknown)}; there are {', '.join(sorted(known['begin']))}"
        )

    def made(kind: str, name: str) -> str:
        if kind == "begin":
            return outputs(name)
        return _headline_lines() if name == "headlines" else table(name)

    return BLOCK.sub(lambda m: f"{m[1]}{made(m[2], m[3])}{m[4]}", page)


def _headline_lines() -> str:
    """The figures of the first page, each with its picture."""
    lines = []
    for headline, result, (text, _, _) in _headlines():
        older = "" if result.is_of_this_version else f" (version {result.versions['trueup']})"
        value, asked = f"{text}{headline.unit}", f"asked: {headline.asked}"
        lines += [
            f"**[{headline.what}](figures/{headline.page}.md)**: {value}{older}; {asked}.",
            "",
            f"![{headline.what}: {value}; {asked}](figures/{headline.name}.svg)",
            "",
        ]
    return "\n".join(lines)


def _headlines() -> list[tuple[pages.Headline, Result, tuple[str, float, float]]]:
    """Headlines with a stored result: the result, and the value as text and as numbers."""
    found = []
    for headline in pages.headlines():
        figure = FIGURES[headline.figure]
        text, result = stored(figure), result_of(figure)
        if text is not None and result is not None:
            found.append((headline, result, pages.value_of(headline, text, result)))
    return found


def pictures() -> dict[str, str]:
    """The pictures of the first page by the name of their files."""
    return {f"{line.name}.svg": pages.picture(line, *value) for line, _, value in _headlines()}


def write_pages() -> None:
    """Make all pages and pictures from what is stored."""
    for path in (FIRST_PAGE, *sorted(FOLDER.glob("*.md"))):
        path.write_text(page_with(path.read_text(encoding="utf-8")), encoding="utf-8")
    for name, content in pictures().items():
        (FOLDER / name).write_text(content, encoding="utf-8")


def _folders() -> list[tuple[str, str]]:
    """Paths of this machine, and what is printed in their place."""
    try:
        data = [(str(data_folder()), "$TRUEUP_DATA")]
    except FileNotFoundError:  # then no command can have printed its path
        data = []
    return [*data, (f"{ROOT}{os.sep}", ""), (str(Path.home()), "~")]


def measure(figure: Figure, *, quick: bool = False) -> tuple[str, dict[str, Any]] | None:
    """Run the command; its output and what it used, or None with a sentence if it failed or lacked its data."""
    more = [figure.quick] if quick and figure.quick else []
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.json"
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks._record", str(record), *figure.command, *more],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            check=False,
        )
        used = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    if done.returncode:
        say(f"{figure.name}: status {done.returncode} of {figure.line}, nothing is stored\n{done.stdout[-2000:]}")
        return None
    lacks = SKIPPED.search(done.stdout)
    if lacks:
        say(f"{figure.name}: a part was skipped, nothing is stored: {lacks[1]}")
        return None
    return clean(done.stdout, folders=_folders()), used


def store(figure: Figure, printed: str, used: Mapping[str, Any]) -> None:
    """Keep what was printed, and the same as data."""
    text = f"{header(figure)}\n{printed}"
    RESULTS.mkdir(exist_ok=True)
    figure.file.write_text(text, encoding="utf-8")
    Result.of_text(text, used).write(figure.data)


def _age(figure: Figure) -> str:
    result = result_of(figure)
    if result is None:
        return "-"
    if not result.is_of_this_version:
        return f"older: {result.versions['trueup']}"
    changed = result.changed_modules
    if changed is None:
        return "modules not recorded"
    return f"{len(changed)} of {len(result.modules or ())} modules have changed" if changed else "stored"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, store, write the page; the status is 1 if a command failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(FIGURES)}; by default all")
    parser.add_argument("--again", action="store_true", help="also what is stored with these versions")
    parser.add_argument("--quick", action="store_true", help="show that the commands work; nothing is stored")
    parser.add_argument("--page", action="store_true", help="only make the pages from what is stored")
    parser.add_argument("--list", action="store_true", help="only say which figures there are")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - FIGURES.keys())
    if unknown:
        parser.error(f"unknown figures {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    wanted = [FIGURES[name] for name in options.names or FIGURES]
    if options.list:
        for figure in wanted:
            print(f"{figure.name:20} {_age(figure):28} {figure.line}")
        return 0
    failed = False
    for figure in () if options.page else wanted:
        if options.quick and not figure.quick:
            say(f"{figure.name}: has no quick run")
            continue
        if not (options.quick or options.again) and is_current(figure):
            say(f"{figure.name}: stored already")
            continue
        say(f"{figure.name}: {figure.line} …")
        measured = measure(figure, quick=options.quick)
        failed |= measured is None
        if options.quick:
            print(measured[0] if measured else "", end="", flush=True)
        elif measured is not None:
            store(figure, *measured)
    if not options.quick:
        write_pages()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
