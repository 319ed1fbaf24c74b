"""The posterior of the confusion counts of one system under one noise model: drawn with the truth, or known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Target
from trueup._base.validation import RandomState, as_generator, check_choice, check_options
from trueup.data.labels import Labels
from trueup.estimators.exact_binary import bayes
from trueup.estimators.population import population_for
from trueup.estimators.problem import Problem, Solution
from trueup.estimators.truth import is_drawn, small_codes
from trueup.estimators.truth_draws import TruthDraws, not_mixed, solution_of
from trueup.noise import DEFAULT_NOISE, NoiseModel
from trueup.noise.sampling import sample
from trueup.noise.system_outputs import SystemOutputs


def solve_bayes(
    labels: Labels,
    predictions: npt.ArrayLike,
    *,
    noise: NoiseModel,
    target: Target = "sample",
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **options: Any,
) -> Solution:
    """The posterior of the confusion counts of one system: by draws where the noise is drawn too, else exact.

    Parameters
    ----------
    labels : Labels
    predictions : integer array of shape (n_items,)
        Codes of the predicted classes, -1 for none.
    noise : NoiseModel
        As `settle_noise` gives it.
    target : {"sample", "population"}
    **options
        Those of `trueup.noise.sample`, or of `trueup.estimators.bayes` where the noise is known or taken as known.
    """
    drawn = is_drawn(noise)
    kind = "learned noise" if drawn else "noise that is given or fitted"
    taken = ("random_state", "target", "progress", "raters", "item_prior", "warn")
    check_options(options, sample if drawn else bayes, name=f"method='bayes' with {kind}", taken=taken)
    if drawn:
        return bayes_learned(
            labels,
            predictions,
            model=noise,
            target=target,
            random_state=random_state,
            progress=progress,
            **options,
        )
    problem = Problem(predictions, noise.log_likelihood(labels), noise.prior_, labels.gold_codes)
    return bayes(problem, target=target, random_state=random_state, **options)


def bayes_learned(
    labels: Labels,
    predictions: npt.ArrayLike,
    *,
    model: str | NoiseModel = DEFAULT_NOISE,
    target: Target = "sample",
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> Solution:
    """The posterior of the confusion counts when the noise is learned from the same votes.

    The classifier is a rater whose matrix is unknown like everyone's. Each draw holds a truth for every item, the
    class shares and all matrices, so the interval carries the uncertainty of the noise too. With "clusters" the
    classifier shares those of the labelers: its errors may depend on theirs.

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
    codes = np.asarray(predictions, dtype=np.int64)
    outputs = SystemOutputs.of_classes(codes[None], labels.n_classes, np.ones(1))
    draws = sample(labels, model, outputs=outputs, random_state=rng, progress=progress, warn=False, **sampling)
    truth = TruthDraws(
        small_codes(draws.truths, labels.n_classes),
        draws.posterior,
        {"r_hat": draws.rhat, "effective_draws": draws.ess, "least_prior": float(draws.prior.mean(0).min())},
        draws.converged,
        () if draws.converged else (not_mixed(draws.rhat, draws.ess),),
    )
    return solution_of(truth, codes, labels.n_classes, population=population_for(target), rng=rng)
