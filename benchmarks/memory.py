"""Memory of reading votes from parquet, as a multiple of the raw int32 triples.

Run ``python -m benchmarks.memory [votes]``. The file is made in one process and read in another, whose peak resident
memory is compared with what it was before reading; importing the libraries is not counted.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

_MAKE = """
import sys
import numpy as np, polars as pl
path, n, text = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "text"
rng = np.random.default_rng(0)
frame = pl.DataFrame({
    "item": np.repeat(np.arange(n // 5, dtype=np.int32), 5),
    "labeler": ((np.arange(n) % 5) * 200 + np.repeat(rng.integers(0, 200, n // 5), 5)).astype(np.int32),
    "label": rng.integers(0, 10, n).astype(np.int32),
})
if text:
    frame = frame.select(pl.format("item-{}", "item").alias("item"), pl.format("w{}", "labeler").alias("labeler"),
                         pl.format("class {}", "label").alias("label"))
frame.write_parquet(path)
"""

_READ = """
import resource, sys, time
import polars
from trueup import read_labels
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before, start = peak(), time.perf_counter()
labels = read_labels(sys.argv[1])
print(peak() - before, time.perf_counter() - start, labels.n_votes)
"""


def growth(n_votes: int, *, text: bool = False) -> tuple[float, float]:
    """Peak growth in bytes and seconds taken, for reading `n_votes` votes from a parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "votes.parquet")
        subprocess.run([sys.executable, "-c", _MAKE, path, str(n_votes), "text" if text else "int"], check=True)
        run = subprocess.run([sys.executable, "-c", _READ, path], check=True, capture_output=True, text=True)
    peak, seconds, read = run.stdout.split()
    if int(read) != n_votes:
        raise AssertionError(f"{read} votes were read, {n_votes} were written")
    return float(peak), float(seconds)


def main() -> None:
    n_votes = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    raw = n_votes * 3 * np.dtype(np.int32).itemsize
    for text in (False, True):
        peak, seconds = growth(n_votes, text=text)
        names = "text names" if text else "integer names"
        print(
            f"{n_votes:,} votes, {names}: +{peak / 1e6:.0f} MB, {peak / raw:.1f} × raw int32 triples, {seconds:.1f} s"
        )


if __name__ == "__main__":
    main()
