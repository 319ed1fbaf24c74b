"""How good class probabilities are as probabilities, for each of many drawn truths.

Every function takes class codes of shape (n_draws, n_items), probabilities of shape (n_items, n_classes) and, if
wanted, weights of the items in each draw, and returns one value a draw.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_integer
from trueup.metrics.counts import nan_average
from trueup.metrics.ranking import auc
from trueup.metrics.score_groups import blocks, check_probabilities, class_inputs, rank_items, ratio

_LEAST = float(np.finfo(float).eps)  # scikit-learn's: keeps the loss of an impossible class finite


def log_loss(truths: npt.ArrayLike, probabilities: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Floats:
    """The mean of −log p(true class), in nats.

    Probabilities are kept from 0 and 1 by the machine epsilon, as in scikit-learn, so a loss is at most 36.04.

    Returns an array of shape (n_draws,).

    Parameters
    ----------
    truths : integer array of shape (n_draws, n_items)
        The class of each item, from 0 to n_classes − 1; many draws of it at once.
    probabilities : array of shape (n_items, n_classes)
    weights : array of shape (n_draws, n_items), optional. What each item counts for in each draw.

    Examples
    --------
    >>> log_loss([[0, 1], [1, 1]], [[0.5, 0.5], [0.25, 0.75]]).round(4).tolist()
    [0.4904, 0.4904]
    """
    codes, table, weight = class_inputs(truths, probabilities, weights)
    return _mean_loss(codes, -np.log(np.clip(table, _LEAST, 1 - _LEAST)), weight)


def brier(truths: npt.ArrayLike, probabilities: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Floats:
    r"""The mean squared error of the probabilities (Brier 1950).

    .. math:: \frac1N \sum_i (p_i - y_i)^2 \text{ for two classes}, \qquad
        \frac1N \sum_i \sum_c (p_{ic} - 1[y_i = c])^2 \text{ for more}

    As in scikit-learn: with two classes only one of them counts, so the worst value is 1; with more it is 2.

    Truths, probabilities, weights and what is returned are those of `log_loss`.

    Examples
    --------
    >>> brier([[0, 1], [1, 1]], [[0.5, 0.5], [0.0, 1.0]]).tolist()
    [0.125, 0.125]
    """
    codes, table, weight = class_inputs(truths, probabilities, weights)
    if table.shape[1] == 2:
        return _mean_loss(codes, (1 - table) ** 2, weight)
    squares = (table**2).sum(axis=1, keepdims=True) - table**2
    return _mean_loss(codes, squares + (1 - table) ** 2, weight)


def calibration_error(
    truths: npt.ArrayLike, probabilities: npt.ArrayLike, weights: npt.ArrayLike | None = None, *, n_bins: int = 15
) -> Floats:
    r"""The expected calibration error of the likeliest class, in bins of equal numbers of items.

    .. math:: \sum_b \frac{n_b}{N} \Bigl| \frac{1}{n_b} \sum_{i \in b} 1[y_i = \hat y_i]
        - \frac{1}{n_b} \sum_{i \in b} \hat p_i \Bigr|

    where :math:`\hat y_i` is the likeliest class (the first of several) and :math:`\hat p_i` its probability (Guo et
    al. 2017; equal-mass bins: Nguyen and O'Connor 2015). Items of equal probability share a bin. Bins do not depend
    on the weights.

    **The value is biased upwards.** A perfectly calibrated model has about ``calibration_floor``, not 0, since the
    absolute value turns chance into error: :math:`\sum_b \sqrt{2 \sum_{i \in b} \hat p_i (1 - \hat p_i) / \pi} / N`,
    which falls with :math:`\sqrt{N / B}`. The bias is smaller where the model is far from calibrated. Do not compare
    values of lists of different length.

    Truths, probabilities, weights and what is returned are those of `log_loss`; `n_bins` is the number of bins *B*.

    Examples
    --------
    >>> calibration_error([[0, 0, 1, 1]], [[0.9, 0.1]] * 4, n_bins=2).round(4).tolist()
    [0.4]
    """
    codes, table, weight = class_inputs(truths, probabilities, weights)
    likeliest, confidence, order, starts = _bins(table, n_bins)
    values = np.empty(len(codes))
    for rows in blocks(*codes.shape):
        gap = (codes[rows] == likeliest) - confidence
        mass = np.ones(gap.shape) if weight is None else weight[rows]
        of_bins = np.add.reduceat((gap * mass)[:, order], starts, axis=1)
        values[rows] = ratio(np.abs(of_bins).sum(axis=1), mass.sum(axis=1))
    return values


def calibration_floor(probabilities: npt.ArrayLike, *, n_bins: int = 15) -> float:
    r"""What `calibration_error` is on average for a model that is perfectly calibrated.

    .. math:: \frac1N \sum_b \sqrt{\tfrac{2}{\pi} \sum_{i \in b} \hat p_i (1 - \hat p_i)}

    by the normal approximation to the number of hits in a bin, for items that are independent and count alike.

    Examples
    --------
    >>> round(calibration_floor([[0.8, 0.2]] * 1000, n_bins=15), 4)
    0.0101
    """
    table = check_probabilities(probabilities)
    _, confidence, order, starts = _bins(table, n_bins)
    variance = np.add.reduceat((confidence * (1 - confidence))[order], starts)
    return float(np.sqrt(2 / np.pi * np.maximum(variance, 0.0)).sum() / len(table))


def _bins(
    table: Floats, n_bins: int
) -> tuple[npt.NDArray[np.intp], Floats, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The likeliest class and its probability, the items in order of their bins, and where each bin starts."""
    n = check_integer(n_bins, name="n_bins", low=1)
    likeliest = table.argmax(axis=1)
    confidence = np.clip(table.max(axis=1), 0.0, 1.0)
    # By mid-ranks, so that equal probabilities are in one bin and the order of the items does not matter.
    number = ((scipy.stats.rankdata(confidence) - 0.5) * n / len(table)).astype(np.intp)
    order = np.argsort(number, kind="stable")
    moved = number[order]
    return likeliest, confidence, order, np.flatnonzero(np.concatenate([[True], moved[1:] != moved[:-1]]))


def _mean_loss(codes: npt.NDArray[Any], loss: Floats, weights: Floats | None) -> Floats:
    """The (weighted) mean over items of the loss (n_items, n_classes) of the true class."""
    values = np.empty(len(codes))
    items = np.arange(len(loss))
    for rows in blocks(*codes.shape):
        of_items = loss[items, codes[rows]]
        if weights is None:
            values[rows] = of_items.mean(axis=1)
        else:
            values[rows] = ratio((of_items * weights[rows]).sum(axis=1), weights[rows].sum(axis=1))
    return values


Average = Literal["macro", "weighted"]
_AVERAGES: tuple[Average, ...] = ("macro", "weighted")


def auc_ovr(
    truths: npt.ArrayLike,
    probabilities: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    average: Average = "macro",
) -> Floats:
    """The AUC of each class against all others, averaged over the classes that occur.

    Truths, probabilities, weights and what is returned are those of `log_loss`. The average is "macro", all classes
    alike, or "weighted" by their share of the items (Provost and Domingos 2000); nan for a draw with one class only.
    Where scikit-learn refuses a truth without some class, the mean is over the others.

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
    return nan_average(values, np.ones_like(share) if average == "macro" else share)


def auc_ovo(truths: npt.ArrayLike, probabilities: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Floats:
    r"""Hand and Till's M: the AUC of each pair of classes, averaged over pairs of classes that occur.

    .. math:: M = \frac{2}{C(C-1)} \sum_{a<b} \frac{A(a|b) + A(b|a)}{2}

    where *A(a|b)* is the chance that a random item of class *a* has a higher probability of *a* than a random item of
    class *b*, a tie counting one half. It does not depend on the shares of the classes.

    Truths, probabilities, weights and what is returned are those of `auc_ovr` (Hand and Till 2001, A simple
    generalisation of the area under the ROC curve for multiple class classification problems, Machine Learning 45).

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
        values[rows] = nan_average(pairs.reshape(len(block), -1), np.ones(n_classes**2))
    return values


def _by_class(codes: npt.NDArray[Any], values: Floats, n_classes: int) -> Floats:
    """Sums of values over the items of each class, shape (n_draws, n_classes)."""
    cell = codes.astype(np.intp) + (np.arange(len(codes)) * n_classes)[:, None]
    sums = np.bincount(cell.ravel(), weights=values.ravel(), minlength=len(codes) * n_classes)
    return np.asarray(sums.reshape(len(codes), n_classes))
