"""Labelers that err together: every class has latent subtypes."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, logsumexp

from trueup._validation import RandomState, as_generator, check_integer, check_number
from trueup.labels import Labels
from trueup.noise import _kernels
from trueup.noise.base import Floats, NoiseModel, as_table, from_table, normalise, rows_for, vote_shares
from trueup.noise.em import EMResult, expectation_maximisation
from trueup.noise.identifiability import warn_if_unidentifiable

__all__ = ["Subtypes", "subtype_states"]


class Subtypes(NoiseModel):
    """Every class has K latent subtypes, such as easy, hard and misleading items.

    Generative model: y_i ~ π; subtype k_i ~ ω[y_i]; a vote of t on i is a with probability θ_t[(y_i, k_i), a].
    Labelers are independent given the subtype only, so given the class they err together, as people do on hard items
    and LLM judges of one family do everywhere. Each labeler's rows are pulled towards the subtype's pooled matrix,
    θ_t[s] ~ Dir(1 + pooling · m_s), since most labelers have few votes. Fitted by EM from several starts; the best
    objective wins. With one subtype this is `DawidSkene`. The idea of correlated labelers through subtypes is that of
    [1]_.

    Parameters
    ----------
    n_subtypes : int or "auto"
        K; "auto" takes the number between 1 and 3 under which held-out votes are most likely.
    pooling : float
        Strength of the pull towards the subtype's pooled matrix, in votes.
    n_starts : int
    max_iter, tol
        As in the other models.
    random_state : int, Generator or None
        For the starts; the default gives the same fit each time.

    Attributes
    ----------
    n_subtypes_ : int
    state_prior_ : array of shape (n_classes, n_subtypes)
        P(class, subtype).
    confusion_ : array of shape (n_labelers, n_classes, n_answers)
        P(answer | class), the subtypes averaged out.
    subtype_confusion_ : array of shape (n_labelers, n_classes, n_subtypes, n_answers)
    pooled_ : array of shape (n_classes, n_subtypes, n_answers)

    References
    ----------
    .. [1] Li, Rubinstein and Cohn (2019), "Exploiting worker correlation for label aggregation in crowdsourcing",
       ICML.
    """

    alias = "subtypes"

    def __init__(
        self,
        *,
        n_subtypes: int | Literal["auto"] = "auto",
        pooling: float = 2.0,
        n_starts: int = 4,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: RandomState = 0,
    ) -> None:
        self.n_subtypes = n_subtypes
        self.pooling = pooling
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, labels: Labels) -> Self:
        """Learn matrices, weights and prior by EM."""
        check_number(self.pooling, name="pooling", low=0.0)
        check_integer(self.n_starts, name="n_starts", low=1)
        check_integer(self.max_iter, name="max_iter", low=1)
        warn_if_unidentifiable(labels, what="Subtypes")
        if self.n_subtypes == "auto":
            from trueup.noise.heldout import best_of

            choices = [self._with_subtypes(k) for k in (1, 2, 3)]
            self.n_subtypes_ = int(best_of(choices, labels, random_state=self.random_state).n_subtypes)
        else:
            self.n_subtypes_ = check_integer(self.n_subtypes, name="n_subtypes", low=1)
        self._remember(labels)
        rng = as_generator(self.random_state)
        fits = [self._fit_from(labels, start, rng) for start in range(self.n_starts if self.n_subtypes_ > 1 else 1)]
        best = min(fits, key=lambda fit: fit.loss_history[-1])
        shape = (labels.n_classes, self.n_subtypes_)
        self.state_prior_ = best.weights.reshape(shape)
        self.prior_ = self.state_prior_.sum(axis=1)
        self._states = from_table(best.table, labels.n_answers)
        self._pooled_states = self._pooled(from_table(best.expectation.counts, labels.n_answers), labels)
        self.subtype_confusion_ = self._states.reshape(labels.n_labelers, *shape, labels.n_answers)
        self.pooled_ = self._pooled_states.reshape(*shape, labels.n_answers)
        self.confusion_ = np.einsum("yk,tyka->tya", normalise(self.state_prior_), self.subtype_confusion_)
        self.n_iter_, self.converged_, self.loss_history_ = best.n_iter, best.converged, best.loss_history
        return self

    def _with_subtypes(self, n_subtypes: int) -> Subtypes:
        return Subtypes(**{**self.parameters(), "n_subtypes": n_subtypes})

    def _fit_from(self, labels: Labels, start: int, rng: np.random.Generator) -> EMResult:
        def maximise(counts: Floats, state_counts: Floats) -> tuple[Floats, Floats, float]:
            by_labeler = from_table(counts, labels.n_answers)
            pseudo = self.pooling * self._pooled(by_labeler, labels)
            confusion = normalise(by_labeler + pseudo)
            log_prior = float((pseudo * np.log(np.maximum(confusion, 1e-300))).sum())
            return as_table(confusion), normalise(state_counts + 0.5), log_prior

        return expectation_maximisation(
            labels,
            _first_guess(labels, self.n_subtypes_, start, rng),
            maximise,
            state_class=subtype_states(labels.n_classes, self.n_subtypes_),
            max_iter=self.max_iter,
            tol=self.tol,
            name="Subtypes",
            warn=False,  # flat directions are common here and harmless: the objective decides
        )

    def _pooled(self, by_labeler: Floats, labels: Labels) -> Floats:
        """Pooled matrix of each state, (states, answers), with a weak pull towards a right answer."""
        base = np.ones((labels.n_classes, labels.n_answers))
        base[np.arange(labels.n_classes), np.arange(labels.n_classes)] = 3.0
        return normalise(by_labeler.sum(axis=0) + np.repeat(base, self.n_subtypes_, axis=0))

    def state_log_likelihood(self, labels: Labels) -> Floats:
        """Log p(votes of an item | class and subtype), shape (n_items, n_classes * n_subtypes)."""
        return _kernels.log_likelihood(labels.votes, as_table(self.state_confusion_for(labels)))

    def state_confusion_for(self, labels: Labels) -> Floats:
        """P(answer | labeler, state) of the labelers of `labels`, shape (n_labelers, n_states, n_answers)."""
        self._check(labels)
        return rows_for(labels, self.labelers_, self._states, self._pooled_states)

    def _log_likelihood(self, labels: Labels) -> Floats:
        log_weights = np.log(normalise(self.state_prior_)).ravel()
        joint = (self.state_log_likelihood(labels) + log_weights).reshape(labels.n_items, *self.state_prior_.shape)
        return np.asarray(logsumexp(joint, axis=2))

    def predict_votes(self, labels: Labels, item: npt.NDArray[np.int64], labeler: npt.NDArray[np.int64]) -> Floats:
        """P(answer) of labelers to items, given the other votes on those items; shape (n, n_answers)."""
        joint = self.state_log_likelihood(labels) + np.log(self.state_prior_.ravel())
        known = labels.gold_codes >= 0
        of_class = subtype_states(labels.n_classes, self.n_subtypes_)
        joint[known] = np.where(of_class == labels.gold_codes[known, None], joint[known], -np.inf)
        posterior = np.exp(log_softmax(joint, axis=1))
        return np.asarray(np.einsum("ns,nsa->na", posterior[item], self.state_confusion_for(labels)[labeler]))


def subtype_states(n_classes: int, n_subtypes: int) -> npt.NDArray[np.int32]:
    """The class of each state; the subtypes of a class lie together."""
    return np.repeat(np.arange(n_classes, dtype=np.int32), n_subtypes)


def _first_guess(labels: Labels, n_subtypes: int, start: int, rng: np.random.Generator) -> Floats:
    """P(state) of each item: the share of votes decides the class, and the agreement of the votes the subtype.

    Later starts add more chance, and let items with divided votes lean against the majority.
    """
    shares = vote_shares(labels)
    if n_subtypes == 1:
        return shares
    agreement = shares.max(axis=1)
    rank = np.argsort(np.argsort(-agreement, kind="stable")) / max(labels.n_items - 1, 1)
    centres = np.linspace(0, 1, n_subtypes)
    split = np.exp(-0.5 * ((rank[:, None] - centres) / (0.5 / n_subtypes)) ** 2)
    noise = rng.dirichlet(np.ones(n_subtypes), size=(labels.n_items, labels.n_classes))
    weight = 0.2 + 0.2 * start
    mixed = (1 - weight) * normalise(split)[:, None, :] + weight * noise
    return (shares[:, :, None] * normalise(mixed)).reshape(labels.n_items, -1)
