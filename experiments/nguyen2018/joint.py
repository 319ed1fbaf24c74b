"""The learned estimator of tags, put right for several systems and for pairs that were chosen, not drawn.

Equation 13 of the paper counts how often tags are wrong among the vetted pairs, and fits the truth by the score of one
system at a time. Where pairs were chosen by what is believed of them these counts are off, and a pair that two systems
share is two different things. Here the truth is regressed on the noisy tag and all scores at once: which pairs are
vetted depends on nothing else, so that a chosen sample teaches the same as a random one; and a pair has one chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from trueup.active.estimators import Learned, learned_probabilities
from trueup.active.influence import Pool
from trueup.active.rectified import PoolModel, known_classes
from trueup.sessions.progress import Progress

__all__ = ["JointlyLearned", "joint_probabilities"]

Array = npt.NDArray[np.float64]


def joint_probabilities(
    noisy: npt.ArrayLike,
    scores: Array,
    vetted: npt.NDArray[np.bool_],
    truth: npt.ArrayLike,
    tags: npt.NDArray[np.int64],
) -> Array:
    """P(the tag fits) of each pair: the truth where it is vetted, else what a logistic regression says.

    Parameters
    ----------
    noisy, truth : arrays of shape (n_pairs,)
        0 or 1.
    scores : array of shape (n_systems, n_pairs)
    vetted : boolean array of shape (n_pairs,)
    tags : integer array of shape (n_pairs,)
    """
    from scipy.sparse import csr_array, hstack
    from sklearn.linear_model import LogisticRegression

    known, given = np.asarray(truth), np.asarray(noisy, dtype=float)
    if len(np.unique(known[vetted])) < 2:
        by_system = [learned_probabilities(noisy, one, vetted, known, categories=tags) for one in scores]
        return np.asarray(np.mean(by_system, axis=0))
    spread = scores.std(axis=1, keepdims=True)
    columns = (scores - scores.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    plain = np.column_stack([*columns, given, columns.mean(axis=0) * given])
    at = np.arange(len(given))
    features = hstack([csr_array(plain), csr_array((np.ones(len(at)), (at, tags)))], format="csr")
    model = LogisticRegression(max_iter=1000).fit(features[np.flatnonzero(vetted)], known[vetted])
    return np.where(vetted, known, model.predict_proba(features)[:, 1])


@dataclass(frozen=True)
class JointlyLearned(Learned):
    """What MEEC goes by: one chance of each pair for all systems."""

    name: ClassVar[str] = "jointly-learned"

    def believed(self, pool: Pool, progress: Progress, model: PoolModel) -> Array:
        """P(class) of every pair."""
        assert pool.aligned.scores is not None
        assert pool.categories is not None
        known = known_classes(pool, progress)
        positive = joint_probabilities(
            pool.noisy == pool.positive,
            np.asarray(pool.aligned.scores),
            known >= 0,
            (known == pool.positive).astype(int),
            np.asarray(pool.categories, dtype=np.int64),
        )
        table = np.empty((pool.n_items, 2))
        table[:, pool.positive], table[:, 1 - pool.positive] = positive, 1 - positive
        return table
