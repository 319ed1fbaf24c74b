"""The loops over detections, compiled; imported only where numba is installed."""

from __future__ import annotations

import numba
import numba.extending

from trueup.detection import loops

numba.extending.register_jitable(loops.mean_precision)  # the others call it
match_groups = numba.njit(cache=True, nogil=True)(loops.match_groups)
fill_average_precisions = numba.njit(cache=True, nogil=True)(loops.fill_average_precisions)
fill_average_precisions_of_area = numba.njit(cache=True, nogil=True)(loops.fill_average_precisions_of_area)
fill_sensitivities = numba.njit(cache=True, nogil=True)(loops.fill_sensitivities)
fill_scores = numba.njit(cache=True, nogil=True)(loops.fill_scores)
