"""The answer of `evaluate`: the distribution of every metric of one system, for all items and for slices of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.html import html_table
from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import check_choice, check_level, check_number
from trueup._base.wording import number
from trueup.answers.answer import Answer, BySlice, Part, frame_of, lines_of
from trueup.answers.comparison import Comparison, plot_intervals
from trueup.answers.next_checks import Goal, NextChecks, next_checks, on_which
from trueup.answers.prepare import FUNCTION_DRAWS, Task, of_other_systems, solution_on, values_on
from trueup.core.truth import TruthModel
from trueup.data.aligned import AlignedPredictions, OutputKind
from trueup.data.encoding import Vocabulary
from trueup.data.slices import Slicing
from trueup.estimators import METHODS, JointPoint, Problem, Solution
from trueup.estimators.counts import CountsPosterior, PointCounts, point_estimate
from trueup.estimators.curves import (
    Curve,
    CurveKind,
    Sensitivity,
    curve_of_truths,
    error_sensitivity,
    performance_curve,
)
from trueup.estimators.truth import TruthDraws, is_drawn, truths_given_outputs
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.metrics.score_groups import ratio
from trueup.noise import IndependenceCheck, NoiseModel
from trueup.noise.base import vote_shares
from trueup.posteriors import DrawnEstimate, Estimate, JointEstimate
from trueup.posteriors.estimate import new_axes

_SHOWN = (20, 100)  # checked items whose widths are named


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
        return ratio(self.mean, self.mean.sum(axis=1, keepdims=True))

    def cell(self, truth: Any, prediction: Any) -> Estimate:
        """The distribution of one count, classes given by name."""
        return self.counts.cell(self._code(truth), self._code(prediction))

    def conditional_cell(self, truth: Any, prediction: Any) -> Estimate:
        """The distribution of P(prediction | truth) on these items."""
        y, yhat = self._code(truth), self._code(prediction)

        def share(counts: Floats) -> Floats:
            return ratio(counts[..., y, yhat], counts[..., y, :].sum(axis=-1))

        metric = Metric(f"P({prediction} | {truth})", share, bounds=(0.0, 1.0), higher_is_better=None)
        return self.counts.estimate(metric)

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
        return frame_of(("truth", "prediction", "mean", "low", "high"), rows, backend)

    def plot(self, ax: Any = None, *, most_numbers: int = 8) -> Any:
        """A square a cell, darker with its share of the true class; returns the Axes.

        With at most `most_numbers` classes the expected counts and their intervals are written in.
        """
        names, shares = [str(c) for c in self.classes.tolist()], self.conditional
        size = 2 + min(0.9 * len(names), 8)
        ax = new_axes(ax, purpose="ConfusionEstimate.plot()", figsize=(size, size))
        ax.imshow(np.nan_to_num(shares), cmap="Blues", vmin=0, vmax=1)
        if len(names) <= most_numbers:
            intervals = self.intervals()
            places = 3 if self.mean.sum() < 2 else 1  # shares, or counts
            for (y, p), mean in np.ndenumerate(self.mean):
                low, high = intervals[y, p]
                words = f"{mean:.{places}f}"
                if np.isfinite(low):
                    words += f"\n{low:.{places}f} to {high:.{places}f}"
                color = "white" if shares[y, p] > 0.55 else "black"
                ax.text(p, y, words, ha="center", va="center", fontsize="small", color=color)
        turned = 45 if max(map(len, names)) * len(names) > 40 else 0
        ax.set_xticks(range(len(names)), names, rotation=turned, ha="right" if turned else "center")
        ax.set_yticks(range(len(names)), names)
        ax.set(xlabel="prediction", ylabel="truth")
        return ax


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Answer, Mapping[str, Estimate]):
    """Estimates by metric name, and how they came about.

    ``ev["accuracy"]`` is an `Estimate`; any metric can be asked for, not only those named in the call.

    Attributes
    ----------
    task : Task. What was asked: labels, outputs, metrics, positive class, target, level, seed.
    solution : Solution. The posterior of the confusion counts, with traces and diagnostics.
    model : NoiseModel or None. The noise model that was named.
    warnings : tuple of str. Sentences a user should read before trusting the numbers.
    independence : IndependenceCheck or None. Whether labelers err together, where that was looked at.
    core : TruthModel or None. Behind the plain answer, for which no noise model and no other method was named.
    refused : bool. Whether checked items contradict the votes, so that there is no interval.
    """

    task: Task = field(repr=False)
    solution: Solution = field(repr=False)
    model: NoiseModel | None = field(repr=False)
    warnings: tuple[str, ...]
    independence: IndependenceCheck | None
    core: TruthModel | None = field(default=None, repr=False)
    refused: bool = False
    _cache: dict[str, Estimate] = field(default_factory=dict, init=False, repr=False)
    _drawn_truths: dict[OutputKind, TruthDraws] = field(default_factory=dict, init=False, repr=False)

    # ------------------------------------------------------------------ what was asked

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics asked for; what iteration and `to_frame` show."""
        return tuple(self.task.metrics)

    @property
    def method(self) -> str:
        """The name of the method."""
        return METHODS.resolve(self.settings.arguments.get("method", "bayes"))  # `share` takes none

    @property
    def predictions(self) -> Codes:
        """The predicted class of each item as a code, -1 for none."""
        return self.task.codes

    @property
    def n_items(self) -> int:
        """Items with a prediction."""
        return int((self.predictions >= 0).sum())

    @property
    def diagnostics(self) -> Mapping[str, float]:
        """How the draws went."""
        return self.solution.diagnostics

    # ------------------------------------------------------------------ what checks would bring

    @property
    def vettings(self) -> dict[int, float]:
        """How wide the interval of the accuracy would be after so many checked items drawn at random, about.

        Of numbers in all, more than are checked already, that would make it narrower than it is now. Only of the plain
        answer, which they correct.
        """
        if self.core is None:  # checked items do not correct a model or a method that is named
            return {}
        low, high = self._estimate_from_draws(self.metric("accuracy")).interval(self.level)
        checks = self.next_checks()
        widths = {} if checks is None else checks.widths(self.level)
        return {n: width for n, width in widths.items() if width < high - low}

    def next_checks(self, members: Booleans | None = None, values: Floats | None = None) -> NextChecks | None:
        """What the next checks tell of the accuracy, or of what true classes count for; see `NextChecks`."""
        return (
            None if self.core is None else next_checks(self.core, self.task.codes, members, values, target=self.target)
        )

    def next_step(self) -> str | None:
        """How many more checked items bring the first metric to which width; None where nothing can be said.

        Of another metric than the accuracy: about as many times narrower as the accuracy becomes.
        """
        widths, name = self.vettings, next(iter(self.metrics), "accuracy")
        if not widths or self.refused:
            return None
        (low, high), of_accuracy = (self[metric].interval(self.level) for metric in (name, "accuracy"))
        if not low < high:
            return None
        first, scale = min(widths), (high - low) / (of_accuracy[1] - of_accuracy[0])
        second = max(n for n in widths if n <= max(_SHOWN[1], 2 * first))
        more = " more" if self.n_drawn else ""
        parts = [
            f"{n - self.n_drawn:,}{more} for about ±{number(widths[n] * scale / 2, 2)}" for n in sorted({first, second})
        ]
        what = f"{name.replace('_', ' ')} {on_which(self.target)}"
        return f"To know the {what} better, check items drawn at random: {', '.join(parts)}"

    @property
    def gold_alone(self) -> dict[str, Estimate]:
        """What checked items that were drawn at random say by themselves, without any vote."""
        if self.core is None or not self.n_drawn:
            return {}
        core = self.core.checks_alone()
        solution = solution_on(core.truth, self.task, np.random.default_rng(self.seed))
        alone = replace(self, core=core, solution=solution, refused=False)
        return {name: alone[name] for name in self.metrics}

    # ------------------------------------------------------------------ slices

    @cached_property
    def by(self) -> Slices[Evaluation]:
        """The same for each slice of the items; see ``by`` of `trueup.evaluate`."""
        if self.task.slices is None:
            raise InvalidParameter("there are no slices here, got a call without `by`; name a column of the items")
        return self.sliced_by(self.task.slices)

    def sliced_by(self, slicing: Slicing) -> Slices[Evaluation]:
        """The same for slices, on the same draws of the truth."""
        return Slices(slicing, self.on_items, self.task, self.next_checks, self.compare_outputs)

    def compare_outputs(self, name: str, outputs: AlignedPredictions) -> Comparison:
        """A metric of other outputs, on the same draws of the truth."""
        metric = self.metric(name)
        task = replace(self.task, outputs=outputs, metrics={name: metric}, slices=None)
        truth = self.draws_for(metric)
        values = values_on(truth, task, metric, np.random.default_rng(self.seed))
        return Comparison(task, self.model, metric, values, truth, (), self.core, refused=self.refused)

    def on_items(self, members: Booleans) -> Evaluation:
        """The evaluation of some of the items, on the same draws of the truth."""
        task = replace(self.task, outputs=self.task.outputs.on_items(members), slices=None)
        truth = self.draws_for(self.metric("accuracy"))
        solution = solution_on(truth, task, np.random.default_rng(self.seed))
        return replace(self, task=task, solution=solution)

    # ------------------------------------------------------------------ the answers

    def __getitem__(self, name: str) -> Estimate:
        if name not in self._cache:
            self._cache[name] = self._estimate(self.metric(name)).named(name)
        return self._cache[name]

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

    def metric(self, name: str) -> Metric:
        """The metric behind a name: one of the call, or any other that is known."""
        return self.task.metric_named(name)

    def _estimate(self, metric: Metric) -> Estimate:
        estimate = self._estimate_from_draws(metric)
        return point_estimate(metric, estimate.mean) if self.refused else estimate

    def _estimate_from_draws(self, metric: Metric) -> Estimate:
        rng = np.random.default_rng(self.seed)
        if metric.needs == "counts":
            return self.solution.counts.estimate(metric)
        if self.core is None and metric.needs == "labels":
            truths = self.solution.counts.draw_truths(FUNCTION_DRAWS, rng)
            seen = self.predictions >= 0
            values = metric.of_labels(truths[:, seen], self.predictions[seen], classes=self.classes)
            return DrawnEstimate(values, bounds=metric.bounds, name=metric.name)
        values = values_on(self.draws_for(metric), self.task, metric, rng)
        return DrawnEstimate(values[:, 0], bounds=metric.bounds, name=metric.name)

    def draws_for(self, metric: Metric) -> TruthDraws:
        """The draws of the truth that a metric is measured on."""
        return self._truths(metric.looks_at) if self.core is None else self.core.truth

    def _truths(self, used: OutputKind) -> TruthDraws:
        """Truths under a named model, given classes, scores or probabilities; kept."""
        if used not in self._drawn_truths:
            if self.model is None or self.method != "bayes":
                raise InvalidParameter('metrics of scores need `method="bayes"`; or use trueup.auc', parameter="method")
            sampling = {k: v for k, v in self.settings.arguments.items() if k in ("n_chains", "n_warmup")}
            self._drawn_truths[used] = truths_given_outputs(
                self.labels,
                self.model,
                self.task.outputs_with(used, needed_by="the metric"),
                used=used,
                random_state=np.random.default_rng(self.seed),
                **sampling,
            )
        return self._drawn_truths[used]

    def keep_draws(self, used: OutputKind, truth: TruthDraws) -> None:
        """Take draws that were made already for those of metrics that look at classes, scores or probabilities."""
        self._drawn_truths[used] = truth

    @cached_property
    def problem(self) -> Problem:
        """The predictions, and what the votes alone say of each item: by a model that has matrices, else by shares."""
        if self.model is not None and self.model.is_fitted:
            evidence, prior = self.model.log_likelihood(self.labels), self.model.prior_
        else:
            prior = np.full(len(self.classes), 1 / len(self.classes))
            with np.errstate(divide="ignore"):  # a gold item has one possible class
                evidence = np.log(vote_shares(self.labels, smoothing=0.5))  # no vote makes a class impossible
        return Problem(self.predictions, evidence, prior, self.labels.gold_codes)

    @property
    def confusion(self) -> ConfusionEstimate:
        """The confusion matrix with an interval for each cell."""
        counts = self.solution.counts
        return ConfusionEstimate(self.classes, PointCounts(counts.mean_counts) if self.refused else counts, self.level)

    def joint(self, a: str, b: str) -> JointEstimate | JointPoint:
        """The joint distribution of two metrics of the counts, with highest-density regions."""
        pair = [self.metric(name) for name in (a, b)]
        for metric in pair:
            if metric.needs != "counts":
                raise InvalidParameter(f"joint distributions are for metrics of confusion counts, got {metric.name!r}")
        return self.confusion.counts.joint(*pair)

    def curve(self, kind: CurveKind = "roc", *, n_thresholds: int = 41) -> Curve:
        """ROC or precision–recall curve with its uncertainty, from scores (two classes)."""
        check_choice(kind, ("roc", "pr"), name="kind")
        scores = self.scores
        if scores is None:
            raise InvalidParameter("a curve needs scores, got classes only; pass Predictions.from_scores")
        how: dict[str, Any] = {"n_thresholds": n_thresholds, "positive": self.positive, "level": self.level}
        if self.core is not None:
            truths, items = self.core.truth.evenly()
            curve = curve_of_truths(truths, scores[items], kind=kind, **how)
            if not self.refused:
                return curve
            nothing, no_draws = np.full_like(curve.x_interval, np.nan), np.full_like(curve.draws, np.nan)
            return replace(curve, x_interval=nothing, y_interval=nothing, draws=no_draws)
        if self.method == "bayes" and self.model is not None and is_drawn(self.model):
            return curve_of_truths(self._truths("scores").truths, scores, kind=kind, **how)
        return performance_curve(self.problem, scores, kind=kind, **how)

    @property
    def scores(self) -> Floats | None:
        """The scores of the positive class of two, NaN for none; None without scores."""
        if len(self.classes) != 2:
            return None
        scores = self.task.outputs.prepared_for("scores", positive=self.positive).scores
        return None if scores is None else scores[0]

    def sensitivity(self, *, n_points: int = 21) -> Sensitivity:
        """How the error rate moves as the classifier's errors depend more and more on the labelers'."""
        return error_sensitivity(self.problem, truth=self.solution.truth, n_points=n_points)

    # ------------------------------------------------------------------ out

    def __repr__(self) -> str:
        lines = [f"Evaluation of {self.n_items:,} predictions ({self.answer_in_words()}, target {self.target})"]
        lines += lines_of([(name, self[name], "") for name in self.metrics], self.level)
        lines += [f"  ! {sentence}" for sentence in self.warnings]
        if self.independence is not None and not self.independence.dependent:
            lines.append(f"  {self.independence.in_short}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A small table with bars, for notebooks."""
        rows = [(name, self[name].mean, *self[name].interval(self.level)) for name in self.metrics]
        step = self.next_step()
        title = f"Evaluation of {self.n_items:,} predictions ({self.answer_in_words()})"
        return html_table(title, rows, notes=(*([] if step is None else [f"{step}."]), *self.warnings))

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a metric: metric, mean, median, std, low, high, undefined."""
        rows = []
        for name in self.metrics:
            number = self[name]
            numbers = (number.mean, number.median, number.std, *number.interval(self.level), number.undefined)
            rows.append((name, *numbers))
        return frame_of(("metric", "mean", "median", "std", "low", "high", "undefined"), rows, backend)

    def plot(self, ax: Any = None) -> Any:
        """Mean and interval of each metric; returns the Axes."""
        rows = [(name, self[name], "") for name in self.metrics]
        return plot_intervals(rows, self.level, ax, purpose="Evaluation.plot()")

    def to_dict(self) -> dict[str, Any]:
        """Everything a report needs, JSON-able."""
        return {
            "method": self.method,
            **self._about(),
            "vettings": self.vettings,
            "refused": self.refused,
            "gold_alone": {name: estimate.to_dict(self.level) for name, estimate in self.gold_alone.items()},
            "classes": [str(c) for c in self.classes.tolist()],
            "metrics": {name: self[name].to_dict(self.level) for name in self.metrics},
            "confusion": self.confusion.mean.tolist(),
            "warnings": list(self.warnings),
            "diagnostics": dict(self.diagnostics),
        }

    def save_html(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write a report on this system as one HTML file; .md and .json work too.

        See `trueup.report.build_report` for reports on several systems or with settings.
        """
        from trueup.report import build_report, save_report

        return save_report(build_report(self, title=title), path)


_FALSE_DISCOVERIES = 0.05


@dataclass(frozen=True, eq=False)
class Slices(BySlice[Part]):
    """The evaluation of each slice; ``ev.by["sport"]["accuracy"]`` is an `Estimate`."""

    task: Task = field(repr=False)  # of the whole
    next_checks: Callable[[Booleans], NextChecks | None] = field(repr=False)
    compare_outputs: Callable[[str, AlignedPredictions], Comparison] = field(repr=False)
    _comparisons: dict[str, Comparison] = field(default_factory=dict, init=False, repr=False)

    def compared(self, metric: str | None = None) -> Comparison:
        """The slices side by side, as `compare` has systems: differences, ranking, P(best)."""
        name = self._named(metric)
        if name not in self._comparisons:
            members = [self.slicing.members(slice_name) for slice_name in self]
            outputs = _restricted(self.task.outputs, members, self.slicing)  # each slice as if it were a system
            self._comparisons[name] = self.compare_outputs(name, outputs)
        return self._comparisons[name]

    def _named(self, metric: str | None) -> str:
        return next(iter(self.task.metrics)) if metric is None else metric

    def difference(self, a: Hashable, b: Hashable, metric: str | None = None) -> Estimate:
        """The metric in slice a minus that in slice b, on the same draws."""
        return self.compared(metric).difference(a, b)

    def prob_worse(self, metric: str | None = None) -> dict[Any, float]:
        """P(slice is worse than all other items together), for each slice."""
        compared = self.compared(metric)
        outside = [~self.slicing.members(name) for name in self]
        rest = self.compare_outputs(self._named(metric), _restricted(self.task.outputs, outside, self.slicing))
        sign = 1.0 if compared.higher_is_better else -1.0
        gaps = sign * (compared.draws - rest.draws)
        chances = np.nanmean(np.where(np.isnan(gaps), np.nan, (gaps < 0) + 0.5 * (gaps == 0)), axis=0)
        return dict(zip(self, chances.tolist(), strict=True))

    def worse(self, metric: str | None = None, *, false_discoveries: float = _FALSE_DISCOVERIES) -> list[Any]:
        """The slices that are worse than the rest, by Benjamini and Hochberg's rule on P(not worse)."""
        check_number(false_discoveries, name="false_discoveries", low=0.0, high=1.0)
        chances = self.prob_worse(metric)
        ordered = sorted((name for name in chances if not np.isnan(chances[name])), key=lambda name: -chances[name])
        n_draws = len(self.compared(metric).draws)  # no chance is known better than to one draw
        values = [(n_draws * (1 - chances[name]) + 1) / (n_draws + 1) for name in ordered]
        adjusted = scipy.stats.false_discovery_control(values)
        return [name for name, value in zip(ordered, adjusted, strict=True) if value <= false_discoveries]

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
        return frame_of(columns, self._rows(), backend)

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
        compared, worse = self.compared(), self.worse() if len(self) > 1 else []
        sizes = zip(self, self.slicing.sizes.tolist(), strict=True)
        words = {name: f"({size:,} items){'  worse than the rest' * (name in worse)}" for name, size in sizes}
        rows = [(name, compared[name], words[name]) for name in self]
        return "\n".join([f"{self._named(None)} by {self.slicing.column}", *lines_of(rows, self.task.level)])


def _restricted(outputs: AlignedPredictions, members: Sequence[Booleans], slicing: Slicing) -> AlignedPredictions:
    """What a system says within each slice, as if each slice were a system."""
    parts = [outputs.on_items(inside) for inside in members]
    tables = {kind: [getattr(part, kind) for part in parts] for kind in ("codes", "scores", "probabilities")}
    stacked = {kind: None if table[0] is None else np.concatenate(table) for kind, table in tables.items()}
    return of_other_systems(outputs, slicing.names, **stacked)
