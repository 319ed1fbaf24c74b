"""The two operations all vote models share, on the sparse vote matrix.

A model over votes is a table P(answer | labeler, state) and a weight for each state; states are the classes, or the
subtypes of the classes. With the log table the E-step is one sparse product and the M-step another; that is the
reference here. Where numba is installed and there is enough to do, compiled kernels do the same in one pass.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import logsumexp

from trueup._optional import is_installed

__all__ = ["FLOOR", "Expectation", "Sweep", "em_step", "engine_for", "gibbs_step", "log_likelihood"]

Floats = npt.NDArray[np.float64]
Engine = Literal["scipy", "numba"]

FLOOR = 1e-10  # the least probability of an answer; keeps products and logarithms finite
_WORTH_COMPILING = 20_000  # votes × passes from which compiled code repays loading numba


@dataclass(frozen=True)
class Expectation:
    """What an E-step gives."""

    counts: Floats  # (labelers·answers, states): expected number of votes
    state_counts: Floats  # (states,): expected number of items
    log_likelihood: float
    posterior: Floats | None  # (items, states), if asked for


@dataclass(frozen=True)
class Sweep:
    """What one pass of a sampler over the items gives."""

    states: npt.NDArray[np.int16]
    counts: Floats
    state_counts: Floats
    log_likelihood: float


def engine_for(votes: sparse.csr_array, passes: int) -> Engine:
    """Compiled code where it is there and worth it. TRUEUP_ENGINE=scipy or numba overrides."""
    forced = os.environ.get("TRUEUP_ENGINE")
    if forced in ("scipy", "numba"):
        return "numba" if forced == "numba" else "scipy"
    return "numba" if votes.nnz * passes >= _WORTH_COMPILING and is_installed("numba") else "scipy"


def log_likelihood(votes: sparse.csr_array, table: Floats) -> Floats:
    """Log p(votes of an item | state), shape (items, states), from a table (labelers·answers, states)."""
    return np.asarray(votes @ np.log(np.maximum(table, FLOOR)))


def em_step(
    votes: sparse.csr_array,
    table: Floats,
    weights: Floats,
    *,
    gold: npt.NDArray[np.int32],
    state_class: npt.NDArray[np.int32],
    engine: Engine,
    keep_posterior: bool = False,
) -> Expectation:
    """Expected states of all items and the votes' expected counts.

    `gold` is the known class of each item or -1; only states of that class (`state_class`) are then possible.
    """
    if engine == "scipy":
        posterior, per_item = _posterior(votes, table, weights, gold, state_class)
        counts = np.asarray(votes.T @ posterior)
        return Expectation(counts, posterior.sum(axis=0), float(per_item.sum()), posterior if keep_posterior else None)
    from trueup.noise import _numba

    out = np.empty((votes.shape[0] if keep_posterior else 0, len(weights)))

    def block(low: int, high: int, counts: Floats, state_counts: Floats) -> float:
        arguments = _plain(votes, table, weights, gold, state_class)
        return float(_numba.em_block(low, high, *arguments, counts, state_counts, out))

    counts, state_counts, total = _in_blocks(block, votes, table.shape)
    return Expectation(counts, state_counts, total, out if keep_posterior else None)


def gibbs_step(
    votes: sparse.csr_array,
    table: Floats,
    weights: Floats,
    uniforms: Floats,
    *,
    gold: npt.NDArray[np.int32],
    state_class: npt.NDArray[np.int32],
    engine: Engine,
) -> Sweep:
    """One state for each item, drawn by inversion of `uniforms` (so both engines draw the same), and its counts."""
    states = np.empty(votes.shape[0], dtype=np.int16)
    if engine == "scipy":
        posterior, per_item = _posterior(votes, table, weights, gold, state_class)
        # The last state with any probability serves when rounding leaves a remainder.
        last = posterior.shape[1] - 1 - np.argmax(posterior[:, ::-1] > 0, axis=1)
        states[:] = np.minimum((np.cumsum(posterior, axis=1) <= uniforms[:, None]).sum(axis=1), last)
        chosen = sparse.csr_array(
            (np.ones(len(states)), states.astype(np.int32), np.arange(len(states) + 1)), shape=posterior.shape
        )
        return Sweep(
            states,
            np.asarray((votes.T @ chosen).toarray()),
            np.bincount(states, minlength=len(weights)).astype(float),
            float(per_item.sum()),
        )
    from trueup.noise import _numba

    counts, state_counts = np.zeros(table.shape), np.zeros(len(weights))
    arguments = _plain(votes, table, weights, gold, state_class)
    # Chains run on threads of their own, so a sweep stays on one.
    total = _numba.gibbs_block(0, votes.shape[0], *arguments, uniforms, states, counts, state_counts)
    return Sweep(states, counts, state_counts, float(total))


def _plain(
    votes: sparse.csr_array, table: Floats, weights: Floats, gold: npt.NDArray[Any], state_class: npt.NDArray[Any]
) -> tuple[Any, ...]:
    """The arguments of a compiled kernel, of one type each so that it is compiled once."""
    return (
        votes.indptr.astype(np.int64, copy=False),
        votes.indices.astype(np.int32, copy=False),
        votes.data.astype(np.float64, copy=False),
        np.ascontiguousarray(np.maximum(table, FLOOR)),
        np.ascontiguousarray(weights, dtype=np.float64),
        gold.astype(np.int32, copy=False),
        state_class.astype(np.int32, copy=False),
    )


def _posterior(
    votes: sparse.csr_array, table: Floats, weights: Floats, gold: npt.NDArray[Any], state_class: npt.NDArray[Any]
) -> tuple[Floats, Floats]:
    with np.errstate(divide="ignore"):  # a state may have no weight
        joint = log_likelihood(votes, table) + np.log(weights)
    known = gold >= 0
    if known.any():
        joint[known] = np.where(state_class == gold[known, None], joint[known], -np.inf)
    per_item = logsumexp(joint, axis=1)
    return np.exp(joint - per_item[:, None]), per_item


def _in_blocks(
    block: Callable[[int, int, Floats, Floats], float], votes: sparse.csr_array, shape: tuple[int, ...]
) -> tuple[Floats, Floats, float]:
    """Run `block` over ranges of items of about equal numbers of votes, one on each core, and add up."""
    n_blocks = max(1, min(os.cpu_count() or 1, votes.nnz // 50_000))
    at = np.searchsorted(votes.indptr, np.linspace(0, votes.nnz, n_blocks + 1)[1:-1])
    edges = [0, *at.tolist(), votes.shape[0]]
    parts = [(np.zeros(shape), np.zeros(shape[1])) for _ in range(n_blocks)]

    def run(k: int) -> float:
        return block(edges[k], edges[k + 1], *parts[k])

    if n_blocks == 1:
        totals = [run(0)]
    else:
        with ThreadPoolExecutor(n_blocks) as pool:
            totals = list(pool.map(run, range(n_blocks)))
    return sum(p[0] for p in parts), sum(p[1] for p in parts), sum(totals)  # type: ignore[return-value]
