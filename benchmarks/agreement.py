"""Agreement of labelers: the coefficients beside those of other packages, how often intervals hold, and seconds.

Run ``python -m benchmarks.agreement [section ...] [--quick] [--json out.json]``. TRUEUP_AGREEMENT_PEERS names a Python
that has krippendorff, pingouin, statsmodels and irrCAC.

- peers: the largest difference on 50 random tables, half of them with missing votes.
- coverage: how often 95% intervals hold the value of all items and labelers, of 400 runs.
- speed: a million votes of 200 labelers.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import say
from benchmarks._sections import run_sections

SCRIPT = Path(__file__).with_name("_agreement_peers.py")
PRIOR = np.array([0.6, 0.3, 0.1])
HARD = 0.3  # of the items, on which labelers are half as good
CASES = (  # items, labelers, how alike labelers are, missing votes, labelers
    (30, 5, 8, 0.0, "random"),
    (30, 10, 8, 0.3, "random"),
    (100, 5, 8, 0.0, "random"),
    (100, 30, 20, 0.3, "random"),
    (200, 10, 20, 0.5, "random"),
    (500, 5, 20, 0.0, "random"),
    (100, 3, 8, 0.0, "random"),
    (100, 4, 8, 0.0, "random"),
    (30, 3, 8, 0.0, "fixed"),
    (100, 5, 8, 0.3, "fixed"),
)
NAMES = ("percent", "cohen", "scott", "fleiss", "conger", "alpha", "ac1", "brennan_prediger")


def random_tables(n: int) -> list[dict[str, Any]]:
    """Tables of votes, items × labelers, every other one with missing votes (None)."""
    rng = np.random.default_rng(48)
    tables = []
    for k in range(n):
        n_items, n_labelers, n_classes = int(rng.integers(8, 60)), int(rng.integers(2, 8)), int(rng.integers(2, 7))
        truth = rng.integers(1, n_classes + 1, n_items)[:, None]
        votes = np.where(
            rng.random((n_items, n_labelers)) < 0.6, truth, rng.integers(1, n_classes + 1, (n_items, n_labelers))
        )
        gone = (rng.random(votes.shape) < 0.3) & (np.arange(n_labelers) > 0) & bool(k % 2)
        table = [[None if g else int(v) for v, g in zip(*row, strict=True)] for row in zip(votes, gone, strict=True)]
        tables.append({"table": table, "classes": list(range(1, n_classes + 1))})
    return tables


def ours(case: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    """The coefficients of trueup by the names that the other packages' have, less the package."""
    table = np.array([[-1 if v is None else v for v in row] for row in case["table"]])
    labels = tu.Labels.from_matrix(table, missing=-1, classes=case["classes"])
    answers = {s: tu.agreement(labels, scale=s) for s in ("nominal", "ordinal", "interval", "ratio")}
    linear = tu.agreement(labels, scale="ordinal", weighting="linear")
    found = {}
    for name in names:
        key, _, kind = name.partition(" ")
        scale = kind if kind in answers else "interval" if key.startswith("icc") or kind else "nominal"
        found[name] = (linear if kind == "linear" else answers[scale])[key].mean
    return found


def peers(quick: bool) -> str:
    """Differences from other packages."""
    python = os.environ.get("TRUEUP_AGREEMENT_PEERS")
    if python is None:
        raise FileNotFoundError("TRUEUP_AGREEMENT_PEERS names no Python with the other packages")
    tables = random_tables(10 if quick else 50)
    done = subprocess.run([python, SCRIPT], input=json.dumps(tables), capture_output=True, text=True, check=True)
    gaps: dict[str, list[float]] = {}
    for case, theirs in zip(tables, json.loads(done.stdout), strict=True):
        own = ours(case, [name.partition(" ")[2] for name in theirs])
        for name, value in theirs.items():
            if np.isfinite(value):
                gaps.setdefault(name, []).append(abs(value - own[name.partition(" ")[2]]))
    lines = [f"{'coefficient':<42}{'tables':>8}{'largest difference':>20}"]
    lines += [f"{name:<42}{len(found):>8}{max(found):>20.1e}" for name, found in sorted(gaps.items())]
    return "\n".join(lines)


def draw_labelers(rng: np.random.Generator, n: int, alike: float) -> np.ndarray:
    """Confusion matrices of random labelers, who differ in skill and in what they say when they do not see."""
    lapse = rng.beta(0.25 * alike, 0.75 * alike, size=n)[:, None, None]
    habit = rng.dirichlet(np.full(len(PRIOR), 2.0), size=n)[:, None, :]
    return (1 - lapse) * np.eye(len(PRIOR)) + lapse * habit


def _on_hard_items(matrices: np.ndarray) -> np.ndarray:
    return 0.5 * matrices + 0.5 * PRIOR[::-1]


def draw_votes(rng: np.random.Generator, n_items: int, matrices: np.ndarray, missing: float) -> np.ndarray:
    """Votes, items × labelers, -1 for none; errors come together on hard items."""
    truth, hard = rng.choice(len(PRIOR), size=n_items, p=PRIOR), rng.random(n_items) < HARD
    chances = np.where(hard[None, :, None], _on_hard_items(matrices)[:, truth], matrices[:, truth])
    votes = (rng.random((*chances.shape[:2], 1)) > chances.cumsum(axis=-1)).sum(axis=-1).clip(max=len(PRIOR) - 1).T
    votes[rng.random(votes.shape) < missing] = -1
    return np.asarray(votes)


def true_values(matrices: np.ndarray) -> dict[str, float]:
    """The coefficients of all items, of labelers drawn among these, by arithmetic."""
    n, n_classes = matrices.shape[:2]
    kinds = [
        (PRIOR[y] * share, table[:, y])
        for share, table in ((1 - HARD, matrices), (HARD, _on_hard_items(matrices)))
        for y in range(n_classes)
    ]
    same = sum(w * ((t.sum(axis=0) ** 2).sum() - (t**2).sum()) for w, t in kinds) / (n * (n - 1))
    margins = sum(w * t for w, t in kinds)
    pooled = (margins.mean(axis=0) ** 2).sum()
    by_labeler = ((margins.sum(axis=0) ** 2).sum() - (margins**2).sum()) / (n * (n - 1))
    few, chosen = min(n, 400), margins[:400]  # of pairs there are many
    joint = sum(w * t[:few] @ t[:few].T for w, t in kinds)
    at = np.triu_indices(few, 1)

    def beyond(agreed: Any, chance: Any) -> Any:
        return (agreed - chance) / (1 - chance)

    middles = ((chosen[:, None] + chosen) ** 2).sum(axis=-1) / 4
    return {
        "percent": same,
        "cohen": float(beyond(joint, chosen @ chosen.T)[at].mean()),
        "scott": float(beyond(joint, middles)[at].mean()),
        "fleiss": beyond(same, pooled),
        "conger": beyond(same, by_labeler),
        "alpha": beyond(same, pooled),
        "ac1": beyond(same, (1 - pooled) / (n_classes - 1)),
        "brennan_prediger": beyond(same, 1 / n_classes),
    }


def coverage_of(
    n_items: int,
    n_labelers: int,
    alike: float,
    missing: float,
    kind: str,
    *,
    runs: int,
    widths: Sequence[float] = (1.0,),
) -> list[dict[str, float]]:
    """How often the intervals hold, for each factor that they are made wider by."""
    rng = np.random.default_rng([n_items, n_labelers, int(100 * missing)])
    fixed = draw_labelers(rng, n_labelers, alike) if kind == "fixed" else None
    true = true_values(draw_labelers(np.random.default_rng(1), 4000, alike) if fixed is None else fixed)
    held = [dict.fromkeys(NAMES, 0) for _ in widths]
    for _ in range(runs):
        matrices = draw_labelers(rng, n_labelers, alike) if fixed is None else fixed
        votes = draw_votes(rng, n_items, matrices, missing)
        answer = tu.agreement(tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1, 2]), labelers=kind)
        for name in NAMES:
            low, high = answer[name].interval(0.95)
            for width, counts in zip(widths, held, strict=True):
                counts[name] += abs(true[name] - (low + high) / 2) <= (high - low) / 2 * width
    return [{name: count / runs for name, count in counts.items()} for counts in held]


def coverage(quick: bool) -> str:
    """Coverage in each case."""
    runs = 40 if quick else 400
    lines = [f"{'items':>5} {'labelers':>8} {'missing':>7} {'about':>7}  " + "".join(f"{n:>17}" for n in NAMES)]
    for n_items, n_labelers, alike, missing, kind in CASES:
        (found,) = coverage_of(n_items, n_labelers, alike, missing, kind, runs=runs)
        say(f"{n_items} items, {n_labelers} labelers")
        cells = "".join(f"{100 * found[name]:>17.1f}" for name in NAMES)
        lines.append(f"{n_items:>5} {n_labelers:>8} {missing:>7} {kind:>7}  {cells}")
    return "\n".join(lines)


def speed(quick: bool) -> str:
    """Seconds for a million votes."""
    rng = np.random.default_rng(0)
    lines = [f"{'votes':<44}{'seconds':>9}{'of the processor':>18}"]
    for n_items, per_item in ((5_000, 200), (200_000, 5)):
        n_items = n_items // (20 if quick else 1)
        truth = rng.integers(0, 3, n_items)
        item = np.repeat(np.arange(n_items), per_item)
        labeler = np.argsort(rng.random((n_items, 200)), axis=1, kind="stable")[:, :per_item].ravel()
        votes = np.where(rng.random(len(item)) < 0.7, truth[item], rng.integers(0, 3, len(item)))
        labels = tu.Labels.from_frame({"item": item, "labeler": labeler, "label": votes})
        tu.agreement(labels.select(items=labels.items[:50]))
        wall, worked = time.perf_counter(), time.process_time()
        tu.agreement(labels)
        wall, worked = time.perf_counter() - wall, time.process_time() - worked
        name = f"{n_items:,} items, {per_item} of 200 labelers each"
        lines.append(f"{name:<44}{wall:>9.1f}{worked:>18.1f}")
    return "\n".join(lines)


main = partial(run_sections, "agreement", __doc__, {"peers": peers, "coverage": coverage, "speed": speed})


if __name__ == "__main__":
    main()
