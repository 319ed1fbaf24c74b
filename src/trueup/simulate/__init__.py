"""Data with a known truth: one function for each generative model, one seed for each data set.

Every simulator returns a `Simulation`: the votes, the truth, the predictions or scores of classifiers and the
parameters that made them.
"""

from trueup.simulate._baseline import baseline
from trueup.simulate._dawid_skene import dawid_skene
from trueup.simulate._dependent import dependent
from trueup.simulate._su import su
from trueup.simulate._tars import tars
from trueup.simulate._urkullu import URKULLU_CASES, urkullu, urkullu_scores
from trueup.simulate.simulation import Simulation

__all__ = [
    "URKULLU_CASES",
    "Simulation",
    "baseline",
    "dawid_skene",
    "dependent",
    "su",
    "tars",
    "urkullu",
    "urkullu_scores",
]
