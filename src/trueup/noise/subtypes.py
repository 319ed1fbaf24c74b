"""Labelers that err together: every class has latent subtypes."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Literal, Self

import numpy as np
from scipy.special import log_softmax, logsumexp

from trueup._base.arrays import like
from trueup._base.engines import OF_ONE_MACHINE
from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_integer, check_number
from trueup.data.labels import Labels
from trueup.exceptions import TrueupWarning
from trueup.noise import kernels
from trueup.noise.base import (
    NoiseModel,
    Sampler,
    as_table,
    class_states,
    from_table,
    log_density,
    normalise,
    rows_for,
    vote_shares,
    warn_if_unidentifiable,
)
from trueup.noise.dawid_skene import DawidSkene, row_sampler
from trueup.noise.em import EMResult, expectation_maximisation
from trueup.noise.heldout import best_of, is_splittable

_ANCHOR_WORTH = 4.0  # vetted items of a state that outweigh what Dawid–Skene says of its class


class StateModel(NoiseModel):
    """A model whose items are in hidden states, one or more for each class; see `Subtypes` for the attributes."""

    engines = OF_ONE_MACHINE

    n_extra_: int
    state_prior_: Floats
    state_class_: Floats
    state_confusion_: Floats
    pooled_: Floats
    confusion_: Floats

    def __init__(self, *, pooling: float, n_starts: int, max_iter: int, tol: float, random_state: RandomState) -> None:
        self.pooling = pooling
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @abstractmethod
    def _extra_choices(self, n_classes: int) -> tuple[int, ...]:
        """How many states beyond one for each class there may be, the fewest first."""

    def most_states(self, n_classes: int) -> int:
        """Classes and extra states, of the largest model that is tried."""
        return n_classes + self._extra_choices(n_classes)[-1]

    def fit(self, labels: Labels) -> Self:
        """Learn matrices, weights and prior by EM."""
        check_number(self.pooling, name="pooling", low=0.0)
        check_integer(self.n_starts, name="n_starts", low=1)
        check_integer(self.max_iter, name="max_iter", low=1)
        warn_if_unidentifiable(labels, what=type(self).__name__)
        self.n_extra_ = self._choose_extra(labels)
        self._remember(labels)
        rng = as_generator(self.random_state)
        fits = [self._fit_from(labels, start, rng) for start in range(self.n_starts if self.n_extra_ else 1)]
        best = min(fits, key=lambda fit: fit.loss_history[-1])
        self.state_prior_ = best.weights
        self.state_confusion_ = from_table(best.table, labels.n_answers)
        self.pooled_ = self._pooled(from_table(best.expectation.counts, labels.n_answers), labels)
        self.state_class_ = self._classes_of_states(labels)
        self._set_class_matrices()
        self.n_iter_, self.converged_, self.loss_history_ = best.n_iter, best.converged, best.loss_history
        return self

    def _set_class_matrices(self) -> None:
        """What the states say of the classes."""
        self.prior_ = self.state_prior_ @ self.state_class_
        self.confusion_ = np.asarray(np.einsum("ys,tsa->tya", self._state_given_class(), self.state_confusion_))

    def _choose_extra(self, labels: Labels) -> int:
        """The number of extra states under which held-out votes are most likely."""
        choices = self._extra_choices(labels.n_classes)
        if len(choices) == 1 or not is_splittable(labels):
            return choices[0]
        settings = {k: getattr(self, k) for k in ("pooling", "n_starts", "max_iter", "tol", "random_state")}
        models = [_FixedStates(n_extra, **settings) for n_extra in choices]
        return best_of(models, labels, random_state=self.random_state).n_extra

    def _classes_of_states(self, labels: Labels) -> Floats:
        """P(class | state): the shares of classes that Dawid–Skene gives to its items, then what gold says of it."""
        if self.n_extra_ == 0:
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

    def _fit_from(self, labels: Labels, start: int, rng: np.random.Generator) -> EMResult:
        def maximise(counts: Floats, state_counts: Floats) -> tuple[Floats, Floats, float]:
            by_labeler = from_table(counts, labels.n_answers)
            pseudo = self.pooling * self._pooled(by_labeler, labels)
            confusion = normalise(by_labeler + pseudo)
            return as_table(confusion), normalise(state_counts + 0.5), log_density(confusion, pseudo)

        return expectation_maximisation(
            labels,
            _first_guess(labels, kinds_of_classes(labels.n_classes, self.n_extra_), start, rng),
            maximise,
            state_class=self._nominal_class(labels),
            max_iter=self.max_iter,
            tol=self.tol,
            name=type(self).__name__,
            warn=False,  # flat directions are common here and harmless: the objective decides
            offers=self.engines,
        )

    def _nominal_class(self, labels: Labels) -> Codes:
        """The class whose answer a state is pulled to; the states of a class lie together."""
        return np.repeat(class_states(labels.n_classes), kinds_of_classes(labels.n_classes, self.n_extra_))

    def _pooled(self, by_labeler: Floats, labels: Labels) -> Floats:
        """Pooled matrix of each state, (states, answers), with a weak pull towards a right answer."""
        base = np.ones((labels.n_classes, labels.n_answers))
        base[np.arange(labels.n_classes), np.arange(labels.n_classes)] = 3.0
        return normalise(by_labeler.sum(axis=0) + like(by_labeler, base[self._nominal_class(labels)]))

    def state_log_likelihood(self, labels: Labels) -> Floats:
        """Log p(votes of an item | state), shape (n_items, n_states)."""
        return kernels.log_likelihood(labels.votes, as_table(self.state_confusion_for(labels)))

    def state_confusion_for(self, labels: Labels) -> Floats:
        """P(answer | labeler, state) of the labelers of `labels`, shape (n_labelers, n_states, n_answers)."""
        return rows_for(labels.labelers, self.labelers_, self.state_confusion_, self.pooled_)

    def _log_likelihood(self, labels: Labels) -> Floats:
        votes = self.state_log_likelihood(labels)
        with np.errstate(divide="ignore"):  # a state may not belong to a class at all
            weights = np.log(self._state_given_class())
        columns = [logsumexp(votes + weights[y], axis=1) for y in range(labels.n_classes)]
        return np.column_stack(columns)

    def predict_votes(self, labels: Labels, item: Positions, labeler: Positions) -> Floats:
        """P(answer) of labelers to items, given the other votes on those items; shape (n, n_answers)."""
        self._check(labels)
        states = self._state_posterior(labels)
        known = labels.gold_codes >= 0
        states[known] = normalise(states[known] * self.state_class_.T[labels.gold_codes[known]])
        return np.asarray(np.einsum("ns,nsa->na", states[item], self.state_confusion_for(labels)[labeler]))


class _FixedStates(StateModel):
    """So many extra states, no more and no fewer."""

    def __init__(self, n_extra: int, **settings: Any) -> None:
        super().__init__(**settings)
        self.n_extra = n_extra

    def _extra_choices(self, n_classes: int) -> tuple[int, ...]:
        return (self.n_extra,)


class Subtypes(StateModel):
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

    Where the model is drawn together with the truth (`trueup.noise.sample`), each state has one class, K of each, with
    m_s ~ Dir(1, and 3 at its class, of four classes and more 3 √(2.5 C)), θ_t[s] ~ Dir(pooling · m_s) and w ~ Dir(1),
    and which states are of which class is drawn too. `Clusters` has states that may be of any class.

    Parameters
    ----------
    n_subtypes : int or "auto"
        K; "auto" takes the number between 1 and 3 under which held-out votes are most likely, 1 where none can be held
        out.
    pooling : float
        Strength of the pull towards the state's pooled row, in votes; 0 does not pool.
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
        super().__init__(pooling=pooling, n_starts=n_starts, max_iter=max_iter, tol=tol, random_state=random_state)

    @property
    def allows_dependence(self) -> bool:
        """Whether labelers may err together given the class: not if a class has one subtype."""
        return self.n_subtypes != 1

    @property
    def n_subtypes_(self) -> int:
        """K as it was fitted."""
        return 1 + self.n_extra_ // len(self.classes_)

    def _extra_choices(self, n_classes: int) -> tuple[int, ...]:
        if self.n_subtypes == "auto":
            return (0, n_classes, 2 * n_classes)
        return ((check_integer(self.n_subtypes, name="n_subtypes", low=1) - 1) * n_classes,)

    def samplers(self, labels: Labels, n_raters: int, n_chains: int) -> list[Sampler]:
        """One for each chain, all with as many subtypes as a fit would have."""
        n_states = labels.n_classes + self._choose_extra(labels)
        codes = np.arange(n_states, dtype=np.int32) % labels.n_classes
        size = (n_raters, labels.n_classes, labels.n_answers)
        return [row_sampler(*size, state_class=codes, pooling=self.pooling) for _ in range(n_chains)]


def kinds_of_classes(n_classes: int, n_extra: int) -> Positions:
    """How many states each class has where extra ones are handed out class by class."""
    return 1 + n_extra // n_classes + (np.arange(n_classes) < n_extra % n_classes)


def _first_guess(labels: Labels, kinds: Positions, start: int, rng: np.random.Generator) -> Floats:
    """P(state) of each item: the share of votes decides the class, and the agreement of the votes the kind.

    Later starts add more chance, and let items with divided votes lean against the majority.
    """
    shares = vote_shares(labels)
    most = int(kinds.max())
    if most == 1:
        return shares
    agreement = shares.max(axis=1)
    rank = np.argsort(np.argsort(-agreement, kind="stable"), kind="stable") / max(labels.n_items - 1, 1)
    split = np.exp(-0.5 * ((rank[:, None] - np.linspace(0, 1, most)) / (0.5 / most)) ** 2)
    noise = rng.dirichlet(np.ones(most), size=(labels.n_items, labels.n_classes))
    weight = 0.2 + 0.2 * start
    mixed = (1 - weight) * normalise(split)[:, None, :] + weight * noise
    mixed[:, np.arange(most) >= kinds[:, None]] = 0.0
    return (shares[:, :, None] * normalise(mixed))[:, np.arange(most) < kinds[:, None]]
