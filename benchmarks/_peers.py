"""Times crowd-kit in an interpreter of its own, which need not have trueup.

Usage: python _peers.py COLUMNS.npz LABELS.npy. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def peak_bytes() -> int:
    """The most memory this process has had.

    On Linux `getrusage` also counts the process that started this one, from which the kernel's own figure is free.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def dawid_skene(frame: Any) -> dict[str, Any]:
    """Twenty iterations, no early stop."""
    from crowdkit.aggregation import DawidSkene  # type: ignore[import-not-found]

    taken, model = seconds(lambda: DawidSkene(n_iter=20, tol=-np.inf).fit(frame))
    return {"seconds": taken, "labels": model.labels_}


def main(columns: str, labels: str) -> None:
    import crowdkit  # type: ignore[import-not-found]
    import pandas as pd

    with np.load(columns) as data:
        frame = pd.DataFrame({"task": data["item"], "worker": data["labeler"], "label": data["label"]})
    dawid_skene(frame.iloc[:1000])  # lazy imports and first calls are not timed
    result = dawid_skene(frame)
    np.save(labels, result.pop("labels").sort_index().to_numpy())
    print(json.dumps({**result, "peak": peak_bytes(), "version": crowdkit.__version__}))


if __name__ == "__main__":
    main(*sys.argv[1:])
