"""The base: P(class of an item | votes), from two EM fits, before systems and drawn checks say anything.

Dawid–Skene and soft truth err in different ways, and on real sets their mean is nearer to the truth than either; more
models in the mean make it worse. Checks that were drawn do not enter the base, since they are to correct it; checked
items that somebody chose do, since they can correct nothing but themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from trueup._base.types import Floats
from trueup.data.labels import Labels
from trueup.data.votes import one_vote_each, shared_votes
from trueup.exceptions import silenced_warnings
from trueup.noise import DawidSkene, NoiseModel, OneCoin, SoftTruth
from trueup.noise.registry import best_of, is_splittable

Clip = Callable[[Floats], Floats]
SURE = 0.98  # the largest probability of the base: votes alone prove nothing
MOST_SOFT_CLASSES = 30  # with more, Dawid–Skene alone
MOST_MATRIX_CLASSES = 200  # with more, one-coin alone, which needs no matrix of a labeler
_RARE = 0.1  # of the share of a class: the largest floor where the class is rare
_LEAST = 1e-6
_MOST_EVIDENCE = 600.0  # of the votes for a class, on the scale of logarithms


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


def clip_rare(chances: Floats) -> Floats:
    """As `clip_base`, with a floor of at most a tenth of the share of the class; for ratios such as recall.

    Of 1,000 items with 50 positives the floor of 0.02 alone makes 19 more, none of which a system finds: after 100
    answers recall was .05 too low in the mean.
    """
    most = (1 - SURE) / max(chances.shape[1] - 1, 1)
    clipped = np.maximum(chances, np.clip(_RARE * chances.mean(axis=0), _LEAST, most))
    return np.asarray(clipped / clipped.sum(axis=1, keepdims=True))


def base_of(labels: Labels, candidates: Sequence[NoiseModel] = (), *, clip: Clip = clip_base) -> Floats:
    """P(class) of each item from the votes; gold is known, and several votes of a labeler on an item share one."""
    shared = replace(labels, votes=shared_votes(labels))
    if labels.n_classes > MOST_MATRIX_CLASSES:
        return clip(_one_coin_posterior(shared))
    with silenced_warnings():
        models = base_models(labels.n_classes)
        single = one_vote_each(labels, np.random.default_rng(0))  # a copy of a vote must not predict it
        if candidates and is_splittable(single):
            models[0] = best_of([models[0], *candidates], single)
        posteriors = [model.fit(shared).posterior(shared) for model in models]
    return clip(np.mean(posteriors, axis=0))


def _one_coin_posterior(labels: Labels) -> Floats:
    """P(class) of each item under `OneCoin`; classes without a vote on an item differ in their prior alone."""
    model, n_classes, gold = OneCoin(), labels.n_classes, labels.gold_codes
    item, labeler, answer, _ = labels.vote_table()
    counts, names_class = labels.votes.data, answer < n_classes
    item, labeler, answer, counts = item[names_class], labeler[names_class], answer[names_class], counts[names_class]
    cells, cell = np.unique(item.astype(np.int64) * n_classes + answer, return_inverse=True)
    item_of, class_of = np.divmod(cells, n_classes)
    is_open, has_gold = gold < 0, gold[item_of] >= 0
    n_votes = np.bincount(labeler, counts, labels.n_labelers)
    n_gold = np.bincount(gold[~is_open], minlength=n_classes).astype(float)
    prior = np.full(n_classes, 1 / n_classes)
    chance = np.bincount(cell, counts) / np.bincount(item, counts, labels.n_items)[item_of]  # the shares of votes
    for _ in range(model.max_iter):
        chance = np.where(has_gold, gold[item_of] == class_of, chance)
        right = np.bincount(labeler, chance[cell] * counts, labels.n_labelers)
        accuracy = (right + model.right) / (n_votes + model.right + model.wrong)
        evidence = np.log(accuracy * (n_classes - 1) / (1 - accuracy))
        odds = prior[class_of] * np.exp(np.minimum(np.bincount(cell, evidence[labeler] * counts), _MOST_EVIDENCE))
        total = 1 + np.bincount(item_of, odds - prior[class_of], labels.n_items)
        before, chance = chance, odds / total[item_of]
        if np.abs(chance - before)[~has_gold].max(initial=0.0) < model.tol:
            break
        beyond = np.where(has_gold, 0.0, chance - prior[class_of] / total[item_of])
        mass = n_gold + prior * (1 / total[is_open]).sum() + np.bincount(class_of, beyond, n_classes)
        prior = mass / mass.sum()
    posterior = prior / total[:, None]
    posterior[item_of, class_of] = chance
    posterior[~is_open] = np.eye(n_classes)[gold[~is_open]]
    return np.asarray(posterior)
