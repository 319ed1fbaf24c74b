"""M. Dolatshah, M. Teoh, J. Wang, J. Pei, "Cleaning Crowdsourced Labels Using Oracles for Statistical Classification".

PVLDB 12(4), 2018; the system is called TARS. `consolidation` has the label of several votes and its matrix (Section 3),
`unbiased` the counts that invert it (Section 4, advice 1), `noise_removal` the paper's baselines.
"""

from trueup.estimators.published.tars2018.consolidation import (
    ConsolidatedConfusion,
    Consolidation,
    compositions,
    consolidate,
    consolidated_confusion,
    labeler_matrices,
)
from trueup.estimators.published.tars2018.noise_removal import Filter, dirty, mislabeled, noise_removal
from trueup.estimators.published.tars2018.unbiased import UnbiasedCounts, inverse_weights, unbiased

__all__ = [
    "ConsolidatedConfusion",
    "Consolidation",
    "Filter",
    "UnbiasedCounts",
    "compositions",
    "consolidate",
    "consolidated_confusion",
    "dirty",
    "inverse_weights",
    "labeler_matrices",
    "mislabeled",
    "noise_removal",
    "unbiased",
]
