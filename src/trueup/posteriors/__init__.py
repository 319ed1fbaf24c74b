"""The shapes an answer comes in: every answer is an `Estimate`."""

from trueup.posteriors.atoms import DiscreteEstimate, DrawnEstimate
from trueup.posteriors.continuous import (
    ContinuousEstimate,
    GridEstimate,
    beta_estimate,
    normal_estimate,
    wald,
    wilson,
)
from trueup.posteriors.estimate import Estimate, IntervalKind
from trueup.posteriors.normal_ratio import normal_ratio, normal_ratio_density, normal_ratio_mean
from trueup.posteriors.point import PointEstimate
from trueup.posteriors.poisson_binomial import poisson_binomial_estimate, poisson_binomial_pmf
from trueup.posteriors.regions import HighestDensityRegion, JointEstimate

__all__ = [
    "ContinuousEstimate",
    "DiscreteEstimate",
    "DrawnEstimate",
    "Estimate",
    "GridEstimate",
    "HighestDensityRegion",
    "IntervalKind",
    "JointEstimate",
    "PointEstimate",
    "beta_estimate",
    "normal_estimate",
    "normal_ratio",
    "normal_ratio_density",
    "normal_ratio_mean",
    "poisson_binomial_estimate",
    "poisson_binomial_pmf",
    "wald",
    "wilson",
]
