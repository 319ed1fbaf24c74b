"""What calibrated intervals cost: against scikit-learn's report on hard labels, and effective draws a second."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import classification_report

import trueup as tu
from benchmarks._coverage_tally import Section, as_text, say

__all__ = ["speed"]

SIX = ("accuracy", "precision", "recall", "f1", "specificity", "mcc")
MATRICES = np.array([[[1 - e, e], [e, 1 - e]] for e in (0.1, 0.15, 0.2, 0.25, 0.3)])


def make(n_items: int, *, seed: int) -> tuple[tu.Labels, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Five votes an item, two classes; a classifier of accuracy 0.8; the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_items) < 0.4).astype(np.int8)
    votes = np.empty((n_items, len(MATRICES)), dtype=np.int8)
    for t, matrix in enumerate(MATRICES):
        votes[:, t] = truth ^ (rng.random(n_items) < matrix[0, 1])
    predictions = (truth ^ (rng.random(n_items) < 0.2)).astype(np.int64)
    return tu.Labels.from_matrix(votes, classes=[0, 1]), predictions, truth.astype(np.int64)


def evaluate_six(labels: tu.Labels, predictions: npt.NDArray[np.int64]) -> dict[str, tuple[float, float]]:
    """Six metrics with their intervals, everything from votes and predictions on."""
    noise = tu.noise.Confusion(MATRICES, prior=[0.6, 0.4])
    ev = tu.evaluate(predictions, labels, noise=noise, metrics=SIX, random_state=0)
    return {name: ev[name].interval(0.95) for name in SIX}


def seconds(call: Any, *arguments: Any) -> float:
    started = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - started


def speed(quick: bool) -> Section:
    """Known noise against scikit-learn, its growth, and learned noise in effective draws."""
    parts, numbers = [], {}
    for title, part in (("known", _against_sklearn), ("growth", _growth), ("learned", _learned)):
        text, numbers[title] = part(quick)
        parts.append(text)
    return Section("\n\n".join(parts), numbers)


def _against_sklearn(quick: bool) -> tuple[str, dict[str, float]]:
    n = 100_000 if quick else 1_000_000
    labels, predictions, truth = make(n, seed=1)
    evaluate_six(*make(1000, seed=2)[:2])
    turns = [
        (seconds(evaluate_six, labels, predictions), seconds(classification_report, truth, predictions))
        for _ in range(3)
    ]
    ours, theirs = (min(times) for times in zip(*turns, strict=True))
    text = (
        f"Known noise, {n:,} items × 5 votes, 2 classes: {len(SIX)} metrics with intervals {ours:.2f} s, "
        f"scikit-learn's classification_report on {n:,}\nhard labels {theirs:.2f} s (best of 3, taking turns): "
        f"{ours / theirs:.2f} × (target: at most 5 ×)"
    )
    return text, {"trueup": ours, "sklearn": theirs, "ratio": ours / theirs}


def _growth(quick: bool) -> tuple[str, dict[str, float]]:
    rows, numbers = [], {}
    for exponent in (4, 5, 6) if quick else (4, 5, 6, 7):
        n = 10**exponent
        say(f"  {n:,} items")
        labels, predictions, _ = make(n, seed=exponent)
        best = min(seconds(evaluate_six, labels, predictions) for _ in range(3))
        rows.append([f"{n:,}", f"{best:.3f}", f"{best / n * 1e9:.0f}"])
        numbers[str(n)] = best
        del labels
    table = as_text(["items", "seconds", "ns an item"], rows)
    return f"Growth (labels built beforehand; target: linear, so ns an item no larger at the end)\n{table}", numbers


def _learned(quick: bool) -> tuple[str, dict[str, Any]]:
    n = 2000 if quick else 10_000
    sim = tu.simulate.dawid_skene(n_items=n, n_classes=5, n_labelers=20, votes_per_item=5, random_state=3)
    tu.noise.sample(
        sim.labels, "dawid-skene", raters=sim.predictions, n_warmup=5, n_draws=10, warn=False, random_state=0
    )
    rows, numbers = [], {}
    settings: list[tuple[str, str, dict[str, Any]]] = [
        ("default: 4 chains, 1000 + 2000", "dawid-skene", {}),
        ("2 chains, 200 + 1500", "dawid-skene", {"n_chains": 2, "n_warmup": 200, "n_draws": 1500}),
        ("default: 4 chains, 1000 + 2000", "clusters", {}),
    ]
    for label, model, sampling in settings:
        started = time.perf_counter()
        draws = tu.noise.sample(sim.labels, model, raters=sim.predictions, warn=False, random_state=0, **sampling)
        took = time.perf_counter() - started
        rate = draws.ess / took
        rows.append(
            [model, label, f"{took:.1f}", f"{draws.ess:.0f}", f"{draws.rhat:.3f}", f"{rate:.0f}", f"{2000 / rate:.1f}"]
        )
        numbers[f"{model}, {label}"] = {"seconds": took, "ess": draws.ess, "rhat": draws.rhat, "for_2000": 2000 / rate}
    head = ["model", "sweeps", "seconds", "effective draws", "R-hat", "effective / s", "s for 2000"]
    table = as_text(head, rows, left=(0, 1))
    return (
        f"Learned noise, {n:,} items × 5 votes × 5 classes (target: 2000 effective draws in at most 20 s)\n{table}",
        numbers,
    )
