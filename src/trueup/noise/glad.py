"""GLAD: able labelers and difficult items."""

from __future__ import annotations

from functools import partial
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from trueup._base.arrays import group_sums, like, namespace, special_functions, to_numpy
from trueup._base.engines import choose_engine
from trueup._base.types import Floats, Positions
from trueup._base.validation import check_choice, check_distribution, check_integer, check_number
from trueup.data.labels import Labels
from trueup.noise.base import (
    DecidedVotes,
    NoiseModel,
    normalise,
    rows_for,
    symmetric_votes,
    vote_shares,
    warn_if_unidentifiable,
)
from trueup.noise.em import fit_posterior
from trueup.noise.kernels import run_where_memory_suffices


class GLAD(NoiseModel):
    """Ability of labelers and easiness of items [1]_, for any number of classes.

    Generative model: y_i ~ π; a vote of t on i is right with probability σ(α_t β_i), β_i > 0, and else uniform over
    the other classes. π is uniform, α_t ~ N(1, 1) and log β_i ~ N(1, 1), as published. Fitted by EM; the M-step takes a
    few damped Newton steps in each coordinate, which the priors make concave enough. Abstentions say nothing here.

    .. [1] Whitehill, Wu, Bergsma, Movellan and Ruvolo (2009), "Whose vote should count more", NeurIPS.

    Parameters
    ----------
    tol : float. Least change of the loss per vote to go on.
    newton_steps : int. Newton steps within an M-step.
    prior : array of shape (n_classes,) or "learn", optional
        P(class), uniform by default. "learn" estimates it along with the rest; on none of eleven real crowds did that
        find more of the truths, and on some far fewer (bluebird: 59% against 72%).

    Attributes
    ----------
    ability_ : array of shape (n_labelers,)
    easiness_ : array of shape (n_items,). β of the items fitted on; other items get the mean of the prior.
    """

    alias = "glad"
    allows_dependence = True
    engines = ("scipy", "torch")

    def __init__(
        self,
        *,
        max_iter: int = 100,
        tol: float = 1e-5,
        newton_steps: int = 3,
        prior: npt.ArrayLike | Literal["learn"] | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.newton_steps = newton_steps
        self.prior = prior

    def fit(self, labels: Labels) -> Self:
        check_integer(self.max_iter, name="max_iter", low=1)
        check_integer(self.newton_steps, name="newton_steps", low=1)
        check_number(self.tol, name="tol", low=0.0)
        fixed: Floats | None = np.full(labels.n_classes, 1 / labels.n_classes)
        if isinstance(self.prior, str):
            check_choice(self.prior, ("learn",), name="prior")
            fixed = None
        elif self.prior is not None:
            fixed = check_distribution(self.prior, name="prior", n=labels.n_classes)
        warn_if_unidentifiable(labels, what="GLAD")
        self._remember(labels)
        self.items_ = labels.items
        learn = partial(self._learn, labels, fixed)
        run_where_memory_suffices(learn, labels.n_votes, self.max_iter, offers=self.engines)
        return self

    def _learn(self, labels: Labels, fixed: Floats | None) -> None:
        """EM by the same formulas for arrays of numpy and for those on a device."""
        votes, start = DecidedVotes(labels), vote_shares(labels)
        if choose_engine(offers=self.engines) == "torch":
            from trueup.noise.torch import place_all

            votes, start = place_all(votes, start)
        xp = namespace(start)
        ability, log_easiness = (like(start, np.ones(n)) for n in (labels.n_labelers, labels.n_items))

        def maximise(posterior: Floats) -> tuple[Floats, float]:
            nonlocal ability, log_easiness
            prior = normalise(posterior.sum(axis=0)) if fixed is None else like(posterior, fixed)
            right = posterior.ravel()[votes.cell]
            ability, log_easiness = _newton(votes, right, ability, log_easiness, self.newton_steps)
            joint = _log_likelihood(votes, ability, log_easiness) + xp.log(xp.clip(prior, 1e-300, None))
            self.prior_ = to_numpy(prior)
            return joint, -0.5 * float(((ability - 1) ** 2).sum() + ((log_easiness - 1) ** 2).sum())

        fit_posterior(self, labels, maximise, start, max_iter=self.max_iter, tol=self.tol)
        self.ability_, self.easiness_ = to_numpy(ability), np.exp(to_numpy(log_easiness))

    def predict_votes(self, labels: Labels, item: Positions, labeler: Positions) -> Floats:
        ability, log_easiness = self._parameters_for(labels)
        right = expit(ability[labeler] * np.exp(log_easiness[item]))
        return symmetric_votes(self.posterior(labels)[item], right, labels.n_answers)

    def _log_likelihood(self, labels: Labels) -> Floats:
        return _log_likelihood(DecidedVotes(labels), *self._parameters_for(labels))

    def _parameters_for(self, labels: Labels) -> tuple[Floats, Floats]:
        """Ability and log-easiness in the order of `labels`."""
        return (
            rows_for(labels.labelers, self.labelers_, self.ability_, float(self.ability_.mean())),
            rows_for(labels.items, self.items_, np.log(self.easiness_), 1.0),
        )


def _newton(
    votes: DecidedVotes, right: Floats, ability: Floats, log_easiness: Floats, steps: int
) -> tuple[Floats, Floats]:
    """Newton steps on the expected log-joint, first in the abilities and then in the log-easiness."""
    xp, expit = namespace(right), special_functions(right).expit

    def derivatives(x: Floats, factor: Floats, group: Positions, n: int) -> tuple[Floats, Floats]:
        """Slope and negative curvature in a parameter of each group; `factor` is the derivative of x = αβ in it."""
        p = expit(x)
        weighted = votes.counts * factor
        return group_sums(group, (right - p) * weighted, n), group_sums(group, p * (1 - p) * factor * weighted, n)

    for _ in range(steps):
        beta = xp.exp(log_easiness)[votes.item]
        slope, curve = derivatives(ability[votes.labeler] * beta, beta, votes.labeler, len(ability))
        ability = ability + xp.clip((slope - (ability - 1)) / (curve + 1), -1, 1)
        x = ability[votes.labeler] * beta
        # Fisher's curvature; the other term can be negative, and leaving it out keeps the step an ascent.
        slope, curve = derivatives(x, x, votes.item, len(log_easiness))
        log_easiness = log_easiness + xp.clip((slope - (log_easiness - 1)) / (curve + 1), -1, 1)
        log_easiness = xp.clip(log_easiness, -5, 5)
    return ability, log_easiness


def _log_likelihood(votes: DecidedVotes, ability: Floats, log_easiness: Floats) -> Floats:
    xp = namespace(ability)
    x = ability[votes.labeler] * xp.exp(log_easiness)[votes.item]
    log_others = float(np.log(votes.n_classes - 1))
    log_wrong = -(xp.clip(x, 0, None) + xp.log1p(xp.exp(-xp.abs(x))))  # log σ(-x)
    # log σ(x) - log σ(-x) is x itself.
    return votes.log_likelihood(log_wrong - log_others, x + log_others)
