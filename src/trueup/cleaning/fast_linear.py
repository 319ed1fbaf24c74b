"""Flip models of logistic regression, linear support vector machines and ridge classifiers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse, special

from trueup._base.types import Booleans, Codes, Floats
from trueup.cleaning.flips import Candidates

MEMORY = 1 << 30  # bytes, the default limit for temporary arrays
_METRIC_ROWS = 5000  # rows from which the metric of the bound is taken; any metric is valid, this one is tight
_FULL_METRIC = 512  # columns up to which that metric is a full matrix
_BLOCK_ROWS = 256  # models in a block: few, so that their shifts are of one size


@dataclass(frozen=True, eq=False)
class Block:
    """Predictions of some retrained models, where they may differ from those of the base model."""

    rows: Codes  # (n_models,): which candidates; those of one item lie side by side and in one block
    columns: Codes  # (n_columns,): which validation items; on all others the models predict as the base model does
    predictions: npt.NDArray[np.integer[Any]]  # (n_models, n_columns): codes of classes


class FlipModels(ABC):
    """All models that are trained with one label changed, without training them.

    Attributes
    ----------
    exact : bool. Whether predictions are those of retraining to rounding, without ``exact=True`` being asked for.
    """

    exact: bool = False

    @abstractmethod
    def base_predictions(self, X_val: Any) -> Codes:
        """The codes that the model trained on the labels as they are predicts; shape (n_validation,)."""

    @abstractmethod
    def changed_blocks(
        self, X_val: Any, candidates: Candidates, *, memory_limit: int = MEMORY, exact: bool = False
    ) -> Iterator[Block]:
        """Predictions of the retrained models where they may differ from the base model, in blocks.

        There is one model for each of the candidates. If `exact`, steps go on to convergence, at a much higher price.
        """

    def decision_blocks(
        self, X_val: Any, candidates: Candidates, *, memory_limit: int = MEMORY, exact: bool = False
    ) -> Iterator[tuple[Codes, Codes]]:
        """The same for all validation items: which candidates (m,), and codes of shape (m, n_validation)."""
        base = self.base_predictions(X_val)
        rows = max(int(memory_limit // (32 * max(len(base), 1))), 1)
        for block in self.changed_blocks(X_val, candidates, memory_limit=memory_limit // 2, exact=exact):
            for start in range(0, len(block.rows), rows):
                part = slice(start, start + rows)
                full = np.repeat(base[None], len(block.rows[part]), axis=0)
                full[:, block.columns] = block.predictions[part]
                yield block.rows[part], full


class LinearFlips(FlipModels):
    r"""Models whose scores are linear in some features: :math:`s_k(x) = \phi(x)^\top \theta_k`.

    A shift δ of the parameters moves a score by at most :math:`\lVert\phi\rVert_{A^{-1}} \lVert\delta\rVert_A` for any
    positive definite A, here the second moment of the training features. A validation item with a larger margin keeps
    its class, so only items near the boundary are scored.
    """

    theta: Floats  # (K, p)
    y: Codes  # (n,): labels of the training items
    columns_: Codes  # the code of each score column; two codes and one column for binary models
    features_: Any  # (n, p)
    _seen: tuple[Any, tuple[Codes, Floats, Any, Floats]] | None = None

    @abstractmethod
    def features(self, X: Any) -> Any:
        """φ of items, shape (n, p); dense or CSR."""

    @abstractmethod
    def shifts(self, candidates: Candidates, *, exact: bool, memory_limit: int) -> Floats:
        """How the parameters move; shape (n_candidates, K, p)."""

    def base_predictions(self, X_val: Any) -> Codes:
        """The class with the highest score."""
        scores = dense(self.features(X_val) @ self.theta.T)
        which = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(self.columns_[which])

    def changed_blocks(
        self, X_val: Any, candidates: Candidates, *, memory_limit: int = MEMORY, exact: bool = False
    ) -> Iterator[Block]:
        """As the base class says; in blocks of models whose moves are of one size."""
        if not len(candidates):
            return
        order, reach, near, scores = self._by_reach(X_val)
        metric, (k, p) = self._metric, self.theta.shape
        for chunk in item_chunks(candidates.item, max(int(memory_limit // (32 * k * p)), 1)):
            delta = self.shifts(candidates.select(chunk), exact=exact, memory_limit=memory_limit // 4)
            # Slightly more, so that rounding never hides an item.
            moves = metric.norm(delta.reshape(-1, p)).reshape(len(delta), k).max(axis=1) * (1 + 1e-9)
            for rows in _like_blocks(candidates.item[chunk], moves):
                n_near = int(np.searchsorted(reach, moves[rows].max(), side="right"))
                phi, before = near[:n_near], scores[:n_near]
                for part in item_chunks(
                    candidates.item[chunk[rows]], max(memory_limit // (64 * k * max(n_near, 1)), 1)
                ):
                    models = rows[part]
                    best = (before[:, :1] + dense(phi @ delta[models, 0].T)).T
                    which = (best > 0).astype(np.intp) if k == 1 else np.zeros(best.shape, dtype=np.intp)
                    for other in range(1, k):  # class by class: numpy is slow along a short last axis
                        rival = (before[:, other, None] + dense(phi @ delta[models, other].T)).T
                        which[rival > best] = other
                        np.maximum(best, rival, out=best)
                    yield Block(chunk[models], order[:n_near], self.columns_[which])

    def _by_reach(self, X_val: Any) -> tuple[Codes, Floats, Any, Floats]:
        """Validation items sorted by the move that could change them: order, moves, features and scores."""
        if self._seen is None or self._seen[0] is not X_val:  # the best models are asked for once more
            phi = self.features(X_val)
            scores = dense(phi @ self.theta.T)
            slack = np.abs(scores[:, 0])  # how far scores may move before the decision can change
            if scores.shape[1] > 1:
                top = np.partition(scores, scores.shape[1] - 2, axis=1)
                slack = (top[:, -1] - top[:, -2]) / 2  # either may move
            reach = slack / np.maximum(self._metric.inverse_norm(phi), 1e-300)
            order = np.argsort(reach, kind="stable").astype(np.int64)
            self._seen = X_val, (order, reach[order], phi[order], scores[order])
        return self._seen[1]

    @cached_property
    def _metric(self) -> _Metric:
        p, n = self.theta.shape[1], self.features_.shape[0]
        some = self.features_[:: max(n // _METRIC_ROWS, 1)]
        if p > _FULL_METRIC:
            squares = some.multiply(some) if is_sparse(some) else some**2
            scale = np.asarray(squares.sum(axis=0), dtype=float).ravel() / some.shape[0]
            return _Metric(np.sqrt(scale + 1e-9 * max(float(scale.max()), 1e-300)))
        second = dense(some.T @ some) / some.shape[0]
        second[np.diag_indices(p)] += 1e-9 * max(float(np.trace(second)), 1e-300)
        return _Metric(linalg.cholesky(second, lower=True))


@dataclass(frozen=True, eq=False)
class _Metric:
    """A norm of parameters and its dual norm of features: A is diag(scale²), or root rootᵀ."""

    root: Floats  # (p, p), or the scale of each parameter (p,)

    def norm(self, delta: Floats) -> Floats:
        """‖δ‖_A of rows."""
        seen = delta * self.root if self.root.ndim == 1 else delta @ self.root
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", seen, seen)))

    def inverse_norm(self, phi: Any) -> Floats:
        """‖φ‖ in the dual norm, of rows."""
        if self.root.ndim == 1:
            seen = phi.multiply(1 / self.root**2) if is_sparse(phi) else phi / self.root**2
            squares = seen.multiply(phi) if is_sparse(phi) else seen * phi
            return np.asarray(np.sqrt(np.asarray(squares.sum(axis=1), dtype=float).ravel()))
        white = linalg.solve_triangular(self.root, dense(phi).T, lower=True, check_finite=False)
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", white, white)))


def is_sparse(matrix: Any) -> bool:
    """Whether it is a sparse matrix of scipy."""
    return bool(sparse.issparse(matrix))


def csr(matrix: Any) -> Any:
    """A copy as sparse rows of floats."""
    make: Any = sparse.csr_array  # the stubs know matrices only by their number type
    return make(matrix, dtype=float, copy=True)


def dense(matrix: Any) -> Floats:
    """A dense array of floats."""
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix, dtype=float)


def with_intercept(X: Any, value: float | None) -> Any:
    """The features with a constant column in front, if there is an intercept."""
    rows: Any = csr(X) if is_sparse(X) else np.asarray(X, dtype=float)
    if value is None:
        return rows
    column = np.full((rows.shape[0], 1), value)
    return sparse.hstack([sparse.csr_array(column), rows], format="csr") if is_sparse(X) else np.hstack([column, rows])


def item_chunks(item: Codes, most: int) -> Iterator[Codes]:
    """Positions in runs of at most `most`, without tearing the candidates of an item apart."""
    starts = np.append(np.flatnonzero(np.append(True, item[1:] != item[:-1])), len(item))
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
        last = max(last, first + 1)  # one item at least
        yield np.arange(starts[first], starts[last])
        first = last


def _like_blocks(item: Codes, moves: Floats) -> Iterator[Codes]:
    """Positions in blocks of models whose moves are of one size, the candidates of an item together."""
    starts = np.flatnonzero(np.append(True, item[1:] != item[:-1]))
    ends = np.append(starts[1:], len(item))
    order = np.argsort(np.maximum.reduceat(moves, starts), kind="stable")
    per_block = max(_BLOCK_ROWS * len(starts) // len(item), 1)
    for first in range(0, len(order), per_block):
        some = np.sort(order[first : first + per_block])
        yield np.concatenate([np.arange(start, end) for start, end in zip(starts[some], ends[some], strict=True)])


def positions_of(codes: Codes) -> Codes:
    """The position of each code, -1 for one that is not there."""
    positions = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
    positions[codes] = np.arange(len(codes))
    return positions


def gram(phi: Any, weights: Floats) -> Floats:
    """Φᵀ diag(w) Φ, dense."""
    if is_sparse(phi):
        return dense(phi.T @ phi.multiply(weights[:, None]).tocsr())
    return np.asarray(phi.T @ (phi * weights[:, None]))


SMALL_WORK = 2e5  # scores of all models on all training items, up to which all models are made exact
MOST_PARAMETERS = 5000  # columns of a Hessian that is still factorised
_TOLERANCE = 1e-6  # of the last step, in the Hessian's norm: the change of a typical score
_CLOSE = 1e-4  # the same, where the steps with one Hessian run out
_MOST_STEPS = 50  # with one Hessian; of 425 models of noisy digits 26 need more, and end below 3e-4
_MOST_HESSIANS = 10
_REMEMBERED = 10  # steps that correct the Hessian
_ENOUGH = 1e-4  # of the decrease that a step promises
_SHORTER, _MOST_TRIALS = 0.3, 12
_ROUNDING = 1e-11  # of the objective


@dataclass(frozen=True, eq=False)
class Problem(ABC):
    r"""A penalised sum of losses of linear scores, and how its solution moves with one label.

    `phi` has a row of features for each item and `y` its class; `weights` are those of the classes, in each score
    column where they differ. `penalty` is the diagonal of Λ in :math:`\tfrac12 \sum_k \theta_k^\top \Lambda\theta_k`.
    `theta`, shape (K, p), is where the search starts, and the solution in what `solved` returns.
    """

    phi: Any
    y: Codes
    weights: Floats
    penalty: Floats
    theta: Floats

    @property
    def is_quadratic(self) -> bool:
        """Whether a Newton step is the solution."""
        return False

    @cached_property
    def scores(self) -> Floats:
        """Scores of the training items; shape (n, K)."""
        return dense(self.phi @ self.theta.T)

    @abstractmethod
    def solve(self, right: Floats) -> Floats:
        """The inverse of the Hessian at `theta` times rows of shape (m, K, p)."""

    @abstractmethod
    def losses(self, scores: Floats, y: Codes) -> tuple[Floats, Floats]:
        """Losses of scores (K, …) of items of classes y (…), and their slopes by the scores (K, …)."""

    @abstractmethod
    def first_steps(self, item: Codes, to: Codes) -> Floats:
        """A Newton step for each change of a label; shape (m, K, p)."""

    def steps(self, item: Codes, to: Codes, *, exact: bool, memory_limit: int) -> Floats:
        """How the solution moves for each change of a label; shape (m, K, p)."""
        if self.is_quadratic or not (exact or len(item) * self.scores.size <= SMALL_WORK):
            return self.first_steps(item, to)
        delta = np.empty((len(item), *self.theta.shape))
        rows = max(int(memory_limit // (64 * self.scores.size + 16 * (_REMEMBERED + 4) * self.theta.size)), 1)
        for start in range(0, len(item), rows):
            part = slice(start, start + rows)
            delta[part], settled = self._descend(item[part], to[part])
            for row in (start + np.flatnonzero(~settled)).tolist():
                labels = self.y.copy()
                labels[item[row]] = to[row]
                alone = replace(self, y=labels, theta=self.theta + delta[row]).solved()
                if alone is not None:
                    delta[row] = alone.theta - self.theta
        return delta

    def solved(self) -> Self | None:
        """The same problem at its solution; None if there is none to be found."""
        now, first = self, np.zeros(1, dtype=np.int64)
        for _ in range(_MOST_HESSIANS):
            try:  # the first label becomes what it is
                delta, settled = now._descend(first, now.y[:1])
            except linalg.LinAlgError:
                return None
            now = replace(now, theta=now.theta + delta[0])
            if settled[0]:
                return now
        return None

    def _descend(self, item: Codes, to: Codes) -> tuple[Floats, Booleans]:
        """The moves to the solutions of all changed problems side by side, and which of them arrived.

        L-BFGS (Nocedal 1980) with exact gradients and the base problem's Hessian to start from. Newton's method with
        that Hessian alone does not settle where an item of much influence changes its class.
        """
        every = len(item)
        delta, settled = np.zeros((every, *self.theta.shape)), np.zeros(every, dtype=bool)
        value, gradient = self._changed(item, to, delta)
        past: deque[tuple[Floats, Floats, Floats]] = deque(maxlen=_REMEMBERED)
        moving = np.arange(every)
        for _ in range(_MOST_STEPS):
            step = -self._corrected(gradient[moving], [tuple(part[moving] for part in parts) for parts in past])
            promised = _dot(step, gradient[moving])
            done = promised >= -(_TOLERANCE**2)
            settled[moving] = promised >= -(_CLOSE**2)
            moving, step, promised = moving[~done], step[~done], promised[~done]
            if not len(moving):
                break
            moved, bend, curvature = np.zeros_like(delta), np.zeros_like(delta), np.zeros(every)
            size, open_rows = 1.0, np.arange(len(moving))
            for _ in range(_MOST_TRIALS):
                rows = moving[open_rows]
                moved_to = delta[rows] + size * step[open_rows]
                found, slope = self._changed(item[rows], to[rows], moved_to)
                good = found <= value[rows] + _ENOUGH * size * promised[open_rows] + _ROUNDING * np.abs(found)
                kept = rows[good]
                moved[kept], bend[kept] = moved_to[good] - delta[kept], slope[good] - gradient[kept]
                delta[kept], value[kept], gradient[kept] = moved_to[good], found[good], slope[good]
                open_rows, size = open_rows[~good], size * _SHORTER
                if not len(open_rows):
                    break
            moving = np.delete(moving, open_rows)
            curved = _dot(moved[moving], bend[moving])
            curvature[moving] = np.where(curved > 0, 1 / np.maximum(curved, 1e-300), 0.0)
            past.append((moved, bend, curvature))
        return delta, settled

    def _corrected(self, gradient: Floats, past: list[Any]) -> Floats:
        """The inverse Hessian times each gradient, corrected by past steps (the two loops of L-BFGS)."""
        shares = []
        for moved, bend, curvature in reversed(past):
            shares.append(curvature * _dot(moved, gradient))
            gradient = gradient - shares[-1][:, None, None] * bend
        direction = self.solve(gradient)
        for moved, bend, curvature in past:
            direction += (shares.pop() - curvature * _dot(bend, direction))[:, None, None] * moved
        return direction

    def _changed(self, item: Codes, to: Codes, delta: Floats) -> tuple[Floats, Floats]:
        """The objective (m,) and the gradient (m, K, p) of each changed problem at the shifted parameters."""
        model = np.arange(len(item))
        # The class first: numpy is slow along a short last axis.
        scores = np.stack([self.scores[:, k, None] + dense(self.phi @ delta[:, k].T) for k in range(delta.shape[1])])
        own_loss, own_slope = self.losses(scores[:, item, model], to)
        loss, slope = self.losses(scores, self.y[:, None])
        loss[item, model], slope[:, item, model] = own_loss, own_slope
        theta = self.theta + delta
        gradient = np.stack([dense(self.phi.T @ part).T for part in slope], axis=1) + self.penalty * theta
        return loss.sum(axis=0) + 0.5 * (self.penalty * theta**2).sum(axis=(1, 2)), gradient


def _dot(first: Floats, second: Floats) -> Floats:
    return np.asarray(np.einsum("mkp,mkp->m", first, second))


@dataclass(frozen=True)
class Loss:
    """A loss of a score and a target of ±1: its value and derivatives by the score."""

    value: Callable[[Floats, Floats], Floats]
    slope: Callable[[Floats, Floats], Floats]
    curve: Callable[[Floats, Floats], Floats]


@dataclass(frozen=True, eq=False)
class ColumnProblem(Problem):
    r"""A penalised sum of losses for each score column: two classes have one, more have one for each against the rest.

    For each column k, minimise :math:`\sum_i w_{y_i k}\, \ell(\phi_i^\top\theta_k, t_{y_i k}) + \tfrac12
    \theta_k^\top \Lambda\theta_k`; `targets`, shape (n_classes, K), has t.
    """

    targets: Floats
    loss: Loss

    @property
    def is_quadratic(self) -> bool:
        """Whether a Newton step is the solution."""
        return self.loss is SQUARED

    @cached_property
    def factors(self) -> list[tuple[Floats, bool]]:
        """The Cholesky factor of the Hessian of each column; one that serves all columns is made once."""
        if self.is_quadratic and (self.weights == self.weights[:, :1]).all():
            return [self._factor(0)] * len(self.theta)
        return [self._factor(k) for k in range(len(self.theta))]

    def _factor(self, k: int) -> tuple[Floats, bool]:
        curves = self.weights[self.y, k] * self.loss.curve(self.scores[:, k], self.targets[self.y, k])
        hessian = gram(self.phi, curves)
        hessian[np.diag_indices_from(hessian)] += self.penalty
        factor: tuple[Floats, bool] = linalg.cho_factor(hessian, lower=True, check_finite=False)
        return factor

    def solve(self, right: Floats) -> Floats:
        """The inverse of the Hessian times rows, column by column."""
        columns = [linalg.cho_solve(f, right[:, k].T, check_finite=False).T for k, f in enumerate(self.factors)]
        return np.stack(columns, axis=1)

    def losses(self, scores: Floats, y: Codes) -> tuple[Floats, Floats]:
        """The sum over columns, and the slopes."""
        target, weight = self.targets.T[:, y], self.weights.T[:, y]
        return (weight * self.loss.value(scores, target)).sum(axis=0), weight * self.loss.slope(scores, target)

    def first_steps(self, item: Codes, to: Codes) -> Floats:
        r"""With the Hessian of the changed problem: :math:`\delta = -H^{-1}\phi\,\gamma / (1 + \eta h)`.

        γ and η are the changes of the slope and the curve of the item's own loss, and h = φᵀH⁻¹φ.
        """
        phi, own = dense(self.phi[item]), self.y[item]
        gamma, eta = (
            self.weights[to] * part(self.scores[item], self.targets[to])
            - self.weights[own] * part(self.scores[item], self.targets[own])
            for part in (self.loss.slope, self.loss.curve)
        )
        toward = self.solve(np.repeat(phi[:, None], len(self.theta), axis=1))
        stretch = 1 + eta * np.einsum("mp,mkp->mk", phi, toward)
        return np.asarray(-(gamma / stretch)[:, :, None] * toward)


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
        """The inverse of the Hessian times rows."""
        flat = linalg.cho_solve(self.factors, right.reshape(len(right), -1).T, check_finite=False)
        return np.asarray(flat.T).reshape(right.shape)

    def losses(self, scores: Floats, y: Codes) -> tuple[Floats, Floats]:
        """Log losses, and the probabilities less 1 for the item's class."""
        slope = scores - scores.max(axis=0)
        own = np.broadcast_to(y, scores.shape[1:])[None]
        loss = -np.take_along_axis(slope, own, axis=0)[0]
        np.exp(slope, out=slope)
        total = slope.sum(axis=0)
        loss += np.log(total)
        slope /= total
        np.put_along_axis(slope, own, np.take_along_axis(slope, own, axis=0) - 1, axis=0)
        slope *= self.weights[y]
        return loss * self.weights[y], slope

    def first_steps(self, item: Codes, to: Codes) -> Floats:
        """With the Hessian as it is; only with unequal weights does that of the changed problem differ here."""
        unit, chance, own = np.eye(len(self.theta)), self.chances[item], self.y[item]
        slope = self.weights[to][:, None] * (chance - unit[to]) - self.weights[own][:, None] * (chance - unit[own])
        return -self.solve(slope[:, :, None] * dense(self.phi[item])[:, None])


class ObjectiveFlips(LinearFlips):
    """The flip models of a `Problem`."""

    def __init__(
        self,
        problem: Problem,
        codes: Codes,
        intercept: float | None,
        weights_after: Callable[[Floats], Floats] | None,
        *,
        exact: bool,
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
            if (a, b) not in self._others:
                number = np.bincount(self.y, minlength=len(self.columns_)).astype(float)
                number[[a, b]] += (-1, 1)
                self._others[a, b] = replace(self.problem, weights=self._weights_after(number)).solved()
            if (problem := self._others[a, b]) is not None:
                steps = problem.steps(candidates.item[rows], to[rows], exact=exact, memory_limit=memory_limit)
                delta[rows] = problem.theta - self.theta + steps
        return delta


def _chance(score: Floats) -> Floats:
    """The logistic function; numpy's tanh works on several numbers at once, scipy's expit does not."""
    return np.asarray((np.tanh(0.5 * score) + 1) * 0.5)


LOGISTIC = Loss(
    value=lambda s, t: np.logaddexp(0.0, -t * s),
    slope=lambda s, t: _chance(s) - (t > 0),
    curve=lambda s, t: _chance(s) * (1 - _chance(s)),
)
SQUARED_HINGE = Loss(
    value=lambda s, t: np.maximum(1 - t * s, 0.0) ** 2,
    slope=lambda s, t: -2 * t * np.maximum(1 - t * s, 0.0),
    curve=lambda s, t: np.where(t * s < 1, 2.0, 0.0),
)
SQUARED = Loss(value=lambda s, t: 0.5 * (s - t) ** 2, slope=lambda s, t: s - t, curve=lambda s, t: np.ones_like(s))


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
        """The weights as scikit-learn makes them; `number` has how many labels each class has."""
        choice, each = model.class_weight, np.ones(n_classes)
        if choice == "balanced":
            each = number.sum() / (len(number) * number)
        elif choice is not None:
            each = np.array([float(choice.get(name, 1.0)) for name in model.classes_.tolist()])
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
    return ObjectiveFlips(problem, codes, intercept, after, exact=loss is SQUARED)


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
    """Flip models of a fitted ``LinearSVC`` with the squared hinge loss and an l2 penalty; None for other options."""
    options = model.get_params()
    if options["loss"] != "squared_hinge" or options["penalty"] != "l2" or options["multi_class"] != "ovr":
        return None
    intercept = float(options["intercept_scaling"]) if options["fit_intercept"] else None
    how: dict[str, Any] = {"intercept": intercept, "free_intercept": False, "weighs_rest": False}
    return _linear_flips(model, X, y, codes, SQUARED_HINGE, penalty=1.0 / options["C"], **how)


def ridge_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of a fitted ``RidgeClassifier``; None for positive coefficients."""
    options = model.get_params()
    if options["positive"] or np.ndim(options["alpha"]):
        return None
    intercept = 1.0 if options["fit_intercept"] else None
    return _linear_flips(model, X, y, codes, SQUARED, penalty=float(options["alpha"]), intercept=intercept)
