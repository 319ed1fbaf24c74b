"""p(truth | votes, systems, gold) under one noise model that the caller names; the plain answer is `trueup.core`.

The truth of all items is drawn together with a model that is learned, or under one that is known. Systems are inside
the states of the labelers, so they may err with them. Where the noise is known, their rows are drawn with the truth
(`estimators.given_noise`), and for two classes of one system the posterior is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.aligned import AlignedPredictions, OutputKind
from trueup.data.labels import Labels
from trueup.estimators.drawing import draw_categories
from trueup.estimators.given_noise import draw_sweeps, n_sweeps_for
from trueup.estimators.truth_draws import TruthDraws, not_mixed
from trueup.noise import NoiseModel, Stack, resolve
from trueup.noise.convergence import effective_draws, rhat
from trueup.noise.sampling import sample
from trueup.noise.system_outputs import SystemOutputs

_MOST_LABELS = 400_000_000  # drawn in all; one byte each
_WARMUP = 100  # sweeps where the noise is known
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
    n_draws: int = 2000,
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> TruthDraws:
    """Draw the truth of all items from p(truth | votes, systems).

    Parameters
    ----------
    labels : Labels
    noise : str or NoiseModel
        A model that is drawn together with the truth, by name or not fitted (see `trueup.noise.sample`); or a known or
        fitted one, which is taken as it is.
    outputs : SystemOutputs, optional
        What systems say of the items; the rows of their answers are drawn too.
    n_draws : int
        Fewer are made where there are very many items.
    **sampling
        For `trueup.noise.sample`: n_chains, n_warmup.
    """
    check_integer(n_draws, name="n_draws", low=10)
    rng = as_generator(random_state)
    noise = resolve(noise)
    if not is_drawn(noise):
        return _given_noise(labels, noise, outputs, n_draws, rng, progress)
    n_chains = int(sampling.pop("n_chains", 4))
    draws = sample(
        labels,
        noise,
        outputs=outputs,
        n_chains=n_chains,
        n_warmup=sampling.pop("n_warmup", 500),
        n_draws=max(4, _SWEEPS_A_DRAW * -(-n_draws // n_chains)),
        random_state=rng,
        progress=progress,
        warn=False,
        **sampling,
    )
    return TruthDraws(
        small_codes(draws.truths, labels.n_classes),
        draws.posterior,
        {"r_hat": draws.rhat, "effective_draws": draws.ess},
        draws.converged,
        () if draws.converged else (not_mixed(draws.rhat, draws.ess),),
    )


def _given_noise(
    labels: Labels,
    noise: NoiseModel,
    outputs: SystemOutputs | None,
    n_draws: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None,
) -> TruthDraws:
    """The noise is known or taken as known: without systems draws are independent, with them rows are drawn too."""
    n_draws = max(10, min(n_draws, _MOST_LABELS // max(labels.n_items, 1)))
    chances, systems = noise.posterior(labels), None if outputs is None else outputs.informative()
    if systems is None or not len(systems.codes):
        return TruthDraws(draw_categories(chances, n_draws, rng), chances)
    n_sweeps = min(n_sweeps_for(chances), n_draws)
    sweeps = islice(draw_sweeps(chances, systems, systems.row_prior(labels.n_classes), rng), _WARMUP, None)
    truths = np.empty((n_sweeps, 4, labels.n_items), dtype=np.int8 if labels.n_classes <= 127 else np.int16)
    posterior, shares = np.zeros(chances.shape), np.empty((n_sweeps, labels.n_classes, 4))
    for k, sweep in zip(range(n_sweeps), sweeps, strict=False):
        truths[k] = sweep.truth.T
        posterior += sweep.posterior / n_sweeps
        shares[k] = [(sweep.truth == y).mean(axis=0) for y in range(labels.n_classes)]
        if progress is not None:
            progress((k + 1) / n_sweeps)
    monitored = [shares[:, y].T for y in range(labels.n_classes)]
    r_hat = float(np.nanmax([1.0, *map(rhat, monitored)]))
    effective = min(map(effective_draws, monitored))
    mixed = r_hat <= 1.05 and effective >= 100
    kept = np.linspace(0, 4 * n_sweeps - 1, min(n_draws, 4 * n_sweeps)).astype(int)
    return TruthDraws(
        truths.reshape(-1, labels.n_items)[kept],
        posterior,
        {"r_hat": r_hat, "effective_draws": effective},
        mixed,
        () if mixed else (not_mixed(r_hat, effective),),
    )


def small_codes(truths: npt.NDArray[np.int16], n_classes: int) -> Codes:
    """Drawn classes in one byte each, where these are enough."""
    return truths.astype(np.int8) if n_classes <= 127 else truths


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
    answers = as_outputs(outputs, used, in_votes)
    return draw_truths(
        labels, noise, outputs=answers, n_draws=n_draws, random_state=random_state, progress=progress, **sampling
    )


def as_outputs(outputs: AlignedPredictions, used: OutputKind, in_votes: Booleans | None = None) -> SystemOutputs:
    """What the systems say as answers: classes, bins of scores, or classes with how sure a system is.

    Systems that say much the same share the weight of a witness, so that a copy, or twenty versions of one model, add
    nothing. Labelers whose votes are in the labels are left out.
    """
    chosen = np.arange(outputs.n_systems) if in_votes is None else np.flatnonzero(~in_votes)
    part = outputs.of_systems(chosen)
    if used == "classes":
        table = part.outputs("classes").astype(np.int64)
        return SystemOutputs.of_classes(table, part.n_classes, witness_weights(table))
    binned = [_bins(row) if used == "scores" else _sure_classes(row, part.n_classes) for row in part.outputs(used)]
    table = np.array([codes for codes, _ in binned], dtype=np.int64).reshape(len(binned), outputs.n_items)
    sizes = np.array([size for _, size in binned], dtype=np.int64)
    levels = np.arange(sizes.sum()) // _LEVELS % part.n_classes
    return SystemOutputs(table, sizes, witness_weights(table), said_class=levels if used == "probabilities" else None)


def witness_weights(table: Positions) -> Floats:
    """What each system counts for: one over the systems that say the same, those that half do counted half.

    By Cohen's kappa of each pair, on the items that both have an answer to. Of two classes, a system and its opposite
    say the same too.
    """
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


def _bins(scores: Floats) -> tuple[Positions, int]:
    """Scores in bins of equal numbers of items, -1 for none; and how many bins."""
    given = np.flatnonzero(~np.isnan(scores))
    codes = np.full(len(scores), -1, dtype=np.int64)
    n_bins = _BINS if len(given) >= _FEW_ITEMS else _FEW_BINS
    share = (scipy.stats.rankdata(scores[given], method="average") - 0.5) / max(len(given), 1)
    codes[given] = np.minimum((share * n_bins).astype(np.int64), n_bins - 1)
    return codes, n_bins


def _sure_classes(probabilities: Floats, n_classes: int) -> tuple[Positions, int]:
    """The likeliest class with a level of how sure the system is of it; -1 for none."""
    given = np.flatnonzero(~np.isnan(probabilities[:, 0]))
    codes = np.full(len(probabilities), -1, dtype=np.int64)
    best = probabilities[given].argmax(axis=1)
    top = probabilities[given].max(axis=1)
    level = np.minimum((scipy.stats.rankdata(top) - 0.5) / max(len(given), 1) * _LEVELS, _LEVELS - 1).astype(np.int64)
    codes[given] = best * _LEVELS + level
    return codes, n_classes * _LEVELS
