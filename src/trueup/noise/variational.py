"""Dawid and Skene's model with its uncertainty counted in: variational Bayes, for matrices of three shapes."""

from __future__ import annotations

from typing import Literal, NamedTuple, Self

import numpy as np
from scipy.special import psi

from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_integer, check_number
from trueup.data.labels import Labels
from trueup.noise import kernels
from trueup.noise.base import (
    TableModel,
    as_table,
    class_states,
    from_table,
    normalise,
    rows_for,
    vote_shares,
    warn_if_unidentifiable,
)

Shape = Literal["matrix", "class", "coin"]
_LEAST_COUNT = 0.01  # of every answer: none is impossible


class _Rows(NamedTuple):
    """What is believed of answers, (labelers, classes, answers): mean probabilities and mean log-probabilities."""

    mean: Floats
    log_mean: Floats


class Variational(TableModel):
    """Every labeler has a confusion matrix, and truth and matrices have distributions that are learned in turn.

    `DawidSkene` takes the most probable matrices for the true ones. Here they have a distribution too (Bayesian
    classifier combination by variational Bayes [1]_, [2]_): a vote counts by the mean of the logarithm of its
    probability. What labelers have in common is learned from all of them, and a labeler with few votes is drawn towards
    it. Two smaller shapes of matrices serve where there are too few votes to learn whole ones.

    Parameters
    ----------
    shape : {"matrix", "class", "coin"}
        What labelers may differ in: the whole matrix; how often they are right in each class, where wrong answers are
        spread as those of all labelers are; or how often they are right, where wrong answers are spread evenly.
    pooling : float
        How many votes the pull towards all labelers is worth.
    max_iter : int
    tol : float
        Least change of the share of a class to go on.

    Attributes
    ----------
    confusion_ : array of shape (n_labelers, n_classes, n_answers)
        The mean of each matrix.
    pooled_ : array of shape (n_classes, n_answers)

    References
    ----------
    .. [1] Kim and Ghahramani (2012), "Bayesian classifier combination", AISTATS.
    .. [2] Simpson, Roberts, Psorakis and Smith (2013), "Dynamic Bayesian combination of multiple imperfect
       classifiers", Decision Making and Imperfection.

    Examples
    --------
    >>> import trueup as tu
    >>> votes = [[0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]] * 4
    >>> tu.noise.Variational(shape="coin").fit(tu.Labels.from_matrix(votes)).confusion_.shape
    (3, 2, 2)
    """

    alias = "variational"

    def __init__(
        self, *, shape: Shape = "matrix", pooling: float = 1.0, max_iter: int = 200, tol: float = 1e-5
    ) -> None:
        self.shape = shape
        self.pooling = pooling
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, labels: Labels) -> Self:
        """Learn the distributions of matrices and prior, from the shares of votes."""
        check_choice(self.shape, ("matrix", "class", "coin"), name="shape")
        check_number(self.pooling, name="pooling", low=0.0, strict=True)
        check_integer(self.max_iter, name="max_iter", low=1)
        warn_if_unidentifiable(labels, what="Variational")
        self._remember(labels)
        votes, engine = kernels.prepare(labels.votes), kernels.engine_for(labels.votes, self.max_iter)
        start = vote_shares(labels)
        counts, class_counts = np.asarray(labels.votes.T @ start), start.sum(axis=0)
        self.loss_history_, self.converged_ = [], False
        while not self.converged_ and len(self.loss_history_) < self.max_iter:
            rows = _believed(from_table(counts, labels.n_answers), self.shape, self.pooling)
            weights = class_counts + 1.0
            step = kernels.em_step(
                votes,
                as_table(np.exp(rows.log_mean)),
                np.exp(psi(weights) - psi(weights.sum())),
                gold=labels.gold_codes,
                state_class=class_states(labels.n_classes),
                engine=engine,
            )
            change = np.abs(step.state_counts - class_counts).max() / max(labels.n_items, 1)
            self.converged_ = bool(change < self.tol)
            counts, class_counts = step.counts, step.state_counts
            self.loss_history_.append(-step.log_likelihood / max(labels.n_votes, 1))
        self.n_iter_ = len(self.loss_history_)
        self.confusion_, self._log_confusion = rows
        total = from_table(counts, labels.n_answers).sum(axis=0, keepdims=True)
        self.pooled_ = _believed(total, self.shape, self.pooling).mean[0]
        self.prior_ = normalise(class_counts + 1.0)
        return self

    def posterior(self, labels: Labels) -> Floats:
        """P(class | votes) of each item, shape (n_items, n_classes); gold items are certain."""
        self._check(labels)
        return kernels.posterior(
            labels.votes,
            self._table_for(labels),
            self.prior_,
            gold=labels.gold_codes,
            state_class=class_states(labels.n_classes),
        )

    def _log_likelihood(self, labels: Labels) -> Floats:
        return kernels.log_likelihood(labels.votes, self._table_for(labels))

    def _table_for(self, labels: Labels) -> Floats:
        """What votes count by, for the labelers of `labels`: exp of the mean log-probability."""
        stranger = np.log(np.maximum(self.pooled_, 1e-300))
        return as_table(np.exp(rows_for(labels.labelers, self.labelers_, self._log_confusion, stranger)))


def _believed(counts: Floats, shape: Shape, pooling: float) -> _Rows:
    """The labelers' matrices given expected counts (labelers, classes, answers)."""
    total = counts.sum(axis=0)
    if shape == "matrix":
        return _dirichlet_rows(counts + pooling * normalise(total + 1e-3) + _LEAST_COUNT)
    return _right_or_wrong(counts, total, pooling, by_class=shape == "class")


def _dirichlet_rows(counts: Floats) -> _Rows:
    return _Rows(normalise(counts), np.asarray(psi(counts) - psi(counts.sum(axis=-1, keepdims=True))))


def _right_or_wrong(counts: Floats, total: Floats, pooling: float, *, by_class: bool) -> _Rows:
    """Labelers who differ in how often they are right; what they say else is shared."""
    n_classes = counts.shape[1]
    classes = np.arange(n_classes)
    is_wrong = np.ones(total.shape)
    is_wrong[classes, classes] = 0.0
    spread = normalise((total + 0.5) * is_wrong if by_class else is_wrong)
    right, all_votes = counts[:, classes, classes], counts.sum(axis=2)
    if not by_class:
        right, all_votes = (np.repeat(n.sum(axis=1, keepdims=True), n_classes, axis=1) for n in (right, all_votes))
    usual = (right.sum(axis=0) + 2.0) / (all_votes.sum(axis=0) + 3.0)
    pseudo = pooling * np.stack([usual, 1 - usual], axis=1)
    rows = _dirichlet_rows(np.stack([right, all_votes - right], axis=2) + pseudo)
    mean = rows.mean[:, :, 1:] * spread
    log_mean = rows.log_mean[:, :, 1:] + np.log(np.maximum(spread, 1e-300))
    mean[:, classes, classes], log_mean[:, classes, classes] = rows.mean[:, :, 0], rows.log_mean[:, :, 0]
    return _Rows(mean, log_mean)
