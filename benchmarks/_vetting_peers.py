"""Intervals of ppi-python, for `benchmarks.vetting`.

This file is run by the interpreter that TRUEUP_PEERS names, where ppi-python is installed and trueup need not be:
``python _vetting_peers.py SAMPLES.npz INTERVALS.npy``. Sample k is ``y{k}`` (vetted values), ``f{k}`` (what was
predicted for them) and ``u{k}`` (what was predicted for the others). Row k of the result is its interval.
"""

from __future__ import annotations

import sys

import numpy as np


def main(samples: str, intervals: str) -> None:
    from ppi_py import ppi_mean_ci  # type: ignore[import-not-found]

    with np.load(samples) as data:
        found = [
            np.ravel(ppi_mean_ci(data[f"y{k}"], data[f"f{k}"], data[f"u{k}"], alpha=0.05))
            for k in range(len(data.files) // 3)
        ]
    np.save(intervals, np.array(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
