"""How good is a classifier really? The first of the public functions, from the question over the core to the answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from trueup._base.engines import check_engine, using_engine
from trueup._base.types import Codes, Target
from trueup._base.validation import (
    RandomState,
    check_choice,
    check_integer,
    check_options,
    refuse_assumption,
    refuse_options,
)
from trueup.answers.evaluation import Evaluation
from trueup.answers.notes import HOW_TO_CHECK, notes_on
from trueup.answers.prepare import (
    DEFAULT_TARGET,
    Settings,
    Task,
    check_asked_of_all,
    prepare,
    settle_target,
    solution_on,
)
from trueup.core.base import base_of
from trueup.core.checks import NOTED, REFUSED, Surprise
from trueup.core.prior import CrowdPrior, to_angle
from trueup.core.truth import TruthModel, drawn_gold, labels_of_base, own_centres
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.estimators import METHODS, Method, Problem, Solution
from trueup.estimators.truth import draw_truths, is_drawn, settle_noise
from trueup.exceptions import InvalidParameter, silenced_warnings
from trueup.metrics import MetricLike
from trueup.noise import DEFAULT_NOISE, NoiseModel, Ordinal
from trueup.noise.chain import SystemOutputs

N_DRAWS = 2048
_OF_SCANS = (
    *("metrics", "prior", "target", "level", "positive", "missing", "unknown", "check_dependence", "random_state"),
    *("engine", "n_draws"),
)
_OF_RATES = ("share", "mean_score", "preferences")


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
        The positive class of two; by default that of the scores, or the second of ``labels.classes``.
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
    name, chosen = METHODS.resolve(method), METHODS[method]
    if (truth is not None) != (name == "ideal"):
        raise InvalidParameter('`truth` goes with `method="ideal"`, and that method needs it')
    is_plain = noise is None and name == "bayes"
    check_asked_of_all(alone=not is_plain, by=by, cluster=cluster, weights=weights, prior=prior)
    if is_plain:
        refuse_options(options, ("n_draws",))
        target = settle_target(target, cluster=cluster, weights=weights)
    elif noise is None and chosen.sees != "votes":
        noise = chosen.noise or DEFAULT_NOISE
    with using_engine(engine):
        task = prepare(
            predictions,
            labels,
            settings=settings,
            metrics=metrics,
            noise=noise,
            target=_target_of(chosen, method, target),
            most_systems=1,
            needs_classes=True,
            of_scans=_OF_SCANS,
        )
        if is_plain:
            return build_evaluation(task, prior, check_dependence=check_dependence, progress=progress, **options)
        with silenced_warnings():  # what fits would say is in the notes, in one place
            model = None if task.noise is None else settle_noise(task.noise, task.labels, draw=chosen.draws_noise)
            solution = _solve(task, chosen, name, model, options, progress)
            notes, independence = notes_on(
                task,
                model,
                check_dependence=check_dependence,
                notes=(*unused_gold(task.labels), *solution.notes),
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


# ------------------------------------------------------------------ from the question to the answer


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
    settings: dict[str, Any] = {"prior": prior or CrowdPrior(), "n_draws": n_draws, "seed": task.seed}
    if task.sample is not None:
        base, times = task.sample
        predicted = task.outputs.outputs("classes")
        return TruthModel(task.labels, base, predicted, positive=task.positive, times=times, **settings)
    labels = labels_of_base(task.labels)
    order = next((metric.order for metric in task.metrics.values() if metric.order is not None), None)
    if order is not None and labels.n_classes > 2:  # of two classes, the order says nothing
        candidates = [*candidates, Ordinal(order=[labels.classes.tolist()[code] for code in order])]
    base = base_of(labels, candidates)
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
        **settings,
    )


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
    """The note on checked items drawn at random that a named noise model or method does not use."""
    n_drawn = int((drawn_gold(labels) >= 0).sum())
    if n_drawn < 5:  # too few to correct anything
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
        verb = "contradict the votes" if is_refused else "are odd beside the votes"
        means = "so there is no interval" if is_refused else "so be careful with the interval"
        notes.append(f"The chosen items {verb}: {_right_words(worst, events)}, {means}; {HOW_TO_CHECK}.")
    odd = min(of_drawn, key=lambda found: found.chance, default=None)
    if odd is not None and odd.chance < REFUSED / len(of_drawn):
        notes.append(
            f"The checked items are far from what votes suggest: {_right_words(odd, events)}. The labelers err "
            "together, and the answer follows the checked items more than the votes."
        )
    return is_refused, notes


def _right_words(found: Surprise, events: Sequence[str]) -> str:
    of_items = f"{found.n_right:,} of {found.n_items:,} items"
    return f"{events[found.system]} on {of_items}, where votes suggest {found.expected:.0f}"


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
    if gap <= 0.2:  # radians; beyond that votes alone were seen to be too low
        return []
    system = "the classifier" if len(names) == 1 else repr(name)
    return [
        f"The votes leave the class of most items open. They suggest that {system} is right on {expected:.0%}; if its "
        f"errors are independent of those of the labelers, it is right on about {alone:.0%}; {HOW_TO_CHECK}."
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
    if n_seen >= 0.7 * expected:  # with fewer, checked items were not drawn one by one
        return []
    return [
        f"The {len(checked):,} checked items come from {n_seen:,} clusters; items drawn one by one would come "
        f"from about {expected:.0f}. Items of one cluster are alike, so they count as fewer; check items of more "
        "clusters (`trueup.labelers.draw_sample`)."
    ]
