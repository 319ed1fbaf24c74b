"""The loops over detections, in plain Python that numba compiles where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from trueup._base.engines import choose_engine


def loop(function: Callable[..., None], *, work: int, worth: int) -> Callable[..., None]:
    """One of the loops, compiled where the work repays the time that numba takes to load."""
    return _compiled(function) if choose_engine(work=work, worth=worth) == "numba" else function


@cache
def _compiled(function: Callable[..., None]) -> Callable[..., None]:
    import numba
    import numba.extending

    numba.extending.register_jitable(mean_precision)  # the others call it
    return numba.njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return]


def match_groups(
    groups: Any, overlaps: Any, is_out: Any, crowd: Any, outside: Any, thresholds: Any, outcome: Any
) -> None:
    """Fill `outcome` for every range of areas, threshold and detection; `groups` are arrays of `Pairs`."""
    firsts, lasts, first_object, n_objects, offsets = groups
    n_areas, n_thresholds, _ = outcome.shape
    for area in range(n_areas):
        for group in range(len(firsts)):
            begin, n = first_object[group], n_objects[group]
            taken = np.zeros((n_thresholds, n), dtype=np.bool_)
            for row in range(lasts[group] - firsts[group]):
                place = firsts[group] + row
                for t in range(n_thresholds):
                    best, chosen = thresholds[t], -1
                    for out in (False, True):  # what counts comes before what does not
                        if out and chosen >= 0:
                            break
                        for k in range(n):
                            if is_out[area, begin + k] != out or (taken[t, k] and not crowd[begin + k]):
                                continue
                            overlap = overlaps[offsets[group] + row * n + k]
                            if overlap < best:
                                continue
                            best, chosen = overlap, k
                    if chosen >= 0:
                        taken[t, chosen] = True
                        outcome[area, t, place] = -1 if is_out[area, begin + chosen] else 1
                    elif outside[area, place]:
                        outcome[area, t, place] = -1


def fill_scores(
    outcome: Any,
    order: Any,
    starts: Any,
    rank: Any,
    n_objects: Any,
    points: Any,
    limits: Any,
    precision: Any,
    recall: Any,
) -> None:
    """Fill the mean `precision` over points of recall, and the `recall` that is reached, as COCO defines them.

    Detections of class c, by falling score, are those of `order` from starts[c] to starts[c + 1].
    """
    at_right = np.empty(len(order))
    for c in range(len(starts) - 1):
        for area in range(outcome.shape[0]):
            total = n_objects[area, c]
            if total == 0:
                continue
            for t in range(outcome.shape[1]):
                n_right, n_wrong = 0, 0
                counts = np.zeros(len(limits))
                for k in range(starts[c], starts[c + 1]):
                    what = outcome[area, t, order[k]]
                    if what == 1:
                        n_right += 1
                        at_right[n_right - 1] = n_right / (n_right + n_wrong + _TINY)
                        for limit in range(len(limits)):
                            if rank[order[k]] < limits[limit]:
                                counts[limit] += 1
                    elif what == 0:
                        n_wrong += 1
                precision[area, t, c] = mean_precision(at_right, n_right, total, points)
                for limit in range(len(limits)):
                    recall[limit, area, t, c] = counts[limit] / total


_TINY = 2.0**-52  # as in COCO's program


def fill_average_precisions(
    is_real: Any, starts: Any, detections: Any, n_levels: Any, n_objects: Any, points: Any, sums: Any, counts: Any
) -> None:
    """Add the mean precision over points of recall to `sums`, for every draw, class and threshold, and count them.

    Of `detections`, by falling score and those of class c from starts[c] to starts[c + 1]: the candidate, -1 for none;
    how many thresholds its overlap reaches; whether what is right there counts; whether it counts if it is not right.
    """
    at, level, counts_right, counts_wrong = detections
    precision, rank = np.empty(len(at)), np.empty(len(at))
    reached, is_counted, shift = np.empty_like(at), np.empty_like(at), np.empty_like(at)
    for draw in range(len(is_real)):
        for c in range(len(starts) - 1):
            total = n_objects[draw, c]
            if total <= 0:
                continue
            n_real, n_before = 0, 0  # the others only move ranks, so each threshold looks at these alone
            for k in range(starts[c], starts[c + 1]):
                n_before += counts_wrong[k]
                if at[k] >= 0 and is_real[draw, at[k]]:
                    rank[n_real], reached[n_real] = n_before, level[k]
                    is_counted[n_real], shift[n_real] = counts_right[k], counts_right[k] - counts_wrong[k]
                    n_real += 1
            for threshold in range(n_levels):
                n_right, shifted = 0, 0
                for j in range(n_real):
                    if reached[j] > threshold:
                        shifted += shift[j]
                        if is_counted[j]:  # precision rises at detections that are right, and nowhere else
                            precision[n_right] = (n_right + 1) / (rank[j] + shifted)
                            n_right += 1
                sums[draw] += mean_precision(precision, n_right, total, points)
                counts[draw] += 1


def mean_precision(at_right: Any, n_right: Any, total: Any, points: Any) -> Any:
    """The mean over points of recall of the best precision from there on; `at_right`, by falling score, is changed."""
    for m in range(n_right - 2, -1, -1):
        at_right[m] = max(at_right[m], at_right[m + 1])
    value, m = 0.0, 0
    for point in points:
        while m < n_right and (m + 1) / total < point:
            m += 1
        if m == n_right:
            break
        value += at_right[m]
    return value / len(points)


def fill_sensitivities(
    is_real: Any, candidate: Any, role: Any, is_last: Any, n_objects: Any, n_wrong: Any, values: Any
) -> None:
    """Fill `values` with the mean share of objects that are found with so many wrong detections, for every draw.

    `role` is 1 for the detection that counts at its candidate, 0 for another one there, which does not count where the
    candidate is real, and -1 for one that is always wrong. `is_last` is true for the last one of equal scores.
    """
    for draw in range(len(is_real)):
        total = n_objects[draw]
        if total <= 0:
            values[draw] = np.nan
            continue
        right, wrong, reached, value, point = 0, 0, 0, 0.0, 0
        for k in range(len(candidate)):
            if role[k] >= 0 and is_real[draw, candidate[k]]:
                right += role[k]
            else:
                wrong += 1
            if is_last[k]:
                while point < len(n_wrong) and wrong > n_wrong[point]:
                    value += reached
                    point += 1
                if point == len(n_wrong):
                    break
                reached = right
        value += reached * (len(n_wrong) - point)
        values[draw] = value / total / len(n_wrong)
