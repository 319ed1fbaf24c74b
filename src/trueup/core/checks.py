"""What checked items count for, and whether they contradict what votes suggest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from trueup._base.types import Codes, Floats
from trueup._base.validation import preview
from trueup.core.posterior import ThetaDraws
from trueup.core.rows import Rows
from trueup.exceptions import InvalidParameter

LEAST_CHOSEN = 5  # checked items of a system from which a share of right answers says something
NOTED = 0.05  # the chance that votes give to what is noted as odd
REFUSED = 0.02  # and to what makes them give no interval


def check_weights(chance: Floats) -> Floats:
    """What each checked item counts for, scaled to sum to Kish's effective number of items.

    An item drawn with chance p stands for 1/p items. One of them is itself and known, so it teaches about 1/p − 1
    others; an item that was certain to be drawn teaches about none. Items with one chance count one each.

    Examples
    --------
    >>> check_weights(np.array([0.1, 0.1])).tolist(), check_weights(np.array([0.5, 0.25])).round(2).tolist()
    ([1.0, 1.0], [0.4, 1.2])
    """
    wrong = chance[~((chance > 0) & (chance <= 1))]
    if len(wrong):
        raise InvalidParameter(
            f"`chance` of a checked item must be a probability in (0, 1], got {preview(wrong.tolist())}; leave out "
            "items that were not drawn by chance",
        )
    weights = 1 / chance - 1
    if not weights.any():
        return np.asarray(np.ones_like(weights) * float(len(weights) > 0 and np.ptp(chance) == 0))
    return effective_weights(weights)


def effective_weights(weights: Floats) -> Floats:
    """Weights in the same proportion that sum to Kish's effective number of items, (Σw)² / Σw²."""
    squares = float((weights**2).sum())
    return np.asarray(weights * (weights.sum() / squares)) if squares > 0 else np.zeros_like(weights)


def design_effect(base: Floats, codes: Codes, truth: Codes, clusters: Codes) -> float:
    """How many checked items of their clusters are worth one drawn by itself.

    1 + (m − 1) r, with m the mean size of an item's cluster among those checked and r how much the errors on items of
    one cluster have in common: those of the base, or those of what it expects of a system, whichever is more.
    """
    return 1 + mean_others(clusters) * shared_errors(base, codes, truth, clusters)


def mean_others(clusters: Codes) -> float:
    """How many others are in the cluster of an item, on average over the items."""
    sizes = np.bincount(np.unique(clusters, return_inverse=True)[1]).astype(float)
    return float((sizes**2).sum() / max(sizes.sum(), 1.0) - 1)


def shared_errors(base: Floats, codes: Codes, truth: Codes, clusters: Codes) -> float:
    """The correlation r of `design_effect`."""
    n_pairs = mean_others(clusters) * len(clusters)
    if n_pairs < 1:
        return 0.0
    _, group = np.unique(clusters, return_inverse=True)
    item = np.arange(len(truth))
    kinds = [np.eye(base.shape[1])[truth] - base]
    kinds += [np.where(row >= 0, (row == truth) - base[item, row], 0.0)[:, None] for row in codes]
    return max(_common_share(errors - errors.mean(axis=0), group, n_pairs) for errors in kinds)


def _common_share(errors: Floats, group: Codes, n_pairs: float) -> float:
    """The correlation of errors of one group, from 0 to 1."""
    sums = np.zeros((int(group.max()) + 1, errors.shape[1]))
    np.add.at(sums, group, errors)
    own = (errors**2).sum(axis=1)
    return float(np.clip((np.sum(sums**2) - own.sum()) / n_pairs / max(own.mean(), 1e-300), 0.0, 1.0))


@dataclass(frozen=True)
class Surprise:
    """How often a system is right on checked items, beside what votes suggest."""

    system: int  # its place
    n_items: int
    n_right: int
    expected: float  # the number of right ones that votes suggest
    chance: float  # of so far a number or a farther one, under what real sets taught


def surprises(rows: Rows, truth: Codes, systems: Sequence[int], prior_draws: ThetaDraws) -> list[Surprise]:
    """Of each system with enough checked items, how surprising the number of its right answers is.

    `rows` are the checked items with a base that knows none of them, `prior_draws` are made without any checked item,
    and `systems` are the places of those that have a feature, in the order of the features.
    """
    named = rows.named(rows.probabilities(prior_draws.beta, prior_draws.gamma))
    found = []
    for k, system in enumerate(systems):
        seen = np.flatnonzero(rows.values[k] != 0)
        if len(seen) < LEAST_CHOSEN:
            continue
        chances = named[k, seen]
        n_right = int((truth[seen] == rows.targets[k, seen]).sum())
        mean, deviation = chances.sum(axis=0), np.sqrt((chances * (1 - chances)).sum(axis=0) + 1e-12)
        # The number is drawn from a normal distribution for each θ; half a step for whole numbers.
        spread = ndtri((np.arange(len(mean)) + 0.5) / len(mean))
        drawn = mean + deviation * np.random.default_rng(0).permutation(spread)
        at_most, at_least = float(np.mean(drawn <= n_right + 0.5)), float(np.mean(drawn >= n_right - 0.5))
        found.append(Surprise(system, len(seen), n_right, float(mean.mean()), min(1.0, 2 * min(at_most, at_least))))
    return found
