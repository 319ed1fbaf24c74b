"""Do the intervals hold the truth? Coverage on simulated and real data, beside what is common today, and its cost.

Run ``python -m benchmarks.coverage [section ...] [--quick] [--json out.json]``; without names all sections are run.
Simulations and samplers are seeded. Real data are found through TRUEUP_DATA (see `benchmarks._data`) and their
sections are skipped, with a sentence, where the folder is absent. Truth is used for measuring only. ``±`` is one
binomial standard error. Times are those of this machine with whatever else it does.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import _coverage_known as known
from benchmarks import _coverage_learned as learned
from benchmarks import _coverage_real as real
from benchmarks import _coverage_speed as speed
from benchmarks._coverage_tally import Section, say
from trueup.exceptions import TrueupWarning

SECTIONS: dict[str, Callable[[bool], Section]] = {
    "su": known.su,
    "small": known.small,
    "multiclass": known.multiclass,
    "learned": learned.learned,
    "baseline": learned.baseline,
    "real": real.graded,
    "cifar": real.cifar,
    "speed": speed.speed,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}; by default all")
    parser.add_argument("--quick", action="store_true", help="few runs, short chains, small sets: minutes for all")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.sections) - set(SECTIONS))
    if unknown:
        parser.error(f"unknown sections {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    numbers: dict[str, Any] = {"quick": options.quick}
    for name in options.sections or SECTIONS:
        say(f"{name} …")
        started = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TrueupWarning)  # what they warn of is what is measured here
                section = SECTIONS[name](options.quick)
        except FileNotFoundError as error:
            print(f"\n=== {name} ===\nskipped: {error}", flush=True)
            continue
        seconds = time.perf_counter() - started
        print(f"\n=== {name} ({seconds:.0f} s) ===\n{section.text}", flush=True)
        numbers[name] = {**section.numbers, "seconds": seconds}
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
