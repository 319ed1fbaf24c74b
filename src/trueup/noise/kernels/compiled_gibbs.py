"""Whole chains of the Gibbs sampler, compiled; imported only where numba is installed.

`run_chain` is for the models whose rows are Dirichlet: `DawidSkeneSampler` (fixed pseudo-counts), `PooledSampler`
(pooled rows) and `ClusterSampler` (extra clusters). Those classes, with `gibbs_step`, are the reference: the same
conditional draws in the same order. On small data a sweep here takes some microseconds instead of a third of a
millisecond. `compiled_difficulty` has the chain of `DifficultySampler`, `compiled_states` the draws of
the items' states, which both share.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from trueup._base.types import Floats
from trueup.noise.kernels.compiled_states import FLOOR, Integers, advance, count, record, volumes


@numba.njit(cache=True, nogil=True)
def _log_allocation(state_counts, is_extra, rare_a, rare_b):  # type: ignore[no-untyped-def]
    extra = 0.0
    main = 0.0
    n_extra = 0
    n_main = 0
    for g in range(len(state_counts)):
        if is_extra[g]:
            extra += state_counts[g]
            n_extra += 1
        else:
            main += state_counts[g]
            n_main += 1
    value = math.lgamma(rare_a + extra) + math.lgamma(rare_b + main)
    return value - math.lgamma(n_main + main) - math.lgamma(n_extra + extra)


@numba.njit(cache=True, nogil=True)
def _log_within_classes(state_counts, labels, n_classes):  # type: ignore[no-untyped-def]
    """Log P(states of the items | their classes), weights of the states of a class integrated out."""
    value = 0.0
    for y in range(n_classes):
        kinds = 0
        items = 0.0
        for g in range(len(labels)):
            if labels[g] == y:
                kinds += 1
                items += state_counts[g]
        if kinds > 0:
            value += math.lgamma(float(kinds)) - math.lgamma(kinds + items)
    return value


@numba.njit(cache=True, nogil=True)
def _agrees(held, state, label):  # type: ignore[no-untyped-def]
    """Whether a state may have a class: it holds no item known to be of another."""
    return held[state].sum() == held[state, label]


@numba.njit(cache=True, nogil=True)
def _exchange_classes(fit, state_counts, held, evidence, labels, is_extra, rare_a, rare_b, rng):  # type: ignore[no-untyped-def]
    """Propose that two states exchange class and role; see `PooledSampler._exchange_classes`.

    `fit` is the log probability of a state by its role and class.
    """
    n_states, n_classes = held.shape
    with_evidence = len(evidence) > 0
    # Pairs are unordered and the condition is the same from both sides, so each step has its own reverse.
    for a in range(n_states):
        for b in range(a + 1, n_states):
            la = labels[a]
            lb = labels[b]
            if is_extra[a] == is_extra[b] and (is_extra[a] or la == lb):
                continue
            if not (_agrees(held, a, lb) and _agrees(held, b, la)):
                continue
            role_a = is_extra[a]
            role_b = is_extra[b]
            as_a = 1 if role_a else 0
            as_b = 1 if role_b else 0
            change = fit[as_b, a, lb] + fit[as_a, b, la] - fit[as_a, a, la] - fit[as_b, b, lb]
            if with_evidence:
                change += evidence[a, lb] + evidence[b, la] - evidence[a, la] - evidence[b, lb]
                change -= _log_within_classes(state_counts, labels, n_classes)
                labels[a] = lb
                labels[b] = la
                change += _log_within_classes(state_counts, labels, n_classes)
            elif role_a != role_b:
                change -= _log_allocation(state_counts, is_extra, rare_a, rare_b)
                is_extra[a] = role_b
                is_extra[b] = role_a
                change += _log_allocation(state_counts, is_extra, rare_a, rare_b)
            is_extra[a] = role_b
            is_extra[b] = role_a
            labels[a] = lb
            labels[b] = la
            if math.log(max(rng.random(), 1e-300)) >= change:
                is_extra[a] = role_a
                is_extra[b] = role_b
                labels[a] = la
                labels[b] = lb


@numba.njit(cache=True, nogil=True)
def _draw_hyper(counts, state_counts, held, evidence, labels, is_extra, pooled, strength, prior, rng):  # type: ignore[no-untyped-def]
    """Tables, strengths, classes of extra clusters, roles and pooled rows; see `PooledSampler.draw`.

    `evidence`, the sum of the log item prior of each class over the items of a state, has no rows where items have no
    prior of their own.
    """
    n_labelers, n_answers, n_states = counts.shape
    main_diagonal, extra_diagonal, rare_a, rare_b, shape0, rate0 = prior
    n_classes = held.shape[1]
    learns_strength = shape0 > 0.0
    with_evidence = len(evidence) > 0
    tables = np.zeros((n_states, n_answers))
    for g in range(n_states):
        s = strength[g]
        log_x = 0.0
        seats = 0.0
        for t in range(n_labelers):
            total = 0.0
            for a in range(n_answers):
                n = int(counts[t, a, g])
                rest = counts[t, a, g] - n
                if rest > 0.0 and rng.random() < rest:  # parts of votes count by chance
                    n += 1
                if n > 0:
                    total += n
                    mass = s * pooled[g, a]
                    opened = 1
                    for r in range(1, n):
                        if rng.random() * (mass + r) < mass:
                            opened += 1
                    tables[g, a] += opened
            if learns_strength and total > 0:
                x = rng.standard_gamma(s + 1.0)
                y = rng.standard_gamma(total)
                log_x += math.log(max(x / (x + y), 1e-300))
                if rng.random() * (total + s) < total:
                    seats += 1.0
        if learns_strength:
            shape = max(shape0 + tables[g].sum() - seats, 1e-3)
            strength[g] = max(rng.standard_gamma(shape) / (rate0 - log_x), 1e-2)
    fit = np.empty((2, n_states, n_classes))  # log P(tables | class) of a main and of an extra state
    for role in range(2):
        diagonal = extra_diagonal if role == 1 else main_diagonal
        least = n_answers - 1.0 + diagonal
        for g in range(n_states):
            all_but_class = math.lgamma(least) - math.lgamma(diagonal) - math.lgamma(least + tables[g].sum())
            for y in range(n_classes):
                own = math.lgamma(diagonal + tables[g, y]) - math.lgamma(1.0 + tables[g, y])
                fit[role, g, y] = all_but_class + own
    weight = np.empty(n_classes)
    for g in range(n_states):
        if is_extra[g]:
            top = -1e300
            for y in range(n_classes):
                weight[y] = fit[1, g, y]
                if with_evidence:
                    labels[g] = y
                    weight[y] += evidence[g, y] + _log_within_classes(state_counts, labels, n_classes)
                if _agrees(held, g, y):  # a class that is excluded may be likelier by far than all others
                    top = max(top, weight[y])
            total = 0.0
            for y in range(n_classes):
                weight[y] = math.exp(weight[y] - top) if _agrees(held, g, y) else 0.0
                total += weight[y]
            rest = rng.random() * total
            for y in range(n_classes):
                if weight[y] == 0.0:
                    continue
                labels[g] = y
                rest -= weight[y]
                if rest < 0:
                    break
    _exchange_classes(fit, state_counts, held, evidence, labels, is_extra, rare_a, rare_b, rng)
    for g in range(n_states):
        diagonal = extra_diagonal if is_extra[g] else main_diagonal
        total = 0.0
        for a in range(n_answers):
            base = diagonal if a == labels[g] else 1.0
            pooled[g, a] = rng.standard_gamma(base + tables[g, a]) + 1e-12
            total += pooled[g, a]
        for a in range(n_answers):
            pooled[g, a] /= total
    # Rows that were drawn for a class hold it back where it counts for much, and tables where it counts for little.
    for role in range(2):
        diagonal = extra_diagonal if role == 1 else main_diagonal
        for g in range(n_states):
            for y in range(n_classes):
                fit[role, g, y] = (diagonal - 1.0) * math.log(pooled[g, y])
    _exchange_classes(fit, state_counts, held, evidence, labels, is_extra, rare_a, rare_b, rng)


@numba.njit(cache=True, nogil=True)
def _draw_weights(state_counts, is_extra, rare_a, rare_b, weights, rng):  # type: ignore[no-untyped-def]
    n_states = len(state_counts)
    extra = 0.0
    main = 0.0
    sum_extra = 0.0
    sum_main = 0.0
    any_extra = False
    for g in range(n_states):
        weights[g] = max(rng.standard_gamma(1.0 + state_counts[g]), 1e-300)
        if is_extra[g]:
            extra += state_counts[g]
            sum_extra += weights[g]
            any_extra = True
        else:
            main += state_counts[g]
            sum_main += weights[g]
    x = rng.standard_gamma(rare_a + extra) if any_extra else 0.0
    y = rng.standard_gamma(rare_b + main)
    for g in range(n_states):
        if is_extra[g]:
            weights[g] *= x / (x + y) / sum_extra
        else:
            weights[g] *= y / (x + y) / sum_main
        weights[g] = max(weights[g], 1e-300)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def run_chain(
    votes: tuple[Integers, Integers, Floats, Integers],
    systems: tuple[Integers, Integers, Floats, Floats],
    gold: Integers,
    item_prior: Floats,
    states: Integers,
    labels: Integers,
    is_extra: Integers,
    pooled: Floats,
    strength: Floats,
    prior: Floats,
    hierarchical: bool,
    n_labelers: int,
    n_warmup: int,
    kept: Integers,
    rng: Any,
    parameters: tuple[Floats, Floats, Floats, Floats],
    out: tuple[Floats, Integers, Floats, Floats],
    out_log_likelihood: Floats,
    done: Floats,
) -> None:
    """Run all sweeps of a chain and fill the outputs; `CompiledStart` says what it starts from.

    Without `hierarchical`, rows have the fixed pseudo-counts ``strength * pooled``. `states`, `labels`, `is_extra`,
    `pooled` and `strength` are changed in place, so that a chain can go on where it stopped. `systems` are codes of
    outputs (systems, items), the first column of each, what each counts for, and the pseudo-counts of the columns.
    `item_prior` is P(class) of each item, or has no rows. `done[0]` counts sweeps, for progress.
    """
    n_classes = parameters[0].shape[1]
    n_states, n_answers = pooled.shape
    n_all = parameters[2].shape[1] + n_labelers
    n_draws = len(out_log_likelihood)
    counts = np.zeros((n_all, n_answers, n_states))
    flat = counts.reshape(n_all * n_answers, n_states)
    first = systems[1]
    output_counts = np.zeros((first[-1], n_states))
    evidence = np.zeros((n_states if len(item_prior) > 0 else 0, n_classes))
    totals = (flat, np.zeros(n_states), np.zeros((n_states, n_classes)), output_counts, evidence)
    group = np.arange(n_states)
    output_table = np.empty((first[-1], n_states))
    table = np.empty((n_all * n_answers, n_states))
    weights = np.empty(n_states)
    row = np.empty(n_answers)
    volume = volumes(votes, n_labelers, n_answers)
    hyper = (prior[0], prior[1], prior[2], prior[3], prior[4], prior[5])
    count(votes, systems, gold, item_prior, group, states, totals)
    next_kept = np.int64(0)
    for sweep in range(n_warmup + n_draws):
        if hierarchical:
            _draw_hyper(counts, totals[1], totals[2], evidence, labels, is_extra, pooled, strength, hyper, rng)
        _draw_weights(totals[1], is_extra, prior[2], prior[3], weights, rng)
        for t in range(n_all):
            for g in range(n_states):
                total = 0.0
                for a in range(n_answers):
                    row[a] = max(rng.standard_gamma(strength[g] * pooled[g, a] + counts[t, a, g]), 1e-100)
                    total += row[a]
                for a in range(n_answers):
                    table[t * n_answers + a, g] = max(row[a] / total, FLOOR)
        parts = (labels, group, weights, table, output_table)
        next_kept = advance(
            sweep - n_warmup, next_kept, votes, systems, gold, item_prior, parts, states, totals, kept, out, rng, done
        )
        if sweep >= n_warmup:
            k = sweep - n_warmup
            out_log_likelihood[k] = done[1]
            record(k, labels, weights, flat, table, n_labelers, n_answers, volume, parameters)
