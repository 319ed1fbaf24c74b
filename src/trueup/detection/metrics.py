"""Metrics of detections as functions of which candidates are real objects."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.optional import require
from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup.detection import loops
from trueup.detection.pool import Found, Pool
from trueup.detection.shapes import Shapes, align, box_overlaps, group_by, mask_overlaps, paired_box_overlaps
from trueup.exceptions import InvalidParameter, InvalidShapes
from trueup.metrics import Metric

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
    kernel = loops.loop(loops.fill_scores, work=len(order), worth=WORTH_MATCHING_COMPILED)
    kernel(outcome, order, starts, rank, n_objects, RECALL_POINTS, limits, precision, recall)


THRESHOLDS = np.linspace(0.5, 0.95, 10)
AREAS: dict[str, tuple[float, float]] = {
    "all": (0.0, 1e10),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e10),
}
WORTH_MATCHING_COMPILED = 2_000  # detections from which compiled code repays loading numba


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
    assert found.scores is not None
    order = np.lexsort((-found.scores, found.category, found.image))  # equal scores stay in the order of the file
    n_categories = max(len(found.categories), 1)
    key = found.image[order].astype(np.int64) * n_categories + found.category[order]
    begins = np.flatnonzero(np.diff(key, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    kept = rank < MOST_DETECTIONS  # the surest
    order, rank, detection_keys = order[kept].astype(np.int64), rank[kept].astype(np.int64), key[kept]
    of_objects, starts = group_by(objects.image, objects.category)
    keys = (objects.image[of_objects].astype(np.int64) * n_categories + objects.category[of_objects])[starts[:-1]]
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
    kernel = loops.loop(loops.match_groups, work=len(overlaps) * len(pairs.order), worth=WORTH_MATCHING_COMPILED)
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


WRONG_PER_IMAGE = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # false detections at which sensitivity is read


def mean_sensitivities(
    is_real: Booleans,
    candidate: Positions,
    scores: Floats,
    role: Positions,
    n_objects: Floats,
    n_images: int,
    wrong_per_image: tuple[float, ...] = WRONG_PER_IMAGE,
) -> Floats:
    """The mean over rates of false detections of the share of objects that are found, for each draw."""
    draws = np.ascontiguousarray(is_real, dtype=np.bool_)
    is_last = np.ones(len(scores), dtype=np.bool_)
    is_last[:-1] = scores[1:] != scores[:-1]
    values = np.empty(len(draws))
    kernel = loops.loop(loops.fill_sensitivities, work=len(draws) * len(candidate), worth=WORTH_COMPILING)
    limits = np.array(wrong_per_image) * n_images
    kernel(draws, candidate.astype(np.int64), role.astype(np.int64), is_last, n_objects.astype(float), limits, values)
    return values


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
    """The mean over classes and thresholds of the mean precision over 101 points of recall, for each draw."""
    draws = np.ascontiguousarray(is_real, dtype=np.bool_)
    order = np.argsort(category, kind="stable")
    starts = np.searchsorted(category[order], np.arange(n_objects.shape[1] + 1)).astype(np.int64)
    flags = [np.ones(len(order)) if flag is None else flag for flag in (is_inside, can_be_wrong)]
    detections = tuple(v[order].astype(np.int64) for v in (np.where(level > 0, candidate, -1), level, *flags))
    sums, counts = np.zeros(len(draws)), np.zeros(len(draws))
    kernel = loops.loop(loops.fill_average_precisions, work=len(draws) * len(order) * n_levels, worth=WORTH_COMPILING)
    kernel(draws, starts, detections, n_levels, np.asarray(n_objects, dtype=float), RECALL_POINTS, sums, counts)
    return _ratio(sums, counts)


LEAST_OVERLAP = 0.5  # above it, segments that partition an image match one to one
_TOLERATED = 0.01  # of the area: edges of polygons


def check_partition(pool: Pool, system: str, threshold: float) -> None:
    """Stop where segments that a system reports in one image overlap: then they are no partition."""
    found = pool.found[system]
    reported = np.flatnonzero(found.scores >= threshold)
    of_images = [reported[pool.image[found.candidate[reported]] == k] for k in range(pool.images.n)]
    names = zip(pool.images.ids.tolist(), of_images, strict=True)
    overlapping = [name for name, members in names if _overlap_share(found, members) > _TOLERATED]
    if overlapping:
        raise InvalidParameter(
            f"panoptic_quality is for segments that partition an image, got segments of {system!r} that overlap "
            f"in {len(overlapping):,} of {pool.images.n:,} images (the first is {overlapping[0]!r}); resolve the "
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
    boxes, areas = found.boxes[members], found.boxes[members, 2:].prod(axis=1)
    share = box_overlaps(boxes, boxes, np.ones(len(boxes), dtype=bool))  # as of crowds: of the area of the first
    return float(np.triu(areas[:, None] * share, 1).sum() / areas.sum())


AVERAGE_PRECISIONS: dict[str, tuple[Floats, str]] = {
    "ap50": (np.array([0.5]), "all"),
    "ap75": (np.array([0.75]), "all"),
    "ap": (THRESHOLDS, "all"),
    "ap_small": (THRESHOLDS, "small"),
    "ap_medium": (THRESHOLDS, "medium"),
    "ap_large": (THRESHOLDS, "large"),
}
BY_AREA = tuple(name for name, (_, area) in AVERAGE_PRECISIONS.items() if area != "all")
F_SCORES = {"f0.5": 0.5, "f1": 1.0, "f2": 2.0}
NAMES = ("precision", "recall", "pool_recall", *F_SCORES, *AVERAGE_PRECISIONS, "froc", "panoptic_quality")
# Metrics that move with the number of objects that nobody drew.
NEEDS_ALL_OBJECTS = tuple(name for name in NAMES if name not in ("precision", "pool_recall"))
_ROUNDING = 1e-12  # of thresholds that are not exact in binary


@dataclass(frozen=True, eq=False)
class DetectionMetrics:
    """The metrics of a pool."""

    pool: Pool
    order: Positions  # (n_items,): the candidate of each item of the labels
    threshold: float = 0.5
    missed: Floats | None = None  # (n_draws, n_categories)

    def __post_init__(self) -> None:
        if self.missed is not None and self.missed.shape[1] not in (1, len(self.pool.categories)):
            raise InvalidParameter(
                f"missed must count objects of all classes together or of each of {len(self.pool.categories)}, got "
                f"{self.missed.shape[1]} columns",
                parameter="missed",
            )

    def metric(self, name: str, category: str | None = None) -> Metric:
        """One of `NAMES`, for `trueup.evaluate` and `trueup.compare` of systems of the pool."""
        if name not in NAMES:
            raise InvalidParameter(f"metric must be one of {', '.join(NAMES)}, got {name!r}", parameter="metric")
        full_name, bounds = name if category is None else f"{name}: {category}", (0.0, 1.0)

        def of_system(system: Hashable) -> Metric:
            if name == "panoptic_quality":
                check_partition(self.pool, str(system), self.threshold)

            def values(truths: Any, scores: Any, weights: Any) -> Floats:
                if weights is not None:
                    raise InvalidParameter("metrics of detections are about these images; use `target='sample'`")
                real = np.zeros((len(truths), len(self.pool)), dtype=bool)
                real[:, self.order] = truths
                return self.values(name, str(system), real, category)

            return Metric(full_name, values, needs="scores", bounds=bounds)

        def without_system(truths: Any, scores: Any, weights: Any) -> Floats:
            raise InvalidParameter("a metric of detections needs a system of its pool, got scores")

        return Metric(full_name, without_system, needs="scores", bounds=bounds, of_system=of_system)

    def values(self, name: str, system: str, real: Booleans, category: str | None = None) -> Floats:
        """A metric of one system on drawn truths."""
        found, n_classes = self.pool.found[system], len(self.pool.categories)
        codes = np.arange(n_classes) if category is None else np.array([self.pool.categories.index(category)])
        if name in AVERAGE_PRECISIONS:
            return self._average_precision(found, real, codes, *AVERAGE_PRECISIONS[name])
        if name == "panoptic_quality":
            return self._panoptic_quality(found, real, codes)
        if name == "froc":
            own = self._by_score(found, codes)
            role, n_images = np.where(self._is_of_class(found), found.is_first, -1)[own], self.pool.images.n
            at, scores = found.candidate[own], found.scores[own]
            return mean_sensitivities(real, at, scores, role, self._n_objects(real, codes), n_images)
        reported = (found.scores >= self.threshold) & np.isin(found.category, codes)
        right = real[:, found.candidate[reported & found.is_first & self._is_of_class(found)]].sum(axis=1, dtype=float)
        n_reported = np.full(len(real), float(reported.sum()))
        if name == "precision":
            return _ratio(right, n_reported)
        if name == "pool_recall":
            return _ratio(right, self._n_candidates(real, codes))
        n_objects = self._n_objects(real, codes)
        if name == "recall":
            return _ratio(right, n_objects)
        square = F_SCORES[name] ** 2
        return _ratio((1 + square) * right, square * n_objects + n_reported)

    def _is_of_class(self, found: Found) -> Booleans:
        return np.asarray(self.pool.category[found.candidate] == found.category)

    def _by_score(self, found: Found, codes: Positions) -> Positions:
        """Detections of some classes by falling score; of equal scores by image, place and class."""
        keys = found.category, *found.boxes.T[::-1], self.pool.image[found.candidate], -found.scores
        order = np.lexsort(keys)
        return order[np.isin(found.category[order], codes)]

    def _n_candidates(self, real: Booleans, codes: Positions) -> Floats:
        return np.asarray(real[:, np.isin(self.pool.category, codes)].sum(axis=1, dtype=float))

    def _n_objects(self, real: Booleans, codes: Positions) -> Floats:
        return np.asarray(self._n_candidates(real, codes) + self._missed(real)[:, codes].sum(axis=1))

    def _missed(self, real: Booleans) -> Floats:
        """Missed objects of each class in each draw."""
        if self.missed is None:
            return np.zeros((len(real), len(self.pool.categories)))
        counts: Floats = self.missed[np.arange(len(real)) % len(self.missed)]
        if counts.shape[1] == len(self.pool.categories):
            return counts
        real_ones = self._candidates_by_class(real)
        real_ones = np.where(real_ones.any(axis=1, keepdims=True), real_ones, 1.0)  # a draw without objects has shares
        return np.asarray(counts * real_ones / real_ones.sum(axis=1, keepdims=True))

    def _candidates_by_class(self, real: Booleans) -> Floats:
        """Real candidates of each class in each draw."""
        return np.stack([self._n_candidates(real, np.array([k])) for k in range(len(self.pool.categories))], axis=1)

    def _has_objects(self, real: Booleans) -> Booleans:
        """The classes that count in a mean over classes in each draw, as an array of shape (n_draws, n_classes)."""
        has = self._candidates_by_class(real) > 0
        if self.missed is None:
            return has
        if self.missed.shape[1] == len(self.pool.categories) > 1:
            has |= (self.missed > 0).all(axis=0)
        return np.where(has.any(axis=1, keepdims=True), has, self._missed(real) > 0)

    def _average_precision(
        self, found: Found, real: Booleans, codes: Positions, thresholds: Floats, area: str
    ) -> Floats:
        """The mean over classes that have objects, and over thresholds of overlap."""
        low, high = AREAS[area]
        n_classes, by_score = len(self.pool.categories), self._by_score(found, codes)
        inside = (self.pool.areas >= low) & (self.pool.areas <= high)
        missed = self._missed(real) * self._has_objects(real) if area == "all" else np.zeros((1, n_classes))
        can_be_right = found.is_first & self._is_of_class(found)
        level = (found.overlap[by_score, None] >= thresholds - _ROUNDING).sum(axis=1) * can_be_right[by_score]
        counted = np.stack([real[:, (self.pool.category == k) & inside].sum(axis=1) for k in range(n_classes)], axis=1)
        totals = (counted + missed) * np.isin(np.arange(n_classes), codes)
        own = found.areas[by_score]
        flags = {"is_inside": inside[found.candidate[by_score]], "can_be_wrong": (own >= low) & (own <= high)}
        return mean_average_precisions(
            real, found.category[by_score], found.candidate[by_score], level, len(thresholds), totals, **flags
        )

    def _panoptic_quality(self, found: Found, real: Booleans, codes: Positions) -> Floats:
        """Σ overlap of right segments / (right + half the wrong + half the missed): the mean over classes with any."""
        sums, counts, has_objects = np.zeros(len(real)), np.zeros(len(real)), self._has_objects(real)
        could_be_right = found.is_first & self._is_of_class(found) & (found.overlap > LEAST_OVERLAP)
        for k in codes.tolist():
            reported = (found.scores >= self.threshold) & (found.category == k)
            n_objects, right = self._n_objects(real, np.array([k])) * has_objects[:, k], reported & could_be_right
            overlaps = real[:, found.candidate[right]] @ found.overlap[right]
            values = _ratio(overlaps, (reported.sum() + n_objects) / 2)
            sums += np.nan_to_num(values)
            counts += ~np.isnan(values)
        return _ratio(sums, counts)


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0))
