"""Slices of the items: groups that a column of the item table, or the caller, puts them in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import preview
from trueup.data.encoding import Vocabulary, is_null, vocabulary_from
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter

_MOST_SLICES = 1000
NO_SLICE = -1


@dataclass(frozen=True, eq=False)
class Slicing:
    """Which slice each item is in."""

    column: str  # what the slices are called together, e.g. "topic"
    names: Vocabulary  # in the order of their first items
    codes: Codes = field(repr=False)  # (n_items,): positions in `names`, -1 for an item in no slice

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return len(self.names)

    @property
    def sizes(self) -> Codes:
        """Items of each."""
        return np.bincount(self.codes[self.codes >= 0], minlength=self.n_slices)

    def members(self, name: Hashable) -> Booleans:
        """Which items are in a slice; an unknown one is an error."""
        names = self.names.tolist()
        if name not in names:
            raise InvalidParameter(
                f"there is no slice {name!r} of {self.column!r}; name one of {preview(names, most=10)}"
            )
        return np.asarray(self.codes == names.index(name))

    def notes(self) -> list[str]:
        """What to say of items that are in no slice, and of a slice that is alone."""
        notes, without = [], int((self.codes == NO_SLICE).sum())
        if without:
            notes.append(f"{without:,} items have no {self.column!r}: they count in the whole only.")
        if self.n_slices == 1:
            only = self.names.tolist()[0]
            notes.append(f"Of {self.column!r} there is {only!r} alone, so that there is nothing to compare.")
        return notes


def slices_of(labels: Labels, by: str | Mapping[Hashable, Hashable]) -> Slicing:
    """The slices that a column of the items, or a mapping from item to slice, makes.

    Examples
    --------
    >>> import trueup as tu
    >>> labels = tu.Labels.from_matrix([[0, 1], [1, 1], [0, 0]])
    >>> slices = slices_of(labels.with_items({"item": [0, 1, 2], "topic": ["law", "art", "law"]}), "topic")
    >>> slices.names.tolist(), slices.codes.tolist()
    (['law', 'art'], [0, 1, 0])
    """
    values, column = values_of(labels, by, "by")
    places: dict[Any, int] = {}
    codes = np.array([NO_SLICE if is_null(value) else places.setdefault(value, len(places)) for value in values])
    if not places:
        raise InvalidParameter(f"`by` must put items into slices, got no value for any item in {column!r}")
    if len(places) > _MOST_SLICES:
        raise InvalidParameter(
            f"`by` must make at most {_MOST_SLICES:,} slices, got {len(places):,} from {column!r}; join some",
        )
    return Slicing(column, vocabulary_from(list(places)), codes.astype(np.int32))


def clusters_of(labels: Labels, cluster: str | Mapping[Hashable, Hashable]) -> Codes:
    """The number of the cluster of each item; an item without one is one by itself."""
    values, _ = values_of(labels, cluster, "cluster")
    places: dict[Any, int] = {}
    keys = ((k,) if is_null(value) else value for k, value in enumerate(values))
    return np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int32)


def weights_of(labels: Labels, weights: str | Mapping[Hashable, float]) -> Floats:
    """What each item counts for; numbers above 0."""
    values, column = values_of(labels, weights, "weights")
    try:
        numbers = np.array([np.nan if is_null(value) else float(value) for value in values])
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"`weights` must be numbers, got {column!r} ({error}); name others") from error
    bad = ~(np.isfinite(numbers) & (numbers > 0))
    if bad.any():
        raise InvalidParameter(
            f"`weights` must be above 0 for every item, got {int(bad.sum())} that are not, first of item "
            f"{labels.items[bad][:1].tolist()[0]!r}; correct them",
        )
    return numbers


def values_of(labels: Labels, by: str | Mapping[Hashable, Any], parameter: str) -> tuple[list[Any], str]:
    """The value of each item, from a column or a mapping, and what to call them."""
    if isinstance(by, str):
        return labels.item_column(by).tolist(), by
    if not isinstance(by, Mapping):
        raise InvalidParameter(
            f"`{parameter}` must be an item column or a mapping from item to value, got {type(by).__name__}",
        )
    known = set(labels.items.tolist())
    strangers = [item for item in by if item not in known]
    if strangers:
        raise InvalidParameter(
            f"`{parameter}` must be of items of the labels, got {len(strangers)} others: {preview(strangers)}",
        )
    return [by.get(item) for item in labels.items.tolist()], {"by": "slice"}.get(parameter, parameter)
