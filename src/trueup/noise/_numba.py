"""Compiled kernels over blocks of items; imported only where numba is installed.

Each walks the vote matrix once: it multiplies the probabilities of an item's votes (no logarithm, no exponential),
normalises, and adds the result to the counts of the labelers' answers while it is still in the cache. They release
the lock, so blocks of items and chains of a sampler run on threads. `trueup.noise._kernels` holds the same functions
written with scipy, which are the reference.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["em_block", "gibbs_block"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[Any]

# Probabilities are floored at 1e-10, so sixteen factors stay above 1e-160 and rescaling may wait that long.
_RESCALE_EVERY = 16


@numba.njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _item_weights(row, indptr, indices, data, table, weights, allowed, state_class, p):  # type: ignore[no-untyped-def]
    """Fill `p` with the normalised state probabilities of an item; return the log of the normaliser."""
    n_states = len(weights)
    for s in range(n_states):
        p[s] = weights[s] if allowed < 0 or state_class[s] == allowed else 0.0
    log_scale = 0.0
    factors = 0
    for j in range(indptr[row], indptr[row + 1]):
        column = indices[j]
        for _ in range(int(data[j])):
            for s in range(n_states):
                p[s] *= table[column, s]
            factors += 1
            if factors == _RESCALE_EVERY:
                top = 0.0
                for s in range(n_states):
                    top = max(top, p[s])
                for s in range(n_states):
                    p[s] /= top
                log_scale += np.log(top)
                factors = 0
    total = 0.0
    for s in range(n_states):
        total += p[s]
    for s in range(n_states):
        p[s] /= total
    return log_scale + np.log(total)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def em_block(
    low: int,
    high: int,
    indptr: Integers,
    indices: Integers,
    data: Floats,
    table: Floats,
    weights: Floats,
    gold: Integers,
    state_class: Integers,
    counts: Floats,
    state_counts: Floats,
    posterior: Floats,
) -> float:
    """Posterior and expected counts of items `low` to `high`; `posterior` is filled if it has rows."""
    n_states = len(weights)
    p = np.empty(n_states)
    keep = posterior.shape[0] > 0
    log_likelihood = 0.0
    for i in range(low, high):
        log_likelihood += _item_weights(i, indptr, indices, data, table, weights, gold[i], state_class, p)
        for s in range(n_states):
            state_counts[s] += p[s]
        for j in range(indptr[i], indptr[i + 1]):
            column = indices[j]
            times = data[j]
            for s in range(n_states):
                counts[column, s] += times * p[s]
        if keep:
            for s in range(n_states):
                posterior[i, s] = p[s]
    return log_likelihood


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def gibbs_block(
    low: int,
    high: int,
    indptr: Integers,
    indices: Integers,
    data: Floats,
    table: Floats,
    weights: Floats,
    gold: Integers,
    state_class: Integers,
    uniforms: Floats,
    states: Integers,
    counts: Floats,
    state_counts: Floats,
) -> float:
    """Draw a state for each of the items `low` to `high` and add up the counts that follow from it."""
    n_states = len(weights)
    p = np.empty(n_states)
    log_likelihood = 0.0
    for i in range(low, high):
        log_likelihood += _item_weights(i, indptr, indices, data, table, weights, gold[i], state_class, p)
        rest = uniforms[i]
        drawn = -1
        for s in range(n_states):
            if p[s] > 0.0:
                drawn = s  # the last possible state serves when rounding leaves a remainder
                rest -= p[s]
                if rest < 0.0:
                    break
        states[i] = drawn
        state_counts[drawn] += 1.0
        for j in range(indptr[i], indptr[i + 1]):
            counts[indices[j], drawn] += data[j]
    return log_likelihood
