"""Flip models of multinomial logistic regression: one Hessian for the parameters of all classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, special

from trueup._base.types import Codes, Floats
from trueup.cleaning.fast_base import FlipModels, LinearFlips, dense, solved_by_newton, with_intercept
from trueup.cleaning.fast_columns import (
    MAX_STEPS,
    MOST_PARAMETERS,
    SMALL_WORK,
    ColumnFlips,
    ColumnProblem,
    Loss,
    class_weights,
    column_targets,
    gram,
)
from trueup.cleaning.flips import Candidates

__all__ = ["SoftmaxFlips", "SoftmaxProblem", "logistic_flips", "ridge_flips", "squared_hinge_flips"]

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
    weights: Floats
    penalty: Floats
    theta: Floats

    @cached_property
    def scores(self) -> Floats:
        """Scores of the training items; shape (n, K)."""
        return dense(self.phi @ self.theta.T)

    @cached_property
    def chances(self) -> Floats:
        """Probabilities of the training items; shape (n, K)."""
        return np.asarray(special.softmax(self.scores, axis=1))

    @cached_property
    def factor(self) -> tuple[Floats, bool]:
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
        found: tuple[Floats, bool] = linalg.cho_factor(hessian.reshape(k * p, k * p), lower=True, check_finite=False)
        return found

    def solve(self, right: Floats) -> Floats:
        """H⁻¹ applied to rows of shape (m, K, p)."""
        flat = linalg.cho_solve(self.factor, right.reshape(len(right), -1).T, check_finite=False)
        return np.asarray(flat.T).reshape(right.shape)

    def solved(self) -> SoftmaxProblem | None:
        """The same problem at its solution, by Newton's method with halved steps; None if it finds none."""

        def step(now: SoftmaxProblem, gradient: Floats) -> Floats:
            return np.asarray(-now.solve(gradient[None])[0])

        return solved_by_newton(self, step, keep="factor")

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
        return self._converged(item, to, delta, memory_limit, n_steps)

    def _leverage(self, phi: Floats) -> Floats:
        """L of each item; shape (m, K, K)."""
        k, p = self.theta.shape
        found = np.empty((len(phi), k, k))
        for b in range(k):
            right = np.zeros((len(phi), k, p))
            right[:, b] = phi
            found[:, :, b] = np.einsum("mkp,mp->mk", self.solve(right), phi)
        return found

    def _converged(self, item: Codes, to: Codes, delta: Floats, memory_limit: int, n_steps: int) -> Floats:
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
        weights_after: Callable[[Floats], Floats] | None = None,
    ) -> None:
        self.problem, self.theta, self.features_ = problem, problem.theta, problem.phi
        self.columns_, self.y, self._intercept = codes, problem.y, intercept
        self._weights_after = weights_after
        self._position = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
        self._position[codes] = np.arange(len(codes))

    def features(self, X: Any) -> Any:
        """The items' features with the constant one in front."""
        return with_intercept(X, self._intercept)

    def shifts(self, candidates: Candidates, *, exact: bool, memory_limit: int) -> Floats:
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


def _chance(score: Floats) -> Floats:
    """The logistic function; numpy's tanh works on several numbers at once, scipy's expit does not."""
    found = np.tanh(0.5 * score)
    found += 1
    found *= 0.5
    return np.asarray(found)


def _slope(score: Floats, target: Floats) -> Floats:
    found = _chance(score)
    found -= target > 0
    return found


def _curve(score: Floats, target: Floats) -> Floats:
    chance = _chance(score)
    return np.asarray(chance * (1 - chance))


def _third(score: Floats) -> Floats:
    chance = _chance(score)
    return np.asarray(chance * (1 - chance) * (1 - 2 * chance))


LOGISTIC = Loss(lambda s, t: np.logaddexp(0.0, -t * s), _slope, _curve, _third)


def logistic_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``LogisticRegression`` with an l2 penalty; None for other options.

    Parameters
    ----------
    model : LogisticRegression
    X : array or sparse matrix of shape (n, n_features)
    y : integer array of shape (n,)
        Positions in ``model.classes_``.
    codes : integer array
        The code of each class of the model.
    """
    options = model.get_params()
    penalty = options.get("penalty")
    if penalty not in ("deprecated", "l2", None) or options.get("l1_ratio") not in (None, 0, 0.0):
        return None
    if np.ndim(options["C"]) or getattr(model, "multi_class", "auto") == "ovr":
        return None
    ridge = 0.0 if penalty is None or np.isinf(options["C"]) else 1.0 / options["C"]
    liblinear = options["solver"] == "liblinear"
    intercept = (float(options["intercept_scaling"]) if liblinear else 1.0) if options["fit_intercept"] else None
    phi = with_intercept(X, intercept)
    n_classes, p = len(model.classes_), phi.shape[1]
    if p * (1 if n_classes == 2 else n_classes) > MOST_PARAMETERS:
        return None
    diagonal = np.full(p, ridge)
    if intercept is not None and not liblinear:  # liblinear penalises the intercept too
        diagonal[0] = 0.0
    start = _parameters(model, intercept)

    def weigh(number: Floats) -> Floats:
        return class_weights(options["class_weight"], model.classes_, number)

    weights = weigh(np.bincount(y, minlength=n_classes).astype(float))
    balanced = isinstance(options["class_weight"], str)
    if n_classes == 2:
        targets = column_targets(2)
        problem = ColumnProblem(phi, y, targets, weights[:, None], diagonal, LOGISTIC, start).solved()
        after = (lambda number: weigh(number)[:, None]) if balanced else None
        return None if problem is None else ColumnFlips(problem, codes, intercept, after)
    softmax = SoftmaxProblem(phi, y, weights, diagonal, start).solved()
    return None if softmax is None else SoftmaxFlips(softmax, codes, intercept, weigh if balanced else None)


def _parameters(model: Any, intercept: float | None) -> Floats:
    """Coefficients with the intercept's in front, for the constant feature as it is scaled."""
    slopes = np.asarray(model.coef_, dtype=float)
    slopes = slopes.toarray() if hasattr(slopes, "toarray") else slopes
    if intercept is None:
        return slopes
    return np.column_stack([np.broadcast_to(model.intercept_, len(slopes)) / intercept, slopes])


SQUARED_HINGE = Loss(
    value=lambda s, t: np.maximum(1 - t * s, 0.0) ** 2,
    slope=lambda s, t: -2 * t * np.maximum(1 - t * s, 0.0),
    curve=lambda s, t: np.where(t * s < 1, 2.0, 0.0),
)


def squared_hinge_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``LinearSVC`` with the squared hinge loss and an l2 penalty; None for other options.

    Within a set of items inside the margin the loss is quadratic, so a Newton step is exact while no item crosses the
    margin.
    """
    options = model.get_params()
    if options["loss"] != "squared_hinge" or options["penalty"] != "l2" or options["multi_class"] != "ovr":
        return None
    intercept = float(options["intercept_scaling"]) if options["fit_intercept"] else None
    phi = with_intercept(X, intercept)
    n_classes, p = len(model.classes_), phi.shape[1]
    if p > MOST_PARAMETERS:
        return None
    slopes = np.asarray(model.coef_, dtype=float)
    if intercept is not None:
        slopes = np.column_stack([np.broadcast_to(model.intercept_, len(slopes)) / intercept, slopes])
    targets = column_targets(n_classes)

    def weigh(number: Floats) -> Floats:
        each = class_weights(options["class_weight"], model.classes_, number)
        # With more than two classes liblinear weighs the class of a column only, and the rest by 1.
        return each[:, None] if n_classes == 2 else np.where(targets > 0, each, 1.0)

    weights = weigh(np.bincount(y, minlength=n_classes).astype(float))
    # Liblinear penalises the intercept as it does the rest.
    penalty = np.full(p, 1.0 / options["C"])
    problem = ColumnProblem(phi, y, targets, weights, penalty, SQUARED_HINGE, slopes).solved()
    after = weigh if isinstance(options["class_weight"], str) else None
    return None if problem is None else ColumnFlips(problem, codes, intercept, after)


SQUARED = Loss(
    value=lambda s, t: 0.5 * (s - t) ** 2,
    slope=lambda s, t: s - t,
    curve=lambda s, t: np.ones_like(s),
    quadratic=True,
)


def ridge_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``RidgeClassifier``; None for positive coefficients.

    The objective is quadratic and a change of a label changes one target and, with class weights, one weight: a step
    with a Hessian that is updated by rank one is the solution.
    """
    options = model.get_params()
    if options["positive"] or np.ndim(options["alpha"]):
        return None
    intercept = 1.0 if options["fit_intercept"] else None
    phi = with_intercept(X, intercept)
    n_classes, p = len(model.classes_), phi.shape[1]
    if p > MOST_PARAMETERS:
        return None
    penalty = np.full(p, float(options["alpha"]))
    if intercept is not None:
        penalty[0] = 0.0
    targets = column_targets(n_classes)

    def weigh(number: Floats) -> Floats:
        each = class_weights(options["class_weight"], model.classes_, number)
        return np.repeat(each[:, None], targets.shape[1], axis=1)

    weights = weigh(np.bincount(y, minlength=n_classes).astype(float))
    start = np.zeros((targets.shape[1], p))
    problem = ColumnProblem(phi, y, targets, weights, penalty, SQUARED, start).solved()
    after = weigh if isinstance(options["class_weight"], str) else None
    return None if problem is None else ColumnFlips(problem, codes, intercept, after)
