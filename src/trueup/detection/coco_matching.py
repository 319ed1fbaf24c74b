"""Detections paired with objects as COCO pairs them, one threshold of overlap at a time, where the truth is certain.

In each image and class the surest detection chooses first. It takes the object that it overlaps most among those that
are free; crowd regions and objects outside the range of areas are chosen only where nothing else is left, may be
chosen by several (crowds), and neither count as found nor against the detector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trueup._base.optional import is_installed
from trueup._base.types import Floats, Positions
from trueup.detection import loops
from trueup.detection.overlap import mask_overlaps, paired_box_overlaps
from trueup.detection.shapes import Shapes, group_by

THRESHOLDS = np.linspace(0.5, 0.95, 10)
AREAS: dict[str, tuple[float, float]] = {
    "all": (0.0, 1e10),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e10),
}
MOST_DETECTIONS = 100  # of an image and class, the surest
_WORTH_COMPILING = 2_000  # detections from which compiled code repays loading numba

IGNORED, WRONG, RIGHT = -1, 0, 1


@dataclass(frozen=True, eq=False)
class Matches:
    """What became of each detection.

    Attributes
    ----------
    order : integer array of shape (n_kept,)
        Positions of the detections that were looked at, by image, class and falling score.
    rank : integer array of shape (n_kept,)
        The place of each among those of its image and class, from 0.
    outcome : integer array of shape (n_areas, n_thresholds, n_kept)
        1 if it is right, 0 if it is wrong, -1 if it does not count.
    n_objects : integer array of shape (n_areas, n_categories)
        Objects that count.
    thresholds : array of shape (n_thresholds,)
    areas : tuple of str
    """

    order: Positions
    rank: Positions
    outcome: npt.NDArray[np.int8]
    n_objects: Positions
    thresholds: Floats
    areas: tuple[str, ...]


def match_to_objects(
    found: Shapes,
    objects: Shapes,
    *,
    thresholds: Floats = THRESHOLDS,
    areas: dict[str, tuple[float, float]] = AREAS,
    most: int = MOST_DETECTIONS,
) -> Matches:
    """Pair the detections of one system with the objects of one truth; both aligned to the same images and classes."""
    assert found.scores is not None
    order, rank = _surest_first(found, most)
    of_objects, starts = group_by(objects.image, objects.category)
    n_categories = max(len(found.categories), 1)
    groups = objects.image[of_objects].astype(np.int64) * n_categories + objects.category[of_objects]
    keys, sizes = groups[starts[:-1]] if len(of_objects) else groups, np.diff(starts)
    detection_keys = found.image[order].astype(np.int64) * n_categories + found.category[order]
    firsts = np.flatnonzero(np.diff(detection_keys, prepend=-1))
    lasts = np.append(firsts[1:], len(order))
    place = np.searchsorted(keys, detection_keys[firsts])
    has_objects = place < len(keys)
    has_objects[has_objects] = keys[place[has_objects]] == detection_keys[firsts][has_objects]
    first_object = np.where(has_objects, starts[np.minimum(place, max(len(keys) - 1, 0))] if len(keys) else 0, 0)
    n_of_objects = np.where(has_objects, sizes[np.minimum(place, max(len(keys) - 1, 0))] if len(keys) else 0, 0)
    overlaps = _overlaps(found, objects, order, of_objects, firsts, lasts, first_object, n_of_objects)
    low = np.array([bounds[0] for bounds in areas.values()])
    high = np.array([bounds[1] for bounds in areas.values()])
    crowd = objects.is_crowd[of_objects]
    sides = objects.areas[of_objects]
    is_out = crowd[None] | (sides[None] < low[:, None]) | (sides[None] > high[:, None])
    size = found.areas[order]
    outside = (size[None] < low[:, None]) | (size[None] > high[:, None])
    offsets = np.concatenate([[0], np.cumsum((lasts - firsts) * n_of_objects)]).astype(np.int64)
    outcome = np.zeros((len(low), len(thresholds), len(order)), dtype=np.int8)
    _kernel(len(order))(
        firsts.astype(np.int64),
        lasts.astype(np.int64),
        first_object.astype(np.int64),
        n_of_objects.astype(np.int64),
        offsets,
        overlaps,
        is_out,
        crowd,
        outside,
        np.minimum(thresholds, 1 - 1e-10),
        outcome,
    )
    n_objects = np.stack(
        [np.bincount(objects.category[of_objects][~row], minlength=len(found.categories)) for row in is_out]
    )
    return Matches(order, rank, outcome, n_objects, np.asarray(thresholds), tuple(areas))


def _surest_first(found: Shapes, most: int) -> tuple[Positions, Positions]:
    assert found.scores is not None
    order = np.lexsort((-found.scores, found.category, found.image))  # equal scores stay in the order of the file
    key = found.image[order].astype(np.int64) * max(len(found.categories), 1) + found.category[order]
    firsts = np.flatnonzero(np.diff(key, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(firsts, np.diff(np.append(firsts, len(order))))
    kept = rank < most
    return order[kept].astype(np.int64), rank[kept].astype(np.int64)


def _overlaps(
    found: Shapes,
    objects: Shapes,
    order: Positions,
    of_objects: Positions,
    firsts: Positions,
    lasts: Positions,
    first_object: Positions,
    n_of_objects: Positions,
) -> Floats:
    """Overlaps of all pairs of one image and class, group after group, each row by row."""
    n_found = lasts - firsts
    total = int((n_found * n_of_objects).sum())
    if found.masks is None or objects.masks is None:
        # All pairs at once: groups are small, and a call for each would take most of the time.
        pairs = n_found * n_of_objects
        group = np.repeat(np.arange(len(firsts)), pairs)
        within = np.arange(total) - np.repeat(np.cumsum(pairs) - pairs, pairs)
        width = n_of_objects[group]
        row = firsts[group] + within // np.maximum(width, 1)
        column = first_object[group] + within % np.maximum(width, 1)
        return paired_box_overlaps(
            found.boxes[order[row]], objects.boxes[of_objects[column]], objects.is_crowd[of_objects[column]]
        )
    values = np.empty(total)
    begin = 0
    for first, last, start, n in zip(firsts, lasts, first_object, n_of_objects, strict=True):
        if not n:
            continue
        theirs = of_objects[start : start + n]
        block = mask_overlaps(
            [found.masks[i] for i in order[first:last]],
            [objects.masks[i] for i in theirs],
            objects.is_crowd[theirs],
        )
        values[begin : begin + block.size] = block.ravel()
        begin += block.size
    return values


def _kernel(n: int) -> Callable[..., None]:
    if n >= _WORTH_COMPILING and is_installed("numba"):
        from trueup.detection import compiled_loops

        return compiled_loops.match_groups  # type: ignore[no-any-return]
    return loops.match_groups
