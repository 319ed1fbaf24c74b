"""Runs on disk: every finished run is kept, so an interrupted experiment goes on where it stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import trueup as tu
from experiments.urkullu2019.runs import Run, one_run
from experiments.urkullu2019.settings import Array, Design

__all__ = ["Stored", "complete", "load"]


@dataclass(frozen=True)
class Stored:
    """Runs in a row for each number; those that are still to come are nan."""

    design: Design
    swap_errors: Array  # (n_runs, cases, labels per item, labels per labeler, views)
    supervised: Array
    not_converged: Array
    seconds: Array

    @classmethod
    def empty(cls, design: Design, n_runs: int) -> Stored:
        """No run yet."""
        one = np.full(n_runs, np.nan)
        return cls(design, np.full((n_runs, *design.shape), np.nan), one, one.copy(), one.copy())

    @property
    def missing(self) -> list[int]:
        """The numbers of the runs still to come."""
        return [int(run) for run in np.flatnonzero(np.isnan(self.supervised))]

    def put(self, number: int, run: Run) -> None:
        """Fill in one run."""
        self.swap_errors[number], self.supervised[number] = run.swap_errors, run.supervised
        self.not_converged[number], self.seconds[number] = run.not_converged, run.seconds

    def save(self, path: Path) -> None:
        """Replace the file whole, so that an interrupt leaves either the old one or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        with partial.open("wb") as file:
            np.savez(
                file,
                design=_described(self.design),
                swap_errors=self.swap_errors,
                supervised=self.supervised,
                not_converged=self.not_converged,
                seconds=self.seconds,
            )
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)


def load(path: Path, design: Design, n_runs: int) -> Stored:
    """The runs in a file, filled up or cut to `n_runs`; none if the file is of another design or version."""
    stored = Stored.empty(design, n_runs)
    if not path.exists():
        return stored
    with np.load(path) as file:
        if str(file["design"]) != _described(design):
            return stored
        n = min(n_runs, len(file["supervised"]))
        for name in ("swap_errors", "supervised", "not_converged", "seconds"):
            getattr(stored, name)[:n] = file[name][:n]
    return stored


def complete(design: Design, n_runs: int, path: Path, *, jobs: int = 1, what: str = "runs") -> Stored:
    """The runs in the file, after those that were missing are made, with a progress bar on the error stream."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    stored = load(path, design, n_runs)
    missing = stored.missing
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=n_runs, completed=n_runs - len(missing))
        for number, run in _made(design, missing, jobs):
            stored.put(number, run)
            stored.save(path)
            progress.advance(task)
    return stored


def _made(design: Design, numbers: Sequence[int], jobs: int) -> Iterator[tuple[int, Run]]:
    """The runs as they are done, in `jobs` processes of one thread each, or by the back end that joblib was told of."""
    from joblib import Parallel, delayed

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    pool = Parallel(n_jobs=min(jobs, max(len(numbers), 1)), return_as="generator_unordered")
    yield from pool(delayed(_numbered)(design, number) for number in numbers)


def _numbered(design: Design, number: int) -> tuple[int, Run]:
    return number, one_run(design, number)


def _described(design: Design) -> str:
    return json.dumps({**asdict(design), "trueup": tu.__version__})
