"""From what a user passes to the pool of a session."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._doors import choose_noise, positive_code
from trueup._outputs import check_outputs, given, prepared, used_by
from trueup._validation import RandomState, as_generator, preview
from trueup.active.pool import AnyMetric, Pool
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions, TrueupWarning
from trueup.labels import Labels
from trueup.metrics import ScoreMetric, as_metric, get_score_metric
from trueup.noise import NoiseModel
from trueup.predictions import as_predictions, as_scores

__all__ = ["make_pool", "seed_of"]


def make_pool(
    predictions: Any, labels: Labels, metric: Any, noise: str | NoiseModel, categories: Any, positive: Hashable | None
) -> Pool:
    """Align, check, and see what the votes say.

    Parameters
    ----------
    predictions, labels, metric, noise, categories, positive
        As in `ActiveTest`.
    """
    if not isinstance(labels, Labels):
        raise InvalidLabels(
            f"labels must be Labels, got {type(labels).__name__}; make them with Labels.from_frame or from_matrix"
        )
    measured: AnyMetric | None = get_score_metric(metric, labels.n_classes) if isinstance(metric, str) else None
    if measured is None:
        measured = as_metric(metric, labels.classes.tolist(), positive=positive)
    convert = as_scores if isinstance(measured, ScoreMetric) else as_predictions
    aligned = convert(predictions, labels).align(labels)
    code = positive_code(positive, labels, aligned)
    aligned = prepared(aligned, measured, labels.n_classes, code)
    used = used_by(measured, aligned)
    if not given(aligned, used).all():
        raise InvalidPredictions("every item of the pool needs a prediction; select the others with labels.select")
    check_outputs(aligned, measured)
    groups, group_names = _categories(categories, labels)
    _check_length(measured, labels, groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        model = choose_noise(noise, labels, drawn=False).model
    assert isinstance(model, NoiseModel)
    prior = model.posterior(labels)
    return Pool(labels, aligned, measured, code, prior, prior.argmax(axis=1), groups, group_names)


def _check_length(metric: AnyMetric, labels: Labels, categories: npt.NDArray[np.int64] | None) -> None:
    """A list that is shorter than k is found out before anyone is paid to look at it."""
    if "@" in metric.name and isinstance(metric, ScoreMetric) and not metric.name.startswith("partial"):
        k = int(float(metric.name.rpartition("@")[2]))
        shortest = labels.n_items if categories is None else int(np.bincount(categories).min())
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


def seed_of(random_state: RandomState) -> int:
    """A number that JSON can hold: the seed itself, or one that is drawn.

    Examples
    --------
    >>> seed_of(7)
    7
    """
    rng = as_generator(random_state)
    return int(random_state) if isinstance(random_state, int | np.integer) else int(rng.integers(2**31))
