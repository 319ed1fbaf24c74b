"""Conformance checks for parts that are added to trueup, inside or outside of it.

There is a tuple of checks for each kind of part: noise models, metrics, evaluation methods, strategies of active
testing and of cleaning, and commands of the command line. A check takes a part of its kind, as the module it is in
says, and raises AssertionError where the part breaks the contract of its kind. `StorageTests` is a class of tests for
storages of sessions.
"""

from trueup.testing.commands import COMMAND_CHECKS
from trueup.testing.methods import METHOD_CHECKS, MethodExample
from trueup.testing.metrics import METRIC_CHECKS
from trueup.testing.noise import NOISE_CHECKS, example_labels
from trueup.testing.storage import StorageTests
from trueup.testing.strategies import CLEANING_CHECKS, STRATEGY_CHECKS

__all__ = [
    "CLEANING_CHECKS",
    "COMMAND_CHECKS",
    "METHOD_CHECKS",
    "METRIC_CHECKS",
    "NOISE_CHECKS",
    "STRATEGY_CHECKS",
    "MethodExample",
    "StorageTests",
    "example_labels",
]
