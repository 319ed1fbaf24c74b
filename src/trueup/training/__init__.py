"""Training on noisy votes: scikit-learn classifiers, likelihoods of the votes, and a scorer without truth.

What is scikit-learn's kind is loaded on first use, so that the rest can be imported without it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from trueup.training.copies import VoteScorer, scorer
from trueup.training.objectives import noise_aware_probabilities, noise_removed, noise_tolerant
from trueup.training.strategies import TRAINING_STRATEGIES, Task, Trained

if TYPE_CHECKING:
    from trueup.training.sklearn import (
        NoisyGaussianNB,
        NoisyLabelClassifier,
        NoisyLogisticRegression,
        NoisyMultinomialNB,
    )

__all__ = [
    "TRAINING_STRATEGIES",
    "NoisyGaussianNB",
    "NoisyLabelClassifier",
    "NoisyLogisticRegression",
    "NoisyMultinomialNB",
    "Task",
    "Trained",
    "VoteScorer",
    "noise_aware_probabilities",
    "noise_removed",
    "noise_tolerant",
    "scorer",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.sklearn"), name)
