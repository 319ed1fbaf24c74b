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

from benchmarks._sections import apart

_READ = """
import sys, time
import polars
from benchmarks._peer_tasks import peak_bytes
from trueup import read_labels
before, start = peak_bytes(), time.perf_counter()
labels = read_labels(sys.argv[1])
print(peak_bytes() - before, time.perf_counter() - start, labels.n_votes)
"""


def write(path: str, n: int, text: bool) -> None:
    """Write a parquet file of so many votes, with names as text or as integers."""
    import polars as pl

    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(n // 5, dtype=np.int32), 5)
    labeler = ((np.arange(n) % 5) * 200 + np.repeat(rng.integers(0, 200, n // 5), 5)).astype(np.int32)
    frame = pl.DataFrame({"item": item, "labeler": labeler, "label": rng.integers(0, 10, n).astype(np.int32)})
    if text:
        names = {"item": "item-{}", "labeler": "w{}", "label": "class {}"}
        frame = frame.select(pl.format(name, column).alias(column) for column, name in names.items())
    frame.write_parquet(path)


def growth(n_votes: int, *, text: bool = False) -> tuple[float, float]:
    """Peak growth in bytes and seconds taken, for reading `n_votes` votes from a parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "votes.parquet")
        apart(write, path, n_votes, text)
        run = subprocess.run([sys.executable, "-c", _READ, path], check=True, capture_output=True, text=True)
    peak, seconds, read = run.stdout.split()
    assert int(read) == n_votes
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
