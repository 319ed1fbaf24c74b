"""One run: the hidden truth, the classifiers, the votes in each configuration, and the swap errors of each view."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

import trueup as tu
from experiments.urkullu2019.settings import Array, Design
from trueup.estimators.published.urkullu2019 import deterministic, probabilistic, subjectivist
from trueup.exceptions import ConvergenceWarning
from trueup.metrics import concordance, concordance_many

__all__ = ["Run", "centred_ranks", "expected_auc", "majority_for_each", "one_run", "swap_error"]


@dataclass(frozen=True)
class Run:
    """Swap errors of shape `Design.shape`, that of the supervised reference, and seconds of one core."""

    swap_errors: Array
    supervised: float
    not_converged: int
    seconds: float


def swap_error(estimated: npt.ArrayLike, true: npt.ArrayLike) -> float:
    """The normalised Kendall distance of two rankings: pairs of classifiers in the wrong order, a tie by half."""
    return 1 - concordance(estimated, true)


def centred_ranks(scores: Array) -> Array:
    """Mid-ranks of the items less their mean, one row a classifier."""
    return np.asarray(rankdata(scores, axis=1)) - (scores.shape[1] + 1) / 2


def expected_auc(ranks: Array, positive: Array) -> Array:
    r"""The AUC of each classifier when item i is positive with probability m_i, by `centred_ranks`.

    .. math:: \frac{\sum_{i \ne j} m_i (1 - m_j) (1[s_i > s_j] + \tfrac12 1[s_i = s_j])}{\sum_{i \ne j} m_i (1 - m_j)}

    This is the mean over drawn truths of the pairs in order, over that of all pairs. Of two items one comes first, so
    the sum is linear in m but for a term that all classifiers share: one product with the ranks, no sorting.

    Parameters
    ----------
    ranks : array of shape (n_classifiers, n_items)
    positive : array of shape (n_items,) or (n_classifiers, n_items)
        m; the truth itself where it is known, and then this is the AUC.
    """
    mass = positive.sum(axis=-1)
    pairs = mass * (positive.shape[-1] - mass)
    with_itself = (positive * (1 - positive)).sum(axis=-1)
    gained = np.einsum("ki,ki->k", ranks, np.broadcast_to(positive, ranks.shape))
    return np.asarray(0.5 + gained / (pairs - with_itself))


def majority_for_each(labels: tu.Labels, n_classifiers: int, rng: np.random.Generator) -> Array:
    """The majority of votes with ties solved anew for each classifier, shape (n_classifiers, n_items)."""
    lead = labels.answer_counts[:, 1] - labels.answer_counts[:, 0]
    truths = np.repeat((lead > 0).astype(float)[None], n_classifiers, axis=0)
    tied = lead == 0
    truths[:, tied] = rng.random((n_classifiers, int(tied.sum()))) < 0.5
    return truths


def one_run(design: Design, run: int) -> Run:
    """All configurations of a run; they share truth, classifiers and true evaluation, which the seed of the run gives.

    The supervised reference has no configuration, so the paper gives one line for all. Sharing takes the differences
    between truths out of the comparison of configurations; in each, the runs are independent.
    """
    started = time.process_time()
    seed = design.seed * 10_000 + run
    # The simulator draws the truth before anything that depends on the configuration.
    first = tu.simulate.urkullu(n_items=design.n_items, n_classifiers=1, random_state=seed)
    probability = first.parameters["probability"]
    rng = np.random.default_rng([design.seed, run])
    scores = tu.simulate.urkullu_scores(probability, n_classifiers=design.n_classifiers, random_state=rng)
    true, ranks = concordance_many(scores, probability), centred_ranks(scores)
    errors = np.empty(design.shape)
    not_converged = 0
    for k, case in enumerate(design.cases):
        for i, per_item in enumerate(design.levels):
            for j, per_labeler in enumerate(design.levels):
                data = tu.simulate.urkullu(
                    n_items=design.n_items,
                    n_classifiers=1,
                    labels_per_item=per_item,
                    labels_per_labeler=per_labeler,
                    case=case,
                    random_state=seed,
                )
                labels = data.labels
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # they are counted
                    noise = tu.noise.SoftTruth().fit(labels)
                not_converged += not noise.converged_
                said = {
                    "DGT": expected_auc(ranks, majority_for_each(labels, design.n_classifiers, rng)),
                    "SGT": subjectivist(labels, scores).values,
                    "PGT": probabilistic(labels, scores).values,
                    "bayes": expected_auc(ranks, noise.posterior(labels)[:, 1]),
                    "DGT once": deterministic(labels, scores, random_state=rng).values,
                }
                errors[k, i, j] = [swap_error(values, true) for values in said.values()]
    supervised = swap_error(expected_auc(ranks, first.truth.astype(float)), true)
    return Run(errors, supervised, not_converged, time.process_time() - started)
