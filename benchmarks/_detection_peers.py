"""Times another program's average precision; run by `benchmarks.detection` in an interpreter of its own.

Usage: python _detection_peers.py PACKAGE TRUTH.json RESULTS.json TURNS, where PACKAGE is hotcoco or pycocotools.
Files are read before the clock starts. Prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
import time


def main() -> None:
    """Time pairing and accumulation, best of some turns."""
    package, truth, results, turns = sys.argv[1:5]
    where = ("hotcoco", "hotcoco") if package == "hotcoco" else ("pycocotools.coco", "pycocotools.cocoeval")
    read, judge = importlib.import_module(where[0]).COCO, importlib.import_module(where[1]).COCOeval
    with contextlib.redirect_stdout(io.StringIO()):
        objects = read(truth)
        found = objects.loadRes(results)
        best = float("inf")
        for _ in range(int(turns)):
            evaluation = judge(objects, found, "bbox")
            started = time.process_time()  # other work on the machine does not count
            evaluation.evaluate()
            evaluation.accumulate()
            best = min(best, time.process_time() - started)
        evaluation.summarize()
    sys.stdout.write(json.dumps({"seconds": best, "ap": float(evaluation.stats[0])}) + "\n")


if __name__ == "__main__":
    main()
