"""Which test items an expert should look at, and what follows from her answers."""

from trueup.active.batch import Asked, Batch
from trueup.active.estimators import ESTIMATORS
from trueup.active.expected import expected_average_precision, expected_precision_at_k
from trueup.active.learned import learned_probabilities
from trueup.active.log import Event, Progress
from trueup.active.pool import Pool, State
from trueup.active.session import ActiveTest
from trueup.active.strategies import STRATEGIES, get_strategy
from trueup.active.strategy import Strategy
from trueup.active.weights import effective_number, lure_weights

__all__ = [
    "ESTIMATORS",
    "STRATEGIES",
    "ActiveTest",
    "Asked",
    "Batch",
    "Event",
    "Pool",
    "Progress",
    "State",
    "Strategy",
    "effective_number",
    "expected_average_precision",
    "expected_precision_at_k",
    "get_strategy",
    "learned_probabilities",
    "lure_weights",
]
