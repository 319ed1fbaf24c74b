"""Objects with boxes for masks, and the estimates of average precision while masks are drawn one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from experiments.nguyen2018.learned_overlap import (
    FEATURES,
    LearnedOverlap,
    PairFeatures,
    design_matrix,
    fit_overlap,
    pair_features,
)
from trueup.detection import Shapes
from trueup.detection.metrics import THRESHOLDS, Pairs, fill_scores, outcomes_of, overlaps_of, pair_up
from trueup.detection.shapes import align, boxes_of_masks

__all__ = [
    "N_DRAWS",
    "ByClass",
    "Segmentation",
    "System",
    "by_class",
    "make_segmentation",
    "outcomes_by_draw",
    "replace_masks",
]

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Outcomes = npt.NDArray[np.int8]

N_DRAWS = 10  # of overlaps; those of a pair are spread evenly over its chances
FILL_FEATURES = tuple(name for name in FEATURES if name != "stretched")


_EVERYTHING = {"all": (0.0, 1e10)}


@dataclass(frozen=True, eq=False)
class ByClass:
    """The detections of one system class by class, by falling score, for precision from many outcomes at once."""

    columns: tuple[Codes, ...]  # positions in the order of the pairs, for each class with objects
    classes: Codes  # (n_classes,): those with objects
    n_objects: Codes  # (n_classes,)

    def average_precision(self, outcomes: Outcomes) -> Array:
        """COCO's, for each row of outcomes and each class, shape (n_rows, n_classes)."""
        values = np.zeros((len(outcomes), 1, len(self.classes)))
        order = np.concatenate([*self.columns, np.zeros(0, dtype=np.int64)])
        starts = np.cumsum([0, *map(len, self.columns)])
        n_objects = np.tile(self.n_objects, (len(outcomes), 1))
        none = np.zeros((0, *values.shape))
        fill_scores(outcomes[:, None], order, starts, np.zeros(outcomes.shape[1], np.int64), n_objects, values, none)
        return values[:, 0]


def by_class(pairs: Pairs, detections: Shapes, objects: Shapes) -> ByClass:
    """The detections of the pairs, class by class."""
    assert detections.scores is not None
    category, score = detections.category[pairs.order], detections.scores[pairs.order]
    order = np.lexsort((-score, category))  # of equal scores the first image first, as COCO has it
    n_objects = np.bincount(objects.category[~objects.is_crowd], minlength=len(objects.categories))
    classes = np.flatnonzero(n_objects).astype(np.int64)
    starts = np.searchsorted(category[order], classes)
    ends = np.searchsorted(category[order], classes, side="right")
    columns = tuple(order[a:b].astype(np.int64) for a, b in zip(starts, ends, strict=True))
    return ByClass(columns, classes, n_objects[classes].astype(np.int64))


def outcomes_by_draw(pairs: Pairs, overlaps: Array, detections: Shapes, objects: Shapes) -> Outcomes:
    """What becomes of each detection for drawn overlaps, shape (n_draws, n_thresholds, n_kept): objects of any size."""
    return outcomes_of(pairs, np.ascontiguousarray(overlaps), detections, objects, _EVERYTHING)[:, 0]


@dataclass(frozen=True, eq=False)
class System:
    """The detections of one system beside the objects.

    Attributes
    ----------
    detections : Shapes
        With masks and their tight boxes.
    pairs : Pairs
    features : PairFeatures
    designs : mapping from a kind of learned estimator to an array of shape (n_pairs, n_columns)
    true : array of shape (n_pairs,)
        Overlaps of masks with masks: looked at only where the object is vetted, and for the truth.
    lists : ByClass
    """

    detections: Shapes
    pairs: Pairs
    features: PairFeatures
    designs: Mapping[str, Array]
    true: Array
    lists: ByClass

    @property
    def object_of_pair(self) -> Codes:
        """The object of each pair."""
        return self.pairs.members[1]

    @cached_property
    def place_of_pair(self) -> Codes:
        """The place of the detection of each pair in the order of the pairs."""
        places = np.empty(len(self.detections), dtype=np.int64)
        places[self.pairs.order] = np.arange(len(self.pairs.order))
        return places[self.pairs.members[0]]

    def nearest(self, closeness: Array, among: Flags) -> Codes:
        """The pair of each kept detection that is closest, among some pairs; -1 where there is none."""
        at = np.flatnonzero(among)
        order = at[np.lexsort((closeness[at], self.place_of_pair[at]))]
        best = np.full(len(self.pairs.order), -1, dtype=np.int64)
        best[self.place_of_pair[order]] = order  # of several the last one stays: the closest
        return best


@dataclass(frozen=True, eq=False)
class Segmentation:
    """Objects whose masks can be asked for one by one, and systems that found some of them.

    Attributes
    ----------
    objects : Shapes
        With the true masks; before one is vetted, estimates look at its box alone. Crowd regions are known.
    systems : mapping from names to System
    """

    objects: Shapes
    systems: Mapping[str, System]

    @cached_property
    def askable(self) -> Codes:
        """Positions of the objects that can be vetted: all but crowd regions."""
        return np.flatnonzero(~self.objects.is_crowd)

    @cached_property
    def true(self) -> Array:
        """Average precision of each system and class by the true masks, shape (n_systems, n_classes)."""
        return np.stack([self._precision(system, system.true[None]) for system in self.systems.values()])

    def naive(self, system: System, vetted: Flags) -> Array:
        """By class: boxes count as masks where no mask is known."""
        known = self._is_known(system, vetted)
        return self._precision(system, np.where(known, system.true, system.features.in_box)[None])

    def vetted_only(self, system: System, vetted: Flags) -> Array:
        """By class, on images all of whose objects are vetted; nan for classes that have none there."""
        objects = self.objects
        is_open = ~(vetted | objects.is_crowd)
        is_whole = np.bincount(objects.image[is_open], minlength=objects.images.n) == 0
        is_counted = ~objects.is_crowd & is_whole[objects.image]
        n_objects = np.bincount(objects.category[is_counted], minlength=len(objects.categories))[system.lists.classes]
        kept = is_whole[system.detections.image[system.pairs.order]]
        columns = tuple(at[kept[at]] for at in system.lists.columns)
        there = n_objects > 0
        part = ByClass(
            tuple(at for at, has in zip(columns, there, strict=True) if has),
            system.lists.classes[there],
            n_objects[there],
        )
        values = np.full(len(there), np.nan)
        outcomes = outcomes_by_draw(system.pairs, system.true[None], system.detections, objects)
        values[there] = part.average_precision(outcomes.reshape(len(THRESHOLDS), -1)).mean(axis=0)
        return values

    def learned(self, kind: str, vetted: Flags, rng: np.random.Generator) -> Array:
        """By system and class, with one model for all systems and thresholds."""
        outcomes = self.drawn_outcomes(kind, vetted, rng)
        return np.stack(
            [
                system.lists.average_precision(of_draws.reshape(-1, of_draws.shape[-1])).mean(axis=0)
                for system, of_draws in zip(self.systems.values(), outcomes, strict=True)
            ]
        )

    def drawn_outcomes(self, kind: str, vetted: Flags, rng: np.random.Generator) -> list[Outcomes]:
        """What becomes of each detection of each system, shape (N_DRAWS, n_thresholds, n_kept), as it was learned."""
        model = self._model(kind, vetted)
        outcomes = []
        for system in self.systems.values():
            known = self._is_known(system, vetted)
            overlaps = np.tile(np.where(known, system.true, 0.0), (N_DRAWS, 1))
            asked = ~known & system.features.can_overlap
            if model is None:  # nothing to learn from: boxes against boxes
                overlaps[:, asked] = system.features.boxes[asked]
            else:
                overlaps[:, asked] = model.draw(system.designs[kind][asked], n_draws=N_DRAWS, random_state=rng)
            outcomes.append(outcomes_by_draw(system.pairs, overlaps, system.detections, self.objects))
        return outcomes

    def _model(self, kind: str, vetted: Flags) -> LearnedOverlap | None:
        design, overlaps = [], []
        for system in self.systems.values():
            usable = vetted[system.object_of_pair] & system.features.can_overlap
            design.append(system.designs[kind][usable])
            overlaps.append(system.true[usable])
        rows = np.concatenate(design)
        return fit_overlap(rows, np.concatenate(overlaps)) if len(rows) else None

    def _is_known(self, system: System, vetted: Flags) -> Flags:
        return np.asarray((vetted | self.objects.is_crowd)[system.object_of_pair])

    def _precision(self, system: System, overlaps: Array) -> Array:
        outcomes = outcomes_by_draw(system.pairs, overlaps, system.detections, self.objects)
        return np.asarray(system.lists.average_precision(outcomes.reshape(-1, outcomes.shape[-1])).mean(axis=0))


def make_segmentation(detections: Mapping[str, Shapes], objects: Shapes, *, stretched: bool = True) -> Segmentation:
    """Pairs, features and true overlaps of all systems.

    Parameters
    ----------
    detections : mapping from systems to Shapes
        Each of one system, with masks.
    objects : Shapes
        With the true masks.
    stretched : bool
        Whether the kind "stretched" of the learned estimator is wanted, which takes most of the time.
    """
    parts = {}
    for name, one in detections.items():
        assert one.masks is not None
        tight, objects = align(replace(one, boxes=boxes_of_masks(one.masks)), objects)
        pairs = pair_up(tight, objects)
        features = pair_features(pairs, tight, objects, features=FEATURES if stretched else FILL_FEATURES)
        parts[name] = (tight, pairs, features)
    kinds = {"fill": len(FILL_FEATURES)} | ({"stretched": len(FEATURES)} if stretched else {})
    values = np.concatenate([features.values for _, _, features in parts.values()])
    among = np.concatenate([features.can_overlap for _, _, features in parts.values()])
    ends = np.cumsum([len(features.can_overlap) for _, _, features in parts.values()])
    designs = {kind: np.split(design_matrix(values[:, :n], among), ends[:-1]) for kind, n in kinds.items()}
    systems = {
        name: System(
            tight,
            pairs,
            features,
            {kind: designs[kind][k] for kind in kinds},
            overlaps_of(pairs, tight, objects),
            by_class(pairs, tight, objects),
        )
        for k, (name, (tight, pairs, features)) in enumerate(parts.items())
    }
    return Segmentation(objects, systems)


def replace_masks(segmentation: Segmentation, objects: Shapes) -> Segmentation:
    """The same boxes around other masks: only the true overlaps change."""
    systems = {
        name: replace(system, true=overlaps_of(system.pairs, system.detections, objects))
        for name, system in segmentation.systems.items()
    }
    return Segmentation(objects, systems)
