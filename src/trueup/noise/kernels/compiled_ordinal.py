"""A whole chain of `OrdinalSampler`, compiled; imported only where numba is installed."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from trueup._base.types import Floats
from trueup.noise.hamiltonian import BURN_IN
from trueup.noise.kernels.compiled_hamiltonian import distinct_items, sweeps_a_step
from trueup.noise.kernels.compiled_rating_steps import (
    fill_table,
    set_thresholds,
    sigmoid,
    step,
)
from trueup.noise.kernels.compiled_states import Integers, advance_states, count, draw_output_rows, record, volumes

_FEW_RATERS = 30
_REPEATS = 3  # of the moves in a sweep where there are few raters and no steps
_RATER_WORK = 1800
_SCALE = 2.4


@numba.njit(cache=True, nogil=True)
def _value(counts, gaps, bias, sharp, stretch, lapse, own):  # type: ignore[no-untyped-def]
    """Log-likelihood of the ratings of one rater, counts of shape (classes, ratings)."""
    n_classes = len(counts)
    set_thresholds(gaps, stretch, bias, own)
    scale, chance = math.exp(sharp), sigmoid(lapse)
    value = 0.0
    place = 0.0
    for y in range(n_classes):
        below = 0.0
        for k in range(n_classes):
            upto = sigmoid(scale * (own[k] - place)) if k < n_classes - 1 else 1.0
            if counts[y, k] > 0.0:
                value += counts[y, k] * math.log(max((1 - chance) * (upto - below) + chance / n_classes, 1e-12))
            below = upto
        if y < n_classes - 1:
            place += math.exp(gaps[2 * y]) + math.exp(gaps[2 * y + 1])
    return value


@numba.njit(cache=True, nogil=True)
def _log_gaps(gaps, hyper):  # type: ignore[no-untyped-def]
    value = 0.0
    for gap in gaps:
        value -= (gap - hyper[0]) ** 2
    return value / (2 * hyper[1] ** 2)


@numba.njit(cache=True, nogil=True)
def _is_accepted(change, rng):  # type: ignore[no-untyped-def]
    return math.log(max(rng.random(), 1e-300)) < change


@numba.njit(cache=True, nogil=True)
def _move_raters(counts, gaps, own, laws, steps, rate, values, moved, rng):  # type: ignore[no-untyped-def]
    """Each rater in each respect: bias, sharpness, stretch, lapse. The columns of `own` are these."""
    n_raters, n_classes = counts.shape[0], counts.shape[1]
    thresholds = np.empty(n_classes - 1)
    n_own = own.shape[1]
    for t in range(n_raters):
        for respect in range(4):
            low = respect if respect < 3 else n_own - 1
            high = n_own - 1 if respect == 2 else low + 1
            if low == high:
                continue
            spread = math.exp(laws[1 + respect])
            centre = laws[0] if respect == 3 else 0.0
            change = 0.0
            for k in range(n_own):
                moved[k] = own[t, k]
            for k in range(low, high):
                moved[k] += math.exp(steps[respect, t]) * rng.standard_normal()
                change += ((own[t, k] - centre) ** 2 - (moved[k] - centre) ** 2) / (2 * spread**2)
            value = _value(counts[t], gaps, moved[0], moved[1], moved[2 : n_own - 1], moved[n_own - 1], thresholds)
            accepted = _is_accepted(change + value - values[t], rng)
            if accepted:
                values[t] = value
                for k in range(low, high):
                    own[t, k] = moved[k]
            steps[respect, t] = min(steps[respect, t] + rate * ((1.0 if accepted else 0.0) - 0.35), math.log(3.0))


@numba.njit(cache=True, nogil=True)
def _move_gaps(counts, gaps, own, steps, hyper, rate, values, rng):  # type: ignore[no-untyped-def]
    """Each gap in turn."""
    n_raters, n_classes = counts.shape[0], counts.shape[1]
    thresholds = np.empty(n_classes - 1)
    n_own = own.shape[1]
    proposed = np.empty(n_raters)
    for k in range(len(gaps)):
        before = gaps[k]
        change = -_log_gaps(gaps, hyper)
        gaps[k] += math.exp(steps[k]) * rng.standard_normal()
        change += _log_gaps(gaps, hyper)
        for t in range(n_raters):
            proposed[t] = _value(
                counts[t], gaps, own[t, 0], own[t, 1], own[t, 2 : n_own - 1], own[t, n_own - 1], thresholds
            )
            change += proposed[t] - values[t]
        accepted = _is_accepted(change, rng)
        if accepted:
            values[:] = proposed
        else:
            gaps[k] = before
        steps[k] = min(steps[k] + rate * ((1.0 if accepted else 0.0) - 0.35), math.log(3.0))


@numba.njit(cache=True, nogil=True)
def _move_together(gaps, own, laws, hyper, rng):  # type: ignore[no-untyped-def]
    """Thresholds and biases up, then the whole scale wider; see `OrdinalSampler`."""
    n = len(own)
    bias_scale, sharp_scale = math.exp(laws[1]), math.exp(laws[2])
    step = _SCALE * rng.standard_normal() * bias_scale / math.sqrt(n)
    moved = np.exp(gaps)
    for k in range(len(gaps)):
        moved[k] += step if k % 2 == 0 else -step
    if moved.min() > 0:
        moved = np.log(moved)
        change = _log_gaps(moved, hyper) - _log_gaps(gaps, hyper) - (moved - gaps).sum()
        for t in range(n):
            change += (own[t, 0] ** 2 - (own[t, 0] + step) ** 2) / (2 * bias_scale**2)
        if _is_accepted(change, rng):
            gaps[:] = moved
            own[:, 0] += step
    step = _SCALE * rng.standard_normal() / math.sqrt(len(gaps) / hyper[1] ** 2 + n / sharp_scale**2)
    change = _log_gaps(gaps + step, hyper) - _log_gaps(gaps, hyper) + n * step
    for t in range(n):
        change += own[t, 0] ** 2 * (1 - math.exp(2 * step)) / (2 * bias_scale**2)
        change += (own[t, 1] ** 2 - (own[t, 1] - step) ** 2) / (2 * sharp_scale**2)
    if _is_accepted(change, rng):
        gaps += step
        own[:, 0] *= math.exp(step)
        own[:, 1] -= step


@numba.njit(cache=True, nogil=True)
def _draw_laws(own, laws, hyper, rng):  # type: ignore[no-untyped-def]
    """The mean of lapses, then how much raters differ in each respect."""
    n, n_own = own.shape
    scale = math.exp(laws[4])
    precision = hyper[3] ** -2 + n / scale**2
    centre = (hyper[2] / hyper[3] ** 2 + own[:, n_own - 1].sum() / scale**2) / precision
    laws[0] = centre + rng.standard_normal() / math.sqrt(precision)
    for respect in range(4):
        low = respect if respect < 3 else n_own - 1
        high = n_own - 1 if respect == 2 else low + 1
        squares = 0.0
        for t in range(n):
            for k in range(low, high):
                squares += (own[t, k] - (laws[0] if respect == 3 else 0.0)) ** 2
        size = n * (high - low)
        now = laws[1 + respect]
        new = now + _SCALE / math.sqrt(2.0 + 2.0 * size) * rng.standard_normal()
        change = (1 - size) * (new - now) - squares / 2 * (math.exp(-2 * new) - math.exp(-2 * now))
        change -= (math.exp(2 * new) - math.exp(2 * now)) / (2 * hyper[4 + respect] ** 2)
        if _is_accepted(change, rng):
            laws[1 + respect] = new


@numba.njit(cache=True, nogil=True)
def move(counts, gaps, own, laws, steps, gap_steps, hyper, rate, once, rng):  # type: ignore[no-untyped-def]
    """All parameters, `once` or some times over; counts are (raters, classes, ratings), in the order of the classes."""
    n_raters = len(counts)
    n_own = own.shape[1]
    thresholds = np.empty(counts.shape[1] - 1)
    values = np.empty(n_raters)
    moved = np.empty(n_own)
    for _ in range(1 if once or n_raters > _FEW_RATERS else _REPEATS):
        for t in range(n_raters):
            values[t] = _value(
                counts[t], gaps, own[t, 0], own[t, 1], own[t, 2 : n_own - 1], own[t, n_own - 1], thresholds
            )
        _move_raters(counts, gaps, own, laws, steps, rate, values, moved, rng)
        _move_gaps(counts, gaps, own, gap_steps, hyper, rate, values, rng)
        _move_together(gaps, own, laws, hyper, rng)
        _draw_laws(own, laws, hyper, rng)


@numba.njit(cache=True, nogil=True)
def _draw_rates(counts, rates, rng):  # type: ignore[no-untyped-def]
    """How often each rater rates, and abstains in each way, whatever the class."""
    n_raters, n_answers, n_classes = counts.shape
    if n_answers > n_classes:
        for t in range(n_raters):
            rates[t, 0] = rng.standard_gamma(1.0 + counts[t, :n_classes].sum())
            for a in range(n_classes, n_answers):
                rates[t, 1 + a - n_classes] = rng.standard_gamma(1.0 + counts[t, a].sum())
            rates[t] /= rates[t].sum()


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def run_chain(
    votes: tuple[Integers, Integers, Floats, Integers],
    systems: tuple[Integers, Integers, Floats, Floats],
    gold: Integers,
    item_prior: Floats,
    states: Integers,
    labels: Integers,
    classes: Integers,
    gaps: Floats,
    own: Floats,
    laws: Floats,
    steps: Floats,
    gap_steps: Floats,
    step_scale: tuple[Floats, Floats, Floats, Floats],
    n_sweeps: Integers,
    hyper: Floats,
    n_tuned: int,
    n_answers: int,
    n_labelers: int,
    n_warmup: int,
    kept: Integers,
    rng: Any,
    parameters: tuple[Floats, Floats, Floats, Floats],
    out: tuple[Floats, Integers],
    out_log_likelihood: Floats,
    done: Floats,
) -> None:
    """As `compiled_gibbs.run_chain`, for ratings; `gaps`, `own` and `laws` move.

    `classes` are the classes from the lowest to the highest, `n_sweeps` how many sweeps were made before.
    """
    n_classes, n_all = len(labels), len(own)
    n_draws = len(out_log_likelihood)
    counts = np.zeros((n_all, n_answers, n_classes))
    flat = counts.reshape(n_all * n_answers, n_classes)
    first = systems[1]
    output_counts = np.zeros((first[-1], n_classes))
    evidence = np.zeros((n_classes if len(item_prior) > 0 else 0, n_classes))
    totals = (flat, np.zeros(n_classes), np.zeros((n_classes, n_classes)), output_counts, evidence)
    output_table = np.empty((first[-1], n_classes))
    table = np.empty((n_all * n_answers, n_classes))
    weights = np.empty(n_classes)
    rates = np.ones((n_all, 1 + n_answers - n_classes))
    rated = np.empty((n_all, n_classes, n_classes))
    distinct = distinct_items(votes, systems, gold, item_prior)
    every = sweeps_a_step(distinct, len(gold), n_all, _RATER_WORK)
    with_steps = len(step_scale[0]) > 0
    proposed = (np.empty_like(gaps), np.empty_like(own), np.empty_like(weights), table.copy(), output_table.copy())
    expected = (
        np.empty_like(table),
        np.empty(n_classes),
        np.empty_like(output_table),
        np.empty(n_classes),
    )
    volume = volumes(votes, n_labelers, n_answers)
    count(votes, systems, gold, item_prior, states, totals)
    next_kept = np.int64(0)
    for sweep in range(n_warmup + n_draws):
        for t in range(n_all):
            for y in range(n_classes):
                for k in range(n_classes):
                    rated[t, y, k] = counts[t, classes[k], classes[y]]
        rate = 1.0 / math.sqrt(1.0 + n_sweeps[0] / 4) if n_sweeps[0] < n_tuned else 0.0
        move(rated, gaps, own, laws, steps, gap_steps, hyper, rate, with_steps, rng)
        n_sweeps[0] += 1
        _draw_rates(counts, rates, rng)
        fill_table(classes, gaps, own, rates, table)
        for y in range(n_classes):
            weights[y] = max(rng.standard_gamma(1.0 + totals[1][y]), 1e-300)
        weights /= weights.sum()
        draw_output_rows(totals[3], first, systems[3], systems[2], output_table, rng)
        if with_steps and n_sweeps[0] > BURN_IN and n_sweeps[0] % every == 0:
            moved = (gaps, own, weights, table, output_table)
            known = (classes, rates, laws, hyper, distinct)
            step(moved, proposed, known, expected, step_scale, sweep < n_warmup, rng)
        parts = (labels, weights, table, output_table)
        next_kept = advance_states(
            sweep - n_warmup, next_kept, votes, systems, gold, item_prior, parts, states, totals, kept, out, rng, done
        )
        if sweep >= n_warmup:
            k = sweep - n_warmup
            out_log_likelihood[k] = done[1]
            record(k, labels, weights, flat, table, n_labelers, n_answers, volume, parameters)
