"""How an answer moves with the overlap from which on shapes are the same thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueup.answers.evaluation import Evaluation
from trueup.data.labels import Labels
from trueup.detection.evaluating import candidates_of, evaluate
from trueup.detection.overlap import box_overlaps
from trueup.detection.pool import Pool, match
from trueup.exceptions import InvalidParameter

CUTS = (0.4, 0.5, 0.6)


def evaluate_at_cuts(
    pool: Pool,
    system: str | None = None,
    *,
    cuts: Sequence[float] = CUTS,
    labels: Labels | None = None,
    **options: Any,
) -> dict[float, Evaluation]:
    """The same question for pools that were matched at other overlaps.

    Parameters
    ----------
    pool : Pool
        Of `match`.
    system : str, optional
    cuts : sequence of float
        The overlaps, each as `iou` of `match`.
    labels : Labels, optional
        ``pool.labels`` with gold, which is carried over: a candidate of another pool is vetted where it overlaps one
        that was, by at least the cut.
    **options
        Of `evaluate`.

    Returns
    -------
    dict from cut to Evaluation

    Examples
    --------
    >>> from trueup import detection
    >>> drawn = detection.simulate_boxes(n_images=10, n_annotators=4, random_state=0)
    >>> pool = detection.match(drawn.found, drawn.objects)
    >>> quick = {"noise": "dawid-skene", "n_draws": 100, "n_warmup": 50, "metrics": ["precision"]}
    >>> answers = evaluate_at_cuts(pool, **quick)
    >>> answers[0.4]["precision"].mean > answers[0.6]["precision"].mean  # fewer shapes are one thing
    True
    """
    if pool.matching is None:
        raise InvalidParameter("the pool does not know what it was made of; make it with match")
    how = pool.matching
    answers = {}
    for cut in cuts:
        other = match(
            how.found, how.objects, iou=cut, shape=how.shape, same_class=how.same_class, by_centre=how.by_centre
        )
        own = None if labels is None else carry_gold(pool, labels, other)
        answers[float(cut)] = evaluate(other, system, labels=own, **options)
    return answers


def carry_gold(pool: Pool, labels: Labels, other: Pool) -> Labels:
    """What was vetted in one pool, as gold of another pool of the same images.

    A candidate of the other pool is what was said of the vetted one of its image and class that it overlaps most, where
    the overlap is enough for one thing.
    """
    gold = list(labels.gold)
    vetted = candidates_of(pool, labels)[labels.find_items(gold)]
    carried = other.labels
    parts: dict[str, dict[str, Any]] = {"random": {}, "chosen": {}}
    for k in np.flatnonzero(np.isin(other.image, pool.image[vetted])).tolist():
        near = np.flatnonzero((pool.image[vetted] == other.image[k]) & (pool.category[vetted] == other.category[k]))
        overlaps = box_overlaps(other.boxes[k : k + 1], pool.boxes[vetted[near]])[0]
        if overlaps.max(initial=0.0) >= other.iou:
            item = gold[near[int(overlaps.argmax())]]
            how = "random" if item in labels.drawn_gold else "chosen"
            parts[how][other.items[k]] = labels.gold[item]
    for how, truths in parts.items():
        if truths:
            carried = carried.with_gold(truths, drawn=how)  # type: ignore[arg-type]
    return carried
