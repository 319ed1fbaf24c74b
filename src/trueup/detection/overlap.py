"""How much shapes overlap: intersection over union, as COCO defines it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueup._base.optional import require
from trueup._base.types import Booleans, Floats
from trueup.detection.shapes import Mask, Shapes


def box_overlaps(first: Floats, second: Floats, is_crowd: Booleans | None = None) -> Floats:
    """Intersection over union of all pairs of boxes, shape (n_first, n_second).

    Examples
    --------
    >>> import numpy as np
    >>> box_overlaps(np.array([[0.0, 0.0, 2.0, 2.0]]), np.array([[1.0, 0.0, 2.0, 2.0]])).tolist()
    [[0.3333333333333333]]
    """
    crowd = np.zeros(len(second), dtype=bool) if is_crowd is None else is_crowd
    return paired_box_overlaps(first[:, None], second[None], crowd[None])


def paired_box_overlaps(first: Floats, second: Floats, is_crowd: Booleans) -> Floats:
    """Intersection over union of each box with the one beside it; arrays of shape (..., 4) and (...)."""
    low = np.maximum(first[..., :2], second[..., :2])
    high = np.minimum(first[..., :2] + first[..., 2:], second[..., :2] + second[..., 2:])
    common = np.maximum(high - low, 0.0).prod(axis=-1)
    own, other = first[..., 2] * first[..., 3], second[..., 2] * second[..., 3]
    union = np.where(is_crowd, own, own + other - common)
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=union > 0))


def mask_overlaps(first: Sequence[Mask], second: Sequence[Mask], is_crowd: Booleans | None = None) -> Floats:
    """Intersection over union of all pairs of masks, shape (n_first, n_second)."""
    if not len(first) or not len(second):
        return np.zeros((len(first), len(second)))
    coco = require("pycocotools.mask", purpose="the overlap of masks")
    crowd = [0] * len(second) if is_crowd is None else is_crowd.astype(int).tolist()
    return np.asarray(coco.iou(list(first), list(second), crowd), dtype=float).reshape(len(first), len(second))


def contains_centre(first: Floats, second: Floats) -> Booleans:
    """Whether the centre of one box lies in the other, both ways; shape (n_first, n_second).

    For things of a few pixels an overlap says little: a shift of two pixels halves it.
    """
    a, b = first[:, None], second[None]
    centre_a, centre_b = a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2
    a_in_b = (centre_a >= b[..., :2]) & (centre_a <= b[..., :2] + b[..., 2:])
    b_in_a = (centre_b >= a[..., :2]) & (centre_b <= a[..., :2] + a[..., 2:])
    return np.asarray(a_in_b.all(axis=-1) & b_in_a.all(axis=-1))


def overlaps_between(first: Shapes, second: Shapes, *, by_centre: bool = False) -> Floats:
    """Overlaps of all pairs, of masks where both have them, shape (n_first, n_second)."""
    if first.masks is None or second.masks is None:
        overlaps = box_overlaps(first.boxes, second.boxes, second.is_crowd)
    else:
        overlaps = mask_overlaps(first.masks, second.masks, second.is_crowd)
    if by_centre:  # which of several such shapes overlaps most is still told by the overlap
        near = contains_centre(first.boxes, second.boxes)
        overlaps = np.where(near, np.maximum(overlaps, 1.0 - 1e-6 + 1e-7 * overlaps), overlaps)
    return overlaps
