"""A pool of candidate objects: what annotators and systems drew, as items with votes and predictions.

Annotators vote on whether a candidate is a real object: 1 if they drew it, 0 if they looked at the image and did not.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.validation import check_choice, check_number
from trueup._base.wording import some
from trueup.data.labels import Labels
from trueup.detection.shapes import Images, Mask, Shapes, align, box_overlaps, group_by, mask_overlaps, overlaps_between
from trueup.exceptions import DataWarning, InvalidParameter, InvalidShapes


def group_shapes(shapes: Shapes, *, iou: float, same_class: bool, by_centre: bool = False) -> Positions:
    """The candidate object of each shape, numbered from 0 by image and place; -1 for crowd regions.

    Pairs are joined from the largest overlap down, if the two groups have no annotator in common and a large enough
    mean overlap.
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
    """The candidate of each detection of one system in one image and class, and whether it is the first there."""
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


REAL = "object"
NOTHING = "nothing"


@dataclass(frozen=True, eq=False)
class Found:
    """The detections of one system.

    Attributes
    ----------
    scores : array of shape (n,)
    category : integer array of shape (n,)
    candidate : integer array of shape (n,). Where each lies in the pool.
    is_first : boolean array of shape (n,)
        Whether it is the one that counts there; the others are duplicates, wrong whatever the truth is.
    overlap : array of shape (n,). With the shape of its candidate.
    boxes : array of shape (n, 4)
    areas : array of shape (n,), optional. By default of the boxes.
    """

    scores: Floats
    category: Codes
    candidate: Positions
    is_first: Booleans
    overlap: Floats
    boxes: Floats
    masks: tuple[Mask, ...] | None
    areas: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    def __post_init__(self) -> None:
        _fill_areas(self)


def _fill_areas(of: Found | Pool) -> None:
    """Areas of the boxes where none were given."""
    if len(of.areas) != len(of.boxes):
        object.__setattr__(of, "areas", of.boxes[:, 2] * of.boxes[:, 3])


@dataclass(frozen=True, eq=False)
class Matching:
    """The arguments of `match` that made a pool."""

    found: Shapes | None = field(repr=False)
    objects: Shapes = field(repr=False)
    shape: str | None = None
    same_class: bool = True
    by_centre: bool = False
    join: float | None = None


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidate objects with votes and detections; see `match`.

    Attributes
    ----------
    image, category : integer arrays of shape (n_candidates,)
    boxes : array of shape (n_candidates, 4)
        The median of the shapes that annotators drew, or systems where no annotator drew one.
    masks : tuple of Mask or None. The shape that is most like the others.
    votes : integer array of shape (n_annotators, n_candidates)
        1 drawn, 0 not drawn by an annotator who looked, -1 unknown, as in a crowd region that the annotator drew.
    iou : float. The overlap from which on a detection is at a candidate.
    matching : Matching or None. What it was made of.
    areas : array of shape (n_candidates,), optional
        In square pixels, of the masks where there are some, as COCO tells small from large; by default of the boxes.
    """

    images: Images
    categories: tuple[str, ...]
    image: Codes = field(repr=False)
    category: Codes = field(repr=False)
    boxes: Floats = field(repr=False)
    masks: tuple[Mask, ...] | None = field(repr=False)
    votes: npt.NDArray[np.int8] = field(repr=False)
    annotators: tuple[str, ...]
    found: Mapping[str, Found] = field(repr=False)
    iou: float = 0.5
    matching: Matching | None = field(default=None, repr=False)
    areas: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    def __post_init__(self) -> None:
        _fill_areas(self)

    def __len__(self) -> int:
        return len(self.image)

    def __repr__(self) -> str:
        n_each = {"class": self.categories, "annotator": self.annotators, "system": self.found}
        parts = ", ".join(some(len(names), what) for what, names in n_each.items())
        return f"Pool({some(len(self), 'candidate')} in {some(self.images.n, 'image')}, {parts})"

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems."""
        return tuple(self.found)

    @cached_property
    def items(self) -> list[str]:
        """A name of each candidate: its image and a number within it, by place."""
        seen: Counter[int] = Counter()
        names, ids = [], self.images.ids.tolist()
        for image in self.image.tolist():
            seen[image] += 1
            names.append(f"{ids[image]}/{seen[image]}")
        return names

    @cached_property
    def labels(self) -> Labels:
        """The votes: whether each candidate is an object; the item table says image, class and box."""
        names = np.array([NOTHING, REAL, ""], dtype=object)
        labels = Labels.from_matrix(
            names[self.votes.T], missing="", classes=[NOTHING, REAL], items=self.items, labelers=list(self.annotators)
        )
        ids = self.images.ids.tolist()
        images, classes = [ids[i] for i in self.image], [self.categories[k] for k in self.category]
        sides = dict(zip(("x", "y", "width", "height"), self.boxes.T.tolist(), strict=True))
        return labels.with_items({"item": self.items, "image": images, "category": classes, **sides})

    def predictions(self, threshold: float | Mapping[str, float] = 0.5) -> dict[str, dict[str, str]]:
        """For each system, which candidates it reports: those with a detection of at least the threshold.

        Duplicates, and with ``same_class=False`` detections of another class, are left out with a warning: precision
        and F scores of these predictions are then higher than the detector's, which `trueup.detection.evaluate` gives.
        """
        chosen = {}
        for name, found in self.found.items():
            least = threshold[name] if isinstance(threshold, Mapping) else threshold
            reported = found.scores >= least
            is_extra = reported & (~found.is_first | (found.category != self.category[found.candidate]))
            if is_extra.any():
                message = (
                    f"{int(is_extra.sum()):,} of {int(reported.sum()):,} detections of {name!r} are duplicates or of "
                    "another class than their candidate, which predictions of candidates leave out: precision and F "
                    "scores of them are higher than the detector's; use trueup.detection.evaluate for these"
                )
                warnings.warn(DataWarning(message), stacklevel=2)
            reports = np.full(len(self), NOTHING)
            reports[found.candidate[found.is_first & reported]] = REAL
            chosen[name] = dict(zip(self.items, reports.tolist(), strict=True))
        return chosen

    def scores(self, system: str) -> Floats:
        """The score of a system at each candidate, 0 where it found nothing."""
        found = self.found[system]
        values = np.zeros(len(self))
        values[found.candidate[found.is_first]] = found.scores[found.is_first]
        return values


def match(
    found: Shapes | None,
    objects: Shapes,
    *,
    iou: float = 0.5,
    shape: str | None = None,
    same_class: bool = True,
    by_centre: bool = False,
    join: float | None = None,
) -> Pool:
    """A pool of candidate objects from what annotators drew and systems found.

    Parameters
    ----------
    found : Shapes or None. Detections with scores, of one system or several.
    objects : Shapes. Of one annotator or several.
    iou : float. The overlap with a candidate's shape from which on a detection is at it.
    shape : {"box", "mask"}, optional. What is compared; by default masks where both have them.
    same_class : bool
        Whether shapes of different classes are different candidates; else the candidate has the class that most drew,
        of several such classes the one with more shapes in all images.
    by_centre : bool. For small things such as cells: shapes whose centres lie in each other are at the same place.
    join : float, optional. The mean overlap from which on shapes of annotators are one candidate; by default `iou`.
    """
    cut = check_number(iou, name="iou", low=0.0, high=1.0, strict=True)
    least = cut if join is None else check_number(join, name="join", low=0.0, high=1.0, strict=True)
    matching = Matching(found, objects, shape, same_class, by_centre, join)
    if found is not None:
        if found.scores is None:
            raise InvalidShapes("`found` must have scores; read it with read_results, annotations are `objects`")
        found, objects = align(found, objects)
    have_masks = objects.masks is not None and (found is None or found.masks is not None)
    if shape is not None:
        check_choice(shape, ("box", "mask"), name="shape")
    if shape == "mask" and not have_masks:
        raise InvalidParameter("`shape='mask'` needs masks of annotators and systems, got boxes; use `shape='box'`")
    if shape == "box" or not have_masks:
        objects = objects.boxes_only()
        found = None if found is None else found.boxes_only()
    group = group_shapes(objects, iou=least, same_class=same_class, by_centre=by_centre)
    candidates = _candidates(objects, group)
    if found is not None:
        found = found.select(~_in_crowds(found, objects, cut))
        extra = _unmatched(found, candidates, cut, same_class, by_centre)
        more = group_shapes(found.select(extra), iou=least, same_class=same_class, by_centre=by_centre)
        candidates = _joined(candidates, _candidates(found.select(extra), more))
        # A detection may lie far from the middle of those it was joined with: it is a candidate of its own.
        alone = np.flatnonzero(_unmatched(found, candidates, cut, same_class, by_centre))
        candidates = _joined(candidates, _candidates(found.select(alone), np.arange(len(alone))))
    # By image, class and place, so that names do not depend on who drew what first.
    order = np.lexsort((*candidates.boxes.T[::-1], candidates.category, candidates.image)).astype(np.int64)
    candidates = candidates.select(order)
    is_drawn = group >= 0
    votes = np.full((len(objects.sources), len(candidates)), -1, dtype=np.int8)
    if objects.seen is not None:
        votes[objects.seen[:, candidates.image]] = 0
    for k in np.flatnonzero(objects.is_crowd).tolist():  # an annotator of a crowd does not vote on what is in it
        votes[objects.source[k], _inside_crowd(candidates, objects, k, cut)] = -1
    votes[objects.source[is_drawn], np.argsort(order, kind="stable")[group[is_drawn]]] = 1
    found_by = {} if found is None else _place(found, candidates, cut, same_class, by_centre)
    of_each: dict[str, Any] = {
        name: getattr(candidates, name)
        for name in ("images", "categories", "image", "category", "boxes", "masks", "areas")
    }
    return Pool(votes=votes, annotators=objects.sources, found=found_by, iou=cut, matching=matching, **of_each)


def _candidates(shapes: Shapes, group: Positions) -> Shapes:
    """One shape for each group: the median box, and the mask that is most like the others."""
    n = int(group.max(initial=-1)) + 1
    n_drawn = np.bincount(shapes.category[group >= 0], minlength=len(shapes.categories))
    order, starts = group_by(group[group >= 0])
    at = np.flatnonzero(group >= 0)[order]
    chosen = at[starts[:-1]] if n else np.zeros(0, dtype=np.int64)
    boxes, category, areas = shapes.boxes[chosen], shapes.category[chosen], shapes.areas[chosen]
    for k in np.flatnonzero(np.diff(starts) > 1).tolist():  # most groups are one shape alone
        members = at[starts[k] : starts[k + 1]]
        corners = np.column_stack([shapes.boxes[members, :2], shapes.boxes[members, :2] + shapes.boxes[members, 2:]])
        middle = np.median(corners, axis=0)
        boxes[k] = [*middle[:2], *(middle[2:] - middle[:2])]
        by_place = shapes.boxes[members].T[::-1]
        if len(members) < 3 or shapes.masks is None:
            chosen[k] = members[np.lexsort(by_place)[0]]
        else:
            masks = [shapes.masks[i] for i in members]
            chosen[k] = members[mask_overlaps(masks, masks).mean(axis=1).argmax()]
        areas[k] = np.median(shapes.areas[members])
        of = shapes.category[members]  # the class that most have
        category[k] = of[np.lexsort((shapes.source[members], *by_place, -n_drawn[of], -np.bincount(of)[of]))[0]]
    kept = shapes.select(chosen)
    return candidate_shapes(shapes, kept.image, category, boxes, areas, kept.masks)


def candidate_shapes(
    of: Shapes | Pool, image: Codes, category: Codes, boxes: Floats, areas: Floats, masks: tuple[Mask, ...] | None
) -> Shapes:
    """Candidates as shapes of one source, in the images and classes of shapes or of a pool."""
    n = len(image)
    return Shapes(
        images=of.images,
        categories=of.categories,
        sources=("candidates",),
        image=image,
        category=category,
        source=np.zeros(n, dtype=np.int32),
        boxes=boxes,
        areas=areas,
        is_crowd=np.zeros(n, dtype=bool),
        masks=masks,
    )


def _joined(first: Shapes, second: Shapes) -> Shapes:
    if not len(second):
        return first
    masks = None if first.masks is None or second.masks is None else (*first.masks, *second.masks)
    names = ("image", "category", "boxes", "areas")
    image, category, boxes, areas = (np.concatenate([getattr(first, n), getattr(second, n)]) for n in names)
    return candidate_shapes(first, image, category, boxes, areas, masks)


def _inside_crowd(shapes: Shapes, objects: Shapes, k: int, iou: float) -> Positions:
    """Which shapes lie in a crowd region of their class, the k-th object."""
    near = np.flatnonzero((shapes.image == objects.image[k]) & (shapes.category == objects.category[k]))
    region = objects.select(np.array([k]))
    return near[overlaps_between(shapes.select(near), region)[:, 0] >= iou]


def _in_crowds(found: Shapes, objects: Shapes, iou: float) -> Booleans:
    """Detections that lie in a crowd region of their class and at no object of their own: they do not count."""
    inside = np.zeros(len(found), dtype=bool)
    for k in np.flatnonzero(objects.is_crowd).tolist():
        inside[_inside_crowd(found, objects, k, iou)] = True
    if not inside.any():
        return inside
    alone = objects.select(~objects.is_crowd)
    for k in np.flatnonzero(inside).tolist():
        near = np.flatnonzero((alone.image == found.image[k]) & (alone.category == found.category[k]))
        overlaps = overlaps_between(found.select(np.array([k])), alone.select(near))
        inside[k] = not (overlaps >= iou).any()
    return inside


def _unmatched(found: Shapes, candidates: Shapes, iou: float, same_class: bool, by_centre: bool) -> Booleans:
    """Detections at no candidate: things that no annotator drew."""
    alone = np.ones(len(found), dtype=bool)
    for mine, theirs in _neighbours(found, candidates, same_class):
        overlaps = _overlaps_at(found, mine, candidates, theirs, by_centre)
        alone[mine] = ~(overlaps >= iou).any(axis=1)
    return alone


def _overlaps_at(found: Shapes, mine: Positions, candidates: Shapes, theirs: Positions, by_centre: bool) -> Floats:
    if by_centre or found.masks is not None:
        return overlaps_between(found.select(mine), candidates.select(theirs), by_centre=by_centre)
    return box_overlaps(found.boxes[mine], candidates.boxes[theirs])  # of many small groups, so nothing is copied


def _neighbours(found: Shapes, candidates: Shapes, same_class: bool) -> list[tuple[Positions, Positions]]:
    """Positions of detections and candidates of one image (and class), where there are both."""
    n, groups = len(candidates.categories), []
    for shapes in (found, candidates):
        key = shapes.image.astype(np.int64) * n + (shapes.category if same_class else 0)
        order, starts = group_by(key)
        groups.append({int(key[order[first]]): order[first:last] for first, last in pairwise(starts)})
    return [(members, groups[1][key]) for key, members in groups[0].items() if key in groups[1]]


def _place(found: Shapes, candidates: Shapes, iou: float, same_class: bool, by_centre: bool) -> dict[str, Found]:
    assert found.scores is not None
    candidate = np.full(len(found), -1, dtype=np.int64)
    is_first = np.zeros(len(found), dtype=bool)
    overlap = np.zeros(len(found))
    for members, theirs in _neighbours(found, candidates, same_class):
        # By place and class, so that of equal scores the order of rows does not tell which is the first.
        mine = members[np.lexsort((found.category[members], *found.boxes[members].T[::-1]))]
        overlaps = _overlaps_at(found, mine, candidates, theirs, by_centre)
        for system in np.unique(found.source[mine]):
            rows = np.flatnonzero(found.source[mine] == system)
            at, first = assign_detections(overlaps[rows], found.scores[mine[rows]], iou)
            placed = at >= 0
            positions = mine[rows]
            candidate[positions[placed]] = theirs[at[placed]]
            is_first[positions] = first
            overlap[positions[placed]] = overlaps[rows[placed], at[placed]]
    result = {}
    for k, name in enumerate(found.sources):
        of = np.flatnonzero(found.source == k)
        own, places = found.select(of), (candidate[of], is_first[of], overlap[of])
        result[name] = Found(found.scores[of], own.category, *places, own.boxes, own.masks, own.areas)
    return result


def image_size(pool: Pool, image: int) -> tuple[float, float]:
    """Width and height of an image; as far as its shapes reach where they are unknown."""
    width, height = pool.images.sizes[image]
    if np.isfinite([width, height]).all():
        return float(width), float(height)
    boxes = pool.boxes[pool.image == image]
    if not len(boxes):
        return 1.0, 1.0
    reach = (boxes[:, :2] + boxes[:, 2:]).max(axis=0)
    return float(max(reach[0], 1.0)), float(max(reach[1], 1.0))
