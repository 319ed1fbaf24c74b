"""Metrics of detections as functions of which candidates are real objects."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trueup._base.types import Booleans, Floats, Positions
from trueup.detection.coco_matching import AREAS, THRESHOLDS
from trueup.detection.drawn_precision import average_precisions
from trueup.detection.pool import Found, Pool
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric

AVERAGE_PRECISIONS: dict[str, tuple[Floats, str]] = {
    "ap50": (np.array([0.5]), "all"),
    "ap75": (np.array([0.75]), "all"),
    "ap": (THRESHOLDS, "all"),
    "ap_small": (THRESHOLDS, "small"),
    "ap_medium": (THRESHOLDS, "medium"),
    "ap_large": (THRESHOLDS, "large"),
}
NAMES = ("precision", "recall", "f1", *AVERAGE_PRECISIONS)
_ROUNDING = 1e-12  # of thresholds that are not exact in binary


@dataclass(frozen=True, eq=False)
class DetectionMetrics:
    """The metrics of a pool.

    Attributes
    ----------
    pool : Pool
    order : integer array of shape (n_items,)
        The candidate of each item of the labels.
    threshold : float
        The score from which on a detection is reported, for precision, recall and F1.
    missed : array of shape (n_draws, n_categories), optional
        Draws of how many objects are no candidates; by default none, so that recall is that of the pool.
    """

    pool: Pool
    order: Positions
    threshold: float = 0.5
    missed: Floats | None = None

    def metric(self, name: str) -> Metric:
        """One of `NAMES`, for `trueup.evaluate` and `trueup.compare` of systems of the pool."""
        if name not in NAMES:
            raise InvalidParameter(f"metric must be one of {', '.join(NAMES)}, got {name!r}", parameter="metric")
        bounds = (0.0, 1.0)

        def of_system(system: Hashable) -> Metric:
            return Metric(name, partial(self._values, name, system), needs="scores", bounds=bounds)

        return Metric(name, _needs_a_system, needs="scores", bounds=bounds, of_system=of_system)

    def _values(self, name: str, system: Hashable, truths: Any, scores: Any, weights: Any) -> Floats:
        if weights is not None:
            raise InvalidParameter("metrics of detections are about these images; use ⟨target='sample'⟩")
        real = np.zeros((len(truths), len(self.pool)), dtype=bool)
        real[:, self.order] = truths
        return self.values(name, str(system), real)

    def values(self, name: str, system: str, real: Booleans) -> Floats:
        """A metric of one system on drawn truths.

        Parameters
        ----------
        real : boolean array of shape (n_draws, n_candidates)
        """
        found = self.pool.found[system]
        if name in AVERAGE_PRECISIONS:
            return self._average_precision(found, real, *AVERAGE_PRECISIONS[name])
        n_reported = float((found.scores >= self.threshold).sum())
        right, n_objects = self._right(found, real), real.sum(axis=1) + self._missed(len(real)).sum(axis=1)
        if name == "precision":
            return _ratio(right, np.full(len(real), n_reported))
        return _ratio(right, n_objects) if name == "recall" else _ratio(2 * right, n_objects + n_reported)

    def _right(self, found: Found, real: Booleans) -> Floats:
        """Reported detections that are right; duplicates are not."""
        counts = (found.scores >= self.threshold) & found.is_first & self._is_of_class(found)
        return np.asarray(real[:, found.candidate[counts]].sum(axis=1), dtype=float)

    def _is_of_class(self, found: Found) -> Booleans:
        return np.asarray(self.pool.category[found.candidate] == found.category)

    def _missed(self, n_draws: int) -> Floats:
        if self.missed is None:
            return np.zeros((n_draws, len(self.pool.categories)))
        return self.missed[np.arange(n_draws) % len(self.missed)]

    def _average_precision(self, found: Found, real: Booleans, thresholds: Floats, area: str) -> Floats:
        """The mean over classes that have objects, and over thresholds of overlap."""
        pool = self.pool
        low, high = AREAS[area]
        size = pool.boxes[:, 2] * pool.boxes[:, 3]
        inside = (size >= low) & (size <= high)
        missed = self._missed(len(real)) if area == "all" else np.zeros((len(real), len(pool.categories)))
        by_score = np.argsort(-found.scores, kind="stable")
        by_score = by_score[inside[found.candidate[by_score]]]
        can_be_right = found.is_first & self._is_of_class(found)
        sums, counts = np.zeros(len(real)), np.zeros(len(real))
        for k in range(len(pool.categories)):
            own = by_score[found.category[by_score] == k]
            total = real[:, (pool.category == k) & inside].sum(axis=1) + missed[:, k]
            if not total.any():
                continue
            for threshold in thresholds:
                enough = can_be_right[own] & (found.overlap[own] >= threshold - _ROUNDING)
                values = average_precisions(real, found.candidate[own], enough, total)
                sums += np.nan_to_num(values)
                counts += ~np.isnan(values)
        return _ratio(sums, counts)


def _needs_a_system(truths: Any, scores: Any, weights: Any) -> Floats:
    raise InvalidParameter("a metric of detections is asked for a system of its pool, not for scores")


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0))
