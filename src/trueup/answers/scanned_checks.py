"""What votes and vetted items in files give reason to say, from some of the items and all that are vetted."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from trueup._base.types import Codes
from trueup.answers.chosen_gold import ChosenGold, hold_against_models
from trueup.answers.design import design_doubts, draw_not_told
from trueup.answers.findings import copies_of_labelers, dependence_of, names_at_first, unanimous_votes
from trueup.answers.gold_alone import few_vetted_sentence
from trueup.answers.scanned_setup import ScannedTask
from trueup.data.aligned import AlignedPredictions
from trueup.data.encoding import vocabulary_from
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.estimators.collapsed import checked_items
from trueup.estimators.collapsed_readings import CollapsedReadings
from trueup.estimators.truth import TruthEngine
from trueup.exceptions import Sentence
from trueup.noise import Clusters, IndependenceCheck, identifiability_problem


@dataclass(frozen=True)
class ScanFindings:
    """What was found.

    Attributes
    ----------
    sentences : tuple of Sentence
        The gravest first.
    independence : IndependenceCheck or None
    refused : bool
        Whether vetted items contradict the models, so that these give no interval.
    """

    sentences: tuple[Sentence, ...]
    independence: IndependenceCheck | None
    refused: bool


def check_scan(
    scan: LabelScan[Labels],
    task: ScannedTask,
    readings: CollapsedReadings,
    systems: Sequence[Hashable],
    *,
    check_dependence: bool,
) -> ScanFindings:
    """Look at some of the items, at all that are vetted, and at what the draws of the headline have to say.

    Parameters
    ----------
    scan : LabelScan
        With the systems as labelers.
    systems : sequence of hashable
        Their names.
    """
    labels, codes = checked_items(scan, task.seed)
    from_votes = [name for name, metric in task.metrics.items() if readings.basis(metric) == "votes"]
    chosen = ChosenGold()
    if from_votes:
        chosen = hold_against_models(_engine_on(labels, codes, task, systems), "classes")
    independence = dependence_of(labels) if check_dependence else None
    found: list[str] = [*chosen.sentences, *design_doubts(labels), *unanimous_votes(labels), *_thin_votes(scan)]
    if from_votes:
        seen = {name: readings.gold_seen(task.metrics[name]) for name in from_votes}
        found += [few_vetted_sentence(seen, readings.n_vetted)] if readings.n_vetted else []
        found += task.real_map.doubts(labels) if task.assumption == "real" else []
        found += readings.assuming(task.assumption).notes
    if independence is not None and independence.dependent:
        found.append(Sentence(f"{independence.sentence.marked} {independence.advice(Clusters()).marked}"))
    found += [*copies_of_labelers(labels, codes, names_at_first(systems)), *draw_not_told(labels)]
    return ScanFindings(tuple(map(Sentence, found)), independence, chosen.refused)


def _engine_on(labels: Labels, codes: Codes, task: ScannedTask, systems: Sequence[Hashable]) -> TruthEngine:
    """An engine on some of the items."""
    nothing = np.zeros(len(codes), dtype=np.int64)
    names = vocabulary_from(list(systems))
    outputs = AlignedPredictions(names, codes, None, None, task.positive, nothing, nothing, nothing, labels.n_classes)
    return TruthEngine(labels, outputs, task.positive, real_map=task.real_map, seed=task.seed)


def _thin_votes(scan: LabelScan[Labels]) -> list[Sentence]:
    problem = identifiability_problem(scan, extra_raters=1)
    return [] if problem is None else [Sentence(problem.marked[0].upper() + problem.marked[1:] + ".")]
