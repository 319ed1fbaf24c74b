"""What the systems under test say of an item, as features of a log-linear prior of its class.

Leaving a system's output out would pull every metric towards chance. But systems err together; as features of a model
of the truth *given* all outputs they may depend on each other in any way. (Rows of their own given the truth, as for
learned noise, are too sure of differences of systems with shared errors: of five, 95% intervals held 67%.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy
from scipy.linalg import cho_solve, solve_triangular
from scipy.sparse.linalg import eigsh
from scipy.special import log_softmax, logsumexp, ndtri, softmax

from trueup._base.types import Codes, Floats
from trueup._base.validation import preview
from trueup.data.aligned import AlignedPredictions, OutputKind
from trueup.exceptions import InvalidParameter
from trueup.noise.sampling import effective_draws

_INTERCEPT_SCALE = 2.5
_MAIN_SCALE = 3.0  # of what tells right from wrong, in one system: log-odds of one that is right 95 times in 100
_DETAIL_SCALE = 1.5  # of what bends or splits a main feature
_MOST_MAIN = 8  # systems with features of their own; more are summed up by their principal components
_MOST_DETAIL = 30
_COMPONENTS = 6
_GRAM_ROWS = 20_000  # rows from which principal components are found
_BLOCK = 20_000_000  # numbers held at once
_LEAST_PROBABILITY = 1e-4
_KNOTS = (-0.8, 0.0, 0.8)  # where the log-odds may bend along normal scores


def system_prior(aligned: AlignedPredictions, n_classes: int, *, used: OutputKind) -> LogLinearPrior:
    """The prior of the class of each item, given what the systems say of it; `used` is what the metric looks at.

    An item without a prediction has features of zero, and an intercept of its own: nothing says that its class is as
    likely as that of a middling prediction.
    """
    n_systems, n_items = aligned.n_systems, aligned.has_output(used).shape[1]
    are_many, detail = n_systems > _MOST_MAIN, np.empty((0, n_items, n_classes))
    main = (principal_features if are_many else main_features)(aligned, n_classes, used)
    if used == "scores" and (are_many or n_systems * len(_KNOTS) <= _MOST_DETAIL):
        detail = bends(main[:1] if are_many else main, aligned.positive)
    elif used == "classes" and not are_many:
        detail = _splits(aligned.outputs("classes"), n_classes)
    intercepts = np.broadcast_to(np.eye(n_classes)[1:, None, :], (n_classes - 1, n_items, n_classes))
    intercepts = np.concatenate([intercepts, _absences(aligned.has_output(used), n_classes)])
    features = np.concatenate([intercepts, main, detail])
    # Together the systems are no likelier to know the truth than one: with a scale that does not shrink, eight of them
    # would be believed almost without votes. The first component is what many agree on: as one system, at full scale.
    each = 1 / np.sqrt(len(main))
    of_main = np.full(len(main), _MAIN_SCALE * each)
    if are_many:
        of_main[0] = _MAIN_SCALE
    scale = np.concatenate(
        [np.full(len(intercepts), _INTERCEPT_SCALE), of_main, np.full(len(detail), _DETAIL_SCALE * each)]
    )
    return LogLinearPrior(np.moveaxis(features, 0, 2), scale)


def main_features(aligned: AlignedPredictions, n_classes: int, used: OutputKind) -> Floats:
    """One feature for each system, shape (n_systems, n_items, n_classes)."""
    if used == "classes":
        return np.asarray(aligned.outputs("classes")[:, :, None] == np.arange(n_classes), dtype=float)
    if used == "scores":
        scores = aligned.outputs("scores")
        features = np.zeros((*scores.shape, n_classes))
        features[:, :, aligned.positive] = np.stack([_normal_scores(row) for row in scores])
        return features
    logs = np.log(np.maximum(aligned.outputs("probabilities"), _LEAST_PROBABILITY))
    logs = np.nan_to_num(logs - logs.mean(axis=2, keepdims=True))
    spread = logs.std(axis=(1, 2), keepdims=True)
    return np.asarray(logs / np.where(spread > 0, spread, 1.0))


def _absences(given: npt.NDArray[np.bool_], n_classes: int) -> Floats:
    """An intercept for the items that a system says nothing of; systems that lack the same items share it."""
    patterns = np.unique(~given, axis=0).astype(float)
    patterns = patterns[(patterns.min(axis=1) < 1) & (patterns.max(axis=1) > 0)]
    if len(patterns) * (n_classes - 1) > _MOST_DETAIL:
        patterns = (~given).mean(axis=0, keepdims=True)
    of_class = patterns[:, None, :, None] * np.eye(n_classes)[None, 1:, None, :]
    return np.asarray(of_class.reshape(-1, given.shape[1], n_classes))


def _normal_scores(scores: Floats) -> Floats:
    """Ranks as quantiles of the normal law, ties at their middle; 0 where there is no score."""
    given = np.flatnonzero(~np.isnan(scores))
    out = np.zeros(len(scores))
    out[given] = ndtri((scipy.stats.rankdata(scores[given]) - 0.5) / max(len(given), 1))
    return out


def bends(main: Floats, positive: int | None) -> Floats:
    """Hinges along the scores: the log-odds of the class need not be a straight line."""
    assert positive is not None
    bent = []
    for scores in main[:, :, positive]:
        for knot in _KNOTS:
            hinge = np.zeros(main.shape[1:])
            hinge[:, positive] = np.maximum(scores - knot, 0.0)
            bent.append(hinge)
    return np.stack(bent)


def _splits(codes: Codes, n_classes: int) -> Floats:
    """Being right may be likelier for some classes; and two systems together may say more than their sum."""
    n_systems, n_items = codes.shape
    if n_classes == 2:
        if n_systems != 2:
            return np.empty((0, n_items, n_classes))
        both = np.zeros((1, n_items, n_classes))
        both[0, :, 1] = np.where((codes < 0).any(axis=0), 0.0, np.where(codes[0] == codes[1], 1.0, -1.0))
        return both
    if n_systems * n_classes > _MOST_DETAIL:
        return np.empty((0, n_items, n_classes))
    of_class = codes[:, None, :] == np.arange(n_classes)[:, None]
    split = of_class[..., None] * np.eye(n_classes)[:, None, :]
    return np.asarray(split.reshape(-1, n_items, n_classes), dtype=float)


def principal_features(aligned: AlignedPredictions, n_classes: int, used: OutputKind) -> Floats:
    """The principal components of many systems' features, each as large as one feature."""
    n_systems, n_items = aligned.has_output(used).shape
    some = np.arange(0, n_items, max(1, n_items * n_classes // _GRAM_ROWS))
    step = max(1, _BLOCK // (n_items * n_classes))
    blocks = [slice(first, first + step) for first in range(0, n_systems, step)]
    flat = np.concatenate([main_features(aligned.of_systems(b), n_classes, used)[:, some] for b in blocks])
    flat = flat.reshape(n_systems, -1)
    # A fixed start, so that the same systems have the same components each time.
    _, vectors = eigsh(flat @ flat.T, k=_COMPONENTS, v0=np.ones(n_systems))
    loadings = vectors[:, ::-1].T
    loadings *= np.where(loadings.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    components = sum(
        np.tensordot(loadings[:, b], main_features(aligned.of_systems(b), n_classes, used), axes=1) for b in blocks
    )
    size = np.sqrt((flat**2).mean()) / np.sqrt(np.mean(np.square(components), axis=(1, 2), keepdims=True))
    return np.asarray(components * size)


_NEWTON_STEPS = 30
_MOST_EVALUATIONS = 40_000_000  # item-classes × candidates that importance weights may cost
_CANDIDATES = 4000
_HELD = 4_000_000  # numbers held at once
_FEW_ROWS = 100  # rows of features so few that the items of each are taken together
_TINY = 1e-300
_ENOUGH = 0.25  # effective draws over draws, below which candidates are walked on from
_WALKERS = 100
_LEAST_STEPS = 8  # of each walker that are kept
_BURN_IN = 20  # steps of each walker that are thrown away
_WALK_SPREAD = 1.2  # of the normal law of the walk over that of the mode: posteriors here have a long side


class CoefficientDraws(NamedTuple):
    """Draws of the coefficients given votes whose noise is known."""

    coefficients: Floats  # (n_draws, n_features)
    effective: float


class LogLinearPrior:
    r"""P(class | features) of each item, a multinomial logistic model.

    .. math:: P(y_i = y) \propto \exp\Bigl(\sum_f x_{iyf} w_f\Bigr), \qquad w_f \sim N(0, \sigma_f^2)

    Ten copies of one feature say no more than one.
    """

    def __init__(self, features: npt.ArrayLike, scale: npt.ArrayLike) -> None:
        table, spread = np.asarray(features, dtype=float), np.asarray(scale, dtype=float)
        if table.ndim != 3 or not np.isfinite(table).all():
            raise InvalidParameter(f"features must be finite, items × classes × features, got shape {table.shape}")
        if spread.shape != table.shape[2:] or not (spread > 0).all():
            raise InvalidParameter(f"scale must be a positive number for each feature, got {preview(spread)}")
        self.n_items, self.n_classes, self.n_features = table.shape
        self.precision = spread**-2.0
        # Items with the same features are one row: hard predictions leave few different ones.
        flat = np.ascontiguousarray(table.reshape(self.n_items, -1))
        _, first, inverse = np.unique(
            flat.view([("", flat.dtype)] * flat.shape[1]).ravel(), return_index=True, return_inverse=True
        )
        self._row_of: npt.NDArray[np.int64] | None = None
        self._rows = table
        if 2 * len(first) < self.n_items:
            self._row_of, self._rows = inverse.ravel().astype(np.int64), table[first]
        # Features relative to the first class: one class less to compute with.
        self._rows = np.ascontiguousarray(self._rows - self._rows[:, :1])

    def over_states(self, lattice: Floats) -> LogLinearPrior:
        """The prior of states that are mixtures of classes: a state has the features of its classes, mixed alike."""
        rows = self._rows if self._row_of is None else self._rows[self._row_of]
        return LogLinearPrior(np.matmul(lattice, rows), self.precision**-0.5)

    def probabilities(self, coefficients: Floats) -> Floats:
        """P(class) of each item, shape (n_items, n_classes)."""
        p = np.exp(self._log_rows(coefficients))
        return p if self._row_of is None else p[self._row_of]

    def _log_rows(self, coefficients: Floats) -> Floats:
        return np.asarray(log_softmax(self._rows @ coefficients, axis=1))

    def _information(self, p: Floats, total: Floats) -> Floats:
        """Minus the second derivative of the log-posterior given the truth."""
        flat = self._rows.reshape(-1, self.n_features)
        mean = np.matmul(p[:, None, :], self._rows)[:, 0]
        found = flat.T @ (flat * (total[:, None] * p).reshape(-1, 1)) - mean.T @ (mean * total[:, None])
        return np.asarray(found + np.diag(self.precision))

    def draws_given_votes(self, log_likelihood: Floats, n_draws: int, rng: np.random.Generator) -> CoefficientDraws:
        """Draws of the coefficients with the truth of all items summed out."""
        mode, factor = self._marginal_mode(log_likelihood)
        if log_likelihood.size * _CANDIDATES > _MOST_EVALUATIONS:
            normal = rng.standard_normal((self.n_features, n_draws))
            return CoefficientDraws(mode + solve_triangular(factor, normal, lower=True, trans="T").T, np.inf)
        nu = 6.0  # degrees of freedom of the proposal: heavier tails than any posterior here
        tail = np.sqrt(nu / rng.chisquare(nu, _CANDIDATES))
        standard = (rng.standard_normal((self.n_features, _CANDIDATES)) * tail).T
        log_proposal = -0.5 * (nu + self.n_features) * np.log1p((standard**2).sum(axis=1) / nu)
        log_weight = self._log_target(log_likelihood, standard, mode, factor) - log_proposal
        weight = np.exp(log_weight - logsumexp(log_weight))
        effective = float(1 / (weight**2).sum())
        if effective < _ENOUGH * n_draws:
            start = standard[rng.choice(_CANDIDATES, size=_WALKERS, p=weight)]
            standard, effective = self._walk(log_likelihood, start, mode, factor, n_draws, rng)
        else:
            standard = standard[rng.choice(_CANDIDATES, size=n_draws, p=weight)]
        return CoefficientDraws(mode + solve_triangular(factor, standard.T, lower=True, trans="T").T, effective)

    def _walk(
        self, log_likelihood: Floats, start: Floats, mode: Floats, factor: Floats, n: int, rng: np.random.Generator
    ) -> tuple[Floats, float]:
        """Draws by many short chains of elliptical slices, and how many independent ones they are worth.

        In tens of dimensions next to no candidate is a good one. Slices need no tuning and are exact however far the
        posterior is from the normal law (Murray, Adams and MacKay 2010; Nishihara, Murray and Adams 2014).
        """
        position = start
        n_steps = max(_LEAST_STEPS, -(-n // len(position)))
        kept, heights = np.empty((n_steps, *position.shape)), np.empty((n_steps, len(position)))

        def excess(points: Floats) -> tuple[Floats, Floats]:
            height = self._log_target(log_likelihood, points, mode, factor)
            return height, height + 0.5 * (points**2).sum(axis=1) / _WALK_SPREAD**2

        height, value = excess(position)
        for step in range(-_BURN_IN, n_steps):
            across = _WALK_SPREAD * rng.standard_normal(position.shape)
            level = value - rng.standard_exponential(len(position))
            angle = rng.uniform(0, 2 * np.pi, len(position))
            low, high = angle - 2 * np.pi, angle.copy()
            moving = np.arange(len(position))
            new = position.copy()
            while len(moving):
                turn = angle[moving, None]
                points = position[moving] * np.cos(turn) + across[moving] * np.sin(turn)
                heights_there, values = excess(points)
                done = values > level[moving]
                arrived = moving[done]
                new[arrived], height[arrived], value[arrived] = points[done], heights_there[done], values[done]
                moving = moving[~done]
                below = angle[moving] < 0
                low[moving] = np.where(below, angle[moving], low[moving])
                high[moving] = np.where(below, high[moving], angle[moving])
                angle[moving] = rng.uniform(low[moving], high[moving])
            position = new
            if step >= 0:
                kept[step], heights[step] = position, height
        return kept.reshape(-1, self.n_features)[-n:], effective_draws(heights.T)

    def _log_target(self, log_likelihood: Floats, standard: Floats, mode: Floats, factor: Floats) -> Floats:
        """The log-posterior of many coefficients (n, n_features), given in units of the normal law around the mode."""
        found = mode + solve_triangular(factor, standard.T, lower=True, trans="T").T
        rows = max(1, _HELD // log_likelihood.size)
        return np.concatenate(
            [self._marginals(log_likelihood, found[k : k + rows]) for k in range(0, len(found), rows)]
        )

    def _marginals(self, log_likelihood: Floats, coefficients: Floats) -> Floats:
        """Log-posteriors of many coefficients, shape (n, n_features), with the truth summed out."""
        top = log_likelihood.max(axis=1)
        weight = np.exp(log_likelihood - top[:, None])  # once for all coefficients; the rest is products of matrices
        logits = np.tensordot(coefficients, self._rows, axes=(1, 2))
        prior = np.exp(logits - logits.max(axis=2, keepdims=True))
        prior /= prior.sum(axis=2, keepdims=True)
        if self._row_of is None or len(self._rows) > _FEW_ROWS:
            of_items = prior if self._row_of is None else prior[:, self._row_of]
            mixed = np.einsum("nic,ic->ni", of_items, weight)
            fit = np.log(np.maximum(mixed, _TINY)).sum(axis=1)
        else:
            order = np.argsort(self._row_of, kind="stable")
            ends = np.cumsum(np.bincount(self._row_of, minlength=len(self._rows)))
            fit = np.zeros(len(coefficients))
            for row, items in enumerate(np.split(order, ends[:-1])):
                fit += np.log(np.maximum(prior[:, row] @ weight[items].T, _TINY)).sum(axis=1)
        return np.asarray(fit + top.sum() - 0.5 * coefficients**2 @ self.precision)

    def _marginal(self, log_likelihood: Floats, coefficients: Floats) -> float:
        fit = float(logsumexp(self._joint(log_likelihood, coefficients), axis=1).sum())
        return fit - 0.5 * float(self.precision @ coefficients**2)

    def _marginal_mode(self, log_likelihood: Floats) -> tuple[Floats, Floats]:
        """The mode of the marginal posterior by Newton steps, and the factor of the observed information."""
        w = np.zeros(self.n_features)
        value = self._marginal(log_likelihood, w)
        factor = np.diag(np.sqrt(self.precision))
        for _ in range(_NEWTON_STEPS * 4):
            responsibility = softmax(self._joint(log_likelihood, w), axis=1)
            counts = self._summed(responsibility)
            p, total = np.exp(self._log_rows(w)), counts.sum(axis=1)
            surplus = (counts - total[:, None] * p).ravel()
            gradient = np.asarray(surplus @ self._rows.reshape(-1, self.n_features) - self.precision * w)
            complete = self._information(p, total)
            factor = _factor(complete - self._missing_information(responsibility), floor=self.precision.min())
            of_complete = np.asarray(np.linalg.cholesky(complete))
            w, new = self._better(log_likelihood, w, value, gradient, (factor, of_complete))
            if new - value < 1e-7:
                break
            value = new
        return w, factor

    def _better(
        self, log_likelihood: Floats, w: Floats, value: float, gradient: Floats, factors: tuple[Floats, Floats]
    ) -> tuple[Floats, float]:
        """A Newton step, and if that leads down a step of EM, which never does if it is short enough."""
        for factor in factors:
            step = cho_solve((factor, True), gradient)
            for shrink in (1.0, 0.5, 0.1):
                new = self._marginal(log_likelihood, w + shrink * step)
                if new > value:
                    return w + shrink * step, new
        return w, value

    def _joint(self, log_likelihood: Floats, coefficients: Floats) -> Floats:
        log_prior = self._log_rows(coefficients)
        return log_likelihood + (log_prior if self._row_of is None else log_prior[self._row_of])

    def _summed(self, values: Floats) -> Floats:
        """Values of items added up over the items of each row; shape (n_rows, …)."""
        if self._row_of is None:
            return values
        flat = values.reshape(self.n_items, -1)
        columns = [np.bincount(self._row_of, flat[:, k], len(self._rows)) for k in range(flat.shape[1])]
        return np.stack(columns, axis=1).astype(float).reshape(len(self._rows), *values.shape[1:])

    def _missing_information(self, responsibility: Floats) -> Floats:
        """What is lost since the truth is known only through `responsibility`."""
        outer = self._summed(responsibility[:, :, None] * responsibility[:, None, :])
        spread = np.einsum("uc,cd->ucd", self._summed(responsibility), np.eye(self.n_classes)) - outer
        return np.asarray(np.einsum("ucf,ucd,udg->fg", self._rows, spread, self._rows, optimize=True))


def _factor(information: Floats, *, floor: float) -> Floats:
    """The lower Cholesky factor of the observed information."""
    values, vectors = np.linalg.eigh(information)
    if values[0] < 0.3 * floor:
        information = (vectors * np.maximum(values, 0.3 * floor)) @ vectors.T
    return np.asarray(np.linalg.cholesky(information))
