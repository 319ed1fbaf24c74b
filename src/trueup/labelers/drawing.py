"""Which items an expert should vet so that they stand for all: a random sample, with the chance of each item."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer
from trueup.data.encoding import Vocabulary, is_null
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.data.pairs import Contest, Pairs
from trueup.data.slices import values_of
from trueup.exceptions import InvalidParameter

Allocation = Literal["equal", "proportional"]
ALLOCATIONS: tuple[Allocation, ...] = ("equal", "proportional")


@dataclass(frozen=True, eq=False)
class Sample:
    """Items to vet, drawn at random, in the order in which they were drawn.

    Attributes
    ----------
    chances : float array. The chance of each to be drawn: its inclusion probability.
    strata : list or None. What the items of a stratified sample were told apart by.
    known : dict. The truths of those of the items that are gold already.
    """

    items: Vocabulary = field(repr=False)
    chances: Floats = field(repr=False)
    strata: list[Hashable] | None = field(repr=False)
    known: dict[Hashable, Hashable] = field(repr=False)

    def __len__(self) -> int:
        """How many items were drawn."""
        return len(self.items)

    def __repr__(self) -> str:
        groups = "" if self.strata is None else f", {len(set(self.strata))} strata"
        return f"Sample({len(self)} items{groups}, {len(self.known)} of them known)"

    @property
    def drawn(self) -> dict[Hashable, float]:
        """The chance of each item, as `Labels.with_gold` takes it."""
        return dict(zip(self.items.tolist(), self.chances.tolist(), strict=True))

    def columns(self) -> dict[str, list[Any]]:
        """A row for each item: item, label (None where it is to be filled in), chance and, if stratified, stratum."""
        items = self.items.tolist()
        columns = {"item": items, "label": [self.known.get(item) for item in items], "chance": self.chances.tolist()}
        return columns if self.strata is None else {**columns, "stratum": list(self.strata)}

    def to_frame(self, *, backend: str | None = None) -> Any:
        """`columns` as a frame; a file of it, its labels filled in, is what `trueup.read_gold` reads."""
        return make_frame(self.columns(), backend=backend)


def draw_sample(
    labels: Labels,
    n: int,
    *,
    by: str | Mapping[Any, Hashable] | Sequence[Hashable] | npt.NDArray[Any] | None = None,
    allocation: Allocation = "equal",
    random_state: RandomState = 0,
) -> Sample:
    """Draw items for an expert to vet, so that what they find holds for all items.

    Items that are gold already may be drawn like any others; `Sample.known` has their truths.

    Parameters
    ----------
    labels : Labels. The items to draw from: all of them.
    n : int. How many.
    by : str, mapping or sequence, optional
        Draw from each stratum by itself: "votes" for the class that most votes name, the name of an item column, or a
        value for each item, such as a system's predictions, by name or in the order of ``labels.items``. Items without
        a value are a stratum too. By default a simple random sample.
    allocation : {"equal", "proportional"}
        How many from each stratum: the same number, as far as it has so many items, so that rare ones are seen too; or
        in proportion to its items. At least one from each.
    random_state : int, Generator or None. The same seed draws the same items.
    """
    n = check_integer(n, name="n", low=1)
    check_choice(allocation, ALLOCATIONS, name="allocation")
    if n > labels.n_items:
        raise InvalidParameter(f"`n` must be at most the {labels.n_items} items there are, got {n}", parameter="n")
    values = [None] * labels.n_items if by is None else _strata(labels, by)
    names = list(dict.fromkeys(values))
    code_of = {name: code for code, name in enumerate(names)}
    codes = np.array([code_of[value] for value in values], dtype=np.int64)
    sizes = np.bincount(codes)
    rng = as_generator(random_state)
    counts = _allocate(n, sizes, np.ones(len(sizes)) if allocation == "equal" else sizes.astype(np.float64))
    at = rng.permutation(_drawn_from_each(codes, counts, rng))
    truth = np.where(labels.gold_codes >= 0, labels.gold_codes, labels.held_codes)[at]
    known = np.flatnonzero(truth >= 0)
    return Sample(
        labels.items[at],
        (counts / sizes)[codes[at]],
        None if by is None else [values[k] for k in at],
        dict(zip(labels.items[at[known]].tolist(), labels.classes[truth[known]].tolist(), strict=True)),
    )


def draw_contests(pairs: Pairs, n: int, *, random_state: RandomState = 0) -> list[Contest]:
    """Draw contests for people to judge, so that what they find holds for all contests.

    Returns a list of (item, first, second), which system is shown first is by chance, so that nobody's liking for a
    place favours one of them.

    Parameters
    ----------
    pairs : Pairs. The contests to draw from: all with a verdict that counts.
    n : int. How many.
    random_state : int, Generator or None. The same seed draws the same contests.
    """
    n = check_integer(n, name="n", low=1)
    n_contests = pairs.labels.n_items
    if n > n_contests:
        raise InvalidParameter(f"`n` must be at most the {n_contests} contests there are, got {n}", parameter="n")
    rng = as_generator(random_state)
    drawn = [pairs.contests[contest] for contest in draw_sample(pairs.labels, n, random_state=rng).items.tolist()]
    return [
        (item, second, first) if is_turned else (item, first, second)
        for (item, first, second), is_turned in zip(drawn, rng.random(n) < 0.5, strict=True)
    ]


def _strata(labels: Labels, by: Any) -> list[Hashable]:
    """The stratum of each item; None where it has no value."""
    if isinstance(by, str) and by == "votes":
        voted = labels.votes_per_item > 0
        majority = labels.classes[labels.answer_counts[:, : labels.n_classes].argmax(axis=1)].tolist()
        return [name if there else None for name, there in zip(majority, voted, strict=True)]
    if isinstance(by, Mapping):
        labels.item_codes(by)  # a name that is no item is an error
    if isinstance(by, str | Mapping):
        values = values_of(labels, by, "by")[0]
    else:
        values = by.tolist() if isinstance(by, np.ndarray) else list(by)
    if len(values) != labels.n_items:
        raise InvalidParameter(
            f"`by` must have a value for each of the {labels.n_items} items, got {len(values)}; pass {{item: value}}",
            parameter="by",
        )
    if not all(isinstance(value, Hashable) for value in values):
        raise InvalidParameter("`by` must have one value for each item, got several; pass a flat list", parameter="by")
    return [None if is_null(value) else value for value in values]


def _allocate(n: int, sizes: Positions, shares: Floats) -> Positions:
    """How many of `n` items each stratum gives: by its share, at least one, at most all it has."""
    if n < len(sizes):
        raise InvalidParameter(
            f"`n` must be at least the {len(sizes)} strata, got {n}; draw more, or take fewer strata", parameter="n"
        )
    counts = np.ones(len(sizes), dtype=np.int64)
    for _ in range(n - len(sizes)):  # the next goes where it is most due, as seats go to parties (Sainte-Laguë)
        due = np.where(counts < sizes, shares / (2 * counts + 1), -1.0)
        counts[int(due.argmax())] += 1
    return counts


def _drawn_from_each(codes: Codes, counts: Positions, rng: np.random.Generator) -> Positions:
    """Positions of items: a simple random sample from each stratum."""
    parts = [rng.choice(np.flatnonzero(codes == code), size, replace=False) for code, size in enumerate(counts)]
    return np.concatenate(parts)
