"""The methods of `evaluate` by name, and what each takes.

A method is added by one file that holds its function and one line here; from outside of trueup by
`METHODS.register("name", Method(...))` or an entry point of the group "trueup.methods".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from trueup._base.registry import Registry
from trueup._base.types import Target
from trueup.estimators.learned_noise import solve_bayes
from trueup.estimators.problem import Solution
from trueup.estimators.published.practice import labeler_mean, labeler_median, majority
from trueup.estimators.published.su2024 import estimated_labels, ideal, mmse, no_predictions, prior_average
from trueup.estimators.published.tars2018 import dirty, noise_removal, unbiased
from trueup.exceptions import InvalidParameter


@dataclass(frozen=True)
class Method:
    """A way from predictions and votes to the posterior of the confusion counts.

    Parameters
    ----------
    solve : callable
        Returns a `Solution`. It takes what `sees` says, then keywords: ``random_state`` always, ``target`` if there is
        more than one, ``progress`` if it `shows_progress`, and its own options.
    sees : {"problem", "votes", "noise"}
        "problem": ``solve(problem, …)`` with arrays only, a `Problem`. "votes": ``solve(labels, codes, …)`` with the
        codes of the predictions. "noise": ``solve(labels, codes, noise=model, …)``.
    targets : tuple of str
        What it can be about, the default first.
    noise : str, optional
        The noise model that it needs where the caller names none; by default that of all doors.
    draws_noise : bool
        Whether it takes a noise model that is drawn together with the truth; else the model is fitted first.
    shows_progress : bool
    needs : str, optional
        What it cannot do without beyond predictions and votes, by the name of the argument; files do not hold it.
    description : str
        One sentence for the command line and the report.
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
            unbiased,
            "noise",
            targets=("population",),
            noise="dawid-skene",
            description="consolidated labels corrected by their confusion matrices",
        ),
        "dirty": Method(
            dirty,
            "noise",
            targets=("population",),
            noise="dawid-skene",
            description="consolidated labels taken for the truth",
        ),
        "noise-removal": Method(
            noise_removal,
            "noise",
            targets=("population",),
            noise="dawid-skene",
            needs="features",
            description="items that look mislabeled left out",
        ),
    },
    group="trueup.methods",
    check=_check,
)
