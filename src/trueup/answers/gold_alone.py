"""What vetted items that were drawn at random say by themselves, to stand beside an answer that rests on votes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup._base.wording import interval
from trueup.answers.setup import Task
from trueup.estimators.gold_only import GoldSample, gold_only_estimate
from trueup.estimators.truth import ENOUGH_GOLD, TruthEngine
from trueup.exceptions import Sentence
from trueup.metrics import Metric
from trueup.posteriors import Estimate


def estimate_alone(
    engine: TruthEngine, task: Task, metric: Metric, *, system: int = 0, minus: int | None = None
) -> Estimate | None:
    """The metric of a system, or of one less another, from vetted items alone; None where it looks at none of them."""
    if not engine.gold_seen(metric):
        return None
    sample = GoldSample(engine.drawn_gold, task.labels.gold_chance, task.labels.classes, task.positive, task.target)
    rng = np.random.default_rng(task.seed)
    return gold_only_estimate(task.outputs_for(metric), metric, sample, system=system, minus=minus, rng=rng)


def few_vetted(engine: TruthEngine, task: Task) -> list[Sentence]:
    """Which metrics rest on votes since they look at few of the vetted items, and what these say by themselves.

    Of two systems that is how they differ; of more, nothing is said here.
    """
    n_drawn = int((engine.drawn_gold >= 0).sum())
    few = {name: metric for name, metric in task.metrics.items() if n_drawn and engine.basis(metric) == "votes"}
    if not few:
        return []
    seen = {name: engine.gold_seen(metric) for name, metric in few.items()}
    systems = task.outputs.systems.tolist()
    alone = None
    if len(few) == 1 and len(systems) <= 2:
        metric = next(iter(few.values()))
        alone = estimate_alone(engine, task, metric, minus=1 if len(systems) > 1 else None)
    words = ""
    if alone is not None and np.isfinite(alone.interval(task.level)[0]):
        of_pair = f" of {systems[0]!r} less {systems[1]!r}" if len(systems) > 1 else ""
        words = f" Alone they say {interval(*alone.interval(task.level))}{of_pair}."
    return [few_vetted_sentence(seen, n_drawn, words)]


def few_vetted_sentence(seen: Mapping[str, int], n_drawn: int, alone: str = "") -> Sentence:
    """Metrics that rest on votes since they look at few of the vetted items.

    Parameters
    ----------
    seen : mapping from str to int
        How many of them each such metric looks at.
    n_drawn : int
        Vetted items that were drawn at random.
    alone : str
        What these say by themselves.
    """
    vetted = "1 vetted item was" if n_drawn == 1 else f"{n_drawn:,} vetted items were"
    names = list(seen)
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    if set(seen.values()) == {n_drawn}:
        rest = "rests" if len(names) == 1 else "rest"
        return Sentence(
            f"{vetted} drawn at random; from {ENOUGH_GOLD} on {listed} {rest} on them, before in part on votes.{alone}"
        )
    looks = f"{names[0]} looks at {seen[names[0]]:,}" + "".join(f", {name} at {seen[name]:,}" for name in names[1:])
    return Sentence(
        f"{vetted} drawn at random; from {ENOUGH_GOLD} on that a metric looks at it rests on them, before in part on "
        f"votes: {looks}.{alone}"
    )
