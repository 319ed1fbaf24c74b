"""The classifier as one more rater: votes, predictions, prior and all matrices drawn together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._validation import RandomState, as_generator, check_choice
from trueup.estimators.posterior import CountsPosterior, DrawnCounts, DrawnRates
from trueup.estimators.problem import Codes, Solution
from trueup.estimators.truth_draws import not_mixed
from trueup.labels import Labels
from trueup.noise.gibbs import PosteriorDraws, sample

__all__ = ["bayes_learned"]


def bayes_learned(
    labels: Labels,
    predictions: npt.ArrayLike,
    *,
    model: str = "subtypes",
    target: Literal["sample", "population"] = "sample",
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> Solution:
    """The posterior of the confusion counts when the noise is learned from the same votes.

    The classifier is a rater whose matrix is unknown like everyone's. Each draw holds a truth for every item, the
    class shares and all matrices, so the interval carries the uncertainty of the noise too. With "subtypes" the
    classifier shares the clusters of the labelers: its errors may depend on theirs.

    Parameters
    ----------
    labels : Labels
    predictions : integer array of shape (n_items,)
        Codes of the predicted classes, -1 for none.
    model, **sampling
        See `trueup.noise.sample`.
    target : {"sample", "population"}
        The confusion counts on these items, or the rates P(class) · P(prediction | class) behind them.
    """
    check_choice(target, ("sample", "population"), name="target")
    rng = as_generator(random_state)
    draws = sample(labels, model, raters=predictions, random_state=rng, progress=progress, warn=False, **sampling)
    n_classes = labels.n_classes
    notes = () if draws.converged else (not_mixed(draws),)
    if target == "sample":
        counts: CountsPosterior = DrawnCounts(draws.rater_counts[:, 0, :, :n_classes], truths=_truth_sampler(draws))
    else:
        counts = DrawnRates(draws.prior[:, :, None] * draws.rater_confusion[:, 0, :, :n_classes])
    return Solution(
        counts=counts,
        confusion=draws.rater_confusion[:, 0, :, :n_classes].mean(axis=0),
        n_iter=draws.n_draws,
        converged=draws.converged,
        diagnostics={
            "r_hat": draws.rhat,
            "effective_draws": draws.ess,
            "least_prior": float(draws.prior.mean(0).min()),
        },
        notes=notes,
        truth=draws.posterior,
    )


def _truth_sampler(draws: PosteriorDraws) -> Callable[[int, np.random.Generator], Codes]:
    def truths(n: int, rng: np.random.Generator) -> Codes:
        kept = len(draws.truths)
        order = rng.permutation(kept)[:n] if n <= kept else rng.integers(kept, size=n)
        return draws.truths[order]

    return truths
