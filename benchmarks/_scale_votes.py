"""Votes for the benchmark of scale: made in parts, each from a seed of its own, and written as parquet files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks._crowdkit_votes import Columns, Size, make_votes

__all__ = ["VOTES_PER_ITEM", "write_votes"]

VOTES_PER_ITEM = 5


def write_votes(folder: Path, n_votes: int, n_files: int, *, n_labelers: int, n_classes: int = 2) -> int:
    """Write so many votes, no item in two files; returns the bytes of the files."""
    import polars

    size = Size(n_votes // n_files // VOTES_PER_ITEM, n_labelers, n_classes, VOTES_PER_ITEM)
    for number in range(n_files):
        votes: Columns = make_votes(size, seed=number)
        votes["item"] = votes["item"] + number * size.n_items
        narrow = {name: values.astype(np.int32) for name, values in votes.items()}
        polars.DataFrame(narrow).write_parquet(folder / f"votes-{number:05d}.parquet")
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))
