"""Votes as the coefficients of agreement read them: a row for each labeler of each item, sorted by item."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy
from scipy import sparse
from scipy.special import expit, logit, ndtri, stdtr, stdtrit

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import numbers_of, preview
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.posteriors import ContinuousEstimate, Estimate

Scale = Literal["nominal", "ordinal", "interval", "ratio"]
SCALES: tuple[Scale, ...] = ("nominal", "ordinal", "interval", "ratio")
_CELLS = 4_000_000  # numbers of an array of a part: 32 MB


@dataclass(frozen=True)
class VoteRows:
    """One row for each labeler of each item; several votes of a labeler on an item share the row."""

    item: Codes  # (n_rows,): positions; items in order
    labeler: Codes
    shares: sparse.csr_array  # (n_rows, n_classes): the share of each class among the votes of the row; rows sum to 1
    n_items: int
    n_labelers: int
    weights: Floats  # (n_items,): what each item counts for; about 1 on average
    is_named: bool  # whether rows of one labeler are of one person, and not of an anonymous crowd

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.shares.shape[1])

    @property
    def votes_per_item(self) -> Codes:
        """Rows of each item."""
        return np.bincount(self.item, minlength=self.n_items)

    def on_items(self, kept: Booleans) -> VoteRows:
        """The rows of some items; labelers keep their numbers."""
        rows = np.flatnonzero(kept[self.item])
        item, weights = (np.cumsum(kept) - 1)[self.item[rows]], _about_one(self.weights[kept])
        labeler, shares = self.labeler[rows], self.shares[rows]
        return replace(self, item=item, labeler=labeler, shares=shares, n_items=len(weights), weights=weights)

    def effective(self, least: int = 1) -> float:
        """How many items of one weight say as much as those with this many votes."""
        return effective_number(self.weights[self.votes_per_item >= least])

    def parts(self, width: int) -> list[VoteRows]:
        """The rows in parts of whole items, so that an array of a part with this many columns stays small."""
        most = max(1, _CELLS // max(width, 1))
        ends = np.append(np.flatnonzero(np.diff(self.item)) + 1, len(self.item))  # after the rows of each item
        parts, start = [], 0
        while start < len(self.item):
            fits = int(np.searchsorted(ends, start + most, side="right"))
            stop = int(ends[max(fits - 1, int(np.searchsorted(ends, start, side="right")))])
            rows, first = slice(start, stop), int(self.item[start])
            item, weights = self.item[rows] - first, self.weights[first : int(self.item[stop - 1]) + 1]
            about: dict[str, Any] = {"item": item, "labeler": self.labeler[rows], "shares": self.shares[rows]}
            parts.append(replace(self, **about, n_items=len(weights), weights=weights))
            start = stop
        return parts


def vote_rows(labels: Labels, weights: Floats | None = None) -> VoteRows:
    """The rows of the votes for classes; abstentions are no votes, and each vote of a crowd is a row of its own."""
    item, labeler, answer, times = labels.vote_table()
    kept = answer < labels.n_classes
    item, labeler, answer, times = item[kept], labeler[kept], answer[kept], times[kept]
    crowd = labels.is_crowd[labeler]
    if crowd.any():
        repeat = np.where(crowd, times, 1)
        item, labeler, answer = (np.repeat(codes, repeat) for codes in (item, labeler, answer))
        times = np.repeat(np.where(crowd, 1, times), repeat)
        crowd = np.repeat(crowd, repeat)
    is_new = (np.diff(item, prepend=-1) != 0) | (np.diff(labeler, prepend=-1) != 0) | crowd
    row = np.cumsum(is_new) - 1
    first = np.flatnonzero(is_new)
    total = np.bincount(row, times, len(first))
    shares = sparse.csr_array((times / total[row], (row, answer)), shape=(len(first), labels.n_classes))
    item, labeler = item[first].astype(np.int64), labeler[first].astype(np.int64)
    counted = np.ones(labels.n_items) if weights is None else _about_one(weights)
    return VoteRows(item, labeler, shares, labels.n_items, labels.n_labelers, counted, not labels.crowds)


def effective_number(weights: Floats) -> float:
    """How many of one weight vary as little as these: Kish's (Σw)² / Σw²."""
    most = float(weights.max()) if len(weights) else 0.0
    return float((weights / most).sum() ** 2 / ((weights / most) ** 2).sum()) if most > 0 else 0.0


def _about_one(weights: Floats) -> Floats:
    """Weights over their mean."""
    return weights / weights.mean() if len(weights) else weights


def class_values(labels: Labels, scale: Scale, values: Mapping[Hashable, float] | None) -> Floats | None:
    """The number of each class on this scale, ranks on an ordinal one; None on a nominal one."""
    names = labels.classes.tolist()
    numbers = numbers_of(names) if values is None else _numbers_named(names, values)
    if scale == "nominal":
        return None
    if scale == "ordinal":
        if numbers is not None:
            return np.unique(numbers, return_inverse=True)[1].astype(float)  # equal numbers are of one rank
        if labels.fixed_classes or len(names) <= 2:
            return np.arange(len(names), dtype=float)
        raise InvalidLabels(
            f"an ordinal scale needs classes in order, got {preview(names)} in the order of the alphabet; name them in "
            "their order with `classes=…` when the votes are read, or pass `values`",
            parameter="scale",
        )
    if numbers is None:
        raise InvalidLabels(
            f"the scale {scale!r} needs classes that are numbers, got {preview(names)}; pass `values` with one a "
            "class, or take another `scale`",
            parameter="scale",
        )
    if scale == "ratio" and min(numbers) < 0:
        raise InvalidLabels(
            f"a ratio scale begins at 0, got {min(numbers):g}; take `scale=interval`", parameter="scale"
        )
    return np.array(numbers)


def _numbers_named(names: list[Any], values: Mapping[Hashable, float]) -> tuple[float, ...]:
    """The number named for each class."""
    if not isinstance(values, Mapping):
        raise InvalidParameter(
            f"`values` must be a mapping from class to number, got {type(values).__name__}; pass a dict",
        )
    lacking = [name for name in names if name not in values]
    if lacking:
        raise InvalidParameter(f"`values` must have a number for each class, got none for {preview(lacking)}; add them")
    try:
        numbers = tuple(float(values[name]) for name in names)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"`values` must be numbers, got {preview([values[name] for name in names])}; name a number for each class",
        ) from error
    if not np.isfinite(numbers).all():
        raise InvalidParameter(f"`values` must be finite, got {preview(numbers)}; name one a class")
    if len(numbers) > 1 and min(numbers) == max(numbers):
        raise InvalidParameter(
            f"`values` must differ, got {numbers[0]:g} for every class; name a number of its own for each class",
        )
    return numbers


def distances(kind: str, values: Floats) -> Floats:
    """How far apart classes are: squares by default; "ordinal" counts pairs of ranks."""
    gap = np.abs(values[:, None] - values)
    if kind == "ordinal":
        ranks = np.unique(values, return_inverse=True)[1]
        gap = np.abs(ranks[:, None] - ranks)
        return np.asarray(gap * (gap + 1) / 2)
    if kind == "ratio":
        total = values[:, None] + values
        return np.divide(gap, total, out=np.zeros_like(gap), where=total > 0) ** 2
    return np.asarray(gap if kind == "linear" else gap**2)


def agreement_weights(kind: str, values: Floats) -> Floats:
    """How far two classes agree, from 1 down to 0, by Gwet's names."""
    distance = distances(kind, values)
    most = distance.max()
    return 1 - distance / most if most > 0 else np.ones_like(distance, dtype=float)


def ordinal_differences(values: Floats, totals: Floats) -> Floats:
    """Krippendorff's δ² between classes of an ordinal scale, by how often each was said."""
    rank = np.unique(values, return_inverse=True)[1]
    of_rank = totals @ np.eye(rank.max() + 1)[rank]  # classes of one rank together
    middle = (np.cumsum(of_rank, axis=-1) - of_rank / 2)[..., rank]  # the mean rank of each class
    return np.asarray((middle[..., :, None] - middle[..., None, :]) ** 2)


_KEPT = 4e7  # numbers of changes that are kept from one pass to the next: 320 MB
_AT_ONCE = 256  # sums that slopes are worked out along at once
_STEP = 1e-5  # relative step of the slopes; central differences are then good to about ten digits


@dataclass(frozen=True)
class Changes:
    """What the sums of a part are made of."""

    items: Floats  # (n_items, n_sums): what each item adds
    rows: Floats  # (n_rows, n_sums): by how much the sums change when a row goes


class Sums(ABC):
    """Sums over items, and after them sums over labelers, that coefficients are functions of."""

    rows: VoteRows
    n_sums: int
    of_labelers: Floats  # (n_labelers, n_last): what each labeler adds to the last sums

    @abstractmethod
    def changes(self, part: VoteRows) -> Changes:
        """What items add, and by how much the sums change without each row."""

    @abstractmethod
    def coefficients(self, sums: Floats) -> Floats:
        """The coefficients of sums (..., n_sums)."""

    def parts(self) -> Iterator[tuple[VoteRows, Changes]]:
        """The changes of the sums, part by part."""
        for part in self.rows.parts(self.n_sums):
            yield part, self.changes(part)

    def with_labelers(self, part: VoteRows, items: Floats, rows: Floats, last: Floats) -> Changes:
        """The changes of the sums over items, and by how much those over labelers change without each row."""
        by_item = -sums_by(part.item, last, part.n_items)
        return Changes(np.concatenate([items, by_item], axis=1), np.concatenate([rows, last], axis=1))

    def total(self, items: Floats) -> Floats:
        """The sums of all, from what all items add; those over labelers are no sums over items."""
        return np.concatenate([items[: self.n_sums - self.of_labelers.shape[1]], self.of_labelers.sum(axis=0)])

    def without_labeler(self, total: Floats, row_changes: Floats) -> Floats:
        """The sums without each labeler, given the sums of the changes by its rows; shape (n_labelers, n_sums)."""
        left = total + row_changes
        n_first = self.n_sums - self.of_labelers.shape[1]
        left[:, n_first:] = total[n_first:] - self.of_labelers
        return left


@dataclass(frozen=True)
class Spread:
    """Coefficients with their variances; all of shape (n_coefficients,), nan where there is none."""

    value: Floats
    variance: Floats
    df: Floats  # the degrees of freedom of the variance
    bias: Floats | float = 0.0  # by how much each is too high on average, as the intervals have it

    def at(self, place: int) -> Spread:
        """That of one coefficient."""
        bias = np.broadcast_to(self.bias, np.shape(self.value))
        return Spread(self.value[place], self.variance[place], self.df[place], bias[place])


def jackknife(sums: Sums, *, with_labelers: bool) -> Spread:
    """The coefficients of these sums and how sure they are; `with_labelers` if labelers are a sample too."""
    kept = list(sums.parts()) if len(sums.rows.item) * sums.n_sums < _KEPT else None
    added, row_changes = np.zeros(sums.n_sums), np.zeros((sums.rows.n_labelers, sums.n_sums))
    for part, changes in kept or sums.parts():
        added += changes.items.sum(axis=0)
        if with_labelers:
            row_changes += sums_by(part.labeler, changes.rows, part.n_labelers)
    total = sums.total(added)
    value = sums.coefficients(total)
    voted = np.bincount(sums.rows.labeler, minlength=sums.rows.n_labelers) > 0
    left = sums.without_labeler(total, row_changes)[voted]
    slopes = slopes_of(sums, left.mean(axis=0))  # a labeler is no small part of few, so where one is gone
    n_items, items, squares = 0, np.zeros(len(value)), np.zeros(len(value))
    effects = []
    for part, changes in kept or sums.parts():
        gap = sums.coefficients(total - changes.items[part.votes_per_item > 0]) - value
        gap = np.where(np.isfinite(gap), gap, 0.0)  # the only item with a pair, or with another class
        n_items += len(gap)
        items, squares = items + gap.sum(axis=0), squares + (gap**2).sum(axis=0)
        if with_labelers:
            effects.append(changes.rows @ slopes)
    effective = sums.rows.effective()  # as many as there are, where all weigh the same
    of_items = (1 - 1 / max(effective, 2.0)) * np.maximum(squares - items**2 / n_items, 0.0)
    if not with_labelers:
        return Spread(value, of_items, np.full(len(value), max(effective - 1.0, 1.0)))
    noise = noise_of_items(sums.rows.item, sums.rows.labeler, np.concatenate(effects))
    return two_way(value, of_items, effective, sums.coefficients(left) - value, noise)


def two_way(value: Floats, of_items: Floats, n_items: float, gaps: Floats, noise: Floats) -> Spread:
    """The variance over items and labelers, from that over items and what the coefficients are without each labeler.

    The degrees of freedom are those with which Student's 95% interval is as wide as one that multiplies each variance
    by the square of its own quantile: of few labelers the variance is little known, also where it seems to be all noise
    of the items. A labeler without whom a coefficient has no value counts as no change.
    """
    n_labelers = len(gaps)
    gaps = np.where(np.isfinite(gaps), gaps, 0.0)
    of_labelers = (n_labelers - 1) / n_labelers * ((gaps - gaps.mean(axis=0)) ** 2).sum(axis=0)
    variance = of_items + np.maximum(of_labelers - noise, 0.0)
    wide, wider = (stdtrit(max(n - 1, 1), 0.975) ** 2 for n in (n_items, n_labelers))
    reach = np.maximum(wide * of_items + wider * of_labelers - wide * noise, wide * of_items)
    quantile = np.sqrt(np.divide(reach, variance, out=np.full(len(value), wide), where=variance > 0))
    grid = np.geomspace(1e6, 1.0, 2000)
    return Spread(value, variance, np.interp(quantile, stdtrit(grid, 0.975), grid))


def noise_of_items(item: Codes, labeler: Codes, effect: Floats) -> Floats:
    """How much of the variance over labelers is noise of the items: from votes less their item's and labeler's mean."""
    per_item, per_labeler = np.bincount(item), np.bincount(labeler)
    n_items, n_labelers, n = int((per_item > 0).sum()), int((per_labeler > 0).sum()), len(item)
    free = n - n_items - n_labelers + 1
    if free <= 0:
        return np.zeros(effect.shape[1])
    rest = effect - effect.mean(axis=0)
    for code, times in ((item, per_item), (labeler, per_labeler)):  # exact where no vote is missing
        rest -= (sums_by(code, rest, len(times)) / np.maximum(times, 1)[:, None])[code]
    return np.asarray(((n_labelers - 1) / n_labelers) ** 2 * n / free * (rest**2).sum(axis=0))


def slopes_of(sums: Sums, total: Floats) -> Floats:
    """The slope of each coefficient along each sum; shape (n_sums, n_coefficients)."""
    step = _STEP * np.maximum(np.abs(total), 1e-3 * np.abs(total).max())
    slopes = []
    for start in range(0, len(total), _AT_ONCE):
        moved = np.zeros((min(_AT_ONCE, len(total) - start), len(total)))
        at = np.arange(len(moved))
        moved[at, start + at] = step[start + at]
        up, down = sums.coefficients(total + moved), sums.coefficients(total - moved)
        slopes.append((up - down) / (2 * step[start + at, None]))
    return np.asarray(np.nan_to_num(np.concatenate(slopes)))


def sums_by(code: Codes, values: Floats, n: int) -> Floats:
    """The sums of the rows of each code; shape (n, n_columns)."""
    places = sparse.csr_array((np.ones(len(code)), (code, np.arange(len(code)))), shape=(n, len(code)))
    return np.asarray(places @ values)


def intervals_of(value: Floats, std: Floats, df: Floats, low: Floats, level: float) -> tuple[Floats, Floats]:
    """The intervals of many of `CoefficientEstimate` without bias, with bounds from `low` to 1."""
    inside = np.clip((value - low) / (1 - low), 1e-9, 1 - 1e-9)
    reach = stdtrit(df, (1 + level) / 2) * std / (1 - low) / (inside * (1 - inside))
    below, above = (low + (1 - low) * expit(logit(inside) + side * reach) for side in (-1, 1))
    return np.minimum(below, value), np.maximum(above, value)


class AroundValue(Estimate):
    """An estimate whose mean is what was counted, with equal tails, and intervals that hold it."""

    _value: float

    @property
    def mean(self) -> float:
        """What was counted."""
        return self._value

    @property
    def mode(self) -> float:
        """What was counted."""
        return self._value

    def _hdi(self, level: float) -> tuple[float, float]:
        """With equal tails: these were measured to hold. Where nobody disagrees the value is the end."""
        low, high = self._ppf(np.array([(1 - level) / 2, (1 + level) / 2])).tolist()
        return min(low, self._value), max(high, self._value)


class RateEstimate(AroundValue, ContinuousEstimate):
    """A rate with Jeffreys' distribution of it, by the number of items behind it; its `mean` is the rate itself."""

    def __init__(self, value: float, n: float, *, name: str | None = None) -> None:
        value = min(max(value, 0.0), 1.0)
        super().__init__(scipy.stats.beta(n * value + 0.5, n * (1 - value) + 0.5), name=name)
        self._set(_value=float(value))

    @staticmethod
    def of(value: float, variance: float, n: float, *, most: float, df: float, name: str | None = None) -> RateEstimate:
        """The rate with the number of independent items that vary as much.

        It is n where all are alike, so that the variance says nothing, and `most` at most; of few degrees of freedom
        `df` of the variance it is made less, as Korn and Graubard do.
        """
        varied = value * (1 - value)
        if variance > 1e-16 and varied > 1e-9:
            less = 1.0 if np.isinf(df) else float((ndtri(0.975) / stdtrit(df, 0.975)) ** 2)
            n = min(varied / variance * less, most)
        return RateEstimate(value, max(n, 0.0), name=name)


class CoefficientEstimate(AroundValue):
    """A coefficient with its confidence distribution: Student's t on a scale without an upper end.

    Its `mean` is the coefficient itself, and its interval has as much outside on either side.

    Parameters
    ----------
    value, std, df : float. The coefficient, its standard error and the degrees of freedom.
    bias : float. What the distribution lies lower by than the coefficient.
    bounds : (float, float). The scale is the logit between these.
    """

    def __init__(
        self,
        value: float,
        std: float,
        df: float,
        *,
        bias: float = 0.0,
        bounds: tuple[float, float],
        name: str | None = None,
    ) -> None:
        super().__init__(bounds=bounds, name=name)
        low, high = self.bounds
        inside = np.clip((value - bias - low) / (high - low), 1e-9, 1 - 1e-9)
        width = max(std / (high - low) / (inside * (1 - inside)), 1e-300)
        self._set(
            _value=float(value), _std=float(std), _df=float(df), _centre=float(logit(inside)), _width=float(width)
        )

    _std: float
    _df: float
    _centre: float
    _width: float

    @property
    def std(self) -> float:
        """The standard error."""
        return self._std

    @property
    def df(self) -> float:
        """Degrees of freedom of the standard error."""
        return self._df

    def _shares(self, x: Floats) -> Floats:
        """Where values lie between the bounds, from 0 to 1."""
        return np.clip((x - self.bounds[0]) / (self.bounds[1] - self.bounds[0]), 0.0, 1.0)

    def _pdf(self, x: Floats) -> Floats:
        share = self._shares(x)
        odds = share * (1 - share)
        slope = np.divide(1 / (self.bounds[1] - self.bounds[0]), odds, out=np.zeros(np.shape(x)), where=odds > 0)
        density = scipy.stats.t.pdf((logit(share) - self._centre) / self._width, self._df)
        return np.asarray(density * slope / self._width)

    def _cdf(self, x: Floats) -> Floats:
        return np.asarray(stdtr(self._df, (logit(self._shares(x)) - self._centre) / self._width))

    def _ppf(self, q: Floats) -> Floats:
        odds = self._centre + self._width * stdtrit(self._df, q)
        return np.asarray(self.bounds[0] + (self.bounds[1] - self.bounds[0]) * expit(odds))
