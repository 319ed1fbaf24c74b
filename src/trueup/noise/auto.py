"""Choosing a noise model without truth."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from trueup._base.types import Floats, Positions
from trueup._base.validation import RandomState, check_integer, check_number
from trueup.data.labels import Labels
from trueup.exceptions import DataWarning, InvalidParameter, TrueupWarning
from trueup.noise.base import NoiseModel, normalise, with_gold
from trueup.noise.heldout import heldout_scores, is_splittable
from trueup.noise.variational import Variational

_LEAST_WEIGHT = 0.01  # of a model that is worth fitting
_WEIGHT_TOLERANCE = 1e-5  # finer steps would change no answer
_SCORED_VOTES = 20_000  # that models are compared on


@dataclass(frozen=True)
class Candidate:
    """A model that was considered.

    Attributes
    ----------
    model : NoiseModel
    score : float
        Mean log-probability of votes the model had not seen; NaN if the time budget was spent before it.
    weight : float
        Its share in the stack.
    """

    model: NoiseModel
    score: float
    weight: float


class Stack(NoiseModel):
    """Several models, weighted by how likely they make held-out votes [1]_, with a part of the weight shared evenly.

    No single model wins on real data, and the best by held-out votes is often ahead by less than chance. A part of the
    weights maximises Σ log Σ_m w_m p_m(vote | the item's other votes), a concave problem. The rest is shared evenly:
    held-out votes reward a model for knowing what labelers like to say, which is not yet finding the truth. The
    posterior of the truth is the same mixture of the models' posteriors. Made by ``trueup.noise.fit(labels, "auto")``.

    Parameters
    ----------
    models : sequence of NoiseModel, optional
        The candidates, the simplest first; by default `default_candidates`.
    n_folds : int
        In which votes are held out.
    even_share : float in [0, 1]
        The part of the weight that all candidates share evenly.
    time_budget : float
        Seconds for comparing models; what does not fit in is left out and said so in ``reason_``.
    random_state : int, Generator or None

    Attributes
    ----------
    candidates_ : tuple of Candidate, the heaviest first
    best_ : NoiseModel
        The model with the most weight.
    reason_ : str
        What was chosen and why, in a sentence.

    References
    ----------
    .. [1] Yao, Vehtari, Simpson and Gelman (2018), "Using stacking to average Bayesian predictive distributions",
       Bayesian Analysis.
    """

    alias = "stack"

    def __init__(
        self,
        models: Sequence[NoiseModel] | None = None,
        *,
        n_folds: int = 3,
        even_share: float = 0.7,
        time_budget: float = 60.0,
        random_state: RandomState = 0,
    ) -> None:
        self.models = models
        self.n_folds = n_folds
        self.even_share = even_share
        self.time_budget = time_budget
        self.random_state = random_state

    def fit(self, labels: Labels) -> Self:
        """Score the candidates on held-out votes, weigh them and fit those with weight on all votes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrueupWarning)  # members' warnings are summed up below
            self._fit(labels)
        if np.isnan(self.candidates_[0].score):
            warnings.warn(self.reason_, DataWarning, stacklevel=3)
        return self

    def _fit(self, labels: Labels) -> None:
        models = default_candidates() if self.models is None else [model.clone() for model in self.models]
        if not models:
            raise InvalidParameter("models must hold at least one noise model, got none")
        check_number(self.time_budget, name="time_budget", low=0.0)
        check_integer(self.n_folds, name="n_folds", low=2)
        check_number(self.even_share, name="even_share", low=0.0, high=1.0)
        scores, skipped = self._scores(models, _some_items(labels))
        weights = stacking_weights(scores, tol=_WEIGHT_TOLERANCE) if scores.shape[1] else np.array([])
        weights = (1 - self.even_share) * weights + self.even_share / max(len(weights), 1)
        scored = list(zip(models, np.nanmean(scores, axis=0), weights, strict=False)) if scores.shape[1] else []
        if not scored:  # nothing could be held out, or no time at all
            scored = [(models[0], float("nan"), 1.0)]
        kept = [Candidate(m, float(s), float(w)) for m, s, w in scored]
        total = sum(c.weight for c in kept if c.weight >= _LEAST_WEIGHT)
        kept = [Candidate(c.model, c.score, c.weight / total if c.weight >= _LEAST_WEIGHT else 0.0) for c in kept]
        kept += [Candidate(m, float("nan"), 0.0) for m in models[len(kept) :]]
        self.candidates_ = tuple(sorted(kept, key=lambda c: -c.weight))
        self._members = [(c.model.fit(labels), c.weight) for c in self.candidates_ if c.weight > 0]
        self.best_ = self._members[0][0]
        self.prior_ = normalise(np.sum([w * m.prior_ for m, w in self._members], axis=0))
        self.n_iter_ = max(m.n_iter_ for m, _ in self._members)
        self.converged_ = all(m.converged_ for m, _ in self._members)
        self.loss_history_ = list(self.best_.loss_history_)
        self.reason_ = self._reason(skipped)
        self._remember(labels)

    def _scores(self, models: list[NoiseModel], labels: Labels) -> tuple[Floats, int]:
        """Held-out scores (votes, models) of as many models as the time allows, and how many were left out."""
        columns: list[Floats] = []
        if not is_splittable(labels):
            return np.empty((labels.votes.nnz, 0)), len(models)
        started = time.perf_counter()
        longest = 0.0
        for model in models:
            before = time.perf_counter()
            if columns and before - started + longest > self.time_budget:
                break
            columns.append(heldout_scores(model, labels, n_folds=self.n_folds, random_state=self.random_state))
            longest = max(longest, time.perf_counter() - before)
        return np.column_stack(columns), len(models) - len(columns)

    def _reason(self, skipped: int) -> str:
        shares = ", ".join(f"{c.model!r} {c.weight:.0%}" for c in self.candidates_ if c.weight > 0)
        head = self.candidates_[0]
        if np.isnan(head.score):
            return f"{shares}: no item has two votes, so models could not be compared and the first was taken."
        spent = f" {skipped} models were not tried within the time budget." if skipped else ""
        return (
            f"{self.even_share:.0%} of the weight is shared evenly, and under the rest held-out votes are most likely: "
            f"{shares} (the first alone: {head.score:.4f} nats a vote).{spent}"
        )

    def posterior(self, labels: Labels) -> Floats:
        """P(class | votes): the mixture of the models' posteriors."""
        self._check(labels)
        mixture = np.asarray(sum(w * m.posterior(labels) for m, w in self._members))
        return with_gold(mixture, labels)  # weights add up to one but for a rounding

    def _log_likelihood(self, labels: Labels) -> Floats:
        # Gold is left to `posterior`; what the votes alone say is the mixture over the common prior.
        mixture = sum(w * m.posterior(labels.without_gold()) for m, w in self._members)
        return np.asarray(np.log(np.maximum(mixture, 1e-300)) - np.log(self.prior_))

    def predict_votes(self, labels: Labels, item: Positions, labeler: Positions) -> Floats:
        """P(answer) of labelers to items, given the votes on those items in `labels`; shape (n, n_answers)."""
        self._check(labels)
        return np.asarray(sum(w * m.predict_votes(labels, item, labeler) for m, w in self._members))


def default_candidates() -> list[NoiseModel]:
    """The models "auto" weighs, the simplest first: labelers differ in one number, in one for each class, or in all."""
    return [
        Variational(shape="coin", pooling=3.0),
        Variational(shape="class", pooling=4.0),
        Variational(shape="matrix", pooling=1.0),
    ]


def _some_items(labels: Labels) -> Labels:
    """The labels, or as many of their items at random as have enough votes to tell models apart."""
    if labels.n_votes <= _SCORED_VOTES:
        return labels
    order = np.random.default_rng(0).permutation(labels.n_items)
    chosen = order[np.cumsum(labels.votes_per_item[order]) <= _SCORED_VOTES]
    return labels.select(items=labels.items[np.sort(chosen)]) if len(chosen) else labels


def stacking_weights(scores: Floats, *, max_iter: int = 1000, tol: float = 1e-9) -> Floats:
    """Weights that maximise the mean log of the mixture; `scores` are log-probabilities (votes, models).

    Multiplicative updates, that is EM for the weights of a mixture with known components: monotone and never negative.
    """
    scores = scores[np.isfinite(scores).all(axis=1)]
    n_models = scores.shape[1]
    weights = np.full(n_models, 1 / n_models)
    likelihood = np.exp(scores - scores.max(axis=1, keepdims=True))
    for _ in range(max_iter):
        updated = weights * (likelihood.T @ (1 / (likelihood @ weights))) / len(likelihood)
        if np.abs(updated - weights).max() < tol:
            break
        weights = updated
    return normalise(weights)


def choose(
    labels: Labels,
    *,
    models: Sequence[NoiseModel] | None = None,
    time_budget: float = 60.0,
    random_state: RandomState = 0,
) -> Stack:
    """A mix of models, in part by how likely they make held-out votes; nothing of the truth is used.

    Parameters
    ----------
    labels : Labels
    models : sequence of NoiseModel, optional
        The candidates, by default `default_candidates`.
    time_budget : float
        Seconds for comparing models; what does not fit in is left out and said so in ``reason_``.
    """
    return Stack(models, time_budget=time_budget, random_state=random_state).fit(labels)
