"""The truth and the matrix of one system inferred together, when the noise of the labelers is known or fitted.

The paper's posteriors take the estimated operating point as if it were known, and are too narrow; here it is integrated
out: in closed form for two classes, else by Gibbs sampling of truth and matrix in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np
from scipy.special import gammaln

from trueup._base.types import Codes, Floats, Target
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer
from trueup.estimators.counts import DrawnCounts, DrawnRates, LatticeCounts
from trueup.estimators.problem import TINY, Problem, Solution, class_posterior, truth_sampler
from trueup.noise.kernels import FLOOR
from trueup.noise.sampling import rhat

_TARGETS: tuple[Target, ...] = ("sample", "population")
_MOST_EXACT = 4000  # items up to which the exact law of two counts takes some tenths of a second
_PSEUDO_COUNT = 0.5  # of each cell of K: Jeffreys' prior
_N_CHAINS = 4
_WARMUP = 200
_SWEEPS = 1000  # of each chain, or fewer where there are very many items
_FEWEST_SWEEPS = 60
_WORK = 30_000_000  # items × classes × sweeps of all chains: some three seconds
_SETTLED = 1.05  # R-hat above this means that the chains disagree
_MIXED = 1.01  # from this on the chains go on, since votes that say little mix slowly: at 1.03 spreads are 12% short
_DOUBLINGS = 3
_HELD = 1 << 22  # numbers held at once


def bayes(
    problem: Problem, *, target: Target = "sample", n_draws: int = 16384, random_state: RandomState = None
) -> Solution:
    """The posterior of the counts with the operating point integrated over its posterior.

    The model is Su's (2024, eqs. 7, 10 and 25) with a uniform prior on the operating point of two classes (for more,
    Jeffreys' prior on each row of the classifier's confusion matrix); the paper's 2.6.2 averages over the prior
    instead of the posterior.

    Two classes, up to 4,000 items: exact. Given the truths, the operating point integrates out in closed form, so with
    u true positives of n₁ alarms, v misses of n₀ silences and PB the Poisson-binomial law of the votes alone,
    P(U=u, V=v) ∝ PB₁(u) PB₀(v) B(u+1, v+1) B(n₁−u+1, n₀−v+1). No grid, no draws, no normal approximation. Otherwise
    see `bayes_multiclass`.

    Parameters
    ----------
    target : {"sample", "population"}
        Metrics of these items, or of the population they came from (whose class shares are the prior).
    n_draws : int. Where draws are needed; of truths and matrices at most 4,000, and fewer of very many items.
    """
    check_choice(target, _TARGETS, name="target")
    check_integer(n_draws, name="n_draws", low=1)
    rng = as_generator(random_state)
    if problem.n_classes > 2 or problem.n_predicted > _MOST_EXACT:
        return bayes_multiclass(problem, target=target, n_draws=n_draws, random_state=rng)
    lattice = exact_counts(problem)
    u, v, n1, n0 = lattice.u, lattice.v, lattice.n_positive, lattice.n_negative
    diagnostics = {"exact": 1.0, "n_cells": float(len(lattice.pmf))}
    d_mean = float(lattice.pmf @ ((u + 1) / (u + v + 2)))
    f_mean = float(lattice.pmf @ ((n1 - u + 1) / (n1 + n0 - u - v + 2)))
    confusion = np.array([[1 - f_mean, f_mean], [1 - d_mean, d_mean]])
    if target == "population":
        rates = problem.prior[:, None] * _draw_confusions(lattice, n_draws, rng)
        return Solution(DrawnRates(rates), confusion, diagnostics=diagnostics)
    counts = LatticeCounts(u, v, lattice.pmf, n_positive=n1, n_negative=n0, truths=partial(_truths, problem, lattice))
    return Solution(counts, confusion, diagnostics=diagnostics)


def exact_counts(problem: Problem) -> LatticeCounts:
    """The exact posterior of the counts of two classes, whatever it costs."""
    with np.errstate(divide="ignore"):  # a class may have no chance
        chances = np.log(class_posterior(problem))
    logits = chances[:, 1] - chances[:, 0]
    log_v, log_u = (_log_chances(logits[problem.predictions == code]) for code in (0, 1))
    u, v = np.flatnonzero(np.isfinite(log_u)), np.flatnonzero(np.isfinite(log_v))
    n1, n0 = len(log_u) - 1, len(log_v) - 1
    # log B(u+1, v+1) + log B(n₁−u+1, n₀−v+1), where only the last two terms need both u and v.
    log_u = log_u[u] + gammaln(u + 1) + gammaln(n1 - u + 1)
    log_v = log_v[v] + gammaln(v + 1) + gammaln(n0 - v + 1)
    positives = np.arange(n1 + n0 + 1)
    of_sum = gammaln(positives + 2.0) + gammaln(n0 + n1 - positives + 2.0)
    log_mass = log_u[:, None] + log_v - of_sum[np.add.outer(u, v)]
    mass = np.exp(log_mass - log_mass.max())
    mass /= mass.sum()
    at_u, at_v = np.nonzero(mass > 1e-17)  # probability of a pair of counts that is left out
    kept = mass[at_u, at_v]
    return LatticeCounts(u[at_u], v[at_v], kept / kept.sum(), n_positive=n1, n_negative=n0)


def _log_chances(logits: Floats) -> Floats:
    """Log-probabilities of 0, …, n positives by the items' log-odds, up to a constant."""
    found = np.full(len(logits) + 1, -np.inf)
    found[0] = 0.0
    for k, logit in enumerate(logits[logits != np.inf]):
        found[1 : k + 2] = np.logaddexp(found[1 : k + 2], found[: k + 1] + logit)
    return np.roll(found, int((logits == np.inf).sum()))  # what is shifted out is impossible


def _draw_confusions(lattice: LatticeCounts, n: int, rng: np.random.Generator) -> Floats:
    """Given the counts, p_D and p_FA are independent Beta variables."""
    us, vs = lattice.draw_pairs(n, rng)
    d, f = rng.beta(us + 1, vs + 1), rng.beta(lattice.n_positive - us + 1, lattice.n_negative - vs + 1)
    return np.stack([np.stack([1 - f, f], axis=-1), np.stack([1 - d, d], axis=-1)], axis=-2)


def _truths(problem: Problem, lattice: LatticeCounts, n: int, rng: np.random.Generator) -> Codes:
    return truth_sampler(problem, _draw_confusions(lattice, n, rng))(n, rng)


def bayes_multiclass(
    problem: Problem, *, target: Target = "sample", n_draws: int = 16384, random_state: RandomState = None
) -> Solution:
    """The posterior of the counts for any number of classes, with Jeffreys' prior on the rows of K (Su 2024, eq. 25).

    By Gibbs sampling, in four chains that start from random matrices. They run up to eight times as long if R-hat says
    that they disagree. Rows have Dirichlet(1/2) priors and not uniform ones, which for C classes say that the
    classifier is right once in C times: where votes are weak and items few those pull a good classifier towards chance
    (measured: an accuracy of 0.75, four classes, 400 items with δ uniform: −0.025 and 84% coverage, against −0.006 and
    92.5% with 1/2). The rows of two classes are uniform, as in `bayes`, which has the parameters.
    """
    rng, given = as_generator(random_state), problem.predictions >= 0
    chances = class_posterior(problem)[given]
    pseudo_count = 1.0 if problem.n_classes == 2 else _PSEUDO_COUNT
    counts, confusions, r_hat, n_iter = _draw_tables(chances, problem.predictions[given], pseudo_count, n_draws, rng)
    is_settled = r_hat < _SETTLED
    posterior = DrawnCounts(counts, truths=truth_sampler(problem, confusions))
    return Solution(
        DrawnRates(problem.prior[:, None] * confusions) if target == "population" else posterior,
        confusions.mean(axis=0),
        n_iter=n_iter,
        converged=is_settled,
        diagnostics={"r_hat": r_hat, "exact": 0.0, "n_draws": float(len(counts))},
        notes=() if is_settled else (f"the chains of the sampler disagree (R-hat {r_hat:.2f}); do not trust this",),
    )


def _draw_tables(
    chances: Floats, predictions: Codes, pseudo_count: float, n_draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats, float, int]:
    """Draws of the counts and of K, rows the truth; R-hat; and how many sweeps were made."""
    most = int(np.clip(_WORK // (max(chances.size, 1) * _N_CHAINS), _FEWEST_SWEEPS, _SWEEPS))
    n_sweeps = min(most, -(-n_draws // _N_CHAINS))
    sweeps = draw_sweeps(chances, predictions, pseudo_count, rng)
    n_made = sum(1 for _ in islice(sweeps, min(_WARMUP, n_sweeps)))
    most_doublings = _DOUBLINGS if most > _FEWEST_SWEEPS else 1  # a sweep of very many items takes long
    for doubling in range(most_doublings + 1):  # what was drawn before is a longer warm-up
        thinned = 2**doubling
        drawn = islice(sweeps, 0, n_sweeps * thinned, thinned)
        counts, rows = (np.array(part) for part in zip(*drawn, strict=True))  # (draws, chains, truth, prediction)
        n_made += n_sweeps * thinned
        monitored = [np.trace(counts, axis1=2, axis2=3), *np.moveaxis(np.diagonal(rows, axis1=2, axis2=3), 2, 0)]
        r_hat = float(np.nanmax([1.0, *[rhat(values.T) for values in monitored]])) if n_sweeps > 3 else 1.0
        if r_hat < _MIXED:
            break
    counts, rows = (part.reshape(-1, *part.shape[2:]) for part in (counts, rows))
    return counts, rows, r_hat, n_made


def draw_sweeps(
    chances: Floats, predictions: Codes, pseudo_count: float, rng: np.random.Generator
) -> Iterator[tuple[Floats, Floats]]:
    """Draw truths given K, and K given truths, in turn and without end: counts and K, (chains, classes, classes).

    `chances` is P(class | votes) of each item, shape (n_items, n_classes).
    """
    n_items, n_classes = chances.shape
    of_chain, step = np.arange(_N_CHAINS), max(1, _HELD // (_N_CHAINS * n_classes))
    # Classes come before items and chains, since sums over short last axes are slow.
    by_class = np.ascontiguousarray(chances.T)[:, :, None]
    counts = np.zeros((n_classes, n_classes, _N_CHAINS))  # predictions × truths
    prior = 1.0
    while True:
        gamma = np.maximum(rng.standard_gamma(counts + prior), TINY)
        confusion, prior = np.maximum(gamma / gamma.sum(axis=0), FLOOR), pseudo_count
        counts = np.zeros(counts.shape)
        for low in range(0, n_items, step):
            predicted = predictions[low : low + step]
            upto = (by_class[:, low : low + step] * confusion[predicted].transpose(1, 0, 2)).cumsum(axis=0)
            truth = (rng.random(upto.shape[1:]) * upto[-1] >= upto[:-1]).sum(axis=0)
            cell = (predicted[:, None] * n_classes + truth) * _N_CHAINS + of_chain
            counts += np.bincount(cell.ravel(), minlength=counts.size).reshape(counts.shape)
        yield counts.transpose(2, 1, 0), confusion.transpose(2, 1, 0)
