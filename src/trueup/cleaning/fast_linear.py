"""Flip models of logistic regression, linear support vector machines and ridge classifiers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from trueup._base.types import Codes, Floats
from trueup.cleaning.fast_base import FlipModels, LinearFlips, dense, gram, positions_of, with_intercept
from trueup.cleaning.flips import Candidates

# ------------------ Problems whose solutions are linear models, and how a change of one label moves a solution

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


MOST_PARAMETERS = 5000  # columns of a Hessian that is still factorised
_STEP_WORK = 5e6  # scores of all models on all training items, up to which all models get a second step


@dataclass(frozen=True, eq=False)
class SoftmaxProblem(Problem):
    r"""A penalised sum of log losses, of all classes together.

    Minimise :math:`-\sum_i w_{y_i} \log \mathrm{softmax}(\theta\phi_i)_{y_i} + \tfrac12 \sum_k \theta_k^\top
    \Lambda \theta_k`.
    """

    @cached_property
    def chances(self) -> Floats:
        """Probabilities of the training items; shape (n, K)."""
        return np.asarray(special.softmax(self.scores, axis=1))

    @cached_property
    def factors(self) -> tuple[Floats, bool]:
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
        factor: tuple[Floats, bool] = linalg.cho_factor(hessian.reshape(k * p, k * p), lower=True, check_finite=False)
        return factor

    def solve(self, right: Floats) -> Floats:
        """H⁻¹ applied to rows of shape (m, K, p)."""
        flat = linalg.cho_solve(self.factors, right.reshape(len(right), -1).T, check_finite=False)
        return np.asarray(flat.T).reshape(right.shape)

    def newton_step(self, gradient: Floats) -> Floats:
        """−H⁻¹ times the gradient."""
        return np.asarray(-self.solve(gradient[None])[0])

    def objective(self) -> float:
        """The penalised loss."""
        own = special.log_softmax(self.scores, axis=1)[np.arange(len(self.y)), self.y]
        return float(-(self.weights[self.y] * own).sum() + 0.5 * (self.penalty * self.theta**2).sum())

    def gradient(self) -> Floats:
        """Its gradient; shape (K, p)."""
        slopes = self.chances.copy()
        slopes[np.arange(len(self.y)), self.y] -= 1
        slopes *= self.weights[self.y][:, None]
        return np.asarray(dense(self.phi.T @ slopes).T + self.penalty * self.theta)

    def steps(self, item: Codes, to: Codes, *, exact: bool, memory_limit: int) -> Floats:
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

        def anew(row: int) -> Any:
            solution = self.with_label(int(item[row]), int(to[row])).solved()
            return 0.0 if solution is None else solution.theta - self.theta

        return converge(
            delta,
            lambda rows: self._gradients(item[rows], to[rows], delta[rows]),
            lambda gradient, rows: self.solve(gradient),
            anew,
            n_steps=n_steps,
            n_rows=int(memory_limit // (48 * self.scores.size)),
        )

    def _leverage(self, phi: Floats) -> Floats:
        """L of each item; shape (m, K, K)."""
        k, p = self.theta.shape
        leverage = np.empty((len(phi), k, k))
        for b in range(k):
            right = np.zeros((len(phi), k, p))
            right[:, b] = phi
            leverage[:, :, b] = np.einsum("mkp,mp->mk", self.solve(right), phi)
        return leverage

    def _gradients(self, item: Codes, to: Codes, delta: Floats) -> Floats:
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


class ObjectiveFlips(LinearFlips):
    """The flip models of a `Problem`."""

    def __init__(
        self,
        problem: Problem,
        codes: Codes,
        intercept: float | None,
        weights_after: Callable[[Floats], Floats] | None = None,
        *,
        exact: bool = False,
    ) -> None:
        self.problem, self.theta, self.features_ = problem, problem.theta, problem.phi
        self.columns_, self.y, self._intercept, self.exact = codes, problem.y, intercept, exact
        self._weights_after = weights_after
        self._others: dict[tuple[int, int], Problem | None] = {}

    def features(self, X: Any) -> Any:
        """The items' features with the constant one in front."""
        return with_intercept(X, self._intercept)

    def shifts(self, candidates: Candidates, *, exact: bool, memory_limit: int) -> Floats:
        """How the parameters move; shape (n_candidates, K, p)."""
        to = positions_of(self.columns_)[candidates.to]
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

    def _after(self, a: int, b: int) -> Problem | None:
        if (a, b) not in self._others:
            assert self._weights_after is not None
            number = np.bincount(self.y, minlength=len(self.columns_)).astype(float)
            number[a] -= 1
            number[b] += 1
            self._others[a, b] = replace(self.problem, weights=self._weights_after(number)).solved()
        return self._others[a, b]


def _chance(score: Floats) -> Floats:
    """The logistic function; numpy's tanh works on several numbers at once, scipy's expit does not."""
    chance = np.tanh(0.5 * score)
    chance += 1
    chance *= 0.5
    return np.asarray(chance)


def _slope(score: Floats, target: Floats) -> Floats:
    slope = _chance(score)
    slope -= target > 0
    return slope


def _curve(score: Floats, target: Floats) -> Floats:
    chance = _chance(score)
    return np.asarray(chance * (1 - chance))


def _third(score: Floats) -> Floats:
    chance = _chance(score)
    return np.asarray(chance * (1 - chance) * (1 - 2 * chance))


LOGISTIC = Loss(lambda s, t: np.logaddexp(0.0, -t * s), _slope, _curve, _third)
SQUARED_HINGE = Loss(
    value=lambda s, t: np.maximum(1 - t * s, 0.0) ** 2,
    slope=lambda s, t: -2 * t * np.maximum(1 - t * s, 0.0),
    curve=lambda s, t: np.where(t * s < 1, 2.0, 0.0),
)
SQUARED = Loss(
    value=lambda s, t: 0.5 * (s - t) ** 2,
    slope=lambda s, t: s - t,
    curve=lambda s, t: np.ones_like(s),
    quadratic=True,
)


def _linear_flips(
    model: Any,
    X: Any,
    y: Codes,
    codes: Codes,
    loss: Loss | None,
    *,
    penalty: float,
    intercept: float | None,
    free_intercept: bool = True,
    weighs_rest: bool = True,
) -> FlipModels | None:
    """Flip models of a fitted linear model of scikit-learn; None if it is too large or has no solution."""
    phi, n_classes = with_intercept(X, intercept), len(codes)
    slopes = np.atleast_2d(dense(model.coef_))
    front = [] if intercept is None else [np.broadcast_to(model.intercept_, len(slopes)) / intercept]
    start = np.column_stack([*front, slopes])
    if (start.size if loss is None else phi.shape[1]) > MOST_PARAMETERS:
        return None
    diagonal = np.full(phi.shape[1], penalty)
    if intercept is not None and free_intercept:
        diagonal[0] = 0.0
    targets = np.array([[-1.0], [1.0]]) if n_classes == 2 else 2 * np.eye(n_classes) - 1

    def weigh(number: Floats) -> Floats:
        each = _class_weights(model.class_weight, model.classes_, number)
        if loss is None:
            return each
        return np.where((targets > 0) | (n_classes == 2) | weighs_rest, each[:, None], 1.0)

    weights = weigh(np.bincount(y, minlength=n_classes).astype(float))
    problem = (
        SoftmaxProblem(phi, y, weights, diagonal, start)
        if loss is None
        else ColumnProblem(phi, y, weights, diagonal, start, targets, loss)
    ).solved()
    if problem is None:
        return None
    after = weigh if isinstance(model.class_weight, str) else None
    return ObjectiveFlips(problem, codes, intercept, after, exact=loss is not None and loss.quadratic)


def _class_weights(choice: Any, classes: npt.NDArray[Any], number: Floats) -> Floats:
    """The weight of each class as scikit-learn makes it; `number` has how many labels each class has."""
    if choice is None:
        return np.ones(len(classes))
    if choice == "balanced":
        return np.asarray(number.sum() / (len(number) * number))
    return np.array([float(choice.get(name, 1.0)) for name in classes.tolist()])


def logistic_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``LogisticRegression`` with an l2 penalty; None for other options."""
    options = model.get_params()
    kind = options.get("penalty")
    if kind not in ("deprecated", "l2", None) or options.get("l1_ratio") not in (None, 0, 0.0):
        return None
    if np.ndim(options["C"]) or getattr(model, "multi_class", "auto") == "ovr":
        return None
    penalty = 0.0 if kind is None or np.isinf(options["C"]) else 1.0 / options["C"]
    liblinear = options["solver"] == "liblinear"  # which penalises the intercept too
    intercept = (float(options["intercept_scaling"]) if liblinear else 1.0) if options["fit_intercept"] else None
    # Of two classes one column says all, with a Hessian of a quarter of the size.
    loss = LOGISTIC if len(codes) == 2 else None
    return _linear_flips(model, X, y, codes, loss, penalty=penalty, intercept=intercept, free_intercept=not liblinear)


def squared_hinge_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``LinearSVC`` with the squared hinge loss and an l2 penalty; None for other options.

    Within a set of items inside the margin the loss is quadratic, so a Newton step is exact while no item crosses the
    margin. Liblinear penalises the intercept, and weighs the class of a column only, the rest by 1.
    """
    options = model.get_params()
    if options["loss"] != "squared_hinge" or options["penalty"] != "l2" or options["multi_class"] != "ovr":
        return None
    intercept = float(options["intercept_scaling"]) if options["fit_intercept"] else None
    how: dict[str, Any] = {"intercept": intercept, "free_intercept": False, "weighs_rest": False}
    return _linear_flips(model, X, y, codes, SQUARED_HINGE, penalty=1.0 / options["C"], **how)


def ridge_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``RidgeClassifier``; None for positive coefficients.

    The objective is quadratic and a change of a label changes one target and, with class weights, one weight: a step
    with a Hessian that is updated by rank one is the solution.
    """
    options = model.get_params()
    if options["positive"] or np.ndim(options["alpha"]):
        return None
    intercept = 1.0 if options["fit_intercept"] else None
    return _linear_flips(model, X, y, codes, SQUARED, penalty=float(options["alpha"]), intercept=intercept)
