"""The AUC from crowd votes under three views of the truth (Urkullu et al. 2019, Section 3).

Deterministic: an item has one true class, and the majority tells it. Subjectivist: each labeler has a truth of their
own. Probabilistic: an item is positive with a probability, which the share of votes estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Floats
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.metrics import GroupedItems, auc, check_scores, concordance_draws, concordance_many

View = Literal["deterministic", "subjectivist", "probabilistic"]
VIEWS: tuple[View, ...] = get_args(View)
_WEIGHTS = 1 << 21  # weights that are held at once
_CELLS = 1 << 17  # AUCs of systems by labelers that are held at once; they stay within the processor's reach


@dataclass(frozen=True, eq=False)
class ViewResult:
    """The AUC of each system under a view of the truth.

    Attributes
    ----------
    values : array of shape (n_systems,). nan where nothing can be compared, e.g. where all items have the same truth.
    skipped_labelers : int. Labelers who voted for one class only, and so say nothing of the order (subjectivist view).
    unvoted_items : int. Items without a vote and without a checked truth.
    tied_items : int. Items without a checked truth whose class was drawn, the votes being tied (deterministic view).
    spread : array of shape (n_systems,), optional. The standard deviation over labelers (subjectivist view).
    """

    values: Floats
    skipped_labelers: int
    unvoted_items: int
    tied_items: int = 0
    spread: Floats | None = None


def deterministic(
    labels: Labels, scores: npt.ArrayLike, *, positive: int = 1, random_state: RandomState = None
) -> ViewResult:
    """The AUC with the majority of votes as the truth (DGT, Section 3.1.1).

    A tie is solved at random. An item without votes is a tie. A checked truth stands.

    Parameters
    ----------
    labels : Labels. Votes for two classes.
    scores : array of shape (n_items,) or (n_systems, n_items). Higher for items more likely to be positive.
    positive : int. The code of the positive class.
    random_state : int, Generator or None. For ties.

    Examples
    --------
    >>> import trueup as tu
    >>> data = tu.simulate.urkullu(n_classifiers=3, random_state=0)
    >>> deterministic(data.labels, data.scores, random_state=0).values.round(2).tolist()
    [0.84, 0.83, 0.8]
    """
    table, votes = _inputs(labels, scores, positive)
    truth, tied = _majority(votes, 1, as_generator(random_state))
    return ViewResult(concordance_many(table, truth[0]), 0, votes.n_unvoted, int(tied.sum()))


def subjectivist(labels: Labels, scores: npt.ArrayLike, *, positive: int = 1) -> ViewResult:
    r"""The mean over labelers of the AUC with the labeler's own votes as the truth (SGT, Section 3.2.1).

    .. math:: \frac{\sum_j n_j \mathrm{AUC}_j}{\sum_j n_j}

    over the labelers *j* who used both classes, each on the :math:`n_j` votes they gave. Checked truths are not used.
    """
    table, votes = _inputs(labels, scores, positive)
    usable = votes.groups.pairs > 0
    share = np.where(usable, votes.per_labeler, 0.0)
    total = share.sum()
    skipped = int(((votes.per_labeler > 0) & ~usable).sum())
    if not total:
        nothing = np.full(len(table), np.nan)
        return ViewResult(nothing, skipped, votes.n_unvoted, spread=nothing)
    share /= total
    per_win = np.divide(1.0, votes.groups.pairs, out=np.zeros(len(share)), where=usable)
    mean, square = np.empty((2, len(table)))
    for rows in _blocks(len(table), len(share), _CELLS):
        wins = votes.groups.wins(table[rows])
        mean[rows] = wins @ (share * per_win)
        square[rows] = wins**2 @ (share * per_win**2)
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    return ViewResult(mean, skipped, votes.n_unvoted, spread=spread)


def probabilistic(labels: Labels, scores: npt.ArrayLike, *, positive: int = 1) -> ViewResult:
    r"""The share of pairs of items that scores and votes put in the same order (PGT, Section 3.3.1).

    .. math:: \hat P_i = \frac{\sum_j z_{ij} + \tfrac12}{n_i + 1}

    is the truth of an item with :math:`n_i` votes, ½ without votes, and 0 or 1 if checked. Pairs of different truth
    count, a tie in the scores by half; see `trueup.metrics.concordance`.
    """
    table, votes = _inputs(labels, scores, positive)
    return ViewResult(concordance_many(table, votes.probability), 0, votes.n_unvoted)


def bootstrap_view(
    labels: Labels,
    scores: npt.ArrayLike,
    *,
    view: View = "probabilistic",
    positive: int = 1,
    n_draws: int = 400,
    random_state: RandomState = None,
) -> Floats:
    """Draws of the AUC of each system under a view, by the Bayesian bootstrap (Rubin 1981).

    Items get random weights, and ties of the majority are solved anew in each draw. Under the subjectivist view
    labelers get the weights in place of items: what varies is who was asked, and the items are taken as given. All
    systems share the weights, so differences between rows are those of paired systems. The draws, shape
    (n_systems, n_draws), say how much another sample would differ, and nothing of how far a view is from another truth.
    """
    check_choice(view, VIEWS, name="view")
    n = check_integer(n_draws, name="n_draws", low=1)
    table, votes = _inputs(labels, scores, positive)
    rng = as_generator(random_state)
    draws = np.empty((len(table), n))
    if view == "subjectivist":
        usable = np.flatnonzero(votes.groups.pairs > 0)
        of_labelers = np.nan_to_num(votes.groups.auc(table)[:, usable])
        for rows in _blocks(n, max(len(usable), 1), _WEIGHTS):
            weight = rng.standard_exponential((rows.stop - rows.start, len(usable))) * votes.per_labeler[usable]
            total = weight.sum(axis=1)
            draws[:, rows] = np.divide(of_labelers @ weight.T, total, out=draws[:, rows] * np.nan, where=total > 0)
        return draws
    for rows in _blocks(n, labels.n_items, _WEIGHTS):
        weight = rng.standard_exponential((rows.stop - rows.start, labels.n_items))
        truth = _majority(votes, len(weight), rng)[0] if view == "deterministic" else None
        for s, system in enumerate(table):
            if truth is not None:
                draws[s, rows] = auc(truth, system, weight)
            else:
                draws[s, rows] = concordance_draws(system, votes.probability, weight)
    return draws


@dataclass(frozen=True, eq=False)
class _Votes:
    """Votes of two classes, seen from the positive one."""

    counts: Floats  # (n_items, 2): votes against and for
    gold: npt.NDArray[np.int8]  # 1 or 0 if checked as positive or not, else -1
    groups: GroupedItems  # the labelers
    per_labeler: Floats

    @property
    def n_unvoted(self) -> int:
        return int(((self.counts.sum(axis=1) == 0) & (self.gold < 0)).sum())

    @property
    def probability(self) -> Floats:
        """P̂(positive) of each item with the correction of Jeffreys and Perks."""
        share = (self.counts[:, 1] + 0.5) / (self.counts.sum(axis=1) + 1)
        return np.where(self.gold >= 0, self.gold, share)


def _inputs(labels: Labels, scores: npt.ArrayLike, positive: int) -> tuple[Floats, _Votes]:
    if labels.n_classes != 2:
        raise InvalidLabels(
            f"the three views of the truth need two classes, got {labels.n_classes}; make votes for one class against "
            "all others, or use auc_ovr or auc_ovo"
        )
    if check_integer(positive, name="positive", low=0) > 1:
        raise InvalidParameter(f"positive must be 0 or 1, the code of one of two classes, got {positive}")
    check_scores(scores)
    table = np.atleast_2d(np.asarray(scores, dtype=float))
    if table.ndim != 2 or table.shape[1] != labels.n_items:
        raise InvalidPredictions(
            f"scores must have the shape (systems, {labels.n_items}), one for each item, got {table.shape}; "
            "see Predictions.align"
        )
    item, labeler, answer, counts = labels.vote_table()
    counted = answer < 2  # abstentions kept as answers are no votes for a class
    item, labeler, answer, counts = item[counted], labeler[counted], answer[counted], counts[counted]
    groups = GroupedItems.from_entries(
        item, labeler, answer == positive, n_items=labels.n_items, n_groups=labels.n_labelers, mass=counts
    )
    gold = np.where(labels.gold_codes < 0, -1, labels.gold_codes == positive).astype(np.int8)
    per_labeler = np.bincount(labeler, weights=counts, minlength=labels.n_labelers).astype(float)
    return table, _Votes(labels.answer_counts[:, [1 - positive, positive]], gold, groups, per_labeler)


def _majority(votes: _Votes, n_draws: int, rng: np.random.Generator) -> tuple[Booleans, Booleans]:
    """Majority truths of shape (n_draws, n_items), ties solved at random as in the paper, and which items are tied."""
    lead = np.where(votes.gold >= 0, 2 * votes.gold - 1, votes.counts[:, 1] - votes.counts[:, 0])
    tied = lead == 0
    truths = np.repeat((lead > 0)[None], n_draws, axis=0)
    truths[:, tied] = rng.random((n_draws, int(tied.sum()))) < 0.5
    return truths, tied


def _blocks(n_rows: int, width: int, cells: int) -> Iterator[slice]:
    step = max(cells // width, 1)
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))
