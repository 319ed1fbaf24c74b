"""Problems whose solutions are linear models, and how a change of one label moves a solution: by Newton steps."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import linalg

from trueup._base.types import Codes, Floats
from trueup.cleaning.fast_base import dense, gram

_MAX_ITER = 50
_SETTLED = 1e-9  # of the decrease that Newton's step promises: a sum of squared changes of scores
_ENOUGH = 1e-4  # of the promised decrease
_LEAST_STEP = 1e-6
MAX_STEPS = 12  # with the Hessian of the base problem; few are needed, or many more
SMALL_WORK = 2e6  # scores of all models on all training items, up to which all models are made exact
_TOLERANCE = 1e-7  # of the last step, as the change of a typical score
_TENSOR_WORK = 2e9  # multiplications for the third derivatives


@dataclass(frozen=True, eq=False)
class Problem(ABC):
    r"""A penalised sum of losses of linear scores, and how its solution moves with one label.

    Attributes
    ----------
    phi : array or CSR matrix of shape (n, p)
    y : integer array of shape (n,)
        The class of each item.
    weights : array
        Of the classes, in each score column where they differ.
    penalty : array of shape (p,)
        The diagonal of Λ in :math:`\tfrac12 \sum_k \theta_k^\top \Lambda\theta_k`.
    theta : array of shape (K, p)
        Where the search starts; the solution in what `solved` returns.
    """

    phi: Any
    y: Codes
    weights: Floats
    penalty: Floats
    theta: Floats

    @cached_property
    def scores(self) -> Floats:
        """Scores of the training items; shape (n, K)."""
        return dense(self.phi @ self.theta.T)

    @cached_property
    @abstractmethod
    def factors(self) -> Any:
        """What solves with the Hessian."""

    @abstractmethod
    def objective(self) -> float:
        """The penalised loss."""

    @abstractmethod
    def gradient(self) -> Floats:
        """Its gradient; shape (K, p)."""

    @abstractmethod
    def newton_step(self, gradient: Floats) -> Floats:
        """−H⁻¹ times the gradient."""

    @abstractmethod
    def steps(self, item: Codes, to: Codes, *, exact: bool, memory_limit: int) -> Floats:
        """How the solution moves for each change of a label; shape (m, K, p)."""

    def solved(self) -> Self | None:
        """The same problem at its solution, by Newton's method with halved steps; None if it finds none."""
        now = self
        for _ in range(_MAX_ITER):
            value, gradient = now.objective(), now.gradient()
            try:
                move = now.newton_step(gradient)
            except linalg.LinAlgError:
                return None
            decrease = -float((move * gradient).sum())
            if not math.isfinite(decrease):
                return None
            if decrease <= _SETTLED:  # a full step squares what is left, and hardly changes the Hessian
                last = replace(now, theta=now.theta + move)
                last.__dict__["factors"] = now.factors
                return last
            size = 1.0
            while (trial := replace(now, theta=now.theta + size * move)).objective() > (
                value - _ENOUGH * size * decrease
            ):
                size /= 2
                if size < _LEAST_STEP:  # nothing helps
                    return None
            now = trial
        return None

    def with_label(self, item: int, to: int) -> Self:
        """The problem with one label changed."""
        labels = self.y.copy()
        labels[item] = to
        return replace(self, y=labels)


def converge(
    delta: Floats,
    gradients: Callable[[Codes], Floats],
    solve: Callable[[Floats, Codes], Floats],
    anew: Callable[[int], Floats],
    *,
    n_steps: int,
    n_rows: int,
) -> Floats:
    """The shift of each changed problem, improved in place by steps with exact gradients and the base Hessian.

    Parameters
    ----------
    gradients, solve : callables
        The gradients of some of the problems, at their shifts; their inverse Hessians applied to these.
    anew : callable
        The shift of one problem, by solving it on its own.
    n_rows : int
        How many problems are worked on at once.
    """
    for start in range(0, len(delta) if n_steps else 0, max(n_rows, 1)):
        moving = np.arange(start, min(start + max(n_rows, 1), len(delta)))
        for _ in range(n_steps):
            gradient = gradients(moving)
            step = -solve(gradient, moving)
            delta[moving] += step
            # −step·gradient is ‖step‖² in the Hessian's norm: a sum over items of squared changes of scores.
            size = -(step * gradient).reshape(len(moving), -1).sum(axis=1)
            moving = moving[~(size <= _TOLERANCE**2)]
            if not len(moving):
                break
        if n_steps > 1:  # few items, or an influential one: what this Hessian does not settle
            for row in moving.tolist():
                delta[row] = anew(row)
    return delta


@dataclass(frozen=True)
class Loss:
    """A loss of a score and a target of ±1: its value and derivatives by the score."""

    value: Callable[[Floats, Floats], Floats]
    slope: Callable[[Floats, Floats], Floats]
    curve: Callable[[Floats, Floats], Floats]
    third: Callable[[Floats], Floats] | None = None  # where it does not depend on the target
    quadratic: bool = False  # one Newton step is exact


@dataclass(frozen=True, eq=False)
class ColumnProblem(Problem):
    r"""A penalised sum of losses for each score column: two classes have one, more have one for each against the rest.

    For each column k, minimise :math:`\sum_i w_{y_i k}\, \ell(\phi_i^\top\theta_k, t_{y_i k}) + \tfrac12
    \theta_k^\top \Lambda\theta_k`.
    """

    targets: Floats  # (n_classes, K): the weight and the target that an item of a class has in each column
    loss: Loss

    @cached_property
    def factors(self) -> list[tuple[Floats, bool]]:
        """The Cholesky factor of the Hessian of each column; one that serves all columns is made once."""
        if self.loss.quadratic and (self.weights == self.weights[:, :1]).all():
            return [self._factor(0)] * len(self.theta)
        return [self._factor(k) for k in range(len(self.theta))]

    def _factor(self, k: int) -> tuple[Floats, bool]:
        curves = self.weights[self.y, k] * self.loss.curve(self.scores[:, k], self.targets[self.y, k])
        hessian = gram(self.phi, curves)
        hessian[np.diag_indices_from(hessian)] += self.penalty
        factor: tuple[Floats, bool] = linalg.cho_factor(hessian, lower=True, check_finite=False)
        return factor

    def newton_step(self, gradient: Floats) -> Floats:
        """−H⁻¹ times the gradient, column by column."""
        return np.stack([-linalg.cho_solve(f, g) for f, g in zip(self.factors, gradient, strict=True)])

    def objective(self) -> float:
        """The penalised loss."""
        losses = self.weights[self.y] * self.loss.value(self.scores, self.targets[self.y])
        return float(losses.sum() + 0.5 * (self.penalty * self.theta**2).sum())

    def gradient(self) -> Floats:
        """Its gradient; shape (K, p)."""
        slopes = self.weights[self.y] * self.loss.slope(self.scores, self.targets[self.y])
        return np.asarray(dense(self.phi.T @ slopes).T + self.penalty * self.theta)

    def steps(self, item: Codes, to: Codes, *, exact: bool, memory_limit: int) -> Floats:
        r"""How the solution moves for each change of a label; shape (m, K, p).

        With γ and η the changes of the slope and the curve of the item's own loss and h = φᵀH⁻¹φ, a Newton step with
        the Hessian of the changed problem is :math:`\delta = -H^{-1}\phi\,\gamma / (1 + \eta h)`. The next term of
        the expansion, :math:`-\tfrac12 H^{-1} T[\delta, \delta]`, needs the third derivatives only.
        """
        phi = dense(self.phi[item])
        delta = np.zeros((len(item), *self.theta.shape))
        all_exact = exact or len(item) * self.scores.size <= SMALL_WORK
        n_steps = MAX_STEPS if all_exact and not self.loss.quadratic else 0
        for k, factor in enumerate(self.factors):
            gamma, eta = self._own_change(item, to, k)
            moved = np.flatnonzero((gamma != 0) | (eta != 0))
            if not len(moved):
                continue
            local = _Local.of(factor, phi[moved], eta[moved])
            step = -(gamma[moved] / local.stretch)[:, None] * local.toward
            if not self.loss.quadratic and k in self._third:
                step -= linalg.cho_solve(factor, self._third[k] @ _pairs(step), check_finite=False).T
            delta[moved, k] = self._converged(item[moved], to[moved], step, k, local, memory_limit, n_steps)
        return delta

    def _own_change(self, item: Codes, to: Codes, k: int) -> tuple[Floats, Floats]:
        """How the slope and the curve of an item's own loss change with its label."""
        score, own = self.scores[item, k], self.y[item]
        target, weight = self.targets[:, k], self.weights[:, k]
        gamma, eta = (
            weight[to] * part(score, target[to]) - weight[own] * part(score, target[own])
            for part in (self.loss.slope, self.loss.curve)
        )
        return gamma, eta

    @cached_property
    def _third(self) -> dict[int, Floats]:
        """½ of the third derivatives of each column as (p, pairs of parameters), where that is affordable."""
        n, p = self.phi.shape
        n_pairs = p * (p + 1) // 2
        if self.loss.third is None or n * p * n_pairs * len(self.theta) > _TENSOR_WORK:
            return {}
        tables = {k: np.zeros((p, n_pairs)) for k in range(len(self.theta))}
        rows = max((1 << 22) // n_pairs, 1)
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            phi = dense(self.phi[part])
            pairs = _pairs(phi)
            for k, table in tables.items():
                thirds = 0.5 * self.weights[self.y[part], k] * self.loss.third(self.scores[part, k])
                table += (phi * thirds[:, None]).T @ pairs.T
        # Each pair of different parameters stands for two entries.
        a, b = np.triu_indices(p)
        twice = np.where(a == b, 1.0, 2.0)
        return {k: table * twice for k, table in tables.items()}

    def _converged(
        self, item: Codes, to: Codes, delta: Floats, k: int, local: _Local, memory_limit: int, n_steps: int
    ) -> Floats:
        """Steps with the exact gradient of each changed problem and its Hessian at the base solution."""

        def anew(row: int) -> Floats:
            alone = replace(self, targets=self.targets[:, [k]], weights=self.weights[:, [k]], theta=self.theta[[k]])
            solution = alone.with_label(int(item[row]), int(to[row])).solved()
            return np.zeros(self.theta.shape[1]) if solution is None else np.asarray(solution.theta[0] - self.theta[k])

        return converge(
            delta,
            lambda rows: self._gradients(item[rows], to[rows], delta[rows], k),
            lambda gradient, rows: local.solve(self.factors[k], gradient, rows),
            anew,
            n_steps=n_steps,
            n_rows=int(memory_limit // (48 * len(self.y))),
        )

    def _gradients(self, item: Codes, to: Codes, delta: Floats, k: int) -> Floats:
        """The gradient of column k of each changed problem at the shifted parameters; shape (m, p)."""
        theta = self.theta[k] + delta
        scores = self.scores[:, k][:, None] + dense(self.phi @ delta.T)
        target, weight = self.targets[:, k], self.weights[:, k]
        slopes = self.loss.slope(scores, target[self.y][:, None]) * weight[self.y][:, None]
        model = np.arange(len(item))
        slopes[item, model] = weight[to] * self.loss.slope(scores[item, model], target[to])
        return np.asarray(dense(self.phi.T @ slopes).T + self.penalty * theta)


@dataclass(frozen=True, eq=False)
class _Local:
    """The Hessians of changed problems: H + η φφᵀ, each differing from H by its own item."""

    phi: Floats  # (m, p): φ
    toward: Floats  # (m, p): H⁻¹φ
    eta: Floats  # (m,): η
    stretch: Floats  # (m,): 1 + η φᵀH⁻¹φ

    @classmethod
    def of(cls, factor: tuple[Floats, bool], phi: Floats, eta: Floats) -> _Local:
        toward = linalg.cho_solve(factor, phi.T, check_finite=False).T
        return cls(phi, toward, eta, 1 + eta * np.einsum("ij,ij->i", phi, toward))

    def solve(self, factor: tuple[Floats, bool], right: Floats, rows: Codes) -> Floats:
        """Each Hessian's inverse applied to its row (Sherman and Morrison)."""
        solution = linalg.cho_solve(factor, right.T, check_finite=False).T
        along = self.eta[rows] * np.einsum("ij,ij->i", self.phi[rows], solution) / self.stretch[rows]
        return np.asarray(solution - along[:, None] * self.toward[rows])


def _pairs(rows: Floats) -> Floats:
    """The products of all pairs of columns, each pair once; shape (pairs, n), so that each is contiguous."""
    columns = np.ascontiguousarray(rows.T)
    p = len(columns)
    products = np.empty((p * (p + 1) // 2, columns.shape[1]))
    start = 0
    for a in range(p):
        np.multiply(columns[a], columns[a:], out=products[start : start + p - a])
        start += p - a
    return products
