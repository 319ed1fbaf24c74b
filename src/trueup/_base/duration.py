"""Long work says so at its beginning, by how fast it goes on this machine."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

_LONG = 60.0  # seconds
_TRIAL = 2.0  # seconds after which the rest can be told
_TRIAL_SHARE = 0.01  # of the work, whose pace is taken
_TRIALS = 3  # such parts

logger = logging.getLogger("trueup")


class LongWork:
    """Listens to progress, and logs once, on the logger "trueup", how long the whole will take if that is long."""

    def __init__(self, what: str, hint: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self.what, self.hint = what, hint
        self._clock, self._is_told = clock, False
        self._begin, self._mark = 0.0, (0.0, 0.0)
        self._paces: list[float] = []

    def __call__(self, share: float) -> None:
        """So much of the work is done."""
        now = self._clock()
        if not self._begin:
            self._begin, self._mark = now, (now, share)
        since, done = now - self._mark[0], share - self._mark[1]
        if self._is_told or done < _TRIAL_SHARE:
            return
        self._mark = now, share
        self._paces.append(since / done)
        if len(self._paces) < _TRIALS or now - self._begin < _TRIAL:
            return
        self._is_told = True
        # Compiling, which is done once, falls into some of the parts and says nothing of the pace.
        seconds = min(self._paces)
        if seconds > _LONG:
            minutes = max(1, math.ceil(seconds * (1 - share) / 60))
            duration = f"{minutes} more minute" + "s" * (minutes > 1)
            logger.warning("%s will take about %s%s", self.what, duration, f"; {self.hint}" if self.hint else "")
