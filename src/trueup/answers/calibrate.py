"""How far the truth is from votes on sets of one's own: the constants of the prior, fitted to sets with known truth."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from trueup._base.types import Floats
from trueup._base.validation import RandomState, check_level
from trueup.answers.evaluate import truth_model_of
from trueup.answers.prepare import Settings, Task, prepare
from trueup.core.prior import CrowdPrior, to_angle
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter, silenced_warnings

_FEWEST_SETS = 5


def calibrate(
    sets: Sequence[tuple[Any, Labels, Mapping[Hashable, Hashable]]],
    *,
    families: Sequence[Hashable] | None = None,
    level: float = 0.9,
    random_state: RandomState = 0,
    progress: Callable[[float], None] | None = None,
) -> CrowdPrior:
    """Learn how far levels are from what votes say on real sets of your own.

    Each system is graded from the votes alone, and the truth of the set says how far its accuracy was off, on the scale
    arcsin √accuracy. The scale of the prior is such that its intervals at `level` hold in that share of the sources;
    the other constants stay as shipped.

    Parameters
    ----------
    sets : sequence of (predictions, labels, truth)
        What `evaluate` takes, and a mapping from item to true class. Several systems of one set are several entries.
    families : sequence, optional
        The source of each entry; entries of one source weigh together like one. By default each is its own.
    level : float. Of the intervals that are to hold in this share of the sources.
    progress : callable, optional. Called with the share of the work done.

    Returns
    -------
    CrowdPrior
        For ``evaluate(…, prior=prior)``.

    Examples
    --------
    >>> import trueup as tu
    >>> sims = [tu.simulate.baseline(n_items=60, random_state=seed) for seed in range(5)]
    >>> sets = [(sim.predictions, sim.labels, dict(enumerate(sim.truth.tolist()))) for sim in sims]
    >>> prior = tu.calibrate(sets)
    >>> prior.n_sets, prior.slope
    (5, 0.8)
    """
    settings = Settings.of_call(calibrate, locals())
    check_level(level)
    names: list[Hashable] = list(range(len(sets))) if families is None else list(families)
    if len(names) != len(sets):
        raise InvalidParameter(f"`families` must name the source of each of {len(sets)} sets, got {len(names)}")
    if len(set(names)) < _FEWEST_SETS:
        raise InvalidParameter(
            f"`sets` must come from at least {_FEWEST_SETS} sources, got {len(set(names))}; grade more, or use the "
            "prior that comes with trueup",
        )
    deviations = []
    for k, (predictions, labels, truth) in enumerate(sets):
        task = prepare(
            predictions,
            labels.without_gold(),
            settings=settings,
            metrics=["accuracy"],
            noise=None,
            most_systems=1,
            missing="ignore",
            needs_classes=True,
        )
        deviations.append(_deviation(task, truth))
        if progress is not None:
            progress((k + 1) / len(sets))
    weights = np.array([1 / names.count(name) for name in names])
    scale = level_scale(np.array(deviations), weights, level)
    return replace(CrowdPrior(), level_scale=scale, n_sets=len(sets), n_families=len(set(names)))


def level_scale(deviations: Floats, weights: Floats, level: float = 0.9) -> float:
    """The scale at which an interval of the prior holds in a share of the sources."""
    reach = float(scipy.stats.t.ppf((1 + level) / 2, CrowdPrior().degrees))
    order = np.argsort(np.abs(deviations), kind="stable")
    upto = np.cumsum(weights[order]) / weights.sum()
    widest = np.abs(deviations)[order][min(int(np.searchsorted(upto, level - 1e-12)), len(order) - 1)]
    return max(float(widest) / reach, 0.01)  # a scale of nothing would make votes alone certain


def _deviation(task: Task, truth: Mapping[Hashable, Hashable]) -> float:
    """How far the accuracy is from what votes suggest, on items whose truth is known, as an angle."""
    labels, codes = task.labels, task.codes
    places = {name: k for k, name in enumerate(labels.classes.tolist())}
    known = np.array([places.get(truth.get(item), -1) for item in labels.items.tolist()])
    seen = np.flatnonzero((codes >= 0) & (known >= 0))
    if not len(seen):
        raise InvalidParameter(
            "the truth of a set must name classes of items with a prediction, got none", parameter="sets"
        )
    with silenced_warnings():
        base = truth_model_of(task).base
    expected, right = base[seen, codes[seen]].mean(), (codes[seen] == known[seen]).mean()
    return float(to_angle(np.asarray(right)) - to_angle(np.asarray(expected)))
