"""Metrics of one system, and how they are shown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from trueup._base.optional import require
from trueup.answers.answer import Answer
from trueup.data.frames import make_frame
from trueup.estimators.truth import Basis
from trueup.exceptions import InvalidParameter
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
    """

    warnings: tuple[str, ...]
    independence: IndependenceCheck | None

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
