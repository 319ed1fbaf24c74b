"""Which of several systems is better, and the area under one's ROC curve? Public functions; no mathematics here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal

import numpy as np

from trueup._base.engines import check_engine, using_engine
from trueup._base.types import Target
from trueup._base.validation import RandomState, check_choice, check_integer, refuse_options
from trueup.answers.comparison import Comparison, undefined_notes
from trueup.answers.evaluate import (
    N_DRAWS,
    contradictions,
    core_again,
    truth_model_of,
    unused_gold,
    weak_votes,
    what_is_right,
    whole_clusters,
)
from trueup.answers.notes import notes_on
from trueup.answers.prepare import (
    DEFAULT_TARGET,
    Settings,
    Task,
    check_asked_of_all,
    prepare,
    settle_target,
    values_given,
    values_on,
)
from trueup.core.prior import CrowdPrior
from trueup.core.truth import TruthModel
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.estimators.published.urkullu2019 import (
    ViewResult,
    bootstrap_view,
    deterministic,
    probabilistic,
    subjectivist,
)
from trueup.estimators.truth import settle_noise, truths_given_outputs
from trueup.exceptions import InvalidLabels, InvalidParameter, TrueupWarning, silenced_warnings
from trueup.metrics import MetricLike
from trueup.noise import NoiseModel
from trueup.posteriors import DrawnEstimate, Estimate

_SAMPLING = ("n_chains", "n_warmup")
_OF_SCANS = (
    *("metric", "prior", "target", "level", "positive", "items", "unknown", "n_draws", "check_dependence"),
    *("random_state", "engine"),
)


def compare(
    systems: Any,
    labels: Labels | LabelScan[Labels],
    *,
    metric: MetricLike | Mapping[str, MetricLike] = "accuracy",
    noise: str | NoiseModel | None = None,
    prior: CrowdPrior | None = None,
    target: Target | None = None,
    level: float = 0.95,
    positive: Hashable | None = None,
    by: str | Mapping[Hashable, Hashable] | None = None,
    cluster: str | Mapping[Hashable, Hashable] | None = None,
    weights: str | Mapping[Hashable, float] | None = None,
    items: Literal["common", "own"] | None = None,
    unknown: Literal["error", "ignore"] = "ignore",
    unknown_class: Literal["error", "ignore"] = "error",
    n_draws: int = N_DRAWS,
    check_dependence: bool = True,
    random_state: RandomState = 0,
    progress: Callable[[float], None] | None = None,
    engine: str | None = None,
    **sampling: Any,
) -> Comparison:
    """Rank systems by a metric, from their outputs and noisy votes alone.

    All systems are judged on the same draws of the truth, so differences are paired: systems that always contradict
    each other err by opposite amounts, and those that agree err together. Copies of a system count once.

    Parameters
    ----------
    systems : mapping or Predictions
        ``{name: predictions}``, with what `evaluate` takes for each; for metrics of scores also arrays of scores. Or
        a frame with the columns item, system, and prediction or score. ``labels.as_systems()`` for the labelers
        themselves; a labeler whose votes are in `labels` is judged with them, any other as a system. For votes that
        are scanned a mapping from name to a column of their files, or to a mapping from item to class.
    metric : str, callable or mapping
        A name as in `trueup.metrics.list_metrics`, or a function ``metric(y_true, y_pred) -> float`` where more is
        better; ``{"cost": f}`` gives it a name.
    target : {"sample", "population"}, optional
        Which system is better on exactly these items, the default; or on the distribution they came from.
    positive : class, optional
        The positive class of two; by default that of the scores, or the second. Arrays of scores that name no class
        are taken for it; scores that name the other one are turned around.
    items : {"common", "own"}, optional
        Judge all systems on the items that all have predicted, or each on its own; by default "common", and "own" for
        labelers. `Comparison.warnings` names what was left out.
    n_draws : int. Truths that the answer rests on.
    labels, noise, prior, level, by, cluster, weights, unknown, unknown_class
        As in `evaluate`; ``cmp.by["sport"]`` is a `Comparison`, and `level` is also that of groups.
    check_dependence, random_state, progress, engine
        As in `evaluate`.
    **sampling
        With a named noise model: n_chains, n_warmup of `trueup.noise.sample`.

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.baseline(n_items=400, random_state=0)
    >>> worse = np.where(np.arange(400) % 5, sim.predictions, 1 - sim.predictions)
    >>> cmp = tu.compare({"a": sim.predictions, "b": worse}, sim.labels, noise="dawid-skene", n_draws=400)
    >>> cmp.ranking, cmp.prob_best["a"] > 0.99, bool(cmp.difference("a", "b").interval(0.95)[0] > 0)
    (['a', 'b'], True, True)
    """
    settings = Settings.of_call(compare, locals())
    check_engine(engine, is_scan=isinstance(labels, LabelScan), purpose="compare")
    check_asked_of_all(alone=noise is not None, by=by, cluster=cluster, weights=weights, prior=prior)
    refuse_options(sampling, () if noise is None else _SAMPLING)
    with using_engine(engine):
        task = prepare(
            systems,
            labels,
            settings=settings,
            metrics=metric if isinstance(metric, Mapping) else [metric],
            noise=noise,
            target=settle_target(target, cluster=cluster, weights=weights),
            least_systems=2,
            one_metric=True,
            of_scans=_OF_SCANS,
            missing="ignore",
        )
        return measure(
            task, prior, n_draws=n_draws, check_dependence=check_dependence, progress=progress, sampling=sampling
        )


def measure(
    task: Task,
    prior: CrowdPrior | None = None,
    *,
    n_draws: int,
    check_dependence: bool,
    progress: Callable[[float], None] | None = None,
    sampling: Mapping[str, Any],
    core: TruthModel | None = None,
) -> Comparison:
    """Measure every system on every draw of the truth; what `compare` and `auc` share.

    A `core` that knows the base of these votes spares fitting it.
    """
    metric = task.metric
    if metric.higher_is_better is None:
        raise InvalidParameter(
            f"systems cannot be ranked by {metric.name!r}, which is neither good nor bad; name another",
            parameter="metric",
        )
    rng = np.random.default_rng(task.seed)
    model, is_refused = None, False
    with silenced_warnings():  # what fits would say is in the notes, in one place
        if task.noise is None:
            core = truth_model_of(task, prior, n_draws=n_draws) if core is None else core
            truth = core.of_systems([]).truth if core.is_divided else core.truth
            is_refused, notes = contradictions(core, what_is_right(task))
            notes = [*notes, *whole_clusters(core), *weak_votes(core, task)]
        else:
            model = settle_noise(task.noise, task.labels, draw=True)
            truth = truths_given_outputs(
                task.labels,
                model,
                task.outputs_for(metric),
                used=metric.looks_at,
                in_votes=task.in_votes,
                n_draws=n_draws,
                random_state=rng,
                progress=progress,
                **sampling,
            )
            notes = unused_gold(task.labels)
        values = values_on(truth, task, metric, rng) if core is None else values_given(core, task, metric)
        found, _ = notes_on(
            task,
            model,
            check_dependence=check_dependence,
            notes=(*notes, *truth.notes, *undefined_notes(values, task.outputs.systems.tolist(), metric)),
        )
    if progress is not None:
        progress(1.0)
    return Comparison(task, model, metric, values, truth, found, core, is_refused).with_advice()


def compare_again(comparison: Comparison, labels: Labels, *, random_state: int | None = None) -> Comparison:
    """The comparison for the same votes with other checked items; see `evaluate_again`."""
    core, task = core_again(comparison.core, comparison.task, labels, random_state)
    return measure(task, n_draws=core.n_draws, check_dependence=False, sampling={}, core=core)


View = Literal["bayes", "deterministic", "subjectivist", "probabilistic"]
_VALUE_OF: dict[str, Callable[..., ViewResult]] = {
    "deterministic": deterministic,
    "subjectivist": subjectivist,
    "probabilistic": probabilistic,
}


def auc(
    scores: Any,
    labels: Labels,
    *,
    view: View = "bayes",
    noise: str | NoiseModel | None = None,
    prior: CrowdPrior | None = None,
    target: Target = DEFAULT_TARGET,
    positive: Hashable | None = None,
    n_draws: int = N_DRAWS,
    random_state: RandomState = 0,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> Estimate:
    """The area under the ROC curve of one system, from its scores and noisy votes.

    Parameters
    ----------
    scores : array, mapping or Predictions
        In the order of ``labels.items``, by item, or `Predictions` with scores (two classes) or probabilities; of
        every item.
    view : {"bayes", "deterministic", "subjectivist", "probabilistic"}
        "bayes": the AUC on draws of the truth, as in `compare`. The others are those of Urkullu et al.
        (2019), for two classes: the majority is the truth, ties broken by chance (DGT); every labeler is a truth of
        their own, averaged by their number of votes (SGT; labelers who gave one class only are left out); the truth
        is a probability, estimated by the share of votes, and the AUC becomes the concordance with it (PGT). The
        spread of these views is a bootstrap: how much another sample would differ, not how wrong the labels are.
    noise, prior, target, positive, n_draws, random_state, progress, **sampling
        As in `compare`, for the view "bayes"; `target` is by default these very items.

    Warns
    -----
    TrueupWarning
        What `compare` has in its warnings; scores that are all the same.

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.urkullu(n_items=300, n_classifiers=2, case="good", random_state=0)
    >>> round(tu.auc(sim.scores[0], sim.labels, view="probabilistic").mean, 2)
    0.82
    """
    settings = Settings.of_call(auc, locals())
    check_choice(view, ("bayes", *_VALUE_OF), name="view")
    check_integer(n_draws, name="n_draws", low=1)
    for name in ("noise", "prior", "target", *sampling):
        if view != "bayes" and name in settings.changed():
            raise InvalidParameter(
                f'`{name}` goes with `view="bayes"`, got `view={view!r}`, which takes none; leave it out',
            )
    check_asked_of_all(alone=noise is not None, prior=prior)
    refuse_options(sampling, _SAMPLING if noise is not None else ())
    task = prepare(scores, labels, settings=settings, metrics=["auc"], noise=noise, target=target, most_systems=1)
    if view == "bayes":
        comparison = measure(task, prior, n_draws=n_draws, check_dependence=False, progress=progress, sampling=sampling)
        for sentence in comparison.warnings:
            warnings.warn(sentence, TrueupWarning, stacklevel=2)
        return comparison[comparison.best].named("auc")
    if labels.n_classes != 2:
        raise InvalidLabels(
            f'the view {view!r} is for two classes, got {labels.n_classes}; use `view="bayes"`, which averages over '
            "classes"
        )
    for sentence in task.notes:
        warnings.warn(sentence, TrueupWarning, stacklevel=2)
    values = task.outputs_for(task.metric).outputs("scores")
    rng = np.random.default_rng(task.seed)
    # Only the majority needs chance, for its ties.
    chance = {"random_state": rng} if view == "deterministic" else {}
    value = _VALUE_OF[view](labels, values, positive=task.positive, **chance).values[0]
    if np.isnan(value):
        raise InvalidLabels(
            f"the view {view!r} of the truth knows one class only, got no two items that differ in it; add items or "
            "votes of the other class"
        )
    draws = bootstrap_view(
        labels, values, view=view, positive=task.positive, n_draws=min(n_draws, 400), random_state=rng
    )[0]
    # The draws tell the spread; the middle is the value that the view defines.
    return DrawnEstimate(np.clip(draws + value - np.nanmean(draws), 0.0, 1.0), bounds=(0.0, 1.0), name="auc")
