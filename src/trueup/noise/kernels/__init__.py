"""The two operations all vote models share, on the sparse vote matrix.

A model over votes is a table P(answer | labeler, state) and a weight for each state; states are the classes, or
what `SoftTruth` mixes of them. With the log table the E-step is one sparse product and the M-step another; that is the
reference here. Where numba is installed and there is enough to do, compiled kernels do the same in one pass.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.engines import OF_ONE_PROCESSOR, EngineName, choose_engine, is_worth_compiling, n_cores, using_engine
from trueup._base.types import Codes, Floats
from trueup.data.partitions import VoteBlock
from trueup.exceptions import TrueupWarning

__all__ = [
    "FLOOR",
    "Expectation",
    "TooLittleMemory",
    "em_step",
    "engine_for",
    "engine_for_chains",
    "log_likelihood",
    "posterior",
    "run_where_memory_suffices",
    "starts_of_items",
]

FLOOR = 1e-10  # the least probability of an answer; keeps products and logarithms finite
_BLOCK = 50_000  # votes that are worth a thread
_MOST_BLOCKS = 16


@dataclass(frozen=True)
class Expectation:
    """What an E-step gives."""

    counts: Floats  # (labelers·answers, states): expected number of votes
    state_counts: Floats  # (states,): expected number of items
    log_likelihood: float
    posterior: Floats | None = None  # (items, states), if asked for


def engine_for(votes: sparse.csr_array, passes: int) -> EngineName:
    """The engine for so many passes over the votes."""
    return choose_engine(work=votes.nnz * passes)


def engine_for_chains() -> EngineName:
    """The engine for chains of sweeps, whose many small steps take ten times as long where nothing is compiled."""
    return choose_engine(offers=OF_ONE_PROCESSOR, work=1, worth=0)


def log_likelihood(votes: sparse.csr_array, table: Floats) -> Floats:
    """Log p(votes of an item | state), shape (items, states), from a table (labelers·answers, states)."""
    return np.asarray(votes @ np.log(np.maximum(table, FLOOR)))


def posterior(votes: sparse.csr_array, table: Floats, weights: Floats, *, gold: Codes, state_class: Codes) -> Floats:
    """P(state | votes) of each item, shape (items, states); the fastest way to it."""
    if engine_for(votes, 1) == "scipy":
        return _posterior(votes, table, weights, gold, state_class)[0]
    step = em_step(votes, table, weights, gold=gold, state_class=state_class, engine="numba", keep_posterior=True)
    assert step.posterior is not None
    return step.posterior


def em_step(
    votes: sparse.csr_array | VoteBlock,
    table: Floats,
    weights: Floats,
    *,
    gold: Codes,
    state_class: Codes,
    engine: EngineName,
    keep_posterior: bool = False,
    has_threads: bool = True,
) -> Expectation:
    """Expected states of all items and the votes' expected counts; `gold` is the known class of each item or -1.

    Compiled code takes a block of votes, and of a matrix makes one each time; scipy the other way round.
    """
    if engine == "scipy":
        matrix = votes.matrix if isinstance(votes, VoteBlock) else votes
        p, per_item = _posterior(matrix, table, weights, gold, state_class)
        counts = np.asarray(matrix.T @ p)
        return Expectation(counts, p.sum(axis=0), float(per_item.sum()), p if keep_posterior else None)
    from trueup.noise.kernels import compiled

    ready = votes if isinstance(votes, VoteBlock) else VoteBlock.of_matrix(votes, gold)
    rows = (ready.indptr, ready.indices.view(np.uint32), ready.data.astype(np.float64, copy=False))
    n_states = len(weights)
    given, width = gold.astype(np.int32, copy=False), compiled.width_for(n_states)
    # States that have no weight are added up to a multiple of the width.
    n_padded = n_states + -n_states % len(width)
    floored, starts = np.zeros((len(table), n_padded)), np.zeros((int(state_class.max()) + 2, n_padded))
    np.maximum(table, FLOOR, out=floored[:, :n_states])
    starts[:, :n_states] = starts_of_items(weights, state_class)
    out = np.empty((len(gold) if keep_posterior else 0, n_states))

    def block(low: int, high: int) -> tuple[Floats, Floats, float]:
        counts, state_counts = np.zeros(floored.shape), np.zeros(n_padded)
        arrays = (floored.reshape(-1), starts.reshape(-1), given, counts.reshape(-1), state_counts, out, width)
        total = compiled.em_block(low, high, *rows, *arrays)
        return counts, state_counts, total

    blocks = list(pairwise(edges_of(ready, has_threads)))
    run = map if len(blocks) == 1 else _threads_of(os.getpid()).map
    parts = list(run(lambda edges: block(*edges), blocks))
    counts, state_counts, total = parts[0]
    for more, more_state_counts, more_total in parts[1:]:
        counts += more
        state_counts += more_state_counts
        total += more_total
    # A copy without what was padded spares all who use the counts a stride.
    counts = np.ascontiguousarray(counts[:, :n_states])
    return Expectation(counts, state_counts[:n_states], total, out if keep_posterior else None)


def edges_of(votes: VoteBlock, has_threads: bool = True) -> list[int]:
    """Of parts of the items with about equal numbers of votes, which are worked on at once."""
    # Parts do not depend on the machine's cores, so sums are rounded alike everywhere. Each has counts of its own,
    # which must not need more memory than the votes.
    n_votes = len(votes.indices)
    n_parts = max(1, min(_MOST_BLOCKS if has_threads else 1, n_votes // _BLOCK, n_votes // votes.n_columns))
    cuts = [n_votes * k // n_parts for k in range(1, n_parts)]
    return [0, *np.searchsorted(votes.indptr, cuts).tolist(), votes.n_items]


def starts_of_items(weights: Floats, state_class: npt.NDArray[Any]) -> Floats:
    """What items start from: row 0, the weights, or row 1 + c, the weights of class c only, if known to be in c."""
    n_states = len(weights)
    starts = np.zeros((int(state_class.max()) + 2, n_states))
    starts[0] = weights
    starts[1 + state_class, np.arange(n_states)] = weights
    for c in np.flatnonzero(starts[1:].sum(axis=1) == 0):
        starts[1 + c] = state_class == c
    return starts


@lru_cache(maxsize=1)
def _threads_of(process: int) -> ThreadPoolExecutor:
    """One pool for all steps, since starting threads takes as long as a small step; a new one after a fork."""
    return ThreadPoolExecutor(n_cores(), thread_name_prefix="trueup")


def _posterior(
    votes: sparse.csr_array, table: Floats, weights: Floats, gold: npt.NDArray[Any], state_class: npt.NDArray[Any]
) -> tuple[Floats, Floats]:
    with np.errstate(divide="ignore"):  # a state may have no weight
        log_starts = np.log(starts_of_items(weights, state_class))
    joint = log_likelihood(votes, table)
    joint += log_starts[1 + gold] if (gold >= 0).any() else log_starts[0]
    # As scipy's logsumexp, which takes several times as long on few items.
    top = joint.max(axis=1, keepdims=True)
    chances = np.exp(joint - top)
    total = chances.sum(axis=1, keepdims=True)
    return chances / total, (top + np.log(total))[:, 0]


_Result = TypeVar("_Result")


class TooLittleMemory(Exception):
    """A device has too little memory for what was asked; its text says how much is needed and how much there is."""


def run_where_memory_suffices(
    run: Callable[[], _Result], n_votes: int, n_passes: int, *, offers: tuple[EngineName, ...]
) -> _Result:
    """Run with the engine that `run` chooses; again on the processor, with a warning, if a device lacks the memory."""
    try:
        return run()
    except Exception as problem:
        torch = sys.modules.get("torch")  # whose own error is there only if torch was loaded, which none of this does
        ran_out = torch is not None and isinstance(problem, torch.cuda.OutOfMemoryError)
        if not (ran_out or isinstance(problem, TooLittleMemory)):
            raise
        reason = str(problem) if isinstance(problem, TooLittleMemory) else "it ran out on the way"
    instead = "numba" if "numba" in offers and is_worth_compiling(n_votes * n_passes) else "scipy"
    warnings.warn(
        f"the device has too little memory for {n_votes:,} votes ({reason}), so {instead} works on the processor "
        f"instead; name a larger device (`engine='torch:cuda:1'`), or pass `engine={instead!r}` to choose this",
        TrueupWarning,
        stacklevel=2,
    )
    with using_engine(instead):
        return run()
