"""A step of `DifficultySampler` with the states of the items summed over.

Given the states, parameters move little: a class may hold few items that labelers know well, or nearly all items, easy
and hard, and from one reading to the other every state must change. So the parameters also move by Hamiltonian steps
[1]_ on their own posterior. Right after it the states are drawn anew from their law given the parameters, so the chain
keeps the joint posterior. Step and scale are learned in the warm-up, and stay as they are after it.

References
----------
.. [1] Neal (2011), MCMC using Hamiltonian dynamics.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, log_expit, logsumexp

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup.noise.base import Sampler
from trueup.noise.kernels import FLOOR

N_LEAPS = 24  # of a step, about
SETTLING = 50  # sweeps before the first step: from a start far off, it would fall into any reading
MOST_JOINT = 64  # numbers up to which their covariance is learned, and not their variances alone
MOST_NUMBERS = 100  # up to which there are steps: of many raters, they cost more than they move
JITTER = 0.6  # of the logarithm of a step
LEAST_ROW = 1e-4  # a row of a system with a rarer answer stays as it is
SWEEPS_A_STEP = 24  # where nothing is compiled, and at most
_FIRST_VARIANCE = 0.04
_FIRST_STEP = 0.5
LEARNED_EVERY = 25
ACCEPTED = 0.7
WORST = -1000.0  # change of the energy at which a path is given up
FURTHEST = 9.0  # value that a free number counts for at most, where its variance is learned


class StepScale(NamedTuple):
    """What a chain has learned of the scale of its steps; changed in place.

    Attributes
    ----------
    mean : array of shape (n,)
        Of the free numbers, over the warm-up; earlier ones count for less.
    covariance, root : array of shape (n, n) or (n, 1)
        Their covariance and its Cholesky root, or their variances and the roots of these.
    progress : array of shape (2,)
        Steps of the warm-up, and the logarithm of the step.
    """

    mean: Floats
    covariance: Floats
    root: Floats
    progress: Floats

    @classmethod
    def start(cls, n: int) -> StepScale:
        """Before the first step."""
        covariance = np.eye(n) if n <= MOST_JOINT else np.ones((n, 1))
        root = np.sqrt(_FIRST_VARIANCE) * covariance
        return cls(np.zeros(n), _FIRST_VARIANCE * covariance, root, np.array([0.0, np.log(_FIRST_STEP)]))

    def learn(self, numbers: Floats, chance: float) -> None:
        """Hear of one more step of the warm-up."""
        self.progress[0] += 1
        n_seen, n = self.progress[0], len(self.mean)
        self.progress[1] += (chance - ACCEPTED) / np.sqrt(n_seen)
        rate = 1 / (n_seen / 2 + 10)
        gap = np.clip(numbers, -FURTHEST, FURTHEST) - self.mean
        self.mean[:] += rate * gap
        joint = self.root.shape[1] == n
        square = np.outer(gap, gap) if joint else (gap**2)[:, None]
        self.covariance[:] = (1 - rate) * (self.covariance + rate * square)
        if n_seen % LEARNED_EVERY == 0:
            if joint:
                shrunk = self.covariance * (n_seen / (n_seen + 5 * n))
                np.fill_diagonal(shrunk, np.diag(self.covariance) + 1e-4)
                self.root[:] = np.linalg.cholesky(shrunk)
            else:
                self.root[:] = np.sqrt(self.covariance + 1e-4)

    def push(self, gradient: Floats) -> Floats:
        """The gradient by the whitened numbers."""
        return np.asarray(self.root.T @ gradient if self.root.shape[1] == len(gradient) else self.root[:, 0] * gradient)

    def shift(self, velocity: Floats) -> Floats:
        """A change of the whitened numbers as one of the numbers."""
        return np.asarray(self.root @ velocity if self.root.shape[1] == len(velocity) else self.root[:, 0] * velocity)


@dataclass(frozen=True, eq=False)
class DistinctItems:
    """Items of which not all is said alike, and how many there are of each.

    Attributes
    ----------
    votes : sparse array of shape (n, n_raters * n_answers)
    outputs : sparse array of shape (n, columns of the systems)
    first, power, row_prior : array
        The first column of each system and the end, what each counts for, and the pseudo-counts of the columns in each
        group of states, or in all of them.
    gold : integer array of shape (n,)
    item_prior : array of shape (n, n_classes), optional
    times : array of shape (n,)
    """

    votes: sparse.csr_array
    outputs: sparse.csr_array
    first: Positions
    power: Floats
    row_prior: Floats
    gold: Codes
    item_prior: Floats | None
    times: Floats


class CollapsingSampler(Sampler):
    """A sampler that can also move with the states of the items summed over."""

    @abstractmethod
    def collapse(self, items: DistinctItems, log_rows: Floats, rng: np.random.Generator, *, learns: bool) -> Floats:
        """Move the parameters; the states must be drawn before anything else uses them.

        Parameters
        ----------
        items : DistinctItems
        log_rows : array of shape (columns of the systems, groups of states)
            Logarithms of the systems' rows.
        learns : bool
            Whether step and scale may change, as in the warm-up.

        Returns
        -------
        array of shape (columns of the systems, groups of states)
            The rows after the move.
        """


@dataclass(eq=False)
class Position:
    """Parameters as free numbers, and what follows from them.

    Attributes
    ----------
    levels, slopes, spread, shares, log_rows
        As of `DifficultySampler`; the last are the logarithms of the rows of systems, (columns, groups of states).
    value : float
        The log-density, states and means of levels summed over.
    gradient : array of shape (n,)
    """

    levels: Floats
    slopes: Floats
    spread: float
    shares: Floats
    log_rows: Floats
    value: float
    gradient: Floats


@dataclass(frozen=True, eq=False)
class Landscape:
    """The log-density of the parameters with the states summed over.

    Attributes
    ----------
    items : DistinctItems
    wrong_rows : array of shape (n_raters, n_classes, n_answers)
        P(answer | a wrong one), which stays.
    log_rows : array of shape (columns, groups)
        Logarithms of the rows of systems.
    grid, grid_weights : array of shape (n_points,)
    group : integer array of shape (n_states,)
    hyper : tuple of float
        Mean and scale of the means, and scales of levels, slopes and spread.
    """

    items: DistinctItems
    wrong_rows: Floats
    log_rows: Floats
    grid: Floats
    grid_weights: Floats
    group: Positions
    hyper: tuple[float, float, float, float, float]

    @property
    def still(self) -> Booleans:
        """Which rows stay as they are, shape (systems, groups)."""
        first = self.items.first
        if len(first) < 2:
            return np.zeros((0, self.log_rows.shape[1]), dtype=bool)
        least = np.minimum.reduceat(self.log_rows, first[:-1], axis=0)
        return np.asarray((self.items.power != 1.0)[:, None] | (least < np.log(LEAST_ROW)))

    def numbers(self, levels: Floats, slopes: Floats, spread: float, shares: Floats) -> Floats:
        """The parameters as free numbers."""
        ratios = np.log(shares[1:] / shares[0])
        return np.concatenate([levels.ravel(), slopes, [spread], ratios, self._ratios(self.log_rows).ravel()])

    def _ratios(self, log_rows: Floats) -> Floats:
        first = self.items.first
        later = np.setdiff1d(np.arange(len(log_rows)), first)
        return np.asarray(log_rows[later] - log_rows[first[np.searchsorted(first, later) - 1]])

    def at(self, numbers: Floats, still: Booleans) -> Position:
        """The density of free numbers and its gradient."""
        items, wrong = self.items, self.wrong_rows
        n_raters, n_classes, n_answers = wrong.shape
        mean0, mean_scale, level_scale, slope_scale, spread_scale = self.hyper
        ends = np.cumsum([n_raters * n_classes, n_raters, 1, n_classes - 1])
        flat, slopes, spreads, ratios, row_ratios = np.split(numbers, ends)
        levels, spread = flat.reshape(n_raters, n_classes), float(spreads[0])
        shares = np.exp(np.minimum(np.append(0.0, ratios), 50.0))
        shares = np.maximum(shares / shares.sum(), 1e-12)
        log_rows = self._moved_rows(row_ratios, still)
        # P(answer | rater, state)
        odds = levels[:, :, None] + np.exp(slopes)[:, None, None] * self.grid
        diagonal = np.arange(n_classes)
        with np.errstate(divide="ignore"):
            log_table = np.log(wrong)[:, :, :, None] + log_expit(-odds)[:, :, None, :]
        log_table[:, diagonal, diagonal] = log_expit(odds)
        by_column = np.maximum(log_table.transpose(0, 2, 1, 3).reshape(n_raters * n_answers, -1), np.log(FLOOR))
        prior = np.repeat(np.log(shares), len(self.grid)) + np.tile(np.log(self.grid_weights), n_classes)
        joint = items.votes @ by_column + items.outputs @ log_rows[:, self.group]
        if items.item_prior is None:
            joint = joint + prior
        else:
            known = np.log(np.maximum(items.item_prior, FLOOR))
            joint = joint + np.repeat(known, len(self.grid), axis=1) + np.tile(np.log(self.grid_weights), n_classes)
        state_class = np.repeat(diagonal, len(self.grid))
        joint[(items.gold[:, None] >= 0) & (items.gold[:, None] != state_class)] = -np.inf
        per_item = logsumexp(joint, axis=1)
        chances = np.exp(joint - per_item[:, None]) * items.times[:, None]
        expected = (items.votes.T @ chances).reshape(n_raters, n_answers, n_classes, len(self.grid))
        right = expected[:, diagonal, diagonal]
        push = right - expected.sum(axis=1) * expit(odds)
        # Means of levels are summed over.
        gaps = (levels - mean0) / level_scale**2
        precision = mean_scale**-2 + n_raters * level_scale**-2
        totals = gaps.sum(axis=0)
        slope_gaps = (slopes - spread) / slope_scale**2
        value = float(items.times @ per_item + spread - np.exp(2 * spread) / (2 * spread_scale**2))
        value += float((totals**2).sum() / (2 * precision) - (gaps * (levels - mean0)).sum() / 2)
        value -= float(slope_gaps @ (slopes - spread)) / 2
        of_levels = push.sum(axis=2) + totals / precision / level_scale**2 - gaps
        of_slopes = (push * self.grid).sum(axis=(1, 2)) * np.exp(slopes) - slope_gaps
        of_spread = slope_gaps.sum() + 1 - np.exp(2 * spread) / spread_scale**2
        of_shares = np.zeros(n_classes - 1)
        if items.item_prior is None:
            value += float(np.log(shares).sum())
            counts = chances.sum(axis=0).reshape(n_classes, -1).sum(axis=1) + 1
            of_shares = (counts - counts.sum() * shares)[1:]
        of_rows = self._row_gradient(np.asarray(items.outputs.T @ chances), log_rows, still)
        moving = ~np.repeat(still, np.diff(items.first), axis=0)
        value += float((items.row_prior * log_rows * moving).sum())
        gradient = np.concatenate([of_levels.ravel(), of_slopes, [of_spread], of_shares, of_rows.ravel()])
        return Position(levels, slopes, spread, shares, log_rows, value, gradient)

    def _moved_rows(self, ratios: Floats, still: Booleans) -> Floats:
        first, log_rows = self.items.first, self.log_rows.copy()
        at = 0
        for s, (low, high) in enumerate(pairwise(first)):
            size = (high - low - 1) * log_rows.shape[1]
            own = np.minimum(ratios[at : at + size].reshape(high - low - 1, -1), 50.0)
            own = np.vstack([np.zeros(log_rows.shape[1]), own])
            own = np.maximum(own - logsumexp(own, axis=0), np.log(FLOOR))
            log_rows[low:high] = np.where(still[s], log_rows[low:high], own)
            at += size
        return log_rows

    def _row_gradient(self, by_state: Floats, log_rows: Floats, still: Booleans) -> Floats:
        first = self.items.first
        parts = [np.empty((0, log_rows.shape[1]))]
        counts = np.zeros_like(log_rows)
        np.add.at(counts.T, self.group, by_state.T)
        counts += self.items.row_prior
        for s, (low, high) in enumerate(pairwise(first)):
            own = counts[low:high] - counts[low:high].sum(axis=0) * np.exp(log_rows[low:high])
            parts.append(np.where(still[s], 0.0, own)[1:])
        return np.concatenate(parts)

    def step(self, start: Floats, step_scale: StepScale, rng: np.random.Generator, *, learns: bool) -> Position:
        """One Hamiltonian step from free numbers; where it ends."""
        still = self.still
        first = self.at(start, still)
        here, numbers = first, start
        velocity = rng.standard_normal(len(start))
        energy = first.value - velocity @ velocity / 2
        size = np.exp(step_scale.progress[1] + JITTER * (rng.random() - 0.5))
        for _ in range(N_LEAPS // 2 + int(rng.random() * N_LEAPS) + 1):
            velocity = velocity + size / 2 * step_scale.push(here.gradient)
            numbers = numbers + size * step_scale.shift(velocity)
            here = self.at(numbers, still)
            velocity = velocity + size / 2 * step_scale.push(here.gradient)
            if not here.value > first.value + WORST:
                break
        moving = ~np.repeat(still, np.diff(self.items.first), axis=0)
        chance = 0.0
        if here.value > first.value + WORST and (here.log_rows[moving] >= np.log(LEAST_ROW)).all():
            change = float(here.value - velocity @ velocity / 2 - energy)
            chance = float(np.exp(min(change, 0.0)))
        accepted = rng.random() < chance
        if learns:
            step_scale.learn(numbers if accepted else start, chance)
        return here if accepted else first
