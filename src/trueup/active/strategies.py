r"""Strategies that look at what an answer would do to the metric.

Expected change (Nguyen et al. 2018) takes the item whose answer is expected to move the estimate most. Propensity
sampling draws items with chances in proportion to the standard deviation of that move, which is what minimises the
variance of an inverse-propensity estimate of a sum (Neyman 1934; Zrnic and Candès 2024), and keeps a floor of even
draws so that no weight is large where the model is wrong.

The contract
------------
- A strategy is a frozen dataclass of its options and keeps nothing else: what it says is a function of the `State`.
- ``scores(state)`` has shape (n_items,), is finite and not negative, and is 0 where the item is not available.
- ``propensities(state)`` are the chances of the next single draw. They sum to one over the available items. Only a
  strategy with ``is_random`` has them; after any other no interval is valid.
- Neither the order nor the names of the items matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import entr

from trueup._base.registry import Registry
from trueup._base.types import Floats, Positions
from trueup._base.validation import check_integer, check_number, preview
from trueup.active.influence import (
    Influence,
    State,
    expected_change,
    influence,
    lists_of,
    paper_change,
    precision_at_k_slopes,
    raw_deviations,
    root_mean_square,
)
from trueup.exceptions import InvalidParameter


class Strategy(ABC):
    """Which items an expert should look at next; the module's docstring is the contract."""

    name: ClassVar[str]
    is_random: ClassVar[bool] = False

    @abstractmethod
    def scores(self, state: State) -> Floats:
        """How much each item is wanted, shape (n_items,); 0 where it is not available."""

    def propensities(self, state: State) -> Floats:
        """The chance of each item to be drawn next, shape (n_items,)."""
        raise InvalidParameter(
            f"strategy {self.name!r} is not random, so its items have no chance of being drawn; "
            'use "propensity" or "random" where a valid interval is needed'
        )

    def why(self, state: State, position: int) -> str:
        """Why this item, in one sentence for the expert."""
        return self.reasons(state, [position])[0]

    def reasons(self, state: State, positions: Sequence[int]) -> list[str]:
        """Why these items, one sentence each; what all items share is computed once."""
        at = [check_integer(position, name="position", low=0) for position in positions]
        if at and max(at) >= state.pool.n_items:
            raise InvalidParameter(f"position must be that of one of {state.pool.n_items} items, got {max(at)}")
        return self.sentences(state, at) if at else []

    @abstractmethod
    def sentences(self, state: State, positions: list[int]) -> list[str]:
        """Why these items, one sentence each; `reasons` calls it with positions that exist."""


class RandomStrategy(Strategy):
    """A strategy that draws; the score of an item is its chance."""

    is_random: ClassVar[bool] = True

    def scores(self, state: State) -> Floats:
        return self.propensities(state) if state.available.any() else np.zeros(state.pool.n_items)

    @abstractmethod
    def propensities(self, state: State) -> Floats:
        """The chance of each item to be drawn next, shape (n_items,)."""


def share_out(weights: Floats, available: npt.NDArray[np.bool_], *, floor: float = 0.0) -> Floats:
    """Chances in proportion to weights, mixed with even ones."""
    n_open = int(np.count_nonzero(available))
    if not n_open:
        raise InvalidParameter("no item is left to ask for, got 0 available; correct an answer or stop here")
    wanted = np.where(available, weights, 0.0)
    most = wanted.max()
    if not most > 0:
        return np.where(available, 1.0 / n_open, 0.0)
    wanted = wanted / most  # tiny weights of large pools must not underflow
    mixed = (1 - floor) * wanted / wanted.sum() + np.where(available, floor / n_open, 0.0)
    return np.asarray(mixed / mixed.sum())


def class_words(state: State, at: int) -> str:
    """What is believed of the item, e.g. ``'cat' with probability 0.62``."""
    row = state.probabilities[at]
    likeliest = int(row.argmax())
    name: Any = state.pool.labels.classes[likeliest]
    shown = name.item() if isinstance(name, np.generic) else name
    return f"{shown!r} with probability {row[likeliest]:.2f}"


def draw_shares(n_open: npt.ArrayLike) -> Floats:
    """How much each draw has in an unbiased estimate of all items, shape (M,); they sum to one.

    Before draw m the classes of some items are known, :math:`N_m` others can be drawn, and y was drawn with probability
    :math:`q_m`. What is known with :math:`y / q_m` beside it is without bias for the sum over all items, and so is any
    mean of such sums. Of even draws that with shares in proportion to :math:`1 / (N_m (N_m - 1))` varies least. Where
    items leave the pool by draws only, it is LURE.
    """
    n = np.asarray(n_open, dtype=float)
    certain = 1 / (n * np.maximum(n - 1, 1e-9))  # the only item left tells all there is to know
    return np.asarray(certain / certain.sum()) if len(n) else n


def lure_weights(propensity: npt.ArrayLike, draw: npt.ArrayLike, n_pool: int) -> Floats:
    r"""Weights that make the mean over items drawn without replacement unbiased for the pool (LURE).

    .. math:: v_m = 1 + \frac{N - M}{N - m}\Bigl(\frac{1}{(N - m + 1)\, q_m} - 1\Bigr)

    With even probabilities every weight is one.

    Farquhar, Gal and Rainforth (2021), "On statistical bias in active learning: how and when to fix it", ICLR.

    Parameters
    ----------
    propensity : array of shape (n,)
        :math:`q_m`, the probability of the item among those that were left when it was drawn.
    draw : integer array of shape (n,). m, its place among the draws, from 1 on.
    n_pool : int. N, the items that could be drawn at first.
    """
    q, m = np.asarray(propensity, dtype=float), np.asarray(draw, dtype=np.int64)
    if not len(q):
        return q
    n_draws = int(m.max())
    shares = draw_shares(np.maximum(n_pool - np.arange(n_draws), 1))
    return n_draws / n_pool * stands_for(q, m, shares)


def stands_for(propensity: Floats, draw: Positions, shares: Floats) -> Floats:
    """How many items each drawn one stands for: others by its own draw, and itself in all that come after it."""
    return np.asarray(shares[draw - 1] / propensity + share_after(draw, shares))


def share_after(draw: Positions, shares: Floats) -> Floats:
    """The share of all draws that came after so many of them."""
    left = np.append(np.cumsum(shares[::-1])[::-1], 0.0)
    return np.asarray(left[np.minimum(draw, len(shares))])


def effective_number(weights: npt.ArrayLike) -> float:
    """How many evenly drawn items weighted ones are worth: (Σw)² / Σw²."""
    w = np.asarray(weights, dtype=float)
    total = float((w**2).sum())
    return float(w.sum() ** 2 / total) if total > 0 else 0.0


_LEAST_DEVIATION = 1e-7  # of what an answer can do at most
NumberOfPositives = float | Sequence[float] | None


@dataclass(frozen=True)
class ExpectedChange(Strategy):
    r"""MEEC: the item whose answer is expected to change the estimate most, in absolute value.

    .. math:: \sum_c p_{jc} |\Delta_{jc}| \quad (= 2 p_j (1 - p_j) |s_j| \text{ for two classes})

    with the effects of `trueup.active.influence.influence`. With several systems it is the mean over them.

    P. Nguyen, D. Ramanan, C. Fowlkes, "Active testing", ICML 2018, equations 10 to 12, with 12 put right.
    """

    n_positives: NumberOfPositives = None
    name: ClassVar[str] = "meec"

    def scores(self, state: State) -> Floats:
        return np.where(state.available, self._changes(state), 0.0)

    def _changes(self, state: State) -> Floats:
        effects = _influences(state, self.n_positives)
        return np.asarray(sum(one.expected_change(state.probabilities) for one in effects) / len(effects))

    def sentences(self, state: State, positions: list[int]) -> list[str]:
        changes = self._changes(state)
        return [
            f"It is taken for {class_words(state, at)}, and the answer is expected to move "
            f"{state.pool.metric.name} by {changes[at]:.2g}."
            for at in positions
        ]


@dataclass(frozen=True)
class PaperExpectedChange(ExpectedChange):
    """MEEC by the formulas as printed: equation 11 for precision@k, which is right, and 12 for average precision.

    Equation 12 is a mean of signed changes and not of absolute ones; see `trueup.active.influence.paper_change`. Other
    metrics have no formula in the paper.
    """

    name: ClassVar[str] = "meec-paper"

    def _changes(self, state: State) -> Floats:
        pool, metric = state.pool, state.pool.metric
        at_k = metric.name.startswith("precision@")
        if metric.needs != "scores" or not (at_k or metric.name == "average_precision"):
            raise InvalidParameter(
                f"strategy 'meec-paper' knows precision@k and average_precision, got {metric.name!r}; use 'meec'"
            )
        changes = np.zeros(pool.n_items)
        p = state.probabilities[:, pool.positive]
        for system in range(pool.n_systems):
            for positions, scores, positives in lists_of(pool, system, self.n_positives):
                of_list = p[positions]
                if at_k:
                    k = int(metric.name.partition("@")[2])
                    change = expected_change(of_list, precision_at_k_slopes(scores, k=k))
                else:
                    change = paper_change(of_list, scores, state.vetted[positions], n_positives=positives)
                changes[positions] += change
        return changes / (pool.n_systems * pool.n_categories)


@dataclass(frozen=True)
class Propensity(RandomStrategy):
    r"""Draws in proportion to the standard deviation of an item's effect on the metric, with a floor.

    .. math:: q_j = (1 - f) \frac{\sigma_j}{\sum_i \sigma_i} + f \Bigl(0.9 \frac{r_j}{\sum_i r_i} + \frac{0.1}{n}\Bigr),
        \qquad \sigma_j^2 = \sum_c p_{jc} \Delta_{jc}^2, \quad r_j = \max_c \Delta_{jc} - \min_c \Delta_{jc}

    over the n available items. The floor does not ask what is believed of an item, only how far its answer can move
    the metric: for accuracy all alike, for precision only what the system calls positive. With several systems
    :math:`\sigma_j^2` and :math:`r_j^2` are means over them, which minimises the mean of their variances.

    For a ratio of one system, such as recall, half of the draws by belief are in proportion to the root of the
    expected square of what the item adds to the ratio: items that are surely positive teach how many there are.

    T. Zrnic, E. Candès, "Active statistical inference", ICML 2024.
    """

    floor: float | None = None
    n_positives: NumberOfPositives = None
    name: ClassVar[str] = "propensity"

    def __post_init__(self) -> None:
        if self.floor is not None and not check_number(self.floor, name="floor", low=0.0, high=1.0) > 0:
            raise InvalidParameter(f"floor must be above 0: every item can be drawn, got {self.floor!r}; pass e.g. 0.5")

    def propensities(self, state: State) -> Floats:
        effects = self._effects(state)
        # What is believed of an item may be wrong, so half the draws or so do not ask for it; but an item that cannot
        # move the metric, such as one that a system does not find when precision is asked, is hardly worth an answer.
        reach = root_mean_square([one.reach() for one in effects])
        even = share_out(reach, state.available, floor=0.1)  # so that every item can be drawn
        by_belief = share_out(_deviations(effects, state), state.available)
        ratio = state.pool.is_ratio
        if ratio:
            raw = raw_deviations(state.pool, state.probabilities)
            by_belief = (by_belief + share_out(raw, state.available)) / 2
        floor = self.floor if self.floor is not None else 0.2 if ratio else 0.5
        return (1 - floor) * by_belief + floor * even

    def _effects(self, state: State) -> list[Influence]:
        return _influences(state, self.n_positives)

    def sentences(self, state: State, positions: list[int]) -> list[str]:
        deviations = _deviations(self._effects(state), state)
        return [
            f"Drawn at random, items that matter more often: it is taken for {class_words(state, at)}, and the answer "
            f"moves {state.pool.metric.name} by about {deviations[at]:.2g}."
            for at in positions
        ]


@dataclass(frozen=True)
class Separate(Propensity):
    """As `Propensity`, for the difference of two systems: items on which they say the same hardly matter."""

    floor: float | None = 0.2  # an order needs less caution than a number: it is the doubtful items that decide it
    systems: tuple[Hashable, Hashable] | None = None
    name: ClassVar[str] = "separate"

    def _pair(self, state: State) -> tuple[tuple[str, str], Influence]:
        """The names of the two systems, and the influence on their difference."""
        pool = state.pool
        names = pool.aligned.systems.tolist()
        if pool.n_systems < 2:
            raise InvalidParameter("strategy 'separate' needs two systems or more, got 1; use 'propensity'")
        chosen = self.systems
        if chosen is not None and not (len(chosen) == len(set(chosen)) == 2 and set(chosen) <= set(names)):
            raise InvalidParameter(
                f"systems must be the names of two systems, got {chosen!r}; there are {preview(names, most=10)}"
            )
        effects = _influences(state, self.n_positives)
        if chosen is None:
            values = np.array([one.value for one in effects])
            sign = -1 if pool.metric.higher_is_better is False else 1
            first, second = np.argsort(-np.where(np.isnan(values), -np.inf, sign * values), kind="stable")[:2]
        else:
            first, second = (names.index(name) for name in chosen)
        return (repr(names[first]), repr(names[second])), effects[first].minus(effects[second])

    def _effects(self, state: State) -> list[Influence]:
        return [self._pair(state)[1]]

    def sentences(self, state: State, positions: list[int]) -> list[str]:
        (one, other), effect = self._pair(state)
        deviations = _deviations([effect], state)
        return [
            f"Drawn at random, items that tell {one} from {other} more often: it is taken for "
            f"{class_words(state, at)}, and the answer moves the difference in {state.pool.metric.name} by about "
            f"{deviations[at]:.2g}."
            for at in positions
        ]


def _deviations(effects: list[Influence], state: State) -> Floats:
    """The standard deviation of what each answer does; of several systems the root of the mean square."""
    deviations = root_mean_square([np.sqrt(one.variance(state.probabilities)) for one in effects])
    reach = root_mean_square([one.reach() for one in effects])
    # Below that it is the rounding of a certain item, which differs between processors.
    return np.where(deviations > _LEAST_DEVIATION * reach.max(initial=0.0), deviations, 0.0)


def _influences(state: State, n_positives: NumberOfPositives) -> list[Influence]:
    """That of the items on each system; worked out once for a state."""
    key = ("influences", np.asarray(n_positives, dtype=float).tobytes())
    if key not in state.memo:
        state.memo[key] = [
            influence(state.pool, state.probabilities, system=system, n_positives=n_positives)
            for system in range(state.pool.n_systems)
        ]
    effects: list[Influence] = state.memo[key]
    return effects


@dataclass(frozen=True)
class Random(RandomStrategy):
    """Every available item is as likely as the other."""

    name: ClassVar[str] = "random"

    def propensities(self, state: State) -> Floats:
        return share_out(np.ones(state.pool.n_items), state.available)

    def sentences(self, state: State, positions: list[int]) -> list[str]:
        n_open = int(state.available.sum())
        return [f"Drawn at random: each of the {n_open} open items is as likely as the other."] * len(positions)


@dataclass(frozen=True)
class Stratified(RandomStrategy):
    """A category is drawn evenly among those with available items, then an item of it; without categories as `Random`.

    So rare categories get their share (Nguyen et al. 2018, "random").
    """

    name: ClassVar[str] = "stratified"

    def propensities(self, state: State) -> Floats:
        n_open = self._open(state)
        weights = np.divide(1.0, n_open, out=np.zeros(len(n_open)), where=n_open > 0)
        return share_out(weights, state.available)

    def _open(self, state: State) -> Floats:
        """How many items are available in the category of each item."""
        categories = state.pool.categories
        if categories is None:
            return np.full(state.pool.n_items, float(state.available.sum()))
        of_categories = np.bincount(categories, weights=state.available, minlength=state.pool.n_categories)
        return np.asarray(of_categories[categories], dtype=float)

    def sentences(self, state: State, positions: list[int]) -> list[str]:
        return [
            "Drawn at random: each category with open items is as likely as the other, and so is each of the "
            f"{int(n_open)} open items of this one."
            for n_open in self._open(state)[positions]
        ]


@dataclass(frozen=True)
class MostConfidentMistake(Strategy):
    """Items of which the system is sure, and which are taken for its mistakes (Nguyen et al. 2018).

    For metrics of scores a mistake is an item that is most likely not positive, and the higher its score the surer the
    system is. For other metrics it is an item whose most likely class is not the predicted one; the system is as sure
    as its probability or score of that class is high among all items. If it gives neither, it is the items that are
    most certainly mistakes. When no mistakes are left, the others follow, in the same order. With several systems it is
    the mean over them.
    """

    name: ClassVar[str] = "most-confident-mistake"

    def scores(self, state: State) -> Floats:
        """Between 1 and 2 for mistakes and below 1 for other items, growing with the confidence of the system."""
        values = np.zeros(state.pool.n_items)
        for system in range(state.pool.n_systems):
            mistake, confidence = self._judge(state, system)
            values += mistake + confidence
        return np.where(state.available, values / state.pool.n_systems, 0.0)

    def _judge(self, state: State, system: int) -> tuple[npt.NDArray[np.bool_], Floats]:
        """Which items are taken for mistakes, and the confidence of the system as a share of the items, up to 1."""
        pool, aligned = state.pool, state.pool.aligned
        likeliest = state.probabilities.argmax(axis=1)
        if pool.metric.needs == "scores" and aligned.scores is not None:
            mistakes, sure = likeliest != pool.positive, aligned.scores[system]
        elif aligned.codes is None:
            raise InvalidParameter(
                "strategy 'most-confident-mistake' needs the classes or scores of every system, got neither; add them"
            )
        else:
            said = aligned.codes[system]
            mistakes, at = (said != likeliest) & (said >= 0), (np.arange(pool.n_items), np.maximum(said, 0))
            if aligned.probabilities is not None:
                sure = aligned.probabilities[system][at]
            elif aligned.scores is not None and pool.n_classes == 2:
                sure = aligned.scores[system] * np.where(said == aligned.positive, 1.0, -1.0)
            else:
                sure = 1 - state.probabilities[at]
        # The mid-rank as a share of their number; the least for what is missing.
        return mistakes, np.asarray(scipy.stats.rankdata(np.where(np.isnan(sure), -np.inf, sure))) / len(sure)

    def sentences(self, state: State, positions: list[int]) -> list[str]:
        verdicts = [self._judge(state, system) for system in range(state.pool.n_systems)]
        sentences = []
        for at in positions:
            wrong = sum(bool(mistake[at]) for mistake, _ in verdicts)
            sure = 100 * float(np.mean([confidence[at] for _, confidence in verdicts]))
            taken = f"it is taken for {class_words(state, at)}"
            if not wrong:
                sentences.append(f"No likely mistake comes before it: {taken}, and no system says otherwise.")
                continue
            whose = "" if len(verdicts) == 1 else f" of {wrong} of {len(verdicts)} systems"
            sentences.append(
                f"It looks like a mistake{whose}: {taken}; the confidence in it is above {sure:.0f}% of items."
            )
        return sentences


@dataclass(frozen=True)
class Uncertainty(Strategy):
    """Items whose class is least certain, by the entropy of its probabilities in nats."""

    name: ClassVar[str] = "uncertainty"

    def scores(self, state: State) -> Floats:
        return np.where(state.available, np.maximum(entr(state.probabilities).sum(axis=1), 0.0), 0.0)

    def sentences(self, state: State, positions: list[int]) -> list[str]:
        return [f"Its class is among the least certain: it is taken for {class_words(state, at)}." for at in positions]


_KINDS: tuple[type[Strategy], ...] = (Random, Stratified, MostConfidentMistake, ExpectedChange, PaperExpectedChange)
_KINDS += (Uncertainty, Propensity, Separate)
STRATEGIES: Registry[type[Strategy]] = Registry(
    "strategy", {kind.name: kind for kind in _KINDS}, group="trueup.strategies"
)


def get_strategy(strategy: str | Strategy, /, **options: Any) -> Strategy:
    """A strategy by name; underscores and hyphens are the same. A strategy is given back as it is.

    Parameters
    ----------
    strategy : str or Strategy. One of ``STRATEGIES``.
    **options
        Those of the strategy, e.g. ``floor`` of "propensity" and ``systems`` of "separate".

    Examples
    --------
    >>> get_strategy("propensity", floor=0.2)
    Propensity(floor=0.2, n_positives=None)
    >>> get_strategy("meec").is_random
    False
    """
    return STRATEGIES.make(strategy, options, base=Strategy)
