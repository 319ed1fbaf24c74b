"""Detections paired with objects as COCO pairs them, one threshold of overlap at a time, where the truth is certain.

In each image and class the surest detection chooses first. It takes the object that it overlaps most among those that
are free; crowd regions and objects outside the range of areas are chosen only where nothing else is left, may be
chosen by several (crowds), and neither count as found nor against the detector.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Floats, Positions
from trueup.detection import loops
from trueup.detection.shapes import Shapes, align, group_by, mask_overlaps, paired_box_overlaps
from trueup.exceptions import InvalidShapes

# ------------------ Average precision and recall as COCO defines them

MOST_DETECTIONS = 100  # of an image and class, the surest
RECALL_POINTS = np.linspace(0.0, 1.0, 101)
LIMITS = (1, 10, MOST_DETECTIONS)  # detections of an image and class, for recall


@dataclass(frozen=True, eq=False)
class CocoScores:
    """What COCO's evaluation says where the truth is certain.

    Attributes
    ----------
    precision : array of shape (n_areas, n_thresholds, n_categories)
        Mean precision over 101 points of recall, nan for classes without objects.
    recall : array of shape (n_limits, n_areas, n_thresholds, n_categories)
        The recall that is reached with 1, 10 and 100 detections of an image and class.
    thresholds : array of shape (n_thresholds,)
    """

    precision: Floats
    recall: Floats
    thresholds: Floats
    areas: tuple[str, ...]
    categories: tuple[str, ...]

    def ap(self, *, iou: float | None = None, area: str = "all", category: str | None = None) -> float:
        """The mean over classes, and over thresholds where none is named; nan where there is no object."""
        return _mean(self._part(self.precision, iou, area, category))

    def ar(self, *, most: int = MOST_DETECTIONS, area: str = "all", category: str | None = None) -> float:
        """Average recall: the mean over thresholds and classes."""
        return _mean(self._part(self.recall[LIMITS.index(most)], None, area, category))

    def summary(self) -> dict[str, float]:
        """The twelve numbers that COCO's program prints, by its names."""
        by_area = {"s": "small", "m": "medium", "l": "large"}
        return {
            "AP": self.ap(),
            **{f"AP{100 * iou:.0f}": self.ap(iou=iou) for iou in (0.5, 0.75)},
            **{f"AP{letter}": self.ap(area=area) for letter, area in by_area.items()},
            **{f"AR{most}": self.ar(most=most) for most in LIMITS},
            **{f"AR{letter}": self.ar(area=area) for letter, area in by_area.items()},
        }

    def _part(self, values: Floats, iou: float | None, area: str, category: str | None) -> Floats:
        part = values[self.areas.index(area)]
        if iou is not None:
            part = part[np.isclose(self.thresholds, iou)]
        return np.asarray(part if category is None else part[:, self.categories.index(category)])


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def coco_scores(found: Shapes, objects: Shapes) -> CocoScores:
    """COCO's average precision and recall of one system, where one annotator is the truth.

    Parameters
    ----------
    found : Shapes. Of one system, with scores.
    objects : Shapes. Of one annotator. Where both have masks these are compared, else the boxes.

    Examples
    --------
    >>> from trueup.detection import boxes_from_arrays
    >>> truth = boxes_from_arrays(image=[1, 1], boxes=[[0, 0, 50, 50], [60, 60, 50, 50]])
    >>> found = boxes_from_arrays(image=[1, 1], boxes=[[0, 0, 50, 50], [200, 200, 50, 50]], scores=[0.9, 0.8])
    >>> round(coco_scores(found, truth).ap(), 3)  # half of the objects
    0.505
    """
    if found.scores is None:
        raise InvalidShapes("detections need scores; read them with read_results")
    for name, shapes in (("found", found), ("objects", objects)):
        if len(shapes.sources) != 1:
            raise InvalidShapes(f"{name} must be of one source, got {len(shapes.sources)}; choose it with of_source()")
    if (found.masks is None) != (objects.masks is None):
        found, objects = found.boxes_only(), objects.boxes_only()
    found, objects = align(found, objects)
    pairs = pair_up(found, objects)
    outcome = outcomes_of(pairs, overlaps_of(pairs, found, objects)[None], found, objects)[0]
    n_categories = len(found.categories)
    counted = ~_is_out(pairs, objects, AREAS)
    n_objects = np.stack([np.bincount(objects.category[pairs.objects][of], minlength=n_categories) for of in counted])
    precision = np.full((len(AREAS), len(THRESHOLDS), n_categories), np.nan)
    recall = np.full((len(LIMITS), *precision.shape), np.nan)
    assert found.scores is not None  # detections have scores
    category, score = found.category[pairs.order], found.scores[pairs.order]
    order = np.lexsort((-score, category))  # of equal scores the first image first, as COCO has it
    starts = np.searchsorted(category[order], np.arange(n_categories + 1))
    fill_scores(outcome, order, starts, pairs.rank, n_objects, precision, recall)
    return CocoScores(precision, recall, THRESHOLDS, tuple(AREAS), found.categories)


def fill_scores(
    outcome: npt.NDArray[np.int8],
    order: Positions,
    starts: Positions,
    rank: Positions,
    n_objects: Positions,
    precision: Floats,
    recall: Floats,
) -> None:
    """Fill precision, and recall at as many of `LIMITS` as it has rows; see `loops.fill_scores`."""
    limits = np.array(LIMITS[: len(recall)], dtype=np.int64)
    kernel = loops.loop(loops.fill_scores, work=len(order), worth=WORTH_COMPILING)
    kernel(outcome, order, starts, rank, n_objects, RECALL_POINTS, limits, precision, recall)


THRESHOLDS = np.linspace(0.5, 0.95, 10)
AREAS: dict[str, tuple[float, float]] = {
    "all": (0.0, 1e10),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e10),
}
WORTH_COMPILING = 2_000  # detections from which compiled code repays loading numba


@dataclass(frozen=True, eq=False)
class Pairs:
    """Each detection with each object of its image and class, group after group, a row a detection by falling score."""

    order: Positions  # (n_kept,): positions of the detections that are looked at, by image, class and falling score
    rank: Positions  # (n_kept,): the place of each among those of its image and class, from 0
    objects: Positions  # (n_objects,): positions of the objects, by image and class
    firsts: Positions  # (n_groups,): where the detections of each group begin in `order`
    lasts: Positions  # and where they end
    first_object: Positions  # (n_groups,): where its objects begin in `objects`
    n_of_objects: Positions  # and how many they are

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


def pair_up(found: Shapes, objects: Shapes) -> Pairs:
    """Which detections and objects have the same image and class; both aligned to the same images and classes."""
    order, rank = _surest_first(found)
    of_objects, starts = group_by(objects.image, objects.category)
    n_categories = max(len(found.categories), 1)
    keys = (objects.image[of_objects].astype(np.int64) * n_categories + objects.category[of_objects])[starts[:-1]]
    detection_keys = found.image[order].astype(np.int64) * n_categories + found.category[order]
    firsts = np.flatnonzero(np.diff(detection_keys, prepend=-1)).astype(np.int64)
    lasts = np.append(firsts[1:], len(order)).astype(np.int64)
    place = np.searchsorted(keys, detection_keys[firsts])
    has_objects = np.append(keys, -1)[place] == detection_keys[firsts]
    first_object = np.where(has_objects, starts[place], 0).astype(np.int64)
    n_of_objects = np.where(has_objects, np.append(np.diff(starts), 0)[place], 0).astype(np.int64)
    return Pairs(order, rank, of_objects, firsts, lasts, first_object, n_of_objects)


def outcomes_of(
    pairs: Pairs, overlaps: Floats, found: Shapes, objects: Shapes, areas: dict[str, tuple[float, float]] = AREAS
) -> npt.NDArray[np.int8]:
    """What becomes of each detection: 1 right, 0 wrong, -1 does not count."""
    is_out, outside = _is_out(pairs, objects, areas), _are_outside(found.areas[pairs.order], areas)
    least = np.minimum(THRESHOLDS, 1 - 1e-10)
    outcomes = np.zeros((len(overlaps), len(areas), len(least), len(pairs.order)), dtype=np.int8)
    groups = (pairs.firsts, pairs.lasts, pairs.first_object, pairs.n_of_objects, pairs.offsets)
    kernel = loops.loop(loops.match_groups, work=len(overlaps) * len(pairs.order), worth=WORTH_COMPILING)
    for values, outcome in zip(overlaps, outcomes, strict=True):
        kernel(groups, values, is_out, objects.is_crowd[pairs.objects], outside, least, outcome)
    return outcomes


def _are_outside(sizes: Floats, areas: dict[str, tuple[float, float]]) -> Booleans:
    """Which shapes are not within each range of areas, shape (n_areas, n_shapes)."""
    low, high = np.array(list(areas.values()), dtype=float).reshape(-1, 2).T[:, :, None]
    return np.asarray((sizes < low) | (sizes > high))


def _is_out(pairs: Pairs, objects: Shapes, areas: dict[str, tuple[float, float]]) -> Booleans:
    """Objects that neither count as found nor against the detector, shape (n_areas, n_objects)."""
    return objects.is_crowd[pairs.objects] | _are_outside(objects.areas[pairs.objects], areas)


def _surest_first(found: Shapes) -> tuple[Positions, Positions]:
    assert found.scores is not None
    order = np.lexsort((-found.scores, found.category, found.image))  # equal scores stay in the order of the file
    key = found.image[order].astype(np.int64) * max(len(found.categories), 1) + found.category[order]
    firsts = np.flatnonzero(np.diff(key, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(firsts, np.diff(np.append(firsts, len(order))))
    kept = rank < MOST_DETECTIONS
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
