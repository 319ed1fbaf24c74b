"""The answer of `evaluate` for votes in files: estimates from counts, without any array of all items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from trueup._base.validation import check_choice
from trueup.answers.confusion import ConfusionEstimate, of_confusion
from trueup.answers.metric_estimates import MetricEstimates
from trueup.answers.scanned_checks import check_scan
from trueup.answers.scanned_setup import ScannedAnswer, ScannedTask, as_system, check_unknown, prepare_scan
from trueup.answers.settings import Settings
from trueup.data.labels import Labels
from trueup.data.rated import rated_scan
from trueup.data.scanning import LabelScan
from trueup.estimators.assumptions import ASSUMPTIONS, Assumption
from trueup.estimators.collapsed_readings import CollapsedReadings, counts_of_systems, read_scan
from trueup.estimators.counts import CountsPosterior, DrawnCounts, DrawnRates, PointCounts, point_estimate
from trueup.estimators.truth import Basis
from trueup.estimators.vetting import widths_after_vetting
from trueup.exceptions import silenced_warnings
from trueup.metrics import Metric
from trueup.noise import IndependenceCheck
from trueup.posteriors import Estimate

_DRAWS = 2000
_OFFERS = (
    "assume",
    "metrics",
    "target",
    "level",
    "positive",
    "missing",
    "unknown",
    "random_state",
    "engine",
    "check_dependence",
)


@dataclass(frozen=True, eq=False, repr=False)
class ScannedEvaluation(ScannedAnswer, MetricEstimates):
    """Estimates by metric name, of a system on the items of a scan.

    Attributes
    ----------
    task : ScannedTask
        What was asked: labels, metrics, positive class, target, level, seed.
    readings : CollapsedReadings
        The items summed up, and what models say.
    assumption : {"real", "shared", "independent"}
        What the answers assume of errors.
    warnings : tuple of str
        Sentences a user should read before trusting the numbers.
    from_votes : bool
        Whether gold that was drawn is left aside: the answers of `assuming`.
    independence : IndependenceCheck or None
    refused : bool
        Whether vetted items contradict the models, so that these give no interval.
    """

    task: ScannedTask = field(repr=False)
    readings: CollapsedReadings = field(repr=False)
    assumption: Assumption
    warnings: tuple[str, ...]
    from_votes: bool = False
    independence: IndependenceCheck | None = None
    refused: bool = False

    @property
    def n_items(self) -> int:
        """Items with a prediction."""
        return int(self.readings.times[self.readings.codes[0] >= 0].sum())

    @property
    def basis(self) -> Basis:
        """What the answer rests on: "gold" that was drawn at random, or "votes"; that of the first metric."""
        return self.basis_of(next(iter(self.task.metrics), "accuracy"))

    def basis_of(self, name: str) -> Basis:
        """What the answer about one metric rests on."""
        return "votes" if self.from_votes else self.readings.basis(self.task.metric_named(name))

    @property
    def method(self) -> str:
        """The name of the method."""
        return "bayes"

    def metric(self, name: str) -> Metric:
        """The metric behind a name: one of the call, or any other of the confusion counts."""
        return self.task.metric_named(name)

    @cached_property
    def counts(self) -> CountsPosterior:
        """The posterior of the confusion counts."""
        metric = of_confusion(self.classes)
        counts = self._counts_for(metric)
        return PointCounts(counts.mean_counts) if self._has_no_interval(metric) else counts

    def _counts_for(self, metric: Metric) -> CountsPosterior:
        if self.from_votes:
            truths = self.readings.assuming(self.assumption).truths
        else:
            truths = self.readings.counts_for(metric, self.assumption)
        counts = counts_of_systems(truths, self.readings.patterns, self.target, self.seed)[:, 0]
        if self.target == "sample":
            return DrawnCounts(counts)
        return DrawnRates(counts / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1e-300))

    def __getitem__(self, name: str) -> Estimate:
        metric = self.task.metric_named(name)
        estimate = self._counts_for(metric).estimate(metric)
        return (point_estimate(metric, estimate.mean) if self._has_no_interval(metric) else estimate).named(name)

    def _has_no_interval(self, metric: Metric) -> bool:
        """Whether a metric rests on models that vetted items contradict."""
        return self.refused and (self.from_votes or self.readings.basis(metric) == "votes")

    @property
    def gold_alone(self) -> dict[str, Estimate]:
        """What vetted items that were drawn at random say by themselves of each metric that looks at some of them."""
        each = {name: self.readings.alone(metric, self.classes) for name, metric in self.task.metrics.items()}
        return {name: estimate.named(name) for name, estimate in each.items() if estimate is not None}

    @property
    def vettings(self) -> dict[int, float]:
        """How wide the interval of the accuracy would be after so many vetted items drawn at random, about.

        Of numbers beyond those that are vetted already, such as would make it narrower than it is now.
        """
        readings = self.readings
        is_known = (readings.known >= 0) | (readings.vetted >= 0)
        widths = widths_after_vetting(
            readings.centre, readings.codes[0], self.level, known=is_known, times=readings.times
        )
        low, high = self["accuracy"].interval(self.level)
        return {n: width for n, width in widths.items() if n > readings.n_vetted and not width >= high - low}

    def assuming(self, assumption: Assumption) -> ScannedEvaluation:
        """The same evaluation from votes alone under another assumption: {"independent", "shared", "real"}."""
        check_choice(assumption, ASSUMPTIONS, name="assumption")
        return replace(self, assumption=assumption, from_votes=True)

    @property
    def confusion(self) -> ConfusionEstimate:
        """The confusion matrix with an interval for each cell."""
        return ConfusionEstimate(self.classes, self.counts, self.level)

    def answer_in_words(self) -> str:
        """What the numbers rest on, in a few words."""
        return "rests on gold" if self.basis == "gold" else f"from votes, assuming {self.assumption} errors"


def evaluate_scan(predictions: Any, scan: LabelScan[Labels], settings: Settings) -> ScannedEvaluation:
    """The plain call of `evaluate` on votes that are scanned."""
    asked = settings.arguments
    system = as_system(predictions)
    task = prepare_scan(scan, settings, metrics=asked["metrics"], offers=_OFFERS)
    missing = check_choice(asked["missing"], ("error", "ignore"), name="missing")
    rated = rated_scan(scan, [system], may_miss=missing == "ignore")
    with silenced_warnings():  # what fits would say is among the warnings below
        readings = read_scan(rated, task.real_map, n_draws=_DRAWS, seed=task.seed, positive=task.positive)
        check_unknown([system], [int(readings.times[readings.codes[0] >= 0].sum())], asked["unknown"])
        checks = check_scan(rated, task, readings, ["classifier"], check_dependence=asked["check_dependence"])
    warnings, independence, refused = checks.sentences, checks.independence, checks.refused
    return ScannedEvaluation(task, readings, task.assumption, warnings, independence=independence, refused=refused)
