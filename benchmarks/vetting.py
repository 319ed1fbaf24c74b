"""What answers of an expert are worth: active testing beside random vetting, PPI++, importance sampling and LURE.

Run ``python -m benchmarks.vetting [section ...] [--quick] [--repetitions n] [--json out.json]``; without names all
sections are run. Sections: crowd (50 truths for a labeler of a crowd), rare (beside OASIS and LURE where 5% are
positive). ``--repetitions`` is for each pool, and for all of "rare"; every section
has its own default. TRUEUP_PEERS names a Python that has ppi-python, which is left out without it. Real data are found
through TRUEUP_DATA. Truth answers what is asked, and measures; nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks._coverage_tally import Section
from benchmarks._sections import run_sections
from benchmarks._vetting_crowd import crowd
from benchmarks._vetting_rare import rare

SECTIONS: dict[str, Callable[..., Section]] = {
    "crowd": crowd,
    "rare": rare,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the sections that are named, or all."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--repetitions", type=int)
    own, rest = parser.parse_known_args(arguments)
    sections = {name: partial(run, repetitions=own.repetitions) for name, run in SECTIONS.items()}
    run_sections("python -m benchmarks.vetting", "What answers of an expert are worth.", sections, rest)


if __name__ == "__main__":
    main()
