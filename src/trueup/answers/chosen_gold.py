"""Vetted items that someone chose, held against what models expect of the systems on them.

Such items stand for themselves only, so they correct nothing; but models that were not told them say how often a system
is right on them. Where that is further off than the models and real crowds leave open, their intervals are not to be
believed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from trueup._base.types import Codes, Floats
from trueup.answers.setup import Task
from trueup.data.aligned import AlignedPredictions
from trueup.estimators.readings import direction_features
from trueup.estimators.real_map import RealMap
from trueup.estimators.system_features import Used
from trueup.estimators.truth import TruthEngine
from trueup.exceptions import Sentence

_LEAST_CHOSEN = 5  # vetted items from which a share of right answers says something
_WORTH_SAYING = 0.05  # the chance of what is said for nothing, where models are right about their own uncertainty
_BEYOND_CROWDS = 0.02  # the chance that a real crowd is so far off
_SHORT_CHAINS = {"n_chains": 2, "n_warmup": 100, "n_draws": 100}  # expectations need no tails
_SHORT_DRAWS = 200
_WHAT_TO_VET = (
    'vet items drawn at random (⟨trueup.labelers.draw_sample⟩) and pass them with ⟨drawn="random"⟩, which are believed '
    "before any model"
)


@dataclass(frozen=True)
class Surprise:
    """How far a system is on chosen gold from what models expect of it there.

    Attributes
    ----------
    system : hashable
    n_items : int
        Vetted items that it says something of.
    expected, seen : float
        Of the mean over them: the share of right answers, or what scores are judged by.
    for_models : float
        The difference in standard deviations that the models give it.
    for_crowds : float
        The same with what real crowds are off by, and the chance of drawing each item's class.
    """

    system: Any
    n_items: int
    expected: float
    seen: float
    for_models: float
    for_crowds: float


@dataclass(frozen=True)
class ChosenGold:
    """What chosen gold says of the models.

    Attributes
    ----------
    refused : bool
        Whether it contradicts them, so that they give no interval.
    sentences : tuple of Sentence
        What to say of it, if anything.
    """

    refused: bool = False
    sentences: tuple[Sentence, ...] = ()


def check_chosen_gold(engine: TruthEngine, task: Task) -> ChosenGold:
    """Hold the vetted items that someone chose against the models, where a metric rests on these.

    Gold that is kept aside to check a fit counts too.
    """
    from_votes = [metric for metric in task.metrics.values() if engine.basis(metric) == "votes"]
    if not from_votes:
        return ChosenGold()
    return hold_against_models(engine, "classes" if task.outputs.codes is not None else from_votes[0].looks_at)


def hold_against_models(engine: TruthEngine, used: Used) -> ChosenGold:
    """Hold the vetted items that someone chose against models, by the classes or the scores of systems."""
    truths = chosen_truths(engine)
    known = (truths >= 0) | (engine.drawn_gold >= 0)
    if (truths >= 0).sum() < _LEAST_CHOSEN or known.all():
        return ChosenGold()
    blind = _blind(engine)
    outputs = engine.outputs.prepared_for(used, positive=engine.positive)
    spread = np.zeros(outputs.n_systems)
    if blind.alone is None:
        readings = blind.readings(used)
        own = readings.kinds.spread(readings.part[: readings.n_systems])
        spread[: len(own)], spread[len(own) :] = own, own.max(initial=0.0)
    surprises = surprises_of(blind.centre(used), outputs, used, truths, spread, engine.real_map)
    return verdict_on(surprises, used, n_systems=outputs.n_systems)


def chosen_truths(engine: TruthEngine) -> Codes:
    """The class of each vetted item that someone chose, -1 for all others."""
    labels = engine.labels
    known = np.where(labels.gold_codes >= 0, labels.gold_codes, labels.held_codes)
    return np.where(engine.drawn_gold >= 0, -1, known).astype(np.int32)


def _blind(engine: TruthEngine) -> TruthEngine:
    """An engine whose models are told no vetted item; the same where they are told none anyway."""
    if (engine.model_labels.gold_codes < 0).all():
        return engine
    labels = engine.labels.without_gold()
    return replace(engine, labels=labels, n_draws=_SHORT_DRAWS, progress=None, sampling=_SHORT_CHAINS)


def surprises_of(
    posterior: Floats, outputs: AlignedPredictions, used: Used, truths: Codes, spread: Floats, real_map: RealMap
) -> list[Surprise]:
    """How far each system is on vetted items from what is expected of it there.

    Parameters
    ----------
    posterior : array of shape (n_items, n_classes)
        P(class) under models that were not told.
    outputs : AlignedPredictions
    used : {"classes", "scores", "probabilities"}
    truths : integer array of shape (n_items,)
        Of the vetted items, -1 for all others.
    spread : array of shape (n_systems,)
        The standard deviation that models give each system's metric.
    real_map : RealMap
    """
    surprises = []
    floor = float(np.clip(real_map.floor, 0.02, 0.2))
    for place, name in enumerate(outputs.systems.tolist()):
        one = outputs.of_systems(np.array([place]))
        seen = np.flatnonzero((truths >= 0) & one.has_output(used)[0])
        if len(seen) < _LEAST_CHOSEN:
            continue
        feature = direction_features(one, outputs.n_classes, used, posterior)[0] * one.has_output(used)[0].mean()
        expected, variance = _moments(posterior[seen], feature[seen])
        # No model may be surer of an item than real crowds let it be.
        hedged = (1 - floor) * posterior[seen] + floor / outputs.n_classes
        _, their_variance = _moments(hedged, feature[seen])
        observed = feature[seen, truths[seen]]
        own = np.sqrt(variance.sum() / len(seen) ** 2 + spread[place] ** 2)
        theirs = np.sqrt(their_variance.sum() / len(seen) ** 2 + float(real_map.deviations(np.zeros(1))[0]) ** 2)
        gap = float((observed - expected).mean())
        means = float(expected.mean()), float(observed.mean())
        surprises.append(Surprise(name, len(seen), *means, gap / max(float(own), 1e-9), gap / float(theirs)))
    return surprises


def _moments(posterior: Floats, feature: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of a feature of each item."""
    mean = (posterior * feature).sum(axis=1)
    return mean, (posterior * feature**2).sum(axis=1) - mean**2


def verdict_on(surprises: list[Surprise], used: Used, *, n_systems: int) -> ChosenGold:
    """What to make of the system that surprises most; each of several has its part of the chance of a false alarm."""
    if not surprises:
        return ChosenGold()
    said, refused = (_limit(chance, len(surprises)) for chance in (_WORTH_SAYING, _BEYOND_CROWDS))
    worst = max(surprises, key=lambda one: min(abs(one.for_models) / said, abs(one.for_crowds) / refused))
    if abs(worst.for_models) > said and abs(worst.for_crowds) > refused:
        told = Sentence(
            f"The vetted items contradict the models: {_in_words(worst, used, n_systems)}. Real crowds are seldom so "
            f"far off, so there is no interval from votes; {_WHAT_TO_VET}."
        )
        return ChosenGold(refused=True, sentences=(told,))
    odd = max(surprises, key=lambda one: abs(one.for_models))
    if abs(odd.for_models) <= said:
        return ChosenGold()
    words = _in_words(odd, used, n_systems)
    return ChosenGold(
        sentences=(Sentence(f"{words[0].upper()}{words[1:]}. Be careful with intervals from votes; {_WHAT_TO_VET}."),)
    )


def _limit(chance: float, n_systems: int) -> float:
    return float(-ndtri(chance / 2 / n_systems))


def _in_words(one: Surprise, used: Used, n_systems: int) -> str:
    name = "the classifier" if n_systems == 1 else repr(one.system)
    if used == "classes":
        expected, right = (f"{share * one.n_items:.0f}" for share in (one.expected, one.seen))
        return (
            f"models expect {name} to be right on {expected} of the {one.n_items:,} chosen items, and it is on {right}"
        )
    how = "better" if one.seen > one.expected else "worse"
    return (
        f"by its {used} {name} does {how} on the {one.n_items:,} chosen items than models expect (z = "
        f"{one.for_models:.1f})"
    )
