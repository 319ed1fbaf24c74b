"""The engine on a GPU beside two threads of the same machine's processor: iterations of EM.

Run ``python -m benchmarks.scale_gpu [--evaluate] [--device cuda:0] [--quick] [--json out.json]``. Votes are drawn by a
seed: five or ten on each item, 10,000 labelers who are right with probability .6 to .95, two classes. An iteration is
one of a fit by `trueup.noise.fit`, from one M-step to the next, and the median of all of them is told. The processor
works with compiled code in a process that may use two cores.
``--quick`` takes a hundredth of the votes and any device; ``--evaluate`` measures a plain `evaluate` of the votes
instead, and says which functions of the library took its time.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import trueup as tu
from benchmarks._coverage_tally import Section, as_text
from benchmarks._results import processor
from trueup.exceptions import TrueupWarning

N_LABELERS = 10_000
EM_VOTES, GLAD_VOTES = 100_000_000, 10_000_000
N_THREADS = 2
N_COMPARED = 4  # iterations after which what was learned is held against each other
ASKED = {"iteration": "≤ 2.5 ms", "ratio": "≥ 50 ×", "evaluate": "≤ 15 s"}
WORTH_NAMING = 0.01  # of the time of a call: the least share of a function that is listed


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


def fit_times(labels: tu.Labels, name: str, engine: str, n_timed: int, n_compared: int) -> dict[str, Any]:
    """Seconds of an iteration (the median, and the quartiles) and of all that comes before; what a fit learns.

    `n_compared` is how many iterations what is learned is told after.
    """
    kind, attribute = {"dawid-skene": (tu.noise.DawidSkene, "confusion_"), "glad": (tu.noise.GLAD, "prior_")}[name]
    compared: Any = tu.noise.fit(labels, name, engine=engine, max_iter=n_compared, tol=0.0)  # compiles, and warms up
    model, stamps = clocked(kind, attribute)
    started = time.perf_counter()
    tu.noise.fit(labels, model(max_iter=n_timed + 2, tol=0.0), engine=engine)
    each = np.diff(stamps[: n_timed + 2])[1:]  # the first warms up; after the last, results are taken from the device
    learned = compared.ability_ if name == "glad" else compared.confusion_.ravel()
    return {
        "iteration": float(np.median(each)),
        "quartiles": np.quantile(each, (0.25, 0.75)).tolist(),
        "before": stamps[0] - started,
        "learned": learned[:: len(learned) // 1000].tolist(),
    }


def on_processor(work: str, *sizes: int) -> Any:
    """What a function of this module measures in a process of its own that may use two cores."""
    code = (
        "import json, os, sys; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(sys.argv[2])]); "
        "from benchmarks import scale_gpu as b; import warnings; warnings.simplefilter('ignore'); "
        "print(json.dumps(getattr(b, sys.argv[1])(*map(int, sys.argv[3:]))))"
    )
    command = [sys.executable, "-c", code, work, str(N_THREADS), *map(str, sizes)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "2"}
    )
    return json.loads(done.stdout.splitlines()[-1])


def processor_em(n_votes: int, votes_per_item: int) -> dict[str, Any]:
    """Dawid–Skene by compiled code; called in a process of its own."""
    return fit_times(make_labels(n_votes, votes_per_item), "dawid-skene", "numba", 8, N_COMPARED)


def processor_glad(n_votes: int, votes_per_item: int) -> dict[str, Any]:
    """GLAD, which has no compiled code; called in a process of its own."""
    return fit_times(make_labels(n_votes, votes_per_item), "glad", "scipy", 3, N_COMPARED)


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


def gpu_section(quick: bool, device: str | None = None) -> Section:
    """All figures of the GPU."""
    import torch

    if device is None:
        if not torch.cuda.is_available() and not quick:
            raise FileNotFoundError("there is no GPU here")
        device = "cuda:0" if torch.cuda.is_available() else "cpu"
    scale = 100 if quick else 1
    numbers: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if device != "cpu" else "cpu",
        "processor": processor(),
        "torch": torch.__version__,
        "copy": copy_seconds(EM_VOTES // scale, device),
    }
    head = ("an iteration of a fit", "GPU, ms", "votes alone, ms", "processor, ms", "ratio", "apart")
    rows = [_em_row(numbers, EM_VOTES // scale, each, device) for each in (5, 10)]
    rows.append(_glad_row(numbers, GLAD_VOTES // scale, device))
    lines = [
        f"{numbers['device']} with torch {numbers['torch']}; {N_THREADS} threads of {numbers['processor']}",
        f"{N_LABELERS:,} labelers, 2 classes; {EM_VOTES // scale:,} votes of 32 bits are copied in "
        f"{1e3 * numbers['copy']:.2f} ms",
        "",
        as_text(head, rows),
        "",
        "votes alone: the pass over the votes without the M-step; apart: the most that what is learned differs",
        f"asked of Dawid–Skene: {ASKED['iteration']} an iteration, {ASKED['ratio']} two threads",
    ]
    return Section("\n".join(lines), numbers)


def _em_row(numbers: dict[str, Any], n_votes: int, votes_per_item: int, device: str) -> tuple[str, ...]:
    labels = make_labels(n_votes, votes_per_item)
    mine = fit_times(labels, "dawid-skene", f"torch:{device}", 200, N_COMPARED)
    alone = pass_seconds(labels, device)
    theirs = on_processor("processor_em", n_votes, votes_per_item)
    row = _row_of(mine, theirs)
    numbers[f"em, {votes_per_item} votes an item"] = row | {"votes alone": alone, "placing": mine["before"]}
    return (f"Dawid–Skene, {n_votes:,} votes, {votes_per_item} on an item", *_cells(row, f"{1e3 * alone:.2f}"))


def _glad_row(numbers: dict[str, Any], n_votes: int, device: str) -> tuple[str, ...]:
    labels = make_labels(n_votes, 5)
    mine = fit_times(labels, "glad", f"torch:{device}", 20, N_COMPARED)
    row = numbers["glad"] = _row_of(mine, on_processor("processor_glad", n_votes, 5))
    return (f"GLAD, {n_votes:,} votes, 5 on an item", *_cells(row, "–"))


def _row_of(mine: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    return {
        "gpu": mine["iteration"],
        "gpu, quartiles": mine["quartiles"],
        "processor": theirs["iteration"],
        "processor, quartiles": theirs["quartiles"],
        "ratio": theirs["iteration"] / mine["iteration"],
        "apart": float(np.abs(np.subtract(mine["learned"], theirs["learned"])).max()),
    }


def _cells(row: dict[str, Any], alone: str) -> tuple[str, ...]:
    ratio, apart = f"{row['ratio']:.0f}", f"{row['apart']:.1e}"
    return f"{1e3 * row['gpu']:.2f}", alone, f"{1e3 * row['processor']:.1f}", ratio, apart


def evaluate_section(quick: bool, device: str | None = None) -> Section:
    """Seconds of a plain `evaluate`, and of the functions behind it."""
    labels = make_labels(EM_VOTES // (100 if quick else 1), 5)
    predictions = np.random.default_rng(1).integers(2, size=labels.n_items)
    engine = f"torch:{device or 'cuda:0'}"
    tu.evaluate(predictions[:100_000], make_labels(500_000, 5), engine=engine)  # compiles
    profile = cProfile.Profile()
    started = time.perf_counter()
    profile.enable()
    low, high = tu.evaluate(predictions, labels, engine=engine)["accuracy"].interval(0.95)
    profile.disable()
    seconds = time.perf_counter() - started
    package = str(Path(tu.__file__).parent)
    found = [
        (f"{Path(file).relative_to(package)}:{line} {name}", calls, own, total)
        for (file, line, name), (calls, _, own, total, _) in pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
        if file.startswith(package) and total > WORTH_NAMING * seconds
    ]
    found.sort(key=lambda row: -row[-1])
    rows = [(name, f"{calls:,}", f"{own:.2f}", f"{total:.2f}") for name, calls, own, total in found]
    lines = [
        f"plain evaluate of {labels.n_votes:,} votes with {engine}: {seconds:.1f} s, accuracy {low:.3f} to {high:.3f}; "
        f"asked {ASKED['evaluate']}",
        "",
        as_text(("function", "calls", "own s", "with all below s"), rows),
    ]
    return Section("\n".join(lines), {"seconds": seconds, "functions": found})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale_gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="such as cuda:0; by default the first GPU")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the votes")
    parser.add_argument("--evaluate", action="store_true", help="a plain evaluate, and where its time goes")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        section = (evaluate_section if options.evaluate else gpu_section)(options.quick, options.device)
    print(section.text)
    if options.json:
        options.json.write_text(json.dumps(section.numbers, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
