"""The front hall for votes in files: what a user passed to a door, checked and decided, without any array of items."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trueup._base.types import Target
from trueup._base.validation import check_choice, check_level, seed_of
from trueup.answers.settings import Settings
from trueup.answers.setup import DEFAULT_TARGET
from trueup.data.encoding import is_null
from trueup.data.labels import Labels
from trueup.data.rated import SystemSource
from trueup.data.scanning import LabelScan
from trueup.estimators.assumptions import ASSUMPTIONS, DEFAULT_ASSUMPTION, MANY_CLASSES, Assumption
from trueup.estimators.collapsed_readings import CollapsedReadings
from trueup.estimators.real_map import RealMap, shipped_map
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.metrics import Metric, as_metrics

_TARGETS: tuple[Target, ...] = ("sample", "population")


@dataclass(frozen=True, eq=False)
class ScannedTask:
    """What every door starts from that takes votes in files.

    Attributes
    ----------
    labels : LabelScan
    metrics : mapping from str to Metric
        By the name under which they are shown.
    positive : int
        Code of the positive class.
    target : {"sample", "population"}
    level : float
    seed : int
        Gives the same numbers again.
    settings : Settings
        The call itself.
    assumption : {"real", "shared", "independent"}
        What the headline assumes of errors.
    real_map : RealMap
    """

    labels: LabelScan[Labels] = field(repr=False)
    metrics: Mapping[str, Metric]
    positive: int
    target: Target
    level: float
    seed: int
    settings: Settings
    assumption: Assumption
    real_map: RealMap

    def metric_named(self, name: str) -> Metric:
        """A metric of the call, or any other of the confusion counts by its name."""
        names = self.labels.classes.tolist()
        return self.metrics.get(name) or _checked(as_metrics([name], names, names[self.positive]))[name]


class ScannedAnswer:
    """What answers from votes in files have in common."""

    readings: CollapsedReadings

    @property
    def has_assumptions(self) -> bool:
        """Always: no noise model can be named for a scan."""
        return True

    @property
    def n_drawn(self) -> int:
        """Vetted items that were drawn at random."""
        return self.readings.n_vetted

    @property
    def diagnostics(self) -> Mapping[str, float]:
        """None are kept of a scan."""
        return {}


def prepare_scan(scan: LabelScan[Labels], settings: Settings, *, metrics: Any, offers: Collection[str]) -> ScannedTask:
    """Check what was passed, and decide what was left open.

    Parameters
    ----------
    metrics : str, callable, sequence or mapping
    offers : collection of str
        The keywords that count for a scan; an error where another one was passed.
    """
    asked = settings.arguments
    others = [name for name in settings.changed() if name not in offers]
    if others:
        raise InvalidParameter(
            f"{settings.door} of votes that are scanned takes {', '.join(offers)}, got ⟨{others[0]}⟩; leave it out, or "
            "read all votes into memory with scan.read()",
            parameter=others[0],
        )
    check_level(asked["level"])
    target = check_choice(asked["target"] or DEFAULT_TARGET, _TARGETS, name="target")
    assume = asked["assume"]
    assumption = DEFAULT_ASSUMPTION if assume is None or isinstance(assume, RealMap) else assume
    if scan.n_classes > MANY_CLASSES:
        raise InvalidLabels(
            f"votes that are scanned may have {MANY_CLASSES} classes, got {scan.n_classes}; join classes, or read all "
            "votes into memory with scan.read()"
        )
    names, seed = scan.classes.tolist(), seed_of(asked["random_state"])
    positive = scan.n_classes - 1 if asked["positive"] is None else scan.class_code(asked["positive"])
    return ScannedTask(
        scan,
        _checked(as_metrics(metrics, names, names[positive])),
        positive,
        target,
        asked["level"],
        seed,
        settings.with_seed(seed),
        check_choice(assumption, ASSUMPTIONS, name="assume"),
        assume if isinstance(assume, RealMap) else shipped_map(),
    )


def _checked(metrics: dict[str, Metric]) -> dict[str, Metric]:
    for name, metric in metrics.items():
        if metric.needs != "counts":
            raise InvalidParameter(
                f"⟨metrics⟩ of votes that are scanned must be of the confusion counts, got {name!r}, which needs "
                f"{metric.needs}; leave it out, or read all votes into memory with scan.read()",
                parameter="metrics",
            )
    return metrics


def as_system(predictions: Any) -> SystemSource:
    """What a caller passed for one system; an error where it is neither a column nor a mapping."""
    if isinstance(predictions, str | Mapping):
        return predictions
    raise InvalidPredictions(
        "predictions for a scan must be the name of a column of its files or a mapping from item to class, got "
        f"{type(predictions).__name__}; pass one of these"
    )


def check_unknown(systems: Sequence[SystemSource], n_predicted: Sequence[int], policy: str) -> None:
    """Stop predictions by item of which some are of no item of the scan, unless these are ignored.

    Parameters
    ----------
    systems : sequence of str or mapping
    n_predicted : sequence of int
        Items of the scan with a prediction of each system.
    policy : {"error", "ignore"}
    """
    check_choice(policy, ("error", "ignore"), name="unknown")
    for system, n_known in zip(systems, n_predicted, strict=True):
        n_all = n_known if isinstance(system, str) else sum(not is_null(name) for name in system.values())
        if n_all > n_known and policy == "error":
            raise InvalidPredictions(
                f"predictions must be of items of the scan, got {n_all - n_known:,} of {n_all:,} for items that are in "
                "none of its files; leave them out, or pass ⟨unknown='ignore'⟩"
            )
