"""The area under the ROC curve from crowd labels, under four views of what the truth is; no mathematics here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from typing import Any, Literal

import numpy as np

from trueup._base.types import Target
from trueup._base.validation import RandomState, check_choice, check_integer, refuse_options
from trueup.answers.build_answers import N_DRAWS
from trueup.answers.compare import measure
from trueup.answers.prepare import DEFAULT_TARGET, Settings, check_asked_of_all, prepare
from trueup.core.prior import CrowdPrior
from trueup.data.labels import Labels
from trueup.estimators.published.urkullu2019 import (
    ViewResult,
    bootstrap_view,
    deterministic,
    probabilistic,
    subjectivist,
)
from trueup.exceptions import InvalidLabels, InvalidParameter, TrueupWarning
from trueup.noise import NoiseModel
from trueup.posteriors import DrawnEstimate, Estimate

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
                parameter=name,
            )
    check_asked_of_all(alone=noise is not None, prior=prior)
    refuse_options(sampling, ("n_chains", "n_warmup") if noise is not None else ())
    task = prepare(
        scores,
        labels,
        settings=settings,
        metrics=["auc"],
        noise=noise,
        target=target,
        positive=positive,
        level=0.95,
        random_state=random_state,
        most_systems=1,
    )
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
