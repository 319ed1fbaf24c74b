"""Metrics of one system, and how they are shown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from trueup._base.optional import require
from trueup.answers.answer import Answer
from trueup.answers.confusion import ConfusionEstimate
from trueup.data.frames import make_frame
from trueup.estimators.assumptions import ASSUMPTIONS, Assumption
from trueup.estimators.truth import Basis
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.noise import IndependenceCheck
from trueup.posteriors import Estimate


class MetricEstimates(Answer, Mapping[str, Estimate]):
    """Estimates by the name of a metric; the base of `Evaluation` and of that of a scan.

    Attributes
    ----------
    warnings : tuple of str
        Sentences a user should read before trusting the numbers.
    independence : IndependenceCheck or None
        Whether labelers err together, where that was looked at.
    refused : bool
        Whether vetted items contradict the models, so that these give no interval.
    """

    warnings: tuple[str, ...]
    independence: IndependenceCheck | None
    refused: bool

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics asked for; what iteration and `to_frame` show."""
        return tuple(self.task.metrics)

    @property
    @abstractmethod
    def n_items(self) -> int:
        """Items with a prediction."""

    @property
    @abstractmethod
    def gold_alone(self) -> Mapping[str, Estimate]:
        """What vetted items that were drawn at random say by themselves of each metric that looks at some of them."""

    @property
    @abstractmethod
    def method(self) -> str:
        """The name of the method."""

    @property
    @abstractmethod
    def vettings(self) -> dict[int, float]:
        """How wide the interval of the accuracy would be after so many vetted items drawn at random, about."""

    @property
    @abstractmethod
    def confusion(self) -> ConfusionEstimate:
        """The confusion matrix with an interval for each cell."""

    @abstractmethod
    def metric(self, name: str) -> Metric:
        """The metric behind a name: one of the call, or any other that is known."""

    @abstractmethod
    def assuming(self, assumption: Assumption) -> Self:
        """The same evaluation from votes alone under another assumption: {"independent", "shared", "real"}."""

    @property
    @abstractmethod
    def basis(self) -> Basis:
        """What the answer rests on: "gold" that was drawn at random, or "votes"; that of the first metric."""

    @abstractmethod
    def basis_of(self, name: str) -> Basis:
        """What the answer about one metric rests on."""

    @abstractmethod
    def answer_in_words(self) -> str:
        """What the numbers rest on, in a few words."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        """The estimate of a metric, or `default` where there is no such metric."""
        try:
            return self[name]
        except InvalidParameter:
            return default

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __repr__(self) -> str:
        lines = [f"Evaluation of {self.n_items:,} predictions ({self.answer_in_words()}, target {self.target})"]
        width = max(map(len, self.metrics), default=0)
        for name in self.metrics:
            low, high = self[name].interval(self.level)
            shown = f"{100 * self.level:.12g}% interval {low:.4f} to {high:.4f}" if np.isfinite(low) else "no interval"
            lines.append(f"  {name:<{width}}  {self[name].mean:.4f}  {shown}{self._beside(name)}")
        lines += [f"  ! {sentence}" for sentence in self.warnings]
        if self.independence is not None and not self.independence.dependent:
            lines.append(f"  {self.independence.in_short}")
        return "\n".join(lines)

    def _beside(self, name: str) -> str:
        """What stands behind a metric in a line of its own."""
        alone = None if self.basis_of(name) == "gold" else self.gold_alone.get(name)
        low, high = (np.nan, np.nan) if alone is None else alone.interval(self.level)
        return f"; vetted items alone {low:.4f} to {high:.4f}" if np.isfinite(low) else ""

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a metric: metric, mean, median, std, low, high, undefined."""
        rows = []
        for name in self.metrics:
            estimate = self[name]
            low, high = estimate.interval(self.level)
            rows.append((name, estimate.mean, estimate.median, estimate.std, low, high, estimate.undefined))
        columns = ("metric", "mean", "median", "std", "low", "high", "undefined")
        return make_frame(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)), backend=backend)

    def plot(self, ax: Any = None) -> Any:
        """Mean and interval of each metric; returns the Axes."""
        if ax is None:
            _, ax = require("matplotlib.pyplot", purpose="Evaluation.plot()").subplots(
                figsize=(6, 0.5 * len(self.metrics) + 1), layout="constrained"
            )
        for row, name in enumerate(reversed(self.metrics)):
            low, high = self[name].interval(self.level)
            ax.plot([low, high], [row, row], color="tab:blue", linewidth=3, alpha=0.5, solid_capstyle="butt")
            ax.plot(self[name].mean, row, "o", color="tab:blue")
        ax.set_yticks(range(len(self.metrics)), list(reversed(self.metrics)))
        ax.set_xlabel(f"mean and {100 * self.level:.12g}% interval")
        ax.grid(axis="x", alpha=0.3)
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Everything a report needs, JSON-able."""
        return {
            "method": self.method,
            "target": self.target,
            "noise": self.noise,
            "basis": self.basis,
            "basis_of": {name: self.basis_of(name) for name in self.metrics},
            "assumption": self.assumption,
            "assuming": self._all_assumptions(),
            "vettings": self.vettings,
            "refused": self.refused,
            "gold_alone": {name: estimate.to_dict(self.level) for name, estimate in self.gold_alone.items()},
            "level": self.level,
            "seed": self.seed,
            "n_items": self.n_items,
            "classes": [str(c) for c in self.classes.tolist()],
            "positive": self.positive_name,
            "metrics": {name: self[name].to_dict(self.level) for name in self.metrics},
            "confusion": self.confusion.mean.tolist(),
            "warnings": list(self.warnings),
            "diagnostics": dict(self.diagnostics),
        }

    def _all_assumptions(self) -> dict[str, Any]:
        """The three answers from votes, JSON-able; none where one model or method was named."""
        if not self.has_assumptions:
            return {}
        answers = {name: self.assuming(name) for name in ASSUMPTIONS}
        return {
            name: {metric: answer[metric].to_dict(self.level) for metric in self.metrics}
            for name, answer in answers.items()
        }

    def save_html(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write a report on this system as one HTML file; .md and .json work too.

        See `trueup.report.build_report` for reports on several systems or with settings.
        """
        from trueup.report import build_report, save_report

        return save_report(build_report(self, title=title), path)
