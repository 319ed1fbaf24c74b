"""Time and memory of a plain `evaluate`, each in a process of its own, with compiled code and without."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks._coverage_tally import Section, as_text
from benchmarks._engine_runs import Case, Figure, Row

__all__ = ["SPEED_FIGURE"]

# Items, classes and the limits in seconds and bytes; five votes an item, 200 labelers.
SIZES: dict[str, tuple[int, int, float, float]] = {
    "10⁴ votes": (2_000, 2, math.inf, math.inf),
    "10⁵ votes": (20_000, 2, 8.0, math.inf),
    "10⁶ votes": (200_000, 2, 30.0, math.inf),
    "10⁷ votes": (2_000_000, 2, 240.0, 3e9),
    "2000 classes, 6000 votes": (1_200, 2_000, 30.0, math.inf),
}
ENGINES = {"numba": "trueup[fast]", "scipy": "core only"}
MOST_SECONDS = 1200.0

_MAKE = """
import pickle, sys
from trueup.simulate import dawid_skene
n_items, n_classes, seed = (int(word) for word in sys.argv[2:5])
data = dawid_skene(n_items=n_items, n_classes=n_classes, n_labelers=200, votes_per_item=5, accuracy=(0.6, 0.9),
                   random_state=seed)
with open(sys.argv[1], "wb") as file:
    pickle.dump((data.labels, data.predictions, data.accuracy), file)
"""

# Importing and compiling are not counted: a small call comes first.
_MEASURE = """
import pickle, resource, sys, time, warnings
import trueup as tu
warnings.simplefilter("ignore")
small = tu.simulate.dawid_skene(n_items=300, n_labelers=10, random_state=0)
tu.evaluate(small.predictions, small.labels)
with open(sys.argv[1], "rb") as file:
    labels, predictions, true = pickle.load(file)
started = time.perf_counter()
ev = tu.evaluate(predictions, labels)
estimate = ev["accuracy"]
low, high = estimate.interval(0.95)
print(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
      true, estimate.mean, low, high)
"""


def run_speed(case: Case) -> list[Row]:
    n_items, n_classes, _, _ = SIZES[case.world]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "votes.pickle")
        made = [sys.executable, "-c", _MAKE, file, str(n_items), str(n_classes), str(case.seed)]
        subprocess.run(made, check=True)
        for engine in ENGINES:
            environment = {**os.environ, "TRUEUP_ENGINE": engine}
            try:
                done = subprocess.run(
                    [sys.executable, "-c", _MEASURE, file],
                    check=True,
                    capture_output=True,
                    text=True,
                    env=environment,
                    timeout=MOST_SECONDS,
                )
            except subprocess.TimeoutExpired:
                rows.append({"engine": engine, "seconds": None})
                continue
            names = ("seconds", "peak", "true", "mean", "low", "high")
            numbers = dict(zip(names, map(float, done.stdout.split()), strict=True))
            rows.append({"engine": engine, **numbers})
    return rows


def summarise_speed(rows: Sequence[Row]) -> Section:
    lines, numbers = [], {}
    for row in rows:
        _, _, seconds, peak = SIZES[row["world"]]
        limits = [f"{seconds:.0f}"] * math.isfinite(seconds) + [f"{peak / 1e9:.0f} GB"] * math.isfinite(peak)
        asked = ", ".join(limits)
        if row["seconds"] is None:
            lines.append([row["world"], ENGINES[row["engine"]], f"over {MOST_SECONDS:.0f}", "", asked, "", ""])
            continue
        interval = f"{row['low']:.4f} to {row['high']:.4f}"
        cells = [f"{row['seconds']:.1f}", f"{row['peak'] / 1e9:.2f}", asked, f"{row['true']:.4f}", interval]
        lines.append([row["world"], ENGINES[row["engine"]], *cells])
        numbers[f"{row['world']}, {row['engine']}"] = {name: row[name] for name in ("seconds", "peak")}
    head = ["data", "with", "seconds", "peak GB", "asked of trueup[fast]", "true accuracy", "95% interval"]
    return Section(
        "A plain `evaluate`, all that it does by default; 5 votes an item, 200 labelers; a process for each, compiled "
        f"before; peak\nmemory with the libraries and the votes themselves\n\n{as_text(head, lines, left=(0, 1))}",
        numbers,
    )


SPEED_FIGURE = Figure(
    worlds=tuple(SIZES),
    run=run_speed,
    summarise=summarise_speed,
    n_runs=1,
    n_quick=1,
    first_seed=166_000,
    quick_worlds=("10⁴ votes",),
)
