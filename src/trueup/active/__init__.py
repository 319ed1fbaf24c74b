"""Which test items an expert should look at, and what follows from their answers."""

from trueup.active.estimators import ESTIMATORS, Estimated, MetricEstimator, Request, learned_probabilities
from trueup.active.influence import Pool, State, expected_average_precision, expected_precision_at_k
from trueup.active.session import ActiveTest
from trueup.active.strategies import STRATEGIES, Strategy, effective_number, get_strategy, lure_weights
from trueup.sessions.log import NONE_OF_THESE, Event
from trueup.sessions.progress import Progress, Rate, SessionStatus
from trueup.sessions.session import Asked, Batch

__all__ = [
    "ESTIMATORS",
    "NONE_OF_THESE",
    "STRATEGIES",
    "ActiveTest",
    "Asked",
    "Batch",
    "Estimated",
    "Event",
    "MetricEstimator",
    "Pool",
    "Progress",
    "Rate",
    "Request",
    "SessionStatus",
    "State",
    "Strategy",
    "effective_number",
    "expected_average_precision",
    "expected_precision_at_k",
    "get_strategy",
    "learned_probabilities",
    "lure_weights",
]
