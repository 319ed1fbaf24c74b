"""How often a labeler is right, from items that were drawn at random and vetted.

The labeler is judged as a system is: their votes are its predictions, and the models that see all votes are corrected
by the vetted items among them (`trueup.estimators.rectified`). So the answer is right whatever the models believe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from trueup._base.types import Booleans, Floats
from trueup.data.predictions import Predictions
from trueup.data.systems import System
from trueup.estimators.gold_only import GoldSample, gold_only_estimate
from trueup.estimators.metric_scope import gold_in_denominator
from trueup.estimators.population import Population
from trueup.estimators.rectified import rectified_truths
from trueup.estimators.system_values import system_values
from trueup.estimators.truth import TruthEngine, gold_share
from trueup.exceptions import silenced_warnings
from trueup.labelers.as_systems import aligned_votes
from trueup.metrics import get_metric
from trueup.posteriors import Estimate

FEWER_SWEEPS = {"n_warmup": 150, "n_draws": 300}  # of chains whose means alone are used, and corrected


@dataclass(frozen=True, eq=False)
class VettedAccuracy:
    """What vetted items that were drawn at random say of one labeler.

    Attributes
    ----------
    n_vetted : int
        Such items among their votes.
    gold_only : Estimate
        Their accuracy from these alone, with no votes of others and no model.
    draws : array of shape (n_draws,)
        Their accuracy from the models as these items correct them.
    share : float
        What these draws count for beside those from votes alone: 1 from `ENOUGH_GOLD` vetted items on, and less below,
        so that one item more never changes much.
    slices : mapping from int to VettedAccuracy
        The same within slices that have items of theirs; the correction is learned on all items together.
    """

    n_vetted: int
    gold_only: Estimate
    draws: Floats
    share: float
    slices: Mapping[int, VettedAccuracy] = field(default_factory=dict)


def vetted_accuracies(engine: TruthEngine, *, n_draws: int) -> dict[int, VettedAccuracy]:
    """The accuracy of every labeler with drawn and vetted items among their votes, by their place.

    Parameters
    ----------
    engine : TruthEngine
        As `labeler_engine` makes it.
    n_draws : int
    """
    labels = engine.labels
    if np.isnan(labels.gold_chance).all():
        return {}
    place_of = {name: place for place, name in enumerate(labels.labelers.tolist())}
    parts = Predictions.from_labelers(labels).parts
    judged = {place_of[part.name]: _judge(engine, part, n_draws, place_of[part.name]) for part in parts}
    return {place: accuracy for place, accuracy in judged.items() if accuracy is not None}


def _judge(engine: TruthEngine, labeler: System, n_draws: int, place: int) -> VettedAccuracy | None:
    """What is known of one labeler; None where no drawn item is among their votes."""
    labels = engine.labels
    everywhere = aligned_votes(labeler, labels)
    own = np.flatnonzero(everywhere.outputs("classes")[0] >= 0)
    outputs, gold = everywhere.at_items(own), engine.drawn_gold[own]
    metric = get_metric("accuracy", labels.classes.tolist())
    rng = np.random.default_rng([engine.seed, place])
    share = gold_share(gold_in_denominator(metric, outputs, gold, engine.positive))
    if not share:
        return None
    groups = None if engine.groups is None else engine.groups[own]
    with silenced_warnings():  # vetted items correct the models also where their chains have not mixed
        centre = engine.readings("classes").centre[own]
    truths = rectified_truths(
        centre,
        outputs,
        metric,
        gold=gold,
        chance=labels.gold_chance[own],
        positive=engine.positive,
        n_draws=n_draws,
        rng=rng,
        groups=groups,
    )
    chosen = engine.model_labels.gold_codes[own]
    truths[:, chosen >= 0] = chosen[chosen >= 0]

    def accuracy_on(members: Booleans) -> VettedAccuracy:
        """Their accuracy on some of their items."""
        some = outputs.at_items(np.flatnonzero(members))
        sample = GoldSample(
            gold[members], labels.gold_chance[own][members], labels.classes, engine.positive, "population"
        )
        gold_only = gold_only_estimate(some, metric, sample, n_draws=n_draws, rng=rng)
        values = system_values(
            truths[:, members],
            some,
            metric,
            classes=labels.classes,
            positive=engine.positive,
            random_state=rng,
            population=Population(),
        )[:, 0]
        return VettedAccuracy(int((sample.gold >= 0).sum()), gold_only, values, share)

    whole = accuracy_on(np.ones(len(own), dtype=bool))
    if groups is None:
        return whole
    within = {int(k): groups == k for k in np.unique(groups[groups >= 0])}
    # A slice without vetted items borrows the correction of the others.
    return replace(whole, slices={k: accuracy_on(members) for k, members in within.items()})
