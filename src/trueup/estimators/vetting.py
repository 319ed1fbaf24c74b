"""What vetted items say by themselves, and about how wide an interval would be after so many of them."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from trueup._base.types import Codes, Floats
from trueup.data.aligned import AlignedPredictions
from trueup.estimators.rectified import design_weights
from trueup.estimators.system_values import system_counts
from trueup.metrics import Metric

_NUMBERS = (20, 50, 100, 200, 500)
_DRAWS = 4000
_LEFT = 0.75  # of the width without a model that a usual one leaves; see the experiment on real crowds


def widths_after_vetting(posterior: Floats | None, codes: Codes, level: float) -> dict[int, float]:
    """The width of the interval of the accuracy after vetting, by the number of items.

    Parameters
    ----------
    posterior : array of shape (n_items, n_classes)
        P(class) of each item; without it nothing can be said.
    codes : integer array of shape (n_items,)
        The predicted classes, -1 for none.
    level : float
    """
    seen = np.flatnonzero(codes >= 0)
    if posterior is None or not len(seen):
        return {}
    accuracy = float(np.clip(posterior[seen, codes[seen]].mean(), 0.02, 0.98))
    n_items = len(seen)
    z = float(ndtri((1 + level) / 2))
    return {
        n: float(2 * z * _LEFT * np.sqrt(accuracy * (1 - accuracy) / n * (1 - n / n_items)))
        for n in _NUMBERS
        if n < n_items
    }


def gold_only_interval(
    metric: Metric, outputs: AlignedPredictions, *, gold: Codes, chance: Floats, level: float
) -> tuple[float, float] | None:
    """The interval of the first system's metric from vetted items alone; None where they say nothing.

    From Jeffreys' posterior of the confusion counts: half an item right and half a wrong one are added.

    Parameters
    ----------
    metric : Metric
    outputs : AlignedPredictions
    gold : integer array of shape (n_items,)
        The class of items that were drawn and vetted, -1 for all others.
    chance : array of shape (n_items,)
        The inclusion probability of each.
    level : float
    """
    if metric.needs != "counts" or outputs.codes is None:
        return None
    vetted = np.flatnonzero((gold >= 0) & (outputs.codes[0] >= 0))
    if not len(vetted):
        return None
    n_classes = outputs.n_classes
    weights = design_weights(chance[vetted]).astype(np.float32)
    counts = system_counts(gold[vetted][None], outputs.codes[:1, vetted], n_classes, weights=weights[None])[0, 0]
    added = np.full((n_classes, n_classes), 0.5 / (n_classes * (n_classes - 1)))
    added[np.diag_indices(n_classes)] = 0.5 / n_classes
    drawn = np.random.default_rng(0).standard_gamma(counts + added, size=(_DRAWS, *counts.shape))
    values = metric(drawn)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
