"""The default for more than two classes: truths and the classifier's confusion matrix drawn together.

Gibbs sampling of (K, y) where that is affordable; for more items an approximation around the most probable K.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from trueup._base.types import Codes, Floats, Target
from trueup._base.validation import RandomState, as_generator
from trueup.estimators.counts import DrawnCounts, DrawnRates, TruthSampler
from trueup.estimators.problem import TINY, Problem, Solution, class_posterior
from trueup.metrics import confusion_counts
from trueup.noise.item_prior import rhat
from trueup.posteriors import poisson_binomial_pmf

_MOST_ENTRIES = 20_000  # rows × classes up to which Gibbs sampling takes some five seconds
_PSEUDO_COUNT = 0.5  # of each cell of K: Jeffreys' prior
_MOST_CLASSES = 50  # the normal approximation inverts a matrix of classes² × classes²
_N_CHAINS = 4
_WARMUP = 200
_SWEEPS = 1000
_SETTLED = 1.05  # R-hat above this means that the chains disagree
_DOUBLINGS = 2
_MOST_WEIGHTED = 20_000  # rows up to which draws of the approximation are weighted by the exact posterior
_WEIGHTED_WORK = 20_000_000  # rows × draws weighted: some three seconds
_TAILS = 12.0  # degrees of freedom of what is drawn from then
_FEWEST = 200.0  # effective draws that weights must leave
_HELD = 1 << 22  # numbers held at once
_MOST_TRUTHS = 1 << 28  # items × draws × classes from which counts are drawn from their normal limit
_MOST_TRIALS = 1 << 16  # trials whose exact law is worth computing


def bayes_multiclass(
    problem: Problem,
    *,
    target: Target = "sample",
    n_draws: int = 16384,
    random_state: RandomState = None,
) -> Solution:
    """The posterior of the counts for any number of classes, with Jeffreys' prior on the rows of K (Su 2024, eq. 25).

    Gibbs sampling is exact but for its chance error and costs items × classes a sweep, so it is used up to 20,000
    such entries (5,000 items of four classes), where items of equal prediction and likelihood count once. Beyond
    that `laplace` is used, importance sampling around the most probable K up to 20,000 rows and a normal
    approximation for more: at 5,000 items of Su's four-class example (Section 5.3) it agrees with Gibbs sampling to
    less than a tenth of a standard deviation, which is also the sampler's own error.

    Rows have Dirichlet(1/2) priors and not uniform ones, which for C classes say that the classifier is right once in
    C times: where votes are weak and items few those pull a good classifier towards chance (measured: an accuracy of
    0.75, four classes, 400 items with δ uniform: −0.025 and 84% coverage, against −0.006 and 92.5% with 1/2).

    Parameters
    ----------
    problem, target, random_state
        As for `bayes`.
    n_draws : int
        Draws of the normal approximation; the other two keep at most 4000.
    """
    rng = as_generator(random_state)
    rows = _group(problem)
    if rows.chances.size <= _MOST_ENTRIES or problem.n_classes > _MOST_CLASSES:
        return gibbs(problem, rows, target=target, rng=rng)
    return laplace(problem, rows, target=target, n_draws=n_draws, rng=rng)


@dataclass(frozen=True, eq=False)
class Rows:
    """Predicted items, those of equal prediction and evidence as one row.

    `chances` is p(votes | y) π(y), scaled for each row and certain where the truth is known; `times` says how many
    items a row stands for, or None if each stands for one.
    """

    chances: Floats
    predictions: Codes
    times: Floats | None

    @property
    def weights(self) -> Floats:
        """How many items each row stands for."""
        return np.ones(len(self.predictions)) if self.times is None else self.times


def _group(problem: Problem) -> Rows:
    counted = np.flatnonzero(problem.predictions >= 0)
    joint = problem.log_likelihood[counted] + np.log(np.maximum(problem.prior, TINY))
    gold = problem.gold[counted]
    known = np.flatnonzero(gold >= 0)
    joint[known] = -np.inf
    joint[known, gold[known]] = 0.0
    predictions = problem.predictions[counted].astype(np.intp)
    chances = np.exp(joint - joint.max(axis=1, keepdims=True, initial=-np.inf))
    # Equal rows have equal random projections, and unequal ones do not (to 53 bits); sorting numbers is quick.
    mark = np.random.default_rng(0).normal(size=problem.n_classes)
    key = chances @ mark + 10 * problem.n_classes * predictions
    _, first, times = np.unique(key, return_index=True, return_counts=True)
    if len(first) > 0.5 * len(key):
        return Rows(chances, predictions, None)
    return Rows(chances[first], predictions[first], times.astype(float))


# ---------------------------------------------------------------------- Gibbs sampling


def gibbs(
    problem: Problem,
    rows: Rows | None = None,
    *,
    target: str = "sample",
    pseudo_count: float = _PSEUDO_COUNT,
    rng: np.random.Generator,
) -> Solution:
    """Draw truths given K and K given truths, in turn, in four chains.

    Chains start from random matrices. They run twice as long, and twice again, if R-hat says that they disagree.
    """
    rows = _group(problem) if rows is None else rows
    n_classes = problem.n_classes
    confusion = rng.dirichlet(np.ones(n_classes), size=(_N_CHAINS, n_classes))
    for _ in range(_WARMUP):
        confusion, _ = _sweep(rows, confusion, pseudo_count, rng)
    matrices: list[Floats] = []
    counts: list[Floats] = []
    for doubling in range(_DOUBLINGS + 1):
        for _ in range(_SWEEPS * 2 ** max(doubling - 1, 0)):
            confusion, drawn = _sweep(rows, confusion, pseudo_count, rng)
            matrices.append(confusion)
            counts.append(drawn)
        accuracy = np.trace(np.array(counts), axis1=-2, axis2=-1)
        diagonal = np.diagonal(np.array(matrices), axis1=-2, axis2=-1)
        r_hat = float(np.nanmax([1.0, rhat(accuracy.T), *[rhat(diagonal[..., y].T) for y in range(n_classes)]]))
        if r_hat < _SETTLED:
            break
    kept = slice(None, None, max(len(counts) // _SWEEPS, 1))
    ks = np.concatenate(matrices[kept])
    notes = () if r_hat < _SETTLED else (f"the chains of the sampler disagree (R-hat {r_hat:.2f}); do not trust this",)
    return Solution(
        _posterior(problem, np.concatenate(counts[kept]), ks, target),
        np.concatenate(matrices).mean(axis=0),
        n_iter=_WARMUP + len(counts),
        converged=r_hat < _SETTLED,
        diagnostics={"r_hat": r_hat, "exact": 1.0, "n_draws": float(len(ks)), "n_rows": float(len(rows.chances))},
        notes=notes,
    )


def _posterior(
    problem: Problem, counts: Floats, confusions: Floats, target: str, weights: Floats | None = None
) -> DrawnCounts:
    if target == "population":
        return DrawnRates(problem.prior[:, None] * confusions, weights)
    return DrawnCounts(counts, weights, truth_sampler(problem, confusions, weights))


def _sweep(rows: Rows, confusion: Floats, pseudo_count: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """One step of all chains: counts of drawn truths given K (chains, C, C), and K given these counts."""
    n_chains, n_classes, _ = confusion.shape
    joint = rows.chances.T * confusion[:, :, rows.predictions]  # chains × classes × rows
    upto = np.cumsum(joint, axis=1)
    if rows.times is None:
        u = rng.random((n_chains, 1, len(rows.predictions))) * upto[:, -1:]
        truth = (u >= upto[:, :-1]).sum(axis=1)
        cell = (np.arange(n_chains)[:, None] * n_classes + truth) * n_classes + rows.predictions
        counted = np.bincount(cell.ravel(), minlength=n_chains * n_classes**2)
        counts = counted.reshape(n_chains, n_classes, n_classes).astype(float)
    else:
        chances = np.moveaxis(joint / upto[:, -1:], 1, 2)
        drawn = rng.multinomial(rows.times.astype(np.int64), chances)
        counts = np.zeros((n_chains, n_classes, n_classes))
        for predicted in range(n_classes):
            counts[:, :, predicted] = drawn[:, rows.predictions == predicted].sum(axis=1)
    gamma = np.maximum(rng.standard_gamma(counts + pseudo_count), TINY)
    return gamma / gamma.sum(axis=2, keepdims=True), counts


# ---------------------------------------------------------------------- normal approximation


def laplace(
    problem: Problem, rows: Rows | None = None, *, target: str = "sample", n_draws: int, rng: np.random.Generator
) -> Solution:
    """Draws of K around its most probable value, and counts given K from their normal law.

    With q_i = p(y | ŷ_i, z_i; K), everything comes from the expected counts m and, for each predicted class, the
    covariance S = Σ (diag q_i − q_i q_iᵀ) of its column of counts: S is also the derivative of m with respect to
    log K, and what the votes leave unknown of the information on K (Louis 1982).

    Up to 20,000 rows, K is drawn from a multivariate t and each draw is weighted by its exact posterior (importance
    sampling), which mends the skewness that rare cells and weak votes leave. With more rows, or where the weights
    would rest on a few draws, K is taken as normal on the scale of its logarithm, and m as linear in it. In Su's
    four-class example with weak votes (δ uniform) that shifts the accuracy by 0.7 standard deviations at 1,500 items,
    0.2 at 5,000 and, as it falls with the root of their number, less than 0.1 where it is used.
    """
    rows = _group(problem) if rows is None else rows
    mode, n_iter, converged = _most_probable(rows, problem.n_classes)
    mean, spread = _column_moments(rows, mode)
    notes = () if converged else (f"the classifier's confusion matrix did not settle in {n_iter} iterations",)
    diagnostics = {"exact": 0.0, "n_rows": float(len(rows.chances))}
    weights: Floats | None = None
    if len(rows.chances) <= _MOST_WEIGHTED:
        n_draws = min(n_draws, max(1000, min(4000, _WEIGHTED_WORK // max(len(rows.chances), 1))))
        log_k, log_q = _draw_log_confusion(mode, mean, spread, n_draws, rng, tails=_TAILS)
        weights, counts = _weigh(rows, log_k, log_q, rng)
        diagnostics["n_effective"] = float(weights.sum() ** 2 / (weights**2).sum())
        if diagnostics["n_effective"] < _FEWEST:
            weights = None
    if weights is None:
        log_k, _ = _draw_log_confusion(mode, mean, spread, n_draws, rng)
        counts = _linear_counts(rows, mode, mean, spread, log_k, rng)
    confusions = np.exp(log_k)
    return Solution(
        _posterior(problem, counts, confusions, target, weights),
        np.average(confusions, axis=0, weights=weights),
        n_iter=n_iter,
        converged=converged,
        diagnostics={**diagnostics, "n_draws": float(n_draws)},
        notes=notes,
    )


def _weigh(rows: Rows, log_k: Floats, log_q: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Importance weights of draws of K, and counts given each."""
    n, n_classes, _ = log_k.shape
    log_p = _PSEUDO_COUNT * log_k.sum(axis=(1, 2))  # the prior, on the scale of the softmax's arguments
    counts = np.zeros(log_k.shape)
    for predicted in range(n_classes):
        mine = rows.predictions == predicted
        a, times = rows.chances[mine], rows.weights[mine]
        pairs = (a[:, :, None] * a[:, None, :]).reshape(len(a), -1).T
        step = max(_HELD // max(len(a), 1), 1)
        for start in range(0, n, step):
            block = slice(start, start + step)
            k = np.exp(log_k[block, :, predicted])
            total = a @ k.T  # rows × draws
            log_p[block] += times @ np.log(total)
            mean = k * (a.T @ (times[:, None] / total)).T
            second = (pairs @ (times[:, None] / total**2)).T.reshape(-1, n_classes, n_classes)
            covariance = np.eye(n_classes) * mean[:, None, :] - second * k[:, :, None] * k[:, None, :]
            values, vectors = np.linalg.eigh(covariance)
            noise = rng.standard_normal(mean.shape) * np.sqrt(np.maximum(values, 0.0))
            drawn = mean + np.einsum("nij,nj->ni", vectors, noise)
            counts[block, :, predicted] = _to_total(drawn, float(times.sum()))
    log_weight = log_p - log_q
    return np.exp(log_weight - log_weight.max()), counts


def _linear_counts(
    rows: Rows, mode: Floats, mean: Floats, spread: Floats, log_k: Floats, rng: np.random.Generator
) -> Floats:
    """Counts given draws of K, whose expectation is taken as linear in log K."""
    counts = np.empty(log_k.shape)
    for predicted, covariance in enumerate(spread):
        moved = (log_k[:, :, predicted] - np.log(mode[:, predicted])) @ covariance
        noise = rng.standard_normal(moved.shape) @ covariance_root(covariance)
        total = float(rows.weights[rows.predictions == predicted].sum())
        counts[:, :, predicted] = _to_total(mean[:, predicted] + moved + noise, total)
    return counts


def _most_probable(rows: Rows, n_classes: int, max_iter: int = 1000, tol: float = 1e-7) -> tuple[Floats, int, bool]:
    """The mode of K's posterior on the scale of its logarithm, by EM; a pseudo-count in each cell."""
    confusion = np.full((n_classes, n_classes), 1 / n_classes)
    for iteration in range(max_iter):
        mean = _expected_counts(rows, _chances(rows, confusion))
        new = (mean + _PSEUDO_COUNT) / (mean.sum(axis=1, keepdims=True) + _PSEUDO_COUNT * n_classes)
        moved = float(np.abs(new - confusion).max())
        confusion = new
        if moved < tol:
            return confusion, iteration + 1, True
    return confusion, max_iter, False


def _chances(rows: Rows, confusion: Floats) -> Floats:
    joint = rows.chances * confusion.T[rows.predictions]
    joint /= joint.sum(axis=1, keepdims=True)
    return joint


def _expected_counts(rows: Rows, chances: Floats) -> Floats:
    n_classes = chances.shape[1]
    weights = chances if rows.times is None else chances * rows.times[:, None]
    columns = [np.bincount(rows.predictions, weights[:, y], n_classes) for y in range(n_classes)]
    return np.array(columns)


def _column_moments(rows: Rows, confusion: Floats) -> tuple[Floats, Floats]:
    """Expected counts (truth × prediction), and for each predicted class the covariance of its column."""
    chances = _chances(rows, confusion)
    mean = _expected_counts(rows, chances)
    spread = np.empty((len(confusion), *confusion.shape))
    for predicted in range(len(confusion)):
        mine = rows.predictions == predicted
        q = chances[mine]
        spread[predicted] = np.diag(mean[:, predicted]) - (q * rows.weights[mine, None]).T @ q
    return mean, spread


def _draw_log_confusion(
    mode: Floats, mean: Floats, spread: Floats, n: int, rng: np.random.Generator, tails: float | None = None
) -> tuple[Floats, Floats]:
    """Draws of log K and their log-density: normal on the scale where each row is a softmax, by observed information.

    With `tails` degrees of freedom, Student's t in place of the normal.
    """
    n_classes = len(mode)
    size = n_classes**2
    information = np.zeros((size, size))
    slope = np.zeros((size, size))  # of log K with respect to the softmax's arguments
    totals = mean.sum(axis=1) + _PSEUDO_COUNT * n_classes
    for y, row in enumerate(mode):
        block = slice(y * n_classes, (y + 1) * n_classes)
        information[block, block] = totals[y] * (np.diag(row) - np.outer(row, row))
        slope[block, block] = np.eye(n_classes) - row
    unknown = np.zeros((size, size))
    for predicted, covariance in enumerate(spread):
        at = np.arange(n_classes) * n_classes + predicted
        unknown[np.ix_(at, at)] = covariance
    information -= slope.T @ unknown @ slope
    values, vectors = np.linalg.eigh(information)
    # Adding a constant to a row changes nothing: those directions have no information and are left alone.
    kept = values > 1e-9 * values[-1]
    z = rng.standard_normal((n, int(kept.sum())))
    log_q = -(z**2).sum(axis=1) / 2
    if tails is not None:
        z /= np.sqrt(rng.chisquare(tails, size=(n, 1)) / tails)
        log_q = -(tails + z.shape[1]) / 2 * np.log1p((z**2).sum(axis=1) / tails)
    steps = z / np.sqrt(values[kept]) @ vectors[:, kept].T
    arguments = np.log(mode) + steps.reshape(n, n_classes, n_classes)
    return np.asarray(arguments - logsumexp(arguments, axis=2, keepdims=True)), np.asarray(log_q)


# ---------------------------------------------------------------------- draws that other methods share


def draw_categories(chances: Floats, n: int, rng: np.random.Generator) -> Codes:
    """`n` draws of a class for each row of `chances` (n_items, n_classes); shape (n, n_items)."""
    n_items, n_classes = chances.shape
    upto = np.cumsum(chances, axis=1)
    upto /= upto[:, -1:]  # so that rounding leaves no remainder
    kind = np.int8 if n_classes < 128 else np.int32
    codes = np.zeros((n, n_items), dtype=kind)
    rows = max(_HELD // max(n_items, 1), 1)
    for start in range(0, n, rows):
        block = codes[start : start + rows]
        u = rng.random(block.shape)
        for c in range(n_classes - 1):
            block += u >= upto[:, c]
    return codes


def draw_confusion(chances: Floats, predictions: Codes, n: int, rng: np.random.Generator) -> Floats:
    """`n` draws of the confusion counts; items without a prediction (-1) are left out.

    Truths are drawn and counted. Where that would be more than 2²⁸ numbers, counts are drawn from the multivariate
    normal law of a sum of so many independent items.
    """
    n_classes = chances.shape[1]
    counted = predictions >= 0
    chances, predictions = chances[counted], predictions[counted]
    if n * chances.size > _MOST_TRUTHS:
        return _normal_confusion(chances, predictions, n, rng)
    counts = np.empty((n, n_classes, n_classes))
    rows = max(_HELD // max(len(predictions), 1), 1)
    for start in range(0, n, rows):
        some = min(rows, n - start)
        counts[start : start + some] = confusion_counts(draw_categories(chances, some, rng), predictions, n_classes)
    return counts


def _normal_confusion(chances: Floats, predictions: Codes, n: int, rng: np.random.Generator) -> Floats:
    n_classes = chances.shape[1]
    counts = np.zeros((n, n_classes, n_classes))
    for predicted in range(n_classes):
        mine = chances[predictions == predicted]
        mean = mine.sum(axis=0)
        draws = mean + rng.standard_normal((n, n_classes)) @ covariance_root(np.diag(mean) - mine.T @ mine)
        counts[:, :, predicted] = _to_total(draws, float(len(mine)))
    return counts


def covariance_root(covariance: Floats) -> Floats:
    """A matrix R with RᵀR = covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)


def _to_total(counts: Floats, total: float) -> Floats:
    """Counts of shape (n, k) made not negative and to sum to `total`."""
    kept = np.maximum(counts, 0.0)
    sums = kept.sum(axis=1, keepdims=True)
    return np.asarray(kept * np.divide(total, sums, out=np.zeros_like(sums), where=sums > 0))


def draw_successes(chances: Floats, n: int, rng: np.random.Generator) -> Floats:
    """`n` draws of the number of successes in independent trials: exact, or normal for more than 65536 trials."""
    if len(chances) <= _MOST_TRIALS:
        upto = np.cumsum(poisson_binomial_pmf(chances))
        return np.minimum(np.searchsorted(upto, rng.random(n), side="right"), len(chances)).astype(float)
    mean, sd = chances.sum(), np.sqrt((chances * (1 - chances)).sum())
    return np.clip(np.rint(rng.normal(mean, sd, n)), 0, len(chances))


def stratified(n: int, rng: np.random.Generator) -> Floats:
    """`n` uniform numbers in random order, one in each n-th of (0, 1): far more even than independent ones."""
    return np.asarray((rng.permutation(n) + rng.random(n)) / n)


def truth_sampler(problem: Problem, confusions: npt.ArrayLike, weights: npt.NDArray[Any] | None = None) -> TruthSampler:
    """A function that draws the truth of all items: first the operating point, then each item's class."""
    points = np.asarray(confusions, dtype=float).reshape(-1, problem.n_classes, problem.n_classes)
    p = None if weights is None else weights / weights.sum()
    return partial(_draw_truths_at, problem, points, p)


def _draw_truths_at(
    problem: Problem, points: Floats, chances: Floats | None, n: int, rng: np.random.Generator
) -> Codes:
    """Choose among operating points by their chances, then draw each item's class; a partial of this can be pickled."""
    chosen = rng.choice(len(points), size=n, p=chances)
    codes = np.empty((n, problem.n_items), dtype=np.int8 if problem.n_classes < 128 else np.int32)
    for point in np.unique(chosen):
        rows = np.flatnonzero(chosen == point)
        codes[rows] = draw_categories(class_posterior(problem, points[point]), len(rows), rng)
    return codes
