"""Data with a known truth: one function for each generative model; each returns a `Simulation`."""

from trueup.simulate.dependent_errors import PairSimulation, dependent, pairs, shared_difficulty
from trueup.simulate.papers import URKULLU_CASES, su, tars, urkullu, urkullu_scores
from trueup.simulate.simulation import Simulation, baseline, dawid_skene, ratings

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
