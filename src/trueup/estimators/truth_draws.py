"""Draws of the truth: what the engine gives and every metric starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup.data.labels import Labels
from trueup.estimators.counts import CountsPosterior, DrawnCounts, DrawnRates
from trueup.estimators.counts_of_truths import CountsOfTruths, choose_truths
from trueup.estimators.population import Population, unseen_counts
from trueup.estimators.problem import Solution
from trueup.estimators.system_values import system_counts

_Number = TypeVar("_Number", bound=np.generic)
_MOST_CELLS = 100_000_000  # of all tables of counts together, held in memory
_FEWEST_TABLES = 500  # where a table is large


@dataclass(frozen=True, eq=False)
class TruthDraws:
    """Drawn truths.

    Attributes
    ----------
    truths : integer array of shape (n_draws, n_items)
        A class for each item in each draw; gold items have their own.
    posterior : array of shape (n_items, n_classes)
        P(class) of each item.
    diagnostics : mapping
    converged : bool
    notes : tuple of str
        Sentences a user should read.
    items : integer array, optional
        The items that truths are drawn of, where these are not all.
    times : array, optional
        How many items each of those stands for.
    """

    truths: Codes = field(repr=False)
    posterior: Floats = field(repr=False)
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    converged: bool = True
    notes: tuple[str, ...] = ()
    items: Codes | None = field(default=None, repr=False)
    times: Floats | None = field(default=None, repr=False)

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
        at = np.searchsorted(upto, (np.arange(n) + 0.5) / n * upto[-1])
        return self.truths[:, at], items[at]

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
        "that the votes admit several readings of the truth and vet some items."
    )


def mixed_draws(
    first: npt.NDArray[_Number], second: npt.NDArray[_Number], share: float, rng: np.random.Generator
) -> npt.NDArray[_Number]:
    """Draws of which a share are those of the second, at random places; draws are along the first axis."""
    n = min(len(first), len(second))
    is_second = rng.permutation(n) < round(share * n)
    return np.where(is_second.reshape(n, *(1,) * (first.ndim - 1)), second[:n], first[:n])


def solution_of(
    truth: TruthDraws,
    codes: npt.ArrayLike,
    n_classes: int,
    *,
    rng: np.random.Generator,
    population: Population | None = None,
) -> Solution:
    """The posterior of the confusion counts of one system, from draws of the truth.

    Parameters
    ----------
    truth : TruthDraws
    codes : integer array of shape (n_items,)
        The predicted classes, -1 for none.
    population : Population, optional
        What the items are a sample of, for the rates behind the confusion counts (Rubin's Bayesian bootstrap); by
        default the counts are those of these items.
    """
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
    truth: TruthDraws,
    codes: Codes,
    n_classes: int,
    rng: np.random.Generator,
    population: Population | None,
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
        truth=truth.posterior,
    )


def known_classes_alone(log_likelihood: Floats, labels: Labels) -> Floats:
    """Log-likelihoods in which an item of known class can be of no other."""
    known = np.flatnonzero(labels.gold_codes >= 0)
    table = np.array(log_likelihood, dtype=float)
    table[known] = -np.inf
    table[known, labels.gold_codes[known]] = 0.0
    return table
