"""The answer of `evaluate` for votes in files: estimates from counts, without any array of all items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from trueup._base.types import Floats, Target
from trueup._base.validation import check_choice, check_level, seed_of
from trueup.answers.confusion import ConfusionEstimate
from trueup.answers.settings import Settings
from trueup.answers.setup import DEFAULT_TARGET
from trueup.data.encoding import Vocabulary
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.data.rated import rated_scan
from trueup.data.scanning import LabelScan
from trueup.estimators.collapsed import CollapsedReadings, read_scan
from trueup.estimators.counts import CountsPosterior, DrawnCounts, DrawnRates
from trueup.estimators.readings import ASSUMPTIONS, DEFAULT_ASSUMPTION, MANY_CLASSES, Assumption
from trueup.estimators.real_map import RealMap, shipped_map
from trueup.estimators.truth import Basis
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions, Sentence, silenced_warnings
from trueup.metrics import Metric, as_metrics
from trueup.noise import identifiability_problem
from trueup.posteriors import Estimate

_DRAWS = 2000
_TAKEN = ("assume", "metrics", "target", "level", "positive", "missing", "random_state", "engine", "check_dependence")


@dataclass(frozen=True, eq=False)
class ScannedEvaluation(Mapping[str, Estimate]):
    """Estimates by metric name, of a system on the items of a scan.

    Attributes
    ----------
    readings : CollapsedReadings
        The items summed up, and what models say.
    named_metrics : mapping from str to Metric
    classes : array
    n_items : int
        Items with a prediction.
    target : {"sample", "population"}
    level : float
    assumption : {"real", "shared", "independent"}
        What the answers assume of errors.
    warnings : tuple of str
        Sentences a user should read before trusting the numbers.
    settings : Settings
        The call: every argument, as data.
    """

    readings: CollapsedReadings = field(repr=False)
    named_metrics: Mapping[str, Metric] = field(repr=False)
    classes: Vocabulary
    n_items: int
    target: Target
    level: float
    assumption: Assumption
    warnings: tuple[str, ...]
    settings: Settings = field(repr=False)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics asked for; what iteration and `to_frame` show."""
        return tuple(self.named_metrics)

    @property
    def seed(self) -> int:
        """What gives the same numbers again as `random_state`."""
        return self.readings.seed

    @property
    def basis(self) -> Basis:
        """What the answer rests on: votes."""
        return "votes"

    @cached_property
    def counts(self) -> CountsPosterior:
        """The posterior of the confusion counts."""
        counts = np.asarray(self.readings.assuming(self.assumption).truths, dtype=float)
        if self.target == "sample":
            return DrawnCounts(counts)
        rates: Floats = np.random.default_rng(self.seed).standard_gamma(counts)
        return DrawnRates(rates / np.maximum(rates.sum(axis=(1, 2), keepdims=True), 1e-300))

    def __getitem__(self, name: str) -> Estimate:
        positive = self.settings.arguments["positive"]
        metric = self.named_metrics.get(name) or as_metrics([name], self.classes.tolist(), positive)[name]
        _check_metric(name, metric)
        return self.counts.estimate(metric).named(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def assuming(self, assumption: Assumption) -> ScannedEvaluation:
        """The same evaluation under another assumption: {"independent", "shared", "real"}."""
        check_choice(assumption, ASSUMPTIONS, name="assumption")
        return replace(self, assumption=assumption)

    @property
    def confusion(self) -> ConfusionEstimate:
        """The confusion matrix with an interval for each cell."""
        return ConfusionEstimate(self.classes, self.counts, self.level)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a metric: metric, mean, median, std, low, high, undefined."""
        columns: dict[str, list[Any]] = {"metric": list(self.metrics)}
        estimates = [self[name] for name in self.metrics]
        columns |= {part: [getattr(one, part) for one in estimates] for part in ("mean", "median", "std")}
        ends = [one.interval(self.level) for one in estimates]
        columns |= {"low": [low for low, _ in ends], "high": [high for _, high in ends]}
        columns["undefined"] = [one.undefined for one in estimates]
        return make_frame(columns, backend=backend)

    def __repr__(self) -> str:
        how = f"from votes, assuming {self.assumption} errors, target {self.target}"
        lines = [f"Evaluation of {self.n_items:,} predictions of a scan ({how})"]
        width = max(map(len, self.metrics), default=0)
        for name in self.metrics:
            low, high = self[name].interval(self.level)
            share = f"{100 * self.level:.12g}%"
            lines.append(f"  {name:<{width}}  {self[name].mean:.4f}  {share} interval {low:.4f} to {high:.4f}")
        return "\n".join([*lines, *(f"  ! {sentence}" for sentence in self.warnings)])


def evaluate_scan(predictions: Any, scan: LabelScan[Labels], settings: Settings) -> ScannedEvaluation:
    """The plain call of `evaluate` on votes that are scanned."""
    asked = settings.arguments
    others = [name for name in settings.changed() if name not in _TAKEN]
    if others:
        raise InvalidParameter(
            f"votes that are scanned are evaluated by the plain call, got ⟨{others[0]}⟩; leave it out, or read all "
            "votes into memory with scan.read()",
            parameter=others[0],
        )
    if not isinstance(predictions, str | Mapping):
        raise InvalidPredictions(
            "predictions for a scan must be the name of a column of its files or a mapping from item to class, got "
            f"{type(predictions).__name__}; pass one of these"
        )
    check_level(asked["level"])
    targets: tuple[Target, ...] = ("sample", "population")
    target: Target = check_choice(asked["target"] or DEFAULT_TARGET, targets, name="target")
    missing = check_choice(asked["missing"], ("error", "ignore"), name="missing")
    assume = asked["assume"]
    assumption = DEFAULT_ASSUMPTION if assume is None or isinstance(assume, RealMap) else assume
    assumption = check_choice(assumption, ASSUMPTIONS, name="assume")
    metrics = as_metrics(asked["metrics"], scan.classes.tolist(), asked["positive"])
    for name, metric in metrics.items():
        _check_metric(name, metric)
    if scan.n_classes > MANY_CLASSES:
        raise InvalidLabels(
            f"votes that are scanned may have {MANY_CLASSES} classes, got {scan.n_classes}; join classes, or read all "
            "votes into memory with scan.read()"
        )
    rated = rated_scan(scan, predictions, may_miss=missing == "ignore")
    seed = seed_of(asked["random_state"])
    real_map = assume if isinstance(assume, RealMap) else shipped_map()
    with silenced_warnings():  # what fits would say is among the warnings below
        readings = read_scan(rated, real_map, n_draws=_DRAWS, seed=seed)
    n_items = int(readings.times[readings.codes >= 0].sum())
    problem = identifiability_problem(rated)
    warnings = () if problem is None else (Sentence(problem.marked[0].upper() + problem.marked[1:] + "."),)
    return ScannedEvaluation(
        readings,
        metrics,
        scan.classes,
        n_items,
        target,
        asked["level"],
        assumption,
        (*warnings, *readings.assuming(assumption).notes),
        settings.with_seed(seed),
    )


def _check_metric(name: str, metric: Metric) -> None:
    if metric.needs != "counts":
        raise InvalidParameter(
            f"⟨metrics⟩ of votes that are scanned must be of the confusion counts, got {name!r}, which needs "
            f"{metric.needs}; leave it out, or read all votes into memory with scan.read()",
            parameter="metrics",
        )
