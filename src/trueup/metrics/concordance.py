"""The AUC for a truth of more than two values: how many pairs do scores put in the right order?"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._base.optional import is_installed
from trueup._base.types import Codes, Floats
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics.score_groups import ascending_order, check_finite, check_weights, ratio

__all__ = ["concordance", "concordance_draws", "concordance_many"]

Integers = npt.NDArray[Any]
_FEW_LEVELS = 4096  # distinct truths up to which looking each up beats sorting all
_WORTH_COMPILING = 50_000  # scores from which compiled code repays loading numba


def concordance(scores: npt.ArrayLike, truth: npt.ArrayLike, *, weights: npt.ArrayLike | None = None) -> float:
    r"""Of the pairs of items with different truth, the share that the scores put in the same order.

    .. math:: \frac{\sum_{i, j: t_i > t_j} \bigl( 1[s_i > s_j] + \tfrac12 1[s_i = s_j] \bigr)}
        {\sum_{i, j: t_i > t_j} 1}

    This is one minus the normalised Kendall tau distance with ties (Urkullu et al. 2019, Section 3.3). If the truth has
    two values it is the AUC. It takes O(n log n) steps.

    Parameters
    ----------
    scores : array of shape (n_items,)
    truth : array of shape (n_items,)
        Any numbers; only their order counts.
    weights : array of shape (n_items,), optional
        What each item counts for; a pair counts for the product.

    Returns
    -------
    float
        nan if no two items differ in truth.

    References
    ----------
    Kendall (1945), The treatment of ties in ranking problems, Biometrika 33. Knight (1966), A computer method for
    calculating Kendall's tau with ungrouped data, JASA 61.

    Examples
    --------
    >>> concordance([0.1, 0.4, 0.3, 0.8], [0.0, 0.5, 0.5, 1.0])
    1.0
    >>> concordance([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """
    if weights is None:
        return float(concordance_many(np.asarray(scores)[None], truth)[0])
    return float(concordance_draws(scores, truth, np.asarray(weights)[None])[0])


def concordance_many(scores: npt.ArrayLike, truth: npt.ArrayLike) -> Floats:
    """The `concordance` of many systems with one truth.

    Parameters
    ----------
    scores : array of shape (n_systems, n_items)
    truth : array of shape (n_items,)

    Returns
    -------
    array of shape (n_systems,)

    Examples
    --------
    >>> concordance_many([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], [0.0, 0.5, 1.0]).tolist()
    [1.0, 0.0]
    """
    table, codes, sizes = _inputs(scores, truth)
    n = table.shape[1]
    pairs = _pairs(n) - int(_pairs(sizes).sum())
    ordered, tied = _in_order(table, codes, len(sizes))
    wrong = discordant_counts(ordered, sizes)
    return ratio(pairs - wrong - tied / 2, float(pairs))


def concordance_draws(scores: npt.ArrayLike, truth: npt.ArrayLike, weights: npt.ArrayLike) -> Floats:
    """The `concordance` of one system for many weights of the items, e.g. those of a Bayesian bootstrap.

    Parameters
    ----------
    scores, truth : array of shape (n_items,)
    weights : array of shape (n_draws, n_items)

    Returns
    -------
    array of shape (n_draws,)

    Examples
    --------
    >>> concordance_draws([0.1, 0.4, 0.3], [0, 1, 2], [[1, 1, 1], [1, 0, 1]]).round(4).tolist()
    [0.6667, 1.0]
    """
    table, codes, sizes = _inputs(np.asarray(scores)[None], truth)
    n = table.shape[1]
    mass = check_weights(weights, (len(np.atleast_2d(np.asarray(weights))), n))
    assert mass is not None
    order, moved = (rows[0] for rows in ascending_order(table))
    run = np.cumsum(np.concatenate([[False], moved[1:] != moved[:-1]]))
    order = order[np.lexsort((codes[order], run))]  # equal scores by truth, so that they are never in the wrong order
    codes, mass = codes[order], mass[:, order]
    by_truth = np.stack([np.bincount(codes, weights=row, minlength=len(sizes)) for row in mass])
    pairs = (by_truth * (np.cumsum(by_truth, axis=1) - by_truth)).sum(axis=1)
    cell = np.concatenate([[True], (np.diff(run) != 0) | (np.diff(codes) != 0)])
    of_cells = np.add.reduceat(mass, np.flatnonzero(cell), axis=1)
    of_runs = np.add.reduceat(mass, np.flatnonzero(np.concatenate([[True], np.diff(run) != 0])), axis=1)
    tied = ((of_runs**2).sum(axis=1) - (of_cells**2).sum(axis=1)) / 2
    wrong = discordant_masses(codes, mass, len(sizes))
    return np.clip(ratio(pairs - wrong - tied / 2, pairs), 0.0, 1.0)


def engine_for(n_scores: int) -> Literal["numpy", "numba"]:
    """Compiled code where it is there and worth it. TRUEUP_ENGINE=scipy or numba overrides."""
    forced = os.environ.get("TRUEUP_ENGINE")
    if forced in ("scipy", "numba"):
        return "numba" if forced == "numba" else "numpy"
    return "numba" if n_scores >= _WORTH_COMPILING and is_installed("numba") else "numpy"


def _inputs(scores: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[Floats, Codes, npt.NDArray[np.int64]]:
    """Scores of shape (n_systems, n_items), the truth as codes in its order, and the number of items of each code."""
    table = check_finite(scores)
    values = np.asarray(truth, dtype=float)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InvalidParameter(f"truth must be one finite number for each item, got shape {values.shape}")
    if table.ndim != 2 or table.shape[1] != len(values):
        raise InvalidPredictions(f"scores must be one for each of {len(values)} items, got shape {table.shape[1:]}")
    # Many values among the first say that looking each up is not the way, without sorting all in vain.
    if len(np.unique(values[: 2 * _FEW_LEVELS])) <= _FEW_LEVELS and len(levels := np.unique(values)) <= _FEW_LEVELS:
        codes = np.searchsorted(levels, values).astype(np.int32)
    else:
        order, moved = (rows[0] for rows in ascending_order(values[None]))
        codes = np.empty(len(values), dtype=np.int32)
        codes[order] = np.cumsum(np.concatenate([[False], moved[1:] != moved[:-1]]))
    return table, codes, np.bincount(codes)


def _in_order(table: Floats, codes: Codes, n_levels: int) -> tuple[Codes, npt.NDArray[np.int64]]:
    """The codes by ascending score, equal scores by code, and the number of pairs of equal score but other codes."""
    order, moved = ascending_order(table)
    ordered = np.take(codes, order)
    same = moved[:, 1:] == moved[:, :-1]
    tied = np.zeros(len(table), dtype=np.int64)
    rows = np.flatnonzero(same.any(axis=1))
    if len(rows):
        first = np.zeros((len(rows), 1), dtype=np.int64)
        run = np.concatenate([first, np.cumsum(~same[rows], axis=1)], axis=1)
        keys = run * n_levels + ordered[rows]
        keys.sort(axis=1)
        ordered[rows] = keys % n_levels
        tied[rows] = _tied_pairs(run) - _tied_pairs(keys)
    return ordered, tied


def _tied_pairs(sorted_rows: Integers) -> npt.NDArray[np.int64]:
    """The number of pairs of equal numbers in each sorted row."""
    n_rows, n = sorted_rows.shape
    starts = np.ones((n_rows, n), dtype=bool)
    np.not_equal(sorted_rows[:, 1:], sorted_rows[:, :-1], out=starts[:, 1:])
    at = np.flatnonzero(starts)
    lengths = np.diff(at, append=n_rows * n)
    # Whole numbers below 2⁵³ in floating point: exact.
    return np.bincount(at // n, weights=_pairs(lengths), minlength=n_rows).astype(np.int64)


def _pairs(n: Any) -> Any:
    return n * (n - 1) // 2


def discordant_counts(codes: Codes, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each row the number of pairs whose first code is the larger; all rows hold the same codes, `sizes` of each.

    Codes are compared bit by bit from the highest. At each bit, rows are in groups of codes that agree in all higher
    bits, and a pair within a group is in the wrong order if a one stands before a zero. Then zeros go before ones in
    each group. Where groups start is the same in all rows, so no row needs a look at more than its own bits.
    """
    if engine_for(codes.size) == "numba":
        from trueup.metrics import compiled_concordance as _numba_concordance

        return np.asarray(_numba_concordance.discordant_counts(codes, len(sizes)))
    n_rows, n = codes.shape
    wrong = np.zeros(n_rows, dtype=np.int64)
    offset = (np.arange(n_rows) * n)[:, None]
    for bit, groups in _bits(sizes):
        is_one = (codes >> bit) & 1
        ones = np.cumsum(is_one, axis=1)
        # Σ over zeros of the ones before them: over all items less over ones, and less the ones of earlier groups.
        among_ones = int(_pairs(groups.ones.sum() + 1))
        wrong += ones.sum(axis=1) - among_ones - int((groups.ones_before * groups.zeros).sum())
        if bit:
            place = np.where(is_one, groups.shift_of_ones + ones, groups.shift_of_zeros - ones)
            moved = np.empty_like(codes)
            moved.reshape(-1)[(place + offset).reshape(-1)] = codes.reshape(-1)
            codes = moved
    return wrong


def discordant_masses(codes: Codes, masses: Floats, n_levels: int) -> Floats:
    """The mass of pairs whose first code is the larger, for each row of masses; see `discordant_counts`."""
    if engine_for(masses.size) == "numba":
        from trueup.metrics import compiled_concordance as _numba_concordance

        return np.asarray(_numba_concordance.discordant_masses(codes, np.ascontiguousarray(masses), n_levels))
    wrong = np.zeros(len(masses))
    for bit, groups in _bits(np.bincount(codes, minlength=n_levels)):
        is_one = ((codes >> bit) & 1).astype(bool)
        ones = np.cumsum(np.where(is_one, masses, 0.0), axis=1)
        before = np.concatenate([np.zeros((len(masses), 1)), ones], axis=1)[:, groups.start]
        wrong += np.where(is_one, 0.0, masses * (ones - before)).sum(axis=1)
        rank = np.cumsum(is_one)
        place = np.where(is_one, groups.shift_of_ones + rank, groups.shift_of_zeros - rank)
        order = np.empty_like(place)
        order[place] = np.arange(len(place))
        codes, masses = codes[order], masses[:, order]
    return wrong


class _Groups:
    """Where the groups of codes that agree in all bits above one start, and how many have a zero and a one there."""

    def __init__(self, starts: Integers, bit: int) -> None:
        low, middle, high = starts[: -1 : 2 << bit], starts[1 << bit :: 2 << bit], starts[2 << bit :: 2 << bit]
        self.zeros, self.ones = middle - low, high - middle
        self.ones_before = np.cumsum(self.ones) - self.ones
        self._sizes = high - low
        self._low, self._middle = low, middle

    @property
    def start(self) -> Integers:
        """Of each place, where its group starts."""
        return np.repeat(self._low, self._sizes)

    @property
    def shift_of_ones(self) -> Integers:
        """What to add to the number of ones up to and with a one to get its place after zeros went first."""
        return np.repeat(self._middle - self.ones_before - 1, self._sizes)

    @property
    def shift_of_zeros(self) -> Integers:
        """What to take the number of ones up to a zero from to get its place."""
        shift = np.repeat(self.ones_before, self._sizes)
        return shift + np.arange(len(shift))


def _bits(sizes: Integers) -> list[tuple[int, _Groups]]:
    """The bits of codes from the highest to the lowest, with the groups at each."""
    n_bits = int(len(sizes) - 1).bit_length()
    starts = np.full((1 << n_bits) + 1, sizes.sum())
    starts[: len(sizes)] = np.cumsum(sizes) - sizes
    return [(bit, _Groups(starts, bit)) for bit in reversed(range(n_bits))]
