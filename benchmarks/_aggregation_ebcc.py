"""Enhanced Bayesian classifier combination, a plain version of the published model, for `benchmarks.aggregation`.

Li, Rubinstein and Cohn (2019), "Exploiting worker correlation for label aggregation in crowdsourcing", ICML. Each class
has subtypes, and labelers are independent given the subtype; all is fitted by variational Bayes, with pseudo-counts of
4 for the right answer, 1 for others and 0.1 / M for each subtype. Of several random starts the one with the largest
evidence bound stays.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, psi

from trueup import Labels
from trueup.noise import NoiseModel, kernels
from trueup.noise.base import as_table, from_table, vote_shares

__all__ = ["EnhancedCombination"]

Floats = npt.NDArray[np.float64]

_RIGHT, _OTHER, _SUBTYPES = 4.0, 1.0, 0.1  # pseudo-counts


class EnhancedCombination(NoiseModel):
    """EBCC with M subtypes of each class; its posterior is of the labels it was fitted on."""

    alias = "ebcc"

    def __init__(self, *, n_subtypes: int = 10, n_starts: int = 3, max_iter: int = 100, tol: float = 1e-5) -> None:
        self.n_subtypes, self.n_starts, self.max_iter, self.tol = n_subtypes, n_starts, max_iter, tol

    def fit(self, labels: Labels) -> Self:
        """The best of several starts."""
        runs = [self._run(labels, np.random.default_rng(seed)) for seed in range(self.n_starts)]
        self._posterior = max(runs, key=lambda run: run[0])[1]
        self.prior_ = self._posterior.mean(axis=0)
        self._remember(labels)
        return self

    def _run(self, labels: Labels, rng: np.random.Generator) -> tuple[float, Floats]:
        """The evidence bound and P(class) of each item."""
        n_classes, m = labels.n_classes, self.n_subtypes
        state_class = np.repeat(np.arange(n_classes, dtype=np.int32), m)
        prior = np.full((n_classes * m, labels.n_answers), _OTHER)
        prior[np.arange(n_classes * m), state_class] = _RIGHT
        weight_prior = np.full(n_classes * m, _SUBTYPES / m)
        engine = kernels.engine_for(labels.votes, self.max_iter)
        shares = rng.dirichlet(np.ones(m), size=(labels.n_items, n_classes))
        start = (vote_shares(labels)[:, :, None] * shares).reshape(labels.n_items, -1)
        counts, state_counts, bound = np.asarray(labels.votes.T @ start), start.sum(axis=0), -np.inf
        for step in range(self.max_iter):
            rows, weights = from_table(counts, labels.n_answers) + prior, state_counts + weight_prior
            log_rows, log_weights = psi(rows) - psi(rows.sum(axis=2, keepdims=True)), psi(weights) - psi(weights.sum())
            result = kernels.em_step(
                labels.votes,
                as_table(np.exp(log_rows)),
                np.exp(log_weights),
                gold=labels.gold_codes,
                state_class=state_class,
                engine=engine,
                keep_posterior=True,
            )
            before, counts, state_counts = bound, result.counts, result.state_counts
            bound = result.log_likelihood - _divergence(rows, prior, log_rows)
            bound -= _divergence(weights, weight_prior, log_weights)
            if step > 5 and abs(bound - before) < self.tol * labels.n_votes:
                break
        assert result.posterior is not None
        return bound, result.posterior.reshape(-1, n_classes, m).sum(axis=2)

    def posterior(self, labels: Labels) -> Floats:
        """P(class | votes) of the items it was fitted on."""
        return self._posterior

    def _log_likelihood(self, labels: Labels) -> Floats:
        return np.asarray(np.log(np.maximum(self._posterior, 1e-300)) - np.log(self.prior_))

    def predict_votes(self, labels: Labels, item: npt.NDArray[np.int64], labeler: npt.NDArray[np.int64]) -> Floats:
        """Not needed for finding truths."""
        raise NotImplementedError


def _divergence(a: Floats, b: Floats, mean_log: Floats) -> float:
    """Kullback–Leibler divergence of Dirichlet(a) from Dirichlet(b), summed over rows."""
    b = np.broadcast_to(b, a.shape)
    constant = gammaln(a.sum(axis=-1)) - gammaln(a).sum(axis=-1) - gammaln(b.sum(axis=-1)) + gammaln(b).sum(axis=-1)
    return float(constant.sum() + ((a - b) * mean_log).sum())
