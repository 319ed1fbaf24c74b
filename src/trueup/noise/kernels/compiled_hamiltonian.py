"""The steps of `trueup.noise.hamiltonian`, compiled; imported only where numba is installed."""

from __future__ import annotations

import math

import numba
import numpy as np

from trueup.noise.hamiltonian import ACCEPTED, FURTHEST, JITTER, LEARNED_EVERY, LEAST_ROW, N_LEAPS, SWEEPS_A_STEP, WORST
from trueup.noise.kernels.compiled_states import FLOOR

_RESCALE_EVERY = 16
_LEAST_SWEEPS = 2


@numba.njit(cache=True, nogil=True)
def sweeps_a_step(distinct, n_items, n_raters, rater_work):  # type: ignore[no-untyped-def]
    """After how many sweeps a step is due, so that steps take about as long as the sweeps, or twice as long.

    Work is counted in states: those of an item or of a rater that a leap or a sweep goes through, of each rater
    `rater_work` in a sweep.
    """
    leap = 2 * len(distinct[0][1]) + 6 * len(distinct[2]) + 12 * n_raters
    sweep = 2 * n_items + rater_work * n_raters
    return max(_LEAST_SWEEPS, min(SWEEPS_A_STEP, round(N_LEAPS * leap / (3 * sweep))))


@numba.njit(cache=True, nogil=True)
def fill_table(levels, slopes, wrong_rows, grid, table):  # type: ignore[no-untyped-def]
    """P(answer | rater, state), of rows (rater, answer) and columns (class, point)."""
    n_raters, n_classes = levels.shape
    n_points = len(grid)
    n_answers = wrong_rows.shape[2]
    for t in range(n_raters):
        slope = math.exp(slopes[t])
        for y in range(n_classes):
            for k in range(n_points):
                right = 1.0 / (1.0 + math.exp(-levels[t, y] - slope * grid[k]))
                for a in range(n_answers):
                    chance = right if a == y else (1.0 - right) * wrong_rows[t, y, a]
                    table[t * n_answers + a, y * n_points + k] = max(chance, FLOOR)


@numba.njit(cache=True, nogil=True)
def distinct_items(votes, systems, gold, item_prior):  # type: ignore[no-untyped-def]
    """The first of items of which all is said alike, as items of their own, and how many there are of each."""
    indptr, indices, data, place = votes
    outputs, first, power, row_prior = systems
    n_items = len(gold)
    at_place = np.full(n_items + 1, -1)
    chosen = np.empty(n_items, np.int64)
    times = np.zeros(n_items)
    n = 0
    for i in range(n_items):
        at = at_place[place[i]] if place[i] >= 0 else -1
        if at < 0:
            at = n
            n += 1
            chosen[at] = i
            if place[i] >= 0:
                at_place[place[i]] = at
        times[at] += 1.0
    starts = np.zeros(n + 1, np.int64)
    for r in range(n):
        starts[r + 1] = starts[r] + indptr[chosen[r] + 1] - indptr[chosen[r]]
    columns = np.empty(starts[n], np.int64)
    counts = np.empty(starts[n])
    own_outputs = np.empty((outputs.shape[0], n), np.int64)
    own_gold = np.empty(n, gold.dtype)
    own_prior = np.empty((n if len(item_prior) > 0 else 0, item_prior.shape[1]))
    for r in range(n):
        i = chosen[r]
        for j in range(indptr[i + 1] - indptr[i]):
            columns[starts[r] + j] = indices[indptr[i] + j]
            counts[starts[r] + j] = data[indptr[i] + j]
        for s in range(outputs.shape[0]):
            own_outputs[s, r] = outputs[s, i]
        own_gold[r] = gold[i]
        for y in range(own_prior.shape[1] if len(item_prior) > 0 else 0):
            own_prior[r, y] = item_prior[i, y]
    own_systems = (own_outputs, first, power, row_prior)
    return (starts, columns, counts), own_systems, own_gold, own_prior, times[:n].copy()


@numba.njit(cache=True, nogil=True)
def expect(distinct, n_points, group, shares, weights, table, output_table, work):  # type: ignore[no-untyped-def]
    """Log P(what is said of all items), their states summed over; `work` gets what is expected of the counts then.

    States are ordered by class. What is expected of outputs is counted by state first.
    """
    votes, systems, gold, item_prior, times = distinct
    indptr, indices, data = votes
    outputs, first, power, _ = systems
    expected, class_items, expected_outputs, by_state, expected_by_state, own = work
    n_states = len(weights)
    n_classes = len(class_items)
    expected[:] = 0.0
    class_items[:] = 0.0
    expected_outputs[:] = 0.0
    expected_by_state[:] = 0.0
    for c in range(by_state.shape[0]):
        for g in range(n_states):
            by_state[c, g] = output_table[c, group[g]]
    value = 0.0
    for i in range(len(gold)):
        if gold[i] >= 0:
            own[:] = 0.0
            for g in range(gold[i] * n_points, (gold[i] + 1) * n_points):
                own[g] = weights[g]
        else:
            for g in range(n_states):
                own[g] = weights[g]
        if len(item_prior) > 0:  # weights only share out a class to its states
            for y in range(n_classes):
                factor = max(item_prior[i, y], FLOOR) / shares[y]
                for g in range(y * n_points, (y + 1) * n_points):
                    own[g] *= factor
        log_scale = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            said = table[indices[j]]
            if data[j] == 1.0:
                for g in range(n_states):
                    own[g] *= said[g]
            else:
                for g in range(n_states):
                    own[g] *= said[g] ** data[j]
            if (j - indptr[i]) % _RESCALE_EVERY == _RESCALE_EVERY - 1 or data[j] > _RESCALE_EVERY:
                top = own.max()
                for g in range(n_states):
                    own[g] /= top
                log_scale += math.log(top)
        for s in range(len(power)):
            if outputs[s, i] >= 0:
                said = by_state[first[s] + outputs[s, i]]
                for g in range(n_states):
                    own[g] *= said[g]
        total = 0.0
        for g in range(n_states):
            total += own[g]
        value += times[i] * (log_scale + math.log(total))
        share = times[i] / total
        for g in range(n_states):
            own[g] *= share
        for j in range(indptr[i], indptr[i + 1]):
            of_column = expected[indices[j]]
            weight = data[j]
            for g in range(n_states):
                of_column[g] += weight * own[g]
        for y in range(n_classes):
            for g in range(y * n_points, (y + 1) * n_points):
                class_items[y] += own[g]
        for s in range(len(power)):
            if outputs[s, i] >= 0:
                of_column = expected_by_state[first[s] + outputs[s, i]]
                for g in range(n_states):
                    of_column[g] += own[g]
    for c in range(by_state.shape[0]):
        for g in range(n_states):
            expected_outputs[c, group[g]] += expected_by_state[c, g]
    return value


@numba.njit(cache=True, nogil=True)
def pack(levels, slopes, spread, shares, output_table, first, q):  # type: ignore[no-untyped-def]
    """Write the parameters down as free numbers."""
    n_raters, n_classes = levels.shape
    at = 0
    for t in range(n_raters):
        for y in range(n_classes):
            q[at] = levels[t, y]
            at += 1
    for t in range(n_raters):
        q[at] = slopes[t]
        at += 1
    q[at] = spread[0]
    pack_shares_and_rows(shares, output_table, first, at + 1, q)


@numba.njit(cache=True, nogil=True)
def pack_shares_and_rows(shares, output_table, first, at, q):  # type: ignore[no-untyped-def]
    """Write class shares and rows of systems down as free numbers from `at` on."""
    for y in range(1, len(shares)):
        q[at] = math.log(shares[y] / shares[0])
        at += 1
    for s in range(len(first) - 1):
        for c in range(first[s] + 1, first[s + 1]):
            for g in range(output_table.shape[1]):
                q[at] = math.log(output_table[c, g] / output_table[first[s], g])
                at += 1


@numba.njit(cache=True, nogil=True)
def unpack_shares_and_rows(q, at, still, distinct, shares, output_table):  # type: ignore[no-untyped-def]
    """Read class shares and rows of systems from the free numbers from `at` on; returns their log prior."""
    systems, item_prior = distinct[1], distinct[3]
    first, row_prior = systems[1], systems[3]
    value = 0.0
    total = 1.0
    shares[0] = 1.0
    for y in range(1, len(shares)):
        shares[y] = math.exp(min(q[at], 50.0))
        total += shares[y]
        at += 1
    for y in range(len(shares)):
        shares[y] = max(shares[y] / total, 1e-12)
        if len(item_prior) == 0:
            value += math.log(shares[y])
    n_groups = output_table.shape[1]
    for s in range(len(first) - 1):
        for g in range(n_groups):
            if still[s, g]:
                continue
            total = 1.0
            for c in range(first[s] + 1, first[s + 1]):
                output_table[c, g] = math.exp(min(q[at + (c - first[s] - 1) * n_groups + g], 50.0))
                total += output_table[c, g]
            output_table[first[s], g] = 1.0
            for c in range(first[s], first[s + 1]):
                output_table[c, g] = max(output_table[c, g] / total, FLOOR)
                value += row_prior[c, g] * math.log(output_table[c, g])
        at += (first[s + 1] - first[s] - 1) * n_groups
    return value


@numba.njit(cache=True, nogil=True)
def fill_gradient_of_shares_and_rows(at, still, distinct, work, shares, output_table, gradient):  # type: ignore[no-untyped-def]
    """The gradient by the free numbers of class shares and rows of systems, from `at` on; `work` is from `expect`."""
    systems, item_prior = distinct[1], distinct[3]
    first, row_prior = systems[1], systems[3]
    class_items, expected_outputs = work[1], work[2]
    items = 0.0
    for y in range(len(shares)):
        items += class_items[y] + 1.0
    for y in range(1, len(shares)):
        gradient[at] = 0.0 if len(item_prior) > 0 else class_items[y] + 1.0 - items * shares[y]
        at += 1
    n_groups = output_table.shape[1]
    for s in range(len(first) - 1):
        for g in range(n_groups):
            mass = 0.0
            for c in range(first[s], first[s + 1]):
                mass += row_prior[c, g] + expected_outputs[c, g]
            for c in range(first[s] + 1, first[s + 1]):
                j = at + (c - first[s] - 1) * n_groups + g
                gradient[j] = 0.0
                if not still[s, g]:
                    gradient[j] = row_prior[c, g] + expected_outputs[c, g] - mass * output_table[c, g]
        at += (first[s + 1] - first[s] - 1) * n_groups


@numba.njit(cache=True, nogil=True)
def find_still_rows(systems, output_table):  # type: ignore[no-untyped-def]
    """Which rows of systems stay as they are; see `Landscape.still`."""
    first, power = systems[1], systems[2]
    still = np.zeros((len(power), output_table.shape[1]), np.bool_)
    for s in range(len(power)):
        for g in range(output_table.shape[1]):
            still[s, g] = power[s] != 1.0 or output_table[first[s] : first[s + 1], g].min() < LEAST_ROW
    return still


@numba.njit(cache=True, nogil=True)
def has_low_row(systems, still, output_table):  # type: ignore[no-untyped-def]
    """Whether a row that moved has become one that would stay as it is: there would be no way back."""
    first = systems[1]
    for s in range(len(still)):
        for g in range(output_table.shape[1]):
            if not still[s, g] and output_table[first[s] : first[s + 1], g].min() < LEAST_ROW:
                return True
    return False


@numba.njit(cache=True, nogil=True)
def evaluate(q, still, known, work, parts, gradient):  # type: ignore[no-untyped-def]
    """Log-density of the free numbers `q`; fills its gradient and `parts`, see `Landscape.at`."""
    wrong_rows, grid, grid_weights, hyper, distinct, group = known
    levels, slopes, shares, weights, table, output_table = parts
    expected = work[0]
    mean0, mean_scale, level_scale, slope_scale, spread_scale = hyper
    n_raters, n_classes = levels.shape
    n_points = len(grid)
    n_answers = wrong_rows.shape[2]
    at = 0
    for t in range(n_raters):
        for y in range(n_classes):
            levels[t, y] = q[at]
            at += 1
    for t in range(n_raters):
        slopes[t] = q[at]
        at += 1
    spread = q[at]
    value = unpack_shares_and_rows(q, at + 1, still, distinct, shares, output_table)
    for y in range(n_classes):
        for k in range(n_points):
            weights[y * n_points + k] = shares[y] * grid_weights[k]
    fill_table(levels, slopes, wrong_rows, grid, table)
    value += expect(distinct, n_points, group, shares, weights, table, output_table, work)
    value += spread - math.exp(2 * spread) / (2 * spread_scale**2)
    precision = mean_scale**-2 + n_raters * level_scale**-2
    for y in range(n_classes):
        total = 0.0
        for t in range(n_raters):
            total += (levels[t, y] - mean0) * level_scale**-2
            value -= (levels[t, y] - mean0) ** 2 / (2 * level_scale**2)
        value += total**2 / (2 * precision)
        for t in range(n_raters):
            gradient[t * n_classes + y] = total / precision * level_scale**-2 - (levels[t, y] - mean0) * level_scale**-2
    at = n_raters * n_classes
    slope_sum = 0.0
    for t in range(n_raters):
        slope = math.exp(slopes[t])
        gap = (slopes[t] - spread) / slope_scale**2
        slope_sum += gap
        value -= gap * (slopes[t] - spread) / 2
        of_slope = -gap
        for y in range(n_classes):
            for k in range(n_points):
                g = y * n_points + k
                n = 0.0
                for a in range(n_answers):
                    n += expected[t * n_answers + a, g]
                push = expected[t * n_answers + y, g] - n * table[t * n_answers + y, g]
                gradient[t * n_classes + y] += push
                of_slope += push * slope * grid[k]
        gradient[at + t] = of_slope
    at += n_raters
    gradient[at] = slope_sum + 1.0 - math.exp(2 * spread) / spread_scale**2
    fill_gradient_of_shares_and_rows(at + 1, still, distinct, work, shares, output_table, gradient)
    return value


@numba.njit(cache=True, nogil=True)
def move(moved, proposed, known, work, step_scale, learns, rng):  # type: ignore[no-untyped-def]
    """One Hamiltonian step, see `Landscape.step`; changes `moved`, and `step_scale` where it learns."""
    levels, slopes, means, spread, shares, weights, table, output_table = moved
    hyper, systems = known[3], known[4][1]
    mean, covariance, root, progress = step_scale
    mean0, mean_scale, level_scale = hyper[0], hyper[1], hyper[2]
    n_raters, n_classes = levels.shape
    n = len(mean)
    still = find_still_rows(systems, output_table)
    new_rows = proposed[5]
    copy_table(output_table, new_rows)
    q = np.empty(n)
    gradient = np.empty(n)
    v = np.empty(n)
    pack(levels, slopes, spread, shares, output_table, systems[1], q)
    start = q.copy()
    value = evaluate(q, still, known, work, proposed, gradient)
    change = -value
    for j in range(n):
        v[j] = rng.standard_normal()
        change += v[j] ** 2 / 2
    size = math.exp(progress[1] + JITTER * (rng.random() - 0.5))
    new = value
    for _ in range(N_LEAPS // 2 + int(rng.random() * N_LEAPS) + 1):
        push(size / 2, root, gradient, v)
        shift(size, root, v, q)
        new = evaluate(q, still, known, work, proposed, gradient)
        push(size / 2, root, gradient, v)
        if not new > value + WORST:
            break
    energy = 0.0
    for j in range(n):
        energy += v[j] ** 2
    change += new - energy / 2
    possible = new > value + WORST and not has_low_row(systems, still, new_rows)
    chance = math.exp(min(change, 0.0)) if possible else 0.0
    if rng.random() < chance:
        copy_table(proposed[0], levels)
        copy_row(proposed[1], slopes)
        spread[0] = q[n_raters * (n_classes + 1)]
        copy_row(proposed[2], shares)
        copy_row(proposed[3], weights)
        copy_table(proposed[4], table)
        copy_table(new_rows, output_table)
    else:
        copy_row(start, q)
    precision = mean_scale**-2 + n_raters * level_scale**-2
    for y in range(n_classes):
        centre = (mean0 * mean_scale**-2 + levels[:, y].sum() * level_scale**-2) / precision
        means[y] = centre + rng.standard_normal() / math.sqrt(precision)
    if learns:
        learn(q, chance, mean, covariance, root, progress)


@numba.njit(cache=True, nogil=True)
def learn(q, chance, mean, covariance, root, progress):  # type: ignore[no-untyped-def]
    """See `StepScale.learn`; uses up `q`."""
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


@numba.njit(cache=True, nogil=True)
def push(size, root, gradient, v):  # type: ignore[no-untyped-def]
    """Change the velocity `v` by the gradient."""
    n = len(v)
    for j in range(n):
        push = size * gradient[j]
        if root.shape[1] == n:
            for k in range(j + 1):
                v[k] += push * root[j, k]
        else:
            v[j] += push * root[j, 0]


@numba.njit(cache=True, nogil=True)
def shift(size, root, v, q):  # type: ignore[no-untyped-def]
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


@numba.njit(cache=True, nogil=True)
def copy_row(source, target):  # type: ignore[no-untyped-def]
    """Copy number by number."""
    for j in range(len(target)):
        target[j] = source[j]


@numba.njit(cache=True, nogil=True)
def copy_table(source, target):  # type: ignore[no-untyped-def]
    """Copy number by number."""
    for j in range(target.shape[0]):
        for k in range(target.shape[1]):
            target[j, k] = source[j, k]
