"""How raters rate, and steps of all that raters do with the states of the items summed over, compiled.

Given the states, thresholds, biases and class shares move little. So they also move together by Hamiltonian steps on
their own posterior, given how much raters differ and how often they abstain; see `trueup.noise.hamiltonian`.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from trueup.noise.hamiltonian import JITTER, N_LEAPFROG, WORST
from trueup.noise.kernels.compiled_hamiltonian import (
    copy_row,
    copy_table,
    expect,
    fill_gradient_of_shares_and_rows,
    find_still_rows,
    has_low_row,
    learn,
    pack_shares_and_rows,
    push,
    shift,
    unpack_shares_and_rows,
)
from trueup.noise.kernels.compiled_states import FLOOR

_LEAST = 1e-12  # chance of a rating


@numba.njit(cache=True, nogil=True)
def sigmoid(x):  # type: ignore[no-untyped-def]
    """The logistic function."""
    return 1.0 / (1.0 + math.exp(-x)) if x > 0 else 1.0 - 1.0 / (1.0 + math.exp(x))


@numba.njit(cache=True, nogil=True)
def set_thresholds(gaps, stretch, bias, own):  # type: ignore[no-untyped-def]
    """A rater's own thresholds, written into `own`."""
    n = len(own)
    point = 0.0
    mean = 0.0
    own_mean = 0.0
    last = 0.0
    for k in range(n):
        point += math.exp(gaps[2 * k])
        own[k] = point if k == 0 else own[k - 1] + (point - last) * math.exp(stretch[k - 1])
        mean += point / n
        own_mean += own[k] / n
        last = point
        point += math.exp(gaps[2 * k + 1])
    for k in range(n):
        own[k] += mean - own_mean - bias


@numba.njit(cache=True, nogil=True)
def fill_table(classes, gaps, own, rates, table):  # type: ignore[no-untyped-def]
    """P(answer | rater, class), written into `table`; abstentions have a rate of the rater that ignores the class."""
    n_classes = len(classes)
    n_raters, n_own = own.shape
    n_answers = n_classes + rates.shape[1] - 1
    thresholds = np.empty(n_classes - 1)
    for t in range(n_raters):
        set_thresholds(gaps, own[t, 2 : n_own - 1], own[t, 0], thresholds)
        scale, chance = math.exp(own[t, 1]), sigmoid(own[t, n_own - 1])
        place = 0.0
        for y in range(n_classes):
            below = 0.0
            for k in range(n_classes):
                upto = sigmoid(scale * (thresholds[k] - place)) if k < n_classes - 1 else 1.0
                rated = (1 - chance) * (upto - below) + chance / n_classes
                table[t * n_answers + classes[k], classes[y]] = max(rates[t, 0] * rated, FLOOR)
                below = upto
            for a in range(n_classes, n_answers):
                table[t * n_answers + a, classes[y]] = max(rates[t, 1 + a - n_classes], FLOOR)
            if y < n_classes - 1:
                place += math.exp(gaps[2 * y]) + math.exp(gaps[2 * y + 1])


@numba.njit(cache=True, nogil=True)
def _pack(gaps, own, shares, output_table, first, q):  # type: ignore[no-untyped-def]
    """Write the parameters down as free numbers."""
    at = 0
    for gap in gaps:
        q[at] = gap
        at += 1
    for t in range(own.shape[0]):
        for k in range(own.shape[1]):
            q[at] = own[t, k]
            at += 1
    pack_shares_and_rows(shares, output_table, first, at, q)


@numba.njit(cache=True, nogil=True)
def _add_rater(expected, classes, n_answers, t, points, own, by_point, gradient):  # type: ignore[no-untyped-def]
    """Add the gradient of the ratings of one rater by what the rater does, and by the places of the scale."""
    n_classes = len(classes)
    n = n_classes - 1
    n_own = len(own)
    thresholds = np.empty(n)
    mean = 0.0
    own_mean = 0.0
    for k in range(n):
        c = points[2 * k + 1]
        thresholds[k] = c if k == 0 else thresholds[k - 1] + (c - points[2 * k - 1]) * math.exp(own[1 + k])
        mean += c / n
        own_mean += thresholds[k] / n
    for k in range(n):
        thresholds[k] += mean - own_mean - own[0]
    scale, lapse = math.exp(own[1]), sigmoid(own[n_own - 1])
    by_threshold = np.zeros(n)
    upto = np.ones(n_classes)
    by_chance = np.empty(n_classes)
    of_sharpness = 0.0
    of_lapse = 0.0
    for y in range(n_classes):
        below = 0.0
        for k in range(n_classes):
            if k < n:
                upto[k] = sigmoid(scale * (thresholds[k] - points[2 * y]))
            chance = (1 - lapse) * (upto[k] - below) + lapse / n_classes
            by_chance[k] = expected[t * n_answers + classes[k], classes[y]] / chance if chance > _LEAST else 0.0
            of_lapse += by_chance[k] * (1.0 / n_classes - upto[k] + below)
            below = upto[k]
        for k in range(n):
            slope = (1 - lapse) * (by_chance[k] - by_chance[k + 1]) * upto[k] * (1 - upto[k])
            of_sharpness += slope * scale * (thresholds[k] - points[2 * y])
            by_threshold[k] += scale * slope
            by_point[2 * y] -= scale * slope
    total = by_threshold.sum()
    gradient[0] -= total
    gradient[1] += of_sharpness
    gradient[n_own - 1] += of_lapse * lapse * (1 - lapse)
    above = 0.0
    for k in range(n - 1, 0, -1):
        above += by_threshold[k] - total / n
        factor = math.exp(own[1 + k])
        gradient[1 + k] += above * factor * (points[2 * k + 1] - points[2 * k - 1])
        by_point[2 * k + 1] += above * factor
        by_point[2 * k - 1] -= above * factor
    for k in range(n):  # what is left of the first threshold is nothing: thresholds have the mean of all
        by_point[2 * k + 1] += total / n


@numba.njit(cache=True, nogil=True)
def evaluate(q, still, known, work, parts, gradient):  # type: ignore[no-untyped-def]
    """Log-density of the free numbers `q`; fills its gradient and `parts`."""
    classes, rates, laws, hyper, distinct = known
    gaps, own, shares, table, output_table = parts
    n_raters, n_own = own.shape
    n_gaps = len(gaps)
    n_answers = len(classes) + rates.shape[1] - 1
    value = 0.0
    points = np.zeros(n_gaps + 1)
    for k in range(n_gaps):
        gaps[k] = q[k]
        points[k + 1] = points[k] + math.exp(gaps[k])
        value -= (gaps[k] - hyper[0]) ** 2 / (2 * hyper[1] ** 2)
        gradient[k] = -(gaps[k] - hyper[0]) / hyper[1] ** 2
    at = n_gaps
    for t in range(n_raters):
        for k in range(n_own):
            respect = k if k < 2 else (3 if k == n_own - 1 else 2)
            away = q[at] - (laws[0] if respect == 3 else 0.0)
            variance = math.exp(2 * laws[1 + respect])
            own[t, k] = q[at]
            value -= away**2 / (2 * variance)
            gradient[at] = -away / variance
            at += 1
    value += unpack_shares_and_rows(q, at, still, distinct, shares, output_table)
    fill_table(classes, gaps, own, rates, table)
    value += expect(distinct, shares, table, output_table, work)
    by_point = np.zeros(n_gaps + 1)
    for t in range(n_raters):
        first = n_gaps + t * n_own
        _add_rater(work[0], classes, n_answers, t, points, own[t], by_point, gradient[first : first + n_own])
    beyond = 0.0
    for k in range(n_gaps - 1, -1, -1):
        beyond += by_point[k + 1]
        gradient[k] += beyond * math.exp(gaps[k])
    fill_gradient_of_shares_and_rows(at, still, distinct, work, shares, output_table, gradient)
    return value


@numba.njit(cache=True, nogil=True)
def step(moved, proposed, known, work, step_scale, learns, rng):  # type: ignore[no-untyped-def]
    """One Hamiltonian step; changes `moved`, and `step_scale` where it learns."""
    gaps, own, shares, table, output_table = moved
    systems = known[4][1]
    mean, covariance, root, progress = step_scale
    n = len(mean)
    still = find_still_rows(systems, output_table)
    copy_table(output_table, proposed[4])
    q, gradient, v = np.empty(n), np.empty(n), np.empty(n)
    _pack(gaps, own, shares, output_table, systems[1], q)
    start = q.copy()
    value = evaluate(q, still, known, work, proposed, gradient)
    change = -value
    for j in range(n):
        v[j] = rng.standard_normal()
        change += v[j] ** 2 / 2
    size = math.exp(progress[1] + JITTER * (rng.random() - 0.5))
    new = value
    for _ in range(N_LEAPFROG // 2 + int(rng.random() * N_LEAPFROG) + 1):
        push(size / 2, root, gradient, v)
        shift(size, root, v, q)
        new = evaluate(q, still, known, work, proposed, gradient)
        push(size / 2, root, gradient, v)
        if not new > value + WORST:
            break
    for j in range(n):
        change -= v[j] ** 2 / 2
    possible = new > value + WORST and not has_low_row(systems, still, proposed[4])
    chance = math.exp(min(change + new, 0.0)) if possible else 0.0
    if rng.random() < chance:
        copy_row(proposed[0], gaps)
        copy_table(proposed[1], own)
        copy_row(proposed[2], shares)
        copy_table(proposed[3], table)
        copy_table(proposed[4], output_table)
    else:
        copy_row(start, q)
    if learns:
        learn(q, chance, mean, covariance, root, progress)
