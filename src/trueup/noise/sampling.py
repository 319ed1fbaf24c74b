"""Bayesian draws: truth, prior and matrices together, and whether chains have mixed."""

from __future__ import annotations

import logging
import math
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.engines import OF_ONE_PROCESSOR, choose_engine, for_threads, using_engine
from trueup._base.optional import install_command, is_installed
from trueup._base.types import Floats
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.labels import Labels
from trueup.data.votes import shared_votes
from trueup.exceptions import ConvergenceWarning
from trueup.noise.base import NoiseModel, check_matrices_fit
from trueup.noise.chain import Chain, SamplingProblem, SystemOutputs
from trueup.noise.registry import resolve


@dataclass(frozen=True)
class PosteriorDraws:
    """Draws from the posterior; the first axis of each array runs over draws, chain after chain."""

    prior: Floats  # (n_draws, n_classes): P(class)
    labeler_accuracy: Floats  # (n_draws, n_labelers): the share of a labeler's votes that name the drawn truth
    posterior: Floats  # (n_items, n_classes): the mean of P(class) given the parameters of each draw
    truths: npt.NDArray[np.int16] = field(repr=False)  # (n_kept, n_items): some of the drawn truths
    truth_draws: npt.NDArray[np.int64] = field(repr=False)  # (n_kept,): which draws these are
    log_likelihood: Floats  # (n_draws,)
    n_chains: int
    rhat: float  # the worst among prior and accuracies
    ess: float  # the least effective number of draws among them

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
    model : str or NoiseModel. A model that can be drawn, by name or as an object, whose parameters count and no fit.
    outputs : SystemOutputs, optional
        What systems say of the items, as answers with rows of their own in each state: they may err with the labelers,
        and say nothing of what labelers are like.
    one_witness : bool. Whether several votes of a labeler on an item count for one together; by default each counts.
    n_chains, n_warmup, n_draws : int. Chains start from dispersed guesses of the truth; `n_draws` is for each chain.
    progress : callable, optional. Called with the share of the work done.
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
    systems = SystemOutputs.none(labels.n_items) if outputs is None else outputs.informative()
    problem = SamplingProblem(labels, shared_votes(labels) if one_witness else labels.votes, systems)
    drawn_model = resolve(model)
    samplers = drawn_model.samplers(labels, labels.n_labelers, n_chains)
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

    with using_engine(engine), ThreadPoolExecutor(min(n_chains, os.cpu_count() or 1)) as pool:
        chains = [run(0)] if n_chains == 1 else list(pool.map(for_threads(run), range(n_chains)))
    draws = _joined(chains, problem)
    if warn and not draws.converged:
        warnings.warn(
            f"the chains of {drawn_model!r} have not mixed (R-hat {draws.rhat:.2f}, {draws.ess:.0f} effective draws); "
            "raise `n_draws`, or take it that the votes admit several readings of the truth and check some items",
            ConvergenceWarning,
            stacklevel=2,
        )
    return draws


def _joined(chains: list[Chain], problem: SamplingProblem) -> PosteriorDraws:
    chances = np.sum([c.chances for c in chains], axis=0)
    n_draws, n_classes = chains[0].prior.shape
    # What convergence is judged by, each of shape (n_chains, n_draws).
    monitored = [np.stack([c.prior[:, y] for c in chains]) for y in range(n_classes)]
    for codes in problem.outputs.codes[:8]:  # systems whose accuracies tell whether chains agree
        given = codes >= 0
        if given.any() and codes.max() < n_classes:
            monitored.append(np.stack([(c.truths[:, given] == codes[given]).mean(axis=1) for c in chains]))
    monitored.append(np.stack([np.nanmean(c.accuracy, axis=1) for c in chains]))
    return PosteriorDraws(
        prior=np.concatenate([c.prior for c in chains]),
        labeler_accuracy=np.concatenate([c.accuracy for c in chains]),
        posterior=chances / chances.sum(axis=1, keepdims=True),
        truths=np.concatenate([c.truths for c in chains]),
        truth_draws=np.concatenate([c.truth_draws + k * n_draws for k, c in enumerate(chains)]),
        log_likelihood=np.concatenate([c.log_likelihood for c in chains]),
        n_chains=len(chains),
        rhat=float(np.nanmax([1.0, *[rhat(m) for m in monitored]])),
        ess=float(min(effective_draws(m) for m in monitored)),
    )


_LONG = 60.0  # seconds
_TRIAL = 2.0  # seconds after which the rest can be estimated
_TRIAL_SHARE = 0.01  # of the work, whose pace is taken
_TRIALS = 3  # such parts

logger = logging.getLogger("trueup")


class LongWork:
    """Listens to progress, and logs once, on the logger "trueup", how long the whole will take if that is long."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.what, self._clock, self._is_told = what, clock, False
        self._marks: list[tuple[float, float]] = []  # when which share was done

    def __call__(self, share: float) -> None:
        """So much of the work is done."""
        now = self._clock()
        if self._is_told or (self._marks and share - self._marks[-1][1] < _TRIAL_SHARE):
            return
        self._marks.append((now, share))
        if len(self._marks) <= _TRIALS or now - self._marks[0][0] < _TRIAL:
            return
        self._is_told = True
        # Compiling, which is done once, falls into some of the parts and says nothing of the pace.
        seconds = min((later - earlier) / (more - less) for (earlier, less), (later, more) in pairwise(self._marks))
        if seconds > _LONG:
            minutes = max(1, math.ceil(seconds * (1 - share) / 60))
            logger.warning("%s will take about %d more minute%s", self.what, minutes, "s" * (minutes > 1))


def rhat(chains: npt.ArrayLike) -> float:
    """Rank-normalised split R-hat of draws of shape (n_chains, n_draws); 1 where chains agree, NaN if all are equal."""
    draws = _split(np.asarray(chains, dtype=float))
    if np.ptp(draws) == 0:
        return float("nan")
    folded = np.abs(draws - np.median(draws))
    return max(_rhat(_normal_scores(draws)), _rhat(_normal_scores(folded)))


def effective_draws(chains: npt.ArrayLike) -> float:
    """Effective sample size of the mean (bulk) of draws of shape (n_chains, n_draws)."""
    draws = _split(np.asarray(chains, dtype=float))
    if np.ptp(draws) == 0:
        return float(draws.size)
    scores = _normal_scores(draws)
    n_chains, n = scores.shape
    centred = scores - scores.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, size, axis=1)[:, :n] / n
    within = covariance[:, 0].mean() * n / (n - 1)
    pooled = within * (n - 1) / n + (scores.mean(axis=1).var(ddof=1) if n_chains > 1 else 0.0)
    rho = 1 - (within - covariance.mean(axis=0)) / pooled
    # Geyer: sums of neighbouring pairs are positive and fall; stop where they do not.
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    stop = np.argmax(pairs < 0) if (pairs < 0).any() else len(pairs)
    tau = -1 + 2 * np.minimum.accumulate(pairs[: max(stop, 1)]).sum()
    total = n_chains * n
    return float(min(total / max(tau, 1 / np.log10(total)), total * np.log10(total)))


def _split(draws: Floats) -> Floats:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: Floats) -> Floats:
    ranks = scipy.stats.rankdata(draws, method="average").reshape(draws.shape)
    return np.asarray(scipy.stats.norm.ppf((ranks - 0.375) / (draws.size + 0.25)))


def _rhat(draws: Floats) -> float:
    n = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean()
    between = n * draws.mean(axis=1).var(ddof=1)
    return float(np.sqrt((within * (n - 1) / n + between / n) / within)) if within > 0 else float("inf")
