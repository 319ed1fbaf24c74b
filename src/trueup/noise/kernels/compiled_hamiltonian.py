"""What Hamiltonian steps are made of (`trueup.noise.hamiltonian`); imported only where numba is installed."""

from __future__ import annotations

import math

import numba
import numpy as np

from trueup.noise.hamiltonian import ACCEPTED, FURTHEST, LEARNED_EVERY, LEAST_ROW, N_LEAPFROG, SWEEPS_A_STEP
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
    return max(_LEAST_SWEEPS, min(SWEEPS_A_STEP, round(N_LEAPFROG * leap / (3 * sweep))))


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
def expect(distinct, shares, table, output_table, work):  # type: ignore[no-untyped-def]
    """Log P(what is said of all items), their classes summed over; `work` gets what is expected of the counts then."""
    votes, systems, gold, item_prior, times = distinct
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
            own[y] = max(item_prior[i, y], FLOOR) if len(item_prior) > 0 else shares[y]
            if gold[i] >= 0 and gold[i] != y:
                own[y] = 0.0
        log_scale = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            said = table[indices[j]]
            if data[j] == 1.0:
                for y in range(n_classes):
                    own[y] *= said[y]
            else:
                for y in range(n_classes):
                    own[y] *= said[y] ** data[j]
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
        value += times[i] * (log_scale + math.log(total))
        share = times[i] / total
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
    """Which rows of systems stay as they are: those with a rare answer, and of systems that count for less than one."""
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
def learn(q, chance, mean, covariance, root, progress):  # type: ignore[no-untyped-def]
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
