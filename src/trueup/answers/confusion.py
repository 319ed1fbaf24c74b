"""The confusion matrix of an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.optional import require
from trueup._base.validation import check_level
from trueup.data.encoding import Vocabulary
from trueup.data.frames import make_frame
from trueup.estimators import CountsPosterior
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.posteriors import Estimate


@dataclass(frozen=True)
class ConfusionEstimate:
    """The confusion matrix with its uncertainty; rows are the truth."""

    classes: Vocabulary
    counts: CountsPosterior = field(repr=False)
    level: float = 0.95

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        """Expected counts."""
        return self.counts.mean_counts

    @property
    def conditional(self) -> npt.NDArray[np.float64]:
        """P(prediction | truth), from the expected counts."""
        mean = self.mean
        total = mean.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(mean, total, out=np.full_like(mean, np.nan), where=total > 0))

    def cell(self, truth: Any, prediction: Any) -> Estimate:
        """The distribution of one count, classes given by name."""
        return self.counts.cell(self._code(truth), self._code(prediction))

    def conditional_cell(self, truth: Any, prediction: Any) -> Estimate:
        """The distribution of P(prediction | truth) on these items."""
        y, yhat = self._code(truth), self._code(prediction)

        def share(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            total = counts[..., y, :].sum(axis=-1)
            out = np.full(np.shape(total), np.nan)
            return np.asarray(np.divide(counts[..., y, yhat], total, out=out, where=total > 0))

        name = f"P({prediction} | {truth})"
        return self.counts.estimate(Metric(name, share, bounds=(0.0, 1.0), higher_is_better=None))

    def intervals(self, level: float | None = None) -> npt.NDArray[np.float64]:
        """The interval of each count, shape (n_classes, n_classes, 2)."""
        wanted = self.level if level is None else check_level(level)
        n = len(self.classes)
        return np.array([[self.counts.cell(y, p).interval(wanted) for p in range(n)] for y in range(n)])

    def _code(self, name: Any) -> int:
        names = self.classes.tolist()
        if name not in names:
            raise InvalidParameter(f"{name!r} is no class; the classes are {', '.join(map(repr, names))}")
        return int(names.index(name))

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a cell: truth, prediction, mean, low, high."""
        intervals, names = self.intervals(), self.classes.tolist()
        rows = [(y, p, self.mean[i, j], *intervals[i, j]) for i, y in enumerate(names) for j, p in enumerate(names)]
        columns = ("truth", "prediction", "mean", "low", "high")
        return make_frame(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)), backend=backend)

    def plot(self, ax: Any = None, *, most_numbers: int = 8) -> Any:
        """A square a cell, darker with its share of the true class; returns the Axes.

        With at most `most_numbers` classes the expected counts and their intervals are written in.
        """
        names, shares = [str(c) for c in self.classes.tolist()], self.conditional
        if ax is None:
            size = 2 + min(0.9 * len(names), 8)
            _, ax = require("matplotlib.pyplot", purpose="ConfusionEstimate.plot()").subplots(
                figsize=(size, size), layout="constrained"
            )
        ax.imshow(np.nan_to_num(shares), cmap="Blues", vmin=0, vmax=1)
        if len(names) <= most_numbers:
            intervals = self.intervals()
            places = 3 if self.mean.sum() < 2 else 1  # shares, or counts
            for y, p in np.ndindex(*shares.shape):
                low, high = intervals[y, p]
                words = f"{self.mean[y, p]:.{places}f}"
                if np.isfinite(low):
                    words += f"\n{low:.{places}f} to {high:.{places}f}"
                color = "white" if shares[y, p] > 0.55 else "black"
                ax.text(p, y, words, ha="center", va="center", fontsize="small", color=color)
        turned = 45 if max(map(len, names)) * len(names) > 40 else 0
        ax.set_xticks(range(len(names)), names, rotation=turned, ha="right" if turned else "center")
        ax.set_yticks(range(len(names)), names)
        ax.set(xlabel="prediction", ylabel="truth")
        return ax
