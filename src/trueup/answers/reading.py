"""From the engine's draws of the truth to an answer: which draws a door reads, and what is said beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from trueup._base.validation import check_choice
from trueup.answers.chosen_gold import check_chosen_gold
from trueup.answers.confusion import of_confusion
from trueup.answers.evaluation import Evaluation
from trueup.answers.findings import findings_of
from trueup.answers.gold_alone import few_vetted
from trueup.answers.setup import Task, solution_on
from trueup.estimators.assumptions import Assumption, doubts_of_many_classes
from trueup.estimators.real_map import RealMap, shipped_map
from trueup.estimators.truth import TruthEngine
from trueup.exceptions import Sentence, silenced_warnings
from trueup.noise import Clusters, NoiseModel, Ordinal

SAMPLING = ("n_chains", "n_warmup", "n_draws")
_FEW_CLUSTERS = 0.7  # of those expected, below which vetted items were not drawn one by one
_LEAST_RATINGS = 3  # classes; of two, the order says nothing


def engine_of(
    task: Task,
    assume: Assumption | RealMap | None,
    *,
    n_draws: int,
    progress: Callable[[float], None] | None,
    sampling: Mapping[str, Any],
) -> TruthEngine:
    """The engine for a task."""
    for option in sampling:
        check_choice(option, SAMPLING, name="an option of sampling")
    in_votes = task.in_votes
    return TruthEngine(
        task.labels,
        task.outputs,
        task.positive,
        in_votes=in_votes if in_votes.any() else None,
        real_map=assume if isinstance(assume, RealMap) else shipped_map(),
        n_draws=n_draws,
        seed=task.seed,
        progress=progress,
        sampling=dict(sampling),
        groups=None if task.slices is None else task.slices.codes,
        weights=None if task.population is None else task.population.weights,
        candidates=_candidates(task),
        alone=task.noise,
    )


def _candidates(task: Task) -> tuple[NoiseModel, ...]:
    """Models that may read the votes better for what is asked: of ordered classes, that of ratings."""
    order = next((metric.order for metric in task.metrics.values() if metric.order is not None), None)
    names = task.labels.classes.tolist()
    if order is None or len(names) < _LEAST_RATINGS:
        return ()
    return (Ordinal(order=[names[code] for code in order]),)


def evaluation_by(
    engine: TruthEngine, task: Task, assumption: Assumption | None, *, check_dependence: bool
) -> Evaluation:
    """The answer of `evaluate` from the engine's draws."""
    metric = of_confusion(task.labels.classes)
    rng = np.random.default_rng(task.seed)
    model: NoiseModel = Clusters() if task.noise is None else task.noise
    with silenced_warnings():  # what fits would say is in the findings, in one place
        truth = engine.headline(metric, assumption)
        solution = solution_on(truth, task, rng)
        notes = notes_on(engine, task, assumption)
        findings, independence = findings_of(
            task,
            model,
            check_dependence=check_dependence,
            notes=(*solution.notes, *notes),
            counts=solution.counts.mean_counts,
        )
        chosen = check_chosen_gold(engine, task)
    findings = (*chosen.sentences, *findings)
    return Evaluation(task, solution, model, findings, independence, engine, assumption, refused=chosen.refused)


def notes_on(engine: TruthEngine, task: Task, assumption: Assumption | None) -> list[Sentence]:
    """What to say of the gold that was drawn at random, and of data unlike those behind the widening."""
    notes = few_vetted(engine, task)
    if any(engine.basis(metric) == "votes" for metric in task.metrics.values()):
        notes += engine.real_map.doubts(task.labels) if assumption == "real" else []
        notes += doubts_of_many_classes(task.labels.n_classes) if engine.alone is None else []
    return [*notes, *_whole_clusters(engine, task)]


def _whole_clusters(engine: TruthEngine, task: Task) -> list[Sentence]:
    """What to say of vetted items that came in whole clusters and are taken for drawn one by one."""
    clusters = None if task.population is None else task.population.clusters
    vetted = np.flatnonzero(engine.drawn_gold >= 0)
    if clusters is None or len(vetted) < 2:
        return []
    sizes = np.bincount(clusters)
    n_seen = len(np.unique(clusters[vetted]))
    expected = float((1 - (1 - len(vetted) / len(clusters)) ** sizes).sum())
    if n_seen >= _FEW_CLUSTERS * expected:
        return []
    return [
        Sentence(
            f"The {len(vetted):,} vetted items come from {n_seen:,} clusters, where items drawn one by one would come "
            f"from about {expected:.0f}: those of one cluster are much alike, so the interval is too narrow; vet items "
            "of more clusters (⟨trueup.labelers.draw_sample⟩)."
        )
    ]
