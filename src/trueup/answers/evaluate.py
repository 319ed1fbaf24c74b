"""How good is a classifier really? The first of the public functions; no mathematics here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from trueup._base.engines import check_engine, using_engine
from trueup._base.types import Target
from trueup._base.validation import RandomState, check_choice, check_options, refuse_assumption, refuse_options
from trueup.answers.build_answers import N_DRAWS, build_evaluation, unused_gold
from trueup.answers.evaluation import Evaluation
from trueup.answers.notes import notes_on
from trueup.answers.prepare import (
    DEFAULT_TARGET,
    Settings,
    Task,
    check_asked_of_all,
    prepare,
    prepare_scan,
    settle_target,
)
from trueup.core.prior import CrowdPrior
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.estimators import METHODS, Method, Problem, Solution
from trueup.estimators.truth import settle_noise
from trueup.exceptions import InvalidParameter, silenced_warnings
from trueup.metrics import MetricLike
from trueup.noise import DEFAULT_NOISE, NoiseModel

_OF_SCANS = (
    *("metrics", "prior", "target", "level", "positive", "missing", "unknown", "check_dependence", "random_state"),
    *("engine", "n_draws"),
)


def evaluate(
    predictions: Any,
    labels: Labels | LabelScan[Labels],
    *,
    noise: str | NoiseModel | None = None,
    prior: CrowdPrior | None = None,
    metrics: Sequence[MetricLike] | Mapping[str, MetricLike] = ("accuracy", "precision", "recall", "f1"),
    method: str = "bayes",
    target: Target | None = None,
    level: float = 0.95,
    positive: Hashable | None = None,
    missing: Literal["error", "ignore"] = "error",
    unknown: Literal["error", "ignore"] = "error",
    unknown_class: Literal["error", "ignore"] = "error",
    truth: Any = None,
    by: str | Mapping[Hashable, Hashable] | None = None,
    cluster: str | Mapping[Hashable, Hashable] | None = None,
    weights: str | Mapping[Hashable, float] | None = None,
    check_dependence: bool = True,
    random_state: RandomState = 0,
    progress: Callable[[float], None] | None = None,
    engine: str | None = None,
    **options: Any,
) -> Evaluation:
    """The distribution of every metric, from predictions, noisy votes and checked items.

    The plain call knows how far the truth of real sets was from what their votes said, and takes checked items that
    were drawn at random (``labels.with_gold(…, drawn="random")``) as evidence, from the first on. With votes alone its
    intervals are wide, and `Evaluation.vettings` says how many checked items make them how narrow.

    Parameters
    ----------
    predictions : array, mapping or Predictions
        An array in the order of ``labels.items``, a mapping from item to class, or `Predictions` of one system; for
        votes that are scanned a mapping, or the name of a column of their files.
    labels : Labels or LabelScan
        The votes. Gold items enter every method exactly. Of votes that are scanned (`Labels.scan`) the plain call
        answers, file by file.
    noise : str or NoiseModel, optional
        By default none: the plain answer. A model that is named gives its own answer: known noise as a model
        (`Confusion`, or `Difficulty` with its parameters); or a model to be learned from the same votes, by name (see
        `trueup.noise.list_models`, or "auto") or with its settings. A model that is passed is never changed. Methods
        other than "bayes" take `trueup.noise.DEFAULT_NOISE`, or "dawid-skene" where they need a confusion matrix of
        each labeler.
    prior : CrowdPrior, optional
        How far the truth may be from what votes say; by default as on the public sets that come with trueup, or fitted
        to sets of your own (`trueup.calibrate`).
    metrics : sequence or mapping
        Names as in `trueup.metrics.list_metrics`, for predictions with scores or probabilities those of scores too
        ("auc", "log_loss", …), and functions ``metric(y_true, y_pred) -> float``. A mapping gives them names:
        ``{"cost": f}``.
    method : str
        "bayes" is calibrated. The others are published or common practice and are there for comparison; see
        `trueup.estimators.METHODS`. "noise-removal" needs ``features=X``.
    target : {"sample", "population"}, optional
        The metric on exactly these items, the default; or on the distribution they came from. "bayes" can do both, the
        methods "unbiased", "dirty" and "noise-removal" are about the population, the others about the sample.
    level : float. Of the intervals that are shown.
    positive : class, optional
        The positive class of two; by default that which scores speak for, or the second of ``labels.classes``.
    missing : {"error", "ignore"}
        What to do with items that have no prediction. Ignored items still teach the noise model.
    unknown, unknown_class : {"error", "ignore"}
        What to do with predictions for items, or of classes, that the labels do not have.
    truth : array or mapping, optional. The true classes, for ``method="ideal"``.
    by : str or mapping, optional
        Slices to ask about too, as `Evaluation.by`: a column of the items (``labels.with_items``), or a mapping from
        item to slice. All come from one fit and borrow from each other.
    cluster, weights : str or mapping, optional
        Which items came together, as several outputs for one prompt did, and what each item counts for: columns of the
        items, or mappings from item. The target is then the population, of which clusters are a sample.
    check_dependence : bool. Whether to check that labelers err independently and to warn where they do not.
    progress : callable, optional. Called with the share of the work done.
    engine : {"scipy", "numba", "torch", "dask"}, optional
        What works it out: "torch" (or "torch:cuda:0") for votes in memory, "dask" for votes that are scanned; by
        default as `trueup.engines` says.
    **options
        For the method; with a named noise model those of `trueup.noise.sample` (n_chains, n_warmup, n_draws), and
        n_draws for the plain answer.

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.baseline(n_items=300, random_state=0)
    >>> ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> low, high = ev["accuracy"].interval(0.95)
    >>> bool(low < ev["accuracy"].mean < high), ev.target, ev.noise
    (True, 'sample', 'dawid-skene')
    """
    settings = Settings.of_call(evaluate, locals())
    if "assume" in options:
        refuse_assumption("assume", options["assume"])
    check_engine(engine, is_scan=isinstance(labels, LabelScan), purpose="evaluate")
    if isinstance(labels, LabelScan):
        with using_engine(engine):
            system: dict[Hashable, Any] = {"classifier": predictions}
            task, core = prepare_scan(
                system,
                labels,
                settings,
                metrics=metrics,
                offers=_OF_SCANS,
                common=False,
                missing=missing,
                prior=prior,
                n_draws=options.get("n_draws", N_DRAWS),
            )
            return build_evaluation(task, check_dependence=check_dependence, core=core)
    chosen = METHODS[method]
    if (truth is not None) != (METHODS.resolve(method) == "ideal"):
        raise InvalidParameter('`truth` goes with `method="ideal"`, and that method needs it')
    is_plain = noise is None and METHODS.resolve(method) == "bayes"
    check_asked_of_all(alone=not is_plain, by=by, cluster=cluster, weights=weights, prior=prior)
    if is_plain:
        refuse_options(options, ("n_draws",))
        target = settle_target(target, cluster=cluster, weights=weights)
    task = prepare(
        predictions,
        labels,
        settings=settings,
        metrics=metrics,
        # A method that learns none has the usual one where the caller names none.
        noise=noise if is_plain or noise is not None or chosen.sees == "votes" else chosen.noise or DEFAULT_NOISE,
        target=_target_of(chosen, method, target),
        most_systems=1,
        needs_classes=True,
    )
    if is_plain:
        with using_engine(engine):
            return build_evaluation(task, prior, check_dependence=check_dependence, progress=progress, **options)
    with using_engine(engine), silenced_warnings():  # what fits would say is in the notes, in one place
        model = None if task.noise is None else settle_noise(task.noise, labels, draw=chosen.draws_noise)
        solution = _solve(task, chosen, METHODS.resolve(method), model, options, progress)
        notes, independence = notes_on(
            task,
            model,
            check_dependence=check_dependence,
            notes=(*unused_gold(labels), *solution.notes),
            counts=solution.counts.mean_counts,
        )
    return Evaluation(task, solution, model, notes, independence)


def _target_of(method: Method, name: str, target: Target | None) -> Target:
    if target is None:
        return DEFAULT_TARGET if DEFAULT_TARGET in method.targets else method.targets[0]
    check_choice(target, ("sample", "population"), name="target")
    if target not in method.targets:
        choices = " or ".join(repr(choice) for choice in method.targets)
        raise InvalidParameter(
            f"`target` of method {name!r} must be {choices}, got {target!r}; leave it out, or choose another method",
        )
    return target


def _solve(
    task: Task,
    method: Method,
    name: str,
    model: NoiseModel | None,
    options: Mapping[str, Any],
    progress: Callable[[float], None] | None,
) -> Solution:
    """Call the method with what it takes."""
    keywords: dict[str, Any] = {"random_state": np.random.default_rng(task.seed)}
    if len(method.targets) > 1:
        keywords["target"] = task.target
    if method.shows_progress:
        keywords["progress"] = progress
    if task.truth is not None:
        keywords["truth"] = task.truth
    if name != "bayes":  # whose options depend on the noise
        check_options(options, method.solve, name=f"`method={name!r}`", taken=(*keywords, "noise"))
    if method.sees == "votes":
        return method.solve(task.labels, task.codes, **keywords, **options)
    assert model is not None
    if method.sees == "noise":
        return method.solve(task.labels, task.codes, noise=model, **keywords, **options)
    problem = Problem(task.codes, model.log_likelihood(task.labels), model.prior_, task.labels.gold_codes)
    return method.solve(problem, **keywords, **options)
