"""Today's practice: take a labeler, or the majority of them, for the truth."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from trueup._validation import RandomState, as_generator, check_choice
from trueup.estimators._ratios import linear_ratio
from trueup.estimators.posterior import (
    CountsPosterior,
    DrawnCounts,
    JointPoint,
    frozen,
    no_spread,
    point_estimate,
)
from trueup.estimators.problem import Array, Codes, Solution
from trueup.exceptions import InvalidLabels, InvalidPredictions
from trueup.labels import Labels
from trueup.metrics import Metric
from trueup.posteriors import DiscreteEstimate, Estimate, PointEstimate, geometric_median, jeffreys_estimate

__all__ = ["LabelerCounts", "MajorityCounts", "labeler_counts", "labeler_mean", "labeler_median", "majority"]

Center = Literal["mean", "median"]
Ties = Literal["random", "split"]
_TIES: tuple[Ties, ...] = ("random", "split")
_BOOTSTRAP = 4000


def labeler_counts(labels: Labels, predictions: npt.ArrayLike) -> Array:
    """Confusion counts with each labeler's votes as the truth, shape (n_labelers, n_classes, n_classes).

    `predictions` are codes in the order of ``labels.items``, -1 for none; abstentions are left out.
    """
    codes = _checked(labels, predictions)
    c = labels.n_classes
    item, labeler, answer, times = labels.vote_table()
    counted = (answer < c) & (codes[item] >= 0)
    cell = (labeler[counted].astype(np.int64) * c + answer[counted]) * c + codes[item[counted]]
    table = np.bincount(cell, weights=times[counted], minlength=labels.n_labelers * c * c)
    return np.asarray(table.reshape(labels.n_labelers, c, c))


def _checked(labels: Labels, predictions: npt.ArrayLike) -> Codes:
    codes = np.asarray(predictions)
    if codes.shape != (labels.n_items,) or not np.issubdtype(codes.dtype, np.integer):
        raise InvalidPredictions(
            f"predictions must be {labels.n_items} integer codes, one for each item, got {codes.dtype} of shape "
            f"{codes.shape}; see Predictions.align"
        )
    if not ((codes >= -1) & (codes < labels.n_classes)).all():
        raise InvalidPredictions(f"predictions must lie between -1 and {labels.n_classes - 1}, got {codes.max()}")
    return codes


class LabelerCounts(CountsPosterior):
    """A metric is computed for each labeler, and the mean or the median of these is taken (Su 2024, Section 2.6.1).

    Scalars have a median; pairs of metrics and confusion matrices the geometric one (Vardi and Zhang). Matrices are
    scaled to the number of items first (Section 5.3).

    Parameters
    ----------
    counts : array of shape (n_labelers, n_classes, n_classes)
        Of the labelers who voted on predicted items.
    n_items : int
        The number of predicted items.
    center : {"mean", "median"}
    """

    def __init__(self, counts: npt.ArrayLike, *, n_items: int, center: Center) -> None:
        self.counts = frozen(counts)
        self.n_items = n_items
        self.center = center
        if not len(self.counts):
            raise InvalidLabels("no labeler voted on an item with a prediction, got no votes to compare with")

    @property
    def mean_counts(self) -> Array:
        """The mean or the geometric median of the labelers' scaled matrices."""
        scaled = self.counts * (self.n_items / self.counts.sum(axis=(1, 2), keepdims=True))
        return self._middle(scaled.reshape(len(scaled), -1)).reshape(self.counts.shape[1:])

    def _middle(self, points: Array) -> Array:
        defined = points[~np.isnan(points).any(axis=1)]
        if not len(defined):
            return np.full(points.shape[1], math.nan)
        return defined.mean(axis=0) if self.center == "mean" else geometric_median(defined)

    def estimate(self, metric: Metric) -> Estimate:
        """The mean or the median of the labelers' values, without an interval; undefined ones are left out."""
        return point_estimate(metric, float(self._middle(metric(self.counts)[:, None])[0]))

    def joint(self, a: Metric, b: Metric) -> JointPoint:
        """The mean or the geometric median of the labelers' pairs."""
        x, y = self._middle(np.stack([a(self.counts), b(self.counts)], axis=1))
        return JointPoint((float(x), float(y)), (a.name, b.name))

    def cell(self, truth: int, prediction: int) -> Estimate:
        """One count of the middle matrix, without an interval."""
        y, yhat = self._check_cell(truth, prediction)
        return PointEstimate(self.mean_counts[y, yhat], bounds=(0.0, float(max(self.n_items, 1))), name="count")

    def draw_counts(self, n: int, random_state: RandomState = None) -> Array:
        """Not there: the spread is unknown."""
        raise no_spread("draws of the counts")

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """Not there: there is no one truth."""
        raise no_spread("truth of each item")


def labeler_mean(labels: Labels, predictions: npt.ArrayLike, *, random_state: RandomState = None) -> Solution:
    """The mean of the metric over labelers, each taken for the truth on the items he labeled (Su 2024, 2.6.1)."""
    return _middle_labeler(labels, predictions, "mean")


def labeler_median(labels: Labels, predictions: npt.ArrayLike, *, random_state: RandomState = None) -> Solution:
    """The median of the metric over labelers, each taken for the truth on the items he labeled (Su 2024, 2.6.1)."""
    return _middle_labeler(labels, predictions, "median")


def _middle_labeler(labels: Labels, predictions: npt.ArrayLike, center: Center) -> Solution:
    counts = labeler_counts(labels, predictions)
    voted = counts.sum(axis=(1, 2)) > 0
    n_items = int((np.asarray(predictions) >= 0).sum())
    return Solution(LabelerCounts(counts[voted], n_items=n_items, center=center))


class MajorityCounts(DrawnCounts):
    """Counts of majority labels, with the intervals of today's practice.

    Shares (accuracy, precision, recall, …) get the Beta posterior of a share of independent trials; other metrics a
    bootstrap of the items. Both say how much a new sample of items would differ, and nothing of the labels being
    wrong: they cover badly.
    """

    def __init__(self, counts: Array, draws: Array) -> None:
        super().__init__(draws)
        self.counts = frozen(counts)

    @property
    def mean_counts(self) -> Array:
        """The counts themselves."""
        return self.counts

    def estimate(self, metric: Metric) -> Estimate:
        """The Beta posterior of a share, or a bootstrap."""
        ratio = linear_ratio(metric, self.n_classes)
        if ratio is None or not all(np.isin(part, (0, 1)).all() for part in ratio) or (ratio[0] > ratio[1]).any():
            return super().estimate(metric)
        successes, trials = (float((part * self.counts).sum()) for part in ratio)
        if trials <= 0:
            return DiscreteEstimate([math.nan], [1.0], bounds=metric.bounds, name=metric.name)
        return jeffreys_estimate(min(successes, trials), trials, name=metric.name)


def majority(
    labels: Labels, predictions: npt.ArrayLike, *, ties: Ties = "random", random_state: RandomState = None
) -> Solution:
    """Majority labels as the truth, with the interval that is usually reported.

    **It covers badly.** Where three labelers of accuracy 0.75 vote, the majority is wrong on one item in six, and no
    number of items makes that go away.

    Parameters
    ----------
    labels : Labels
        Items without votes are left out; gold counts as the truth.
    predictions : integer array of shape (n_items,)
        Codes in the order of ``labels.items``, -1 for none.
    ties : {"random", "split"}
        Draw one of the classes with most votes, or count the item for each in equal parts.
    random_state : int, Generator or None
        For ties and for the bootstrap.

    Returns
    -------
    Solution
        With `MajorityCounts`.
    """
    codes = _checked(labels, predictions)
    how = check_choice(ties, _TIES, name="ties")
    rng = as_generator(random_state)
    votes = labels.answer_counts[:, : labels.n_classes]
    known = np.flatnonzero(labels.gold_codes >= 0)
    first = (votes == votes.max(axis=1, keepdims=True)) & (votes > 0)
    first[known] = False
    first[known, labels.gold_codes[known]] = True
    share = first / np.maximum(first.sum(axis=1, keepdims=True), 1)
    counted = (codes >= 0) & first.any(axis=1)
    if not counted.any():
        raise InvalidLabels("no item has both votes and a prediction, got nothing to compare")
    share, codes = share[counted], codes[counted]
    if how == "random":
        order = rng.random(share.shape) * (share > 0)
        share = np.eye(labels.n_classes)[order.argmax(axis=1)]
    counts = np.stack([np.bincount(codes, share[:, y], labels.n_classes) for y in range(labels.n_classes)])
    n = len(codes)
    draws = rng.multinomial(n, counts.ravel() / counts.sum(), size=_BOOTSTRAP).reshape(-1, *counts.shape)
    return Solution(
        MajorityCounts(frozen(counts), frozen(draws)),
        notes=("the labels are taken for true: the interval covers badly",),
    )
