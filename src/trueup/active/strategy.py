"""What every strategy promises: a score and, if it is random, a chance for each item, and a sentence that says why.

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
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats, Positions
from trueup._base.validation import check_integer
from trueup.active.pool import State
from trueup.exceptions import InvalidParameter

S = TypeVar("S")

_NEXT_TO_NOTHING = 1e-9


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
        """The chances of the next draw; all 0 if no item is available."""
        return self.propensities(state) if state.available.any() else np.zeros(state.pool.n_items)

    @abstractmethod
    def propensities(self, state: State) -> Floats:
        """The chance of each item to be drawn next, shape (n_items,)."""


def share_out(weights: Floats, available: npt.NDArray[np.bool_], *, floor: float = 0.0) -> Floats:
    """Chances in proportion to weights, mixed with even ones.

    Parameters
    ----------
    weights : array of shape (n_items,)
        Not negative; where all available ones are 0 the chances are even.
    available : boolean array of shape (n_items,)
    floor : float
        The share of even chances: none of n available items gets less than floor / n.

    Returns
    -------
    array of shape (n_items,)
        Sums to one; 0 where not available.

    Examples
    --------
    >>> share_out(np.array([3.0, 1.0, 5.0]), np.array([True, True, False]), floor=0.5).tolist()
    [0.625, 0.375, 0.0]
    """
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
    r"""How much each draw has in an unbiased estimate of all items, shape (M,); they sum to one.

    Before draw m the classes of some items are known, :math:`N_m` others can be drawn, and y was drawn with probability
    :math:`q_m`. What is known with :math:`y / q_m` beside it is without bias for the sum over all items, and so is any
    mean of such sums. Of even draws that with shares in proportion to :math:`1 / (N_m (N_m - 1))` varies least. Where
    items leave the pool by draws only, it is LURE.

    Parameters
    ----------
    n_open : array of shape (M,)
        :math:`N_m`, how many items could be drawn at each draw.

    Examples
    --------
    >>> draw_shares([4, 3]).round(6).tolist(), draw_shares([4, 2]).round(6).tolist()
    ([0.333333, 0.666667], [0.142857, 0.857143])
    """
    n = np.asarray(n_open, dtype=float)
    certain = 1 / (n * np.maximum(n - 1, _NEXT_TO_NOTHING))  # the only item left tells all there is to know
    return np.asarray(certain / certain.sum()) if len(n) else n


def lure_weights(propensity: npt.ArrayLike, draw: npt.ArrayLike, n_pool: int) -> Floats:
    r"""Weights that make the mean over items drawn without replacement unbiased for the pool (LURE).

    .. math:: v_m = 1 + \frac{N - M}{N - m}\Bigl(\frac{1}{(N - m + 1)\, q_m} - 1\Bigr)

    With even probabilities every weight is one.

    Parameters
    ----------
    propensity : array of shape (n,)
        :math:`q_m`, the probability of the item among those that were left when it was drawn.
    draw : integer array of shape (n,)
        m, its place among the draws, from 1 on.
    n_pool : int
        N, the items that could be drawn at first.

    References
    ----------
    Farquhar, Gal and Rainforth (2021), "On statistical bias in active learning: how and when to fix it", ICLR.

    Examples
    --------
    >>> lure_weights([1 / 10, 1 / 9, 1 / 8], [1, 2, 3], 10).round(6).tolist()
    [1.0, 1.0, 1.0]
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
