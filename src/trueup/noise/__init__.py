"""Who can be trusted: models of how labelers err."""

from typing import Any

from trueup.noise.base import NoiseModel, Sampler, identifiability_problem
from trueup.noise.confusion import Confusion
from trueup.noise.dawid_skene import DawidSkene
from trueup.noise.difficulty import Difficulty
from trueup.noise.glad import GLAD
from trueup.noise.independence import EffectiveLabelers, IndependenceCheck, check_independence, effective_labelers
from trueup.noise.majority import Majority
from trueup.noise.one_coin import OneCoin
from trueup.noise.ordinal import Ordinal
from trueup.noise.registry import (
    DEFAULT_NOISE,
    REMOVED_MODELS,
    Stack,
    choose,
    fit,
    get_model,
    heldout_scores,
    list_models,
    register_model,
    removal_of,
    resolve,
)
from trueup.noise.sampling import PosteriorDraws, sample
from trueup.noise.soft_truth import SoftTruth

__all__ = [
    "DEFAULT_NOISE",
    "GLAD",
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
    "SoftTruth",
    "Stack",
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


def __getattr__(name: str) -> Any:
    if name in REMOVED_MODELS.values():
        raise AttributeError(str(removal_of(name)))
    raise AttributeError(f"module 'trueup.noise' has no attribute {name!r}")
