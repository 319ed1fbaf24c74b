"""A report on detectors: what every report says, and crops of what decides the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from trueup._base.types import Floats
from trueup._base.wording import interval, level_words, number, percent
from trueup.answers.comparison import Comparison
from trueup.answers.evaluation import Evaluation
from trueup.data.labels import Labels
from trueup.detection.drawing import candidate_crop
from trueup.detection.evaluating import candidates_of
from trueup.detection.missed import MissedObjects
from trueup.detection.pool import Pool
from trueup.report import build_report, save_report

_MOST_CROPS = 6  # in a group
_MOST_SYSTEMS = 3  # that have groups of their own


def build_detection_report(
    pool: Pool,
    evaluations: Mapping[str, Evaluation],
    *,
    labels: Labels | None = None,
    missed: MissedObjects | None = None,
    comparison: Comparison | None = None,
    cuts: Mapping[str, Mapping[float, Evaluation]] | None = None,
    threshold: float = 0.5,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a report on detectors says, as a dict that JSON can hold; `trueup.report.save_report` writes it."""
    votes = pool.labels if labels is None else labels
    data = build_report(evaluations, labels=votes, comparison=comparison, title=title, settings=settings)
    groups = []
    for name, evaluation in list(evaluations.items())[:_MOST_SYSTEMS]:
        groups += _groups_of(pool, name, object_probabilities(pool, evaluation), threshold)
    if evaluations:
        chances = object_probabilities(pool, next(iter(evaluations.values())))
        unsure = np.argsort(np.abs(chances - 0.5), kind="stable")
        unsure = unsure[np.abs(chances[unsure] - 0.5) < 0.4]
        groups.append(_group(pool, "Unsure whether an object", "Vetting these tells most.", unsure, chances))
    data["detection"] = {
        "sentences": _sentences(pool, missed),
        "groups": [group for group in groups if group["crops"]],
        "cuts": [_cut_table(name, moved) for name, moved in (cuts or {}).items() if moved],
    }
    return data


def save_detection_report(
    path: str | PathLike[str],
    pool: Pool,
    evaluations: Mapping[str, Evaluation],
    *,
    plain: Callable[[Any], Any] | None = None,
    **parts: Any,
) -> Path:
    """Write a report on detectors as .html, .md or .json."""
    data = build_detection_report(pool, evaluations, **parts)
    return save_report(data if plain is None else plain(data), path)


def object_probabilities(pool: Pool, evaluation: Evaluation) -> Floats:
    """How probably each candidate is an object, by the draws behind the first metric."""
    posterior = evaluation.draws_for(evaluation.metric(evaluation.metrics[0])).posterior
    chances = np.zeros(len(pool))
    chances[candidates_of(pool, evaluation.labels)] = posterior[:, evaluation.positive]
    return chances


def _groups_of(pool: Pool, system: str, chances: Floats, threshold: float) -> list[dict[str, Any]]:
    scores = pool.scores(system)
    reported = scores >= threshold
    wrong = np.flatnonzero(reported & (chances < 0.5))
    wrong = wrong[np.argsort(-(scores * (1 - chances))[wrong], kind="stable")]
    lost = np.flatnonzero(~reported & (chances > 0.5))
    lost = lost[np.argsort(-chances[lost], kind="stable")]
    return [
        _group(
            pool,
            f"{system}: probably wrong",
            "Reported, and probably nothing.",
            wrong,
            chances,
            scores,
        ),
        _group(pool, f"{system}: probably overlooked", "Probably an object, and not reported.", lost, chances, scores),
    ]


def _group(
    pool: Pool,
    heading: str,
    words: str,
    members: Sequence[int] | Any,
    chances: Floats,
    scores: Floats | None = None,
) -> dict[str, Any]:
    crops = []
    for k in [int(member) for member in members[:_MOST_CROPS]]:
        n_drew, n_looked = int((pool.votes[:, k] == 1).sum()), int((pool.votes[:, k] >= 0).sum())
        score = "" if scores is None else f"; score {number(float(scores[k]))}"
        crops.append(
            {
                "crop": candidate_crop(pool, k),
                "item": pool.items[k],
                "words": f"{pool.categories[pool.category[k]]}; an object with probability "
                f"{percent(float(chances[k]))}; drawn by {n_drew} of {n_looked}{score}",
            }
        )
    return {"heading": heading, "words": words, "n": len(members), "crops": crops}


def _sentences(pool: Pool, missed: MissedObjects | None) -> list[str]:
    kind = "boxes" if pool.masks is None else "masks"
    said = [
        f"{len(pool):,} candidate objects in {pool.images.n:,} images, from {kind} of {len(pool.annotators):,} "
        f"annotators and {len(pool.found):,} systems; from an overlap of {pool.iou:g} on a detection is at a candidate."
    ]
    if missed is None:
        return [*said, "Recall and what rests on it is of this pool: objects that nobody drew do not count."]
    low, high = missed.total.interval(0.95)
    return [
        *said,
        f"{missed.n_seen:,} objects that nobody drew were seen in {missed.n_searched:,} of {missed.n_tiles:,} tiles; "
        f"there are between {low:.0f} and {high:.0f} of them in all (95% interval), and recall counts them.",
    ]


def _cut_table(name: str, moved: Mapping[float, Evaluation]) -> dict[str, Any]:
    first = next(iter(moved.values()))
    rows = [
        [metric, *(f"{number(at[metric].mean)} ({interval(*at[metric].interval(at.level))})" for at in moved.values())]
        for metric in first.metrics
    ]
    words = f"{name}: estimate ({level_words(first.level)} interval) where shapes are one thing from this overlap on"
    return {"words": words, "head": ["metric", *(f"{cut:g}" for cut in moved)], "rows": rows}
