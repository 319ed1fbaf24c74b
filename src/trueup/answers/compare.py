"""Which of several systems is better? A front door; no mathematics here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Target
from trueup._base.validation import RandomState, as_generator, check_choice, check_level
from trueup.answers import findings as _findings
from trueup.answers.comparison import Comparison
from trueup.answers.setup import (
    NoiseChoice,
    check_outputs,
    choose_noise,
    given,
    positive_code,
    prepared,
    used_by,
)
from trueup.data.labels import Labels
from trueup.data.predictions import AlignedPredictions, are_in_votes, as_predictions
from trueup.estimators.system_features import Used, system_prior
from trueup.estimators.system_values import system_values
from trueup.estimators.truth import TruthDraws, draw_truths
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions, Sentence, TrueupWarning
from trueup.metrics import Metric, MetricLike, as_metric
from trueup.noise import NoiseModel

__all__ = ["JudgedSystems", "compare", "judge"]

_FUNCTION_DRAWS = 400
_SAMPLING = ("n_chains", "n_warmup")


def compare(
    systems: Any,
    labels: Labels,
    *,
    metric: MetricLike = "accuracy",
    noise: str | NoiseModel = "clusters",
    target: Target = "population",
    level: float = 0.95,
    positive: Hashable | None = None,
    items: Literal["common", "own"] | None = None,
    unknown: Literal["error", "ignore"] = "ignore",
    unknown_class: Literal["error", "ignore"] = "error",
    n_draws: int = 2000,
    check_dependence: bool = True,
    random_state: RandomState = 0,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> Comparison:
    """Rank systems by a metric, from their outputs and noisy votes alone.

    All systems are judged on the same draws of the truth, so differences are paired. What the systems say helps to
    draw the truth, as features of a log-linear model of it that is learned from the votes: how much the systems depend
    on each other does not matter.

    Parameters
    ----------
    systems : mapping or Predictions
        ``{name: predictions}``, with what `evaluate` takes for each; for metrics of scores also arrays of scores. Or
        a frame with the columns item, system, and prediction or score. ``labels.as_systems()`` for the labelers
        themselves; a labeler whose votes are in `labels` is judged with them, any other as a system.
    labels : Labels
        The votes; gold items have their known truth in every draw.
    metric : str, Metric or callable
        A name as in `trueup.metrics.list_metrics`, or a function ``metric(y_true, y_pred) -> float`` where more is
        better, which a pair or a mapping gives a name: ``{"cost": cost}``.
    noise : str or NoiseModel
        As in `evaluate`.
    target : {"population", "sample"}
        Which system is better on the distribution the items came from, or on exactly these items.
    level : float
        Of the intervals and groups that are shown.
    positive : class, optional
        The positive class of two; by default that of the scores, or the second. Arrays of scores that name no class
        speak for it; scores that name the other one are turned around.
    items : {"common", "own"}, optional
        Judge all systems on the items that all have predicted, or each on its own; by default "common", and "own" for
        labelers. Whatever is left out is said in `Comparison.warnings`.
    unknown, unknown_class : {"error", "ignore"}
        What to do with predictions for items, or of classes, that the labels do not have.
    n_draws : int
    check_dependence : bool
        Whether to check that labelers err independently and to warn where they do not.
    random_state : int, Generator or None
    progress : callable, optional
        Called with the share of the work done.
    **sampling
        For `trueup.noise.sample`: n_chains, n_warmup.

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.baseline(n_items=400, random_state=0)
    >>> worse = np.where(np.arange(400) % 5, sim.predictions, 1 - sim.predictions)
    >>> cmp = tu.compare({"a": sim.predictions, "b": worse}, sim.labels, noise="dawid-skene", n_draws=400)
    >>> cmp.ranking, cmp.prob_best["a"] > 0.99, bool(cmp.difference("a", "b").interval(0.95)[0] > 0)
    (['a', 'b'], True, True)
    """
    check_level(level)
    judged = judge(
        systems,
        labels,
        metric=metric,
        noise=noise,
        target=target,
        positive=positive,
        items=items,
        unknown=unknown,
        unknown_class=unknown_class,
        n_draws=n_draws,
        check_dependence=check_dependence,
        random_state=random_state,
        progress=progress,
        least_systems=2,
        **sampling,
    )
    return Comparison(
        systems=judged.aligned.systems,
        metric=judged.metric.name,
        higher_is_better=judged.metric.higher_is_better is not False,
        bounds=judged.metric.bounds,
        draws=judged.values,
        target=target,
        noise=judged.noise.words,
        level=level,
        n_items=judged.n_items,
        warnings=judged.warnings,
        truth=judged.truth,
        codes=judged.aligned.codes,
        labels=labels,
    )


@dataclass(frozen=True, eq=False)
class JudgedSystems:
    """What `judge` returns: the metric of every system on every draw, shape (n_draws, n_systems), and how."""

    aligned: AlignedPredictions
    metric: Metric
    noise: NoiseChoice
    values: npt.NDArray[np.float64]
    truth: TruthDraws
    n_items: int
    warnings: tuple[str, ...]


def judge(
    systems: Any,
    labels: Labels,
    *,
    metric: MetricLike,
    noise: str | NoiseModel,
    target: Target,
    positive: Hashable | None,
    items: Literal["common", "own"] | None,
    unknown: Literal["error", "ignore"],
    unknown_class: Literal["error", "ignore"],
    n_draws: int,
    check_dependence: bool,
    random_state: RandomState,
    progress: Callable[[float], None] | None,
    least_systems: int,
    missing: Literal["error", "ignore"] = "ignore",
    **sampling: Any,
) -> JudgedSystems:
    """Align, draw the truth, measure; what `compare` and `auc` share."""
    check_choice(target, ("sample", "population"), name="target")
    for option in sampling:
        check_choice(option, _SAMPLING, name="an option of sampling")
    if not isinstance(labels, Labels):
        raise InvalidLabels(
            f"labels must be Labels, got {type(labels).__name__}; make them with Labels.from_frame or from_matrix, and "
            "pass the systems first"
        )
    rng = as_generator(random_state)
    measured = _metric(metric, labels, positive)
    predictions = as_predictions(
        systems, labels, of_scores=measured.looks_at != "classes", positive=positive, least=least_systems
    )
    aligned = predictions.align(labels, missing=missing, unknown=unknown, unknown_class=unknown_class)
    code = positive_code(positive, labels, aligned)
    if measured.needs == "counts":
        measured = _metric(metric, labels, labels.classes.tolist()[code])
    aligned = prepared(aligned, measured, labels.n_classes, code)
    used = used_by(measured, aligned)
    own = check_choice(items or ("own" if predictions.are_labelers else "common"), ("common", "own"), name="items")
    found = check_outputs(aligned, measured)
    judged, some = _restricted(aligned, used, common=own == "common")
    found += some
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)  # what fits would say is in the findings, in one place
        choice = choose_noise(noise, labels)
        # Labelers as systems are in the votes already, unless these are the votes of others.
        outside = ~are_in_votes(aligned, labels)
        prior = system_prior(judged.of_systems(outside), labels.n_classes, used=used) if outside.any() else None
        truth = draw_truths(
            labels, choice.model, item_prior=prior, n_draws=n_draws, random_state=rng, progress=progress, **sampling
        )
    values = system_values(
        _fewer(truth, measured),
        judged,
        measured,
        classes=labels.classes,
        positive=code,
        target=target,
        random_state=rng,
    )
    votes, _ = _findings.about_votes(
        labels, learned=choice.is_learned, drawn=choice.is_drawn, check_dependence=check_dependence
    )
    if choice.caveat:
        found.append(choice.caveat)
    found += [*votes, *truth.notes, *_undefined(values, aligned, measured)]
    if judged.codes is not None and judged.n_systems <= 50:
        for k in np.flatnonzero(outside):
            found += _findings.copies(labels, judged.codes[k], name=f"System {judged.systems.tolist()[k]!r}")
    return JudgedSystems(
        judged, measured, choice, values, truth, int(given(judged, used).any(axis=0).sum()), tuple(map(Sentence, found))
    )


def _fewer(truth: TruthDraws, metric: Metric) -> Codes:
    """The draws a metric is computed on: a function of labels takes its time, so it sees some of them."""
    if metric.needs != "labels":
        return truth.truths
    return truth.truths[:: max(1, truth.n_draws // _FUNCTION_DRAWS)]


def _metric(metric: MetricLike, labels: Labels, positive: Hashable | None) -> Metric:
    named = as_metric(metric, labels.classes.tolist(), positive=positive)
    if named.higher_is_better is None:
        raise InvalidParameter(
            f"systems cannot be ranked by {named.name!r}, which is neither good nor bad; name another"
        )
    return named


def _restricted(aligned: AlignedPredictions, used: Used, *, common: bool) -> tuple[AlignedPredictions, list[str]]:
    """The outputs on the items that all systems have, or as they are; and what was left out, in words."""
    found = []
    if aligned.unknown_items.any():
        worst = int(aligned.unknown_items.argmax())
        found.append(
            f"Predictions for items without labels were left out: {aligned.unknown_items[worst]:,} of system "
            f"{aligned.systems.tolist()[worst]!r}, {aligned.unknown_items.sum():,} in all."
        )
    if aligned.unknown_classes.any():
        found.append(f"{aligned.unknown_classes.sum():,} predictions of classes the labels do not have were left out.")
    there = given(aligned, used)
    shared = np.asarray(there.all(axis=0))
    if shared.all():
        return aligned, found
    if not common:
        return aligned, [*found, "The systems are judged on different items, each on its own: ranks may reflect that."]
    if not shared.any():
        raise InvalidPredictions(
            "the systems have no item in common, got predictions for different items; predict the same items, or pass "
            '⟨items="own"⟩'
        )
    lost = there.any(axis=0) & ~shared
    found.append(
        f"{int(lost.sum()):,} items lack the prediction of some system and were left out; {int(shared.sum()):,} are "
        'judged. Pass ⟨items="own"⟩ to judge each system on all of its items.'
    )
    return aligned.on_items(shared), found


def _undefined(values: npt.NDArray[np.float64], aligned: AlignedPredictions, metric: Metric) -> list[str]:
    shares = np.isnan(values).mean(axis=0)
    names = aligned.systems.tolist()
    never = np.flatnonzero(shares == 1)
    why = "only one class occurs in the truth or in its predictions"
    if len(never) == len(names):
        raise InvalidPredictions(
            f"{metric.name} is undefined for system {names[0]!r} on every drawn truth, and so for all; most likely "
            f"{why}: add items or votes of another class"
        )
    found = []
    if len(never):
        some = f"system {names[never[0]]!r}" + (f" and {len(never) - 1:,} more" if len(never) > 1 else "")
        found.append(f"{metric.name} is undefined for {some} on every drawn truth and ranked last; most likely {why}.")
    most = int(np.where(shares < 1, shares, -1).argmax())
    if 0 < shares[most] < 1:
        found.append(
            f"{metric.name} is undefined for system {names[most]!r} on {shares[most]:.1%} of the drawn truths (one "
            "class only); mean and interval are of the others, and in probabilities these count as its worst."
        )
    return found
