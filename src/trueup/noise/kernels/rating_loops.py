"""The sampler of ratings: Metropolis steps on what raters do, given the states of the items."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trueup._base.types import Floats
from trueup.noise.kernels import FLOOR
from trueup.noise.kernels.loops import DRAWS, Integers, draw_output_rows, draw_rates, draw_weights, jit

_FEW_RATERS = 30
_REPEATS = 3  # of the moves in a sweep where there are few raters
_SCALE = 2.4  # steps in standard deviations of one number
_TUNED_SWEEPS = 150  # in which lengths of steps are learned


@jit
def sigmoid(x):
    """The logistic function."""
    return 1.0 / (1.0 + math.exp(-x)) if x > 0 else 1.0 - 1.0 / (1.0 + math.exp(x))


@jit
def set_thresholds(gaps, stretch, bias, own):
    """A rater's own thresholds, written into `own`."""
    n = len(own)
    point = 0.0
    mean = 0.0
    own_mean = 0.0
    last = 0.0
    for k in range(n):
        point += math.exp(gaps[2 * k])
        own[k] = point if k == 0 else own[k - 1] + (point - last) * math.exp(stretch[k - 1])
        mean += point / n
        own_mean += own[k] / n
        last = point
        point += math.exp(gaps[2 * k + 1])
    for k in range(n):
        own[k] += mean - own_mean - bias


@jit
def rate(gaps, rater, thresholds, rated):
    """P(rating | class) of one rater, a row of the state's `own`, by rank; written into `rated`."""
    n_classes = len(rated)
    set_thresholds(gaps, rater[2 : len(rater) - 1], rater[0], thresholds)
    scale, chance = math.exp(rater[1]), sigmoid(rater[len(rater) - 1])
    place = 0.0
    for y in range(n_classes):
        below = 0.0
        for k in range(n_classes):
            upto = sigmoid(scale * (thresholds[k] - place)) if k < n_classes - 1 else 1.0
            rated[y, k] = (1 - chance) * (upto - below) + chance / n_classes
            below = upto
        if y < n_classes - 1:
            place += math.exp(gaps[2 * y]) + math.exp(gaps[2 * y + 1])


@jit
def fill_table(classes, gaps, own, rates, table):
    """P(answer | rater, class), written into `table`; abstentions have a rate of the rater that ignores the class."""
    n_classes = len(classes)
    n_answers = n_classes + rates.shape[1] - 1
    thresholds, rated = np.empty(n_classes - 1), np.empty((n_classes, n_classes))
    for t in range(len(own)):
        rate(gaps, own[t], thresholds, rated)
        for y in range(n_classes):
            for k in range(n_classes):
                table[t * n_answers + classes[k], classes[y]] = max(rates[t, 0] * rated[y, k], FLOOR)
            for a in range(n_classes, n_answers):
                table[t * n_answers + a, classes[y]] = max(rates[t, 1 + a - n_classes], FLOOR)


@jit
def _value(counts, gaps, rater, thresholds, rated):
    """Log-likelihood of the ratings of one rater; counts of shape (classes, ratings)."""
    rate(gaps, rater, thresholds, rated)
    value = 0.0
    for y in range(len(counts)):
        for k in range(len(counts)):
            if counts[y, k] > 0.0:
                value += counts[y, k] * math.log(max(rated[y, k], 1e-12))
    return value


@jit
def _log_gaps(gaps, hyper):
    value = 0.0
    for gap in gaps:
        value -= (gap - hyper[0]) ** 2
    return value / (2 * hyper[1] ** 2)


@jit
def _is_accepted(change, rng):
    return math.log(max(rng.random(), 1e-300)) < change


@jit
def _move_raters(counts, gaps, own, laws, steps, speed, values, thresholds, rated, rng):
    """Each rater in each respect: bias, sharpness, stretch, lapse. The columns of `own` are these."""
    n_own = own.shape[1]
    moved = np.empty(n_own)
    for t in range(len(counts)):
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
            value = _value(counts[t], gaps, moved, thresholds, rated)
            accepted = _is_accepted(change + value - values[t], rng)
            if accepted:
                values[t] = value
                for k in range(low, high):
                    own[t, k] = moved[k]
            steps[respect, t] = min(steps[respect, t] + speed * ((1.0 if accepted else 0.0) - 0.35), math.log(3.0))


@jit
def _move_gaps(counts, gaps, own, steps, hyper, speed, values, thresholds, rated, rng):
    """Each gap in turn."""
    proposed = np.empty(len(counts))
    for k in range(len(gaps)):
        before = gaps[k]
        change = -_log_gaps(gaps, hyper)
        gaps[k] += math.exp(steps[k]) * rng.standard_normal()
        change += _log_gaps(gaps, hyper)
        for t in range(len(counts)):
            proposed[t] = _value(counts[t], gaps, own[t], thresholds, rated)
            change += proposed[t] - values[t]
        accepted = _is_accepted(change, rng)
        if accepted:
            values[:] = proposed
        else:
            gaps[k] = before
        steps[k] = min(steps[k] + speed * ((1.0 if accepted else 0.0) - 0.35), math.log(3.0))


@jit
def _move_together(gaps, own, laws, hyper, rng):
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


@jit
def _draw_laws(own, laws, hyper, rng):
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


@jit
def draw_ratings(model, totals, table, weights, systems, output_table, warm, rng):
    """All that raters do, rates of abstention, class shares and rows of systems."""
    flat, state_counts, _, output_counts = totals
    classes, gaps, own, laws, hyper = model.classes, model.gaps, model.own, model.laws, model.hyper
    n_raters, n_classes = len(own), len(classes)
    counts = flat.reshape(n_raters, len(flat) // n_raters, n_classes)
    rated = np.empty((n_raters, n_classes, n_classes))
    for t in range(n_raters):
        for y in range(n_classes):
            for k in range(n_classes):
                rated[t, y, k] = counts[t, classes[k], classes[y]]
    n_sweeps = model.n_sweeps
    speed = 1.0 / math.sqrt(1.0 + n_sweeps[0] / 4) if n_sweeps[0] < _TUNED_SWEEPS else 0.0
    thresholds, work, values = np.empty(n_classes - 1), np.empty((n_classes, n_classes)), np.empty(n_raters)
    for _ in range(1 if n_raters > _FEW_RATERS else _REPEATS):
        for t in range(n_raters):
            values[t] = _value(rated[t], gaps, own[t], thresholds, work)
        _move_raters(rated, gaps, own, laws, model.steps, speed, values, thresholds, work, rng)
        _move_gaps(rated, gaps, own, model.gap_steps, hyper, speed, values, thresholds, work, rng)
        _move_together(gaps, own, laws, hyper, rng)
        _draw_laws(own, laws, hyper, rng)
    n_sweeps[0] += 1
    draw_rates(counts, n_classes, model.rates, rng)
    fill_table(classes, gaps, own, model.rates, table)
    draw_weights(state_counts, weights, rng)
    draw_output_rows(output_counts, systems[1], systems[3], systems[2], output_table, rng)
    if not warm:
        for t in range(n_raters):
            model.sharpness[t] += math.exp(own[t, 1])


class RatingState(NamedTuple):
    """Where a chain of ratings stands.

    `classes` are from the lowest to the highest; `gaps`, `own` (a row for each rater) and `laws` (the mean of the
    lapses, and how much raters differ in each respect) move, by `steps` and `gap_steps`; `hyper` are their priors.
    `n_sweeps` has the sweeps made, and `sharpness` the sum over the draws.
    """

    labels: Integers
    classes: Integers
    gaps: Floats
    own: Floats
    laws: Floats
    steps: Floats
    gap_steps: Floats
    hyper: Floats
    rates: Floats
    n_sweeps: Integers
    sharpness: Floats


DRAWS[RatingState] = draw_ratings
