"""The same answer for slices of the items: all from one fit, on the same draws of the truth."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from trueup._base.types import Booleans, Floats
from trueup._base.validation import check_number
from trueup.answers.answer import BySlice, Part
from trueup.answers.comparison import Comparison
from trueup.answers.next_checks import Goal, NextChecks
from trueup.answers.prepare import Task
from trueup.data.aligned import AlignedPredictions
from trueup.data.frames import make_frame
from trueup.data.slices import Slicing
from trueup.posteriors import Estimate

_FALSE_DISCOVERIES = 0.05


@dataclass(frozen=True, eq=False)
class Slices(BySlice[Part]):
    """The evaluation of each slice; ``ev.by["sport"]["accuracy"]`` is an `Estimate`."""

    task: Task = field(repr=False)  # of the whole
    next_checks: Callable[[Booleans], NextChecks | None] = field(repr=False)
    compare_outputs: Callable[[str, AlignedPredictions], Comparison] = field(repr=False)

    @cached_property
    def _comparisons(self) -> dict[str, Comparison]:
        return {}

    def compared(self, metric: str | None = None) -> Comparison:
        """The slices side by side, as `compare` has systems: differences, ranking, P(best)."""
        name = next(iter(self.task.metrics)) if metric is None else metric
        if name not in self._comparisons:
            self._comparisons[name] = self.compare_outputs(name, outputs_by_slice(self.task.outputs, self.slicing))
        return self._comparisons[name]

    def difference(self, a: Hashable, b: Hashable, metric: str | None = None) -> Estimate:
        """The metric in slice a minus that in slice b, on the same draws."""
        return self.compared(metric).difference(a, b)

    def prob_worse(self, metric: str | None = None) -> dict[Any, float]:
        """P(slice is worse than all other items together), for each slice."""
        compared = self.compared(metric)
        rest = self._rests(metric)
        sign = 1.0 if compared.higher_is_better else -1.0
        gaps = sign * (compared.draws - rest)
        chances = np.nanmean(np.where(np.isnan(gaps), np.nan, (gaps < 0) + 0.5 * (gaps == 0)), axis=0)
        return dict(zip(self, chances.tolist(), strict=True))

    def worse(self, metric: str | None = None, *, false_discoveries: float = _FALSE_DISCOVERIES) -> list[Any]:
        """The slices that are worse than the rest, by Benjamini and Hochberg's rule on P(not worse)."""
        check_number(false_discoveries, name="false_discoveries", low=0.0, high=1.0)
        chances = self.prob_worse(metric)
        ordered = sorted((name for name in chances if not np.isnan(chances[name])), key=lambda name: -chances[name])
        n_draws = len(self.compared(metric).draws)  # no chance is known better than to one draw
        values = [(n_draws * (1 - chances[name]) + 1) / (n_draws + 1) for name in ordered]
        return [
            name
            for name, value in zip(ordered, scipy.stats.false_discovery_control(values), strict=True)
            if value <= false_discoveries
        ]

    def _rests(self, metric: str | None) -> Floats:
        """The metric on all items but those of each slice, shape (n_draws, n_slices)."""
        outside = [~self.slicing.members(name) for name in self]
        outputs = _restricted(self.task.outputs, outside, self.slicing)
        return self.compare_outputs(next(iter(self.task.metrics)) if metric is None else metric, outputs).draws

    @property
    def vettings(self) -> dict[Any, int]:
        """About how many items of each slice must be checked in all, drawn at random, for intervals as `goal` has."""
        return self.goal.numbers

    @cached_property
    def goal(self) -> Goal:
        """The width that `vettings` is about, a tenth or what the items can give, and the numbers."""
        return Goal.of({name: self.next_checks(self.slicing.members(name)) for name in self}, self.task.level)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a slice and metric: slice, n_items, metric, mean, low, high, prob_worse."""
        columns = (self.slicing.column, "n_items", "metric", "mean", "low", "high", "prob_worse")
        columns_of_rows = map(list, zip(*self._rows(), strict=True))
        return make_frame(dict(zip(columns, columns_of_rows, strict=True)), backend=backend)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able: the column, the slices with each metric, and which are worse than the rest."""
        keys = ("slice", "n_items", "metric", "mean", "low", "high", "prob_worse")
        return {
            "column": self.slicing.column,
            "slices": [dict(zip(keys, (str(row[0]), *row[1:]), strict=True)) for row in self._rows()],
            "worse": {metric: [str(name) for name in self.worse(metric)] for metric in self.task.metrics},
            "vettings": {str(name): n for name, n in self.vettings.items()},
            "vetting_width": self.goal.width,
        }

    def _rows(self) -> list[tuple[Any, ...]]:
        rows = []
        for metric in self.task.metrics:
            chances = self.prob_worse(metric)
            for name, size in zip(self, self.slicing.sizes.tolist(), strict=True):
                estimate = self.compared(metric)[name]
                rows.append((name, size, metric, estimate.mean, *estimate.interval(self.task.level), chances[name]))
        return rows

    def __repr__(self) -> str:
        metric = next(iter(self.task.metrics))
        compared = self.compared(metric)
        named = set(self.worse(metric)) if len(self) > 1 else set()
        width = max(len(str(name)) for name in self)
        lines = [f"{metric} by {self.slicing.column}"]
        for name, size in zip(self, self.slicing.sizes.tolist(), strict=True):
            low, high = compared[name].interval(self.task.level)
            words = "  worse than the rest" if name in named else ""
            lines.append(
                f"  {name!s:<{width}}  {compared[name].mean:.4f}  {self.task.level:.0%} interval {low:.4f} to "
                f"{high:.4f}  ({size:,} items){words}"
            )
        return "\n".join(lines)


def outputs_by_slice(outputs: AlignedPredictions, slicing: Slicing) -> AlignedPredictions:
    """What one system says in each slice, as if these were systems."""
    return _restricted(outputs, [slicing.members(name) for name in slicing.names.tolist()], slicing)


def _restricted(outputs: AlignedPredictions, members: Sequence[Booleans], slicing: Slicing) -> AlignedPredictions:
    parts = [outputs.on_items(inside) for inside in members]

    def stacked(kind: str) -> Any:
        tables = [getattr(part, kind) for part in parts]
        return None if tables[0] is None else np.concatenate(tables)

    n = len(parts)
    return replace(
        outputs,
        systems=slicing.names,
        codes=stacked("codes"),
        scores=stacked("scores"),
        probabilities=stacked("probabilities"),
        missing=np.zeros(n, dtype=np.int64),
        unknown_items=np.zeros(n, dtype=np.int64),
        unknown_classes=np.zeros(n, dtype=np.int64),
    )
