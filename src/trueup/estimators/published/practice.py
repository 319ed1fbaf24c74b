"""Today's practice: take a labeler, or the majority of them, for the truth."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer
from trueup.data.labels import Labels
from trueup.estimators.counts import CountsPosterior, DrawnCounts, JointPoint, frozen, no_spread, point_estimate
from trueup.estimators.exact_binary import as_confusion, columns, draw_positives, tilts
from trueup.estimators.exact_multiclass import draw_categories, draw_confusion, truth_sampler
from trueup.estimators.normal import linear_ratio, normal_counts, two_class_counts
from trueup.estimators.problem import Problem, Solution, class_posterior
from trueup.estimators.published.su2024 import likeliest_labels
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.metrics import Metric, confusion_counts
from trueup.posteriors import DiscreteEstimate, Estimate, PointEstimate, jeffreys_estimate

__all__ = [
    "LabelerCounts",
    "MajorityCounts",
    "ideal",
    "labeler_counts",
    "labeler_mean",
    "labeler_median",
    "majority",
    "no_predictions",
    "prior_average",
]

Center = Literal["mean", "median"]
Ties = Literal["random", "split"]
_TIES: tuple[Ties, ...] = ("random", "split")
_BOOTSTRAP = 4000
_MEDIAN_STEPS = 1000


def labeler_counts(labels: Labels, predictions: npt.ArrayLike) -> Floats:
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
    def mean_counts(self) -> Floats:
        """The mean or the geometric median of the labelers' scaled matrices."""
        scaled = self.counts * (self.n_items / self.counts.sum(axis=(1, 2), keepdims=True))
        return self._middle(scaled.reshape(len(scaled), -1)).reshape(self.counts.shape[1:])

    def _middle(self, points: Floats) -> Floats:
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

    def draw_counts(self, n: int, random_state: RandomState = None) -> Floats:
        """Not there: the spread is unknown."""
        raise no_spread("draws of the counts")

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """Not there: there is no one truth."""
        raise no_spread("truth of each item")


def geometric_median(points: Floats) -> Floats:
    """The point with the least sum of distances to points of shape (n, d): the Vardi–Zhang iteration [1]_.

    Weiszfeld's iteration stops dead when it lands on one of the points; the Vardi–Zhang step moves on from there
    unless that point is the median.

    References
    ----------
    .. [1] Y. Vardi, C.-H. Zhang, "The multivariate L1-median and associated data depth", PNAS 97 (2000).

    Examples
    --------
    >>> geometric_median(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).round(6).tolist()
    [0.5, 0.5]
    """
    if points.shape[1] == 1:
        return np.asarray(np.median(points, axis=0))
    center = points.mean(axis=0)
    scale = float(np.abs(points - center).max())
    for _ in range(_MEDIAN_STEPS):
        new = _vardi_zhang_step(points, center, 1e-14 * scale)
        moved = float(np.linalg.norm(new - center))
        center = new
        if moved <= 1e-10 * scale:
            break
    # Towards a median that is itself one of the points the iteration only creeps; a step from that point tells.
    nearest = points[np.argmin(np.linalg.norm(points - center, axis=1))]
    stays = np.array_equal(_vardi_zhang_step(points, nearest, 1e-14 * scale), nearest)
    return nearest.copy() if stays else center


def _vardi_zhang_step(points: Floats, center: Floats, same: float) -> Floats:
    difference = points - center
    distance = np.linalg.norm(difference, axis=1)
    away = distance > same
    if not away.any():
        return center
    pull = 1 / distance[away]
    weiszfeld = pull @ points[away] / pull.sum()
    here = float((~away).sum())
    if here == 0:
        return np.asarray(weiszfeld)
    # The points under the centre hold it back against the pull of the others.
    strength = float(np.linalg.norm(pull @ difference[away]))
    if here >= strength:
        return center
    return np.asarray(weiszfeld + here / strength * (center - weiszfeld))


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

    def __init__(self, counts: Floats, draws: Floats) -> None:
        super().__init__(draws)
        self.counts = frozen(counts)

    @property
    def mean_counts(self) -> Floats:
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


def no_predictions(
    problem: Problem, *, estimated: bool = False, n_draws: int = 5000, random_state: RandomState = None
) -> Solution:
    """The truth from the votes alone, p(y | z), eq. 21 (Su 2024, Section 2.6.1, third and fourth approach).

    Biased towards chance: what the predictions say about the truth is left out.

    Parameters
    ----------
    problem : Problem
    estimated : bool
        Take the most probable labels as true (fourth approach), without uncertainty.
    n_draws : int
        Draws, for more than two classes.
    random_state : int, Generator or None

    Returns
    -------
    Solution
        With `NormalCounts`, `DrawnCounts` (more than two classes) or `PointCounts` (estimated).
    """
    if estimated:
        return Solution(likeliest_labels(problem))
    chances = class_posterior(problem)

    def truths(n: int, generator: np.random.Generator) -> Codes:
        return draw_categories(chances, n, generator)

    if problem.n_classes == 2:
        return Solution(normal_counts(chances[:, 1], problem.predictions, truths))
    draws = draw_confusion(chances, problem.predictions, n_draws, as_generator(random_state))
    return Solution(DrawnCounts(draws, truths=truths))


def prior_average(
    problem: Problem, *, n_grid: int = 40, n_draws: int = 16000, random_state: RandomState = None
) -> Solution:
    """The counts averaged over the *prior* of the operating point (Su 2024, Section 2.6.2, "fully Bayesian").

    A baseline: an operating point that the data rule out counts as much as one they support. `bayes` averages over
    the posterior.

    Parameters
    ----------
    problem : Problem
    n_grid : int
        Two classes: points along each axis of an even grid over the unit square.
    n_draws : int
        Two classes: draws, shared out over the grid. More: matrices K with uniform rows, one draw of the counts each.
    random_state : int, Generator or None

    Returns
    -------
    Solution
        With `DrawnCounts`.
    """
    rng = as_generator(random_state)
    check_integer(n_draws, name="n_draws", low=1)
    if problem.n_classes > 2:
        confusions = rng.dirichlet(np.ones(problem.n_classes), size=(n_draws, problem.n_classes))
        draws = [draw_confusion(class_posterior(problem, k), problem.predictions, 1, rng)[0] for k in confusions]
        return Solution(DrawnCounts(np.array(draws), truths=truth_sampler(problem, confusions)))
    axis = (np.arange(check_integer(n_grid, name="n_grid", low=1)) + 0.5) / n_grid
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    points = np.repeat(grid, max(n_draws // len(grid), 1), axis=0)
    both = columns(problem)
    v, u = (draw_positives(column, tilt, rng) for column, tilt in zip(both, tilts(points), strict=True))
    counts = two_class_counts(u, v, both[1].n, both[0].n)
    return Solution(DrawnCounts(counts, truths=truth_sampler(problem, as_confusion(grid[:, 0], grid[:, 1]))))


def ideal(problem: Problem, *, truth: npt.ArrayLike, random_state: RandomState = None) -> Solution:
    """The metrics with the truth known.

    Parameters
    ----------
    problem : Problem
    truth : integer array of shape (n_items,)
        The class of each item; needed for those with a prediction.
    random_state
        Not used.

    Returns
    -------
    Solution
        With `DrawnCounts` of a single draw: intervals have no width.
    """
    codes = np.asarray(truth)
    counted = problem.predictions >= 0
    if codes.shape != (problem.n_items,):
        raise InvalidParameter(f"truth must be {problem.n_items} codes, one for each item, got shape {codes.shape}")
    counts = confusion_counts(codes[counted], problem.predictions[counted], problem.n_classes)
    return Solution(DrawnCounts(counts[None], truths=lambda n, _: np.broadcast_to(codes, (n, len(codes)))))
