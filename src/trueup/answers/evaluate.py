"""How good is a classifier really? The main door; no mathematics here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from trueup._base.types import Target
from trueup._base.validation import RandomState, as_generator, check_choice, check_level, check_options
from trueup.answers import findings as _findings
from trueup.answers.evaluation import Evaluation
from trueup.answers.setup import ScoreEstimates, choose_noise, positive_code
from trueup.data.labels import Labels
from trueup.data.predictions import AlignedPredictions, as_predictions
from trueup.estimators import LABELER_METHODS, METHODS, VOTE_METHODS, Problem, Solution
from trueup.estimators.truth import bayes_learned
from trueup.exceptions import InvalidParameter, InvalidPredictions, TrueupWarning
from trueup.metrics import MetricLike, as_metrics
from trueup.noise import NoiseModel, sample
from trueup.noise import fit as fit_noise

__all__ = ["evaluate"]


def evaluate(
    predictions: Any,
    labels: Labels,
    *,
    noise: str | NoiseModel | None = None,
    metrics: MetricLike | Sequence[MetricLike] | Mapping[str, MetricLike] = ("accuracy", "precision", "recall", "f1"),
    method: str = "bayes",
    target: Target = "sample",
    level: float = 0.95,
    positive: Hashable | None = None,
    missing: Literal["error", "ignore"] = "error",
    unknown: Literal["error", "ignore"] = "error",
    unknown_class: Literal["error", "ignore"] = "error",
    truth: Any = None,
    check_dependence: bool = True,
    random_state: RandomState = 0,
    progress: Callable[[float], None] | None = None,
    **options: Any,
) -> Evaluation:
    """The posterior of every metric, from predictions and noisy votes alone.

    Parameters
    ----------
    predictions : array, mapping or Predictions
        An array in the order of ``labels.items``, a mapping from item to class, or `Predictions` of one system.
    labels : Labels
        The votes. Gold items enter every method exactly.
    noise : str or NoiseModel, optional
        By default "clusters", and "dawid-skene" for the methods that need a confusion matrix of each labeler. Known
        noise as a model (`Confusion`, or `Difficulty` with its parameters); or the name of a model to be learned
        from the same votes: "clusters" (labelers and classifier may err together), "subtypes" (so may labelers on
        kinds of each class), "dawid-skene", "one-coin", "glad", "difficulty", "majority", or "auto".
    metrics : sequence or mapping of str, Metric or callables
        Names as in `trueup.metrics.list_metrics` (metrics of scores and of probabilities are for predictions that have
        them), and functions ``metric(y_true, y_pred) -> float``, which a mapping gives names: ``{"cost": cost}``.
    method : str
        "bayes" is calibrated. The others are published or common practice and are there for comparison: "mmse",
        "estimated-labels", "no-predictions", "prior-average", "labeler-mean", "labeler-median", "majority", "ideal".
        "unbiased" corrects consolidated labels by their confusion matrices, with "dirty" and "noise-removal" (needs
        ``features=X``) beside it.
    target : {"sample", "population"}
        The metric on exactly these items, or on the distribution they came from. "population" is for "bayes"; the
        methods "unbiased", "dirty" and "noise-removal" are always about it.
    level : float
        Of the intervals that are shown.
    positive : class, optional
        The positive class of two; the second by default.
    missing : {"error", "ignore"}
        What to do with items that have no prediction. Ignored items still teach the noise model.
    unknown, unknown_class : {"error", "ignore"}
        What to do with predictions for items, or of classes, that the labels do not have.
    truth : array or mapping, optional
        The true classes, for ``method="ideal"``.
    check_dependence : bool
        Whether to check that labelers err independently and to warn where they do not.
    random_state : int, Generator or None
    progress : callable, optional
        Called with the share of the work done.
    **options
        For the method; with learned noise and "bayes" those of `trueup.noise.sample`.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.baseline(n_items=300, random_state=0)
    >>> ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> low, high = ev["accuracy"].interval(0.95)
    >>> bool(low < ev["accuracy"].mean < high), ev.target, ev.noise
    (True, 'sample', 'dawid-skene')
    """
    method = check_choice(method, [*METHODS, *LABELER_METHODS, *VOTE_METHODS], name="method")
    check_choice(target, ("sample", "population"), name="target")
    check_level(level)
    if method in VOTE_METHODS:
        target = "population"
    elif target == "population" and method != "bayes":
        raise InvalidParameter(f'⟨target="population"⟩ needs ⟨method="bayes"⟩, got ⟨method={method!r}⟩')
    if (truth is not None) != (method == "ideal"):
        raise InvalidParameter('⟨truth⟩ goes with ⟨method="ideal"⟩, and that method needs it')
    rng = as_generator(random_state)
    aligned = as_predictions(predictions, labels).align(
        labels, missing=missing, unknown=unknown, unknown_class=unknown_class
    )
    codes = _hard_codes(aligned)
    code = positive_code(positive, labels, aligned)
    seed = random_state if not isinstance(random_state, np.random.Generator) else 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)  # what fits would say is in the findings, in one place
        choice = None
        if method not in LABELER_METHODS:
            default = "clusters" if method == "bayes" else "dawid-skene" if method in VOTE_METHODS else "subtypes"
            choice = choose_noise(default if noise is None else noise, labels, drawn=method == "bayes")
        model = None if choice is None else choice.model
        problem = _problem(codes, labels, model)
    is_drawn = choice is not None and choice.is_drawn
    _check_options(options, method, drawn=is_drawn)
    sampling: dict[str, Any] = {k: options[k] for k in ("n_chains", "n_warmup") if k in options}
    ranked = ScoreEstimates(labels, aligned, choice if method == "bayes" else None, target, code, seed, sampling)
    measures = as_metrics(metrics, labels.classes.tolist(), labels.classes[code])
    for metric in measures.values():
        if metric.looks_at != "classes":
            ranked.outputs(metric)
    if method in LABELER_METHODS:
        solution = LABELER_METHODS[method](labels, codes, random_state=rng, **options)
    elif method in VOTE_METHODS:
        solution = VOTE_METHODS[method](labels, codes, noise=model, random_state=rng, **options)
    elif model is not None and is_drawn:
        solution = bayes_learned(
            labels, codes, model=model, target=target, random_state=rng, progress=progress, **options
        )
    else:
        solution = _solve(method, problem, target, truth, labels, rng, options)
    findings, independence = _findings.collect(
        labels,
        codes,
        solution,
        learned=choice is not None and choice.is_learned,
        drawn=is_drawn,
        check_dependence=check_dependence,
    )
    if choice is not None and choice.caveat and method == "bayes":
        findings = (choice.caveat, *findings)
    return Evaluation(
        metrics=tuple(measures),
        method=method,
        target=target,
        noise="not used" if choice is None else choice.words,
        level=level,
        classes=labels.classes,
        n_items=int((codes >= 0).sum()),
        warnings=findings,
        independence=independence,
        solution=solution,
        problem=problem,
        labels=labels,
        scores=_scores_for(code, aligned),
        positive=code,
        measures=measures,
        ranked=ranked,
        seed=seed,
    )


def _hard_codes(aligned: AlignedPredictions) -> Any:
    if len(aligned.systems) != 1:
        raise InvalidPredictions(
            f"evaluate takes one system, got {len(aligned.systems)}; pick one with predictions['name'], or use compare"
        )
    if aligned.codes is None:
        raise InvalidPredictions("classes are needed, got scores only; name a ⟨threshold⟩, or predict classes")
    codes = aligned.codes[0]
    if not (codes >= 0).any():
        raise InvalidPredictions("no item has a prediction; check that predictions and labels name the same items")
    return codes


def _scores_for(positive: int, aligned: AlignedPredictions) -> Any:
    """The scores of the system, turned around where they speak for the other class."""
    if aligned.scores is None:
        return None
    return aligned.scores[0] if aligned.positive in (None, positive) else -aligned.scores[0]


def _problem(codes: Any, labels: Labels, model: NoiseModel | None) -> Problem:
    """The arrays a method sees; for drawn noise, those of the same model fitted, for curves and sensitivity."""
    if model is None:
        fitted = fit_noise(labels, "majority")
    elif model.is_fitted:
        fitted = model
    else:
        fitted = fit_noise(labels, "dawid-skene" if model.alias in ("clusters", "subtypes") else model)
    return Problem(codes, fitted.log_likelihood(labels), fitted.prior_, labels.gold_codes)


def _check_options(options: dict[str, Any], method: str, *, drawn: bool) -> None:
    """Raise if the method that will be run does not know an option."""
    work: Callable[..., Any] = sample if drawn else {**METHODS, **LABELER_METHODS, **VOTE_METHODS}[method]
    kind = "" if method != "bayes" else " and learned noise" if drawn else " and noise that is given or fitted"
    given = ("random_state", "target", "truth", "noise", "progress", "raters", "item_prior", "warn")
    check_options(options, work, name=f"⟨method={method!r}⟩{kind}", taken=given)


def _solve(
    method: str,
    problem: Problem,
    target: Target,
    truth: Any,
    labels: Labels,
    rng: np.random.Generator,
    options: dict[str, Any],
) -> Solution:
    extra: dict[str, Any] = {}
    if method == "bayes":
        extra["target"] = target
    if method == "ideal":
        aligned = as_predictions(truth, labels).align(labels, missing="ignore")
        extra["truth"] = None if aligned.codes is None else aligned.codes[0]
    return METHODS[method](problem, random_state=rng, **extra, **options)
