"""Flip models of multinomial logistic regression: one Hessian for the parameters of all classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, special

from trueup.cleaning._fast_base import LinearFlips, dense, with_intercept
from trueup.cleaning._fast_columns import MAX_STEPS, SMALL_WORK, gram
from trueup.cleaning._fast_newton import solved_by_newton
from trueup.cleaning.flips import Array, Candidates, Codes

__all__ = ["SoftmaxFlips", "SoftmaxProblem"]

_STEP_WORK = 5e6  # scores of all models on all training items, up to which all models get a second step
_TOLERANCE = 1e-7  # of the last step, as the change of a typical score


@dataclass(frozen=True, eq=False)
class SoftmaxProblem:
    r"""A penalised sum of log losses, of all classes together.

    Minimise :math:`-\sum_i w_{y_i} \log \mathrm{softmax}(\theta\phi_i)_{y_i} + \tfrac12 \sum_k \theta_k^\top
    \Lambda \theta_k`.

    Attributes
    ----------
    phi : array or CSR matrix of shape (n, p)
    y : integer array of shape (n,)
    weights : array of shape (K,)
        Of the classes.
    penalty : array of shape (p,)
        The diagonal of Λ.
    theta : array of shape (K, p)
    """

    phi: Any
    y: Codes
    weights: Array
    penalty: Array
    theta: Array

    @cached_property
    def scores(self) -> Array:
        """Scores of the training items; shape (n, K)."""
        return dense(self.phi @ self.theta.T)

    @cached_property
    def chances(self) -> Array:
        """Probabilities of the training items; shape (n, K)."""
        return np.asarray(special.softmax(self.scores, axis=1))

    @cached_property
    def factor(self) -> tuple[Array, bool]:
        """The Cholesky factor of the Hessian, parameters in the order of classes."""
        k, p = self.theta.shape
        hessian = np.empty((k, p, k, p))
        weights = self.weights[self.y]
        for a in range(k):
            for b in range(a + 1):
                curve = weights * self.chances[:, a] * ((a == b) - self.chances[:, b])
                hessian[a, :, b] = gram(self.phi, curve)
                hessian[b, :, a] = hessian[a, :, b]
        diagonal = np.arange(p)
        for a in range(k):
            hessian[a, diagonal, a, diagonal] += self.penalty
        # Adding the same to all classes changes nothing, so without a penalty that direction is flat. Gradients have
        # no part in it, so any curvature there leaves steps as they are.
        flat = np.flatnonzero(self.penalty == 0)
        typical = float(np.trace(hessian.reshape(k * p, k * p))) / (k * p)
        hessian[:, flat, :, flat] += typical / k
        found: tuple[Array, bool] = linalg.cho_factor(hessian.reshape(k * p, k * p), lower=True, check_finite=False)
        return found

    def solve(self, right: Array) -> Array:
        """H⁻¹ applied to rows of shape (m, K, p)."""
        flat = linalg.cho_solve(self.factor, right.reshape(len(right), -1).T, check_finite=False)
        return np.asarray(flat.T).reshape(right.shape)

    def solved(self) -> SoftmaxProblem | None:
        """The same problem at its solution, by Newton's method with halved steps; None if it finds none."""

        def step(now: SoftmaxProblem, gradient: Array) -> Array:
            return np.asarray(-now.solve(gradient[None])[0])

        return solved_by_newton(self, step, keep="factor")

    def objective(self) -> float:
        """The penalised loss."""
        own = special.log_softmax(self.scores, axis=1)[np.arange(len(self.y)), self.y]
        return float(-(self.weights[self.y] * own).sum() + 0.5 * (self.penalty * self.theta**2).sum())

    def gradient(self) -> Array:
        """Its gradient; shape (K, p)."""
        slopes = self.chances.copy()
        slopes[np.arange(len(self.y)), self.y] -= 1
        slopes *= self.weights[self.y][:, None]
        return np.asarray(dense(self.phi.T @ slopes).T + self.penalty * self.theta)

    def steps(self, item: Codes, to: Codes, *, exact: bool, memory_limit: int) -> Array:
        r"""How the solution moves for each change of a label; shape (m, K, p).

        A Newton step with the Hessian of the changed problem: :math:`\delta = -H^{-1}(v \otimes \phi)` with
        :math:`v = (I + \eta L)^{-1}\gamma`, where γ and η are the changes of the slope and the curve of the item's
        own loss and L = (I ⊗ φ)ᵀ H⁻¹ (I ⊗ φ). Then exact gradients, where all models are not too many.
        """
        own = self.y[item]
        chance, phi = self.chances[item], dense(self.phi[item])
        unit = np.eye(len(self.theta))
        before, after = self.weights[own][:, None], self.weights[to][:, None]
        slope = after * (chance - unit[to]) - before * (chance - unit[own])
        if (before != after).any():
            curve = chance[:, :, None] * (unit - chance[:, None])
            eta = (after - before)[:, :, None] * curve
            mixed = unit + eta @ self._leverage(phi)
            slope = np.asarray(np.linalg.solve(mixed, slope[:, :, None])[:, :, 0], dtype=np.float64)
        delta = -self.solve(slope[:, :, None] * phi[:, None])
        n_scores = len(item) * self.scores.size
        n_steps = MAX_STEPS if exact or n_scores <= SMALL_WORK else int(n_scores <= _STEP_WORK)
        return self._converged(item, to, delta, memory_limit, n_steps)

    def _leverage(self, phi: Array) -> Array:
        """L of each item; shape (m, K, K)."""
        k, p = self.theta.shape
        found = np.empty((len(phi), k, k))
        for b in range(k):
            right = np.zeros((len(phi), k, p))
            right[:, b] = phi
            found[:, :, b] = np.einsum("mkp,mp->mk", self.solve(right), phi)
        return found

    def _converged(self, item: Codes, to: Codes, delta: Array, memory_limit: int, n_steps: int) -> Array:
        """Steps with the exact gradient of each changed problem and the Hessian of the base problem."""
        n, k = self.scores.shape
        rows = max(int(memory_limit // (48 * n * k)), 1)
        for start in range(0, len(item), rows):
            moving = np.arange(start, min(start + rows, len(item)))
            for _ in range(n_steps):
                if not len(moving):
                    break
                gradient = self._gradients(item[moving], to[moving], delta[moving])
                step = -self.solve(gradient)
                delta[moving] += step
                moving = moving[~(-(step * gradient).sum(axis=(1, 2)) <= _TOLERANCE**2)]
            if n_steps > 1:  # few items, or an influential one: what this Hessian does not settle
                for row in moving.tolist():
                    labels = self.y.copy()
                    labels[item[row]] = to[row]
                    found = replace(self, y=labels).solved()
                    delta[row] = 0.0 if found is None else found.theta - self.theta
        return delta

    def _gradients(self, item: Codes, to: Codes, delta: Array) -> Array:
        """The gradient of each changed problem at the shifted parameters; shape (m, K, p)."""
        n_classes, n, model = len(self.theta), len(self.y), np.arange(len(item))
        slopes = np.empty((n_classes, n, len(item)))  # the class first: numpy is slow along a short last axis
        for k in range(n_classes):
            slopes[k] = dense(self.phi @ delta[:, k].T)
            slopes[k] += self.scores[:, k][:, None]
        slopes -= slopes.max(axis=0)
        np.exp(slopes, out=slopes)
        slopes /= slopes.sum(axis=0)
        own = slopes[:, item, model]
        slopes[self.y, np.arange(n)] -= 1
        slopes *= self.weights[self.y][:, None]
        own[to, model] -= 1
        slopes[:, item, model] = own * self.weights[to]
        summed = np.stack([dense(self.phi.T @ slopes[k]).T for k in range(n_classes)], axis=1)
        return np.asarray(summed + self.penalty * (self.theta + delta))


class SoftmaxFlips(LinearFlips):
    """The flip models of a `SoftmaxProblem`.

    Parameters
    ----------
    problem : SoftmaxProblem
        At its solution.
    codes : integer array of shape (K,)
        The code of each class.
    intercept : float or None
        The value of the constant feature.
    weights_after : callable, optional
        For weights that depend on the numbers of labels: the weights from those numbers.
    """

    def __init__(
        self,
        problem: SoftmaxProblem,
        codes: Codes,
        intercept: float | None,
        weights_after: Callable[[Array], Array] | None = None,
    ) -> None:
        self.problem, self.theta, self.features_ = problem, problem.theta, problem.phi
        self.columns_, self.y, self._intercept = codes, problem.y, intercept
        self._weights_after = weights_after
        self._position = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
        self._position[codes] = np.arange(len(codes))

    def features(self, X: Any) -> Any:
        """The items' features with the constant one in front."""
        return with_intercept(X, self._intercept)

    def shifts(self, candidates: Candidates, *, exact: bool, memory_limit: int) -> Array:
        """How the parameters move; shape (n_candidates, K, p)."""
        to = self._position[candidates.to]
        if self._weights_after is None:
            return self.problem.steps(candidates.item, to, exact=exact, memory_limit=memory_limit)
        own = self.y[candidates.item]
        delta = np.zeros((len(candidates), *self.theta.shape))
        for a, b in np.unique(np.stack([own, to], axis=1), axis=0).tolist():
            rows = np.flatnonzero((own == a) & (to == b))
            number = np.bincount(self.y, minlength=len(self.columns_)).astype(float)
            number[a] -= 1
            number[b] += 1
            problem = replace(self.problem, weights=self._weights_after(number)).solved()
            if problem is not None:
                steps = problem.steps(candidates.item[rows], to[rows], exact=exact, memory_limit=memory_limit)
                delta[rows] = problem.theta - self.theta + steps
        return delta
