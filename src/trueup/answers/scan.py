"""Votes that are scanned: what a user passed, checked, and some of the items that stand for all."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from trueup._base.types import Target
from trueup._base.validation import check_choice, check_level, seed_of
from trueup.answers.prepare import DEFAULT_TARGET, Settings, Task
from trueup.core.parts import labels_of_sample, sample_items
from trueup.core.prior import CrowdPrior
from trueup.core.truth import TruthModel
from trueup.data.aligned import AlignedPredictions
from trueup.data.encoding import is_null, vocabulary_from
from trueup.data.labels import Labels
from trueup.data.partitions import SystemSource
from trueup.data.scanning import LabelScan
from trueup.estimators.system_values import population_for
from trueup.exceptions import InvalidParameter, InvalidPredictions, silenced_warnings
from trueup.metrics import Metric, as_metrics

_TARGETS: tuple[Target, ...] = ("sample", "population")


def prepare_scan(
    systems: Mapping[Hashable, Any],
    scan: LabelScan[Labels],
    settings: Settings,
    *,
    metrics: Any,
    offers: Collection[str],
    common: bool,
    missing: str,
    prior: CrowdPrior | None,
    n_draws: int,
) -> tuple[Task, TruthModel]:
    """The task and the core for votes in files."""
    asked = settings.arguments
    others = [name for name in settings.changed() if name not in offers]
    if others:
        raise InvalidParameter(
            f"{settings.entry_point} of votes that are scanned takes {', '.join(offers)}, got `{others[0]}`; leave it "
            "out, or read all votes into memory with scan.read()",
            parameter=others[0],
        )
    check_level(asked["level"])
    target: Target = check_choice(asked["target"] or DEFAULT_TARGET, _TARGETS, name="target")
    check_choice(missing, ("error", "ignore"), name="missing")
    names, seed = scan.classes.tolist(), seed_of(asked["random_state"])
    positive = scan.n_classes - 1 if asked["positive"] is None else scan.class_code(asked["positive"])
    chosen = as_metrics(metrics, names, names[positive])
    _check_metrics(chosen)
    sources = [_as_source(system) for system in systems.values()]
    rated = scan.with_systems(sources, may_miss=missing == "ignore", common=common)
    with silenced_warnings():
        sample, times, sums = sample_items(rated)
    _check_unknown(sources, sums.n_named.tolist(), asked["unknown"])
    labels, codes = labels_of_sample(rated, sample), sample.codes
    none = np.zeros(len(codes), dtype=np.int64)
    outputs = AlignedPredictions(
        vocabulary_from(list(systems)), codes, None, None, positive, none, none, none, scan.n_classes
    )
    n_judged = int(sums.n_named.max(initial=0))
    notes = _left_out(n_judged, scan.n_items) if common else ()
    task = Task(
        labels,
        outputs,
        chosen,
        positive,
        None,
        asked["level"],
        seed,
        settings.with_seed(seed),
        notes,
        population=population_for(target),
        source=scan,
    )
    core = TruthModel(
        labels,
        sample.base,
        codes,
        positive=positive,
        times=times,
        prior=CrowdPrior() if prior is None else prior,
        n_draws=n_draws,
        seed=seed,
    )
    return task, core


def _check_metrics(metrics: Mapping[str, Metric]) -> None:
    for name, metric in metrics.items():
        if metric.needs != "counts":
            raise InvalidParameter(
                f"`metrics` of votes that are scanned must be of the confusion counts, got {name!r}, which needs "
                f"{metric.needs}; leave it out, or read all votes into memory with scan.read()",
                parameter="metrics",
            )


def _as_source(predictions: Any) -> SystemSource:
    """What a caller passed for one system; an error where it is neither a column nor a mapping."""
    if isinstance(predictions, str | Mapping):
        return predictions
    raise InvalidPredictions(
        "predictions for a scan must be the name of a column of its files or a mapping from item to class, got "
        f"{type(predictions).__name__}; pass one of these"
    )


def _check_unknown(systems: Sequence[SystemSource], n_predicted: Sequence[float], policy: str) -> None:
    """Stop predictions by item of which some are of no item of the scan, unless these are ignored."""
    check_choice(policy, ("error", "ignore"), name="unknown")
    for system, n_known in zip(systems, n_predicted, strict=True):
        n_all = n_known if isinstance(system, str) else sum(not is_null(name) for name in system.values())
        if n_all > n_known and policy == "error":
            raise InvalidPredictions(
                f"predictions must be of items of the scan, got {n_all - n_known:,.0f} of {n_all:,.0f} for items that "
                "are in none of its files; leave them out, or pass `unknown='ignore'`"
            )


def _left_out(n_judged: int, n_items: int) -> tuple[str, ...]:
    if not n_judged:
        raise InvalidPredictions(
            "the systems have no item in common, got predictions for different items; predict the same items, or pass "
            '`items="own"`'
        )
    if n_judged == n_items:
        return ()
    return (
        (
            f"{n_items - n_judged:,} items lack the prediction of some system and were left out; {n_judged:,} are "
            "judged."
        ),
    )
