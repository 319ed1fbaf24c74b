"""Long work says so at its beginning, by how fast it goes on this machine."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

_LONG = 60.0  # seconds
_TRIAL = 2.0  # seconds after which the rest can be told

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
        self._clock, self._begin, self._is_told = clock, clock(), False

    def __call__(self, share: float) -> None:
        """So much of the work is done."""
        seconds = self._clock() - self._begin
        if self._is_told or seconds < _TRIAL or not 0 < share < 1:
            return
        self._is_told = True
        if seconds / share > _LONG:
            minutes = max(1, math.ceil(seconds * (1 - share) / share / 60))
            duration = f"{minutes} more minute" + "s" * (minutes > 1)
            logger.warning("%s will take about %s; pass progress= to watch it", self.what, duration)
