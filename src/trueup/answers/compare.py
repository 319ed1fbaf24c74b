"""Which of several systems is better? A front door; no mathematics here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, overload

import numpy as np

from trueup._base.engines import check_engine, using_engine
from trueup._base.types import Target
from trueup._base.validation import RandomState, check_choice
from trueup.answers.chosen_gold import check_chosen_gold
from trueup.answers.comparison import Comparison
from trueup.answers.findings import findings_of
from trueup.answers.paired import undefined_notes
from trueup.answers.reading import engine_of, notes_on
from trueup.answers.scanned_comparison import ScannedComparison, compare_scan
from trueup.answers.settings import Settings
from trueup.answers.setup import Task, check_asked_of_all, check_rankable, prepare, settle_target, values_on
from trueup.answers.unused_gold import unused_gold
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.estimators.assumptions import DEFAULT_ASSUMPTION, Assumption, settle_assumption
from trueup.estimators.real_map import RealMap
from trueup.estimators.truth import TruthEngine, settle_noise, truths_given_outputs
from trueup.exceptions import silenced_warnings
from trueup.metrics import MetricLike
from trueup.noise import Clusters, NoiseModel

_SAMPLING = ("n_chains", "n_warmup")


@overload
def compare(systems: Any, labels: Labels, **keywords: Any) -> Comparison: ...


@overload
def compare(systems: Any, labels: LabelScan[Labels], **keywords: Any) -> ScannedComparison: ...


def compare(
    systems: Any,
    labels: Labels | LabelScan[Labels],
    *,
    metric: MetricLike | Mapping[str, MetricLike] = "accuracy",
    noise: str | NoiseModel | None = None,
    assume: Assumption | RealMap | None = None,
    target: Target | None = None,
    level: float = 0.95,
    positive: Hashable | None = None,
    by: str | Mapping[Hashable, Hashable] | None = None,
    cluster: str | Mapping[Hashable, Hashable] | None = None,
    weights: str | Mapping[Hashable, float] | None = None,
    items: Literal["common", "own"] | None = None,
    unknown: Literal["error", "ignore"] = "ignore",
    unknown_class: Literal["error", "ignore"] = "error",
    n_draws: int = 2000,
    check_dependence: bool = True,
    random_state: RandomState = 0,
    progress: Callable[[float], None] | None = None,
    engine: str | None = None,
    **sampling: Any,
) -> Comparison | ScannedComparison:
    """Rank systems by a metric, from their outputs and noisy votes alone.

    All systems are judged on the same draws of the truth, so differences are paired. What the systems say helps to
    draw the truth: they are inside the states of the labelers, so they may err with them, and systems that say the same
    count for one. The answers are those of `evaluate`: gold first, then votes under an assumption.

    Parameters
    ----------
    systems : mapping or Predictions
        ``{name: predictions}``, with what `evaluate` takes for each; for metrics of scores also arrays of scores. Or
        a frame with the columns item, system, and prediction or score. ``labels.as_systems()`` for the labelers
        themselves; a labeler whose votes are in `labels` is judged with them, any other as a system. For votes that
        are scanned a mapping from name to a column of their files, or to a mapping from item to class.
    labels : Labels or LabelScan
        The votes; gold items have their known truth in every draw. Of votes that are scanned (`Labels.scan`) the plain
        call answers by a metric of classes, file by file.
    metric : str, callable or mapping
        A name as in `trueup.metrics.list_metrics`, or a function ``metric(y_true, y_pred) -> float`` where more is
        better; ``{"cost": f}`` gives it a name.
    noise : str or NoiseModel, optional
        As in `evaluate`: by default all kinds of models are drawn; one that is named gives its own answer alone.
    assume : {"real", "shared", "independent"} or RealMap, optional
        As in `evaluate`.
    target : {"sample", "population"}, optional
        Which system is better on exactly these items, the default; or on the distribution they came from.
    level : float
        Of the intervals and groups that are shown.
    positive : class, optional
        The positive class of two; by default that of the scores, or the second. Arrays of scores that name no class
        speak for it; scores that name the other one are turned around.
    by, cluster, weights : str or mapping, optional
        As in `evaluate`: slices (``cmp.by["sport"]`` is a `Comparison`), items that came together, and what each item
        counts for.
    items : {"common", "own"}, optional
        Judge all systems on the items that all have predicted, or each on its own; by default "common", and "own" for
        labelers. Whatever is left out is said in `Comparison.warnings`.
    unknown, unknown_class : {"error", "ignore"}
        What to do with predictions for items, or of classes, that the labels do not have.
    n_draws : int
        Truths that the answer rests on, of all chains together; chains are as long as that takes.
    check_dependence : bool
        Whether to check that labelers err independently and to warn where they do not.
    random_state : int, Generator or None
    progress : callable, optional
        Called with the share of the work done.
    engine : {"scipy", "numba", "dask"}, optional
        What works it out, "dask" for votes that are scanned; by default as `trueup.engines` says.
    **sampling
        For `trueup.noise.sample`: n_chains, n_warmup.

    Returns
    -------
    Comparison
        Of votes that are scanned a `ScannedComparison`, which has the same estimates and knows no single items.

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
    if isinstance(labels, LabelScan):
        with using_engine(engine):
            return compare_scan(systems, labels, settings)
    assumption = settle_assumption(assume, alone=noise is not None)
    check_asked_of_all(alone=noise is not None, by=by, cluster=cluster, weights=weights)
    task = prepare(
        systems,
        labels,
        settings=settings,
        metrics=metric if isinstance(metric, Mapping) else [metric],
        noise=noise,
        target=settle_target(target, cluster=cluster, weights=weights),
        positive=positive,
        level=level,
        random_state=random_state,
        least_systems=2,
        one_metric=True,
        missing="ignore",
        unknown=unknown,
        unknown_class=unknown_class,
        items=items,
        by=by,
        cluster=cluster,
        weights=weights,
    )
    with using_engine(engine):
        return measure(
            task,
            assume=assume,
            assumption=assumption,
            n_draws=n_draws,
            check_dependence=check_dependence,
            progress=progress,
            sampling=sampling,
        )


def measure(
    task: Task,
    *,
    assume: Assumption | RealMap | None = None,
    assumption: Assumption = DEFAULT_ASSUMPTION,
    n_draws: int,
    check_dependence: bool,
    progress: Callable[[float], None] | None = None,
    sampling: Mapping[str, Any],
    engine: TruthEngine | None = None,
) -> Comparison:
    """Draw the truth, and measure every system on every draw; what `compare` and `auc` share.

    An `engine` that has drawn the models of these votes spares drawing them.
    """
    metric = task.metric
    check_rankable(metric)
    for option in sampling:
        check_choice(option, _SAMPLING, name="an option of sampling")
    rng = np.random.default_rng(task.seed)
    model, notes, refused = None, [], False
    with silenced_warnings():  # what fits would say is in the findings, in one place
        if task.noise is None:
            if engine is None:
                engine = engine_of(task, assume, n_draws=n_draws, progress=progress, sampling=sampling)
            truth = engine.headline(metric, assumption)
            chosen = check_chosen_gold(engine, task)
            refused = chosen.refused
            notes = [*chosen.sentences, *notes_on(engine, task, assumption)]
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
        values = values_on(truth, task, metric, rng)
        findings, _ = findings_of(
            task,
            Clusters() if model is None else model,
            check_dependence=check_dependence,
            notes=(*notes, *truth.notes, *undefined_notes(values, task.outputs.systems.tolist(), metric)),
        )
    assumed = None if engine is None else assumption
    comparison = Comparison(task, model, metric, values, truth, findings, engine, assumed, refused=refused)
    return comparison.with_advice()
