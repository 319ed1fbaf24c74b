"""The answer of `compare` for votes in files: all systems on the same draws of counts, without any array of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import check_choice, check_integer
from trueup.answers.paired import Disagreement, PairedEstimates, undefined_notes
from trueup.answers.scanned_checks import check_scan
from trueup.answers.scanned_setup import ScannedAnswer, ScannedTask, as_system, check_unknown, prepare_scan
from trueup.answers.settings import Settings
from trueup.answers.setup import check_one_metric, check_rankable, items_in_words
from trueup.data.encoding import Vocabulary, vocabulary_from
from trueup.data.labels import Labels
from trueup.data.rated import rated_scan, with_common_outputs
from trueup.data.scanning import LabelScan
from trueup.estimators.assumptions import ASSUMPTIONS, Assumption
from trueup.estimators.collapsed import patterns_of
from trueup.estimators.collapsed_readings import CollapsedReadings, counts_of_systems, read_scan
from trueup.estimators.truth import Basis
from trueup.exceptions import InvalidPredictions, silenced_warnings
from trueup.metrics import Metric

_OFFERS = (
    "metric",
    "assume",
    "target",
    "level",
    "positive",
    "items",
    "n_draws",
    "random_state",
    "engine",
    "unknown",
    "check_dependence",
)


@dataclass(frozen=True, eq=False, repr=False)
class ScannedComparison(ScannedAnswer, PairedEstimates):
    """The metric of every system on the same draws of the truth, of systems on the items of a scan.

    Attributes
    ----------
    task : ScannedTask
        What was asked: labels, metric, positive class, target, level, seed.
    names : array
        Of the systems.
    readings : CollapsedReadings
        The items summed up, and what models say.
    measure : Metric
    draws : array of shape (n_draws, n_systems)
        The metric of each system; a row is of one truth.
    assumption : {"real", "shared", "independent"}
        What the answers assume of errors.
    warnings : tuple of str
        Sentences a user should read before trusting the numbers.
    """

    task: ScannedTask = field(repr=False)
    names: Vocabulary
    readings: CollapsedReadings = field(repr=False)
    measure: Metric
    draws: Floats = field(repr=False)
    assumption: Assumption
    warnings: tuple[str, ...]
    refused: bool = False
    from_votes: bool = False

    @property
    def systems(self) -> Vocabulary:
        """The names of the systems, in the order of the columns of `draws`."""
        return self.names

    @property
    def n_items(self) -> int:
        """Items the systems are judged on (any of them)."""
        return int(self.readings.times[(self.readings.codes >= 0).any(axis=0)].sum())

    @property
    def basis(self) -> Basis:
        """What the answer rests on: "gold" that was drawn at random, or "votes"."""
        return "votes" if self.from_votes else self.readings.basis(self.measure)

    def assuming(self, assumption: Assumption) -> ScannedComparison:
        """The same comparison from votes alone under another assumption: {"independent", "shared", "real"}."""
        check_choice(assumption, ASSUMPTIONS, name="assumption")
        values = _values(self.readings.assuming(assumption).truths, self.readings, self.measure, self.task)
        return replace(self, draws=values, assumption=assumption, from_votes=True)

    def answer_in_words(self) -> str:
        """What the numbers rest on, in a few words."""
        return "rests on gold" if self.basis == "gold" else f"from votes, assuming {self.assumption} errors"

    def with_advice(self) -> ScannedComparison:
        """With what some vettings would settle, where a system is called the best from votes alone."""
        return super().with_advice() if self.basis == "votes" else self

    @property
    def _truths(self) -> Codes:
        """The drawn counts that the values are of."""
        if self.from_votes:
            return self.readings.assuming(self.assumption).truths
        return self.readings.counts_for(self.measure, self.assumption)

    def numbers_apart(self, a: Any, b: Any) -> tuple[int, int]:
        """The number of items that two systems both class, and of those that they class differently."""
        times = self.readings.patterns.times
        both, different = self._where_apart(a, b)
        return int(times[both].sum()), int(times[different].sum())

    def _where_apart(self, a: Any, b: Any) -> tuple[Booleans, Booleans]:
        """The patterns in which two systems name a class, and in which they name different ones."""
        mine, other = (self.readings.patterns.codes[self._at(one)] for one in (a, b))
        both = (mine >= 0) & (other >= 0)
        return both, both & (mine != other)

    def disagreement(self, a: Any, b: Any) -> Disagreement:
        """Where two systems predict different classes, and who is right there."""
        at = np.flatnonzero(self._where_apart(a, b)[1])
        truths, codes = self._truths, self.readings.patterns.codes
        first, second = (truths[:, at, codes[self._at(one), at]].sum(axis=1).astype(float) for one in (a, b))
        return Disagreement.of_draws(a, b, self.numbers_apart(a, b), (first, second))


def _values(truths: Codes, readings: CollapsedReadings, metric: Metric, task: ScannedTask) -> Floats:
    """The metric of every system on every draw of counts, shape (n_draws, n_systems)."""
    return metric(counts_of_systems(truths, readings.patterns, task.target, task.seed))


def compare_scan(systems: Any, scan: LabelScan[Labels], settings: Settings) -> ScannedComparison:
    """The plain call of `compare` on votes that are scanned."""
    asked = settings.arguments
    if not isinstance(systems, Mapping) or len(systems) < 2:
        raise InvalidPredictions(
            "systems on a scan must be a mapping of two or more, from name to a column of its files or to a mapping "
            f"from item to class, got {_in_words(systems)}; pass e.g. {{'a': 'column_a', 'b': 'column_b'}}"
        )
    sources = [as_system(one) for one in systems.values()]
    task = prepare_scan(scan, settings, metrics=asked["metric"], offers=_OFFERS)
    metric = check_one_metric(task.metrics, settings.door)
    check_rankable(metric)
    n_draws = check_integer(asked["n_draws"], name="n_draws", low=10)
    rule = check_choice(asked["items"] or "common", ("common", "own"), name="items")
    names, rated = vocabulary_from(list(systems)), rated_scan(scan, sources, may_miss=True)
    patterns = patterns_of(rated)
    check_unknown(sources, ((patterns.codes >= 0) @ patterns.times).astype(int).tolist(), asked["unknown"])
    findings, only_common = [], rule == "common" and not patterns.is_common.all()
    if not patterns.is_common.all():
        is_any = (patterns.codes >= 0).any(axis=0)
        n_common, n_any = (int(patterns.times[where].sum()) for where in (patterns.is_common, is_any))
        findings = [items_in_words(n_common, n_any, rule)]
    if only_common:
        patterns, rated = patterns.common(), with_common_outputs(rated)
    with silenced_warnings():  # what fits would say is among the warnings below
        how = {"n_draws": n_draws, "seed": task.seed, "positive": task.positive}
        readings = read_scan(rated, task.real_map, **how, patterns=patterns)
        checks = check_scan(rated, task, readings, names.tolist(), check_dependence=asked["check_dependence"])
    values = _values(readings.counts_for(metric, task.assumption), readings, metric, task)
    warnings = (*findings, *checks.sentences, *undefined_notes(values, names.tolist(), metric))
    answer = ScannedComparison(task, names, readings, metric, values, task.assumption, warnings, refused=checks.refused)
    return answer.with_advice()


def _in_words(systems: Any) -> str:
    return f"{len(systems)} of them" if isinstance(systems, Mapping) else type(systems).__name__
