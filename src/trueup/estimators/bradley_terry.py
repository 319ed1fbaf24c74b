"""Strengths of systems from who beats whom, for many draws at once (Bradley and Terry 1952)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from trueup._base.types import Codes, Floats
from trueup.data.pairs import REVERSED, mirrored
from trueup.noise.mirrored import draw_rows

# ------------------ By how much judges of pairs prefer a place, given who wins each contest in truth.

# Verdicts that each cell has beforehand, as Jeffreys has it: with those of a chain, which expects judges to be right
# whatever the place, 100 contests say .23 of a bias of .25.
_LITTLE = 0.5


def draw_biases(
    truths: Codes, verdict: Codes, shown: Codes, weights: Floats, *, n_classes: int, rng: np.random.Generator
) -> Floats:
    """Draws of half the difference between a judge's chances to say "first" and "second", the two truths averaged."""
    n_draws = len(truths)
    is_reversed = shown == REVERSED
    right = np.where(is_reversed, mirrored(truths), truths).astype(np.int64)
    answers = np.where(is_reversed, mirrored(verdict), verdict)
    cell = right * n_classes + answers + n_classes**2 * np.arange(n_draws)[:, None]
    mass = np.broadcast_to(weights, cell.shape)
    counts = np.bincount(cell.ravel(), mass.ravel(), minlength=n_draws * n_classes**2)
    rows = draw_rows(counts.reshape(n_draws, n_classes, n_classes).astype(np.float64) + _LITTLE, rng)
    return np.asarray((rows[:, :2, 0] - rows[:, :2, 1]).mean(axis=1) / 2)


def weights_of_repeats(contest: Codes, shown: Codes) -> Floats:
    """What each verdict of a judge counts: verdicts on one contest in one order are together one that wavers."""
    asked = np.stack([contest, shown], axis=1).astype(np.int64)
    _, place, counts_of_pairs = np.unique(asked, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / counts_of_pairs[place.ravel()])


_SCALE = 3.0  # of the normal law of a strength: a system that wins all its contests is not infinitely strong
_STEPS = 30
_TOLERANCE = 1e-8
_BLOCK = 1 << 22  # cells of win matrices worked on at once


def strengths_of(wins: Floats) -> Floats:
    """Log-odds strengths that make the wins most likely, with mean zero.

    Newton's steps on a concave function: the log-likelihood of expit(θ_a − θ_b) for every win of a over b, and a weak
    normal prior.
    """
    n_draws, n, _ = wins.shape
    block = max(1, _BLOCK // n**2)
    return np.concatenate([_newton(wins[k : k + block]) for k in range(0, n_draws, block)])


def leverages_of(contests: Floats) -> Floats:
    """How far the strengths of two systems, one against the other, hang on the contests between the two.

    1 where nothing else joins the two, less where contests with others tell of them, too, and 0 where they never met.
    The sum over pairs is the number of strengths that are free, so unseen wins of this size, half of it on each side of
    a pair, are to strengths what half a win on each side is to one win rate: Jeffreys' law (Firth 1993), with contests
    weighted as between equals. Half a win for each side of every pair would make many systems alike.
    """
    met = contests + contests.T
    inverse = np.linalg.pinv(np.diag(met.sum(axis=1)) - met, hermitian=True)
    own = np.diag(inverse)
    return np.asarray(np.clip(met * (own[:, None] + own - 2 * inverse), 0.0, 1.0))


def _newton(wins: Floats) -> Floats:
    n_draws, n, _ = wins.shape
    games = wins + wins.transpose(0, 2, 1)
    won = wins.sum(axis=2)
    strengths = np.zeros((n_draws, n))
    diagonal = np.arange(n)
    for _ in range(_STEPS):
        chance = expit(strengths[:, :, None] - strengths[:, None, :])
        slope = won - (games * chance).sum(axis=2) - strengths / _SCALE**2
        weights = games * chance * (1 - chance)
        curvature = -weights
        curvature[:, diagonal, diagonal] += weights.sum(axis=2) + _SCALE**-2
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        strengths += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < _TOLERANCE:
            break
    return np.asarray(strengths - strengths.mean(axis=1, keepdims=True))
