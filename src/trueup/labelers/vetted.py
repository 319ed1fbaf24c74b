"""How often a labeler is right, from items that were drawn at random and vetted.

The labeler is judged as a system is: their votes are its predictions, and the models that see all votes are corrected
by the vetted items among them (`trueup.estimators.rectified`). So the answer is right whatever the models believe.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._base.types import Floats
from trueup.data.aligned import AlignedPredictions
from trueup.data.labels import Labels
from trueup.data.predictions import Predictions
from trueup.data.systems import System
from trueup.estimators.gold_only import GoldSample, gold_only_estimate
from trueup.estimators.metric_scope import gold_in_denominator
from trueup.estimators.rectified import rectified_truths
from trueup.estimators.system_values import system_values
from trueup.estimators.truth import ENOUGH_GOLD, TruthEngine
from trueup.exceptions import silenced_warnings
from trueup.metrics import get_metric
from trueup.posteriors import Estimate

_SWEEPS = {"n_warmup": 150, "n_draws": 300}  # of chains whose means alone are used, and corrected


@dataclass(frozen=True, eq=False)
class VettedAccuracy:
    """What vetted items that were drawn at random say of one labeler.

    Attributes
    ----------
    n_vetted : int
        Such items among their votes.
    gold_only : Estimate
        Their accuracy from these alone, with no votes of others and no model.
    draws : array of shape (n_draws,) or None
        Their accuracy from the models as these items correct them; None where they are too few for that.
    """

    n_vetted: int
    gold_only: Estimate
    draws: Floats | None


def vetted_accuracies(labels: Labels, *, n_draws: int, seed: int) -> dict[int, VettedAccuracy]:
    """The accuracy of every labeler with drawn and vetted items among their votes, by their place.

    Parameters
    ----------
    labels : Labels
    n_draws : int
    seed : int
    """
    if np.isnan(labels.gold_chance).all() or not labels.n_votes:
        return {}
    parts = Predictions.from_labelers(labels).parts
    place_of = {name: place for place, name in enumerate(labels.labelers.tolist())}
    # The models see all votes, so one labeler's are enough to ask with; whose they are changes nothing.
    engine = TruthEngine(
        labels, _aligned(parts[0], labels), positive=0, in_votes=np.ones(1, dtype=bool), seed=seed, sampling=_SWEEPS
    )
    judged = {place_of[part.name]: _judge(engine, part, n_draws, place_of[part.name]) for part in parts}
    return {place: accuracy for place, accuracy in judged.items() if accuracy is not None}


def _judge(engine: TruthEngine, labeler: System, n_draws: int, place: int) -> VettedAccuracy | None:
    """What is known of one labeler; None where no drawn item is among their votes."""
    labels = engine.labels
    metric = get_metric("accuracy", labels.classes.tolist())
    everywhere = _aligned(labeler, labels)
    own = np.flatnonzero(everywhere.outputs("classes")[0] >= 0)
    outputs, gold = everywhere.at_items(own), engine.drawn_gold[own]
    n_vetted = gold_in_denominator(metric, outputs, gold, engine.positive)
    if not n_vetted:
        return None
    rng = np.random.default_rng([engine.seed, place])
    sample = GoldSample(gold, labels.gold_chance[own], labels.classes, engine.positive, "population")
    gold_only = gold_only_estimate(outputs, metric, sample, n_draws=n_draws, rng=rng)
    if n_vetted < ENOUGH_GOLD:
        return VettedAccuracy(n_vetted, gold_only, None)
    with silenced_warnings():  # vetted items correct the models also where their chains have not mixed
        centre = engine.readings("classes").centre[own]
    truths = rectified_truths(
        centre,
        outputs,
        metric,
        gold=gold,
        chance=sample.chance,
        positive=engine.positive,
        n_draws=n_draws,
        rng=rng,
    )
    chosen = engine.model_labels.gold_codes[own]
    truths[:, chosen >= 0] = chosen[chosen >= 0]
    values = system_values(
        truths,
        outputs,
        metric,
        classes=labels.classes,
        positive=engine.positive,
        target=sample.target,
        random_state=rng,
    )
    return VettedAccuracy(n_vetted, gold_only, values[:, 0])


def _aligned(labeler: System, labels: Labels) -> AlignedPredictions:
    """The votes of a labeler as the predictions of a system, in the order of the items."""
    return Predictions((labeler,)).align(labels, missing="ignore")
