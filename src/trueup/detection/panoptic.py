"""Panoptic quality: how well segments that partition an image fit, for segments that do."""

from __future__ import annotations

import numpy as np

from trueup._base.optional import require
from trueup._base.types import Booleans, Floats
from trueup.detection.pool import Found, Pool
from trueup.exceptions import InvalidParameter, quoted

LEAST_OVERLAP = 0.5  # above it, segments that partition an image match one to one
_TOLERATED = 0.01  # of the area: edges of polygons


def panoptic_qualities(is_real: Booleans, of_pool: Pool, found: Found, counts: Booleans, n_objects: Floats) -> Floats:
    """Σ overlap of right segments / (right + half the wrong + half the missed), for each draw, of one class.

    Parameters
    ----------
    is_real : boolean array of shape (n_draws, n_candidates)
    found : Found
    counts : boolean array of shape (n_detections,)
        The segments of this class that the system reports.
    n_objects : array of shape (n_draws,)
        Of this class.

    Returns
    -------
    array of shape (n_draws,)
        nan where there is neither an object nor a segment.
    """
    of_class = of_pool.category[found.candidate] == found.category
    can_be_right = counts & found.is_first & of_class & (found.overlap > LEAST_OVERLAP)
    overlaps = is_real[:, found.candidate[can_be_right]] @ found.overlap[can_be_right]
    below = (counts.sum() + n_objects) / 2
    return np.asarray(np.divide(overlaps, below, out=np.full(len(is_real), np.nan), where=below > 0))


def check_partition(pool: Pool, system: str, threshold: float) -> None:
    """Stop where segments that a system reports in one image overlap: then they are no partition."""
    found = pool.found[system]
    reported = np.flatnonzero(found.scores >= threshold)
    image = pool.image[found.candidate[reported]]
    overlapping = [
        name
        for k, name in enumerate(pool.images.ids.tolist())
        if _overlap_share(found, reported[image == k]) > _TOLERATED
    ]
    if overlapping:
        raise InvalidParameter(
            f"panoptic_quality is for segments that partition an image, got segments of {quoted(system)} that overlap "
            f"in {len(overlapping):,} of {pool.images.n:,} images (the first is {quoted(overlapping[0])}); resolve the "
            "overlaps, or use f1"
        )


def _overlap_share(found: Found, members: Floats) -> float:
    """How much of the area of some segments of one image is covered more than once."""
    if len(members) < 2:
        return 0.0
    if found.masks is not None:
        coco = require("pycocotools.mask", purpose="the overlap of masks")
        masks = [found.masks[k] for k in members]
        total = float(sum(float(coco.area(mask)) for mask in masks))
        return 1.0 - float(coco.area(coco.merge(masks))) / max(total, 1.0)
    boxes = found.boxes[members]
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum((boxes[:, :2] + boxes[:, 2:])[:, None], (boxes[:, :2] + boxes[:, 2:])[None])
    common = np.maximum(high - low, 0.0).prod(axis=-1)
    return float(np.triu(common, 1).sum() / boxes[:, 2:].prod(axis=1).sum())
