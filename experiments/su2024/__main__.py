"""Run ``python -m experiments.su2024 table10``, ``… figure12 --out folder`` or ``… all [--quick]``.

Each command prints the paper's value beside ours. Seeds are fixed, so the same command prints the same numbers. Figures
need matplotlib (``pip install 'trueup[plot]'``) and are saved as PNG.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments._command import run_and_judge
from experiments.su2024.equivalence import EQUIVALENCE
from experiments.su2024.figures import FIGURES
from experiments.su2024.information import INFORMATION_FIGURES
from experiments.su2024.report import FOLDER
from experiments.su2024.tables import TABLES, Answer
from experiments.su2024.training_figures import TRAINING_FIGURES

DRAWN = {**INFORMATION_FIGURES, **FIGURES, **TRAINING_FIGURES, **EQUIVALENCE}


def run(name: str, *, out: Path, quick: bool = False) -> Answer:
    """One table or figure: its text, and the numbers that expected.json knows."""
    if name in TABLES:
        return TABLES[name](quick=quick)
    import matplotlib as mpl

    mpl.use("Agg")
    return DRAWN[name](out, quick=quick)


def main(arguments: Sequence[str] | None = None) -> int:
    """The commands; the status is 1 if a number disagrees with the paper's and expected.json does not say why."""
    parser = argparse.ArgumentParser(prog="python -m experiments.su2024", description=__doc__.splitlines()[0])
    names = [*TABLES, *DRAWN]
    parser.add_argument("what", nargs="+", choices=[*names, "all"], help="a table, a figure, or all", metavar="what")
    parser.add_argument("--out", type=Path, default=FOLDER / "output", help="folder of the figures")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and smaller grids; nothing is judged")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args(arguments)
    wanted = names if "all" in options.what else options.what
    return run_and_judge(
        wanted,
        lambda name: run(name, out=options.out, quick=options.quick),
        folder=FOLDER,
        quick=options.quick,
        json_file=options.json,
    )


if __name__ == "__main__":
    sys.exit(main())
