"""P(class) of each item from fitted models, with what systems say as further evidence."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from trueup._base.types import Floats
from trueup.data.labels import Labels
from trueup.estimators.tilt import log_chances
from trueup.noise import DawidSkene, NoiseModel
from trueup.noise.system_outputs import SystemOutputs

_MOST_STEPS = 50
_PRECISION = 1e-4  # of what a system says how often


def fitted_posterior(labels: Labels, systems: SystemOutputs, model: NoiseModel | None = None) -> Floats:
    """P(class) of each item under a fitted model of independent errors, by default Dawid and Skene's."""
    fitted = (DawidSkene() if model is None else model.clone()).fit(labels)
    return with_systems(fitted.posterior(labels), systems)


def with_systems(posterior: Floats, systems: SystemOutputs, times: Floats | None = None) -> Floats:
    """P(class) given votes and systems, from P(class) given votes.

    How often systems say what of which class is learned along (expectation and maximisation); what is known of labelers
    stays. Systems that say much the same share the weight of a witness, as where chains are drawn.

    Parameters
    ----------
    posterior : array of shape (n_rows, n_classes)
    systems : SystemOutputs
        What they say of each row.
    times : array of shape (n_rows,), optional
        How many items each row stands for; by default one.
    """
    if not len(systems.codes):
        return posterior
    said, logs = systems.indicator(), log_chances(posterior)
    power = np.repeat(systems.power, systems.n_answers)[:, None]
    beforehand = systems.row_prior()
    rows = np.zeros((len(power), posterior.shape[1]))
    current = posterior
    for _ in range(_MOST_STEPS):
        counts = said.T @ (current if times is None else current * times[:, None]) + beforehand
        totals = np.add.reduceat(counts, systems.first[:-1], axis=0)
        new = counts / np.repeat(totals, systems.n_answers, axis=0)
        if np.abs(new - rows).max() < _PRECISION:
            break
        rows = new
        current = softmax(logs + said @ (power * np.log(rows)), axis=1)
    return current
