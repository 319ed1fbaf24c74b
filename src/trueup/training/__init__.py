"""Training on noisy votes: scikit-learn classifiers, likelihoods of the votes, and a scorer without truth."""

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
