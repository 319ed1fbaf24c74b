"""A whole chain of `DifficultySampler`, compiled; imported only where numba is installed."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from trueup._base.types import Floats
from trueup.noise.hamiltonian import MOST_NUMBERS, SETTLING
from trueup.noise.kernels.compiled_hamiltonian import distinct_items, fill_table, move, sweeps_a_step
from trueup.noise.kernels.compiled_states import (
    Integers,
    advance_states,
    count,
    draw_output_rows,
    record,
    volumes,
)

_FEW_RATERS = 30
_RATER_WORK = 200


@numba.njit(cache=True, nogil=True)
def _log_sigmoid(x):  # type: ignore[no-untyped-def]
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


@numba.njit(cache=True, nogil=True)
def _log_right(level, slope, right, wrong, grid):  # type: ignore[no-untyped-def]
    """Log-likelihood of right and wrong votes on items of one class by their ease."""
    value = 0.0
    for k in range(len(grid)):
        if right[k] + wrong[k] > 0.0:
            margin = level + slope * grid[k]
            log_right = _log_sigmoid(margin)
            value += right[k] * log_right + wrong[k] * (log_right - margin)
    return value


@numba.njit(cache=True, nogil=True)
def _draw_abilities(counts, labels, grid, levels, slopes, means, spread, hyper, rng):  # type: ignore[no-untyped-def]
    """Levels and slopes of the raters and their laws, given the counts by state; see `DifficultySampler.draw`."""
    n_raters, n_answers, n_states = counts.shape
    n_classes, n_points = levels.shape[1], len(grid)
    mean0, mean_scale, level_scale, slope_scale, spread_scale = hyper
    right = np.zeros((n_raters, n_classes, n_points))
    wrong = np.zeros((n_raters, n_classes, n_points))
    for t in range(n_raters):
        for g in range(n_states):
            y = labels[g]
            for a in range(n_answers):
                if a == y:
                    right[t, y, g % n_points] += counts[t, a, g]
                else:
                    wrong[t, y, g % n_points] += counts[t, a, g]
    current = np.empty((n_raters, n_classes))  # the log-likelihood of each rater's votes on items of a class
    moved = np.empty((n_raters, n_classes))
    for t in range(n_raters):
        for y in range(n_classes):
            current[t, y] = _log_right(levels[t, y], math.exp(slopes[t]), right[t, y], wrong[t, y], grid)
    for _ in range(2 if n_raters <= _FEW_RATERS else 1):  # of many raters, each says less of the rest
        for t in range(n_raters):
            slope = math.exp(slopes[t])
            n_votes = 0.0
            for y in range(n_classes):
                n = right[t, y].sum() + wrong[t, y].sum()
                n_votes += n
                proposal = levels[t, y] + rng.standard_normal() * 2.4 / math.sqrt(level_scale**-2 + n / 6)
                value = _log_right(proposal, slope, right[t, y], wrong[t, y], grid)
                change = value - current[t, y]
                change -= ((proposal - means[y]) ** 2 - (levels[t, y] - means[y]) ** 2) / (2 * level_scale**2)
                if math.log(max(rng.random(), 1e-300)) < change:
                    levels[t, y] = proposal
                    current[t, y] = value
            new = slopes[t] + rng.standard_normal() * 2.4 / math.sqrt(slope_scale**-2 + n_votes / 10)
            for y in range(n_classes):
                moved[t, y] = _log_right(levels[t, y], math.exp(new), right[t, y], wrong[t, y], grid)
            change = moved[t].sum() - current[t].sum()
            change -= ((new - spread[0]) ** 2 - (slopes[t] - spread[0]) ** 2) / (2 * slope_scale**2)
            if math.log(max(rng.random(), 1e-300)) < change:
                slopes[t] = new
                for y in range(n_classes):
                    current[t, y] = moved[t, y]
        for y in range(n_classes):
            precision = mean_scale**-2 + n_raters * level_scale**-2
            centre = (mean0 * mean_scale**-2 + levels[:, y].sum() * level_scale**-2) / precision
            means[y] = centre + rng.standard_normal() / math.sqrt(precision)
        # How much items differ at all: first alone, then with all slopes moved along.
        for joint in range(2):
            step = rng.standard_normal() * (0.3 if joint == 0 else 0.15)
            new = spread[0] + step
            change = step - (math.exp(2 * new) - math.exp(2 * spread[0])) / (2 * spread_scale**2)
            for t in range(n_raters):
                if joint == 0:
                    change -= ((slopes[t] - new) ** 2 - (slopes[t] - spread[0]) ** 2) / (2 * slope_scale**2)
                else:
                    for y in range(n_classes):
                        moved[t, y] = _log_right(
                            levels[t, y], math.exp(slopes[t] + step), right[t, y], wrong[t, y], grid
                        )
                        change += moved[t, y] - current[t, y]
            if math.log(max(rng.random(), 1e-300)) < change:
                spread[0] = new
                for t in range(n_raters if joint == 1 else 0):
                    slopes[t] += step
                    for y in range(n_classes):
                        current[t, y] = moved[t, y]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def run_chain(
    votes: tuple[Integers, Integers, Floats, Integers],
    systems: tuple[Integers, Integers, Floats, Floats],
    gold: Integers,
    item_prior: Floats,
    states: Integers,
    labels: Integers,
    group: Integers,
    grid: Floats,
    grid_weights: Floats,
    levels: Floats,
    slopes: Floats,
    means: Floats,
    spread: Floats,
    step_scale: tuple[Floats, Floats, Floats, Floats],
    hyper: tuple[float, float, float, float, float],
    n_answers: int,
    n_labelers: int,
    n_warmup: int,
    kept: Integers,
    rng: Any,
    parameters: tuple[Floats, Floats, Floats, Floats],
    out: tuple[Floats, Integers, Floats, Floats],
    out_log_likelihood: Floats,
    done: Floats,
) -> None:
    """As `compiled_gibbs.run_chain`, for items more or less easy; `levels`, `slopes`, `means` and `spread` move."""
    n_classes, n_points = parameters[0].shape[1], len(grid)
    n_states = n_classes * n_points
    n_all = len(slopes)
    n_draws = len(out_log_likelihood)
    counts = np.zeros((n_all, n_answers, n_states))
    flat = counts.reshape(n_all * n_answers, n_states)
    first = systems[1]
    n_groups = group.max() + 1
    output_counts = np.zeros((first[-1], n_groups))
    evidence = np.zeros((n_states if len(item_prior) > 0 else 0, n_classes))
    totals = (flat, np.zeros(n_states), np.zeros((n_states, n_classes)), output_counts, evidence)
    output_table = np.empty((first[-1], n_groups))
    table = np.empty((n_all * n_answers, n_states))
    weights = np.empty(n_states)
    wrong_rows = np.zeros((n_all, n_classes, n_answers))
    shares = np.empty(n_classes)
    volume = volumes(votes, n_labelers, n_answers)
    count(votes, systems, gold, item_prior, group, states, totals)
    next_kept = np.int64(0)
    distinct = distinct_items(votes, systems, gold, item_prior)
    every = sweeps_a_step(distinct, len(gold), n_all, _RATER_WORK)
    proposed = (
        np.empty_like(levels),
        np.empty_like(slopes),
        np.empty_like(shares),
        np.empty_like(weights),
        np.empty_like(table),
        np.empty_like(output_table),
    )
    by_state = np.empty((first[-1], n_states))
    expected = (
        np.empty_like(table),
        np.empty(n_classes),
        np.empty_like(output_table),
        by_state,
        np.empty_like(by_state),
        np.empty(n_states),
    )
    for sweep in range(n_warmup + n_draws):
        _draw_abilities(counts, labels, grid, levels, slopes, means, spread, hyper, rng)
        for y in range(n_classes):
            items = 0.0
            for k in range(n_points):
                items += totals[1][y * n_points + k]
            shares[y] = max(rng.standard_gamma(1.0 + items), 1e-300)
        total = shares.sum()
        for y in range(n_classes):
            for k in range(n_points):
                weights[y * n_points + k] = shares[y] / total * grid_weights[k]
        for t in range(n_all):
            for y in range(n_classes):
                total = 0.0
                for a in range(n_answers):
                    if a != y:
                        said = 0.0
                        for k in range(n_points):
                            said += counts[t, a, y * n_points + k]
                        wrong_rows[t, y, a] = max(rng.standard_gamma(1.0 + said), 1e-100)
                        total += wrong_rows[t, y, a]
                for a in range(n_answers):
                    wrong_rows[t, y, a] /= total
        fill_table(levels, slopes, wrong_rows, grid, table)
        draw_output_rows(totals[3], first, systems[3], systems[2], output_table, rng)
        total = shares.sum()
        for y in range(n_classes):
            shares[y] /= total
        if len(step_scale[0]) <= MOST_NUMBERS and done[0] >= SETTLING and int(done[0]) % every == 0:
            moved = (levels, slopes, means, spread, shares, weights, table, output_table)
            known = (wrong_rows, grid, grid_weights, hyper, distinct, group)
            move(moved, proposed, known, expected, step_scale, sweep < n_warmup, rng)
        parts = (labels, group, weights, table, output_table)
        next_kept = advance_states(
            sweep - n_warmup, next_kept, votes, systems, gold, item_prior, parts, states, totals, kept, out, rng, done
        )
        if sweep >= n_warmup:
            k = sweep - n_warmup
            out_log_likelihood[k] = done[1]
            record(k, labels, weights, flat, table, n_labelers, n_answers, volume, parameters)
