"""A cluster of dask on this machine: two workers against one, and workers that are killed."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import Section
from benchmarks._scale_votes import write_votes

__all__ = ["cluster", "kills", "local_cluster", "measure_iteration"]

_ITERATIONS = 10


@contextmanager
def local_cluster(n_workers: int) -> Iterator[tuple[Any, Any]]:
    """Worker processes of one thread each, and their client."""
    if find_spec("distributed") is None:
        raise FileNotFoundError("needs dask: pip install 'trueup[dask]'")
    import distributed

    place = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=n_workers, **place) as workers, distributed.Client(workers) as client:
        yield workers, client


def _fit(labels: Any, n_iter: int) -> tuple[float, tu.noise.NoiseModel]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations are meant
        started = time.perf_counter()
        model = tu.noise.fit(labels, "dawid-skene", max_iter=n_iter, tol=0.0)
        return time.perf_counter() - started, model


def measure_iteration(labels: Any, turns: int = 3) -> tuple[float, Any]:
    """The least seconds of an iteration, and the fitted model."""
    _fit(labels, 1)
    one = min(_fit(labels, 1)[0] for _ in range(turns))
    several = [_fit(labels, 1 + _ITERATIONS) for _ in range(turns)]
    return (min(taken for taken, _ in several) - one) / _ITERATIONS, several[0][1]


def _measured(folder: str, n_workers: int) -> tuple[float, Any]:
    with local_cluster(n_workers):
        return measure_iteration(tu.Labels.scan(f"{folder}/*.parquet"))


def cluster(quick: bool) -> Section:
    """Two workers against one, and against none at few votes."""
    n_votes, n_files = (200_000, 4) if quick else (50_000_000, 20)
    with tempfile.TemporaryDirectory() as folder:
        write_votes(Path(folder), n_votes, n_files, n_labelers=10_000)
        (one, first), (two, second) = _measured(folder, 1), _measured(folder, 2)
    gap = float(np.abs(first.confusion_ - second.confusion_).max())
    with tempfile.TemporaryDirectory() as folder:
        write_votes(Path(folder), 100_000, 4, n_labelers=1000)
        here, alone = measure_iteration(tu.Labels.scan(f"{folder}/*.parquet"))
        there, same = _measured(folder, 2)
    small_gap = float(np.abs(alone.confusion_ - same.confusion_).max())
    text = "\n".join(
        [
            f"{n_votes:,} votes, 10,000 labelers, 2 classes, {n_files} files",
            f"an iteration: one worker {one:.3f} s, two {two:.3f} s; ratio {one / two:.2f} × (asked: 1.6 ×)",
            f"greatest difference of matrices {gap:.1e} (asked: 1e-10)",
            f"100,000 votes: {1e3 * here:.1f} ms here, {1e3 * there:.1f} ms on two workers: overhead "
            f"{1e3 * (there - here):.1f} ms an iteration; difference {small_gap:.1e}",
        ]
    )
    numbers = {"one": one, "two": two, "ratio": one / two, "gap": gap, "overhead": there - here, "votes": n_votes}
    return Section(text, numbers)


def kills(quick: bool) -> Section:
    """A worker killed in the middle of a fit, again and again."""
    n_kills = 2 if quick else 10
    with tempfile.TemporaryDirectory() as folder:
        write_votes(Path(folder), 100_000 if quick else 500_000, 8, n_labelers=1000)
        pattern = f"{folder}/*.parquet"
        _, wanted = _fit(tu.Labels.scan(pattern), 30)
        gaps = []
        rng = np.random.default_rng(0)
        for number in range(n_kills):  # each on a cluster of its own: the killed worker does not come back at once
            with local_cluster(2) as (workers, _):
                taken = [_fit(tu.Labels.scan(pattern), 30)[0] for _ in range(2)][-1]
                timer = threading.Timer(float(rng.uniform(0.2, 0.8)) * taken, _kill, (workers, number % 2))
                timer.start()
                _, model = _fit(tu.Labels.scan(pattern), 30)
                timer.join()
                gaps.append(float(np.abs(model.confusion_ - wanted.confusion_).max()))
    same = sum(gap <= 1e-10 for gap in gaps)
    text = f"{n_kills} workers killed in the middle of a fit: {same} of {n_kills} times the same answer to 1e-10"
    return Section(f"{text} (greatest difference {max(gaps):.1e})", {"kills": n_kills, "same": same, "gap": max(gaps)})


def _kill(workers: Any, which: int) -> None:
    nannies = list(workers.workers.values())
    pid = nannies[which % len(nannies)].pid
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
