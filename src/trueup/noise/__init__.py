"""Who can be trusted: models of how labelers err."""

from trueup.noise.base import NoiseModel
from trueup.noise.confusion import Confusion
from trueup.noise.dawid_skene import DawidSkene
from trueup.noise.difficulty import Difficulty
from trueup.noise.glad import GLAD
from trueup.noise.heldout import heldout_scores
from trueup.noise.majority import Majority
from trueup.noise.one_coin import OneCoin
from trueup.noise.subtypes import Subtypes

__all__ = [
    "GLAD",
    "Confusion",
    "DawidSkene",
    "Difficulty",
    "Majority",
    "NoiseModel",
    "OneCoin",
    "Subtypes",
    "heldout_scores",
]
