"""What is known before the first question: the items, the systems, the votes and the metric."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.validation import preview
from trueup.answers.prepare import Settings, prepare
from trueup.core.base import base_of, clip_rare
from trueup.data.aligned import AlignedPredictions, OutputKind
from trueup.data.labels import Labels
from trueup.estimators.system_values import counts_right_only
from trueup.estimators.truth import settle_noise
from trueup.exceptions import InvalidParameter, silenced_warnings
from trueup.metrics import Metric
from trueup.noise import NoiseModel


@dataclass(frozen=True, eq=False)
class Pool:
    """The items that can be vetted, in the order of ``labels.items``.

    Attributes
    ----------
    aligned : AlignedPredictions. What the systems under test say of every item.
    positive : int. Code of the positive class.
    prior : array of shape (n_items, n_classes). P(class | votes) of the noise model.
    noisy : integer array of shape (n_items,). The most probable class given the votes.
    categories : integer array of shape (n_items,), optional
        The category of each item, if the metric is the mean over categories.
    category_names : tuple. Their names, in the order of the codes.
    """

    labels: Labels
    aligned: AlignedPredictions
    metric: Metric
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

    @property
    def is_ratio(self) -> bool:
        """Whether the metric is of the counts of one system and weighs items by what it says, such as recall."""
        one = self.n_systems == 1 and self.categories is None
        return one and self.metric.needs == "counts" and not counts_right_only(self.metric, self.n_classes)

    @property
    def used(self) -> OutputKind:
        """What of the outputs the metric looks at."""
        return self.metric.looks_at

    def by_category(self, positions: Positions) -> Iterator[tuple[int, Positions]]:
        """Each category that has some of these items, and where among `positions` they stand; one without any."""
        codes = np.zeros(len(positions), dtype=np.int64) if self.categories is None else self.categories[positions]
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(self.n_categories + 1))
        for category, (start, end) in enumerate(pairwise(edges)):
            if end > start:
                yield category, order[start:end]


@dataclass(frozen=True, eq=False)
class State:
    """What a strategy sees.

    Attributes
    ----------
    probabilities : array of shape (n_items, n_classes). Current P(class) of each item; vetted items are certain.
    vetted, available : boolean arrays of shape (n_items,)
        Items with an answer; items that may be asked, i.e. not vetted, not waiting for an answer and not passed.
    """

    pool: Pool
    probabilities: Floats = field(repr=False)
    vetted: Booleans = field(repr=False)
    available: Booleans = field(repr=False)
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)  # what was worked out from this state


def make_pool(
    predictions: Any,
    labels: Labels,
    metric: Any,
    noise: str | NoiseModel | None,
    categories: Any,
    positive: Hashable | None,
) -> Pool:
    """Align, check, and see what the votes say before anyone is asked."""
    call = Settings("ActiveTest", {"metric": metric, "noise": noise, "positive": positive}, {})
    groups, group_names = _categories(categories, labels)
    task = prepare(predictions, labels, settings=call, metrics=metric, noise=noise, positive=positive, one_metric=True)
    _check_length(task.metric, task.outputs.n_items if groups is None else int(np.bincount(groups).min()))
    with silenced_warnings():
        if task.noise is None:
            prior = base_of(labels, clip=clip_rare)
        else:
            prior = settle_noise(task.noise, labels, draw=False).posterior(labels)
    outputs = task.outputs_for(task.metric)
    return Pool(labels, outputs, task.metric, task.positive, prior, prior.argmax(axis=1), groups, group_names)


def _check_length(metric: Metric, shortest: int) -> None:
    """A list that is shorter than k is found out before anyone is paid to look at it."""
    if "@" in metric.name and metric.needs == "scores" and not metric.name.startswith("partial"):
        k = int(float(metric.name.rpartition("@")[2]))
        if k > shortest:
            raise InvalidParameter(f"{metric.name} needs lists of at least {k} items, got one of {shortest}")


def _categories(categories: Any, labels: Labels) -> tuple[npt.NDArray[np.int64] | None, tuple[Any, ...]]:
    if categories is None:
        return None, ()
    if isinstance(categories, Mapping):
        missing = [item for item in labels.items.tolist() if item not in categories]
        if missing:
            raise InvalidParameter(f"categories must name every item, got none for {preview(missing)}")
        categories = [categories[item] for item in labels.items.tolist()]
    names = list(categories)
    if len(names) != labels.n_items:
        raise InvalidParameter(f"categories must be one for each of {labels.n_items} items, got {len(names)}")
    order = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return np.array([order[name] for name in names], dtype=np.int64), tuple(order)


def category_code(pool: Pool, name: Any) -> int:
    """The code of a category."""
    if name not in pool.category_names:
        raise InvalidParameter(f"there is no category {name!r}, got {preview(list(pool.category_names), most=10)}")
    return pool.category_names.index(name)


def category_list(pool: Pool) -> list[Any] | None:
    """The category of each item, by name."""
    return None if pool.categories is None else [pool.category_names[k] for k in pool.categories.tolist()]
