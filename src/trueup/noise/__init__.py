"""Who can be trusted: models of how labelers err."""

from trueup.noise.auto import Stack, choose
from trueup.noise.base import NoiseModel, Sampler, identifiability_problem
from trueup.noise.clusters import Clusters
from trueup.noise.confusion import Confusion
from trueup.noise.dawid_skene import DawidSkene
from trueup.noise.difficulty import Difficulty
from trueup.noise.glad import GLAD
from trueup.noise.heldout import heldout_scores
from trueup.noise.independence import (
    EffectiveLabelers,
    IndependenceCheck,
    check_independence,
    effective_labelers,
)
from trueup.noise.majority import Majority
from trueup.noise.one_coin import OneCoin
from trueup.noise.ordinal import Ordinal
from trueup.noise.registry import DEFAULT_NOISE, fit, get_model, list_models, register_model, resolve
from trueup.noise.sampling import PosteriorDraws, sample
from trueup.noise.shared_difficulty import SharedDifficulty
from trueup.noise.soft_truth import SoftTruth
from trueup.noise.subtypes import Subtypes
from trueup.noise.variational import Variational

__all__ = [
    "DEFAULT_NOISE",
    "GLAD",
    "Clusters",
    "Confusion",
    "DawidSkene",
    "Difficulty",
    "EffectiveLabelers",
    "IndependenceCheck",
    "Majority",
    "NoiseModel",
    "OneCoin",
    "Ordinal",
    "PosteriorDraws",
    "Sampler",
    "SharedDifficulty",
    "SoftTruth",
    "Stack",
    "Subtypes",
    "Variational",
    "check_independence",
    "choose",
    "effective_labelers",
    "fit",
    "get_model",
    "heldout_scores",
    "identifiability_problem",
    "list_models",
    "register_model",
    "resolve",
    "sample",
]
