"""Data with a known truth: one function for each generative model, one seed for each data set.

Every simulator returns a `Simulation`: the votes, the truth, the predictions or scores of classifiers and the
parameters that made them.
"""

from trueup.simulate.dawid_skene_model import baseline, dawid_skene
from trueup.simulate.dependent_errors import dependent
from trueup.simulate.difficulty_model import shared_difficulty
from trueup.simulate.pair_model import PairSimulation, pairs
from trueup.simulate.rating_model import ratings
from trueup.simulate.simulation import Simulation
from trueup.simulate.su2024 import su
from trueup.simulate.tars2018 import tars
from trueup.simulate.urkullu2019 import URKULLU_CASES, urkullu, urkullu_scores

__all__ = [
    "URKULLU_CASES",
    "PairSimulation",
    "Simulation",
    "baseline",
    "dawid_skene",
    "dependent",
    "pairs",
    "ratings",
    "shared_difficulty",
    "su",
    "tars",
    "urkullu",
    "urkullu_scores",
]
