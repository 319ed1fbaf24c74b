"""The states of items drawn one by one in compiled code, and what a draw leaves; for all chains of the sampler.

`votes` is a table of counts by item (indptr, indices, data) and, of items of which all is said alike, a place that they
share, -1 for an item that has no like.

What is handed on is `np.int64(0)` and not 0, of which numba would compile a version of its own; and arrays are copied
number by number, since what numba brings along to say that shapes differ takes longer to compile than the rest.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[Any]

_RESCALE_EVERY = 16
_BLOCK = 64  # items that a call is for: handing over all the arrays takes as long as one item
FLOOR = 1e-10


@numba.njit(cache=True, nogil=True)
def _digamma(x):  # type: ignore[no-untyped-def]
    value = 0.0
    while x < 6.0:
        value -= 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    return value + math.log(x) - 0.5 / x - square * (1.0 / 12 - square * (1.0 / 120 - square / 252))


@numba.njit(cache=True, nogil=True)
def draw_output_rows(counts, first, row_prior, power, table, rng):  # type: ignore[no-untyped-def]
    """Rows of the systems' outputs in each state, as each system counts; see `system_outputs.OutputRows`."""
    for s in range(len(power)):
        for g in range(counts.shape[1]):
            total = 0.0
            mass = 0.0
            for c in range(first[s], first[s + 1]):
                table[c, g] = max(rng.standard_gamma(row_prior[c, g] + counts[c, g]), 1e-100)
                total += table[c, g]
                mass += row_prior[c, g] + counts[c, g]
            for c in range(first[s], first[s + 1]):
                table[c, g] = max(table[c, g] / total, FLOOR)
                if power[s] != 1.0:
                    mean = max(_digamma(row_prior[c, g] + counts[c, g]) - _digamma(mass), math.log(FLOOR))
                    value = math.log(table[c, g]) - mean
                    table[c, g] = math.exp(power[s] * mean + math.sqrt(power[s]) * value)


@numba.njit(cache=True, nogil=True)
def _weigh_states(start, stop, votes, systems, gold, item_prior, parts, rows):  # type: ignore[no-untyped-def]
    """P(state and what is said of an item), of each state but for a scale, for the items from `start` to `stop`.

    Items that share a place share a row of `rows`, which is filled once; those without one have the rows behind.
    """
    indptr, indices, data, place = votes
    outputs, first, power, _ = systems
    labels, weights, table, output_table = parts
    first_item, chances, sums, _ = rows
    n_states = len(weights)
    n_places = len(first_item) - _BLOCK
    first_item[n_places:] = -1
    class_weight = np.zeros(labels.max() + 1)
    for g in range(n_states):  # with an item prior, weights only share out a class to its states
        class_weight[labels[g]] += weights[g]
    for i in range(start, stop):
        at = place[i] if place[i] >= 0 else n_places + i - start
        if at < n_places and first_item[at] >= 0:
            continue
        first_item[at] = i
        log_scale = 0.0
        for g in range(n_states):
            chances[at, g] = weights[g] if gold[i] < 0 or labels[g] == gold[i] else 0.0
            if len(item_prior) > 0:
                chances[at, g] *= max(item_prior[i, labels[g]], FLOOR) / class_weight[labels[g]]
        factors = 0
        for j in range(indptr[i], indptr[i + 1]):
            column = indices[j]
            whole = int(data[j])
            part = data[j] - whole
            if part > 0.0:
                for g in range(n_states):
                    chances[at, g] *= table[column, g] ** part
                factors += 1
            for _ in range(whole):
                for g in range(n_states):
                    chances[at, g] *= table[column, g]
                factors += 1
                if factors >= _RESCALE_EVERY:
                    top = 0.0
                    for g in range(n_states):
                        top = max(top, chances[at, g])
                    for g in range(n_states):
                        chances[at, g] /= top
                    log_scale += math.log(top)
                    factors = 0
        for s in range(len(power)):
            if outputs[s, i] >= 0:
                column = first[s] + outputs[s, i]
                for g in range(n_states):
                    chances[at, g] *= output_table[column, g]
        total = 0.0
        for g in range(n_states):
            total += chances[at, g]
        sums[at, 0] = log_scale + math.log(total)
        sums[at, 1] = total


@numba.njit(cache=True, nogil=True)
def _draw_block(start, stop, place, labels, rows, states, truth, rng):  # type: ignore[no-untyped-def]
    """Draw the states of the items from `start` to `stop`, in their order; returns their log-likelihood."""
    first_item, chances, sums, times = rows
    n_places, n_states = len(first_item) - _BLOCK, chances.shape[1]
    log_likelihood = 0.0
    for i in range(start, stop):
        at = place[i] if place[i] >= 0 else n_places + i - start
        log_likelihood += sums[at, 0]
        rest = rng.random() * sums[at, 1]
        drawn = -1
        for g in range(n_states):
            if chances[at, g] > 0.0:
                drawn = g
                rest -= chances[at, g]
                if rest < 0.0:
                    break
        states[i] = drawn
        times[at, drawn] += 1.0
        if len(truth) > 0:
            truth[i] = labels[drawn]
    return log_likelihood


@numba.njit(cache=True, nogil=True)
def _tally(first_row, last_row, rows, votes, systems, gold, item_prior, totals):  # type: ignore[no-untyped-def]
    """Count what is said of the items of some rows as often as each state was drawn there, and forget the times."""
    indptr, indices, data, _ = votes
    outputs, first, power, _ = systems
    counts, state_counts, held, output_counts, evidence = totals
    first_item, _, _, times = rows
    for at in range(first_row, last_row):
        i = first_item[at]
        if i < 0:
            continue
        for g in range(len(state_counts)):
            n = times[at, g]
            if n == 0.0:
                continue
            times[at, g] = 0.0
            state_counts[g] += n
            if gold[i] >= 0:
                held[g, gold[i]] += n
            for j in range(indptr[i], indptr[i + 1]):
                counts[indices[j], g] += n * data[j]
            for s in range(len(power)):
                if outputs[s, i] >= 0:
                    output_counts[first[s] + outputs[s, i], g] += n
            if len(item_prior) > 0:
                for y in range(evidence.shape[1]):
                    evidence[g, y] += n * math.log(max(item_prior[i, y], FLOOR))


@numba.njit(cache=True, nogil=True)
def _observe(first_row, last_row, rows, labels, posterior):  # type: ignore[no-untyped-def]
    """Add the chances of the classes of some rows."""
    first_item, chances, sums, _ = rows
    for at in range(first_row, last_row):
        i = first_item[at]
        if i < 0:
            continue
        for g in range(chances.shape[1]):
            posterior[i, labels[g]] += chances[at, g] / sums[at, 1]


@numba.njit(cache=True, nogil=True)
def draw_states(  # type: ignore[no-untyped-def]
    votes, systems, gold, item_prior, parts, states, totals, keep, out, rng
):
    """Draw the state of each item given all parameters, and count; returns the log-likelihood.

    Items of which all is said alike have the same chances: these are worked out once, and what is said is counted and
    recorded once, at the first of them. `keep` says what is recorded: 0 nothing, 1 the chances of the classes, 2 these
    and the truth.
    """
    place = votes[3]
    labels, weights, _, _ = parts
    totals[0][:] = 0.0
    totals[1][:] = 0.0
    totals[2][:] = 0.0
    totals[3][:] = 0.0
    totals[4][:] = 0.0
    n_places = np.int64(0)
    for i in range(len(place)):
        n_places = max(n_places, place[i] + 1)
    n_rows = n_places + _BLOCK
    n_states = len(weights)
    # The first item of a row, the chances of its states, their sums, and how often each was drawn.
    rows = (
        np.full(n_rows, -1),
        np.empty((n_rows, n_states)),
        np.empty((n_rows, 2)),
        np.zeros((n_rows, n_states)),
    )
    truth = out[1] if keep > 1 else out[1][:0]
    log_likelihood = 0.0
    for start in range(0, len(gold), _BLOCK):
        stop = min(start + _BLOCK, len(gold))
        _weigh_states(start, stop, votes, systems, gold, item_prior, parts, rows)
        log_likelihood += _draw_block(start, stop, place, labels, rows, states, truth, rng)
        _tally(n_places, n_rows, rows, votes, systems, gold, item_prior, totals)
        if keep > 0:
            _observe(n_places, n_rows, rows, labels, out[0])
    _tally(np.int64(0), n_places, rows, votes, systems, gold, item_prior, totals)
    if keep > 0:
        _observe(np.int64(0), n_places, rows, labels, out[0])
    return log_likelihood


@numba.njit(cache=True, nogil=True)
def advance(  # type: ignore[no-untyped-def]
    k, next_kept, votes, systems, gold, item_prior, parts, states, totals, kept, out, rng, done
):
    """Draw rows of systems and states of items as draw `k` (below 0: warm-up); the next draw whose truth is kept.

    `done` gets the number of sweeps and, after it, the log-likelihood.
    """
    _, first, power, row_prior = systems
    draw_output_rows(totals[3], first, row_prior, power, parts[3], rng)
    return advance_states(k, next_kept, votes, systems, gold, item_prior, parts, states, totals, kept, out, rng, done)


@numba.njit(cache=True, nogil=True)
def advance_states(  # type: ignore[no-untyped-def]
    k, next_kept, votes, systems, gold, item_prior, parts, states, totals, kept, out, rng, done
):
    """As `advance`, where the rows of systems are drawn."""
    posterior, truths = out
    keep = 0
    if k >= 0:
        keep = 2 if next_kept < len(kept) and kept[next_kept] == k else 1
    recorded = (posterior, truths[min(next_kept, len(truths) - 1)])
    done[1] = draw_states(votes, systems, gold, item_prior, parts, states, totals, keep, recorded, rng)
    done[0] += 1
    return next_kept + (keep > 1)


@numba.njit(cache=True, nogil=True)
def count(votes, systems, gold, item_prior, states, totals):  # type: ignore[no-untyped-def]
    """The counts that the states of a start give."""
    n_states = len(totals[1])
    rows = (np.zeros(1, np.int64), np.empty((0, n_states)), np.empty((0, 2)), np.zeros((1, n_states)))
    for i in range(len(gold)):
        rows[0][0] = i
        rows[3][0, states[i]] = 1.0
        _tally(np.int64(0), np.int64(1), rows, votes, systems, gold, item_prior, totals)


@numba.njit(cache=True, nogil=True)
def record(k, labels, weights, counts, table, n_labelers, n_answers, volume, out):  # type: ignore[no-untyped-def]
    """Class shares, accuracies of labelers, and counts and matrices of further raters, of one draw."""
    out_prior, out_accuracy, out_counts, out_confusion = out
    n_raters, n_classes = out_counts.shape[1], out_counts.shape[2]
    for g in range(len(weights)):
        y = labels[g]
        out_prior[k, y] += weights[g]
        for t in range(n_labelers):
            out_accuracy[k, t] += counts[t * n_answers + y, g]
        for r in range(n_raters):
            for a in range(n_answers):
                column = (n_labelers + r) * n_answers + a
                out_counts[k, r, y, a] += counts[column, g]
                out_confusion[k, r, y, a] += weights[g] * table[column, g]
    for t in range(n_labelers):
        out_accuracy[k, t] = out_accuracy[k, t] / volume[t] if volume[t] > 0 else np.nan
    for r in range(n_raters):
        for y in range(n_classes):
            total = 0.0
            for a in range(n_answers):
                total += out_confusion[k, r, y, a]
            for a in range(n_answers):
                out_confusion[k, r, y, a] /= max(total, 1e-300)


@numba.njit(cache=True, nogil=True)
def volumes(votes, n_labelers, n_answers):  # type: ignore[no-untyped-def]
    """How many votes each labeler gave."""
    _, indices, data, _ = votes
    volume = np.zeros(n_labelers)
    for j in range(len(indices)):
        t = indices[j] // n_answers
        if t < n_labelers:
            volume[t] += data[j]
    return volume
