"""Do labelers err together? The check, and what a panel is worth if they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.labels import Labels
from trueup.data.votes import one_vote_each, vote_matrix
from trueup.exceptions import InvalidParameter, Sentence, silenced_warnings
from trueup.noise.base import NoiseModel, TableModel, normalise
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
    one_coin_rows,
    pooled_rows,
    refit,
)
from trueup.noise.soft_truth import SoftTruth

_LIMIT = 0.05  # of p, below which labelers are said to err together
_CORRELATION = 0.1  # of errors, for which the power of the check is told
_N_POWER = 60  # data sets with such errors
_N_WORTH = 4  # data sets that tell how much errors of independent labelers seem to correlate
_WORTH_ITEMS = 2000  # that the correlation is learned from
_MOST_SOFT_CLASSES, _MOST_MATRIX_CLASSES = 30, 200  # beyond, soft truth and matrices take too many numbers
_STEPS_TO_SETTLE = 60  # of EM, for the data themselves
_STEPS = 6  # of EM, for a data set that starts from the rates it was drawn from
_MOST_CLASSES = 12  # others are one class together
_TINY = 1e-12
_NEEDS_MATRICES = "a model with a confusion matrix for each labeler is needed, got {}; use DawidSkene or OneCoin"


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
            "Intervals that assume independence are too narrow: leave ⟨noise⟩ out for the plain answer, which does "
            "not, and check some items."
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
    The rates of a known `Confusion` are not learned.

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
    correlated = draw_answers(design, fitted, min(_N_POWER, n_replicates // 2), rng, correlation=_CORRELATION)
    _, drawn = refit(design, np.concatenate([independent, correlated]), fitted, maximise, n_steps=_STEPS)
    usual = float(drawn.ratio[:n_replicates].mean())
    # A model in which nobody errs has no errors to compare.
    ratio = float(observed.ratio[0]) / usual if usual > 0 else 1.0
    each = p_values(_statistics(observed, drawn, n_replicates), n_replicates)
    both = smallest_p_values(each, n_replicates)
    power = float((both[1 + n_replicates :] < _LIMIT).mean())
    sentence = _sentence(ratio, float(both[0]), power, by_pairs=each[1, 0] < each[0, 0])
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


def _sentence(ratio: float, p_value: float, power: float, *, by_pairs: bool) -> Sentence:
    """What was found; `by_pairs` if the agreement of single pairs of labelers gave it away."""
    if p_value >= _LIMIT:
        return Sentence(
            f"No sign that labelers err together: joint errors are {ratio:.2f} times the expected "
            f"(p = {p_value:.3g}). In data like these, errors that correlate at {_CORRELATION:g} would be noticed in "
            f"{power:.0%} of cases."
        )
    what = (
        f"some agree with each other more or less than their error rates explain, and joint errors are {ratio:.2f} "
        "times the expected"
        if by_pairs
        else f"two votes on an item are both wrong {ratio:.2f} times as often as independent labelers would be"
    )
    return Sentence(f"Labelers err together: {what} (p = {p_value:.3g}).")


def effective_labelers(
    labels: Labels, model: NoiseModel | None = None, *, random_state: RandomState = 0
) -> EffectiveLabelers:
    """How many independent labelers the panel is worth; nine LLM judges can be worth two.

    With errors e of the votes on an item and ρ their mean correlation given the class, n labelers are worth
    n / (1 + (n − 1) ρ) independent ones (Kish's design effect). ρ is what errors correlate at if the truth is as votes
    let expect, less what it seems to be in data sets of the same design that the model draws with independent errors.
    Several votes of one labeler on an item are those of one labeler; the votes of an anonymous crowd are of different
    ones.

    Parameters
    ----------
    labels : Labels
    model : NoiseModel, optional
        A fitted or known model with a confusion matrix for each labeler, which says what the truth may be; by default
        the mean of Dawid–Skene and soft truth, as in plain answers.
    random_state : int, Generator or None
        For the items that are taken, at most 2,000, and for the data sets that are drawn.
    """
    of_repeats, rng = as_generator(random_state).spawn(2)  # so that repeats do not change what is drawn after them
    n_voted = max(int((labels.votes_per_item > 0).sum()), 1)
    n_votes, n_labelers = labels.n_votes / n_voted, float(labels.witnesses_per_item.sum()) / n_voted
    rho = _correlation(one_vote_each(labels, of_repeats), model, rng)
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


def _correlation(labels: Labels, model: NoiseModel | None, rng: np.random.Generator) -> float:
    """The mean correlation of the errors of two votes on an item given its class."""
    if model is not None and not isinstance(model, TableModel):
        raise InvalidParameter(_NEEDS_MATRICES.format(type(model).__name__))
    asked = np.flatnonzero(labels.witnesses_per_item > 1)
    if not len(asked):
        return 0.0
    labels = labels.select(items=labels.items[np.sort(rng.permutation(asked)[:_WORTH_ITEMS])])
    with silenced_warnings():
        rates: TableModel = model or (DawidSkene() if labels.n_classes <= _MOST_MATRIX_CLASSES else OneCoin()).fit(
            labels
        )
        others = [SoftTruth().fit(labels)] if model is None and labels.n_classes <= _MOST_SOFT_CLASSES else []
        observed = _seen_correlation(labels, [rates, *others])
        expected = []
        for _ in range(_N_WORTH):
            drawn = _drawn_independently(labels, rates, rng)
            again = [one if one.is_known else one.clone().fit(drawn) for one in (rates, *others)]
            expected.append(_seen_correlation(drawn, again))
    return float(np.clip(observed - np.mean(expected), 0.0, 1.0))


def _seen_correlation(labels: Labels, models: Sequence[NoiseModel]) -> float:
    """Joint errors of the pairs of votes on an item beyond what rates explain, over those of errors that are all one.

    Both are means over the posterior of the truth. A labeler's rate in a class is drawn to that of all by two votes.
    """
    posterior = np.mean([model.posterior(labels) for model in models], axis=0)
    item, labeler, answer, weight_of_vote = labels.vote_table()
    decided = answer < labels.n_classes
    item, labeler, answer = item[decided], labeler[decided], answer[decided]
    times: Floats = weight_of_vote[decided].astype(float)
    joint = spread = 0.0
    for y in range(labels.n_classes):
        of_class = posterior[:, y]
        weight, is_wrong = of_class[item] * times, answer != y
        usual = float(weight @ is_wrong / max(weight.sum(), _TINY))
        n_wrong = np.bincount(labeler, weight * is_wrong, labels.n_labelers) + 2 * usual
        rate = (n_wrong / (np.bincount(labeler, weight, labels.n_labelers) + 2))[labeler]
        joint += float(of_class @ _pairs(item, times, is_wrong - rate, labels.n_items))
        spread += float(of_class @ _pairs(item, times, np.sqrt(rate * (1 - rate)), labels.n_items))
    return joint / max(spread, _TINY)


def _pairs(item: Codes, times: Floats, values: Floats, n_items: int) -> Floats:
    """The sum over pairs of votes on each item of the product of their values."""
    total = np.bincount(item, times * values, n_items)
    return np.asarray(total**2 - np.bincount(item, times * values**2, n_items)) / 2


def _drawn_independently(labels: Labels, model: TableModel, rng: np.random.Generator) -> Labels:
    """Votes of the same labelers on the same items, drawn with independent errors."""
    item, labeler, _, times = labels.vote_table()
    item, labeler = np.repeat(item, times), np.repeat(labeler, times)
    truth = rng.choice(labels.n_classes, size=labels.n_items, p=normalise(model.prior_))
    truth = np.where(labels.gold_codes >= 0, labels.gold_codes, truth)
    upto = model.confusion_for(labels)[labeler, truth[item]].cumsum(axis=1)
    answer = np.minimum((upto < rng.random(len(item))[:, None]).sum(axis=1), labels.n_answers - 1).astype(np.int32)
    shape = (labels.n_items, labels.n_labelers, labels.n_answers)
    return replace(labels, votes=vote_matrix(item, labeler, answer, shape))


@dataclass(frozen=True, eq=False)
class _KnownRates:
    """P(class) and P(answer | labeler, class) of a fitted model, and how it learns them."""

    model: NoiseModel
    prior: Floats
    matrices: Floats  # (labelers, classes, answers)

    @classmethod
    def of(cls, model: NoiseModel, labels: Labels) -> _KnownRates:
        """Those of a model with a matrix for each labeler."""
        if not isinstance(model, TableModel):
            raise InvalidParameter(_NEEDS_MATRICES.format(type(model).__name__))
        model.log_likelihood(labels)  # checks that the model is fitted and fits the labels
        return cls(model, model.prior_, model.confusion_for(labels))

    def design_of(self, labels: Labels, rng: np.random.Generator) -> tuple[_KnownRates, VoteDesign, Answers]:
        """The design and the answers, where classes beyond the most frequent are one class together."""
        n_classes, n_kept = len(self.prior), _MOST_CLASSES - 1
        if n_classes <= _MOST_CLASSES:
            return self, *design_of(labels, rng, n_classes=n_classes)
        design, answers = design_of(labels, rng, n_classes=_MOST_CLASSES)
        of_class = np.full(n_classes, n_kept)
        of_class[np.argsort(-self.prior, kind="stable")[:n_kept]] = np.arange(n_kept)
        n_abstentions = self.matrices.shape[2] - n_classes
        of_answer = np.append(of_class, _MOST_CLASSES + np.arange(n_abstentions)).astype(np.int16)
        prior = np.bincount(of_class, self.prior, _MOST_CLASSES).astype(float)
        share = np.eye(_MOST_CLASSES)[of_class] * (self.prior / np.maximum(prior[of_class], 1e-300))[:, None]
        merged = np.eye(_MOST_CLASSES + n_abstentions)[of_answer]
        few = replace(self, prior=prior, matrices=np.einsum("yg,lyb->lgb", share, self.matrices @ merged))
        gold = np.where(design.gold >= 0, of_class[design.gold], -1).astype(np.int32)
        return few, replace(design, gold=gold), of_answer[answers]

    def for_design(self, design: VoteDesign) -> tuple[Rates, Maximise | None]:
        """Where a fit of the design starts, and its M-step."""
        table = np.ascontiguousarray(self.matrices[design.labelers].transpose(1, 0, 2))[:, None]
        return Rates(normalise(self.prior)[:, None], table), self._maximise()

    def _maximise(self) -> Maximise | None:
        if self.model.is_known:
            return None
        n_classes = len(self.prior)
        if isinstance(self.model, OneCoin):
            return one_coin_rows(n_classes, right=self.model.right, wrong=self.model.wrong)
        if isinstance(self.model, DawidSkene):
            return pooled_rows(np.resize(self.model.pooling_, n_classes))
        return pooled_rows(np.full(n_classes, float(getattr(self.model, "pooling", 0.0))))
