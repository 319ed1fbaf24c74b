"""Plain versions of what others do with vetted items: PPI++, importance sampling by strata (OASIS) and LURE."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import say
from benchmarks.peers import ask
from trueup._base.types import Codes, Floats

Ends = tuple[float, float]

_Z = 1.959964
_EVEN = 0.001  # OASIS: the share of even draws, as its authors set it
_STRATA = 30
_BINS = 100  # of scores, that are put together to strata
_PRIOR = 2.0  # answers
_MOST_DRAWS = 10  # for each item to vet: where all that matter are known no new one may come
_CLIP = 0.5  # LURE: of an even chance
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
    judged = [
        {"judge": np.append(sample.predicted, sample.others), "at": np.arange(len(sample.y)), "truth": sample.y}
        for sample in samples
    ]
    answer = ask("ppi-python", "ppi-python", judged)
    if answer.error:
        say(f"  ppi-python: {answer.error}")
    return [(float(low), float(high)) for low, high in answer.arrays] or None


# ------------------------------------------------------------------ sampling for precision, recall, F and accuracy


def value_of(measure: str, predicted: Codes | Floats, truth: Codes | Floats, weights: Floats | None = None) -> float:
    """The measure on items that may be weighted; NaN where it is not defined."""
    mass = np.ones(len(truth)) if weights is None else weights
    above, below = _parts(measure, np.asarray(predicted, dtype=float), np.asarray(truth, dtype=float))
    total = float(mass @ below)
    return float(mass @ above) / total if total > 0 else math.nan


def _parts(measure: str, predicted: Floats, truth: Floats) -> tuple[Floats, Floats]:
    """What each item adds above and below the line of the measure."""
    if measure == "accuracy":
        return (predicted == truth).astype(float), np.ones(len(truth))
    share = _share(measure)
    return predicted * truth, share * predicted + (1 - share) * truth


def _share(measure: str) -> float:
    """The α of Fα = TP / (α·predicted + (1 − α)·true): 1 for precision, 0 for recall, ½ for F."""
    return {"precision": 1.0, "recall": 0.0, "f1": 0.5}[measure]


def _deviation(measure: str, value: float, p: Floats, predicted: Floats) -> Floats:
    """Root of the expected square of an item's pull on the measure, if it is positive with probability p.

    Of a stratum p and `predicted` are means over its items.
    """
    if measure == "accuracy":
        return np.asarray(np.sqrt(p * (1 - p)))
    a, f = _share(measure), value
    if_predicted = a**2 * f**2 * (1 - p) + (1 - f) ** 2 * p
    return np.asarray(np.sqrt(predicted * if_predicted + (1 - predicted) * (1 - a) ** 2 * f**2 * p))


class _Strata:
    """Items by score, with a running guess of the share of positives in each stratum.

    The strata are of about equal cumulative roots of frequencies (Dalenius and Hodges 1959); the prior of each is its
    mean score, worth two answers, and fades as answers come in.
    """

    def __init__(self, predicted: Codes, score: Floats) -> None:
        counts, edges = np.histogram(score, bins=_BINS)
        roots = np.cumsum(np.sqrt(counts))
        stratum = np.minimum((roots - np.sqrt(counts) / 2) / roots[-1] * _STRATA, _STRATA - 1).astype(np.int64)
        of_bin = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, _BINS - 1)
        _, self.of = np.unique(stratum[of_bin], return_inverse=True)
        self.size = np.bincount(self.of).astype(float)
        self.members = [np.flatnonzero(self.of == k) for k in range(len(self.size))]
        self.predicted = np.bincount(self.of, predicted) / self.size
        self.guess = np.bincount(self.of, score) / self.size
        self.positive, self.seen = np.zeros_like(self.size), np.zeros_like(self.size)

    @property
    def p(self) -> Floats:
        """The share of positives that each stratum is expected to have."""
        prior = _PRIOR / np.maximum(self.seen, 1)
        return np.asarray((self.positive + prior * self.guess) / (self.seen + prior))

    def tell(self, k: int, truth: int) -> None:
        """One answer more."""
        self.positive[self.of[k]] += truth
        self.seen[self.of[k]] += 1

    def guess_of(self, measure: str) -> float:
        """The measure by what is expected of the strata; the middle where it is not defined."""
        if measure == "accuracy":
            return 0.5
        share, p = _share(measure), self.p
        below = float(self.size @ (share * self.predicted + (1 - share) * p))
        return float(self.size @ (self.predicted * p)) / below if below > 0 else 0.5


Vet = Callable[[int], int]


def oasis(
    measure: str, predicted: Codes, score: Floats, vet: Vet, numbers: Sequence[int], rng: np.random.Generator
) -> list[float]:
    """A measure by adaptive importance sampling of strata, with replacement, once so many different items are vetted.

    After Marchant and Rubinstein, "In search of an entity resolution OASIS", VLDB 2017, with the settings of the paper:
    strata of the score, a chance for each that minimises the variance under the current guess, a few even draws.

    `score` is a guess of P(positive), `vet` tells the true class of an item, and `numbers` of vetted items grow.
    """
    strata = _Strata(predicted, score)
    first_guess = value = strata.guess_of(measure)
    share = strata.size / len(predicted)
    known: dict[int, int] = {}
    above = below = 0.0
    values: list[float] = []
    for _ in range(_MOST_DRAWS * numbers[-1]):
        wanted = share * _deviation(measure, value, strata.p, strata.predicted)
        total = float(wanted.sum())
        chance = (1 - _EVEN) * wanted / total + _EVEN * share if total > 0 else share
        stratum = int(rng.choice(len(chance), p=chance / chance.sum()))
        k = int(rng.choice(strata.members[stratum]))
        if k not in known:
            if len(known) == numbers[len(values)]:  # as it stood when the next item was drawn
                values.append(above / below if below > 0 else math.nan)
                if len(values) == len(numbers):
                    return values
            known[k] = vet(k)
        strata.tell(k, known[k])
        weight = share[stratum] / chance[stratum]
        more = _parts(measure, predicted[[k]].astype(float), np.array([float(known[k])]))
        above, below = above + weight * float(more[0][0]), below + weight * float(more[1][0])
        value = above / below if below > 0 else first_guess
    last = above / below if below > 0 else math.nan
    return [*values, *[last] * (len(numbers) - len(values))]


def lure(
    measure: str, predicted: Codes, score: Floats, vet: Vet, numbers: Sequence[int], rng: np.random.Generator
) -> list[float]:
    """A measure by active sampling without replacement and the weights of Farquhar et al. (2021).

    After Kossen et al., "Active testing: sample-efficient model evaluation", ICML 2021: chances in proportion to what
    the score expects an item to add, none below half of an even one, as their code sets it; a quotient is that of two
    weighted sums. Parameters as for `oasis`.
    """
    n_items = len(predicted)
    hard, left = predicted.astype(float), np.ones(n_items, dtype=bool)
    wanted = _deviation(measure, _Strata(predicted, score).guess_of(measure), score, hard)
    drawn: list[int] = []
    truth: list[int] = []
    chances: list[float] = []
    values: list[float] = []
    for m in range(1, numbers[-1] + 1):
        even = left / left.sum()
        open_ones = np.where(left, wanted, 0.0)
        total = float(open_ones.sum())
        chance = np.where(left, np.maximum(open_ones / total, _CLIP * even), 0.0) if total > 0 else even
        chance = chance / chance.sum()
        k = int(rng.choice(n_items, p=chance))
        left[k] = False
        drawn.append(k)
        truth.append(vet(k))
        chances.append(float(chance[k]))
        if m in numbers:
            weights = tu.active.lure_weights(chances, np.arange(1, m + 1), n_items)
            values.append(value_of(measure, hard[drawn], np.array(truth), weights))
    return values
