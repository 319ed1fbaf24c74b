"""A term that makes a classifier's predictions spread out, so that labelers' matrices can be told from the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from trueup.estimators.logistic_objective import ScoreLoss, through_softmax

__all__ = ["WithVolume"]

Floats = npt.NDArray[np.float64]
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

    Parameters
    ----------
    loss : ScoreLoss
    weight : float
        λ, for each item.
    shares : array of shape (n_classes,)
        π.

    References
    ----------
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

    def curvature(self, scores: Floats, direction: Floats) -> Floats:
        """The second derivative by the scores times a direction."""
        chances = special.softmax(scores, axis=1)
        moved = through_softmax(chances, direction)
        by_chance, n = self._by_chance(chances), len(scores)
        moments, mean = _moments(chances)
        inverse = np.linalg.inv(moments)
        change = (moved.T @ chances + chances.T @ moved) / n
        by_chance_moved = -self.weight * (
            2 * (moved @ inverse - chances @ inverse @ change @ inverse) - self._pull * moved.mean(axis=0) / mean**2
        )
        centred = by_chance - (chances * by_chance).sum(axis=1, keepdims=True)
        volume = moved * centred + chances * (
            by_chance_moved - (moved * by_chance + chances * by_chance_moved).sum(axis=1, keepdims=True)
        )
        return np.asarray(self.loss.curvature(scores, direction) + volume)

    def _by_chance(self, chances: Floats) -> Floats:
        """The derivative of −λ n V by the predictions."""
        moments, mean = _moments(chances)
        return np.asarray(-self.weight * (2 * chances @ np.linalg.inv(moments) + self._pull / mean))


def _moments(chances: Floats) -> tuple[Floats, Floats]:
    """PᵀP / n and the mean of P; neither is ever 0."""
    n, n_classes = chances.shape
    return chances.T @ chances / n + _FLAT * np.eye(n_classes), chances.mean(axis=0) + _FLAT
