"""Draws of the truth: what the engine gives and every metric starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats, Target
from trueup.estimators.counts import CountsPosterior, DrawnCounts, DrawnRates
from trueup.estimators.population import Population
from trueup.estimators.problem import Solution
from trueup.estimators.system_values import system_counts


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
    """

    truths: Codes = field(repr=False)
    posterior: Floats = field(repr=False)
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    converged: bool = True
    notes: tuple[str, ...] = ()

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return len(self.truths)


def solution_of(
    truth: TruthDraws,
    codes: npt.ArrayLike,
    n_classes: int,
    *,
    target: Target,
    rng: np.random.Generator,
    population: Population | None = None,
) -> Solution:
    """The posterior of the confusion counts of one system, from draws of the truth.

    Parameters
    ----------
    truth : TruthDraws
    codes : integer array of shape (n_items,)
        The predicted classes, -1 for none.
    target : {"sample", "population"}
        The confusion counts on these items; or the rates behind them, of which the items are a sample (Rubin's Bayesian
        bootstrap).
    population : Population, optional
        Clusters and weights of the items, for the rates behind them.
    """
    counts = system_counts(truth.truths, np.asarray(codes)[None], n_classes)[:, 0]
    if target == "sample":
        posterior: CountsPosterior = DrawnCounts(counts, truths=partial(_choose_truths, truth.truths))
    else:
        if population is None:
            rates = rng.standard_gamma(counts)
        else:
            masses = population.masses(truth.truths.shape, rng)
            rates = system_counts(truth.truths, np.asarray(codes)[None], n_classes, weights=masses)[:, 0]
        posterior = DrawnRates(rates / np.maximum(rates.sum(axis=(1, 2), keepdims=True), 1e-300))
    mean = counts.mean(axis=0)
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


def _choose_truths(kept: Codes, n: int, rng: np.random.Generator) -> Codes:
    """Some of the draws that the chains kept: all different where there are enough."""
    order = rng.permutation(len(kept))[:n] if n <= len(kept) else rng.integers(len(kept), size=n)
    return kept[order]
