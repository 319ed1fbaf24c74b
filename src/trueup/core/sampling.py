"""Some of the items for all: draws of the truth of millions of items are made on thousands that stand for them.

Each item is taken with a chance that is larger where few are alike: few that a system puts into a class, few in a
slice. An item taken with chance p stands for 1/p items, and these numbers are then changed a little, so that sums over
the items that were taken equal those over all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueup._base.types import Codes, Floats

MOST_ITEMS = 6_000  # pools up to this size are drawn as they are
_OF_ALL = 4_000  # items taken evenly
_OF_A_GROUPING = 2_000  # items taken for each way to group them, as many of each group
_MOST_SUMS = 60  # that are kept, the largest: of many classes most are rare
_LEAST_TIMES = 0.05


def group_sizes(codes: Codes, n_groups: int) -> Floats:
    """The number of items in each group; codes of -1 are in none."""
    return np.bincount(codes[codes >= 0], minlength=n_groups).astype(float)


def inclusion_chances(n_all: int, groupings: Sequence[tuple[Codes, Floats]], n_items: int) -> Floats:
    """The chance of each item to be taken, shape (n_items,)."""
    chance = np.full(n_items, _OF_ALL / max(n_all, 1))
    for codes, sizes in groupings:
        of_group = _OF_A_GROUPING / max(int(np.count_nonzero(sizes)), 1) / np.maximum(sizes, 1.0)
        np.maximum(chance, np.where(codes >= 0, of_group[codes], 0.0), out=chance)
    capped: Floats = np.minimum(chance, 1.0)
    return capped


def calibrated_times(chance: Floats, values: Floats, totals: Floats) -> Floats:
    """How many items each taken item stands for, so that sums of the values are those over all items."""
    times = 1 / chance
    free = np.flatnonzero(chance < 1)
    if not len(free):
        return times
    largest = np.sort(np.argsort(-totals, kind="stable")[:_MOST_SUMS])
    part = values[free][:, largest]
    missing = (totals - values.T @ times)[largest]
    scale = np.maximum(np.sqrt((part**2).mean(axis=0)), 1e-12)
    scaled = part / scale
    solved = np.linalg.lstsq(scaled.T @ (scaled * times[free, None]), missing / scale, rcond=1e-9)[0]
    times[free] *= np.maximum(1 + scaled @ solved, _LEAST_TIMES)
    return np.asarray(times)


def base_values(base: Floats, codes: Codes) -> Floats:
    """What sums must be kept of: classes of the base, outputs, and the base at each output; (n_items, n_values)."""
    has_output = codes >= 0
    named = np.take_along_axis(base, np.maximum(codes, 0).T.astype(np.int64), axis=1) * has_output.T
    return np.column_stack([base, has_output.T.astype(float), named])
