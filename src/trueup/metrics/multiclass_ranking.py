"""The area under the ROC curve for more than two classes, for each of many drawn truths."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._validation import check_choice
from trueup.metrics._score_groups import (
    Array,
    blocks,
    class_inputs,
    rank_items,
    ratio,
)
from trueup.metrics.ranking import auc

__all__ = ["auc_ovo", "auc_ovr"]

Average = Literal["macro", "weighted"]
_AVERAGES: tuple[Average, ...] = ("macro", "weighted")


def auc_ovr(
    truths: npt.ArrayLike,
    probabilities: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    average: Average = "macro",
) -> Array:
    """The AUC of each class against all others, averaged over the classes that occur.

    Parameters
    ----------
    truths : integer array of shape (n_draws, n_items)
        The class of each item, from 0 to n_classes − 1; many draws of it at once.
    probabilities : array of shape (n_items, n_classes)
    weights : array of shape (n_draws, n_items), optional
        What each item counts for in each draw.
    average : {"macro", "weighted"}
        All classes alike, or by their share of the items (Provost and Domingos 2000).

    Returns
    -------
    array of shape (n_draws,)
        nan for a draw with one class only. Where scikit-learn refuses a truth without some class, the mean is over
        the others.

    Examples
    --------
    >>> chances = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]
    >>> auc_ovr([[0, 1, 2, 1]], chances).round(4).tolist()
    [0.9583]
    """
    codes, table, weight = class_inputs(truths, probabilities, weights)
    check_choice(average, _AVERAGES, name="average")
    values, share = np.empty((2, len(codes), table.shape[1]))
    for c in range(table.shape[1]):
        positive = codes == c
        values[:, c] = auc(positive, table[:, c], weight)
        share[:, c] = positive.sum(axis=1) if weight is None else np.where(positive, weight, 0.0).sum(axis=1)
    defined = ~np.isnan(values)
    counted = np.where(defined, 1.0 if average == "macro" else share, 0.0)
    return ratio((np.where(defined, values, 0.0) * counted).sum(axis=1), counted.sum(axis=1))


def auc_ovo(truths: npt.ArrayLike, probabilities: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Array:
    r"""Hand and Till's M: the AUC of each pair of classes, averaged over pairs of classes that occur.

    .. math:: M = \frac{2}{C(C-1)} \sum_{a<b} \frac{A(a|b) + A(b|a)}{2}

    where *A(a|b)* is the chance that a random item of class *a* has a higher probability of *a* than a random item of
    class *b*, a tie counting one half. It does not depend on the shares of the classes.

    Parameters
    ----------
    truths, probabilities, weights
        As for `auc_ovr`.

    Returns
    -------
    array of shape (n_draws,)
        nan for a draw with one class only.

    References
    ----------
    Hand and Till (2001), A simple generalisation of the area under the ROC curve for multiple class classification
    problems, Machine Learning 45.

    Examples
    --------
    >>> chances = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]
    >>> auc_ovo([[0, 1, 2, 1]], chances).round(4).tolist()
    [0.9583]
    """
    codes, table, weight = class_inputs(truths, probabilities, weights)
    n_classes = table.shape[1]
    orders = [rank_items(column) for column in table.T]
    values = np.empty(len(codes))
    for rows in blocks(*codes.shape):
        block = codes[rows]
        mass = np.ones(block.shape) if weight is None else weight[rows]
        totals = _by_class(block, mass, n_classes)
        ordered = np.empty((len(block), n_classes, n_classes))
        for a, ranked in enumerate(orders):
            # How much of class a has a higher probability of a than each item, ties by half.
            own = ranked.sums(np.where(block == a, mass, 0.0))
            above = np.repeat(np.cumsum(own, axis=1) - own / 2, ranked.sizes, axis=1)
            ordered[:, a] = _by_class(block[:, ranked.order], above * mass[:, ranked.order], n_classes)
        pairs = ratio(ordered, totals[:, :, None] * totals[:, None, :])
        pairs[:, np.arange(n_classes), np.arange(n_classes)] = np.nan
        defined = ~np.isnan(pairs)
        values[rows] = ratio(np.where(defined, pairs, 0.0).sum(axis=(1, 2)), defined.sum(axis=(1, 2)))
    return values


def _by_class(codes: npt.NDArray[Any], values: Array, n_classes: int) -> Array:
    """Sums of values over the items of each class, shape (n_draws, n_classes)."""
    cell = codes.astype(np.intp) + (np.arange(len(codes)) * n_classes)[:, None]
    sums = np.bincount(cell.ravel(), weights=values.ravel(), minlength=len(codes) * n_classes)
    return np.asarray(sums.reshape(len(codes), n_classes))
