"""The free-response curve (FROC) of one system on many drawn truths at once: how much is found at so many mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup._base.engines import choose_engine
from trueup._base.types import Booleans, Floats, Positions
from trueup.detection import loops
from trueup.detection.drawn_precision import WORTH_COMPILING

WRONG_PER_IMAGE = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""False detections of an image at which sensitivity is read, as is usual for nodules."""


def mean_sensitivities(
    is_real: Booleans,
    candidate: Positions,
    scores: Floats,
    role: Positions,
    n_objects: Floats,
    n_images: int,
    wrong_per_image: tuple[float, ...] = WRONG_PER_IMAGE,
) -> Floats:
    """The mean over rates of false detections of the share of objects that are found, for each draw.

    At a rate it is the largest share with at most so many false detections of an image; detections of equal scores come
    together. A second detection of a real object counts neither as right nor as wrong.

    Parameters
    ----------
    is_real : boolean array of shape (n_draws, n_candidates)
    candidate, scores, role : arrays of shape (n_detections,)
        By falling score. The role is 1 for the detection that counts at its candidate, 0 for another one there, -1 for
        one that is wrong whatever is there.
    n_objects : array of shape (n_draws,)
    n_images : int
    wrong_per_image : tuple of float
        Rising.

    Returns
    -------
    array of shape (n_draws,)
        nan where there is no object.
    """
    draws = np.ascontiguousarray(is_real, dtype=np.bool_)
    is_last = np.ones(len(scores), dtype=np.bool_)
    is_last[:-1] = scores[1:] != scores[:-1]
    values = np.empty(len(draws))
    kernel: Any = loops.fill_sensitivities
    if choose_engine(work=draws.shape[0] * len(candidate), worth=WORTH_COMPILING) == "numba":
        from trueup.detection import compiled_loops

        kernel = compiled_loops.fill_sensitivities
    limits = np.array(wrong_per_image) * n_images
    kernel(draws, candidate.astype(np.int64), role.astype(np.int64), is_last, n_objects.astype(float), limits, values)
    return values
