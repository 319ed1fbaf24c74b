"""A panel of labelers as a channel: the class goes in, their votes come out (Su 2024, Section 4).

Everything the package computes starts from here. A channel has hidden states, each with the chances of the classes, and
for each labeler the chances of the answers in each state. Where states are the classes, labelers err independently
given the class. Where a class has several states, they err together.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import entr, expit, gammaln, xlogy

from trueup._base.types import Floats
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_distribution,
    check_integer,
    check_prior,
    did_you_mean,
    preview,
)
from trueup.exceptions import InvalidParameter, NotFitted
from trueup.noise.base import NoiseModel, TableModel
from trueup.noise.difficulty import Difficulty
from trueup.noise.glad import GLAD
from trueup.noise.soft_truth import compositions

Noise = NoiseModel | npt.ArrayLike
_LEVELS_OF_DIFFICULTY = 9  # quantiles that stand for the fitted difficulties of all items


@dataclass(frozen=True, eq=False)
class Channel:
    """P(state), P(class | state) and P(answer | labeler, state)."""

    weights: Floats  # (n_states,)
    state_class: Floats  # (n_states, n_classes)
    matrices: Floats  # (n_labelers, n_states, n_answers)
    average: Floats  # (n_states, n_answers): the matrix of an average labeler
    names: tuple[Hashable, ...]  # the labelers

    @property
    def prior(self) -> Floats:
        """P(class)."""
        return np.asarray(self.weights @ self.state_class)

    @property
    def n_labelers(self) -> int:
        """Number of labelers."""
        return len(self.matrices)

    def at(self, positions: Sequence[int] | npt.NDArray[np.int64]) -> Channel:
        """Some of the labelers; a position may occur more than once."""
        where = np.asarray(positions, dtype=np.int64)
        return Channel(
            self.weights, self.state_class, self.matrices[where], self.average, tuple(self.names[k] for k in where)
        )

    def named(self, names: Sequence[Hashable]) -> Channel:
        """The labelers of these names."""
        return self.at([self.position(name) for name in names])

    def position(self, name: Hashable) -> int:
        """Where a labeler stands in `names`."""
        if name not in self.names:
            raise InvalidParameter(
                f"the noise model knows no labeler {name!r}, only {preview(self.names)}{did_you_mean(name, self.names)}"
            )
        return self.names.index(name)

    def averages(self, n: int) -> Channel:
        """`n` average labelers, independent given the state."""
        matrices = np.broadcast_to(self.average, (n, *self.average.shape))
        return Channel(self.weights, self.state_class, matrices, self.average, tuple(range(n)))


def symmetric_matrix(error: float | npt.ArrayLike, n_classes: int) -> Floats:
    """P(answer | class) of labelers who err with this probability, whatever the class, and then alike to all others."""
    rate = np.asarray(error, dtype=float)[..., None, None]
    same = np.eye(n_classes)
    return np.asarray(same * (1 - rate) + (1 - same) * rate / (n_classes - 1))


def channel_of(
    noise: Noise | Channel | None = None,
    *,
    labelers: Sequence[Hashable] | None = None,
    error: float | npt.ArrayLike | None = None,
    n_labelers: int | None = None,
    prior: npt.ArrayLike | None = None,
) -> Channel:
    """The channel of a noise model, of confusion matrices, or of symmetric errors."""
    if (noise is None) == (error is None):
        got = "both" if noise is not None else "neither"
        raise InvalidParameter(f"noise or error must be given, got {got}; pass a noise model, or e.g. `error=0.1`")
    if isinstance(noise, Channel):
        channel = noise
    elif isinstance(noise, NoiseModel):
        if prior is not None:
            raise InvalidParameter(f"a noise model brings its own prior, got prior={prior!r:.40} too; leave it out")
        channel = _of_model(noise)
    else:
        channel = _of_matrices(_of_errors(error, prior) if noise is None else noise, prior)
    if labelers is not None and n_labelers is not None:
        raise InvalidParameter("labelers or n_labelers may be given, got both; name labelers, or ask for average ones")
    if labelers is not None:
        if not len(labelers):
            raise InvalidParameter("labelers must name at least one labeler, got none")
        return channel.named(list(labelers))
    if n_labelers is None:
        return channel
    n = check_integer(n_labelers, name="n_labelers", low=1)
    if isinstance(noise, NoiseModel) or channel.n_labelers == 1:
        return channel.averages(n)
    if channel.n_labelers != n:
        what = "errors" if noise is None else "matrices"
        raise InvalidParameter(f"n_labelers must be {channel.n_labelers}, the number of {what}, got {n}; leave it out")
    return channel


def _of_errors(error: float | npt.ArrayLike | None, prior: npt.ArrayLike | None) -> Floats:
    try:
        rates = np.atleast_1d(np.asarray(error, dtype=float))
    except (TypeError, ValueError):
        rates = np.array([np.nan])
    if rates.ndim != 1 or not len(rates) or not ((rates >= 0) & (rates <= 1)).all():
        raise InvalidParameter(f"error must be a probability in [0, 1], or one for each labeler, got {error!r:.60}")
    return symmetric_matrix(rates, len(check_prior(prior)))


def _of_matrices(matrices: npt.ArrayLike, prior: npt.ArrayLike | None) -> Channel:
    try:
        array = np.asarray(matrices, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim not in (2, 3) or not array.size or array.shape[-2] < 2:
        raise InvalidParameter(
            "noise must be a fitted noise model or matrices (n_labelers, n_classes, n_answers), got "
            f"{type(matrices).__name__} of shape {np.shape(array)}; rows are the truth"
        )
    array = check_distribution(array if array.ndim == 3 else array[None], name="each row of the confusion matrices")
    return _with_classes(array, check_prior(prior, n_classes=array.shape[1]), range(len(array)))


def _with_classes(
    matrices: Floats, prior: Floats, names: Sequence[Hashable] | range, average: Floats | None = None
) -> Channel:
    """States are the classes."""
    mean = np.asarray(matrices.mean(axis=0)) if average is None else average
    return Channel(prior, np.eye(len(prior)), matrices, mean, tuple(names))


def _of_model(noise: NoiseModel) -> Channel:
    if not hasattr(noise, "prior_"):
        raise NotFitted(f"{type(noise).__name__} is not fitted; call fit(labels) first")
    names = tuple(noise.labelers_.tolist()) if hasattr(noise, "labelers_") else None
    if isinstance(noise, TableModel):
        matrices = noise.confusion_ if noise.confusion_.ndim == 3 else noise.confusion_[None]
        if names is None or len(names) != len(matrices):  # known matrices that have seen no labels
            matrices_of = noise.parameters().get("matrices")
            names = tuple(matrices_of) if isinstance(matrices_of, Mapping) else tuple(range(len(matrices)))
        return _with_classes(matrices, noise.prior_, names, noise.pooled_)
    if isinstance(noise, GLAD):
        levels = _quantiles(noise.easiness_)
        return channel_of_levels(expit(np.outer(noise.ability_, levels)), noise.prior_, names)
    if isinstance(noise, Difficulty):
        known = noise.difficulty is not None
        difficulty = _values(noise.difficulty if known else noise.difficulty_)
        fallibility = _values(noise.fallibility if known else noise.fallibility_)
        sees = np.outer(1 - fallibility, 1 - _quantiles(difficulty))
        if names is None and isinstance(noise.fallibility, Mapping):
            names = tuple(noise.fallibility)
        return channel_of_levels(sees + (1 - sees) / len(noise.prior_), noise.prior_, names)
    best = getattr(noise, "best_", None)
    hint = f"pass its best model, noise.best_ ({type(best).__name__})" if best is not None else "use DawidSkene"
    raise InvalidParameter(f"a noise model with answer probabilities is needed, got {type(noise).__name__}; {hint}")


def _values(values: Any) -> Floats:
    return np.asarray(list(values.values()) if isinstance(values, Mapping) else values, dtype=float)


def _quantiles(values: Floats) -> Floats:
    """Equally likely levels that stand for all items."""
    n = min(_LEVELS_OF_DIFFICULTY, len(values))
    return np.asarray(np.quantile(values, (np.arange(n) + 0.5) / n))


def channel_of_levels(right: Floats, prior: Floats, names: Sequence[Hashable] | None = None) -> Channel:
    """States are pairs of a class and one of several equally likely levels of difficulty, which nobody is told."""
    n_labelers, n_levels = right.shape
    n_classes = len(prior)
    by_class = symmetric_matrix(1 - right, n_classes)  # labelers × levels × classes × answers
    matrices = by_class.transpose(0, 2, 1, 3).reshape(n_labelers, n_classes * n_levels, n_classes)
    return Channel(
        np.repeat(prior / n_levels, n_levels),
        np.repeat(np.eye(n_classes), n_levels, axis=0),
        np.ascontiguousarray(matrices),
        np.asarray(matrices.mean(axis=0)),
        tuple(range(n_labelers)) if names is None else tuple(names),
    )


Method = Literal["enumeration", "monte-carlo"]
MAX_OUTCOMES = 2**20
_MAX_CELLS = 2**24  # of the table outcomes × states: 128 MB
_CHUNK = 20_000


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of the votes on one item: their probabilities and P(class | outcome)."""

    weights: Floats  # (n,)
    posterior: Floats  # (n, n_classes)
    method: Method

    def mean(self, values: Floats) -> tuple[float, float]:
        """Mean of a function of the outcome, and its Monte Carlo standard error (0 where nothing is drawn)."""
        average = float(self.weights @ values)
        if self.method != "monte-carlo":
            return average, 0.0
        return average, float(values.std(ddof=1) / np.sqrt(len(values)))


def entropy(probabilities: Floats) -> Floats:
    """Bits along the last axis."""
    return np.asarray(entr(probabilities).sum(axis=-1) / np.log(2))


def list_outcomes(
    channel: Channel, *, max_outcomes: int = MAX_OUTCOMES, n_draws: int = 50_000, random_state: RandomState = 0
) -> Outcomes:
    """All outcomes of the votes of a panel, or a sample of them."""
    kinds, copies = _kinds(channel.matrices)
    n_states, n_answers = channel.matrices.shape[1:]
    total = 1
    for n in copies:
        total *= comb(int(n) + n_answers - 1, n_answers - 1)
    if total <= max_outcomes and total * n_states <= _MAX_CELLS:
        table = np.ones((1, n_states))
        for matrix, n in zip(kinds, copies, strict=True):
            table = _crossed(table, _count_probabilities(matrix, int(n)))
        return _weighed(table, channel)
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


def _weighed(table: Floats, channel: Channel) -> Outcomes:
    joint = (table * channel.weights) @ channel.state_class
    weights = joint.sum(axis=1)
    possible = weights > 0
    if not possible.all():
        joint, weights = joint[possible], weights[possible]
    return Outcomes(weights, joint / weights[:, None], "enumeration")


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
