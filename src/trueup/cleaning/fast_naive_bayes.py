"""Flip models of naive Bayes, exactly: counts and moments of two classes change."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.types import Codes, Floats
from trueup.cleaning.fast_base import FlipModels, LinearFlips, csr, dense, is_sparse, positions_of
from trueup.cleaning.flips import Candidates


class NaiveBayesFlips(LinearFlips):
    """Scores are linear in some features, and a change of a label moves the parameters of two classes.

    Parameters
    ----------
    model : fitted naive Bayes of scikit-learn
    X : array or sparse matrix of shape (n, n_features)
    y : integer array of shape (n,)
        Positions in ``model.classes_``.
    codes : integer array
        The code of each class of the model.
    """

    exact = True

    def __init__(self, model: Any, X: Any, y: Codes, codes: Codes) -> None:
        self.model, self.y, self.columns_ = model, y, codes
        self.number = np.bincount(y, minlength=len(codes)).astype(float)
        self._prepare(X)
        self.features_ = self.features(X)
        every = np.arange(len(codes))
        self.theta = self._parameters(every, self.number, None, 0.0)

    @abstractmethod
    def _prepare(self, X: Any) -> None:
        """Keep what parameters are made from."""

    @abstractmethod
    def _parameters(self, of: Codes, number: Floats, rows: Codes | None, sign: float) -> Floats:
        """Parameters (m, p) of classes, of which the items `rows` are taken away (sign −1) or added (1)."""

    def shifts(self, candidates: Candidates, *, exact: bool, memory_limit: int) -> Floats:
        """How the parameters move; shape (n_candidates, K, p)."""
        own, to = self.y[candidates.item], positions_of(self.columns_)[candidates.to]
        delta = np.zeros((len(candidates), *self.theta.shape))
        each = np.arange(len(candidates))
        delta[each, own] = self._parameters(own, self.number[own] - 1, candidates.item, -1.0) - self.theta[own]
        delta[each, to] = self._parameters(to, self.number[to] + 1, candidates.item, 1.0) - self.theta[to]
        return delta

    def _log_prior(self, of: Codes, number: Floats, given: Any, *, fit: bool = True) -> Floats:
        """As scikit-learn: given, or the shares of the labels, or uniform."""
        if given is not None:
            return np.asarray(np.log(np.asarray(given, dtype=float))[of])
        return np.log(number / len(self.y)) if fit else np.full(len(of), -np.log(len(self.columns_)))


class GaussianFlips(NaiveBayesFlips):
    """Features x², x and 1 around the mean of all items, so that squares do not cancel."""

    def _prepare(self, X: Any) -> None:
        rows = np.asarray(X, dtype=float)
        self._center = rows.mean(axis=0)
        self._rows = rows - self._center
        member = np.eye(len(self.columns_))[self.y]
        self._mean = member.T @ self._rows / self.number[:, None]
        self._spread = np.stack([self._rows[self.y == c].var(axis=0) for c in range(len(self.columns_))])

    def features(self, X: Any) -> Floats:
        """Squares, the values and 1."""
        rows = np.asarray(X, dtype=float) - self._center
        return np.column_stack([rows**2, rows, np.ones(len(rows))])

    def _parameters(self, of: Codes, number: Floats, rows: Codes | None, sign: float) -> Floats:
        mean, spread = self._mean[of], self._spread[of]
        if rows is not None:
            away = self._rows[rows] - mean
            before, after = self.number[of][:, None], number[:, None]
            mean = mean + sign * away / after
            spread = np.maximum(before / after * (spread + sign * away**2 / after), 0.0)
        spread = spread + self.model.epsilon_
        log_prior = self._log_prior(of, number, self.model.priors)
        constant = log_prior - 0.5 * (np.log(2 * np.pi * spread) + mean**2 / spread).sum(axis=1)
        return np.column_stack([-0.5 / spread, mean / spread, constant])


class DiscreteFlips(NaiveBayesFlips):
    """Shared by the two models of counts."""

    def _prepare(self, X: Any) -> None:
        self._rows = self._counts(X)
        member = sparse.csr_array((np.ones(len(self.y)), (self.y, np.arange(len(self.y)))))
        self._sums = dense(member @ self._rows)

    def _counts(self, X: Any) -> Any:
        return csr(X) if is_sparse(X) else np.asarray(X, dtype=float)

    def features(self, X: Any) -> Any:
        """The counts and 1."""
        rows = self._counts(X)
        one: Any = np.ones((rows.shape[0], 1))
        return sparse.hstack([rows, one], format="csr") if is_sparse(rows) else np.hstack([rows, one])

    def _changed_sums(self, of: Codes, rows: Codes | None, sign: float) -> Floats:
        sums = self._sums[of]
        # Sums of counts taken away may be a rounding below zero.
        return sums if rows is None else np.maximum(sums + sign * dense(self._rows[rows]), 0.0)

    def _prior(self, of: Codes, number: Floats) -> Floats:
        return self._log_prior(of, number, self.model.class_prior, fit=self.model.fit_prior)


class MultinomialFlips(DiscreteFlips):
    """log θ_cw = log(N_cw + α) − log Σ_w (N_cw + α)."""

    def _parameters(self, of: Codes, number: Floats, rows: Codes | None, sign: float) -> Floats:
        smooth = self._changed_sums(of, rows, sign) + _alpha(self.model)
        logs = np.log(smooth) - np.log(smooth.sum(axis=1, keepdims=True))
        return np.column_stack([logs, self._prior(of, number)])


class BernoulliFlips(DiscreteFlips):
    """log p_cw = log(N_cw + α) − log(n_c + 2α), and the log of the rest for absent words."""

    def _counts(self, X: Any) -> Any:
        edge = self.model.binarize
        if edge is None:
            return super()._counts(X)
        if is_sparse(X):
            rows = csr(X)
            rows.data = (rows.data > edge).astype(float)
            rows.eliminate_zeros()
            return rows
        return (np.asarray(X) > edge).astype(float)

    def _parameters(self, of: Codes, number: Floats, rows: Codes | None, sign: float) -> Floats:
        alpha = _alpha(self.model)
        sums = self._changed_sums(of, rows, sign)
        total = (number + 2 * alpha)[:, None]
        present = np.log(sums + alpha) - np.log(total)
        absent = np.log(np.maximum(total - alpha - sums, 1e-300)) - np.log(total)
        return np.column_stack([present - absent, self._prior(of, number) + absent.sum(axis=1)])


def _alpha(model: Any) -> float:
    """The smoothing; scikit-learn raises what is below 1e-10 unless told otherwise."""
    alpha = float(model.alpha)
    return alpha if getattr(model, "force_alpha", True) is True else max(alpha, 1e-10)


def gaussian_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``GaussianNB``."""
    return None if is_sparse(X) else GaussianFlips(model, X, y, codes)


def multinomial_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``MultinomialNB`` with some smoothing."""
    return MultinomialFlips(model, X, y, codes) if _smoothed(model) else None


def bernoulli_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``BernoulliNB`` with some smoothing."""
    return BernoulliFlips(model, X, y, codes) if _smoothed(model) else None


def _smoothed(model: Any) -> npt.NDArray[np.bool_] | bool:
    """Without smoothing scores are infinite, and with a number for each feature they are not as simple."""
    return np.isscalar(model.alpha) and _alpha(model) > 0
