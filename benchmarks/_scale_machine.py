"""One machine: against crowd-kit, from files larger than its memory need be, kernels, and how costs grow."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import Section
from benchmarks._crowdkit_votes import Size, ask_crowdkit, fit_and_label, make_votes
from benchmarks._peers import peak_bytes
from benchmarks._results import processor
from benchmarks._scale_votes import VOTES_PER_ITEM, write_votes

__all__ = ["crowdkit", "files", "measure_files"]

_ITERATIONS = 20


def crowdkit(quick: bool) -> Section:
    """Dawid and Skene's model, 20 iterations, beside crowd-kit, in turns."""
    size = Size(2_000 if quick else 100_000, 100 if quick else 1000, 10)
    votes = make_votes(size)
    labels = tu.Labels.from_frame(votes)
    model = tu.noise.DawidSkene(max_iter=_ITERATIONS, tol=0.0, pooling=0.0)
    fit_and_label(model, labels)  # compiles
    ours, theirs, same = [], [], []
    with tempfile.TemporaryDirectory() as name:
        for _ in range(1 if quick else 3):
            for _ in range(3):
                taken, found = fit_and_label(model, labels)
                ours.append(taken)
            answer = ask_crowdkit(votes, Path(name))
            if answer is not None:
                theirs.append(answer["seconds"])
                same.append(float((answer["labels"] == found).mean()))
    lines = [f"processor: {processor()}", f"trueup: {min(ours):.3f} s for {size.n_votes:,} votes, 10 classes"]
    numbers: dict[str, Any] = {"trueup": min(ours), "votes": size.n_votes}
    if theirs:
        ratio = min(theirs) / min(ours)
        lines.append(f"crowd-kit: {min(theirs):.2f} s; ratio {ratio:.1f} ×, {min(same):.2%} same labels (asked: 40 ×)")
        numbers |= {"crowd-kit": min(theirs), "ratio": ratio, "same": min(same)}
    else:
        lines.append("crowd-kit: skipped, TRUEUP_PEERS names no Python that has it")
    return Section("\n".join(lines), numbers)


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
    one = _fit_seconds(scan, 1)  # compiles
    one = _fit_seconds(scan, 1)
    all_of_them = _fit_seconds(scan, 1 + _ITERATIONS)
    return {
        "look": looked - started,
        "encode": encoded - looked,
        "iteration": (all_of_them - one) / _ITERATIONS,
        "votes": n_votes,
        "before": before,
        "peak": peak_bytes(),
    }


def _fit_seconds(labels: Any, n_iter: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations are meant
        started = time.perf_counter()
        tu.noise.fit(labels, "dawid-skene", max_iter=n_iter, tol=0.0)
        return time.perf_counter() - started


def _apart(folder: str, how: str) -> dict[str, float]:
    code = (
        "import json, sys\nfrom benchmarks._scale_machine import measure_files\n"
        "print(json.dumps(measure_files(*sys.argv[1:])))"
    )
    done = subprocess.run([sys.executable, "-c", code, folder, how], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def files(quick: bool) -> Section:
    """Votes from parquet files: memory, time, and bytes a second beside a plain scan."""
    n_votes, n_files = (200_000, 4) if quick else (100_000_000, 40)
    with tempfile.TemporaryDirectory() as folder:
        n_bytes = write_votes(Path(folder), n_votes, n_files, n_labelers=10_000)
        plain, ours = _apart(folder, "polars"), _apart(folder, "fit")
    raw = (4 + 8 / VOTES_PER_ITEM) * n_votes
    copy = _copy_speed()
    rate = raw / ours["iteration"]
    total = ours["look"] + ours["encode"] + _ITERATIONS * ours["iteration"]
    text = "\n".join(
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
    return Section(text, {**ours, "files": n_bytes, "polars": plain["seconds"], "copy": copy, "all": total})


def _copy_speed() -> float:
    """Bytes a second of a copy, counted once."""
    values = np.ones(12_500_000)
    target = np.empty_like(values)
    return values.nbytes / min(_seconds(lambda: np.copyto(target, values)) for _ in range(5))


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
