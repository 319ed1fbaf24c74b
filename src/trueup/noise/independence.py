"""Do labelers err together? The check, and what a panel is worth if they do.

A design is who votes on which item. Its data sets are one array of answers, a row for each, so that a few hundred fits
are one computation. Votes come in the order of places: the first vote of every item, then the second of every item that
has one, and so on, with the items of most votes first, so that the votes of a place belong to the first so many items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.labels import Labels
from trueup.data.votes import one_vote_each, vote_matrix
from trueup.exceptions import InvalidParameter, silenced_warnings
from trueup.noise.base import NoiseModel, TableModel, normalise
from trueup.noise.dawid_skene import DawidSkene
from trueup.noise.one_coin import OneCoin, coin_matrices
from trueup.noise.soft_truth import SoftTruth

Answers = npt.NDArray[np.int16]
Maximise = Callable[[Floats], Floats]

_MOST_ITEMS = 2000
_MOST_PLACES = 20  # votes on an item that are looked at
_LEAST_VOTES = 3000  # however many classes there are
_BLOCK = 250_000  # numbers held at once
_LEAST = 1e-9
_MOST_PAIRS = 300  # pairs of labelers whose agreement is looked at
_LEAST_OVERLAP = 8  # items that two labelers have in common


@dataclass(frozen=True, eq=False)
class VoteDesign:
    """Who votes on which item, one vote of each witness."""

    labeler: Positions  # (n_votes,): in the order of places, as positions in `labelers`
    per_place: tuple[int, ...]  # how many items have a first vote, a second one, and so on
    gold: Codes  # (n_items,): the known class of each item, or -1
    labelers: Positions  # (n_labelers,): who they are, as positions in the labels

    @property
    def n_items(self) -> int:
        """Number of items, the ones of most votes first."""
        return len(self.gold)

    @property
    def n_labelers(self) -> int:
        """Number of labelers."""
        return len(self.labelers)

    @cached_property
    def places(self) -> list[slice]:
        """Where the votes of each place are."""
        ends = np.cumsum(self.per_place).tolist()
        return [slice(end - n, end) for end, n in zip(ends, self.per_place, strict=True)]

    def add_up(self, of_votes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sums over the votes of each item, from shape (n_sets, n_votes) to (n_sets, n_items)."""
        total = np.zeros((len(of_votes), self.n_items), dtype=of_votes.dtype)
        for place, n in zip(self.places, self.per_place, strict=True):
            total[:, :n] += of_votes[:, place]
        return total

    def spread_out(self, of_items: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """For each vote what its item has, from shape (n_sets, n_items) to (n_sets, n_votes)."""
        return np.concatenate([of_items[:, :n] for n in self.per_place], axis=1)

    @cached_property
    def meetings(self) -> tuple[Positions, Positions, Positions]:
        """Pairs of votes on an item by two labelers who met often."""
        first, second = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for k, later in enumerate(self.places):
            for earlier in self.places[:k]:
                first.append(np.arange(earlier.start, earlier.start + self.per_place[k]))
                second.append(np.arange(later.start, later.stop))
        each, other = np.concatenate(first), np.concatenate(second)
        ends = np.sort(np.stack([self.labeler[each], self.labeler[other]]), axis=0)
        _, pair, repeats = np.unique(ends[0] * self.n_labelers + ends[1], return_inverse=True, return_counts=True)
        often = np.argsort(-repeats, kind="stable")[:_MOST_PAIRS]
        often = np.sort(often[repeats[often] >= _LEAST_OVERLAP])
        kept = np.flatnonzero(np.isin(pair, often))
        kept = kept[np.argsort(pair[kept], kind="stable")]
        return each[kept], other[kept], np.cumsum(repeats[often]) - repeats[often]


def design_of(labels: Labels, rng: np.random.Generator, *, n_classes: int) -> tuple[VoteDesign, Answers]:
    """The design of some items with several witnesses, at most 2,000 at random, and the answers, shape (1, n_votes)."""
    labels = one_vote_each(labels, rng)
    n_witnesses = np.minimum(labels.votes_per_item, _MOST_PLACES)
    chosen = rng.permutation(np.flatnonzero(n_witnesses > 1))[:_MOST_ITEMS]
    chosen = chosen[np.cumsum(n_witnesses[chosen]) <= max(24_000 // n_classes, _LEAST_VOTES)]  # votes times classes
    chosen = chosen[np.argsort(-n_witnesses[chosen], kind="stable")]
    part = labels.votes[chosen]
    item = np.repeat(np.repeat(np.arange(len(chosen)), np.diff(part.indptr)), part.data.astype(np.int64))
    labeler, answer = np.divmod(np.repeat(part.indices, part.data.astype(np.int64)).astype(np.int64), labels.n_answers)
    order = np.lexsort((rng.random(len(item)), item))
    item, labeler, answer = item[order], labeler[order], answer[order]
    place = np.arange(len(item)) - np.searchsorted(item, item)
    order = np.lexsort((item, place))[: int((place < _MOST_PLACES).sum())]
    labelers, labeler = np.unique(labeler[order], return_inverse=True)
    per_place = tuple(np.bincount(place[order]).tolist())
    return VoteDesign(labeler, per_place, labels.gold_codes[chosen], labelers), answer[order].astype(np.int16)[None]


@dataclass(frozen=True, eq=False)
class Rates:
    """P(class) and P(answer | labeler, class) of each data set."""

    weights: Floats  # (n_classes, n_sets)
    table: Floats  # (n_classes, n_sets, n_labelers, n_answers)

    def item_weights(self, gold: Codes) -> Floats:
        """P(class) of each item, shape (n_classes, n_sets, n_items or 1); a known class is certain."""
        given = np.flatnonzero(gold >= 0)
        if not len(given):
            return self.weights[:, :, None]
        weights = np.repeat(self.weights[:, :, None], len(gold), axis=2)
        weights[:, :, given] = (np.arange(len(weights))[:, None] == gold[given])[:, None, :]
        return weights


@dataclass(frozen=True, eq=False)
class Summaries:
    """What data sets say beyond the rates fitted to them; all but the last have the shape (n_sets,)."""

    joint_errors: Floats
    joint_errors_expected: Floats
    agreement: Floats  # (n_sets, n_pairs)

    @property
    def ratio(self) -> Floats:
        """Pairs of wrong votes over the expected ones."""
        return np.asarray(self.joint_errors / np.maximum(self.joint_errors_expected, 1e-9))


def draw_answers(
    design: VoteDesign, rates: Rates, n_sets: int, rng: np.random.Generator, *, correlation: float = 0.0
) -> Answers:
    """Data sets of the design, shape (n_sets, n_votes), from the rates of a single one."""
    n_classes, _, n_labelers, n_answers = rates.table.shape
    reach = np.broadcast_to(rates.item_weights(design.gold)[:, 0].cumsum(axis=0), (n_classes, design.n_items))
    uniform = rng.random((n_sets, design.n_items), dtype=np.float32)
    truth = np.zeros(uniform.shape, dtype=np.int64)
    for y in range(n_classes - 1):
        truth += uniform >= reach[y]
    row = design.spread_out(truth) * n_labelers + design.labeler
    draw = rng.random(row.shape, dtype=np.float32)
    if correlation > 0:
        follows = rng.random(row.shape, dtype=np.float32) < np.sqrt(correlation)
        draw = np.where(follows, design.spread_out(rng.random(uniform.shape, dtype=np.float32)), draw)
    upto = rates.table[:, 0].cumsum(axis=2).astype(np.float32).reshape(-1, n_answers)
    answers = np.zeros(row.shape, dtype=np.int16)
    for answer in range(n_answers - 1):
        answers += draw >= np.take(np.ascontiguousarray(upto[:, answer]), row)
    return answers


def refit(
    design: VoteDesign, answers: Answers, start: Rates, maximise: Maximise | None, *, n_steps: int
) -> tuple[Rates, Summaries]:
    """The first data set fitted anew, and what is left to say of all, each fitted by EM from `start`."""
    rows = max(1, _BLOCK // max(answers.shape[1], start.table[:, 0].size))
    n_labelers, n_answers = start.table.shape[2:]
    first_rates, parts = start, []
    for first in range(0, len(answers), rows):
        block = answers[first : first + rows]
        shape = (len(start.table), len(block), n_labelers, n_answers)
        cell = (np.arange(len(block))[:, None] * n_labelers + design.labeler) * n_answers + block
        rates = Rates(np.repeat(start.weights, len(block), axis=1), np.broadcast_to(start.table, shape))
        posterior = _posterior(design, rates, cell)
        for _ in range(0 if maximise is None else n_steps):
            counts = np.empty(shape)
            for s, share in enumerate(posterior):
                votes = np.bincount(cell.ravel(), design.spread_out(share).ravel(), counts[s].size)
                counts[s] = votes.reshape(shape[1:])
            assert maximise is not None
            rates = Rates(posterior.sum(axis=2) / design.n_items, maximise(counts))
            posterior = _posterior(design, rates, cell)
        if not first:
            first_rates = Rates(rates.weights[:, :1], rates.table[:, :1])
        parts.append(_summaries(design, block, rates, posterior))
    return first_rates, Summaries(*map(np.concatenate, zip(*map(astuple, parts), strict=True)))


def _posterior(design: VoteDesign, rates: Rates, cell: Positions) -> Floats:
    """P(class | votes), shape (n_classes, n_sets, n_items)."""
    joint = np.empty((len(rates.table), len(cell), design.n_items))
    with np.errstate(divide="ignore"):  # a class may have no weight
        log_weights = np.log(rates.item_weights(design.gold))
    for s, table in enumerate(rates.table):
        joint[s] = design.add_up(np.take(np.log(np.maximum(table, _LEAST)).ravel(), cell)) + log_weights[s]
    joint -= joint.max(axis=0)
    np.exp(joint, out=joint)
    joint /= joint.sum(axis=0)
    return joint


def _summaries(design: VoteDesign, answers: Answers, rates: Rates, posterior: Floats) -> Summaries:
    weights, n_classes = rates.item_weights(design.gold), len(rates.table)
    observed, expected = np.zeros((2, len(answers)))
    n_decided = design.add_up((answers < n_classes).astype(np.int16))
    for y in range(n_classes):
        n_wrong = n_decided - design.add_up((answers == y).astype(np.int16))
        observed += (posterior[y] * (n_wrong * (n_wrong - 1) / 2)).sum(axis=1)
        decided = rates.table[y, :, :, :n_classes]  # an abstention is no error
        errors = (decided.sum(axis=2) - decided[:, :, y])[:, design.labeler]
        # Squares of sums have each pair twice.
        expected += (weights[y] * (design.add_up(errors) ** 2 - design.add_up(errors**2)) / 2).sum(axis=1)
    each, other, starts = design.meetings
    if not len(starts):
        return Summaries(observed, expected, np.zeros((len(answers), 0)))
    repeats = np.diff(np.append(starts, len(each)))
    same = np.add.reduceat(answers[:, each] == answers[:, other], starts, axis=1, dtype=np.int64)
    chance = np.zeros(same.shape)
    for weight, table in zip(rates.weights, rates.table, strict=True):
        both = table[:, design.labeler[each[starts]]] * table[:, design.labeler[other[starts]]]
        chance += weight[:, None] * both.sum(axis=2)
    chance = np.clip(chance, 0.01, 0.99)
    agreement = (same - repeats * chance) / np.sqrt(repeats * chance * (1 - chance))
    return Summaries(observed, expected, agreement)


def pooled_rows(strength: Floats) -> Maximise:
    """The M-step of matrices that are drawn towards the matrix of all labelers, with a strength for each class."""

    def maximise(counts: Floats) -> Floats:
        pooled = normalise(counts.sum(axis=2, keepdims=True) + 1e-3)
        return normalise(counts + strength[:, None, None, None] * pooled)

    return maximise


def one_coin_rows(n_classes: int, *, right: float, wrong: float) -> Maximise:
    """The M-step of labelers who err in all ways alike, with pseudo-counts of right and wrong votes."""

    def maximise(counts: Floats) -> Floats:
        flat = counts.reshape(n_classes, -1, counts.shape[3])  # the labelers of all data sets are as many labelers
        per_answer = flat.sum(axis=0)
        n_right, n_decided = np.einsum("yty->t", flat[:, :, :n_classes]), per_answer[:, :n_classes].sum(axis=1)
        accuracy = (n_right + right) / np.maximum(n_decided + right + wrong, _LEAST)
        rate = normalise(np.column_stack([n_decided + _LEAST, per_answer[:, n_classes:]]))
        return coin_matrices(accuracy, rate, n_classes).swapaxes(0, 1).reshape(counts.shape)

    return maximise


_LIMIT = 0.05  # of p, below which labelers are said to err together
_CORRELATION = 0.1  # of errors, for which the power of the check is reported
_N_POWER = 60  # data sets with such errors
_N_WORTH = 4  # data sets that tell how much errors of independent labelers seem to correlate
_WORTH_ITEMS = 2000  # that the correlation is learned from
_MOST_SOFT_CLASSES, _MOST_MATRIX_CLASSES = 30, 200  # beyond, soft truth and matrices take too many numbers
_STEPS_TO_SETTLE = 60  # of EM, for the data themselves
_STEPS = 6  # of EM, for a data set that starts from the rates it was drawn from
_MOST_CLASSES = 12  # others are one class together
_TINY = 1e-12


@dataclass(frozen=True)
class IndependenceCheck:
    """How often votes on one item are wrong together, against what independent errors give."""

    ratio: float  # observed joint errors over those that are expected if labelers err independently
    p_value: float  # the share of data sets made by the model itself that look as dependent
    power: float  # how often errors of two labelers that correlate at 0.1 would be noticed in data sets like this one
    sentence: str  # the finding in plain words

    @property
    def dependent(self) -> bool:
        """Whether independence is hard to believe: p is below 0.05."""
        return self.p_value < _LIMIT

    @property
    def in_short(self) -> str:
        """The finding in a line; where nothing was found, how often something would have been."""
        if self.dependent:
            return self.sentence
        return (
            f"No sign that labelers err together (errors correlated at {_CORRELATION:g} would have been noticed in "
            f"{self.power:.0%} of cases)."
        )

    def advice(self, model: NoiseModel) -> str:
        """What dependence means for an answer that rests on a noise model, and what to do; empty without any."""
        if not self.dependent:
            return ""
        if model.allows_dependence:
            return "The noise model in use allows for that, as far as votes can tell: check some items to be sure."
        return (
            "Intervals that assume independence are too narrow: leave `noise` out for the plain answer, which does "
            "not, and check some items."
        )


@dataclass(frozen=True)
class EffectiveLabelers:
    """How many independent labelers the votes on an item are worth."""

    votes_per_item: float  # votes on an average item
    labelers_per_item: float  # different labelers on an average item; fewer than votes where some voted several times
    effective: float  # independent votes that would leave the same variance of the share of wrong votes
    correlation: float  # mean correlation of the errors of two labelers on one item
    sentence: str


def check_independence(
    labels: Labels, model: NoiseModel, *, n_replicates: int = 400, random_state: RandomState = 0
) -> IndependenceCheck:
    """Compare joint errors of votes on the same item with what a fitted model expects.

    Two things are looked at, on at most 2,000 items: the number of pairs of wrong votes on an item, averaged over the
    posterior of the truth, over its expectation under the labelers' error rates; and how much the agreement of each two
    labelers departs from the expected one. Since the same votes decide on the truth and on the error rates, data sets
    with the same design are drawn from the model and the rates are learned from each anew [1]_. The smaller of the two
    p-values is compared with the smaller ones of the drawn data sets.

    Several votes of one labeler on an item are one witness, and one of them is taken; the votes of an anonymous crowd
    (`Labels.from_counts`) are of different people. With more than 12 classes the rarer ones are one class together.
    The rates of a known `Confusion` are not learned.

    .. [1] Efron and Tibshirani (1993), "An introduction to the bootstrap", Chapter 16; Westfall and Young (1993),
       "Resampling-based multiple testing".
    """
    check_integer(n_replicates, name="n_replicates", low=20)
    rates_of = _checked(model)
    rates_of.log_likelihood(labels)  # checks that the model is fitted and fits the labels
    prior, matrices = rates_of.prior_, rates_of.confusion_for(labels)
    if (labels.witnesses_per_item < 2).all():
        sentence = "No item has votes of two labelers, so nothing can be said about dependence."
        return IndependenceCheck(1.0, 1.0, 0.0, sentence)
    rng = as_generator(random_state)
    design, answers = design_of(labels, rng, n_classes=min(len(prior), _MOST_CLASSES))
    if len(prior) > _MOST_CLASSES:
        prior, matrices, design, answers = _with_few_classes(prior, matrices, design, answers)
    table = np.ascontiguousarray(matrices[design.labelers].transpose(1, 0, 2))[:, None]
    start, maximise = Rates(normalise(prior)[:, None], table), _maximise_as(rates_of, len(prior))
    fitted, observed = refit(design, answers, start, maximise, n_steps=_STEPS_TO_SETTLE)
    independent = draw_answers(design, fitted, n_replicates, rng)
    correlated = draw_answers(design, fitted, min(_N_POWER, n_replicates // 2), rng, correlation=_CORRELATION)
    _, drawn = refit(design, np.concatenate([independent, correlated]), fitted, maximise, n_steps=_STEPS)
    usual = float(drawn.ratio[:n_replicates].mean())
    # A model in which nobody errs has no errors to compare.
    ratio = float(observed.ratio[0]) / usual if usual > 0 else 1.0
    # Of the data and of every drawn data set: joint errors, and how far agreements of two labelers depart in all.
    agreement = np.concatenate([observed.agreement, drawn.agreement])
    replicates = agreement[1 : 1 + n_replicates]
    spread = replicates.std(axis=0)
    departure = (agreement - replicates.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    statistics = np.stack([np.concatenate([observed.ratio, drawn.ratio]), (departure**2).sum(axis=1)])
    each = p_values(statistics, n_replicates)
    both = smallest_p_values(each, n_replicates)
    p_value, power = float(both[0]), float((both[1 + n_replicates :] < _LIMIT).mean())
    if p_value >= _LIMIT:
        sentence = (
            f"No sign that labelers err together: joint errors are {ratio:.2f} times the expected "
            f"(p = {p_value:.3g}). In data like these, errors that correlate at {_CORRELATION:g} would be noticed in "
            f"{power:.0%} of cases."
        )
        return IndependenceCheck(ratio, p_value, power, sentence)
    what = f"two votes on an item are both wrong {ratio:.2f} times as often as independent labelers would be"
    if each[1, 0] < each[0, 0]:  # the agreement of single pairs of labelers gave it away
        what = (
            "some agree with each other more or less than their error rates explain, and joint errors are "
            f"{ratio:.2f} times the expected"
        )
    return IndependenceCheck(ratio, p_value, power, f"Labelers err together: {what} (p = {p_value:.3g}).")


def _checked(model: NoiseModel) -> TableModel:
    if not isinstance(model, TableModel):
        raise InvalidParameter(
            f"a model with a confusion matrix for each labeler is needed, got {type(model).__name__}; use DawidSkene "
            "or OneCoin"
        )
    return model


def p_values(statistics: Floats, n_replicates: int) -> Floats:
    """The share of replicates with a statistic as large, for each statistic and data set."""
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


def effective_labelers(
    labels: Labels, model: NoiseModel | None = None, *, random_state: RandomState = 0
) -> EffectiveLabelers:
    """How many independent labelers the panel is worth; nine LLM judges can be worth two.

    With errors e of the votes on an item and ρ their mean correlation given the class, n labelers are worth
    n / (1 + (n − 1) ρ) independent ones (Kish's design effect). ρ is what errors correlate at if the truth is as votes
    suggest, minus its mean in data sets of the same design that the model draws with independent errors.
    Several votes of one labeler on an item are those of one labeler; the votes of an anonymous crowd are of different
    ones.

    Parameters
    ----------
    model : NoiseModel, optional
        A fitted or known model with a confusion matrix for each labeler; by default the mean of Dawid–Skene and soft
        truth, as in plain answers.
    random_state : int, Generator or None. For the items, of which at most 2,000 are taken, and for drawn data sets.
    """
    of_repeats, rng = as_generator(random_state).spawn(2)  # so that repeats do not change what is drawn after them
    n_voted = max(int((labels.votes_per_item > 0).sum()), 1)
    n_votes, n_labelers = labels.n_votes / n_voted, float(labels.witnesses_per_item.sum()) / n_voted
    rho = _correlation(one_vote_each(labels, of_repeats), model, rng)
    worth = n_labelers / (1 + max(n_labelers - 1, 0.0) * rho)
    by_whom = f" by {n_labelers:.1f} labelers" if n_labelers < n_votes else ""
    sentence = (
        f"The {n_votes:.1f} votes{by_whom} on an average item are worth {worth:.1f} independent ones "
        f"(errors of two {'labelers' if by_whom else 'votes'} correlate at {rho:.2f})."
    )
    return EffectiveLabelers(n_votes, n_labelers, worth, rho, sentence)


def _correlation(labels: Labels, model: NoiseModel | None, rng: np.random.Generator) -> float:
    """The mean correlation of the errors of two votes on an item given its class."""
    named = None if model is None else _checked(model)
    asked = np.flatnonzero(labels.witnesses_per_item > 1)
    if not len(asked):
        return 0.0
    labels = labels.select(items=labels.items[np.sort(rng.permutation(asked)[:_WORTH_ITEMS])])
    with silenced_warnings():
        usual = DawidSkene() if labels.n_classes <= _MOST_MATRIX_CLASSES else OneCoin()
        rates = named or usual.fit(labels)
        others = [SoftTruth().fit(labels)] if model is None and labels.n_classes <= _MOST_SOFT_CLASSES else []
        observed = _seen_correlation(labels, [rates, *others])
        expected = []
        for _ in range(_N_WORTH):
            drawn = draw_independently(labels, rates, rng)
            again = [each if each.is_known else each.clone().fit(drawn) for each in (rates, *others)]
            expected.append(_seen_correlation(drawn, again))
    return float(np.clip(observed - np.mean(expected), 0.0, 1.0))


def _seen_correlation(labels: Labels, models: Sequence[NoiseModel]) -> float:
    """Joint errors of pairs of votes on an item beyond what rates explain, over those that are all one."""
    posterior = np.mean([model.posterior(labels) for model in models], axis=0)
    item, labeler, answer, weight_of_vote = labels.vote_table()
    decided = answer < labels.n_classes
    item, labeler, answer = item[decided], labeler[decided], answer[decided]
    repeats: Floats = weight_of_vote[decided].astype(float)
    joint = spread = 0.0
    for y in range(labels.n_classes):
        of_class = posterior[:, y]
        weight, is_wrong = of_class[item] * repeats, answer != y
        usual = float(weight @ is_wrong / max(weight.sum(), _TINY))
        n_wrong = np.bincount(labeler, weight * is_wrong, labels.n_labelers) + 2 * usual
        rate = (n_wrong / (np.bincount(labeler, weight, labels.n_labelers) + 2))[labeler]
        joint += float(of_class @ _pairs(item, repeats, is_wrong - rate, labels.n_items))
        spread += float(of_class @ _pairs(item, repeats, np.sqrt(rate * (1 - rate)), labels.n_items))
    return joint / max(spread, _TINY)


def _pairs(item: Codes, repeats: Floats, values: Floats, n_items: int) -> Floats:
    """The sum over pairs of votes on each item of the product of their values."""
    total = np.bincount(item, repeats * values, n_items)
    return np.asarray(total**2 - np.bincount(item, repeats * values**2, n_items)) / 2


def draw_independently(labels: Labels, model: TableModel, rng: np.random.Generator) -> Labels:
    """Votes of the same labelers on the same items, drawn with independent errors."""
    item, labeler, _, repeats = labels.vote_table()
    item, labeler = np.repeat(item, repeats), np.repeat(labeler, repeats)
    truth = rng.choice(labels.n_classes, size=labels.n_items, p=normalise(model.prior_))
    truth = np.where(labels.gold_codes >= 0, labels.gold_codes, truth)
    upto = model.confusion_for(labels)[labeler, truth[item]].cumsum(axis=1)
    answer = np.minimum((upto < rng.random(len(item))[:, None]).sum(axis=1), labels.n_answers - 1).astype(np.int32)
    shape = (labels.n_items, labels.n_labelers, labels.n_answers)
    return replace(labels, votes=vote_matrix(item, labeler, answer, shape))


def _with_few_classes(
    prior: Floats, matrices: Floats, design: VoteDesign, answers: Answers
) -> tuple[Floats, Floats, VoteDesign, Answers]:
    """Rates, design and answers where classes beyond the most frequent are one class together."""
    n_classes, n_kept = len(prior), _MOST_CLASSES - 1
    of_class = np.full(n_classes, n_kept)
    of_class[np.argsort(-prior, kind="stable")[:n_kept]] = np.arange(n_kept)
    n_abstentions = matrices.shape[2] - n_classes
    of_answer = np.append(of_class, _MOST_CLASSES + np.arange(n_abstentions)).astype(np.int16)
    few = np.bincount(of_class, prior, _MOST_CLASSES).astype(float)
    share = np.eye(_MOST_CLASSES)[of_class] * (prior / np.maximum(few[of_class], 1e-300))[:, None]
    merged = np.eye(_MOST_CLASSES + n_abstentions)[of_answer]
    gold = np.where(design.gold >= 0, of_class[design.gold], -1).astype(np.int32)
    of_few = np.einsum("yg,lyb->lgb", share, matrices @ merged)
    return few, of_few, replace(design, gold=gold), of_answer[answers]


def _maximise_as(model: TableModel, n_classes: int) -> Maximise | None:
    """How a model learns its rates; None if it does not."""
    if model.is_known:
        return None
    if isinstance(model, OneCoin):
        return one_coin_rows(n_classes, right=model.right, wrong=model.wrong)
    if isinstance(model, DawidSkene):
        return pooled_rows(np.resize(model.pooling_, n_classes))
    return pooled_rows(np.full(n_classes, float(getattr(model, "pooling", 0.0))))
