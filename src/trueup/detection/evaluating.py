"""How good detectors are, and which is better, from a pool of candidate objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trueup._base.types import Floats, Positions
from trueup._base.wording import interval, level_words, listed, number, percent, some
from trueup.answers.compare import compare as compare_predictions
from trueup.answers.comparison import Comparison
from trueup.answers.evaluate import evaluate as evaluate_predictions
from trueup.answers.evaluation import Evaluation
from trueup.data.labels import Labels
from trueup.data.predictions import Predictions
from trueup.detection.metrics import BY_AREA, NEEDS_ALL_OBJECTS, DetectionMetrics
from trueup.detection.missed import MissedObjects
from trueup.detection.pool import REAL, Pool, candidate_shapes, match
from trueup.detection.shapes import Shapes, overlaps_between
from trueup.detection.writing import candidate_crop
from trueup.exceptions import InvalidParameter
from trueup.report import build_report

CUTS = (0.4, 0.5, 0.6)


def evaluate_at_cuts(
    pool: Pool, system: str | None = None, *, cuts: Sequence[float] = CUTS, labels: Labels | None = None, **options: Any
) -> dict[float, Evaluation]:
    """The same question for pools that were matched at other overlaps.

    Parameters
    ----------
    pool : Pool. Of `match`.
    cuts : sequence of float
        The overlaps, each as `iou` of `match`; all else is as the pool was made, also a given `join`.
    labels : Labels, optional
        ``pool.labels`` with gold, which is carried over: a candidate of another pool is vetted where it overlaps one
        that was, by at least the cut. Each that was vetted is carried to one, with the chance with which it was drawn.
    **options
        Of `evaluate`.
    """
    if pool.matching is None:
        raise InvalidParameter("the pool does not know what it was made of; make it with match")
    answers = {}
    for cut in cuts:
        other = match(iou=cut, **vars(pool.matching))
        votes = None if labels is None else carry_gold(pool, labels, other)
        answers[float(cut)] = evaluate(other, system, labels=votes, **options)
    return answers


def carry_gold(pool: Pool, labels: Labels, other: Pool) -> Labels:
    """What was vetted in one pool, as gold of another pool of the same images."""
    gold = list(labels.gold)
    vetted = candidates_of(pool, labels)[labels.find_items(gold)]
    chances = labels.drawn_gold
    is_simple = len(chances) > 0 and np.allclose(list(chances.values()), next(iter(chances.values())))
    truths: dict[str, Any] = {}
    drawn: dict[str, Any] = {}
    by_centre = other.matching is not None and other.matching.by_centre
    mine = pool.image[vetted].astype(np.int64) * len(pool.categories) + pool.category[vetted]
    theirs = other.image.astype(np.int64) * len(other.categories) + other.category
    for group in np.unique(mine):
        rows, columns = np.flatnonzero(mine == group), np.flatnonzero(theirs == group)
        overlaps = overlaps_between(_shapes(pool, vetted[rows]), _shapes(other, columns), by_centre=by_centre)
        free_rows, free_columns = np.ones(len(rows), dtype=bool), np.ones(len(columns), dtype=bool)
        for cell in np.argsort(-overlaps, axis=None, kind="stable").tolist():
            row, column = divmod(cell, len(columns))
            if overlaps[row, column] < other.iou:
                break
            if free_rows[row] and free_columns[column]:
                free_rows[row] = free_columns[column] = False
                item, name = gold[rows[row]], other.items[columns[column]]
                truths[name] = labels.gold[item]
                drawn[name] = "chosen" if item not in chances else "random" if is_simple else chances[item]
    return other.labels.with_gold(truths, drawn=drawn) if truths else other.labels


def _shapes(pool: Pool, chosen: Positions) -> Shapes:
    """Some candidates of a pool."""
    masks = None if pool.masks is None else tuple(pool.masks[k] for k in chosen.tolist())
    boxes, areas = pool.boxes[chosen], pool.areas[chosen]
    return candidate_shapes(pool, pool.image[chosen], pool.category[chosen], boxes, areas, masks)


_MOST_CROPS = 6  # in a group
_MOST_SYSTEMS = 3  # that have groups of their own


def build_detection_report(
    pool: Pool,
    evaluations: Mapping[str, Evaluation],
    *,
    labels: Labels | None = None,
    missed: MissedObjects | None = None,
    comparison: Comparison | None = None,
    cuts: Mapping[str, Mapping[float, Evaluation]] | None = None,
    threshold: float = 0.5,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a report on detectors says, as a dict that JSON can hold; `trueup.report.save_report` writes it."""
    votes = pool.labels if labels is None else labels
    data = build_report(evaluations, labels=votes, comparison=comparison, title=title, settings=settings)
    groups = []
    for name, evaluation in list(evaluations.items())[:_MOST_SYSTEMS]:
        chances, scores = object_probabilities(pool, evaluation), pool.scores(name)
        wrong = np.flatnonzero((scores >= threshold) & (chances < 0.5))
        wrong = wrong[np.argsort(-(scores * (1 - chances))[wrong], kind="stable")]
        lost = np.flatnonzero((scores < threshold) & (chances > 0.5))
        lost = lost[np.argsort(-chances[lost], kind="stable")]
        groups += [
            _group(pool, f"{name}: probably wrong", "Reported, and probably nothing.", wrong, chances, scores),
            _group(
                pool, f"{name}: probably overlooked", "Probably an object, and not reported.", lost, chances, scores
            ),
        ]
    if evaluations:
        chances = object_probabilities(pool, next(iter(evaluations.values())))
        unsure = np.argsort(np.abs(chances - 0.5), kind="stable")
        unsure = unsure[np.abs(chances[unsure] - 0.5) < 0.4]
        groups.append(_group(pool, "Unsure whether an object", "Vetting these tells most.", unsure, chances))
    data["detection"] = {
        "sentences": pool_sentences(pool, missed),
        "groups": [group for group in groups if group["crops"]],
        "cuts": [cut_table(name, moved) for name, moved in (cuts or {}).items() if moved],
    }
    return data


def object_probabilities(pool: Pool, evaluation: Evaluation) -> Floats:
    """How probably each candidate is an object, by the draws behind the first metric."""
    posterior = evaluation.draws_for(evaluation.metric(evaluation.metrics[0])).posterior
    chances = np.zeros(len(pool))
    chances[candidates_of(pool, evaluation.labels)] = posterior[:, evaluation.positive]
    return chances


def _group(
    pool: Pool, heading: str, words: str, members: Sequence[int] | Any, chances: Floats, scores: Floats | None = None
) -> dict[str, Any]:
    crops = []
    for k in [int(member) for member in members[:_MOST_CROPS]]:
        n_drew, n_looked = int((pool.votes[:, k] == 1).sum()), int((pool.votes[:, k] >= 0).sum())
        score = "" if scores is None else f"; score {number(float(scores[k]))}"
        probability = f"an object with probability {percent(float(chances[k]))}"
        text = f"{pool.categories[pool.category[k]]}; {probability}; drawn by {n_drew} of {n_looked}{score}"
        crops.append({"crop": candidate_crop(pool, k), "item": pool.items[k], "words": text})
    return {"heading": heading, "words": words, "n": len(members), "crops": crops}


def pool_sentences(pool: Pool, missed: MissedObjects | None) -> list[str]:
    """What a pool is made of, and whether objects that nobody drew are counted."""
    kind = "boxes" if pool.masks is None else "masks"
    notes = [
        f"{len(pool):,} candidate objects in {some(pool.images.n, 'image')}, from {kind} of "
        f"{some(len(pool.annotators), 'annotator')} and {some(len(pool.found), 'system')}; from an overlap of "
        f"{pool.iou:g} on a detection is at a candidate."
    ]
    if missed is None:
        return [*notes, "Recall and what rests on it is of this pool: objects that nobody drew do not count."]
    low, high = missed.total.interval(0.95)
    return [
        *notes,
        f"{missed.n_seen:,} objects that nobody drew were seen in {missed.n_searched:,} of {missed.n_tiles:,} tiles; "
        f"there are between {low:.0f} and {high:.0f} of them in all (95% interval), and recall counts them.",
    ]


def cut_table(name: str, moved: Mapping[float, Evaluation]) -> dict[str, Any]:
    """How the metrics of a system move with the overlap from which on shapes are one thing."""
    first = next(iter(moved.values()))
    rows = [
        [metric, *(f"{number(at[metric].mean)} ({interval(*at[metric].interval(at.level))})" for at in moved.values())]
        for metric in first.metrics
    ]
    words = f"{name}: estimate ({level_words(first.level)} interval) where shapes are one thing from this overlap on"
    return {"words": words, "head": ["metric", *(f"{cut:g}" for cut in moved)], "rows": rows}


DEFAULT_METRICS = ("ap", "ap50", "precision", "recall", "f1")  # the first is the headline


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
    pool : Pool. See `match`.
    system : str, optional. Which detector, where the pool has several.
    labels : Labels, optional
        ``pool.labels`` with gold, e.g. ``pool.labels.with_gold({"7/3": "object"}, drawn="random")``.
    metrics : sequence of str
        Of "precision", "recall", "f0.5", "f1", "f2" (at `threshold`); "ap50", "ap75", "ap" (COCO's mean over .50:.95)
        and the same of objects by area, "ap_small", "ap_medium", "ap_large", all of them means over classes; "froc"
        (the mean sensitivity at 1/8, 1/4, … 8 false detections of an image); "panoptic_quality" (at `threshold`, for
        segments that partition an image). Recall and all that rests on it is *of the pool* unless `missed` says how
        many objects nobody drew; "pool_recall" always is.
    threshold : float. The score from which on a detection is reported.
    missed : MissedObjects, optional
        How many objects are no candidates; see `missed_objects`. They have no areas: metrics by area leave them out.
    by_class : bool. Whether each metric is given for each class too, as "ap50: cat".
    **options
        Of `trueup.evaluate`: noise, prior, level, random_state, …
    """
    system = pool.systems[0] if system is None and len(pool.found) == 1 else system
    if system is None or system not in pool.found:
        names = ", ".join(pool.found) or "none"
        raise InvalidParameter(f"system must be one of {names}, got {system!r}", parameter="system")
    votes = pool.labels if labels is None else labels
    of_pool = _metrics_of(pool, votes, threshold, missed)
    measured = [of_pool.metric(name) for name in metrics]
    if by_class:
        measured += [of_pool.metric(name, category) for name in metrics for category in pool.categories]
    scores = _scores(pool, [system], threshold)
    evaluation = evaluate_predictions(scores, votes, metrics=measured, positive=REAL, target="sample", **options)
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
    pool : Pool. With two systems or more.
    metric, labels, threshold, missed
        As for `evaluate`.
    **options
        Of `trueup.compare`.
    """
    votes = pool.labels if labels is None else labels
    scores, measured = (
        _scores(pool, pool.systems, threshold),
        _metrics_of(pool, votes, threshold, missed).metric(metric),
    )
    comparison = compare_predictions(scores, votes, metric=measured, positive=REAL, target="sample", **options)
    return replace(comparison, warnings=(*comparison.warnings, *_about_missed([metric], missed)))


def _metrics_of(pool: Pool, votes: Labels, threshold: float, missed: MissedObjects | None) -> DetectionMetrics:
    draws = None if missed is None else missed.draws
    return DetectionMetrics(pool, candidates_of(pool, votes), threshold, draws)


def _about_missed(metrics: Iterable[str], missed: MissedObjects | None) -> list[str]:
    """What to say where objects that nobody drew could move an answer that does not count them."""
    moved = [name for name in metrics if name in (NEEDS_ALL_OBJECTS if missed is None else BY_AREA)]
    if not moved:
        return []
    reason = (
        "search tiles that were drawn at random and pass `missed` to count them"
        if missed is None
        else "nobody knows how large those are that were missed, so that these come out too high"
    )
    be = "is" if len(moved) == 1 else "are"
    return [f"{listed(moved)} {be} of the pool: objects that nobody drew do not count; {reason}."]


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
