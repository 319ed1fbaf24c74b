"""Run ``python -m experiments.lamstork2003``, or one part of it: ``… table3 [--quick]``.

Each part prints what is expected beside ours. Figures need matplotlib (``pip install 'trueup[plot]'``) and are saved as
PNG. Parts that need the data folder are skipped where it is absent.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.lamstork2003.arithmetic import ARITHMETIC
from experiments.lamstork2003.bounds import cifar10h, table3
from experiments.lamstork2003.figures import FIGURES
from experiments.lamstork2003.report import FOLDER, checks, comparison

__all__ = ["PARTS", "main"]

PARTS = {**ARITHMETIC, "table3": table3, "cifar10h": cifar10h}
NAMES = [*PARTS, "curves"]


def main(arguments: Sequence[str] | None = None) -> int:
    """The parts; the status is 1 if a number is not what expected.json asks and it does not say why."""
    parser = argparse.ArgumentParser(prog="python -m experiments.lamstork2003", description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", metavar="what", help=f"of {', '.join(NAMES)}; by default all")
    parser.add_argument("--out", type=Path, default=FOLDER / "output", help="folder of the figures")
    parser.add_argument("--quick", action="store_true", help="one naive Bayes, one draw of votes, fewer runs")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.what) - set(NAMES))
    if unknown:
        parser.error(f"unknown parts {', '.join(unknown)}; there are {', '.join(NAMES)}")
    measured, wrong = {}, []
    for name in options.what or NAMES:
        print(f"\n{'═' * 100}\n{name}\n")
        if name in PARTS:
            try:
                text, measured[name] = PARTS[name](quick=options.quick)
            except FileNotFoundError as error:
                print(f"skipped: {error}")
                continue
            print(f"{text}\n\n{comparison(name, measured[name])}", flush=True)
            wrong += [f"{name}: {c.label}" for c in checks(name, measured[name]) if not (c.ok or c.differs)]
        if name in FIGURES:
            import matplotlib as mpl

            mpl.use("Agg")
            print(FIGURES[name](options.out), flush=True)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    if wrong:
        print("\nNot as expected:", *wrong, sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
