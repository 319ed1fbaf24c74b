"""Does the engine keep its word? Coverage, widths, ranks, copies, calibration of samplers, time.

Run ``python -m benchmarks.engine [section ...] [--runs N] [--quick] [--processes 1] [--folder DIR] [--json out.json]``;
without names all sections are run. Every run is seeded, and kept in a folder as it ends, so that an interrupted
measurement goes on where it stopped; runs of other code are not taken up, and quick ones not kept. ``±`` is one
standard error.

Sections: independent, dependent (votes alone), gold (vetted items, against PPI++), pairs, auc, copies (several
systems), sbc (simulation-based calibration of the samplers), speed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._coverage_tally import say
from benchmarks._engine_compare import AUC_FIGURE, COPIES_FIGURE, PAIRS_FIGURE
from benchmarks._engine_coverage import DEPENDENT_FIGURE, GOLD_FIGURE, INDEPENDENT_FIGURE
from benchmarks._engine_runs import MOST_PROCESSES, Figure, run_cases
from benchmarks._engine_sbc import SBC_FIGURE
from benchmarks._engine_speed import SPEED_FIGURE

FIGURES: dict[str, Figure] = {
    "independent": INDEPENDENT_FIGURE,
    "dependent": DEPENDENT_FIGURE,
    "gold": GOLD_FIGURE,
    "pairs": PAIRS_FIGURE,
    "auc": AUC_FIGURE,
    "copies": COPIES_FIGURE,
    "sbc": SBC_FIGURE,
    "speed": SPEED_FIGURE,
}
RUNS = Path(__file__).parent / "runs"
ONE_AT_A_TIME = frozenset({"speed"})  # what else runs would be measured too


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(FIGURES)}; by default all")
    parser.add_argument("--runs", type=int, help="data sets of each world; by default as many as the figure asks")
    parser.add_argument("--quick", action="store_true", help="a few data sets: that everything works")
    parser.add_argument("--processes", type=int, choices=range(1, MOST_PROCESSES + 1), default=MOST_PROCESSES)
    parser.add_argument("--folder", type=Path, default=RUNS, help="where runs are kept; by default benchmarks/runs")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.sections) - set(FIGURES))
    if unknown:
        parser.error(f"unknown sections {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    if options.runs is not None and options.runs < 1:
        parser.error(f"--runs must be at least 1, got {options.runs}")
    numbers: dict[str, Any] = {"quick": options.quick}
    for name in options.sections or FIGURES:
        figure = FIGURES[name]
        say(f"{name} …")
        started = time.perf_counter()
        n_runs = options.runs or (figure.n_quick if options.quick else figure.n_runs)
        rows = run_cases(
            name,
            figure.run,
            figure.cases(n_runs, quick=options.quick),
            processes=1 if name in ONE_AT_A_TIME else options.processes,
            folder=None if options.quick else options.folder,
        )
        section = figure.summarise(rows)
        print(f"\n=== {name} ({time.perf_counter() - started:.0f} s) ===\n{section.text}", flush=True)
        numbers[name] = section.numbers
        if options.json:
            options.json.write_text(json.dumps(numbers, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
