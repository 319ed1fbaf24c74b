"""Labelers asked about as systems are: their votes are the predictions, and all votes are the evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from trueup._base.types import Codes
from trueup.data.aligned import AlignedPredictions
from trueup.data.labels import Labels
from trueup.data.predictions import Predictions
from trueup.data.systems import System
from trueup.estimators.real_map import RealMap, shipped_map
from trueup.estimators.truth import TruthEngine
from trueup.exceptions import InvalidLabels


def labeler_engine(
    labels: Labels,
    *,
    n_draws: int,
    seed: int,
    slices: Codes | None = None,
    real_map: RealMap | None = None,
    progress: Callable[[float], None] | None = None,
    sampling: Mapping[str, int] | None = None,
) -> TruthEngine:
    """The engine for what is asked of labelers.

    Parameters
    ----------
    labels : Labels
    n_draws : int
    seed : int
    slices : integer array of shape (n_items,), optional
        Slices of the items, -1 for none.
    real_map : RealMap, optional
    progress : callable, optional
    sampling : mapping, optional
        Options of the chains.
    """
    if not (labels.vote_table()[2] < labels.n_classes).any():
        raise InvalidLabels("labelers are judged by votes that name a class, got none; keep items with such votes")
    # The models see all votes. What is asked with is what most votes say, whatever labelers are called.
    said = np.flatnonzero(labels.answer_counts[:, : labels.n_classes].sum(axis=1) > 0)
    most = labels.answer_counts[said, : labels.n_classes].argmax(axis=1).astype(np.int32)
    plurality = System("plurality", len(said), labels.items[said], codes=most, classes=labels.classes)
    return TruthEngine(
        labels,
        aligned_votes(plurality, labels),
        positive=0,
        in_votes=np.ones(1, dtype=bool),
        real_map=shipped_map() if real_map is None else real_map,
        n_draws=n_draws,
        seed=seed,
        progress=progress,
        sampling=sampling or {},
        groups=slices,
    )


def aligned_votes(labeler: System, labels: Labels) -> AlignedPredictions:
    """The votes of a labeler as the predictions of a system, in the order of the items."""
    return Predictions((labeler,)).align(labels, missing="ignore")
