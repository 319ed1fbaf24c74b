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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import trueup
from benchmarks import _figure_pages as pages
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
WHY_NOT = "It takes more than five minutes of one core."
_HOURS = "It takes two to four hours of one core; what was measured is kept, so that it can be gone on with."


@dataclass(frozen=True)
class Figure:
    """A command whose output is figures.

    Attributes
    ----------
    name : str
        Of the stored output and of the block on the page.
    command : tuple of str
        What follows ``python``.
    section : str
        What it is about; `PAGES` has the page of each section.
    quick : str or None
        The option that makes it a matter of minutes at most; None if it has none, then a quick run leaves it out.
    why_not : str
        Why it may not have been run with this version.
    """

    name: str
    command: tuple[str, ...]
    section: str
    quick: str | None = "--quick"
    why_not: str = WHY_NOT

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


def _module(
    name: str, module: str, section: str, *arguments: str, quick: str | None = "--quick", why_not: str = WHY_NOT
) -> Figure:
    return Figure(name, ("-m", module, *arguments), section, quick, why_not)


_CALIBRATION, _REAL = "Calibration", "Real crowds and judges, no truth used"
_COMPARING, _RATES = "Comparing systems", "Rates, unbiased estimates, labelers"
_ACTIVE = "Active testing"
_CLEANING, _TRAINING = "Cleaning", "Training"
_SPEED, _PAPERS, _STRUCTURE, _EXPORTS = "Speed and memory", "Papers", "Structure", "Exports of other tools"
_SHARED, _JUDGES, _DETECTION, _SCALE = "Sessions that people share", "Judges", "Detection", "Scale"
_PEERS = "Beside other libraries"
# The page of docs/figures/ on which the figures of a section stand.
PAGES = {
    _CALIBRATION: "calibration",
    _REAL: "real-crowds",
    _COMPARING: "comparing",
    _RATES: "rates",
    _ACTIVE: "active",
    _CLEANING: "cleaning",
    _TRAINING: "training",
    _SPEED: "speed",
    _SCALE: "scale",
    _STRUCTURE: "structure",
    _EXPORTS: "exports",
    _SHARED: "sessions",
    _JUDGES: "judges",
    _DETECTION: "detection",
    _PAPERS: "papers",
    _PEERS: "peers",
}

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        _module(
            "coverage-simulated",
            "benchmarks.coverage",
            _CALIBRATION,
            "su",
            "small",
            "learned",
            "baseline",
            "multiclass",
        ),
        _module("core-checks", "benchmarks.core", _CALIBRATION, "checks"),
        _module("core-smooth", "benchmarks.core", _CALIBRATION, "smooth"),
        _module("core-advice", "benchmarks.core", _CALIBRATION, "advice"),
        _module("core-sparse", "benchmarks.core", _CALIBRATION, "sparse"),
        *(
            _module(f"real-crowds-{part}", "experiments.real_crowds", _REAL, part, quick=None)
            for part in ("fit", "systems", "pairs", "auc", "active")
        ),
        _module("core-pairs", "benchmarks.core", _COMPARING, "pairs"),
        _module("decisions-error", "benchmarks.decisions", _COMPARING, "error"),
        _module("decisions-checks", "benchmarks.decisions", _COMPARING, "checks"),
        _module("decisions-intervals", "benchmarks.decisions", _COMPARING, "intervals"),
        _module("decisions-look", "benchmarks.decisions", _SPEED, "look"),
        _module("rates", "benchmarks.rates", _RATES),
        _module("unbiased", "benchmarks.unbiased", _RATES),
        Figure("labeler-ranking", ("tests/labelers/ranking_runs.py",), _RATES, None),
        _module("vetting", "benchmarks.vetting", _ACTIVE, "crowd"),
        _module("vetting-rare", "benchmarks.vetting", _ACTIVE, "rare"),
        _module("experts", "benchmarks.experts", _ACTIVE),
        _module("cleaning", "benchmarks.cleaning", _CLEANING, "fast", "decisions", "memory", "replay"),
        _module("cleaning-rounds", "benchmarks.cleaning", _CLEANING, "rounds"),
        _module("cleaning-curves", "benchmarks.cleaning", _CLEANING, "curves", why_not=_HOURS),
        _module("training-sentiment", "benchmarks.training", _TRAINING, "sentiment-text"),
        _module("training-labelme", "benchmarks.training", _TRAINING, "labelme"),
        _module("training-leaves", "benchmarks.training", _TRAINING, "leaves"),
        _module("training-uci", "benchmarks.training", _TRAINING, "ionosphere", "selection"),
        _module("training-cost", "benchmarks.training", _TRAINING, "cost", "torch"),
        _module("training-gpu", "benchmarks.training", _TRAINING, "gpu"),
        Figure("training-network", ("examples/train_network.py",), _TRAINING, None),
        _module("core-speed", "benchmarks.core", _SPEED, "speed"),
        _module("memory", "benchmarks.memory", _SPEED, quick="500000"),
        _module("scale-gpu", "benchmarks.scale_gpu", _SPEED),
        _module("scale-crowdkit", "benchmarks.scale", _SCALE, "crowdkit"),
        _module("scale-files", "benchmarks.scale", _SCALE, "files"),
        _module("scale-cluster", "benchmarks.scale", _SCALE, "cluster"),
        _module("scale-kills", "benchmarks.scale", _SCALE, "kills"),
        _module("adapters", "benchmarks.adapters", _EXPORTS),
        _module("serve-kills", "benchmarks.serve", _SHARED, "kills"),
        _module("serve-sessions", "benchmarks.serve", _SHARED, "sessions"),
        _module("serve-load", "benchmarks.serve", _SHARED, "load"),
        _module("serve-memory", "benchmarks.serve", _SHARED, "memory"),
        _module("serve-fuzz", "benchmarks.serve", _SHARED, "fuzz"),
        _module("judges-rate", "benchmarks.judges", _JUDGES, "rate"),
        _module("judges-slices", "benchmarks.judges", _JUDGES, "slices"),
        _module("judges-clusters", "benchmarks.judges", _JUDGES, "clusters"),
        _module("judges-drift", "benchmarks.judges", _JUDGES, "drift"),
        _module("judges-ratings", "benchmarks.judges", _JUDGES, "ratings"),
        _module("judges-preferences", "benchmarks.judges", _JUDGES, "preferences"),
        _module("judges-panel", "benchmarks.judges", _JUDGES, "panel"),
        _module("judges-bias", "benchmarks.judges", _JUDGES, "bias"),
        _module("detection-hard", "benchmarks.detection", _DETECTION, "hard"),
        _module("detection-experts", "benchmarks.detection", _DETECTION, "experts", "missed"),
        _module("detection-vetted", "benchmarks.detection", _DETECTION, "vetted"),
        _module("detection-speed", "benchmarks.detection", _DETECTION, "speed"),
        _module("peers-labels", "benchmarks.peers", _PEERS, "labels"),
        _module("peers-intervals", "benchmarks.peers", _PEERS, "intervals"),
        _module("agreement-peers", "benchmarks.agreement", _PEERS, "peers"),
        _module("agreement-coverage", "benchmarks.agreement", _CALIBRATION, "coverage"),
        _module("agreement-speed", "benchmarks.agreement", _SPEED, "speed"),
        _module("structure", "benchmarks.structure", _STRUCTURE, quick=None),
        _module("command-line", "benchmarks.command_line", _SPEED),
        _module("integrations-pytest", "benchmarks.integrations", _SPEED, "pytest"),
        _module(
            "integrations-mcp",
            "benchmarks.integrations",
            _SPEED,
            "mcp",
            why_not="It needs the package mcp: .venv-integrations/bin/python -m benchmarks.figures integrations-mcp.",
        ),
        _module("lamstork2003", "experiments.lamstork2003", _PAPERS),
        _module("nguyen2018", "experiments.nguyen2018", _PAPERS, "figure5", "figure6"),
        _module("nguyen2018-tags", "experiments.nguyen2018", _PAPERS, "figure8-tags"),
        _module("nguyen2018-masks", "experiments.nguyen2018", _PAPERS, "figure7", "figure8"),
        _module(
            "dolatshah2018",
            "experiments.dolatshah2018",
            _PAPERS,
            "figure4",
            "figure7",
            "figure8",
            "figure9",
            "figure10",
        ),
        _module(
            "dolatshah2018-optimisations", "experiments.dolatshah2018", _PAPERS, "figure11", "figure12", why_not=_HOURS
        ),
        _module("dolatshah2018-strategies", "experiments.dolatshah2018", _PAPERS, "figure13", why_not=_HOURS),
        _module("dolatshah2018-crowds", "experiments.dolatshah2018", _PAPERS, "crowds", why_not=_HOURS),
        _module("calderon2025", "experiments.calderon2025", _PAPERS),
        _module("urkullu2019", "experiments.urkullu2019", _PAPERS),
        _module("su2024", "experiments.su2024", _PAPERS, "all"),
        _module("su2024-information", "experiments.su2024", _PAPERS, "figure6", "figure7", "figure8"),
    )
}


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
    """The stored result as data, or None; outputs stored without data are read for what they tell."""
    if figure.data.exists():
        return Result.read(figure.data)
    text = stored(figure)
    return None if text is None else Result.of_text(text)


def is_current(figure: Figure) -> bool:
    """Whether it is stored, measured with these versions and with the modules as they are."""
    result = result_of(figure)
    return result is not None and (stored(figure) or "").startswith(header(figure)) and result.changed_modules == []


def outputs(page: str) -> str:
    """What stands between the markers of the outputs of a page."""
    figures = [figure for figure in FIGURES.values() if PAGES[figure.section] == page]
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
    known = {"begin": set(PAGES.values()), "table": pages.asked_rows().keys() | {"headlines"}}
    unknown = sorted({name for _, kind, name, _ in BLOCK.findall(page) if name not in known[kind]})
    if unknown:
        raise ValueError(f"the page has blocks of unknown names {', '.join(unknown)}; there are {', '.join(PAGES)}")
    return BLOCK.sub(lambda m: f"{m[1]}{_made(m[2], m[3])}{m[4]}", page)


def _made(kind: str, name: str) -> str:
    if kind == "begin":
        return outputs(name)
    return _headline_lines() if name == "headlines" else table(name)


def _headline_lines() -> str:
    """The figures of the first page, each with its picture."""
    lines = []
    for headline in _measured_headlines():
        told, _, _ = _headline(headline)
        result = result_of(FIGURES[headline.figure])
        older = "" if result is None or result.is_of_this_version else f" (version {result.versions['trueup']})"
        value, asked = f"{told}{headline.unit}", f"asked: {headline.asked}"
        lines += [
            f"**[{headline.what}](figures/{headline.page}.md)**: {value}{older}; {asked}.",
            "",
            f"![{headline.what}: {value}; {asked}](figures/{headline.name}.svg)",
            "",
        ]
    return "\n".join(lines)


def _measured_headlines() -> list[pages.Headline]:
    """Those with a stored result."""
    return [headline for headline in pages.headlines() if stored(FIGURES[headline.figure]) is not None]


def _headline(headline: pages.Headline) -> tuple[str, float, float]:
    figure = FIGURES[headline.figure]
    text, result = stored(figure), result_of(figure)
    assert text is not None
    assert result is not None
    return pages.value_of(headline, text, result)


def pictures() -> dict[str, str]:
    """The pictures of the first page by the name of their files."""
    return {f"{line.name}.svg": pages.picture(line, *_headline(line)) for line in _measured_headlines()}


def write_pages() -> None:
    """Make all pages and pictures from what is stored, and data beside outputs that have none."""
    for figure in FIGURES.values():
        text = stored(figure)
        if text is not None and not figure.data.exists():
            Result.of_text(text).write(figure.data)
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
    more = [figure.quick] if quick and figure.quick is not None else []
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
        _say(f"{figure.name}: status {done.returncode} of {figure.line}, nothing is stored\n{done.stdout[-2000:]}")
        return None
    lacks = SKIPPED.search(done.stdout)
    if lacks:
        _say(f"{figure.name}: a part was skipped, nothing is stored: {lacks[1]}")
        return None
    return clean(done.stdout, folders=_folders()), used


def store(figure: Figure, printed: str, used: Mapping[str, Any]) -> None:
    """Keep what was printed, and the same as data."""
    text = f"{header(figure)}\n{printed}"
    RESULTS.mkdir(exist_ok=True)
    figure.file.write_text(text, encoding="utf-8")
    Result.of_text(text, used).write(figure.data)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


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
        if options.quick and figure.quick is None:
            _say(f"{figure.name}: has no quick run")
            continue
        if not (options.quick or options.again) and is_current(figure):
            _say(f"{figure.name}: stored already")
            continue
        _say(f"{figure.name}: {figure.line} …")
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
