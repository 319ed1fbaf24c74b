"""Judges of pairs: one confusion matrix a judge for both orders in which a pair may be shown."""

from __future__ import annotations

from typing import Self

import numpy as np

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState
from trueup.data.labels import Labels
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
        self._prior = row_prior(n_classes)

    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        by_rater = counts.reshape(self.n_raters, self.n_answers, self.n_classes).transpose(0, 2, 1)
        is_reversed, is_both = self._presentation == 1, self._presentation == 2
        placed = np.where(is_reversed[:, None, None], self.mirror(by_rater), by_rater)
        by_judge = np.zeros((int(self._judge.max()) + 1, self.n_classes, self.n_classes))
        np.add.at(by_judge, self._judge[~is_both], placed[~is_both])
        rows = draw_rows(by_judge + self._prior, rng)[self._judge]
        table = np.where(is_reversed[:, None, None], self.mirror(rows), rows)
        if is_both.any():
            table[is_both] = self._draw_mirror_images(by_rater[is_both], rng)
        self.table = np.ascontiguousarray(table.transpose(0, 2, 1)).reshape(counts.shape)
        self.weights = rng.dirichlet(1.0 + state_counts)

    def mirror(self, tables: Floats) -> Floats:
        """Tables of (…, truth, answer) with first and second exchanged in both."""
        return np.asarray(tables[..., self._swap, :][..., self._swap])

    def _draw_mirror_images(self, counts: Floats, rng: np.random.Generator) -> Floats:
        """Rows that equal their mirror images: what is said of the second side is the image of that of the first."""
        sums = counts + self.mirror(counts)
        rows = np.empty(counts.shape)
        rows[:, 0] = draw_rows(sums[:, 0] + self._prior[0], rng)
        rows[:, 1] = rows[:, 0][:, self._swap]
        if self.n_classes > 2:
            of_tie = sums[:, 2] / 2  # a sum with the mirror image has every vote twice
            mass = np.stack([of_tie[:, :2].sum(axis=1) + self._prior[2, :2].sum(), of_tie[:, 2] + self._prior[2, 2]])
            chances = draw_rows(mass.T, rng)
            rows[:, 2] = np.stack([chances[:, 0] / 2, chances[:, 0] / 2, chances[:, 1]], axis=1)
        return rows


def row_prior(n_classes: int) -> Floats:
    """Pseudo-counts of the rows of a judge."""
    return np.ones((n_classes, n_classes)) + (DIAGONAL_ALONE - 1.0) * np.eye(n_classes)


def draw_rows(mass: Floats, rng: np.random.Generator) -> Floats:
    """Rows from Dirichlet laws with such masses along the last axis."""
    gamma = np.maximum(rng.standard_gamma(mass), 1e-100)
    return np.asarray(gamma / gamma.sum(axis=-1, keepdims=True))
