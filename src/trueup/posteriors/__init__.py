"""The shapes an answer comes in: every answer is an `Estimate`."""

from trueup.posteriors.atoms import DiscreteEstimate, DrawnEstimate
from trueup.posteriors.continuous import (
    ContinuousEstimate,
    GridEstimate,
    beta_estimate,
    jeffreys,
    jeffreys_estimate,
    normal_estimate,
    wald,
    wilson,
)
from trueup.posteriors.estimate import Estimate, IntervalKind
from trueup.posteriors.joint_densities import pr_density, roc_density
from trueup.posteriors.mixture import MixtureEstimate, mixture_estimate
from trueup.posteriors.normal_ratio import normal_ratio, normal_ratio_density, normal_ratio_mean
from trueup.posteriors.point import PointEstimate
from trueup.posteriors.poisson_binomial import (
    poisson_binomial_estimate,
    poisson_binomial_pmf,
    two_counts_estimate,
)
from trueup.posteriors.regions import HighestDensityRegion, JointEstimate, geometric_median

__all__ = [
    "ContinuousEstimate",
    "DiscreteEstimate",
    "DrawnEstimate",
    "Estimate",
    "GridEstimate",
    "HighestDensityRegion",
    "IntervalKind",
    "JointEstimate",
    "MixtureEstimate",
    "PointEstimate",
    "beta_estimate",
    "geometric_median",
    "jeffreys",
    "jeffreys_estimate",
    "mixture_estimate",
    "normal_estimate",
    "normal_ratio",
    "normal_ratio_density",
    "normal_ratio_mean",
    "poisson_binomial_estimate",
    "poisson_binomial_pmf",
    "pr_density",
    "roc_density",
    "two_counts_estimate",
    "wald",
    "wilson",
]
