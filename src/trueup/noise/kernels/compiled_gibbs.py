"""A whole chain of the Gibbs sampler, compiled; imported only where numba is installed.

One function runs all sweeps of a chain for the models whose rows are Dirichlet: `DawidSkeneSampler` (fixed
pseudo-counts), `PooledSampler` (pooled rows) and `ClusterSampler` (extra clusters). Those classes, with `gibbs_step`,
are the reference: the same conditional draws in the same order. On small data a sweep here takes some microseconds
instead of a third of a millisecond.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats

Integers = npt.NDArray[Any]

_RESCALE_EVERY = 16
_FLOOR = 1e-10


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
def _agrees(held, state, label):  # type: ignore[no-untyped-def]
    """Whether a state may have a class: it holds no item known to be of another."""
    return held[state].sum() == held[state, label]


@numba.njit(cache=True, nogil=True)
def _draw_hyper(counts, state_counts, held, labels, is_extra, pooled, strength, prior, rng):  # type: ignore[no-untyped-def]
    """Tables, strengths, classes of extra clusters, pooled rows and roles; see `PooledSampler.draw`."""
    n_labelers, n_answers, n_states = counts.shape
    main_diagonal, extra_diagonal, rare_a, rare_b, shape0, rate0 = prior
    n_classes = held.shape[1]
    learns_strength = shape0 > 0.0
    tables = np.zeros((n_states, n_answers))
    for g in range(n_states):
        s = strength[g]
        log_x = 0.0
        seats = 0.0
        for t in range(n_labelers):
            total = 0.0
            for a in range(n_answers):
                n = int(counts[t, a, g])
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
    weight = np.empty(n_classes)
    for g in range(n_states):
        if is_extra[g]:
            top = -1e300
            for y in range(n_classes):
                weight[y] = math.lgamma(extra_diagonal + tables[g, y]) - math.lgamma(1.0 + tables[g, y])
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
        diagonal = extra_diagonal if is_extra[g] else main_diagonal
        total = 0.0
        for a in range(n_answers):
            base = diagonal if a == labels[g] else 1.0
            pooled[g, a] = rng.standard_gamma(base + tables[g, a]) + 1e-12
            total += pooled[g, a]
        for a in range(n_answers):
            pooled[g, a] /= total
    # Pairs are unordered and the condition is the same from both sides, so each step has its own reverse.
    for a in range(n_states):
        for b in range(a + 1, n_states):
            la = labels[a]
            lb = labels[b]
            if is_extra[a] == is_extra[b] and (is_extra[a] or la == lb):
                continue
            if not (_agrees(held, a, lb) and _agrees(held, b, la)):
                continue
            diagonal_a = extra_diagonal if is_extra[a] else main_diagonal
            diagonal_b = extra_diagonal if is_extra[b] else main_diagonal
            change = (diagonal_a - 1) * (math.log(pooled[b, la]) - math.log(pooled[a, la]))
            change += (diagonal_b - 1) * (math.log(pooled[a, lb]) - math.log(pooled[b, lb]))
            role_a = is_extra[a]
            role_b = is_extra[b]
            if role_a != role_b:
                before = _log_allocation(state_counts, is_extra, rare_a, rare_b)
                is_extra[a] = role_b
                is_extra[b] = role_a
                change += _log_allocation(state_counts, is_extra, rare_a, rare_b) - before
            if math.log(max(rng.random(), 1e-300)) < change:
                labels[a] = lb
                labels[b] = la
            else:
                is_extra[a] = role_a
                is_extra[b] = role_b


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
    indptr: Integers,
    indices: Integers,
    data: Floats,
    gold: Integers,
    item_prior: Floats,
    states: Integers,
    labels: Integers,
    is_extra: Integers,
    pooled: Floats,
    strength: Floats,
    prior: Floats,
    hierarchical: bool,
    n_classes: int,
    n_labelers: int,
    n_warmup: int,
    kept: Integers,
    rng: Any,
    out_prior: Floats,
    out_accuracy: Floats,
    out_counts: Floats,
    out_confusion: Floats,
    out_drawn: Floats,
    out_truths: Integers,
    out_log_likelihood: Floats,
    done: Floats,
) -> None:
    """Run all sweeps of a chain and fill the outputs; `CompiledStart` says what it starts from.

    Without `hierarchical`, rows have the fixed pseudo-counts ``strength * pooled``. `states`, `labels`, `is_extra`,
    `pooled` and `strength` are changed in place, so that a chain can go on where it stopped. `item_prior` is P(class)
    of each item, or has no rows. `done[0]` counts sweeps, for progress.
    """
    with_prior = len(item_prior) > 0
    class_weight = np.ones(n_classes)
    n_items = len(gold)
    n_states, n_answers = pooled.shape
    n_all = out_counts.shape[1] + n_labelers
    n_draws = len(out_prior)
    counts = np.zeros((n_all, n_answers, n_states))
    state_counts = np.zeros(n_states)
    held = np.zeros((n_states, n_classes))  # items of known class in each state
    table = np.empty((n_all * n_answers, n_states))
    weights = np.empty(n_states)
    p = np.empty(n_states)
    row = np.empty(n_answers)
    volume = np.zeros(n_labelers)
    rare_a = prior[2]
    rare_b = prior[3]
    hyper = (prior[0], prior[1], prior[2], prior[3], prior[4], prior[5])
    for i in range(n_items):
        state_counts[states[i]] += 1
        if gold[i] >= 0:
            held[states[i], gold[i]] += 1
        for j in range(indptr[i], indptr[i + 1]):
            t = indices[j] // n_answers
            counts[t, indices[j] - t * n_answers, states[i]] += data[j]
            if t < n_labelers:
                volume[t] += data[j]
    next_kept = 0
    for sweep in range(n_warmup + n_draws):
        if hierarchical:
            _draw_hyper(counts, state_counts, held, labels, is_extra, pooled, strength, hyper, rng)
        _draw_weights(state_counts, is_extra, rare_a, rare_b, weights, rng)
        for t in range(n_all):
            for g in range(n_states):
                total = 0.0
                for a in range(n_answers):
                    row[a] = max(rng.standard_gamma(strength[g] * pooled[g, a] + counts[t, a, g]), 1e-100)
                    total += row[a]
                for a in range(n_answers):
                    table[t * n_answers + a, g] = max(row[a] / total, _FLOOR)
        if with_prior:  # weights only share out a class to its states
            class_weight[:] = 0.0
            for g in range(n_states):
                class_weight[labels[g]] += weights[g]
        counts[:] = 0.0
        state_counts[:] = 0.0
        held[:] = 0.0
        log_likelihood = 0.0
        k = sweep - n_warmup
        keep_truth = k >= 0 and next_kept < len(kept) and kept[next_kept] == k
        for i in range(n_items):
            for g in range(n_states):
                p[g] = weights[g] if gold[i] < 0 or labels[g] == gold[i] else 0.0
                if with_prior:
                    p[g] *= max(item_prior[i, labels[g]], _FLOOR) / class_weight[labels[g]]
            factors = 0
            for j in range(indptr[i], indptr[i + 1]):
                column = indices[j]
                for _ in range(int(data[j])):
                    for g in range(n_states):
                        p[g] *= table[column, g]
                    factors += 1
                    if factors == _RESCALE_EVERY:
                        top = 0.0
                        for g in range(n_states):
                            top = max(top, p[g])
                        for g in range(n_states):
                            p[g] /= top
                        log_likelihood += math.log(top)
                        factors = 0
            total = 0.0
            for g in range(n_states):
                total += p[g]
            log_likelihood += math.log(total)
            rest = rng.random() * total
            drawn = -1
            for g in range(n_states):
                if p[g] > 0.0:
                    drawn = g
                    rest -= p[g]
                    if rest < 0.0:
                        break
            states[i] = drawn
            state_counts[drawn] += 1.0
            if gold[i] >= 0:
                held[drawn, gold[i]] += 1.0
            for j in range(indptr[i], indptr[i + 1]):
                t = indices[j] // n_answers
                counts[t, indices[j] - t * n_answers, drawn] += data[j]
            if k >= 0:
                out_drawn[i, labels[drawn]] += 1.0
                if keep_truth:
                    out_truths[next_kept, i] = labels[drawn]
        done[0] += 1
        if k < 0:
            continue
        next_kept += keep_truth
        out_log_likelihood[k] = log_likelihood
        for g in range(n_states):
            y = labels[g]
            out_prior[k, y] += weights[g]
            for t in range(n_labelers):
                out_accuracy[k, t] += counts[t, y, g]
            for r in range(n_all - n_labelers):
                t = n_labelers + r
                for a in range(n_answers):
                    out_counts[k, r, y, a] += counts[t, a, g]
                    out_confusion[k, r, y, a] += weights[g] * table[t * n_answers + a, g]
        for t in range(n_labelers):
            out_accuracy[k, t] = out_accuracy[k, t] / volume[t] if volume[t] > 0 else np.nan
        for r in range(n_all - n_labelers):
            for y in range(n_classes):
                total = 0.0
                for a in range(n_answers):
                    total += out_confusion[k, r, y, a]
                for a in range(n_answers):
                    out_confusion[k, r, y, a] /= max(total, 1e-300)
