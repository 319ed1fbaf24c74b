"""ROC and precision–recall curves with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trueup._optional import require
from trueup._validation import check_choice, check_integer, check_level
from trueup.estimators.bayes_known import bayes
from trueup.estimators.problem import Array, Problem
from trueup.exceptions import InvalidParameter
from trueup.metrics import get_metric
from trueup.posteriors import Estimate

__all__ = ["Curve", "CurveKind", "performance_curve"]

CurveKind = Literal["roc", "pr"]
_AXES = {"roc": ("false_alarm_rate", "recall"), "pr": ("recall", "precision")}


@dataclass(frozen=True)
class Curve:
    """Two metrics at each of many thresholds, each with its posterior.

    Attributes
    ----------
    kind : {"roc", "pr"}
    thresholds : array of shape (n,)
        A score at or above the threshold counts as positive.
    x, y : array of shape (n,)
        Posterior means: false-alarm rate and recall, or recall and precision.
    x_interval, y_interval : array of shape (n, 2)
    draws : array of shape (n, n_draws, 2)
        Joint draws of both at each threshold, for `heat_map`.
    """

    kind: CurveKind
    thresholds: Array
    x: Array
    y: Array
    x_interval: Array
    y_interval: Array
    draws: Array
    level: float

    @property
    def area(self) -> float:
        """The area under the mean ROC curve, the corners (0, 0) and (1, 1) added; NaN for precision–recall."""
        if self.kind != "roc":
            return float("nan")
        order = np.lexsort((self.y, self.x))
        x, y = np.r_[0.0, self.x[order], 1.0], np.r_[0.0, self.y[order], 1.0]
        return float(np.trapezoid(y, x))

    def heat_map(self, n_bins: int = 100) -> tuple[Array, Array]:
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
        if ax is None:
            _, ax = require("matplotlib.pyplot", purpose="Curve.plot()").subplots(layout="constrained")
        if heat:
            edges, values = self.heat_map()
            ax.pcolormesh(edges, edges, np.sqrt(values), cmap="Blues")
        order = np.argsort(self.x, kind="stable")
        ax.fill_between(
            self.x[order],
            self.y_interval[order, 0],
            self.y_interval[order, 1],
            alpha=0.3,
            label=f"{self.level:.0%} band",
        )
        ax.plot(self.x[order], self.y[order], label="posterior mean")
        x_name, y_name = (name.replace("_", " ") for name in _AXES[self.kind])
        ax.set(xlabel=x_name, ylabel=y_name, xlim=(0, 1), ylim=(0, 1.02))
        ax.legend()
        return ax


def performance_curve(
    problem: Problem,
    scores: Array,
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
    check_choice(kind, tuple(_AXES), name="kind")
    check_level(level)
    if problem.n_classes != 2:
        raise InvalidParameter(f"curves are for two classes, got {problem.n_classes}")
    has_score = np.isfinite(scores)
    if not has_score.any():
        raise InvalidParameter("curves need scores, got none")
    shares = np.linspace(0, 1, check_integer(n_thresholds, name="n_thresholds", low=2))
    thresholds = np.unique(np.quantile(scores[has_score], shares, method="nearest"))
    classes = [0, 1]
    x_metric, y_metric = (get_metric(name, classes, positive) for name in _AXES[kind])
    rng = np.random.default_rng(0)
    x, y, draws = [], [], []
    for threshold in thresholds:
        codes = np.where(scores >= threshold, positive, 1 - positive)
        codes[~has_score] = -1
        counts = bayes(
            Problem(codes, problem.log_likelihood, problem.prior, problem.gold), n_draws=n_draws, random_state=rng
        ).counts
        x.append(counts.estimate(x_metric))
        y.append(counts.estimate(y_metric))
        drawn = counts.draw_counts(n_draws, rng)
        draws.append(np.column_stack([x_metric(drawn), y_metric(drawn)]))
    return Curve(
        kind,
        thresholds,
        np.array([e.mean for e in x]),
        np.array([e.mean for e in y]),
        _intervals(x, level),
        _intervals(y, level),
        np.array(draws),
        level,
    )


def _intervals(estimates: list[Estimate], level: float) -> Array:
    return np.array([e.interval(level, kind="equal") for e in estimates])
