"""Run ``python -m experiments.su2024 table10``, ``… figure12 --out folder`` or ``… all [--quick]``.

Each command prints the paper's value beside ours. Seeds are fixed, so the same command prints the same numbers. Figures
need matplotlib (``pip install 'trueup[plot]'``) and are saved as PNG.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from experiments.su2024.figures import FIGURES
from experiments.su2024.information import INFORMATION_FIGURES
from experiments.su2024.report import FOLDER, checks, comparison
from experiments.su2024.tables import TABLES, Answer


def run(name: str, *, out: Path, quick: bool = False) -> Answer:
    """One table or figure: its text, and the numbers that expected.json knows."""
    if name in TABLES:
        return TABLES[name](quick=quick)
    import matplotlib as mpl

    mpl.use("Agg")
    return {**INFORMATION_FIGURES, **FIGURES}[name](out, quick=quick)


def main(arguments: Sequence[str] | None = None) -> int:
    """The commands; the status is 1 if a number disagrees with the paper's and expected.json does not say why."""
    parser = argparse.ArgumentParser(prog="python -m experiments.su2024", description=__doc__.splitlines()[0])
    names = [*TABLES, *INFORMATION_FIGURES, *FIGURES]
    parser.add_argument("what", nargs="+", choices=[*names, "all"], help="a table, a figure, or all", metavar="what")
    parser.add_argument("--out", type=Path, default=FOLDER / "output", help="folder of the figures")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and smaller grids; nothing is judged")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args(arguments)
    wanted = names if "all" in options.what else options.what
    measured, wrong = {}, []
    for name in wanted:
        print(f"{name} …", file=sys.stderr, flush=True)
        started = time.monotonic()
        text, measured[name] = run(name, out=options.out, quick=options.quick)
        took = time.monotonic() - started
        print(f"\n{'═' * 100}\n{name}  ({took:.0f} s)\n\n{text}\n\n{comparison(name, measured[name])}", flush=True)
        wrong += [f"{name}: {c.label}" for c in checks(name, measured[name]) if not (c.ok or c.differs)]
        if options.json:
            options.json.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    if wrong:
        print("\nOutside the tolerance:", *wrong, sep="\n  ")
    return 1 if wrong and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
