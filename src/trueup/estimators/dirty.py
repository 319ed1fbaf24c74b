"""One label for each item, taken for true: what is done where nothing is corrected."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trueup._validation import RandomState
from trueup.estimators.labelers import majority
from trueup.estimators.problem import Codes, Solution
from trueup.exceptions import InvalidLabels, InvalidPredictions
from trueup.labels import Labels
from trueup.noise import NoiseModel

__all__ = ["dirty", "likeliest_codes", "taken_for_true"]


def dirty(
    labels: Labels, predictions: npt.ArrayLike, *, noise: NoiseModel, random_state: RandomState = None
) -> Solution:
    """The most probable class of each item given its votes, taken for true ("DirtyEval" of Dolatshah et al. 2018).

    `majority` does the same with the class that most votes name, and knows no noise model; with one vote an item and
    an even prior the two are one. **The interval covers badly**: it has the chance of having drawn these items and
    nothing of the labels being wrong.

    Parameters
    ----------
    labels : Labels
        Items without votes are left out; gold counts as the truth.
    predictions : integer array of shape (n_items,)
        Codes in the order of ``labels.items``, -1 for none.
    noise : NoiseModel
        Fitted or known; any that gives P(class | votes).
    random_state : int, Generator or None
        For the bootstrap of metrics that are no share.

    Returns
    -------
    Solution
        With `MajorityCounts`.

    Examples
    --------
    >>> import trueup as tu
    >>> labels = tu.Labels.from_matrix([[0, 0], [1, 1], [1, 0], [-1, 1]])
    >>> noise = tu.noise.Confusion([[[0.9, 0.1], [0.1, 0.9]], [[0.6, 0.4], [0.4, 0.6]]])
    >>> dirty(labels, np.array([0, 1, 0, 1]), noise=noise, random_state=0).counts.mean_counts.tolist()
    [[1.0, 0.0], [1.0, 2.0]]
    """
    return taken_for_true(likeliest_codes(labels, noise), predictions, labels.n_classes, random_state=random_state)


def likeliest_codes(labels: Labels, noise: NoiseModel) -> Codes:
    """The most probable class of each item, the first of equally probable ones; -1 for an item without votes."""
    known = (labels.votes_per_item > 0) | (labels.gold_codes >= 0)
    return np.where(known, np.argmax(noise.posterior(labels), axis=1), -1)


def taken_for_true(
    truths: Codes, predictions: npt.ArrayLike, n_classes: int, *, random_state: RandomState = None
) -> Solution:
    """Codes (-1: left out) counted as the truth, with the interval that is usually reported.

    Parameters
    ----------
    truths, predictions : integer arrays of shape (n_items,)
    n_classes : int
    random_state : int, Generator or None
    """
    codes = np.asarray(predictions)
    if codes.shape != truths.shape:
        raise InvalidPredictions(f"predictions must be {len(truths)} codes, one for each item, got shape {codes.shape}")
    counted = (truths >= 0) & (codes >= 0)
    if not counted.any():
        raise InvalidLabels("no item has both a label and a prediction, got nothing to compare; check the items' names")
    # A label that is taken for true is the majority of one vote.
    single = Labels.from_matrix(truths[counted][:, None], classes=range(n_classes))
    return majority(single, codes[counted], random_state=random_state)
