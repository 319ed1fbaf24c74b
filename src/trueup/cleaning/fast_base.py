"""What all families of fast models share: features, and predictions of many models that differ little from one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from trueup._base.types import Codes, Floats
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

    A change of a label shifts the parameters by δ. By Cauchy and Schwarz a score moves by at most
    :math:`\lVert\phi\rVert_{A^{-1}} \lVert\delta\rVert_A` for any positive definite A, so a validation item whose
    margin is larger keeps its class, and only items near the boundary have to be looked at. A is the second moment of
    the training features, for which the bound is about the root of their number times the typical move.

    Subclasses set `theta` (K, p), `features_` (n, p), the training labels `y` (n,) and `columns_` (the code of each
    score column; two codes and one column for binary models), and write `features` and `shifts`.
    """

    theta: Floats
    y: Codes
    columns_: Codes
    features_: Any
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
        """As the base class says; blocks of models that move alike far."""
        if not len(candidates):
            return
        order, reach, near, scores = self._by_reach(X_val)
        metric, (k, p) = self._metric, self.theta.shape
        for chunk in item_chunks(candidates.item, max(int(memory_limit // (32 * k * p)), 1)):
            delta = self.shifts(candidates.select(chunk), exact=exact, memory_limit=memory_limit // 4)
            # A hair is added, so that rounding never hides an item.
            moves = metric.norm(delta.reshape(-1, p)).reshape(len(delta), k).max(axis=1) * (1 + 1e-9)
            for rows in _like_blocks(candidates.item[chunk], moves):
                n_near = int(np.searchsorted(reach, moves[rows].max(), side="right"))
                columns = order[:n_near]
                yield from self._block(
                    chunk[rows], delta[rows], near[:n_near], scores[:n_near], columns, candidates.item, memory_limit
                )

    def _by_reach(self, X_val: Any) -> tuple[Codes, Floats, Any, Floats]:
        """Validation items sorted by the move that could change them: order, moves, features and scores."""
        if self._seen is None or self._seen[0] is not X_val:  # the best models are asked for once more
            phi = self.features(X_val)
            scores = dense(phi @ self.theta.T)
            reach = _slack(scores) / np.maximum(self._metric.inverse_norm(phi), 1e-300)
            order = np.argsort(reach, kind="stable").astype(np.int64)
            self._seen = X_val, (order, reach[order], phi[order], scores[order])
        return self._seen[1]

    def _block(
        self, rows: Codes, delta: Floats, phi: Any, scores: Floats, columns: Codes, item: Codes, memory_limit: int
    ) -> Iterator[Block]:
        k = delta.shape[1]
        most = max(int(memory_limit // (64 * k * max(len(columns), 1))), 1)
        for part in item_chunks(item[rows], most):
            best = (scores[:, :1] + dense(phi @ delta[part, 0].T)).T
            which = (best > 0).astype(np.intp) if k == 1 else np.zeros(best.shape, dtype=np.intp)
            for other in range(1, k):  # class by class: numpy is slow along a short last axis
                rival = (scores[:, other, None] + dense(phi @ delta[part, other].T)).T
                which[rival > best] = other
                np.maximum(best, rival, out=best)
            yield Block(rows[part], columns, self.columns_[which])

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
    if is_sparse(X):
        rows = csr(X)
        if value is None:
            return rows
        return sparse.hstack([sparse.csr_array(np.full((rows.shape[0], 1), value)), rows], format="csr")
    rows = np.asarray(X, dtype=float)
    return rows if value is None else np.column_stack([np.full(len(rows), value), rows])


def _slack(scores: Floats) -> Floats:
    """How far scores may move before the decision can change."""
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0])
    top = np.partition(scores, scores.shape[1] - 2, axis=1)
    return np.asarray(top[:, -1] - top[:, -2]) / 2  # either may move


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
    """Positions in blocks of models that move alike far, the candidates of an item together."""
    starts = np.flatnonzero(np.append(True, item[1:] != item[:-1]))
    ends = np.append(starts[1:], len(item))
    order = np.argsort(np.maximum.reduceat(moves, starts), kind="stable")
    per_block = max(_BLOCK_ROWS * len(starts) // len(item), 1)
    for first in range(0, len(order), per_block):
        some = np.sort(order[first : first + per_block])
        lengths = ends[some] - starts[some]
        offsets = np.repeat(starts[some] - np.append(0, lengths.cumsum()[:-1]), lengths)
        yield np.arange(int(lengths.sum())) + offsets


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
