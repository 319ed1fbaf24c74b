"""Plain versions of what others do with vetted items: PPI++, importance sampling by strata (OASIS) and LURE."""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._coverage_tally import say

__all__ = ["MEASURES", "Sample", "lure", "oasis", "ppi_of_pool", "ppi_plus_plus", "ppi_python", "ppi_ratio_of_pool"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Ends = tuple[float, float]

_Z = 1.959964
_PEERS = Path(__file__).with_name("_vetting_peers.py")
_EVEN = 0.001  # OASIS: the share of even draws, as its authors set it
_FLOOR = 0.1  # LURE: the share of even draws
MEASURES = ("accuracy", "precision", "recall", "f1")


@dataclass(frozen=True, eq=False)
class Sample:
    """Vetted values, and what a model predicted for them and for the items nobody vetted."""

    y: Floats
    predicted: Floats
    others: Floats


def ppi_plus_plus(sample: Sample) -> tuple[float, Ends]:
    """The mean by prediction-powered inference with the best weight, and its 95% interval.

    Angelopoulos, Duchi, Zrnic, "PPI++: efficient prediction-powered inference", 2023.
    """
    y, f, u = sample.y, sample.predicted, sample.others
    n, n_others = len(y), len(u)
    spread = float(np.var(np.concatenate([f, u]), ddof=1))  # as ppi-python has it; the other moments are plain means
    both = float(np.mean((y - y.mean()) * (f - f.mean())))
    weight = float(np.clip(both / ((1 + n / n_others) * spread), 0, 1)) if spread > 0 else 0.0
    mean = float(y.mean() + weight * (u.mean() - f.mean()))
    half = _Z * math.sqrt(float(np.var(y - weight * f)) / n + weight**2 * float(np.var(u)) / n_others)
    return mean, (mean - half, mean + half)


def ppi_of_pool(sample: Sample) -> tuple[float, Ends]:
    """The same for the mean over exactly these items, vetted and others: a finite pool, all of it predicted.

    What was predicted for the pool is known and adds no spread, and the vetted items are a share of the pool drawn
    without replacement.
    """
    y, f, u = sample.y, sample.predicted, sample.others
    n, size = len(y), len(y) + len(u)
    spread = float(np.mean((f - f.mean()) ** 2))
    both = float(np.mean((y - y.mean()) * (f - f.mean())))
    weight = float(np.clip(both / spread, 0, 1)) if spread > 0 else 0.0
    mean = float(y.mean() + weight * ((f.sum() + u.sum()) / size - f.mean()))
    half = _Z * math.sqrt(float(np.var(y - weight * f)) / n * (1 - n / size))
    return mean, (mean - half, mean + half)


def ppi_ratio_of_pool(above: Sample, below: Sample) -> tuple[float, Ends] | None:
    """The ratio of two means over the pool, linearised, such as precision; None where the lower one is not positive."""
    lower = float(_mean_of_pool(below))
    if lower <= 0:
        return None
    first = float(_mean_of_pool(above)) / lower

    def residual(name: str) -> Floats:
        return np.asarray(getattr(above, name) - first * getattr(below, name))

    mean, (low, high) = ppi_of_pool(Sample(residual("y"), residual("predicted"), residual("others")))
    return first + mean / lower, (first + low / lower, first + high / lower)


def _mean_of_pool(sample: Sample) -> float:
    """What was predicted for the pool, put right by what was seen of the vetted items."""
    pool = np.concatenate([sample.predicted, sample.others])
    return float(pool.mean() + (sample.y - sample.predicted).mean())


def ppi_python(samples: Sequence[Sample]) -> list[Ends] | None:
    """The intervals of ppi-python for the same samples, or None where TRUEUP_PEERS names no Python that has it."""
    python = os.environ.get("TRUEUP_PEERS")
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "samples.npz", Path(folder) / "intervals.npy"
        arrays: dict[str, Any] = {}
        for k, sample in enumerate(samples):
            arrays |= {f"y{k}": sample.y, f"f{k}": sample.predicted, f"u{k}": sample.others}
        np.savez(source, **arrays)
        # -P: what lies beside the script must not shadow what the peer imports (benchmarks/coverage.py, coverage).
        call = [python, "-P", str(_PEERS), str(source), str(result)]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode:
            say(f"  ppi-python failed, left out: {done.stderr.strip().splitlines()[-1:]}")
            return None
        return [(float(low), float(high)) for low, high in np.load(result)]


# ------------------------------------------------------------------ sampling for precision, recall, F and accuracy


def _ratio(measure: str, hit: Floats, predicted: Floats, truth: Floats, weights: Floats) -> float:
    """The measure on weighted items; NaN where it is not defined."""
    if measure == "accuracy":
        return float(weights @ hit / weights.sum())
    share = _share(measure)
    below = float(weights @ (share * predicted + (1 - share) * truth))
    return float(weights @ (predicted * truth)) / below if below > 0 else math.nan


def _share(measure: str) -> float:
    """The α of Fα = TP / (α·predicted + (1 − α)·true): 1 for precision, 0 for recall, ½ for F."""
    return {"precision": 1.0, "recall": 0.0, "f1": 0.5}[measure]


def _deviation(measure: str, value: float, p: Floats, predicted: Floats) -> Floats:
    """Root of the expected square of an item's pull on the measure, if it is positive with probability p."""
    if measure == "accuracy":
        return np.asarray(np.sqrt(p * (1 - p)))
    a, f = _share(measure), 0.5 if math.isnan(value) else value
    if_predicted = np.sqrt(a**2 * f**2 * (1 - p) + (1 - f) ** 2 * p)
    return np.asarray((1 - a) * (1 - predicted) * f * np.sqrt(p) + predicted * if_predicted)


class _Strata:
    """Items by prediction and score, with a running guess of the share of positives in each stratum."""

    def __init__(self, predicted: Codes, score: Floats, n_strata: int = 10) -> None:
        ranks = np.searchsorted(np.quantile(score, np.linspace(0, 1, n_strata + 1)[1:-1]), score, side="right")
        _, self.of = np.unique(ranks * 2 + predicted, return_inverse=True)
        self.size = np.bincount(self.of).astype(float)
        # The authors' prior: as many made-up answers as twice the strata, shared out, with the scores' mean.
        made_up = 2.0
        self.positive = made_up * np.bincount(self.of, score) / self.size
        self.seen = np.full(len(self.size), made_up)

    @property
    def p(self) -> Floats:
        """The share of positives that each item is expected to have."""
        return np.asarray((self.positive / self.seen)[self.of])

    def tell(self, k: int, truth: int) -> None:
        """One answer more."""
        self.positive[self.of[k]] += truth
        self.seen[self.of[k]] += 1


def oasis(
    measure: str, predicted: Codes, score: Floats, vet: Callable[[int], int], n: int, rng: np.random.Generator
) -> float:
    """A measure by adaptive importance sampling of strata, with replacement, until n different items are vetted.

    After Marchant and Rubinstein, "In search of an entity resolution OASIS", VLDB 2017: the strata are those of the
    score, the chances those that minimise the variance under the current guess, with a few even draws.

    Parameters
    ----------
    measure : str
        Of `MEASURES`.
    predicted : integer array of shape (n_items,)
        0 or 1.
    score : array of shape (n_items,)
        A guess of P(positive).
    vet : callable
        From the position of an item to its true class.
    """
    strata, value = _Strata(predicted, score), math.nan
    n_items = len(predicted)
    known: dict[int, int] = {}
    drawn: list[int] = []
    weights: list[float] = []
    hard = predicted.astype(float)
    while len(known) < min(n, n_items) and len(drawn) < 20 * n:
        wanted = _deviation(measure, value, strata.p, hard)
        total = wanted.sum()
        chance = (1 - _EVEN) * wanted / total + _EVEN / n_items if total > 0 else np.full(n_items, 1 / n_items)
        k = int(rng.choice(n_items, p=chance / chance.sum()))
        if k not in known:
            known[k] = vet(k)
            strata.tell(k, known[k])
        drawn.append(k)
        weights.append(1 / (n_items * chance[k]))
        value = _of_drawn(measure, hard, drawn, known, weights)
    return value


def lure(
    measure: str, predicted: Codes, score: Floats, vet: Callable[[int], int], n: int, rng: np.random.Generator
) -> float:
    """A measure by active sampling without replacement and the weights of Farquhar et al. (2021).

    The chances are those of `oasis`, with a larger share of even draws since no item can be drawn twice; a quotient is
    that of two weighted sums (Kossen et al., "Active testing: sample-efficient model evaluation", ICML 2021).
    """
    strata, value = _Strata(predicted, score), math.nan
    n_items = len(predicted)
    hard, left = predicted.astype(float), np.ones(n_items, dtype=bool)
    known: dict[int, int] = {}
    drawn: list[int] = []
    chances: list[float] = []
    for m in range(1, min(n, n_items) + 1):
        wanted = np.where(left, _deviation(measure, value, strata.p, hard), 0)
        total, even = wanted.sum(), left / left.sum()
        chance = (1 - _FLOOR) * wanted / total + _FLOOR * even if total > 0 else even
        k = int(rng.choice(n_items, p=chance / chance.sum()))
        known[k], left[k] = vet(k), False
        strata.tell(k, known[k])
        drawn.append(k)
        chances.append(float(chance[k]))
        place = np.arange(1, m + 1)
        rest = (n_items - m) / np.maximum(n_items - place, 1)
        weights = 1 + rest * (1 / ((n_items - place + 1) * np.array(chances)) - 1)
        value = _of_drawn(measure, hard, drawn, known, weights.tolist())
    return value


def _of_drawn(measure: str, hard: Floats, drawn: list[int], known: dict[int, int], weights: list[float]) -> float:
    truth = np.array([known[k] for k in drawn], dtype=float)
    return _ratio(measure, (hard[drawn] == truth).astype(float), hard[drawn], truth, np.array(weights))
