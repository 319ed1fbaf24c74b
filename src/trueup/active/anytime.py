r"""Intervals that hold at every look at once, and so also where somebody stops because of what they saw.

An interval of a fixed number of answers holds in 95 of 100 sessions *at that number*. Who looks after every answer and
stops when it is narrow, or when one system is ahead, stops more readily on an interval that is off. The estimates here
are means of what the draws add, each of mean zero given all before it, so that a mixture over the martingale
:math:`\exp(\lambda S_t - \lambda^2 V_t / 2)` bounds all looks at once (Robbins 1970); with estimated variances it holds
as the answers grow in number (Waudby-Smith et al. 2024). Against :math:`z_{1 - \alpha/2}` of one look that is

.. math:: c_n = \sqrt{2 \frac{n\rho^2 + 1}{n\rho^2} \log\frac{\sqrt{n\rho^2 + 1}}{\alpha}},

where :math:`\rho` is chosen to be narrowest near a planned number of answers; far from it little is lost.

References
----------
H. Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41,
1970. I. Waudby-Smith, D. Arbour, R. Sinha, E. Kennedy, A. Ramdas, "Time-uniform central limit theory and asymptotic
confidence sequences", Annals of Statistics 52, 2024.
"""

from __future__ import annotations

import math

from scipy.stats import norm

from trueup.posteriors import Estimate

PLANNED = 200  # answers near which the intervals are narrowest, where there is no budget


def anytime_factor(n: int, *, level: float, planned: int = PLANNED) -> float:
    """How many times as wide an interval must be to hold at every look at once.

    Parameters
    ----------
    n : int
        Answers that count.
    level : float
        E.g. 0.95.
    planned : int
        Answers near which the factor is smallest.

    Examples
    --------
    >>> round(anytime_factor(200, level=0.95), 2), round(anytime_factor(20, level=0.95), 2)
    (1.55, 1.92)
    """
    alpha = 1 - level
    rho = (1 - 2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / planned
    passed = max(n, 1) * rho
    bound = math.sqrt(2 * (passed + 1) / passed * math.log(math.sqrt(passed + 1) / alpha))
    return float(bound / norm.ppf(1 - alpha / 2))


def widened(estimate: Estimate, factor: float, *, level: float) -> tuple[float, float]:
    """The interval of an estimate, so many times as wide, within the bounds of the metric."""
    low, high = estimate.interval(level)
    middle, half = (low + high) / 2, factor * (high - low) / 2
    least, most = estimate.bounds
    return max(middle - half, least), min(middle + half, most)
