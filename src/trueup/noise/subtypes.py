"""Labelers that err together: every class has latent subtypes."""

from __future__ import annotations

import warnings
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, logsumexp

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer, check_number
from trueup.data.labels import Labels
from trueup.exceptions import TrueupWarning
from trueup.noise.base import NoiseModel, as_table, from_table, normalise, rows_for, vote_shares, warn_if_unidentifiable
from trueup.noise.dawid_skene import DawidSkene
from trueup.noise.em import EMResult, expectation_maximisation
from trueup.noise.kernels import reference as _kernels

__all__ = ["Subtypes", "subtype_states"]

_ANCHOR_WORTH = 4.0  # vetted items of a state that outweigh what Dawid–Skene says of its class


class Subtypes(NoiseModel):
    """Every class has K latent subtypes, such as easy, hard and misleading items.

    Generative model: item i is in state s_i ~ w, C·K states in all; it belongs to class y with probability
    ``state_class_[s_i, y]``; a vote of t on i is a with probability θ_t[s_i, a]. Labelers are independent given the
    state only, so given the class they err together, as people do on hard items and LLM judges of one family do
    everywhere. Each labeler's rows are pulled towards the state's pooled row, θ_t[s] ~ Dir(1 + pooling · m_s), since
    most labelers have few votes. Fitted by EM from several starts; the best objective wins. The idea of correlated
    labelers through subtypes is that of [1]_.

    Votes tell states apart but not which class a state belongs to: a group of items on which two thirds say "cat" may
    be hard cats or misleading dogs. So after the fit each state is given to the classes in the proportions that
    `DawidSkene`, where labelers who are right elsewhere count more, gives to its items; gold items of a state outweigh
    that. With one subtype the model is `DawidSkene`.

    Parameters
    ----------
    n_subtypes : int or "auto"
        K; "auto" takes the number between 1 and 3 under which held-out votes are most likely.
    pooling : float
        Strength of the pull towards the state's pooled row, in votes.
    n_starts : int
    max_iter, tol
        As in the other models.
    random_state : int, Generator or None
        For the starts; the default gives the same fit each time.

    Attributes
    ----------
    n_subtypes_ : int
    state_prior_ : array of shape (n_states,)
        P(state).
    state_class_ : array of shape (n_states, n_classes)
        P(class | state).
    state_confusion_ : array of shape (n_labelers, n_states, n_answers)
        P(answer | state) of each labeler.
    pooled_ : array of shape (n_states, n_answers)
    confusion_ : array of shape (n_labelers, n_classes, n_answers)
        P(answer | class), the states averaged out.

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
        self.state_prior_ = best.weights
        self.state_confusion_ = from_table(best.table, labels.n_answers)
        self.pooled_ = self._pooled(from_table(best.expectation.counts, labels.n_answers), labels)
        self.state_class_ = self._classes_of_states(labels)
        self.prior_ = self.state_prior_ @ self.state_class_
        self.confusion_ = np.asarray(np.einsum("ys,tsa->tya", self._state_given_class(), self.state_confusion_))
        self.n_iter_, self.converged_, self.loss_history_ = best.n_iter, best.converged, best.loss_history
        return self

    def _classes_of_states(self, labels: Labels) -> Floats:
        """P(class | state): the shares of classes that Dawid–Skene gives to its items, then what gold says of it."""
        if self.n_subtypes_ == 1:
            return np.eye(labels.n_classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrueupWarning)  # what it would say is said of this model
            anchor = DawidSkene(pooling=self.pooling).fit(labels).posterior(labels)
        states = self._state_posterior(labels)
        known = np.flatnonzero(labels.gold_codes >= 0)
        vetted = states[known].T @ np.eye(labels.n_classes)[labels.gold_codes[known]]
        return normalise(_ANCHOR_WORTH * normalise(states.T @ anchor + 1e-9) + vetted)

    def _state_given_class(self) -> Floats:
        return normalise((self.state_prior_[:, None] * self.state_class_).T)

    def _state_posterior(self, labels: Labels) -> Floats:
        """P(state | votes) of each item, gold left out."""
        joint = self.state_log_likelihood(labels) + np.log(self.state_prior_)
        return np.asarray(np.exp(log_softmax(joint, axis=1)))

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
        """Log p(votes of an item | state), shape (n_items, n_states)."""
        return _kernels.log_likelihood(labels.votes, as_table(self.state_confusion_for(labels)))

    def state_confusion_for(self, labels: Labels) -> Floats:
        """P(answer | labeler, state) of the labelers of `labels`, shape (n_labelers, n_states, n_answers)."""
        return rows_for(labels, self.labelers_, self.state_confusion_, self.pooled_)

    def _log_likelihood(self, labels: Labels) -> Floats:
        votes = self.state_log_likelihood(labels)
        with np.errstate(divide="ignore"):  # a state may not belong to a class at all
            weights = np.log(self._state_given_class())
        columns = [logsumexp(votes + weights[y], axis=1) for y in range(labels.n_classes)]
        return np.column_stack(columns)

    def predict_votes(self, labels: Labels, item: npt.NDArray[np.int64], labeler: npt.NDArray[np.int64]) -> Floats:
        """P(answer) of labelers to items, given the other votes on those items; shape (n, n_answers)."""
        self._check(labels)
        states = self._state_posterior(labels)
        known = labels.gold_codes >= 0
        states[known] = normalise(states[known] * self.state_class_.T[labels.gold_codes[known]])
        return np.asarray(np.einsum("ns,nsa->na", states[item], self.state_confusion_for(labels)[labeler]))


def subtype_states(n_classes: int, n_subtypes: int) -> Codes:
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
