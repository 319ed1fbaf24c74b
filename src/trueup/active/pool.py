"""What is known before the first question: the items, the systems, the votes and the metric."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup.labels import Labels
from trueup.metrics import FunctionMetric, Metric, ScoreMetric
from trueup.predictions import AlignedPredictions

__all__ = ["AnyMetric", "Pool", "State"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]
AnyMetric = Metric | ScoreMetric | FunctionMetric


@dataclass(frozen=True, eq=False)
class Pool:
    """The items that can be vetted, in the order of ``labels.items``.

    Attributes
    ----------
    labels : Labels
    aligned : AlignedPredictions
        What the systems under test say of every item.
    metric : Metric, ScoreMetric or FunctionMetric
    positive : int
        Code of the positive class.
    prior : array of shape (n_items, n_classes)
        P(class | votes) of the noise model.
    noisy : integer array of shape (n_items,)
        The most probable class given the votes.
    categories : integer array of shape (n_items,), optional
        The category of each item, if the metric is the mean over categories.
    category_names : tuple
        Their names, in the order of the codes.
    """

    labels: Labels
    aligned: AlignedPredictions
    metric: AnyMetric
    positive: int
    prior: Floats = field(repr=False)
    noisy: Codes = field(repr=False)
    categories: Codes | None = field(default=None, repr=False)
    category_names: tuple[Any, ...] = ()

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.labels.n_items

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.labels.n_classes

    @property
    def n_systems(self) -> int:
        """Number of systems."""
        return self.aligned.n_systems

    @property
    def n_categories(self) -> int:
        """Number of categories; 1 without any."""
        return 1 if self.categories is None else int(self.categories.max()) + 1


@dataclass(frozen=True, eq=False)
class State:
    """What a strategy sees.

    Attributes
    ----------
    probabilities : array of shape (n_items, n_classes)
        Current P(class) of each item; vetted items are certain.
    vetted, available : boolean arrays of shape (n_items,)
        Items with an answer; items that may be asked, i.e. not vetted, not waiting for an answer and not passed.
    """

    pool: Pool
    probabilities: Floats = field(repr=False)
    vetted: npt.NDArray[np.bool_] = field(repr=False)
    available: npt.NDArray[np.bool_] = field(repr=False)
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)  # what was worked out from this state
