"""What if the classifier errs where the labelers err?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup._optional import require
from trueup._validation import check_integer
from trueup.estimators.problem import Array, Problem, class_posterior

__all__ = ["Sensitivity", "error_sensitivity"]


@dataclass(frozen=True)
class Sensitivity:
    """The error rate as a function of how much the classifier's errors depend on the labels' errors.

    Attributes
    ----------
    dependence : array
        From 0, errors are independent, to 1, one kind of error always comes with the other.
    error : array
        The true error rate at each; the ends are the bounds of Lam and Stork (2003) for non-negative dependence.
    apparent : float
        The error rate against the most probable labels.
    mislabeling : float
        The expected error rate of those labels.
    """

    dependence: Array
    error: Array
    apparent: float
    mislabeling: float

    @property
    def accuracy(self) -> Array:
        """One minus `error`."""
        return 1 - self.error

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest error rate."""
        return float(self.error.min()), float(self.error.max())

    def plot(self, ax: Any = None) -> Any:
        """Error rate against dependence; returns the Axes."""
        if ax is None:
            _, ax = require("matplotlib.pyplot", purpose="Sensitivity.plot()").subplots(layout="constrained")
        ax.plot(self.dependence, self.error)
        ax.axhline(self.apparent, linestyle=":", color="gray", label="against the labels")
        ax.set_xlabel("dependence of the classifier's and the labels' errors")
        ax.set_ylabel("true error rate")
        ax.legend()
        return ax


def error_sensitivity(problem: Problem, *, truth: Array | None = None, n_points: int = 21) -> Sensitivity:
    """Move from independent errors to the most dependent ones that the marginal rates allow.

    With ε the error rate of the most probable labels given the votes, e that of the classifier and q the share of
    items on which both err, the apparent error is A = e + ε − c q, where c − 1 is the chance that two errors on an
    item name the same class: c = 2 for two classes, C/(C − 1) for errors spread evenly over more. q runs from eε
    (independence, e = (A − ε)/(1 − cε)) to min(e, ε) with errors that agree (c = 2, e = A + ε); for two classes the
    ends are those of Lam and Stork (2003).

    Parameters
    ----------
    problem : Problem
    truth : array of shape (n_items, n_classes), optional
        P(class) of each item, by which ε is judged; by default what the votes say under the problem's noise. Draws
        that learn the noise together with the truth give a better ε, since a fitted model is too sure of itself.
    n_points : int
    """
    check_integer(n_points, name="n_points", low=2)
    posterior = class_posterior(problem)
    predicted = problem.predictions >= 0
    label = posterior.argmax(axis=1)
    apparent = float((label[predicted] != problem.predictions[predicted]).mean())
    judged = posterior if truth is None else truth
    mislabeling = float(1 - judged[predicted, label[predicted]].mean())
    dependence = np.linspace(0.0, 1.0, n_points)
    error = np.array([_solve(apparent, mislabeling, x, problem.n_classes) for x in dependence])
    return Sensitivity(dependence, error, apparent, mislabeling)


def _solve(apparent: float, mislabeling: float, dependence: float, n_classes: int) -> float:
    """The e with apparent = e + ε − (1 − λ) c e ε − 2 λ min(e, ε), kept within [0, 1]."""
    eps, lam = mislabeling, dependence
    apart = 1 - (1 - lam) * eps * n_classes / (n_classes - 1)
    if apart > 1e-9:
        above = (apparent - eps + 2 * lam * eps) / apart
        if above >= eps:
            return min(above, 1.0)
    within = apart - 2 * lam
    below = (apparent - eps) / within if abs(within) > 1e-9 else eps
    return float(np.clip(below, 0.0, eps))
