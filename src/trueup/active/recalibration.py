r"""The model's probabilities, corrected by what the expert found.

.. math:: P(y_i = y) \propto \exp\bigl(\log p_i(y) + x_{iy} \cdot w\bigr), \qquad w_f \sim N(0, \sigma_f^2)

where :math:`p_i` is what the votes say and :math:`x_{iy}` are a few features: :math:`\log p_i(y)` itself (is the model
too sure?), an intercept for each class, and for each system whether it says y, or how highly it scores the item. At the
mode the weighted sum of each feature over the vetted items is what the corrected model expects, so whatever a metric
sums up is rectified by the vetted items, however wrong the votes are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.special import log_softmax, logsumexp, softmax

__all__ = ["Recalibration", "RecalibrationDraws", "recalibrate"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer]

_NEWTON_STEPS = 40
_CANDIDATES = 2000
_BLOCK = 5_000_000  # numbers held at once
_FREEDOM = 8.0  # of the Student law that candidates come from


@dataclass(frozen=True, eq=False)
class Recalibration:
    """Features of all items, and what the votes say of them.

    Attributes
    ----------
    offset : array of shape (n_items, n_classes)
        Log P(class | votes), finite.
    features : array of shape (n_items, n_classes, n_features)
    scale : array of shape (n_features,)
        Prior standard deviations.
    importance : array of shape (n_items,)
        What an answer on each item counts for beside its chance; less where the metric does not look at the item.
    """

    offset: Floats
    features: Floats
    scale: Floats
    importance: Floats

    def probabilities(self, coefficients: Floats) -> Floats:
        """P(class) of each item, shape (n_items, n_classes)."""
        return np.asarray(softmax(self.offset + self.features @ coefficients, axis=1))

    def cumulative(self, draws: Floats) -> Floats:
        """P(class or one before it) but for the last class, shape (n_draws, n_items, n_classes - 1)."""
        flat = self.features.reshape(-1, len(self.scale))
        heights = (draws @ flat.T + self.offset.ravel()).reshape(len(draws), *self.offset.shape)
        heights -= heights.max(axis=2, keepdims=True)
        upto = np.cumsum(np.exp(heights, out=heights), axis=2)
        return np.asarray(upto[:, :, :-1] / upto[:, :, -1:])


@dataclass(frozen=True, eq=False)
class RecalibrationDraws:
    """The coefficients: their mode and draws, shape (n_draws, n_features), worth `effective` independent ones."""

    mode: Floats
    draws: Floats
    effective: float


def recalibrate(
    model: Recalibration,
    positions: npt.NDArray[np.int64],
    truth: Codes,
    weights: Floats,
    *,
    n_draws: int,
    rng: np.random.Generator | None = None,
) -> RecalibrationDraws:
    """Learn the coefficients from vetted items.

    Parameters
    ----------
    positions, truth : integer arrays of shape (n_vetted,)
        The vetted items and their classes.
    weights : array of shape (n_vetted,)
        What each counts for; that of items that were likely to be asked is small.
    n_draws : int
        0 for the mode alone.
    """
    offset = model.offset[positions]
    x = model.features[positions]
    precision = model.scale**-2.0
    at = np.arange(len(positions))

    def height(w: Floats) -> float:
        logs = log_softmax(offset + x @ w, axis=1)
        return float(weights @ logs[at, truth] - 0.5 * precision @ w**2)

    w = np.zeros(len(model.scale))
    value = height(w)
    information = np.diag(precision)
    for _ in range(_NEWTON_STEPS):
        p = softmax(offset + x @ w, axis=1)
        mean = np.einsum("nc,ncf->nf", p, x)
        gradient = weights @ (x[at, truth] - mean) - precision * w
        flat = x.reshape(-1, len(w))
        information = flat.T @ (flat * (weights[:, None] * p).reshape(-1, 1)) - mean.T @ (mean * weights[:, None])
        information += np.diag(precision)
        step = np.linalg.solve(information, gradient)
        while height(w + step) < value - 1e-12 and np.abs(step).max() > 1e-10:
            step = step / 2
        w = w + step
        new = height(w)
        if new - value < 1e-9:
            break
        value = new
    if not n_draws or rng is None:
        return RecalibrationDraws(w, w[None], np.inf)
    factor = np.linalg.cholesky(information)
    standard = rng.standard_normal((len(w), _CANDIDATES)) * np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, _CANDIDATES))
    candidates = w + solve_triangular(factor, standard, lower=True, trans="T").T
    log_proposal = -0.5 * (_FREEDOM + len(w)) * np.log1p((standard**2).sum(axis=0) / _FREEDOM)
    rows = max(1, _BLOCK // max(offset.size, 1))
    log_likelihood = [
        log_softmax(offset + np.einsum("ncf,kf->knc", x, part), axis=2)[:, at, truth] @ weights
        for part in (candidates[k : k + rows] for k in range(0, _CANDIDATES, rows))
    ]
    log_weight = np.concatenate(log_likelihood) - 0.5 * candidates**2 @ precision - log_proposal
    chance = np.exp(log_weight - logsumexp(log_weight))
    chosen = rng.choice(_CANDIDATES, size=n_draws, p=chance)
    return RecalibrationDraws(w, candidates[chosen], float(1 / (chance**2).sum()))
