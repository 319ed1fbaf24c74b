"""Curves over thresholds, and how much it matters that errors come together.

`performance_curve` has ROC and precision–recall curves with their uncertainty, `error_sensitivity` the error rate as a
function of how much the errors of classifier and labels depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy

from trueup._base.types import Codes, Floats
from trueup._base.validation import check_choice, check_integer, check_level
from trueup.estimators.given_noise import bayes
from trueup.estimators.problem import Problem, class_posterior
from trueup.estimators.system_values import system_counts
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric, get_metric
from trueup.posteriors import DrawnEstimate, Estimate
from trueup.posteriors.estimate import new_axes

CurveKind = Literal["roc", "pr"]
_AXES = {"roc": ("false_alarm_rate", "recall"), "pr": ("recall", "precision")}


@dataclass(frozen=True)
class Curve:
    """Two metrics at each of many thresholds, each with its posterior."""

    kind: CurveKind
    thresholds: Floats  # (n,): a score at or above the threshold counts as positive
    x: Floats  # (n,): posterior means of the false-alarm rate, or of recall
    y: Floats  # (n,): those of recall, or of precision
    x_interval: Floats  # (n, 2)
    y_interval: Floats  # (n, 2)
    draws: Floats  # (n, n_draws, 2): joint draws of both at each threshold
    level: float

    @property
    def area(self) -> float:
        """The area under the mean ROC curve, the corners (0, 0) and (1, 1) added; NaN for precision–recall."""
        if self.kind != "roc":
            return float("nan")
        order = np.lexsort((self.y, self.x))
        x, y = np.r_[0.0, self.x[order], 1.0], np.r_[0.0, self.y[order], 1.0]
        return float(scipy.integrate.trapezoid(y, x))

    def heat_map(self, n_bins: int = 100) -> tuple[Floats, Floats]:
        """How probable it is that the curve passes through each cell of the unit square (Su 2024, 5.4.3).

        Returns the edges and an array (n_bins, n_bins) of the share of draws, rows along y, added over thresholds.
        """
        points = self.draws.reshape(-1, 2)
        points = points[np.isfinite(points).all(axis=1)]
        edges = np.linspace(0, 1, check_integer(n_bins, name="n_bins", low=2) + 1)
        heat, _, _ = np.histogram2d(points[:, 1], points[:, 0], bins=(edges, edges))
        return edges, heat / self.draws.shape[1]

    def plot(self, ax: Any = None, *, heat: bool = False) -> Any:
        """The mean curve with its band, over the heat map if asked for; returns the Axes."""
        ax = new_axes(ax, purpose="Curve.plot()")
        if heat:
            edges, values = self.heat_map()
            ax.pcolormesh(edges, edges, np.sqrt(values), cmap="Blues")
        order = np.argsort(self.x, kind="stable")
        x, (low, high) = self.x[order], self.y_interval[order].T
        ax.fill_between(x, low, high, alpha=0.3, label=f"{self.level:.0%} band")
        ax.plot(x, self.y[order], label="posterior mean")
        x_name, y_name = (name.replace("_", " ") for name in _AXES[self.kind])
        ax.set(xlabel=x_name, ylabel=y_name, xlim=(0, 1), ylim=(0, 1.02))
        ax.legend()
        return ax


def curve_thresholds(scores: Floats, n_thresholds: int = 41) -> Floats:
    """Quantiles of the scores, each once."""
    has_score = np.isfinite(scores)
    if not has_score.any():
        raise InvalidParameter("curves need scores, got none")
    shares = np.linspace(0, 1, check_integer(n_thresholds, name="n_thresholds", low=2))
    return np.unique(np.quantile(scores[has_score], shares, method="nearest"))


def _codes_at(scores: Floats, threshold: float, positive: int) -> Codes:
    """The classes predicted by a threshold, -1 without a score."""
    codes = np.where(scores >= threshold, positive, 1 - positive)
    return np.where(np.isfinite(scores), codes, -1)


def _metrics(kind: CurveKind, positive: int) -> list[Metric]:
    return [get_metric(name, [0, 1], positive) for name in _AXES[check_choice(kind, tuple(_AXES), name="kind")]]


def curve_of_truths(
    truths: Codes,
    scores: Floats,
    *,
    kind: CurveKind = "roc",
    n_thresholds: int = 41,
    positive: int = 1,
    level: float = 0.95,
) -> Curve:
    """The curve from drawn truths: each threshold makes a classifier, which is measured on every draw."""
    thresholds = curve_thresholds(scores, n_thresholds)
    codes = np.stack([_codes_at(scores, threshold, positive) for threshold in thresholds])
    counts = system_counts(truths, codes, 2)
    values = [metric(counts).T for metric in _metrics(kind, positive)]
    x, y = ([DrawnEstimate(row, bounds=(0.0, 1.0)) for row in rows] for rows in values)
    return _curve(kind, thresholds, x, y, np.stack(values, axis=2), level)


def performance_curve(
    problem: Problem,
    scores: Floats,
    *,
    kind: CurveKind = "roc",
    n_thresholds: int = 41,
    positive: int = 1,
    level: float = 0.95,
    n_draws: int = 500,
) -> Curve:
    """Evaluate the classifier at each of many thresholds (Su 2024, 5.4.2–5.4.3), with calibrated posteriors.

    Thresholds are quantiles of the scores. Each threshold makes a classifier of its own, whose operating point is
    weighted by its posterior given the votes and its predictions.
    """
    if problem.n_classes != 2:
        raise InvalidParameter(f"curves are for two classes, got {problem.n_classes}")
    thresholds = curve_thresholds(scores, n_thresholds)
    x_metric, y_metric = _metrics(kind, positive)
    rng = np.random.default_rng(0)
    x, y, draws = [], [], []
    for threshold in thresholds:
        codes = _codes_at(scores, threshold, positive)
        at_threshold = Problem(codes, problem.log_likelihood, problem.prior, problem.gold)
        counts = bayes(at_threshold, n_draws=n_draws, random_state=rng).counts
        x.append(counts.estimate(x_metric))
        y.append(counts.estimate(y_metric))
        drawn = counts.draw_counts(n_draws, rng)
        draws.append(np.column_stack([x_metric(drawn), y_metric(drawn)]))
    return _curve(kind, thresholds, x, y, np.array(draws), level)


def _curve(
    kind: CurveKind, thresholds: Floats, x: Sequence[Estimate], y: Sequence[Estimate], draws: Floats, level: float
) -> Curve:
    check_level(level)
    x_mean, y_mean = (np.array([estimate.mean for estimate in each]) for each in (x, y))
    x_interval, y_interval = (np.array([e.interval(level, kind="equal") for e in each]) for each in (x, y))
    return Curve(kind, thresholds, x_mean, y_mean, x_interval, y_interval, draws, level)


@dataclass(frozen=True)
class Sensitivity:
    """The error rate as a function of how much the classifier's errors depend on the labels' errors."""

    dependence: Floats  # from 0, errors are independent, to 1, one kind of error always comes with the other
    error: Floats  # the true error rate at each; the ends are the bounds of Lam and Stork (2003)
    apparent: float  # the error rate against the most probable labels
    mislabeling: float  # the expected error rate of those labels

    @property
    def accuracy(self) -> Floats:
        """One minus `error`."""
        return 1 - self.error

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest error rate."""
        return float(self.error.min()), float(self.error.max())

    def plot(self, ax: Any = None) -> Any:
        """Error rate against dependence; returns the Axes."""
        ax = new_axes(ax, purpose="Sensitivity.plot()")
        ax.plot(self.dependence, self.error)
        ax.axhline(self.apparent, linestyle=":", color="gray", label="against the labels")
        ax.set_xlabel("dependence of the classifier's and the labels' errors")
        ax.set_ylabel("true error rate")
        ax.legend()
        return ax


def error_sensitivity(problem: Problem, *, truth: Floats | None = None, n_points: int = 21) -> Sensitivity:
    """Move from independent errors to the most dependent ones that the marginal rates allow.

    With ε the error rate of the most probable labels given the votes, e that of the classifier and q the share of
    items on which both err, the apparent error is A = e + ε − c q, where c − 1 is the chance that two errors on an
    item name the same class: c = 2 for two classes, C/(C − 1) for errors spread evenly over more. q runs from eε
    (independence, e = (A − ε)/(1 − cε)) to min(e, ε) with errors that agree (c = 2, e = A + ε); for two classes the
    ends are those of Lam and Stork (2003).

    Parameters
    ----------
    truth : array of shape (n_items, n_classes), optional
        P(class) of each item, by which ε is judged; by default what the votes say under the problem's noise, although
        draws that learn the noise together with the truth give a better ε.
    """
    check_integer(n_points, name="n_points", low=2)
    posterior = class_posterior(problem)
    predicted = problem.predictions >= 0
    label = posterior.argmax(axis=1)
    apparent = float((label[predicted] != problem.predictions[predicted]).mean())
    belief = posterior if truth is None else truth
    mislabeling = float(1 - belief[predicted, label[predicted]].mean())
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
