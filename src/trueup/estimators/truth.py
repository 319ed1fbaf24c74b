"""Draws of the truth, which every metric starts from, and how they are made under a noise model that the caller names.

The truth of all items is drawn together with a model that is learned, or under one that is known. Systems are inside
the states of the labelers, so they may err with them. Where the noise is known, what the systems say are features of a
log-linear prior of each item's class, and for the classes of one system there is `estimators.given_noise`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.aligned import AlignedPredictions, OutputKind
from trueup.data.labels import Labels
from trueup.estimators.counts import CountsPosterior, DrawnCounts, DrawnRates
from trueup.estimators.problem import Solution, draw_categories
from trueup.estimators.system_features import LogLinearPrior, system_prior
from trueup.estimators.system_values import Population, counts_by_cell, system_counts, unseen_counts
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.noise import NoiseModel, SoftTruth, Stack, resolve
from trueup.noise.base import with_gold
from trueup.noise.chain import SystemOutputs
from trueup.noise.sampling import PosteriorDraws, sample
from trueup.posteriors import DrawnEstimate, Estimate

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


@dataclass(frozen=True, eq=False)
class TruthDraws:
    """Drawn truths.

    Attributes
    ----------
    truths : integer array of shape (n_draws, n_items). A class for each item in each draw; gold items have their own.
    chances : array of shape (n_items, n_classes), or callable () -> such an array. P(class) of each item.
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


def truths_of_draws(draws: PosteriorDraws, **diagnostics: float) -> TruthDraws:
    """The truths of a model that was drawn together with them."""
    truths = draws.truths.astype(np.int8) if draws.posterior.shape[1] <= 127 else draws.truths
    notes = () if draws.converged else (not_mixed(draws.rhat, draws.ess),)
    how_sure = {"r_hat": draws.rhat, "effective_draws": draws.ess, **diagnostics}
    return TruthDraws(truths, draws.posterior, how_sure, draws.converged, notes)


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
    posterior: CountsPosterior
    if truth.n_draws * n_classes**2 > _MOST_CELLS:  # counts are made as they are asked for
        n_kept = max(500, _MOST_CELLS // n_classes**2)  # at least, of large tables
        truths, weights = truth.truths[:n_kept], truth.fixed_weights
        posterior = CountsOfTruths(truths, codes, n_classes, None if weights is None else weights[:n_kept])
        mean = posterior.mean_counts
        if population is not None:
            posterior = CountsOfTruths(truths, codes, n_classes, population.masses(truths.shape, rng))
    else:
        row = codes[None]
        counts = system_counts(truth.truths, row, n_classes, weights=truth.fixed_weights)[:, 0]
        mean, posterior = counts.mean(axis=0), DrawnCounts(counts, truths=partial(choose_truths, truth.truths))
        if population is not None:
            if population.is_of_items:
                rates = rng.standard_gamma(counts)  # a sum of the masses of items
            else:
                masses = population.masses(truth.truths.shape, rng)
                rates = system_counts(truth.truths, row, n_classes, weights=masses)[:, 0]
            units = np.array([population.unit(row[0] >= 0)])
            rates = rates + unseen_counts(row, n_classes, truth.n_draws, rng, units=units)[:, 0]
            posterior = DrawnRates(rates / np.maximum(rates.sum(axis=(1, 2), keepdims=True), 1e-300))
    return Solution(
        counts=posterior,
        confusion=mean / np.maximum(mean.sum(axis=1, keepdims=True), 1e-12),
        n_iter=truth.n_draws,
        converged=truth.converged,
        diagnostics=truth.diagnostics,
        notes=truth.notes,
        truth=None if callable(truth.chances) else truth.posterior,
    )


_MOST_LABELS = 400_000_000  # drawn in all; one byte each
_DRAWS_A_COEFFICIENT = 8  # truths drawn for each draw of the coefficients where these cost a pass over the items
_MANY_ITEMS = 20_000
_BINS = 8  # of scores
_FEW_BINS = 5
_FEW_ITEMS = 200
_LEVELS = 3  # of how sure a system is of the class it names
_SWEEPS_A_DRAW = 3  # of a chain for each truth that is kept: neighbours are much alike


def draw_truths(
    labels: Labels,
    noise: str | NoiseModel,
    *,
    outputs: SystemOutputs | None = None,
    item_prior: LogLinearPrior | None = None,
    n_draws: int = 2000,
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> TruthDraws:
    """Draw the truth of all items from p(truth | votes, systems).

    Parameters
    ----------
    noise : str or NoiseModel
        A model that is drawn together with the truth, by name or not fitted (see `trueup.noise.sample`); or a known or
        fitted one, which is taken as it is.
    outputs : SystemOutputs, optional. What systems say of the items, for a model that is drawn.
    item_prior : LogLinearPrior, optional. The same for a model that is known or fitted; its coefficients are drawn too.
    n_draws : int. Fewer are made where there are very many items.
    **sampling : for `trueup.noise.sample`: n_chains, n_warmup
    """
    check_integer(n_draws, name="n_draws", low=10)
    rng = as_generator(random_state)
    noise = resolve(noise)
    if is_drawn(noise):
        if item_prior is not None:
            raise InvalidParameter("`item_prior` is for known or fitted noise; pass `outputs`")
        how = {"n_chains": 4, "n_warmup": 500} | sampling
        n_sweeps = max(4, _SWEEPS_A_DRAW * -(-n_draws // int(how["n_chains"])))
        given: Any = {"outputs": outputs, "random_state": rng, "progress": progress, "warn": False}
        return truths_of_draws(sample(labels, noise, n_draws=n_sweeps, **given, **how))
    # The noise is known or taken as known, so draws are independent: no chain.
    n_draws = max(10, min(n_draws, _MOST_LABELS // max(labels.n_items, 1)))
    log_likelihood = with_gold(noise.log_likelihood(labels), labels, others=-np.inf, own=0.0)
    if item_prior is None:
        posterior = noise.posterior(labels)
        return TruthDraws(draw_categories(posterior, n_draws, rng), posterior)
    lattice = np.eye(labels.n_classes)
    if isinstance(noise, SoftTruth):
        # A system knows how ambiguous an item is, as labelers do: what it says tells the state, not only the class.
        lattice = noise.lattice_
        item_prior = item_prior.over_states(lattice)
        with np.errstate(divide="ignore"):  # a gold item is in one state
            log_likelihood = np.log(noise.state_posterior(labels))
    each = _DRAWS_A_COEFFICIENT if labels.n_items >= _MANY_ITEMS else 1
    drawn = item_prior.draws_given_votes(log_likelihood, -(-n_draws // each), rng)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    truths = np.empty((n_draws, labels.n_items), dtype=np.int8 if labels.n_classes <= 127 else np.int16)
    mean = np.zeros((labels.n_items, labels.n_classes))
    for k, coefficients in enumerate(drawn.coefficients):
        joint = likelihood * np.maximum(item_prior.probabilities(coefficients), 1e-300)
        joint = (joint / joint.sum(axis=1, keepdims=True)) @ lattice
        mean += joint
        rows = truths[k * each : (k + 1) * each]
        rows[:] = draw_categories(joint, len(rows), rng)
        if progress is not None:
            progress((k + 1) / len(drawn.coefficients))
    notes: tuple[str, ...] = ()
    if drawn.effective < 100:
        notes = (
            f"The votes say so little that draws are worth {drawn.effective:.0f} independent ones: take the intervals "
            "as rough, get more votes, or check some items.",
        )
    diagnostics = {"effective_draws": min(drawn.effective, n_draws)}
    return TruthDraws(truths, mean / len(drawn.coefficients), diagnostics, not notes, notes)


def settle_noise(noise: NoiseModel, labels: Labels, *, draw: bool) -> NoiseModel:
    """The model as an engine takes it; what was passed is never changed."""
    if draw and noise.can_be_drawn:
        return noise.clone()
    model = noise.clone().fit(labels)
    if draw and isinstance(model, Stack) and model.best_.can_be_drawn:
        return model.best_.clone()
    return model


def is_drawn(model: NoiseModel) -> bool:
    """Whether a settled model is drawn together with the truth."""
    return model.can_be_drawn and not model.is_fitted


def truths_given_outputs(
    labels: Labels,
    noise: NoiseModel,
    outputs: AlignedPredictions,
    *,
    used: OutputKind,
    in_votes: Booleans | None = None,
    n_draws: int = 2000,
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> TruthDraws:
    """Draw the truth of all items from p(truth | votes, what the systems say)."""
    others = outputs if in_votes is None else outputs.of_systems(~in_votes)
    what: dict[str, Any] = {}
    if others.n_systems and is_drawn(noise):
        what["outputs"] = as_outputs(others, used)
    elif others.n_systems:
        what["item_prior"] = system_prior(others, labels.n_classes, used=used)
    return draw_truths(labels, noise, **what, n_draws=n_draws, random_state=random_state, progress=progress, **sampling)


def as_outputs(part: AlignedPredictions, used: OutputKind) -> SystemOutputs:
    """What the systems say as answers: classes, bins of scores, or classes with how sure a system is."""
    outputs = part.outputs(used)
    if used == "classes":
        table = outputs.astype(np.int64)
        return SystemOutputs.of_classes(table, part.n_classes, witness_weights(table))
    table = np.full((part.n_systems, part.n_items), -1, dtype=np.int64)
    sizes = np.full(part.n_systems, part.n_classes * _LEVELS, dtype=np.int64)
    for s, row in enumerate(outputs):
        given = np.flatnonzero(~np.isnan(row if used == "scores" else row[:, 0]))
        if used == "scores":
            sizes[s] = _BINS if len(given) >= _FEW_ITEMS else _FEW_BINS
            table[s, given] = _even_levels(row[given], sizes[s])
        else:  # the likeliest class, with a level of how sure the system is of it
            levels = _even_levels(row[given].max(axis=1), _LEVELS)
            table[s, given] = row[given].argmax(axis=1) * _LEVELS + levels
    said_class = None if used == "scores" else np.arange(sizes.sum()) // _LEVELS % part.n_classes
    return SystemOutputs(table, sizes, witness_weights(table), said_class)


def _even_levels(values: Floats, n_levels: int) -> Positions:
    """The level of each value, of so many with equal numbers of values."""
    share = (scipy.stats.rankdata(values) - 0.5) / max(len(values), 1)
    return np.minimum((share * n_levels).astype(np.int64), n_levels - 1)


def witness_weights(table: Positions) -> Floats:
    """What each system counts for: one over the systems that say the same, those that half do (Cohen's kappa) half."""
    n_systems = len(table)
    if n_systems < 2:
        return np.ones(n_systems)
    same = np.zeros((n_systems, n_systems))
    chance = np.zeros_like(same)
    answered = (table >= 0).astype(float)
    both = answered @ answered.T
    for answer in range(int(table.max(initial=0)) + 1):
        answers = (table == answer).astype(float)
        same += answers @ answers.T
        # How often the row's system says so, on the items that the column's has an answer to as well.
        share = np.divide(answers @ answered.T, both, out=np.zeros_like(same), where=both > 0)
        chance += share * share.T
    agreement = np.divide(same, both, out=np.zeros_like(same), where=both > 0)
    kappa = np.divide(agreement - chance, 1 - chance, out=np.zeros_like(same), where=chance < 1)
    kappa = np.where(agreement >= 1.0, 1.0, np.clip(kappa, 0.0, 1.0))
    if table.max(initial=0) <= 1:
        # With the answers of one system turned around, agreement and that by chance are one less what they are.
        turned = np.divide(chance - agreement, chance, out=np.zeros_like(same), where=(chance > 0) & (both > 0))
        kappa = np.maximum(kappa, np.clip(turned, 0.0, 1.0))
    np.fill_diagonal(kappa, 1.0)
    return np.asarray(1 / kappa.sum(axis=1))
