"""Shapes of several annotators that mean one thing, joined into candidates; the order of annotators plays no part.

Pairs of shapes are joined from the largest overlap down. Two groups become one where no annotator is in both and the
mean overlap of their shapes is large enough. Where overlaps are equal the shapes' own coordinates decide.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup.detection.overlap import overlaps_between
from trueup.detection.shapes import Shapes, group_by


def group_shapes(shapes: Shapes, *, iou: float, same_class: bool, by_centre: bool = False) -> Positions:
    """The candidate object of each shape, numbered from 0 by image and place; -1 for crowd regions.

    Parameters
    ----------
    shapes : Shapes
        Of annotators, or of systems.
    iou : float
        The least mean overlap of shapes of one thing.
    same_class : bool
        Whether shapes of different classes are different things.
    by_centre : bool
        Whether shapes whose centres lie in each other overlap enough, whatever the overlap: for small things.
    """
    group = np.full(len(shapes), -1, dtype=np.int64)
    counted = np.flatnonzero(~shapes.is_crowd)
    classes = shapes.category[counted] if same_class else np.zeros(len(counted), dtype=np.int32)
    order, starts = group_by(shapes.image[counted], classes)
    n_groups = 0
    for first, last in pairwise(starts):
        members = counted[order[first:last]]
        members = members[np.lexsort(shapes.boxes[members].T[::-1])]  # by place, so that nobody's order counts
        part = shapes.select(members)
        own = _group_one(overlaps_between(part, part, by_centre=by_centre), part.source, iou)
        group[members] = n_groups + own
        n_groups += int(own.max(initial=-1)) + 1
    return group


def _group_one(overlaps: Floats, source: Codes, iou: float) -> Positions:
    """Groups of the shapes of one image and class, numbered by their first shape."""
    n = len(source)
    members: dict[int, list[int]] = {k: [k] for k in range(n)}
    sources: dict[int, set[int]] = {k: {int(source[k])} for k in range(n)}
    of = np.arange(n)
    rows, columns = np.nonzero(np.triu(overlaps >= iou, 1))
    for pair in np.lexsort((columns, rows, -overlaps[rows, columns])):
        a, b = int(of[rows[pair]]), int(of[columns[pair]])
        if a == b or sources[a] & sources[b]:
            continue
        if overlaps[np.ix_(members[a], members[b])].mean() < iou:
            continue
        a, b = min(a, b), max(a, b)
        of[members[b]] = a
        members[a] += members.pop(b)
        sources[a] |= sources.pop(b)
    return np.unique(of, return_inverse=True)[1].astype(np.int64)


def assign_detections(overlaps: Floats, scores: Floats, iou: float) -> tuple[Positions, Booleans]:
    """The candidate of each detection of one system in one image and class, and whether it is the first there.

    As in COCO's pairing: the surest detection chooses first, the free candidate that it overlaps most. One that
    overlaps only what is taken is a duplicate there; one that overlaps nothing has no candidate (-1).
    """
    n_found, n_candidates = overlaps.shape
    candidate = np.full(n_found, -1, dtype=np.int64)
    is_first = np.zeros(n_found, dtype=bool)
    is_free = np.ones(n_candidates, dtype=bool)
    for k in np.argsort(-scores, kind="stable"):
        enough = overlaps[k] >= iou
        if not enough.any():
            continue
        free = enough & is_free
        among = free if free.any() else enough
        candidate[k] = int(np.argmax(np.where(among, overlaps[k], -1.0)))
        if free.any():
            is_first[k], is_free[candidate[k]] = True, False
    return candidate, is_first
