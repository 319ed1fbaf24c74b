"""The base: P(class of an item | votes), from two EM fits, before systems and drawn checks say anything.

Dawid–Skene and soft truth err in different ways, and on real sets their mean is nearer to the truth than either; more
models in the mean make it worse. Checks that were drawn do not enter the base, since they are to correct it; checked
items that somebody chose do, since they can correct nothing but themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueup._base.types import Floats
from trueup.data.labels import Labels
from trueup.exceptions import silenced_warnings
from trueup.noise import DawidSkene, NoiseModel, OneCoin, SoftTruth
from trueup.noise.heldout import best_of, is_splittable

SURE = 0.98  # the largest probability of the base: votes alone prove nothing
MOST_SOFT_CLASSES = 30  # with more, Dawid–Skene alone
MOST_MATRIX_CLASSES = 200  # with more, one-coin alone, which needs no matrix of a labeler


def base_models(n_classes: int) -> list[NoiseModel]:
    """The models whose posteriors make the base, not fitted."""
    if n_classes > MOST_MATRIX_CLASSES:
        return [OneCoin()]
    if n_classes > MOST_SOFT_CLASSES:
        return [DawidSkene()]
    return [DawidSkene(), SoftTruth()]


def clip_base(chances: Floats) -> Floats:
    """Probabilities of at most `SURE`, and at least what that leaves to each other class; rows that sum to 1."""
    low = (1 - SURE) / max(chances.shape[1] - 1, 1)
    clipped = np.clip(chances, low, SURE)
    return np.asarray(clipped / clipped.sum(axis=1, keepdims=True))


def base_of(labels: Labels, candidates: Sequence[NoiseModel] = ()) -> Floats:
    """P(class) of each item from the votes, shape (n_items, n_classes); gold in the labels is taken for known.

    Parameters
    ----------
    labels : Labels
    candidates : sequence of NoiseModel
        A model of these takes the place of Dawid–Skene if votes that it was not told are likelier under it.
    """
    with silenced_warnings():
        models = base_models(labels.n_classes)
        if candidates and is_splittable(labels):
            models[0] = best_of([models[0], *candidates], labels)
        posteriors = [model.fit(labels).posterior(labels) for model in models]
    return clip_base(np.mean(posteriors, axis=0))
