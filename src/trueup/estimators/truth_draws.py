"""Draws of the truth: what the engine gives and every metric starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.estimators.counts import CountsPosterior, DrawnCounts, DrawnRates
from trueup.estimators.problem import Solution
from trueup.estimators.system_values import Population, counts_by_cell, system_counts, unseen_counts
from trueup.metrics import Metric
from trueup.posteriors import DrawnEstimate, Estimate

# ------------------ Confusion counts that are made from drawn truths as they are asked for: tables of thousands of

_BLOCK = 20_000_000  # cells held at once


class CountsOfTruths(DrawnCounts):
    """The counts of one system on every drawn truth."""

    def __init__(
        self, truths: Codes, codes: Codes, n_classes: int, masses: npt.NDArray[np.float32] | None = None
    ) -> None:
        given = np.asarray(codes) >= 0
        self._all_truths = truths
        self._drawn, self._codes, self._n_classes = truths[:, given], np.asarray(codes)[given], n_classes
        self._masses, self.weights = masses, None
        if masses is not None:
            kept = np.asarray(masses, dtype=float)[:, given]
            self._masses = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1e-300)

    @property
    def n_classes(self) -> int:
        return self._n_classes

    @property
    def mean_counts(self) -> Floats:
        cells = self._drawn.astype(np.int64) * self._n_classes + self._codes
        mass = None if self._masses is None else self._masses.ravel()
        sums = np.bincount(cells.ravel(), weights=mass, minlength=self._n_classes**2)
        return np.asarray(sums.reshape(self._n_classes, self._n_classes) / len(self._drawn))

    def _tables(self, draws: npt.NDArray[np.intp]) -> Floats:
        mass = None if self._masses is None else self._masses[draws]
        return counts_by_cell(self._drawn[draws], self._codes, self._n_classes, mass)

    def _values(self, metric: Metric) -> Floats:
        rows = max(1, _BLOCK // self._n_classes**2)
        blocks = np.split(np.arange(len(self._drawn)), range(rows, len(self._drawn), rows))
        return np.concatenate([metric(self._tables(draws)) for draws in blocks])

    def cell(self, truth: int, prediction: int) -> Estimate:
        y, yhat = self._check_cell(truth, prediction)
        is_there = (self._drawn == y) & (self._codes == yhat)
        counts = is_there.sum(axis=1) if self._masses is None else (is_there * self._masses).sum(axis=1)
        most = float(self._drawn.shape[1]) if self._masses is None else 1.0
        return DrawnEstimate(counts.astype(float), bounds=(0.0, max(most, 1.0)), name="count")

    def draw_counts(self, n: int, random_state: RandomState = None) -> Floats:
        return self._tables(as_generator(random_state).integers(len(self._drawn), size=n))

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        if self._masses is not None:
            return DrawnRates.draw_truths(self, n, random_state)  # type: ignore[arg-type]
        return choose_truths(self._all_truths, check_integer(n, name="n", low=0), as_generator(random_state))


def choose_truths(kept: Codes, n: int, rng: np.random.Generator) -> Codes:
    """Some of the draws that the chains kept: all different where there are enough."""
    order = rng.permutation(len(kept))[:n] if n <= len(kept) else rng.integers(len(kept), size=n)
    return kept[order]


_Number = TypeVar("_Number", bound=np.generic)
_MOST_CELLS = 100_000_000  # of all tables of counts together, held in memory
_FEWEST_TABLES = 500  # where a table is large


@dataclass(frozen=True, eq=False)
class TruthDraws:
    """Drawn truths.

    Attributes
    ----------
    truths : integer array of shape (n_draws, n_items). A class for each item in each draw; gold items have their own.
    chances : array of shape (n_items, n_classes), or callable () -> such an array
        P(class) of each item, or what works it out when it is asked for.
    notes : tuple of str. Sentences a user should read.
    items : integer array, optional. The items that truths are drawn of, where these are not all.
    times : array, optional. How many items each of those stands for.
    """

    truths: Codes = field(repr=False)
    chances: Floats | Callable[[], Floats] = field(repr=False)
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    converged: bool = True
    notes: tuple[str, ...] = ()
    items: Codes | None = field(default=None, repr=False)
    times: Floats | None = field(default=None, repr=False)

    @cached_property
    def posterior(self) -> Floats:
        """P(class) of each item, shape (n_items, n_classes)."""
        return self.chances() if callable(self.chances) else self.chances

    def at_drawn(self, array: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """The entries along the last axis, one for each item, of the items that truths are drawn of."""
        return array if self.items is None else array[..., self.items]

    def population(self, of_all: Population | None) -> Population | None:
        """A population of all items as one of those that truths are drawn of."""
        return of_all if of_all is None else of_all.at(self.items, self.times)

    def evenly(self) -> tuple[Codes, Codes]:
        """Drawn truths of items that stand for as many each, and which items these are; some occur more than once."""
        n = self.truths.shape[1]
        items = np.arange(n) if self.items is None else self.items
        if self.times is None:
            return self.truths, items
        upto = np.cumsum(self.times)
        nearest = np.searchsorted(upto, (np.arange(n) + 0.5) / n * upto[-1])
        return self.truths[:, nearest], items[nearest]

    @property
    def fixed_weights(self) -> npt.NDArray[np.float32] | None:
        """How many items each stands for, the same in each draw; None where each stands for itself."""
        return None if self.times is None else np.broadcast_to(self.times.astype(np.float32), self.truths.shape)

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return len(self.truths)


def not_mixed(rhat: float, effective: float) -> str:
    """What to say of chains that disagree."""
    return (
        f"The chains have not mixed (R-hat {rhat:.2f}, {effective:.0f} effective draws): raise n_draws, or take it "
        "that the votes admit several readings of the truth and check some items."
    )


def solution_of(
    truth: TruthDraws,
    codes: npt.ArrayLike,
    n_classes: int,
    *,
    rng: np.random.Generator,
    population: Population | None = None,
) -> Solution:
    """The posterior of the confusion counts of one system, from draws of the truth."""
    codes, population = truth.at_drawn(np.asarray(codes)), truth.population(population)
    if truth.n_draws * n_classes**2 > _MOST_CELLS:
        return _solution_of_many_classes(truth, codes, n_classes, rng, population)
    row = codes[None]
    counts = system_counts(truth.truths, row, n_classes, weights=truth.fixed_weights)[:, 0]
    if population is None:
        posterior: CountsPosterior = DrawnCounts(counts, truths=partial(choose_truths, truth.truths))
    else:
        if population.is_of_items:
            rates = rng.standard_gamma(counts)  # a sum of the masses of items
        else:
            masses = population.masses(truth.truths.shape, rng)
            rates = system_counts(truth.truths, row, n_classes, weights=masses)[:, 0]
        units = np.array([population.unit(row[0] >= 0)])
        rates = rates + unseen_counts(row, n_classes, truth.n_draws, rng, units=units)[:, 0]
        posterior = DrawnRates(rates / np.maximum(rates.sum(axis=(1, 2), keepdims=True), 1e-300))
    return _solution(truth, posterior, counts.mean(axis=0))


def _solution_of_many_classes(
    truth: TruthDraws, codes: Codes, n_classes: int, rng: np.random.Generator, population: Population | None
) -> Solution:
    """The same, with the counts made as they are asked for."""
    truths, weights = truth.truths[: max(_FEWEST_TABLES, _MOST_CELLS // n_classes**2)], truth.fixed_weights
    counts = CountsOfTruths(truths, codes, n_classes, None if weights is None else weights[: len(truths)])
    if population is None:
        return _solution(truth, counts, counts.mean_counts)
    masses = population.masses(truths.shape, rng)
    return _solution(truth, CountsOfTruths(truths, codes, n_classes, masses), counts.mean_counts)


def _solution(truth: TruthDraws, posterior: CountsPosterior, mean: Floats) -> Solution:
    total = np.maximum(mean.sum(axis=1, keepdims=True), 1e-12)
    return Solution(
        counts=posterior,
        confusion=mean / total,
        n_iter=truth.n_draws,
        converged=truth.converged,
        diagnostics=truth.diagnostics,
        notes=truth.notes,
        truth=None if callable(truth.chances) else truth.posterior,
    )
