"""The engine on a GPU beside two threads of the same machine's processor: iterations of EM.

Run ``python -m benchmarks.scale_gpu [section ...] [--quick] [--json out.json]`` with the first GPU of CUDA. Votes are
drawn by a seed: five or ten on each item, 10,000 labelers who are right with probability .6 to .95, two classes.
``--quick`` takes a hundredth of the votes and any device. Sections: gpu (iterations of a fit by `trueup.noise.fit`,
from one M-step to the next, and their median; the processor works with compiled code in a process that may use two
cores), evaluate (a plain `evaluate` of the votes, and which functions of the library took its time).
"""

from __future__ import annotations

import cProfile
import os
import pstats
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import trueup as tu
from benchmarks._coverage_tally import as_text
from benchmarks._results import processor
from benchmarks._sections import apart, run_sections

N_LABELERS = 10_000
EM_VOTES, GLAD_VOTES = 100_000_000, 10_000_000
N_THREADS = 2
N_COMPARED = 4  # iterations after which what was learned is held against each other


def make_labels(n_votes: int, votes_per_item: int, seed: int = 0) -> tu.Labels:
    """Votes of able labelers on items of two classes, as the vote matrix they are kept in."""
    rng = np.random.default_rng(seed)
    n_items = n_votes // votes_per_item
    right = rng.uniform(0.6, 0.95, N_LABELERS).astype(np.float32)
    truth = rng.integers(2, size=(n_items, 1), dtype=np.int8)
    # Distinct labelers of an item: one from each of as many ranges, in ascending order as a sparse matrix has them.
    width = N_LABELERS // votes_per_item
    labeler = rng.integers(width, size=(n_items, votes_per_item), dtype=np.int32)
    labeler += width * np.arange(votes_per_item, dtype=np.int32)
    wrong = rng.random((n_items, votes_per_item), dtype=np.float32) >= right[labeler]
    columns = (2 * labeler + (truth ^ wrong)).ravel().astype(np.int32)
    indptr = votes_per_item * np.arange(n_items + 1, dtype=np.int32)
    matrix = sparse.csr_array((np.ones(len(columns)), columns, indptr), shape=(n_items, 2 * N_LABELERS))
    nobody, classes = np.full(n_items, -1, dtype=np.int32), np.array([0, 1])
    return tu.Labels(
        items=np.arange(n_items),
        labelers=np.arange(N_LABELERS),
        classes=classes,
        answers=classes,
        votes=matrix,
        gold_codes=nobody,
        held_codes=nobody,
        gold_chance=np.full(n_items, np.nan),
        n_missing=0,
        abstentions=np.zeros(N_LABELERS, dtype=np.int64),
        abstain_policy="missing",
    )


def clocked(model: type[tu.noise.NoiseModel], attribute: str) -> tuple[type[tu.noise.NoiseModel], list[float]]:
    """The model with a clock: the times at which its M-step sets an attribute, once in each iteration of a fit."""
    stamps: list[float] = []

    class Clocked(model):  # type: ignore[misc, valid-type]
        def __setattr__(self, name: str, value: Any) -> None:
            if name == attribute:
                stamps.append(time.perf_counter())
            super().__setattr__(name, value)

    return Clocked, stamps


def fit_times(labels: tu.Labels, name: str, engine: str, n_timed: int) -> dict[str, Any]:
    """The median seconds of an iteration; what a fit learns in the first few."""
    kind, attribute = {"dawid-skene": (tu.noise.DawidSkene, "confusion_"), "glad": (tu.noise.GLAD, "prior_")}[name]
    compared: Any = tu.noise.fit(labels, name, engine=engine, max_iter=N_COMPARED, tol=0.0)  # compiles, and warms up
    model, stamps = clocked(kind, attribute)
    tu.noise.fit(labels, model(max_iter=n_timed + 2, tol=0.0), engine=engine)
    each = np.diff(stamps[: n_timed + 2])[1:]  # the first warms up; after the last, results are taken from the device
    learned = compared.ability_ if name == "glad" else compared.confusion_.ravel()
    return {"iteration": float(np.median(each)), "learned": learned[:: len(learned) // 1000].tolist()}


def on_processor(name: str, n_votes: int, votes_per_item: int) -> dict[str, Any]:
    """Fits in a process of its own that may use two cores; GLAD has no compiled code."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:N_THREADS])
    engine, n_timed = ("scipy", 3) if name == "glad" else ("numba", 8)
    return fit_times(make_labels(n_votes, votes_per_item), name, engine, n_timed)


def copy_seconds(n_votes: int, device: str) -> float:
    """Seconds to copy the votes as indices of 32 bits from one place of the device's memory to another."""
    import torch

    source = torch.zeros(n_votes, dtype=torch.int32, device=device)
    target = torch.empty_like(source)
    return _device_seconds(lambda: target.copy_(source), device)


def pass_seconds(labels: tu.Labels, device: str) -> float:
    """Seconds of one pass over the votes alone, without the M-step of the labelers."""
    import torch

    from trueup._base.engines import using_engine
    from trueup.noise.torch import DevicePasses

    with using_engine(f"torch:{device}"):
        passes = DevicePasses(labels.votes, labels.gold_codes, 2, 2)
    table = torch.full((2 * N_LABELERS, 2), 0.2, dtype=torch.float64, device=device)
    table[0::2, 0] = table[1::2, 1] = 0.8
    weights = torch.full((2,), 0.5, dtype=torch.float64, device=device)
    return _device_seconds(lambda: passes.expect(table, weights, np.arange(2)), device)


def _device_seconds(work: Callable[[], object], device: str) -> float:
    """The median of twenty times, each until the device is done."""
    import torch

    times = []
    for _ in range(23):
        started = time.perf_counter()
        work()
        if device != "cpu":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    return float(np.median(times[3:]))


def gpu_section(quick: bool) -> str:
    """Iterations of EM on the first GPU; a quick run does without one."""
    import torch

    if not torch.cuda.is_available() and not quick:
        raise FileNotFoundError("there is no GPU here")
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    n_em, n_glad = ((EM_VOTES, GLAD_VOTES), (EM_VOTES // 100, GLAD_VOTES // 100))[quick]
    name = torch.cuda.get_device_name(device) if device != "cpu" else "cpu"
    rows = []
    for model, title, n_votes, per_item, n_timed in (
        ("dawid-skene", "Dawid–Skene", n_em, 5, 200),
        ("dawid-skene", "Dawid–Skene", n_em, 10, 200),
        ("glad", "GLAD", n_glad, 5, 20),
    ):
        labels = make_labels(n_votes, per_item)
        mine = fit_times(labels, model, f"torch:{device}", n_timed)
        alone = "–" if model == "glad" else f"{1e3 * pass_seconds(labels, device):.2f}"
        theirs = apart(on_processor, model, n_votes, per_item, OMP_NUM_THREADS=str(N_THREADS))
        gap = np.abs(np.subtract(mine["learned"], theirs["learned"])).max()
        times = [f"{1e3 * mine['iteration']:.2f}", alone, f"{1e3 * theirs['iteration']:.1f}"]
        ratio = f"{theirs['iteration'] / mine['iteration']:.0f}"
        rows.append([f"{title}, {n_votes:,} votes, {per_item} on an item", *times, ratio, f"{gap:.1e}"])
    head = ("an iteration of a fit", "GPU, ms", "votes alone, ms", "processor, ms", "ratio", "apart")
    lines = [
        f"{name} with torch {torch.__version__}; {N_THREADS} threads of {processor()}",
        f"{N_LABELERS:,} labelers, 2 classes; {n_em:,} votes of 32 bits are copied in "
        f"{1e3 * copy_seconds(n_em, device):.2f} ms",
        "",
        as_text(head, rows),
        "",
        "votes alone: the pass over the votes without the M-step; apart: the most that what is learned differs",
        "asked of Dawid–Skene: ≤ 2.5 ms an iteration, ≥ 50 × two threads",
    ]
    return "\n".join(lines)


def evaluate_section(quick: bool) -> str:
    """Seconds of a plain `evaluate`, and of the functions of the library behind it."""
    labels, engine = make_labels(EM_VOTES // (100 if quick else 1), 5), "torch:cuda:0"
    predictions = np.random.default_rng(1).integers(2, size=labels.n_items)
    tu.evaluate(predictions[:100_000], make_labels(500_000, 5), engine=engine)  # compiles
    started = time.perf_counter()
    with cProfile.Profile() as profile:
        low, high = tu.evaluate(predictions, labels, engine=engine)["accuracy"].interval(0.95)
    seconds, package = time.perf_counter() - started, Path(tu.__file__).parent
    rows = []
    stats = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    for (file, line, name), (calls, _, own, total, _) in sorted(stats, key=lambda pair: -pair[1][3]):
        if Path(file).is_relative_to(package) and total > 0.01 * seconds:
            function = f"{Path(file).relative_to(package)}:{line} {name}"
            rows.append((function, f"{calls:,}", f"{own:.2f}", f"{total:.2f}"))
    about = (
        f"plain evaluate of {labels.n_votes:,} votes with {engine}: {seconds:.1f} s, accuracy {low:.3f} to {high:.3f}"
    )
    return f"{about}; asked ≤ 15 s\n\n{as_text(('function', 'calls', 'own s', 'with all below s'), rows)}"


main = partial(run_sections, "scale_gpu", __doc__, {"gpu": gpu_section, "evaluate": evaluate_section})


if __name__ == "__main__":
    main()
