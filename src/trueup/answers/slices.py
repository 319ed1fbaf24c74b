"""The same answer for slices of the items: all from one fit, on the same draws of the truth."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._base.types import Booleans, Floats
from trueup._base.validation import check_number
from trueup.answers.by_slice import BySlice
from trueup.answers.comparison import Comparison
from trueup.answers.setup import values_on
from trueup.data.aligned import AlignedPredictions
from trueup.data.frames import make_frame
from trueup.data.slices import Slicing
from trueup.estimators.vetting import items_to_vet
from trueup.posteriors import Estimate

if TYPE_CHECKING:  # an evaluation has slices
    from trueup.answers.evaluation import Evaluation

_FALSE_DISCOVERIES = 0.05
_WIDTH = 0.1  # of the interval that the advice for small slices is about


@dataclass(frozen=True, eq=False)
class Slices(BySlice["Evaluation"]):
    """The evaluation of each slice; ``ev.by["sport"]["accuracy"]`` is an `Estimate`.

    Slices borrow from each other: models are drawn once for all items, with the slice as something that may tell the
    class, and vetted items correct all slices together, each of them by its own as far as it has some.

    Attributes
    ----------
    whole : Evaluation
    slicing : Slicing
    """

    whole: Evaluation = field(repr=False)

    @classmethod
    def of(cls, whole: Evaluation, slicing: Slicing) -> Slices:
        """The slices of an evaluation."""
        return cls(slicing, whole.on_items, whole)

    @cached_property
    def _comparisons(self) -> dict[str, Comparison]:
        return {}

    def compared(self, metric: str | None = None) -> Comparison:
        """The slices side by side, as `compare` has systems: differences, ranking, P(best).

        Parameters
        ----------
        metric : str, optional
            By default the first of the call.
        """
        name = self.whole.metrics[0] if metric is None else metric
        if name not in self._comparisons:
            self._comparisons[name] = self._compare(name)
        return self._comparisons[name]

    def _compare(self, name: str) -> Comparison:
        whole, metric = self.whole, self.whole.metric(name)
        task = replace(
            whole.task,
            outputs=outputs_by_slice(whole.task.outputs, self.slicing),
            metrics={name: metric},
        )
        truth = whole.draws_for(metric)
        values = values_on(truth, task, metric, np.random.default_rng(whole.seed))
        return Comparison(
            task,
            whole.model,
            metric,
            values,
            truth,
            (),
            whole.engine,
            whole.assumption,
            from_votes=whole.from_votes,
            refused=whole.refused,
        )

    def difference(self, a: Hashable, b: Hashable, metric: str | None = None) -> Estimate:
        """The metric in slice a minus that in slice b, on the same draws."""
        return self.compared(metric).difference(a, b)

    def prob_worse(self, metric: str | None = None) -> dict[Any, float]:
        """P(slice is worse than all other items together), for each slice."""
        compared = self.compared(metric)
        rest = self._rests(compared)
        sign = 1.0 if compared.higher_is_better else -1.0
        gaps = sign * (compared.draws - rest)
        chances = np.nanmean(np.where(np.isnan(gaps), np.nan, (gaps < 0) + 0.5 * (gaps == 0)), axis=0)
        return dict(zip(self, chances.tolist(), strict=True))

    def worse(self, metric: str | None = None, *, false_discoveries: float = _FALSE_DISCOVERIES) -> list[Any]:
        """The slices that are worse than the rest, so many that few of them are expected to be named wrongly.

        Parameters
        ----------
        metric : str, optional
        false_discoveries : float
            The share of those named that is expected to be no worse than the rest.
        """
        check_number(false_discoveries, name="false_discoveries", low=0.0, high=1.0)
        chances = self.prob_worse(metric)
        ordered = sorted((name for name in chances if not np.isnan(chances[name])), key=lambda name: -chances[name])
        wrong = np.cumsum([1 - chances[name] for name in ordered]) / np.arange(1, len(ordered) + 1)
        return ordered[: int(np.searchsorted(wrong, false_discoveries, side="right"))]

    def _rests(self, compared: Comparison) -> Floats:
        """The metric on all items but those of each slice, shape (n_draws, n_slices)."""
        outside = [~self.slicing.members(name) for name in self]
        task = replace(compared.task, outputs=_restricted(self.whole.task.outputs, outside, self.slicing))
        return values_on(compared.truth, task, compared.measure, np.random.default_rng(self.whole.seed))

    @property
    def vettings(self) -> dict[Any, int]:
        """About how many items of each slice must be vetted, drawn at random, for an interval .1 wide."""
        posterior = self.whole.solution.truth
        members = {name: self.slicing.members(name) for name in self}
        codes = self.whole.predictions
        return {
            name: items_to_vet(posterior, np.where(inside, codes, -1), self.whole.level, width=_WIDTH)
            for name, inside in members.items()
        }

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a slice and metric: slice, n_items, metric, mean, low, high, prob_worse."""
        rows = []
        for metric in self.whole.metrics:
            chances = self.prob_worse(metric)
            for name, size in zip(self, self.slicing.sizes.tolist(), strict=True):
                estimate = self.compared(metric)[name]
                rows.append((name, size, metric, estimate.mean, *estimate.interval(self.whole.level), chances[name]))
        columns = (self.slicing.column, "n_items", "metric", "mean", "low", "high", "prob_worse")
        return make_frame(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)), backend=backend)

    def __repr__(self) -> str:
        metric = self.whole.metrics[0]
        compared = self.compared(metric)
        named = set(self.worse(metric)) if len(self) > 1 else set()
        width = max(len(str(name)) for name in self)
        lines = [f"{metric} by {self.slicing.column}"]
        for name, size in zip(self, self.slicing.sizes.tolist(), strict=True):
            low, high = compared[name].interval(self.whole.level)
            words = "  worse than the rest" if name in named else ""
            lines.append(
                f"  {name!s:<{width}}  {compared[name].mean:.4f}  {self.whole.level:.0%} interval {low:.4f} to "
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
