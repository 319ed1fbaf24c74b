"""Do the intervals hold the truth? Coverage on simulated and real data, beside what is common today.

Run ``python -m benchmarks.coverage [section ...] [--quick] [--json out.json]``; without names all sections are run.
Simulations and samplers are seeded. Truth is used for measuring only. ``±`` is one
binomial standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks import _coverage_known as known
from benchmarks import _coverage_learned as learned
from benchmarks._coverage_tally import Section
from benchmarks._sections import run_sections

SECTIONS: dict[str, Callable[[bool], Section]] = {
    "su": known.su,
    "small": known.small,
    "multiclass": known.multiclass,
    "learned": learned.learned,
    "baseline": learned.baseline,
}


def main(arguments: Sequence[str] | None = None) -> None:
    run_sections("python -m benchmarks.coverage", __doc__.splitlines()[0], SECTIONS, arguments)


if __name__ == "__main__":
    main()
