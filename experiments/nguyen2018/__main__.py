"""Run ``python -m experiments.nguyen2018 figure5``, or ``… all [--quick] [--out folder]``.

Each command prints what the paper says beside ours. Seeds are fixed. ``--out`` also draws the figures as PNG (needs
``pip install 'trueup[plot]'``). The digits come with scikit-learn; figure7 and figure8 need ``trueup[coco]`` and the
open sets in the folder that TRUEUP_DATA names, and are skipped without it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments._command import run_and_judge
from experiments.nguyen2018.figures import FIGURES, N_RUNS, QUICK_RUNS
from experiments.nguyen2018.report import FOLDER


def main(arguments: Sequence[str] | None = None) -> int:
    """The commands; the status is 1 if a number disagrees with the paper's and expected.json does not say why."""
    parser = argparse.ArgumentParser(prog="python -m experiments.nguyen2018", description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help=f"of {', '.join(FIGURES)}; by default all", metavar="what")
    parser.add_argument("--out", type=Path, help="folder of the drawn figures")
    parser.add_argument("--quick", action="store_true", help="few data sets; nothing is judged")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--runs", type=int, help=f"data sets or runs; {N_RUNS} by default, {QUICK_RUNS} if quick")
    options = parser.parse_args(arguments)
    n_runs = options.runs or (QUICK_RUNS if options.quick else N_RUNS)
    if n_runs < 1:
        parser.error(f"--runs must be at least 1, got {options.runs}")
    unknown = sorted(set(options.what) - {*FIGURES, "all"})
    if unknown:
        parser.error(f"unknown {', '.join(unknown)}; there are {', '.join(FIGURES)} and all")
    wanted = [name for name in options.what if name != "all"] or list(FIGURES)
    if options.out is not None:
        import matplotlib as mpl

        mpl.use("Agg")
    return run_and_judge(
        wanted,
        lambda name: FIGURES[name](options.out, n_runs=n_runs),
        folder=FOLDER,
        quick=options.quick,
        json_file=options.json,
    )


if __name__ == "__main__":
    sys.exit(main())
