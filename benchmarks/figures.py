"""All figures of docs/figures.md by one command: run what measures them, keep what it prints, put it on the page.

Run ``python -m benchmarks.figures [name ...]``; without names all are measured, which takes hours. A figure whose
stored output was measured with the same versions is left alone, so an interrupted run goes on where it stopped;
``--again`` measures it anew. ``--quick`` only shows that every command works: nothing is stored. ``--page`` measures
nothing and writes the stored outputs into the page. ``--list`` says what there is.

What a command prints is stored as ``benchmarks/results/<name>.txt`` under a header with the versions, without times of
sections and paths of the machine, so that a difference of two runs is a difference of figures. On the page it stands
between ``<!-- begin: name -->`` and ``<!-- end -->``; the prose and the tables around are written by hand.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks._data import data_folder

__all__ = ["FIGURES", "Figure", "block", "clean", "header", "main", "page_with", "stored"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "figures.md"
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("trueup", "numpy", "scipy", "scikit-learn")
SECONDS = re.compile(r" +\(\d+(?:\.\d+)? s\)(?= ===$|$)", re.MULTILINE)
SKIPPED = re.compile(r"^(?:.* was )?skipped: (.*)$", re.MULTILINE)
BLOCK = re.compile(r"(<!-- begin: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


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
        The heading of the page under which its block stands.
    quick : str or None
        The option that makes it a matter of minutes at most; None if it has none, then a quick run leaves it out.
    """

    name: str
    command: tuple[str, ...]
    section: str
    quick: str | None = "--quick"

    @property
    def line(self) -> str:
        """The command as a user types it."""
        return " ".join(("python", *self.command))

    @property
    def file(self) -> Path:
        """Where its output is stored."""
        return RESULTS / f"{self.name}.txt"


def _module(name: str, module: str, section: str, *arguments: str, quick: str | None = "--quick") -> Figure:
    return Figure(name, ("-m", module, *arguments), section, quick)


_CALIBRATION, _REAL = "Calibration", "Real crowds and judges, no truth used"
_COMPARING, _RATES = "Comparing systems", "Rates, unbiased estimates, labelers"
_ACTIVE, _TRUTH = "Active testing", "Finding the truth"
_CLEANING, _TRAINING = "Cleaning", "Training"
_SPEED, _PAPERS, _STRUCTURE, _EXPORTS = "Speed and memory", "Papers", "Structure", "Exports of other tools"
_SHARED, _JUDGES, _DETECTION = "Sessions that people share", "Judges", "Detection"

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
        _module("coverage-real", "benchmarks.coverage", _REAL, "real"),
        _module("engine-votes", "benchmarks.engine", _CALIBRATION, "independent", "dependent"),
        _module("engine-gold", "benchmarks.engine", _CALIBRATION, "gold"),
        _module("engine-sbc", "benchmarks.engine", _CALIBRATION, "sbc"),
        _module("real-crowds-fit", "experiments.real_crowds", _REAL, "fit"),
        _module("real-crowds-votes", "experiments.real_crowds", _REAL, "votes", "left-out", "differences"),
        _module("real-crowds-thinned", "experiments.real_crowds", _REAL, "thinned"),
        _module("real-crowds-gold", "experiments.real_crowds", _REAL, "gold"),
        _module("coverage-cifar", "benchmarks.coverage", _REAL, "cifar"),
        _module("compare", "benchmarks.compare", _COMPARING),
        _module("engine-compare", "benchmarks.engine", _COMPARING, "pairs", "auc", "copies"),
        _module("rates", "benchmarks.rates", _RATES),
        _module("unbiased", "benchmarks.unbiased", _RATES),
        Figure("labeler-ranking", ("tests/labelers/ranking_runs.py",), _RATES, None),
        _module("vetting", "benchmarks.vetting", _ACTIVE, "crowd", "judge", "cifar", "needed", "sampling", "speed"),
        _module("vetting-rare", "benchmarks.vetting", _ACTIVE, "rare"),
        _module("aggregation", "benchmarks.aggregation", _TRUTH),
        _module("cleaning", "benchmarks.cleaning", _CLEANING),
        _module("training-sentiment", "benchmarks.training", _TRAINING, "sentiment-text"),
        _module("training-labelme", "benchmarks.training", _TRAINING, "labelme"),
        _module("training-leaves", "benchmarks.training", _TRAINING, "leaves"),
        _module("training-uci", "benchmarks.training", _TRAINING, "ionosphere", "selection"),
        _module("training-cost", "benchmarks.training", _TRAINING, "cost", "torch"),
        Figure("training-network", ("examples/train_network.py",), _TRAINING, None),
        _module("speed", "benchmarks.speed", _SPEED),
        _module("engine-speed", "benchmarks.engine", _SPEED, "speed"),
        _module("memory", "benchmarks.memory", _SPEED, quick="500000"),
        _module("adapters", "benchmarks.adapters", _EXPORTS),
        _module("serve-kills", "benchmarks.serve", _SHARED, "kills"),
        _module("serve-sessions", "benchmarks.serve", _SHARED, "sessions"),
        _module("serve-early", "benchmarks.serve", _SHARED, "early"),
        _module("serve-load", "benchmarks.serve", _SHARED, "load"),
        _module("serve-memory", "benchmarks.serve", _SHARED, "memory"),
        _module("serve-fuzz", "benchmarks.serve", _SHARED, "fuzz"),
        _module("serve-intrusions", "benchmarks.serve", _SHARED, "intrusions"),
        _module("judges-rate", "benchmarks.judges", _JUDGES, "rate"),
        _module("judges-slices", "benchmarks.judges", _JUDGES, "slices", "clusters", "copies"),
        _module("judges-drift", "benchmarks.judges", _JUDGES, "drift"),
        _module("judges-ratings", "benchmarks.judges", _JUDGES, "ratings"),
        _module("judges-preferences", "benchmarks.judges", _JUDGES, "preferences"),
        _module("detection-hard", "benchmarks.detection", _DETECTION, "hard"),
        _module("detection-experts", "benchmarks.detection", _DETECTION, "experts", "missed"),
        _module("detection-vetted", "benchmarks.detection", _DETECTION, "vetted"),
        _module("structure", "benchmarks.structure", _STRUCTURE, quick=None),
        _module("coverage-speed", "benchmarks.coverage", _SPEED, "speed"),
        _module("ranking-speed", "benchmarks.ranking_speed", _SPEED),
        _module("command-line", "benchmarks.command_line", _SPEED),
        _module("lamstork2003", "experiments.lamstork2003", _PAPERS),
        _module("nguyen2018", "experiments.nguyen2018", _PAPERS, "all"),
        _module("dolatshah2018", "experiments.dolatshah2018", _PAPERS, "all"),
        _module("urkullu2019", "experiments.urkullu2019", _PAPERS),
        _module("su2024", "experiments.su2024", _PAPERS, "all"),
        _module("su2024-information", "experiments.su2024", _PAPERS, "figure6", "figure7", "figure8"),
    )
}


def header(figure: Figure) -> str:
    """The command and the versions it is measured with."""
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
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


def block(figure: Figure) -> str:
    """What stands between the markers of a figure."""
    text = stored(figure)
    if text is None:
        return f"Output of `{figure.line}`: not stored yet; measured values above, if any, were copied by hand.\n"
    return (
        f'<details markdown="1">\n<summary>Output of <code>{figure.line}</code></summary>\n\n'
        f"```text\n{text}```\n\n</details>\n"
    )


def page_with(page: str) -> str:
    """The page with every block as it should be; an unknown name is an error."""
    unknown = sorted({name for _, name, _ in BLOCK.findall(page)} - FIGURES.keys())
    if unknown:
        raise ValueError(f"the page has blocks of unknown figures {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    return BLOCK.sub(lambda m: f"{m[1]}{block(FIGURES[m[2]])}{m[3]}", page)


def _folders() -> list[tuple[str, str]]:
    """Paths of this machine, and what is printed in their place."""
    try:
        data = [(str(data_folder()), "$TRUEUP_DATA")]
    except FileNotFoundError:  # then no command can have printed its path
        data = []
    return [*data, (f"{ROOT}{os.sep}", ""), (str(Path.home()), "~")]


def measure(figure: Figure, *, quick: bool = False) -> str | None:
    """Run the command; its output, or None with a sentence on standard error if it failed or lacked its data."""
    more = [figure.quick] if quick and figure.quick is not None else []
    done = subprocess.run(
        [sys.executable, *figure.command, *more],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        _say(f"{figure.name}: status {done.returncode} of {figure.line}, nothing is stored\n{done.stdout[-2000:]}")
        return None
    lacks = SKIPPED.search(done.stdout)
    if lacks:
        _say(f"{figure.name}: a part was skipped, nothing is stored: {lacks[1]}")
        return None
    return clean(done.stdout, folders=_folders())


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, store, write the page; the status is 1 if a command failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(FIGURES)}; by default all")
    parser.add_argument("--again", action="store_true", help="also what is stored with these versions")
    parser.add_argument("--quick", action="store_true", help="show that the commands work; nothing is stored")
    parser.add_argument("--page", action="store_true", help="only write the stored outputs into the page")
    parser.add_argument("--list", action="store_true", help="only say which figures there are")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - FIGURES.keys())
    if unknown:
        parser.error(f"unknown figures {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    wanted = [FIGURES[name] for name in options.names or FIGURES]
    if options.list:
        for figure in wanted:
            print(f"{figure.name:20} {'stored' if figure.file.exists() else '-':8} {figure.line}")
        return 0
    failed = False
    for figure in () if options.page else wanted:
        if options.quick and figure.quick is None:
            _say(f"{figure.name}: has no quick run")
            continue
        if not (options.quick or options.again) and (stored(figure) or "").startswith(header(figure)):
            _say(f"{figure.name}: stored already")
            continue
        _say(f"{figure.name}: {figure.line} …")
        printed = measure(figure, quick=options.quick)
        failed |= printed is None
        if options.quick:
            print(printed or "", end="", flush=True)
        elif printed is not None:
            RESULTS.mkdir(exist_ok=True)
            figure.file.write_text(f"{header(figure)}\n{printed}", encoding="utf-8")
    if not options.quick:
        PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
