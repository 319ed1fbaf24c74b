"""Objectives of multinomial logistic regression on uncertain labels, with exact derivatives.

They are functions of the scores S = X Wᵀ + b alone, and so are their derivatives; the chain rule to the coefficients is
one place here. With two classes the score of the first is 0, as in scikit-learn's binary model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy
from scipy import special

from trueup._base.types import Floats


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


def through_softmax(chances: Floats, direction: Floats) -> Floats:
    """(diag(p) − p pᵀ) u of each item: the derivative of softmax times u."""
    return np.asarray(chances * (direction - (chances * direction).sum(axis=1, keepdims=True)))


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
        return value + self.penalty / 2 * float((slope**2).sum()), self._to_theta(by_score, slope)

    def _to_theta(self, by_score: Floats, slope: Floats) -> Floats:
        mine = by_score[:, -self.n_rows :]
        return self.flat(np.asarray(self.X.T @ mine).T + self.penalty * slope, mine.sum(axis=0))


@dataclass(frozen=True)
class Solution:
    """Where a search ended."""

    theta: Floats
    value: float
    n_iter: int
    converged: bool


def minimise(objective: LogisticObjective, start: Floats, *, tol: float, max_iter: int) -> Solution:
    """Search a minimum with scipy's L-BFGS."""
    n = max(objective.X.shape[0], 1)

    def scaled(theta: Floats) -> tuple[float, Floats]:
        value, gradient = objective.value_and_gradient(theta)
        return value / n, gradient / n  # of one item, so that tol means the same for any number of them

    options: Any = {"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxfun": 20 * max_iter}
    result = scipy.optimize.minimize(scaled, start, jac=True, method="L-BFGS-B", options=options)
    return Solution(result.x, float(result.fun) * n, int(result.nit), bool(result.success))


def soft_logistic(
    X: Any, targets: Floats, *, penalty: float, fit_intercept: bool = True, tol: float = 1e-6, max_iter: int = 1000
) -> tuple[Floats, Floats]:
    """Logistic regression on targets that sum to 1 and may be negative: coefficients and intercepts."""
    objective = LogisticObjective(X, SoftTargets(targets), targets.shape[1], penalty, fit_intercept)
    start = np.zeros(objective.n_rows * (X.shape[1] + fit_intercept))
    return objective.parts(minimise(objective, start, tol=tol, max_iter=max_iter).theta)


_FLAT = 1e-12  # keeps the determinant of predictions that are all alike above 0


@dataclass(frozen=True, eq=False)
class WithVolume:
    r"""A loss of the scores less λ n times the volume of the predictions P (n items, C classes):

    .. math:: V(P) = \log\det \tfrac{1}{n} P^\top P - \sum_y \log m_y + C \sum_y \pi_y \log m_y, \qquad
        m_y = \tfrac{1}{n} \sum_i P_{iy}

    If votes are all that is known, predictions P with matrices A fit as well as P Q with Q⁻¹ A, for any Q that leaves
    both stochastic. Of all of them the widest P is the truth if every class has items that are surely of it
    (Ibrahim, Nguyen and Fu 2023, whose term is V for equal shares π). The sums make V prefer the shares π of the
    classes to equal ones: of predictions without doubt that with m = π has the largest V, which is C Σ π log π.

    S. Ibrahim, T. Nguyen, X. Fu, "Deep learning from crowdsourced labels: coupled cross-entropy minimization,
    identifiability, and regularization", ICLR 2023.
    """

    loss: ScoreLoss
    weight: float
    shares: Floats

    @property
    def _pull(self) -> Floats:
        """The factors of log m."""
        return len(self.shares) * self.shares - 1

    def value_and_slope(self, scores: Floats) -> tuple[float, Floats]:
        """The loss and its derivative by the scores."""
        value, slope = self.loss.value_and_slope(scores)
        chances = special.softmax(scores, axis=1)
        moments, mean = _moments(chances)
        volume = float(np.linalg.slogdet(moments)[1] + (self._pull * np.log(mean)).sum())
        return value - self.weight * len(scores) * volume, slope + through_softmax(chances, self._by_chance(chances))

    def _by_chance(self, chances: Floats) -> Floats:
        """The derivative of −λ n V by the predictions."""
        moments, mean = _moments(chances)
        return np.asarray(-self.weight * (2 * chances @ np.linalg.inv(moments) + self._pull / mean))


def _moments(chances: Floats) -> tuple[Floats, Floats]:
    """PᵀP / n and the mean of P; neither is ever 0."""
    n, n_classes = chances.shape
    return chances.T @ chances / n + _FLAT * np.eye(n_classes), chances.mean(axis=0) + _FLAT
