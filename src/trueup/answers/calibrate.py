"""A map of one's own from votes to intervals that hold on real crowds: learned from sets with known truth."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, check_level, seed_of
from trueup.answers.reading import engine_of
from trueup.answers.settings import Settings
from trueup.answers.setup import prepare
from trueup.data.labels import Labels
from trueup.estimators.readings import Readings
from trueup.estimators.real_map import LEVEL_SCALE, RealMap, shipped_map
from trueup.exceptions import InvalidParameter, silenced_warnings

_FEWEST_SETS = 5


def calibrate(
    sets: Sequence[tuple[Any, Labels, Mapping[Hashable, Hashable]]],
    *,
    families: Sequence[Hashable] | None = None,
    level: float = 0.95,
    random_state: RandomState = 0,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> RealMap:
    """Learn how far the models are off on real sets of your own.

    Each set is graded from its votes alone, and its truth says how far that was off. One number is fitted, the
    widening; the floor and what else the map has stay as shipped.

    Parameters
    ----------
    sets : sequence of (predictions, labels, truth)
        What `evaluate` takes, and a mapping from item to true class. Several systems of one set are several entries.
    families : sequence, optional
        The source of each entry; entries of one source weigh together like one. By default each is its own.
    level : float
        The share of sources whose interval is to hold.
    random_state : int, Generator or None
    progress : callable, optional
        Called with the share of the work done.
    **sampling
        For `trueup.noise.sample`: n_chains, n_warmup, n_draws.

    Returns
    -------
    RealMap
        For ``evaluate(…, assume=map)``.

    Examples
    --------
    >>> import trueup as tu
    >>> sims = [tu.simulate.baseline(n_items=60, random_state=seed) for seed in range(5)]
    >>> sets = [(sim.predictions, sim.labels, dict(enumerate(sim.truth.tolist()))) for sim in sims]
    >>> own = tu.calibrate(sets, n_warmup=30, n_draws=30)
    >>> own.n_sets, own.floor
    (5, 0.05)
    """
    settings = Settings.of_call(calibrate, locals())
    check_level(level)
    names: list[Hashable] = list(range(len(sets))) if families is None else list(families)
    if len(names) != len(sets):
        raise InvalidParameter(
            f"⟨families⟩ must name the source of each of {len(sets)} sets, got {len(names)}", parameter="families"
        )
    if len(set(names)) < _FEWEST_SETS:
        raise InvalidParameter(
            f"⟨sets⟩ must come from at least {_FEWEST_SETS} sources, got {len(set(names))}; grade more, or use the map "
            "that comes with trueup",
            parameter="sets",
        )
    shipped, seed = shipped_map(), seed_of(random_state)
    gaps, classes, votes = [], [], []
    for k, (predictions, labels, truth) in enumerate(sets):
        task = prepare(
            predictions,
            labels.without_gold(),
            settings=settings,
            metrics=["accuracy"],
            noise=None,
            random_state=seed,
            most_systems=1,
            missing="ignore",
            needs_classes=True,
        )
        with silenced_warnings():
            engine = engine_of(task, None, n_draws=200, progress=None, sampling=sampling)
            gaps.append(_gap(engine.readings("classes"), task.codes, labels, truth))
        classes.append(labels.n_classes)
        votes.append(labels.n_votes / labels.n_items)
        if progress is not None:
            progress((k + 1) / len(sets))
    errors, spreads = np.array(gaps).T
    scaled = np.abs(errors) / np.sqrt(spreads**2 + shipped.floor**2)
    weights = np.array([1 / names.count(name) for name in names])
    widening = weighted_quantile(scaled, weights, level) * LEVEL_SCALE / float(ndtri((1 + level) / 2))
    return replace(
        shipped,
        widening=max(float(widening), 1e-3),
        n_sets=len(sets),
        n_families=len(set(names)),
        classes=(min(classes), max(classes)),
        votes_per_item=(min(votes), max(votes)),
    )


def weighted_quantile(values: Floats, weights: Floats, level: float) -> float:
    """The least value that this share of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(upto, level - 1e-12)), len(values) - 1)])


def _gap(readings: Readings, codes: Codes, labels: Labels, truth: Mapping[Hashable, Hashable]) -> tuple[float, float]:
    """What the models expect of the accuracy less what it is, on items whose truth is known; and their spread."""
    places = {name: k for k, name in enumerate(labels.classes.tolist())}
    known = np.array([places.get(truth.get(item), -1) for item in labels.items.tolist()])
    seen = np.flatnonzero((codes >= 0) & (known >= 0))
    if not len(seen):
        raise InvalidParameter(
            "the truth of a set must name classes of items that have a prediction, got none", parameter="sets"
        )
    expected = float(readings.centre[seen, codes[seen]].mean())
    return expected - float((codes[seen] == known[seen]).mean()), float(readings.kinds.spread(readings.part)[0])
