"""Truths of all items from a model, corrected by items that were drawn at random and vetted.

How the model errs is learned from the vetted items, as a log-linear correction with one coefficient for each thing
the metric sums over. So whatever the model believes, more vetted items bring the metric to the truth; the model only
decides how wide the interval is on the way. The vetted items themselves are as they are, so a finite pool counts as
one.
"""

from __future__ import annotations

import numpy as np

from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import preview
from trueup.data.aligned import AlignedPredictions
from trueup.estimators.corrections import correction_for
from trueup.estimators.recalibration import draw_classes, recalibrate, recalibrate_with_groups
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric

_WEIGHT = 0.5  # standard deviation of the effect of a weight that is larger by one standard deviation
# The standard deviation of the effects of slices, in log-odds: half-normal with the scale 0.5, on a grid of its cells.
_GROUP_SCALES = np.array([0.1, 0.3, 0.5, 0.8, 1.2])
_GROUP_LOG_PRIOR = np.log([0.2, 0.2, 0.25, 0.35, 0.4]) - 0.5 * (_GROUP_SCALES / 0.5) ** 2
_BLOCK = 1_000_000  # numbers held at once


def rectified_truths(
    posterior: Floats,
    outputs: AlignedPredictions,
    metric: Metric,
    *,
    gold: Codes,
    chance: Floats,
    positive: int,
    n_draws: int,
    rng: np.random.Generator,
    groups: Codes | None = None,
    weights: Floats | None = None,
) -> Codes:
    """Draw the truth of all items from the model as the vetted items correct it.

    Parameters
    ----------
    posterior : array of shape (n_items, n_classes)
        P(class | votes, systems) of a model that has not seen the drawn gold.
    outputs : AlignedPredictions
        Of one system, or of all that are compared.
    metric : Metric
        It decides which errors of the model are learned.
    gold : integer array of shape (n_items,)
        The class of the vetted items that were drawn, -1 for all others.
    chance : array of shape (n_items,)
        The inclusion probability of each vetted item; not looked at elsewhere.
    positive : int
        Code of the positive class.
    n_draws : int
    rng : Generator
    groups : integer array of shape (n_items,), optional
        Slices of the items, -1 for none: the model may err more in some of them.
    weights : array of shape (n_items,), optional
        What each item counts for in the metric: the model may err more on items that count for much.

    Returns
    -------
    integer array of shape (n_draws, n_items)
        The vetted items are as they were found.
    """
    check_chances(gold, chance)
    correction, looked_at = correction_for(posterior, outputs, metric, positive, None)
    vetted = np.flatnonzero((gold >= 0) & looked_at)
    model, told = correction.model, (vetted, correction.code(gold)[vetted], design_weights(chance[vetted]))
    if weights is not None and np.ptp(weights) > 0:
        # What the metric sums up is a feature, and so are sums with weights, or many vetted items leave a bias.
        model = model.with_covariate((weights - weights.mean()) / weights.std(), _WEIGHT)
    if groups is None:
        learned = recalibrate(model, *told, n_draws=n_draws, rng=rng)
    else:
        model, learned = recalibrate_with_groups(
            model, groups, _GROUP_SCALES, _GROUP_LOG_PRIOR, *told, n_draws=n_draws, rng=rng
        )
    truths = correction.decode(draw_classes(model, learned.draws, rng=rng), rng)
    known = np.flatnonzero(gold >= 0)
    truths[:, known] = gold[known]
    return truths


def rectified_counts(
    posterior: Floats,
    outputs: AlignedPredictions,
    metric: Metric,
    *,
    gold: Codes,
    chance: Floats,
    positive: int,
    n_draws: int,
    rng: np.random.Generator,
    times: Floats,
    known: Codes,
    first_rows: Positions,
) -> Positions:
    """The same for rows that stand for several items each: how many items of each group of rows are of each class.

    Parameters
    ----------
    posterior, outputs, metric, gold, chance, positive, n_draws, rng
        As for `rectified_truths`, of rows in place of items; a vetted row is one item.
    times : array of shape (n_rows,)
        The number of items of each row.
    known : integer array of shape (n_rows,)
        The class of rows that the model was told, -1 for all others.
    first_rows : integer array
        The first row of each group of rows.

    Returns
    -------
    integer array of shape (n_draws, n_groups, n_classes)
    """
    check_chances(gold, chance)
    correction, looked_at = correction_for(posterior, outputs, metric, positive, times)
    vetted = np.flatnonzero((gold >= 0) & looked_at)
    told = (vetted, correction.code(gold)[vetted], design_weights(chance[vetted]))
    learned = recalibrate(correction.model, *told, n_draws=n_draws, rng=rng)
    n_rows, n_classes = posterior.shape
    items, sure = times.astype(np.int64), np.where(gold >= 0, gold, known)
    at = np.flatnonzero(sure >= 0)
    counts = np.empty((n_draws, len(first_rows), n_classes), dtype=np.int64)
    rows = max(1, _BLOCK // (n_rows * n_classes))
    for first in range(0, n_draws, rows):
        upto = correction.model.cumulative(learned.draws[first : first + rows])
        chances = np.maximum(np.diff(upto, axis=2, prepend=0.0, append=1.0), 0.0)
        drawn = rng.multinomial(items, chances / chances.sum(axis=2, keepdims=True))
        of_rows = correction.spread(drawn, rng)
        of_rows[:, at] = np.eye(n_classes, dtype=np.int64)[sure[at]] * items[at, None]
        counts[first : first + rows] = np.add.reduceat(of_rows, first_rows, axis=1)
    return counts


def design_weights(chance: Floats) -> Floats:
    """What each vetted item counts for, so scaled that all add up to Kish's effective number of items.

    An item drawn with the chance p stands for 1 / p items, of which one is itself and known: it teaches about the
    1 / p − 1 others. One that was certain to be drawn stands for itself alone. Items with one chance count one each.
    """
    return scale_to_effective(1 / chance - 1)


def scale_to_effective(weights: Floats) -> Floats:
    """Weights so scaled that they add up to the number of evenly drawn items they are worth: (Σw)² / Σw²."""
    total = float((weights**2).sum())
    return np.asarray(weights * (weights.sum() / total)) if total > 0 else np.zeros_like(weights)


def check_chances(gold: Codes, chance: Floats) -> None:
    """Stop inclusion probabilities of vetted items that are none."""
    of_gold = chance[gold >= 0]
    wrong = of_gold[~((of_gold > 0) & (of_gold <= 1))]
    if len(wrong):
        raise InvalidParameter(
            f"⟨chance⟩ of a vetted item must be a probability in (0, 1], got {preview(wrong.tolist())}; leave out "
            "items that were not drawn by chance",
            parameter="chance",
        )
