"""Run ``python -m experiments.calderon2025``, or some sets of it: ``… wax lesion [--quick]``.

Each set prints the paper's values beside ours. Sets are found through TRUEUP_DATA, and skipped where they are absent.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from experiments._command import run_and_judge
from experiments.calderon2025.replacing import SETS, run_set

__all__ = ["FOLDER", "main"]

FOLDER = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """The sets; the status is 1 if a number disagrees with the paper's and expected.json does not say why."""
    parser = argparse.ArgumentParser(prog="python -m experiments.calderon2025", description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", metavar="set", help=f"of {', '.join(SETS)}; by default all")
    parser.add_argument("--quick", action="store_true", help="one LLM a set, few resampled sets; nothing is judged")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.what) - set(SETS))
    if unknown:
        parser.error(f"unknown sets {', '.join(unknown)}; there are {', '.join(SETS)}")
    run = partial(run_set, quick=options.quick)
    return run_and_judge(options.what or list(SETS), run, folder=FOLDER, quick=options.quick, json_file=options.json)


if __name__ == "__main__":
    sys.exit(main())
