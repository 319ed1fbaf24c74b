"""Ratings: classes in an order, and labelers whose errors are mostly between neighbours."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import expit

from trueup._base.types import Floats, Positions
from trueup._base.validation import RandomState, preview
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.noise.base import LoopSampler, Sampler, TableModel, warn_if_unidentifiable
from trueup.noise.chain import fit_by_draws

_GAP = (np.log(1.5), 0.7)  # mean and scale of the normal law of the logarithm of a gap, in units of the errors
_LAPSE = (-3.0, 1.0)  # mean and scale of the normal law of the mean log-odds of a lapse
# Scales of the half-normal laws of how much raters differ: in bias, discrimination, stretch and lapse.
_SPREADS = (1.0, 0.5, 0.5, 1.0)
_FLOOR = 1e-12  # of a probability
_FIT_SWEEPS = (200, 300)
_FALL = 1.0  # how fast a system is expected to say a class less the further it is from the truth, in log for each step
_HYPER = np.array([*_GAP, *_LAPSE, *_SPREADS])


def draw_matrices(n_raters: int, n_classes: int, rng: np.random.Generator) -> Floats:
    """P(rating | class) of raters from the prior of `Ordinal`, (n_raters, n_classes, n_classes), classes in order."""
    spreads = np.abs(rng.standard_normal(4)) * _SPREADS
    lapse_mean = _LAPSE[0] + _LAPSE[1] * rng.standard_normal()
    points = np.concatenate([[0.0], np.cumsum(np.exp(_GAP[0] + _GAP[1] * rng.standard_normal(2 * n_classes - 2)))])
    places, thresholds = points[::2], points[1::2]
    bias = spreads[0] * rng.standard_normal(n_raters)
    sharpness = np.exp(spreads[1] * rng.standard_normal(n_raters))[:, None, None]
    stretch = spreads[2] * rng.standard_normal((n_raters, n_classes - 2))
    lapse = expit(lapse_mean + spreads[3] * rng.standard_normal(n_raters))[:, None, None]
    steps = np.cumsum(np.diff(thresholds) * np.exp(stretch), axis=1)
    own = thresholds[0] + np.concatenate([np.zeros((n_raters, 1)), steps], axis=1)
    own += (thresholds.mean() - own.mean(axis=1) - bias)[:, None]
    upto = expit(sharpness * (own[:, None, :] - places[:, None]))
    rated = np.diff(upto, axis=2, prepend=0.0, append=1.0)
    return np.asarray(np.maximum((1 - lapse) * rated + lapse / n_classes, _FLOOR))


class Ordinal(TableModel):
    """Ratings: a rater sees the place of the true class with an error, and rates by thresholds of their own.

    Generative model: y_i ~ π; classes have places x_1 < … < x_K with thresholds c_1 < … < c_{K-1} between them. With
    probability λ_t a rating of t ignores the item and is any class; else it is at most k with probability
    expit(s_t (c_tk − x_y)), the graded response of item response theory [1]_. Thresholds c_t are those of all moved
    down by the bias b_t, the distances between them stretched by factors of t; s_t is how sharp t is. Raters differ in
    bias, sharpness, stretch and lapses by normal laws, whose scales are drawn too. Drawn together with the truth by
    Metropolis steps on the counts of ratings, whose cost does not depend on the number of items. A fit is the mean of
    such draws.

    .. [1] Samejima (1969), "Estimation of latent ability using a response pattern of graded scores", Psychometrika
       Monograph 17.

    Parameters
    ----------
    order : sequence of classes, optional
        From the lowest to the highest; by default the order of ``labels.classes``, which is that of numbers.
    random_state : int, Generator or None. Of a fit; the default gives the same each time.

    Attributes
    ----------
    confusion_ : array of shape (n_labelers, n_classes, n_answers)
    pooled_ : array of shape (n_classes, n_answers)
    bias_ : array of shape (n_labelers,). By how many steps of the scale a labeler rates above the truth, on average.
    discrimination_ : array of shape (n_labelers,). How sharp each labeler is; one of average sharpness has about 1.
    """

    alias = "ordinal"
    needs_order = True

    def __init__(self, *, order: Sequence[Hashable] | None = None, random_state: RandomState = 0) -> None:
        self.order = order
        self.random_state = random_state

    def fit(self, labels: Labels) -> Self:
        warn_if_unidentifiable(labels, what=type(self).__name__)
        self._remember(labels)
        ranks = self._ranks(labels)
        sampler = OrdinalSampler(labels.n_labelers, labels.n_classes, labels.n_answers, ranks=ranks)
        fit_by_draws(self, labels, sampler, *_FIT_SWEEPS)
        self.discrimination_ = sampler.state().sharpness / _FIT_SWEEPS[1]
        decided = self.confusion_[:, :, : labels.n_classes]
        rated = decided @ ranks / np.maximum(decided.sum(axis=2), _FLOOR)
        self.bias_ = (rated - ranks) @ self.prior_
        return self

    def samplers(self, labels: Labels, n_raters: int, n_chains: int) -> list[Sampler]:
        size = (n_raters, labels.n_classes, labels.n_answers)
        return [OrdinalSampler(*size, ranks=self._ranks(labels)) for _ in range(n_chains)]

    def _ranks(self, labels: Labels) -> Positions:
        """The rank of each class, 0 the lowest."""
        if self.order is None:
            return np.arange(labels.n_classes)
        place = {name: rank for rank, name in enumerate(self.order)}
        names = labels.classes.tolist()
        if len(place) != len(list(self.order)) or set(place) != set(names):
            raise InvalidParameter(
                f"`order` must name each of the classes once, {preview(names, most=10)}, got "
                f"{preview(list(self.order), most=10)}; name them from the lowest to the highest",
            )
        return np.array([place[name] for name in names])


class OrdinalSampler(LoopSampler):
    """Thresholds and what raters differ in move (`kernels.loops`); the prior of the classes is drawn."""

    sweeps_a_draw = 4

    def __init__(self, n_raters: int, n_classes: int, n_answers: int, *, ranks: Positions | None = None) -> None:
        super().__init__(n_raters, n_classes, n_answers)
        self._ranks = np.arange(n_classes) if ranks is None else ranks
        self.closeness = np.exp(-_FALL * np.abs(self._ranks[:, None] - self._ranks))
        own = np.zeros((n_raters, n_classes + 1))
        own[:, -1] = _LAPSE[0]
        self._moving = {
            "gaps": np.full(2 * n_classes - 2, _GAP[0]),
            "own": own,
            "laws": np.array([_LAPSE[0], *np.log(np.array(_SPREADS) / 2)]),
            "steps": np.full((4, n_raters), np.log(0.5)),
            "gap_steps": np.full(2 * n_classes - 2, np.log(0.3)),
            "rates": np.ones((n_raters, 1 + n_answers - n_classes)),
            "n_sweeps": np.zeros(1, dtype=np.int64),
            "sharpness": np.zeros(n_raters),
        }

    def state(self, problem: Any = None) -> Any:
        from trueup.noise.kernels.loops import RatingState

        return RatingState(
            labels=self.state_class.astype(np.int64),
            classes=np.argsort(self._ranks, kind="stable"),
            hyper=_HYPER,
            **self._moving,
        )
