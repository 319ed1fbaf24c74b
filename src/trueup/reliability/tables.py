"""Votes as the coefficients of agreement read them: a row for each labeler of each item, sorted by item."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import numbers_of, preview
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter

Scale = Literal["nominal", "ordinal", "interval", "ratio"]
SCALES: tuple[Scale, ...] = ("nominal", "ordinal", "interval", "ratio")
_CELLS = 4_000_000  # numbers of an array of a part: 32 MB


@dataclass(frozen=True)
class VoteRows:
    """One row for each labeler of each item; several votes of a labeler on an item share the row."""

    item: Codes  # (n_rows,): positions; items in order
    labeler: Codes
    shares: sparse.csr_array  # (n_rows, n_classes): the share of each class among the votes of the row; rows sum to 1
    n_items: int
    n_labelers: int
    weights: Floats  # (n_items,): what each item counts for; about 1 on average
    is_named: bool  # whether rows of one labeler are of one person, and not of an anonymous crowd

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.shares.shape[1])

    @property
    def votes_per_item(self) -> Codes:
        """Rows of each item."""
        return np.bincount(self.item, minlength=self.n_items)

    def on_items(self, kept: Booleans) -> VoteRows:
        """The rows of some items; labelers keep their numbers."""
        rows = kept[self.item]
        place = np.cumsum(kept) - 1
        return VoteRows(
            place[self.item[rows]],
            self.labeler[rows],
            self.shares[np.flatnonzero(rows)],
            int(kept.sum()),
            self.n_labelers,
            _about_one(self.weights[kept]),
            self.is_named,
        )

    def weighed_by_pairs(self) -> VoteRows:
        """The same, with weights whose mean over the items with two votes is 1."""
        pairable = self.votes_per_item > 1
        mean = self.weights[pairable].mean() if pairable.any() else 1.0
        return replace(self, weights=self.weights / mean)

    def effective(self, least: int = 1) -> float:
        """How many items of one weight say as much as those with this many votes."""
        return effective_number(self.weights[self.votes_per_item >= least])

    def parts(self, width: int) -> list[VoteRows]:
        """The rows in parts of whole items, so that an array of a part with this many columns stays small."""
        most = max(1, _CELLS // max(width, 1))
        ends = np.append(np.flatnonzero(np.diff(self.item)) + 1, len(self.item))  # after the rows of each item
        parts, start = [], 0
        while start < len(self.item):
            fits = int(np.searchsorted(ends, start + most, side="right"))
            stop = int(ends[max(fits - 1, int(np.searchsorted(ends, start, side="right")))])
            first, last = int(self.item[start]), int(self.item[stop - 1])
            parts.append(
                VoteRows(
                    self.item[start:stop] - first,
                    self.labeler[start:stop],
                    self.shares[start:stop],
                    last - first + 1,
                    self.n_labelers,
                    self.weights[first : last + 1],
                    self.is_named,
                )
            )
            start = stop
        return parts


def vote_rows(labels: Labels, weights: Floats | None = None) -> VoteRows:
    """The rows of the votes for classes; abstentions are no votes, and each vote of a crowd is a row of its own."""
    item, labeler, answer, times = labels.vote_table()
    kept = answer < labels.n_classes
    item, labeler, answer, times = item[kept], labeler[kept], answer[kept], times[kept]
    crowd = labels.is_crowd[labeler]
    if crowd.any():
        repeat = np.where(crowd, times, 1)
        item, labeler, answer = (np.repeat(codes, repeat) for codes in (item, labeler, answer))
        times = np.repeat(np.where(crowd, 1, times), repeat)
        crowd = np.repeat(crowd, repeat)
    is_new = (np.diff(item, prepend=-1) != 0) | (np.diff(labeler, prepend=-1) != 0) | crowd
    row = np.cumsum(is_new) - 1
    first = np.flatnonzero(is_new)
    total = np.bincount(row, times, len(first))
    shares = sparse.csr_array((times / total[row], (row, answer)), shape=(len(first), labels.n_classes))
    return VoteRows(
        item[first].astype(np.int64),
        labeler[first].astype(np.int64),
        shares,
        labels.n_items,
        labels.n_labelers,
        np.ones(labels.n_items) if weights is None else _about_one(weights),
        not labels.crowds,
    )


def effective_number(weights: Floats) -> float:
    """How many of one weight vary as little as these: Kish's (Σw)² / Σw²."""
    most = float(weights.max()) if len(weights) else 0.0
    return float((weights / most).sum() ** 2 / ((weights / most) ** 2).sum()) if most > 0 else 0.0


def _about_one(weights: Floats) -> Floats:
    """Weights over their mean."""
    return weights / weights.mean() if len(weights) else weights


def class_values(labels: Labels, scale: Scale, values: Mapping[Hashable, float] | None) -> Floats | None:
    """The number of each class on this scale, ranks on an ordinal one; None on a nominal one."""
    names = labels.classes.tolist()
    if values is not None and not isinstance(values, Mapping):
        raise InvalidParameter(
            f"`values` must be a mapping from class to number, got {type(values).__name__}; pass a dict",
            parameter="values",
        )
    if values is not None and set(names) - set(values):
        lacking = [name for name in names if name not in values]
        raise InvalidParameter(
            f"`values` must have a number for each class, got none for {preview(lacking)}; add them", parameter="values"
        )
    numbers = numbers_of(names) if values is None else _numbers_named(names, values)
    if scale == "nominal":
        return None if numbers is None else np.array(numbers)
    if scale == "ordinal":
        if numbers is not None:
            return np.unique(numbers, return_inverse=True)[1].astype(float)  # equal numbers are of one rank
        if labels.fixed_classes or len(names) <= 2:
            return np.arange(len(names), dtype=float)
        raise InvalidLabels(
            f"an ordinal scale needs classes in order, got {preview(names)} in the order of the alphabet; name them in "
            "their order with `classes=…` when the votes are read, or pass `values`",
            parameter="scale",
        )
    if numbers is None:
        raise InvalidLabels(
            f"the scale {scale!r} needs classes that are numbers, got {preview(names)}; pass `values` with one a "
            "class, or take another `scale`",
            parameter="scale",
        )
    if scale == "ratio" and min(numbers) < 0:
        raise InvalidLabels(
            f"a ratio scale begins at 0, got {min(numbers):g}; take `scale=interval`", parameter="scale"
        )
    return np.array(numbers)


def _numbers_named(names: list[Any], values: Mapping[Hashable, float]) -> tuple[float, ...]:
    """The number named for each class."""
    try:
        numbers = tuple(float(values[name]) for name in names)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"`values` must be numbers, got {preview([values[name] for name in names])}; name a number for each class",
            parameter="values",
        ) from error
    if not np.isfinite(numbers).all():
        raise InvalidParameter(f"`values` must be finite, got {preview(numbers)}; name one a class", parameter="values")
    if len(numbers) > 1 and min(numbers) == max(numbers):
        raise InvalidParameter(
            f"`values` must differ, got {numbers[0]:g} for every class; name numbers that tell classes apart",
            parameter="values",
        )
    return numbers


def agreement_weights(kind: str, values: Floats) -> Floats:
    """How far two classes agree, from 1 down to 0, by Gwet's names; "ordinal" counts pairs of ranks."""
    gap = np.abs(values[:, None] - values)
    if kind == "ordinal":
        ranks = np.unique(values, return_inverse=True)[1]
        gap = np.abs(ranks[:, None] - ranks)
        distance = gap * (gap + 1) / 2
    elif kind == "ratio":
        total = values[:, None] + values
        distance = np.divide(gap, total, out=np.zeros_like(gap), where=total > 0) ** 2
    else:
        distance = gap if kind == "linear" else gap**2
    most = distance.max()
    return 1 - distance / most if most > 0 else np.ones_like(gap)


def squared_differences(scale: Scale, n_classes: int, values: Floats | None, totals: Floats | None = None) -> Floats:
    """Krippendorff's δ² between classes; of an ordinal scale it depends on how often each was said."""
    if scale == "nominal" or values is None:
        return 1 - np.eye(n_classes)
    if scale == "ordinal":
        assert totals is not None
        rank = np.unique(values, return_inverse=True)[1]
        of_rank = totals @ np.eye(rank.max() + 1)[rank]  # classes of one rank together
        middle = (np.cumsum(of_rank, axis=-1) - of_rank / 2)[..., rank]  # the mean rank of each class
        return np.asarray((middle[..., :, None] - middle[..., None, :]) ** 2)
    gap = (values[:, None] - values) ** 2
    if scale == "interval":
        return np.asarray(gap)
    total = (values[:, None] + values) ** 2
    return np.divide(gap, total, out=np.zeros_like(gap), where=total > 0)
