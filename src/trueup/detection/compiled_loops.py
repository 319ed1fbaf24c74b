"""The loops over detections, compiled; imported only where numba is installed."""

from __future__ import annotations

import numba

from trueup.detection import loops

match_groups = numba.njit(cache=True, nogil=True)(loops.match_groups)
fill_average_precisions = numba.njit(cache=True, nogil=True)(loops.fill_average_precisions)
fill_sensitivities = numba.njit(cache=True, nogil=True)(loops.fill_sensitivities)
fill_scores = numba.njit(cache=True, nogil=True)(loops.fill_scores)
