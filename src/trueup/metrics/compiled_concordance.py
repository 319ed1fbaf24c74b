"""Counting pairs in the wrong order, compiled; imported only where numba is installed.

`discordant_mass` and `GroupedItems.wins` in `concordance` are the reference.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def discordant_mass(codes, masses, n_levels):  # type: ignore[no-untyped-def]
    """For each row the mass of the pairs whose first code is the larger; a Fenwick tree of codes counted from above."""
    n_rows, n = masses.shape
    wrong = np.zeros(n_rows)
    tree = np.zeros(n_levels + 1)
    for row in range(n_rows):
        tree[:] = 0.0
        for i in range(n):
            mass = masses[row, i]
            if mass == 0.0:
                continue
            k = n_levels - codes[row, i] - 1  # codes that are larger
            larger = 0.0
            while k > 0:
                larger += tree[k]
                k &= k - 1
            wrong[row] += mass * larger
            k = n_levels - codes[row, i]
            while k <= n_levels:
                tree[k] += mass
                k += k & -k
    return wrong


@numba.njit(cache=True, nogil=True)
def group_wins(order, distinct, indptr, group, of, against, once, n_groups):  # type: ignore[no-untyped-def]
    """For each row of scores and each group the mass of pairs of a positive and a negative that are ordered right.

    `order` are items by ascending score, `distinct` is whether a score differs from the one before. Entries of an item
    are those from indptr[item] to indptr[item + 1]; `of` and `against` are their masses as positives and negatives.
    `once` is whether no item is in a group twice.
    """
    n_rows, n = order.shape
    wins = np.empty((n_rows, n_groups))
    state = np.empty((n_groups, 2))  # negatives below and wins, side by side to be fetched together
    for row in range(n_rows):
        state[:] = 0.0
        start = 0
        while start < n:
            stop = start + 1
            while stop < n and not distinct[row, stop]:
                stop += 1
            if once and stop == start + 1:
                item = order[row, start]
                for entry in range(indptr[item], indptr[item + 1]):
                    g = group[entry]
                    below = state[g, 0]
                    state[g, 1] += of[entry] * below
                    state[g, 0] = below + against[entry]
            else:
                # Half of the negatives before those of equal score are added, half after: ties count one half.
                for step in range(3):
                    for i in range(start, stop):
                        item = order[row, i]
                        for entry in range(indptr[item], indptr[item + 1]):
                            g = group[entry]
                            if step == 1:
                                state[g, 0] += against[entry]
                            else:
                                state[g, 1] += 0.5 * of[entry] * state[g, 0]
            start = stop
        wins[row] = state[:, 1]
    return wins
