"""The states of items drawn one by one in compiled code, and what a draw leaves; for all chains of the sampler.

`votes` is a table of counts by item (indptr, indices, data) and, of items of which all is said alike, a place that they
share, -1 for an item that has no like.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[Any]

_RESCALE_EVERY = 16
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
    """Rows of the systems' outputs in each group of states, as each system counts; see `chain.OutputRows`."""
    for s in range(len(power)):
        for g in range(counts.shape[1]):
            total = 0.0
            mass = 0.0
            for c in range(first[s], first[s + 1]):
                table[c, g] = max(rng.standard_gamma(row_prior[c] + counts[c, g]), 1e-100)
                total += table[c, g]
                mass += row_prior[c] + counts[c, g]
            for c in range(first[s], first[s + 1]):
                table[c, g] = max(table[c, g] / total, FLOOR)
                if power[s] != 1.0:
                    mean = max(_digamma(row_prior[c] + counts[c, g]) - _digamma(mass), math.log(FLOOR))
                    value = math.log(table[c, g]) - mean
                    table[c, g] = math.exp(power[s] * mean + math.sqrt(power[s]) * value)


@numba.njit(cache=True, nogil=True)
def _weigh_states(  # type: ignore[no-untyped-def]
    i, votes, systems, gold, item_prior, labels, group, weights, class_weight, table, output_table, p
):
    """P(state and what is said of an item), written into `p` but for a scale.

    Returns the log of that scale, the sum before the outputs of systems came in, and the sum of `p`.
    """
    indptr, indices, data, _ = votes
    outputs, first, power, _ = systems
    n_states = len(weights)
    log_scale = 0.0
    for g in range(n_states):
        p[g] = weights[g] if gold[i] < 0 or labels[g] == gold[i] else 0.0
        if len(item_prior) > 0:
            p[g] *= max(item_prior[i, labels[g]], FLOOR) / class_weight[labels[g]]
    factors = 0
    for j in range(indptr[i], indptr[i + 1]):
        column = indices[j]
        whole = int(data[j])
        part = data[j] - whole
        if part > 0.0:
            for g in range(n_states):
                p[g] *= table[column, g] ** part
            factors += 1
        for _ in range(whole):
            for g in range(n_states):
                p[g] *= table[column, g]
            factors += 1
            if factors >= _RESCALE_EVERY:
                top = 0.0
                for g in range(n_states):
                    top = max(top, p[g])
                for g in range(n_states):
                    p[g] /= top
                log_scale += math.log(top)
                factors = 0
    from_votes = 0.0
    for g in range(n_states):
        from_votes += p[g]
    for s in range(len(power)):
        if outputs[s, i] >= 0:
            column = first[s] + outputs[s, i]
            for g in range(n_states):
                p[g] *= output_table[column, group[g]]
    total = 0.0
    for g in range(n_states):
        total += p[g]
    return log_scale, from_votes, total


@numba.njit(cache=True, nogil=True)
def _tally(i, g, times, votes, systems, gold, item_prior, group, totals):  # type: ignore[no-untyped-def]
    """Count what is said of an item that is in state `g`, so many times."""
    indptr, indices, data, _ = votes
    outputs, first, power, _ = systems
    counts, state_counts, held, output_counts, evidence = totals
    state_counts[g] += times
    if gold[i] >= 0:
        held[g, gold[i]] += times
    for j in range(indptr[i], indptr[i + 1]):
        counts[indices[j], g] += times * data[j]
    for s in range(len(power)):
        if outputs[s, i] >= 0:
            output_counts[first[s] + outputs[s, i], group[g]] += times
    for y in range(evidence.shape[1] if len(item_prior) > 0 else 0):
        evidence[g, y] += times * math.log(max(item_prior[i, y], FLOOR))


@numba.njit(cache=True, nogil=True)
def _observe(i, p, from_votes, total, votes, systems, labels, table, keep, out):  # type: ignore[no-untyped-def]
    """Add the chances of the classes of an item and, where `keep` is 2, one over the densities of what is said."""
    indptr, indices, data, _ = votes
    outputs, _, power, _ = systems
    posterior, _, inverse, output_inverse = out
    share = 1.0 / total
    for g in range(len(p)):
        posterior[i, labels[g]] += p[g] * share
    if keep < 2:
        return
    for j in range(indptr[i], indptr[i + 1]):
        value = 0.0
        for g in range(len(p)):
            value += p[g] / (table[indices[j], g] if data[j] == 1.0 else table[indices[j], g] ** data[j])
        inverse[j] += value * share
    for s in range(len(power)):
        if outputs[s, i] >= 0:
            output_inverse[i] += from_votes * share
            break


@numba.njit(cache=True, nogil=True)
def draw_states(  # type: ignore[no-untyped-def]
    votes, systems, gold, item_prior, labels, group, weights, table, output_table, states, totals, keep, out, rng
):
    """Draw the state of each item given all parameters, and count; returns the log-likelihood.

    Items of which all is said alike have the same chances: these are worked out once, and what is said is counted and
    recorded once, at the first of them. `keep` says what is recorded: 0 nothing, 1 the chances of the classes, 2 these,
    the truth and the votes' densities.
    """
    place, truth = votes[3], out[1]
    counts, state_counts, held, output_counts, evidence = totals
    n_states, n_classes = len(weights), held.shape[1]
    class_weight = np.zeros(n_classes)
    for g in range(n_states):  # with an item prior, weights only share out a class to its states
        class_weight[labels[g]] += weights[g]
    counts[:] = 0.0
    state_counts[:] = 0.0
    held[:] = 0.0
    output_counts[:] = 0.0
    evidence[:] = 0.0
    n_places = 0
    for i in range(len(place)):
        n_places = max(n_places, place[i] + 1)
    chances = np.empty((n_places + 1, n_states))  # the last row is for an item that has no like
    sums = np.full((n_places + 1, 3), -1.0)
    first_item = np.empty(n_places, np.int64)
    times = np.zeros((n_places, n_states))
    log_likelihood = 0.0
    for i in range(len(gold)):
        at = place[i] if place[i] >= 0 else n_places
        if at == n_places or sums[at, 2] < 0.0:
            log_scale, from_votes, total = _weigh_states(
                i,
                votes,
                systems,
                gold,
                item_prior,
                labels,
                group,
                weights,
                class_weight,
                table,
                output_table,
                chances[at],
            )
            sums[at, 0] = log_scale + math.log(total)
            sums[at, 1] = from_votes
            sums[at, 2] = total
            if at < n_places:
                first_item[at] = i
        log_likelihood += sums[at, 0]
        rest = rng.random() * sums[at, 2]
        drawn = -1
        for g in range(n_states):
            if chances[at, g] > 0.0:
                drawn = g
                rest -= chances[at, g]
                if rest < 0.0:
                    break
        states[i] = drawn
        if keep > 1:
            truth[i] = labels[drawn]
        if at < n_places:
            times[at, drawn] += 1.0
            continue
        _tally(i, drawn, 1.0, votes, systems, gold, item_prior, group, totals)
        if keep > 0:
            _observe(i, chances[at], sums[at, 1], sums[at, 2], votes, systems, labels, table, keep, out)
    for at in range(n_places):
        i = first_item[at]
        for g in range(n_states):
            if times[at, g] > 0.0:
                _tally(i, g, times[at, g], votes, systems, gold, item_prior, group, totals)
        if keep > 0:
            _observe(i, chances[at], sums[at, 1], sums[at, 2], votes, systems, labels, table, keep, out)
    return log_likelihood


@numba.njit(cache=True, nogil=True)
def advance(  # type: ignore[no-untyped-def]
    k, next_kept, votes, systems, gold, item_prior, parts, states, totals, kept, out, rng, done
):
    """Draw rows of systems and states of items as draw `k` (below 0: warm-up); the next draw whose truth is kept.

    `done` gets the number of sweeps and, after it, the log-likelihood.
    """
    labels, group, weights, table, output_table = parts
    posterior, truths, inverse, output_inverse = out
    _, first, power, row_prior = systems
    draw_output_rows(totals[3], first, row_prior, power, output_table, rng)
    keep = 0
    if k >= 0:
        keep = 2 if next_kept < len(kept) and kept[next_kept] == k else 1
    recorded = (posterior, truths[min(next_kept, len(truths) - 1)], inverse, output_inverse)
    done[1] = draw_states(
        votes,
        systems,
        gold,
        item_prior,
        labels,
        group,
        weights,
        table,
        output_table,
        states,
        totals,
        keep,
        recorded,
        rng,
    )
    done[0] += 1
    return next_kept + (keep > 1)


@numba.njit(cache=True, nogil=True)
def count(votes, systems, gold, item_prior, group, states, totals):  # type: ignore[no-untyped-def]
    """The counts that the states of a start give."""
    for i in range(len(gold)):
        _tally(i, states[i], 1.0, votes, systems, gold, item_prior, group, totals)


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
