"""Counting how often intervals hold the truth, and printing the counts."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from trueup.posteriors import Estimate

LEVEL = 0.95
_SLACK = 1e-9  # a true metric is a quotient of whole numbers and may be an end of the interval itself
Thing = TypeVar("Thing")


@dataclass
class Tally:
    """Cases of one quantity and one method: errors of the estimate, widths of its interval, whether it held."""

    errors: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    equal: list[bool] = field(default_factory=list)

    def add(self, true: float, estimate: Estimate) -> None:
        """Hold an estimate against the truth; a metric that is undefined in truth is no case."""
        if not math.isnan(true):
            self.add_interval(true, estimate.mean, estimate.interval(LEVEL), estimate.interval(LEVEL, "equal"))

    def add_interval(
        self, true: float, mean: float, interval: tuple[float, float], equal: tuple[float, float] | None = None
    ) -> None:
        """The same with the estimate in numbers: the interval shown, and the one with equal tails."""
        self.errors.append(mean - true)
        self.widths.append(interval[1] - interval[0])
        self.held.append(inside(true, interval))
        self.equal.append(inside(true, interval if equal is None else equal))

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    def __len__(self) -> int:
        return len(self.held)

    @property
    def coverage(self) -> float:
        """Share of the cases whose (shortest) interval held the truth."""
        return float(np.mean(self.held)) if self.held else math.nan

    @property
    def coverage_equal(self) -> float:
        """The same for intervals with equal tails."""
        return float(np.mean(self.equal)) if self.equal else math.nan

    @property
    def standard_error(self) -> float:
        """Binomial standard error of the coverage, with half a case added to either side so that it is never 0."""
        n = len(self)
        rate = (sum(self.held) + 0.5) / (n + 1)
        return math.sqrt(rate * (1 - rate) / n) if n else math.nan

    @property
    def bias(self) -> float:
        """Mean error."""
        return float(np.mean(self.errors))

    @property
    def bias_error(self) -> float:
        """Standard error of the mean error."""
        return float(np.std(self.errors, ddof=1) / math.sqrt(len(self))) if len(self) > 1 else math.nan

    @property
    def mae(self) -> float:
        """Mean absolute error."""
        return float(np.mean(np.abs(self.errors)))

    @property
    def rmse(self) -> float:
        """Root of the mean squared error."""
        return float(np.sqrt(np.mean(np.square(self.errors))))

    @property
    def width(self) -> float:
        """Mean width of the intervals."""
        return float(np.mean(self.widths))


def inside(true: float, interval: tuple[float, float]) -> bool:
    """Whether an interval holds a number."""
    return bool(interval[0] - _SLACK <= true <= interval[1] + _SLACK)


def wald(share: float, n: float) -> tuple[float, float]:
    """The interval of textbooks for a share of n trials."""
    half = 1.959964 * math.sqrt(max(share * (1 - share), 0.0) / n)
    return share - half, share + half


def share(tally: Tally) -> str:
    """Coverage with its standard error, in percent."""
    return f"{100 * tally.coverage:.1f} ± {100 * tally.standard_error:.1f}"


def error_over_runs(held: Sequence[bool], runs: Sequence[int]) -> float:
    """Standard error of a coverage where the cases of one run, as many in each, depend on one another."""
    names, place = np.unique(np.asarray(runs), return_inverse=True)
    if len(names) < 2:
        return math.nan
    shares = np.bincount(place, weights=np.asarray(held, dtype=float)) / np.bincount(place)
    return float(shares.std(ddof=1) / math.sqrt(len(names)))


def share_over_runs(tally: Tally, runs: Sequence[int]) -> str:
    """Coverage with its standard error over runs, in percent."""
    return f"{100 * tally.coverage:.1f} ± {100 * error_over_runs(tally.held, runs):.1f}"


def as_text(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: tuple[int, ...] = (0,)) -> str:
    """A table; the columns in `left` are aligned to the left."""
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    lines = [
        "  ".join(c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in [head, *rows]
    ]
    return "\n".join([lines[0].rstrip(), "-" * len(lines[0]), *(line.rstrip() for line in lines[1:])])


def say(line: str) -> None:
    """A line on the error stream."""
    print(line, file=sys.stderr, flush=True)


def tracked(things: Sequence[Thing], what: str) -> Iterator[Thing]:
    """The things, with the share done on the error stream now and then."""
    started = last = time.monotonic()
    for number, thing in enumerate(things):
        yield thing
        now = time.monotonic()
        if now - last > 15 or number + 1 == len(things):
            last = now
            say(f"  {what}: {number + 1} of {len(things)} after {now - started:.0f} s")
