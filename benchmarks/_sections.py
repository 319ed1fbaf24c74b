"""The command line of a benchmark that is made of sections."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._coverage_tally import Section, say
from trueup.exceptions import TrueupWarning


def run_sections(
    prog: str,
    description: str,
    sections: Mapping[str, Callable[[bool], Section]],
    arguments: Sequence[str] | None = None,
) -> None:
    """Run the sections that are named, or all; ``--quick`` and ``--json`` are understood.

    A section that lacks its data is skipped with a sentence.
    """
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(sections)}; by default all")
    parser.add_argument("--quick", action="store_true", help="few runs, short chains, small sets: minutes for all")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.sections) - set(sections))
    if unknown:
        parser.error(f"unknown sections {', '.join(unknown)}; there are {', '.join(sections)}")
    numbers: dict[str, Any] = {"quick": options.quick}
    for name in options.sections or sections:
        say(f"{name} …")
        started = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TrueupWarning)  # what they warn of is what is measured here
                section = sections[name](options.quick)
        except FileNotFoundError as error:
            print(f"\n=== {name} ===\nskipped: {error}", flush=True)
            continue
        seconds = time.perf_counter() - started
        print(f"\n=== {name} ({seconds:.0f} s) ===\n{section.text}", flush=True)
        numbers[name] = {**section.numbers, "seconds": seconds}
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1), encoding="utf-8")
