"""Today's practice: take a labeler, or the majority of them, for the truth."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator
from trueup.data.labels import Labels
from trueup.estimators.counts import (
    BootstrapEstimate,
    DrawnCounts,
    JointPoint,
    PointCounts,
    ScoreEstimate,
    frozen,
    linear_ratio,
    point_estimate,
)
from trueup.estimators.problem import Solution, check_codes
from trueup.exceptions import InvalidLabels
from trueup.metrics import Metric
from trueup.noise.majority import majority_shares
from trueup.posteriors import DiscreteEstimate, Estimate, JointEstimate

Center = Literal["mean", "median"]
_BOOTSTRAP = 4000
_MEDIAN_STEPS = 1000
_CLOSE = 1e-8  # of the spread of points: nearer is as good as there


def labeler_counts(labels: Labels, predictions: npt.ArrayLike) -> Floats:
    """Confusion counts with each labeler's votes as the truth, shape (n_labelers, n_classes, n_classes).

    `predictions` are codes in the order of ``labels.items``, -1 for none; abstentions are left out.
    """
    c = labels.n_classes
    codes = check_codes(predictions, labels.n_items, c)
    item, labeler, answer, counts = labels.vote_table()
    counted = (answer < c) & (codes[item] >= 0)
    cell = (labeler[counted].astype(np.int64) * c + answer[counted]) * c + codes[item[counted]]
    table = np.bincount(cell, weights=counts[counted], minlength=labels.n_labelers * c * c)
    return np.asarray(table.reshape(labels.n_labelers, c, c))


class LabelerCounts(PointCounts):
    """A metric is computed for each labeler, and the mean or the median of these is taken (Su 2024, Section 2.6.1).

    Scalars have a median; pairs of metrics and confusion matrices the geometric one (Vardi and Zhang). Matrices, of
    shape (n_labelers, n_classes, n_classes), are scaled to the number of predicted items first (Section 5.3).
    """

    def __init__(self, counts: npt.ArrayLike, *, n_items: int, center: Center) -> None:
        super().__init__(counts)
        self.n_items = n_items
        self.center = center
        if not len(self.counts):
            raise InvalidLabels("no labeler voted on an item with a prediction, got no votes to compare with")

    @property
    def mean_counts(self) -> Floats:
        scaled = self.counts * (self.n_items / self.counts.sum(axis=(1, 2), keepdims=True))
        return self._middle(scaled.reshape(len(scaled), -1)).reshape(self.counts.shape[1:])

    def _middle(self, points: Floats) -> Floats:
        defined = points[~np.isnan(points).any(axis=1)]
        if not len(defined):
            return np.full(points.shape[1], math.nan)
        return defined.mean(axis=0) if self.center == "mean" else geometric_median(defined)

    def estimate(self, metric: Metric) -> Estimate:
        return point_estimate(metric, float(self._middle(metric(self.counts)[:, None])[0]))

    def joint(self, a: Metric, b: Metric) -> JointPoint:
        x, y = self._middle(np.stack([a(self.counts), b(self.counts)], axis=1))
        return JointPoint((float(x), float(y)), (a.name, b.name))


def geometric_median(points: Floats) -> Floats:
    """The point with the least sum of distances to points of shape (n, d), by Weiszfeld's iteration.

    Distances are √(d² + ε²) with a tiny ε, so that the iteration moves on where it lands on one of the points. Towards
    a median that is itself one of the points it only creeps, so the nearest of them is tried at the end.
    """
    if points.shape[1] == 1:
        return np.asarray(np.median(points, axis=0))

    def distances(center: Floats) -> Floats:
        return np.asarray(np.linalg.norm(points - center, axis=1))

    center = points.mean(axis=0)
    scale = float(distances(center).max())
    for _ in range(_MEDIAN_STEPS):
        pull = 1 / np.maximum(np.hypot(distances(center), _CLOSE * scale), np.finfo(float).tiny)
        before, center = center, pull @ points / pull.sum()
        if np.linalg.norm(center - before) <= 1e-10 * scale:
            break
    nearest = points[np.argmin(distances(center))]
    return np.array(nearest if distances(nearest).sum() <= distances(center).sum() else center)


def labeler_mean(labels: Labels, predictions: npt.ArrayLike, *, random_state: RandomState = None) -> Solution:
    """The mean of the metric over labelers, each taken for the truth on the items they labeled (Su 2024, 2.6.1)."""
    return _middle_labeler(labels, predictions, "mean")


def labeler_median(labels: Labels, predictions: npt.ArrayLike, *, random_state: RandomState = None) -> Solution:
    """The median of the metric over labelers, each taken for the truth on the items they labeled (Su 2024, 2.6.1)."""
    return _middle_labeler(labels, predictions, "median")


def _middle_labeler(labels: Labels, predictions: npt.ArrayLike, center: Center) -> Solution:
    counts = labeler_counts(labels, predictions)
    voted = counts.sum(axis=(1, 2)) > 0
    n_items = int((np.asarray(predictions) >= 0).sum())
    return Solution(LabelerCounts(counts[voted], n_items=n_items, center=center))


class MajorityCounts(DrawnCounts):
    """Counts of labels that are taken for true, with the intervals of today's practice.

    Shares (accuracy, precision, recall, …) get Wilson's interval of a share of independent trials (`ScoreEstimate`),
    other metrics a bootstrap of the items. Both say how much a new sample of items would differ, and nothing of the
    labels being wrong: they cover badly.
    """

    def __init__(self, counts: Floats, draws: Floats) -> None:
        super().__init__(draws)
        self.counts = frozen(counts)

    @property
    def mean_counts(self) -> Floats:
        return self.counts

    def estimate(self, metric: Metric) -> Estimate:
        value = float(metric(self.counts))
        if math.isnan(value):
            return DiscreteEstimate([math.nan], [1.0], bounds=metric.bounds, name=metric.name)
        ratio = linear_ratio(metric, self.n_classes)
        if ratio is None or not all(np.isin(part, (0, 1)).all() for part in ratio) or (ratio[0] > ratio[1]).any():
            return BootstrapEstimate(value, metric(self.draws), bounds=metric.bounds, name=metric.name)
        trials = float((ratio[1] * self.counts).sum())
        return ScoreEstimate(value, lambda x: np.sqrt(x * (1 - x) / trials), name=metric.name)

    def joint(self, a: Metric, b: Metric) -> JointEstimate:
        return replace(super().joint(a, b), means=(float(a(self.counts)), float(b(self.counts))))


def majority(labels: Labels, predictions: npt.ArrayLike, *, random_state: RandomState = None) -> Solution:
    """Majority labels as the truth, with the interval that is usually reported.

    Classes with equally many votes share the item evenly (`trueup.noise.majority.majority_shares`). **The interval
    covers badly.** Where three labelers of accuracy 0.75 vote, the majority is wrong on one item in six, and no number
    of items makes that go away.

    Parameters
    ----------
    labels : Labels. Items without votes are left out; gold counts as the truth.
    predictions : integer array of shape (n_items,). Codes in the order of ``labels.items``, -1 for none.
    random_state : int, Generator or None. For the bootstrap of metrics that are no share.
    """
    return taken_for_true(majority_shares(labels), predictions, random_state=random_state)


def taken_for_true(shares: Floats, predictions: npt.ArrayLike, *, random_state: RandomState = None) -> Solution:
    """Labels counted as the truth, with the interval that is usually reported."""
    codes = check_codes(predictions, *shares.shape)
    counts = shared_counts(shares, codes)
    if not counts.any():
        raise InvalidLabels("no item has both a label and a prediction, got nothing to compare; check the items' names")
    n = round(float(counts.sum()))  # an item that is shared adds up to one
    draws = as_generator(random_state).multinomial(n, counts.ravel() / counts.sum(), size=_BOOTSTRAP)
    return Solution(
        MajorityCounts(counts, draws.reshape(-1, *counts.shape).astype(float)),
        notes=("the labels are taken for true: the interval covers badly",),
    )


def shared_counts(shares: Floats, predictions: Codes) -> Floats:
    """Confusion counts, rows the truth, of items that are shared between true classes; -1 predicts nothing."""
    counted = predictions >= 0
    codes, n_classes = predictions[counted], shares.shape[1]
    return np.stack([np.bincount(codes, shares[counted, y], n_classes) for y in range(n_classes)])
