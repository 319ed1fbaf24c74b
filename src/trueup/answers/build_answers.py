"""From a prepared question over the core to the answer, and what to say of the checked items behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trueup._base.types import Codes
from trueup._base.validation import check_integer
from trueup.answers.evaluation import Evaluation
from trueup.answers.notes import HOW_TO_CHECK, notes_on
from trueup.answers.prepare import Task, solution_on
from trueup.core.base import base_of
from trueup.core.checks import NOTED, REFUSED, Surprise
from trueup.core.prior import CrowdPrior, to_angle
from trueup.core.truth import TruthModel, drawn_gold, labels_of_base, own_centres
from trueup.data.labels import Labels
from trueup.estimators.truth import draw_truths, is_drawn, settle_noise
from trueup.exceptions import InvalidParameter, silenced_warnings
from trueup.noise import NoiseModel, Ordinal
from trueup.noise.chain import SystemOutputs

N_DRAWS = 2048
_OF_RATES = ("share", "mean_score", "preferences")
_WORTH_USING = 5  # checked items
_FEW_CLUSTERS = 0.7  # of those expected, below which checked items were not drawn one by one
_FAR_APART = 0.2  # radians between two expectations of a level: there votes alone were seen to be too low
_FEWEST_RATINGS = 3  # classes; of two, the order says nothing


def truth_model_of(
    task: Task,
    prior: CrowdPrior | None = None,
    *,
    n_draws: int = N_DRAWS,
    candidates: Sequence[NoiseModel] = (),
    outputs: Codes | None = None,
    may_sample: bool = True,
) -> TruthModel:
    """The core for a task."""
    check_integer(n_draws, name="n_draws", low=10)
    labels = labels_of_base(task.labels)
    base = base_of(labels, [*candidates, *_model_of_ratings(task)])
    codes, scores = task.outputs.codes, None
    if task.outputs.scores is not None and task.labels.n_classes == 2:
        scores = task.outputs.prepared_for("scores", positive=task.positive).scores
    if codes is None:
        codes = np.empty((0, task.labels.n_items), dtype=np.int32)
    population = task.population
    return TruthModel(
        task.labels,
        base,
        codes if outputs is None else outputs,
        scores,
        task.positive,
        own_centres(labels, base, codes, task.labelers) if outputs is None and (task.labelers >= 0).any() else None,
        None if task.slices is None else task.slices.codes,
        None if population is None else population.clusters,
        None if population is None else population.weights,
        may_sample=may_sample,
        prior=CrowdPrior() if prior is None else prior,
        n_draws=n_draws,
        seed=task.seed,
    )


def _model_of_ratings(task: Task) -> list[NoiseModel]:
    """The model of ratings, where a metric says that classes are in order."""
    order = next((metric.order for metric in task.metrics.values() if metric.order is not None), None)
    names = task.labels.classes.tolist()
    if order is None or len(names) < _FEWEST_RATINGS:
        return []
    return [Ordinal(order=[names[code] for code in order])]


# ------------------------------------------------------------------ answers


def build_evaluation(
    task: Task,
    prior: CrowdPrior | None = None,
    *,
    check_dependence: bool,
    n_draws: int = N_DRAWS,
    core: TruthModel | None = None,
    progress: Callable[[float], None] | None = None,
) -> Evaluation:
    """The plain answer about one system."""
    core = truth_model_of(task, prior, n_draws=n_draws) if core is None else core
    solution = solution_on(core.truth, task, np.random.default_rng(task.seed))
    with silenced_warnings():  # what fits would say is in the notes, in one place
        is_refused, about_checks = contradictions(core, what_is_right(task))
        found, independence = notes_on(
            task,
            None,
            check_dependence=check_dependence,
            notes=[*whole_clusters(core), *weak_votes(core, task)],
            counts=solution.counts.mean_counts,
        )
    if progress is not None:
        progress(1.0)
    return Evaluation(task, solution, None, (*about_checks, *found), independence, core, is_refused)


def evaluate_again(evaluation: Evaluation, labels: Labels, *, random_state: int | None = None) -> Evaluation:
    """The plain answer for the same votes with other checked items; the base is kept, so that a look takes no fit."""
    core, task = core_again(evaluation.core, evaluation.task, labels, random_state)
    return replace(build_evaluation(task, check_dependence=False, core=core), independence=evaluation.independence)


def core_again(
    core: TruthModel | None, task: Task, labels: Labels, random_state: int | None
) -> tuple[TruthModel, Task]:
    """The core and the task for other checked items; an error where votes differ or a noise model was named."""
    if core is None:
        raise InvalidParameter(
            "an answer of a noise model or method that is named cannot be given again, got one; call the function again"
        )
    before = task.labels
    same = labels.votes.shape == before.votes.shape and labels.items.tolist() == before.items.tolist()
    if not same or abs(labels.votes - before.votes).nnz:
        raise InvalidParameter("`labels` must have the same votes as before, got others; call the function again")
    seed = task.seed if random_state is None else random_state
    return core.with_labels(labels, seed), replace(task, labels=labels, seed=seed)


def build_named_evaluation(
    task: Task,
    *,
    groups: Codes | None = None,
    check_dependence: bool,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> Evaluation:
    """The answer of the noise model that the task names, without what systems say."""
    assert task.noise is not None
    rng = np.random.default_rng(task.seed)
    with silenced_warnings():  # what fits would say is in the notes, in one place
        model = settle_noise(task.noise, task.labels, draw=True)
        if groups is not None and is_drawn(model):
            sampling["outputs"] = SystemOutputs(
                groups[None].astype(np.int64), groups.max(keepdims=True) + 1, np.ones(1)
            )
        truth = draw_truths(task.labels, model, random_state=rng, progress=progress, **{"n_draws": N_DRAWS, **sampling})
        solution = solution_on(truth, task, rng)
        notes, independence = notes_on(
            task,
            model,
            check_dependence=check_dependence,
            notes=(*unused_gold(task.labels), *truth.notes),
            counts=solution.counts.mean_counts,
        )
    evaluation = Evaluation(task, solution, model, notes, independence)
    evaluation.keep_draws("classes", truth)
    return evaluation


def unused_gold(labels: Labels) -> list[str]:
    """What to say of checked items that were drawn at random, beside a noise model or method that is named."""
    n_drawn = int((drawn_gold(labels) >= 0).sum())
    if n_drawn < _WORTH_USING:
        return []
    return [
        f"{n_drawn:,} checked items were drawn at random, and correct nothing here but themselves; leave out "
        "`noise` and `method` for an answer that they correct."
    ]


# ------------------------------------------------------------------ checked items


def what_is_right(task: Task) -> list[str]:
    """What checked items may contradict: that a system is right, or where a rate is asked for that the truth is so."""
    names = task.outputs.systems.tolist()
    if task.settings.entry_point in _OF_RATES:
        return [f"the truth is {names[0]!r}"]
    return ["the classifier is right"] if len(names) == 1 else [f"{name!r} is right" for name in names]


def contradictions(model: TruthModel, events: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether items that somebody chose contradict the votes, so that there is no interval; and what to say."""
    of_drawn, of_chosen = model.surprises()
    notes = []
    worst = min(of_chosen, key=lambda found: found.chance, default=None)
    is_refused = False
    if worst is not None and worst.chance < NOTED / len(of_chosen):
        is_refused = worst.chance < REFUSED / len(of_chosen)
        said = "contradict the votes" if is_refused else "are odd beside the votes"
        means = "so there is no interval" if is_refused else "so be careful with the interval"
        notes.append(f"The chosen items {said}: {_right_words(worst, events)}, {means}; {HOW_TO_CHECK}.")
    odd = min(of_drawn, key=lambda found: found.chance, default=None)
    if odd is not None and odd.chance < REFUSED / len(of_drawn):
        notes.append(
            f"The checked items are far from what votes let expect: {_right_words(odd, events)}. The labelers err "
            "together, and the answer rests on the checked items more than on votes."
        )
    return is_refused, notes


def _right_words(found: Surprise, events: Sequence[str]) -> str:
    of_items = f"{found.n_right:,} of {found.n_items:,} items"
    return f"{events[found.system]} on {of_items}, where votes let expect {found.expected:.0f}"


def weak_votes(model: TruthModel, task: Task) -> list[str]:
    """What to say where votes leave so much open that a system which errs by itself may be far better than they say."""
    names = task.outputs.systems.tolist()
    if model.n_checked or model.centres is not None or len(model.codes) != len(names):
        return []
    if task.settings.entry_point in _OF_RATES:  # nobody is right or wrong
        return []
    counts = np.ones(len(model.base)) if model.times is None else model.times
    agreed = float(np.average((model.base**2).sum(axis=1), weights=counts))  # P(the truth), as votes see it
    other = (1 - agreed) / max(model.base.shape[1] - 1, 1)
    found = []
    for row, name in zip(model.codes, names, strict=True):
        at = np.flatnonzero(row >= 0)
        if len(at):
            expected = float(np.average(model.base[at, row[at]], weights=counts[at]))
            alone = float(np.clip((expected - other) / max(agreed - other, 1e-9), 0.0, 1.0))
            gap = float(to_angle(np.array(alone)) - to_angle(np.array(expected)))
            found.append((gap, expected, alone, name))
    gap, expected, alone, name = max(found, default=(0.0, 0.0, 0.0, None), key=lambda one: one[0])
    if gap <= _FAR_APART:
        return []
    who = "the classifier" if len(names) == 1 else repr(name)
    return [
        f"Votes leave most items open: going by them {who} is right on {expected:.0%}, but if its errors "
        f"have nothing to do with those of the labelers, it is right on about {alone:.0%}; {HOW_TO_CHECK}."
    ]


def whole_clusters(model: TruthModel) -> list[str]:
    """What to say of checked items that come from fewer clusters than items drawn one by one would."""
    clusters = model.clusters
    checked = np.flatnonzero(model.drawn >= 0)
    if clusters is None or len(checked) < 2:
        return []
    sizes = np.bincount(clusters)
    n_seen = len(np.unique(clusters[checked]))
    expected = float((1 - (1 - len(checked) / len(clusters)) ** sizes).sum())
    if n_seen >= _FEW_CLUSTERS * expected:
        return []
    return [
        f"The {len(checked):,} checked items come from {n_seen:,} clusters, where items drawn one by one would "
        f"come from about {expected:.0f}: they count for fewer, as far as those of one cluster are alike; check "
        "items of more clusters (`trueup.labelers.draw_sample`)."
    ]
