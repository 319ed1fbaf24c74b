"""What a session asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup._base.types import Floats


@dataclass(frozen=True)
class Asked:
    """One item to vet: its name, how much the strategy wants it, why, and the probability it was drawn with.

    A `purpose` says that it is no new draw: "overlap" (a second opinion), "settle", "repeat" or "check". Experts should
    not see it.
    """

    item: Any
    score: float
    why: str
    propensity: float | None
    purpose: str | None = None


class Batch(Sequence[Any]):
    """The items to vet, by name; `details` says why each."""

    def __init__(self, details: Iterable[Asked]) -> None:
        self.details = tuple(details)

    def __getitem__(self, index: Any) -> Any:
        return [one.item for one in self.details][index]

    def __len__(self) -> int:
        return len(self.details)

    def __iter__(self) -> Iterator[Any]:
        return iter([one.item for one in self.details])

    def __repr__(self) -> str:
        return f"Batch({[one.item for one in self.details]!r})"


def draw_in_turn(chances: Floats, n: int, rng: np.random.Generator) -> tuple[list[int], list[float | None]]:
    """Items drawn one after the other without replacement, with the probability each had in its turn.

    Parameters
    ----------
    chances : array of shape (n_items,)
        Of the first draw; later ones are in proportion. Items with none are never drawn.
    n : int
        Fewer are drawn where fewer have a chance.

    Examples
    --------
    >>> draw_in_turn(np.array([0.0, 0.5, 0.0, 0.5]), 3, np.random.default_rng(0))
    ([3, 1], [0.5, 1.0])
    """
    left = np.array(chances, dtype=float)
    chosen: list[int] = []
    propensities: list[float | None] = []
    for _ in range(min(n, int(np.count_nonzero(left > 0)))):
        upto = np.cumsum(left)
        k = int(np.searchsorted(upto, rng.random() * upto[-1], side="right"))
        if k >= len(left):  # rounding at the very end
            k = int(np.flatnonzero(left > 0)[-1])
        chosen.append(k)
        propensities.append(min(float(left[k] / upto[-1]), 1.0))
        left[k] = 0.0
    return chosen, propensities
