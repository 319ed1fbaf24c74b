"""Expectation–maximisation for models with a table of answer probabilities; OneCoin, DawidSkene and Subtypes use it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trueup._base.types import Codes, Floats
from trueup.data.labels import Labels
from trueup.exceptions import ConvergenceWarning
from trueup.noise.base import TableModel, class_states, normalise, vote_shares
from trueup.noise.kernels import reference as _kernels

__all__ = ["EMResult", "expectation_maximisation", "fit_matrices"]

Maximise = Callable[[Floats, Floats], tuple[Floats, Floats, float]]


@dataclass(frozen=True)
class EMResult:
    """Where the iteration ended."""

    table: Floats
    weights: Floats
    expectation: _kernels.Expectation
    n_iter: int
    converged: bool
    loss_history: list[float]


def expectation_maximisation(
    labels: Labels,
    start: Floats,
    maximise: Maximise,
    *,
    state_class: Codes,
    max_iter: int,
    tol: float,
    name: str,
    warn: bool = True,
) -> EMResult:
    """Alternate the E-step of the kernels with a model's M-step.

    Parameters
    ----------
    start : array of shape (n_items, n_states)
        First guess of P(state | votes).
    maximise : callable (counts, state_counts) -> (table, weights, log_prior)
        The M-step. `counts` is (labelers·answers, states); `log_prior` is added to the objective.
    tol : float
        Stop when the objective per vote changes by less.
    """
    n_votes = max(labels.n_votes, 1)
    engine = _kernels.engine_for(labels.votes, max_iter)
    votes = _kernels.prepare(labels.votes)
    counts, state_counts = np.asarray(labels.votes.T @ start), start.sum(axis=0)
    losses: list[float] = []
    converged = False
    for _ in range(max_iter):
        table, weights, log_prior = maximise(counts, state_counts)
        step = _kernels.em_step(votes, table, weights, gold=labels.gold_codes, state_class=state_class, engine=engine)
        counts, state_counts = step.counts, step.state_counts
        losses.append(-(step.log_likelihood + log_prior) / n_votes)
        if len(losses) > 1 and abs(losses[-2] - losses[-1]) < tol:
            converged = True
            break
    if warn and not converged and tol > 0:
        warnings.warn(
            f"{name} did not settle in {max_iter} iterations (last change {abs(losses[-2] - losses[-1]):.2g} a vote, "
            f"tol {tol:g}); raise max_iter or tol"
            if len(losses) > 1
            else f"{name} ran for one iteration only; raise max_iter",
            ConvergenceWarning,
            stacklevel=4,
        )
    return EMResult(table, weights, step, len(losses), converged, losses)


def fit_matrices(model: TableModel, labels: Labels, maximise: Maximise, *, max_iter: int, tol: float) -> None:
    """EM from the shares of votes for a model whose states are the classes; sets what the contract promises.

    `maximise` sets the model's matrices.
    """
    result = expectation_maximisation(
        labels,
        vote_shares(labels),
        maximise,
        state_class=class_states(labels.n_classes),
        max_iter=max_iter,
        tol=tol,
        name=type(model).__name__,
    )
    model.prior_ = normalise(result.expectation.state_counts)
    model.n_iter_, model.converged_, model.loss_history_ = result.n_iter, result.converged, result.loss_history
