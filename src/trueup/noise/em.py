"""Expectation–maximisation, for models with a table of answer probabilities and for models with parameters of items."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trueup._base.arrays import contiguous, like, namespace, to_numpy
from trueup._base.engines import OF_ONE_PROCESSOR, EngineName
from trueup._base.types import Codes, Floats
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.exceptions import ConvergenceWarning
from trueup.noise import kernels
from trueup.noise.base import NoiseModel, TableModel, check_matrices_fit, class_states, normalise, vote_shares
from trueup.noise.kernels import run_where_memory_suffices
from trueup.noise.passes import counts_under, passes_over

Maximise = Callable[[Floats, Floats], tuple[Floats, Floats, float]]
MaximiseItems = Callable[[Floats], tuple[Floats, float]]


@dataclass(frozen=True)
class EMResult:
    """Where the iteration ended."""

    table: Floats
    weights: Floats
    expectation: kernels.Expectation
    n_iter: int
    converged: bool
    loss_history: list[float]


def expectation_maximisation(
    labels: Labels | LabelScan[Labels],
    start: Floats | None,
    maximise: Maximise,
    *,
    state_class: Codes,
    max_iter: int,
    tol: float,
    name: str,
    warn: bool = True,
    offers: tuple[EngineName, ...] = OF_ONE_PROCESSOR,
    first: tuple[Floats, Floats] | None = None,
) -> EMResult:
    """Alternate the E-step of the kernels with a model's M-step."""
    check_matrices_fit(labels.n_labelers, len(state_class), labels.n_answers)
    n_votes = max(labels.n_votes, 1)

    def iterate() -> EMResult:
        passes = passes_over(labels, max_iter, offers=offers)
        if first is not None:
            begun = passes.expect(*first, state_class)
            counts, state_counts = begun.counts, begun.state_counts
        else:
            counts, state_counts = passes.first_counts() if start is None else counts_under(labels.votes, start)
        losses: list[float] = []
        converged = False
        for _ in range(max_iter):
            table, weights, log_prior = maximise(counts, state_counts)
            step = passes.expect(table, weights, state_class)
            counts, state_counts = step.counts, step.state_counts
            losses.append(-(step.log_likelihood + log_prior) / n_votes)
            converged = _has_settled(losses, tol)
            if converged:
                break
        last = kernels.Expectation(to_numpy(step.counts), to_numpy(step.state_counts), step.log_likelihood, None)
        return EMResult(to_numpy(table), to_numpy(weights), last, len(losses), converged, losses)

    result = run_where_memory_suffices(iterate, n_votes, max_iter, offers=offers)
    if warn and not result.converged:
        _warn_unsettled(name, result.loss_history, max_iter, tol, stacklevel=5)
    return result


def fit_matrices(
    model: TableModel, labels: Labels | LabelScan[Labels], maximise: Maximise, *, max_iter: int, tol: float
) -> None:
    """EM from the shares of votes for a model whose states are the classes; sets what the contract promises."""
    result = expectation_maximisation(
        labels,
        None,
        maximise,
        state_class=class_states(labels.n_classes),
        max_iter=max_iter,
        tol=tol,
        name=type(model).__name__,
        offers=model.engines,
    )
    model.confusion_, model.pooled_ = contiguous(to_numpy(model.confusion_)), to_numpy(model.pooled_)
    model.prior_ = normalise(result.expectation.state_counts)
    model.n_iter_, model.converged_, model.loss_history_ = result.n_iter, result.converged, result.loss_history


def fit_posterior(
    model: NoiseModel,
    labels: Labels,
    maximise: MaximiseItems,
    *,
    max_iter: int,
    tol: float,
    start: Floats | None = None,
) -> None:
    """EM from the shares of votes for a model with parameters of items, which `maximise` fits and scores."""
    posterior = vote_shares(labels) if start is None else start
    xp = namespace(posterior)
    given = np.flatnonzero(labels.gold_codes >= 0)
    items, codes = like(posterior, given), like(posterior, labels.gold_codes[given].astype(np.int64))
    losses: list[float] = []
    converged = False
    while not converged and len(losses) < max_iter:
        joint, log_prior = maximise(posterior)
        top = xp.amax(joint, axis=1)
        likelihood = xp.exp(joint - top[:, None])
        total = likelihood.sum(axis=1)
        posterior = likelihood / total[:, None]
        evidence = top + xp.log(total)
        posterior[items] = 0.0
        posterior[items, codes] = 1.0
        evidence[items] = joint[items, codes]
        losses.append(-(float(evidence.sum()) + log_prior) / max(labels.n_votes, 1))
        converged = _has_settled(losses, tol)
    if not converged:
        _warn_unsettled(type(model).__name__, losses, max_iter, tol, stacklevel=4)
    model.n_iter_, model.converged_, model.loss_history_ = len(losses), converged, losses


def _has_settled(losses: list[float], tol: float) -> bool:
    return len(losses) > 1 and abs(losses[-2] - losses[-1]) < tol


def _warn_unsettled(name: str, losses: list[float], max_iter: int, tol: float, *, stacklevel: int) -> None:
    """Say that a fit stopped early, unless all iterations were asked for."""
    if tol <= 0:
        return
    sentence = f"{name} ran for one iteration only; raise `max_iter`"
    if len(losses) > 1:
        sentence = (
            f"{name} did not settle in {max_iter} iterations (last change {abs(losses[-2] - losses[-1]):.2g} a vote, "
            f"tol {tol:g}); raise `max_iter` or `tol`"
        )
    warnings.warn((sentence), ConvergenceWarning, stacklevel=stacklevel)
