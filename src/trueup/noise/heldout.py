"""How likely are votes that a model has not seen? The one fair comparison of noise models without truth."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._validation import RandomState, as_generator, check_integer
from trueup.exceptions import InvalidLabels, TrueupWarning
from trueup.labels import Labels
from trueup.noise.base import NoiseModel

__all__ = ["best_of", "heldout_scores", "split_votes"]

_Model = TypeVar("_Model", bound=NoiseModel)
Positions = npt.NDArray[np.int64]


def split_votes(labels: Labels, *, n_folds: int, random_state: RandomState) -> list[tuple[Labels, Positions]]:
    """Folds of votes: the labels without a fold's votes, and where in the vote table that fold's votes are.

    The votes of an item go to different folds, so each held-out vote is predicted from the item's other votes. Votes
    on items with a single vote are never held out: nothing is left to predict them from.
    """
    check_integer(n_folds, name="n_folds", low=2)
    rng = as_generator(random_state)
    start, stop = labels.votes.indptr[:-1], labels.votes.indptr[1:]
    n = labels.votes.nnz
    item = np.repeat(np.arange(labels.n_items), stop - start)
    order = np.lexsort((rng.random(n), item))
    fold = np.empty(n, dtype=np.int64)
    fold[order] = (np.arange(n) - start[item] + rng.integers(n_folds, size=labels.n_items)[item]) % n_folds
    usable = (stop - start)[item] > 1
    if not usable.any():
        raise InvalidLabels("no item has two votes, so no vote can be held out and predicted from the others")
    folds = []
    for k in range(n_folds):
        kept = np.flatnonzero((fold != k) | ~usable)
        votes = sparse.csr_array(
            (
                labels.votes.data[kept],
                labels.votes.indices[kept],
                np.concatenate([[0], np.cumsum(np.bincount(item[kept], minlength=labels.n_items))]),
            ),
            shape=labels.votes.shape,
        )
        folds.append((replace(labels, votes=votes), np.flatnonzero((fold == k) & usable)))
    return folds


def heldout_scores(
    model: NoiseModel, labels: Labels, *, n_folds: int = 5, random_state: RandomState = 0
) -> npt.NDArray[np.float64]:
    """Log-probability of each vote under the model fitted without it, in the order of ``labels.vote_table()``.

    Votes that cannot be held out are NaN. The mean is the score; higher is better.
    """
    item, labeler, answer, _ = labels.vote_table()
    scores = np.full(len(item), np.nan)
    for rest, held in split_votes(labels, n_folds=n_folds, random_state=random_state):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrueupWarning)  # the user hears of these from the fit on all votes
            fitted = copy(model).fit(rest)
        probability = fitted.predict_votes(rest, item[held].astype(np.int64), labeler[held].astype(np.int64))
        scores[held] = np.log(np.maximum(probability[np.arange(len(held)), answer[held]], 1e-12))
    return scores


def best_of(models: Sequence[_Model], labels: Labels, *, n_folds: int = 5, random_state: RandomState = 0) -> _Model:
    """The model under which held-out votes are most likely."""
    scores = [np.nanmean(heldout_scores(m, labels, n_folds=n_folds, random_state=random_state)) for m in models]
    return models[int(np.argmax(scores))]
