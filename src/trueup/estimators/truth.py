"""p(truth | votes, systems, gold): the one place that sees votes, systems and gold together.

Every door ends here: `solve_bayes` for the confusion counts of one system, `truths_given_outputs` for any metric of
any number of systems. All systems are judged on the same draws, so what they share cancels in their differences.

Two engines stand behind these doors. A system may be one more rater of the sampler, whose matrix is drawn with those of
the labelers (`bayes_learned`); or what the systems say may be features of a log-linear prior of each item's class
(`draw_truths` with an item prior), which leaves open how they depend on each other. Where the noise is known and one
system is judged by its classes, the posterior is exact (`estimators.exact_binary`, `exact_multiclass`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from trueup._base.types import Booleans, Codes, Floats, Target
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer, check_options
from trueup.data.aligned import AlignedPredictions
from trueup.data.labels import Labels
from trueup.estimators.counts import CountsPosterior, DrawnCounts, DrawnRates
from trueup.estimators.exact_binary import bayes
from trueup.estimators.problem import Problem, Solution
from trueup.estimators.system_features import Used, system_prior
from trueup.noise import DEFAULT_NOISE, NoiseModel, SoftTruth, Stack, resolve
from trueup.noise.item_prior import LogLinearPrior
from trueup.noise.sampling import PosteriorDraws, sample

_MOST_LABELS = 400_000_000  # drawn in all; one byte each
_DRAWS_A_COEFFICIENT = 8  # truths drawn for each draw of the coefficients where these cost a pass over the items
_MANY_ITEMS = 20_000
_SWEEPS_A_DRAW = 3  # of a chain for each truth that is kept: neighbours are much alike


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


def draw_truths(
    labels: Labels,
    noise: str | NoiseModel,
    *,
    item_prior: LogLinearPrior | None = None,
    n_draws: int = 2000,
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> TruthDraws:
    """Draw the truth of all items from p(truth | votes, features of the items).

    Parameters
    ----------
    labels : Labels
    noise : str or NoiseModel
        A model that is drawn together with the truth, by name or not fitted (see `trueup.noise.sample`); or a known or
        fitted one, which is taken as it is.
    item_prior : LogLinearPrior, optional
        What else tells the class of an item; its coefficients are drawn too. Without it the class shares of the noise
        model are all that is known.
    n_draws : int
        Fewer are made where there are very many items.
    **sampling
        For `trueup.noise.sample`: n_chains, n_warmup.
    """
    check_integer(n_draws, name="n_draws", low=10)
    rng = as_generator(random_state)
    noise = resolve(noise)
    if not is_drawn(noise):
        return _known(labels, noise, item_prior, n_draws, rng, progress)
    n_chains = int(sampling.pop("n_chains", 4))
    draws = sample(
        labels,
        noise,
        item_prior=item_prior,
        n_chains=n_chains,
        n_warmup=sampling.pop("n_warmup", 500),
        n_draws=max(4, _SWEEPS_A_DRAW * -(-n_draws // n_chains)),
        random_state=rng,
        progress=progress,
        warn=False,
        **sampling,
    )
    return TruthDraws(
        _small(draws.truths, labels.n_classes),
        draws.posterior,
        {"r_hat": draws.rhat, "effective_draws": draws.ess},
        draws.converged,
        () if draws.converged else (not_mixed(draws),),
    )


def not_mixed(draws: PosteriorDraws) -> str:
    """What to say of chains that disagree."""
    return (
        f"The chains have not mixed (R-hat {draws.rhat:.2f}, {draws.ess:.0f} effective draws): raise n_draws, or take "
        "it that the votes admit several readings of the truth and vet some items."
    )


def _known(
    labels: Labels,
    noise: NoiseModel,
    item_prior: LogLinearPrior | None,
    n_draws: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None,
) -> TruthDraws:
    """The noise is known or taken as known, so draws are independent: no chain."""
    n_draws = max(10, min(n_draws, _MOST_LABELS // max(labels.n_items, 1)))
    log_likelihood = _with_gold(noise.log_likelihood(labels), labels)
    truths = np.empty((n_draws, labels.n_items), dtype=np.int8 if labels.n_classes <= 127 else np.int16)
    if item_prior is None:
        with np.errstate(divide="ignore"):  # a class may have no prior weight
            posterior = np.asarray(softmax(log_likelihood + np.log(noise.prior_), axis=1))
        _draw_into(truths, posterior, rng)
        return TruthDraws(truths, posterior)
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
    mean = np.zeros((labels.n_items, labels.n_classes))
    for k, coefficients in enumerate(drawn.coefficients):
        joint = likelihood * np.maximum(item_prior.probabilities(coefficients), 1e-300)
        joint = (joint / joint.sum(axis=1, keepdims=True)) @ lattice
        mean += joint
        _draw_into(truths[k * each : (k + 1) * each], joint, rng)
        if progress is not None:
            progress((k + 1) / len(drawn.coefficients))
    notes: tuple[str, ...] = ()
    if drawn.effective < 100:
        notes = (
            f"The votes say so little that draws are worth {drawn.effective:.0f} independent ones: take the intervals "
            "as rough, get more votes, or vet some items.",
        )
    return TruthDraws(
        truths, mean / len(drawn.coefficients), {"effective_draws": min(drawn.effective, n_draws)}, not notes, notes
    )


def _draw_into(truths: Codes, posterior: Floats, rng: np.random.Generator) -> None:
    """Fill rows with draws from the same probabilities."""
    upto = np.cumsum(posterior[:, :-1], axis=1).astype(np.float32)
    uniform = np.empty(len(posterior), dtype=np.float32)
    for row in truths:
        rng.random(out=uniform, dtype=np.float32)
        np.greater_equal(uniform, upto[:, 0], out=row, casting="unsafe")
        for y in range(1, upto.shape[1]):
            row += uniform >= upto[:, y]


def _with_gold(log_likelihood: Floats, labels: Labels) -> Floats:
    known = np.flatnonzero(labels.gold_codes >= 0)
    table = np.array(log_likelihood, dtype=float)
    table[known] = -np.inf
    table[known, labels.gold_codes[known]] = 0.0
    return table


def _small(truths: npt.NDArray[np.int16], n_classes: int) -> Codes:
    return truths.astype(np.int8) if n_classes <= 127 else truths


def settle_noise(noise: NoiseModel, labels: Labels, *, draw: bool) -> NoiseModel:
    """The model as an engine takes it; what was passed is never changed.

    Parameters
    ----------
    noise : NoiseModel
        As a user named or made it.
    labels : Labels
    draw : bool
        Whether the engine draws the parameters of a model together with the truth, where the model can be drawn.

    Returns
    -------
    NoiseModel
        A known model as it is; one that will be drawn not fitted, even if it came fitted, since its matrices are no
        more known than those of a name; any other fitted to the votes.
    """
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
    used: Used,
    in_votes: Booleans | None = None,
    n_draws: int = 2000,
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> TruthDraws:
    """Draw the truth of all items from p(truth | votes, what the systems say).

    Parameters
    ----------
    labels : Labels
    noise : NoiseModel
        As `settle_noise` gives it.
    outputs : AlignedPredictions
    used : {"classes", "scores", "probabilities"}
        Which of the outputs the metric looks at.
    in_votes : boolean array of shape (n_systems,), optional
        Systems that are labelers whose very votes are in the labels: these are in the evidence already.
    n_draws, random_state, progress, **sampling
        As for `draw_truths`.
    """
    prior = None
    if in_votes is None or not in_votes.all():
        others = outputs if in_votes is None else outputs.of_systems(~in_votes)
        prior = system_prior(others, labels.n_classes, used=used)
    return draw_truths(
        labels, noise, item_prior=prior, n_draws=n_draws, random_state=random_state, progress=progress, **sampling
    )


def solve_bayes(
    labels: Labels,
    predictions: npt.ArrayLike,
    *,
    noise: NoiseModel,
    target: Target = "sample",
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **options: Any,
) -> Solution:
    """The posterior of the confusion counts of one system: by draws where the noise is drawn too, else exact.

    Parameters
    ----------
    labels : Labels
    predictions : integer array of shape (n_items,)
        Codes of the predicted classes, -1 for none.
    noise : NoiseModel
        As `settle_noise` gives it.
    target : {"sample", "population"}
    **options
        Those of `trueup.noise.sample`, or of `trueup.estimators.bayes` where the noise is known or taken as known.
    """
    drawn = is_drawn(noise)
    kind = "learned noise" if drawn else "noise that is given or fitted"
    taken = ("random_state", "target", "progress", "raters", "item_prior", "warn")
    check_options(options, sample if drawn else bayes, name=f"method='bayes' with {kind}", taken=taken)
    if drawn:
        return bayes_learned(
            labels,
            predictions,
            model=noise,
            target=target,
            random_state=random_state,
            progress=progress,
            **options,
        )
    problem = Problem(predictions, noise.log_likelihood(labels), noise.prior_, labels.gold_codes)
    return bayes(problem, target=target, random_state=random_state, **options)


def bayes_learned(
    labels: Labels,
    predictions: npt.ArrayLike,
    *,
    model: str | NoiseModel = DEFAULT_NOISE,
    target: Target = "sample",
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> Solution:
    """The posterior of the confusion counts when the noise is learned from the same votes.

    The classifier is a rater whose matrix is unknown like everyone's. Each draw holds a truth for every item, the
    class shares and all matrices, so the interval carries the uncertainty of the noise too. With "clusters" the
    classifier shares those of the labelers: its errors may depend on theirs.

    Parameters
    ----------
    labels : Labels
    predictions : integer array of shape (n_items,)
        Codes of the predicted classes, -1 for none.
    model, **sampling
        See `trueup.noise.sample`.
    target : {"sample", "population"}
        The confusion counts on these items, or the rates P(class) · P(prediction | class) behind them.
    """
    check_choice(target, ("sample", "population"), name="target")
    rng = as_generator(random_state)
    draws = sample(labels, model, raters=predictions, random_state=rng, progress=progress, warn=False, **sampling)
    n_classes = labels.n_classes
    notes = () if draws.converged else (not_mixed(draws),)
    if target == "sample":
        counts: CountsPosterior = DrawnCounts(
            draws.rater_counts[:, 0, :, :n_classes], truths=partial(_choose_truths, draws.truths)
        )
    else:
        counts = DrawnRates(draws.prior[:, :, None] * draws.rater_confusion[:, 0, :, :n_classes])
    return Solution(
        counts=counts,
        confusion=draws.rater_confusion[:, 0, :, :n_classes].mean(axis=0),
        n_iter=draws.n_draws,
        converged=draws.converged,
        diagnostics={
            "r_hat": draws.rhat,
            "effective_draws": draws.ess,
            "least_prior": float(draws.prior.mean(0).min()),
        },
        notes=notes,
        truth=draws.posterior,
    )


def _choose_truths(kept: Codes, n: int, rng: np.random.Generator) -> Codes:
    """Some of the draws that the chains kept: all different where there are enough."""
    order = rng.permutation(len(kept))[:n] if n <= len(kept) else rng.integers(len(kept), size=n)
    return kept[order]
