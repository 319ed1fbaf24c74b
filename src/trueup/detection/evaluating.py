"""The doors: how good detectors are, and which is better, from a pool of candidate objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trueup._base.types import Positions
from trueup.answers.compare import compare as compare_predictions
from trueup.answers.comparison import Comparison
from trueup.answers.evaluate import evaluate as evaluate_predictions
from trueup.answers.evaluation import Evaluation
from trueup.data.labels import Labels
from trueup.data.predictions import Predictions
from trueup.detection.metrics import BY_AREA, NEEDS_ALL_OBJECTS, DetectionMetrics
from trueup.detection.missed import MissedObjects
from trueup.detection.pool import REAL, Pool
from trueup.exceptions import InvalidParameter, Sentence

DEFAULT_METRICS = ("precision", "recall", "f1", "ap50", "ap")


def evaluate(
    pool: Pool,
    system: str | None = None,
    *,
    labels: Labels | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    threshold: float = 0.5,
    missed: MissedObjects | None = None,
    by_class: bool = False,
    **options: Any,
) -> Evaluation:
    """How good a detector is, from what annotators drew.

    Parameters
    ----------
    pool : Pool
        See `match`.
    system : str, optional
        Which detector, where the pool has several.
    labels : Labels, optional
        ``pool.labels`` with gold, e.g. ``pool.labels.with_gold({"7/3": "object"}, drawn="random")``.
    metrics : sequence of str
        Of "precision", "recall", "f0.5", "f1", "f2" (at `threshold`); "ap50", "ap75", "ap" (COCO's mean over .50:.95)
        and the same of objects by area, "ap_small", "ap_medium", "ap_large", all of them means over classes; "froc"
        (the mean sensitivity at 1/8, 1/4, … 8 false detections of an image); "panoptic_quality" (at `threshold`, for
        segments that partition an image). Recall and all that rests on it is *of the pool* unless `missed` says how
        many objects nobody drew; "pool_recall" always is.
    threshold : float
        The score from which on a detection is reported.
    missed : MissedObjects, optional
        How many objects are no candidates; see `missed_objects`. They have no areas: metrics by area leave them out.
    by_class : bool
        Whether each metric is given for each class too, as "ap50: cat".
    **options
        Of `trueup.evaluate`: noise, prior, level, random_state, …

    Returns
    -------
    Evaluation
        With an estimate for each metric.

    Examples
    --------
    >>> from trueup import detection
    >>> drawn = detection.simulate_boxes(n_images=20, n_annotators=4, random_state=0)
    >>> pool = detection.match(drawn.found, drawn.objects)
    >>> ev = detection.evaluate(pool, metrics=["precision", "ap50"], noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> low, high = ev["ap50"].interval(0.95)
    >>> bool(low < ev["ap50"].mean < high)
    True
    """
    name = _system_of(pool, system)
    votes = pool.labels if labels is None else labels
    of = DetectionMetrics(pool, candidates_of(pool, votes), threshold, None if missed is None else missed.draws)
    asked = [of.metric(one) for one in metrics]
    if by_class:
        asked += [of.metric(one, category) for one in metrics for category in pool.categories]
    evaluation = evaluate_predictions(
        _scores(pool, [name], threshold), votes, metrics=asked, positive=REAL, target="sample", **options
    )
    return replace(evaluation, warnings=(*evaluation.warnings, *_about_missed(metrics, missed)))


def compare(
    pool: Pool,
    *,
    metric: str = "ap",
    labels: Labels | None = None,
    threshold: float = 0.5,
    missed: MissedObjects | None = None,
    **options: Any,
) -> Comparison:
    """Which detector of a pool is better, and how sure that is.

    Parameters
    ----------
    pool : Pool
        With two systems or more.
    metric : str
        As for `evaluate`.
    labels, threshold, missed
        As for `evaluate`.
    **options
        Of `trueup.compare`.
    """
    votes = pool.labels if labels is None else labels
    of = DetectionMetrics(pool, candidates_of(pool, votes), threshold, None if missed is None else missed.draws)
    comparison = compare_predictions(
        _scores(pool, pool.systems, threshold),
        votes,
        metric=of.metric(metric),
        positive=REAL,
        target="sample",
        **options,
    )
    return replace(comparison, warnings=(*comparison.warnings, *_about_missed([metric], missed)))


def _about_missed(metrics: Iterable[str], missed: MissedObjects | None) -> list[Sentence]:
    """What to say where objects that nobody drew could move an answer that does not count them."""
    moved = [name for name in metrics if name in (NEEDS_ALL_OBJECTS if missed is None else BY_AREA)]
    if not moved:
        return []
    reason = (
        "search tiles that were drawn at random and pass ⟨missed⟩ to count them"
        if missed is None
        else "nobody knows how large those are that were missed, so that these come out too high"
    )
    return [
        Sentence(
            f"{', '.join(moved)} {'is' if len(moved) == 1 else 'are'} of the pool: objects that nobody drew do not "
            f"count; {reason}"
        )
    ]


def candidates_of(pool: Pool, labels: Labels) -> Positions:
    """The candidate of each item of the labels."""
    position = {item: k for k, item in enumerate(pool.items)}
    items = labels.items.tolist()
    strange = [item for item in items if item not in position]
    if strange or len(items) != len(position):
        got = f"the item {strange[0]!r}" if strange else f"{len(items)} items for {len(position)} candidates"
        raise InvalidParameter(f"labels must be those of the pool, with gold or without, got {got}", parameter="labels")
    return np.array([position[item] for item in items], dtype=np.int64)


def _scores(pool: Pool, systems: Sequence[str], threshold: float) -> Predictions:
    return Predictions.stack(
        {
            name: Predictions.from_scores(pool.scores(name), items=pool.items, positive=REAL, threshold=threshold)
            for name in systems
        }
    )


def _system_of(pool: Pool, system: str | None) -> str:
    if system is None and len(pool.found) == 1:
        return pool.systems[0]
    if system is None or system not in pool.found:
        known = ", ".join(pool.found) or "none"
        raise InvalidParameter(f"system must be one of {known}, got {system!r}", parameter="system")
    return system
