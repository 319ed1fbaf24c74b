"""How it is estimated: from predictions and what votes say of the truth to the posterior of the confusion counts.

`METHODS` see arrays (a `Problem`); `LABELER_METHODS` see the votes and the codes of the predictions. All return a
`Solution`.
"""

from collections.abc import Callable

from trueup.estimators.baselines import ideal, no_predictions, prior_average
from trueup.estimators.bayes_known import bayes, exact_counts
from trueup.estimators.bayes_learned import bayes_learned
from trueup.estimators.bayes_multiclass import bayes_multiclass
from trueup.estimators.curves import Curve, performance_curve
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
from trueup.estimators.normal import NormalCounts
from trueup.estimators.posterior import CountsPosterior, DrawnCounts, DrawnRates, JointPoint, PointCounts
from trueup.estimators.problem import Problem, Solution, class_posterior
from trueup.estimators.sensitivity import Sensitivity, error_sensitivity

__all__ = [
    "LABELER_METHODS",
    "METHODS",
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
    "Sensitivity",
    "Solution",
    "bayes",
    "bayes_learned",
    "bayes_multiclass",
    "class_posterior",
    "error_sensitivity",
    "estimated_labels",
    "exact_counts",
    "ideal",
    "labeler_counts",
    "labeler_mean",
    "labeler_median",
    "majority",
    "mmse",
    "no_predictions",
    "performance_curve",
    "prior_average",
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
