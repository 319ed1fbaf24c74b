"""Average precision of one system on many drawn truths at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup._base.engines import choose_engine
from trueup._base.types import Booleans, Floats, Positions
from trueup.detection import loops
from trueup.detection.average_precision import RECALL_POINTS

WORTH_COMPILING = 200_000  # detections times draws from which compiled code repays loading numba


def average_precisions(is_real: Booleans, candidate: Positions, can_be_right: Booleans, n_objects: Floats) -> Floats:
    """Mean precision over 101 points of recall, for each draw.

    Parameters
    ----------
    is_real : boolean array of shape (n_draws, n_candidates)
        Whether each candidate is an object.
    candidate : integer array of shape (n_detections,)
        By falling score.
    can_be_right : boolean array of shape (n_detections,)
        Whether it is right where its candidate is real.
    n_objects : array of shape (n_draws,)
        All objects, also those that are no candidates.

    Returns
    -------
    array of shape (n_draws,)
        nan where there is no object.
    """
    draws = np.ascontiguousarray(is_real, dtype=np.bool_)
    at = np.where(can_be_right, candidate, -1).astype(np.int64)
    values = np.empty(len(draws))
    kernel: Any = loops.fill_average_precisions
    if choose_engine(work=draws.shape[0] * len(at), worth=WORTH_COMPILING) == "numba":
        from trueup.detection import compiled_loops

        kernel = compiled_loops.fill_average_precisions
    kernel(draws, at, np.asarray(n_objects, dtype=float), RECALL_POINTS, values)
    return values
