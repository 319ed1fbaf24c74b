"""What a panel may say of an item, with what is then known of its class.

Three ways to list it, tried in this order:

- *enumeration*: all outcomes. Labelers with the same matrix are exchangeable, so only their counts matter.
- *merging*: two classes, labelers independent given the class. Outcomes after which the posterior is almost the same
  are merged as labelers are added. Merging only loses information, and the loss is known at each step [1]_.
- *Monte Carlo*: draws, with a standard error.

References
----------
.. [1] Tal and Vardy (2013), "How to construct polar codes", IEEE Transactions on Information Theory 59(10).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import entr, gammaln, xlogy

from trueup._validation import RandomState, as_generator
from trueup.labelers.channel import Channel, Floats

__all__ = ["MAX_OUTCOMES", "Method", "Outcomes", "compositions", "entropy", "list_outcomes"]

Method = Literal["enumeration", "merging", "monte-carlo"]
MAX_OUTCOMES = 2**20
_MAX_CELLS = 2**24  # of the table outcomes × states: 128 MB
_BINS = 2**14
_CHUNK = 20_000


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of the votes on one item: their probabilities and P(class | outcome).

    Attributes
    ----------
    weights : array of shape (n,)
    posterior : array of shape (n, n_classes)
    method : {"enumeration", "merging", "monte-carlo"}
    lost : float
        With merging, the most bits that were lost.
    """

    weights: Floats
    posterior: Floats
    method: Method
    lost: float = 0.0

    def mean(self, values: Floats) -> tuple[float, float]:
        """Mean of a function of the outcome, and its Monte Carlo standard error (0 where nothing is drawn)."""
        average = float(self.weights @ values)
        if self.method != "monte-carlo":
            return average, 0.0
        return average, float(values.std(ddof=1) / np.sqrt(len(values)))


def entropy(probabilities: Floats) -> Floats:
    """Bits along the last axis.

    Examples
    --------
    >>> float(entropy(np.array([0.5, 0.5])))
    1.0
    """
    return np.asarray(entr(probabilities).sum(axis=-1) / np.log(2))


def list_outcomes(
    channel: Channel,
    *,
    max_outcomes: int = MAX_OUTCOMES,
    n_draws: int = 50_000,
    random_state: RandomState = 0,
) -> Outcomes:
    """All outcomes of the votes of a panel, or a sample of them.

    Parameters
    ----------
    channel : Channel
    max_outcomes : int
        The most outcomes that are enumerated.
    n_draws : int
        Draws where there are more, and merging is not possible.
    random_state : int, Generator or None
        For the draws.
    """
    kinds, copies = _kinds(channel.matrices)
    n_states, n_answers = channel.matrices.shape[1:]
    total = 1
    for n in copies:
        total *= comb(int(n) + n_answers - 1, n_answers - 1)
    if total <= max_outcomes and total * n_states <= _MAX_CELLS:
        table = np.ones((1, n_states))
        for matrix, n in zip(kinds, copies, strict=True):
            table = _crossed(table, _count_probabilities(matrix, int(n)))
        return _weighed(table, channel, "enumeration")
    if n_states == 2 and channel.is_independent:
        return _merged(channel)
    return _drawn(channel, n_draws, as_generator(random_state))


def _kinds(matrices: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The different matrices, and how many labelers have each."""
    flat, copies = np.unique(matrices.reshape(len(matrices), -1), axis=0, return_counts=True)
    return flat.reshape(-1, *matrices.shape[1:]), copies


def _crossed(table: Floats, other: Floats) -> Floats:
    """P(both outcomes | state), independent given the state; outcomes that cannot happen are left out."""
    both = (table[:, None, :] * other[None, :, :]).reshape(-1, table.shape[1])
    possible = both.any(axis=1)
    return both if possible.all() else both[possible]


def _count_probabilities(matrix: Floats, n: int) -> Floats:
    """P(how many of n labelers with this matrix give each answer | state), shape (outcomes, states)."""
    counts = compositions(n, matrix.shape[1])
    log_ways = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)
    log_each = np.stack([xlogy(counts, row).sum(axis=1) for row in matrix], axis=1)
    return np.asarray(np.exp(log_ways[:, None] + log_each))


def compositions(n: int, parts: int) -> Floats:
    """All ways to split n into so many counts, shape (ways, parts).

    Examples
    --------
    >>> compositions(2, 2).tolist()
    [[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]
    """
    if parts == 1:
        return np.array([[float(n)]])
    if parts == 2:
        first = np.arange(n + 1.0)
        return np.column_stack([first, n - first])
    rests = [compositions(n - k, parts - 1) for k in range(n + 1)]
    return np.concatenate([np.column_stack([np.full(len(rest), float(k)), rest]) for k, rest in enumerate(rests)])


def _weighed(table: Floats, channel: Channel, method: Method, lost: float = 0.0) -> Outcomes:
    joint = (table * channel.weights) @ channel.state_class
    weights = joint.sum(axis=1)
    possible = weights > 0
    if not possible.all():
        joint, weights = joint[possible], weights[possible]
    return Outcomes(weights, joint / weights[:, None], method, lost)


def _merged(channel: Channel) -> Outcomes:
    """Labelers one by one; outcomes whose posterior falls into one bin become one.

    With M what is left of the votes Z so far and W the later votes, the merge costs I(Y; Z | M, W) ≤ I(Y; Z | M), since
    Z and W are independent given Y: the sum of the losses seen on the way bounds the whole loss. Bins are even in the
    angle 2 asin √P(Y=1 | z), in which the loss of a merge depends on the width alone.
    """
    table = np.ones((1, 2))
    lost = 0.0
    for matrix in channel.matrices:
        table = _crossed(table, np.ascontiguousarray(matrix.T))
        if len(table) <= 2 * _BINS:
            continue
        joint = table * channel.weights
        weight = joint.sum(axis=1)
        angle = 2 * np.arcsin(np.sqrt(np.clip(joint[:, 1] / np.maximum(weight, 1e-300), 0, 1)))
        bins = np.minimum((angle / np.pi * _BINS).astype(np.int64), _BINS - 1)
        merged = np.column_stack([np.bincount(bins, table[:, s], _BINS).astype(float) for s in range(2)])
        merged = merged[merged.any(axis=1)]
        lost += max(_expected_entropy(merged, channel.weights) - _expected_entropy(table, channel.weights), 0.0)
        table = merged
    return _weighed(table, channel, "merging", lost)


def _expected_entropy(table: Floats, weights: Floats) -> float:
    joint = table * weights
    total = joint.sum(axis=1)
    return float((entr(joint).sum(axis=1) - entr(total)).sum() / np.log(2))


def _drawn(channel: Channel, n_draws: int, rng: np.random.Generator) -> Outcomes:
    """Draws of the votes, in blocks; the posterior of each draw is exact."""
    with np.errstate(divide="ignore"):
        log_matrices, log_weights = np.log(channel.matrices), np.log(channel.weights)
    cumulative = channel.matrices.cumsum(axis=2)
    blocks = []
    for start in range(0, n_draws, _CHUNK):
        n = min(_CHUNK, n_draws - start)
        state = rng.choice(len(channel.weights), size=n, p=channel.weights / channel.weights.sum())
        log_joint = np.tile(log_weights, (n, 1))
        for log_matrix, chances in zip(log_matrices, cumulative, strict=True):
            # The last answer takes what rounding leaves of the sum.
            answer = (chances[:, :-1][state] < rng.random(n)[:, None]).sum(axis=1)
            log_joint += log_matrix.T[answer]
        log_joint -= log_joint.max(axis=1, keepdims=True)
        states = np.exp(log_joint)
        blocks.append(states / states.sum(axis=1, keepdims=True) @ channel.state_class)
    posterior = np.concatenate(blocks)
    return Outcomes(np.full(n_draws, 1 / n_draws), posterior, "monte-carlo")
