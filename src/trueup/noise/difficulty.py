"""Su's model: the difficulty of items and the fallibility of labelers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats, Positions
from trueup._base.validation import check_distribution, check_integer, check_number
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter
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


class Difficulty(NoiseModel):
    """A vote errs with probability ε(δ, φ) = (δ − δφ + φ)(C − 1)/C: item difficulty δ, labeler fallibility φ.

    Generative model [1]_: with probability (1 − δ_i)(1 − φ_t) the labeler sees the truth, and else guesses uniformly
    over all C classes. Parameters that are not given are learned by EM with Beta priors: that the item was clear and
    that the labeler was attentive are two more hidden variables of each vote. Abstentions say nothing here.

    .. [1] Su (2024), "On Truthing Issues in Supervised Classification", JMLR, eq. 59–61.

    Parameters
    ----------
    difficulty : array of shape (n_items,) in the order of ``labels.items``, or mapping from item; optional
    fallibility : array of shape (n_labelers,) in the order of ``labels.labelers``, or mapping from labeler; optional
    prior : array of shape (n_classes,), optional. P(class); learned, or uniform where the other parameters are given.
    difficulty_beta, fallibility_beta : (float, float). Beta priors used in fitting.
    """

    alias = "difficulty"
    allows_dependence = True

    def __init__(
        self,
        *,
        difficulty: npt.ArrayLike | Mapping[Any, float] | None = None,
        fallibility: npt.ArrayLike | Mapping[Any, float] | None = None,
        prior: npt.ArrayLike | None = None,
        difficulty_beta: tuple[float, float] = (1.2, 2.0),
        fallibility_beta: tuple[float, float] = (1.2, 2.0),
        max_iter: int = 500,
        tol: float = 1e-5,
    ) -> None:
        self.difficulty = difficulty
        self.fallibility = fallibility
        self.prior = prior
        self.difficulty_beta = difficulty_beta
        self.fallibility_beta = fallibility_beta
        self.max_iter = max_iter
        self.tol = tol
        if (difficulty is None) != (fallibility is None):
            raise InvalidParameter("difficulty and fallibility must be given both or neither, got one of them")
        if difficulty is not None:
            self._difficulty = _unit(difficulty, "difficulty")
            self._fallibility = _unit(fallibility, "fallibility")
            if prior is not None:
                self.prior_ = check_distribution(prior, name="prior", positive=True)
            self.n_iter_, self.converged_, self.loss_history_ = 0, True, []

    @property
    def is_known(self) -> bool:
        return self.difficulty is not None

    def _check(self, labels: Labels) -> None:
        if self.is_known:  # known parameters need no fit, and adopt the labels they are used with
            self._remember(labels)
            if self.prior is None:
                self.prior_ = np.full(labels.n_classes, 1 / labels.n_classes)
            if len(self.prior_) != labels.n_classes:
                raise InvalidParameter(
                    f"prior must have {labels.n_classes} probabilities, one for each class, got {len(self.prior_)}"
                )
        super()._check(labels)

    def fit(self, labels: Labels) -> Self:
        if self.is_known:
            self._check(labels)
            self._log_likelihood(labels)
            return self
        check_integer(self.max_iter, name="max_iter", low=1)
        check_number(self.tol, name="tol", low=0.0)
        warn_if_unidentifiable(labels, what="Difficulty")
        self._remember(labels)
        self.items_ = labels.items
        votes = DecidedVotes(labels)
        counts = np.broadcast_to(votes.counts, votes.item.shape)
        clear, attentive = np.full(labels.n_items, 0.8), np.full(labels.n_labelers, 0.8)
        fixed = None if self.prior is None else check_distribution(self.prior, name="prior", n=labels.n_classes)

        def maximise(posterior: Floats) -> tuple[Floats, float]:
            nonlocal clear, attentive
            self.prior_ = normalise(posterior.sum(axis=0)) if fixed is None else fixed
            # E-step of the hidden variables of a vote, given that it agrees with the truth with probability `right`.
            u, w = clear[votes.item], attentive[votes.labeler]
            right = posterior.ravel()[votes.cell]
            sees = right * u * w / (u * w + (1 - u * w) / labels.n_classes)
            blind = np.maximum(1 - u * w, 1e-12)
            was_clear = sees + (1 - sees) * u * (1 - w) / blind
            was_attentive = sees + (1 - sees) * w * (1 - u) / blind
            clear = _beta_mean(was_clear, counts, votes.item, labels.n_items, self.difficulty_beta)
            attentive = _beta_mean(was_attentive, counts, votes.labeler, labels.n_labelers, self.fallibility_beta)
            joint = _log_likelihood(votes, 1 - clear, 1 - attentive) + np.log(np.maximum(self.prior_, 1e-300))
            return joint, _log_beta(clear, self.difficulty_beta) + _log_beta(attentive, self.fallibility_beta)

        fit_posterior(self, labels, maximise, vote_shares(labels), max_iter=self.max_iter, tol=self.tol)
        self.difficulty_, self.fallibility_ = 1 - clear, 1 - attentive
        return self

    def predict_votes(self, labels: Labels, item: Positions, labeler: Positions) -> Floats:
        difficulty, fallibility = self._parameters_for(labels)
        sees = (1 - difficulty)[item] * (1 - fallibility)[labeler]
        return symmetric_votes(self.posterior(labels)[item], sees + (1 - sees) / labels.n_classes, labels.n_answers)

    def _log_likelihood(self, labels: Labels) -> Floats:
        return _log_likelihood(DecidedVotes(labels), *self._parameters_for(labels))

    def _parameters_for(self, labels: Labels) -> tuple[Floats, Floats]:
        """Difficulty and fallibility in the order of `labels`."""
        if self.is_known:
            return (
                _aligned(self._difficulty, labels.items.tolist(), "difficulty", "item"),
                _aligned(self._fallibility, labels.labelers.tolist(), "fallibility", "labeler"),
            )
        return (
            rows_for(labels.items, self.items_, self.difficulty_, float(self.difficulty_.mean())),
            rows_for(labels.labelers, self.labelers_, self.fallibility_, float(self.fallibility_.mean())),
        )


def _unit(values: Any, name: str) -> Floats | dict[Any, float]:
    array = np.array(list(values.values()) if isinstance(values, Mapping) else values, dtype=float)
    if array.ndim != 1 or not np.isfinite(array).all() or (array < 0).any() or (array > 1).any():
        raise InvalidParameter(f"{name} must be numbers in [0, 1], one for each, got {values!r:.60}")
    return dict(values) if isinstance(values, Mapping) else array


def _aligned(values: Floats | dict[Any, float], names: list[Any], what: str, of: str) -> Floats:
    if isinstance(values, dict):
        missing = [name for name in names if name not in values]
        if missing:
            raise InvalidLabels(f"{what} is given for {len(values)} {of}s but not for {missing[0]!r}; add it")
        return np.array([values[name] for name in names])
    if len(values) != len(names):
        raise InvalidLabels(f"{what} must have {len(names)} values, one for each {of}, got {len(values)}")
    return values


def _log_likelihood(votes: DecidedVotes, difficulty: Floats, fallibility: Floats) -> Floats:
    sees = (1 - difficulty)[votes.item] * (1 - fallibility)[votes.labeler]
    log_wrong = np.log(np.maximum((1 - sees) / votes.n_classes, 1e-300))
    return votes.log_likelihood(log_wrong, np.log(sees + (1 - sees) / votes.n_classes) - log_wrong)


def _beta_mean(values: Floats, counts: Floats, group: Positions, n: int, beta: tuple[float, float]) -> Floats:
    """Mode of the posterior of 1 − parameter under a Beta prior on the parameter."""
    yes = np.bincount(group, counts * values, n)
    total = np.bincount(group, counts, n)
    a, b = beta
    return np.asarray(np.clip((yes + b - 1) / np.maximum(total + a + b - 2, 1e-12), 1e-6, 1 - 1e-6))


def _log_beta(complement: Floats, beta: tuple[float, float]) -> float:
    a, b = beta
    return float(((b - 1) * np.log(complement) + (a - 1) * np.log1p(-complement)).sum())
