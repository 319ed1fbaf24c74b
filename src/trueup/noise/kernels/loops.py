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
    of log θ. With w = 1 this is θ. Of k copies with w = 1 / k each, the product has the mean and the covariance that
    log θ of one of them has: rows drawn from 1 / k of the counts would have that spread too, but each is drawn to the
    edge where an answer is rare, so that many copies would be taken for all but infallible.
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
