"""Many seeded runs of a measurement: kept one by one, gone on with after an interruption, on all cores.

Runs go through joblib, so ``joblib.parallel_config(backend="dask")`` or "ray" sends them to a cluster.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import inspect
import json
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from benchmarks._coverage_tally import tracked
from benchmarks._sections import run_sections
from trueup.exceptions import TrueupWarning

Row = dict[str, Any]
MOST_PROCESSES = os.cpu_count() or 1
RUNS = Path(__file__).parent / "runs"
_ROOT = Path(__file__).parents[1]
# What figures rest on. Rows of other code must not be mixed with those of this one.
_RESTS_ON = ("core", "data", "noise", "posteriors", "metrics", "estimators", "answers", "labelers", "simulate")
_RESTS_ON += ("active", "_base")


@dataclass(frozen=True)
class Case:
    """One data set: what kind of world, and which draw of it."""

    world: str
    seed: int


@dataclass(frozen=True)
class Figure:
    """A figure that many runs of each world make; a quick run has `n_quick` of the `quick_worlds`, by default of all.

    `run` is a function of a module, so that another process finds it.
    """

    worlds: tuple[str, ...]
    run: Callable[[Case], list[Row]]
    summarise: Callable[[Sequence[Row]], str]
    n_runs: int
    n_quick: int
    first_seed: int
    quick_worlds: tuple[str, ...] = ()

    def cases(self, n_runs: int, *, quick: bool = False) -> list[Case]:
        """The worlds take turns, so that an interrupted measurement has some of each."""
        worlds = self.quick_worlds if quick and self.quick_worlds else self.worlds
        return [Case(world, self.first_seed + k) for k in range(n_runs) for world in worlds]


def run_figures(
    module: str,
    about: str,
    figures: Mapping[str, Figure],
    arguments: Sequence[str] | None = None,
    *,
    one_at_a_time: Collection[str] = (),
) -> None:
    """The command line of a benchmark whose sections are figures; no two runs of those `one_at_a_time` are parallel."""
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--runs", type=int, help="data sets of each world; by default as many as the figure asks")
    own.add_argument("--processes", type=int, choices=range(1, MOST_PROCESSES + 1), default=MOST_PROCESSES)
    own.add_argument("--folder", type=Path, default=RUNS, help="where runs are kept; by default benchmarks/runs")
    options, _ = own.parse_known_args(arguments)
    if options.runs is not None and options.runs < 1:
        own.error(f"--runs must be at least 1, got {options.runs}")

    def text_of(name: str, quick: bool) -> str:
        figure = figures[name]
        n_runs = options.runs or (figure.n_quick if quick else figure.n_runs)
        cases = figure.cases(n_runs, quick=quick)
        processes = 1 if name in one_at_a_time else options.processes
        folder = None if quick else options.folder
        text = figure.summarise(run_cases(name, figure.run, cases, processes=processes, folder=folder))
        return f"{text}\n\n{n_runs:,} data sets of each world, seeds {cases[0].seed} to {cases[-1].seed}"

    run_sections(module, about, {name: partial(text_of, name) for name in figures}, arguments, parents=[own])


def run_cases(
    name: str,
    run: Callable[[Case], list[Row]],
    cases: Sequence[Case],
    *,
    processes: int,
    folder: Path | None,
) -> list[Row]:
    """The rows of all cases, in the order of cases; those that the folder keeps are not measured again."""
    file = None if folder is None else folder / f"{name}-{fingerprint(run)}.jsonl"
    kept = {} if file is None else _read(file)
    missing = [case for case in cases if case not in kept]
    for case, rows in _results(run, missing, name, processes):
        kept[case] = rows
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"world": case.world, "seed": case.seed, "rows": rows}) + "\n")
    return [{"world": case.world, "seed": case.seed, **row} for case in cases for row in kept[case]]


def _results(
    run: Callable[[Case], list[Row]], cases: Sequence[Case], name: str, processes: int
) -> Iterator[tuple[Case, list[Row]]]:
    """Results as they come."""
    if processes == 1 or len(cases) < MOST_PROCESSES:
        for case in tracked(cases, name):
            yield _quietly(run, case)
        return
    # Chains are threads too: each process keeps to its own core.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    pool = Parallel(n_jobs=min(processes, MOST_PROCESSES), batch_size=1, return_as="generator_unordered")
    results = pool(delayed(_quietly)(run, case) for case in cases)
    for _, result in zip(tracked(cases, name), results, strict=True):
        yield result


def _quietly(run: Callable[[Case], list[Row]], case: Case) -> tuple[Case, list[Row]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)  # what they warn of is what is measured here
        return case, run(case)


def _read(file: Path) -> dict[Case, list[Row]]:
    if not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {Case(line["world"], line["seed"]): line["rows"] for line in lines}


def _imported_from(path: Path, found: dict[Path, None]) -> list[Path]:
    """A file of benchmarks or experiments, and those that it imports, directly or not."""
    if path in found:
        return []
    found[path] = None
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {"benchmarks", "experiments"}:
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            for file in (_ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in names):
                if file.exists():
                    _imported_from(file, found)
    return sorted(found)


def fingerprint(run: Callable[..., Any]) -> str:
    """Of the code that decides the numbers; a module of runs names further packages in RESTS_ON."""
    parts = (*_RESTS_ON, *getattr(inspect.getmodule(run), "RESTS_ON", ()))
    sources = [path for part in parts for path in sorted((_ROOT / "src" / "trueup" / part).rglob("*"))]
    sources += _imported_from(Path(inspect.getfile(run)), {})
    digest = hashlib.sha256()
    for path in dict.fromkeys(sources):
        if path.suffix in {".py", ".json"}:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:10]
