"""GLAD: able labelers and difficult items."""

from __future__ import annotations

import warnings
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from trueup._base.types import Floats, Positions
from trueup._base.validation import check_choice, check_distribution, check_integer, check_number
from trueup.data.labels import Labels
from trueup.exceptions import ConvergenceWarning
from trueup.noise.base import NoiseModel, normalise, symmetric_votes, vote_shares, warn_if_unidentifiable, with_gold

__all__ = ["GLAD"]


class GLAD(NoiseModel):
    """Ability of labelers and easiness of items [1]_, for any number of classes.

    Generative model: y_i ~ π; a vote of t on i is right with probability σ(α_t β_i), β_i > 0, and else uniform over
    the other classes. π is uniform, α_t ~ N(1, 1) and log β_i ~ N(1, 1), as published. Fitted by EM; the M-step takes a
    few damped Newton steps in each coordinate, which the priors make concave enough, instead of a conjugate gradient
    search. Abstentions kept as an answer say nothing here.

    Parameters
    ----------
    max_iter : int
    tol : float
        Least change of the loss per vote to go on.
    newton_steps : int
        Newton steps within an M-step.
    prior : array of shape (n_classes,) or "learn", optional
        P(class), uniform by default. "learn" estimates it along with the rest; on none of eleven real crowds did that
        find more of the truths, and on some far fewer (bluebird: 59% against 72%).

    Attributes
    ----------
    ability_ : array of shape (n_labelers,)
    easiness_ : array of shape (n_items,)
        β of the items fitted on; other items get the mean of the prior.

    References
    ----------
    .. [1] Whitehill, Wu, Bergsma, Movellan and Ruvolo (2009), "Whose vote should count more", NeurIPS.
    """

    alias = "glad"

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
        """Learn abilities and easiness by EM."""
        check_integer(self.max_iter, name="max_iter", low=1)
        check_integer(self.newton_steps, name="newton_steps", low=1)
        check_number(self.tol, name="tol", low=0.0)
        fixed = self._fixed_prior(labels.n_classes)
        warn_if_unidentifiable(labels, what="GLAD")
        self._remember(labels)
        self.items_ = labels.items
        votes = _Votes(labels)
        known = np.flatnonzero(labels.gold_codes >= 0)
        ability, log_easiness = np.ones(labels.n_labelers), np.ones(labels.n_items)
        posterior = vote_shares(labels)
        losses: list[float] = []
        self.converged_ = False
        for _ in range(self.max_iter):
            self.prior_ = normalise(posterior.sum(axis=0)) if fixed is None else fixed
            right = posterior.ravel()[votes.cell]
            ability, log_easiness = votes.maximise(right, ability, log_easiness, self.newton_steps)
            joint = votes.log_likelihood(ability, log_easiness) + np.log(np.maximum(self.prior_, 1e-300))
            top = joint.max(axis=1)
            likelihood = np.exp(joint - top[:, None])
            total = likelihood.sum(axis=1)
            posterior = with_gold(likelihood / total[:, None], labels)
            evidence = top + np.log(total)
            evidence[known] = joint[known, labels.gold_codes[known]]
            log_prior = -0.5 * (((ability - 1) ** 2).sum() + ((log_easiness - 1) ** 2).sum())
            losses.append(-float(evidence.sum() + log_prior) / max(labels.n_votes, 1))
            if len(losses) > 1 and abs(losses[-2] - losses[-1]) < self.tol:
                self.converged_ = True
                break
        if not self.converged_ and self.tol > 0:
            warnings.warn(
                f"GLAD did not settle in {self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.ability_, self.easiness_ = ability, np.exp(log_easiness)
        self.n_iter_, self.loss_history_ = len(losses), losses
        return self

    def _fixed_prior(self, n_classes: int) -> Floats | None:
        if self.prior is None:
            return np.full(n_classes, 1 / n_classes)
        if isinstance(self.prior, str):
            check_choice(self.prior, ("learn",), name="prior")
            return None
        return check_distribution(self.prior, name="prior", n=n_classes)

    def predict_votes(self, labels: Labels, item: Positions, labeler: Positions) -> Floats:
        """P(answer) of labelers to items, given the votes on those items in `labels`; shape (n, n_answers)."""
        ability, log_easiness = self._parameters_for(labels)
        right = expit(ability[labeler] * np.exp(log_easiness[item]))
        return symmetric_votes(self.posterior(labels)[item], right, labels.n_answers)

    def _log_likelihood(self, labels: Labels) -> Floats:
        return _Votes(labels).log_likelihood(*self._parameters_for(labels))

    def _parameters_for(self, labels: Labels) -> tuple[Floats, Floats]:
        """Ability and log-easiness in the order of `labels`."""
        ability_of = dict(zip(self.labelers_.tolist(), self.ability_.tolist(), strict=True))
        mean = float(self.ability_.mean())
        ability = np.array([ability_of.get(name, mean) for name in labels.labelers.tolist()])
        if np.array_equal(labels.items, self.items_):
            log_easiness = np.log(self.easiness_)
        else:
            known = dict(zip(self.items_.tolist(), np.log(self.easiness_).tolist(), strict=True))
            log_easiness = np.array([known.get(name, 1.0) for name in labels.items.tolist()])
        return ability, log_easiness


class _Votes:
    """The votes for classes as flat arrays, with the sums the M-step needs."""

    def __init__(self, labels: Labels) -> None:
        item, labeler, answer, times = labels.vote_table()
        if labels.n_answers > labels.n_classes:
            decided = answer < labels.n_classes
            item, labeler, answer, times = item[decided], labeler[decided], answer[decided], times[decided]
        # The type that indexing and bincount take without a copy; they are called many times.
        self.item, self.labeler = item.astype(np.intp), labeler.astype(np.intp)
        self.cell = self.item * labels.n_classes + answer
        self.times: Floats | float = 1.0 if (times == 1).all() else times.astype(float)
        self.n_items, self.n_labelers, self.n_classes = labels.n_items, labels.n_labelers, labels.n_classes

    def maximise(self, right: Floats, ability: Floats, log_easiness: Floats, steps: int) -> tuple[Floats, Floats]:
        """Newton steps on the expected log-joint, first in the abilities and then in the log-easiness."""
        for _ in range(steps):
            beta = np.exp(log_easiness)[self.item]
            slope, curve = self._derivatives(right, ability[self.labeler] * beta, beta, self.labeler, self.n_labelers)
            ability = ability + np.clip((slope - (ability - 1)) / (curve + 1), -1, 1)
            x = ability[self.labeler] * beta
            # Fisher's curvature; the other term can be negative, and leaving it out keeps the step an ascent.
            slope, curve = self._derivatives(right, x, x, self.item, self.n_items)
            log_easiness = log_easiness + np.clip((slope - (log_easiness - 1)) / (curve + 1), -1, 1)
            log_easiness = np.clip(log_easiness, -5, 5)
        return ability, log_easiness

    def _derivatives(
        self, right: Floats, x: Floats, factor: Floats, group: npt.NDArray[np.intp], n: int
    ) -> tuple[Floats, Floats]:
        """Slope and negative curvature of the expected log-likelihood in a parameter of each group.

        `factor` is the derivative of x = αβ in that parameter.
        """
        p = expit(x)
        weighted = self.times * factor
        return _sums(group, (right - p) * weighted, n), _sums(group, p * (1 - p) * factor * weighted, n)

    def log_likelihood(self, ability: Floats, log_easiness: Floats) -> Floats:
        """Log p(votes | class), shape (n_items, n_classes)."""
        x = ability[self.labeler] * np.exp(log_easiness)[self.item]
        wrong = self.times * (log_expit(-x) - np.log(self.n_classes - 1))
        # log σ(x) - log σ(-x) is x itself.
        gain = self.times * (x + np.log(self.n_classes - 1))
        votes_for = _sums(self.cell, gain, self.n_items * self.n_classes).reshape(self.n_items, self.n_classes)
        return votes_for + _sums(self.item, wrong, self.n_items)[:, None]


def _sums(group: npt.NDArray[np.intp], values: Floats, n: int) -> Floats:
    return np.asarray(np.bincount(group, values, n), dtype=np.float64)
