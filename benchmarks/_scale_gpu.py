"""The engine on a GPU beside two threads of the same machine's processor: iterations of EM, sweeps of the sampler.

Run ``python -m benchmarks._scale_gpu [--device cuda:0] [--quick] [--json out.json]``. Votes are drawn by a seed: five
or ten on each item, 10,000 labelers who are right with probability .6 to .95, two classes. An iteration is one of a fit
by `trueup.noise.fit`: the time of a fit with more iterations less that of one with fewer, over their difference, so
that placing the votes is not in it. The processor works with compiled code in a process that may use two cores. A sweep
is one of `trueup.noise.sample`, half of them recorded. ``--quick`` takes a hundredth of the votes and any device.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
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
from benchmarks._coverage_tally import Section
from trueup.exceptions import TrueupWarning

__all__ = ["gpu_section"]

N_LABELERS = 10_000
EM_VOTES, SWEPT_VOTES = 100_000_000, 10_000_000
N_SWEEPS = 1000
N_THREADS = 2
ASKED = {"iteration": "≤ 2.5 ms", "ratio": "≥ 50 ×", "sweeps": "≤ 30 s"}


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


def fit_times(labels: tu.Labels, model: str, engine: str, fewer: int, more: int) -> dict[str, Any]:
    """Seconds of an iteration and of all that comes before, and what the fit learned."""

    def seconds(max_iter: int) -> tuple[float, tu.noise.NoiseModel]:
        started = time.perf_counter()
        fitted = tu.noise.fit(labels, model, engine=engine, max_iter=max_iter, tol=0.0)
        return time.perf_counter() - started, fitted

    seconds(fewer)  # compiles, and warms up
    (short, _), (long, fitted) = seconds(fewer), seconds(more)
    each = (long - short) / (more - fewer)
    learned = fitted.ability_ if model == "glad" else fitted.confusion_.ravel()  # type: ignore[attr-defined]
    return {"iteration": each, "before": short - fewer * each, "learned": learned[:: len(learned) // 1000].tolist()}


def sweep_times(labels: tu.Labels, model: tu.noise.NoiseModel, engine: str, n_sweeps: int, n_chains: int) -> float:
    """Seconds of so many sweeps of each of some chains, half of them recorded."""
    started = time.perf_counter()
    tu.noise.sample(
        labels,
        model,
        engine=engine,
        n_chains=n_chains,
        n_warmup=n_sweeps // 2,
        n_draws=n_sweeps - n_sweeps // 2,
        random_state=0,
        warn=False,
    )
    return time.perf_counter() - started


def on_processor(work: str, *sizes: int) -> Any:
    """What a function of this module measures in a process of its own that may use two cores."""
    code = (
        "import json, os, sys; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(sys.argv[2])]); "
        "from benchmarks import _scale_gpu as b; import warnings; warnings.simplefilter('ignore'); "
        "print(json.dumps(getattr(b, sys.argv[1])(*map(int, sys.argv[3:]))))"
    )
    command = [sys.executable, "-c", code, work, str(N_THREADS), *map(str, sizes)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "2"}
    )
    return json.loads(done.stdout.splitlines()[-1])


def processor_em(n_votes: int, votes_per_item: int) -> dict[str, Any]:
    """Dawid–Skene by compiled code; called in a process of its own."""
    return fit_times(make_labels(n_votes, votes_per_item), "dawid-skene", "numba", 1, 4)


def processor_glad(n_votes: int, votes_per_item: int) -> dict[str, Any]:
    """GLAD, which has no compiled code; called in a process of its own."""
    return fit_times(make_labels(n_votes, votes_per_item), "glad", "scipy", 1, 2)


def processor_sweeps(n_votes: int, votes_per_item: int) -> float:
    """Seconds of a sweep of compiled code, from ten more of them; called in a process of its own."""
    labels = make_labels(n_votes, votes_per_item)
    sweep_times(make_labels(N_LABELERS, votes_per_item), tu.noise.DawidSkene(), "numba", 8, 1)  # compiles
    few, many = (sweep_times(labels, tu.noise.DawidSkene(), "numba", n, 1) for n in (8, 24))
    return (many - few) / 16


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
    from trueup.noise.torch.em import DevicePasses

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
        "processor": _processor(),
        "torch": torch.__version__,
        "copy": copy_seconds(EM_VOTES // scale, device),
    }
    lines = [
        f"{numbers['device']} with torch {numbers['torch']}; {N_THREADS} threads of {numbers['processor']}",
        f"{N_LABELERS:,} labelers, 2 classes; copying {EM_VOTES // scale:,} votes of 32 bits takes "
        f"{1e3 * numbers['copy']:.2f} ms",
        "",
        f"{'Dawid–Skene, an iteration':42s} {'GPU':>10s} {'alone':>10s} {'processor':>10s} {'ratio':>8s} {'apart':>9s}",
    ]
    for votes_per_item in (5, 10):
        lines.append(_em_row(numbers, EM_VOTES // scale, votes_per_item, device))
    lines += [f"asked: {ASKED['iteration']}, {ASKED['ratio']}; alone: the pass over the votes without the M-step", ""]
    lines += _glad_rows(numbers, SWEPT_VOTES // scale, device)
    lines += _sweep_rows(numbers, SWEPT_VOTES // scale, N_SWEEPS // (10 if quick else 1), device)
    return Section("\n".join(lines), numbers)


def _em_row(numbers: dict[str, Any], n_votes: int, votes_per_item: int, device: str) -> str:
    labels = make_labels(n_votes, votes_per_item)
    mine = fit_times(labels, "dawid-skene", f"torch:{device}", 10, 110)
    mine["pass"] = pass_seconds(labels, device)
    again = fit_times(labels, "dawid-skene", f"torch:{device}", 1, 4)
    theirs = on_processor("processor_em", n_votes, votes_per_item)
    apart = float(np.abs(np.subtract(again["learned"], theirs["learned"])).max())
    ratio = theirs["iteration"] / mine["iteration"]
    row = {"gpu": mine["iteration"], "pass": mine["pass"], "before": mine["before"], "processor": theirs["iteration"]}
    numbers[f"em, {votes_per_item} votes an item"] = row | {"ratio": ratio, "apart": apart}
    name = f"{n_votes:,} votes, {votes_per_item} on an item"
    times = " ".join(f"{1e3 * s:7.2f} ms" for s in (mine["iteration"], mine["pass"], theirs["iteration"]))
    return f"{name:42s} {times} {ratio:6.0f} × {apart:9.1e}"


def _glad_rows(numbers: dict[str, Any], n_votes: int, device: str) -> list[str]:
    mine = fit_times(make_labels(n_votes, 5), "glad", f"torch:{device}", 1, 2)
    more = fit_times(make_labels(n_votes, 5), "glad", f"torch:{device}", 2, 12)
    theirs = on_processor("processor_glad", n_votes, 5)
    apart = float(np.abs(np.subtract(mine["learned"], theirs["learned"])).max())
    ratio = theirs["iteration"] / more["iteration"]
    numbers["glad"] = {"gpu": more["iteration"], "processor": theirs["iteration"], "ratio": ratio, "apart": apart}
    times = f"{1e3 * more['iteration']:7.1f} ms {'':10s} {1e3 * theirs['iteration']:7.0f} ms"
    return [f"{f'GLAD, an iteration of {n_votes:,} votes':42s} {times} {ratio:6.0f} × {apart:9.1e}", ""]


def _sweep_rows(numbers: dict[str, Any], n_votes: int, n_sweeps: int, device: str) -> list[str]:
    labels = make_labels(n_votes, 5)
    models: dict[str, tuple[tu.noise.NoiseModel, int]] = {
        "Dawid–Skene, one chain": (tu.noise.DawidSkene(), 1),
        "clusters, one chain": (tu.noise.Clusters(averaged=False), 1),
        "clusters, four chains at once": (tu.noise.Clusters(averaged=False), 4),
    }
    rows = [f"{f'{n_sweeps:,} sweeps of {n_votes:,} votes':42s} {'GPU':>10s} {'processor':>21s}"]
    theirs = n_sweeps * on_processor("processor_sweeps", n_votes, 5)
    for name, (model, n_chains) in models.items():
        sweep_times(labels, model, f"torch:{device}", 8, n_chains)
        mine = sweep_times(labels, model, f"torch:{device}", n_sweeps, n_chains)
        beside = theirs if name.startswith("Dawid") else None
        numbers[f"sweeps, {name}"] = {"gpu": mine, "processor": beside}
        rows.append(f"{name:42s} {mine:8.1f} s" + (f" {beside:19.0f} s" if beside else ""))
    return [*rows, f"asked: {ASKED['sweeps']}"]


def _processor() -> str:
    """The name of the processor, as the system tells it."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks._scale_gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="such as cuda:0; by default the first GPU")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the votes")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        section = gpu_section(options.quick, options.device)
    print(section.text)
    if options.json:
        options.json.write_text(json.dumps(section.numbers, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
