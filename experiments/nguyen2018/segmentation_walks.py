"""Masks vetted batch by batch: which objects are asked, and what each estimator says at each share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.nguyen2018.by_threshold import by_threshold
from experiments.nguyen2018.segmentation import Array, Codes, Flags, Outcomes, Segmentation
from trueup._base.engines import using_engine
from trueup._base.optional import is_installed

__all__ = [
    "BY_THRESHOLD",
    "LEARNED",
    "SHARES",
    "STRATEGIES",
    "SegmentationWalk",
    "object_changes",
    "segmentation_walk",
    "slopes_of_lists",
]

SHARES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7)
LEARNED = {"fill": "learned", "stretched": "learned, stretched"}  # by the features of the overlap
BY_THRESHOLD = "learned by threshold"
STRATEGIES = ("random", "random image", "meec")
BATCHES = 20  # of the whole pool; two for each share that is looked at


@dataclass(frozen=True, eq=False)
class SegmentationWalk:
    """One set of objects vetted by one strategy.

    Attributes
    ----------
    said : mapping from estimators to arrays of shape (n_systems, n_shares, n_classes)
        Average precision (COCO's) of each class; nan where an estimator has no say.
    true : array of shape (n_systems, n_classes)
    """

    said: dict[str, Array]
    true: Array

    def class_errors(self, estimator: str, system: int = 0) -> Array:
        """Mean over classes of the absolute error, as in the paper, shape (n_shares,)."""
        return _mean_of_known(np.abs(self.said[estimator][system] - self.true[system]))

    def errors(self, estimator: str, system: int = 0) -> Array:
        """Error of the mean over classes, with its sign, shape (n_shares,)."""
        return _mean_of_known(self.said[estimator][system]) - self.true[system].mean()

    def gaps(self, estimator: str, first: int, second: int) -> tuple[Array, float]:
        """One system less another: as estimated, shape (n_shares,), and truly."""
        said = _mean_of_known(self.said[estimator][first]) - _mean_of_known(self.said[estimator][second])
        return said, float(self.true[first].mean() - self.true[second].mean())


def _mean_of_known(values: Array) -> Array:
    """Means along the last axis of what is not nan; nan where nothing is."""
    known = ~np.isnan(values)
    n = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.asarray(np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0))


def segmentation_walk(
    data: Segmentation,
    strategy: str,
    *,
    seed: int,
    kinds: Sequence[str] = ("fill", "stretched"),
    with_paper: bool = True,
    shares: Sequence[float] = SHARES,
) -> SegmentationWalk:
    """Vet objects in batches up to each share, by a strategy of the paper's name.

    Parameters
    ----------
    kinds : sequence of str
        Features of the learned estimators; MEEC goes by the first of them.
    with_paper : bool
        Whether the paper's own learned estimator, one model for each threshold, is asked too.
    """
    rng = np.random.default_rng([7, seed])
    vetted = np.zeros(len(data.objects), dtype=bool)
    in_random_order = _random_order(data, strategy, rng)
    batch = -(-len(data.askable) // BATCHES)
    said: dict[str, list[Array]] = {}
    engine = "numba" if is_installed("numba") else None  # one walk alone would not repay loading it, fifty do
    with using_engine(engine):
        for share in shares:
            target = round(share * len(data.askable))
            while (missing := target - int(vetted.sum())) > 0:
                n = min(batch, missing)
                if strategy == "meec" and vetted.any():
                    chosen = _most_change(data, data.drawn_outcomes(kinds[0], vetted, rng), vetted, n)
                else:  # the first batch of MEEC is random: there is nothing to learn from yet
                    chosen = in_random_order[~vetted[in_random_order]][:n]
                vetted[chosen] = True
            for name, values in _estimates(data, strategy, vetted, kinds, with_paper, rng).items():
                said.setdefault(name, []).append(values)
    return SegmentationWalk({name: np.stack(values, axis=1) for name, values in said.items()}, data.true)


def _estimates(
    data: Segmentation, strategy: str, vetted: Flags, kinds: Sequence[str], with_paper: bool, rng: np.random.Generator
) -> dict[str, Array]:
    systems = list(data.systems.values())
    said = {"naive": np.stack([data.naive(system, vetted) for system in systems])}
    if strategy == "random image":
        said["vetted-only"] = np.stack([data.vetted_only(system, vetted) for system in systems])
    if with_paper:
        said[BY_THRESHOLD] = by_threshold(data, vetted, rng)
    return said | {LEARNED[kind]: data.learned(kind, vetted, rng) for kind in kinds}


def _random_order(data: Segmentation, strategy: str, rng: np.random.Generator) -> Codes:
    """All objects: image after image, or by the paper's random, which draws a class and then an object of it."""
    objects = data.askable
    shuffled = rng.permutation(objects)
    if strategy == "random image":
        place = rng.permutation(data.objects.images.n)
        return shuffled[np.argsort(place[data.objects.image[shuffled]], kind="stable")]
    left = {int(k): list(shuffled[data.objects.category[shuffled] == k]) for k in np.unique(data.objects.category)}
    order = []
    while left:
        name = list(left)[rng.integers(len(left))]
        if left[name]:
            order.append(left[name].pop())
        if not left[name]:
            del left[name]
    return np.array(order, dtype=np.int64)


def _most_change(data: Segmentation, outcomes: Sequence[Outcomes], vetted: Flags, n: int) -> Codes:
    """The objects whose masks are expected to move the estimates most."""
    changes = object_changes(data, outcomes, vetted)
    left = data.askable[~vetted[data.askable]]
    return left[np.argsort(-changes[left], kind="stable")[:n]]


def object_changes(data: Segmentation, outcomes: Sequence[Outcomes], vetted: Flags) -> Array:
    """How far the mask of each object is expected to move average precision: the sum over its detections.

    Each detection counts for the open object whose box it overlaps most. Its chance to be right at each threshold is
    the share of draws in which it is, duplicates allowed for. Equation 12 of the paper, put right.
    """
    changes = np.zeros(len(data.objects))
    for system, of_draws in zip(data.systems.values(), outcomes, strict=True):
        right = (of_draws == 1).mean(axis=0)  # (n_thresholds, n_kept)
        is_open = ~vetted[system.object_of_pair] & system.features.can_overlap
        nearest = system.nearest(system.features.boxes, is_open)
        by_detection = np.zeros(right.shape[1])
        for at, n_objects in zip(system.lists.columns, system.lists.n_objects, strict=True):
            p = right[:, at]
            by_detection[at] = (2 * p * (1 - p) * slopes_of_lists(p)).sum(axis=0) / n_objects
        has_one = nearest >= 0
        np.add.at(changes, system.object_of_pair[nearest[has_one]], by_detection[has_one])
    return changes


def slopes_of_lists(p: Array) -> Array:
    """The slope of N_p E[AP] by each chance, for rows of lists by falling score; see `trueup.active.influence`."""
    place = np.arange(1, p.shape[1] + 1)
    above = np.cumsum(p, axis=1) - p
    share = p / place
    below = share.sum(axis=1, keepdims=True) - np.cumsum(share, axis=1)
    return np.asarray((1 + above) / place + below)
