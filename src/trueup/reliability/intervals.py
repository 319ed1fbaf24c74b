"""How sure a coefficient of agreement is, where items and labelers are samples: a two-way jackknife.

The variance over items is that of the coefficient without each item, the variance over labelers that without each
labeler. The latter holds noise of the items too, which the former counts already: it is estimated from what each vote
changes, items and labelers averaged out, and taken off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy
from scipy import sparse

from trueup._base.types import Codes, Floats
from trueup.posteriors import ContinuousEstimate, Estimate
from trueup.reliability.tables import VoteRows

_KEPT = 4e7  # numbers of changes that are kept from one pass to the next: 320 MB
_AT_ONCE = 256  # sums that slopes are worked out along at once
_STEP = 1e-5  # relative step of the slopes; central differences are then good to about ten digits


class Sums(Protocol):
    """What the jackknife needs: sums over items, what they are without an item, labeler or vote, and coefficients."""

    n_sums: int
    rows: VoteRows

    def parts(self) -> Any: ...
    def total(self, items: Floats) -> Floats: ...
    def without_labeler(self, total: Floats, row_changes: Floats) -> Floats: ...
    def coefficients(self, sums: Floats) -> Floats: ...


@dataclass(frozen=True)
class Spread:
    """Coefficients with their variances.

    Attributes
    ----------
    value, variance, df : arrays of shape (n_coefficients,)
        Each coefficient, its variance and the degrees of freedom of this; nan where there is none.
    bias : array of shape (n_coefficients,), or 0. By how much each is too high on average, as the intervals have it.
    """

    value: Floats
    variance: Floats
    df: Floats
    bias: Floats | float = 0.0


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
    wide, wider = (scipy.stats.t.ppf(0.975, max(n - 1, 1)) ** 2 for n in (n_items, n_labelers))
    reach = np.maximum(wide * of_items + wider * of_labelers - wide * noise, wide * of_items)
    quantile = np.sqrt(np.divide(reach, variance, out=np.full(len(value), wide), where=variance > 0))
    grid = np.geomspace(1e6, 1.0, 2000)
    return Spread(value, variance, np.interp(quantile, scipy.stats.t.ppf(0.975, grid), grid))


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
    edge = 1e-9 * (1 - low)
    inside = np.clip(value, low + edge, 1 - edge)
    centre = np.log((inside - low) / (1 - inside))
    reach = scipy.stats.t.ppf((1 + level) / 2, df) * std * (1 - low) / ((inside - low) * (1 - inside))
    below, above = (low + (1 - low) * scipy.special.expit(centre + side * reach) for side in (-1, 1))
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
    def of(
        value: float,
        variance: float,
        n: float,
        *,
        most: float | None = None,
        df: float = np.inf,
        name: str | None = None,
    ) -> RateEstimate:
        """The rate with the number of independent items that vary as much.

        Parameters
        ----------
        n : float. Items that the rate is of: what counts where all are alike, so that the variance says nothing.
        most : float, optional. What the number can be at most; by default n.
        df : float. Degrees of freedom of the variance; of few the number is made less, as Korn and Graubard do.
        """
        varied = value * (1 - value)
        if variance > 1e-16 and varied > 1e-9:
            less = 1.0 if np.isinf(df) else float((scipy.stats.norm.ppf(0.975) / scipy.stats.t.ppf(0.975, df)) ** 2)
            n = min(varied / variance * less, n if most is None else most)
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
        edge = 1e-9 * (high - low)
        inside = min(max(value - bias, low + edge), high - edge)
        slope = (high - low) / ((inside - low) * (high - inside))
        self._set(
            _value=float(value),
            _std=float(std),
            _df=float(df),
            _centre=float(np.log((inside - low) / (high - inside))),
            _width=float(std * slope),
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

    def _scaled(self, x: Floats) -> Floats:
        low, high = self.bounds
        with np.errstate(divide="ignore"):
            odds = np.log(np.clip(x - low, 0, None)) - np.log(np.clip(high - x, 0, None))
        return np.asarray((odds - self._centre) / max(self._width, 1e-300))

    def _pdf(self, x: Floats) -> Floats:
        low, high = self.bounds
        inside = (x > low) & (x < high)
        slope = np.divide(high - low, (x - low) * (high - x), out=np.zeros(np.shape(x)), where=inside)
        return np.asarray(scipy.stats.t.pdf(self._scaled(x), self._df) * slope / max(self._width, 1e-300))

    def _cdf(self, x: Floats) -> Floats:
        if self._width == 0:
            return np.asarray(np.asarray(x) >= self._value, dtype=float)
        return np.asarray(scipy.stats.t.cdf(self._scaled(x), self._df))

    def _ppf(self, q: Floats) -> Floats:
        if self._width == 0:
            return np.full(np.shape(q), self._value)
        odds = self._centre + self._width * scipy.stats.t.ppf(q, self._df)
        return np.asarray(self.bounds[0] + (self.bounds[1] - self.bounds[0]) * scipy.special.expit(odds))
