"""How far one machine goes, and a cluster of dask.

Run ``python -m benchmarks.scale [section ...] [--quick] [--json out.json]``; without names all sections are run.
Sections: crowdkit (Dawid and Skene's model beside crowd-kit; TRUEUP_PEERS names a Python that has it), files (10⁸
votes from parquet: memory, and bytes a second beside a plain scan), cluster (two worker processes against one), kills
(workers killed in the middle of a fit). Files are written to the temporary folder, about 3 bytes a vote.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
import timeit
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._peer_tasks import TWENTY, peak_bytes
from benchmarks._results import processor
from benchmarks._sections import apart, run_sections
from benchmarks.peers import ask, votes_of
from trueup._base.types import Codes

Columns = dict[str, Codes]
VOTES_PER_ITEM = 5
_ITERATIONS, _CLUSTER_ITERATIONS = 20, 10


def make_votes(n_items: int, n_labelers: int, n_classes: int, seed: int = 0) -> Columns:
    """Votes of labelers with accuracies between 50% and 90%, errors uniform, distinct labelers for each item."""
    rng = np.random.default_rng(seed)
    shape = (n_items, VOTES_PER_ITEM)
    truth = rng.integers(n_classes, size=n_items)
    # Steps that cannot go once round the circle of labelers never meet the same one twice.
    steps = rng.integers(1, n_labelers // VOTES_PER_ITEM, size=shape, endpoint=True)
    steps[:, 0] = rng.integers(n_labelers, size=n_items)
    labeler = np.cumsum(steps, axis=1) % n_labelers
    right = rng.random(shape) < rng.uniform(0.5, 0.9, size=n_labelers)[labeler]
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=shape)) % n_classes
    return {
        "item": np.repeat(np.arange(n_items), VOTES_PER_ITEM),
        "labeler": labeler.ravel(),
        "label": np.where(right, truth[:, None], wrong).ravel(),
    }


def write_votes(folder: Path, n_votes: int, n_files: int, *, n_labelers: int, n_classes: int = 2) -> int:
    """Write so many votes, no item in two files; returns the bytes of the files."""
    import polars

    n_items = n_votes // n_files // VOTES_PER_ITEM
    for number in range(n_files):
        votes = make_votes(n_items, n_labelers, n_classes, seed=number)
        votes["item"] += number * n_items
        narrow = {name: values.astype(np.int32) for name, values in votes.items()}
        polars.DataFrame(narrow).write_parquet(folder / f"votes-{number:05d}.parquet")
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


def _fit(labels: Any, n_iter: int, **settings: Any) -> tuple[float, tu.noise.NoiseModel]:
    """Seconds of so many iterations of Dawid–Skene, and the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations are meant
        started = time.perf_counter()
        model = tu.noise.fit(labels, "dawid-skene", max_iter=n_iter, tol=0.0, **settings)
        return time.perf_counter() - started, model


def crowdkit(quick: bool) -> str:
    """Dawid and Skene's model, 20 iterations, beside crowd-kit, in turns."""
    labels = tu.Labels.from_frame(make_votes(2_000 if quick else 100_000, 100 if quick else 1000, 10))

    def fit_and_label() -> tuple[float, npt.NDArray[Any]]:
        """Seconds for a fit and the labels of all items, and these labels."""
        fresh = replace(labels)  # without cached properties
        started = time.perf_counter()
        model = _fit(fresh, _ITERATIONS, pooling=0.0)[1]
        found = labels.classes[model.posterior(fresh).argmax(axis=1)]
        return time.perf_counter() - started, found

    fit_and_label()  # compiles
    ours, theirs, same = [], [], []
    for _ in range(1 if quick else 3):
        for _ in range(3):
            taken, found = fit_and_label()
            ours.append(taken)
        answer = ask(TWENTY, "crowd-kit", [votes_of(labels)])
        if not answer.error:
            theirs.append(answer.seconds)
            same.append(float((labels.classes[answer.arrays[0].argmax(axis=1)] == found).mean()))
    lines = [f"processor: {processor()}", f"trueup: {min(ours):.3f} s for {labels.n_votes:,} votes, 10 classes"]
    if theirs:
        ratio = min(theirs) / min(ours)
        lines.append(f"crowd-kit: {min(theirs):.2f} s; ratio {ratio:.1f} ×, {min(same):.2%} same labels (asked: 40 ×)")
    else:
        lines.append(f"crowd-kit: {answer.error}")
    return "\n".join(lines)


def measure_files(folder: str, how: str) -> dict[str, float]:
    """What a process of its own needs for the files: a plain scan by polars, or a fit."""
    pattern = f"{folder}/*.parquet"
    before = peak_bytes()
    started = time.perf_counter()
    if how == "polars":
        import polars

        polars.scan_parquet(pattern).sum().collect(engine="streaming")
        return {"seconds": time.perf_counter() - started, "peak": peak_bytes()}
    scan = tu.Labels.scan(pattern)
    looked = time.perf_counter()
    n_votes = scan.n_votes
    encoded = time.perf_counter()
    _fit(scan, 1)  # compiles
    one = _fit(scan, 1)[0]
    all_of_them = _fit(scan, 1 + _ITERATIONS)[0]
    return {
        "look": looked - started,
        "encode": encoded - looked,
        "iteration": (all_of_them - one) / _ITERATIONS,
        "votes": n_votes,
        "before": before,
        "peak": peak_bytes(),
    }


def files(quick: bool) -> str:
    """Votes from parquet files: memory, time, and bytes a second beside a plain scan."""
    n_votes, n_files = (200_000, 4) if quick else (100_000_000, 40)
    with tempfile.TemporaryDirectory() as folder:
        n_bytes = write_votes(Path(folder), n_votes, n_files, n_labelers=10_000)
        plain, ours = apart(measure_files, folder, "polars"), apart(measure_files, folder, "fit")
    raw = (4 + 8 / VOTES_PER_ITEM) * n_votes
    copy = _copy_speed()
    rate = raw / ours["iteration"]
    total = ours["look"] + ours["encode"] + _ITERATIONS * ours["iteration"]
    return "\n".join(
        [
            f"{n_votes:,} votes, 10,000 labelers, 2 classes, {n_files} files of {n_bytes / 1e6:.0f} MB together",
            f"peak memory {ours['peak'] / 1e9:.2f} GB (asked: at most 4), of which {ours['before'] / 1e9:.2f} before",
            f"names {ours['look']:.1f} s, encoding {ours['encode']:.1f} s: {n_bytes / ours['encode'] / 1e6:.0f} MB/s "
            f"of the files, beside {n_bytes / plain['seconds'] / 1e6:.0f} MB/s of a plain scan by polars",
            f"an iteration {ours['iteration']:.2f} s: {rate / 1e9:.2f} GB/s of encoded votes, beside {copy / 1e9:.1f} "
            "GB/s of a copy in memory",
            f"all with {_ITERATIONS} iterations {total:.0f} s",
        ]
    )


def _copy_speed() -> float:
    """Bytes a second of a copy, counted once."""
    values = np.ones(12_500_000)
    target = np.empty_like(values)
    return values.nbytes / min(timeit.repeat(lambda: np.copyto(target, values), number=1, repeat=5))


@contextmanager
def local_cluster(n_workers: int) -> Iterator[tuple[Any, Any]]:
    """Worker processes of one thread each, and their client."""
    if find_spec("distributed") is None:
        raise FileNotFoundError("needs dask: pip install 'trueup[dask]'")
    import distributed

    place = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=n_workers, **place) as workers, distributed.Client(workers) as client:
        yield workers, client


def measure_iteration(labels: Any, turns: int = 3) -> tuple[float, Any]:
    """The least seconds of an iteration, and the fitted model."""
    _fit(labels, 1)
    one = min(_fit(labels, 1)[0] for _ in range(turns))
    several = [_fit(labels, 1 + _CLUSTER_ITERATIONS) for _ in range(turns)]
    return (min(taken for taken, _ in several) - one) / _CLUSTER_ITERATIONS, several[0][1]


def _measured(folder: str, n_workers: int) -> tuple[float, Any]:
    with local_cluster(n_workers):
        return measure_iteration(tu.Labels.scan(f"{folder}/*.parquet"))


def cluster(quick: bool) -> str:
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
    return "\n".join(
        [
            f"{n_votes:,} votes, 10,000 labelers, 2 classes, {n_files} files",
            f"an iteration: one worker {one:.3f} s, two {two:.3f} s; ratio {one / two:.2f} × (asked: 1.6 ×)",
            f"greatest difference of matrices {gap:.1e} (asked: 1e-10)",
            f"100,000 votes: {1e3 * here:.1f} ms here, {1e3 * there:.1f} ms on two workers: overhead "
            f"{1e3 * (there - here):.1f} ms an iteration; difference {small_gap:.1e}",
        ]
    )


def kills(quick: bool) -> str:
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
                nanny = list(workers.workers.values())[number % 2]
                delay = float(rng.uniform(0.2, 0.8)) * taken
                timer = threading.Timer(delay, os.kill, (nanny.pid, signal.SIGKILL))
                timer.start()
                _, model = _fit(tu.Labels.scan(pattern), 30)
                timer.join()
                gaps.append(float(np.abs(model.confusion_ - wanted.confusion_).max()))
    same = sum(gap <= 1e-10 for gap in gaps)
    text = f"{n_kills} workers killed in the middle of a fit: {same} of {n_kills} times the same answer to 1e-10"
    return f"{text} (greatest difference {max(gaps):.1e})"


main = partial(
    run_sections, "scale", __doc__, {"crowdkit": crowdkit, "files": files, "cluster": cluster, "kills": kills}
)


if __name__ == "__main__":
    main()
