"""How likely are votes that a model has not seen? The one fair comparison of noise models without truth."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from trueup._base.types import Positions
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.labels import Labels
from trueup.data.votes import vote_matrix
from trueup.exceptions import InvalidLabels, TrueupWarning
from trueup.noise.base import NoiseModel

_Model = TypeVar("_Model", bound=NoiseModel)


def is_splittable(labels: Labels) -> bool:
    """Whether any vote can be held out and predicted from another vote on its item."""
    return bool((labels.votes_per_item > 1).any())


@dataclass(frozen=True)
class Fold:
    """The labels without some votes, and those votes: their place in the order of `to_frame`, and who said what."""

    rest: Labels
    held: Positions
    item: Positions
    labeler: Positions
    answer: Positions


def split_votes(labels: Labels, *, n_folds: int, random_state: RandomState) -> list[Fold]:
    """Folds of votes."""
    check_integer(n_folds, name="n_folds", low=2)
    if not is_splittable(labels):
        raise InvalidLabels("no item has two votes, so no vote can be held out and predicted from the others")
    rng = as_generator(random_state)
    *codes, counts = labels.vote_table()
    item, labeler, answer = (np.repeat(x, counts).astype(np.int64) for x in codes)
    n = len(item)
    first = np.concatenate([[0], np.cumsum(labels.votes_per_item)])[:-1]
    fold = np.empty(n, dtype=np.int64)
    order = np.lexsort((rng.random(n), item))
    fold[order] = (np.arange(n) - first[item] + rng.integers(n_folds, size=labels.n_items)[item]) % n_folds
    fold[labels.votes_per_item[item] == 1] = -1
    folds = []
    for k in range(n_folds):
        kept, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        votes = vote_matrix(
            item[kept].astype(np.int32),
            labeler[kept].astype(np.int32),
            answer[kept].astype(np.int32),
            (labels.n_items, labels.n_labelers, labels.n_answers),
        )
        folds.append(Fold(replace(labels, votes=votes), held, item[held], labeler[held], answer[held]))
    return folds


def heldout_scores(
    model: NoiseModel, labels: Labels, *, n_folds: int = 5, random_state: RandomState = 0
) -> npt.NDArray[np.float64]:
    """Log-probability of each vote under the model fitted without it, in the order of ``labels.to_frame()``.

    Votes that cannot be held out are NaN. The mean is the score; higher is better.
    """
    scores = np.full(labels.n_votes, np.nan)
    for fold in split_votes(labels, n_folds=n_folds, random_state=random_state):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrueupWarning)  # the fit on all votes gives these warnings
            fitted = model.clone().fit(fold.rest)
        probability = fitted.predict_votes(fold.rest, fold.item, fold.labeler)
        scores[fold.held] = np.log(np.maximum(probability[np.arange(len(fold.held)), fold.answer], 1e-12))
    return scores


def best_of(models: Sequence[_Model], labels: Labels, *, n_folds: int = 5, random_state: RandomState = 0) -> _Model:
    """The model under which held-out votes are most likely."""
    scores = [np.nanmean(heldout_scores(m, labels, n_folds=n_folds, random_state=random_state)) for m in models]
    return models[int(np.argmax(scores))]
