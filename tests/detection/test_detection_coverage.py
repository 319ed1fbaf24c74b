"""Whether the intervals of detection hold against a known truth, with annotators who err together."""

import numpy as np
import pytest

from trueup.detection import evaluate, match, metrics, simulate_boxes
from trueup.detection.metrics import DetectionMetrics
from trueup.detection.shapes import box_overlaps

NAMES = ["precision", "recall", "froc", "panoptic_quality", "ap50", "ap", "ap_small", "ap_medium", "ap_large"]


def true_candidates(pool, truth):
    """Which candidates are objects: each object is the candidate that it overlaps most, from a half on."""
    is_real = np.zeros(len(pool), dtype=bool)
    for image in range(pool.images.n):
        own = np.flatnonzero(pool.image == image)
        there = truth.boxes[truth.image == image]
        if len(own) and len(there):
            overlaps = box_overlaps(there, pool.boxes[own])
            is_real[own[overlaps.argmax(axis=1)[overlaps.max(axis=1) >= 0.5]]] = True
    return is_real


def held(n_runs, monkeypatch):
    """How often the 95% interval of the plain answer holds the truth, by metric."""
    monkeypatch.setattr(metrics, "check_partition", lambda *_: None)  # the boxes overlap, which changes no number
    hits = {name: [] for name in NAMES}
    for seed in range(n_runs):
        data = simulate_boxes(n_images=30, n_annotators=4, random_state=seed)
        pool = match(data.found, data.objects)
        truth = DetectionMetrics(pool, np.arange(len(pool)))
        is_real = true_candidates(pool, data.truth)[None]
        answer = evaluate(pool, metrics=NAMES, n_draws=200, random_state=seed)
        for name in NAMES:
            low, high = answer[name].interval(0.95)
            hits[name].append(low <= truth.values(name, pool.systems[0], is_real)[0] <= high)
    return {name: float(np.mean(hit)) for name, hit in hits.items()}


@pytest.mark.slow
def test_the_plain_answer_holds_often(monkeypatch):
    shares = held(30, monkeypatch)
    assert min(shares.values()) >= 0.9, shares
