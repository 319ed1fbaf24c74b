"""The sampler of ratings: Metropolis steps given the states of the items, and Hamiltonian steps without them.

Given the states, thresholds, biases and class shares move little. So where raters are few they also move together by
Hamiltonian steps on their own posterior, the states summed over (Neal 2011, MCMC using Hamiltonian dynamics): of 200
items and five raters, draws are then worth twenty times as many independent ones, in four times the time. Right after
it the states are drawn anew from their law given the parameters, so the chain keeps the joint posterior. Step and scale
are learned in the warm-up, and stay as they are after it. Steps are compiled: Python makes Metropolis steps alone.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from trueup._base.types import Floats
from trueup.noise.kernels import FLOOR
from trueup.noise.kernels.loops import DRAWS, Integers, draw_output_rows, draw_rates, draw_weights, jit

N_LEAPFROG = 24  # of a step, about
BURN_IN = 50  # sweeps before the first step: from a start far off, it would fall into any reading
MOST_JOINT = 64  # numbers up to which their covariance is learned, and not their variances alone
MOST_NUMBERS = 100  # up to which there are steps: of many raters, they cost more than they move
JITTER = 0.6  # of the logarithm of a step
LEAST_ROW = 1e-4  # a row of a system with a rarer answer stays as it is
SWEEPS_A_STEP = 24  # where nothing is compiled, and at most
_FIRST_VARIANCE = 0.04
_FIRST_STEP = 0.5
LEARNED_EVERY = 25
ACCEPTED = 0.7
WORST = -1000.0  # change of the energy at which a path is given up
FURTHEST = 9.0  # value that a free number counts for at most, where its variance is learned
_FEW_RATERS = 30
_REPEATS = 3  # of the moves in a sweep where there are few raters and no steps
_RATER_WORK = 1800
_SCALE = 2.4  # steps in standard deviations of one number
_TUNED_SWEEPS = 150  # in which lengths of steps are learned
_LEAST = 1e-12  # chance of a rating
_RESCALE_EVERY = 16
_LEAST_SWEEPS = 2


class StepScale(NamedTuple):
    """What a chain has learned of the scale of its steps; changed in place."""

    mean: Floats  # (n,): of the free numbers, over the warm-up; earlier ones count for less
    covariance: Floats  # (n, n): their covariance and its Cholesky root, or their variances and the roots of these
    root: Floats  # (n, n): their covariance and its Cholesky root, or their variances and the roots of these
    progress: Floats  # (2,): steps of the warm-up, and the logarithm of the step

    @classmethod
    def start(cls, n: int) -> StepScale:
        """Before the first step."""
        covariance = np.eye(n) if n <= MOST_JOINT else np.ones((n, 1))
        root = np.sqrt(_FIRST_VARIANCE) * covariance
        return cls(np.zeros(n), _FIRST_VARIANCE * covariance, root, np.array([0.0, np.log(_FIRST_STEP)]))


@jit
def sweeps_a_step(distinct, n_items, n_raters):
    """After how many sweeps a step is due, so that steps take about as long as the sweeps, or twice as long.

    Work is counted in states: those of an item or of a rater that a leap or a sweep goes through, of each rater
    `_RATER_WORK` in a sweep.
    """
    leap = 2 * len(distinct[0][1]) + 6 * len(distinct[2]) + 12 * n_raters
    sweep = 2 * n_items + _RATER_WORK * n_raters
    return max(_LEAST_SWEEPS, min(SWEEPS_A_STEP, round(N_LEAPFROG * leap / (3 * sweep))))


@jit
def distinct_items(votes, systems, gold):
    """The first of items of which all is said alike, as items of their own, and how many there are of each."""
    indptr, indices, data, place = votes
    outputs, first, power, row_prior = systems
    n_items = len(gold)
    at_place = np.full(n_items + 1, -1)
    chosen = np.empty(n_items, np.int64)
    n_alike = np.zeros(n_items)
    n = 0
    for i in range(n_items):
        offset = at_place[place[i]] if place[i] >= 0 else -1
        if offset < 0:
            offset = n
            n += 1
            chosen[offset] = i
            if place[i] >= 0:
                at_place[place[i]] = offset
        n_alike[offset] += 1.0
    starts = np.zeros(n + 1, np.int64)
    for r in range(n):
        starts[r + 1] = starts[r] + indptr[chosen[r] + 1] - indptr[chosen[r]]
    columns = np.empty(starts[n], np.int64)
    counts = np.empty(starts[n])
    own_outputs = np.empty((outputs.shape[0], n), np.int64)
    own_gold = np.empty(n, gold.dtype)
    for r in range(n):
        i = chosen[r]
        for j in range(indptr[i + 1] - indptr[i]):
            columns[starts[r] + j] = indices[indptr[i] + j]
            counts[starts[r] + j] = data[indptr[i] + j]
        for s in range(outputs.shape[0]):
            own_outputs[s, r] = outputs[s, i]
        own_gold[r] = gold[i]
    own_systems = (own_outputs, first, power, row_prior)
    return (starts, columns, counts), own_systems, own_gold, n_alike[:n].copy()


@jit
def expect(distinct, shares, table, output_table, work):
    """Log P(what is said of all items), their classes summed over; `work` gets what is expected of the counts then."""
    votes, systems, gold, n_alike = distinct
    indptr, indices, data = votes
    outputs, first, power, _ = systems
    expected, class_items, expected_outputs, own = work
    n_classes = len(shares)
    expected[:] = 0.0
    class_items[:] = 0.0
    expected_outputs[:] = 0.0
    value = 0.0
    for i in range(len(gold)):
        for y in range(n_classes):
            own[y] = shares[y]
            if gold[i] >= 0 and gold[i] != y:
                own[y] = 0.0
        log_scale = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            row = table[indices[j]]
            if data[j] == 1.0:
                for y in range(n_classes):
                    own[y] *= row[y]
            else:
                for y in range(n_classes):
                    own[y] *= row[y] ** data[j]
            if (j - indptr[i]) % _RESCALE_EVERY == _RESCALE_EVERY - 1 or data[j] > _RESCALE_EVERY:
                top = own.max()
                for y in range(n_classes):
                    own[y] /= top
                log_scale += math.log(top)
        for s in range(len(power)):
            if outputs[s, i] >= 0:
                for y in range(n_classes):
                    own[y] *= output_table[first[s] + outputs[s, i], y]
        total = 0.0
        for y in range(n_classes):
            total += own[y]
        value += n_alike[i] * (log_scale + math.log(total))
        share = n_alike[i] / total
        for y in range(n_classes):
            own[y] *= share
            class_items[y] += own[y]
        for j in range(indptr[i], indptr[i + 1]):
            of_column = expected[indices[j]]
            weight = data[j]
            for y in range(n_classes):
                of_column[y] += weight * own[y]
        for s in range(len(power)):
            if outputs[s, i] >= 0:
                of_column = expected_outputs[first[s] + outputs[s, i]]
                for y in range(n_classes):
                    of_column[y] += own[y]
    return value


@jit
def pack_shares_and_rows(shares, output_table, first, offset, q):
    """Write class shares and rows of systems down as free numbers from `at` on."""
    for y in range(1, len(shares)):
        q[offset] = math.log(shares[y] / shares[0])
        offset += 1
    for s in range(len(first) - 1):
        for c in range(first[s] + 1, first[s + 1]):
            for g in range(output_table.shape[1]):
                q[offset] = math.log(output_table[c, g] / output_table[first[s], g])
                offset += 1


@jit
def unpack_shares_and_rows(q, offset, still, distinct, shares, output_table):
    """Read class shares and rows of systems from the free numbers from `at` on; returns their log prior."""
    first, row_prior = distinct[1][1], distinct[1][3]
    value = 0.0
    total = 1.0
    shares[0] = 1.0
    for y in range(1, len(shares)):
        shares[y] = math.exp(min(q[offset], 50.0))
        total += shares[y]
        offset += 1
    for y in range(len(shares)):
        shares[y] = max(shares[y] / total, 1e-12)
        value += math.log(shares[y])
    n_groups = output_table.shape[1]
    for s in range(len(first) - 1):
        for g in range(n_groups):
            if still[s, g]:
                continue
            total = 1.0
            for c in range(first[s] + 1, first[s + 1]):
                output_table[c, g] = math.exp(min(q[offset + (c - first[s] - 1) * n_groups + g], 50.0))
                total += output_table[c, g]
            output_table[first[s], g] = 1.0
            for c in range(first[s], first[s + 1]):
                output_table[c, g] = max(output_table[c, g] / total, FLOOR)
                value += row_prior[c, g] * math.log(output_table[c, g])
        offset += (first[s + 1] - first[s] - 1) * n_groups
    return value


@jit
def fill_gradient_of_shares_and_rows(offset, still, distinct, work, shares, output_table, gradient):
    """The gradient by the free numbers of class shares and rows of systems, from `at` on; `work` is from `expect`."""
    first, row_prior = distinct[1][1], distinct[1][3]
    class_items, expected_outputs = work[1], work[2]
    items = 0.0
    for y in range(len(shares)):
        items += class_items[y] + 1.0
    for y in range(1, len(shares)):
        gradient[offset] = class_items[y] + 1.0 - items * shares[y]
        offset += 1
    n_groups = output_table.shape[1]
    for s in range(len(first) - 1):
        for g in range(n_groups):
            mass = 0.0
            for c in range(first[s], first[s + 1]):
                mass += row_prior[c, g] + expected_outputs[c, g]
            for c in range(first[s] + 1, first[s + 1]):
                j = offset + (c - first[s] - 1) * n_groups + g
                gradient[j] = 0.0
                if not still[s, g]:
                    gradient[j] = row_prior[c, g] + expected_outputs[c, g] - mass * output_table[c, g]
        offset += (first[s + 1] - first[s] - 1) * n_groups


@jit
def find_still_rows(systems, output_table):
    """Which rows of systems stay as they are: those with a rare answer, and of systems that count for less than one."""
    first, power = systems[1], systems[2]
    still = np.zeros((len(power), output_table.shape[1]), np.bool_)
    for s in range(len(power)):
        for g in range(output_table.shape[1]):
            still[s, g] = power[s] != 1.0 or output_table[first[s] : first[s + 1], g].min() < LEAST_ROW
    return still


@jit
def has_low_row(systems, still, output_table):
    """Whether a row that moved has become one that would stay as it is: there would be no way back."""
    first = systems[1]
    for s in range(len(still)):
        for g in range(output_table.shape[1]):
            if not still[s, g] and output_table[first[s] : first[s + 1], g].min() < LEAST_ROW:
                return True
    return False


@jit
def learn(q, chance, mean, covariance, root, progress):
    """Learn step and scale (`StepScale`) from one more step of the warm-up; uses up `q`."""
    n = len(q)
    joint = root.shape[1] == n
    progress[0] += 1.0
    progress[1] += (chance - ACCEPTED) / math.sqrt(progress[0])
    rate = 1.0 / (progress[0] / 2 + 10.0)
    for j in range(n):
        q[j] = min(max(q[j], -FURTHEST), FURTHEST) - mean[j]
        mean[j] += rate * q[j]
    for j in range(n):
        if joint:
            for k in range(n):
                covariance[j, k] = (1 - rate) * (covariance[j, k] + rate * q[j] * q[k])
        else:
            covariance[j, 0] = (1 - rate) * (covariance[j, 0] + rate * q[j] * q[j])
    if progress[0] % LEARNED_EVERY == 0:
        if joint:
            part = progress[0] / (progress[0] + 5.0 * n)
            shrunk = np.empty((n, n))
            for j in range(n):
                for k in range(n):
                    shrunk[j, k] = covariance[j, k] * part
                shrunk[j, j] = covariance[j, j] + 1e-4
            copy_table(np.linalg.cholesky(shrunk), root)
        else:
            for j in range(n):
                root[j, 0] = math.sqrt(covariance[j, 0] + 1e-4)


@jit
def push(size, root, gradient, v):
    """Change the velocity `v` by the gradient."""
    n = len(v)
    for j in range(n):
        push = size * gradient[j]
        if root.shape[1] == n:
            for k in range(j + 1):
                v[k] += push * root[j, k]
        else:
            v[j] += push * root[j, 0]


@jit
def shift(size, root, v, q):
    """Change the free numbers `q` by the velocity."""
    n = len(v)
    for j in range(n):
        if root.shape[1] == n:
            total = 0.0
            for k in range(j + 1):
                total += root[j, k] * v[k]
            q[j] += size * total
        else:
            q[j] += size * root[j, 0] * v[j]


@jit
def copy_row(source, target):
    """Copy number by number."""
    for j in range(len(target)):
        target[j] = source[j]


@jit
def copy_table(source, target):
    """Copy number by number."""
    for j in range(target.shape[0]):
        for k in range(target.shape[1]):
            target[j, k] = source[j, k]


@jit
def sigmoid(x):
    """The logistic function."""
    return 1.0 / (1.0 + math.exp(-x)) if x > 0 else 1.0 - 1.0 / (1.0 + math.exp(x))


@jit
def set_thresholds(gaps, stretch, bias, own):
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


@jit
def fill_table(classes, gaps, own, rates, table):
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


@jit
def _pack(gaps, own, shares, output_table, first, q):
    """Write the parameters down as free numbers."""
    offset = 0
    for gap in gaps:
        q[offset] = gap
        offset += 1
    for t in range(own.shape[0]):
        for k in range(own.shape[1]):
            q[offset] = own[t, k]
            offset += 1
    pack_shares_and_rows(shares, output_table, first, offset, q)


@jit
def _add_rater(expected, classes, n_answers, t, points, own, by_point, gradient):
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


@jit
def evaluate(q, still, given, work, parts, gradient):
    """Log-density of the free numbers `q`; fills its gradient and `parts`."""
    classes, rates, laws, hyper, distinct = given
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
    offset = n_gaps
    for t in range(n_raters):
        for k in range(n_own):
            respect = k if k < 2 else (3 if k == n_own - 1 else 2)
            away = q[offset] - (laws[0] if respect == 3 else 0.0)
            variance = math.exp(2 * laws[1 + respect])
            own[t, k] = q[offset]
            value -= away**2 / (2 * variance)
            gradient[offset] = -away / variance
            offset += 1
    value += unpack_shares_and_rows(q, offset, still, distinct, shares, output_table)
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
    fill_gradient_of_shares_and_rows(offset, still, distinct, work, shares, output_table, gradient)
    return value


@jit
def step(moved, proposed, given, work, step_scale, learns, rng):
    """One Hamiltonian step; changes `moved`, and `step_scale` where it learns."""
    gaps, own, shares, table, output_table = moved
    systems = given[4][1]
    mean, covariance, root, progress = step_scale
    n = len(mean)
    still = find_still_rows(systems, output_table)
    copy_table(output_table, proposed[4])
    q, gradient, v = np.empty(n), np.empty(n), np.empty(n)
    _pack(gaps, own, shares, output_table, systems[1], q)
    start = q.copy()
    value = evaluate(q, still, given, work, proposed, gradient)
    change = -value
    for j in range(n):
        v[j] = rng.standard_normal()
        change += v[j] ** 2 / 2
    size = math.exp(progress[1] + JITTER * (rng.random() - 0.5))
    new = value
    for _ in range(N_LEAPFROG // 2 + int(rng.random() * N_LEAPFROG) + 1):
        push(size / 2, root, gradient, v)
        shift(size, root, v, q)
        new = evaluate(q, still, given, work, proposed, gradient)
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


@jit
def _value(counts, gaps, bias, sharp, stretch, lapse, own):
    """Log-likelihood of the ratings of one rater, counts of shape (classes, ratings)."""
    n_classes = len(counts)
    set_thresholds(gaps, stretch, bias, own)
    scale, chance = math.exp(sharp), sigmoid(lapse)
    value = 0.0
    place = 0.0
    for y in range(n_classes):
        below = 0.0
        for k in range(n_classes):
            upto = sigmoid(scale * (own[k] - place)) if k < n_classes - 1 else 1.0
            if counts[y, k] > 0.0:
                value += counts[y, k] * math.log(max((1 - chance) * (upto - below) + chance / n_classes, 1e-12))
            below = upto
        if y < n_classes - 1:
            place += math.exp(gaps[2 * y]) + math.exp(gaps[2 * y + 1])
    return value


@jit
def _log_gaps(gaps, hyper):
    value = 0.0
    for gap in gaps:
        value -= (gap - hyper[0]) ** 2
    return value / (2 * hyper[1] ** 2)


@jit
def _is_accepted(change, rng):
    return math.log(max(rng.random(), 1e-300)) < change


@jit
def _move_raters(counts, gaps, own, laws, steps, rate, values, moved, rng):
    """Each rater in each respect: bias, sharpness, stretch, lapse. The columns of `own` are these."""
    n_raters, n_classes = counts.shape[0], counts.shape[1]
    thresholds = np.empty(n_classes - 1)
    n_own = own.shape[1]
    for t in range(n_raters):
        for respect in range(4):
            low = respect if respect < 3 else n_own - 1
            high = n_own - 1 if respect == 2 else low + 1
            if low == high:
                continue
            spread = math.exp(laws[1 + respect])
            centre = laws[0] if respect == 3 else 0.0
            change = 0.0
            for k in range(n_own):
                moved[k] = own[t, k]
            for k in range(low, high):
                moved[k] += math.exp(steps[respect, t]) * rng.standard_normal()
                change += ((own[t, k] - centre) ** 2 - (moved[k] - centre) ** 2) / (2 * spread**2)
            value = _value(counts[t], gaps, moved[0], moved[1], moved[2 : n_own - 1], moved[n_own - 1], thresholds)
            accepted = _is_accepted(change + value - values[t], rng)
            if accepted:
                values[t] = value
                for k in range(low, high):
                    own[t, k] = moved[k]
            steps[respect, t] = min(steps[respect, t] + rate * ((1.0 if accepted else 0.0) - 0.35), math.log(3.0))


@jit
def _move_gaps(counts, gaps, own, steps, hyper, rate, values, rng):
    """Each gap in turn."""
    n_raters, n_classes = counts.shape[0], counts.shape[1]
    thresholds = np.empty(n_classes - 1)
    n_own = own.shape[1]
    proposed = np.empty(n_raters)
    for k in range(len(gaps)):
        before = gaps[k]
        change = -_log_gaps(gaps, hyper)
        gaps[k] += math.exp(steps[k]) * rng.standard_normal()
        change += _log_gaps(gaps, hyper)
        for t in range(n_raters):
            proposed[t] = _value(
                counts[t], gaps, own[t, 0], own[t, 1], own[t, 2 : n_own - 1], own[t, n_own - 1], thresholds
            )
            change += proposed[t] - values[t]
        accepted = _is_accepted(change, rng)
        if accepted:
            values[:] = proposed
        else:
            gaps[k] = before
        steps[k] = min(steps[k] + rate * ((1.0 if accepted else 0.0) - 0.35), math.log(3.0))


@jit
def _move_together(gaps, own, laws, hyper, rng):
    """Thresholds and biases up, then the whole scale wider; see `OrdinalSampler`."""
    n = len(own)
    bias_scale, sharp_scale = math.exp(laws[1]), math.exp(laws[2])
    step = _SCALE * rng.standard_normal() * bias_scale / math.sqrt(n)
    moved = np.exp(gaps)
    for k in range(len(gaps)):
        moved[k] += step if k % 2 == 0 else -step
    if moved.min() > 0:
        moved = np.log(moved)
        change = _log_gaps(moved, hyper) - _log_gaps(gaps, hyper) - (moved - gaps).sum()
        for t in range(n):
            change += (own[t, 0] ** 2 - (own[t, 0] + step) ** 2) / (2 * bias_scale**2)
        if _is_accepted(change, rng):
            gaps[:] = moved
            own[:, 0] += step
    step = _SCALE * rng.standard_normal() / math.sqrt(len(gaps) / hyper[1] ** 2 + n / sharp_scale**2)
    change = _log_gaps(gaps + step, hyper) - _log_gaps(gaps, hyper) + n * step
    for t in range(n):
        change += own[t, 0] ** 2 * (1 - math.exp(2 * step)) / (2 * bias_scale**2)
        change += (own[t, 1] ** 2 - (own[t, 1] - step) ** 2) / (2 * sharp_scale**2)
    if _is_accepted(change, rng):
        gaps += step
        own[:, 0] *= math.exp(step)
        own[:, 1] -= step


@jit
def _draw_laws(own, laws, hyper, rng):
    """The mean of lapses, then how much raters differ in each respect."""
    n, n_own = own.shape
    scale = math.exp(laws[4])
    precision = hyper[3] ** -2 + n / scale**2
    centre = (hyper[2] / hyper[3] ** 2 + own[:, n_own - 1].sum() / scale**2) / precision
    laws[0] = centre + rng.standard_normal() / math.sqrt(precision)
    for respect in range(4):
        low = respect if respect < 3 else n_own - 1
        high = n_own - 1 if respect == 2 else low + 1
        squares = 0.0
        for t in range(n):
            for k in range(low, high):
                squares += (own[t, k] - (laws[0] if respect == 3 else 0.0)) ** 2
        size = n * (high - low)
        now = laws[1 + respect]
        new = now + _SCALE / math.sqrt(2.0 + 2.0 * size) * rng.standard_normal()
        change = (1 - size) * (new - now) - squares / 2 * (math.exp(-2 * new) - math.exp(-2 * now))
        change -= (math.exp(2 * new) - math.exp(2 * now)) / (2 * hyper[4 + respect] ** 2)
        if _is_accepted(change, rng):
            laws[1 + respect] = new


@jit
def move(counts, gaps, own, laws, steps, gap_steps, hyper, rate, once, rng):
    """All parameters, `once` or some times over; counts are (raters, classes, ratings), in the order of the classes."""
    n_raters = len(counts)
    n_own = own.shape[1]
    thresholds = np.empty(counts.shape[1] - 1)
    values = np.empty(n_raters)
    moved = np.empty(n_own)
    for _ in range(1 if once or n_raters > _FEW_RATERS else _REPEATS):
        for t in range(n_raters):
            values[t] = _value(
                counts[t], gaps, own[t, 0], own[t, 1], own[t, 2 : n_own - 1], own[t, n_own - 1], thresholds
            )
        _move_raters(counts, gaps, own, laws, steps, rate, values, moved, rng)
        _move_gaps(counts, gaps, own, gap_steps, hyper, rate, values, rng)
        _move_together(gaps, own, laws, hyper, rng)
        _draw_laws(own, laws, hyper, rng)


@jit
def draw_ratings(model, totals, table, weights, systems, output_table, warm, rng):
    """All that raters do, rates of abstention, class shares and rows of systems; sometimes all of them together."""
    flat, state_counts, _, output_counts = totals
    classes, gaps, own, laws, hyper = model.classes, model.gaps, model.own, model.laws, model.hyper
    n_raters, n_classes = len(own), len(classes)
    counts = flat.reshape(n_raters, len(flat) // n_raters, n_classes)
    rated = np.empty((n_raters, n_classes, n_classes))
    for t in range(n_raters):
        for y in range(n_classes):
            for k in range(n_classes):
                rated[t, y, k] = counts[t, classes[k], classes[y]]
    n_sweeps = model.n_sweeps
    rate = 1.0 / math.sqrt(1.0 + n_sweeps[0] / 4) if n_sweeps[0] < _TUNED_SWEEPS else 0.0
    with_steps = len(model.step_scale[0]) > 0
    move(rated, gaps, own, laws, model.steps, model.gap_steps, hyper, rate, with_steps, rng)
    n_sweeps[0] += 1
    draw_rates(counts, n_classes, model.rates, rng)
    fill_table(classes, gaps, own, model.rates, table)
    draw_weights(state_counts, weights, rng)
    draw_output_rows(output_counts, systems[1], systems[3], systems[2], output_table, rng)
    if with_steps and n_sweeps[0] > BURN_IN and n_sweeps[0] % model.every == 0:
        moved = (gaps, own, weights, table, output_table)
        given = (classes, model.rates, laws, hyper, model.distinct)
        proposed = (gaps.copy(), own.copy(), weights.copy(), table.copy(), output_table.copy())
        expected = (np.empty_like(table), np.empty(n_classes), np.empty_like(output_table), np.empty(n_classes))
        step(moved, proposed, given, expected, model.step_scale, warm, rng)
    if not warm:
        for t in range(n_raters):
            model.sharpness[t] += math.exp(own[t, 1])


class RatingState(NamedTuple):
    """Where a chain of ratings stands.

    `classes` are from the lowest to the highest; `gaps`, `own` (a row for each rater) and `laws` (the mean of the
    lapses, and how much raters differ in each respect) move, by `steps` and `gap_steps`; `hyper` are their priors.
    `n_sweeps` has the sweeps made, `sharpness` the sum over the draws, and `distinct` the items (`distinct_items`).
    """

    labels: Integers
    classes: Integers
    gaps: Floats
    own: Floats
    laws: Floats
    steps: Floats
    gap_steps: Floats
    hyper: Floats
    rates: Floats
    n_sweeps: Integers
    sharpness: Floats
    step_scale: tuple[Floats, ...]
    every: int
    distinct: Any


DRAWS[RatingState] = draw_ratings
