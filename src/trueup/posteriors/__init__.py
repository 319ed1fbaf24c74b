"""The shapes an answer comes in: every answer is an `Estimate`."""

from trueup.posteriors.continuous import (
    ContinuousEstimate,
    GridEstimate,
    HighestDensityRegion,
    JointEstimate,
    beta_estimate,
    normal_estimate,
    normal_ratio,
    normal_ratio_density,
    normal_ratio_mean,
    wald,
    wilson,
)
from trueup.posteriors.estimate import (
    DiscreteEstimate,
    DrawnEstimate,
    Estimate,
    IntervalKind,
    PointEstimate,
    poisson_binomial_estimate,
    poisson_binomial_pmf,
)

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
