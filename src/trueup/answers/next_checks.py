"""What more checked items would bring: about how wide the interval of a mean over items is after so many in all.

The mean is uncertain by a variance L, since nobody knows how far votes are off; the spread of the draws says it. A
check says of one item whether it is right, which differs from its own P(right) with a variance v. After m more checks
of items drawn at random the mean of those that are still open has the variance 1 / (1/L + m/v), and each of them its v.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from trueup._base.types import Booleans, Codes, Floats
from trueup.core.truth import TruthModel

_NUMBERS = (20, 50, 100, 200, 500)
_MOST_DRAWS = 512
_MOST_ITEMS = 2000  # open ones, whose variance stands for that of all
_POINTS = 64  # draws of the coefficients
_LEAST = 0.05 * 0.95 / 2  # the variance of an item that no agreement of votes takes away


@dataclass(frozen=True)
class NextChecks:
    """What decides how much the next checks of items drawn at random tell of a mean over items."""

    n_items: float  # all items of the mean, and those that are not checked
    n_open: float  # all items of the mean, and those that are not checked
    n_drawn: int  # items that were drawn at random and checked already
    mean: float  # what is expected of the mean now, and its standard deviation, over these items
    spread: float  # what is expected of the mean now, and its standard deviation, over these items
    variances: Floats  # (n_points,)
    beyond: float = 0.0

    def width(self, n: float, level: float) -> float:
        """The width of the interval after n checked items in all."""
        more, v = n - self.n_drawn, self.variances
        left = max(self.n_open - more, 0.0)
        if not left:
            return float(2 * _deviations(level) * np.sqrt(self.beyond))
        of_level = np.maximum((self.spread * self.n_items / self.n_open) ** 2 - v / self.n_open, 1e-12)
        variance = (left / self.n_items) ** 2 * (1 / (1 / of_level + more / v) + v / left)
        return float(2 * _deviations(level) * np.sqrt(variance + self.beyond).mean())

    def of_population(self, width: float, level: float) -> NextChecks:
        """The same for the mean of the population, whose interval is so wide now."""
        total = (width / (2 * _deviations(level))) ** 2
        return replace(self, beyond=max(total - self.spread**2, self.mean * (1 - self.mean) / self.n_items))

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


def next_checks(
    core: TruthModel, codes: Codes, members: Booleans | None = None, values: Floats | None = None
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
    weights = times[at] / times[at].sum()
    truths = truth.truths[:: max(1, truth.n_draws // _MOST_DRAWS)][:, at]
    if values is None:
        means = (truths == codes[at]) @ weights
    else:
        means = sum(values[k] * ((truths == k) @ weights) for k in np.flatnonzero(values))
    some = is_open[np.linspace(0, len(is_open) - 1, min(len(is_open), _MOST_ITEMS)).astype(np.int64)]
    chances, classes = core.chances_of(some, _POINTS)
    worth = (classes == codes[some, None]).astype(float) if values is None else values[classes]
    expected = np.einsum("icp,ic->ip", chances, worth)
    of_items = np.einsum("icp,ic->ip", chances, worth**2) - expected**2
    return NextChecks(
        float(times[at].sum()),
        float(times[is_open].sum()),
        int((truth.at_drawn(core.drawn)[at] >= 0).sum()),
        float(means.mean()),
        float(np.ptp(np.quantile(means, [0.025, 0.975]))) / (2 * _deviations(0.95)),
        np.maximum(np.average(of_items, weights=times[some], axis=0), _LEAST),
    )


def _deviations(level: float) -> float:
    """How many standard deviations from the mean an interval ends."""
    return float(ndtri((1 + level) / 2))
