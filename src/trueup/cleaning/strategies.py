"""The label whose cleaning is expected to make the model better, and all strategies by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import entr, softmax

from trueup._base.registry import Registry
from trueup._base.types import Codes, Floats
from trueup._base.validation import check_choice, check_number
from trueup.cleaning.emi import EMI, How, few_features, numeric_features
from trueup.cleaning.fast_linear import csr, is_sparse
from trueup.cleaning.flips import UnbiasedScorer, true_class_probabilities
from trueup.cleaning.problem import CleaningState
from trueup.data.labels import Labels
from trueup.estimators.published.tars2018.consolidation import labeler_matrices
from trueup.noise import NoiseModel
from trueup.noise.base import as_table, from_table, normalise
from trueup.training.copies import split_pipeline, take
from trueup.training.objectives import noise_aware_probabilities

_SMOOTHING = 0.01  # added to each count of a labeler's answers, so that none is impossible


class CleaningStrategy(ABC):
    """Which label an oracle should look at next.

    A strategy is a frozen dataclass of its options; its answers are a function of the state. ``scores(state)`` has a
    number for each item of the training part, -inf where the label is known to be right. Equal scores are ordered by
    ``ties(state)``, then at random by the advisor's seed.
    """

    name: ClassVar[str]
    needs_probabilities: ClassVar[bool] = False
    _sentence: ClassVar[str] = "Its score is {score:.3g}."  # with {score}, or {rest} for 1 − score

    @abstractmethod
    def scores(self, state: CleaningState) -> Floats:
        """How much each label is wanted; shape (n_train,)."""

    def ties(self, state: CleaningState) -> Floats:
        """What decides between equal scores; shape (n_train,)."""
        return np.zeros(len(state.train))

    def reasons(self, state: CleaningState, scores: Floats, positions: Sequence[int]) -> list[str]:
        """Why these positions in the training part, one sentence each."""
        return [self._sentence.format(score=scores[k], rest=1 - scores[k], n=len(state.open)) for k in positions]


def only_open(state: CleaningState, values: Floats) -> Floats:
    """The values of labels that may be wrong, and -inf for the others."""
    scores = np.full(len(state.train), -np.inf)
    scores[state.open] = values[state.open]
    return scores


@dataclass(frozen=True)
class RandomOrder(CleaningStrategy):
    """Every open label is as likely as the other."""

    name: ClassVar[str] = "random"
    _sentence: ClassVar[str] = "Drawn at random among {n} labels that may be wrong."

    def scores(self, state: CleaningState) -> Floats:
        """All the same; the advisor's seed decides."""
        return only_open(state, np.zeros(len(state.train)))


@dataclass(frozen=True)
class NoiseRate(CleaningStrategy):
    """The labels that are most likely wrong, whatever they mean for the model ("SortNoise")."""

    name: ClassVar[str] = "noise-rate"
    _sentence: ClassVar[str] = "Its label is wrong with probability {score:.2f}."

    def scores(self, state: CleaningState) -> Floats:
        """P(truth ≠ label | label)."""
        return only_open(state, 1 - state.chances[np.arange(len(state.train)), state.y])


@dataclass(frozen=True)
class Uncertainty(CleaningStrategy):
    """The items of which the model is least certain (Lewis and Catlett 1994); how noisy labels are does not matter."""

    name: ClassVar[str] = "uncertainty"
    needs_probabilities: ClassVar[bool] = True
    _sentence: ClassVar[str] = "The model gives its likeliest class a probability of {rest:.2f} only."

    def scores(self, state: CleaningState) -> Floats:
        """1 − max_c p(c | x)."""
        return only_open(state, 1 - state.model_chances.max(axis=1))


@dataclass(frozen=True)
class ExpectedError(CleaningStrategy):
    """The item whose label is expected to reduce the error most (Roy and McCallum 2001)."""

    name: ClassVar[str] = "expected-error"
    needs_probabilities: ClassVar[bool] = True
    _sentence: ClassVar[str] = "The metric on noisy labels is expected to rise by {score:+.4f}."

    def scores(self, state: CleaningState) -> Floats:
        """Σ_c p(c | x_i) (accuracy of the model with label c − accuracy now), on noisy labels."""
        problem, codes = state.problem, state.codes[state.validation]
        names = problem.labels.classes
        scorer = UnbiasedScorer(codes, np.eye(problem.n_classes), metric=problem.metric, classes=names)
        expected = state.improvement(scorer, state.model_chances, weigh=False)
        values = np.full(len(state.train), -np.inf)
        values[expected.items] = expected.score
        return values


@dataclass(frozen=True)
class ActiveClean(CleaningStrategy):
    r"""The label that would change the model most (Krishnan et al. 2016).

    The change is the length of the change of the gradient of a linear model's loss,
    :math:`\sum_c p(c\mid x_i)\,\lVert e_c - e_{y'_i}\rVert\,\lVert(x_i, 1)\rVert`; the noise of labels does not enter.
    """

    name: ClassVar[str] = "activeclean"
    needs_probabilities: ClassVar[bool] = True
    _sentence: ClassVar[str] = "Its label is expected to change the gradient of the loss by {score:.2f}."

    def scores(self, state: CleaningState) -> Floats:
        """√2 (1 − p(label | x)) ‖(x, 1)‖, with x as the last step of a pipeline sees it."""
        doubt = 1 - state.model_chances[np.arange(len(state.train)), state.y]
        head, _ = split_pipeline(state.model)
        X = state.features if head is None else head.transform(state.features)
        try:
            rows = csr(X).power(2) if is_sparse(X) else np.asarray(X, dtype=float).reshape(len(state.train), -1) ** 2
            squares = np.asarray(rows.sum(axis=1)).ravel()
        except (TypeError, ValueError):  # features that are no numbers
            squares = np.ones(len(state.train))
        return only_open(state, np.sqrt(2) * doubt * np.sqrt(1 + squares))


@dataclass(frozen=True)
class ValidationEffort(CleaningStrategy):
    """The item whose truth makes the labels of all items most certain (Hung et al. 2015, uncertainty-driven).

    For each class of an item the matrices of its labelers are counted again, and with them the posteriors of all they
    voted on (one step of incremental EM); the score is the expected fall of the sum of entropies. It is worked out for
    the `shortlist` items that are least certain themselves; the others rank behind them. Where the noise is known, an
    answer informs of no other item, and what is left is the item's own entropy.
    """

    name: ClassVar[str] = "hung"
    _sentence: ClassVar[str] = "Its truth is expected to make labels more certain, by {score:.3f} nats."

    def scores(self, state: CleaningState) -> Floats:
        """The expected fall of the entropy of all labels, in nats."""
        problem = state.problem
        cleaned = np.flatnonzero(state.truth >= 0)
        names = problem.labels.classes[state.truth[cleaned]].tolist()
        gold = dict(zip(problem.labels.items[cleaned].tolist(), names, strict=True))
        labels = problem.labels.with_gold(gold, correct=True)
        noise = problem.noise if problem.noise.is_known else deepcopy(problem.noise).fit(labels)
        posterior = noise.posterior(labels)
        entropies = np.maximum(entr(posterior).sum(axis=1), 0.0)
        scores = only_open(state, entropies[state.train])
        if noise.is_known:
            return scores
        best = state.open[np.argsort(-scores[state.open], kind="stable")][: problem.resources.shortlist]
        gains = _entropy_falls(labels, noise, posterior, state.train[best])
        scores[state.open] -= entropies.max() + max(float(-gains.min()), 0.0)  # behind the shortlist
        scores[best] = gains
        return scores


def _entropy_falls(labels: Labels, noise: NoiseModel, posterior: Floats, items: Codes) -> Floats:
    """How far the sum of entropies is expected to fall once the truth of an item is known; shape (n_items,)."""
    _, prior = labeler_matrices(labels, noise)
    log_prior = np.log(np.maximum(prior, 1e-300))
    votes, n_answers = labels.votes.tocsr(), labels.n_answers
    by_column = votes.tocsc()
    unknown = labels.gold_codes < 0
    counts = np.asarray(votes.T @ posterior)  # (labeler · answer) × class

    def logs(table: Floats) -> Floats:
        return as_table(np.log(normalise(from_table(table, n_answers) + _SMOOTHING)))

    now = logs(counts)
    scores = votes @ now + log_prior
    entropies = np.where(unknown, _entropy(scores), 0.0)
    falls = np.zeros(len(items))
    for row, item in enumerate(items.tolist()):
        part = slice(votes.indptr[item], votes.indptr[item + 1])
        columns, times = votes.indices[part], votes.data[part]
        labelers = np.unique(columns // n_answers)
        cells = (labelers[:, None] * n_answers + np.arange(n_answers)).ravel()
        own_cells = np.searchsorted(cells, columns)
        reach = by_column[:, cells].tocsr()
        touched = np.flatnonzero((np.diff(reach.indptr) > 0) & unknown)
        reach = reach[touched]
        before = float(entropies[touched].sum())
        for code, chance in enumerate(posterior[item].tolist()):
            table = counts[cells].copy()
            table[own_cells] += times[:, None] * (np.eye(len(prior))[code] - posterior[item])
            after = _entropy(scores[touched] + reach @ (logs(table) - now[cells]))
            after[touched == item] = 0.0
            falls[row] += chance * (before - float(after.sum()))
    return falls


def _entropy(scores: Floats) -> Floats:
    return np.asarray(entr(softmax(scores, axis=1)).sum(axis=1))


def believed_truths(state: CleaningState) -> Floats:
    """P(truth = c | features, label) of every item; shape (n_items, n_classes).

    A noise-aware logistic regression on all labels, on standardised features (their first principal components if there
    are many; those of the last step for a pipeline). From the votes alone where features are no numbers.
    """
    problem = state.problem
    labelled = np.flatnonzero(state.codes >= 0)
    codes, matrices = state.codes[labelled], problem.matrices[state.group[labelled]]
    believed = np.tile(problem.prior, (problem.n_items, 1))
    head, _ = split_pipeline(state.model)
    X = take(problem.X, labelled)
    try:
        rows = numeric_features(X if head is None else head.transform(X))
    except (TypeError, ValueError):
        believed[labelled] = true_class_probabilities(codes, matrices, problem.prior)
        return believed
    believed[labelled] = noise_aware_probabilities(few_features(rows, rows[:1])[0], codes, matrices)
    return believed


def believed_scorer(state: CleaningState, believed: Floats) -> UnbiasedScorer:
    """The metric on the validation part against what is believed of the truth there.

    Weights between 0 and 1 make changes of the metric far less noisy than unbiased ones, at the price of a bias.
    """
    scorer = copy(state.scorer)
    scorer.weights, scorer.n_used = believed[state.validation], scorer.n_items
    return scorer


_CLEAR = 2.0  # standard errors from which a change of the metric is more than noise
Belief = Literal["features", "votes"]
_BELIEFS: tuple[Belief, ...] = ("features", "votes")


@dataclass(frozen=True)
class ExpectedImprovement(CleaningStrategy):
    r"""The label whose cleaning is expected to make the model better (Dolatshah et al. 2018, "TARS").

    With ``belief="votes"``, as published, labels rank by :math:`u(x_i)\,\sigma(\mathrm{EMI}(i))`, by votes alone and
    the unbiased metric. By default features and votes together (`noise_aware_probabilities`) give the truth, for flips
    and on the validation part, and labels rank by

    .. math:: P(y_i \ne y'_i \mid x_i, y'_i)\; u(x_i)\; \sigma(s \cdot \mathrm{EMI}(i))

    Labels whose cleaning makes the model worse by more than two standard errors come last, with a score 1 lower.

    Parameters
    ----------
    weigh : bool. Weigh by the uncertainty of the model; otherwise labels rank by EMI alone.
    belief : {"features", "votes"}
    scale : float. s; the larger it is, the more the improvement decides.
    how : {"auto", "fast", "shortlist", "exact"}. As for `expected_improvement`.
    refine : int, optional
        As for `expected_improvement`. By default 100 where labels rank by EMI alone, and 20 where weights leave it
        little to decide.
    """

    weigh: bool = True
    belief: Belief = "features"
    scale: float = 1.0
    how: How = "auto"
    refine: int | None = None
    name: ClassVar[str] = "emi"

    def __post_init__(self) -> None:
        check_choice(self.belief, _BELIEFS, name="belief")
        check_number(self.scale, name="scale", low=0.0)

    @property
    def needs_probabilities(self) -> bool:  # type: ignore[override]
        """Weights need the model's uncertainty."""
        return self.weigh

    def improvement(self, state: CleaningState) -> EMI:
        """The expected improvement by each open label."""
        return self._improvement(state)[0]

    def _improvement(self, state: CleaningState) -> tuple[EMI, Floats]:
        """The improvement by each open label, and the probability that it is wrong; computed once for a state."""
        if self not in state.memo:
            chances, scorer, by_chance = state.chances, state.scorer, self.belief == "features"
            if by_chance:
                believed = believed_truths(state)
                chances, scorer = believed[state.train], believed_scorer(state, believed)
            flips = 1 - chances[np.arange(len(state.train)), state.y]
            refine = self.refine or (20 if self.weigh else 100)
            options: dict[str, Any] = {"how": self.how, "weigh": self.weigh, "scale": self.scale, "refine": refine}
            expected = state.improvement(scorer, chances, by_chance=by_chance, **options)
            state.memo[self] = expected, flips[expected.items]
        found: tuple[EMI, Floats] = state.memo[self]
        return found

    def scores(self, state: CleaningState) -> Floats:
        """How much each label is wanted; shape (n_train,)."""
        expected = self.improvement(state)
        score = expected.score
        if self.weigh and self.belief == "features":
            score = score - (expected.improvement < -_CLEAR * expected.standard_error)
        values = np.full(len(state.train), -np.inf)
        values[expected.items] = score
        return values

    def ties(self, state: CleaningState) -> Floats:
        """The model's uncertainty."""
        expected = self.improvement(state)
        values = np.zeros(len(state.train))
        values[expected.items] = expected.uncertainty
        return values

    def reasons(self, state: CleaningState, scores: Floats, positions: Sequence[int]) -> list[str]:
        """How likely the label is wrong, how unsure the model is, and what cleaning it is worth where that is clear."""
        expected, flips = self._improvement(state)
        metric, sign = state.scorer.metric.name, state.scorer.sign
        sentences = []
        for k in np.searchsorted(expected.items, positions).tolist():
            change, error = expected.improvement[k], expected.standard_error[k]
            if abs(change) > _CLEAR * error or not self.weigh:
                worth = f"cleaning it is expected to change the {metric} by {sign * change:+.5f} ± {error:.5f}"
            else:
                worth = f"what cleaning it alone changes in the {metric} is too little to be distinguished from 0"
            sentences.append(
                f"Its label is wrong with probability {flips[k]:.2f}, the model gives its likeliest class "
                f"{1 - expected.uncertainty[k]:.2f}, and {worth}."
            )
        return sentences


_ALL = (ExpectedImprovement, RandomOrder, NoiseRate, Uncertainty, ExpectedError, ActiveClean, ValidationEffort)
STRATEGIES: Registry[type[CleaningStrategy]] = Registry(
    "strategy", {kind.name: kind for kind in _ALL}, group="trueup.cleaning_strategies"
)


def get_cleaning_strategy(name: str | CleaningStrategy, **options: Any) -> CleaningStrategy:
    """A strategy by name; underscores and hyphens are the same. A strategy is given back as it is.

    Parameters
    ----------
    name : str or CleaningStrategy
        "emi", "random", "noise-rate", "uncertainty", "expected-error", "activeclean" or "hung".
    **options
        Those of the strategy, e.g. ``belief`` of "emi".
    """
    return STRATEGIES.make(name, options, base=CleaningStrategy)
