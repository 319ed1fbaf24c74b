"""Do labelers err together? The check, and what a panel is worth if they do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.labels import Labels
from trueup.data.votes import one_vote_each
from trueup.exceptions import InvalidParameter, Sentence
from trueup.noise.base import NoiseModel, TableModel, class_states, normalise
from trueup.noise.dawid_skene import DawidSkene
from trueup.noise.one_coin import OneCoin
from trueup.noise.replicates import (
    Answers,
    Maximise,
    Rates,
    Summaries,
    VoteDesign,
    design_of,
    draw_answers,
    joint_spread,
    one_coin_rows,
    pooled_rows,
    refit,
)
from trueup.noise.subtypes import StateModel, Subtypes

_LIMIT = 0.05  # of p, below which labelers are said to err together
_CORRELATION = 0.1  # of errors, for which the power of the check is told
_N_POWER = 60  # data sets with such errors
_N_WORTH = 50  # replicates that tell what independent votes look like
_STEPS_TO_SETTLE = 60  # of EM, for the data themselves
_STEPS = 6  # of EM, for a data set that starts from the rates it was drawn from
_MOST_CLASSES = 12  # others are one class together


@dataclass(frozen=True)
class IndependenceCheck:
    """How often votes on one item are wrong together, against what independent errors give.

    Attributes
    ----------
    ratio : float
        Observed joint errors over expected ones; 1 where labelers err independently given what the model knows.
    p_value : float
        The share of data sets made by the model itself that look as dependent.
    power : float
        How often the check would notice, in data sets like this one, errors of two labelers that correlate at 0.1.
    sentence : Sentence
        The finding in plain words.
    """

    ratio: float
    p_value: float
    power: float
    sentence: Sentence

    @property
    def dependent(self) -> bool:
        """Whether independence is hard to believe: p is below 0.05."""
        return self.p_value < _LIMIT

    @property
    def in_short(self) -> Sentence:
        """The finding in a line; where nothing was found, how often something would have been."""
        if self.dependent:
            return self.sentence
        return Sentence(
            f"No sign that labelers err together (errors correlated at {_CORRELATION:g} would have been noticed in "
            f"{self.power:.0%} of cases)."
        )

    def advice(self, model: NoiseModel) -> Sentence:
        """What dependence means for an answer that rests on a noise model, and what to do; empty without any."""
        if not self.dependent:
            return Sentence("")
        if model.allows_dependence:
            return Sentence(
                "The noise model in use allows for that, as far as votes can tell: vet some items to be sure."
            )
        return Sentence(
            'Intervals that assume independence are too narrow: use ⟨noise="clusters"⟩, which does not, and vet some '
            "items."
        )


@dataclass(frozen=True)
class EffectiveLabelers:
    """How many independent labelers the votes on an item are worth.

    Attributes
    ----------
    votes_per_item : float
        Votes on an average item.
    labelers_per_item : float
        Different labelers on an average item; fewer than votes where some voted several times.
    effective : float
        Independent votes that would leave the same variance of the share of wrong votes; never more than there are
        different labelers.
    correlation : float
        Mean correlation of the errors of two labelers on one item.
    sentence : str
    """

    votes_per_item: float
    labelers_per_item: float
    effective: float
    correlation: float
    sentence: str


def check_independence(
    labels: Labels, model: NoiseModel, *, n_replicates: int = 400, random_state: RandomState = 0
) -> IndependenceCheck:
    """Compare joint errors of votes on the same item with what a fitted model expects.

    Two things are looked at, on at most 2,000 items: the number of pairs of wrong votes on an item, averaged over the
    posterior of the truth, over its expectation under the labelers' error rates; and how much the agreement of each two
    labelers departs from the expected one. Since the same votes decide what is taken for the truth and for the error
    rates, neither is what it would be if these were known, even for independent labelers. So data sets with the same
    design are drawn from the model and the rates are learned from each anew [1]_. The smaller of the two p-values is
    held against the smaller ones of the drawn data sets, so that looking twice does not count as finding more.

    Several votes of one labeler on an item are one witness, and one of them is taken; the votes of an anonymous crowd
    (`Labels.from_counts`) are of different people. With more than 12 classes the rarer ones are one class together.
    With `Subtypes` the check says whether the subtypes account for the dependence. The rates of a known `Confusion` are
    not learned.

    References
    ----------
    .. [1] Efron and Tibshirani (1993), "An introduction to the bootstrap", Chapter 16; Westfall and Young (1993),
       "Resampling-based multiple testing".
    """
    check_integer(n_replicates, name="n_replicates", low=20)
    known = _KnownRates.of(model, labels)
    if (labels.witnesses_per_item < 2).all():
        nothing = "No item has votes of two labelers, so nothing can be said about dependence."
        return IndependenceCheck(1.0, 1.0, 0.0, Sentence(nothing))
    rng = as_generator(random_state)
    known, design, answers = known.design_of(labels, rng)
    start, maximise = known.for_design(design)
    fitted, observed = refit(design, answers, start, maximise, n_steps=_STEPS_TO_SETTLE)
    independent = draw_answers(design, fitted, n_replicates, rng)
    correlated = draw_answers(design, fitted, _N_POWER, rng, correlation=_CORRELATION)
    _, drawn = refit(design, np.concatenate([independent, correlated]), fitted, maximise, n_steps=_STEPS)
    usual = float(drawn.ratio[:n_replicates].mean())
    # A model in which nobody errs has no errors to compare.
    ratio = float(observed.ratio[0]) / usual if usual > 0 else 1.0
    each = p_values(_statistics(observed, drawn, n_replicates), n_replicates)
    both = smallest_p_values(each, n_replicates)
    power = float((both[1 + n_replicates :] < _LIMIT).mean())
    sentence = _sentence(ratio, float(both[0]), power, by_pairs=each[1, 0] < each[0, 0], given=known.given)
    return IndependenceCheck(ratio, float(both[0]), power, sentence)


def _statistics(observed: Summaries, drawn: Summaries, n_replicates: int) -> Floats:
    """Of the data and of every drawn data set: joint errors, and how far agreements of two labelers depart in all."""
    agreement = np.concatenate([observed.agreement, drawn.agreement])
    replicates = agreement[1 : 1 + n_replicates]
    spread = replicates.std(axis=0)
    departure = (agreement - replicates.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    return np.stack([np.concatenate([observed.ratio, drawn.ratio]), (departure**2).sum(axis=1)])


def p_values(statistics: Floats, n_replicates: int) -> Floats:
    """The share of replicates with a statistic as large, for each statistic and data set.

    Parameters
    ----------
    statistics : array of shape (n_statistics, n_sets)
        The first data set is the one in question, the next `n_replicates` are replicates, and others follow.
    """
    slack = 1e-9 * (1 + np.abs(statistics))  # equal data sets must not differ by rounding
    return np.stack([_share_as_small(-row, n_replicates, more) for row, more in zip(statistics, slack, strict=True)])


def smallest_p_values(each: Floats, n_replicates: int) -> Floats:
    """P-values of the smallest of several p-values, shape (n_sets,), from the smallest ones of the replicates."""
    least = each.min(axis=0)
    return _share_as_small(least, n_replicates, np.full(least.shape, 1e-12))


def _share_as_small(values: Floats, n_replicates: int, slack: Floats) -> Floats:
    """The share of replicates as small as each value, which counts as one of them."""
    replicates = np.sort(values[1 : 1 + n_replicates])
    n_below = np.searchsorted(replicates, values + slack, side="right")
    return np.asarray((1 + n_below) / (1 + n_replicates))


def _sentence(ratio: float, p_value: float, power: float, *, by_pairs: bool, given: str) -> Sentence:
    """What was found; `by_pairs` if the agreement of single pairs of labelers gave it away."""
    if p_value >= _LIMIT:
        return Sentence(
            f"No sign that labelers err together{given}: joint errors are {ratio:.2f} times the expected "
            f"(p = {p_value:.3g}). In data like these, errors that correlate at {_CORRELATION:g} would be noticed in "
            f"{power:.0%} of cases."
        )
    rest = ", and the subtypes do not account for it" if given else ""
    what = (
        f"some agree with each other more or less than their error rates explain, and joint errors are {ratio:.2f} "
        "times the expected"
        if by_pairs
        else f"two votes on an item are both wrong {ratio:.2f} times as often as independent labelers would be"
    )
    return Sentence(f"Labelers err together: {what} (p = {p_value:.3g}){rest}.")


def effective_labelers(
    labels: Labels, model: NoiseModel | None = None, *, random_state: RandomState = 0
) -> EffectiveLabelers:
    """How many independent labelers the panel is worth; nine LLM judges can be worth two.

    With errors e of the votes on an item and ρ their mean correlation given the class, n labelers are worth
    n / (1 + (n − 1) ρ) independent ones (Kish's design effect). ρ comes from the subtypes of a fitted `Subtypes` model,
    which is fitted here if no model is given; with another model it is what its joint errors exceed the expected ones
    by (see `check_independence`). Several votes of one labeler on an item are those of one labeler; the votes of an
    anonymous crowd are of different ones.
    """
    rng = as_generator(random_state)
    n_voted = max(int((labels.votes_per_item > 0).sum()), 1)
    n_votes, n_labelers = labels.n_votes / n_voted, float(labels.witnesses_per_item.sum()) / n_voted
    labels = one_vote_each(labels, rng)
    if model is None:
        model = Subtypes().fit(labels)
    known = _KnownRates.of(model, labels)
    if isinstance(model, StateModel):
        variance, covariance = known.class_moments(labels)
    elif (labels.witnesses_per_item < 2).all():
        variance, covariance = 1.0, 0.0
    else:
        variance, covariance = _excess_errors(known, labels, rng)
    rho = float(np.clip(covariance / max(variance, 1e-12), 0.0, 1.0))
    worth = n_labelers / (1 + max(n_labelers - 1, 0.0) * rho)
    by_whom = f" by {n_labelers:.1f} labelers" if n_labelers < n_votes else ""
    return EffectiveLabelers(
        n_votes,
        n_labelers,
        worth,
        rho,
        f"The {n_votes:.1f} votes{by_whom} on an average item are worth {worth:.1f} independent ones "
        f"(errors of two {'labelers' if by_whom else 'votes'} correlate at {rho:.2f}).",
    )


def _excess_errors(known: _KnownRates, labels: Labels, rng: np.random.Generator) -> tuple[float, float]:
    """The pairs' product of standard deviations, and by how much joint errors exceed those of replicates."""
    known, design, answers = known.design_of(labels, rng)
    start, maximise = known.for_design(design)
    fitted, observed = refit(design, answers, start, maximise, n_steps=_STEPS_TO_SETTLE)
    _, drawn = refit(design, draw_answers(design, fitted, _N_WORTH, rng), fitted, maximise, n_steps=_STEPS)
    expected = float(drawn.ratio.mean() * observed.joint_errors_expected[0])
    return float(joint_spread(design, fitted)[0]), float(observed.joint_errors[0]) - expected


@dataclass(frozen=True, eq=False)
class _KnownRates:
    """A fitted model as states with weights and answer probabilities, and how it learns them."""

    model: NoiseModel
    weights: Floats  # (states,)
    state_class: Codes  # (states,)
    matrices: Floats  # (labelers, states, answers)
    n_classes: int

    @classmethod
    def of(cls, model: NoiseModel, labels: Labels) -> _KnownRates:
        if isinstance(model, StateModel):
            model.log_likelihood(labels)  # checks that the model is fitted and fits the labels
            of_class = model.state_class_.argmax(axis=1).astype(np.int32)
            return cls(model, model.state_prior_, of_class, model.state_confusion_for(labels), labels.n_classes)
        if isinstance(model, TableModel):
            model.log_likelihood(labels)  # checks that the model is fitted and fits the labels
            states = class_states(labels.n_classes)
            return cls(model, model.prior_, states, model.confusion_for(labels), labels.n_classes)
        raise InvalidParameter(
            f"a model with a confusion matrix for each labeler is needed, got {type(model).__name__}; "
            "use DawidSkene, OneCoin or Subtypes"
        )

    @property
    def given(self) -> str:
        """What errors are independent given, beside the class, in words."""
        return " given the subtypes" if isinstance(self.model, StateModel) else ""

    def design_of(self, labels: Labels, rng: np.random.Generator) -> tuple[_KnownRates, VoteDesign, Answers]:
        """The design and the answers, where classes beyond the most frequent are one class together."""
        n_kept = _MOST_CLASSES - 1
        if self.n_classes <= _MOST_CLASSES:
            return self, *design_of(labels, rng, n_states=len(self.state_class))
        design, answers = design_of(labels, rng, n_states=_MOST_CLASSES)
        frequent = np.argsort(-np.bincount(self.state_class, self.weights, self.n_classes), kind="stable")[:n_kept]
        of_class = np.full(self.n_classes, n_kept)
        of_class[frequent] = np.arange(n_kept)
        n_abstentions = self.matrices.shape[2] - self.n_classes
        of_answer = np.append(of_class, _MOST_CLASSES + np.arange(n_abstentions)).astype(np.int16)
        state_class = of_class[self.state_class]
        n_states = len(state_class)
        _, of_state = np.unique(np.where(state_class < n_kept, np.arange(n_states), n_states), return_inverse=True)
        weights = np.bincount(of_state, self.weights).astype(float)
        share = np.eye(len(weights))[of_state] * (self.weights / np.maximum(weights[of_state], 1e-300))[:, None]
        merged = np.eye(_MOST_CLASSES + n_abstentions)[of_answer]
        first = np.array([np.argmax(of_state == k) for k in range(len(weights))])
        matrices = np.einsum("sg,lsb->lgb", share, self.matrices @ merged)
        few = replace(
            self,
            weights=weights,
            state_class=state_class[first].astype(np.int32),
            matrices=matrices,
            n_classes=_MOST_CLASSES,
        )
        gold = np.where(design.gold >= 0, of_class[design.gold], -1).astype(np.int32)
        return few, replace(design, gold=gold), of_answer[answers]

    def for_design(self, design: VoteDesign) -> tuple[Rates, Maximise | None]:
        """Where a fit of the design starts, and its M-step."""
        table = np.ascontiguousarray(self.matrices[design.labelers].transpose(1, 0, 2))[:, None]
        rates = Rates(normalise(self.weights)[:, None], table, self.state_class, self.n_classes)
        return rates, self._maximise(rates)

    def _maximise(self, rates: Rates) -> Maximise | None:
        if self.model.is_known:
            return None
        if isinstance(self.model, OneCoin):
            right, wrong = self.model.right, self.model.wrong
            return one_coin_rows(rates.state_class, rates.n_classes, right=right, wrong=wrong)
        n_states = len(rates.state_class)
        if isinstance(self.model, DawidSkene):
            return pooled_rows(np.resize(self.model.pooling_, n_states))
        return pooled_rows(np.full(n_states, float(getattr(self.model, "pooling", 0.0))))

    def class_moments(self, labels: Labels) -> tuple[float, float]:
        """Mean over pairs of votes of the product of standard deviations and of the covariance given the class."""
        took_part = labels.votes_per_labeler / max(labels.n_votes, 1)
        decided = self.matrices[:, :, : self.n_classes]
        rates = decided.sum(axis=2) - decided[:, np.arange(len(self.state_class)), self.state_class]
        variance = covariance = 0.0
        for y in range(self.n_classes):
            of_y = self.state_class == y
            if not of_y.any():  # of a handful of items a class may get none
                continue
            weight, rate = self.weights[of_y], rates[:, of_y]
            share = normalise(weight)
            mean = rate @ share
            spread = took_part @ np.sqrt(np.maximum(mean * (1 - mean), 0.0))
            shared = took_part @ (rate - mean[:, None])  # the panel's mean error in a subtype, less that of the class
            variance += float(weight.sum() * spread**2)
            covariance += float(weight.sum() * (share @ shared**2))
        return variance, covariance
