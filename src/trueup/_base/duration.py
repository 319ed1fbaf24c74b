"""Long work says so at its beginning, by how fast it goes on this machine."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

_LONG = 60.0  # seconds
_TRIAL = 2.0  # seconds after which the rest can be told
_TRIAL_SHARE = 0.02  # of the work

logger = logging.getLogger("trueup")


class LongWork:
    """Listens to progress, and logs once, on the logger "trueup", how long the whole will take if that is long.

    Parameters
    ----------
    what : str
        What is done, e.g. "drawing the truth of 20,000 items".
    clock : callable
        Seconds.
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.what = what
        self._clock, self._is_told = clock, False
        self._first: tuple[float, float] | None = None

    def __call__(self, share: float) -> None:
        """So much of the work is done."""
        now = self._clock()
        if self._first is None:  # what came before, such as compiling, is done once and says nothing of the pace
            self._first = now, share
        begin, begun = self._first
        seconds, done = now - begin, share - begun
        if self._is_told or seconds < _TRIAL or done < _TRIAL_SHARE:
            return
        self._is_told = True
        if seconds / done > _LONG:
            minutes = max(1, math.ceil(seconds * (1 - share) / done / 60))
            duration = f"{minutes} more minute" + "s" * (minutes > 1)
            logger.warning("%s will take about %s; pass progress= to watch it", self.what, duration)
