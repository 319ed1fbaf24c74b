"""Unbiased confusion counts: the noise of consolidated labels is inverted (TARS, advice 1)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._validation import RandomState, as_generator, check_choice, check_integer
from trueup.estimators.consolidated_matrix import MAX_NUMBERS, N_DRAWS
from trueup.estimators.consolidation import SINGULAR, Consolidation, Rule, consolidate
from trueup.estimators.problem import Array, Codes, Solution
from trueup.estimators.unbiased_counts import UnbiasedCounts
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.labels import Labels
from trueup.noise import Confusion, NoiseModel

__all__ = ["inverse_weights", "unbiased"]

Interval = Literal["delta", "bootstrap"]
_INTERVALS: tuple[Interval, ...] = ("delta", "bootstrap")
_MOST_RESAMPLED = 1 << 28  # cells × resamples from which resamples come from their normal limit
_BLOCK = 1 << 22  # numbers held at once
_RARE = 1e-10  # the least frequency of an answer


def unbiased(
    labels: Labels,
    predictions: npt.ArrayLike,
    *,
    noise: NoiseModel,
    interval: Interval = "delta",
    rule: Rule = "map",
    n_bootstrap: int = 2000,
    max_numbers: int = MAX_NUMBERS,
    n_draws: int = N_DRAWS,
    random_state: RandomState = None,
) -> Solution:
    r"""Unbiased true and false positives and negatives, for any number of classes [1]_.

    The votes of item i become one label :math:`y'_i` with a confusion matrix :math:`R_i` of its own (`consolidate`).
    Since :math:`E[e_{y'_i} \mid y_i] = R_i^\top e_{y_i}`, the vector :math:`w_i = R_i^{-\top} e_{y'_i}` is an
    unbiased estimate of the truth's indicator (for two classes, eq. 7), and

    .. math:: \widehat{N}_{y \hat y} = \sum_{i : \hat y_i = \hat y} w_{i y}

    of the confusion counts (eq. 8). The accuracy is unbiased, a quotient of counts up to O(1/n). The target is the
    population the items came from. Labels must err independently of the predictions given the truth, and the matrices
    are taken as known: fitted ones add an uncertainty that is not in the interval.

    Parameters
    ----------
    labels : Labels
        Gold items enter exactly. Items without votes are left out.
    predictions : integer array of shape (n_items,)
        Codes in the order of ``labels.items``, -1 for none.
    noise : NoiseModel
        With a confusion matrix for each labeler.
    interval : {"delta", "bootstrap"}
        Analytic (a test of each value for quotients of counts, the delta method for other metrics), or percentiles of
        resampled items.
    rule, max_numbers, n_draws
        As for `consolidate`.
    n_bootstrap : int
        The number of resamples.
    random_state : int, Generator or None
        For the bootstrap, and for matrices that must be drawn.

    Returns
    -------
    Solution
        With `UnbiasedCounts`.

    References
    ----------
    .. [1] M. Dolatshah, M. Teoh, J. Wang, J. Pei, "Cleaning Crowdsourced Labels Using Oracles for Statistical
       Classification", PVLDB 12(4) (2018), Section 4.

    Examples
    --------
    >>> import trueup as tu
    >>> data = tu.simulate.tars(n_items=2000, noise_rates=0.2, random_state=0)
    >>> noise = tu.noise.Confusion([[0.8, 0.2], [0.2, 0.8]])
    >>> found = unbiased(data.labels, data.predictions, noise=noise)
    >>> found.counts.counts.sum().round(6), bool(abs(found.counts.shares.trace() - data.accuracy) < 0.05)
    (np.float64(2000.0), True)
    """
    how = check_choice(interval, _INTERVALS, name="interval")
    n_bootstrap = check_integer(n_bootstrap, name="n_bootstrap", low=1)
    codes = np.asarray(predictions)
    if (codes >= 0).any():  # other items have nothing to say here
        labels, codes = labels.select(items=labels.items[codes >= 0]), codes[codes >= 0]
    rng = as_generator(random_state)
    found = consolidate(labels, noise, rule=rule, max_numbers=max_numbers, n_draws=n_draws, random_state=rng)
    usable = (found.group >= 0) & ~np.append(found.singular, True)[found.group]
    used = np.flatnonzero(usable & (codes >= 0))
    if not len(used):
        raise _nothing_usable(labels, found, codes)
    weights, counts, cells = _cells(found, codes, used, labels.n_classes)
    shares, moments = _sums(weights, counts, cells, labels.n_classes)
    draws = _resample(weights, counts, cells, shares, moments, n_bootstrap, rng) if how == "bootstrap" else None
    posterior = UnbiasedCounts(shares, moments, n_items=len(used), draws=draws)
    true = shares.sum(axis=1, keepdims=True)
    return Solution(
        posterior,
        confusion=np.divide(shares, true, out=np.full_like(shares, np.nan), where=true > 0),
        diagnostics={
            "n_used": float(len(used)),
            "n_matrices": float(len(found.matrices)),
            "largest_weight": float(np.abs(weights).max()),
            "matrix_error": float(found.errors.max(initial=0.0)),
        },
        notes=tuple(_notes(labels, noise, found, codes, posterior, by_prior=rule == "map")),
    )


def inverse_weights(matrices: npt.ArrayLike, frequencies: npt.ArrayLike | None = None) -> Array:
    r"""Unbiased estimates of the truth's indicator for each label: rows of W with R W = I.

    For square matrices W is :math:`R^{-1}`. With more answers than classes there are many; of these

    .. math:: W = D^{-1} R^\top (R D^{-1} R^\top)^{-1}

    has the least :math:`\sum_a d_a \lVert w_a \rVert^2`. If d are the frequencies of the answers, this is the least
    variance, and the weights of each answer sum to 1.

    Parameters
    ----------
    matrices : array of shape (..., n_classes, n_answers)
        R; rows are the truth.
    frequencies : array of shape (..., n_answers), optional
        d; the same for all answers by default, which is the pseudo-inverse.

    Returns
    -------
    array of shape (..., n_answers, n_classes)
        nan where a matrix cannot be inverted.

    Examples
    --------
    >>> inverse_weights([[0.8, 0.2], [0.2, 0.8]]).round(3)
    array([[ 1.333, -0.333],
           [-0.333,  1.333]])
    """
    R = np.asarray(matrices, dtype=float)
    usable = (np.linalg.svd(R, compute_uv=False)[..., -1] >= SINGULAR)[..., None, None]
    if R.shape[-1] == R.shape[-2]:
        return np.where(usable, np.linalg.inv(np.where(usable, R, np.eye(R.shape[-1]))), np.nan)
    d = np.ones(R.shape[-1]) if frequencies is None else np.maximum(np.asarray(frequencies, dtype=float), _RARE)
    transposed = np.swapaxes(R, -1, -2) / d[..., None]
    gram = np.where(usable, R @ transposed, np.eye(R.shape[-2]))
    return np.where(usable, transposed @ np.linalg.inv(gram), np.nan)


def _cells(found: Consolidation, codes: Codes, used: npt.NDArray[np.int64], c: int) -> tuple[Array, Array, Codes]:
    """Items that add the same: their weights (m, C), how many there are (m,), and their prediction (m,)."""
    inverse = inverse_weights(found.matrices)
    key = (found.group[used] * c + found.codes[used]) * c + codes[used]
    distinct, counts = np.unique(key, return_counts=True)
    group_label, prediction = np.divmod(distinct, c)
    return inverse.reshape(-1, c)[group_label], counts.astype(float), prediction


def _sums(weights: Array, counts: Array, predictions: Codes, c: int) -> tuple[Array, Array]:
    """The mean of X and, for each prediction, of w wᵀ."""
    shares, moments = np.zeros((c, c)), np.zeros((c, c, c))
    for prediction in range(c):
        mine = predictions == prediction
        scaled = weights[mine] * (counts[mine] / counts.sum())[:, None]
        shares[:, prediction] = scaled.sum(axis=0)
        moments[prediction] = weights[mine].T @ scaled
    return shares, moments


def _resample(
    weights: Array, counts: Array, predictions: Codes, shares: Array, moments: Array, n: int, rng: np.random.Generator
) -> Array:
    """Shares of `n` resamples of the items; from the normal limit where there are very many different items."""
    total = int(counts.sum())
    c = weights.shape[1]
    if n * len(counts) > _MOST_RESAMPLED:
        return UnbiasedCounts(shares, moments, n_items=total).draw_counts(n, rng)
    draws = np.empty((n, c, c))
    rows = max(_BLOCK // len(counts), 1)
    # In the order of predictions, so that each is a block of columns.
    order = np.argsort(predictions, kind="stable")
    edges = np.searchsorted(predictions[order], np.arange(c + 1))
    for start in range(0, n, rows):
        some = min(rows, n - start)
        drawn = rng.multinomial(total, counts[order] / total, size=some) / total
        for t in range(c):
            part = slice(edges[t], edges[t + 1])
            draws[start : start + some, :, t] = drawn[:, part] @ weights[order[part]]
    return draws


def _nothing_usable(labels: Labels, found: Consolidation, codes: Codes) -> InvalidLabels | InvalidParameter:
    lost = _lost(found, codes)
    if len(lost):
        return InvalidParameter(f"{_why_singular(labels, found, lost)}; {_REMEDY}")
    return InvalidLabels("no item has both votes and a prediction, got nothing to compare; check the items' names")


_REMEDY = "leave such labelers out with labels.without_labeler, or add gold with labels.with_gold"


def _lost(found: Consolidation, codes: Codes) -> npt.NDArray[np.int64]:
    """Items with a prediction whose label says nothing."""
    return np.flatnonzero((codes >= 0) & (found.group >= 0) & np.append(found.singular, False)[found.group])


def _why_singular(labels: Labels, found: Consolidation, lost: npt.NDArray[np.int64]) -> str:
    """Which labelers, which classes and on how many items, in one clause."""
    group = int(np.bincount(found.group[lost]).argmax())
    matrix = found.matrices[group]
    apart = np.abs(matrix[:, None] - matrix[None]).sum(axis=2) + 9 * np.eye(len(matrix))
    a, b = np.unravel_index(int(apart.argmin()), apart.shape)
    names = [repr(name) for name in labels.labelers[found.labelers[group][:3]].tolist()]
    who = f"labeler {names[0]}" if len(names) == 1 else f"labelers {', '.join(names)}"
    alike = f"the same for classes {labels.classes[a].item()!r} and {labels.classes[b].item()!r}"
    if apart.min() > 1e-3:
        alike = "a mixture of what other classes give for some class"
    return (
        f"the truth of {len(lost)} items cannot be recovered from their votes, because the answers of {who} are {alike}"
    )


def _notes(
    labels: Labels,
    noise: NoiseModel,
    found: Consolidation,
    codes: Codes,
    counts: UnbiasedCounts,
    *,
    by_prior: bool,
) -> list[str]:
    notes: list[str] = []
    if not isinstance(noise, Confusion):
        notes.append(
            "The confusion matrices were fitted to these votes and are taken as known: their uncertainty is not in "
            'the intervals; method="bayes" has it.'
        )
    lost = _lost(found, codes)
    if len(lost):
        why = _why_singular(labels, found, lost)
        notes.append(f"{why[0].upper()}{why[1:]}; these items are left out.")
    silent = int(((codes >= 0) & (found.group < 0)).sum())
    if silent:
        notes.append(f"{silent} items with a prediction have no votes and are left out.")
    without_prior = (codes >= 0) & (found.group >= 0) & np.append(found.likeliest & ~found.singular, False)[found.group]
    if by_prior and without_prior.any():
        notes.append(
            f"On {int(without_prior.sum())} items the prior outweighs any votes, so the likeliest class without the "
            "prior is taken as their label."
        )
    worst = float(found.errors.max(initial=0.0))
    if worst > 0.01:
        notes.append(f"Confusion matrices of consolidated labels are known up to {worst:.2g} only; raise n_draws.")
    return notes + _impossible(labels, counts)


def _impossible(labels: Labels, counts: UnbiasedCounts) -> list[str]:
    """A share that is negative beyond chance: the model of the labels is wrong."""
    c = counts.n_classes
    worst: tuple[float, Any, Any] = (-4.0, None, None)
    for y, t in np.argwhere(counts.shares < 0).tolist():
        cell = np.zeros((c, c))
        cell[y, t] = 1.0
        se = counts.covariance(cell, cell) ** 0.5
        if se > 0 and counts.shares[y, t] / se < worst[0]:
            worst = (float(counts.shares[y, t] / se), labels.classes[y].item(), labels.classes[t].item())
    if worst[1] is None:
        return []
    return [
        f"The estimated share of class {worst[1]!r} predicted as {worst[2]!r} is negative by {-worst[0]:.0f} standard "
        "errors: the labelers' rates are wrong, or their errors depend on the classifier's."
    ]
