"""The answer of `evaluate` for votes in files: estimates from counts, without any array of all items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from trueup._base.validation import check_choice
from trueup.answers.confusion import ConfusionEstimate
from trueup.answers.metric_estimates import MetricEstimates
from trueup.answers.scanned_setup import ScannedTask, as_system, doubts_on, prepare_scan
from trueup.answers.settings import Settings
from trueup.data.labels import Labels
from trueup.data.rated import rated_scan
from trueup.data.scanning import LabelScan
from trueup.estimators.collapsed_readings import CollapsedReadings, counts_of_systems, masses_of, read_scan
from trueup.estimators.counts import CountsPosterior, DrawnCounts, DrawnRates
from trueup.estimators.readings import ASSUMPTIONS, Assumption
from trueup.estimators.truth import Basis
from trueup.exceptions import silenced_warnings
from trueup.posteriors import Estimate

_DRAWS = 2000
_OFFERS = ("assume", "metrics", "target", "level", "positive", "missing", "random_state", "engine", "check_dependence")


@dataclass(frozen=True, eq=False, repr=False)
class ScannedEvaluation(MetricEstimates):
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
    """

    task: ScannedTask = field(repr=False)
    readings: CollapsedReadings = field(repr=False)
    assumption: Assumption
    warnings: tuple[str, ...]

    @property
    def n_items(self) -> int:
        """Items with a prediction."""
        return int(self.readings.times[self.readings.codes[0] >= 0].sum())

    @property
    def basis(self) -> Basis:
        """What the answer rests on: votes."""
        return "votes"

    @cached_property
    def counts(self) -> CountsPosterior:
        """The posterior of the confusion counts."""
        truths = self.readings.assuming(self.assumption).truths
        counts = counts_of_systems(masses_of(truths, self.target, self.seed), self.readings.patterns)[:, 0]
        if self.target == "sample":
            return DrawnCounts(counts)
        return DrawnRates(counts / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1e-300))

    def __getitem__(self, name: str) -> Estimate:
        return self.counts.estimate(self.task.metric_named(name)).named(name)

    def assuming(self, assumption: Assumption) -> ScannedEvaluation:
        """The same evaluation under another assumption: {"independent", "shared", "real"}."""
        check_choice(assumption, ASSUMPTIONS, name="assumption")
        return replace(self, assumption=assumption)

    @property
    def confusion(self) -> ConfusionEstimate:
        """The confusion matrix with an interval for each cell."""
        return ConfusionEstimate(self.classes, self.counts, self.level)

    def answer_in_words(self) -> str:
        """What the numbers rest on, in a few words."""
        return f"from votes, assuming {self.assumption} errors"


def evaluate_scan(predictions: Any, scan: LabelScan[Labels], settings: Settings) -> ScannedEvaluation:
    """The plain call of `evaluate` on votes that are scanned."""
    asked = settings.arguments
    system = as_system(predictions)
    task = prepare_scan(scan, settings, metrics=asked["metrics"], offers=_OFFERS)
    missing = check_choice(asked["missing"], ("error", "ignore"), name="missing")
    rated = rated_scan(scan, [system], may_miss=missing == "ignore")
    with silenced_warnings():  # what fits would say is among the warnings below
        readings = read_scan(rated, task.real_map, n_draws=_DRAWS, seed=task.seed)
    notes = readings.assuming(task.assumption).notes
    return ScannedEvaluation(task, readings, task.assumption, (*doubts_on(rated), *notes))
