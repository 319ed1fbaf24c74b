"""Run ``python -m experiments.real_crowds``, or one part of it: ``… votes [--quick] [--sets crowd-face …]``.

Labelers of the open crowd and judge sets are graded as systems. The sets are found through TRUEUP_DATA; without it
every part is skipped. Each case is kept as it ends, so that an interrupted run goes on where it stopped; ``sources``
prints the table of sets.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks._engine_runs import MOST_PROCESSES, RUNS
from experiments._command import run_and_judge
from experiments.real_crowds.figures import FIGURES, FOLDER, N_REPETITIONS, Plan, sources

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """The parts; the status is 1 if a number is not what expected.json asks and it does not say why."""
    parser = argparse.ArgumentParser(prog="python -m experiments.real_crowds", description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", metavar="what", help=f"of {', '.join(FIGURES)}; by default all; or sources")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="some sets only; nothing is judged")
    parser.add_argument("--repetitions", type=int, default=N_REPETITIONS, help="draws of vetted items of each set")
    parser.add_argument("--quick", action="store_true", help="one labeler of two small sets; nothing is judged")
    parser.add_argument("--processes", type=int, choices=range(1, MOST_PROCESSES + 1), default=MOST_PROCESSES)
    parser.add_argument("--folder", type=Path, default=RUNS, help="where single runs are kept")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.what) - {*FIGURES, "sources"})
    if unknown:
        parser.error(f"unknown parts {', '.join(unknown)}; there are {', '.join(FIGURES)} and sources")
    if options.repetitions < 1:
        parser.error(f"--repetitions must be at least 1, got {options.repetitions}")
    if options.what == ["sources"]:
        print(sources())
        return 0
    plan = Plan(
        names=tuple(options.sets) if options.sets else None,
        quick=options.quick,
        repetitions=options.repetitions,
        processes=1 if options.quick else options.processes,
        folder=options.folder,
    )
    return run_and_judge(
        [name for name in options.what if name != "sources"] or list(FIGURES),
        lambda name: FIGURES[name](plan),
        folder=FOLDER,
        quick=options.quick or bool(options.sets),
        json_file=options.json,
    )


if __name__ == "__main__":
    sys.exit(main())
