"""The answer of `evaluate`: the posterior of every metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import check_choice
from trueup.answers.answer import LabelsAnswer
from trueup.answers.comparison import Comparison
from trueup.answers.confusion import ConfusionEstimate, both_of, of_confusion
from trueup.answers.gold_alone import estimate_alone
from trueup.answers.metric_estimates import MetricEstimates
from trueup.answers.setup import FUNCTION_DRAWS, Task, solution_on, values_on
from trueup.answers.slices import Slices
from trueup.data.aligned import AlignedPredictions
from trueup.data.slices import Slicing
from trueup.estimators import METHODS, JointPoint, Problem, Solution
from trueup.estimators.assumptions import ASSUMPTIONS, Assumption
from trueup.estimators.counts import CountsPosterior, PointCounts, point_estimate
from trueup.estimators.curves import (
    Curve,
    CurveKind,
    Sensitivity,
    curve_of_truths,
    error_sensitivity,
    performance_curve,
)
from trueup.estimators.system_features import Used
from trueup.estimators.truth import Basis, TruthEngine, is_drawn, truths_given_outputs
from trueup.estimators.truth_draws import TruthDraws
from trueup.estimators.vetting import widths_after_vetting
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.noise import IndependenceCheck, NoiseModel
from trueup.noise.base import vote_shares
from trueup.posteriors import DrawnEstimate, Estimate, JointEstimate


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(LabelsAnswer, MetricEstimates):
    """Estimates by metric name, and how they came about.

    ``ev["accuracy"]`` is an `Estimate`; any metric can be asked for, not only those named in the call.

    Attributes
    ----------
    task : Task
        What was asked: labels, outputs, metrics, positive class, target, level, seed.
    solution : Solution
        The method's own answer, with traces and diagnostics.
    model : NoiseModel or None
        The noise model behind it: known, fitted, or drawn together with the truth.
    warnings : tuple of str
        Sentences a user should read before trusting the numbers.
    independence : IndependenceCheck or None
    engine : TruthEngine or None
        Behind the answers where no noise model and no other method was named.
    assumption : {"real", "shared", "independent"} or None
        What the answers that rest on votes assume of errors; None where a noise model or a method was named.
    refused : bool
        Whether vetted items contradict the models, so that these give no interval.
    from_votes : bool
        Whether gold that was drawn is left aside: the answers of `assuming`.
    """

    task: Task = field(repr=False)
    solution: Solution = field(repr=False)
    model: NoiseModel | None = field(repr=False)
    warnings: tuple[str, ...]
    independence: IndependenceCheck | None
    engine: TruthEngine | None = field(default=None, repr=False)
    assumption: Assumption | None = None
    refused: bool = False
    from_votes: bool = field(default=False, repr=False)

    # ------------------------------------------------------------------ what was asked

    @property
    def method(self) -> str:
        """The name of the method."""
        return METHODS.resolve(self.settings.arguments.get("method", "bayes"))  # doors of rates take none

    @property
    def predictions(self) -> Codes:
        """The predicted class of each item as a code, -1 for none."""
        return self.task.codes

    @property
    def n_items(self) -> int:
        """Items with a prediction."""
        return int((self.predictions >= 0).sum())

    # ------------------------------------------------------------------ what it rests on

    @property
    def basis(self) -> Basis:
        """What the answer rests on: "gold" that was drawn at random, or "votes"; that of the first metric."""
        return self.basis_of(next(iter(self.task.metrics), "accuracy"))

    def basis_of(self, name: str) -> Basis:
        """What the answer about one metric rests on."""
        return "votes" if self.engine is None or self.from_votes else self.engine.basis(self.metric(name))

    @property
    def has_assumptions(self) -> bool:
        """Whether there is an answer for each assumption: no noise model and no other method was named."""
        return self.engine is not None and self.engine.alone is None

    @property
    def diagnostics(self) -> Mapping[str, float]:
        """How the draws went."""
        return self.solution.diagnostics

    def assuming(self, assumption: Assumption) -> Evaluation:
        """The same evaluation from votes alone under another assumption.

        Parameters
        ----------
        assumption : {"independent", "shared", "real"}
        """
        check_choice(assumption, ASSUMPTIONS, name="assumption")
        if self.engine is None or not self.has_assumptions:
            named = "a noise model" if self.method == "bayes" else f"the method {self.method!r}"
            raise InvalidParameter(
                f"there is one answer here, that of {named} that was named, and none assuming {assumption!r}; leave "
                "out ⟨noise⟩ and ⟨method⟩ to have all three",
                parameter="assumption",
            )
        truth = self.engine.assuming(self.metric("accuracy"), assumption)
        rng = np.random.default_rng(self.seed)
        solution = solution_on(truth, self.task, rng)
        return replace(self, solution=solution, assumption=assumption, from_votes=True)

    @property
    def vettings(self) -> dict[int, float]:
        """How wide the interval of the accuracy would be after so many vetted items drawn at random, about.

        Of numbers beyond those that are vetted already, such as would make it narrower than it is now.
        """
        known = self.labels.gold_codes >= 0
        drawn = np.zeros(self.labels.n_items, dtype=bool) if self.engine is None else self.engine.drawn_gold >= 0
        widths = widths_after_vetting(self.solution.truth, self.predictions, self.level, known=known | drawn)
        low, high = self["accuracy"].interval(self.level)
        return {n: width for n, width in widths.items() if n > drawn.sum() and not width >= high - low}

    @property
    def gold_alone(self) -> dict[str, Estimate]:
        """What vetted items that were drawn at random say by themselves of each metric that looks at some of them."""
        if self.engine is None:
            return {}
        alone = {name: estimate_alone(self.engine, self.task, metric) for name, metric in self.task.metrics.items()}
        return {name: estimate.named(name) for name, estimate in alone.items() if estimate is not None}

    @cached_property
    def by(self) -> Slices[Evaluation]:
        """The same for each slice of the items; see ``by`` of `trueup.evaluate`."""
        if self.task.slices is None:
            raise InvalidParameter("there are no slices here, got a call without ⟨by⟩; name a column of the items")
        return self.sliced_by(self.task.slices)

    def sliced_by(self, slicing: Slicing) -> Slices[Evaluation]:
        """The same for slices, on the same draws of the truth."""
        return Slices(slicing, self.on_items, self.task, self.solution.truth, self.compare_outputs)

    def compare_outputs(self, name: str, outputs: AlignedPredictions) -> Comparison:
        """A metric of other outputs, on the same draws of the truth."""
        metric = self.metric(name)
        task = replace(self.task, outputs=outputs, metrics={name: metric}, slices=None)
        truth = self.draws_for(metric)
        values = values_on(truth, task, metric, np.random.default_rng(self.seed))
        how = {"from_votes": self.from_votes, "refused": self.refused}
        return Comparison(task, self.model, metric, values, truth, (), self.engine, self.assumption, **how)

    def on_items(self, members: Booleans) -> Evaluation:
        """The evaluation of some of the items, on the same draws of the truth."""
        task = replace(self.task, outputs=self.task.outputs.on_items(members), slices=None)
        truth = self.draws_for(self.metric("accuracy"))
        rng = np.random.default_rng(self.seed)
        solution = solution_on(truth, task, rng)
        return replace(self, task=task, solution=solution)

    # ------------------------------------------------------------------ the answers

    @cached_property
    def _cache(self) -> dict[str, Estimate]:
        return {}

    def __getitem__(self, name: str) -> Estimate:
        if name not in self._cache:
            self._cache[name] = self._estimate(self.metric(name)).named(name)
        return self._cache[name]

    def metric(self, name: str) -> Metric:
        """The metric behind a name: one of the call, or any other that is known."""
        return self.task.metric_named(name)

    def _estimate(self, metric: Metric) -> Estimate:
        if self._has_no_interval(metric):
            return point_estimate(metric, self._estimate_from_draws(metric).mean)
        if metric.needs == "counts" and self.engine is None:
            return self.solution.counts.estimate(metric)
        return self._estimate_from_draws(metric)

    def _estimate_from_draws(self, metric: Metric) -> Estimate:
        rng = np.random.default_rng(self.seed)
        if self.engine is None and metric.needs == "labels":
            truths = self.solution.counts.draw_truths(FUNCTION_DRAWS, rng)
            seen = self.predictions >= 0
            values = metric.of_labels(truths[:, seen], self.predictions[seen], classes=self.classes)
            return DrawnEstimate(values, bounds=metric.bounds, name=metric.name)
        if self.engine is not None and metric.needs == "counts":
            truth = self.draws_for(metric)
            solution = solution_on(truth, self.task, rng)
            return solution.counts.estimate(metric)
        values = values_on(self.draws_for(metric), self.task, metric, rng)
        return DrawnEstimate(values[:, 0], bounds=metric.bounds, name=metric.name)

    def draws_for(self, metric: Metric) -> TruthDraws:
        """The draws of the truth that a metric is measured on."""
        if self.engine is None:
            return self._truths(metric.looks_at)
        if self.from_votes:
            return self.engine.assuming(metric, self.assumption)
        return self.engine.headline(metric, self.assumption)

    def _truths(self, used: Used) -> TruthDraws:
        """Truths drawn with the scores or probabilities as evidence; the same for all metrics that look at these."""
        if used not in self._drawn_truths:
            if self.model is None or self.method != "bayes":
                raise InvalidParameter('metrics of scores need ⟨method="bayes"⟩; or use trueup.auc', parameter="method")
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

    @cached_property
    def _drawn_truths(self) -> dict[Used, TruthDraws]:
        return {}

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
        """The confusion matrix with an interval for each cell.

        From 20 drawn and vetted items on it rests on draws that these correct in every cell (with over 30 classes, in
        right and wrong alone), else on the votes under the assumption of the headline.
        """
        counts = self._believed(self.solution.counts, of_confusion(self.classes))
        return ConfusionEstimate(self.classes, counts, self.level)

    def _believed(self, counts: CountsPosterior, *metrics: Metric) -> CountsPosterior:
        """The counts, without their spread where vetted items contradict the models that a metric rests on."""
        return PointCounts(counts.mean_counts) if any(self._has_no_interval(one) for one in metrics) else counts

    def _has_no_interval(self, metric: Metric) -> bool:
        """Whether a metric rests on models that vetted items contradict."""
        from_gold = self.engine is not None and not self.from_votes and self.engine.basis(metric) == "gold"
        return self.refused and not from_gold

    def joint(self, a: str, b: str) -> JointEstimate | JointPoint:
        """The joint distribution of two metrics of the counts, with highest-density regions.

        It rests on drawn and vetted items where both metrics do, on draws that are right for both; else on the votes.
        """
        pair = [self.metric(name) for name in (a, b)]
        for metric in pair:
            if metric.needs != "counts":
                raise InvalidParameter(
                    f"joint distributions are for metrics of the confusion counts, got {metric.name!r}"
                )
        if self.engine is None:
            return self.solution.counts.joint(*pair)
        truth = self.draws_for(pair[0]) if a == b else self._drawn_for_both(a, b)
        solution = solution_on(truth, self.task, np.random.default_rng(self.seed))
        return self._believed(solution.counts, *pair).joint(*pair)

    def _drawn_for_both(self, a: str, b: str) -> TruthDraws:
        """Draws that two metrics can be measured on together."""
        assert self.engine is not None
        if {self.basis_of(a), self.basis_of(b)} != {"gold"}:
            return self.engine.assuming(self.metric(a), self.assumption)
        first, second = sorted((a, b))
        if (first, second) not in self._pairs:
            self._pairs[first, second] = both_of(self.metric(first), self.metric(second))
        return self.engine.rectified(self._pairs[first, second])

    @cached_property
    def _pairs(self) -> dict[tuple[str, str], Metric]:
        """Metrics that stand for two, kept since the engine knows what it has drawn by the function."""
        return {}

    def curve(self, kind: CurveKind = "roc", *, n_thresholds: int = 41) -> Curve:
        """ROC or precision–recall curve with its uncertainty, from scores (two classes)."""
        check_choice(kind, ("roc", "pr"), name="kind")
        scores = self.scores
        if scores is None:
            raise InvalidParameter("a curve needs scores, got classes only; pass Predictions.from_scores")
        how: dict[str, Any] = {"n_thresholds": n_thresholds, "positive": self.positive, "level": self.level}
        if self.engine is not None:
            truths = self.draws_for(self.metric("auc")).truths
            curve = curve_of_truths(truths, scores, kind=kind, **how)
            if not self._has_no_interval(self.metric("auc")):
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

    def answer_in_words(self) -> str:
        """What the numbers rest on, in a few words."""
        if self.engine is None:
            return f"{self.method}, noise {self.noise}"
        if self.basis != "gold" and self.engine.alone is not None:
            return f"from votes, noise {self.noise}"
        return "rests on gold" if self.basis == "gold" else f"from votes, assuming {self.assumption} errors"
