"""Judges of pairs, and strengths of systems from who beats whom.

A judge has one confusion matrix for both orders in which a pair may be shown. Strengths are those of Bradley and Terry
(1952), for many draws at once.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.special import expit

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState
from trueup.data.labels import Labels
from trueup.data.pairs import REVERSED, mirrored
from trueup.noise.base import Sampler, TableModel, warn_if_unidentifiable
from trueup.noise.chain import fit_by_draws
from trueup.noise.dawid_skene import DIAGONAL_ALONE

_FIT_SWEEPS = (200, 300)
_SWAP = (1, 0, 2)


class MirroredConfusion(TableModel):
    """Judges who see the two sides of a pair in some order, and may prefer a place.

    Generative model: the truth of a contest is that its first side wins, its second, or neither. A judge to whom the
    first side is shown first answers by a row of their matrix; one to whom it is shown second answers by the same
    matrix with first and second exchanged in truth and answer. So the matrix is about places, and that it differs from
    its own mirror image is the judge's position bias. A judge who sees both orders at once has a matrix that equals its
    mirror image. Rows have Dirichlet priors, 3 for the right answer and 1 for the others.
    """

    alias = "mirrored"
    needs_order = True

    def __init__(self, judge: Codes, presentation: Codes, *, random_state: RandomState = 0) -> None:
        self.judge = judge
        self.presentation = presentation
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # who saw which order is the data's

    def fit(self, labels: Labels) -> Self:
        warn_if_unidentifiable(labels, what=type(self).__name__)
        self._remember(labels)
        (sampler,) = self.samplers(labels, labels.n_labelers, 1)
        fit_by_draws(self, labels, sampler, *_FIT_SWEEPS)
        return self

    def samplers(self, labels: Labels, n_raters: int, n_chains: int) -> list[Sampler]:
        size = (n_raters, labels.n_classes, labels.n_answers)
        return [MirroredSampler(*size, judge=self.judge, presentation=self.presentation) for _ in range(n_chains)]


class MirroredSampler(Sampler):
    """Rows of judges have Dirichlet priors; the counts of both orders are added, one of them mirrored."""

    def __init__(self, n_raters: int, n_classes: int, n_answers: int, *, judge: Codes, presentation: Codes) -> None:
        super().__init__(n_raters, n_classes, n_answers)
        self._judge, self._presentation = np.asarray(judge), np.asarray(presentation)
        self._swap = np.array(_SWAP[:n_classes])
        self._prior = np.ones((n_classes, n_classes)) + (DIAGONAL_ALONE - 1.0) * np.eye(n_classes)

    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        by_rater = counts.reshape(self.n_raters, self.n_answers, self.n_classes).transpose(0, 2, 1)
        is_reversed, is_both = (self._presentation == 1)[:, None, None], self._presentation == 2
        placed = np.where(is_reversed, self._mirror(by_rater), by_rater)
        by_judge = np.zeros((int(self._judge.max()) + 1, self.n_classes, self.n_classes))
        np.add.at(by_judge, self._judge[~is_both], placed[~is_both])
        rows = draw_rows(by_judge + self._prior, rng)[self._judge]
        table = np.where(is_reversed, self._mirror(rows), rows)
        if is_both.any():
            table[is_both] = self._draw_mirror_images(by_rater[is_both], rng)
        self.table = np.ascontiguousarray(table.transpose(0, 2, 1)).reshape(counts.shape)
        self.weights = rng.dirichlet(1.0 + state_counts)

    def _mirror(self, tables: Floats) -> Floats:
        """Tables of (…, truth, answer) with first and second exchanged in both."""
        return np.asarray(tables[..., self._swap, :][..., self._swap])

    def _draw_mirror_images(self, counts: Floats, rng: np.random.Generator) -> Floats:
        """Rows that equal their mirror images: the row of the second side is the image of that of the first."""
        sums = counts + self._mirror(counts)
        rows = np.empty(counts.shape)
        rows[:, 0] = draw_rows(sums[:, 0] + self._prior[0], rng)
        rows[:, 1] = rows[:, 0][:, self._swap]
        if self.n_classes > 2:
            of_tie = sums[:, 2] / 2  # a sum with the mirror image has every vote twice
            mass = np.stack([of_tie[:, :2].sum(axis=1) + self._prior[2, :2].sum(), of_tie[:, 2] + self._prior[2, 2]])
            chances = draw_rows(mass.T, rng)
            rows[:, 2] = np.stack([chances[:, 0] / 2, chances[:, 0] / 2, chances[:, 1]], axis=1)
        return rows


def draw_rows(mass: Floats, rng: np.random.Generator) -> Floats:
    """Rows from Dirichlet laws with such masses along the last axis."""
    gamma = np.maximum(rng.standard_gamma(mass), 1e-100)
    return np.asarray(gamma / gamma.sum(axis=-1, keepdims=True))


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
    """How far the strengths of two systems, one against the other, depend on the contests between the two.

    1 where nothing else joins the two, and 0 where they never met. The sum over pairs is the number of strengths that
    are free, so unseen wins of this size, half of it on each side of a pair, are to strengths what half a win on each
    side is to one win rate: Jeffreys' law (Firth 1993). Half a win for each side of every pair would make many systems
    alike.
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
