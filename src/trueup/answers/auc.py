"""The area under the ROC curve from crowd labels, under four views of what the truth is; no mathematics here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from typing import Any, Literal

import numpy as np

from trueup._base.validation import RandomState, as_generator, check_choice
from trueup.answers.compare import judge
from trueup.answers.setup import check_outputs, positive_code, prepared, used_by
from trueup.data.labels import Labels
from trueup.data.predictions import as_predictions
from trueup.estimators.published.urkullu2019 import (
    ViewResult,
    bootstrap_view,
    deterministic,
    probabilistic,
    subjectivist,
)
from trueup.exceptions import InvalidLabels, InvalidPredictions, TrueupWarning
from trueup.metrics import get_metric
from trueup.noise import NoiseModel
from trueup.posteriors import DrawnEstimate, Estimate

__all__ = ["auc"]

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
    noise: str | NoiseModel = "clusters",
    target: Literal["sample", "population"] = "sample",
    positive: Hashable | None = None,
    n_draws: int = 2000,
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
    labels : Labels
    view : {"bayes", "deterministic", "subjectivist", "probabilistic"}
        "bayes": the posterior of the AUC from draws of the truth under `noise`. The others are those of Urkullu et al.
        (2019), for two classes: the majority is the truth, ties broken by chance (DGT); every labeler is a truth of
        his own, averaged by his number of votes (SGT; labelers who gave one class only are left out); the truth is a
        probability, estimated by the share of votes, and the AUC becomes the concordance with it (PGT). Their spread
        is a bootstrap: how much another sample would differ, not how wrong the labels are.
    noise, target, positive, n_draws, random_state, progress, **sampling
        As in `compare`, for the view "bayes"; `target` is by default these very items.

    Returns
    -------
    Estimate

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
    check_choice(view, ("bayes", *_VALUE_OF), name="view")
    if view == "bayes":
        judged = judge(
            scores,
            labels,
            metric="auc",
            noise=noise,
            target=target,
            positive=positive,
            items="own",
            unknown="error",
            unknown_class="error",
            n_draws=n_draws,
            check_dependence=False,
            random_state=random_state,
            progress=progress,
            least_systems=1,
            missing="error",
            **sampling,
        )
        _one(judged.aligned.n_systems)
        for sentence in judged.warnings:
            warnings.warn(sentence, TrueupWarning, stacklevel=2)
        return DrawnEstimate(judged.values[:, 0], bounds=(0.0, 1.0), name="auc")
    if labels.n_classes != 2:
        raise InvalidLabels(
            f'the view {view!r} is for two classes, got {labels.n_classes}; use ⟨view="bayes"⟩, which averages over '
            "classes"
        )
    aligned = as_predictions(scores, labels, of_scores=True, positive=positive).align(labels)
    _one(aligned.n_systems)
    code = positive_code(positive, labels, aligned)
    metric = get_metric("auc", labels.classes.tolist())
    aligned = prepared(aligned, metric, 2, code)
    used_by(metric, aligned)
    for sentence in check_outputs(aligned, metric):
        warnings.warn(sentence, TrueupWarning, stacklevel=2)
    values = aligned.scores
    assert values is not None
    rng = as_generator(random_state)
    # Only the majority needs chance, for its ties.
    chance = {"random_state": rng} if view == "deterministic" else {}
    value = _VALUE_OF[view](labels, values, positive=code, **chance).values[0]
    if np.isnan(value):
        raise InvalidLabels(
            f"the view {view!r} of the truth knows one class only, got no two items that differ in it; add items or "
            "votes of the other class"
        )
    draws = bootstrap_view(labels, values, view=view, positive=code, n_draws=min(n_draws, 400), random_state=rng)[0]
    # The draws tell the spread; the middle is the value that the view defines.
    return DrawnEstimate(np.clip(draws + value - np.nanmean(draws), 0.0, 1.0), bounds=(0.0, 1.0), name="auc")


def _one(n_systems: int) -> None:
    if n_systems != 1:
        raise InvalidPredictions(f"auc takes one system, got {n_systems}; use compare for several")
