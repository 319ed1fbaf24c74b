"""Whole chains of the Gibbs sampler, compiled; imported only where numba is installed.

`run_chain` is for the models whose rows are Dirichlet: `DawidSkeneSampler` (fixed pseudo-counts) and `PooledSampler`
(pooled rows). Those classes, with `gibbs_step`, are the reference: the same conditional draws in the same order. On
small data a sweep here takes some microseconds instead of a third of a millisecond. `compiled_ordinal` has the chain of
ratings; `compiled_states` the draws of the items' states, which both share.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from trueup._base.types import Floats
from trueup.noise.kernels.compiled_states import FLOOR, Integers, advance, count, record, volumes


@numba.njit(cache=True, nogil=True)
def _agrees(held, state, label):  # type: ignore[no-untyped-def]
    """Whether a state may have a class: it holds no item known to be of another."""
    return held[state].sum() == held[state, label]


@numba.njit(cache=True, nogil=True)
def _exchange_classes(fit, held, evidence, labels, rng):  # type: ignore[no-untyped-def]
    """Propose that two states exchange their classes; see `PooledSampler._exchange_classes`."""
    n_states = len(held)
    # Pairs are unordered and the condition is the same from both sides, so each step has its own reverse.
    for a in range(n_states):
        for b in range(a + 1, n_states):
            la = labels[a]
            lb = labels[b]
            if not (_agrees(held, a, lb) and _agrees(held, b, la)):
                continue
            change = fit[a, lb] + fit[b, la] - fit[a, la] - fit[b, lb]
            if len(evidence) > 0:
                change += evidence[a, lb] + evidence[b, la] - evidence[a, la] - evidence[b, lb]
            if math.log(max(rng.random(), 1e-300)) < change:
                labels[a] = lb
                labels[b] = la


@numba.njit(cache=True, nogil=True)
def _draw_hyper(counts, held, evidence, labels, pooled, strength, prior, rng):  # type: ignore[no-untyped-def]
    """Tables, strengths, exchanges and pooled rows; see `PooledSampler.draw`.

    `evidence`, the sum of the log item prior of each class over the items of a state, has no rows where items have no
    prior of their own.
    """
    n_labelers, n_answers, n_states = counts.shape
    diagonal, shape0, rate0 = prior
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
    fit = np.empty((n_states, n_classes))  # log P(tables | class), pooled rows integrated out
    for g in range(n_states):
        for y in range(n_classes):
            fit[g, y] = math.lgamma(diagonal + tables[g, y]) - math.lgamma(1.0 + tables[g, y])
    _exchange_classes(fit, held, evidence, labels, rng)
    for g in range(n_states):
        total = 0.0
        for a in range(n_answers):
            base = diagonal if a == labels[g] else 1.0
            pooled[g, a] = rng.standard_gamma(base + tables[g, a]) + 1e-12
            total += pooled[g, a]
        for a in range(n_answers):
            pooled[g, a] /= total
    # Rows that were drawn for a class hold it back where it counts for much, and tables where it counts for little.
    for g in range(n_states):
        for y in range(n_classes):
            fit[g, y] = (diagonal - 1.0) * math.log(pooled[g, y])
    _exchange_classes(fit, held, evidence, labels, rng)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def run_chain(
    votes: tuple[Integers, Integers, Floats, Integers],
    systems: tuple[Integers, Integers, Floats, Floats],
    gold: Integers,
    item_prior: Floats,
    states: Integers,
    labels: Integers,
    pooled: Floats,
    strength: Floats,
    prior: Floats,
    hierarchical: bool,
    n_labelers: int,
    n_warmup: int,
    kept: Integers,
    rng: Any,
    parameters: tuple[Floats, Floats, Floats, Floats],
    out: tuple[Floats, Integers],
    out_log_likelihood: Floats,
    done: Floats,
) -> None:
    """Run all sweeps of a chain and fill the outputs; `CompiledStart` says what it starts from.

    Without `hierarchical`, rows have the fixed pseudo-counts ``strength * pooled``. `states`, `labels`, `pooled`
    and `strength` are changed in place, so that a chain can go on where it stopped. `systems` are codes of outputs
    (systems, items), the first column of each, what each counts for, and the pseudo-counts of the columns.
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
    output_table = np.empty((first[-1], n_states))
    table = np.empty((n_all * n_answers, n_states))
    weights = np.empty(n_states)
    row = np.empty(n_answers)
    volume = volumes(votes, n_labelers, n_answers)
    hyper = (prior[0], prior[1], prior[2])
    count(votes, systems, gold, item_prior, states, totals)
    next_kept = np.int64(0)
    for sweep in range(n_warmup + n_draws):
        if hierarchical:
            _draw_hyper(counts, totals[2], evidence, labels, pooled, strength, hyper, rng)
        total = 0.0
        for g in range(n_states):
            weights[g] = max(rng.standard_gamma(1.0 + totals[1][g]), 1e-300)
            total += weights[g]
        for g in range(n_states):
            weights[g] = max(weights[g] / total, 1e-300)
        for t in range(n_all):
            for g in range(n_states):
                total = 0.0
                for a in range(n_answers):
                    row[a] = max(rng.standard_gamma(strength[g] * pooled[g, a] + counts[t, a, g]), 1e-100)
                    total += row[a]
                for a in range(n_answers):
                    table[t * n_answers + a, g] = max(row[a] / total, FLOOR)
        parts = (labels, weights, table, output_table)
        next_kept = advance(
            sweep - n_warmup, next_kept, votes, systems, gold, item_prior, parts, states, totals, kept, out, rng, done
        )
        if sweep >= n_warmup:
            k = sweep - n_warmup
            out_log_likelihood[k] = done[1]
            record(k, labels, weights, flat, table, n_labelers, n_answers, volume, parameters)
