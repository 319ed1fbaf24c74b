"""Dawid and Skene's model: a confusion matrix for each labeler."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
from scipy.special import gammaln

from trueup._base.arrays import like, namespace, special_functions, to_numpy
from trueup._base.engines import OF_ONE_MACHINE
from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_integer, check_number
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.noise.base import (
    LoopSampler,
    Sampler,
    TableModel,
    as_table,
    log_density,
    normalise,
    seen_as_matrices,
    warn_if_unidentifiable,
)
from trueup.noise.em import fit_matrices

Pooling = float | Literal["auto"]
_STRENGTHS = (0.5, 200.0)
_FITTED_POOLING = 2.0  # the strength of a fit where none was asked for
_STRENGTH_PRIOR = (2.0, 0.5)  # of the Gamma law of a strength that is drawn
_LEAST_STRENGTH = 1e-2
DIAGONAL_ALONE, _DIAGONAL_POOLED = 3.0, 4.0  # pseudo-counts of the right answer; the others have 1
_MOST_CLASSES_ALONE = 3  # beyond, pseudo-counts of rows by themselves say that labelers are wrong half of the time


class DawidSkene(TableModel):
    """Every labeler has a confusion matrix, and votes are independent given the class [1]_.

    Generative model: y_i ~ π; a vote of t on i is a with probability θ_t[y_i, a]. Rows have a Dirichlet prior centred
    on the pooled matrix m of all labelers, θ_t[y] ~ Dir(1 + s_y m[y]), so a labeler with few votes is taken for an
    average one and a labeler with many for what the votes say. Fitted by EM.

    Where the matrices are drawn together with the truth (`trueup.noise.sample`), rows have independent priors, 1 for
    each answer and `diagonal` for the right one; or, with four classes and more, or where `pooling` was asked for,
    θ_t[y] ~ Dir(s_y m[y]) with m[y] of that prior, drawn too.

    .. [1] Dawid and Skene (1979), "Maximum likelihood estimation of observer error-rates using the EM algorithm",
       Applied Statistics 28(1).

    Parameters
    ----------
    tol : float. Least change of the loss per vote to go on.
    pooling : float or "auto", optional
        The strength s of the pull towards the pooled matrix, in votes: by default 2 in a fit; in draws none with up to
        three classes, and "auto" with more. 0 is none: a fit is then maximum likelihood, as published. "auto" learns
        one for each class from how much labelers differ (a fit by Minka's fixed point).
    diagonal : float, optional
        Pseudo-count of the right answer where matrices are drawn; the other answers have 1. By default 3; where rows
        are pooled 4, and of C classes, four and more, 4 √(2.5 C).

    Attributes
    ----------
    confusion_ : array of shape (n_labelers, n_classes, n_answers)
    pooled_ : array of shape (n_classes, n_answers)
    pooling_ : array of shape (n_classes,). The strengths used.
    """

    alias = "dawid-skene"
    engines = (*OF_ONE_MACHINE, "dask")

    def __init__(
        self, *, max_iter: int = 100, tol: float = 1e-5, pooling: Pooling | None = None, diagonal: float | None = None
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.pooling = pooling
        self.diagonal = diagonal

    def fit(self, labels: Labels | LabelScan[Labels]) -> Self:
        check_integer(self.max_iter, name="max_iter", low=1)
        strength = np.full(labels.n_classes, _FITTED_POOLING if self.pooling is None else check_pooling(self.pooling))
        warn_if_unidentifiable(labels, what="DawidSkene")
        self._remember(labels)

        def maximise(counts: Floats, state_counts: Floats) -> tuple[Floats, Floats, float]:
            nonlocal strength
            by_labeler = seen_as_matrices(counts, labels.n_answers)
            pooled = normalise(by_labeler.sum(axis=0) + 1e-3)
            log_prior = 0.0
            if strength.any():
                if self.pooling == "auto":
                    strength = learn_strength(by_labeler, pooled, strength)
                pseudo = like(pooled, strength)[:, None] * pooled
                self.confusion_ = normalise(by_labeler + pseudo)
                log_prior = log_density(self.confusion_, pseudo)
                if self.pooling == "auto":  # the density's normaliser moves with the strength
                    masses = gammaln(1 + to_numpy(pseudo)).sum(axis=1)
                    log_prior += labels.n_labelers * float((gammaln(strength + labels.n_answers) - masses).sum())
            else:
                self.confusion_ = normalise(by_labeler)
            self.pooled_ = pooled
            return as_table(self.confusion_), normalise(state_counts), log_prior

        fit_matrices(self, labels, maximise, max_iter=self.max_iter, tol=self.tol)
        self.pooling_ = strength
        return self

    def samplers(self, labels: Labels, n_raters: int, n_chains: int) -> list[Sampler]:
        size = (n_raters, labels.n_classes, labels.n_answers)
        usual: Pooling = "auto" if labels.n_classes > _MOST_CLASSES_ALONE else 0.0
        pooling = usual if self.pooling is None else self.pooling
        diagonal = self.diagonal
        if diagonal is None:
            diagonal = pooled_diagonal(_DIAGONAL_POOLED, labels.n_classes) if pooling else DIAGONAL_ALONE
        check_number(diagonal, name="diagonal", low=0.0, strict=True)
        check_pooling(pooling)
        strength = None if isinstance(pooling, str) or not pooling else max(float(pooling), _LEAST_STRENGTH)
        how: dict[str, Any] = {"diagonal": diagonal, "are_pooled": bool(pooling), "strength": strength}
        return [RowSampler(*size, **how) for _ in range(n_chains)]


def pooled_diagonal(of_few: float, n_classes: int) -> float:
    """Pseudo-count of the right answer in a pooled row: `of_few` up to three classes, and more with more of them.

    Votes do not say which state is of which class, only this does: with d = 4, two raters who agree have exchanged two
    classes with odds of one to a hundred, for each of the 45 pairs of ten classes.
    """
    return of_few * (math.sqrt(2.5 * n_classes) if n_classes > _MOST_CLASSES_ALONE else 1.0)


class RowSampler(LoopSampler):
    """Rows have Dirichlet priors, `strength` times a pooled row; where rows `are_pooled`, that row is drawn too.

    Raters are then pooled within a state g: rows θ_t[g] ~ Dir(s_g m_g), m_g ~ Dir(1, with `diagonal` at g's class), and
    s_g ~ Gamma(2, 1/2) where no `strength` is given. Moves exchange the classes of states (exact Metropolis steps), and
    chains agree where fixed classes would leave each in a mode of its own.
    """

    def __init__(
        self,
        n_raters: int,
        n_classes: int,
        n_answers: int,
        *,
        diagonal: float,
        are_pooled: bool = False,
        strength: float | None = None,
    ) -> None:
        super().__init__(n_raters, n_classes, n_answers)
        prior = np.ones((n_classes, n_answers))
        prior[np.arange(n_classes), np.arange(n_classes)] = diagonal
        shape, rate = _STRENGTH_PRIOR if are_pooled and strength is None else (0.0, 0.0)
        usual = _STRENGTH_PRIOR[0] / _STRENGTH_PRIOR[1] if are_pooled else prior[0].sum()
        self._are_pooled, self._hyper = are_pooled, (float(diagonal), shape, rate)
        self.pooled = normalise(prior)
        self.strength = np.full(n_classes, float(usual if strength is None else strength))

    def state(self, problem: Any = None) -> Any:
        from trueup.noise.kernels.loops import RowState

        labels = self.state_class.astype(np.int64)
        return RowState(labels, self.pooled, self.strength, self._hyper, self._are_pooled)


def check_pooling(pooling: Pooling) -> float:
    """The strength to start from."""
    if isinstance(pooling, str):
        check_choice(pooling, ("auto",), name="pooling")
        return 4.0
    return check_number(pooling, name="pooling", low=0.0)


def learn_strength(counts: Floats, pooled: Floats, strength: Floats) -> Floats:
    """One step of Minka's fixed point for the concentration of a Dirichlet–multinomial with a known mean."""
    psi, before = special_functions(counts).psi, like(counts, strength)
    alpha = namespace(counts).clip(before[:, None] * pooled, 1e-6, None)
    rise = (pooled * (psi(counts + alpha) - psi(alpha))).sum(axis=(0, 2))
    fall = (psi(counts.sum(axis=2) + before) - psi(before)).sum(axis=0)
    return np.clip(strength * to_numpy(rise) / np.maximum(to_numpy(fall), 1e-12), *_STRENGTHS)
