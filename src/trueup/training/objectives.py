"""Objectives of multinomial logistic regression on uncertain labels, with exact derivatives.

They are functions of the scores S = X Wᵀ + b alone, and so are their derivatives; the chain rule to the coefficients is
one place here. With two classes the score of the first is 0, as in scikit-learn's binary model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy
from scipy import special

from trueup._base.types import Booleans, Floats, Positions
from trueup._base.validation import RandomState, check_number
from trueup.estimators.published.tars2018.noise_removal import Filter, mislabeled
from trueup.estimators.published.tars2018.unbiased import inverse_weights
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.training.copies import Copies, fit_copies, hard_copies, split_pipeline, take, weighted_copies


class ScoreLoss(Protocol):
    """A sum over items of a loss of their scores, shape (n_items, n_classes)."""

    def value_and_slope(self, scores: Floats) -> tuple[float, Floats]:
        """The loss and its derivative by the scores."""
        ...


@dataclass(frozen=True, eq=False)
class SoftTargets:
    r"""Cross-entropy with targets that sum to 1: :math:`\sum_i \log\sum_c e^{s_{ic}} - \sum_c w_{ic} s_{ic}`.

    With :math:`w_{iy} = p(y \mid z_i)` this is the MMSE risk. Targets may be negative (the unbiased loss of Natarajan
    et al. 2013): the loss is log-sum-exp minus a linear function of the scores and stays convex.
    """

    targets: Floats

    def value_and_slope(self, scores: Floats) -> tuple[float, Floats]:
        """The loss and its derivative by the scores."""
        total, chances = softmax_with_total(scores)
        return total - float((self.targets * scores).sum()), chances - self.targets


@dataclass(frozen=True, eq=False)
class NoisyLikelihood:
    r"""The negative log-likelihood of the votes: :math:`-\sum_i \log \sum_y p(y \mid x_i) \, p(z_i \mid y)`.

    With the beliefs :math:`r_{iy} \propto p(y \mid x_i) p(z_i \mid y)` its derivative by the scores is p − r. It is
    not convex.
    """

    log_likelihood: Floats

    def beliefs(self, scores: Floats) -> Floats:
        """P(class | features, votes) of each item."""
        return np.asarray(special.softmax(scores + self.log_likelihood, axis=1))

    def value_and_slope(self, scores: Floats) -> tuple[float, Floats]:
        """The loss and its derivative by the scores."""
        (total, chances), (joint, beliefs) = map(softmax_with_total, (scores, scores + self.log_likelihood))
        return total - joint, chances - beliefs


def softmax_with_total(scores: Floats) -> tuple[float, Floats]:
    """Σ log Σ exp of rows and softmax, by one exponential; scipy's two functions take three times as long."""
    most = scores.max(axis=1, keepdims=True)
    each = np.exp(scores - most)
    sums = each.sum(axis=1, keepdims=True)
    return float((most + np.log(sums)).sum()), each / sums


@dataclass(frozen=True, eq=False)
class LogisticObjective:
    r"""A loss of the scores as a function of coefficients, with λ/2 ‖W‖² (not of the intercepts)."""

    X: Any
    loss: ScoreLoss
    n_classes: int
    penalty: float
    fit_intercept: bool = True

    @property
    def n_rows(self) -> int:
        """Rows of coefficients: one for two classes."""
        return 1 if self.n_classes == 2 else self.n_classes

    def parts(self, theta: Floats) -> tuple[Floats, Floats]:
        """Coefficients (n_rows, n_features) and intercepts (n_rows,) of a flat vector."""
        d = self.X.shape[1]
        table = theta.reshape(self.n_rows, d + self.fit_intercept)
        return table[:, :d], table[:, d] if self.fit_intercept else np.zeros(self.n_rows)

    def flat(self, slope: Floats, intercept: Floats) -> Floats:
        """The inverse of `parts`."""
        columns = [slope, intercept[:, None]] if self.fit_intercept else [slope]
        return np.concatenate(columns, axis=1).ravel()

    def scores(self, theta: Floats) -> Floats:
        """Shape (n_items, n_classes)."""
        slope, intercept = self.parts(theta)
        given = np.asarray(self.X @ slope.T) + intercept
        return np.pad(given, ((0, 0), (1, 0))) if self.n_rows == 1 else given

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """The objective and its gradient."""
        slope, _ = self.parts(theta)
        value, by_score = self.loss.value_and_slope(self.scores(theta))
        by_row = by_score[:, -self.n_rows :]
        gradient = self.flat(np.asarray(self.X.T @ by_row).T + self.penalty * slope, by_row.sum(axis=0))
        return value + self.penalty / 2 * float((slope**2).sum()), gradient


@dataclass(frozen=True)
class Solution:
    """Where a search ended."""

    theta: Floats
    value: float
    n_iter: int
    converged: bool


def minimise(
    objective: LogisticObjective, start: Floats | None = None, *, tol: float = 1e-6, max_iter: int = 1000
) -> Solution:
    """Search a minimum with scipy's L-BFGS, from zeros by default; `tol` is of the gradient of one item."""
    n = max(objective.X.shape[0], 1)
    if start is None:
        start = np.zeros(objective.n_rows * (objective.X.shape[1] + objective.fit_intercept))

    def scaled(theta: Floats) -> tuple[float, Floats]:
        value, gradient = objective.value_and_gradient(theta)
        return value / n, gradient / n  # of one item, so that tol means the same for any number of them

    options: Any = {"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxfun": 20 * max_iter}
    result = scipy.optimize.minimize(scaled, start, jac=True, method="L-BFGS-B", options=options)
    return Solution(result.x, float(result.fun) * n, int(result.nit), bool(result.success))


def soft_logistic(X: Any, targets: Floats, *, penalty: float, fit_intercept: bool = True) -> tuple[Floats, Floats]:
    """Logistic regression on targets that sum to 1 and may be negative: coefficients and intercepts."""
    objective = LogisticObjective(X, SoftTargets(targets), targets.shape[1], penalty, fit_intercept)
    return objective.parts(minimise(objective).theta)


_FLAT = 1e-12  # keeps the determinant of predictions that are all alike above 0


@dataclass(frozen=True, eq=False)
class WithVolume:
    r"""A loss of the scores less λ n times the volume of the predictions P (n items, C classes):

    .. math:: V(P) = \log\det \tfrac{1}{n} P^\top P - \sum_y \log m_y + C \sum_y \pi_y \log m_y, \qquad
        m_y = \tfrac{1}{n} \sum_i P_{iy}

    If votes are all that is known, predictions P with matrices A fit as well as P Q with Q⁻¹ A. The widest P is the
    truth if every class has items that are surely of it (Ibrahim, Nguyen and Fu, ICLR 2023, for equal shares π of the
    classes).
    """

    loss: ScoreLoss
    weight: float
    shares: Floats

    def value_and_slope(self, scores: Floats) -> tuple[float, Floats]:
        """The loss and its derivative by the scores."""
        value, slope = self.loss.value_and_slope(scores)
        chances, (n, n_classes) = special.softmax(scores, axis=1), scores.shape
        # PᵀP / n and the mean of P, neither of which is ever 0, and the factors of log m.
        moments, mean = chances.T @ chances / n + _FLAT * np.eye(n_classes), chances.mean(axis=0) + _FLAT
        pull = n_classes * self.shares - 1
        volume = float(np.linalg.slogdet(moments)[1] + (pull * np.log(mean)).sum())
        by_chance = -self.weight * (2 * chances @ np.linalg.inv(moments) + pull / mean)
        # (diag(p) − p pᵀ) u of each item is the derivative of softmax times u.
        through = chances * (by_chance - (chances * by_chance).sum(axis=1, keepdims=True))
        return value - self.weight * n * volume, slope + through


def check_matrices(codes: npt.ArrayLike, matrices: npt.ArrayLike) -> tuple[Positions, Floats]:
    """Labels as integers and a matrix for each; one sentence if they do not fit."""
    table = np.asarray(matrices, dtype=float)
    if table.ndim not in (2, 3) or table.shape[-1] != table.shape[-2]:
        raise InvalidParameter(f"matrices must have the shape (n_items, n_classes, n_classes), got {table.shape}")
    labels = check_codes(codes, table.shape[-1])
    if table.ndim == 3 and len(table) != len(labels):
        raise InvalidParameter(f"matrices must be one for each of the {len(labels)} labels, got {len(table)}")
    return labels, np.broadcast_to(table, (len(labels), *table.shape[-2:]))


def check_codes(codes: npt.ArrayLike, n_classes: int) -> Positions:
    """Labels as integers from 0 to n_classes − 1."""
    labels = np.asarray(codes)
    if labels.ndim != 1 or not (np.issubdtype(labels.dtype, np.integer) or labels.size == 0):
        raise InvalidLabels(f"codes must be a list of integers, got {labels.dtype} of shape {labels.shape}")
    if labels.size and not 0 <= int(labels.min()) <= int(labels.max()) < n_classes:
        wrong = int(labels[(labels < 0) | (labels >= n_classes)][0])
        raise InvalidLabels(f"codes must be from 0 to {n_classes - 1}, got {wrong}; leave items without a label out")
    return labels.astype(np.int64)


def unbiased_weights(codes: npt.ArrayLike, matrices: npt.ArrayLike) -> tuple[Floats, Booleans]:
    """The row of R⁻¹ that belongs to each label, and whether R can be inverted; zeros where it cannot."""
    labels, table = check_matrices(codes, matrices)
    c = table.shape[-1]
    if table.strides[0] == 0:  # one matrix for all
        distinct, which = table[:1], np.zeros(len(labels), dtype=np.int64)
    else:
        distinct, which = np.unique(table.reshape(len(table), -1), axis=0, return_inverse=True)
        distinct, which = distinct.reshape(-1, c, c), which.ravel()
    inverse = inverse_weights(distinct)
    usable = np.asarray(~np.isnan(inverse).any(axis=(1, 2)))
    return np.nan_to_num(inverse)[which, labels], usable[which]


def fit_ridge_logistic(estimator: Any, X: Any, targets: Floats, hard: Positions, names: npt.NDArray[Any]) -> Any | None:
    """Logistic regression fitted exactly to targets that sum to 1 and may be negative, alone or last in a pipeline."""
    last = split_pipeline(estimator)[1]
    if type(last).__name__ != "LogisticRegression":
        return None
    options = last.get_params()  # the name of the penalty differs between versions of scikit-learn
    is_ridge = options.get("penalty", "l2") in ("l2", "deprecated", None) and not options.get("l1_ratio")
    if not is_ridge or options.get("class_weight") is not None:
        return None
    model = fit_copies(estimator, X, hard, hard_copies(hard), names)
    head, last = split_pipeline(model)
    features = X if head is None else head.transform(X)
    features = features if hasattr(features, "tocsr") else np.asarray(features, dtype=float)
    order = np.argsort(names, kind="stable")
    free = last.get_params().get("penalty", "l2") is None or not np.isfinite(last.C)
    last.coef_, last.intercept_ = soft_logistic(
        features, targets[:, order], penalty=0.0 if free else 1 / last.C, fit_intercept=last.fit_intercept
    )
    last.classes_ = names[order]
    return model


def label_costs(matrices: npt.ArrayLike) -> Floats:
    r"""Costs of the labels 0 and 1 with which training on noisy labels decides as on the truth, shape (..., 2).

    Natarajan et al. (2013), Section 3.2: with P(label | truth) = R the noisy P(label = 1 | x) passes
    α = (1 − R[1, 0] + R[0, 1]) / 2 where the true one passes 1/2, so a label 1 costs 1 − α and a label 0 costs α.
    All weights are positive. They are scaled to 1 for labels without noise and to 0 for labels that say nothing.
    """
    table = np.asarray(matrices, dtype=float)
    missed, alarm = table[..., 1, 0], table[..., 0, 1]
    threshold = (1 - missed + alarm) / 2
    power = np.abs(1 - missed - alarm)
    return np.stack([2 * threshold * power, 2 * (1 - threshold) * power], axis=-1)


def fit_by_costs(estimator: Any, X: Any, codes: Positions, matrices: Floats, names: npt.NDArray[Any]) -> Any:
    """A clone of the estimator fitted to labels of two classes with the costs that their matrices give them."""
    weight = label_costs(matrices)[np.arange(len(codes)), codes]
    copies = Copies(np.arange(len(codes)), codes, None if (weight == 1).all() else weight)
    return fit_copies(estimator, X, codes, copies, names)


def noise_removed(
    estimator: Any,
    X: Any,
    codes: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    keep: npt.ArrayLike | None = None,
    filter: Filter = "majority",  # noqa: A002
    n_folds: int = 5,
    random_state: RandomState = 0,
) -> Any:
    """The classifier trained without the items that a filter of classifiers calls mislabeled (Brodley & Friedl 1999).

    Parameters
    ----------
    estimator : scikit-learn classifier. Cloned, never changed.
    X : array or sparse matrix of shape (n_items, n_features)
    codes : integer array of shape (n_items,). The noisy labels.
    classes : array of shape (n_classes,), optional. What the codes stand for; by default the codes themselves.
    keep : boolean array of shape (n_items,), optional
        Items that stay in any case, because their label is known to be right.
    filter, n_folds, random_state
        As for `trueup.estimators.mislabeled`.
    """
    from sklearn.base import clone

    labels = np.asarray(codes, dtype=np.int64)
    dense = X.toarray() if hasattr(X, "toarray") else X  # the trees and neighbours of the filter need columns
    suspect = mislabeled(dense, labels, filter=filter, n_folds=n_folds, random_state=random_state)
    if keep is not None:
        suspect &= ~np.asarray(keep, dtype=bool)
    rows = np.flatnonzero(~suspect)
    if len(np.unique(labels[rows])) < len(np.unique(labels)):
        raise InvalidLabels(
            f"the filter left no label of a class, got {len(rows)} of {len(labels)} items that look right; pass "
            '`filter="consensus"`'
        )
    names = np.arange(int(labels.max()) + 1) if classes is None else np.asarray(classes)
    return clone(estimator).fit(take(X, rows), names[labels[rows]])


def noise_tolerant(
    estimator: Any, X: Any, codes: npt.ArrayLike, matrices: npt.ArrayLike, *, classes: npt.ArrayLike | None = None
) -> Any:
    r"""The classifier trained with the unbiased loss of Natarajan et al. (NIPS 2013).

    With :math:`w_i = R_i^{-\top} e_{y'_i}` the loss

    .. math:: \tilde\ell(x_i, y'_i) = \sum_c w_{ic}\, \ell(f(x_i), c)

    has the loss under the true labels as its expectation. Some weights are negative. For logistic regression it is
    convex, and it is minimised exactly. Any other estimator of two classes gets the costs of `label_costs`, which are
    positive and lead to the same decisions. Of more classes it is trained on weighted copies of the items, with
    negative weights set to 0 and the others scaled to sum to 1; that is no longer unbiased.

    Parameters
    ----------
    estimator : scikit-learn classifier
        ``LogisticRegression`` (l2), a pipeline that ends in one, or any classifier whose fit takes `sample_weight`.
    X : array or sparse matrix of shape (n_items, n_features)
    codes : integer array of shape (n_items,)
    matrices : array of shape (n_items, n_classes, n_classes) or (n_classes, n_classes)
        P(label | truth), rows the truth; the identity for clean items.
    classes : array of shape (n_classes,), optional. What the codes stand for; by default the codes themselves.
    """
    labels, table = check_matrices(codes, matrices)
    weights, usable = unbiased_weights(labels, table)
    names = np.arange(weights.shape[1]) if classes is None else np.asarray(classes)
    kept = np.flatnonzero(usable)
    rows, hard, weights = take(X, kept), labels[kept], weights[kept]
    model = fit_ridge_logistic(estimator, rows, weights, hard, names)
    if model is not None:
        return model
    if len(names) == 2:
        return fit_by_costs(estimator, rows, hard, table[kept], names)
    shares = np.maximum(weights, 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    return fit_copies(estimator, rows, hard, weighted_copies(shares, min_weight=0.0), names)


def noise_aware_probabilities(X: Any, codes: npt.ArrayLike, matrices: npt.ArrayLike, *, penalty: float = 1.0) -> Floats:
    r"""P(truth = c | features, label): logistic regression that knows how labels err.

    .. math:: \max_\theta \sum_i \log \sum_c R_i[c, y'_i]\, p_\theta(c \mid x_i) - \tfrac\lambda2\lVert\theta\rVert^2,
       \qquad P(c \mid x_i, y'_i) \propto R_i[c, y'_i]\, p_\theta(c \mid x_i)

    The likelihood of the noisy labels (Su 2024, eq. 32) makes better use of few labels than an unbiased loss. The
    result has shape (n_items, n_classes).

    Parameters
    ----------
    X : array or sparse matrix of shape (n_items, n_features). On comparable scales.
    codes : integer array of shape (n_items,)
    matrices : array of shape (n_items, n_classes, n_classes) or (n_classes, n_classes)
        P(label | truth), rows the truth; the identity for clean items.
    penalty : float. λ.
    """
    labels, table = check_matrices(codes, matrices)
    check_number(penalty, name="penalty", low=0.0)
    likelihood = np.take_along_axis(table, labels[:, None, None], axis=2)[:, :, 0]
    noisy = NoisyLikelihood(np.log(np.maximum(likelihood, np.finfo(float).tiny)))
    objective = LogisticObjective(X, noisy, table.shape[-1], penalty)
    return noisy.beliefs(objective.scores(minimise(objective).theta))
