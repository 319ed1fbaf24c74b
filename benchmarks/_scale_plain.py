"""The E-step and the counts of Dawid and Skene's model as plain loops: what the hand-made vectors are measured against.

The number of states is a constant of the compiled code (the length of `width`), which is the best that numba makes of
plain loops here; with a number that is only known when it runs it is slower still.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["em_block"]

_NORMALISE_EVERY = 16
_LOG_BELOW = 1e-100


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=True)  # type: ignore[untyped-decorator]
def em_block(
    low: int,
    high: int,
    indptr: Any,
    indices: Any,
    table: Any,
    starts: Any,
    gold: Any,
    counts: Any,
    state_counts: Any,
    width: Any,
) -> float:
    """As `trueup.noise.kernels.compiled.em_block`, for votes that count once each."""
    n = len(width)
    p = np.empty(n)
    log_likelihood, product = 0.0, 1.0
    for i in range(low, high):
        first, last = indptr[i], indptr[i + 1]
        start = (gold[i] + 1) * n
        for s in range(n):
            p[s] = starts[start + s]
        factors = 0
        for j in range(first, last):
            if factors == _NORMALISE_EVERY:
                total = 0.0
                for s in range(n):
                    total += p[s]
                for s in range(n):
                    p[s] /= total
                log_likelihood += np.log(total)
                factors = 0
            row = np.uint64(indices[j]) * np.uint64(n)
            for s in range(n):
                p[s] *= table[row + np.uint64(s)]
            factors += 1
        total = 0.0
        for s in range(n):
            total += p[s]
        if total < _LOG_BELOW:
            log_likelihood += np.log(total)
        else:
            product *= total
            if product < _LOG_BELOW:
                log_likelihood += np.log(product)
                product = 1.0
        scale = 1.0 / total
        for s in range(n):
            p[s] *= scale
            state_counts[s] += p[s]
        for j in range(first, last):
            row = np.uint64(indices[j]) * np.uint64(n)
            for s in range(n):
                counts[row + np.uint64(s)] += p[s]
    return log_likelihood + np.log(product)
