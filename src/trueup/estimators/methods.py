"""The methods of `evaluate` by name, and what each takes.

A method is added by one file that holds its function and one line here; from outside of trueup by
`METHODS.register("name", Method(...))` or an entry point of the group "trueup.methods".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._base.registry import Registry
from trueup._base.types import Target
from trueup._base.validation import RandomState, as_generator, check_choice, check_options
from trueup.data.labels import Labels
from trueup.estimators.given_noise import bayes
from trueup.estimators.problem import Problem, Solution
from trueup.estimators.published.practice import labeler_mean, labeler_median, majority
from trueup.estimators.published.su2024 import estimated_labels, ideal, mmse, no_predictions, prior_average
from trueup.estimators.published.tars2018.noise_removal import dirty, noise_removal
from trueup.estimators.published.tars2018.unbiased import unbiased
from trueup.estimators.system_values import population_for
from trueup.estimators.truth import is_drawn, solution_of, truths_of_draws
from trueup.exceptions import InvalidParameter
from trueup.noise import DEFAULT_NOISE, NoiseModel
from trueup.noise.chain import SystemOutputs
from trueup.noise.sampling import sample


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
    """The posterior of the confusion counts of one system: by draws where the noise is drawn too, else exact."""
    drawn = is_drawn(noise)
    kind = "learned noise" if drawn else "noise that is given or fitted"
    taken = ("random_state", "target", "progress", "warn")
    check_options(options, sample if drawn else bayes, name=f"method='bayes' with {kind}", taken=taken)
    if drawn:
        return bayes_learned(
            labels, predictions, model=noise, target=target, random_state=random_state, progress=progress, **options
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
    class shares and all matrices, so the interval carries the uncertainty of the noise too.

    Parameters
    ----------
    predictions : integer array of shape (n_items,). Codes of the predicted classes, -1 for none.
    target : {"sample", "population"}
        The confusion counts on these items, or the rates P(class) · P(prediction | class) behind them.
    model, **sampling : see `trueup.noise.sample`
    """
    check_choice(target, ("sample", "population"), name="target")
    rng = as_generator(random_state)
    codes = np.asarray(predictions, dtype=np.int64)
    outputs = SystemOutputs.of_classes(codes[None], labels.n_classes, np.ones(1))
    draws = sample(labels, model, outputs=outputs, random_state=rng, progress=progress, warn=False, **sampling)
    truth = truths_of_draws(draws, least_prior=float(draws.prior.mean(0).min()))
    return solution_of(truth, codes, labels.n_classes, population=population_for(target), rng=rng)


@dataclass(frozen=True)
class Method:
    """A way from predictions and votes to the posterior of the confusion counts.

    Parameters
    ----------
    solve : callable
        Returns a `Solution`. It takes what `sees` says, then keywords: ``random_state`` always, ``target`` if there is
        more than one, ``progress`` if it `shows_progress`, and its own options.
    sees : {"problem", "votes", "noise"}
        ``solve(problem, …)`` with a `Problem`, ``solve(labels, codes, …)`` or ``solve(labels, codes, noise=model, …)``.
    targets : tuple of str. What it can be about, the default first.
    noise : str, optional. The noise model that it needs where the caller names none.
    draws_noise : bool. Whether it takes a noise model that is drawn with the truth; else the model is fitted first.
    needs : str, optional. The argument that it cannot do without beyond predictions and votes.
    description : str. One sentence for the command line and the report.
    """

    solve: Callable[..., Solution]
    sees: Literal["problem", "votes", "noise"]
    targets: tuple[Target, ...] = ("sample",)
    noise: str | None = None
    draws_noise: bool = False
    shows_progress: bool = False
    needs: str | None = None
    description: str = ""


def _check(name: str, method: Any) -> None:
    if not isinstance(method, Method):
        raise InvalidParameter(f"a method must be a Method, got {method!r} for {name!r}; wrap its function in one")


_OF_CONSOLIDATED: Any = {"sees": "noise", "targets": ("population",), "noise": "dawid-skene"}

METHODS: Registry[Method] = Registry(
    "method",
    {
        "bayes": Method(
            solve_bayes,
            "noise",
            targets=("sample", "population"),
            draws_noise=True,
            shows_progress=True,
            description="truth, class shares and the classifier's matrix inferred together; calibrated",
        ),
        "mmse": Method(mmse, "problem", description="Su 2024: counts given an estimated operating point"),
        "estimated-labels": Method(
            estimated_labels, "problem", description="the most probable class of each item taken for its truth"
        ),
        "no-predictions": Method(
            no_predictions, "problem", description="Su 2024: the truth from votes alone, as if predictions said nothing"
        ),
        "prior-average": Method(
            prior_average, "problem", description="Su 2024, 2.6.2: averaged over the prior of the operating point"
        ),
        "ideal": Method(ideal, "problem", needs="truth", description="the truth is known; for comparison"),
        "labeler-mean": Method(labeler_mean, "votes", description="each labeler taken for the truth, averaged"),
        "labeler-median": Method(
            labeler_median, "votes", description="each labeler taken for the truth, the median of them"
        ),
        "majority": Method(majority, "votes", description="the majority vote taken for the truth"),
        "unbiased": Method(
            unbiased, description="consolidated labels corrected by their confusion matrices", **_OF_CONSOLIDATED
        ),
        "dirty": Method(dirty, description="consolidated labels taken for the truth", **_OF_CONSOLIDATED),
        "noise-removal": Method(
            noise_removal, needs="features", description="items that look mislabeled left out", **_OF_CONSOLIDATED
        ),
    },
    group="trueup.methods",
    check=_check,
)
