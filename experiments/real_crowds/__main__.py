"""Run ``python -m experiments.real_crowds``, or some parts of it: ``… fit systems [--sets crowd-face …]``.

Labelers of the open sets with truth are graded as systems. The sets are found through TRUEUP_DATA; without it every
part is skipped. ``sources`` prints the table of sets.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import trueup as tu
from experiments._command import Answer, run_and_judge
from experiments.real_crowds import grading
from experiments.real_crowds.sets import EARLIER, load_set, set_names, source_table
from trueup.answers.calibrate import level_scale

Row = dict[str, Any]
FOLDER = Path(__file__).parent
_MOST_PROCESSES = os.cpu_count() or 1
_PARTS: dict[str, Callable[..., list[Row]]] = {
    "systems": grading.system_rows,
    "pairs": grading.pair_rows,
    "auc": grading.auc_rows,
    "active": grading.active_rows,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The parts; the status is 1 if a number is not what expected.json asks and it does not say why."""
    parser = argparse.ArgumentParser(prog="python -m experiments.real_crowds", description=__doc__.splitlines()[0])
    names = ["fit", *_PARTS]
    parser.add_argument("what", nargs="*", metavar="what", help=f"of {', '.join(names)}; by default all; or sources")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="some sets only; nothing is judged")
    parser.add_argument("--processes", type=int, choices=range(1, _MOST_PROCESSES + 1), default=_MOST_PROCESSES)
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.what) - {*names, "sources"})
    if unknown:
        parser.error(f"unknown parts {', '.join(unknown)}; there are {', '.join(names)} and sources")
    if options.what == ["sources"]:
        print(source_table([load_set(name) for name in set_names()]))
        return 0
    runner = _Runner(options.sets, options.processes)
    return run_and_judge(
        [name for name in options.what if name != "sources"] or names,
        runner.run,
        folder=FOLDER,
        quick=bool(options.sets),
        json_file=options.json,
    )


class _Runner:
    """The parts on some sets, each judged by a prior that was fitted without its family."""

    def __init__(self, names: Sequence[str] | None, processes: int) -> None:
        self._names, self._processes = names, processes
        self._deviations: list[Row] | None = None

    def run(self, part: str) -> Answer:
        """The text of a part, and its numbers."""
        self._names = set_names() if self._names is None else self._names  # an error where there is no data folder
        if part == "fit":
            return _fit_answer(self._fitted())
        priors = _priors_by_family(self._fitted())
        rows = self._of_all_sets(partial(_rows_of, part, priors))
        return _coverage_answer(part, rows)

    def _fitted(self) -> list[Row]:
        if self._deviations is None:
            self._deviations = self._of_all_sets(_deviations_of)
        return self._deviations

    def _of_all_sets(self, work: Callable[[str], list[Row]]) -> list[Row]:
        assert self._names is not None
        found = Parallel(n_jobs=self._processes)(delayed(work)(name) for name in self._names)
        return [row for rows in found for row in rows]


def _deviations_of(name: str) -> list[Row]:
    return grading.deviations(load_set(name))


def _rows_of(part: str, priors: dict[str, tu.CrowdPrior], name: str) -> list[Row]:
    crowd = load_set(name)
    return _PARTS[part](crowd, priors.get(crowd.family, tu.CrowdPrior()))


# ------------------------------------------------------------------ the fit


def _scale(rows: Sequence[Row]) -> float:
    """The scale of the prior; families weigh alike, and sets within a family."""
    n_sets: dict[str, set[str]] = defaultdict(set)
    n_rows: dict[str, int] = defaultdict(int)
    for row in rows:
        n_sets[row["family"]].add(row["set"])
        n_rows[row["set"]] += 1
    weights = [1 / len(n_sets[row["family"]]) / n_rows[row["set"]] for row in rows]
    return level_scale(np.array([row["deviation"] for row in rows]), np.array(weights))


def _priors_by_family(rows: Sequence[Row]) -> dict[str, tu.CrowdPrior]:
    """Of each family the prior that is fitted to all others."""
    families = {row["family"] for row in rows}
    if len(families) < 2:
        return {}
    return {
        family: replace(tu.CrowdPrior(), level_scale=_scale([row for row in rows if row["family"] != family]))
        for family in families
    }


def _fit_answer(rows: Sequence[Row]) -> Answer:
    without = [prior.level_scale for prior in _priors_by_family(rows).values()]
    numbers = {
        "level_scale": _scale(rows),
        "least without a family": min(without, default=np.nan),
        "most without a family": max(without, default=np.nan),
        "sets": float(len({row["set"] for row in rows})),
        "families": float(len({row["family"] for row in rows})),
        "mean deviation": float(np.mean([abs(row["deviation"]) for row in rows])),
    }
    text = "\n".join(f"{name:<28}{value:.4g}" for name, value in numbers.items())
    return f"the scale of arcsin √level, fitted to the accuracies of all graded labelers\n\n{text}", numbers


# ------------------------------------------------------------------ coverage


def _coverage_answer(part: str, rows: Sequence[Row]) -> Answer:
    """How often intervals hold and how wide they are; sets of a family share its weight, families weigh alike."""
    numbers: dict[str, float] = {}
    lines = [f"{'metric':<12}{'answer':<14}{'checks':>7}{'holds':>9}{'±':>6}{'width':>9}{'families':>10}  least set"]
    lines.append("-" * len(lines[0]))
    keys = sorted({(row["metric"], row["answer"], row["n"]) for row in rows})
    for metric, answer, n in keys:
        some = [r for r in rows if (r["metric"], r["answer"], r["n"]) == (metric, answer, n) and r["holds"] is not None]
        holds, widths, least = _by_family(some)
        if not len(holds):
            continue
        error = holds.std(ddof=1) / np.sqrt(len(holds)) if len(holds) > 1 else np.nan
        lines.append(
            f"{metric:<12}{answer:<14}{n:>7}{100 * holds.mean():>9.1f}{100 * error:>6.1f}{widths.mean():>9.3f}"
            f"{len(holds):>10}  {least[1]} {100 * least[0]:.0f}"
        )
        name = f"{metric}, {n} checks" + ("" if answer in ("trueup", "ActiveTest") else f", {answer}")
        numbers |= {f"{name}: holds": float(holds.mean()), f"{name}: width": float(widths.mean())}
        numbers[f"{name}: holds with an error"] = float(holds.mean() + (error if np.isfinite(error) else 0.0))
    earlier = [r for r in rows if r["set"] in EARLIER and r["metric"] == "accuracy" and r["answer"] == "trueup"]
    if part == "systems" and earlier:
        holds, widths, _ = _by_family([r for r in earlier if r["n"] == 0])
        lines.append(f"\nthe sets of version 0.2, no check: holds {100 * holds.mean():.1f} at {widths.mean():.3f}")
        numbers |= {
            "sets of 0.2, 0 checks: holds": float(holds.mean()),
            "sets of 0.2, 0 checks: width": float(widths.mean()),
        }
    return "\n".join(lines), numbers


def _by_family(rows: Sequence[Row]) -> tuple[Any, Any, tuple[float, str]]:
    by_set: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_set[row["family"]][row["set"]].append(row)
    holds, widths, each = [], [], []
    for sets in by_set.values():
        of_sets = {name: np.mean([r["holds"] for r in some]) for name, some in sets.items()}
        each += [(float(value), name) for name, value in of_sets.items()]
        holds.append(np.mean(list(of_sets.values())))
        widths.append(np.mean([np.mean([r["width"] for r in some]) for some in sets.values()]))
    return np.array(holds), np.array(widths), min(each, default=(np.nan, ""))


if __name__ == "__main__":
    sys.exit(main())
