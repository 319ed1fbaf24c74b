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
from collections.abc import Sequence

import numpy as np
import scipy

from trueup.posteriors import Estimate

PLANNED = 200  # answers near which the intervals are narrowest, where there is no budget
_LEVEL = 0.95  # of the interval that the spread of an estimate is taken from


def anytime_bound(n: int, *, level: float, planned: int = PLANNED) -> float:
    """How many standard deviations an interval must reach to either side to hold at every look at once.

    Parameters
    ----------
    n : int
        Draws that count.
    level : float
        E.g. 0.95.
    planned : int
        Draws near which the bound is smallest.

    Examples
    --------
    >>> round(anytime_bound(200, level=0.95), 2), round(anytime_bound(20, level=0.95), 2)
    (3.04, 3.75)
    """
    alpha = 1 - level
    rho_squared = (1 - 2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / planned
    time = max(n, 1) * rho_squared
    return math.sqrt(2 * (time + 1) / time * math.log(math.sqrt(time + 1) / alpha))


def anytime_interval(
    worlds: Sequence[Estimate], n: int, *, level: float, planned: int = PLANNED
) -> tuple[float, float]:
    """The interval that holds at every look at once.

    Parameters
    ----------
    worlds : sequence of Estimate
        The estimate; where draws are undecided, that with these at worst and that with these at best.
    n, level, planned
        As in `anytime_bound`.
    """
    reach = anytime_bound(n, level=level, planned=planned) / float(scipy.stats.norm.ppf((1 + _LEVEL) / 2))
    ends = np.array([world.interval(_LEVEL) for world in worlds])
    middle, half = ends.mean(axis=1), np.ptp(ends, axis=1) / 2
    least, most = worlds[0].bounds
    return max(float((middle - reach * half).min()), least), min(float((middle + reach * half).max()), most)
