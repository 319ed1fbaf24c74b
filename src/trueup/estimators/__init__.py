"""How it is estimated: from predictions and what votes say of the truth to the posterior of the confusion counts.

`METHODS` holds them by name. All return a `Solution`.
"""

from trueup.estimators.counts import (
    BootstrapEstimate,
    CountsPosterior,
    DrawnCounts,
    DrawnRates,
    JointPoint,
    LatticeCounts,
    NormalCounts,
    PointCounts,
    ScoreEstimate,
)
from trueup.estimators.curves import Curve, Sensitivity, error_sensitivity, performance_curve
from trueup.estimators.given_noise import bayes, bayes_multiclass, exact_counts
from trueup.estimators.methods import METHODS, Method, bayes_learned
from trueup.estimators.problem import Problem, Solution, class_posterior
from trueup.estimators.published.practice import (
    LabelerCounts,
    MajorityCounts,
    labeler_counts,
    labeler_mean,
    labeler_median,
    majority,
)
from trueup.estimators.published.su2024 import estimated_labels, ideal, mmse, no_predictions, prior_average
from trueup.estimators.published.tars2018.consolidation import (
    ConsolidatedConfusion,
    Consolidation,
    consolidate,
    consolidated_confusion,
)
from trueup.estimators.published.tars2018.noise_removal import dirty, mislabeled, noise_removal
from trueup.estimators.published.tars2018.unbiased import UnbiasedCounts, inverse_weights, unbiased
from trueup.estimators.published.urkullu2019 import (
    VIEWS,
    ViewResult,
    bootstrap_view,
    deterministic,
    probabilistic,
    subjectivist,
)
from trueup.estimators.system_features import system_prior
from trueup.estimators.system_values import system_values
from trueup.estimators.truth import TruthDraws, draw_truths

__all__ = [
    "METHODS",
    "VIEWS",
    "BootstrapEstimate",
    "ConsolidatedConfusion",
    "Consolidation",
    "CountsPosterior",
    "Curve",
    "DrawnCounts",
    "DrawnRates",
    "JointPoint",
    "LabelerCounts",
    "LatticeCounts",
    "MajorityCounts",
    "Method",
    "NormalCounts",
    "PointCounts",
    "Problem",
    "ScoreEstimate",
    "Sensitivity",
    "Solution",
    "TruthDraws",
    "UnbiasedCounts",
    "ViewResult",
    "bayes",
    "bayes_learned",
    "bayes_multiclass",
    "bootstrap_view",
    "class_posterior",
    "consolidate",
    "consolidated_confusion",
    "deterministic",
    "dirty",
    "draw_truths",
    "error_sensitivity",
    "estimated_labels",
    "exact_counts",
    "ideal",
    "inverse_weights",
    "labeler_counts",
    "labeler_mean",
    "labeler_median",
    "majority",
    "mislabeled",
    "mmse",
    "no_predictions",
    "noise_removal",
    "performance_curve",
    "prior_average",
    "probabilistic",
    "subjectivist",
    "system_prior",
    "system_values",
    "unbiased",
]
