"""How an answer moves with the overlap from which on shapes are the same thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueup._base.types import Positions
from trueup.answers.evaluation import Evaluation
from trueup.data.labels import Labels
from trueup.detection.evaluating import candidates_of, evaluate
from trueup.detection.overlap import overlaps_between
from trueup.detection.pool import Pool, match
from trueup.detection.shapes import Shapes
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
        The overlaps, each as `iou` of `match`; all else is as the pool was made, also a `join` that was told.
    labels : Labels, optional
        ``pool.labels`` with gold, which is carried over: a candidate of another pool is vetted where it overlaps one
        that was, by at least the cut. Each that was vetted is carried to one, with the chance with which it was drawn.
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
            how.found,
            how.objects,
            iou=cut,
            shape=how.shape,
            same_class=how.same_class,
            by_centre=how.by_centre,
            join=how.join,
        )
        own = None if labels is None else carry_gold(pool, labels, other)
        answers[float(cut)] = evaluate(other, system, labels=own, **options)
    return answers


def carry_gold(pool: Pool, labels: Labels, other: Pool) -> Labels:
    """What was vetted in one pool, as gold of another pool of the same images.

    Candidates of one image and class are paired one to one, from the largest overlap down, where the overlap is enough
    for one thing, by masks or centres where the other pool goes by them. What was drawn keeps its chance; where all
    chances are one, it is a simple random sample of the other pool too.
    """
    gold = list(labels.gold)
    vetted = candidates_of(pool, labels)[labels.find_items(gold)]
    chances = labels.drawn_gold
    is_simple = len(chances) > 0 and np.allclose(list(chances.values()), next(iter(chances.values())))
    truths: dict[str, Any] = {}
    drawn: dict[str, Any] = {}
    for at, k in _same_things(pool, vetted, other):
        item, name = gold[at], other.items[k]
        truths[name] = labels.gold[item]
        drawn[name] = "chosen" if item not in chances else "random" if is_simple else chances[item]
    return other.labels.with_gold(truths, drawn=drawn) if truths else other.labels


def _same_things(pool: Pool, vetted: Positions, other: Pool) -> list[tuple[int, int]]:
    """Which of the vetted candidates of a pool is which candidate of another one."""
    by_centre = other.matching is not None and other.matching.by_centre
    pairs = []
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
                pairs.append((int(rows[row]), int(columns[column])))
    return pairs


def _shapes(pool: Pool, chosen: Positions) -> Shapes:
    """Some candidates of a pool."""
    return Shapes(
        images=pool.images,
        categories=pool.categories,
        sources=("candidates",),
        image=pool.image[chosen],
        category=pool.category[chosen],
        source=np.zeros(len(chosen), dtype=np.int32),
        boxes=pool.boxes[chosen],
        areas=pool.areas[chosen],
        is_crowd=np.zeros(len(chosen), dtype=bool),
        masks=None if pool.masks is None else tuple(pool.masks[k] for k in chosen.tolist()),
    )
