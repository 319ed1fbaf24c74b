"""What a simulator returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup.exceptions import InvalidPredictions
from trueup.labels import Labels

__all__ = ["Simulation"]


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """A simulated data set, with all that is hidden in real ones.

    Items, labelers and classes are numbered from 0, so a class code is also the name of the class. All arrays over
    items follow the order of ``labels.items``, and no item or labeler is left out, with votes or without.

    Attributes
    ----------
    labels : Labels
        The votes.
    truth : array of int, shape (n_items,)
        The true class of each item.
    predictions : array of int, shape (n_items,), or None
        The class that the simulated classifier predicts.
    scores : array of float, shape (n_systems, n_items), or None
        The scores of one or many systems for class 1.
    features : array of float, shape (n_items, n_features), or None
        What a classifier could be trained on.
    parameters : dict
        The true parameters. The names mean the same in every simulator: ``prior`` (n_classes,), ``confusion``
        (n_labelers, n_classes, n_classes) for the labelers and ``classifier_confusion`` (n_classes, n_classes), with
        the truth in the rows; each simulator documents the others.
    """

    labels: Labels
    truth: npt.NDArray[np.int64]
    predictions: npt.NDArray[np.int64] | None
    scores: npt.NDArray[np.float64] | None
    features: npt.NDArray[np.float64] | None
    parameters: dict[str, Any]

    @property
    def accuracy(self) -> float:
        """The share of the items of this sample that are predicted correctly."""
        if self.predictions is None:
            raise InvalidPredictions(
                "this simulation has no predictions, so no accuracy; use `scores`, or simulate a classifier"
            )
        return float(np.mean(self.predictions == self.truth))

    def __repr__(self) -> str:
        names = ("predictions", "scores", "features")
        there = [name for name in names if getattr(self, name) is not None]
        return f"Simulation({self.labels!r}, truth{''.join(f', {name}' for name in there)})"
