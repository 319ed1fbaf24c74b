"""Average precision of one system on many drawn truths at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup._base.engines import choose_engine
from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup.detection import loops
from trueup.detection.average_precision import RECALL_POINTS

WORTH_COMPILING = 200_000  # detections times draws and thresholds from which compiled code repays loading numba


def mean_average_precisions(
    is_real: Booleans,
    category: Codes,
    candidate: Positions,
    level: Positions,
    n_levels: int,
    n_objects: Floats,
    *,
    is_inside: Booleans | None = None,
    can_be_wrong: Booleans | None = None,
) -> Floats:
    """The mean over classes and thresholds of the mean precision over 101 points of recall, for each draw.

    Parameters
    ----------
    is_real : boolean array of shape (n_draws, n_candidates)
        Whether each candidate is an object.
    category, candidate : integer arrays of shape (n_detections,)
        By falling score.
    level : integer array of shape (n_detections,)
        How many of the thresholds the overlap reaches, if its candidate is real; 0 for what is never right.
    n_levels : int
        Thresholds.
    n_objects : array of shape (n_draws, n_classes)
        All objects of each class, also those that are no candidates.
    is_inside, can_be_wrong : boolean arrays of shape (n_detections,), optional
        For objects of some areas: whether the candidate is of such an area, and whether the detection is, which counts
        as wrong only then.

    Returns
    -------
    array of shape (n_draws,)
        Over the classes that have objects; nan where there is none.
    """
    draws = np.ascontiguousarray(is_real, dtype=np.bool_)
    order = np.argsort(category, kind="stable")
    starts = np.searchsorted(category[order], np.arange(n_objects.shape[1] + 1))
    at = np.where(level > 0, candidate, -1)[order].astype(np.int64)
    sums, counts = np.zeros(len(draws)), np.zeros(len(draws))
    module: Any = loops
    if choose_engine(work=draws.shape[0] * len(at) * n_levels, worth=WORTH_COMPILING) == "numba":
        from trueup.detection import compiled_loops

        module = compiled_loops
    kernel: Any = module.fill_average_precisions
    flags: tuple[Booleans, ...] = ()
    if is_inside is not None and can_be_wrong is not None:
        kernel = module.fill_average_precisions_of_area
        flags = is_inside[order], can_be_wrong[order]
    kernel(
        draws,
        starts.astype(np.int64),
        at,
        level[order].astype(np.int64),
        *flags,
        n_levels,
        np.asarray(n_objects, dtype=float),
        RECALL_POINTS,
        sums,
        counts,
    )
    return np.asarray(np.divide(sums, counts, out=np.full(len(draws), np.nan), where=counts > 0))
