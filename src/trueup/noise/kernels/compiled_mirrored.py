"""A whole chain of `MirroredSampler`, compiled; imported only where numba is installed."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from trueup._base.types import Floats
from trueup.noise.kernels.compiled_states import FLOOR, Integers, advance, count, record, volumes


@numba.njit(cache=True, nogil=True)
def _mirrored(place):  # type: ignore[no-untyped-def]
    return 1 - place if place < 2 else place


@numba.njit(cache=True, nogil=True)
def _draw_row(mass, row, rng):  # type: ignore[no-untyped-def]
    total = 0.0
    for a in range(len(mass)):
        row[a] = max(rng.standard_gamma(mass[a]), 1e-100)
        total += row[a]
    row /= total


@numba.njit(cache=True, nogil=True)
def _draw_table(counts, judge, presentation, prior, table, rng):  # type: ignore[no-untyped-def]
    """The rows of all judges, written into `table`; see `MirroredSampler.draw`."""
    n_raters, n_classes = counts.shape[0], counts.shape[2]
    n_judges = judge.max() + 1
    mass = np.empty((n_judges, n_classes, n_classes))
    rows = np.empty((n_judges, n_classes, n_classes))
    mass[:] = prior
    for t in range(n_raters):
        for y in range(n_classes):
            for a in range(n_classes):
                if presentation[t] == 0:
                    mass[judge[t], y, a] += counts[t, a, y]
                elif presentation[t] == 1:
                    mass[judge[t], _mirrored(y), _mirrored(a)] += counts[t, a, y]
    for j in range(n_judges):
        for y in range(n_classes):
            _draw_row(mass[j, y], rows[j, y], rng)
    own = np.empty(n_classes)
    own_row = np.empty(n_classes)
    both = np.empty(2)
    both_row = np.empty(2)
    for t in range(n_raters):
        if presentation[t] < 2:
            for y in range(n_classes):
                for a in range(n_classes):
                    at = (_mirrored(y), _mirrored(a)) if presentation[t] == 1 else (y, a)
                    table[t * n_classes + a, y] = max(rows[judge[t], at[0], at[1]], FLOOR)
            continue
        for a in range(n_classes):
            own[a] = prior[0, a] + counts[t, a, 0] + counts[t, _mirrored(a), 1]
        _draw_row(own, own_row, rng)
        for a in range(n_classes):
            table[t * n_classes + a, 0] = max(own_row[a], FLOOR)
            table[t * n_classes + _mirrored(a), 1] = max(own_row[a], FLOOR)
        if n_classes > 2:
            both[0] = prior[2, 0] + prior[2, 1] + counts[t, 0, 2] + counts[t, 1, 2]
            both[1] = prior[2, 2] + counts[t, 2, 2]
            _draw_row(both, both_row, rng)
            for a in range(n_classes):
                table[t * n_classes + a, 2] = max(both_row[1] if a == 2 else both_row[0] / 2, FLOOR)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def run_chain(
    votes: tuple[Integers, Integers, Floats, Integers],
    systems: tuple[Integers, Integers, Floats, Floats],
    gold: Integers,
    item_prior: Floats,
    states: Integers,
    labels: Integers,
    judge: Integers,
    presentation: Integers,
    prior: Floats,
    n_labelers: int,
    n_warmup: int,
    kept: Integers,
    rng: Any,
    parameters: tuple[Floats, Floats, Floats, Floats],
    out: tuple[Floats, Integers, Floats, Floats],
    out_log_likelihood: Floats,
    done: Floats,
) -> None:
    """As `compiled_gibbs.run_chain`, for judges of pairs."""
    n_classes, n_all = len(labels), len(judge)
    n_draws = len(out_log_likelihood)
    counts = np.zeros((n_all, n_classes, n_classes))
    flat = counts.reshape(n_all * n_classes, n_classes)
    first = systems[1]
    evidence = np.zeros((n_classes if len(item_prior) > 0 else 0, n_classes))
    output_counts = np.zeros((first[-1], n_classes))
    totals = (flat, np.zeros(n_classes), np.zeros((n_classes, n_classes)), output_counts, evidence)
    output_table = np.empty((first[-1], n_classes))
    table = np.empty((n_all * n_classes, n_classes))
    weights = np.empty(n_classes)
    volume = volumes(votes, n_labelers, n_classes)
    count(votes, systems, gold, item_prior, labels, states, totals)
    next_kept = np.int64(0)
    for sweep in range(n_warmup + n_draws):
        _draw_table(counts, judge, presentation, prior, table, rng)
        _draw_row(1.0 + totals[1], weights, rng)
        parts = (labels, labels, weights, table, output_table)
        next_kept = advance(
            sweep - n_warmup, next_kept, votes, systems, gold, item_prior, parts, states, totals, kept, out, rng, done
        )
        if sweep >= n_warmup:
            k = sweep - n_warmup
            out_log_likelihood[k] = done[1]
            record(k, labels, weights, flat, table, n_labelers, n_classes, volume, parameters)
