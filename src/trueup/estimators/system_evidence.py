"""P(class) of each item from fitted models, with what systems say as further evidence."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from trueup._base.types import Codes, Floats
from trueup.data.labels import Labels
from trueup.estimators.tilt import log_chances
from trueup.noise import DawidSkene, NoiseModel
from trueup.noise.system_outputs import SystemOutputs

_MOST_STEPS = 50
_LEAST = 1e-6  # probability
_PRECISION = 1e-4  # of what a system says how often


def fitted_posterior(labels: Labels, systems: SystemOutputs, model: NoiseModel | None = None) -> Floats:
    """P(class) of each item by votes and systems, under a fitted model of independent errors.

    The model is by default Dawid and Skene's.
    """
    fitted = (DawidSkene() if model is None else model.clone()).fit(labels)
    return with_doubt(with_systems(fitted.posterior(labels), systems), labels.gold_codes)


def with_doubt(posterior: Floats, known: Codes) -> Floats:
    """P(class) that is certain of no item whose class is not known (-1), so that all others can be moved."""
    return np.where((known >= 0)[:, None], posterior, np.clip(posterior, _LEAST, 1 - _LEAST))


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
    beforehand = systems.row_prior(times=times)
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
