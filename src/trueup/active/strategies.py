"""Strategies that need no metric, and all strategies by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import entr
from scipy.stats import rankdata

from trueup.active.influence_strategies import ExpectedChange, PaperExpectedChange, Propensity, Separate
from trueup.active.pool import State
from trueup.active.strategy import RandomStrategy, Strategy, class_words, share_out, strategy_of
from trueup.exceptions import InvalidParameter
from trueup.metrics import ScoreMetric

__all__ = [
    "STRATEGIES",
    "ExpectedChange",
    "MostConfidentMistake",
    "PaperExpectedChange",
    "Propensity",
    "Random",
    "Separate",
    "Strategy",
    "Stratified",
    "Uncertainty",
    "get_strategy",
    "list_strategies",
]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Random(RandomStrategy):
    """Every available item is as likely as the other."""

    name: ClassVar[str] = "random"

    def propensities(self, state: State) -> Floats:
        """The chance of each item to be drawn next, shape (n_items,)."""
        return share_out(np.ones(state.pool.n_items), state.available)

    def _reasons(self, state: State, positions: list[int]) -> list[str]:
        n_open = int(state.available.sum())
        return [f"Drawn at random: each of the {n_open} open items is as likely as the other."] * len(positions)


@dataclass(frozen=True)
class Stratified(RandomStrategy):
    """A category is drawn evenly among those with available items, then an item of it; without categories as `Random`.

    So rare categories get their share (Nguyen et al. 2018, "random").
    """

    name: ClassVar[str] = "stratified"

    def propensities(self, state: State) -> Floats:
        """The chance of each item to be drawn next, shape (n_items,)."""
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

    def _reasons(self, state: State, positions: list[int]) -> list[str]:
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
        if isinstance(pool.metric, ScoreMetric) and pool.metric.needs == "scores" and aligned.scores is not None:
            return likeliest != pool.positive, _rank_share(aligned.scores[system])
        if aligned.codes is None:
            raise InvalidParameter(
                "strategy 'most-confident-mistake' needs the classes or scores of every system, got neither; add them"
            )
        said = aligned.codes[system]
        at = np.arange(pool.n_items), np.maximum(said, 0)
        if aligned.probabilities is not None:
            sure = aligned.probabilities[system][at]
        elif aligned.scores is not None and pool.n_classes == 2:
            sure = aligned.scores[system] * np.where(said == aligned.positive, 1.0, -1.0)
        else:
            sure = 1 - state.probabilities[at]
        return (said != likeliest) & (said >= 0), _rank_share(sure)

    def _reasons(self, state: State, positions: list[int]) -> list[str]:
        judged = [self._judge(state, system) for system in range(state.pool.n_systems)]
        sentences = []
        for at in positions:
            wrong = sum(bool(mistake[at]) for mistake, _ in judged)
            sure = 100 * float(np.mean([confidence[at] for _, confidence in judged]))
            taken = f"it is taken for {class_words(state, at)}"
            if not wrong:
                sentences.append(f"No likely mistake comes before it: {taken}, and no system says otherwise.")
                continue
            whose = "" if len(judged) == 1 else f" of {wrong} of {len(judged)} systems"
            sentences.append(
                f"It looks like a mistake{whose}: {taken}, and the confidence in it ranks above {sure:.0f}% of items."
            )
        return sentences


@dataclass(frozen=True)
class Uncertainty(Strategy):
    """Items whose class is least certain, by the entropy of its probabilities in nats."""

    name: ClassVar[str] = "uncertainty"

    def scores(self, state: State) -> Floats:
        """The entropy of the probabilities."""
        return np.where(state.available, np.maximum(entr(state.probabilities).sum(axis=1), 0.0), 0.0)

    def _reasons(self, state: State, positions: list[int]) -> list[str]:
        return [f"Its class is among the least certain: it is taken for {class_words(state, at)}." for at in positions]


STRATEGIES: dict[str, type[Strategy]] = {
    kind.name: kind
    for kind in (
        Random,
        Stratified,
        MostConfidentMistake,
        ExpectedChange,
        PaperExpectedChange,
        Uncertainty,
        Propensity,
        Separate,
    )
}


def list_strategies() -> list[str]:
    """The names `get_strategy` knows.

    Examples
    --------
    >>> "propensity" in list_strategies()
    True
    """
    return sorted(STRATEGIES)


def get_strategy(name: str | Strategy, **options: Any) -> Strategy:
    """A strategy by name; underscores and hyphens are the same. A strategy is given back as it is.

    Parameters
    ----------
    name : str or Strategy
        See `list_strategies`.
    **options
        Those of the strategy, e.g. ``floor`` of "propensity" and ``systems`` of "separate".

    Examples
    --------
    >>> get_strategy("propensity", floor=0.2)
    Propensity(floor=0.2, n_positives=None)
    >>> get_strategy("meec").is_random
    False
    """
    return strategy_of(name, STRATEGIES, Strategy, options)


def _rank_share(values: Floats) -> Floats:
    """The mid-rank of each value as a share of their number, above 0 and at most 1; the least for what is missing."""
    known = np.where(np.isnan(values), -np.inf, values)
    return np.asarray(rankdata(known)) / len(known)
