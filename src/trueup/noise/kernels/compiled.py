"""The E-step as plain loops over blocks of items, compiled; imported only where numba is installed.

It walks the vote matrix once: it multiplies the probabilities of an item's votes (no logarithm, no exponential),
normalises, and adds the result to the counts of the labelers' answers while it is still in the cache. It releases the
lock, so blocks of items run on threads. `trueup.noise.kernels` does the same with scipy.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats

Integers = npt.NDArray[Any]

_MOST_UNROLLED = 16  # states
# Probabilities are floored at 1e-10, so sixteen factors stay above 1e-160 and normalising may wait that long.
_NORMALISE_EVERY = 16
# Normalisers are multiplied up and a logarithm is taken only when the product is this small.
_LOG_BELOW = 1e-100


def width_for(n_states: int) -> tuple[int, ...]:
    """A tuple whose length has loops over few states unrolled when the kernel is compiled; empty for many states."""
    return (0,) * n_states if n_states <= _MOST_UNROLLED else ()


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def em_block(
    low: int,
    high: int,
    indptr: Integers,
    indices: Integers,
    data: Floats,
    table: Floats,
    starts: Floats,
    gold: Integers,
    counts: Floats,
    state_counts: Floats,
    posterior: Floats,
    width: tuple[int, ...],
) -> float:
    """Add the expected counts of items `low` to `high`; return their log-likelihood.

    Tables are flat. Row 0 of `starts` has the weights of the states and row 1 + c those of class c only. An empty
    `data` says that all votes count once. `posterior` is filled if it has rows. Indices are unsigned: else numba asks
    of each whether it counts from the end.
    """
    n_states = len(width) if len(width) > 0 else len(state_counts)
    n = np.uint64(n_states)
    p = np.empty(n_states)
    once = len(data) == 0
    log_likelihood = 0.0
    product = 1.0
    for i in range(low, high):
        start = np.uint64(gold[i] + 1) * n
        for s in range(n_states):
            p[s] = starts[start + np.uint64(s)]
        n_factors = 0
        for j in range(indptr[i], indptr[i + 1]):
            row = np.uint64(indices[j]) * n
            for _ in range(1 if once else int(data[j])):
                if n_factors == _NORMALISE_EVERY:
                    total = 0.0
                    for s in range(n_states):
                        total += p[s]
                    for s in range(n_states):
                        p[s] /= total
                    log_likelihood += np.log(total)
                    n_factors = 0
                for s in range(n_states):
                    p[s] *= table[row + np.uint64(s)]
                n_factors += 1
        total = 0.0
        for s in range(n_states):
            total += p[s]
        product *= total
        if product < _LOG_BELOW:
            log_likelihood += np.log(product)
            product = 1.0
        scale = 1.0 / total
        for s in range(n_states):
            p[s] *= scale
            state_counts[s] += p[s]
        for j in range(indptr[i], indptr[i + 1]):
            row = np.uint64(indices[j]) * n
            if once:
                for s in range(n_states):
                    counts[row + np.uint64(s)] += p[s]
            else:
                for s in range(n_states):
                    counts[row + np.uint64(s)] += p[s] * data[j]
        if len(posterior) > 0:
            for s in range(n_states):
                posterior[i, s] = p[s]
    return float(log_likelihood + np.log(product))
