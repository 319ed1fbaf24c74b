"""Textbook intervals of a share, for baselines that count labels as if they were true."""

from __future__ import annotations

import math

from scipy import stats

from trueup._validation import check_level, check_number
from trueup.exceptions import InvalidParameter
from trueup.posteriors.continuous import ContinuousEstimate, beta_estimate

__all__ = ["jeffreys", "jeffreys_estimate", "wald", "wilson"]


def _check_counts(successes: float, n: float) -> tuple[float, float]:
    n = check_number(n, name="n", low=0.0)
    successes = check_number(successes, name="successes", low=0.0)
    if successes > n:
        raise InvalidParameter(f"successes must not exceed n, got {successes:g} of {n:g}")
    return successes, n


def wald(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """The interval p̂ ± z√(p̂(1−p̂)/n), clipped to [0, 1]; too narrow for small n and for p̂ near 0 or 1.

    Examples
    --------
    >>> tuple(round(end, 4) for end in wald(8, 10))
    (0.5521, 1.0)
    """
    successes, n = _check_counts(successes, n)
    z = float(stats.norm.isf((1 - check_level(level)) / 2))
    if n == 0:
        return math.nan, math.nan
    share = successes / n
    half = z * math.sqrt(share * (1 - share) / n)
    return max(share - half, 0.0), min(share + half, 1.0)


def wilson(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval; (0, 1) when nothing was counted.

    Examples
    --------
    >>> tuple(round(end, 4) for end in wilson(8, 10))
    (0.4902, 0.9433)
    """
    successes, n = _check_counts(successes, n)
    z2 = float(stats.norm.isf((1 - check_level(level)) / 2)) ** 2
    if n == 0:
        return 0.0, 1.0
    center = (successes + z2 / 2) / (n + z2)
    half = math.sqrt(z2) / (n + z2) * math.sqrt(successes * (n - successes) / n + z2 / 4)
    low = 0.0 if successes == 0 else max(center - half, 0.0)
    high = 1.0 if successes == n else min(center + half, 1.0)
    return low, high


def jeffreys(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Equal-tailed interval of the Jeffreys posterior, reaching 0 (or 1) when no (or every) trial succeeded.

    References
    ----------
    Brown, Cai and DasGupta (2001), Interval estimation for a binomial proportion. Statistical Science 16.
    """
    successes, n = _check_counts(successes, n)
    low, high = jeffreys_estimate(successes, n).interval(level, kind="equal")
    return 0.0 if successes == 0 else low, 1.0 if successes == n else high


def jeffreys_estimate(successes: float, n: float, *, name: str | None = None) -> ContinuousEstimate:
    """The Beta(successes + ½, failures + ½) posterior of a share.

    Examples
    --------
    >>> jeffreys_estimate(80, 100, name="accuracy")
    Estimate(accuracy: 0.797, 95% interval 0.718 to 0.873)
    """
    successes, n = _check_counts(successes, n)
    return beta_estimate(successes + 0.5, n - successes + 0.5, name=name)
