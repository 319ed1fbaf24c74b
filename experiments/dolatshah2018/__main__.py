"""Run ``python -m experiments.dolatshah2018 figure7``, or ``… all [--quick] [--out folder]``.

Each command prints what the paper says beside ours. Seeds are fixed. ``--out`` also draws the figures as PNG (needs
``pip install 'trueup[plot]'``). Figures 10 and 13 and ``crowds`` need the open data sets, see TRUEUP_DATA. Each
finished learning curve of Figures 11–13 is kept, and an interrupted command goes on from there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments._command import run_and_judge
from experiments.dolatshah2018.cleaning_figures import CLEANING_FIGURES
from experiments.dolatshah2018.figures import FIGURES, Answer

FOLDER = Path(__file__).parent
COMMANDS = (*FIGURES, *CLEANING_FIGURES)


def main(arguments: Sequence[str] | None = None) -> int:
    """The commands; the status is 1 if a number disagrees with the paper's and expected.json does not say why."""
    parser = argparse.ArgumentParser(prog="python -m experiments.dolatshah2018", description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help=f"of {', '.join(COMMANDS)}; by default all", metavar="what")
    parser.add_argument("--out", type=Path, help="folder of the drawn figures")
    parser.add_argument("--quick", action="store_true", help="few data sets; nothing is judged")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--repetitions", type=int, help="of each learning curve (Figures 11–13, crowds); by default 30")
    options = parser.parse_args(arguments)
    repetitions = options.repetitions or (1 if options.quick else 30)

    def run(name: str) -> Answer:
        if name in FIGURES:
            return FIGURES[name](options.out, quick=options.quick)
        return CLEANING_FIGURES[name](options.out, quick=options.quick, repetitions=repetitions)

    unknown = sorted(set(options.what) - {*COMMANDS, "all"})
    if unknown:
        parser.error(f"unknown {', '.join(unknown)}; there are {', '.join(COMMANDS)} and all")
    wanted = [name for name in options.what if name != "all"] or list(COMMANDS)
    if options.out is not None:
        import matplotlib as mpl

        mpl.use("Agg")
    return run_and_judge(
        wanted,
        run,
        folder=FOLDER,
        quick=options.quick,
        json_file=options.json,
    )


if __name__ == "__main__":
    sys.exit(main())
