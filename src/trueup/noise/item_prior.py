"""What is known of an item's class besides its votes: a log-linear prior with unknown coefficients.

Models here never see predictions. But whoever has them, or any other description of the items, can say that
P(class y | item i) ∝ exp(features[i, y] · w). The coefficients are unknown too: they are drawn together with the truth,
so that nothing is taken from the features that the votes do not bear out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import log_expit, logsumexp

from trueup._base.types import Codes, Floats
from trueup._base.validation import preview
from trueup.exceptions import InvalidParameter

# ------------------ Have chains of draws mixed, and how many independent draws are they worth?


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


_NEWTON_STEPS = 30
_SETTLED = 1e-3  # rise of the log-posterior in a step
_PROPOSAL_FREEDOM = 6.0  # degrees of freedom of the proposal: heavier tails than any posterior here
_MOST_EVALUATIONS = 40_000_000  # item-classes × candidates that importance weights may cost
_CANDIDATES = 4000
_BLOCK = 4_000_000  # numbers held at once
_FEW_ROWS = 100  # rows of features so few that the items of each are taken together
_TINY = 1e-300
_ENOUGH = 0.25  # effective draws over draws, below which candidates are walked on from
_WALKERS = 100
_LEAST_STEPS = 8  # of each walker that are kept
_SETTLING = 20  # steps of each walker that are thrown away
_WALK_SPREAD = 1.2  # of the normal law of the walk over that of the mode: posteriors here have a long side


@dataclass(frozen=True)
class CoefficientDraws:
    """Draws of the coefficients given votes whose noise is known."""

    coefficients: Floats  # (n_draws, n_features)
    effective: float


class CoefficientState(NamedTuple):
    """Where a chain stands: the drawn coefficients, and the mode they were drawn around, to start the next search."""

    coefficients: Floats
    mode: Floats


class LogLinearPrior:
    r"""P(class | features) of each item, a multinomial logistic model.

    .. math:: P(y_i = y) \propto \exp\Bigl(\sum_f x_{iyf} w_f\Bigr), \qquad w_f \sim N(0, \sigma_f^2)

    Being conditional on the features, it does not care how these depend on each other: ten copies of one feature say
    no more than one.
    """

    def __init__(self, features: npt.ArrayLike, scale: npt.ArrayLike) -> None:
        table, spread = np.asarray(features, dtype=float), np.asarray(scale, dtype=float)
        if table.ndim != 3 or not np.isfinite(table).all():
            raise InvalidParameter(f"features must be finite, items × classes × features, got shape {table.shape}")
        if spread.shape != table.shape[2:] or not (spread > 0).all():
            raise InvalidParameter(f"scale must be a positive number for each feature, got {preview(spread)}")
        self.n_items, self.n_classes, self.n_features = table.shape
        self.precision = spread**-2.0
        # Items with the same features are one row: hard predictions leave few different ones.
        flat = np.ascontiguousarray(table.reshape(self.n_items, -1))
        _, first, inverse = np.unique(
            flat.view([("", flat.dtype)] * flat.shape[1]).ravel(), return_index=True, return_inverse=True
        )
        self._row_of: npt.NDArray[np.int64] | None = None
        self._rows = table
        if 2 * len(first) < self.n_items:
            self._row_of, self._rows = inverse.ravel().astype(np.int64), table[first]
        # Features relative to the first class: one class less to compute with.
        self._rows = np.ascontiguousarray(self._rows - self._rows[:, :1])

    def over_states(self, lattice: Floats) -> LogLinearPrior:
        """The prior of states that are mixtures of classes: a state has the features of its classes, mixed alike."""
        rows = self._rows if self._row_of is None else self._rows[self._row_of]
        return LogLinearPrior(np.matmul(lattice, rows), self.precision**-0.5)

    # ------------------------------------------------------------------ given the truth

    def probabilities(self, coefficients: Floats) -> Floats:
        """P(class) of each item, shape (n_items, n_classes)."""
        p = np.exp(self._log_rows(coefficients))
        return p if self._row_of is None else p[self._row_of]

    def start(self) -> CoefficientState:
        """Coefficients that say nothing."""
        return CoefficientState(np.zeros(self.n_features), np.zeros(self.n_features))

    def redraw(self, state: CoefficientState, truth: Codes, rng: np.random.Generator) -> CoefficientState:
        """A draw of the coefficients given the truth of all items, by an independence step from the Laplace law."""
        counts = self._counts(truth)
        mode, factor = self._mode(counts, state.mode)
        step = solve_triangular(factor, rng.standard_normal((self.n_features, 1)), lower=True, trans="T")[:, 0]
        proposed = mode + step
        # Both the old and the new coefficients are weighed by posterior over proposal density.
        old = factor.T @ (state.coefficients - mode)
        new = factor.T @ step
        change = self._log_posterior(counts, proposed) - self._log_posterior(counts, state.coefficients)
        change += 0.5 * float(new @ new - old @ old)
        accepted = np.log(max(rng.random(), 1e-300)) < change
        return CoefficientState(proposed if accepted else state.coefficients, mode)

    def _log_rows(self, coefficients: Floats) -> Floats:
        if self.n_classes == 2:
            odds = self._rows[:, 1] @ coefficients
            return np.stack([log_expit(-odds), log_expit(odds)], axis=1)
        logits = self._rows @ coefficients
        logits -= logits.max(axis=1, keepdims=True)
        return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))

    def _counts(self, truth: Codes) -> Floats:
        if self._row_of is None:
            return np.eye(self.n_classes)[truth]
        cell = self._row_of * self.n_classes + truth
        return np.bincount(cell, minlength=len(self._rows) * self.n_classes).reshape(-1, self.n_classes).astype(float)

    def _log_posterior(self, counts: Floats, coefficients: Floats) -> float:
        fit = float((counts * self._log_rows(coefficients)).sum())
        return fit - 0.5 * float(self.precision @ coefficients**2)

    def _mode(self, counts: Floats, start: Floats) -> tuple[Floats, Floats]:
        """The mode given counts (rows, classes), and the lower Cholesky factor of the information there."""
        w = start.copy()
        total = counts.sum(axis=1)
        value = self._log_posterior(counts, w)
        for _ in range(_NEWTON_STEPS):
            p = np.exp(self._log_rows(w))
            factor = np.asarray(np.linalg.cholesky(self._information(p, total)))
            step = cho_solve((factor, True), self._gradient(counts, total, p, w))
            w, value, moved = self._uphill(counts, w, step, value)
            if moved < _SETTLED:
                break
        return w, factor

    def _gradient(self, counts: Floats, total: Floats, p: Floats, coefficients: Floats) -> Floats:
        surplus = (counts - total[:, None] * p).ravel()
        if self.n_classes == 2:
            return np.asarray(surplus[1::2] @ self._rows[:, 1] - self.precision * coefficients)
        return np.asarray(surplus @ self._rows.reshape(-1, self.n_features) - self.precision * coefficients)

    def _uphill(self, counts: Floats, w: Floats, step: Floats, value: float) -> tuple[Floats, float, float]:
        """A step along a direction, halved until it does not lead down; also by how much the objective rose."""
        for _ in range(30):
            new = self._log_posterior(counts, w + step)
            if new >= value - 1e-12 * abs(value):
                return w + step, new, new - value
            step = step / 2
        return w, value, 0.0

    def _information(self, p: Floats, total: Floats) -> Floats:
        """Minus the second derivative of the log-posterior given the truth."""
        if self.n_classes == 2:
            x = self._rows[:, 1]
            found = x.T @ (x * (total * p[:, 1] * p[:, 0])[:, None])
        else:
            flat = self._rows.reshape(-1, self.n_features)
            mean = np.matmul(p[:, None, :], self._rows)[:, 0]
            found = flat.T @ (flat * (total[:, None] * p).reshape(-1, 1)) - mean.T @ (mean * total[:, None])
        return np.asarray(found + np.diag(self.precision))

    # ------------------------------------------------------------------ given votes whose noise is known

    def draws_given_votes(self, log_likelihood: Floats, n_draws: int, rng: np.random.Generator) -> CoefficientDraws:
        """Draws of the coefficients with the truth of all items summed out.

        Candidates come from a Student law around the mode and are kept in proportion to posterior over proposal. Where
        few of them are any good, short chains go on from these. Where all that would cost too much there are so many
        items that the normal law around the mode is the posterior.
        """
        mode, factor = self._marginal_mode(log_likelihood)
        if log_likelihood.size * _CANDIDATES > _MOST_EVALUATIONS:
            normal = rng.standard_normal((self.n_features, n_draws))
            return CoefficientDraws(mode + solve_triangular(factor, normal, lower=True, trans="T").T, np.inf)
        nu = _PROPOSAL_FREEDOM
        tail = np.sqrt(nu / rng.chisquare(nu, _CANDIDATES))
        standard = (rng.standard_normal((self.n_features, _CANDIDATES)) * tail).T
        log_proposal = -0.5 * (nu + self.n_features) * np.log1p((standard**2).sum(axis=1) / nu)
        log_weight = self._log_target(log_likelihood, standard, mode, factor) - log_proposal
        weight = np.exp(log_weight - logsumexp(log_weight))
        effective = float(1 / (weight**2).sum())
        if effective < _ENOUGH * n_draws:
            start = standard[rng.choice(_CANDIDATES, size=_WALKERS, p=weight)]
            standard, effective = self._walk(log_likelihood, start, mode, factor, n_draws, rng)
        else:
            standard = standard[rng.choice(_CANDIDATES, size=n_draws, p=weight)]
        return CoefficientDraws(mode + solve_triangular(factor, standard.T, lower=True, trans="T").T, effective)

    def _walk(
        self,
        log_likelihood: Floats,
        start: Floats,
        mode: Floats,
        factor: Floats,
        n_draws: int,
        rng: np.random.Generator,
    ) -> tuple[Floats, float]:
        """Draws by many short chains of elliptical slices, and how many independent ones they are worth.

        In tens of dimensions next to no candidate is a good one. A slice along an ellipse of the normal law around the
        mode needs no tuning and is exact however far the posterior is from that law (Murray, Adams and MacKay 2010;
        Nishihara, Murray and Adams 2014).
        """
        at = start
        n_steps = max(_LEAST_STEPS, -(-n_draws // len(at)))
        kept, heights = np.empty((n_steps, *at.shape)), np.empty((n_steps, len(at)))

        def excess(points: Floats) -> tuple[Floats, Floats]:
            height = self._log_target(log_likelihood, points, mode, factor)
            return height, height + 0.5 * (points**2).sum(axis=1) / _WALK_SPREAD**2

        height, value = excess(at)
        for step in range(-_SETTLING, n_steps):
            across = _WALK_SPREAD * rng.standard_normal(at.shape)
            level = value - rng.standard_exponential(len(at))
            angle = rng.uniform(0, 2 * np.pi, len(at))
            low, high = angle - 2 * np.pi, angle.copy()
            moving = np.arange(len(at))
            new = at.copy()
            while len(moving):
                turn = angle[moving, None]
                points = at[moving] * np.cos(turn) + across[moving] * np.sin(turn)
                heights_there, values = excess(points)
                done = values > level[moving]
                arrived = moving[done]
                new[arrived], height[arrived], value[arrived] = points[done], heights_there[done], values[done]
                moving = moving[~done]
                below = angle[moving] < 0
                low[moving] = np.where(below, angle[moving], low[moving])
                high[moving] = np.where(below, high[moving], angle[moving])
                angle[moving] = rng.uniform(low[moving], high[moving])
            at = new
            if step >= 0:
                kept[step], heights[step] = at, height
        return kept.reshape(-1, self.n_features)[-n_draws:], effective_draws(heights.T)

    def _log_target(self, log_likelihood: Floats, standard: Floats, mode: Floats, factor: Floats) -> Floats:
        """The log-posterior of many coefficients (n, n_features), given in units of the normal law around the mode."""
        found = mode + solve_triangular(factor, standard.T, lower=True, trans="T").T
        rows = max(1, _BLOCK // log_likelihood.size)
        return np.concatenate(
            [self._marginals(log_likelihood, found[k : k + rows]) for k in range(0, len(found), rows)]
        )

    def _marginals(self, log_likelihood: Floats, coefficients: Floats) -> Floats:
        """Log-posteriors of many coefficients, shape (n, n_features), with the truth summed out."""
        if self.n_classes > 2:
            return self._marginals_of_many_classes(log_likelihood, coefficients)
        odds = coefficients @ self._rows[:, 1].T
        of_items = odds if self._row_of is None else odds[:, self._row_of]
        none = np.logaddexp(0.0, odds)
        total = (
            none.sum(axis=1) if self._row_of is None else none @ np.bincount(self._row_of, minlength=len(self._rows))
        )
        fit = np.logaddexp(log_likelihood[:, 0], log_likelihood[:, 1] + of_items).sum(axis=1) - total
        return np.asarray(fit - 0.5 * coefficients**2 @ self.precision)

    def _marginals_of_many_classes(self, log_likelihood: Floats, coefficients: Floats) -> Floats:
        top = log_likelihood.max(axis=1)
        weight = np.exp(log_likelihood - top[:, None])  # once for all coefficients; the rest is products of matrices
        logits = np.tensordot(coefficients, self._rows, axes=(1, 2))
        prior = np.exp(logits - logits.max(axis=2, keepdims=True))
        prior /= prior.sum(axis=2, keepdims=True)
        if self._row_of is None or len(self._rows) > _FEW_ROWS:
            of_items = prior if self._row_of is None else prior[:, self._row_of]
            mixed = np.einsum("nic,ic->ni", of_items, weight)
            fit = np.log(np.maximum(mixed, _TINY)).sum(axis=1)
        else:
            order = np.argsort(self._row_of, kind="stable")
            ends = np.cumsum(np.bincount(self._row_of, minlength=len(self._rows)))
            fit = np.zeros(len(coefficients))
            for row, items in enumerate(np.split(order, ends[:-1])):
                fit += np.log(np.maximum(prior[:, row] @ weight[items].T, _TINY)).sum(axis=1)
        return np.asarray(fit + top.sum() - 0.5 * coefficients**2 @ self.precision)

    def _marginal(self, log_likelihood: Floats, coefficients: Floats) -> float:
        log_prior = self._log_rows(coefficients)
        joint = log_likelihood + (log_prior if self._row_of is None else log_prior[self._row_of])
        top = joint.max(axis=1)
        fit = float((np.log(np.exp(joint - top[:, None]).sum(axis=1)) + top).sum())
        return fit - 0.5 * float(self.precision @ coefficients**2)

    def _marginal_mode(self, log_likelihood: Floats) -> tuple[Floats, Floats]:
        """The mode of the marginal posterior by Newton steps, and the factor of the observed information."""
        w = np.zeros(self.n_features)
        value = self._marginal(log_likelihood, w)
        factor = np.diag(np.sqrt(self.precision))
        for _ in range(_NEWTON_STEPS * 4):
            responsibility = self._responsibilities(log_likelihood, w)
            counts = self._summed(responsibility)
            p, total = np.exp(self._log_rows(w)), counts.sum(axis=1)
            gradient = self._gradient(counts, total, p, w)
            complete = self._information(p, total)
            factor = _factor(complete - self._missing_information(responsibility), floor=self.precision.min())
            w, new = self._better(
                log_likelihood, w, value, gradient, (factor, np.asarray(np.linalg.cholesky(complete)))
            )
            if new - value < 1e-7:
                break
            value = new
        return w, factor

    def _better(
        self, log_likelihood: Floats, w: Floats, value: float, gradient: Floats, factors: tuple[Floats, Floats]
    ) -> tuple[Floats, float]:
        """A Newton step, and if that leads down a step of EM, which never does if it is short enough."""
        for factor in factors:
            step = cho_solve((factor, True), gradient)
            for shrink in (1.0, 0.5, 0.1):
                new = self._marginal(log_likelihood, w + shrink * step)
                if new > value:
                    return w + shrink * step, new
        return w, value

    def _responsibilities(self, log_likelihood: Floats, coefficients: Floats) -> Floats:
        log_prior = self._log_rows(coefficients)
        joint = log_likelihood + (log_prior if self._row_of is None else log_prior[self._row_of])
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))

    def _summed(self, values: Floats) -> Floats:
        """Values of items added up over the items of each row; shape (n_rows, …)."""
        if self._row_of is None:
            return values
        flat = values.reshape(self.n_items, -1)
        columns = [np.bincount(self._row_of, flat[:, k], len(self._rows)) for k in range(flat.shape[1])]
        return np.stack(columns, axis=1).astype(float).reshape(len(self._rows), *values.shape[1:])

    def _missing_information(self, responsibility: Floats) -> Floats:
        """What is lost since the truth is known only through `responsibility`."""
        if self.n_classes == 2:
            x = self._rows[:, 1]
            return np.asarray(x.T @ (x * self._summed(responsibility[:, 1:] * responsibility[:, :1])))
        outer = self._summed(responsibility[:, :, None] * responsibility[:, None, :])
        spread = np.einsum("uc,cd->ucd", self._summed(responsibility), np.eye(self.n_classes)) - outer
        return np.asarray(np.einsum("ucf,ucd,udg->fg", self._rows, spread, self._rows, optimize=True))


def _factor(information: Floats, *, floor: float) -> Floats:
    """The lower Cholesky factor of the observed information.

    Where votes say little the surface is flat, or bends the wrong way between two modes: then it is taken to be flat
    but for a share of the prior.
    """
    values, vectors = np.linalg.eigh(information)
    if values[0] < 0.3 * floor:
        information = (vectors * np.maximum(values, 0.3 * floor)) @ vectors.T
    return np.asarray(np.linalg.cholesky(information))
