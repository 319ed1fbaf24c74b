"""Bayesian draws: truth, prior and matrices together.

The sampler works on the same sparse vote matrix as EM. Raters beyond the labelers (the predictions of a classifier)
are more columns of it, so evaluating a classifier is asking for the matrix of one more rater.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trueup._base.duration import LongWork
from trueup._base.engines import OF_ONE_PROCESSOR, choose_engine, for_threads, using_engine
from trueup._base.optional import install_command, is_installed
from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.labels import Labels
from trueup.data.votes import shared_votes, votes_with_raters
from trueup.exceptions import ConvergenceWarning, InvalidPredictions
from trueup.noise.base import NoiseModel, check_matrices_fit
from trueup.noise.chain import Chain, SamplingProblem
from trueup.noise.convergence import effective_draws, rhat
from trueup.noise.registry import resolve
from trueup.noise.system_outputs import SystemOutputs

_MOST_MONITORED = 8  # systems whose accuracies tell whether chains agree


@dataclass(frozen=True)
class PosteriorDraws:
    """Draws from the posterior; the first axis of each array runs over draws, chain after chain.

    Attributes
    ----------
    prior : array of shape (n_draws, n_classes)
        P(class).
    labeler_accuracy : array of shape (n_draws, n_labelers)
        The share of a labeler's votes that name the drawn truth; NaN for a labeler without votes.
    rater_counts : array of shape (n_draws, n_raters, n_classes, n_answers)
        How often each extra rater gave each answer to items of each drawn class: its confusion counts on this sample.
    rater_confusion : array of shape (n_draws, n_raters, n_classes, n_answers)
        The extra raters' matrices P(answer | class).
    posterior : array of shape (n_items, n_classes)
        P(class) of each item: the mean of its chances given the parameters of each draw.
    truths : array of shape (n_kept, n_items)
        Some of the drawn truths, evenly spaced over the draws at positions `truth_draws`.
    log_likelihood : array of shape (n_draws,)
    n_chains : int
    rhat, ess : float
        The worst R-hat and the least effective number of draws among prior, raters' accuracies and log-likelihood.
    """

    prior: Floats
    labeler_accuracy: Floats
    rater_counts: Floats
    rater_confusion: Floats
    posterior: Floats
    truths: npt.NDArray[np.int16] = field(repr=False)
    truth_draws: npt.NDArray[np.int64] = field(repr=False)
    log_likelihood: Floats
    n_chains: int
    rhat: float
    ess: float

    @property
    def n_draws(self) -> int:
        """Number of draws of all chains."""
        return len(self.prior)

    @property
    def converged(self) -> bool:
        """Whether chains agree (R-hat at most 1.05) and are worth 100 draws."""
        return self.rhat <= 1.05 and self.ess >= 100


def sample(
    labels: Labels,
    model: str | NoiseModel = "dawid-skene",
    *,
    raters: npt.ArrayLike | None = None,
    outputs: SystemOutputs | None = None,
    one_witness: bool = False,
    n_chains: int = 4,
    n_warmup: int = 1000,
    n_draws: int = 2000,
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    engine: str | None = None,
    warn: bool = True,
) -> PosteriorDraws:
    """Draw truth, prior and matrices from their joint posterior by Gibbs sampling.

    Parameters
    ----------
    labels : Labels
    model : str or NoiseModel
        A model that can be drawn, by name ("dawid-skene", "one-coin", "ordinal", or one that was registered with
        samplers of its own) or as an object, whose parameters count and whose fit does not.
    raters : array of shape (n_raters, n_items) or (n_items,), optional
        Codes of the classes that extra raters gave, -1 for none; they are taken for more labelers.
    outputs : SystemOutputs, optional
        What systems say of the items, as answers with rows of their own in each state: they may err with the labelers,
        and say nothing of what labelers are like.
    one_witness : bool
        Whether several votes of a labeler on an item count for one together; by default each counts.
    n_chains, n_warmup, n_draws : int
        Chains start from dispersed guesses of the truth; the warm-up is thrown away; `n_draws` is for each chain.
    progress : callable, optional
        Called with the share of the work done.
    engine : {"scipy", "numba"}, optional
        "numba" compiles the loops of the sampler, "scipy" has Python run them, some fifty times as slowly: by default
        only where numba is not installed.
    """
    if engine is not None:
        choose_engine(engine, offers=OF_ONE_PROCESSOR, purpose="noise.sample")
    check_integer(n_chains, name="n_chains", low=1)
    check_integer(n_warmup, name="n_warmup", low=0)
    check_integer(n_draws, name="n_draws", low=4)
    check_matrices_fit(labels.n_labelers, labels.n_classes, labels.n_answers)
    codes = _rater_codes(raters, labels)
    systems = SystemOutputs.none(labels.n_items) if outputs is None else outputs.informative()
    votes = votes_with_raters(shared_votes(labels) if one_witness else labels.votes, codes, labels.n_answers)
    problem = SamplingProblem(labels, votes, len(codes), systems)
    drawn_model = resolve(model)
    samplers = drawn_model.samplers(labels, problem.n_all, n_chains)
    seeds = as_generator(random_state).spawn(n_chains)
    done = np.zeros(n_chains)
    slowly = "" if is_installed("numba") else f" without numba, which is slow: {install_command('numba')}"
    tell = LongWork(f"drawing the truth of {labels.n_items:,} items{slowly}") if progress is None else progress

    def run(chain: int) -> Chain:
        def report(share: float) -> None:
            done[chain] = share
            tell(float(done.mean()))

        of_chain = Chain(problem, samplers[chain], chain, n_draws, n_chains)
        of_chain.run(n_warmup, seeds[chain], report)
        return of_chain

    with using_engine(engine):
        if n_chains == 1:
            chains = [run(0)]
        else:
            with ThreadPoolExecutor(min(n_chains, os.cpu_count() or 1)) as pool:
                chains = list(pool.map(for_threads(run), range(n_chains)))
    draws = _joined(chains, problem)
    if warn and not draws.converged:
        warnings.warn(
            f"the chains of {drawn_model!r} have not mixed (R-hat {draws.rhat:.2f}, {draws.ess:.0f} effective draws); "
            "raise `n_draws`, or take it that the votes admit several readings of the truth and vet some items",
            ConvergenceWarning,
            stacklevel=2,
        )
    return draws


def _rater_codes(raters: npt.ArrayLike | None, labels: Labels) -> Codes:
    if raters is None:
        return np.empty((0, labels.n_items), dtype=np.int32)
    codes = np.atleast_2d(np.asarray(raters, dtype=np.int32))
    if codes.shape[1] != labels.n_items:
        raise InvalidPredictions(f"raters must have one code for each of {labels.n_items} items, got {codes.shape[1]}")
    if codes.max(initial=-1) >= labels.n_classes or codes.min(initial=-1) < -1:
        raise InvalidPredictions(f"raters must be codes from -1 to {labels.n_classes - 1}, got others")
    return codes


def _joined(chains: list[Chain], problem: SamplingProblem) -> PosteriorDraws:
    chances = np.sum([c.chances for c in chains], axis=0)
    monitored = _monitored(chains, problem)
    n_draws = len(chains[0].prior)
    return PosteriorDraws(
        prior=np.concatenate([c.prior for c in chains]),
        labeler_accuracy=np.concatenate([c.accuracy for c in chains]),
        rater_counts=np.concatenate([c.rater_counts for c in chains]),
        rater_confusion=np.concatenate([c.rater_confusion for c in chains]),
        posterior=chances / chances.sum(axis=1, keepdims=True),
        truths=np.concatenate([c.truths for c in chains]),
        truth_draws=np.concatenate([c.truth_draws + k * n_draws for k, c in enumerate(chains)]),
        log_likelihood=np.concatenate([c.log_likelihood for c in chains]),
        n_chains=len(chains),
        rhat=float(np.nanmax([1.0, *[rhat(m) for m in monitored]])),
        ess=float(min(effective_draws(m) for m in monitored)),
    )


def _monitored(chains: list[Chain], problem: SamplingProblem) -> list[Floats]:
    """What convergence is judged by, each of shape (n_chains, n_draws)."""
    n_classes = problem.labels.n_classes
    values = [np.stack([c.prior[:, y] for c in chains]) for y in range(n_classes)]
    for r in range(problem.n_raters):
        counts = np.stack([c.rater_counts[:, r] for c in chains])
        right = np.einsum("ndcc->nd", counts[..., :n_classes])
        values.append(right / np.maximum(counts.sum(axis=(2, 3)), 1))
    for codes in problem.outputs.codes[:_MOST_MONITORED]:
        given = codes >= 0
        if given.any() and codes.max() < n_classes:
            values.append(np.stack([(c.truths[:, given] == codes[given]).mean(axis=1) for c in chains]))
    if not problem.n_raters:
        values.append(np.stack([np.nanmean(c.accuracy, axis=1) for c in chains]))
    return values
