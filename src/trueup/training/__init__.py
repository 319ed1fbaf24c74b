"""Training on noisy votes: scikit-learn classifiers, likelihoods of the votes, and a scorer without truth.

What is scikit-learn's kind is loaded on first use, so that the objectives serve `trueup.cleaning` without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup.training.logistic import NoisyLogisticRegression
    from trueup.training.naive_bayes import NoisyGaussianNB, NoisyMultinomialNB
    from trueup.training.scoring import VoteScorer, scorer
    from trueup.training.sklearn import NoisyLabelClassifier

__all__ = [
    "NoisyGaussianNB",
    "NoisyLabelClassifier",
    "NoisyLogisticRegression",
    "NoisyMultinomialNB",
    "VoteScorer",
    "scorer",
]

_HOME_OF = {
    "NoisyGaussianNB": "naive_bayes",
    "NoisyLabelClassifier": "sklearn",
    "NoisyLogisticRegression": "logistic",
    "NoisyMultinomialNB": "naive_bayes",
    "VoteScorer": "scoring",
    "scorer": "scoring",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'trueup.training' has no attribute {name!r}")
    return getattr(importlib.import_module(f"trueup.training.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
