"""Dawid and Skene's model: a confusion matrix for each labeler."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from scipy.special import gammaln, psi

from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_integer, check_number
from trueup.data.labels import Labels
from trueup.noise.base import TableModel, as_table, from_table, normalise, warn_if_unidentifiable
from trueup.noise.em import fit_matrices

__all__ = ["DawidSkene", "Pooling", "check_pooling", "learn_strength"]

Pooling = float | Literal["auto"]
_STRENGTHS = (0.5, 200.0)


class DawidSkene(TableModel):
    """Every labeler has a confusion matrix, and votes are independent given the class [1]_.

    Generative model: y_i ~ π; a vote of t on i is a with probability θ_t[y_i, a]. Rows have a Dirichlet prior centred
    on the pooled matrix m of all labelers, θ_t[y] ~ Dir(1 + s_y m[y]), so a labeler with few votes is taken for an
    average one and a labeler with many for what the votes say. Fitted by EM.

    Parameters
    ----------
    max_iter : int
    tol : float
        Least change of the loss per vote to go on.
    pooling : float or "auto"
        The strength s of the pull towards the pooled matrix, in votes. 0 is maximum likelihood, as published; "auto"
        learns one for each class from how much labelers differ (Minka's fixed point for the Dirichlet–multinomial).

    Attributes
    ----------
    confusion_ : array of shape (n_labelers, n_classes, n_answers)
    pooled_ : array of shape (n_classes, n_answers)
    pooling_ : array of shape (n_classes,)
        The strengths used.

    References
    ----------
    .. [1] Dawid and Skene (1979), "Maximum likelihood estimation of observer error-rates using the EM algorithm",
       Applied Statistics 28(1).

    Examples
    --------
    >>> import trueup as tu
    >>> votes = [[0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]] * 4
    >>> model = tu.noise.DawidSkene().fit(tu.Labels.from_matrix(votes))
    >>> model.confusion_.shape, model.converged_
    ((3, 2, 2), True)
    """

    alias = "dawid-skene"

    def __init__(self, *, max_iter: int = 100, tol: float = 1e-5, pooling: Pooling = 2.0) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.pooling = pooling

    def fit(self, labels: Labels) -> Self:
        """Learn matrices and prior by EM, from the shares of votes."""
        check_integer(self.max_iter, name="max_iter", low=1)
        strength = np.full(labels.n_classes, check_pooling(self.pooling))
        warn_if_unidentifiable(labels, what="DawidSkene")
        self._remember(labels)

        def maximise(counts: Floats, state_counts: Floats) -> tuple[Floats, Floats, float]:
            nonlocal strength
            by_labeler = from_table(counts, labels.n_answers)
            pooled = normalise(by_labeler.sum(axis=0) + 1e-3)
            log_prior = 0.0
            if strength.any():
                if self.pooling == "auto":
                    strength = learn_strength(by_labeler, pooled, strength)
                pseudo = strength[:, None] * pooled
                self.confusion_ = normalise(by_labeler + pseudo)
                log_prior = float((pseudo * np.log(np.maximum(self.confusion_, 1e-300))).sum())
                if self.pooling == "auto":  # the density's normaliser moves with the strength
                    log_prior += labels.n_labelers * float(
                        (gammaln(strength + labels.n_answers) - gammaln(1 + pseudo).sum(axis=1)).sum()
                    )
            else:
                self.confusion_ = normalise(by_labeler)
            self.pooled_ = pooled
            return as_table(self.confusion_), normalise(state_counts), log_prior

        fit_matrices(self, labels, maximise, max_iter=self.max_iter, tol=self.tol)
        self.pooling_ = strength
        return self


def check_pooling(pooling: Pooling) -> float:
    """The strength to start from."""
    if isinstance(pooling, str):
        check_choice(pooling, ("auto",), name="pooling")
        return 4.0
    return check_number(pooling, name="pooling", low=0.0)


def learn_strength(counts: Floats, pooled: Floats, strength: Floats) -> Floats:
    """One step of Minka's fixed point for the concentration of a Dirichlet–multinomial with a known mean.

    Parameters
    ----------
    counts : array of shape (n_labelers, n_rows, n_answers)
    pooled : array of shape (n_rows, n_answers)
    strength : array of shape (n_rows,)
    """
    alpha = np.maximum(strength[:, None] * pooled, 1e-6)
    rise = (pooled * (psi(counts + alpha) - psi(alpha))).sum(axis=(0, 2))
    fall = (psi(counts.sum(axis=2) + strength) - psi(strength)).sum(axis=0)
    return np.asarray(np.clip(strength * rise / np.maximum(fall, 1e-12), *_STRENGTHS))
