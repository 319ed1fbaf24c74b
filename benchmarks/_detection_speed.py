"""How long pairing and average precision take, beside COCO's program and hotcoco, and for many drawn truths."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._coverage_tally import Section, as_text, say
from benchmarks._detection_data import all_coco_boxes
from benchmarks._detection_hard import as_coco
from trueup.detection import Shapes, coco_scores, match
from trueup.detection.metrics import DetectionMetrics

__all__ = ["speed"]

N_DETECTIONS, N_DRAWS, N_TURNS = 180_000, 1_000, 3
_PEERS = Path(__file__).with_name("_detection_peers.py")


def detections_like(objects: Shapes, n: int, seed: int = 0) -> Shapes:
    """Detections near objects, some of them twice or of another class, and some where nothing is."""
    rng = np.random.default_rng(seed)
    at = rng.integers(len(objects), size=n)
    sides = np.tile(objects.boxes[at, 2:], 2)
    is_near = rng.random(n) < 0.6
    spread = np.where(is_near, 0.08, 1.5)[:, None]
    boxes = objects.boxes[at] + rng.normal(size=(n, 4)) * spread * sides
    boxes[:, :2] = np.maximum(boxes[:, :2], 0.0)
    boxes[:, 2:] = np.maximum(np.abs(boxes[:, 2:]), 2.0)
    other = rng.integers(len(objects.categories), size=n)
    scores = np.clip(rng.beta(2, 4, size=n) + 0.3 * is_near, 0, 1)
    return Shapes(
        images=objects.images,
        categories=objects.categories,
        sources=("detector",),
        image=objects.image[at],
        category=np.where(rng.random(n) < 0.1, other, objects.category[at]).astype(np.int32),
        source=np.zeros(n, dtype=np.int32),
        boxes=boxes,
        areas=boxes[:, 2] * boxes[:, 3],
        is_crowd=np.zeros(n, dtype=bool),
        scores=scores,
        ids=np.arange(n).astype(object),
        category_ids=objects.category_ids,
    )


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, so that other work on the machine does not count."""
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


def speed(quick: bool) -> Section:
    """One evaluation, and a thousand draws of the truth."""
    objects = all_coco_boxes()
    found = detections_like(objects, N_DETECTIONS // 20 if quick else N_DETECTIONS)
    coco_scores(found.select(np.arange(5_000)), objects)  # compiled code is loaded
    turns = [seconds(lambda: coco_scores(found, objects)) for _ in range(N_TURNS)]
    own, scores = min(taken for taken, _ in turns), turns[0][1]
    say(f"trueup {own:.2f} s")
    lines = [["trueup", f"{own:.2f}", "1.0", f"{scores.ap():.6f}"]]
    numbers: dict[str, float] = {"trueup": own}
    python = os.environ.get("TRUEUP_PEERS")
    if python:
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("truth.json", "results.json")]
            for file, content in zip(files, as_coco(found, objects), strict=True):
                file.write_text(json.dumps(content), encoding="utf-8")
            for package, n_turns in (("hotcoco", N_TURNS), ("pycocotools", 1)):
                call = [python, str(_PEERS), package, *map(str, files), str(n_turns)]
                environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
                told = subprocess.run(call, capture_output=True, text=True, check=True, env=environment).stdout
                result = json.loads(told.splitlines()[-1])
                say(f"{package} {result['seconds']:.2f} s")
                lines.append(
                    [package, f"{result['seconds']:.2f}", f"{result['seconds'] / own:.1f}", f"{result['ap']:.6f}"]
                )
                numbers[package] = result["seconds"]
    text = (
        f"Boxes: {objects.images.n:,} images, {len(objects):,} objects, {len(found):,} detections, one thread, seconds "
        "of the processor; files are read before.\nAsked: at most 2 × hotcoco's time and a tenth of pycocotools'\n\n"
        + as_text(["package", "s", "times trueup's", "AP"], lines, left=(0,))
    )
    if not python:
        text += "\nothers are left out: set TRUEUP_PEERS to a Python that has hotcoco and pycocotools"
    drawn, matched = _drawn(found, objects, 100 if quick else N_DRAWS)
    numbers |= {"draws": drawn, "match": matched}
    text += (
        f"\n\n{100 if quick else N_DRAWS:,} draws of the truth, AP over ten overlaps: {drawn:.2f} s, {drawn / own:.1f} "
        f"× one evaluation (asked: at most 10); making the pool once: {matched:.1f} s"
    )
    return Section(text, numbers)


def _drawn(found: Shapes, objects: Shapes, n_draws: int) -> tuple[float, float]:
    """Seconds of average precision on drawn truths, and of matching."""
    matched, pool = seconds(lambda: match(found, replace(objects, seen=None)))
    say(f"match {matched:.1f} s, {len(pool):,} candidates")
    chance = np.where((pool.votes == 1).any(axis=0), 0.95, 0.05)
    real = np.random.default_rng(0).random((n_draws, len(pool)), dtype=np.float32) < chance
    metrics = DetectionMetrics(pool, np.arange(len(pool)))
    metrics.values("ap50", "detector", real[:20])  # compiled code is loaded
    taken, _ = seconds(lambda: metrics.values("ap", "detector", real))
    return taken, matched
