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
from scipy import sparse

from trueup._validation import RandomState, as_generator, check_choice, check_integer
from trueup.exceptions import ConvergenceWarning, InvalidPredictions
from trueup.labels import Labels
from trueup.noise.base import Floats
from trueup.noise.chains import Chain, SamplingProblem, run_chain
from trueup.noise.convergence import effective_draws, rhat
from trueup.noise.item_prior import LogLinearPrior
from trueup.noise.samplers import ClusterSampler, DawidSkeneSampler, OneCoinSampler, Sampler

__all__ = ["PosteriorDraws", "sample"]

MODELS = ("one-coin", "dawid-skene", "subtypes")


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
        P(class) of each item: how often it was drawn.
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
    model: str = "dawid-skene",
    *,
    raters: npt.ArrayLike | None = None,
    item_prior: LogLinearPrior | None = None,
    n_chains: int = 4,
    n_warmup: int = 1000,
    n_draws: int = 2000,
    n_extra: int | None = None,
    diagonal: float = 3.0,
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    warn: bool = True,
) -> PosteriorDraws:
    """Draw truth, prior and matrices from their joint posterior by Gibbs sampling.

    Parameters
    ----------
    labels : Labels
    model : {"one-coin", "dawid-skene", "subtypes"}
        See `trueup.noise.samplers`. With "subtypes" every second chain has no extra clusters, so that the draws average
        over whether there are any.
    raters : array of shape (n_raters, n_items) or (n_items,), optional
        Codes of the classes that extra raters gave, -1 for none.
    item_prior : LogLinearPrior, optional
        What else is known of the items; its coefficients are drawn too.
    n_chains, n_warmup, n_draws : int
        Chains start from dispersed guesses of the truth; the warm-up is thrown away; `n_draws` is for each chain.
    n_extra : int, optional
        Extra clusters of "subtypes"; by default as many as classes.
    diagonal : float
        Pseudo-count of the right answer in the Dirichlet priors of "dawid-skene"; the other answers have 1.
    progress : callable, optional
        Called with the share of the work done.
    """
    check_choice(model, MODELS, name="model")
    check_integer(n_chains, name="n_chains", low=1)
    check_integer(n_warmup, name="n_warmup", low=0)
    check_integer(n_draws, name="n_draws", low=4)
    codes = _rater_codes(raters, labels)
    problem = SamplingProblem(labels, _with_raters(labels, codes), len(codes), item_prior)
    seeds = as_generator(random_state).spawn(n_chains)
    done = np.zeros(n_chains)

    def run(chain: int) -> Chain:
        sampler = _make_sampler(model, problem, chain, n_chains, n_extra=n_extra, diagonal=diagonal)

        def report(share: float) -> None:
            done[chain] = share
            if progress is not None:
                progress(float(done.mean()))

        return run_chain(problem, sampler, chain, n_warmup, n_draws, seeds[chain], n_chains, report)

    if n_chains == 1:
        chains = [run(0)]
    else:
        with ThreadPoolExecutor(min(n_chains, os.cpu_count() or 1)) as pool:
            chains = list(pool.map(run, range(n_chains)))
    draws = _joined(chains, problem)
    if warn and not draws.converged:
        warnings.warn(
            f"the chains of {model!r} have not mixed (R-hat {draws.rhat:.2f}, {draws.ess:.0f} effective draws); raise "
            "n_draws, or take it that the votes admit several readings of the truth and vet some items",
            ConvergenceWarning,
            stacklevel=2,
        )
    return draws


def _rater_codes(raters: npt.ArrayLike | None, labels: Labels) -> npt.NDArray[np.int32]:
    if raters is None:
        return np.empty((0, labels.n_items), dtype=np.int32)
    codes = np.atleast_2d(np.asarray(raters, dtype=np.int32))
    if codes.shape[1] != labels.n_items:
        raise InvalidPredictions(f"raters must have one code for each of {labels.n_items} items, got {codes.shape[1]}")
    if codes.max(initial=-1) >= labels.n_classes or codes.min(initial=-1) < -1:
        raise InvalidPredictions(f"raters must be codes from -1 to {labels.n_classes - 1}, got others")
    return codes


def _with_raters(labels: Labels, codes: npt.NDArray[np.int32]) -> sparse.csr_array:
    if not len(codes):
        return labels.votes
    rater, item = np.nonzero(codes >= 0)
    column = rater * labels.n_answers + codes[rater, item]
    extra = sparse.coo_array(
        (np.ones(len(item)), (item, column)), shape=(labels.n_items, len(codes) * labels.n_answers)
    )
    return sparse.csr_array(sparse.hstack([labels.votes, extra], format="csr"))


def _make_sampler(
    model: str, problem: SamplingProblem, chain: int, n_chains: int, *, n_extra: int | None, diagonal: float
) -> Sampler:
    size = (problem.n_all, problem.labels.n_classes, problem.labels.n_answers)
    if model == "one-coin":
        return OneCoinSampler(*size)
    if model == "dawid-skene":
        return DawidSkeneSampler(*size, diagonal=diagonal)
    extra = problem.labels.n_classes if n_extra is None else n_extra
    # Every second chain is without extra clusters: the draws average over whether there are any.
    return ClusterSampler(*size, n_extra=0 if chain % 2 else extra)


def _joined(chains: list[Chain], problem: SamplingProblem) -> PosteriorDraws:
    drawn = np.sum([c.drawn for c in chains], axis=0)
    # Chains with and without extra clusters are draws of two models: each kind must mix by itself.
    kinds = [[c for c in chains if c.n_states == n] for n in sorted({c.n_states for c in chains})]
    monitored = [values for kind in kinds for values in _monitored(kind, problem)]
    n_draws = len(chains[0].prior)
    return PosteriorDraws(
        prior=np.concatenate([c.prior for c in chains]),
        labeler_accuracy=np.concatenate([c.accuracy for c in chains]),
        rater_counts=np.concatenate([c.rater_counts for c in chains]),
        rater_confusion=np.concatenate([c.rater_confusion for c in chains]),
        posterior=drawn / drawn.sum(axis=1, keepdims=True),
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
    if not problem.n_raters:
        values.append(np.stack([np.nanmean(c.accuracy, axis=1) for c in chains]))
    return values
