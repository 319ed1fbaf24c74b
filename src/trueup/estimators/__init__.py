"""How it is estimated: from predictions and what votes say of the truth to the posterior of the confusion counts.

`METHODS` see arrays (a `Problem`); `LABELER_METHODS` see the votes and the codes of the predictions; `VOTE_METHODS` see
the votes, the codes and a noise model, and are about the population. All return a `Solution`.
"""

from collections.abc import Callable

from trueup.estimators.baselines import ideal, no_predictions, prior_average
from trueup.estimators.bayes_known import bayes, exact_counts
from trueup.estimators.bayes_learned import bayes_learned
from trueup.estimators.bayes_multiclass import bayes_multiclass
from trueup.estimators.confidence import BootstrapEstimate, ScoreEstimate
from trueup.estimators.consolidated_matrix import ConsolidatedConfusion, consolidated_confusion
from trueup.estimators.consolidation import Consolidation, consolidate
from trueup.estimators.curves import Curve, performance_curve
from trueup.estimators.dirty import dirty
from trueup.estimators.estimated_labels import estimated_labels
from trueup.estimators.labelers import (
    LabelerCounts,
    MajorityCounts,
    labeler_counts,
    labeler_mean,
    labeler_median,
    majority,
)
from trueup.estimators.lattice import LatticeCounts
from trueup.estimators.mmse import mmse
from trueup.estimators.noise_removal import mislabeled, noise_removal
from trueup.estimators.normal import NormalCounts
from trueup.estimators.posterior import CountsPosterior, DrawnCounts, DrawnRates, JointPoint, PointCounts
from trueup.estimators.problem import Problem, Solution, class_posterior
from trueup.estimators.sensitivity import Sensitivity, error_sensitivity
from trueup.estimators.system_features import system_prior
from trueup.estimators.system_values import system_values
from trueup.estimators.truth_draws import TruthDraws, draw_truths
from trueup.estimators.unbiased import inverse_weights, unbiased
from trueup.estimators.unbiased_counts import UnbiasedCounts
from trueup.estimators.views import VIEWS, ViewResult, bootstrap_view, deterministic, probabilistic, subjectivist

__all__ = [
    "LABELER_METHODS",
    "METHODS",
    "VIEWS",
    "VOTE_METHODS",
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

METHODS: dict[str, Callable[..., Solution]] = {
    "bayes": bayes,
    "mmse": mmse,
    "estimated-labels": estimated_labels,
    "no-predictions": no_predictions,
    "prior-average": prior_average,
    "ideal": ideal,
}
LABELER_METHODS: dict[str, Callable[..., Solution]] = {
    "labeler-mean": labeler_mean,
    "labeler-median": labeler_median,
    "majority": majority,
}
VOTE_METHODS: dict[str, Callable[..., Solution]] = {
    "unbiased": unbiased,
    "dirty": dirty,
    "noise-removal": noise_removal,
}
