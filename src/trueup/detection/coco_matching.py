"""Detections paired with objects as COCO pairs them, one threshold of overlap at a time, where the truth is certain.

In each image and class the surest detection chooses first. It takes the object that it overlaps most among those that
are free; crowd regions and objects outside the range of areas are chosen only where nothing else is left, may be
chosen by several (crowds), and neither count as found nor against the detector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trueup._base.engines import choose_engine
from trueup._base.types import Booleans, Floats, Positions
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
WORTH_COMPILING = 2_000  # detections from which compiled code repays loading numba

IGNORED, WRONG, RIGHT = -1, 0, 1


@dataclass(frozen=True, eq=False)
class Matches:
    """What became of each detection."""

    order: Positions  # (n_kept,): positions of the detections that were looked at, by image, class and falling score
    rank: Positions  # (n_kept,): the place of each among those of its image and class, from 0
    outcome: npt.NDArray[np.int8]  # (n_areas, n_thresholds, n_kept): 1 right, 0 wrong, -1 does not count
    n_objects: Positions  # (n_areas, n_categories): objects that count
    thresholds: Floats  # (n_thresholds,)
    areas: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Each detection with each object of its image and class: all that could ever be matched.

    Pairs stand group after group (an image and class), each row by row: one row for a detection, by falling score.

    Attributes
    ----------
    order, rank : integer arrays of shape (n_kept,)
        As in `Matches`.
    objects : integer array of shape (n_objects,)
        Positions of the objects, by image and class.
    firsts, lasts : integer arrays of shape (n_groups,)
        Where the detections of each group begin and end in `order`.
    first_object, n_of_objects : integer arrays of shape (n_groups,)
        Where its objects begin in `objects`, and how many they are.
    """

    order: Positions
    rank: Positions
    objects: Positions
    firsts: Positions
    lasts: Positions
    first_object: Positions
    n_of_objects: Positions

    @cached_property
    def offsets(self) -> Positions:
        """Where the pairs of each group begin, with the end of the last one."""
        return np.concatenate([[0], np.cumsum((self.lasts - self.firsts) * self.n_of_objects)]).astype(np.int64)

    @cached_property
    def members(self) -> tuple[Positions, Positions]:
        """Positions of the detection and of the object of each pair."""
        n_pairs = np.diff(self.offsets)
        group = np.repeat(np.arange(len(self.firsts)), n_pairs)
        within = np.arange(self.offsets[-1]) - self.offsets[group]
        width = np.maximum(self.n_of_objects[group], 1)
        row, column = self.firsts[group] + within // width, self.first_object[group] + within % width
        return self.order[row], self.objects[column]


def match_to_objects(
    found: Shapes,
    objects: Shapes,
    *,
    thresholds: Floats = THRESHOLDS,
    areas: dict[str, tuple[float, float]] = AREAS,
    most: int = MOST_DETECTIONS,
) -> Matches:
    """Pair the detections of one system with the objects of one truth; both aligned to the same images and classes."""
    pairs = pair_up(found, objects, most=most)
    return match_pairs(pairs, overlaps_of(pairs, found, objects), found, objects, thresholds=thresholds, areas=areas)


def pair_up(found: Shapes, objects: Shapes, *, most: int = MOST_DETECTIONS) -> Pairs:
    """Which detections and objects have the same image and class; both aligned to the same images and classes."""
    order, rank = _surest_first(found, most)
    of_objects, starts = group_by(objects.image, objects.category)
    n_categories = max(len(found.categories), 1)
    groups = objects.image[of_objects].astype(np.int64) * n_categories + objects.category[of_objects]
    keys, sizes = groups[starts[:-1]] if len(of_objects) else groups, np.diff(starts)
    detection_keys = found.image[order].astype(np.int64) * n_categories + found.category[order]
    firsts = np.flatnonzero(np.diff(detection_keys, prepend=-1)).astype(np.int64)
    lasts = np.append(firsts[1:], len(order)).astype(np.int64)
    place = np.searchsorted(keys, detection_keys[firsts])
    has_objects = place < len(keys)
    has_objects[has_objects] = keys[place[has_objects]] == detection_keys[firsts][has_objects]
    first_object = np.where(has_objects, starts[np.minimum(place, max(len(keys) - 1, 0))] if len(keys) else 0, 0)
    n_of_objects = np.where(has_objects, sizes[np.minimum(place, max(len(keys) - 1, 0))] if len(keys) else 0, 0)
    return Pairs(order, rank, of_objects, firsts, lasts, first_object.astype(np.int64), n_of_objects.astype(np.int64))


def match_pairs(
    pairs: Pairs,
    overlaps: Floats,
    found: Shapes,
    objects: Shapes,
    *,
    thresholds: Floats = THRESHOLDS,
    areas: dict[str, tuple[float, float]] = AREAS,
) -> Matches:
    """Let detections choose objects, where the overlap of each pair is known; see `overlaps_of`."""
    outcome = outcomes_of(pairs, overlaps[None], found, objects, thresholds=thresholds, areas=areas)[0]
    n_objects = np.stack(
        [
            np.bincount(objects.category[pairs.objects][~row], minlength=len(found.categories))
            for row in _is_out(pairs, objects, areas)
        ]
    )
    return Matches(pairs.order, pairs.rank, outcome, n_objects, np.asarray(thresholds), tuple(areas))


def outcomes_of(
    pairs: Pairs,
    overlaps: Floats,
    found: Shapes,
    objects: Shapes,
    *,
    thresholds: Floats = THRESHOLDS,
    areas: dict[str, tuple[float, float]] = AREAS,
) -> npt.NDArray[np.int8]:
    """What becomes of each detection for each of several sets of overlaps."""
    low, high = _bounds(areas)
    is_out = _is_out(pairs, objects, areas)
    size = found.areas[pairs.order]
    outside = (size[None] < low[:, None]) | (size[None] > high[:, None])
    least = np.minimum(thresholds, 1 - 1e-10)
    outcomes = np.zeros((len(overlaps), len(areas), len(thresholds), len(pairs.order)), dtype=np.int8)
    kernel = _kernel(len(overlaps) * len(pairs.order))
    for values, outcome in zip(overlaps, outcomes, strict=True):
        kernel(
            pairs.firsts,
            pairs.lasts,
            pairs.first_object,
            pairs.n_of_objects,
            pairs.offsets,
            values,
            is_out,
            objects.is_crowd[pairs.objects],
            outside,
            least,
            outcome,
        )
    return outcomes


def _bounds(areas: dict[str, tuple[float, float]]) -> tuple[Floats, Floats]:
    limits = np.array(list(areas.values()), dtype=float).reshape(-1, 2)
    return limits[:, 0], limits[:, 1]


def _is_out(pairs: Pairs, objects: Shapes, areas: dict[str, tuple[float, float]]) -> Booleans:
    """Objects that neither count as found nor against the detector, shape (n_areas, n_objects)."""
    low, high = _bounds(areas)
    sides = objects.areas[pairs.objects]
    is_outside = (sides[None] < low[:, None]) | (sides[None] > high[:, None])
    return np.asarray(objects.is_crowd[pairs.objects][None] | is_outside)


def _surest_first(found: Shapes, most: int) -> tuple[Positions, Positions]:
    assert found.scores is not None
    order = np.lexsort((-found.scores, found.category, found.image))  # equal scores stay in the order of the file
    key = found.image[order].astype(np.int64) * max(len(found.categories), 1) + found.category[order]
    firsts = np.flatnonzero(np.diff(key, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(firsts, np.diff(np.append(firsts, len(order))))
    kept = rank < most
    return order[kept].astype(np.int64), rank[kept].astype(np.int64)


def overlaps_of(pairs: Pairs, found: Shapes, objects: Shapes) -> Floats:
    """The overlap of each pair, of masks where both have them."""
    if found.masks is None or objects.masks is None:
        # All pairs at once: groups are small, and a call for each would take most of the time.
        own, other = pairs.members
        return paired_box_overlaps(found.boxes[own], objects.boxes[other], objects.is_crowd[other])
    values = np.empty(pairs.offsets[-1])
    groups = zip(pairs.firsts, pairs.lasts, pairs.first_object, pairs.n_of_objects, pairs.offsets, strict=False)
    for first, last, start, n, begin in groups:
        if not n:
            continue
        theirs = pairs.objects[start : start + n]
        block = mask_overlaps(
            [found.masks[i] for i in pairs.order[first:last]],
            [objects.masks[i] for i in theirs],
            objects.is_crowd[theirs],
        )
        values[begin : begin + block.size] = block.ravel()
    return values


def _kernel(n: int) -> Callable[..., None]:
    if choose_engine(work=n, worth=WORTH_COMPILING) == "numba":
        from trueup.detection import compiled_loops

        return compiled_loops.match_groups  # type: ignore[no-any-return]
    return loops.match_groups
