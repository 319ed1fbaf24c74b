"""The sampler as plain loops: compiled where numba is installed, and where it is not run by Python, far more slowly.

A chain draws the parameters given the states of the items (`draw_parameters`, one function for each model), and the
states given the parameters. `votes` is a table of counts by item (indptr, indices, data) with the row of each item,
which identical items share, and the first item of each row. `systems` are codes of outputs (systems, items), the first
column of each, what each counts for, and the pseudo-counts of the columns. `totals` are the counts of the votes, of the
items, of the gold items of each class and of the outputs in each state.

Arrays are copied number by number, since what numba brings along to say that shapes differ takes longer to compile than
the rest.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trueup._base.optional import is_installed
from trueup._base.types import Floats
from trueup.noise.kernels import FLOOR

Integers = npt.NDArray[Any]

_RESCALE_EVERY = 16

DRAWS: dict[type, Any] = {}  # the loop that draws the parameters, by the type of what it changes


def jit(function: Callable[..., Any]) -> Any:
    """The function compiled by numba where that is installed."""
    if not is_installed("numba"):
        return function
    import numba

    return numba.njit(cache=True, nogil=True)(function)


def in_python(function: Any) -> Any:
    """The function that `jit` was given; what it calls stays compiled."""
    return getattr(function, "py_func", function)


def draw_parameters(model, totals, table, weights, systems, output_table, warm, rng) -> None:
    """Fill `table`, `weights` and `output_table` with a draw given the totals; `model` is a tuple of `DRAWS`."""
    DRAWS[type(model)](model, totals, table, weights, systems, output_table, warm, rng)


def _compile_for_each_model():
    """Have numba choose the draw by the type of the model, as Python does."""
    from numba import extending

    @extending.overload(draw_parameters)
    def _choose(model, totals, table, weights, systems, output_table, warm, rng):
        draw = DRAWS[model.instance_class]
        return lambda model, totals, table, weights, systems, output_table, warm, rng: draw(
            model, totals, table, weights, systems, output_table, warm, rng
        )


if is_installed("numba"):
    _compile_for_each_model()


@jit
def _digamma(x):
    value = 0.0
    while x < 6.0:
        value -= 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    return value + math.log(x) - 0.5 / x - square * (1.0 / 12 - square * (1.0 / 120 - square / 252))


@jit
def draw_output_rows(counts, first, row_prior, power, table, rng):
    """Rows of the systems' outputs in each state, as each system counts.

    A row θ ~ Dir(prior + counts) of a system that counts for w enters as exp(w m + √w (log θ − m)), where m is the mean
    of log θ. Of k copies with w = 1 / k each, the product has the mean and the covariance that log θ of one of them
    has; with rows drawn from 1 / k of the counts many copies would be taken for all but infallible.
    """
    for s in range(len(power)):
        for g in range(counts.shape[1]):
            total = 0.0
            mass = 0.0
            for c in range(first[s], first[s + 1]):
                table[c, g] = max(rng.standard_gamma(row_prior[c, g] + counts[c, g]), 1e-100)
                total += table[c, g]
                mass += row_prior[c, g] + counts[c, g]
            for c in range(first[s], first[s + 1]):
                table[c, g] = max(table[c, g] / total, FLOOR)
                if power[s] != 1.0:
                    mean = max(_digamma(row_prior[c, g] + counts[c, g]) - _digamma(mass), math.log(FLOOR))
                    value = math.log(table[c, g]) - mean
                    table[c, g] = math.exp(power[s] * mean + math.sqrt(power[s]) * value)


@jit
def weigh_states(votes, systems, gold, parts, chances, sums):
    """P(state and what is said of an item), but for a scale, for each row; `sums` has log P and the scaled total."""
    indptr, indices, data, _, first_item = votes
    outputs, first, power, _ = systems
    labels, weights, table, output_table = parts
    n_states = len(weights)
    for row in range(len(first_item)):
        i = first_item[row]
        log_scale = 0.0
        for g in range(n_states):
            chances[row, g] = weights[g] if gold[i] < 0 or labels[g] == gold[i] else 0.0
        factors = 0
        for j in range(indptr[i], indptr[i + 1]):
            column = indices[j]
            whole = int(data[j])
            part = data[j] - whole
            if part > 0.0:
                for g in range(n_states):
                    chances[row, g] *= table[column, g] ** part
                factors += 1
            for _ in range(whole):
                for g in range(n_states):
                    chances[row, g] *= table[column, g]
                factors += 1
                if factors >= _RESCALE_EVERY:
                    top = 0.0
                    for g in range(n_states):
                        top = max(top, chances[row, g])
                    for g in range(n_states):
                        chances[row, g] /= top
                    log_scale += math.log(top)
                    factors = 0
        for s in range(len(power)):
            if outputs[s, i] >= 0:
                column = first[s] + outputs[s, i]
                for g in range(n_states):
                    chances[row, g] *= output_table[column, g]
        total = 0.0
        for g in range(n_states):
            total += chances[row, g]
        sums[row, 0] = log_scale + math.log(total)
        sums[row, 1] = total


@jit
def draw_states(row_of_item, chances, sums, states, rng):
    """Draw the states of all items in their order; returns their log-likelihood."""
    log_likelihood = 0.0
    for i in range(len(row_of_item)):
        row = row_of_item[i]
        log_likelihood += sums[row, 0]
        rest = rng.random() * sums[row, 1]
        for g in range(chances.shape[1]):
            if chances[row, g] > 0.0:
                states[i] = g
                rest -= chances[row, g]
                if rest < 0.0:
                    break
    return log_likelihood


@jit
def count_states(votes, systems, gold, states, totals, n_drawn):
    """Fill `totals` with what is said of the items in each state; `n_drawn` is of the shape (rows, states)."""
    indptr, indices, data, row_of_item, first_item = votes
    outputs, first, power, _ = systems
    counts, state_counts, held, output_counts = totals
    counts[:] = 0.0
    state_counts[:] = 0.0
    held[:] = 0.0
    output_counts[:] = 0.0
    n_drawn[:] = 0.0
    for i in range(len(states)):
        n_drawn[row_of_item[i], states[i]] += 1.0
    for row in range(len(first_item)):
        i = first_item[row]
        for g in range(len(state_counts)):
            n = n_drawn[row, g]
            if n == 0.0:
                continue
            state_counts[g] += n
            if gold[i] >= 0:
                held[g, gold[i]] += n
            for j in range(indptr[i], indptr[i + 1]):
                counts[indices[j], g] += n * data[j]
            for s in range(len(power)):
                if outputs[s, i] >= 0:
                    output_counts[first[s] + outputs[s, i], g] += n


@jit
def record(k, labels, weights, counts, table, volume, chances, sums, out):
    """Class shares, accuracies of labelers and chances of the classes of one draw."""
    prior, accuracy, _, mean_table, posterior = out
    n_answers = len(table) // len(volume)
    for row in range(len(table)):
        for g in range(len(weights)):
            mean_table[row, g] += table[row, g] / len(prior)
    for g in range(len(weights)):
        y = labels[g]
        prior[k, y] += weights[g]
        for t in range(len(volume)):
            accuracy[k, t] += counts[t * n_answers + y, g]
        for row in range(len(chances)):
            posterior[row, y] += chances[row, g] / sums[row, 1]
    for t in range(len(volume)):
        accuracy[k, t] = accuracy[k, t] / volume[t] if volume[t] > 0 else np.nan


@jit
def run_chain(model, problem, volume, states, n_warmup, each, kept, rng, out, truths, done):
    """Run all sweeps of a chain from the states of the items, and fill the outputs, one draw after `each` sweeps.

    `states` and the arrays of the model are changed in place. `volume` has how many votes each labeler gave. `out` are
    of each draw class shares, accuracies of labelers and log-likelihoods, the mean of the tables and the summed chances
    of the classes of each row; `truths` are those of the draws `kept`. `done` counts sweeps, for progress, and has the
    log-likelihood of the last.
    """
    votes, systems, gold = problem
    prior, _, log_likelihood, mean_table, _ = out
    n_states, n_rows, n_outputs = len(model.labels), len(votes[4]), systems[1][-1]
    counts, output_counts = np.empty((len(mean_table), n_states)), np.empty((n_outputs, n_states))
    totals = (counts, np.empty(n_states), np.empty((n_states, prior.shape[1])), output_counts)
    table, weights, output_table = np.empty(counts.shape), np.empty(n_states), np.empty(output_counts.shape)
    chances, n_drawn, sums = np.empty((n_rows, n_states)), np.empty((n_rows, n_states)), np.empty((n_rows, 2))
    count_states(votes, systems, gold, states, totals, n_drawn)
    next_kept = 0
    for sweep in range(n_warmup + each * len(prior)):
        draw_parameters(model, totals, table, weights, systems, output_table, sweep < n_warmup, rng)
        weigh_states(votes, systems, gold, (model.labels, weights, table, output_table), chances, sums)
        done[1] = draw_states(votes[3], chances, sums, states, rng)
        count_states(votes, systems, gold, states, totals, n_drawn)
        done[0] += 1
        if sweep >= n_warmup and (sweep - n_warmup) % each == each - 1:
            k = (sweep - n_warmup) // each
            log_likelihood[k] = done[1]
            record(k, model.labels, weights, counts, table, volume, chances, sums, out)
            if next_kept < len(kept) and kept[next_kept] == k:
                for i in range(len(states)):
                    truths[next_kept, i] = model.labels[states[i]]
                next_kept += 1


# ------------------ The parameters of each model


def _draw_by_sampler(model, totals, table, weights, systems, output_table, warm, rng):
    counts, state_counts, held, output_counts = totals
    sampler = model.sampler
    sampler.draw(counts, state_counts, held, rng)
    model.labels[:] = sampler.state_class
    np.maximum(sampler.table, FLOOR, out=table)
    weights[:] = sampler.weights
    draw_output_rows(output_counts, systems[1], systems[3], systems[2], output_table, rng)


class OwnSampler(NamedTuple):
    """A sampler from outside, whose `draw` is Python: the chain is run by Python, with the draws of states compiled."""

    sampler: Any
    labels: Integers


DRAWS[OwnSampler] = _draw_by_sampler


@jit
def _agrees(held, state, label):
    """Whether a state may have a class: it holds no item known to be of another."""
    return held[state].sum() == held[state, label]


@jit
def _exchange_classes(fit, held, labels, rng):
    """Propose that two states exchange their classes; `fit` is the log probability of each state by its class."""
    n_states = len(held)
    # Pairs are unordered and the condition is the same from both sides, so each step has its own reverse.
    for a in range(n_states):
        for b in range(a + 1, n_states):
            la = labels[a]
            lb = labels[b]
            if not (_agrees(held, a, lb) and _agrees(held, b, la)):
                continue
            change = fit[a, lb] + fit[b, la] - fit[a, la] - fit[b, lb]
            if math.log(max(rng.random(), 1e-300)) < change:
                labels[a] = lb
                labels[b] = la


@jit
def _draw_hyper(counts, held, labels, pooled, strength, hyper, rng):
    """Tables, strengths, exchanges of classes, pooled rows, and exchanges given these.

    With n votes drawn from a Dirichlet–multinomial with mass b on an answer, the number of tables is a sum of
    Bernoulli(b / (b + r)), r = 0 … n − 1 (Antoniak); given tables, pooled rows are conjugate. Strengths are drawn with
    the auxiliary variables of Escobar and West.
    """
    n_labelers, n_answers, n_states = counts.shape
    diagonal, shape0, rate0 = hyper
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
    _exchange_classes(fit, held, labels, rng)
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
    _exchange_classes(fit, held, labels, rng)


@jit
def draw_weights(state_counts, weights, rng):
    """Shares of the states, with a flat prior."""
    total = 0.0
    for g in range(len(weights)):
        weights[g] = max(rng.standard_gamma(1.0 + state_counts[g]), 1e-300)
        total += weights[g]
    for g in range(len(weights)):
        weights[g] = max(weights[g] / total, 1e-300)


@jit
def draw_rates(counts, n_classes, rates, rng):
    """How often each rater names a class, and abstains in each way, whatever the class."""
    n_raters, n_answers, _ = counts.shape
    if n_answers > n_classes:
        for t in range(n_raters):
            rates[t, 0] = rng.standard_gamma(1.0 + counts[t, :n_classes].sum())
            for a in range(n_classes, n_answers):
                rates[t, 1 + a - n_classes] = rng.standard_gamma(1.0 + counts[t, a].sum())
            rates[t] /= rates[t].sum()


@jit
def draw_rows(model, totals, table, weights, systems, output_table, warm, rng):
    """Strengths, exchanges and pooled rows where rows are pooled; weights; rows of labelers and of systems."""
    flat, state_counts, held, output_counts = totals
    n_states, n_answers = model.pooled.shape
    counts = flat.reshape(len(flat) // n_answers, n_answers, n_states)
    if model.is_pooled:
        _draw_hyper(counts, held, model.labels, model.pooled, model.strength, model.hyper, rng)
    draw_weights(state_counts, weights, rng)
    row = np.empty(n_answers)
    for t in range(len(counts)):
        for g in range(n_states):
            total = 0.0
            for a in range(n_answers):
                row[a] = max(rng.standard_gamma(model.strength[g] * model.pooled[g, a] + counts[t, a, g]), 1e-100)
                total += row[a]
            for a in range(n_answers):
                table[t * n_answers + a, g] = max(row[a] / total, FLOOR)
    draw_output_rows(output_counts, systems[1], systems[3], systems[2], output_table, rng)


class RowState(NamedTuple):
    """Rows with Dirichlet priors: `strength` votes like the `pooled` row of the state, both drawn too if `is_pooled`.

    `hyper` is the pseudo-count of the right answer, and the Gamma law of the strengths, whose shape is 0 where they are
    fixed.
    """

    labels: Integers
    pooled: Floats
    strength: Floats
    hyper: tuple[float, float, float]
    is_pooled: bool


DRAWS[RowState] = draw_rows


@jit
def draw_one_coin(model, totals, table, weights, systems, output_table, warm, rng):
    """Accuracies, rates of abstention, weights, and rows of systems."""
    flat, state_counts, _, output_counts = totals
    n_answers, n_classes = model.n_answers, len(model.labels)
    counts = flat.reshape(len(flat) // n_answers, n_answers, n_classes)
    accuracy = np.empty(len(counts))
    for t in range(len(counts)):
        right, total = 0.0, 0.0
        for a in range(n_classes):
            right += counts[t, a, a]
            total += counts[t, a].sum()
        accuracy[t] = rng.beta(model.right + right, model.wrong + max(total - right, 0.0))
    rates = np.ones((len(counts), 1 + n_answers - n_classes))
    draw_rates(counts, n_classes, rates, rng)
    draw_weights(state_counts, weights, rng)
    for t in range(len(counts)):
        for a in range(n_answers):
            for y in range(n_classes):
                chance = accuracy[t] if a == y else (1 - accuracy[t]) / (n_classes - 1)
                rate = rates[t, 0] * chance if a < n_classes else rates[t, 1 + a - n_classes]
                table[t * n_answers + a, y] = max(rate, FLOOR)
    draw_output_rows(output_counts, systems[1], systems[3], systems[2], output_table, rng)


class OneCoinState(NamedTuple):
    """Accuracies with Beta(right, wrong) priors."""

    labels: Integers
    right: float
    wrong: float
    n_answers: int


DRAWS[OneCoinState] = draw_one_coin


# ------------------ Ratings: Metropolis steps on what raters do, given the states of the items.

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
