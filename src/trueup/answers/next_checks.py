"""What more checked items would bring: about how wide the interval of a mean over items is after so many in all.

The mean is uncertain by a variance L, since nobody knows how far votes are off; the spread of the draws says it. A
check says of one item whether it is right, which differs from its own P(right) with a variance v. After m more checks
of items drawn at random the mean of those that are still open has the variance 1 / (1/L + m/v), and each of them its v.
Checks on items of clusters are worth fewer; and the mean of the population has the variance of drawing items, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from trueup._base.types import Booleans, Codes, Floats, Target
from trueup.core.checks import mean_others, shared_errors
from trueup.core.truth import TruthModel

ASKED = 0.1  # width of the intervals that advice is about, as a part of what the number can be
_USUAL_PAIRS = 20
_NUMBERS = (20, 50, 100, 200, 500)
_POINTS = 64  # draws of the coefficients
_LEAST = 0.05 * 0.95 / 2  # the variance of an item that no agreement of votes takes away


@dataclass(frozen=True)
class NextChecks:
    """What decides how much the next checks of items drawn at random tell of a mean over items."""

    n_items: float  # all items of the mean
    n_open: float  # those that are not checked
    n_drawn: int  # items that were drawn at random and checked already
    mean: float  # what is expected of the mean now
    spread: float  # its standard deviation, over these items
    variances: Floats  # (n_points,)
    beyond: float = 0.0  # the variance of the population's mean about that of these items
    overlap: float = 0.0  # by how much the design effect of clusters exceeds 1 where all items are checked

    def width(self, n: float, level: float) -> float:
        """The width of the interval after n checked items in all."""
        v, left = self.variances, max(self.n_open - (n - self.n_drawn), 0.0)
        if not left:
            return float(2 * _deviations(level) * np.sqrt(self.beyond))
        of_level = np.maximum((self.spread * self.n_items / self.n_open) ** 2 - v / self.n_open, 1e-12)
        more = self._worth(n) - self._worth(self.n_drawn)
        variance = (left / self.n_items) ** 2 * (1 / (1 / of_level + more / v) + v / left)
        return float(2 * _deviations(level) * np.sqrt(variance + self.beyond).mean())

    def _worth(self, n: float) -> float:
        """How many items drawn one by one so many checked ones are worth."""
        return n / (1 + self.overlap * n / self.n_items)

    def widths(self, level: float) -> dict[int, float]:
        """The width after round numbers of checked items in all, more than are checked already."""
        last = self.n_drawn + self.n_open
        return {n: self.width(n, level) for n in _NUMBERS if self.n_drawn < n < last}

    def number_for(self, width: float, level: float) -> int:
        """How many checked items in all give an interval of a width; all of them at most."""
        low, high = self.n_drawn, self.n_drawn + int(np.ceil(self.n_open))
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.width(middle, level) <= width else (middle + 1, high)
        return low


@dataclass(frozen=True)
class Goal:
    """How many items of each group to check in all for intervals of one width."""

    width: float
    numbers: dict[Any, int]

    @classmethod
    def of(cls, checks: Mapping[Any, NextChecks | None], level: float) -> Goal:
        """A tenth, or a quarter more than what a group would have with all of its items checked, where that is more."""
        least = [part.width(part.n_drawn + part.n_open, level) for part in checks.values() if part is not None]
        width = max([ASKED, *(1.25 * smallest for smallest in least)])
        return cls(width, {name: 0 if part is None else part.number_for(width, level) for name, part in checks.items()})


def on_which(target: Target) -> str:
    """The items that a number is about, in words."""
    return "on these items" if target == "sample" else "on further items of the same kind"


def next_checks(
    core: TruthModel,
    codes: Codes,
    members: Booleans | None = None,
    values: Floats | None = None,
    *,
    target: Target = "sample",
) -> NextChecks | None:
    """What the next checks tell of the accuracy, or of a mean of what true classes count for."""
    truth = core.truth
    codes, known = truth.at_drawn(codes), truth.at_drawn(core.known)
    inside = codes >= 0 if members is None else (codes >= 0) & truth.at_drawn(members)
    is_open = np.flatnonzero(inside & (known < 0))
    if not len(is_open):
        return None
    times = np.ones(len(inside)) if truth.times is None else truth.times
    at = np.flatnonzero(inside)
    masses = times[at] if core.weights is None else times[at] * truth.at_drawn(core.weights)[at]
    weights = masses / masses.sum()
    truths = truth.truths[:: max(1, truth.n_draws // 512)][:, at]  # enough for a mean and its spread
    if values is None:
        means = (truths == codes[at]) @ weights
    else:
        means = sum(values[k] * ((truths == k) @ weights) for k in np.flatnonzero(values))
    # The variance of 2,000 open items stands for that of all.
    some = is_open[np.linspace(0, len(is_open) - 1, min(len(is_open), 2000)).astype(np.int64)]
    chances, classes = core.chances_of(some, _POINTS)
    worth = (classes == codes[some, None]).astype(float) if values is None else values[classes]
    expected = np.einsum("icp,ic->ip", chances, worth)
    of_items = np.einsum("icp,ic->ip", chances, worth**2) - expected**2
    beyond = 0.0
    if target == "population":
        few = truths[:_POINTS]
        apart = (few == codes[at] if values is None else values[few]) - means[:_POINTS, None]
        clusters = None if core.clusters is None else truth.at_drawn(core.clusters)[at]
        beyond = _variance_beyond(apart * weights, times[at], clusters)
    return NextChecks(
        float(times[at].sum()),
        float(times[is_open].sum()),
        int((truth.at_drawn(core.drawn)[at] >= 0).sum()),
        float(means.mean()),
        float(np.ptp(np.quantile(means, [0.025, 0.975]))) / (2 * _deviations(0.95)),
        np.maximum(np.average(of_items, weights=times[some], axis=0), _LEAST),
        beyond,
        _overlap(core),
    )


def _variance_beyond(sums: Floats, times: Floats, clusters: Codes | None) -> float:
    """The variance of a mean where its independent parts are drawn anew; `sums` say how each item moves it."""
    if clusters is None:  # an item that stands for several is as many parts
        return float((sums**2 / times).sum(axis=1).mean())
    parts = np.unique(clusters, return_inverse=True)[1]
    return float(np.mean([(np.bincount(parts, row) ** 2).sum() for row in sums]))


def _overlap(core: TruthModel) -> float:
    """By how much the design effect of clusters exceeds 1 where all items are checked, as far as checks say."""
    if core.clusters is None:
        return 0.0
    at = np.flatnonzero(core.drawn >= 0)
    n_pairs, seen = 0.0, 0.0
    if len(at):
        n_pairs = mean_others(core.clusters[at]) * len(at) / 2
        seen = shared_errors(core.base[at], core.codes[:, at], core.drawn[at], core.clusters[at])
    # A correlation of 0.1 is usual for errors on items of one cluster, and counts as 20 pairs of checked items.
    correlation = (_USUAL_PAIRS * 0.1 + n_pairs * seen) / (_USUAL_PAIRS + n_pairs)
    return mean_others(core.clusters) * correlation


def _deviations(level: float) -> float:
    """How many standard deviations from the mean an interval ends."""
    return float(ndtri((1 + level) / 2))
