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
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from trueup._validation import check_choice, check_integer
from trueup.active.pool import State
from trueup.exceptions import InvalidParameter

__all__ = ["RandomStrategy", "Strategy", "class_words", "share_out", "strategy_of"]

Floats = npt.NDArray[np.float64]
S = TypeVar("S")


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
        return self._reasons(state, at) if at else []

    @abstractmethod
    def _reasons(self, state: State, positions: list[int]) -> list[str]:
        """The sentences for items that exist."""


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


def strategy_of(name: str | S, kinds: Mapping[str, type[S]], base: Any, options: Mapping[str, Any]) -> S:
    """A strategy by name among these kinds, with its options; one that is made already is given back as it is."""
    if not isinstance(name, str) and isinstance(name, base):
        if options:
            raise InvalidParameter(
                f"a strategy has its options already, got {sorted(options)}; set them when it is made"
            )
        return name
    chosen = check_choice(str(name).lower().replace("_", "-"), list(kinds), name="strategy")
    known = [option.name for option in fields(kinds[chosen])]  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            takes = f"the options {', '.join(known)}" if known else "no option"
            raise InvalidParameter(f"strategy {chosen!r} takes {takes}, got {option!r}")
    return kinds[chosen](**options)


def class_words(state: State, at: int) -> str:
    """What is believed of the item, e.g. ``'cat' with probability 0.62``."""
    row = state.probabilities[at]
    likeliest = int(row.argmax())
    name: Any = state.pool.labels.classes[likeliest]
    shown = name.item() if isinstance(name, np.generic) else name
    return f"{shown!r} with probability {row[likeliest]:.2f}"
