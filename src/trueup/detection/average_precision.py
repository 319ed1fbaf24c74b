"""Average precision and recall as COCO defines them: the best precision still to come, at 101 points of recall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trueup._base.engines import choose_engine
from trueup._base.types import Floats
from trueup.detection.coco_matching import MOST_DETECTIONS, WORTH_COMPILING, Matches, match_to_objects
from trueup.detection.shapes import Shapes, align
from trueup.exceptions import InvalidShapes

RECALL_POINTS = np.linspace(0.0, 1.0, 101)
_TINY = np.spacing(1.0)
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
    areas, categories : tuples of str
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
        return {
            "AP": self.ap(),
            "AP50": self.ap(iou=0.5),
            "AP75": self.ap(iou=0.75),
            "APs": self.ap(area="small"),
            "APm": self.ap(area="medium"),
            "APl": self.ap(area="large"),
            "AR1": self.ar(most=1),
            "AR10": self.ar(most=10),
            "AR100": self.ar(),
            "ARs": self.ar(area="small"),
            "ARm": self.ar(area="medium"),
            "ARl": self.ar(area="large"),
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
    found : Shapes
        Of one system, with scores.
    objects : Shapes
        Of one annotator. Where both have masks these are compared, else the boxes.

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
            raise InvalidShapes(
                f"{name} must be of one source, got {len(shapes.sources)}; choose one with of_source(name)"
            )
    if (found.masks is None) != (objects.masks is None):
        found, objects = found.boxes_only(), objects.boxes_only()
    found, objects = align(found, objects)
    matches = match_to_objects(found, objects)
    return scores_of(matches, found)


def scores_of(matches: Matches, found: Shapes) -> CocoScores:
    """Precision and recall from what became of each detection."""
    assert found.scores is not None
    n_areas, n_thresholds, _ = matches.outcome.shape
    n_categories = len(found.categories)
    precision = np.full((n_areas, n_thresholds, n_categories), np.nan)
    recall = np.full((len(LIMITS), n_areas, n_thresholds, n_categories), np.nan)
    category, score = found.category[matches.order], found.scores[matches.order]
    # By falling score; of equal ones the first image first, as COCO has it.
    order = np.lexsort((-score, category))
    starts = np.searchsorted(category[order], np.arange(n_categories + 1))
    if choose_engine(work=len(order), worth=WORTH_COMPILING) == "numba":
        from trueup.detection import compiled_loops

        limits = np.array(LIMITS)
        counts = matches.n_objects, RECALL_POINTS, limits, _TINY
        compiled_loops.fill_scores(matches.outcome, order, starts, matches.rank, *counts, precision, recall)
        return CocoScores(precision, recall, matches.thresholds, matches.areas, found.categories)
    for k in range(n_categories):
        members = order[starts[k] : starts[k + 1]]
        n_objects = matches.n_objects[:, k]
        outcome = matches.outcome[:, :, members]
        for area in np.flatnonzero(n_objects):
            precision[area, :, k] = mean_precision(outcome[area], int(n_objects[area]))
            for limit, most in enumerate(LIMITS):
                right = (outcome[area] == 1) & (matches.rank[members] < most)
                recall[limit, area, :, k] = right.sum(axis=1) / n_objects[area]
    return CocoScores(precision, recall, matches.thresholds, matches.areas, found.categories)


def mean_precision(outcome: npt.NDArray[np.int8], n_objects: int) -> Floats:
    """Mean precision over the points of recall, for rows of outcomes by falling score."""
    is_right, is_ignored = outcome == 1, outcome < 0
    places = np.flatnonzero(is_right.any(axis=0))  # precision rises nowhere else
    n_rows, n = len(outcome), len(places)
    right = np.cumsum(is_right[:, places], axis=1)
    counted = np.broadcast_to(places + 1, right.shape)
    if is_ignored.any():
        counted = counted - np.cumsum(is_ignored, axis=1)[:, places]
    precision = right / (counted + _TINY)
    precision = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    # Points of recall that take the same number of right ones are looked up once; which detection brings that number is
    # a search among integers, of all rows at once.
    reached = np.searchsorted(np.arange(n_objects + 1) / n_objects, RECALL_POINTS)
    needed, n_points = np.unique(np.minimum(reached, n + 1), return_counts=True)
    base = np.arange(n_rows)[:, None]
    at = np.searchsorted((right + base * (n + 2)).ravel(), needed + base * (n + 2)) - base * n
    padded = np.concatenate([precision, np.zeros((n_rows, 1))], axis=1)
    return np.asarray(np.take_along_axis(padded, at, axis=1) @ n_points / len(RECALL_POINTS))
