"""Run ``python -m experiments.urkullu2019 [--quick]``; interrupted, the same command goes on where it stopped.

Prints the paper's values and verdicts beside ours, and saves the box plots as PNG (``pip install 'trueup[plot]'``).
Seeds are fixed, so the same command prints the same numbers.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from experiments.urkullu2019.figures import box_plots
from experiments.urkullu2019.report import FOLDER, Answer, checks, comparison
from experiments.urkullu2019.results import Results
from experiments.urkullu2019.settings import FULL, QUICK, REFERENCE, Plan
from experiments.urkullu2019.store import complete
from experiments.urkullu2019.tables import averages, case_table, reference, views
from experiments.urkullu2019.verdicts import ties_once, verdicts

__all__ = ["main", "results_of", "sections"]


def results_of(plan: Plan, out: Path, *, jobs: int = 1) -> tuple[Results, str]:
    """The runs, from disk where they are there, and a sentence on what they took."""
    started = time.monotonic()
    runs = complete(plan.design, plan.n_runs, out / f"{plan.name}.npz", jobs=jobs, what="runs")
    alone = replace(
        REFERENCE, n_items=plan.design.n_items, n_classifiers=plan.design.n_classifiers, seed=plan.design.seed
    )
    more = complete(alone, plan.n_reference, out / f"{plan.name}-reference.npz", jobs=jobs, what="supervised reference")
    core = float(runs.seconds.sum() + more.seconds.sum()) / 60
    took = (
        f"{plan.n_runs} runs of {runs.swap_errors[0, ..., 0].size} configurations: {core:.1f} minutes of one core, "
        f"this call {(time.monotonic() - started) / 60:.1f} minutes with {jobs} processes; the learned model did not "
        f"converge in {int(runs.not_converged.sum())} of {runs.swap_errors[..., 0].size} fits"
    )
    return Results.of(runs, more), took


def sections(results: Results) -> Iterator[tuple[str, Answer]]:
    """The parts of expected.json, each with its text and numbers."""
    yield "reference", reference(results)
    yield "views", views(results)
    yield "verdicts", verdicts(results)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; the status is 1 if a number disagrees with the paper's and expected.json does not say why."""
    parser = argparse.ArgumentParser(prog="python -m experiments.urkullu2019", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="few runs of nine configurations a case; nothing is judged"
    )
    parser.add_argument("--runs", type=int, help="how often each configuration is run")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--out", type=Path, default=FOLDER / "output", help="folder of the runs and figures")
    parser.add_argument("--fresh", action="store_true", help="forget the runs that are on disk")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args(arguments)
    plan = QUICK if options.quick else FULL
    if options.runs is not None:
        if options.runs < 2:
            parser.error(f"--runs must be at least 2, got {options.runs}; a standard error needs two")
        plan = replace(plan, n_runs=options.runs)
    if options.fresh:
        for path in options.out.glob(f"{plan.name}*.npz"):
            path.unlink()
    try:
        results, took = results_of(plan, options.out, jobs=options.jobs)
    except KeyboardInterrupt:
        print("interrupted; finished runs are kept, and the same command goes on from there", file=sys.stderr)
        return 130
    print(took)
    for case in results.design.cases:
        print(f"\n{case_table(results, case)}")
    print(f"\n{averages(results)}")
    measured, wrong = {}, []
    for name, (text, measured[name]) in sections(results):
        found = checks(name, measured[name])
        print(f"\n{'═' * 100}\n{name}\n\n{text}\n", flush=True)
        if name == "verdicts":  # their table says already what was asked
            print(*sorted(f"* {c.label}: {c.differs}" for c in found if c.differs and not c.ok), sep="\n")
            print(f"\nThe verdicts on DGT if ties are solved once for all classifiers\n\n{ties_once(results)}\n")
        else:
            print(comparison(name, measured[name]))
        wrong += [f"{name}: {c.label}" for c in found if not (c.ok or c.differs)]
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    if find_spec("matplotlib") is None:
        print("\nno figures: they need matplotlib, pip install 'trueup[plot]'")
    else:
        import matplotlib as mpl

        mpl.use("Agg")
        print(*(f"saved {box_plots(results, case, options.out)}" for case in results.design.cases), sep="\n")
    if wrong and not options.quick:
        print("\nOutside the tolerance:", *wrong, sep="\n  ")
    return 1 if wrong and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
