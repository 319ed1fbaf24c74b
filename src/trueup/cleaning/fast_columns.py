"""Linear models whose score columns are fitted one by one: Newton steps for every change of a label at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from trueup._base.types import Codes, Floats
from trueup.cleaning.fast_base import LinearFlips, dense, is_sparse, solved_by_newton, with_intercept
from trueup.cleaning.flips import Candidates

__all__ = ["ColumnFlips", "ColumnProblem", "Loss"]

MOST_PARAMETERS = 5000  # columns of a Hessian that is still factorised
_TENSOR_WORK = 2e9  # multiplications for the third derivatives
SMALL_WORK = 2e6  # scores of all models on all training items, up to which all models are made exact
MAX_STEPS = 12  # with the Hessian of the base problem; few are needed, or many more
_TOLERANCE = 1e-7  # of the last step, as the change of a typical score


@dataclass(frozen=True)
class Loss:
    """A loss of a score and a target of ±1: its value and derivatives by the score."""

    value: Callable[[Floats, Floats], Floats]
    slope: Callable[[Floats, Floats], Floats]
    curve: Callable[[Floats, Floats], Floats]
    third: Callable[[Floats], Floats] | None = None  # where it does not depend on the target
    quadratic: bool = False  # one Newton step is exact


@dataclass(frozen=True, eq=False)
class ColumnProblem:
    r"""A penalised sum of losses for each score column.

    For each column k, minimise :math:`\sum_i w_{y_i k}\, \ell(\phi_i^\top\theta_k, t_{y_i k}) + \tfrac12
    \theta_k^\top \Lambda\theta_k`.

    Attributes
    ----------
    phi : array or CSR matrix of shape (n, p)
    y : integer array of shape (n,)
        The class of each item.
    targets, weights : arrays of shape (n_classes, K)
        The target and the weight that an item of a class has in each column.
    penalty : array of shape (p,)
        The diagonal of Λ.
    loss : Loss
    theta : array of shape (K, p)
        Where the search starts; the solution in what `solved` returns.
    """

    phi: Any
    y: Codes
    targets: Floats
    weights: Floats
    penalty: Floats
    loss: Loss
    theta: Floats

    @cached_property
    def scores(self) -> Floats:
        """Scores of the training items; shape (n, K)."""
        return dense(self.phi @ self.theta.T)

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
        found: tuple[Floats, bool] = linalg.cho_factor(hessian, lower=True, check_finite=False)
        return found

    def solved(self) -> ColumnProblem | None:
        """The same problem at its solution, by Newton's method with halved steps; None if it finds none."""

        def step(now: ColumnProblem, gradient: Floats) -> Floats:
            return np.stack([-linalg.cho_solve(f, g) for f, g in zip(now.factors, gradient, strict=True)])

        return solved_by_newton(self, step, keep="factors")

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
            found = -(gamma[moved] / local.stretch)[:, None] * local.toward
            if not self.loss.quadratic and k in self._third:
                found -= linalg.cho_solve(factor, self._third[k] @ _pairs(found), check_finite=False).T
            if n_steps:
                found = self._converged(item[moved], to[moved], found, k, local, memory_limit, n_steps)
            delta[moved, k] = found
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
        found = {k: np.zeros((p, n_pairs)) for k in range(len(self.theta))}
        rows = max((1 << 22) // n_pairs, 1)
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            phi = dense(self.phi[part])
            pairs = _pairs(phi)
            for k, table in found.items():
                thirds = 0.5 * self.weights[self.y[part], k] * self.loss.third(self.scores[part, k])
                table += (phi * thirds[:, None]).T @ pairs.T
        # Each pair of different parameters stands for two entries.
        a, b = np.triu_indices(p)
        twice = np.where(a == b, 1.0, 2.0)
        return {k: table * twice for k, table in found.items()}

    def _converged(
        self, item: Codes, to: Codes, delta: Floats, k: int, local: _Local, memory_limit: int, n_steps: int
    ) -> Floats:
        """Steps with the exact gradient of each changed problem and its Hessian at the base solution."""
        rows = max(int(memory_limit // (48 * len(self.y))), 1)
        for start in range(0, len(item), rows):
            moving = np.arange(start, min(start + rows, len(item)))
            for _ in range(n_steps):
                gradient = self._gradients(item[moving], to[moving], delta[moving], k)
                step = -local.solve(self.factors[k], gradient, moving)
                delta[moving] += step
                # −step·gradient is ‖step‖² in the Hessian's norm: a sum over items of squared changes of scores.
                moving = moving[~(-(step * gradient).sum(axis=1) <= _TOLERANCE**2)]
                if not len(moving):
                    break
            if n_steps > 1:  # few items, or an influential one: what this Hessian does not settle
                for row in moving.tolist():
                    delta[row] = self._anew(int(item[row]), int(to[row]), k)
        return delta

    def _anew(self, item: int, to: int, k: int) -> Floats:
        """How column k moves, by solving the changed problem on its own."""
        labels = self.y.copy()
        labels[item] = to
        targets, weights = self.targets[:, [k]], self.weights[:, [k]]
        found = replace(self, y=labels, targets=targets, weights=weights, theta=self.theta[[k]]).solved()
        return np.zeros(self.theta.shape[1]) if found is None else np.asarray(found.theta[0] - self.theta[k])

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
    """The Hessians of changed problems: H + η φφᵀ, each differing from H by its own item.

    Attributes
    ----------
    phi, toward : arrays of shape (m, p)
        φ and H⁻¹φ.
    eta, stretch : arrays of shape (m,)
        η and 1 + η φᵀH⁻¹φ.
    """

    phi: Floats
    toward: Floats
    eta: Floats
    stretch: Floats

    @classmethod
    def of(cls, factor: tuple[Floats, bool], phi: Floats, eta: Floats) -> _Local:
        toward = linalg.cho_solve(factor, phi.T, check_finite=False).T
        return cls(phi, toward, eta, 1 + eta * np.einsum("ij,ij->i", phi, toward))

    def solve(self, factor: tuple[Floats, bool], right: Floats, rows: Codes) -> Floats:
        """Each Hessian's inverse applied to its row (Sherman and Morrison)."""
        found = linalg.cho_solve(factor, right.T, check_finite=False).T
        along = self.eta[rows] * np.einsum("ij,ij->i", self.phi[rows], found) / self.stretch[rows]
        return np.asarray(found - along[:, None] * self.toward[rows])


class ColumnFlips(LinearFlips):
    """The flip models of a `ColumnProblem`.

    Parameters
    ----------
    problem : ColumnProblem
        At its solution.
    codes : integer array of shape (n_classes,)
        The code of each of the problem's classes.
    intercept : float or None
        The value of the constant feature.
    weights_after : callable, optional
        For weights that depend on the numbers of labels: the table of weights from those numbers.
    """

    def __init__(
        self,
        problem: ColumnProblem,
        codes: Codes,
        intercept: float | None,
        weights_after: Callable[[Floats], Floats] | None = None,
    ) -> None:
        self.problem, self.theta, self.features_ = problem, problem.theta, problem.phi
        self.columns_, self.y, self._intercept = codes, problem.y, intercept
        self._weights_after = weights_after
        self._position = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
        self._position[codes] = np.arange(len(codes))
        self._others: dict[tuple[int, int], ColumnProblem | None] = {}
        self.exact = problem.loss.quadratic

    def features(self, X: Any) -> Any:
        """The items' features with the constant one in front."""
        return with_intercept(X, self._intercept)

    def shifts(self, candidates: Candidates, *, exact: bool, memory_limit: int) -> Floats:
        """How the parameters move; shape (n_candidates, K, p)."""
        to = self._position[candidates.to]
        if self._weights_after is None:
            return self.problem.steps(candidates.item, to, exact=exact, memory_limit=memory_limit)
        # A change of class a to b changes the weights of all items alike, so such changes share a base problem.
        delta = np.zeros((len(candidates), *self.theta.shape))
        own = self.y[candidates.item]
        for a, b in np.unique(np.stack([own, to], axis=1), axis=0).tolist():
            rows = np.flatnonzero((own == a) & (to == b))
            problem = self._after(a, b)
            if problem is not None:
                steps = problem.steps(candidates.item[rows], to[rows], exact=exact, memory_limit=memory_limit)
                delta[rows] = problem.theta - self.theta + steps
        return delta

    def _after(self, a: int, b: int) -> ColumnProblem | None:
        if (a, b) not in self._others:
            assert self._weights_after is not None
            number = np.bincount(self.y, minlength=len(self.columns_)).astype(float)
            number[a] -= 1
            number[b] += 1
            changed = replace(self.problem, weights=self._weights_after(number), theta=self.theta)
            self._others[a, b] = changed.solved()
        return self._others[a, b]


def gram(phi: Any, weights: Floats) -> Floats:
    """Φᵀ diag(w) Φ, dense."""
    if is_sparse(phi):
        return dense(phi.T @ phi.multiply(weights[:, None]).tocsr())
    return np.asarray(phi.T @ (phi * weights[:, None]))


def class_weights(given: Any, classes: npt.NDArray[Any], number: Floats) -> Floats:
    """The weight of each class as scikit-learn makes it; `number` has how many labels each class has."""
    if given is None:
        return np.ones(len(classes))
    if given == "balanced":
        return np.asarray(number.sum() / (len(number) * number))
    return np.array([float(given.get(name, 1.0)) for name in classes.tolist()])


def column_targets(n_classes: int) -> Floats:
    """±1 for each class and column: one column for two classes, else one class against the rest."""
    return np.array([[-1.0], [1.0]]) if n_classes == 2 else 2 * np.eye(n_classes) - 1


def _pairs(rows: Floats) -> Floats:
    """The products of all pairs of columns, each pair once; shape (pairs, n), so that each is contiguous."""
    columns = np.ascontiguousarray(rows.T)
    p = len(columns)
    found = np.empty((p * (p + 1) // 2, columns.shape[1]))
    start = 0
    for a in range(p):
        np.multiply(columns[a], columns[a:], out=found[start : start + p - a])
        start += p - a
    return found
