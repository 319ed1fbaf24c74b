"""What the metrics of scores share: checked inputs, blocks of draws, and masses of items with equal scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import preview
from trueup.exceptions import InvalidParameter, InvalidPredictions

_BLOCK = 1 << 20  # cells worked on at once: the temporary arrays stay small whatever the number of draws


@dataclass(frozen=True)
class Ranked:
    """The items from the highest score to the lowest, and where each group of equal scores starts."""

    order: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        """The number of items of each group."""
        return np.diff(self.starts, append=len(self.order))

    @property
    def taken(self) -> npt.NDArray[np.intp]:
        """The number of items of each group and all above it."""
        return self.starts + self.sizes

    def spread(self, of_groups: Floats) -> Floats:
        """Values of the groups as values of the items, in the items' own order."""
        values = np.empty(len(self.order))
        values[self.order] = np.repeat(of_groups, self.sizes)
        return values

    def sums(self, of_items: Floats) -> Floats:
        """Sums over each group, shape (..., n_groups), of values of the items, shape (..., n_items)."""
        moved = of_items[..., self.order]
        return moved if len(self.starts) == len(self.order) else np.add.reduceat(moved, self.starts, axis=-1)


def rank_items(scores: Floats) -> Ranked:
    """The items by descending score."""
    order = np.argsort(-scores, kind="stable")
    moved = scores[order]
    return Ranked(order, np.flatnonzero(np.concatenate([[True], moved[1:] != moved[:-1]])))


def check_scores(scores: npt.ArrayLike) -> Floats:
    """Scores as numbers, of any shape; an error where one is not finite.

    Examples
    --------
    >>> check_scores([1, 2]).tolist()
    [1.0, 2.0]
    """
    try:
        values = np.asarray(scores, dtype=float)
    except (TypeError, ValueError):
        raise InvalidPredictions(f"scores must be numbers, got {scores!r:.60}; pass one number an item") from None
    bad = values[~np.isfinite(values)]
    if bad.size:
        raise InvalidPredictions(
            f"scores must be finite, got {bad.size} that are not, e.g. {bad[0]}; leave such items out or repair them"
        )
    return values


def check_truths(truths: npt.ArrayLike) -> Booleans:
    """Whether each item is positive in each draw, shape (n_draws, n_items)."""
    array = np.asarray(truths)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidParameter(f"truths must have the shape (draws, items) with some items, got {array.shape}")
    if array.dtype == bool:
        return array
    wrong = array[(array != 0) & (array != 1)]
    if wrong.size:
        raise InvalidParameter(
            f"truths must be 1 for positive items and 0 for others, got {preview(wrong.ravel())}; "
            "compare class codes with the positive one first"
        )
    return array.astype(bool)


def check_codes(values: npt.ArrayLike, n_classes: int | None = None, *, name: str = "truths") -> Codes:
    """Class codes of shape (n_items,) or (n_draws, n_items), from 0 to n_classes − 1 where that is known."""
    codes = np.asarray(values)
    if codes.dtype == bool or not codes.size:
        codes = codes.astype(np.int8)
    if codes.ndim not in (1, 2) or not np.issubdtype(codes.dtype, np.integer):
        raise InvalidParameter(
            f"{name} must be class codes, integers of shape (items,) or (draws, items), got {codes.dtype} of shape "
            f"{codes.shape}"
        )
    largest = np.iinfo(codes.dtype).max if n_classes is None else n_classes - 1
    if codes.size and (int(codes.min()) < 0 or int(codes.max()) > largest):
        wrong = codes[(codes < 0) | (codes > largest)]
        raise InvalidParameter(f"{name} must lie between 0 and {largest}, got {preview(wrong)}")
    return codes


def check_probabilities(probabilities: npt.ArrayLike) -> Floats:
    """Class probabilities of shape (n_items, n_classes)."""
    table = check_scores(probabilities)
    if table.ndim != 2 or table.shape[1] < 2 or not len(table):
        raise InvalidPredictions(f"probabilities must be items × classes, got {table.shape}; pass one column a class")
    # Rows may be away from one by a thousandth, as for `Predictions`.
    if (table < 0).any() or (np.abs(table.sum(axis=1) - 1) > 1e-3).any():
        worst = int(np.argmax(np.abs(table.sum(axis=1) - 1) + (table < 0).any(axis=1)))
        raise InvalidPredictions(
            f"probabilities of an item must not be negative and must sum to 1, got {preview(table[worst])}; "
            "divide each row by its sum if that is meant"
        )
    return table


def check_weights(weights: npt.ArrayLike | None, shape: tuple[int, ...]) -> Floats | None:
    """Weights of the items in each draw, not negative; a single row serves all draws."""
    if weights is None:
        return None
    array = np.asarray(weights, dtype=float)
    if array.shape not in (shape, shape[1:]):
        raise InvalidParameter(f"weights must have the shape {shape} of the truths, got {array.shape}")
    if not (np.isfinite(array) & (array >= 0)).all():
        raise InvalidParameter("weights must be finite and not negative, got others; leave items out with weight 0")
    return np.broadcast_to(array, shape)


def class_inputs(
    truths: npt.ArrayLike, probabilities: npt.ArrayLike, weights: npt.ArrayLike | None
) -> tuple[Codes, Floats, Floats | None]:
    """Checked class codes (n_draws, n_items), probabilities (n_items, n_classes) and weights."""
    table = check_probabilities(probabilities)
    codes = np.atleast_2d(check_codes(truths, table.shape[1]))
    if codes.shape[1] != len(table):
        raise InvalidPredictions(
            f"probabilities must have one row for each of {codes.shape[1]} items, got {len(table)} rows; align them"
        )
    return codes, table, check_weights(weights, codes.shape)


def blocks(n_draws: int, n_items: int) -> Iterator[slice]:
    """Slices of the draws that are worked on at once."""
    rows = max(_BLOCK // max(n_items, 1), 1)
    return (slice(start, min(start + rows, n_draws)) for start in range(0, n_draws, rows))


def masses(truths: Booleans, ranked: Ranked, weights: Floats | None) -> Iterator[tuple[slice, Floats, Floats]]:
    """For blocks of draws the masses of positives and of negatives with each score, from the highest score down."""
    for rows in blocks(*truths.shape):
        truth = truths[rows]
        if weights is None:
            positives = ranked.sums(truth.astype(float))
            yield rows, positives, ranked.sizes - positives
        else:
            weight = weights[rows]
            yield rows, ranked.sums(np.where(truth, weight, 0.0)), ranked.sums(np.where(truth, 0.0, weight))


ROUNDING = 1e-12  # differences of expected counts are zero up to this share of the total


def ratio(top: npt.ArrayLike, bottom: npt.ArrayLike, scale: npt.ArrayLike = 0.0) -> Floats:
    """The quotient; nan where the denominator is zero, or only a rounding away from it for numbers of this scale."""
    above, below = np.broadcast_arrays(np.asarray(top, dtype=float), np.asarray(bottom, dtype=float))
    usable = np.abs(below) > ROUNDING * np.asarray(scale)
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=usable))


_ALL_BUT_SIGN = np.int64(np.iinfo(np.int64).max)


def ascending_order(scores: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """The stable ascending order of rows of finite scores, packed with positions into integers for speed."""
    values = np.ascontiguousarray(scores, dtype=np.float64) + 0.0  # a copy, in which -0.0 became 0.0
    n_rows, n = values.shape
    low = np.int64((1 << int(max(n - 1, 0)).bit_length()) - 1)
    keys = values.view(np.int64)
    keys ^= (keys >> 63) & _ALL_BUT_SIGN  # negative numbers sort the other way round
    keys &= ~low
    keys |= np.arange(n)
    keys.sort(axis=1)
    order = keys & low
    moved = np.take(scores, order + (np.arange(n_rows) * n)[:, None])
    for row in np.flatnonzero((moved[:, 1:] < moved[:, :-1]).any(axis=1)):
        _repair(order[row], keys[row] & ~low, scores[row])
        moved[row] = scores[row][order[row]]
    return order, moved


def _repair(order: npt.NDArray[np.int64], packed: npt.NDArray[np.int64], scores: Floats) -> None:
    """Put neighbours that were packed to the same number in the order of their scores, in place."""
    alike = packed[1:] == packed[:-1]
    if 4 * np.count_nonzero(alike) > len(order):
        order[:] = np.argsort(scores, kind="stable")
        return
    doubtful = np.flatnonzero(np.concatenate([alike, [False]]) | np.concatenate([[False], alike]))
    run = np.cumsum(~np.concatenate([[False], alike]))[doubtful]
    items = order[doubtful]
    order[doubtful] = items[np.lexsort((scores[items], run))]
