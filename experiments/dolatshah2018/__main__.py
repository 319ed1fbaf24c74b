"""Run ``python -m experiments.dolatshah2018 figure7``, or ``… all [--quick] [--out folder]``.

Each command prints what the paper says beside ours. Seeds are fixed. ``--out`` also draws the figures as PNG (needs
``pip install 'trueup[plot]'``). Figure 10 needs the open data sets, see TRUEUP_DATA.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from experiments.dolatshah2018.figures import FIGURES
from experiments.su2024.report import checks, comparison

FOLDER = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """The commands; the status is 1 if a number disagrees with the paper's and expected.json does not say why."""
    parser = argparse.ArgumentParser(prog="python -m experiments.dolatshah2018", description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help=f"of {', '.join(FIGURES)}; by default all", metavar="what")
    parser.add_argument("--out", type=Path, help="folder of the drawn figures")
    parser.add_argument("--quick", action="store_true", help="few data sets; nothing is judged")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.what) - {*FIGURES, "all"})
    if unknown:
        parser.error(f"unknown {', '.join(unknown)}; there are {', '.join(FIGURES)} and all")
    wanted = [name for name in options.what if name != "all"] or list(FIGURES)
    if options.out is not None:
        import matplotlib as mpl

        mpl.use("Agg")
    measured, wrong = {}, []
    for name in wanted:
        print(f"{name} …", file=sys.stderr, flush=True)
        started = time.monotonic()
        try:
            text, measured[name] = FIGURES[name](options.out, quick=options.quick)
        except FileNotFoundError as error:
            print(f"\n{'═' * 100}\n{name} was skipped: {error}", flush=True)
            continue
        took = time.monotonic() - started
        told = comparison(name, measured[name], FOLDER)
        print(f"\n{'═' * 100}\n{name}  ({took:.0f} s)\n\n{text}\n\n{told}", flush=True)
        wrong += [f"{name}: {c.label}" for c in checks(name, measured[name], FOLDER) if not (c.ok or c.differs)]
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    if wrong:
        print("\nOutside the tolerance:", *wrong, sep="\n  ")
    return 1 if wrong and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
